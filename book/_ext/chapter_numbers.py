"""Numbers a chapter by its file: notebooks/06_sink_necessity is chapter 6, also while chapter 5 is not written.

The pages below a chapter, its evidence and its exercises, have no numbers of their own: they would go on counting
where the sections of the chapter end.
"""

import re

from docutils import nodes

CHAPTER = re.compile(r"notebooks/(\d\d)_")
BELOW = re.compile(r"(?:notebooks/evidence|book/exercises)/")


def renumber(app, env):
    """Put the file's number in the first place of every section number of a chapter; take those below it away."""
    for docname, numbers in env.toc_secnumbers.items():
        marked = [env.titles[docname], *env.tocs[docname].findall(nodes.reference)]
        if BELOW.match(docname):
            env.toc_secnumbers[docname] = {}
            for node in marked:
                node.attributes.pop("secnumber", None)
        elif (found := CHAPTER.match(docname)) and numbers:
            chapter = int(found[1])
            env.toc_secnumbers[docname] = {anchor: (chapter, *n[1:]) for anchor, n in numbers.items() if n}
            for node in marked:
                if node.get("secnumber"):
                    node["secnumber"] = [chapter, *node["secnumber"][1:]]


def setup(app):
    app.connect("env-check-consistency", renumber)  # the numbers are dealt just before
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
