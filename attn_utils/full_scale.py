"""Results at full scale, which take hours: small files that travel with the package, shown beside the small run."""

import datetime
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attn_utils.records import read_record, to_text, write_record

FOLDER = Path(__file__).parent / "data" / "full_scale"
MAX_BYTES = 200_000  # of one file: what is shown, not what it was made from
RECORDED = ("numpy", "scipy", "autograd", "scikit-learn")  # whose versions can change a result


class FullScale(NamedTuple):
    """A result at full scale, and how it was made."""

    value: Any  # as it was handed to keep()
    settings: dict  # what the run was told: sizes, seeds, steps
    seconds: float  # on the workers, summed up
    engine: str  # such as "in turn", "Dask"
    commit: str | None  # of the checkout, with "-dirty" where files differed from it; None outside a checkout
    date: str  # of the day on which it was kept, UTC
    versions: dict  # of Python and the packages that can change a result


def keep(name, value, settings, seconds, engine):
    """Write a result at full scale to attn_utils/data/full_scale/NAME.json, from which stored(name) reads it.

    name       small letters, digits and hyphens, such as "depth-and-skips"
    value      what will be shown: numbers, strings, bools, None, NumPy arrays, lists, tuples and dicts of them
    settings   dict of what the run was told: sizes, seeds, steps
    seconds    what it took, such as a sweep's .seconds
    engine     what computed it, such as a sweep's .engine

    Adds the commit, the date and the versions, and returns the path. For runs with BOOK_SCALE=full, in a checkout of
    the book: commit the file. It appears in one step, with a checksum; a file of this name is replaced.
    Raises ValueError for a name, settings, seconds or an engine of another form, and for a result over 200 KB;
    TypeError for a value that such a file cannot hold; RuntimeError, saying what to do, where it cannot be written.
    """
    versions = {"python": platform.python_version()} | {each: _version(each) for each in RECORDED}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    seconds = seconds.item() if isinstance(seconds, np.generic) else seconds
    result = FullScale(value, settings, seconds, engine, _commit(FOLDER.parents[2]), today, versions)
    _check(result)
    size = len(to_text(result._asdict()))
    if size > MAX_BYTES:
        raise ValueError(
            f"{name!r} takes {size / 1000:.0f} KB, at most {MAX_BYTES // 1000} are allowed. Keep what is shown, such "
            "as means and intervals; the cases themselves are in the sweep's store."
        )
    path = _path(name)
    try:
        path.parent.mkdir(exist_ok=True)
        write_record(path, result._asdict())
    except OSError as error:  # an installed package, a read-only checkout, a full disk
        raise RuntimeError(
            f"the result {name!r} cannot be written to {path.parent} ({error.strerror or error}). Keep results from a "
            "checkout of the book that you may write to, installed with: python -m pip install -e ."
        ) from error
    return path


def stored(name):
    """The result at full scale that keep(name, ...) wrote: a FullScale, whose .value is what was kept.

    Raises ValueError, naming those that exist, when there is none of this name, and when its file is damaged, was
    edited by hand, or has another form.
    """
    path = _path(name)
    if not path.is_file():
        there = ", ".join(sorted(file.stem for file in FOLDER.glob("*.json"))) or "none yet"
        raise ValueError(
            f"name is {name!r}, expected that of a result at full scale (there: {there}). "
            "A run with BOOK_SCALE=full keeps it."
        )
    record = read_record(path)
    if set(record) != set(FullScale._fields):
        raise ValueError(f"{path.name} has the entries {sorted(record)}, expected {sorted(FullScale._fields)}.")
    result = FullScale(**record)
    _check(result)
    return result


def _path(name):
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"name is {name!r}, expected small letters, digits and hyphens, such as 'depth-and-skips'.")
    return FOLDER / f"{name}.json"


def _check(result):
    if not isinstance(result.settings, dict) or not result.settings:
        raise ValueError(f"settings is {result.settings!r:.80}, expected a dict of what the run was told.")
    number = isinstance(result.seconds, (int, float)) and not isinstance(result.seconds, bool)
    if not number or not 0 <= result.seconds < float("inf"):
        raise ValueError(f"seconds is {result.seconds!r}, expected a number of at least 0.")
    if not isinstance(result.engine, str) or not result.engine.strip():
        raise ValueError(f"engine is {result.engine!r}, expected words such as 'in turn'.")
    if result.commit is not None and not re.fullmatch(r"[0-9a-f]{40}([0-9a-f]{24})?(-dirty)?", str(result.commit)):
        raise ValueError(f"commit is {result.commit!r}, expected None or a hash of git, perhaps with '-dirty'.")
    datetime.date.fromisoformat(result.date)  # ValueError by itself
    if not isinstance(result.versions, dict) or "python" not in result.versions:
        raise ValueError(f"versions is {result.versions!r:.80}, expected a dict with at least 'python'.")


def _version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit(root):
    """The commit of the checkout that this package is used from; None when it is installed, or git is missing.

    Results that were kept before do not make it dirty, nor do files that git does not follow.
    """
    tracked = _git(root, "ls-files", "attn_utils/full_scale.py")  # not some other project's, around an environment
    commit = _git(root, "rev-parse", "HEAD") if tracked else None
    if not commit:
        return None
    changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!attn_utils/data/full_scale")
    return f"{commit}-dirty" if changed else commit


def _git(root, *arguments):
    """What git says, or None when there is no git or no repository."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
