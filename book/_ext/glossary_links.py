"""Lets an ordinary Markdown link lead to a term: [head](../book/glossary.md#term-head), which also works on GitHub.

Without it MyST knows the headings of a page alone, and a link to a term is a warning.
"""

from docutils import nodes


def add_terms(app, doctree):
    """Tell MyST the terms of a glossary, as it knows the headings: the id -> (line, id, text)."""
    page = app.env.metadata[app.env.docname]
    terms = [node for node in doctree.findall(nodes.term) if node["ids"]]
    if terms:
        found = {name: (node.line, name, node.astext()) for node in terms for name in node["ids"]}
        page["myst_slugs"] = {**page.get("myst_slugs", {}), **found}


def setup(app):
    app.connect("doctree-read", add_terms)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
