"""Writes book/claims.md from book/claims.yml and the notebooks' stored outputs, at every build."""

import importlib.util
from pathlib import Path

from sphinx.errors import ExtensionError

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


def setup(app):
    app.connect("builder-inited", write_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
