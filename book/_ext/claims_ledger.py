"""Writes book/claims.md from book/claims.yml and the notebooks' stored outputs, at every build, and puts an anchor on
each cell that reports a claim, so that `03_causal_masks.ipynb#claim-triangular` leads to it.
"""

import importlib.util
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parent.parent.parent


def claims_tool():
    """tools/claims.py as a module."""
    spec = importlib.util.spec_from_file_location("claims_tool", ROOT / "tools" / "claims.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_page(app):
    """An unknown claim, or one that its chapter does not report, stops the build."""
    try:
        text = claims_tool().claims_page(ROOT)
    except (OSError, ValueError, LookupError) as error:
        raise ExtensionError(f"the claims page cannot be written: {error}") from error
    page = ROOT / "book" / "claims.md"
    if not page.is_file() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


class AnchorClaims(SphinxTransform):
    """Give each cell the ids claim-ID of the claims that it reports, and tell MyST, which resolves links by them.

    MyST looks up `#claim-ID` and `path.ipynb#claim-ID` among the slugs of a document's headings; there it gets ours.
    """

    default_priority = 800  # before MyST resolves the links inside a document (879)

    def apply(self):
        if not str(self.env.doc2path(self.env.docname)).endswith(".ipynb"):
            return
        slugs = self.env.metadata[self.env.docname].setdefault("myst_slugs", {})
        self.document.myst_slugs = slugs
        for cell in self.document.findall(part_of_cell("cell_code")):
            outputs = cell.findall(part_of_cell("cell_code_output"))
            printed = [block.astext() for output in outputs for block in output.findall(nodes.literal_block)]
            for name in lines_of("\n".join(printed)):
                anchor = f"claim-{name}"
                cell["ids"].append(anchor)
                self.document.ids[anchor] = cell
                slugs[anchor] = (cell.line, anchor, name)


def part_of_cell(name):
    """A condition on nodes: whether one is this part of a notebook's cell."""
    return lambda node: isinstance(node, nodes.container) and node.get("nb_element") == name


lines_of = claims_tool().lines_of


def setup(app):
    app.connect("builder-inited", write_page)
    app.add_transform(AnchorClaims)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
