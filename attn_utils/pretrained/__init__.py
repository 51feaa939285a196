"""Two trained models, run by our own forward pass in NumPy: MiniLM, an encoder, and SmolLM2, a decoder.

A forward pass is a plain function over a dictionary of parameters. A layer's parameters are named "0.W_Q",
"0.W_K" and so on, as in transformer.py: W_Q, W_K and W_V are (n_heads, d, d_head), W_O is (n_heads, d_head, d).
Everything is float32. Layers and heads are counted from 0 here, as in every array; the chapters count from 1.
"""

from attn_utils.pretrained.decoder import Decoder, decoder, load_smollm, surprise
from attn_utils.pretrained.encoder import Encoder, encoder, load_minilm
from attn_utils.pretrained.model import Model, Run, split_layers

__all__ = [
    "Decoder",
    "Encoder",
    "Model",
    "Run",
    "decoder",
    "encoder",
    "load_minilm",
    "load_smollm",
    "split_layers",
    "surprise",
]
