"""The comparison of pictures that strict nbval leaves out."""

import base64
import io
import itertools
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from compare_pictures import ALLOWED, FRAME, complaint, difference, largest, pictures, pixels, what_differs
from lint import stored_notebooks
from matplotlib.colors import to_rgb
from PIL import Image

from attn_utils import COLORS

ROOT = Path(__file__).parents[1]
NOTEBOOKS = stored_notebooks()


def bars(heights, size=(4, 3)):
    buffer = io.BytesIO()
    with plt.style.context("default", after_reset=True):  # whatever style is in force
        figure, ax = plt.subplots(figsize=size)
        ax.bar(range(len(heights)), heights)
        figure.savefig(buffer, format="png")
    plt.close(figure)
    return buffer.getvalue()


def shown(*pngs):
    return [{"data": {"image/png": base64.b64encode(png).decode()}} for png in pngs]


def framed(*pngs):
    images = "".join(f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}">' for png in pngs)
    return [{"data": {"text/html": images}}]


RISING, FALLING = bars([1, 2, 3]), bars([3, 2, 1])


@pytest.mark.parametrize("wrap", [shown, framed])
def test_changed_data_is_noticed(wrap):
    assert complaint(wrap(RISING), wrap(RISING)) is None
    assert "picture 2 of 2 is not the stored one" in complaint(wrap(RISING, FALLING), wrap(RISING, RISING))
    assert "2 pictures were drawn, 1 are stored" in complaint(wrap(RISING, RISING), wrap(RISING))


def test_rounding_is_not_a_change():
    rising, falling, rounded = (pixels(picture) for picture in (RISING, FALLING, bars([1, 2, 3.001])))
    assert difference(rising, rising) == 0
    assert difference(rising, rounded) < ALLOWED < difference(rising, falling)
    assert what_differs(rounded, rising) is None
    assert "400 by 350 pixels, stored are 400 by 300" in complaint(shown(bars([1, 2, 3], size=(4, 3.5))), shown(RISING))


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_a_picture_is_found_in_any_output_and_format(kind):
    """As a figure, in a page, in Markdown; and a transparent ground is white."""
    buffer = io.BytesIO()
    Image.open(io.BytesIO(RISING)).save(buffer, format=kind, lossless=True)
    code, media = base64.b64encode(buffer.getvalue()).decode(), f"image/{kind.lower()}"
    uri = f'<img src="data:{media};base64,{code}">'
    outputs = [{"data": {"text/html": uri}}, {"data": {media: code}}, {"data": {"text/markdown": [uri]}}]
    assert pictures(outputs) == [buffer.getvalue()] * 3
    assert what_differs(pixels(buffer.getvalue()), pixels(RISING)) is None
    clear = io.BytesIO()
    Image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(clear, format="PNG")
    assert (pixels(clear.getvalue()) == 255).all()


# ---------------------------------------------------------------- every stored picture, forged


@pytest.fixture(scope="module")
def every_picture():
    """Every picture that is stored in a notebook, each once, as (where, pixels, where it has coloured ink)."""
    found = {}
    for path in NOTEBOOKS:
        for cell in (cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"):
            for number, picture in enumerate(pictures(cell.outputs)):
                found.setdefault(picture, f"{path.parent.name}/{path.name}: {cell.id}, picture {number}")
    images = [(where, pixels(picture)) for picture, where in found.items()]
    return [(where, image, largest(image) - (255 - largest(255 - image)) > 20) for where, image in images]


def swapped(image, inked):
    """Red and blue."""
    return image[..., ::-1]


def rotated(image, inked):
    """Each coloured pixel in the palette's colour after the one that is nearest to its own."""
    palette = np.array([to_rgb(code) for color, code in COLORS.items() if color not in ("black", "grey")]) * 255
    nearest = ((image[inked][:, None] - palette) ** 2).sum(-1).argmin(-1)
    forged = image.copy()
    forged[inked] = palette[(nearest + 1) % len(palette)].round()
    return forged


def erased(image, inked):
    forged = image.copy()
    forged[inked] = 255
    return forged


def greyed(image, inked):
    return np.stack([image @ [0.299, 0.587, 0.114]] * 3, axis=-1).astype(np.uint8)


def moved(down, right):
    """The coloured ink elsewhere; what leaves the picture is lost, and white stays where it was."""

    def forge(image, inked):
        forged, (rows, columns) = erased(image, inked), np.nonzero(inked)
        inside = (0 <= rows + down) & (rows + down < len(image))
        inside &= (0 <= columns + right) & (columns + right < image.shape[1])
        rows, columns = rows[inside], columns[inside]
        forged[rows + down, columns + right] = image[rows, columns]
        return forged

    return forge


FORGERIES = {"red and blue swapped": swapped, "palette rotated": rotated, "erased": erased, "grey": greyed}
MOVES = {"sideways": (moved(0, 20), moved(0, -20)), "up or down": (moved(20, 0), moved(-20, 0))}


def passing(every_picture, *forge):
    """The pictures whose forgery passes, although they have coloured ink; they take the ways to forge in turn."""
    inked = [picture for picture in every_picture if picture[2].sum() >= 100]
    assert len(inked) > 0.9 * len(every_picture) > 90
    turns = zip(itertools.cycle(forge), inked, strict=False)
    return [where for forge, (where, image, ink) in turns if what_differs(forge(image, ink), image) is None]


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_colour_is_red_in_every_stored_picture(every_picture, forge):
    assert passing(every_picture, forge) == []


@pytest.mark.parametrize("ways", MOVES.values(), ids=MOVES)
def test_coloured_ink_moved_by_twenty_pixels_is_red_in_every_stored_picture(every_picture, ways):
    assert passing(every_picture, *ways) == []


def test_every_stored_picture_equals_itself_with_its_colours_rounded(every_picture):
    """The frames of explorations have 64 colours, and which ones may hang on the platform."""
    rounded = [
        (where, np.clip(image // 8 * 8 + 4, 0, 255).astype(np.uint8), image) for where, image, _ in every_picture
    ]
    assert [where for where, new, image in rounded if what_differs(new, image)] == []


def test_one_colour_of_two_is_looked_at_by_itself():
    """A thin line beside a large area: the ink of the area must not hide what happens to that of the line."""
    image = np.full((300, 400, 3), 255, np.uint8)
    image[20:280, 20:300] = 0, 114, 178
    image[100:103, 310:390] = 213, 94, 0
    away, elsewhere = image.copy(), image.copy()
    away[100:103, 310:390] = 255
    elsewhere[100:103, 310:390], elsewhere[130:133, 310:390] = 255, (213, 94, 0)
    assert what_differs(away, image) == "100% of the stored orange ink is not there"
    said = "100% of the stored orange ink is not there, 100% of the orange ink is new"
    assert what_differs(elsewhere, image).startswith(said)


def test_the_palette_is_pinned():
    """The stored pictures are drawn in it; Okabe and Ito's, of which colour-blind eyes tell every pair."""
    assert COLORS == {
        "blue": "#0072B2",
        "orange": "#D55E00",
        "green": "#009E73",
        "purple": "#CC79A7",
        "sky": "#56B4E9",
        "amber": "#E69F00",
        "yellow": "#F0E442",
        "black": "#1A1A1A",
        "grey": "#767676",
    }


def test_plain_nbval_sees_what_a_picture_shows_and_not_its_bytes(tmp_path):
    """pytest --nbval, with no other option: a figure of other data is red, the same one stored anew is green."""
    draw = "import matplotlib.pyplot as plt\nplt.bar([0, 1, 2], [1, 2, 3])\nplt.show()"
    frame = "import base64\nfrom IPython.display import HTML\nHTML('<img alt=\"\" src=\"data:image/png;base64,' + CODE + '\">')"
    cells = [draw, frame.replace("CODE", repr(base64.b64encode(RISING).decode()))]
    path = tmp_path / "figure.ipynb"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(notebook, path)
    subprocess.run([sys.executable, ROOT / "tools" / "execute_notebooks.py", path], check=True, capture_output=True)
    notebook = nbformat.read(path, 4)
    figure, page = (cell.outputs[-1].data for cell in notebook.cells)
    shown_before, anew = figure["image/png"], base64.b64encode(stored_anew(RISING)).decode()
    figure["image/png"] = base64.b64encode(stored_anew(base64.b64decode(shown_before))).decode()
    page["text/html"] = FRAME.sub(f"data:image/png;base64,{anew}", page["text/html"])
    assert shown_before != figure["image/png"]
    nbformat.write(notebook, path)
    assert plain_nbval(path).returncode == 0
    figure["image/png"] = base64.b64encode(recoloured(base64.b64decode(shown_before))).decode()
    nbformat.write(notebook, path)
    done = plain_nbval(path)
    assert done.returncode == 1
    assert "picture 1 of 1 is not the stored one: 100% of the stored orange ink is not there" in done.stdout


def plain_nbval(path):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml"]
    command += ["--rootdir", path.parent, "-p", "conftest", "--nbval", "--nbval-current-env", path]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def stored_anew(picture):
    """The same picture in other bytes."""
    buffer = io.BytesIO()
    Image.open(io.BytesIO(picture)).save(buffer, format="PNG", compress_level=1)
    return buffer.getvalue()


def recoloured(picture):
    """The picture with its red and blue swapped."""
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(swapped(pixels(picture), None))).save(buffer, format="PNG")
    return buffer.getvalue()
