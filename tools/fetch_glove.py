"""Fetch the full GloVe table into the cache folder, or say in one line that it is not to be had."""

import sys

from attn_utils import load_glove

try:
    load_glove(full=True)
except RuntimeError as error:
    sys.exit(f"make: {str(error).splitlines()[0]}")
