"""Copies the stored reports of diagnose(), pages of their own, to where the notebooks link them."""

import shutil
from pathlib import Path

FOLDER = "book/reports"


def copy_reports(app, exception):
    if exception is None and app.builder.format == "html":
        target = Path(app.outdir) / FOLDER
        target.mkdir(parents=True, exist_ok=True)
        for report in sorted((Path(app.srcdir) / FOLDER).glob("*.html")):
            shutil.copyfile(report, target / report.name)


def setup(app):
    app.connect("build-finished", copy_reports)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
