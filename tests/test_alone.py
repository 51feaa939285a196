"""Each notebook, alone in an empty folder, with no network, in an environment without attn_utils.

That is what a reader has who opens one notebook on Colab. The environment is a new one that sees the
packages of the current environment, but not those that are installed editable: attn_utils is not there.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from setup_cell import setup_cell

from attn_utils.fetch import cache_folder

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
ASSIGNMENTS = sorted((ROOT / "notebooks" / "assignments").glob("[0-9][0-9]_*.ipynb"))
NOWHERE = "http://127.0.0.1:9"  # nothing listens there
LEFT_OUT = {".git", ".venv", "_build", "notebooks", "book", "tests"}
OFFLINE = """
import socket
find = socket.getaddrinfo
def refuse(host, *args, **kwargs):
    if host not in (None, "", "localhost", "127.0.0.1", "::1"):
        raise OSError(f"this test has no network, and something asked for {host}")
    return find(host, *args, **kwargs)
socket.getaddrinfo = refuse
"""
VERSIONS = "import numpy, scipy; print(numpy.__version__, scipy.__version__)"
FACTS = "import attn_utils, attn_utils.checks; print(attn_utils.__file__); print(len(attn_utils.load_glove().key_to_index))"


class Reader:
    """A reader's machine: a Python without attn_utils, an empty folder, no network."""

    def __init__(self, folder):
        self.folder, self.home, self.work = folder, folder / "home", folder / "work"
        for made in (self.home, self.work):
            made.mkdir()
        venv.create(folder / "env", with_pip=False, symlinks=True)
        self.python = str(folder / "env" / "bin" / "python")
        [site] = (folder / "env" / "lib").glob("python*/site-packages")
        # A folder added by a .pth file has no say over .pth files of its own: editable installs stay out.
        paths = sysconfig.get_paths()
        (site / "current.pth").write_text("\n".join(dict.fromkeys([paths["purelib"], paths["platlib"]])))
        (site / "sitecustomize.py").write_text(OFFLINE)

    def environment(self, source=ROOT):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "JUPYTER", "PIP_"))}
        proxies = {key: NOWHERE for key in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
        own = {"HOME": str(self.home), "XDG_CACHE_HOME": str(self.home / "cache"), "IPYTHONDIR": str(self.home / "ipy")}
        # Without the cache of fonts matplotlib would look through all fonts of the machine first.
        own |= {"MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", str(Path.home() / ".cache" / "matplotlib"))}
        own |= {"ATTN_UTILS_CACHE": str(cache_folder())}  # the trained weights, fetched before: 177 MB
        return kept | proxies | own | {"ATTN_UTILS_SOURCE": str(source), "PIP_NO_INDEX": "1", "PYTHONNOUSERSITE": "1"}

    def run(self, code, source=ROOT):
        command = [self.python, "-c", code]
        return subprocess.run(
            command, cwd=self.work, env=self.environment(source), capture_output=True, text=True, timeout=120
        )

    def kernel(self):
        spec = self.folder / "kernels" / "alone"
        spec.mkdir(parents=True, exist_ok=True)
        argv = f'["{self.python}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
        (spec / "kernel.json").write_text(f'{{"argv": {argv}, "display_name": "alone", "language": "python"}}')
        finder = KernelSpecManager(kernel_dirs=[str(spec.parent)], ensure_native_kernel=False)
        return KernelManager(kernel_name="alone", kernel_spec_manager=finder)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return Reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture
def fresh_reader(tmp_path):
    return Reader(tmp_path)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built from a copy of the checkout, so that no build folder is left behind in it."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "checkout"
    shutil.copytree(ROOT, copy, ignore=lambda _, names: [n for n in names if n in LEFT_OUT or n.endswith(".egg-info")])
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", folder, copy]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"no wheel can be built from the checkout:\n{done.stderr[-2000:]}"
    return next(folder.glob("*.whl"))


def test_the_environment_lacks_attn_utils(reader):
    done = reader.run("import attn_utils")
    assert "No module named 'attn_utils'" in done.stderr, done.stderr or "attn_utils can be imported in there"
    assert "no network" in reader.run("import socket; socket.getaddrinfo('example.org', 80)").stderr


@pytest.mark.parametrize("path", [*CHAPTERS, *ASSIGNMENTS], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_notebook_runs_alone(path, reader, tmp_path, request):
    if "attn_utils.pretrained" in path.read_text("utf8"):
        request.getfixturevalue("trained_weights")
    shutil.copy(path, tmp_path)
    notebook = nbformat.read(tmp_path / path.name, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(notebook, km=reader.kernel(), resources=resources, timeout=300)
    try:
        client.execute(env=reader.environment())
    except CellExecutionError as error:
        [cell] = [cell for cell in notebook.cells if has_error(cell)]
        pytest.fail(f"{path.name}, cell {cell.id}, alone in an empty folder:\n{str(error)[-3000:]}", pytrace=False)
    left = sorted(found.name for found in tmp_path.iterdir() if found.name != path.name)
    assert not left, f"{path.name} leaves files behind: {left}"


def has_error(cell):
    return any(output["output_type"] == "error" for output in cell.get("outputs", []))


def test_setup_cell_takes_a_checkout_and_may_run_again(reader):
    done = reader.run(f"{setup_cell()}\n{setup_cell()}\n{FACTS}")
    assert done.returncode == 0, done.stderr
    file, words = done.stdout.splitlines()
    assert Path(file) == ROOT / "attn_utils" / "__init__.py"
    assert int(words) == 20_000


def test_setup_cell_installs_a_wheel(fresh_reader, wheel):
    before = fresh_reader.run(VERSIONS).stdout
    first = fresh_reader.run(f"{setup_cell()}\n{FACTS}", source=wheel)
    assert first.returncode == 0, first.stderr
    file, words = first.stdout.splitlines()
    assert Path(file).is_relative_to(fresh_reader.folder / "env"), "attn_utils was not installed"
    assert int(words) == 20_000  # the wheel carries the data
    assert "claims.json" in os.listdir(Path(file).parent / "data")
    again = fresh_reader.run(f"{setup_cell()}\n{FACTS}", source="/nowhere")  # nothing left to install
    assert again.stdout == first.stdout, again.stderr
    assert fresh_reader.run(VERSIONS).stdout == before != ""


def test_the_wheel_names_every_license_and_carries_the_texts(wheel):
    with zipfile.ZipFile(wheel) as content:
        [about] = [name for name in content.namelist() if name.endswith(".dist-info/METADATA")]
        named = content.read(about).decode("utf8").splitlines()
        texts = {name.split("/licenses/")[1] for name in content.namelist() if ".dist-info/licenses/" in name}
    assert "License-Expression: MIT AND CC-BY-4.0 AND PDDL-1.0" in named
    assert texts == {"LICENSE", "LICENSE-TEXT", "attn_utils/data/README.md"}


def test_setup_cell_names_a_folder_without_the_package(reader, tmp_path):
    done = reader.run(setup_cell(), source=str(tmp_path))
    assert done.returncode != 0 and str(tmp_path) in done.stderr and "ModuleNotFoundError" not in done.stderr


def test_setup_cell_says_that_a_source_is_wrong(reader):
    done = reader.run(setup_cell(), source="no-such-folder/attn_utils.zip")
    assert done.returncode != 0
    assert "no-such-folder/attn_utils.zip" in done.stderr
    assert "pip" in done.stderr and "ModuleNotFoundError" not in done.stderr
