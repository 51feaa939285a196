"""Attention out of a file: .npy, .npz and .safetensors, read layer by layer and never all at once."""

import json
import re
from pathlib import Path

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
         "U8": "u1", "BOOL": "?"}  # fmt: skip
ROLES = {
    "weights": r"(attention|attn|weight|layer|probs)",
    "states": r"(hidden|state|embedding|token_matri)",
    "values": r"(value)",
    "mask": r"(attention_mask|attn_mask|mask|padding)",
    "tokens": r"(tokens?$|strings)",
}
KNOWN = (
    "weights are found under names such as attentions, attention.0, layer_0; states under hidden_states or hidden.0; "
    "values under values; a mask under attention_mask or mask; tokens under tokens"
)


def is_path(thing):
    """Whether a thing names a file that read_file() reads."""
    return isinstance(thing, (str, Path)) and Path(thing).suffix in (".npy", ".npz", ".safetensors")


def read_file(path):
    """A dict of what a file holds: "weights", and where they are there "states", "values", "mask" and "tokens"."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}, expected .npy, .npz or .safetensors with attention weights.")
    try:
        if path.suffix == ".npy":
            return {"weights": _npy(path)}
        stored = _Zip(path) if path.suffix == ".npz" else _safetensors(path)
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise ValueError(f"{path.name} cannot be read ({error}), expected what NumPy or safetensors saved.") from None
    return _by_role(stored, path.name)


class _Zip:
    """The arrays of an .npz as things with a shape, each of them read when it is asked for."""

    def __init__(self, path):
        self.file = np.load(path, allow_pickle=False)

    def keys(self):
        return self.file.files

    def __getitem__(self, name):
        return _Later(self.file, name)


class _Later:
    """One array of an .npz: its shape at once, its numbers when they are indexed; the last one read is kept."""

    def __init__(self, file, name):
        self.file, self.name, self.kept = file, name, None
        self.shape = self._header()

    def _header(self):
        with self.file.zip.open(self.name + ".npy") as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            return read(stream)[0]

    def __getitem__(self, index):
        return np.asarray(self)[index]

    def __array__(self, dtype=None, copy=None):
        if self.kept is None:
            self.kept = self.file[self.name]
        return self.kept if dtype is None else self.kept.astype(dtype)

    def __len__(self):
        return self.shape[0]

    def let_go(self):
        self.kept = None


class _Mapped:
    """An array in a file, mapped where it is indexed and let go with what was taken, so that no page of it stays.

    brain  whether it is of bfloat16, which is widened to float32
    """

    def __init__(self, path, dtype, start, shape, order="C", brain=False):
        self.where, self.shape, self.brain = (path, dtype, "r", start, tuple(shape), order), tuple(shape), brain
        np.memmap(*self.where)  # a file that is too short is said at once

    def __getitem__(self, index):
        found = np.memmap(*self.where)[index]
        return (np.asarray(found).astype(np.uint32) << 16).view(np.float32) if self.brain else found

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self[...], dtype)

    def __len__(self):
        return self.shape[0]


def _npy(path):
    """The array of an .npy, mapped; read at once where it has no axis or is empty."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.memmap):
        return array
    order = "C" if array.flags.c_contiguous else "F"
    return _Mapped(path, array.dtype, array.offset, array.shape, order)


def _safetensors(path):
    """name -> array in the file, mapped and not read. Source: the format's own description, safetensors."""
    with open(path, "rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(size))
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in TYPES:
            raise ValueError(f"{name} has type {entry['dtype']}, expected one of {', '.join(TYPES)}")
        start = 8 + size + entry["data_offsets"][0]
        brain = entry["dtype"] == "BF16"
        found[name] = _Mapped(path, np.dtype(TYPES[entry["dtype"]]), start, entry["shape"], brain=brain)
    return found


def _by_role(stored, file):
    """Sort the arrays of a file by what their names say; numbered ones become lists in their order."""
    names = list(stored.keys())
    if len(names) == 1:
        return {"weights": stored[names[0]]}
    roles = {}
    for name in names:
        role = next((role for role in ("mask", "tokens", "states", "values", "weights")
                     if re.search(ROLES[role], name, re.I)), None)  # fmt: skip
        roles.setdefault(role, []).append(name)
    if "weights" not in roles:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise ValueError(f"{file} holds {shown}, and none is known as attention weights: {KNOWN}.")
    found = {}
    for role, members in roles.items():
        if role is not None:
            members.sort(key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])
            found[role] = stored[members[0]] if len(members) == 1 else [stored[name] for name in members]
    if "tokens" in found:
        found["tokens"] = [str(token) for token in np.asarray(found["tokens"]).ravel()]
    return found
