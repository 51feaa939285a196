"""The comparison of pictures that strict nbval leaves out."""

import base64
import io
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
from compare_pictures import ALLOWED, complaint, difference

ROOT = Path(__file__).parents[1]


def bars(heights, size=(4, 3)):
    buffer = io.BytesIO()
    with plt.style.context("default", after_reset=True):  # whatever style is in force
        figure, ax = plt.subplots(figsize=size)
        ax.bar(range(len(heights)), heights)
        figure.savefig(buffer, format="png")
    plt.close(figure)
    return buffer.getvalue()


def shown(*pngs):
    return [{"data": {"image/png": base64.b64encode(png).decode()}} for png in pngs]


def framed(*pngs):
    images = "".join(f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}">' for png in pngs)
    return [{"data": {"text/html": images}}]


RISING, FALLING = bars([1, 2, 3]), bars([3, 2, 1])


@pytest.mark.parametrize("wrap", [shown, framed])
def test_changed_data_is_noticed(wrap):
    assert complaint(wrap(RISING), wrap(RISING)) is None
    assert "picture 2 of 2 is not the stored one" in complaint(wrap(RISING, FALLING), wrap(RISING, RISING))
    assert "2 pictures were drawn, 1 are stored" in complaint(wrap(RISING, RISING), wrap(RISING))


def test_rounding_is_not_a_change():
    assert difference(RISING, RISING) == 0
    assert difference(RISING, bars([1, 2, 3.001])) < ALLOWED < difference(RISING, FALLING)
    assert difference(RISING, bars([1, 2, 3], size=(4, 3.5))) == 1


def test_nbval_fails_on_a_figure_that_changed(tmp_path):
    """The stored picture shows other data than the code draws; its size and its text are the same."""
    cell = nbformat.v4.new_code_cell("import matplotlib.pyplot as plt\nplt.bar([0, 1, 2], [1, 2, 3])\nplt.show()")
    path = tmp_path / "figure.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    subprocess.run([sys.executable, ROOT / "tools" / "execute_notebooks.py", path], check=True, capture_output=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml"]
    command += ["--rootdir", ROOT, "-p", "conftest", "--nbval", "--nbval-current-env", path]
    run = lambda: subprocess.run(command, cwd=ROOT, capture_output=True, text=True)  # noqa: E731
    assert run().returncode == 0
    notebook = nbformat.read(path, 4)
    picture = next(output for output in notebook.cells[0].outputs if "image/png" in output.get("data", {}))
    text = subprocess.run(
        [sys.executable, "-c", DRAW], check=True, capture_output=True, text=True, cwd=tmp_path
    ).stdout.strip()
    picture.data["image/png"] = text
    nbformat.write(notebook, path)
    done = run()
    assert done.returncode == 1 and "not the stored one" in done.stdout


DRAW = """
import base64, io
import matplotlib
matplotlib.use("module://matplotlib_inline.backend_inline")
import matplotlib.pyplot as plt
figure = plt.figure()
plt.bar([0, 1, 2], [3, 2, 1])
buffer = io.BytesIO()
figure.savefig(buffer, format="png", bbox_inches="tight")
print(base64.b64encode(buffer.getvalue()).decode())
"""
