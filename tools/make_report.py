"""Make book/reports/smollm2.html: the report that the page "Diagnose your own model" links.

    python tools/make_report.py

Its text is that of the notebook. Needs the weights of SmolLM2, which are fetched once.
"""

import json
from pathlib import Path

from attn_utils import diagnose
from attn_utils.pretrained import load_smollm

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "notebooks" / "diagnose_your_model.ipynb"
REPORT = ROOT / "book" / "reports" / "smollm2.html"


def text():
    """The text of the notebook, which its cell assigns."""
    for cell in json.loads(NOTEBOOK.read_text("utf8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and source.startswith("text = ("):
            names = {}
            exec(source.split("\nencoder")[0], names)  # one assignment of a string
            return names["text"]
    raise ValueError(f"{NOTEBOOK.name} has no cell that begins with text = (")


def main():
    found = diagnose(load_smollm().run(text()), pictures=24)
    REPORT.parent.mkdir(exist_ok=True)
    found.report(REPORT, "SmolLM2 on the old ferry")
    print(f"{REPORT.relative_to(ROOT)}: {REPORT.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
