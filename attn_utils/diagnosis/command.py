"""attn-diagnose: attention that was saved to a file, diagnosed from the command line.

    attn-diagnose attention.npz --tokens tokens.json --html report.html

Exit status: 0 where there is no alarm, 1 where there is one, 2 where the input cannot be read as attention.
"""

import argparse
import json
import os
import re
import sys
from pathlib import Path

import numpy as np

from attn_utils.diagnosis.looking import diagnose
from attn_utils.diagnosis.reports import write_report
from attn_utils.records import write_whole

NOTHING, ALARMS, BAD = 0, 1, 2  # exit status
CELLS = 24  # of a pattern's side in the report
PATTERNS = 64  # of a pattern's side in the numbers: what the book's live figure of heads opens
DIAGNOSED = (ValueError, TypeError, OSError, MemoryError)


def main(arguments=None):
    """Run the command; returns its exit status."""
    args = _parser().parse_args(arguments)
    try:
        return _run(args)
    except DIAGNOSED as error:
        print(f"attn-diagnose: {_one_line(error)}", file=sys.stderr)
        return BAD
    except KeyboardInterrupt:
        print("\nattn-diagnose: interrupted, nothing was written", file=sys.stderr)
        return 130


def _parser():
    parser = argparse.ArgumentParser(
        prog="attn-diagnose",
        description="Diagnose the attention of a model from a file of its weights.",
        epilog="Exit status: 0 without an alarm, 1 with one, 2 for input that cannot be read.",
    )
    parser.add_argument("file", type=Path, help="weights as .npy, .npz or .safetensors; an .npz may hold states, "
                        "values, a mask and tokens beside them")  # fmt: skip
    parser.add_argument("--states", type=Path, metavar="FILE", help="the tokens between the layers, .npy or .npz")
    parser.add_argument("--values", type=Path, metavar="FILE", help="the values that the weights average")
    parser.add_argument("--mask", type=Path, metavar="FILE", help="a mask, or a tokenizer's attention mask, .npy")
    parser.add_argument("--tokens", type=Path, metavar="FILE", help="a JSON list of strings")
    parser.add_argument("--axes", help="names of the axes in front of queries and keys, such as 'layers heads'")
    parser.add_argument("--sequence", type=_sequence, metavar="N", help="which one of a batch, from 0, or 'all'")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report, one page that needs nothing else")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers; '-' prints them and no words")
    parser.add_argument("--patterns", action="store_true", help="with --json: write the heads' patterns, too; the live "
                        "figure of heads on the book's site opens such a file")  # fmt: skip
    parser.add_argument("--title", help="the report's title; the file's name when left out")
    parser.add_argument("--cells", type=int, default=CELLS, metavar="N", help="cells along the side of a pattern in "
                        f"the report ({CELLS})")  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return parser


def _run(args):
    if args.cells < 0:
        raise ValueError(f"--cells is {args.cells}, expected a whole number of at least 0.")
    for path in (args.html, args.json):
        if path is not None and str(path) != "-" and not path.absolute().parent.is_dir():
            raise ValueError(f"there is no folder {str(path.absolute().parent)!r} to write {path.name} into.")
    if args.patterns and args.json is None:
        raise ValueError("--patterns goes with --json, the file that they are written to, and there is none.")
    cells = max(args.cells if args.html else 0, PATTERNS if args.patterns else 0)
    found = diagnose(
        _known(args.file), _list(args.states), values=_list(args.values), mask=_single(args.mask), axes=args.axes,
        tokens=_tokens(args.tokens), sequence=args.sequence, pictures=cells,
        progress=not args.quiet,
    )  # fmt: skip
    if args.html is not None:
        write_report(found, args.html, args.title or args.file.stem)
    if args.json is not None and str(args.json) != "-":
        write_whole(args.json, json.dumps(found.to_dict(args.patterns), indent=1) + "\n")
    _say(found, args)
    return ALARMS if found.alarms else NOTHING


def _say(found, args):
    if str(args.json) == "-":
        text = json.dumps(found.to_dict(args.patterns), indent=1)
    else:
        wrote = [f"wrote {path}" for path in (args.html, args.json) if path is not None]
        text = "" if args.quiet else "\n".join([str(found), *wrote])
    if not text:
        return
    try:
        print(text, flush=True)
    except BrokenPipeError:  # such as | head: who stops reading has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# ------------------------------------------------------------------------- files


def _known(path):
    """The path, if it is one of a kind that can be read."""
    if path.suffix not in (".npy", ".npz", ".safetensors"):
        raise ValueError(
            f"{path.name} ends in {path.suffix or 'nothing'}, expected .npy, .npz or .safetensors. Save the weights "
            "with np.savez('attention.npz', **{f'attention.{i}': w for i, w in enumerate(weights)})."
        )
    return path


def _list(path):
    """The arrays of a file in the order of their numbers, or its one array; None for no path."""
    if path is None:
        return None
    stored = _stored(path)
    if not hasattr(stored, "files"):
        return stored
    names = sorted(stored.files, key=lambda name: [int(part) if part.isdigit() else part
                                                   for part in re.split(r"(\d+)", name)])  # fmt: skip
    return stored[names[0]] if len(names) == 1 else [stored[name] for name in names]


def _single(path):
    found = _list(path)
    if isinstance(found, list):
        raise ValueError(f"{path.name} holds {len(found)} arrays, expected one.")
    return found


def _stored(path):
    if path.suffix not in (".npy", ".npz"):
        raise ValueError(f"{path.name} ends in {path.suffix or 'nothing'}, expected .npy or .npz.")
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}.")
    try:
        return np.load(path, mmap_mode="r" if path.suffix == ".npy" else None, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path.name} cannot be read ({error}), expected what NumPy saved.") from None


def _tokens(path):
    """The strings of a JSON list; None for no path."""
    if path is None:
        return None
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}.")
    try:
        found = json.loads(path.read_text("utf8"))
    except ValueError as error:
        raise ValueError(f"{path.name} is no JSON ({error}), expected a list of strings.") from None
    if not isinstance(found, list) or not all(isinstance(token, str) for token in found):
        raise ValueError(f"{path.name} holds {type(found).__name__}, expected a list of strings, one for each token.")
    return found


def _sequence(text):
    if text == "all":
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor 'all'") from None


def _one_line(error):
    text = " ".join(str(error).split())
    return text or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
