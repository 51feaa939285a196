"""What the checks are made of: carrying answers, comparing them, and telling what is wrong in words."""

import json

import numpy as np
import pytest

from attn_utils.checks.core import Check, Choice, Value, WrongAnswer, difference
from attn_utils.checks.courier import Other, carry, pack, unpack


def cases(rng):
    return [(rng.normal(size=shape),) for shape in ((2,), (3,), (2, 4), (2, 4))]


DOUBLE = Check(
    "double",
    lambda x: 2 * x,
    cases,
    mistakes=[(lambda x: x**2, "this is the square."), (lambda x: 3 * x, "this is the triple.")],
    properties=[(lambda value, x: np.sign(value).tolist() == np.sign(x).tolist(), "the sign changes.")],
    tried="four arrays.",
)


def told(check, answer):
    with pytest.raises(WrongAnswer) as raised:
        check(answer)
    return str(raised.value)


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 10**30, "text", 0.5, float("inf"), (1, [2.0, "x"]), [], np.float32(1.5), np.arange(6).reshape(2, 3),
     np.zeros((0, 3)), np.array(True), np.arange(3, dtype=">i2"), np.arange(6.0).reshape(2, 3).T, np.longdouble(2)],
)  # fmt: skip
def test_what_is_carried_comes_back(value):
    back = unpack(json.loads(json.dumps(pack(value))))
    if isinstance(value, (float, np.ndarray, np.generic)):
        assert isinstance(back, np.ndarray) and back.shape == np.shape(value) and np.array_equal(back, value)
    else:
        assert back == value and type(back) is type(value)


def test_an_array_of_texts_is_carried_as_a_list():
    assert unpack(pack(np.array([["n", "l"], ["s", "n"]]))) == [["n", "l"], ["s", "n"]]
    assert unpack(pack(np.array("n"))) == "n"


@pytest.mark.parametrize("value, words", [(iter(()), "a tuple_iterator"), (1j, "a complex"), ([].__iter__, "a method-")])
def test_what_cannot_be_carried_has_its_article(value, words):
    assert unpack(pack(value)).startswith(words)
    assert unpack(pack(type("item", (), {})())) == "an item"


def test_a_name_or_a_text_of_any_length_makes_a_short_message():
    endless = "x" * 1_000_000
    assert len(told(DOUBLE, lambda x: type(endless, (), {})())) < 300
    assert len(told(Value("holds", True), endless)) < 300
    for reply in (
        {"raised": endless, "text": endless},
        {"value": {"kind": "other", "text": endless}, "after": None},
        {"value": {"kind": "plain", "value": endless}, "after": None},
    ):
        assert len(DOUBLE.judge(lambda _, reply=reply: json.dumps(reply), np.random.default_rng(0)).text) < 500


@pytest.mark.parametrize("value", [1j, np.array([1j]), np.array([None]), {1: 2}, len, (n for n in "ab")])
def test_what_cannot_be_carried_is_named(value):
    assert isinstance(unpack(pack(value)), Other)


@pytest.mark.parametrize(
    "answer, words",
    [
        (lambda x: x**2, "this is the square."),
        (lambda x: np.abs(2 * x), "the sign changes."),
        (lambda x: 2.5 * x, "expected"),
        (lambda x: 1.0, "is a single value (numbers), expected an array of numbers of shape (2,)"),
        (lambda x: (x, x), "is an array of numbers of shape (2, 2), expected an array of numbers of shape (2,)"),
        (lambda x: x > 0, "is an array of True or False"),
        (lambda x: x * np.nan, "has NaN in it"),
        (lambda x: x.nothing, "stops with AttributeError"),
        (lambda x, y: x, "stops with TypeError"),
        (lambda x: [[1], [2, 3]], "is a ragged list"),
        (lambda x: map(float, x), "is a map"),
        (lambda x: {"x": x}, "is a dict"),
        (lambda x: "2x", "is a single value (text)"),
        (lambda x: 2 * x if x.ndim == 1 else None, "gives nothing back for x of shape (2, 4)"),
        (lambda x: exec("import sys; sys.exit()"), "stops with SystemExit"),
        (lambda x: x.__imul__(2), "changes x in place"),
    ],
)  # fmt: skip
def test_a_wrong_function_is_told_why(answer, words):
    assert words in told(DOUBLE, answer)


def test_the_same_answer_to_everything_is_told_so():
    check = Check("total", lambda x: x.sum(), cases)
    assert "the same answer whatever comes in" in told(check, lambda x: 0.3)


@pytest.mark.parametrize(
    "got, want, words",
    [
        (1, True, "is 1, expected True or False"),
        (0.0, False, "is 0, expected True or False"),
        ((1, 0), (True, False), "has result 1 wrong: it is 1, expected True or False"),
        ((1,), (1, 2), "has 1 result, expected 2"),
        ((1, 2, 3), (1, 2), "has 3 results, expected 2"),
        (5, (1, 2), "has 1 result, expected 2"),
        (Other("a dict"), (1, 2), "is a dict, expected 2 results"),
    ],
)
def test_a_difference_is_a_sentence(got, want, words):
    assert difference(np.asarray(got) if isinstance(got, float) else got, want, 1e-3, 1e-6) == words


def test_a_property_that_cannot_be_asked_stops_nothing():
    check = Check("row", lambda x: x, cases, properties=[(lambda value, x: value[1, 1] > -9, "too small.")])
    assert "expected" in told(check, lambda x: 2 * x)


def test_a_reply_about_other_arguments_is_a_wrong_answer():
    reply = {"value": pack(np.zeros(2)), "after": [pack(1), pack(2), pack(3)]}
    verdict = DOUBLE.judge(lambda _: json.dumps(reply), np.random.default_rng(0))
    assert verdict.kind == "wrong" and "no readable answer" in verdict.text


def test_a_text_that_no_courier_wrote_is_a_wrong_answer():
    for line in ("", "[]", "{}", '{"value": 1, "after": null}', '{"value": {"kind": "array"}, "after": []}', "[" * 9999):
        verdict = DOUBLE.judge(lambda _, line=line: line, np.random.default_rng(0))
        assert verdict.kind == "wrong" and "no readable answer" in verdict.text


def test_an_array_that_says_yes_to_everything_convinces_nobody():
    class Yes(np.ndarray):
        def __eq__(self, other):
            return True

        def __array_ufunc__(self, *args, **kwargs):
            return True

        def __array_function__(self, *args, **kwargs):
            return True

    assert "expected" in told(DOUBLE, lambda x: (2.5 * x).view(Yes))


def test_a_value_is_not_told(capsys):
    check = Value("ranks", (1, 2), mistakes=[((2, 1), "swapped.")], hint="Count.", tried="one, then two.")
    check([1, 2])
    assert capsys.readouterr().out == "Correct: one, then two.\n"
    assert told(check, (2, 1)) == "swapped."
    assert told(check, (5, 2)) == "ranks is not right yet. Count."
    assert "expected 2" in told(check, 1)
    check(None)
    assert capsys.readouterr().out == "Not done yet: ranks is None so far.\n"


@pytest.mark.parametrize("answer", [True, np.True_, np.array(True)])
def test_a_truth_may_come_from_numpy(answer, capsys):
    Value("holds", True)(answer)
    assert told(Value("holds", False), answer)


def test_a_choice_takes_a_letter_in_any_dress(capsys):
    check = Choice("pick", "b", {"a": "no."}, "yes.")
    for answer in ("b", "B", "(b)", " b ", "b.", "(b).", '"b"', "b)"):
        check(answer)
        assert capsys.readouterr().out == "Correct: yes.\n"
    assert told(check, "a") == "no."
    assert told(check, 7) == 'pick has to be a letter: "a" or "b".'


def test_jupyter_shows_the_text_alone():
    assert WrongAnswer("the root is missing.")._render_traceback_() == ["Wrong: the root is missing."]


def test_a_warning_of_an_answer_is_not_shown(recwarn):
    line = json.dumps([pack(np.array([1000.0]))])
    assert "value" in json.loads(carry(np.exp, line))
    assert not recwarn.list
