"""Check everything about one chapter in a minute or two: its rules, its claims, its exercises, its outputs.

    python tools/check_chapter.py 03

Each step is the one that `make test` takes for the whole book, on this chapter, its evidence and its assignment.
All of them run, the quick ones first; the exit code is 1 if any finds something.
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("notebooks/evidence", "notebooks", "notebooks/assignments")


def notebooks_of(root, number):
    """The evidence, the chapter and the assignment of a number, those that exist."""
    if not (number.isascii() and number.isdigit()) or not 1 <= int(number) <= 99:
        raise ValueError(f"NB is {number!r}, expected the number of a chapter, such as NB=03")
    found = [path for folder in FOLDERS for path in sorted((root / folder).glob(f"{int(number):02d}_*.ipynb"))]
    if not found:
        there = sorted({path.name[:2] for path in (root / "notebooks").glob("[0-9][0-9]_*.ipynb")})
        raise ValueError(f"there is no chapter {int(number)}. There are {', '.join(there)}")
    return found


def steps(paths):
    """(what is checked, the command) for the notebooks of one chapter."""
    rules = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_notebooks.py", "-k", paths[0].stem]
    found = [("the rules for notebooks", rules), ("the claims and their measurements", ["tools/claims.py", "--check"])]
    if any(path.parent.name == "assignments" for path in paths):
        generated = "the student version, the list and the page of exercises"
        found.append((generated, ["tools/make_assignments.py", "--check"]))
    told = [path for path in paths if path.parent.name != "assignments"]
    found.append(("how it is written, beside the guide, which stops nothing", ["tools/style.py", *told]))
    return [*found, ("every output, re-executed and compared", ["tools/compare_notebooks.py", *paths])]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("number", nargs="?", default="", metavar="03")
    args = parser.parse_args(arguments)
    try:
        paths = notebooks_of(ROOT, args.number)
    except ValueError as error:
        sys.exit(f"make check: {error}.")
    failed = []
    for what, command in steps(paths):
        print(f"== {what}", flush=True)
        if subprocess.run([sys.executable, *map(str, command)], cwd=ROOT).returncode:
            failed.append(what)
    if failed:
        sys.exit(f"Something is wrong with {'; '.join(failed)} (see above).")
    print(f"All is well with {', '.join(str(path.relative_to(ROOT)) for path in paths)}.")


if __name__ == "__main__":
    main()
