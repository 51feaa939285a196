"""What every check is made of: compare an answer with a reference on random inputs, and name the mistake.

A check never trusts what it is asked about: the answer sits behind `ask`, which takes arguments and brings back a
reply (courier.py). In the student's hands `ask` is a plain call; in grading it leads into another process.
"""

import inspect
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attn_utils.checks.courier import Other, carry, pack, unpack

RIGHT, WRONG, OPEN = "right", "wrong", "open"
OF_ANOTHER_KIND = re.compile(r"is |has \d+ results?, ")  # how difference() begins when the kind of a value is wrong


class WrongAnswer(AssertionError):
    """A wrong answer. Jupyter shows its text alone, without the lines of our code that led to it."""

    def _render_traceback_(self):
        return [f"Wrong: {self}"]


@dataclass(frozen=True)
class Verdict:
    """right, wrong or open (not done yet), and what to tell."""

    kind: str
    text: str

    def __str__(self):
        return {RIGHT: "Correct: ", WRONG: "Wrong: ", OPEN: "Not done yet: "}[self.kind] + self.text


@dataclass(frozen=True)
class Check:
    """One exercise whose answer is a function.

    name        as the exercise calls the function; `checks.<name>(function)` runs the check
    reference   a function that is right
    cases       function of a np.random.Generator: a list of tuples of arguments, of several shapes
    mistakes    pairs (function that makes the mistake, what to tell); the first that matches on all cases is told
    properties  pairs (function(value, *args) -> bool, what to tell where it is False); asked when no mistake matches
    tried       what a right answer was tried on: "six random arrays, ..."
    hint        for a value: what to tell when no mistake matches
    rtol, atol  how close is close
    is_value    the answer is a value, not a function (use Value or Choice)
    clean       what is done to a value first, such as taking "(b)" for "b"
    """

    name: str
    reference: Callable
    cases: Callable
    mistakes: tuple = ()
    properties: tuple = ()
    tried: str = ""
    rtol: float = 1e-3
    atol: float = 1e-6
    is_value: bool = False
    clean: Callable | None = None
    hint: str = ""

    def __call__(self, answer):
        """Check an answer here and now: print what was found, or raise WrongAnswer with the mistake named."""
        verdict = self.judge(lambda line: carry(answer, line), np.random.default_rng(1))
        if verdict.kind == WRONG:
            raise WrongAnswer(verdict.text)
        print(verdict)

    def judge(self, ask, rng):
        """The verdict on the answer behind `ask`, a function from a line of arguments to a line of reply."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            cases = self.cases(rng)
            replies = []
            for args in cases:
                replies.append(self._reply(ask, args))
                if replies[-1].open and len(replies) == 1:
                    return Verdict(OPEN, self._still_open())
            return self._compare(cases, replies)

    def _reply(self, ask, args):
        reply = ask(json.dumps(None if self.is_value else [pack(one) for one in args]))
        try:
            reply = json.loads(reply)
            if "raised" in reply:
                return Reply(raised=str(reply["raised"])[:60], text=str(reply["text"])[:300])
            after = None if reply["after"] is None else [unpack(one) for one in reply["after"]]
            if after is not None and len(after) != len(args):
                raise ValueError("other arguments than were sent")
            value = unpack(reply["value"])
        except Exception as error:  # written by something else than courier.py
            return Reply(raised="ValueError", text=f"no readable answer came back ({type(error).__name__})")
        return Reply(value=self.clean(value) if self.clean else value, after=after)

    def _still_open(self):
        if self.is_value:
            return f"{self.name} is None so far."
        return f"{self.name}() gives nothing back so far. (Is the return missing?)"

    def _compare(self, cases, replies):
        changed = [reply for args, reply in zip(cases, replies, strict=True) if reply.changed(args)]
        if changed:
            return Verdict(WRONG, f"{self.name}() changes {self._names(changed[0])} in place. Work on a copy instead.")
        wanted = [self._wanted(self.reference, args) for args in cases]
        bad = [n for n, reply in enumerate(replies) if not self._same(reply, wanted[n])]
        if not bad:
            return Verdict(RIGHT, self.tried)
        for mistake, text in self.mistakes:
            made = [self._wanted(mistake, args) for args in cases]
            if all(self._same(reply, one) for reply, one in zip(replies, made, strict=True)):
                return Verdict(WRONG, text)
        first = bad[0]
        return Verdict(WRONG, self._explain(cases, replies, wanted, first))

    def _names(self, reply):
        names = list(inspect.signature(self.reference).parameters)
        return names[0] if len(names) == 1 else "its input"

    def _wanted(self, function, args):
        """The reply of one of our own functions, as that of an answer would come back."""
        args = [unpack(pack(one)) for one in args]
        try:
            return Reply(value=unpack(pack(function(*args))))
        except Exception as error:
            return Reply(raised=type(error).__name__, text=str(error))

    def _same(self, reply, wanted):
        if reply.raised or wanted.raised:
            return bool(reply.raised and wanted.raised)
        return not difference(reply.value, wanted.value, self.rtol, self.atol)

    def _explain(self, cases, replies, wanted, first):
        """What to tell when no known mistake matches."""
        args, reply = cases[first], replies[first]
        where = f" for {told(self.reference, args)}" if args else ""
        what = self.name if self.is_value else f"{self.name}()"
        if reply.raised:
            return f"{what} stops with {reply.raised}: {reply.text}{where}."
        if reply.value is None:
            return f"{what} gives nothing back{where}."
        found = difference(reply.value, wanted[first].value, self.rtol, self.atol)
        if self.is_value and not OF_ANOTHER_KIND.match(found):  # do not tell the answer
            return f"{self.name} is not right yet. {self.hint}".rstrip()
        if isinstance(reply.value, Other) or OF_ANOTHER_KIND.match(found) or "NaN" in found:
            return f"{what} {found}{where}."
        if len(replies) > 1 and constant(replies) and not constant(wanted):
            return f"{what} gives the same answer whatever comes in. Compute it from the arguments."
        for holds, text in self.properties:
            if not all(kept(holds, r.value, a) for r, a in zip(replies, cases, strict=True) if sound(r)):
                return text
        return f"{what} {found}{where}."


@dataclass(frozen=True)
class Reply:
    """What an answer gave back, or what it raised; and its arguments afterwards."""

    value: object = None
    after: object = None
    raised: str = ""
    text: str = ""

    @property
    def open(self):
        return self.raised == "NotImplementedError" or (not self.raised and self.value is None)

    def changed(self, args):
        """True when the call changed its arguments."""
        if self.raised or self.after is None:
            return False
        return any(difference(now, unpack(pack(was)), 0, 0) for now, was in zip(self.after, args, strict=True))


def sound(reply):
    """True when a reply holds numbers that a property can be asked about."""
    return not reply.raised and isinstance(reply.value, (np.ndarray, tuple, list, int))


def kept(holds, value, args):
    """True unless a property fails; what it cannot be asked about does not fail."""
    try:
        return holds(value, *args)
    except Exception:  # a value of the wrong shape, after one of the right shape
        return True


def constant(replies):
    """True when all replies are the same."""
    first = replies[0]
    return all(not r.raised and not difference(r.value, first.value, 0, 0) for r in replies[1:]) and not first.raised


def difference(got, want, rtol, atol):
    """In what a value differs from the wanted one, as the end of a sentence; empty where it does not."""
    if isinstance(want, (tuple, list)):
        return _difference_of_several(got, want, rtol, atol)
    if isinstance(got, Other):
        return f"is {got}, expected {kind_of(want)}"
    if want is None or isinstance(want, (str, bool)):
        got = got.item() if isinstance(got, (np.ndarray, np.generic)) and got.ndim == 0 else got
        if isinstance(want, bool) and not isinstance(got, bool):
            return f"is {shown(got)}, expected True or False"
        return "" if type(got) is type(want) and got == want else f"is {shown(got)}, which is not the answer"
    return _difference_of_arrays(got, np.asarray(want), rtol, atol)


def _difference_of_several(got, want, rtol, atol):
    if isinstance(got, np.ndarray) and got.ndim:
        got = list(got)
    if isinstance(got, Other):
        return f"is {got}, expected {len(want)} results"
    count = len(got) if isinstance(got, (tuple, list)) else 1
    if not isinstance(got, (tuple, list)) or count != len(want):
        return f"has {count} {'result' if count == 1 else 'results'}, expected {len(want)}"
    for number, (one, other) in enumerate(zip(got, want, strict=True), 1):
        if found := difference(one, other, rtol, atol):
            return f"has result {number} wrong: it {found}"
    return ""


def _difference_of_arrays(got, want, rtol, atol):
    try:
        got = np.asarray(got)
    except ValueError:
        return f"is a ragged list, expected {kind_of(want)}"
    if got.dtype.kind not in "biuf" or (want.dtype.kind == "b") != (got.dtype.kind == "b"):
        return f"is {kind_of(got)}, expected {kind_of(want)}"
    if got.shape != want.shape:
        return f"is {kind_of(got)}, expected {kind_of(want)}"
    if np.isnan(got).any() and not np.isnan(want).any():
        return "has NaN in it"
    near = np.isclose(got.astype(float), want.astype(float), rtol=rtol, atol=atol, equal_nan=True)
    if near.all():
        return ""
    place = tuple(int(n) for n in np.argwhere(~near)[0])
    at = f" at place {list(place)}" if place else ""
    return f"gives {shown(got[place])}{at}, expected {shown(want[place])}"


def kind_of(value):
    """A value's kind and shape in words."""
    if isinstance(value, Other) or value is None:
        return f"{value}"
    if isinstance(value, str):
        return "a text"
    array = np.asarray(value)
    words = {"b": "True or False", "i": "whole numbers", "u": "whole numbers", "f": "numbers", "U": "text"}
    kind = words.get(array.dtype.kind, f"{array.dtype}")
    return f"an array of {kind} of shape {array.shape}" if array.ndim else f"a single value ({kind})"


def shown(value):
    """A value, short."""
    if isinstance(value, np.ndarray) and value.ndim:
        return kind_of(value)
    value = value.item() if isinstance(value, (np.ndarray, np.generic)) else value
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and abs(value) > 10**30:  # Python refuses to write very long ones
        return "an enormous number"
    text = f"{value:.4g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else text[:60] + " ..."


def told(function, args):
    """The arguments of a case in words: "Q (3, 4), K (5, 4)"."""
    names = list(inspect.signature(function).parameters)
    return ", ".join(f"{name} {_brief(arg)}" for name, arg in zip(names, args, strict=False))


def _brief(arg):
    if isinstance(arg, np.ndarray) and arg.size <= 4:
        return f"= {(np.round(arg, 3) if arg.dtype.kind == 'f' else arg).tolist()}"
    return f"of shape {arg.shape}" if isinstance(arg, np.ndarray) else f"= {shown(arg)}"


def Value(name, expected, mistakes=(), tried="", hint="", rtol=1e-3, atol=1e-6):
    """A check of one value: a number, a truth, a text or an array.

    expected   the value, or a function without arguments that computes it
    mistakes   pairs (value or function without arguments, what to tell)
    hint       what to tell when no mistake matches; the answer itself is never told
    """
    made = tuple((_constantly(value), text) for value, text in mistakes)
    return Check(name, _constantly(expected), _once, made, (), tried, rtol, atol, is_value=True, hint=hint)


def Choice(name, right, wrong, because):
    """A check of a multiple choice: the right letter, {wrong letter: what to tell}, and why the right one is right."""
    letters = " or ".join(f'"{letter}"' for letter in sorted([right, *wrong]))

    def clean(value):
        text = value.strip("()[]{}<>.:,;'\"` \t\n").lower() if isinstance(value, str) else value
        return text if text is None or (isinstance(text, str) and text in {right, *wrong}) else "?"

    mistakes = [*wrong.items(), ("?", f"{name} has to be a letter: {letters}.")]
    made = tuple((_constantly(value), text) for value, text in mistakes)
    return Check(name, _constantly(right), _once, made, (), because, is_value=True, clean=clean)


def _constantly(value):
    return value if callable(value) else lambda: value


def _once(rng):
    return [()]
