"""A plugin for nbval: each notebook runs alone, as a reader has it (reader.py), and a failure says where and what.

The notebook is copied into an empty folder of its own, with no network and a Python without attn_utils, and must
leave nothing behind there. Report and comparison speak of the notebook in the repository.
"""

import os
import re
import shutil
import tempfile
import threading
import time
from pathlib import Path

import compare_pictures
import pytest
from kernel_env import set_kernel_env
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile
from reader import KERNEL, Reader

PATIENCE = 60  # seconds in which a kernel's outputs arrive, on a machine that is busy with other things
SHOWN = 3000  # characters of what a failing cell printed
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def setup(self):
    """In the place of IPyNbFile.setup: a kernel in a folder where only a copy of the notebook is."""
    self.room = tempfile.TemporaryDirectory(prefix="alone-", ignore_cleanup_errors=True)
    self.reader, self.made = Reader(Path(self.room.name)), {}
    shutil.copy(self.path, self.reader.work)
    with self.reader.at_the_desk():
        wait = self.config.option.nbval_kernel_startup_timeout
        self.kernel = RunningKernel(KERNEL, cwd=str(self.reader.work), startup_timeout=wait)
    self.setup_sanitize_files()


def teardown(self, stop=IPyNbFile.teardown):
    stop(self)
    self.room.cleanup()


def collect(self, cells=IPyNbFile.collect):
    yield from cells(self)
    yield Leftovers.from_parent(self, name="files left behind")


def runtest(self, run=IPyNbCell.runtest):
    self.output_timeout = PATIENCE
    try:
        run(self)
    finally:
        for file in files_beside(self.parent):
            self.parent.made.setdefault(file, where(self))


def reportinfo(self):
    return self.path, 0, f"{self.path.name}: {where(self)}"


def repr_failure(self, excinfo, describe=IPyNbCell.repr_failure):
    return ANSI.sub("", describe(self, excinfo)).replace(f"Cell {self.cell_num}: ", f"{where(self)}: ", 1)


class Leftovers(pytest.Item):
    """Comes after the cells: fails when a file lies in the folder that was not there before."""

    def runtest(self):
        left = files_beside(self.parent)
        made = self.parent.made
        if left:
            said = ", ".join(f"{file} ({made.get(file, 'made between two cells')})" for file in left)
            pytest.fail(f"{self.path.name} leaves files behind in the reader's folder: {said}", pytrace=False)

    def reportinfo(self):
        return self.path, 0, f"{self.path.name}: {self.name}"


def files_beside(notebook):
    """The names of what lies in the folder beside the copy of the notebook."""
    return sorted(found.name for found in notebook.reader.work.iterdir() if found.name != notebook.path.name)


def where(item):
    """A cell as the notebook numbers it: nbval counts from 0."""
    return f"code cell [{item.cell_num + 1}], id {item.cell.get('id', '?')}"


def printed(item):
    """What a cell printed before it failed; the outputs of one that ran through are in the comparison."""
    outputs = item.test_outputs or []
    return "".join(output.text for output in outputs if output.output_type == "stream")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if isinstance(item, IPyNbCell):
        report.user_properties = [("where", where(item))]
        if report.failed and printed(item):
            report.sections.append(("what the cell printed", printed(item)[-SHOWN:]))
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """Name the cells that failed, one a line."""
    for report in terminalreporter.stats.get("failed", []) + terminalreporter.stats.get("error", []):
        path = report.nodeid.partition("::")[0]
        place = dict(getattr(report, "user_properties", ())).get("where")
        if place:
            terminalreporter.write_line(f"{path}: {place} failed, or its output is not the stored one")
        elif report.nodeid != path:
            terminalreporter.write_line(f"{path}: the notebook leaves files behind")
        else:
            terminalreporter.write_line(f"{path}: the notebook cannot be run")


def end_with(parent):
    """End this process, and with it its kernel, when the one that started it is gone: killed, it can tell nobody."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def pytest_configure(config):
    if hasattr(config, "workerinput"):  # one of the two that pytest-xdist starts
        threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    set_kernel_env()
    compare_pictures.install()
    for kind, methods in ((IPyNbFile, (setup, teardown, collect)), (IPyNbCell, (runtest, reportinfo, repr_failure))):
        for method in methods:
            setattr(kind, method.__name__, method)
