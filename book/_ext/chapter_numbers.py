"""Numbers a chapter by its file: notebooks/06_sink_necessity is chapter 6, also while chapter 5 is not written."""

import re

from docutils import nodes

CHAPTER = re.compile(r"notebooks/(\d\d)_")


def renumber(app, env):
    """Put the file's number in the first place of every section number of a chapter."""
    for docname, numbers in env.toc_secnumbers.items():
        found = CHAPTER.match(docname)
        if found and numbers:
            chapter = int(found[1])
            env.toc_secnumbers[docname] = {anchor: (chapter, *n[1:]) for anchor, n in numbers.items() if n}
            marked = [env.titles[docname], *env.tocs[docname].findall(nodes.reference)]
            for node in marked:
                if node.get("secnumber"):
                    node["secnumber"] = [chapter, *node["secnumber"][1:]]


def setup(app):
    app.connect("env-check-consistency", renumber)  # the numbers are dealt just before
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
