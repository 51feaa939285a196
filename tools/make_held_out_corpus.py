"""Make attn_utils/data/diagnosis_held_out.json.gz: models that no threshold of diagnose() was drawn on.

    make reference-test                                       # builds .venv-reference, which has PyTorch
    .venv-reference/bin/python tools/make_held_out_corpus.py  # some minutes

Other families than those of tools/make_diagnosis_corpus.py, with other sizes and seeds: rotary positions and grouped
heads (as in Llama), linear biases (ALiBi), learned relative biases without a scale, with an encoder and a decoder (T5),
registers (vision), and small models trained for long. Each comes as it is, and broken in a way that is known. A truth
is how the model was made, not what diagnose() says of it; where they differ, mend the kind of mistake, and draw a new
set with other seeds before you believe the table again.
"""

import sys
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from attn_utils import diagnose  # noqa: E402
from attn_utils.diagnosis.corpus import HELD_OUT, pack, store  # noqa: E402

CASES = []


def case(name, group, truth, notes, *given, **how):
    """Measure one model and keep the numbers."""
    found = diagnose(*given, progress=False, sequence=0, **how)
    CASES.append(pack(name, group, truth, notes, found))
    alarms = sorted({finding.kind for finding in found.alarms})
    missed = [words for words in notes if words not in str(found)]
    wrong = set(alarms) != set(truth) or missed
    print(f"{'WRONG ' if wrong else '':6}{name:52} alarms {alarms}, expected {truth} {missed or ''}", flush=True)


# ------------------------------------------------------------------------- one block for all families


def rotate(x):
    """Rotary positions on (batch, heads, T, d_head)."""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * 10_000.0 ** (-torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def slopes(heads, n, m):
    """ALiBi's biases."""
    far = torch.arange(m - n, m)[:, None] - torch.arange(m)
    return -far.abs() * 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)[:, None, None]


class Attention(nn.Module):
    def __init__(self, d, heads, groups=None, position=None, scale=True, sink=False):
        super().__init__()
        self.heads, self.groups, self.position, self.sink = heads, groups or heads, position, sink
        self.d_head = d // heads
        self.q, self.o = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.k, self.v = (nn.Linear(d, self.groups * self.d_head, bias=False) for _ in range(2))
        self.scale = self.d_head**-0.5 if scale else 1.0
        if position == "t5":
            self.bias = nn.Embedding(65, heads)

    def forward(self, x, context=None, see=None):
        context = x if context is None else context
        q, k, v = (f(z).unflatten(-1, (-1, self.d_head)).transpose(1, 2)
                   for f, z in ((self.q, x), (self.k, context), (self.v, context)))  # fmt: skip
        if self.position == "rope":
            q, k = rotate(q), rotate(k)
        k, v = (z.repeat_interleave(self.heads // self.groups, 1) for z in (k, v))
        scores = q @ k.transpose(-1, -2) * self.scale
        n, m = scores.shape[-2:]
        if self.position == "alibi":
            scores = scores + slopes(self.heads, n, m)
        if self.position == "t5":
            far = (torch.arange(m) - torch.arange(m - n, m)[:, None]).clamp(-32, 32) + 32
            scores = scores + self.bias(far).permute(2, 0, 1)
        if see is not None:
            scores = scores.masked_fill(~see, torch.finfo(scores.dtype).min)
        if self.sink:  # a logit of its own, as gpt-oss has: rows sum to less than one
            scores = torch.cat([scores, torch.zeros_like(scores[..., :1])], -1)
        weights = scores.softmax(-1)[..., :m]
        return self.o((weights @ v).transpose(1, 2).flatten(2)), weights


class Block(nn.Module):
    def __init__(self, d, cross=False, skip=True, **how):
        super().__init__()
        self.skip = skip
        self.one, self.two, self.three = nn.RMSNorm(d), nn.RMSNorm(d), nn.RMSNorm(d)
        self.attention = Attention(d, **how)
        self.cross = Attention(d, how["heads"], scale=how.get("scale", True)) if cross else None
        self.gate, self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x, see=None, context=None):
        out, weights = self.attention(self.one(x), see=see)
        x, across = out + (x if self.skip else 0), None
        if self.cross is not None:
            out, across = self.cross(self.three(x), context)
            x = x + out
        y = self.two(x)
        return self.down(nn.functional.silu(self.gate(y)) * self.up(y)) + (x if self.skip else 0), weights, across


class Model(nn.Module):
    """A stack of blocks over tokens of `kinds`."""

    def __init__(self, seed, kinds=120, d=96, layers=6, std=None, **how):
        super().__init__()
        torch.manual_seed(seed)
        self.embed = nn.Embedding(kinds, d)
        self.blocks = nn.ModuleList(Block(d, **how) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(d), nn.Linear(d, kinds, bias=False)
        for weight in self.parameters():
            if std and weight.ndim > 1:
                nn.init.normal_(weight, std=std)

    def walk(self, x, see=None, context=None):
        """(last state, weights, states, weights across)."""
        weights, states, across = [], [x], []
        for block in self.blocks:
            x, A, B = block(x, see, context)
            weights, states, across = [*weights, A], [*states, x], [*across, B]
        return x, weights, states, across

    def forward(self, ids, see):
        return self.head(self.norm(self.walk(self.embed(ids), see)[0]))


def causal(T):
    return torch.ones(T, T, dtype=torch.bool).tril()


def looked(model, ids, see=None):
    _, weights, states, _ = model.walk(model.embed(ids), see)
    return weights, states


def ids_of(seed, T, kinds=120, batch=1):
    return torch.randint(kinds, (batch, T), generator=torch.Generator().manual_seed(seed))


# ------------------------------------------------------------------------- fresh models


def of_families():
    for seed, (d, heads, groups, layers, T) in enumerate(
        ((96, 6, 2, 6, 70), (160, 10, 5, 12, 190), (288, 9, 3, 20, 33), (64, 4, 1, 3, 400)), 100
    ):
        size = f"{layers} layers, d = {d}, T = {T}"
        how = {"d": d, "heads": heads, "groups": groups, "layers": layers, "position": "rope"}
        for std in (None, 0.02):
            model = Model(seed, std=std, **how)
            start = "N(0, .02²)" if std else "PyTorch's start"
            case(f"rotary, {start}, {size}", "rotary", [], ["Causal"], *looked(model, ids_of(seed, T), causal(T)))
        how["position"] = "alibi"
        case(f"linear biases, {size}", "linear biases", [], ["Causal"],
             *looked(Model(seed, **how), ids_of(seed, T), causal(T)))  # fmt: skip
    for seed, (d, heads, layers, T, keys) in enumerate(((96, 6, 4, 25, 60), (192, 12, 8, 120, 90)), 200):
        how = {"d": d, "heads": heads, "layers": layers, "position": "t5", "scale": False}
        std = (d * d // heads) ** -0.25 / d**0.25  # scores of about unit spread without a scale
        encoder, decoder = Model(seed, std=std, **how), Model(seed, std=std, cross=True, **how)
        context, weights, states, _ = encoder.walk(encoder.embed(ids_of(seed, keys)))
        size = f"{layers} layers, d = {d}"
        case(f"relative biases, encoder, {size}", "encoder and decoder", [], [], weights, states)
        _, weights, states, across = decoder.walk(decoder.embed(ids_of(seed + 1, T)), causal(T), context)
        case(f"relative biases, decoder, {size}", "encoder and decoder", [], ["Causal"], weights, states)
        case(f"relative biases, decoder to encoder, {size}", "encoder and decoder", [], ["cross-attention"], across)


def of_masks():
    model = Model(300, d=128, heads=8, groups=2, layers=5, position="rope")
    for T, real in ((48, 31), (130, 90)):
        ids, keys = ids_of(T, T), torch.arange(T)
        for side, there in (("left", keys >= T - real), ("right", keys < real)):
            name = f"rotary, padded on the {side}, {real} of {T}"
            case(name, "masks", [], [f"on the {side}"], *looked(model, ids, causal(T) & there))
        near = causal(T) & (keys[:, None] - keys < 17)
        case(f"rotary, window of 17, T = {T}", "masks", [], ["window"], *looked(model, ids, near))
        case(f"rotary, prefix of 9, T = {T}", "masks", [], ["prefix"], *looked(model, ids, causal(T) | (keys < 9)))
    sink = Model(301, d=128, heads=8, layers=5, position="rope", sink=True)
    case("a sink logit, T = 75", "masks", [], ["sink logit"], *looked(sink, ids_of(3, 75), causal(75)))
    for kind in (torch.bfloat16, torch.float16):
        weights, states = looked(model, ids_of(4, 90), causal(90) & (torch.arange(90) >= 22))
        given = [A.to(kind) for A in weights], [X.to(kind) for X in states]
        case(f"rotary, {str(kind).split('.')[1]}, padded on the left", "masks", [], ["on the left"], *given)


# ------------------------------------------------------------------------- broken ones


def of_broken():
    for seed, (d, heads, layers, T) in enumerate(((96, 6, 10, 70), (192, 12, 16, 150), (64, 4, 24, 40)), 400):
        how = {"d": d, "heads": heads, "layers": layers, "position": "rope"}
        ids, size = ids_of(seed, T), f"{layers} layers, d = {d}, T = {T}"
        for position, truth in (("rope", ["collapse"]), (None, ["collapse", "uniform"])):
            # rotary positions turn even equal tokens apart before they are compared: their weights are not uniform
            cut = Model(seed, **how | {"position": position, "skip": False})
            case(f"no skips, {position or 'no'} positions, {size}", "collapsed", truth, [], *looked(cut, ids))
        same = Model(seed, **how)
        same.embed.weight.data[:] = same.embed.weight[:1] + 1e-3 * same.embed.weight
        case(f"one embedding for all, {size}", "collapsed", ["collapse"], [], *looked(same, ids))
        sharp = Model(seed, **how)
        for block in sharp.blocks:
            block.attention.q.weight.data *= 60
        case(f"queries x 60, {size}", "saturated", ["saturated"], [], *looked(sharp, ids))
        case(f"queries x 60, causal, {size}", "saturated", ["saturated"], [], *looked(sharp, ids, causal(T)))
        weights, states = looked(Model(seed, **how), ids, causal(T))
        dropped = [nn.functional.dropout(A, 0.15) for A in weights]
        case(f"dropout of .15, {size}", "not weights", ["dropout"], [], dropped, states)
        logits = [torch.randn(1, heads, T, T, generator=torch.Generator().manual_seed(i)) for i in range(2)]
        case(f"scores, {size}", "not weights", ["rows"], [], logits)
        case(f"sigmoids, {size}", "not weights", ["rows"], [], [score.sigmoid() for score in logits])
        X = torch.linalg.qr(torch.randn(T, T, dtype=torch.float64))[0] * torch.logspace(0, -8, T, dtype=torch.float64)
        case(f"directions from 1 to 10^-8, {size}", "ill-conditioned", ["condition"], [], weights, [X] * (layers + 1))


# ------------------------------------------------------------------------- trained for long


def train(model, batch, see, steps, rate=2e-3):
    """AdamW on cross entropy; batch(generator) gives (ids, targets), -100 where there is none. The last loss."""
    generator, step = torch.Generator().manual_seed(1), torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.1)
    for _ in range(steps):
        ids, targets = batch(generator)
        with torch.enable_grad():
            loss = nn.functional.cross_entropy(model(ids, see).flatten(0, 1), targets.flatten())
            step.zero_grad()
            loss.backward()
            step.step()
    return loss.item()


def repeated(generator, T=24, kinds=40):
    """Random tokens, twice: the second half can be copied from the first by an induction head."""
    ids = torch.randint(kinds, (32, T), generator=generator).repeat(1, 2)
    targets = ids.roll(-1, 1)
    targets[:, : T - 1] = targets[:, -1] = -100
    return ids, targets


def sums(generator, p=31):
    """a, b, = : (a + b) mod p."""
    a, b = torch.randint(p, (2, 128), generator=generator)
    ids = torch.stack([a, b, torch.full_like(a, p)], 1)
    targets = torch.full_like(ids, -100)
    targets[:, -1] = (a + b) % p
    return ids, targets


def of_training():
    for name, seed, batch, T, how, steps in (
        ("copying", 500, repeated, 48, {"kinds": 40, "d": 64, "layers": 2, "heads": 4, "position": "rope"}, 1500),
        ("copying", 501, repeated, 48, {"kinds": 40, "d": 64, "layers": 4, "heads": 2, "position": "alibi"}, 1500),
        ("sums", 502, sums, 3, {"kinds": 32, "d": 96, "layers": 2, "heads": 4, "position": "rope"}, 3000),
    ):
        model = Model(seed, **how)
        loss = train(model, batch, causal(T), steps)
        ids = batch(torch.Generator().manual_seed(9))[0][:1]
        kind = "linear biases" if how["position"] == "alibi" else "rotary"
        case(f"{name}, {kind}, {steps} steps, loss {loss:.2g}", "trained", [], ["Causal"],
             *looked(model, ids, causal(T)))  # fmt: skip


def of_digits(steps=300):
    """A vision model with a class token and four registers."""
    from attn_utils.tasks import digits_as_patches

    (X, y), (test, _) = (tuple(map(torch.tensor, part)) for part in digits_as_patches())
    X, test = X.float(), test.float()
    for seed, registers in ((600, 4), (601, 0)):
        model = Model(seed, kinds=10, d=64, layers=5, heads=4)
        patch, more = nn.Linear(X.shape[-1], 64), nn.Parameter(torch.randn(1 + registers, 64) * 0.02)
        place = nn.Parameter(torch.randn(X.shape[1], 64) * 0.02)

        def start(images, patch=patch, more=more, place=place):
            return torch.cat([more.expand(len(images), -1, -1), patch(images) + place], 1)

        parts = [*model.parameters(), *patch.parameters(), more, place]
        step, generator = torch.optim.AdamW(parts, lr=1e-3), torch.Generator().manual_seed(2)
        for done in range(steps + 1):
            if done in (0, steps):
                _, weights, states, _ = model.walk(start(test[:1]))
                case(f"digits, {registers} registers, after {done} steps", "vision", [], [], weights, states)
            rows = torch.randint(len(X), (64,), generator=generator)
            with torch.enable_grad():
                last = model.walk(start(X[rows]))[0]
                loss = nn.functional.cross_entropy(model.head(model.norm(last[:, 0])), y[rows])
                step.zero_grad()
                loss.backward()
                step.step()
        print(f"      loss {loss.item():.2g}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.no_grad():
        of_families()
        of_masks()
        of_broken()
        of_training()
        of_digits()
    store(CASES, torch.__version__, HELD_OUT)
    print(f"{len(CASES)} cases, {HELD_OUT.stat().st_size / 1e3:.0f} KB in {HELD_OUT.relative_to(ROOT)}")
