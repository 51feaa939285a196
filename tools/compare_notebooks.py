"""Re-execute notebooks with nbval, strictly, and compare every stored output; two files at a time."""

import os
import sys
from pathlib import Path

import pytest
from fetch_weights import why_missing

NBVAL = """-q -rN -n 2 --dist loadfile -p no:cacheprovider --tb=short --color=no --nbval --nbval-current-env
--nbval-sanitize-with nbval_sanitize.cfg --nbval-cell-timeout 300""".split()


class Summary:
    """Names the cells that failed as the notebook numbers them: nbval counts from 0."""

    def pytest_terminal_summary(self, terminalreporter):
        for report in terminalreporter.stats.get("failed", []) + terminalreporter.stats.get("error", []):
            path, _, cell = report.nodeid.partition("::Cell ")
            where = f"code cell [{int(cell) + 1}]" if cell.isdigit() else "the notebook"
            terminalreporter.write_line(f"{path}: {where} failed, or its output is not the stored one")


def with_weights(paths):
    """The notebooks that can run: without those that need trained weights, where these cannot be had."""
    needing = [path for path in paths if "attn_utils.pretrained" in Path(path).read_text("utf8")]
    missing = why_missing() if needing else None
    if missing:
        print(f"left out: {', '.join(needing)} ({missing})")
    return [path for path in paths if not (missing and path in needing)]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit("there is no notebook to compare in notebooks/")
    missing = [path for path in sys.argv[1:] if not Path(path).is_file()]
    if missing:
        sys.exit(f"no such notebook: {', '.join(missing)}")
    paths = [str(Path(path).resolve()) for path in with_weights(sys.argv[1:])]
    os.chdir(Path(__file__).resolve().parent.parent)  # where the sanitizing rules and conftest.py are
    if not paths:
        sys.exit()
    sys.exit(pytest.main([*NBVAL, *paths], plugins=[Summary()]))
