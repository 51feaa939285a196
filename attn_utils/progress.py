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


class Progress:
    """A bar in a live kernel, whose stored outputs keep no trace of it.

    total    what is reached at the end: steps, bytes, cases
    label    what stands beside the bar at first
    line     what a terminal gets instead, on stderr; None for nothing
    wanted   False for neither
    """

    def __init__(self, total, label, line=None, wanted=True):
        self.total, self.label, self.widget, self.line = total, label, None, None
        if not wanted or _hidden.get():
            return
        from attn_utils.outputs import show_widget

        self.widget = show_widget(self._make)
        if self.widget is None and line is not None and sys.stderr.isatty():
            self.line = line
            print(line, end="", file=sys.stderr, flush=True)

    def _make(self):
        import ipywidgets

        return ipywidgets.IntProgress(max=self.total, description=self.label)

    def show(self, done, label=None):
        """Move the bar to `done`; a label replaces the one beside it, and in a terminal the line."""
        if self.widget is not None:
            self.widget.value = min(done, self.total)
            self.widget.description = self.label if label is None else label
        elif self.line is not None and label is not None:
            print(f"\r\x1b[K{label}", end="", file=sys.stderr, flush=True)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.widget is not None:
            self.widget.close()
        elif self.line is not None:
            print(file=sys.stderr, flush=True)
