"""The set-up cell where there is pip and nothing else, and where pip is missing, fails, or must not write.

Each case is a virtual environment of its own that sees none of the packages of the outer one. The packages that
pip finds are stubs in a folder, so that no network is needed; with CI=true the real ones are installed, too.
"""

import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest
from setup_cell import setup_cell
from stub_index import only_from, stub_wheel

from attn_utils.install import REQUIREMENTS

ROOT = Path(__file__).resolve().parent.parent
NOWHERE = "http://127.0.0.1:9"  # nothing listens there
FAILING_PIP = "import sys\nprint({said!r}, file=sys.stderr)\nsys.exit(1)\n"
FOUND = "import importlib.util as u; print([n for n in {names} if u.find_spec(n) is None])"


class Bare:
    """A Python and nothing else, or a copy of an environment; `said` is what a pip that fails says."""

    def __init__(self, folder, copy_of=None, said=None, system=False):
        self.folder = folder
        if copy_of:
            shutil.copytree(copy_of, folder / "env", symlinks=True)
        else:
            venv.create(folder / "env", symlinks=True, system_site_packages=system)
        self.python = folder / "env" / "bin" / "python"
        [self.site] = (folder / "env" / "lib").glob("python*/site-packages")
        if said is not None:
            self.write_pip(FAILING_PIP.format(said=said))

    def write_pip(self, code):
        (self.site / "pip").mkdir()
        (self.site / "pip" / "__init__.py").touch()
        (self.site / "pip" / "__main__.py").write_text(code)

    def run(self, code, source, **settings):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_"))}
        (self.folder / "home").mkdir(exist_ok=True)
        kept |= {"HOME": str(self.folder / "home"), "ATTN_UTILS_SOURCE": str(source)}
        return subprocess.run(
            [self.python, "-c", code], cwd=self.folder, env=kept | settings, capture_output=True, text=True, timeout=600
        )


@pytest.fixture(scope="module")
def with_pip(tmp_path_factory):
    folder = tmp_path_factory.mktemp("with_pip") / "env"
    venv.create(folder, with_pip=True, symlinks=True)
    return folder


@pytest.fixture
def bare(with_pip, tmp_path):
    """An environment with pip and nothing else."""
    return Bare(tmp_path, copy_of=with_pip)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """A stub for everything that the chapters import. It cannot be imported: whoever tries is told so."""
    folder = tmp_path_factory.mktemp("index")
    for name, requirement in REQUIREMENTS.items():
        package, version = requirement.split(">=")
        stub_wheel(folder, package, version, {f"{name}/__init__.py": f"raise ImportError('{name} is a stub')"})
    return folder


def test_pip_and_nothing_else_is_enough(bare, wheel, index):
    names = ["attn_utils", *REQUIREMENTS]
    assert bare.run(FOUND.format(names=names), "").stdout.strip() == str(names), "something is there from the start"
    done = bare.run(f"{setup_cell()}\n{FOUND.format(names=names)}", wheel, **only_from(index))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]", "not everything was installed"
    again = bare.run(setup_cell(), "/nowhere", PIP_NO_INDEX="1")  # nothing left to install
    assert again.returncode == 0 and again.stdout == again.stderr == ""


def test_a_checkout_needs_no_more_than_pip(bare, index):
    told = "print(attn_utils.__file__)"
    done = bare.run(f"{setup_cell()}\n{told}", ROOT, **only_from(index))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(ROOT / "attn_utils" / "__init__.py")


@pytest.mark.skipif(os.environ.get("CI") != "true", reason="installs every package for real: with CI=true only")
def test_the_real_packages_are_installed_and_work(bare, wheel):
    pip = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
    pip["PIP_CONSTRAINT"] = str(ROOT / "constraints.txt")
    code = "import attn_utils; from attn_utils import softmax; print(softmax([0.0, 0.0]), attn_utils.__file__)"
    done = bare.run(f"{setup_cell()}\n{code}", wheel, **pip)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("[0.5 0.5]") and str(bare.site) in done.stdout


# ------------------------------------------------------------------------- what to do is said


@pytest.mark.parametrize("source", ["attn_utils.zip", ROOT], ids=["alone", "checkout"])
def test_without_pip_the_reader_is_told_how_to_get_it(tmp_path, source):
    done = Bare(tmp_path).run(setup_cell(), source)
    assert done.returncode == 1 and "pip" in done.stderr and "-m ensurepip" in done.stderr


SAID = {  # pip's own words, as pip 23 to 26 print them
    "externally managed": (
        "error: externally-managed-environment\n\n× This environment is externally managed\n"
        "╰─> To install Python packages system-wide, try apt install python3-xyz, where xyz is the package",
        ["PEP 668", "python3 -m venv", "PIP_BREAK_SYSTEM_PACKAGES"],
    ),
    "no right to write": (
        "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: "
        "'/opt/conda/lib/python3.12/site-packages/numpy'\nConsider using the `--user` option or check the permissions.",
        ["cannot be written", "python3 -m venv"],
    ),
    "read-only": (
        "ERROR: Could not install packages due to an OSError: [Errno 30] Read-only file system: '/usr/lib/python3'",
        ["cannot be written", "python3 -m venv"],
    ),
    "full disk": ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", ["full"]),
    "other": ("ERROR: Cannot install gensim because these package versions conflict", ["Install by hand", "kernel"]),
}


@pytest.mark.parametrize("case", SAID)
def test_a_failure_of_pip_comes_with_what_to_do(tmp_path, case):
    said, advice = SAID[case]
    done = Bare(tmp_path, said=said).run(setup_cell(), ROOT)
    assert done.returncode == 1 and said.splitlines()[0][:60] in done.stderr
    assert all(words in done.stderr for words in advice), done.stderr
    assert "Is there a network" not in done.stderr


def test_where_attn_utils_itself_cannot_be_installed_pip_is_quoted_with_what_to_do(tmp_path):
    said = SAID["externally managed"][0]
    done = Bare(tmp_path, said=said).run(setup_cell(), "attn_utils.zip")
    assert done.returncode == 1 and "externally-managed-environment" in done.stderr and "use a venv" in done.stderr
    assert "ModuleNotFoundError" not in done.stderr and "CalledProcessError" not in done.stderr


def test_no_network_is_said_for_each_of_the_two_steps(bare, wheel):
    nowhere = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": f"{NOWHERE}/simple", "PIP_RETRIES": "0"}
    first = bare.run(setup_cell(), f"{NOWHERE}/main.zip", **nowhere)
    assert first.returncode == 1 and "No network: connect" in first.stderr
    second = bare.run(setup_cell(), wheel, **nowhere)
    assert second.returncode == 1 and "Is there a network?" in second.stderr


USER_PIP = """
import pathlib, site, sys
name = {"attn_utils.zip": "attn_utils"}.get(sys.argv[-1], "late")
folder = pathlib.Path(site.getusersitepackages())
folder.mkdir(parents=True, exist_ok=True)
(folder / name).mkdir()
(folder / name / "__init__.py").write_text("install_missing = lambda: None\\nfrom os import sep")
"""


def test_what_pip_puts_into_a_new_user_folder_is_found_without_a_restart(tmp_path):
    """A hub's environment is often read-only: pip then turns to the user's folder, which Python did not look into."""
    bare = Bare(tmp_path, system=True)
    bare.write_pip(USER_PIP)
    done = bare.run(f"{setup_cell()}\nimport attn_utils; print(attn_utils.__file__)", "attn_utils.zip")
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "home") in done.stdout
    code = "from attn_utils.install import install_missing; print(install_missing({'late': 'late'})); import late"
    done = Bare.run(bare, code, ROOT, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['late']"
