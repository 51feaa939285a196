"""What a finding is, and the thresholds behind it, each with its reason and its source."""

from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from attn_utils.labs import SITE


class Threshold(NamedTuple):
    """A bound, why it is there, and where it comes from."""

    bound: float
    reason: str
    source: str


OURS = "ours, drawn on the models of the corpus (attn_utils.diagnosis.corpus)"
THRESHOLDS = {
    "rest": Threshold(
        0.05,
        "below .05, one direction holds 99.75 % of the squared size of the tokens, each scaled to length 1",
        OURS + "; the residual is that of Dong et al. (2021)",
    ),
    "uniform": Threshold(
        0.015,
        "below .015, the scores of a row hardly vary, and the weights are a plain average",
        OURS,
    ),
    "saturated": Threshold(
        0.1,
        "below .1 of ln(keys that may be seen), nearly every query looks at one key, and next to no gradient passes",
        "entropy collapse: Zhai et al. (2023); the bound is " + OURS,
    ),
    "sink": Threshold(
        0.3,
        "above .3, and well above uniform weights, one key takes nearly a third of all attention",
        "Gu et al. (2025), section 3",
    ),
    "same": Threshold(
        0.01,
        "below .01, at most a hundredth of any difference between tokens gets through the head",
        OURS,
    ),
    "dead": Threshold(
        1e-3,
        "below a thousandth of the layer's median head, the output of a head is next to nothing",
        OURS,
    ),
    "condition": Threshold(
        1e4,
        "above 10^4 in a tenth of all directions, float32 keeps three of its seven digits there",
        "Ji et al. (2025) watch the condition number; the bound and the tenth are " + OURS,
    ),
    "massive": Threshold(
        1000,
        "above 1,000 times the median entry, one entry decides the scale of its token",
        "Sun et al. (2024)",
    ),
    "alike": Threshold(
        0.9,
        "above .9, the tokens lie within about 26 degrees of each other",
        "Noci et al. (2022) watch the mean cosine; the bound is ours",
    ),
}


@dataclass
class Finding:
    """One thing that stands out.

    kind      "collapse", "zero", "uniform", "same", "saturated", "sink", "dead", "condition", "massive", "alike",
              "dropout", "rows"
    level     "alarm": act on it; "note": good to know, healthy models show it as well
    text      the sentence for the reader: what, where, the number
    layer, head, state   the place, counted from 1 (a state from 0, the input); None where it is many or none
    heads     all places, as [layer, head] pairs counted from 1
    number, threshold    what was measured at the worst place, and the bound that it passed
    source    where the bound comes from
    advice    what people do about it
    chapter   the address of the chapter of this book that explains it
    sequences the sequences of a batch in which it was found, counted from 1
    """

    kind: str
    level: str
    text: str
    layer: int | None = None
    head: int | None = None
    state: int | None = None
    heads: list = field(default_factory=list)
    number: float | None = None
    threshold: float | None = None
    source: str | None = None
    advice: str = ""
    chapter: str | None = None
    sequences: list = field(default_factory=list)

    def __str__(self):
        return self.text + (f" {self.advice}" if self.advice else "")

    def to_dict(self):
        return asdict(self)


CHAPTERS = {
    "collapse": "04_rank_collapse",
    "zero": "04_rank_collapse",
    "uniform": "04_rank_collapse",
    "same": "04_rank_collapse",
    "alike": "04_rank_collapse",
    "saturated": "02_scaling",
    "condition": "05_skip_attention",
    "sink": "06_sink_necessity",
    "dead": "08_trained_decoder",
    "massive": "08_trained_decoder",
    "dropout": "01_qkv_basics",
    "rows": "01_qkv_basics",
}


def make_finding(kind, level, text, threshold=None, **rest):
    """A Finding with the threshold's bound and source, and the chapter of its kind, filled in."""
    bound = THRESHOLDS[threshold] if threshold else None
    chapter = f"{SITE}notebooks/{CHAPTERS[kind]}.html"
    return Finding(kind, level, text, threshold=bound and bound.bound, source=bound and bound.source, chapter=chapter,
                   **rest)  # fmt: skip
