"""The graded checks, each a plain call: checks.softmax(softmax) says what is right, or names the mistake.

One module a chapter holds its CHECKS; all of them are attributes here, by name.
"""

from attn_utils.checks import ch01, ch02, ch03, ch04, ch05, ch06
from attn_utils.checks.core import Check, Choice, Value, Verdict, WrongAnswer

__all__ = ["CHECKS", "Check", "Choice", "Value", "Verdict", "WrongAnswer"]

CHECKS = {}
for _check in [check for chapter in (ch01, ch02, ch03, ch04, ch05, ch06) for check in chapter.CHECKS]:
    if _check.name in CHECKS or _check.name in globals():
        raise ValueError(f"two checks, or a check and something else, are called {_check.name!r}: rename one")
    CHECKS[_check.name] = _check
globals().update(CHECKS)
