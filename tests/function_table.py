"""The table of tests/test_every_function.py: for every public function of attn_utils arguments that work, and their kinds."""

from typing import Any, NamedTuple

import numpy as np
from autograd import numpy as anp
from matplotlib.figure import Figure
from plotly import graph_objects
from small_models import small_decoder, small_encoder

from attn_utils import (
    claims,
    explorations,
    figures,
    full_scale,
    glove,
    gradients,
    graying,
    install,
    intervals,
    labs,
    leading,
    lookup,
    norms,
    pronouns,
    rank_collapse,
    scaled_dot_product,
    spectra,
    sweeps,
    tasks,
    training,
    transformer,
    vision_transformer,
    weightings,
)
from attn_utils.pretrained import decoder, encoder, load_minilm, load_smollm, surprise

# Machinery: what other rooms or tools call, with what those have checked or made.
MACHINERY = {
    "cells": "Cells case_key in_words",  # of sweep
    "claims": "claims facts_named in_markdown judge standing texts_of verdict",  # of report, ledger, tools/claims.py
    "engines": "Failed WorkerError describe outcomes what_failed",  # of sweep
    "fetch": "Package cache_folder fetch_files show_progress",  # tests/test_fetch.py
    "figures": "caption_element pictures",  # of figure and lab
    "fingerprints": "fingerprint modules_of_attn_utils module_source name_of reads with_imports",  # of sweep
    "full_scale": "FullScale",  # what stored() returns
    "glove": "check_vectors",
    "gradients": "turned",
    "inputs": "as_floating at_least_single check_attention_shapes check_axis check_function check_mask check_params "
    "check_rng check_scale check_switch finite_matrix for_lapack in_type is_whole noise_floor real_number restored "
    "unit_scale whole_number",
    "install": "check_pip last_words remedy",  # tests/test_install.py
    "labs": "draw_asked page_normals",  # of stills whose live figure draws again: tests/test_labs.py
    "leading": "krylov_values",  # of attention_singular_values and diagnose: tests/test_leading.py, tests/test_diagnosis.py
    "lifeline": "lifeline python",  # tests/test_lifeline.py
    "lookup": "head_error spread_of_scores symbol_scores train_head",  # chapter 2's own experiment: tests/test_lookup.py
    "norms": "root_mean_square row_dot",
    "outputs": "as_json asset in_kernel plain plain_sentence sentence show show_both show_widget unique_id",
    "pictures": "Picture check_figure check_legible close describe drawn_texts render",  # of figure and explore
    "pretrained.decoder": "Decoder decoder_attention rope silu swiglu",  # tests/test_pretrained.py
    "pretrained.encoder": "Encoder embed_positions encoder_attention feed_forward gelu",
    "pretrained.model": "Model Run check_cache check_characters check_frozen check_ids check_model check_places check_room "
    "combine split_layers",
    "pretrained.reading": "as_equations identity",
    "progress": "Progress hidden_progress",
    "pronouns": "accuracy by_similarity experiment famous first_layer first_weights one_layer row_of_it share_right "
    "probe start strongest_other to_nouns two_layers vectors",  # chapter 1's own experiment: tests/test_pronouns.py
    "rank_collapse": "fresh_stack mixed mixer_error mixer_states train_mixer",  # chapter 4: tests/test_rank_collapse.py
    "records": "from_text read_record remove_left_over to_text write_record write_whole",  # tests/test_records.py
    "skips": "Arm Trained accuracy arm_named batches check_task draw_labels final frozen held_out identity kappas logits "
    "nothing run start train uniform walk",  # chapter 5's own experiment: tests/test_skips.py
    "sweeps": "Results",  # what sweep() returns
    "transformer": "as_floats attention_layer check_norm check_sizes combine grayed normal_weights project sigmoid_gate",
    "vision_transformer": "embed_patches read_off",
    "weightings": "count_visible",
}
OWN_TABLES = ("checks", "diagnosis")  # rooms: tests/test_checks*.py and test_grading.py; tests/test_diagnosis.py


class Row(NamedTuple):
    """Arguments that work, by name, and the kind of each; those without arguments are left out of the call."""

    call: Any
    arguments: dict
    kinds: dict
    positional: tuple = ()  # names of arguments that are handed over without their name
    made: tuple = ()  # names of arguments that are made anew for each call, by a function of nothing
    refused: dict = {}  # name -> more values that must be refused  # noqa: RUF012
    allowed: dict = {}  # name -> values of its kind that are documented as fine  # noqa: RUF012
    called: dict = {}  # name -> what messages call it  # noqa: RUF012
    keeps: bool = True  # whether arrays come back in the type of those that went in
    infinite: bool = False  # whether the result may be inf, as documented


RNG = np.random.default_rng
MATRIX = RNG(0).normal(size=(6, 4))  # (n_tokens, d)
KEYS = RNG(1).normal(size=(6, 4))
WEIGHTS = np.exp(MATRIX) / np.exp(MATRIX).sum(-1, keepdims=True)  # (6, 4), rows summing to one
MASK = np.tri(6, dtype=bool)
OVERFLOW = [1e308 * np.ones((6, 4))]
RAISE = {"Q": "scale", "K": "scale"}  # what an overflow of the scores is blamed on
SIZES = {"n_layers": "whole", "n_heads": "whole", "d": "whole", "d_head": "whole or none", "d_ff": "whole or none"}


def rng():
    return RNG(0)


def panel():
    return drawn(2)


def drawn(value):
    fig = Figure(figsize=(3, 2.4))
    fig.subplots().plot([1, value])
    return fig


def scene():
    return graph_objects.Figure(graph_objects.Scatter3d(x=[1], y=[2], z=[3]))


def bowl(params, target):
    return anp.sum((params["x"] - target) ** 2)


def plain_run(seed):
    return seed


def classes():
    return transformer.init_transformer(rng(), 1, 2, 4, d_ff=3)


SCORE_ROWS = {
    "softmax": Row(weightings.softmax, {"scores": MATRIX, "axis": -1}, {"scores": "scores", "axis": "axis"}),
    "softmax1": Row(weightings.softmax1, {"scores": MATRIX, "axis": -1}, {"scores": "scores", "axis": "axis"}),
    "sink_softmax": Row(
        weightings.sink_softmax,
        {"scores": MATRIX, "sink": 0.5, "axis": -1},
        {"scores": "scores", "sink": "number", "axis": "axis"},
        refused={"sink": [np.ones((7, 1)), np.ma.masked_array([[1.0]], [[True]])]},
    ),
    "relu": Row(
        weightings.relu,
        {"scores": MATRIX, "axis": -1, "uncounted": 0},
        {"scores": "scores", "axis": "axis", "uncounted": "whole"},
    ),
    "sigmoid": Row(
        weightings.sigmoid,
        {"scores": MATRIX, "axis": -1, "uncounted": 1},
        {"scores": "scores", "axis": "axis", "uncounted": "whole"},
    ),
}


def one_argument(function, name, kind, array=MATRIX, **options):
    return Row(function, {name: array}, {name: kind}, **options)


ROWS = {("weightings", name): row for name, row in SCORE_ROWS.items()}
ROWS |= {("gradients", name): row._replace(call=getattr(gradients, name)) for name, row in SCORE_ROWS.items()}
ROWS |= {
    ("spectra", name): one_argument(getattr(spectra, name), argument, "matrix")
    for name, argument in {
        "spectral_gap": "A",
        "stable_rank": "X",
        "stable_rank_gram": "X",
        "center_tokens": "X",
        "token_spread": "X",
        "token_cosine": "X",
    }.items()
}
ROWS |= {
    ("spectra", "condition_number"): one_argument(spectra.condition_number, "X", "matrix", infinite=True),
    ("spectra", "remove_outlier"): one_argument(spectra.remove_outlier, "A", "matrix", WEIGHTS, refused={"A": [MATRIX]}),
    ("spectra", "entropy"): Row(
        spectra.entropy,
        {"weights": WEIGHTS, "mask": np.ones((6, 4), bool)},
        {"weights": "matrix", "mask": "mask"},
        refused={"weights": [MATRIX, 2 * WEIGHTS], "mask": [np.zeros((6, 4), bool)]},
    ),
    ("leading", "singular_values"): Row(
        leading.singular_values, {"A": MATRIX, "k": 2}, {"A": "matrix", "k": "whole or none"}, refused={"k": [0, 5]}
    ),
    ("leading", "attention_singular_values"): Row(
        leading.attention_singular_values,
        {"Q": MATRIX, "K": KEYS, "k": 2, "scale": 0.5, "causal": False, "block": 2, "tol": 1e-3, "max_passes": 30},
        {"Q": "matrix", "K": "matrix", "k": "whole", "scale": "number or none", "causal": "switch", "block": "whole"}
        | {"tol": "positive", "max_passes": "whole"},
        refused={"Q": [MATRIX[None], MATRIX[:, :3]], "k": [0, 7], "block": [0], "max_passes": [0]},
    ),
    ("graying", "svd_graying"): Row(
        graying.svd_graying,
        {"X": MATRIX, "epsilon": 0.7},
        {"X": "matrix", "epsilon": "positive"},
        refused={"epsilon": [1.5]},
    ),
    ("graying", "dct_graying"): Row(
        graying.dct_graying,
        {"X": MATRIX, "epsilon": 0.7},
        {"X": "matrix", "epsilon": "positive"},
        refused={"epsilon": [1.5]},
    ),
    ("norms", "rms_norm"): Row(
        norms.rms_norm,
        {"X": MATRIX, "gain": MATRIX[0], "epsilon": 1e-6},
        {"X": "tokens", "gain": "features", "epsilon": "not negative"},
    ),
    ("norms", "layer_norm"): Row(
        norms.layer_norm,
        {"X": MATRIX, "gain": MATRIX[0], "shift": MATRIX[1], "epsilon": 1e-6},
        {"X": "tokens", "gain": "features", "shift": "features", "epsilon": "not negative"},
    ),
    ("scaled_dot_product", "causal_mask"): Row(
        scaled_dot_product.causal_mask,
        {"n_queries": 2, "n_keys": 4},
        {"n_queries": "whole", "n_keys": "whole or none"},
        refused={"n_queries": [0, 5], "n_keys": [0, 1]},
    ),
    ("scaled_dot_product", "attention"): Row(
        scaled_dot_product.attention,
        {"Q": MATRIX, "K": KEYS, "V": MATRIX, "mask": MASK, "scale": 0.5, "weighting": weightings.softmax},
        {"Q": "matrix", "K": "matrix", "V": "matrix", "mask": "mask", "scale": "number or none"}
        | {"weighting": "function"},
        refused={"Q": [MATRIX[:, :3], *OVERFLOW], "V": [MATRIX[:3]], "weighting": [lambda scores: scores[0]]},
        allowed={"mask": [None]},
    ),
    ("intervals", "mean_interval"): Row(
        intervals.mean_interval,
        {"values": MATRIX, "level": 0.95},
        {"values": "draws", "level": "share"},
        refused={"level": [1]},
        keeps=False,
    ),
    ("intervals", "proportion_interval"): Row(
        intervals.proportion_interval,
        {"count": 3, "n": 20, "level": 0.95},
        {"count": "count", "n": "whole", "level": "share"},
        refused={"n": [0, 2], "level": [1]},
    ),
}

# ------------------------------------------------------------- gradients: most are not checked, for speed

TWO = {"X": "raw", "W": "raw", "b": "raw"}
HIDDEN = RNG(2).normal(size=(4, 3))
ROWS |= {("gradients", name): one_argument(getattr(gradients, name), "X", "raw", positional=("X",))
         for name in ("center_tokens", "mean_token", "gelu")}  # fmt: skip
ROWS |= {
    ("gradients", "rms_norm"): Row(
        gradients.rms_norm, {"X": MATRIX, "epsilon": 1e-6}, {"X": "tokens", "epsilon": "not negative"}
    ),
    ("gradients", "layer_norm"): Row(
        gradients.layer_norm, {"X": MATRIX, "epsilon": 1e-6}, {"X": "raw", "epsilon": "not negative"}
    ),
    ("gradients", "masked_scores"): Row(
        gradients.masked_scores,
        {"Q": MATRIX, "K": KEYS, "mask": MASK, "scale": 0.5},
        {"Q": "raw", "K": "raw", "mask": "free", "scale": "free"},
        keeps=False,
    ),
    ("gradients", "mix"): Row(gradients.mix, {"weights": MASK / 1.0, "V": MATRIX}, {"weights": "raw", "V": "raw"}),
    ("gradients", "attend"): Row(
        gradients.attend,
        {"Q": MATRIX, "K": KEYS, "V": MATRIX, "mask": MASK, "scale": 0.5},
        {"Q": "raw", "K": "raw", "V": "raw", "mask": "free", "scale": "free", "weighting": "free"},
    ),
    ("gradients", "linear"): Row(gradients.linear, {"X": MATRIX, "W": HIDDEN, "b": HIDDEN[:1]}, TWO),
    ("gradients", "feed_forward"): Row(
        gradients.feed_forward,
        {"X": MATRIX, "W_1": HIDDEN, "b_1": HIDDEN[:1], "W_2": HIDDEN.T, "b_2": HIDDEN.T[:1]},
        dict.fromkeys(("X", "W_1", "b_1", "W_2", "b_2"), "raw"),
    ),
    ("gradients", "cross_entropy"): Row(
        gradients.cross_entropy,
        {"logits": MATRIX, "targets": np.array([0, 1, 2, 3, 0, 1])},
        {"logits": "raw", "targets": "free"},
        refused={"targets": [None, "text", np.zeros(5, int), np.zeros(6), np.full(6, 4), np.full(6, -1)]},
        keeps=False,
    ),
    ("gradients", "squared_error"): Row(
        gradients.squared_error,
        {"output": MATRIX, "target": KEYS},
        {"output": "raw", "target": "raw"},
        refused={"target": [None, "text", MATRIX[0], MATRIX[:, :1]]},
        keeps=False,
    ),
}

# -------------------------------------------------------------------------------- training

LAYERS = classes()
CLASSIFIER = vision_transformer.init_classifier(
    rng(), d_patch=4, n_tokens=6, n_classes=3, n_layers=1, n_heads=2, d=4, d_ff=3
)
SWITCHES = {"mask": "mask", "weighting": "function", "scale": "number or none", "skip": "switch"}
SWITCHES |= {"norm": "function or none", "post": "switch", "center_values": "switch", "graying": "function or none"}
ROWS |= {
    ("training", "fit"): Row(
        training.fit,
        {"loss": bowl, "params": {"x": np.zeros(2)}, "batch": lambda rng: (1.0,), "steps": 3, "rng": rng}
        | {"lr": 0.1, "betas": (0.9, 0.99), "weight_decay": 0.0},
        {"loss": "function", "params": "params", "batch": "function", "steps": "whole", "rng": "rng", "lr": "positive"}
        | {"betas": "free", "weight_decay": "not negative", "on_step": "function or none", "progress": "switch"},
        made=("rng",),
        refused={"betas": [None, 3, (0.9,), (0.9, 1.0), "ab", (None, 0.9), (np.nan, 0.9)], "steps": [0]}
        | {"params": [{"x": np.arange(3)}, {"x": np.array([np.nan])}, {"x": np.array([np.inf])}, {"x": None}, {"x": "a"}]},
        keeps=False,
    ),
    ("transformer", "init_transformer"): Row(
        transformer.init_transformer,
        {"rng": rng, "n_layers": 1, "n_heads": 2, "d": 4, "d_head": 2, "d_ff": 3, "models": (2,), "std": 0.02}
        | {"gate": True, "sink": True},
        {"rng": "rng", **SIZES, "models": "shape", "std": "positive or none", "gate": "switch", "sink": "switch"},
        made=("rng",),
    ),
    ("transformer", "condition_layers"): Row(
        transformer.condition_layers,
        {"rng": rng, "n_layers": 1, "n_heads": 2, "d": 4, "d_head": 2, "d_ff": 3, "models": (), "alpha": 0.0}
        | {"beta": 2.0},
        {"rng": "rng", **SIZES, "d_ff": "whole", "models": "shape", "alpha": "number"}
        | {"beta": "number"},
        made=("rng",),
    ),
    ("transformer", "transformer"): Row(
        transformer.transformer,
        {"params": LAYERS, "X": MATRIX, "mask": MASK, "scale": 0.5, "skip": True, "post": False}
        | {"center_values": False, "weighting": gradients.softmax},
        {"params": "params", "X": "matrix", **SWITCHES},
        positional=("params", "X"),
        allowed={"mask": [None]},
        keeps=False,
        refused={"params": [{"W": 1}, {"0.W_Q": 1}]},
        called={"params": "params|layer 0"},
    ),
    ("transformer", "split_layers"): Row(
        transformer.split_layers, {"params": LAYERS}, {"params": "params"}, allowed={"params": [{}]}
    ),
    ("vision_transformer", "init_classifier"): Row(
        vision_transformer.init_classifier,
        {"rng": rng, "d_patch": 4, "n_tokens": 6, "n_classes": 3, "n_layers": 1, "n_heads": 2, "d": 4, "d_ff": 3}
        | {"models": (), "recipe": "conditioned", "alpha": 0.0, "beta": 2.0},
        {"rng": "rng", "d_patch": "whole", "n_tokens": "whole", "n_classes": "whole", **SIZES, "d_ff": "whole"}
        | {"models": "shape", "recipe": "text", "alpha": "number", "beta": "number"},
        positional=("rng",),
        made=("rng",),
    ),
    ("vision_transformer", "classifier"): Row(
        vision_transformer.classifier,
        {"params": CLASSIFIER, "patches": MATRIX},
        {"params": "params", "patches": "matrix", "graying": "function or none", "final_norm": "function or none"},
        positional=("params", "patches"),
        keeps=False,
    ),
}

# ------------------------------------------------------------------------------- the tasks

LISTS = {name: words[:6] for name, words in tasks.PRONOUN_WORDS.items()}
PRONOUNS = {"words": "word lists", "n": "whole", "rng": "rng"}
SOME_GLOVE = glove.load_glove()
ROWS |= {
    ("tasks", "pronoun_split"): Row(
        tasks.pronoun_split,
        {"rng": rng, "held_out": 1 / 3, "always": (), "words": LISTS},
        {"rng": "rng", "held_out": "share", "always": "free", "words": "word lists"},
        made=("rng",),
        refused={"always": [None, 3]},
        allowed={"words": [{}]},
    ),
    ("tasks", "pronoun_sentences"): Row(
        tasks.pronoun_sentences, {"words": LISTS, "n": 2, "rng": rng}, PRONOUNS, made=("rng",), refused={"n": [0]}
    ),
    ("tasks", "pronoun_pairs"): Row(
        tasks.pronoun_pairs, {"words": LISTS, "n": 2, "rng": rng}, PRONOUNS, made=("rng",), refused={"n": [0]}
    ),
    ("tasks", "deal_adjectives"): Row(
        tasks.deal_adjectives, {"words": LISTS, "rng": rng}, {"words": "word lists", "rng": "rng"}, made=("rng",)
    ),
    ("lookup", "draw_lookups"): Row(
        lookup.draw_lookups, {"rng": rng, "size": 2}, {"rng": "rng", "size": "whole"}, made=("rng",), refused={"size": [0]}
    ),
    ("lookup", "start_head"): Row(
        lookup.start_head,
        {"seed": 0, "d_k": 4, "shrink": 1.0},
        {"seed": "whole", "d_k": "whole", "shrink": "number"},
        refused={"d_k": [0], "shrink": [-1.0, None]},
    ),
    ("rank_collapse", "draw_task"): Row(
        rank_collapse.draw_task,
        {"rng": rng, "task": "previous", "size": 2, "n_tokens": 5, "mean_free": True},
        {"rng": "rng", "task": "text", "size": "whole", "n_tokens": "whole", "mean_free": "switch"},
        made=("rng",),
        refused={"task": ["sum"], "size": [0], "n_tokens": [3]},
    ),
    ("rank_collapse", "start_mixer"): Row(
        rank_collapse.start_mixer,
        {"seed": 0, "depth": 1, "open_values": True},
        {"seed": "whole", "depth": "whole", "open_values": "switch"},
        refused={"depth": [0]},
    ),
    ("pronouns", "cut"): Row(lambda link: pronouns.cut(link), {"link": (8, 11)}, {"link": "free"}, refused={"link": [3, (8, 12), (8,), "ab"]}),
    ("tasks", "word_rows"): Row(
        tasks.word_rows,
        {"sentences": [["it", "was"]], "kv": SOME_GLOVE},
        {"sentences": "words", "kv": "free"},
        refused={"sentences": [["it", "was"], [["it"], ["it", "was"]], [["it", "Zxqy"]], [[None]]], "kv": [None, {}]},
        called={"sentences": "sentences|words"},
    ),
    ("tasks", "trigger_sequences"): Row(
        tasks.trigger_sequences,
        {"n": 2, "rng": rng, "n_tokens": 5, "d": 4, "bos": True, "place": 2},
        {"n": "whole", "rng": "rng", "n_tokens": "whole", "d": "whole", "bos": "switch", "place": "whole or none"},
        made=("rng",),
        allowed={"n": [[2]]},
        refused={"n": [0, (2.5,), (0,)], "n_tokens": [3], "d": [3], "place": [0, 1, 5]},
    ),
    ("tasks", "digits_as_patches"): Row(
        tasks.digits_as_patches, {"patch": 4}, {"patch": "whole"}, refused={"patch": [0, 3, 16]}
    ),
    ("tasks", "cut_patches"): Row(
        tasks.cut_patches,
        {"images": MATRIX, "patch": 2},
        {"images": "pixels", "patch": "whole"},
        refused={"patch": [0, 3]},
    ),
    ("tasks", "mnist_as_patches"): Row(  # fetches: only what it says before it does
        lambda patch: tasks.mnist_as_patches(patch) if patch != 7 else None,
        {"patch": 7},
        {"patch": "whole"},
        refused={"patch": [0, 3, 56]},
    ),
    ("glove", "load_glove"): Row(
        lambda full: glove.load_glove(full) if full is not True else None, {"full": False}, {"full": "switch"}
    ),
    ("glove", "embed"): Row(
        glove.embed,
        {"words": ["it", "was"], "kv": SOME_GLOVE},
        {"words": "words", "kv": "free"},
        refused={"kv": [None, {}, 3]},
        called={"words": "words?|word"},
    ),
}

# --------------------------------------------------------------- sweeps, results, the ledger

CASES = [{"seed": 0}, {"seed": 1}]
ROWS |= {
    ("sweeps", "grid"): Row(
        sweeps.grid, {"seed": [0, 1]}, {"seed": "free"}, refused={"seed": [None, 3, "text", {1}, {}, np.array(3)]}
    ),
    ("sweeps", "sweep"): Row(
        sweeps.sweep,
        {"run": plain_run, "cases": CASES},
        {"run": "function", "cases": "free", "executor": "free", "store": "free", "version": "free", "progress": "switch"},
        refused={"cases": [None, 3, [], [1], [{}], CASES[:1] * 2, [{"seed": MATRIX}], [{1: 2}]]}
        | {"executor": [3, "two"], "store": [3, "", []], "version": [3, b"1"]},
    ),
    ("full_scale", "keep"): Row(
        full_scale.keep,
        {"name": "one", "value": MATRIX, "settings": {"n": 1}, "seconds": 1.0, "engine": "in turn"},
        {"name": "text", "value": "free", "settings": "dict", "seconds": "not negative", "engine": "text"},
        refused={"value": [object(), {1, 2}, np.ones(2, np.longdouble)], "name": ["../one"], "seconds": [True]},
        called={"value": "kept"},  # by to_text, which does not know the name
    ),
    ("full_scale", "stored"): Row(
        lambda name: full_scale.stored(name) if name != "one" else None, {"name": "one"}, {"name": "text"},
        refused={"name": ["../one", "two"]}, called={"name": "name|called"},
    ),  # fmt: skip
    ("claims", "report"): Row(
        claims.report,
        {"claim_id": "animal-random-last", "value": 0.97, "here": "97 %", "facts": {"first": 1, "last": 2}},
        {"claim_id": "text", "value": "free", "here": "free", "facts": "free"},
        refused={"value": [None, np.nan, np.inf, object(), "text", [1, 2], True, [1, "a"]], "here": ["a | b", "a\nb"]}
        | {"facts": [{"unknown": 1}, 3]},
        called={"claim_id": "claim", "here": "here", "value": "animal-random-last", "facts": "facts|texts"},
    ),
    ("claims", "ledger"): Row(
        lambda chapter: claims.ledger(chapter) if chapter != 99 else None, {"chapter": 99}, {"chapter": "whole"}
    ),
    ("install", "install_missing"): Row(
        install.install_missing,
        {"requirements": {"numpy": "numpy>=2"}},
        {"requirements": "dict"},
        allowed={"requirements": [{}]},
    ),
}

# -------------------------------------------------------------------------- what is shown

SENTENCE, SHORT = "It is even.", dict(alt="Two points.", caption="It is even.")
ROWS |= {
    ("figures", "use_book_style"): Row(figures.use_book_style, {}, {}),
    ("figures", "draw_weights"): Row(
        figures.draw_weights,
        {"weights": WEIGHTS, "queries": list("abcdef"), "keys": list("abcd")},
        {"weights": "heat", "queries": "free", "keys": "free", "ax": "free"},
        refused={"queries": [["a"], 3], "keys": [["a"], 3], "ax": [3, "ax"]},
    ),
    ("figures", "figure"): Row(
        figures.figure,
        {"fig": panel, "caption": SENTENCE, "alt": "Two points.", "name": "two-points"},
        {"fig": "figure", "caption": "text", "alt": "text or none", "name": "text or none"},
        made=("fig",),
        refused={"caption": ["$x_1$"], "alt": ["$x_1$"], "name": ["Two", "a b"]},
        allowed={"alt": [["a"]]},
    ),
    ("figures", "say"): Row(figures.say, {"text": SENTENCE}, {"text": "text"}),
    ("figures", "table"): Row(
        figures.table,
        {"columns": {"a": [1, 2]}, "caption": SENTENCE, "digits": 2},
        {"columns": "dict", "caption": "text or none", "digits": "free"},
        refused={"columns": [{"a": 3}, {"a": [1], "b": []}, {1: [1], "1": [2]}], "digits": [2.5, -1, True, "2", {"b": 1}]},
        called={"columns": "columns?|headings"},
    ),
    ("figures", "bind"): Row(
        figures.bind,
        {"share": 0.5},
        {"share": "number"},
        refused={"share": [None, True, [1], np.ones(2), np.ma.masked]},
    ),
    ("explorations", "explore"): Row(
        explorations.explore,
        {"draw": drawn, "caption": "At {n} it is even.", "alt": "A line to {n}.", "label": str, "n": [1, 2]},
        {"draw": "function", "caption": "text", "alt": "text or none", "label": "function or none", "n": "free"},
        refused={"n": [None, 3, "text", [], [1]], "draw": [lambda n: None], "caption": ["$x_1$", "{m}"]},
        called={"caption": "caption"},
        allowed={"caption": [None]},  # alt alone is the caption
    ),
    ("explorations", "explore_3d"): Row(
        explorations.explore_3d,
        {"still": panel, "scene": scene, "caption": SENTENCE, "alt": "A point."},
        {"still": "figure", "scene": "figure", "caption": "text", "alt": "text or none"},
        made=("still", "scene"),
        allowed={"caption": [None]},
    ),
    ("labs", "lab"): Row(
        labs.lab,
        {"name": "mask", "fig": panel, "caption": SENTENCE, "alt": "A line.", "data": {"scores": MATRIX}},
        {"name": "text", "fig": "figure", "caption": "text", "alt": "text or none", "data": "free"},
        made=("fig",),
        refused={"name": ["Mask", "a b"], "data": [3, [1], {"a": object()}]},
        allowed={"alt": [["a"]]},
        called={"data": "data|page"},
    ),
}

# ------------------------------------------------------------------------ trained models

ROWS |= {
    ("pretrained.encoder", "load_minilm"): Row(lambda: load_minilm.__doc__, {}, {}),  # no argument
    ("pretrained.decoder", "load_smollm"): Row(lambda: load_smollm.__doc__, {}, {}),
    ("pretrained.encoder", "encoder"): Row(
        encoder,
        {"params": small_encoder(rng()), "ids": [1, 2, 3], "skips": True, "mlp": True, "norm": True, "biases": True},
        {"params": "params", "ids": "ids", "skips": "switch", "mlp": "switch", "norm": "switch", "biases": "switch"}
        | {"frozen": "free"},
        positional=("params", "ids"),
        refused={"frozen": ["text", np.ones((2, 3, 4, 4)), np.full((2, 3, 3, 3), np.nan)]},
    ),
    ("pretrained.decoder", "decoder"): Row(
        decoder,
        {"params": small_decoder(rng()), "ids": [1, 2, 3], "skips": True, "mlp": True, "keep_weights": True}
        | {"allow": np.ones((3, 3), bool), "drop": np.zeros((3, 3), bool)},
        {"params": "params", "ids": "ids", "skips": "switch", "mlp": "switch", "allow": "mask", "drop": "mask"}
        | {"cache": "free", "keep_weights": "switch"},
        positional=("params", "ids"),
        refused={"cache": [3, "text", (1,)]},
        allowed={"ids": [np.ones(50, int)]},
    ),
    ("pretrained.decoder", "surprise"): Row(
        surprise,
        {"logits": MATRIX, "ids": np.array([0, 1, 2, 3, 0, 1])},
        {"logits": "matrix", "ids": "ids"},
        keeps=False,
    ),
}
