"""What unfolds has a name of its own, for a screen reader too.

A bar over folded code: MyST-NB labels each of them "Toggle hidden content", which a screen reader says in place of its
name. The arrows of the sidebar: the theme gives them none.
"""

import re

LABEL = re.compile(r'(<summary) aria-label="Toggle hidden content"')
NAMED = re.compile(
    r'(<p class="collapsed admonition-title">(Code: [^<]*)</p>\s*<p class="expanded admonition-title">)[^<]*'
)


def name_bars(app, pagename, templatename, context, doctree):
    """Let each bar keep its name, also while its code is open; name the arrows of the sidebar."""
    if "body" in context:
        context["body"] = NAMED.sub(r"\1\2", LABEL.sub(r"\1", context["body"]))
    if "generate_toctree_html" in context:
        context["generate_toctree_html"] = naming_arrows(context["generate_toctree_html"])


def naming_arrows(generate):
    """The theme's function that makes a table of contents, with a name for each arrow in it."""

    def named(*args, **kwargs):
        contents = generate(*args, **kwargs)
        for arrow in contents.find_all("summary") if hasattr(contents, "find_all") else ():
            chapter = arrow.find_parent("li").find("a").get_text(strip=True)
            arrow["aria-label"] = f"Pages below “{chapter}”"
        return contents

    return named


def setup(app):
    app.connect("html-page-context", name_bars, priority=900)  # after the theme
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
