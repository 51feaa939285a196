"""A Vision Transformer in miniature: patches of an image as tokens, and one logit per class (chapter 5)."""

import numpy
from autograd import numpy as np

from attn_utils.gradients import linear, mean_token
from attn_utils.inputs import check_params
from attn_utils.transformer import (
    as_floats,
    check_norm,
    check_sizes,
    condition_layers,
    grayed,
    init_transformer,
    normal_weights,
    transformer,
)

POSITION_STD = 1.0  # patches of grey values embed to about 0.5: where a patch lies is well seen from the start


def init_classifier(
    rng,
    *,
    d_patch,
    n_tokens,
    n_classes,
    n_layers,
    n_heads,
    d,
    d_ff,
    d_head=None,
    models=(),
    recipe="standard",
    alpha=0.0,
    beta=2.0,
):
    """Draw the parameters of a Vision Transformer in miniature, float32.

    rng         numpy.random.Generator
    d_patch     numbers in a patch;  n_tokens   patches in an image;  n_classes   classes
    n_layers, n_heads, d, d_head, d_ff, models   as for init_transformer, but d_head is d / n_heads when None
    recipe      "standard": every matrix from N(0, 1/n), where n is the number of features it sums over;
                "conditioned": the layers as condition_layers draws them, for training without skips
    alpha, beta   of the second recipe

    Returns the dict of init_transformer with "embed.W" (*models, d_patch, d), "embed.position"
    (*models, n_tokens, d), "head.W" (*models, d, n_classes) and "head.b" (*models, 1, n_classes).
    Raises ValueError as init_transformer does, and for a recipe of another name.

    Source: Dosovitskiy et al. (2021), with the mean over tokens for a class token.
    """
    if recipe not in ("standard", "conditioned"):
        raise ValueError(f"recipe is {recipe!r}, expected 'standard' or 'conditioned'.")
    sizes = {"d_patch": d_patch, "n_tokens": n_tokens, "n_classes": n_classes, "n_heads": n_heads, "d": d, "d_ff": d_ff}
    d_patch, n_tokens, n_classes, n_heads, d, d_ff = check_sizes(rng, models, **sizes)
    if d_head is None and d % n_heads:
        raise ValueError(f"d is {d}, expected a multiple of n_heads = {n_heads}, or pass d_head.")
    d_head = d // n_heads if d_head is None else d_head
    params = {
        "embed.W": normal_weights(rng, (*models, d_patch, d), d_patch**-0.5),
        "embed.position": normal_weights(rng, (*models, n_tokens, d), POSITION_STD),
        "head.W": normal_weights(rng, (*models, d, n_classes), d**-0.5),
        "head.b": numpy.zeros((*models, 1, n_classes), numpy.float32),
    }
    sizes = {"d_ff": d_ff, "models": models}
    if recipe == "conditioned":
        return params | condition_layers(rng, n_layers, n_heads, d, d_head, **sizes, alpha=alpha, beta=beta)
    return params | init_transformer(rng, n_layers, n_heads, d, d_head, **sizes, std=None)


def classifier(params, patches, *, graying=None, final_norm=None, **switches):
    """Classify images: embed the patches, run the layers, take the mean token, read off one logit a class.

    params     what init_classifier returns
    patches    (*models, ..., n_tokens, d_patch), where ... are the axes of the images, such as what
               digits_as_patches returns. Models side by side each have their own images;
               np.broadcast_to(patches, (3, *patches.shape)) gives three the same
    graying    a function applied to the patches before they are embedded
    final_norm rms_norm or layer_norm of attn_utils.gradients: normalizes the tokens that the head reads, as models
               with pre-norm need where nothing else bounds the stream; None for no norm
    switches   skip, norm, post, center_values, mask, weighting, scale: as for transformer

    Returns (logits, weights): (*models, ..., n_classes), and the weights of each layer as transformer returns them.
    Raises ValueError when the patches do not fit the parameters, or as transformer does.

    Source: Dosovitskiy et al. (2021), with the mean over tokens for a class token.
    """
    own, layers = _split_classifier(params)
    patches = _check_patches(own, patches)
    patches = patches if graying is None else grayed(graying, patches)
    stream, weights = transformer(layers, embed_patches(own, patches), **switches)
    return read_off(own, stream, final_norm), weights


def read_off(params, tokens, final_norm=None):
    """The head of a classifier: the mean of the normalized tokens, times W + b. Returns (*models, ..., n_classes).

    params   with "head.W" and "head.b";  tokens   (*models, ..., n_tokens, d);  final_norm   as for classifier
    """
    check_norm("final_norm", final_norm)
    tokens = tokens if final_norm is None else final_norm(tokens)
    return linear(mean_token(tokens), params["head.W"], params["head.b"])


def embed_patches(params, patches):
    """The tokens that the first layer reads: patches W + position, (*models, ..., n_tokens, d)."""
    W, position = params["embed.W"], params["embed.position"]
    models, free = W.shape[:-2], patches.ndim - W.ndim
    position = np.reshape(position, models + (1,) * free + position.shape[-2:])
    return linear(patches, W, numpy.zeros(1, patches.dtype)) + position


def _split_classifier(params):
    """The parameters of embedding and head, and those of the layers."""
    check_params(params, ", as init_classifier draws it")
    names = ("embed.W", "embed.position", "head.W", "head.b")
    if missing := [name for name in names if name not in params]:
        raise ValueError(f"params have no {', '.join(missing)}. Draw them with init_classifier.")
    return {k: params[k] for k in names}, {k: v for k, v in params.items() if k not in names}


def _check_patches(own, patches):
    patches = as_floats(patches, "patches")
    W, n_tokens = own["embed.W"], own["embed.position"].shape[-2]
    models, expected = W.shape[:-2], (n_tokens, W.shape[-2])
    fits = patches.ndim >= len(models) + 2 and patches.shape[-2:] == expected
    if not fits or patches.shape[: len(models)] != models or 0 in patches.shape:
        wanted = ", ".join([*map(str, models), "...", *map(str, expected)])
        raise ValueError(f"patches have shape {patches.shape}, expected ({wanted}) for these parameters.")
    return patches
