"""Two steps for nbgrader's autograder, named in the nbgrader_config.py that tools/make_assignments.py writes.

RestoreCells makes each cell what it was when it was released, and puts deleted checks back. Judge executes a
submission, but not its checks: for those it asks the student's kernel for answers to secret inputs and compares them
here, in the grading process. A notebook can patch its own kernel as it likes; it never sees what is expected, and its
verdict is not asked for.
"""

import ast
import json
import queue
import re
import time
from pathlib import Path

import numpy as np
from jupyter_client.utils import run_sync
from nbclient.exceptions import DeadKernelError
from nbformat import from_dict
from nbformat.v4 import new_output
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import Execute, OverwriteCells
from traitlets import Integer

from attn_utils import checks

HIDDEN = re.compile(r'^grade\("(\w+)", (\w+)\)$', re.M)  # as in tools/make_assignments.py
COURIER = (Path(__file__).parent / "courier.py").read_text(encoding="utf-8")
ASK = "(lambda ns: (exec({courier!r}, ns), ns['carry']({answer}, {line!r}))[1])({{}})"


class RestoreCells(OverwriteCells):
    """Restores the text of edited checks, as nbgrader does, and adds deleted ones at the end.

    What a submission says of its own cells counts for nothing: the gradebook says what each of them is. So neither a
    copied cell nor foreign metadata costs a student anything, or ends the run for those who come after.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.add_missing_cells = True

    def preprocess(self, nb, resources):
        asked = resources["nbgrader"]
        with Gradebook(asked["db_url"]) as gradebook:
            made = released(gradebook.find_notebook(asked["notebook"], asked["assignment"]))
        for cell in reversed(nb.cells):  # of two with the same name the last one counts
            own = cell.metadata.pop("nbgrader", None)
            name = own.get("grade_id") if isinstance(own, dict) else None
            if isinstance(name, str) and name in made:
                cell.metadata["nbgrader"] = from_dict(made.pop(name))
        return super().preprocess(nb, resources)

    def add_missing_grade_cells(self, nb, resources):
        """nbgrader's own looks for the cell before a missing one, and gives up when that is missing, too."""
        source = self.gradebook.find_notebook(self.notebook_id, self.assignment_id)
        texts = {cell.name: cell for cell in source.source_cells}
        solutions = {cell.name for cell in source.solution_cells}
        present = {cell.metadata.nbgrader["grade_id"] for cell in nb.cells if utils.is_grade(cell)}
        for cell in source.grade_cells:
            if cell.name not in present:
                self.log.warning("Missing grade cell %s, adding it at the end", cell.name)
                added = self.missing_cell_transform(texts[cell.name], cell.max_score, cell.name in solutions)
                nb.cells.append(added)
        return nb, resources


def released(notebook):
    """The metadata of each cell of an assignment, by name, as it was released."""
    grades = {cell.name: cell for cell in notebook.grade_cells}
    solutions = {cell.name for cell in notebook.solution_cells}
    made = {}
    for cell in notebook.source_cells:
        is_grade, is_solution = cell.name in grades, cell.name in solutions
        own = {"grade_id": cell.name, "locked": cell.locked, "grade": is_grade, "solution": is_solution}
        if is_grade:
            own |= {"points": grades[cell.name].max_score, "cell_type": cell.cell_type}
        made[cell.name] = own | {"schema_version": 3, "task": False}
    return made


class Judge(Execute):
    """Executes a submission and grades its checks from outside its kernel."""

    answer_timeout = Integer(20, help="seconds for one call of a student's answer").tag(config=True)
    max_characters = Integer(100_000, help="characters of output kept for one cell").tag(config=True)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.raise_on_iopub_timeout = False
        self.lost = ""  # why the kernel answers no more

    def preprocess(self, nb, resources, km=None):
        self.lost, self.timeouts = "", 0
        return super().preprocess(nb, resources, km)

    def preprocess_cell(self, cell, resources, index):
        if cell.cell_type != "code":
            return cell, resources
        hidden = HIDDEN.search(cell.source) if utils.is_grade(cell) else None
        if hidden:
            cell.outputs = [self.verdict(*hidden.groups())]
        elif self.lost:
            cell.outputs = [failure(self.lost)]
        else:
            cell = self.run(cell, resources, index)
        return cell, resources

    def run(self, cell, resources, index):
        """Execute a cell; note when the kernel died, or did not stop twice running."""
        try:
            cell, _ = super().preprocess_cell(cell, resources, index)
        except DeadKernelError:
            self.lost = "The kernel died."
            cell.outputs = [*cell.outputs, failure(self.lost)]
        late = any(output.get("ename") == "CellTimeoutError" for output in cell.outputs)
        self.took(late)
        return cell

    def took(self, late):
        """Count timeouts in a row: code that cannot be interrupted is given up the second time."""
        self.timeouts = self.timeouts + 1 if late else 0
        if self.timeouts > 1:
            self.lost = self.lost or "The kernel could not be interrupted."

    def output(self, outs, msg, display_id, cell_index):
        """Keep no more than the first part of an enormous print."""
        if msg["msg_type"] == "stream":
            room = self.max_characters - sum(len(out.get("text", "")) for out in outs)
            if room <= 0:
                return None
            msg["content"]["text"] = msg["content"]["text"][:room]
        return super().output(outs, msg, display_id, cell_index)

    # ------------------------------------------------------------------------- the verdict

    def verdict(self, name, answer):
        """The output of a check: nothing but an error counts as wrong for nbgrader."""
        try:
            found = checks.CHECKS[name].judge(lambda line: self.ask(answer, line), np.random.default_rng())
        except Lost as error:
            return failure(f"{name} was not answered: {error}")
        except Exception as error:  # whatever an odd answer leads to, it is an answer to this exercise alone
            return failure(f"{name} could not be judged ({type(error).__name__}).")
        if found.kind == "right":
            return new_output("stream", name="stdout", text=f"{found}\n")
        return failure(str(found))

    def ask(self, answer, line):
        """Let the student's kernel answer one line of arguments."""
        if self.lost:
            raise Lost(self.lost)
        expression = ASK.format(courier=COURIER, answer=answer, line=line)
        try:
            reply = run_sync(self.asked)(expression)
        except queue.Empty:
            run_sync(self.interrupt)()
            self.took(late=True)
            raise Lost(f"no answer within {self.answer_timeout} s.") from None
        self.took(late=False)
        return text_of(reply)

    async def asked(self, expression):
        message = self.kc.execute("", silent=True, store_history=False, user_expressions={"reply": expression})
        deadline = time.monotonic() + self.answer_timeout  # other messages do not put it off
        while (left := deadline - time.monotonic()) > 0:
            reply = await self.kc.get_shell_msg(timeout=left)
            if reply["parent_header"].get("msg_id") == message:
                return reply["content"]
        raise queue.Empty

    async def interrupt(self):
        if await self.km.is_alive():
            await self.km.interrupt_kernel()
        else:
            self.lost = "The kernel died."


class Lost(Exception):
    """No answer came back."""


def text_of(reply):
    """The line in a kernel's reply; what is none counts as an error of the answer."""
    found = reply.get("user_expressions", {}).get("reply", {})
    try:
        line = ast.literal_eval(found["data"]["text/plain"])
        keys = set(json.loads(line))
        if keys in ({"value", "after"}, {"raised", "text"}):
            return line
    except (KeyError, ValueError, TypeError, SyntaxError):
        pass
    return json.dumps({"raised": str(found.get("ename", "an error")), "text": str(found.get("evalue", ""))[:300]})


def failure(text):
    """An error output, which is what earns no points; never a long one."""
    text = text[:2000]
    return new_output("error", ename="WrongAnswer", evalue=text, traceback=[text])
