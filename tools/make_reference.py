"""Make tests/data/pretrained.json and .npz: what PyTorch and transformers find for texts that our passes are held to.

    python -m venv .venv-reference
    .venv-reference/bin/pip install torch==2.13.0 transformers==5.24.0 gguf==0.19.0 accelerate
    .venv-reference/bin/python tools/make_reference.py

It needs an environment of its own, because the book's has no PyTorch; the versions found are stored beside the
numbers. MiniLM is run in float64, by BertModel with eager attention, its tokens come from the tokenizer that is
written in Python (BertTokenizerLegacy). SmolLM2 is run in float32 (transformers' Llama computes norms and rotations in
float32 whatever it is told), loaded from the same GGUF file, tokenizer included. That tokenizer passes over the
file's entry "smollm", which asks for every digit to be split off first (llama.cpp does so), so this is done here.
"""

import json
import sys
import tempfile
import unicodedata
from pathlib import Path

import numpy as np
import torch
import transformers

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from attn_utils.fetch import MINILM, SMOLLM, fetch_files  # noqa: E402

PARAGRAPH = (
    "Every morning the old ferry crossed the river with a handful of passengers. The captain knew most of them by "
    "name; he greeted each one, counted the coins, and rang the bell twice. When fog lay on the water he steered by "
    "the sound of the mill, which never stopped, not even on Sundays. "
)
TEXTS = {  # run through the models
    "tired": "The animal didn't cross the street because it was too tired.",
    "accents": "Zoë's naïve façade cost 12,345.67 € in São Paulo, déjà vu!",
    "emoji": "I 💛 cats 🐈‍⬛ and 🇩🇪, don't you?! [MASK] <|im_start|>",
    "word": "attention",
    "long": PARAGRAPH + PARAGRAPH.upper() + PARAGRAPH[::-1],
}
TOKENIZED = [  # only cut into tokens
    "",
    " ",
    "\n\t",
    "a",
    "It was too tired.",
    "naïve café, Ångström, Łódź, Ærø, ñandú, Ǆ",
    "e\u0301 and \u00e9 are one letter",
    "2024, 3.1415, 1,000,000 and 0x1F; ½ ² ٣ Ⅷ",
    "Wait... what?! (Yes; no: maybe) [it's] \"quoted\" — 'single' \u2018curly\u2019 …",
    "don't can't won't I'll we've he'd you're",
    "😀😃 👩‍👩‍👧‍👦 🇫🇷 ✈️ ☃",
    "[CLS] a [SEP] b [MASK] [PAD] [UNK] [sep]",
    "<|im_start|>user\nHi<|im_end|><|endoftext|> <|im_start|> <|nothing|>",
    "注意力机制 まだ 한국어 тест Ελληνικά עברית العربية हिन्दी",
    "  two  spaces   and\ttabs\r\nlines\n\n\nend  ",
    "antidisestablishmentarianism supercalifragilisticexpialidocious",
    "x" * 120,
    "http://example.org/a_b?c=d&e=%20#f user@host.tld C++ C# /usr/bin",
    "zero\u200bwidth \u00a0 nbsp \ufeff bom \x00 nul \x07 bell \u00ad soft",
    "def f(x):\n    return x**2  # square\n",
    "UPPER lower MiXeD İstanbul straße ﬁligree",
]
ENTRIES = 1000  # kept of each large array; a fingerprint of the rest


def main():
    transformers.utils.logging.disable_progress_bar()  # that of loading GGUF files stays
    stored, notes = {}, {"versions": {p.__name__: p.__version__ for p in (torch, transformers)}, "texts": TEXTS}
    notes["minilm"], notes["smollm"] = minilm(stored), smollm(stored)
    folder = ROOT / "tests" / "data"
    folder.mkdir(exist_ok=True)
    (folder / "pretrained.json").write_text(json.dumps(notes) + "\n", "utf8")
    np.savez_compressed(folder / "pretrained.npz", **stored)


def keep(stored, name, array):
    """Some entries of an array, spread over it, and the norm of each matrix (its last two axes)."""
    array = np.asarray(array, np.float64)
    stored[f"{name}.entries"] = array.ravel()[places(array.size)].astype(np.float32)
    stored[f"{name}.norms"] = np.linalg.norm(array, axis=(-2, -1)).astype(np.float32)


def places(size):
    return np.arange(min(ENTRIES, size)) * 7919 % size  # tests/test_pretrained.py has the same line


def minilm(stored):
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel
    from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

    weights, vocabulary = fetch_files(MINILM)
    config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    config._attn_implementation = "eager"
    model = BertModel(config).eval()
    missing = model.load_state_dict(load_file(weights), strict=False)
    assert not missing.missing_keys and missing.unexpected_keys in ([], ["embeddings.position_ids"]), missing
    model = model.double()
    words = json.loads(Path(vocabulary).read_text("utf8"))["model"]["vocab"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "vocab.txt").write_text("\n".join(sorted(words, key=words.get)), "utf8")
        tokenizer = BertTokenizerLegacy(f"{folder}/vocab.txt")
    for name, text in TEXTS.items():
        ids = torch.tensor([tokenizer(text).input_ids])
        with torch.no_grad():
            out = model(ids, output_attentions=True, output_hidden_states=True)
        keep(stored, f"minilm.{name}.weights", torch.cat(out.attentions).numpy())
        keep(stored, f"minilm.{name}.hidden", torch.cat(out.hidden_states).numpy())
    return {"ids": [[text, tokenizer(text).input_ids] for text in (*TEXTS.values(), *TOKENIZED)]}


def smollm(stored):
    from transformers import AutoTokenizer, LlamaForCausalLM

    [path] = fetch_files(SMOLLM)
    place = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    model = LlamaForCausalLM.from_pretrained(**place, dtype=torch.float32, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(**place)
    notes = {"ids": [[text, in_pieces(tokenizer, text)] for text in (*TEXTS.values(), *TOKENIZED)]}
    for name, text in TEXTS.items():
        ids = torch.tensor([in_pieces(tokenizer, text)])
        with torch.no_grad():
            out = model(ids, output_attentions=True, output_hidden_states=True)
        keep(stored, f"smollm.{name}.weights", torch.cat(out.attentions).numpy())
        keep(stored, f"smollm.{name}.hidden", torch.cat(out.hidden_states[:-1]).numpy())  # the last one is normed
        keep(stored, f"smollm.{name}.logits", out.logits[0].numpy())
        if name == "tired":  # the second half may not look at the first token
            n = ids.shape[1]
            mask = torch.full((1, 1, n, n), float("-inf")).triu(1)
            mask[..., n // 2 :, 0] = float("-inf")
            with torch.no_grad():
                out = model(ids, attention_mask=mask, output_attentions=True)
            keep(stored, "smollm.hidden_token.weights", torch.cat(out.attentions).numpy())
            keep(stored, "smollm.hidden_token.logits", out.logits[0].numpy())
    start = "Once upon a time there was a little dog who"
    ids = torch.tensor([tokenizer(start).input_ids])
    written = model.generate(ids, max_new_tokens=24, do_sample=False, use_cache=True, repetition_penalty=1.0)
    notes["generated"] = {"start": start, "ids": written[0, ids.shape[1] :].tolist()}
    return notes


def in_pieces(tokenizer, text):
    """The ids of a text of which every digit, in the sense of Unicode's categories N, is cut out first."""
    pieces = [""]
    for character in text:
        if unicodedata.category(character).startswith("N"):
            pieces += [character, ""]
        else:
            pieces[-1] += character
    return [i for piece in pieces for i in tokenizer(piece).input_ids]


if __name__ == "__main__":
    main()
