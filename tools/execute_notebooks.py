"""Execute notebooks in place, repeatable byte for byte.

    python tools/execute_notebooks.py [--timeout SECONDS] [notebook.ipynb ...]

Without arguments: the evidence, the chapters, the assignments. Two run at a time, a chapter after its evidence.
A notebook is written only when all its cells ran, with a stamp that says which sources gave its outputs; when one
fails, the old file stays, the cell is named with what it had printed, and the exit code is 1.
"""

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import claims
import nbformat
from kernel_env import set_kernel_env
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from setup_cell import repository, setup_cell
from stamp import KEY, stamp

ROOT = Path(__file__).resolve().parent.parent
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
TRANSIENT = ("execution", "ExecuteTime", "collapsed", "scrolled", "trusted", "colab", "vscode")
WIDGET = "application/vnd.jupyter.widget-view+json"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def clean(nb):
    """Drop what changes from run to run or needs a kernel; number the code cells from 1, and stamp them."""
    for cell in nb.cells:
        for key in TRANSIENT:
            cell.metadata.pop(key, None)
    for count, cell in enumerate((c for c in nb.cells if c.cell_type == "code"), 1):
        cell.execution_count = count
        cell.outputs = clean_outputs(cell.outputs, count)
    nb.metadata = nbformat.from_dict(METADATA | {KEY: stamp(nb.cells, setup_cell(), repository())})
    return nb


def clean_outputs(outputs, count):
    """The outputs without live widgets, neighbouring stream outputs merged."""
    kept = []
    for output in outputs:
        if output.output_type == "stream" and kept and kept[-1].get("name") == output.name:
            kept[-1].text += output.text
            continue
        if "data" in output:
            output.data.pop(WIDGET, None)
            output.metadata.pop(WIDGET, None)
            if not output.data:
                continue
        if output.output_type == "execute_result":
            output.execution_count = count
        if output.output_type == "stream" and not output.text:
            continue
        kept.append(output)
    return kept


async def run(path, timeout):
    """Execute one notebook; return (changed, None) or (False, what went wrong)."""
    try:
        nb = nbformat.read(path, as_version=4)
    except Exception as error:  # whatever the file is: name it, and go on with the others
        return False, f"{shown(path)} cannot be read as a notebook: {type(error).__name__}: {str(error)[:200]}"
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    current = []
    client = NotebookClient(
        nb,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        extra_arguments=["--IPKernelApp.log_level=40"],
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_start=lambda cell, cell_index: current.append(cell_index),
    )
    try:
        await client.async_execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        return False, describe(nb, path, current[-1] if current else 0, error)
    text = nbformat.writes(clean(nb), version=nbformat.NO_CONVERT).rstrip("\n") + "\n"
    return write(path, text), None


def describe(nb, path, index, error):
    """The failed cell: which, its source, what it had printed, and the error with the lines that led to it."""
    number = sum(c.cell_type == "code" for c in nb.cells[: index + 1])
    cell = nb.cells[index]
    where = f"{shown(path)}: code cell {number} (id {cell.get('id', '?')})"
    if isinstance(error, CellExecutionError):
        tail = ANSI.sub("", error.traceback).rstrip().split("-" * 60)[-1].strip("-\n").splitlines()
    else:
        tail = [f"{type(error).__name__}: {str(error).splitlines()[0]}"]
    parts = [f"{where} failed; the file is left as it was.", "--- source", cell.source]
    said = printed(cell).rstrip()
    parts += ["--- printed before it failed", said] if said else []
    return "\n".join([*parts, "--- error", *tail])


def printed(cell, most=40):
    """The last lines that a cell wrote on stdout and stderr."""
    text = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    return "\n".join(ANSI.sub("", text).splitlines()[-most:])


def write(path, text):
    """Replace the file in one step, and only when its bytes change."""
    old = path.read_bytes()
    if old == text.encode():
        return False
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode())
        os.chmod(temporary, path.stat().st_mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return True


def shown(path):
    """The path as a reader would type it."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


async def run_all(paths, timeout, workers):
    """Run the notebooks, `workers` at a time, reporting each as it ends; return the failures."""
    gate = asyncio.Semaphore(workers)
    failed = []

    async def one(path, evidence):
        if evidence:  # the chapter's ledger may read what its evidence has stored
            await evidence
        async with gate:
            start = time.perf_counter()
            changed, problem = await run(path, timeout)
            problem = problem or keep_measurements(path)
            seconds = time.perf_counter() - start
        if problem:
            failed.append(path)
            print(problem, file=sys.stderr, flush=True)
        else:
            state = "written" if changed else "unchanged"
            print(f"{shown(path)}: {state}, {seconds:.1f} s", flush=True)

    tasks = {}
    for path in sorted(paths, key=tier):
        evidence = tasks.get(path.parent / "evidence" / path.name)
        tasks[path] = asyncio.create_task(one(path, evidence))
    await asyncio.gather(*tasks.values())
    return failed


def keep_measurements(path):
    """After evidence of a checkout: what it measured goes to where its chapter's ledger reads it. Returns a problem."""
    root = path.parents[2] if len(path.parents) > 2 else path.parent
    if tier(path) == 0 and (root / "book" / "claims.yml").is_file():
        try:
            claims.write_rows(root)
        except ValueError as error:
            return f"{shown(path)}: written, but its measurements do not fit: {error}"
    return None


def tier(path):
    """Evidence comes first, assignments last."""
    return {"evidence": 0, "assignments": 2}.get(path.parent.name, 1)


def all_notebooks(root=ROOT):
    """Every notebook that is stored executed."""
    folders = (root / "notebooks" / name for name in ("evidence", ".", "assignments"))
    return [path for folder in folders for path in sorted(folder.glob("*.ipynb"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one cell")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    if args.workers < 1:
        parser.error("--workers is at least 1")
    paths = args.notebooks or all_notebooks()
    missing = [str(p) for p in paths if not p.is_file()]
    if missing or not paths:
        sys.exit(f"no such notebook: {', '.join(missing) or 'notebooks/*.ipynb'}")
    set_kernel_env()
    failed = asyncio.run(run_all([p.resolve() for p in paths], args.timeout, args.workers))
    if failed:
        sys.exit(f"{len(failed)} of {len(paths)} notebooks failed")


if __name__ == "__main__":
    main()
