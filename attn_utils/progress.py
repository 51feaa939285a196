"""One bar for whatever takes long: training, a download, a sweep."""

import contextlib
import contextvars
import sys

_hidden = contextvars.ContextVar("hidden", default=False)


@contextlib.contextmanager
def hidden_progress():
    """No bar is shown inside the block, such as those of the trainings that a sweep runs."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


WIDTH = 20  # characters of a terminal's bar


class Progress:
    """A bar in a live kernel, whose stored outputs keep no trace of it, or in a terminal.

    total    what is reached at the end: steps, bytes, cases; None where nobody knows: then there are words and no bar
    label    what stands beside the bar at first
    line     what stands beside that of a terminal, on stderr; None for nothing there
    wanted   False for neither
    """

    def __init__(self, total, label, line=None, wanted=True):
        self.total, self.label, self.widget, self.line, self.done, self._shown = total, label, None, None, 0, None
        if not wanted or _hidden.get():
            return
        from attn_utils.outputs import show_widget

        self.widget = show_widget(self._make)
        if self.widget is None and line is not None and sys.stderr.isatty():
            self.line = line
            self._draw()

    def _make(self):
        import ipywidgets

        return ipywidgets.IntProgress(max=self.total or 1, description=self.label)

    def step(self, label=None):
        """One more of them is done."""
        self.show(self.done + 1, label)

    def show(self, done, label=None):
        """Move the bar to `done`; a label replaces the one beside it, and in a terminal the line."""
        self.done = done
        if self.widget is not None:
            self.widget.value = min(done, self.total) if self.total else 0
            self.widget.description = self.label if label is None else label
        elif self.line is not None:
            self.line = self.line if label is None else label
            self._draw()

    def _draw(self):
        """Write the terminal's line anew, where anything in it has changed."""
        full = min(int(WIDTH * self.done / self.total), WIDTH) if self.total else 0
        bar = f"[{'#' * full}{'-' * (WIDTH - full)}] " if self.total else ""
        if bar + self.line != self._shown:
            print(f"\r\x1b[K{bar}{self.line}", end="", file=sys.stderr, flush=True)
        self._shown = bar + self.line

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.widget is not None:
            self.widget.close()
        elif self.line is not None:
            print(file=sys.stderr, flush=True)
