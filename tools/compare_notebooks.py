"""Execute notebooks once, each alone as a reader has it, and compare every output with what is stored.

    python tools/compare_notebooks.py notebook.ipynb ...

Strict nbval does it, two notebooks at a time, with the comparison of pictures that it lacks (compare_pictures.py)
in the surroundings of a reader (nbval_alone.py). The longest should be named first, so that both end together.
"""

import os
import sys
from pathlib import Path

import pytest
from fetch_weights import why_missing

ROOT = Path(__file__).resolve().parent.parent
NBVAL = """-c pyproject.toml -q -rN -n 2 --dist loadfile --no-loadscope-reorder -p no:cacheprovider -p nbval_alone
--tb=short --color=no --nbval --nbval-sanitize-with nbval_sanitize.cfg --nbval-cell-timeout 300
--nbval-kernel-startup-timeout 180""".split()


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
    if not paths:
        sys.exit()
    os.chdir(ROOT)  # where the sanitizing rules are
    above = os.path.commonpath([ROOT, *map(os.path.dirname, paths)])  # a file outside the root has no name for pytest
    sys.exit(pytest.main([*NBVAL, f"--rootdir={above}", *paths]))
