"""Give the book another address: everything that names the repository follows.

    python tools/set_repository.py OWNER/NAME     rewrite pyproject.toml, _config.yml, README.md, ...
    python tools/set_repository.py --check        say whether they agree; the exit code is 1 if not
"""

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path

from setup_cell import HOST, ROOT, repository, setup_cell

OWNER_NAME = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}/(?!\.{1,2}$)(?!.*\.git$)[A-Za-z0-9._-]{1,100}")
SOURCES = ("pyproject.toml", "_config.yml")  # the address stands here; the rest is generated
PATTERNS = ("*.md", "*.cff", "environment.yml", "book/**/*.md", "notebooks/**/*.ipynb", ".github/**/*.yml")
PATTERNS += ("attn_utils/labs.py", "book/reports/*.html")
# Where services that open a notebook expect the repository, and what a reader is told to clone; each has to be ours.
OURS = re.compile(
    r"(?:mybinder\.org/v2/gh/|colab\.research\.google\.com/github/|git clone (?:-\S+ )*https://github\.com/)"
    r"([\w.-]+/[\w.-]+?)(?=\.git\b|[^\w.-]|$)"
)


def files(root):
    """All files that may name the repository."""
    found = {root / name for name in SOURCES} | {path for pattern in PATTERNS for path in root.glob(pattern)}
    return sorted(path for path in found if path.is_file() and path.name != "claims.md" and not path.is_symlink())


def renamed(text, old, new):
    """The text with OWNER/NAME, and the Pages address that follows from it, exchanged."""
    ends = r"(?![\w-])"
    for before, after in ((old, new), (pages(old), pages(new))):
        text = re.sub(rf"(?<![\w.-]){re.escape(before)}{ends}", lambda _, after=after: after, text)
    return text


def pages(name):
    """The address under which GitHub serves the site."""
    owner, project = name.split("/")
    return f"{owner.lower()}.github.io/{project}"


def write(path, text):
    """Replace the file in one step."""
    mode = path.stat().st_mode if path.exists() else 0o644
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "wb") as stream:
        stream.write(text.encode())
    os.chmod(temporary, mode)
    os.replace(temporary, path)


def set_repository(root, new):
    """Write the new address everywhere; return the names of the files that changed."""
    if not OWNER_NAME.fullmatch(new):
        raise ValueError(f"{new!r} is not OWNER/NAME as GitHub spells it, such as ada/attention")
    old = repository(root)
    texts = {path: path.read_bytes().decode() for path in files(root)}
    changed = {path: after for path, text in texts.items() if (after := renamed(text, old, new)) != text}
    for path in sorted(changed, key=lambda path: path.name in SOURCES):  # last, so that a run cut short can be repeated
        write(path, changed[path])
    return sorted(str(path.relative_to(root)) for path in changed)


def disagreements(root):
    """What does not name the repository of pyproject.toml, one line each."""
    name = repository(root)
    found = []
    if f"\n  url: {HOST}{name}\n" not in (root / "_config.yml").read_text(encoding="utf-8"):
        found.append(f"_config.yml: repository: url: is not {HOST}{name}")
    citation = root / "CITATION.cff"
    if citation.is_file() and f"{HOST}{name}" not in citation.read_text(encoding="utf-8"):
        found.append(f"CITATION.cff does not name {HOST}{name}")
    labs = root / "attn_utils" / "labs.py"
    if labs.is_file() and f"https://{pages(name)}/" not in labs.read_text(encoding="utf-8"):
        found.append(f"attn_utils/labs.py: SITE is not https://{pages(name)}/")
    for path in files(root):
        others = set(OURS.findall(path.read_text(encoding="utf-8"))) - {name}
        found += [f"{path.relative_to(root)}: launches {other}, not {name}" for other in sorted(others)]
        if path.suffix == ".ipynb" and set_up(path) != setup_cell(root):
            found.append(f"{path.relative_to(root)}: its first code cell is not what tools/setup_cell.py prints")
    return found


def set_up(path):
    """The source of a notebook's first code cell."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return next(("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"), "")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repository", nargs="?", metavar="OWNER/NAME")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.check == bool(args.repository):
        parser.error("give either OWNER/NAME or --check")
    if args.check:
        sys.exit("\n".join(disagreements(args.root)) or 0)
    try:
        changed = set_repository(args.root, args.repository)
    except ValueError as error:
        sys.exit(str(error))
    print("\n".join(changed) or "nothing to change")


if __name__ == "__main__":
    main()
