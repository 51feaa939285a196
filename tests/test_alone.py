"""The set-up cell where attn_utils is not installed and there is no network: a checkout, a wheel, and what is neither.

That whole notebooks run there, each alone in an empty folder, is what tools/compare_notebooks.py sees to.
"""

import os
import zipfile
from pathlib import Path

import pytest
from reader import ROOT, Reader
from setup_cell import setup_cell

VERSIONS = "import numpy, scipy; print(numpy.__version__, scipy.__version__)"
FACTS = (
    "import attn_utils, attn_utils.checks; print(attn_utils.__file__); print(len(attn_utils.load_glove().key_to_index))"
)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return Reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture
def fresh_reader(tmp_path):
    return Reader(tmp_path)


def test_the_environment_lacks_attn_utils(reader):
    done = reader.run("import attn_utils")
    assert "No module named 'attn_utils'" in done.stderr, done.stderr or "attn_utils can be imported in there"
    assert "no network" in reader.run("import socket; socket.getaddrinfo('example.org', 80)").stderr


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
