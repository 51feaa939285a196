"""The weights that the page shows of two trained models, in 8 bits, against the models."""

import base64
import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

from attn_utils import diagnose
from attn_utils.pretrained import load_minilm, load_smollm

ROOT = Path(__file__).parents[1]
MODELS = {"minilm": load_minilm, "smollm": load_smollm}
MOST = 300_000  # bytes of the script with one sentence


def module(folder, name):
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def scripts():
    """Name -> what the script hands over, as the page reads it."""
    texts = module("book/_ext", "live_figures").head_scripts(ROOT / "book" / "labs" / "heads.npz")
    assert max(map(len, texts.values())) <= MOST
    found = {}
    for name, text in texts.items():
        said, content = re.fullmatch(r'abeHeads\.add\("([\w-]+)", (.*)\);\n', text).groups()
        assert said == name
        found[name] = json.loads(content)
    return found


def weights(scripts, name, number):
    """(tokens, weights (layers, heads, n, n)) out of the scripts."""
    model = scripts["contents"][name]
    tokens = model["sentences"][number - 1]["tokens"]
    bytes_ = np.frombuffer(base64.b64decode(scripts[f"{name}-{number}"]), np.uint8)
    n, A = len(tokens), np.zeros((model["layers"] * model["heads"], len(tokens), len(tokens)))
    A[:, np.tri(n, dtype=bool) if model["causal"] else np.ones((n, n), bool)] = bytes_.reshape(len(A), -1) / 255
    return tokens, A.reshape(model["layers"], model["heads"], n, n)


@pytest.mark.parametrize("name", MODELS)
def test_a_dozen_sentences_each_equal_the_model_to_eight_bits(name, scripts, trained_weights):
    model, listed = MODELS[name](), scripts["contents"][name]["sentences"]
    assert len(listed) == 12 and len({one["text"] for one in listed}) == 12
    for number, one in enumerate(listed, 1):
        tokens, A = weights(scripts, name, number)
        expected, exact = model.attend(one["text"])
        assert tokens == expected and A.shape == exact.shape and 0 <= one["word"] < len(tokens)
        assert np.abs(A - exact).max() < 1 / 255


@pytest.mark.parametrize("name", MODELS)
def test_how_alike_two_heads_are_is_the_mean_over_the_sentences(name, scripts):
    model = scripts["contents"][name]
    heads = model["layers"] * model["heads"]
    stored = np.frombuffer(base64.b64decode(scripts[f"{name}-alike"]), np.uint8) / 255
    pairs = np.triu_indices(heads, 1)
    assert stored.shape == pairs[0].shape
    for k in np.random.default_rng(0).choice(len(stored), 40, replace=False):
        shared = []
        for number in range(1, 13):
            A = weights(scripts, name, number)[1]
            A = A.reshape(heads, *A.shape[2:])[:, int(model["causal"]) :]  # (heads, rows, n)
            shared.append(np.minimum(A[pairs[0][k]], A[pairs[1][k]]).sum(axis=-1).mean())
        assert abs(stored[k] - np.mean(shared)) < 1 / 255


def test_the_tool_lists_the_sentences_that_are_stored(scripts):
    tool = module("tools", "make_heads")
    for name, texts in tool.SENTENCES.items():
        assert [(one["text"], one["word"]) for one in scripts["contents"][name]["sentences"]] == list(texts.items())


def test_a_diagnosis_keeps_its_pictures_only_when_asked():
    A = np.random.default_rng(0).dirichlet(np.ones(6), (2, 3, 6))  # (layers, heads, 6, 6)
    found = diagnose(A, axes="layers heads", pictures=64)
    assert "pictures" not in found.to_dict()
    pictures = json.loads(json.dumps(found.to_dict(pictures=True)))["pictures"]
    assert sorted(pictures) == ["1,1", "1,2", "1,3", "2,1", "2,2", "2,3"]
    np.testing.assert_allclose(pictures["2,3"], A[1, 2], atol=1e-4)
