"""No check can be fooled: wrong answers fail with the mistake named, right ones of any make pass, in both modes.

The answers of each assignment are in tests/answers/chNN.py. In the student's hands a check is a plain call; graded, a
process of its own decides, with secret random inputs.
"""

import runpy
from pathlib import Path

import pytest

from attn_utils import checks
from attn_utils.checks.grade import verdicts

CHAPTERS = sorted(Path(__file__).parent.glob("answers/ch*.py"))


def load(path):
    module = runpy.run_path(str(path))
    return module["RIGHT"], module["WRONG"]


def of_chapter(path):
    """The names of a chapter's checks."""
    return [check.name for check in getattr(checks, path.stem).CHECKS]


ANSWERS = {path.stem: load(path) for path in CHAPTERS}
RIGHT = [(name, n) for right, _ in ANSWERS.values() for name in right for n in range(len(right[name]))]
WRONG = [(name, n) for _, wrong in ANSWERS.values() for name in wrong for n in range(len(wrong[name]))]
BY_NAME = [{name: answers for both in ANSWERS.values() for name, answers in both[kind].items()} for kind in (0, 1)]


def test_each_check_has_three_right_and_five_wrong_answers():
    for name in checks.CHECKS:
        assert len(BY_NAME[0].get(name, [])) >= 3, f"{name}: three different right answers are needed"
        assert len(BY_NAME[1].get(name, [])) >= 5, f"{name}: five plausible wrong answers are needed"
    assert set(BY_NAME[0]) == set(BY_NAME[1]) == set(checks.CHECKS)


@pytest.mark.parametrize("name, n", RIGHT)
def test_a_right_answer_passes(name, n, capsys):
    checks.CHECKS[name](BY_NAME[0][name][n])
    assert capsys.readouterr().out.startswith("Correct: ")


@pytest.mark.parametrize("name, n", WRONG)
def test_a_wrong_answer_fails_and_the_mistake_is_named(name, n):
    answer, words = BY_NAME[1][name][n]
    with pytest.raises(checks.WrongAnswer) as raised:
        checks.CHECKS[name](answer)
    assert words in str(raised.value)


@pytest.mark.parametrize("chapter", ANSWERS)
def test_graded_each_answer_gets_the_same_verdict_and_message(chapter):
    right, wrong = ANSWERS[chapter]
    questions = [(name, answer, "Correct: ") for name in right for answer in right[name]]
    questions += [(name, answer, words) for name in wrong for answer, words in wrong[name]]
    questions += [(name, None, "Not done yet: ") for name in right if checks.CHECKS[name].is_value]
    told = verdicts([(name, answer) for name, answer, _ in questions])
    for (name, answer, words), message in zip(questions, told, strict=True):
        assert (message["kind"] == "right") == (words == "Correct: "), f"{name}, {answer}: {message['text']}"
        assert words in message["text"], f"{name}, {answer}: {message['text']}"


def test_hidden_tests_do_not_ask_what_a_notebook_can_patch(monkeypatch):
    wrong = BY_NAME[1]["softmax"][0][0]
    monkeypatch.setattr(checks.Check, "judge", lambda *args: checks.Verdict("right", "patched"))
    monkeypatch.setattr(checks.Check, "__call__", lambda *args: None)
    monkeypatch.setattr(checks, "CHECKS", {})
    monkeypatch.setattr("attn_utils.checks.core.difference", lambda *args: "")
    monkeypatch.setattr("attn_utils.checks.grade.grade", lambda *args: None)
    grade = runpy.run_path(checks.__path__[0] + "/grade.py")["grade"]
    grade("softmax", BY_NAME[0]["softmax"][0])
    with pytest.raises(AssertionError, match="your columns do"):
        grade("softmax", wrong)


@pytest.mark.parametrize("name", checks.CHECKS)
def test_no_mistake_is_a_right_answer(name):
    """Each known mistake of a check fails it, and leads to its own message or to that of an earlier one."""
    check = checks.CHECKS[name]
    texts = [text for _, text in check.mistakes]
    for mistake, text in check.mistakes:
        answer = mistake() if check.is_value else mistake
        with pytest.raises(checks.WrongAnswer) as raised:
            check(answer)
        assert str(raised.value) == text or str(raised.value) in texts[: texts.index(text)]


@pytest.mark.parametrize("name", checks.CHECKS)
def test_the_reference_passes_with_any_seed(name):
    """Chance alone fails nobody: the reference, carried through lines of text, is right for every seed."""
    import numpy as np

    from attn_utils.checks.courier import carry

    check = checks.CHECKS[name]
    answer = check.reference() if check.is_value else check.reference
    for seed in range(20):
        assert check.judge(lambda line: carry(answer, line), np.random.default_rng(seed)).kind == "right"


@pytest.mark.parametrize("name", checks.CHECKS)
def test_what_is_not_done_is_no_error(name, capsys):
    def stub(*args):
        raise NotImplementedError

    for answer in [None] if checks.CHECKS[name].is_value else [stub, lambda *args: None]:
        checks.CHECKS[name](answer)
        assert capsys.readouterr().out.startswith("Not done yet: ")


def test_facts_of_assignment_1():
    """What is asked for as a number is so, on the data of the assignment."""
    import numpy as np

    from attn_utils import attention, embed, load_glove

    sentence = "the trophy did not fit in the suitcase because it was too big".split()
    X = embed(sentence, load_glove())
    row = attention(X, X, X)[1][sentence.index("it")]
    ranks = [int(1 + np.sum(row > row[sentence.index(word)])) for word in ("trophy", "suitcase")]
    checks.ranks(ranks)
    for seed in range(5):
        W_Q, W_K = np.random.default_rng(seed).normal(size=(2, 50, 4)) / np.sqrt(50)
        Q, K = X.astype(float) @ W_Q, X.astype(float) @ W_K
        checks.rank_prediction([np.linalg.matrix_rank(Q @ K.T), np.linalg.matrix_rank(attention(Q, K, X)[1])])


def taught(assignment):
    """What the ordinary cells of an assignment leave behind: name -> value."""
    import nbformat

    scope = {}
    path = Path(__file__).parents[1] / "notebooks" / "assignments" / f"{assignment}.ipynb"
    for cell in nbformat.read(path, 4).cells:
        own = "nbgrader" not in cell.metadata and "remove-cell" not in cell.metadata.get("tags", [])
        if cell.cell_type == "code" and own:
            exec(compile(cell.source, assignment, "exec"), scope)
    return scope


def test_facts_of_assignment_2():
    """The cells that follow a prediction measure what the check holds to be right."""
    facts = taught("02_scaling")
    Q, K, V, weights, attention = (facts[name] for name in ("Q", "K", "V", "weights", "attention"))
    assert abs(attention(Q, K + 3, V)[1] - weights).max() < 1e-9
    assert abs(attention(Q + 3, K, V)[1] - weights).max() > 0.1
    checks.lottery_prediction(facts["factors"])
    checks.step_prediction(facts["rises"][1024] / facts["rises"][64])


def test_facts_of_assignment_3():
    import numpy as np

    facts = taught("03_causal_masks")
    checks.leaks([move > 1e-9 for move in facts["moves"].values()])
    star, chain = (np.linalg.matrix_power(facts[name], 16)[-1, 0] for name in ("star", "chain"))
    checks.share_prediction((star, chain))


def test_facts_of_assignment_5():
    facts = taught("05_skip_attention")
    checks.skip_prediction(facts["with_skip"])
    raw = facts["three_layers"](1, 1) ** (1 / 27)
    assert abs(raw - 2) < 1e-3
    for every, first in ((1 / 3, 1), (1, 1 / 27)):
        assert abs(facts["three_layers"](every, first) - raw) < 1e-3
    steps = [checks.CHECKS["steps_needed"].reference(kappa, 0.01) for kappa in (81, 9)]
    checks.speedup_prediction(steps[0] / steps[1])
    assert 0.4 < facts["cosines"][1] < 0.6 and facts["cosines"][0.001] < 0.01 and facts["the"] > 0.999
