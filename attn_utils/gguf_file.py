"""Read a GGUF file: what it says about a model, and its tensors, quantised to 4 or 8 bits, as float32.

The package gguf does the same and more; a test holds the two equal. This reads SmolLM2 several times faster,
because the header's 98,000 strings are not wrapped in arrays one by one.
"""

import struct

import numpy as np

F32, Q4_1, Q8_0 = 0, 3, 8  # kinds of tensors
BLOCKS = {F32: (1, 4), Q4_1: (32, 20), Q8_0: (32, 34)}  # kind -> numbers in a block, bytes of a block


def read_gguf(path):
    """(facts, tensors) of a GGUF file: a dict from key to value, and one from name to (kind, raw).

    raw   (rows, bytes), still quantised and memory-mapped; dequantize(kind, raw) makes float32 of it

    Raises ValueError when the file is no GGUF of version 3, or holds a kind of tensor that is not read here.
    Source: the GGUF specification, version 3.
    """
    data = np.memmap(path, np.uint8, mode="r")
    header = _Header(memoryview(data))
    magic, version, n_tensors, n_facts = header.numbers("<4sIQQ")
    if magic != b"GGUF" or version != 3:
        raise ValueError(f"{path} begins with {magic!r}, version {version}: expected a GGUF file of version 3.")
    facts = {header.string(): header.value() for _ in range(n_facts)}
    described = [header.tensor() for _ in range(n_tensors)]
    start = -(-header.at // 32) * 32  # the tensors begin at a multiple of 32 bytes
    tensors = {name: (kind, _raw(name, data[start + at :], shape, kind)) for name, shape, kind, at in described}
    return facts, tensors


def dequantize(kind, raw):
    """The numbers of a tensor, float32.

    Q8_0: a block is a float16 scale and 32 whole numbers of 8 bits, which it multiplies.
    Q4_1: a block is a float16 scale, a float16 minimum and 32 whole numbers of 4 bits: scale * number + minimum;
    the lower halves of its 16 bytes are the first 16 numbers, the upper halves the last.
    """
    if kind == F32:
        return raw.view(np.float32)
    blocks = raw.reshape(len(raw), -1, BLOCKS[kind][1])  # (rows, blocks, bytes)
    if kind == Q8_0:
        numbers = blocks[..., 2:].view(np.int8) * _float16(blocks[..., :2])  # (rows, blocks, 32)
    else:
        scale, packed = _float16(blocks[..., :2]), blocks[..., 4:]
        numbers = np.empty((*blocks.shape[:2], 32), np.float32)
        np.multiply(packed & 15, scale, out=numbers[..., :16])
        np.multiply(packed >> 4, scale, out=numbers[..., 16:])
        numbers += _float16(blocks[..., 2:4])
    return numbers.reshape(len(raw), -1)


def _float16(pair):
    return np.ascontiguousarray(pair).view(np.float16).astype(np.float32)


def _raw(name, data, shape, kind):
    if kind not in BLOCKS:
        raise ValueError(f"tensor {name} is of kind {kind}, expected one of {sorted(BLOCKS)} (F32, Q4_1, Q8_0).")
    numbers, size = BLOCKS[kind]
    shape = (*shape[:-1], shape[-1] // numbers * size)
    return data[: np.prod(shape, dtype=int)].reshape(shape)


class _Header:
    """Reads one value after the other."""

    simple = dict(enumerate("<B <b <H <h <I <i <f <?".split())) | {10: "<Q", 11: "<q", 12: "<d"}

    def __init__(self, data):
        self.data, self.at = data, 0

    def numbers(self, form):
        found = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return found

    def string(self):
        (length,) = self.numbers("<Q")
        self.at += length
        return str(self.data[self.at - length : self.at], "utf8")

    def value(self, kind=None):
        (kind,) = self.numbers("<I") if kind is None else (kind,)
        if kind == 8:
            return self.string()
        if kind == 9:
            kind, length = self.numbers("<IQ")
            return [self.value(kind) for _ in range(length)]
        return self.numbers(self.simple[kind])[0]

    def tensor(self):
        """Name, shape (the last axis is that of the rows), kind, and where its bytes begin."""
        name, (n_axes,) = self.string(), self.numbers("<I")
        shape = self.numbers(f"<{n_axes}Q")[::-1]
        return name, shape, *self.numbers("<IQ")
