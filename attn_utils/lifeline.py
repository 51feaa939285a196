"""Child processes that end with their parent, even when that is killed and can clean up nothing itself."""

import contextlib
import os
import sys

WATCH = """
import os, threading

def watch():
    os.read(0, 1)  # nothing is ever written: this returns when the other end of the pipe is closed
    os._exit(1)

threading.Thread(target=watch, daemon=True).start()
"""


@contextlib.contextmanager
def lifeline():
    """Inside the block: the stdin of a child that was started with python(). The child ends when the block does.

    It is the end of a pipe whose other end this process alone holds, so it also closes when this process is killed.
    That needs nothing of the system but pipes. (A lock needs no such help: Python opens files so that
    children do not inherit them, and the lock of a process that was killed is free at once.)
    """
    read, write = os.pipe()
    try:
        yield read
    finally:
        os.close(write)
        os.close(read)


def python(code, *arguments):
    """The command that runs Python code in a child which watches its lifeline."""
    return [sys.executable, "-c", WATCH + code, *map(str, arguments)]
