// The map of a report: layers by heads, the numbers of one head, and its pattern. All of it comes out of the page.
'use strict';
(function () {
  const data = JSON.parse(document.getElementById('data').textContent);
  const grid = document.getElementById('grid'), panel = document.getElementById('head');
  const layers = data.layers, widest = Math.max(...layers.map(heads => heads.length));
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const narrow = matchMedia('(max-width: 760px)');
  // cividis at ten even steps: as light as large, for every kind of color vision
  const RAMP = ['#00224e', '#123570', '#3b496c', '#575d6d', '#707173', '#8a8678', '#a59c74', '#c3b369', '#e1cc55',
    '#fee838'].map(channels);
  let measure = Object.keys(data.measures)[0], marked = new Set(), at = [0, 0], cells = [];

  function channels(hex) {
    return [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
  }

  function mix(a, b, share) {
    return a.map((level, i) => Math.round(level + (b[i] - level) * share));
  }

  function color(share) {
    const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1), low = Math.min(Math.floor(place), RAMP.length - 2);
    return 'rgb(' + mix(RAMP[low], RAMP[low + 1], place - low).join() + ')';
  }

  function make(tag, properties, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  function written(value) {
    if (value === undefined) return '–';
    if (value !== 0 && Math.abs(value) < 0.0001) return 'below 0.0001';
    return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en') : String(+value.toPrecision(3));
  }

  // ---------------------------------------------------------------- the map

  function build() {
    grid.replaceChildren();
    const every = step(widest), header = make('div', {});
    header.setAttribute('role', 'presentation');
    header.setAttribute('aria-hidden', 'true');
    header.append(make('span', {className: 'name top'}, ''));
    for (let j = 1; j <= widest; j++) header.append(make('span', {className: 'name top'}, named(j, every)));
    grid.append(header);
    cells = layers.map((heads, i) => {
      const row = make('div', {});
      row.setAttribute('role', 'row');
      const name = make('span', {className: 'name'}, named(i + 1, step(layers.length)));
      name.setAttribute('aria-hidden', 'true');
      row.append(name);
      const made = heads.map((head, j) => {
        const cell = make('div', {className: 'cell', tabIndex: -1});
        cell.setAttribute('role', 'gridcell');
        cell.dataset.at = i + ',' + j;
        row.append(cell);
        return cell;
      });
      for (let j = heads.length; j < widest; j++) row.append(make('span', {}));
      grid.append(row);
      return made;
    });
  }

  function step(count) {
    return count <= 16 ? 1 : count <= 40 ? 4 : 10;
  }

  function named(number, every) {
    return number === 1 || number % every === 0 ? String(number) : '';
  }

  // Rows are low where there are many of them, and squares where the patterns are shown.
  function fit() {
    const pictures = measure === 'pattern', room = grid.parentElement.parentElement.clientWidth;
    const free = (narrow.matches ? room : Math.min(room - 320, 640)) - 20;
    const wide = Math.max(3, Math.min(free / widest - 1, pictures ? 48 : 40));
    const high = pictures ? wide : Math.min(Math.max(wide, 10), layers.length <= 16 ? 26 : layers.length <= 40 ? 15 : 10);
    grid.style.gridTemplateColumns = '19px repeat(' + widest + ', ' + wide + 'px)';
    grid.style.gridTemplateRows = 'auto repeat(' + layers.length + ', ' + high + 'px)';
  }

  function paint() {
    const shown = data.measures[measure], pictures = measure === 'pattern';
    const most = measure === 'distance' ? data.longest : 1;
    document.getElementById('meaning').textContent = shown.meaning;
    document.getElementById('high').textContent = written(most) + (measure === 'distance' ? ' tokens' : '');
    document.querySelector('.scale').hidden = pictures;
    cells.forEach((row, i) => row.forEach((cell, j) => {
      const value = layers[i][j][measure], picture = data.pictures[key(i, j)];
      cell.replaceChildren();
      cell.style.background = !pictures && value !== undefined ? color(value / most) : '';
      cell.classList.toggle('none', pictures ? !picture : value === undefined);
      cell.classList.toggle('dim', marked.size > 0 && !marked.has(key(i, j)));
      if (pictures && picture) cell.append(drawing(picture));
      const says = pictures ? '' : ', ' + shown.title + ' ' + written(value);
      cell.setAttribute('aria-label', 'Layer ' + (i + 1) + ', head ' + (j + 1) + says);
      cell.title = 'Layer ' + (i + 1) + ', head ' + (j + 1) + (pictures ? '' : ': ' + written(value));
    }));
    const ramp = document.getElementById('ramp').getContext('2d');
    for (let x = 0; x < 128; x++) {
      ramp.fillStyle = color(x / 127);
      ramp.fillRect(x, 0, 1, 1);
    }
    fit();
  }

  function key(i, j) {
    return (i + 1) + ',' + (j + 1);
  }

  function drawing(picture) {
    const [rows, columns, , packed] = picture, levels = atob(packed);
    const canvas = make('canvas', {width: columns, height: rows}), pen = canvas.getContext('2d');
    const style = getComputedStyle(document.documentElement);
    const [low, high] = ['--low', '--high'].map(name => channels(hex(style.getPropertyValue(name).trim())));
    const image = pen.createImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) {
      image.data.set([...mix(low, high, levels.charCodeAt(i) / 255), 255], 4 * i);
    }
    pen.putImageData(image, 0, 0);
    canvas.setAttribute('aria-hidden', 'true');
    return canvas;
  }

  function hex(short) {
    return short.length === 4 ? '#' + [...short.slice(1)].map(digit => digit + digit).join('') : short;
  }

  function choose(i, j, focus) {
    i = Math.min(Math.max(i, 0), layers.length - 1);
    j = Math.min(Math.max(j, 0), layers[i].length - 1);
    const before = cells[at[0]][at[1]];
    before.tabIndex = -1;
    before.setAttribute('aria-selected', 'false');
    at = [i, j];
    cells[i][j].tabIndex = 0;
    cells[i][j].setAttribute('aria-selected', 'true');
    if (focus) cells[i][j].focus();
    describe();
  }

  const MOVES = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -Infinity],
    End: [0, Infinity], PageUp: [-Infinity, 0], PageDown: [Infinity, 0]};

  grid.addEventListener('keydown', event => {
    const move = MOVES[event.key];
    if (!move || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    choose(at[0] + move[0], at[1] + move[1], true);
  });

  function under(event) {
    const cell = event.target.closest('.cell');
    return cell && cell.dataset.at.split(',').map(Number);
  }

  let held = false;  // a click keeps a head; until then the pointer shows the one below it
  grid.addEventListener('click', event => {
    const place = under(event);
    if (!place) return;
    held = true;
    choose(...place, true);
    if (narrow.matches) panel.scrollIntoView({block: 'nearest'});
  });
  grid.addEventListener('pointerover', event => {
    const place = under(event);
    if (place && event.pointerType === 'mouse' && !held) choose(...place, false);
  });

  // ---------------------------------------------------------------- one head

  function describe() {
    const [i, j] = at, head = layers[i][j], name = 'Layer ' + (i + 1) + ', head ' + (j + 1);
    const title = make('h3', {}, name);
    title.setAttribute('aria-live', 'polite');
    panel.replaceChildren(title, steps(), ...pattern(head, i, j), facts(head), ...profile(head));
  }

  function steps() {
    const row = make('div', {className: 'steps'});
    for (const [sign, words, di, dj] of [['←', 'previous head', 0, -1], ['→', 'next head', 0, 1],
      ['↑', 'layer above', -1, 0], ['↓', 'layer below', 1, 0]]) {
      const button = make('button', {type: 'button'}, sign);
      button.setAttribute('aria-label', words);
      button.addEventListener('click', () => {
        choose(at[0] + di, at[1] + dj, false);
        panel.querySelector('[aria-label="' + words + '"]').focus();
      });
      row.append(button);
    }
    return row;
  }

  function facts(head) {
    const list = make('dl', {className: 'facts'});
    const add = (title, value) => list.append(make('dt', {}, title), make('dd', {}, value));
    const range = name => head.range && head.range[name]
      ? written(head[name]) + ' (' + head.range[name].map(written).join(' to ') + ')' : written(head[name]);
    for (const [name, shown] of Object.entries(data.measures)) {
      if (name === 'pattern' || head[name] === undefined) continue;
      const where = name === 'sink' ? ', token ' + head.at + (head.token === undefined ? '' : ' “' + head.token + '”') : '';
      add(shown.title + where, range(name) + (name === 'distance' ? ' tokens' : ''));
    }
    for (const [name, title] of Object.entries(data.numbers)) if (head[name] !== undefined) add(title, range(name));
    if (head.rows) add('rows', head.rows);
    return list;
  }

  function profile(head) {
    if (!head.profile.length) return [];
    const bars = make('div', {className: 'bars'}), most = Math.max(...head.profile.map(part => part[2]), 1e-9);
    for (const [from, to, weight] of head.profile) {
      const bar = make('i', {});
      bar.style.width = 100 * weight / most + '%';
      bars.append(make('span', {}, from === to ? String(from) : from + '–' + to), make('span', {}, bar),
        make('span', {}, written(weight)));
    }
    return [make('p', {className: 'hint'}, 'Weight by distance, in tokens'), bars];
  }

  function pattern(head, i, j) {
    const picture = data.pictures[key(i, j)];
    if (!picture) return [];
    const [rows, columns, largest] = picture, canvas = drawing(picture), box = make('div', {className: 'pattern'});
    const says = make('p', {className: 'says'});
    const [queries, keys] = data.real[i] || data.sizes[i].map(size => Array.from({length: size}, (_, k) => k + 1));
    canvas.removeAttribute('aria-hidden');
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', 'Pattern of layer ' + (i + 1) + ', head ' + (j + 1) + ': ' + strongest(picture));
    canvas.style.aspectRatio = columns + ' / ' + rows;
    box.append(names('rows', rows, queries), canvas, names('columns', columns, keys));
    const tell = event => {
      const frame = canvas.getBoundingClientRect();
      const row = clamp(Math.floor((event.clientY - frame.top) / frame.height * rows), rows);
      const column = clamp(Math.floor((event.clientX - frame.left) / frame.width * columns), columns);
      const weight = (picture[3] && atob(picture[3]).charCodeAt(row * columns + column) / 255) ** 2 * largest;
      says.textContent = places(row, rows, queries) + ' → ' + places(column, columns, keys) + ': '
        + (rows < queries.length || columns < keys.length ? 'mean weight ' : 'weight ') + (weight < 0.001 ? 'below 0.001'
          : String(+weight.toPrecision(2)));
    };
    canvas.addEventListener('pointermove', tell);
    canvas.addEventListener('pointerdown', tell);
    says.textContent = 'Queries downwards, keys to the right. ' + strongest(picture)[0].toUpperCase() +
      strongest(picture).slice(1) + '.';
    return [box, says];

    function strongest([, , most, packed]) {
      const cell = [...atob(packed)].findIndex(level => level === 'ÿ');
      const from = places(Math.floor(cell / columns), rows, queries);
      const to = places(cell % columns, columns, keys);
      return most ? 'most weight from ' + from + ' to ' + to + ' (' + written(most) + ')' : 'no weight';
    }
  }

  function clamp(value, count) {
    return Math.min(Math.max(value, 0), count - 1);
  }

  // The numbers of the first and the last token that a cell stands for, out of those on its axis.
  function span(cell, cells, numbers) {
    const count = numbers.length, first = Math.floor(cell * count / cells);
    return [numbers[first], numbers[Math.max(Math.floor((cell + 1) * count / cells) - 1, first)]];
  }

  function places(cell, cells, numbers) {
    const [first, last] = span(cell, cells, numbers), tokens = data.tokens;
    const word = number => number + (tokens ? ' “' + tokens[number - 1] + '”' : '');
    return first === last ? word(first) : word(first) + ' to ' + word(last);
  }

  // The tokens along an axis, as many as there is room for; numbers where there are no tokens.
  function names(which, cells, numbers) {
    const tokens = data.tokens, axis = make('div', {className: which + (tokens ? '' : ' bare')});
    axis.setAttribute('aria-hidden', 'true');
    const room = tokens ? 24 : 8, every = Math.ceil(cells / room);
    for (let cell = 0; cell < cells; cell += every) {
      const number = span(cell, cells, numbers)[0];
      const label = make('span', {}, tokens ? tokens[number - 1].replace(/\s/g, '␣') : String(number));
      label.style[which === 'rows' ? 'top' : 'left'] = 100 * (cell + 0.5) / cells + '%';
      axis.append(label);
    }
    const longest = Math.max(...[...axis.children].map(label => label.textContent.length));
    axis.style[which === 'rows' ? 'width' : 'height'] = tokens ? Math.min(7 * longest + 14, 88) + 'px' : '';
    return axis;
  }

  // ---------------------------------------------------------------- begin

  document.getElementById('measures').addEventListener('change', event => {
    measure = event.target.value;
    paint();
  });

  for (const button of document.querySelectorAll('.mark')) {
    button.hidden = false;
    button.setAttribute('aria-pressed', 'false');
    button.addEventListener('click', () => {
      const on = button.getAttribute('aria-pressed') !== 'true', finding = data.findings[button.dataset.finding];
      document.querySelectorAll('.mark').forEach(other => other.setAttribute('aria-pressed', 'false'));
      button.setAttribute('aria-pressed', String(on));
      marked = new Set(on ? finding.heads.map(String) : []);
      const choice = document.querySelector('input[value="' + finding.shows + '"]');
      if (on && choice) {
        choice.checked = true;
        measure = finding.shows;
      }
      paint();
      if (!on) return;
      held = true;
      choose(finding.heads[0][0] - 1, finding.heads[0][1] - 1, false);
      document.getElementById('map').scrollIntoView();
    });
  }

  addEventListener('resize', fit);
  dark.addEventListener('change', () => { paint(); describe(); });
  document.getElementById('stage').hidden = false;
  build();
  paint();
  choose(0, 0, false);
})();
