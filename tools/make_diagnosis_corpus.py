"""Make attn_utils/data/diagnosis.json.gz: what diagnose() measures on models whose state is known, to calibrate it on.

    make reference-test                                        # builds .venv-reference, which has PyTorch
    .venv-reference/bin/python tools/make_diagnosis_corpus.py  # a few minutes

Every case has a group and a truth: the kinds of alarm that diagnose() has to raise ([] for healthy models), and the
notes that it has to make. Stored are the numbers that verdicts hang on, not the weights: tests/test_diagnosis_corpus.py
judges them again, whatever the thresholds are by then.
"""

import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from attn_utils import diagnose  # noqa: E402
from attn_utils.diagnosis.corpus import STORED, pack, store  # noqa: E402
from attn_utils.pretrained import load_minilm, load_smollm  # noqa: E402

TEXTS = (
    "Every morning the old ferry crossed the river with a handful of passengers. The captain knew most of them by "
    "name; he greeted each one, counted the coins, and rang the bell twice. When fog lay on the water he steered by "
    "the sound of the mill, which never stopped, not even on Sundays.",
    "The animal didn't cross the street because it was too tired.",
    "def mean(numbers):\n    total = 0\n    for number in numbers:\n        total += number\n    return total / 2",
    "Dear Maria, thank you for the photographs.",
)
SIZES = [(d, T) for d in (128, 256, 512, 1024) for T in (16, 128, 512) if d * T <= 2**18]
CASES = []


def case(name, group, truth, notes, *given, **how):
    """Measure one model and keep the numbers."""
    found = diagnose(*given, progress=False, sequence=0, **how)
    CASES.append(pack(name, group, truth, notes, found))
    alarms = sorted({finding.kind for finding in found.alarms})
    print(f"{'' if set(alarms) == set(truth) else 'WRONG ':6}{name:48} alarms {alarms}, expected {truth}", flush=True)


# ------------------------------------------------------------------------- PyTorch's own layers


def encoder(d, norm_first, layers=6, heads=8, dropout=0.1, seed=0):
    """PyTorch's nn.TransformerEncoder as it is by default."""
    torch.manual_seed(seed)
    layer = torch.nn.TransformerEncoderLayer(d, heads, 4 * d, dropout, batch_first=True, norm_first=norm_first)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval()


def watch(model, X, **how):
    """Weights (1, heads, T, T) of each layer, and the states, of an encoder; by hooks, as a user would."""
    weights, states, hooks = [], [X], []

    def ask(module, args, kwargs):
        return args, kwargs | {"need_weights": True, "average_attn_weights": False}

    for layer in model.layers:
        hooks.append(layer.self_attn.register_forward_pre_hook(ask, with_kwargs=True))
        hooks.append(layer.self_attn.register_forward_hook(lambda module, args, out: weights.append(out[1])))
        hooks.append(layer.register_forward_hook(lambda module, args, out: states.append(out)))
    torch.backends.mha.set_fastpath_enabled(False)
    model(X, **how)
    for hook in hooks:
        hook.remove()
    return weights, states


def without_skip(model, X, mlp=False):
    """The same encoder with no skip around attention, and with no feed-forward part, or one that has its skip."""
    weights, states = [], [X]
    for layer in model.layers:
        X, A = layer.self_attn(X, X, X, need_weights=True, average_attn_weights=False)
        X = layer.norm1(X)
        X = layer.norm2(X + layer._ff_block(X)) if mlp else X
        weights, states = [*weights, A], [*states, X]
    return weights, states


def tokens(d, T, seed=1):
    return torch.randn(1, T, d, generator=torch.Generator().manual_seed(seed))


def of_pytorch():
    for norm_first in (True, False):
        kind = "pre-LN" if norm_first else "post-LN"
        for d, T in SIZES:
            case(f"{kind} encoder, d = {d}, T = {T}", "healthy", [], [], *watch(encoder(d, norm_first), tokens(d, T)))
    for d, layers in ((128, 12), (128, 24), (128, 48), (256, 24)):
        given = watch(encoder(d, True, layers), tokens(d, 128))
        case(f"pre-LN encoder, {layers} layers, d = {d}", "healthy", [], [], *given)
    case("post-LN encoder, 12 layers", "healthy", [], [], *watch(encoder(128, False, 12), tokens(128, 128)))
    given = watch(encoder(128, False, 48), tokens(128, 128))
    case("post-LN encoder, one layer 48 times", "collapsed", ["collapse", "uniform"], [], *given)
    of_no_skip()


def of_no_skip():
    """What goes wrong: tokens without a skip, tokens that are alike, scores that are too large."""
    for d, T in ((128, 16), (128, 128), (512, 128), (256, 512)):
        given = without_skip(encoder(d, False, 2), tokens(d, T))
        case(f"no skip, 2 layers, d = {d}, T = {T}", "collapsed", ["collapse"], [], *given)
        for layers in (4, 12):
            given = without_skip(encoder(d, False, layers), tokens(d, T))
            case(f"no skip, {layers} layers, d = {d}, T = {T}", "collapsed", ["collapse", "uniform"], [], *given)
        given = without_skip(encoder(d, False, 12), tokens(d, T), mlp=True)
        case(f"no skip around attention, d = {d}, T = {T}", "collapsed", ["collapse", "uniform"], [], *given)
    for d in (128, 512):
        model, same = encoder(d, True), tokens(d, 1).expand(1, 64, d) + 1e-3 * tokens(d, 64)
        case(f"tokens all alike, d = {d}", "collapsed", ["collapse", "uniform"], [], *watch(model, same))
        for layer in model.layers:
            layer.self_attn.in_proj_weight.data[:d] *= 100
        given = watch(model, tokens(d, 64))
        case(f"queries x 100, d = {d}", "saturated", ["saturated"], [], *given)


def variants_of_pytorch():
    """Padding, dropout and half precision change no verdict; train mode is named."""
    for T, real in ((64, 16), (128, 100)):
        hidden = (torch.arange(T) >= real)[None]
        given = watch(encoder(128, True), tokens(128, T), src_key_padding_mask=hidden)
        case(f"right padding, {real} of {T} tokens", "padded", [], ["on the right"], *given)
    for T in (64, 128):
        causal = torch.nn.Transformer.generate_square_subsequent_mask(T)
        given = watch(encoder(128, True), tokens(128, T), mask=causal)
        case(f"causal encoder, T = {T}", "healthy", [], ["Causal"], *given)
        near = (torch.arange(T)[:, None] - torch.arange(T)).abs() > 16
        given = watch(encoder(128, True), tokens(128, T), mask=near)
        case(f"window of 16, T = {T}", "windowed", [], ["window"], *given)
        given = watch(encoder(128, True).train(), tokens(128, T))
        case(f"train mode, T = {T}", "dropout", ["dropout"], [], *given)
        for kind in (torch.bfloat16, torch.float16):
            weights, states = watch(encoder(128, True), tokens(128, T))
            given = [A.to(kind) for A in weights], [X.to(kind) for X in states]
            case(f"{str(kind).split('.')[1]}, T = {T}", "half precision", [], [], *given)


# ------------------------------------------------------------------------- trained


class Letters(torch.nn.Module):
    """A small model of GPT's kind over letters: pre-LN, causal, learned positions."""

    def __init__(self, kinds, d=128, layers=4, heads=4, T=128):
        super().__init__()
        self.embed, self.position = torch.nn.Embedding(kinds, d), torch.nn.Embedding(T, d)
        layer = torch.nn.TransformerEncoderLayer(d, heads, 4 * d, 0.0, batch_first=True, norm_first=True)
        self.body = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = torch.nn.Linear(d, kinds)
        self.mask = torch.nn.Transformer.generate_square_subsequent_mask(T)

    def start(self, ids):
        return self.embed(ids) + self.position(torch.arange(ids.shape[1]))

    def forward(self, ids):
        n = ids.shape[1]
        return self.head(self.body(self.start(ids), mask=self.mask[:n, :n], is_causal=True))


def of_start_of_gpt():
    """Fresh weights as GPT-2 draws them, N(0, .02^2): nearly uniform attention in a small model, and healthy."""
    for d in (64, 128, 256):
        torch.manual_seed(0)
        model = Letters(90, d=d)
        for weight in model.parameters():
            if weight.ndim > 1:
                torch.nn.init.normal_(weight, std=0.02)
        ids = torch.randint(90, (1, 128))
        given = watch(model.body, model.start(ids), mask=model.mask)
        case(f"GPT-2's start, d = {d}", "healthy", [], ["Causal"], *given)


def of_letters(steps=400, T=128):
    """A GPT-like model, trained on a text that stays the same, at the start, and after so many steps."""
    text = (ROOT / "LICENSE-TEXT").read_text("utf8")
    kinds = sorted(set(text))
    ids = torch.tensor([kinds.index(letter) for letter in text])
    torch.manual_seed(0)
    model = Letters(len(kinds))
    step = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for done in range(steps + 1):
        if done in (0, steps // 4, steps):
            sample = ids[1000 : 1000 + T][None]
            given = watch(model.body, model.start(sample), mask=model.mask)
            case(f"GPT-like, after {done} steps", "healthy", [], ["Causal"], *given)
        starts = torch.randint(len(ids) - T - 1, (16,))
        batch = torch.stack([ids[start : start + T + 1] for start in starts])
        loss = torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        step.zero_grad()
        loss.backward()
        step.step()
    print(f"      loss {loss.item():.2f} nats per letter")


def of_chapter_5():
    """Vision Transformers in miniature, trained on the digits as chapter 5 does."""
    from attn_utils.gradients import cross_entropy, rms_norm
    from attn_utils.tasks import digits_as_patches
    from attn_utils.training import fit
    from attn_utils.transformer import transformer
    from attn_utils.vision_transformer import classifier, embed_patches, init_classifier

    (train_X, train_y), (test_X, _) = digits_as_patches()
    sizes = {"n_tokens": train_X.shape[1], "d_patch": train_X.shape[2], "n_classes": 10}
    for layers, heads in ((2, 1), (4, 1), (4, 2)):
        params = init_classifier(np.random.default_rng(0), n_layers=layers, n_heads=heads, d=16, d_ff=32, **sizes)

        def loss(params, images, labels):
            return cross_entropy(classifier(params, images, norm=rms_norm)[0], labels)

        def batch(rng):
            i = rng.integers(len(train_y), size=32)
            return train_X[i], train_y[i]

        def walk(params, X, layers=layers):
            states, weights = [embed_patches(params, X)], []
            for i in range(layers):
                layer = {"0" + name[1:]: W for name, W in params.items() if name[0] == str(i)}
                X, (A,) = transformer(layer, states[-1], norm=rms_norm)
                states, weights = [*states, X], [*weights, A]
            return weights, states

        case(f"chapter 5, {layers} layers of {heads}, fresh", "healthy", [], [], *walk(params, test_X[0]))
        params, _ = fit(loss, params, batch, 600, rng=np.random.default_rng(1), lr=0.01, progress=False)
        case(f"chapter 5, {layers} layers of {heads}, trained", "healthy", [], [], *walk(params, test_X[0]))


def of_pretrained():
    for name, load, notes in (("MiniLM", load_minilm, []), ("SmolLM2", load_smollm, ["Causal", "Attention sink"])):
        model = load()
        for text in TEXTS:
            run = model.run(text)
            case(f"{name}, {len(run.tokens)} tokens", "healthy", [], notes, run)
            half = tuple(torch.tensor(run.weights[:, None]).bfloat16())
            states = tuple(torch.tensor(run.hidden[:, None]).bfloat16())
            case(f"{name}, {len(run.tokens)} tokens, bfloat16", "half precision", [], notes, half, states)


# ------------------------------------------------------------------------- drawn


def softmax(scores):
    return torch.softmax(torch.as_tensor(scores), -1)


def drawn():
    rng = np.random.default_rng(0)
    for T in (16, 64, 256, 512):
        case(f"uniform weights, T = {T}", "collapsed", ["uniform"], [], torch.full((1, T, T), 1 / T))
        scores = rng.normal(size=(1, 8, T, T))
        case(f"scores x 1/100, T = {T}", "collapsed", ["uniform"], [], (softmax(0.01 * scores),))
        case(f"scores x 1000, T = {T}", "saturated", ["saturated"], [], (softmax(1000 * scores),))
        case(f"unit scores, T = {T}", "healthy", [], [], (softmax(scores),), tokens(64, T))
        X = tokens(64, T)
        for mass in (0.5, 0.9):
            A = (1 - mass) * softmax(scores)
            A[..., 0] += mass
            case(f"{mass:.0%} on token 1, T = {T}", "sinks", [], ["Attention sink"], (A,), [X, X + A[0, 0].float() @ X])


if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.no_grad():
        of_pytorch()
        variants_of_pytorch()
        of_start_of_gpt()
        drawn()
        of_pretrained()
        of_chapter_5()
    of_letters()
    store(CASES, torch.__version__)
    print(f"{len(CASES)} cases, {STORED.stat().st_size / 1e3:.0f} KB in {STORED.relative_to(ROOT)}")
