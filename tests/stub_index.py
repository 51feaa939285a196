"""A package index in a folder, of wheels that hold next to nothing: what pip does is tried without a network."""

import re
import zipfile


def stub_wheel(folder, name, version, files):
    """Write a wheel into the folder. files is a dict: path in site-packages -> text or bytes. Returns its path."""
    stem = f"{re.sub('[-_.]+', '_', name)}-{version}"
    path = folder / f"{stem}-py3-none-any.whl"
    about = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\nRoot-Is-Purelib: true\n",
        "RECORD": "",
    }
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in {**files, **{f"{stem}.dist-info/{key}": text for key, text in about.items()}}.items():
            archive.writestr(member, content)
    return path


def only_from(folder):
    """Environment variables with which pip knows this folder and nothing else."""
    return {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}
