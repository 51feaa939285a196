"""The page "Diagnose your own model": its code for frameworks does what it says, and the report that it links is there."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from drawn import gauss
from make_report import NOTEBOOK, REPORT, text

from attn_utils import diagnose, softmax

ROOT = Path(__file__).parents[1]
CELLS = json.loads(NOTEBOOK.read_text("utf8"))["cells"]
PROSE = "\n".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")
BLOCKS = re.findall(r"```python\n(.*?)```", PROSE, re.S)


def block(words):
    """The one block of code on the page that holds these words."""
    [found] = [one for one in BLOCKS if words in one]
    return found


def test_each_block_is_tried_here():
    tried = ("AutoModel", "nn.softmax", "found.report(", "(X, X, X, need_weights=True", "def look_inside", "def look(model)", "layer_weights(")
    assert sorted(BLOCKS) == sorted(map(block, tried))
    for one in BLOCKS:
        assert max(map(len, one.splitlines())) <= 88


class Jax:
    """An array as JAX has them: it is no NumPy array, and gives one where it is asked."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, index):
        return Jax(self.array[index])

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype)


def test_weights_of_jax():
    jax = SimpleNamespace(nn=SimpleNamespace(softmax=lambda scores, axis: Jax(softmax(scores, axis=axis))))
    names = {"jax": jax, "scores": gauss(2, 3, 8, 8), "diagnose": diagnose}
    exec(block("nn.softmax"), names)
    assert [layer["n_heads"] for layer in names["found"].layers] == [3, 3] and not names["found"].alarms


def test_long_contexts():
    seen = []

    def record(*given, **how):
        seen.append(diagnose(*given, **how))
        return seen[-1]

    Q, K = gauss(3, 40, 8), gauss(3, 40, 8, seed=1)
    names = {"diagnose": record, "layer_weights": lambda i: softmax(gauss(1, 3, 8, 8, seed=i)), "Q": Q, "K": K}
    exec(block("layer_weights("), names)
    assert [len(found.layers) for found in seen] == [32, 1] and seen[1].layers[0]["n_heads"] == 3
    assert seen[1].layers[0]["pattern"]["causal"] and not any(found.alarms for found in seen)


def test_one_line_writes_the_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(block("found.report("), {"found": diagnose(softmax(gauss(2, 3, 8, 8)), axes="layers heads")})
    assert "<title>My model</title>" in Path("report.html").read_text("utf8")


def test_the_command_on_the_page_is_the_command(tmp_path, monkeypatch):
    from attn_utils.diagnosis.command import main

    [line] = re.findall(r"```bash\n(.*?)\n```", PROSE, re.S)
    monkeypatch.chdir(tmp_path)
    np.savez("attention.npz", **{f"attention.{i}": softmax(gauss(1, 3, 8, 8, seed=i)) for i in range(2)})
    Path("tokens.json").write_text(json.dumps(list("abcdefgh")))
    name, *arguments = line.split()
    assert name == "attn-diagnose" and main(arguments) == 0 and Path("report.html").is_file()


def test_the_linked_report_is_of_the_text_on_the_page():
    """Made by tools/make_report.py; its numbers are those of one machine, its form is that of every report."""
    from bs4 import BeautifulSoup  # not in the environment of PyTorch

    page = BeautifulSoup(REPORT.read_text("utf8"), "html.parser")
    data = json.loads(page.find("script", id="data").string)
    assert f"../{REPORT.relative_to(ROOT).as_posix()}" in PROSE
    assert "".join(data["tokens"]) == text()
    assert [len(heads) for heads in data["layers"]] == [9] * 30 and len(data["pictures"]) == 270
    fresh = BeautifulSoup(diagnose(softmax(gauss(2, 3, 8, 8)), axes="layers heads").report(), "html.parser")
    for tag in ("style", "script:not([id])"):  # run tools/make_report.py after a change of these
        assert page.select_one(tag).string == fresh.select_one(tag).string
    assert REPORT.stat().st_size < 1_000_000


@pytest.mark.reference
def test_one_layer_of_pytorch(torch):
    layer = torch.nn.MultiheadAttention(16, 4, dropout=0.5, batch_first=True)
    names = {"layer": layer, "X": torch.randn(1, 10, 16), "diagnose": diagnose}
    exec(block("(X, X, X, need_weights=True"), names)
    found = names["found"]
    assert found.layers[0]["n_heads"] == 4 and len(found.states) == 1
    assert all(head["rows"] == "weights" for head in found.layers[0]["heads"])


@pytest.mark.reference
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_whole_model_of_pytorch(torch, norm_first):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=norm_first)
    encoder, X = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), torch.randn(1, 12, 32)
    names = {"torch": torch, "encoder": encoder, "X": X, "diagnose": diagnose}
    exec(block("def look_inside"), names)
    found = names["found"]
    assert [layer["n_heads"] for layer in found.layers] == [4] * 3 and len(found.states) == 4 and not found.alarms
    weights, states = names["look_inside"](encoder, X)
    torch.testing.assert_close(states[-1], encoder.eval()(X))
    assert weights[0].shape == (1, 4, 12, 12) and not any(one.self_attn._forward_hooks for one in encoder.layers)


@pytest.mark.reference
def test_a_loop_of_pytorch(torch, capsys):
    from attn_utils.diagnosis.watch import watch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    names = {"torch": torch, "encoder": model, "X": torch.randn(1, 6, 16), "diagnose": diagnose, "watch": watch,
             "model": model, "sample": torch.randn(1, 6, 16), "batches": [torch.randn(4, 6, 16) for _ in range(20)],
             "optimizer": torch.optim.Adam(model.parameters())}  # fmt: skip
    exec(block("def look_inside"), names)
    exec(block("def look(model)"), names)
    assert names["seen"].steps == [1, 10, 20] and names["seen"].numbers["entropy"].shape == (3, 2)
    assert "No alarm in 3 looks" in capsys.readouterr().out


@pytest.mark.reference
def test_weights_of_jax_itself(jax):
    scores = jax.random.normal(jax.random.key(0), (2, 3, 8, 8))
    names = {"jax": jax, "scores": scores, "diagnose": diagnose}
    exec(block("nn.softmax"), names)
    found = names["found"]
    assert [layer["n_heads"] for layer in found.layers] == [3, 3] and not found.alarms
    half = diagnose(names["weights"].astype(jax.numpy.bfloat16), axes="layers heads")
    assert abs(half.layers[0]["entropy"] - found.layers[0]["entropy"]) < 0.01 and not half.alarms


FAMILIES = {  # of transformers: (class of the settings, settings of a tiny model with random weights, causal)
    "bert": ("BertConfig", {"intermediate_size": 48}, False),
    "gpt2": ("GPT2Config", {}, True),
    "llama": ("LlamaConfig", {"intermediate_size": 48, "num_key_value_heads": 2}, True),
}


@pytest.fixture(params=FAMILIES)
def saved(request, transformers, torch, tmp_path):
    """(folder of a tiny model and its tokenizer, whether it is causal), as from_pretrained() reads it."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["[PAD]", "[UNK]", "A", "text", "of", "yours", "."]
    tokens = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokens.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokens, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(tmp_path)
    name, more, causal = FAMILIES[request.param]
    settings = getattr(transformers, name)(vocab_size=7, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
                                           max_position_embeddings=64, pad_token_id=0, **more)  # fmt: skip
    torch.manual_seed(0)
    transformers.AutoModel.from_config(settings).save_pretrained(tmp_path)
    return tmp_path, causal


def of_page(folder):
    return block("AutoModel").replace('"your/model"', repr(str(folder)))


@pytest.mark.reference
def test_hugging_face(saved):
    names = {"diagnose": diagnose}
    exec(of_page(saved[0]), names)
    found = names["found"]
    assert found.tokens == ["A", "text", "of", "yours", "."] and len(found.states) == 4 and not found.alarms
    assert [layer["n_heads"] for layer in found.layers] == [4] * 3 and found.pictures[1, 1].shape == (5, 5)
    assert [layer["pattern"]["causal"] for layer in found.layers] == [saved[1]] * 3


@pytest.mark.reference
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_batch_of_hugging_face(saved, side):
    names = {"diagnose": diagnose}
    exec(of_page(saved[0]), names)
    texts = ["A text of yours .", "text of text of text of yours yours . A text ."]
    inputs = names["tokenizer"](texts, return_tensors="pt", padding=True, padding_side=side)
    output = names["model"](**inputs, output_attentions=True, output_hidden_states=True)  # with gradients
    found = diagnose(output, mask=inputs["attention_mask"])
    assert len(found.sequences) == 2 and not found.alarms and any("7 padded tokens" in note for note in found.notes)
    assert all(layer["pattern"]["causal"] == saved[1] for one in found.sequences for layer in one.layers)


@pytest.mark.reference
def test_hugging_face_without_eager_attention_is_told_so(saved):
    code = of_page(saved[0]).replace(', attn_implementation="eager"', "")
    with pytest.raises(ValueError, match="attn_implementation='eager'"):
        exec(code, {"diagnose": diagnose})
