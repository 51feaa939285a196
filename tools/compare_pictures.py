"""Strict nbval ignores pictures. This closes the gap: a re-drawn figure has to look like the stored one.

Not equal to the last pixel, since other platforms round differently, and training that is chaotic turns a
rounding into curves that lie elsewhere. Two things are compared: in grey, the share of places that differ
noticeably; and for the ink of each colour, whether ink of that colour lies near the same place in the other
picture, and whether all the coloured ink together stays where it was. Frames of explorations are compared alike.

The limits were measured. Honest differences: chapters 1 to 6 drawn with OpenBLAS's kernels Haswell, Zen and
Nehalem (with and without NumPy's vector instructions) where SkylakeX drew what is stored, 61 pictures that differ in
a pixel. Forgeries: every stored picture with red and blue swapped, the palette rotated, the coloured ink
erased, turned grey, or moved by 20 pixels; below is the least that any one has that is not over ALLOWED already.

                                            honest, at most   forged, at least   limit
    share of places that differ in grey     0.017             -                  ALLOWED
    share of one colour's ink that strayed  0.061             0.113 (moved)      STRAYED } together: the SUM of
    pixels that the ink's centre moved      7.9               0 (swapped)        MOVED   } both over their limits
    SUM                                     0.63              1.6                1
"""

import base64
import io
import re

import numpy as np
from PIL import Image

from attn_utils import COLORS

ALLOWED = 0.03  # share of places
STRAYED = 0.2  # share of the ink of one colour
MOVED = 17  # pixels
NOTICEABLE = 48  # of 255 levels of grey
BLOCK = 4  # pixels; each block of the picture counts with its strongest ink, so that smoothed edges do not matter
REACH = 2  # blocks: ink this near is at the same place
COLOURED = 40  # the strongest channel lies so much above the weakest: ink with a hue
DARK = 90  # the strongest channel lies so much below white: ink without one
ALIKE = 40  # the largest difference of a channel between inks that count as one colour
FEWEST = 8  # blocks: of a colour with less ink than that no share is taken
HUES = 12  # colours are told apart by their hue, in steps of 30 degrees; what has none but is dark comes after them
PAPER = HUES + 1
PICTURES = ("image/png", "image/webp", "image/jpeg")
FRAME = re.compile(r"data:image/(?:png|webp|jpeg);base64,([A-Za-z0-9+/=]+)")


def pictures(outputs):
    """All pictures in the outputs of a cell, as bytes, in order: figures, then those inside HTML and Markdown."""
    data = [output.get("data", {}) for output in outputs]
    found = ["".join(one[kind]) for one in data for kind in PICTURES if kind in one]
    for one in data:
        for kind in ("text/html", "text/markdown"):
            found += FRAME.findall("".join(one.get(kind, "")))
    return [base64.b64decode(text) for text in found]


def pixels(picture):
    """A picture as it looks on white paper, (height, width, 3) levels from 0 to 255."""
    image = Image.open(io.BytesIO(picture)).convert("RGBA")
    return np.asarray(Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB"))


def small(image):
    """Levels of grey at a quarter of the size, (height, width), so that a line's exact place matters less."""
    grey = Image.fromarray(image).convert("L")
    size = max(1, grey.width // BLOCK), max(1, grey.height // BLOCK)
    return np.asarray(grey.resize(size, Image.Resampling.BOX), int)


def largest(image):
    """The largest level of each pixel; NumPy's own max is slow along an axis of three."""
    return np.maximum(np.maximum(image[..., 0], image[..., 1]), image[..., 2])


def strength(image):
    """How strong the ink of each pixel is, (height, width): colour counts twice as much as darkness."""
    top = largest(image).astype(np.int16)
    spread = top - 255 + largest(255 - image)  # of the channels
    return 2 * spread + 255 - top


def ink(image):
    """The strongest ink of each block, (rows, columns, 3)."""
    rows, columns = -(-image.shape[0] // BLOCK), -(-image.shape[1] // BLOCK)
    more = (0, rows * BLOCK - image.shape[0]), (0, columns * BLOCK - image.shape[1])
    image = np.pad(image, (*more, (0, 0)), constant_values=255)
    blocks = strength(image).reshape(rows, BLOCK, columns, BLOCK).swapaxes(1, 2).reshape(rows, columns, -1)
    down, right = np.divmod(blocks.argmax(-1), BLOCK)
    return image[down + np.arange(rows)[:, None] * BLOCK, right + np.arange(columns) * BLOCK].astype(np.int16)


def colors(inks):
    """The number of the colour of each ink: 0 to 11 for a hue, HUES for dark ink, PAPER where there is none."""
    red, green, blue = np.moveaxis(inks, -1, 0)
    top = largest(inks)
    spread = top + largest(-inks)
    turns = np.select([top == red, top == green], [green - blue, blue - red], red - green) / np.maximum(spread, 1)
    sixths = turns + np.select([top == red, top == green], [0, 2], 4)  # of the circle of hues
    without = np.where(255 - top >= DARK, HUES, PAPER)
    return np.where(spread >= COLOURED, np.floor(sixths % 6 * HUES / 6).astype(int) % HUES, without)


def strayed(inks, places, other):
    """Which of the places, (n, 2), hold ink that has none like it nearby in the other picture: (n,) booleans."""
    padded = np.pad(other, ((REACH, REACH), (REACH, REACH), (0, 0)), mode="edge")
    steps = [(down, right) for down in range(-REACH, REACH + 1) for right in range(-REACH, REACH + 1)]
    alone = np.ones(len(places), bool)
    for step in sorted(steps, key=lambda step: step[0] ** 2 + step[1] ** 2):
        left = np.flatnonzero(alone)
        here, there = places[left].T, (places[left] + REACH + step).T
        alone[left] = largest(np.abs(inks[tuple(here)] - padded[tuple(there)])) > ALIKE
    return alone


def losses(inks, other):
    """For each color with enough ink, the share of it that strayed, as (share, name of the color)."""
    number = colors(inks)
    places = np.argwhere(number < PAPER)
    alone, number = strayed(inks, places, other), number[number < PAPER]
    groups = [number == color for color in range(PAPER)] + [number < HUES]
    big = [group for group in groups if group.sum() >= FEWEST]
    return [(float(alone[group].mean()), name(inks[tuple(places[group].T)])) for group in big]


def name(inks):
    """The book's name for the color that is nearest to the mean of some inks."""
    levels = {color: [int(code[at : at + 2], 16) for at in (1, 3, 5)] for color, code in COLORS.items()}
    return min(levels, key=lambda color: np.abs(inks.mean(0) - levels[color]).sum())


def shift(inks, other):
    """By how many pixels the centre of all the coloured ink moves, down or to the right; 0 where there is little."""
    places = [np.argwhere(colors(one) < HUES) for one in (inks, other)]
    if min(map(len, places)) < FEWEST:
        return 0.0
    return float(BLOCK * np.abs(places[0].mean(0) - places[1].mean(0)).max())


def difference(new, old):
    """Share of places in which two pictures, arrays of one shape, differ noticeably in grey."""
    return float(np.mean(np.abs(small(new) - small(old)) > NOTICEABLE))


def what_differs(new, old):
    """What is different in a picture, (height, width, 3), beside the stored one: one line, or None."""
    if new.shape != old.shape:
        return "it is {1} by {0} pixels".format(*new.shape) + ", stored are {1} by {0}".format(*old.shape)
    share = difference(new, old)
    if share > ALLOWED:
        return f"it differs in {share:.1%} of its area"
    now, then = ink(new), ink(old)
    gone, came = max(losses(then, now), default=(0, "")), max(losses(now, then), default=(0, ""))
    moved = shift(now, then)
    if max(gone[0], came[0]) / STRAYED + moved / MOVED <= 1:
        return None
    said = [f"{gone[0]:.0%} of the stored {gone[1]} ink is not there"] if gone[0] else []
    said += [f"{came[0]:.0%} of the {came[1]} ink is new"] if came[0] else []
    said += [f"the coloured ink has moved by {moved:.0f} pixels"] if moved >= 1 else []
    return ", ".join(said)


def complaint(test, reference):
    """What is wrong with the re-drawn pictures of a cell, or None."""
    new, old = pictures(test), pictures(reference)
    if len(new) != len(old):
        return f"{len(new)} pictures were drawn, {len(old)} are stored"
    for number, pair in enumerate(zip(new, old, strict=True), 1):
        wrong = what_differs(*map(pixels, pair)) if pair[0] != pair[1] else None
        if wrong:
            return f"picture {number} of {len(old)} is not the stored one: {wrong}"
    return None


def install():
    """Make nbval's comparison of a cell look at its pictures too; what nbval compares of them is not the bytes."""
    from nbval.plugin import IPyNbCell

    compare_rest = IPyNbCell.compare_outputs
    if compare_rest.__module__ == __name__:  # installed before
        return

    def compare_outputs(self, test, ref, skip_compare=None):
        skipped = (*(skip_compare or self.parent.skip_compare), *PICTURES)
        wrong = complaint(test, ref) if compare_rest(self, test, ref, skipped) else None
        if wrong:
            self.comparison_traceback.append(wrong)
        return not self.comparison_traceback

    IPyNbCell.compare_outputs = compare_outputs
