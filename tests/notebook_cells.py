"""Small clean notebooks, cell by cell, for the tests that break the rules: one in each form."""

import copy
import json

from execute_notebooks import METADATA
from lint import RULES, Book, Notebook, rules_for
from stamp import KEY, stamp

SETUP = "# Finds attn_utils.\nimport attn_utils; attn_utils.install_missing()"
ALT = "Line that rises from 1 to 4 and then stays flat: a figure with nothing to say but its alt text."
SLIDER = (
    '<figure class="abe-explore" id="explore-d"><img alt="Bars of equal height, one for each token" '
    'src="data:image/png;base64,AAAA"><input type="range" aria-label="d">'
    '<figcaption>Bars of equal height at d = 1</figcaption>'
    '<script type="application/json">[{"src":"data:image/png;base64,AAAA","alt":"Bars of equal height at d = 1",'
    '"label":"d = 1"},{"src":"data:image/png;base64,BBBB","alt":"One bar at d = 2, the others are gone",'
    '"label":"d = 2"}]</script></figure>'
)
PREDICT = (
    "> **Predict.** Add one to each of the numbers. Their sum (a) grows, (b) stays as it is, (c) vanishes.\n"
)
FOLDED = "> <details><summary>See what the answers mean</summary>\n> (a) would mean that it rises.</details>\n"
OPTION = "<details><summary>({}) it is {}</summary>Row 3 sums to {}: read on.</details>\n"
QUESTION = "**1. What do the weights of a row sum to?**\n\n" + "".join(
    OPTION.format(letter, number, number) for letter, number in zip("abc", ("one", "two", "three"), strict=True)
)
QUESTION += "\n"
OPENING = (
    "# Weigh words\n\n**You will do** this and **learn** that. You **need** NumPy and about 20 minutes, "
    "and read [Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762)."
)
CLOSING = "## Sum up\n\nIt rises.\n\n## Exercises\n\n1. Why?\n\n## Read further\n\nMore."
LEDGER = "## What the sources say, and what we measured"
SOURCE = {"heading": "The article on sums", "name": "An article of ABC on sums", "link": "https://example.org/post"}
CLAIMS = {"first": SOURCE | {"claims": [
    {"id": "it-rises", "chapter": 1}, {"id": "later", "chapter": 1, "open": "waits for data"}, {"id": "other", "chapter": [2]},
]}}  # fmt: skip
BOOK = Book(
    setup=SETUP,
    bibliography="@article{vaswani2017, eprint = {1706.03762}, doi = {10.1000/xyz}}",
    toc={"parts": [{"chapters": [{"file": "notebooks/01_test", "sections": [{"file": "notebooks/evidence/01_test"}]}]}]},
    index="[Weigh words](../notebooks/01_test.ipynb)",
    sources=CLAIMS,
)


def md(text):
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def code(text, *outputs, **metadata):
    return {"cell_type": "code", "metadata": metadata, "source": text, "outputs": list(outputs)}


def shows(**data):
    data = {key.replace("_", "/", 1): value for key, value in data.items()}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def prints(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def captioned(caption="A line that rises from 1 to 4 and stays there.", alt=None, mark='class="abe-figure"'):
    """The output of figure()."""
    html = f'<figure {mark}><img alt="{alt or caption}" src="data:image/png;base64,AAAA">'
    return shows(text_html=f"{html}<figcaption>{caption}</figcaption></figure>")


def folded(name, text, *outputs):
    return code(f"# Code: {name}\n{text}", *outputs, tags=["hide-input"], mystnb={"code_prompt_show": f"Code: {name}"})


def notebook(cells):
    """The file of a notebook that was just executed: ids, counts, metadata, stamp."""
    count = 0
    for number, cell in enumerate(cells, 1):
        cell["id"] = f"01-{number:03d}"
        if cell["cell_type"] == "code":
            cell["execution_count"] = count = count + 1
    return stamped({"cells": cells, "metadata": dict(METADATA), "nbformat": 4, "nbformat_minor": 5})


def stamped(data):
    """What a run would leave behind, for a test that changes cells and is not about the stamp."""
    data["metadata"][KEY] = stamp(data["cells"], SETUP, BOOK.address)
    return data


def old_chapter():
    """A chapter in the form of one notebook."""
    cells = [
        md(OPENING),
        code(SETUP, tags=["remove-cell"]),
        md("## 1.1 Print a sum\n\nWords come first.\n\n" + PREDICT + FOLDED),
        code("scores = Q @ K.T  # (n, n)\nprint(sum(scores))", prints("12.3456\n")),
        md("It goes on in [chapter 2](02_scaling.ipynb)."),
        code("plt.plot(x)\nplt.show()", shows(image_png="AAAA"), mystnb={"image": {"alt": ALT}}),
        code("\n".join(f"assert x[{i}] > {i}" for i in range(4))),
        code("explore(draw, alt=alt, d=[1, 2])", shows(text_html=SLIDER)),
        code("assert alt(z) > 1"),
        md(LEDGER),
        code("ledger(1)", shows(text_markdown="| id | verdict |")),
        code("\n".join(f"assert y[{i}] > {i}" for i in range(4))),
        md("## Check yourself\n\n" + three_questions() + CLOSING),
    ]
    return notebook(cells)


def three_questions():
    return "".join(QUESTION.replace("a row", f"row {row}").replace("Row 3", f"Row {row}").replace("1.", f"{row}.") for row in "345")


def told_chapter():
    """A chapter in the form of two tiers: it tells, its evidence proves."""
    cells = [
        md(OPENING + " It starts from an [article of ABC](https://example.org/post) on sums."),
        code(SETUP, tags=["remove-cell"]),
        md("## 1.1 Print a sum\n\nWords come first.\n\n" + PREDICT),
        code("scores = Q @ K.T  # (n, n)\nshare = scores.mean()\nx = scores.sum(axis=1)"),
        folded("the line", "fig, ax = plt.subplots()\nplt.plot(x)\nfigure(fig, f'It ends at {x[-1]:.2f}.')",
               captioned("A line that ends at 4.25.")),
        code("assert x[3] > 3"),
        md("It is (a). The share is 27 %<!--=share-->, and the sum is 12.35. It goes on in [chapter 2](02_scaling.ipynb)."),
        code("bind(share=share)", prints("share = 0.2712\n"), tags=["remove-cell"]),
        code("say(f'In all it is {sum(x):.2f}.')", shows(text_markdown="In all it is 12.35.")),
        code("explore(draw, caption=tell, d=[1, 2])", shows(text_html=SLIDER)),
        code("assert tell(z) > 1"),
        md(LEDGER),
        code("ledger(1)", shows(text_markdown=LEDGER_TABLE)),
        md("## Check yourself\n\n" + three_questions() + CLOSING),
    ]  # fmt: skip
    return notebook(cells)


LEDGER_TABLE = """\
| The claim | The source | Measured here | Verdict |
|:--|:--|:--|:--|
| [It rises](evidence/01_test.ipynb#claim-it-rises) | 12 | 12.35 | *reproduced* |
| It falls later | 3 |  | *not measured yet*: waits for data |"""


def evidence():
    """The evidence of the chapter."""
    cells = [
        md("# Evidence: weigh words\n\nWhat the chapter says of sums, put to the test."),
        code(SETUP, tags=["remove-cell"]),
        md("## Set up the draws\n\nNothing is claimed here."),
        code("rng = np.random.default_rng(0)\nsums = draw_sums(rng)"),
        md("## Sum the scores again\n\n**Claim.** The sum of the scores rises with every row.\n\n"
           "**It would be refuted by** a draw in which it falls."),
        code("print(f'{sums.mean():.2f}')", prints("12.35\n")),
        code("assert sums[0] < sums[1]\nreport('it-rises', sums.mean())",
             prints("it-rises | source: 12 | here: 12.35 | reproduced\n")),
        md("**Concluded.** It does, to 12.35 on average."),
    ]  # fmt: skip
    return notebook(cells)


def lay_out(folder, two_tier):
    """The files that the notebooks link to; evidence makes the chapter one of two tiers."""
    folder.mkdir(exist_ok=True)
    (folder / "02_scaling.ipynb").write_text("{}")
    (folder / "assignments").mkdir(exist_ok=True)
    if two_tier:
        (folder / "evidence").mkdir(exist_ok=True)
        (folder / "evidence" / "01_test.ipynb").write_text(json.dumps(evidence()))
    return folder


def read(folder, data, place="01_test.ipynb", size=1000, book=BOOK):
    return Notebook(folder / place, copy.deepcopy(data), book, size)


def broken(nb):
    """The rules that a notebook breaks."""
    return [name for name in rules_for(nb.kind, nb.is_two_tier) if RULES[name][0](nb)]
