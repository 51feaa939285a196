"""HTML and Markdown as a reader meets them."""

import json
import re
from html.parser import HTMLParser


class Page(HTMLParser):
    """Tags with their attributes, the readable text, the captions, and the scripts and styles of some HTML."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.all, self.text, self.code, self.captions, self._open = [], [], [], [], []

    @classmethod
    def read(cls, text):
        page = cls()
        page.feed(text)
        page.close()
        return page

    def handle_starttag(self, tag, attributes):
        self.all.append((tag, {key: value or "" for key, value in attributes}))
        if tag in ("script", "style", "figcaption"):
            self._open.append(tag)
        if tag == "figcaption":
            self.captions.append("")

    def handle_endtag(self, tag):
        if tag in self._open:
            self._open.remove(tag)

    def handle_data(self, data):
        hidden = {"script", "style"} & set(self._open)
        (self.code if hidden else self.text).append(data)
        if "figcaption" in self._open and not hidden:
            self.captions[-1] += data

    def tags(self, *names):
        return [attributes for tag, attributes in self.all if tag in names]

    def frames(self):
        """The frames of the explorations, dicts of src, alt and label, which stand in their scripts."""
        data = [json.loads(text) for text in self.code if text.lstrip().startswith("[{")]
        return [frame for frames in data for frame in frames if "alt" in frame]

    def readable(self):
        """What a reader sees or hears: the text and the spoken attributes."""
        spoken = [a[key] for _, a in self.all for key in ("alt", "aria-label", "title") if key in a]
        for frame in self.frames():
            spoken += [frame[key] for key in ("alt", "label", "caption") if isinstance(frame.get(key), str)]
        return "\n".join(["".join(self.text), *spoken])


def without_addresses(text):
    """Text without data URIs and addresses, whose digits are no results."""
    return re.sub(r"data:[\w/+;,=-]*base64,[A-Za-z0-9+/=]*|https?://[^\s)\"'>]+", " ", text)


def without_code(text):
    """Markdown without fenced code blocks and inline code."""
    text = re.sub(r"^ *(```|~~~)(?!\{).*?^ *\1 *$", "", text, flags=re.M | re.S)
    return re.sub(r"(?<!\})(`+)(?!`).+?(?<!`)\1(?!`)", "", text)


def headings(nb):
    """(cell, level, text) of every heading, in order."""
    for cell in nb.markdown:
        for marks, text in re.findall(r"^(#+) +(.+?) *#*$", without_code(cell.source), flags=re.M):
            yield cell, len(marks), text


def sections(nb):
    """[heading, cells] for each level-2 section; a cell belongs to the last heading that it has."""
    found = [["", []]]
    for cell in nb.cells:
        titles = re.findall(r"^## +(.+)$", cell.source, re.M) if cell.kind == "markdown" else []
        for title in titles:
            found.append([title, [cell]])
        if not titles:
            found[-1][1].append(cell)
    return found


def parts(nb):
    """[heading, [(cell, text), ...]] of each level-2 section, to the word: a cell may end one and begin the next.

    The text of a code cell is what its outputs say in Markdown.
    """
    found = [["", []]]
    for cell in nb.cells:
        if cell.kind != "markdown":
            found[-1][1].append((cell, "\n\n".join(cell.mime("text/markdown"))))
            continue
        pieces = re.split(r"^(?=## )", cell.source, flags=re.M)
        for piece in filter(str.strip, pieces):
            title = re.match(r"## +(.+)", piece)
            if title:
                found.append([title[1], []])
            found[-1][1].append((cell, piece))
    return found


def text_of(cells):
    return "\n\n".join(cell.source for cell in cells if cell.kind == "markdown")
