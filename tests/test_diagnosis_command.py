"""attn-diagnose: what it reads, what it writes, and its exit status."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from drawn import gauss

from attn_utils import softmax
from attn_utils.diagnosis.command import main

ROOT = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a healthy model in attention.npz, another that is collapsed, and their tokens."""
    monkeypatch.chdir(tmp_path)
    weights = softmax(gauss(2, 3, 6, 6))  # (layers, heads, T, T)
    np.savez("attention.npz", **{f"attention.{i}": layer[None] for i, layer in enumerate(weights)})
    np.save("weights.npy", weights)
    X = gauss(3, 6, 16, seed=1)
    np.save("states.npy", X)
    np.savez("states.npz", **{f"hidden.{i}": state for i, state in enumerate(X)})
    np.save("gone.npy", np.ones((3, 6, 16)) + 1e-6 * X)
    Path("tokens.json").write_text(json.dumps(list("abcdef")), "utf8")
    return tmp_path


def test_a_healthy_model_gives_zero(folder, capsys):
    assert main(["attention.npz"]) == 0
    out, err = capsys.readouterr()
    assert "No alarm" in out and not err


def test_an_alarm_gives_one(folder, capsys):
    assert main(["weights.npy", "--axes", "layers heads", "--states", "gone.npy"]) == 1
    assert "Rank collapse" in capsys.readouterr().out


def test_report_and_numbers_are_written(folder, capsys):
    arguments = ["attention.npz", "--tokens", "tokens.json", "--states", "states.npz", "--html", "report.html"]
    assert main([*arguments, "--json", "numbers.json", "--title", "A & B"]) == 0
    page, numbers = Path("report.html").read_text("utf8"), json.loads(Path("numbers.json").read_text("utf8"))
    assert "<title>A &amp; B</title>" in page and '"pictures":{"1,1":[6,6,' in page
    assert numbers["tokens"] == list("abcdef") and len(numbers["states"]) == 3
    assert "wrote report.html" in capsys.readouterr().out
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".part") == []


def test_numbers_on_stdout_are_all_that_stands_there(folder, capsys):
    assert main(["attention.npz", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["collapsed"] is False


def test_patterns_are_written_for_the_live_figure(folder, capsys):
    assert main(["attention.npz", "--json", "mine.json", "--patterns", "--quiet"]) == 0
    pictures = json.loads(Path("mine.json").read_text("utf8"))["pictures"]
    assert {len(rows) for rows in pictures.values()} == {6} and "1,1" in pictures, "six tokens, at their full size"
    assert main(["attention.npz", "--json", "mine.json", "--quiet"]) == 0
    assert "pictures" not in json.loads(Path("mine.json").read_text("utf8"))


def test_quiet_is_quiet(folder, capsys):
    assert main(["attention.npz", "--quiet", "--html", "report.html"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("sequence, many", [("0", 0), ("all", 2), ("1", 0)])
def test_one_sequence_or_all(folder, capsys, sequence, many):
    np.savez("batch.npz", **{f"attention.{i}": softmax(gauss(2, 3, 6, 6, seed=i)) for i in range(2)})
    assert main(["batch.npz", "--sequence", sequence, "--json", "-"]) == 0
    assert len(json.loads(capsys.readouterr().out)["sequences"]) == many


BAD = {
    "no file": (["nowhere.npz"], "there is no file"),
    "another kind of file": (["tokens.json"], "expected .npy, .npz or .safetensors"),
    "no numpy file": (["broken.npz"], "cannot be read"),
    "two readings": (["weights.npy"], "axes="),
    "axes that are none": (["weights.npy", "--axes", "rows"], "expected names out of"),
    "tokens that are no JSON": (["attention.npz", "--tokens", "states.npy"], "is no JSON"),
    "tokens that are no list": (["attention.npz", "--tokens", "dict.json"], "expected a list of strings"),
    "states of another length": (["attention.npz", "--states", "short.npy"], "expected the same number"),
    "states that are gone": (["attention.npz", "--states", "nowhere.npy"], "there is no file"),
    "pickled states": (["attention.npz", "--states", "pickled.npy"], "cannot be read"),
    "a mask of many arrays": (["attention.npz", "--mask", "states.npz"], "expected one"),
    "patterns without a file": (["attention.npz", "--patterns"], "goes with --json"),
    "a sequence that is not there": (["attention.npz", "--sequence", "4"], "below 1"),
    "no folder for the report": (["attention.npz", "--html", "nowhere/report.html"], "there is no folder"),
    "no number of cells": (["attention.npz", "--cells", "-1"], "at least 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gives_two_and_one_line(folder, capsys, name):
    Path("broken.npz").write_bytes(b"PK no zip")
    Path("dict.json").write_text('{"a": 1}')
    np.save("short.npy", gauss(3, 5, 16))
    np.save("pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
    arguments, words = BAD[name]
    before = sorted(folder.iterdir())
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith("attn-diagnose: ") and err.count("\n") == 1 and words in err, err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("arguments", [[], ["attention.npz", "--sequence", "two"], ["attention.npz", "--no-such"]])
def test_wrong_use_gives_two(folder, capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2 and "attn-diagnose: error" in capsys.readouterr().err


def test_an_interrupt_leaves_no_traceback(folder, capsys, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("attn_utils.diagnosis.command.diagnose", interrupted)
    assert main(["attention.npz"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_it_is_a_command_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
    assert project["project"]["scripts"] == {"attn-diagnose": "attn_utils.diagnosis.command:main"}
    kept = project["tool"]["setuptools"]["package-data"]["attn_utils.diagnosis"]
    assert {"*.js", "*.css"} <= set(kept)


def test_it_runs_as_a_program_and_bears_a_reader_that_stops(folder):
    """Such as `attn-diagnose ... | head -0`: no traceback of a broken pipe."""
    code = "import sys; from attn_utils.diagnosis.command import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "attention.npz", "--json", "-"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        told = process.stderr.read()
    assert process.returncode == 0 and told == b""
