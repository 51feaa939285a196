"""Strict nbval ignores pictures. This closes the gap: a re-drawn figure has to look like the stored one.

Not equal to the last pixel, since other platforms round differently: both pictures are shrunk and the share of
places that differ noticeably has to stay small. Frames of explorations are compared in the same way.
"""

import base64
import io
import re

import numpy as np
from PIL import Image

ALLOWED = 0.015  # share of places; 0 on the same platform, 0.011 seen for chaotic training curves on another
NOTICEABLE = 48  # of 255 levels of grey
FRAME = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=]+)")


def pictures(outputs):
    """All PNG pictures in the outputs of a cell, as bytes, in order: figures, then frames inside HTML."""
    data = [output.get("data", {}) for output in outputs]
    found = ["".join(one["image/png"]) for one in data if "image/png" in one]
    for one in data:
        found += FRAME.findall("".join(one.get("text/html", "")))
    return [base64.b64decode(text) for text in found]


def small(png):
    """A picture in grey at a quarter of its size, (height, width), so that a line's exact place matters less."""
    image = Image.open(io.BytesIO(png)).convert("L")
    return np.asarray(image.resize((max(1, image.width // 4), max(1, image.height // 4)), Image.Resampling.BOX), int)


def difference(png, other):
    """Share of places in which two pictures differ noticeably; 1 when they have different sizes."""
    one, two = small(png), small(other)
    return 1.0 if one.shape != two.shape else float(np.mean(np.abs(one - two) > NOTICEABLE))


def complaint(test, reference):
    """What is wrong with the re-drawn pictures of a cell, or None."""
    new, old = pictures(test), pictures(reference)
    if len(new) != len(old):
        return f"{len(new)} pictures were drawn, {len(old)} are stored"
    for number, pair in enumerate(zip(new, old, strict=True), 1):
        share = difference(*pair)
        if share > ALLOWED:
            return f"picture {number} of {len(old)} is not the stored one: it differs in {share:.1%} of its area"
    return None


def install():
    """Make nbval's comparison of a cell look at its pictures too."""
    from nbval.plugin import IPyNbCell

    compare_rest = IPyNbCell.compare_outputs

    def compare_outputs(self, test, ref, skip_compare=None):
        wrong = complaint(test, ref) if compare_rest(self, test, ref, skip_compare) else None
        if wrong:
            self.comparison_traceback.append(wrong)
        return not self.comparison_traceback

    IPyNbCell.compare_outputs = compare_outputs
