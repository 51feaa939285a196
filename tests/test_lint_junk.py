"""A chapter that has every part and says nothing is caught, by rules that a reader would thank for."""

import pytest
from notebook_cells import (
    BOOK,
    LEDGER,
    LEDGER_TABLE,
    SETUP,
    broken,
    captioned,
    code,
    lay_out,
    md,
    notebook,
    read,
    shows,
)

JUNK_QUESTION = "**What?**\n\n" + "".join(
    f"<details><summary>({letter}) yes</summary>This is the feedback here.</details>\n" for letter in "abc"
)


def junk():
    """One sentence 55 times, questions that read "What?", and assertions on lengths."""
    sentence = "Attention is a mechanism that lets each token look at the other tokens of its context. "
    cells = [
        md("# Weigh words\n\nIt takes about 20 minutes."),
        code(SETUP, tags=["remove-cell"]),
        code("x = np.ones(12)"),
    ]
    for part in range(11):
        cells += [
            md(f"## 1.{part} Look at it\n\n{sentence * 5}\n\n> **Predict.** What? (a) yes, (b) yes, (c) yes.\n"),
            code("fig = plot(x)\nfigure(fig, f'It is {x.mean()}.')", captioned(f"It is as it is in part {part}, and it stays.")),
            code("assert len(x) == 12\nassert len(x) >= 0"),
            md("It is (a)."),
        ]
    cells += [
        md(LEDGER),
        code("ledger(1)", shows(text_markdown=LEDGER_TABLE)),
        md("## Check yourself\n\n" + JUNK_QUESTION * 3 + "## Sum up\n\nYes.\n\n## Exercises\n\nYes.\n\n## Read further\n\nYes."),
    ]
    return notebook(cells)


@pytest.mark.parametrize("two_tier", [False, True], ids=["old form", "two tiers"])
def test_a_junk_chapter_is_caught(two_tier, tmp_path):
    found = set(broken(read(lay_out(tmp_path, two_tier), junk())))
    assert {
        "sentences_are_not_repeated",  # 55 times the same
        "prose_is_not_filler",
        "predictions_are_questions",  # "What?", and three times the same option
        "self_check_gives_feedback",  # "What?", options and feedback alike
        "assertions_can_fail",  # len(x) >= 0
        "results_are_asserted",  # lengths alone
        "figures_are_asserted",
    } <= found
    assert ("predictions_can_be_lost" in found) == two_tier  # always (a)


def test_junk_with_one_fault_mended_is_still_caught(tmp_path):
    """No two of these rules hang on each other: mend any one fault, and the others still stop the chapter."""
    folder, data = lay_out(tmp_path, two_tier=True), junk()
    for cell in data["cells"]:
        cell["source"] = cell["source"].replace("assert len(x) == 12\nassert len(x) >= 0", "assert x.mean() > 0.5")
    found = broken(read(folder, notebook(data["cells"])))
    assert "figures_are_asserted" not in found and {"sentences_are_not_repeated", "predictions_are_questions"} <= set(found)


def test_varied_filler_is_filler(tmp_path):
    """The sentence with a number of its own each time is not repeated to the letter."""
    folder, data = lay_out(tmp_path, two_tier=False), junk()
    for cell in (cell for cell in data["cells"] if cell["cell_type"] == "markdown"):
        parts = cell["source"].split("each token")
        cell["source"] = "".join(f"{part}token {cell['id'][3:]} {i} " for i, part in enumerate(parts[:-1])) + parts[-1]
    found = broken(read(folder, notebook(data["cells"]), book=BOOK))
    assert "prose_is_not_filler" in found
