"""A bar over folded code has its own name, for a screen reader too, and keeps it while the code is open.

MyST-NB labels every bar "Toggle hidden content", which is what a screen reader would say in place of its name.
"""

import re

LABEL = re.compile(r'(<summary) aria-label="Toggle hidden content"')
NAMED = re.compile(r'(<p class="collapsed admonition-title">(Code: [^<]*)</p>\s*<p class="expanded admonition-title">)[^<]*')


def name_bars(app, pagename, templatename, context, doctree):
    if "body" in context:
        context["body"] = NAMED.sub(r"\1\2", LABEL.sub(r"\1", context["body"]))


def setup(app):
    app.connect("html-page-context", name_bars)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
