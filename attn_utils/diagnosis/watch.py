"""watch(): a light look at attention while a model trains: a few numbers a step, from a sample of heads.

    seen = watch(lambda params: classifier(params, X[:1])[1], every=10)      # a function that returns weights
    params, losses = fit(loss, params, batch, steps, rng=rng, on_step=seen)  # chapter 5's loop: seen(step, params)
    print(seen)

In a loop of PyTorch the same object is called once a step, `seen(step, model)`; under torch.no_grad() the function
runs the model on one short sequence that stays the same.
"""

import numpy as np

from attn_utils.diagnosis.findings import THRESHOLDS
from attn_utils.diagnosis.patterns import recognize
from attn_utils.diagnosis.reading import read
from attn_utils.diagnosis.verdicts import is_saturated
from attn_utils.inputs import whole_number

NUMBERS = ("entropy", "evenness_lost", "survives_typically", "sink", "rest")
PASSES = 100  # of the power iteration, at most
SHARE = 0.5  # of a layer's sampled heads: above it, the layer is called saturated


def watch(look, every=10, heads=4, on_alarm=None):
    """An object to call once a step, as seen(step, model), that keeps a few numbers of the model's attention.

    look      look(model) returns the weights of one short sequence, (weights, states), or an output with .attentions,
              as diagnose() takes them; it is called at every so many steps alone
    every     look at one step of so many; the steps between cost nothing
    heads     how many heads of each layer are looked at, evenly spaced
    on_alarm  called as on_alarm(step, sentence) when an alarm is raised first; returning True ends a training of fit()

    Returns a Watch. Its .steps and .numbers hold what was seen: numbers["entropy"] is (looks, layers), and so are
    evenness_lost, survives_typically and sink, means over the sampled heads as diagnose() defines them; "rest" is that
    of the last state, (looks,), NaN where no states were returned. Its .alarms are (step, sentence), each raised once.
    Raises ValueError for a number that is none, and whatever diagnose() refuses in what look returns.
    """
    if not callable(look):
        raise ValueError(f"look is {look!r}, expected a function of the model that returns its weights.")
    if on_alarm is not None and not callable(on_alarm):
        raise ValueError(f"on_alarm is {on_alarm!r}, expected a function of the step and a sentence, or None.")
    return Watch(look, whole_number(every, "every"), whole_number(heads, "heads"), on_alarm)


class Watch:
    """What watch() returns; call it at each step, and read .steps, .numbers and .alarms."""

    def __init__(self, look, every, heads, on_alarm=None):
        self.look, self.every, self.heads, self.on_alarm = look, every, heads, on_alarm
        self.steps, self.alarms, self._rows, self._raised = [], [], [], set()
        self._patterns = {}  # what a layer's queries may see is recognized once and kept

    def __call__(self, step, model):
        """Look at the model where the step is one of `every`; returns True where on_alarm asked for an end."""
        if step % self.every and step != 1:
            return False
        found = read(self._shown(model))
        row = [_numbers(self._sample(layer), self._seen(i, layer)) for i, layer in enumerate(found.layers)]
        rest = _rest(found.states[-1](0)) if found.states else np.nan
        self.steps.append(step)
        self._rows.append((np.array(row), rest))
        return self._judge(step, np.array(row), rest)

    @property
    def numbers(self):
        """A dict of arrays (looks, layers), and "rest", (looks,)."""
        if not self._rows:
            return {name: np.empty((0, 0)) for name in NUMBERS[:-1]} | {"rest": np.empty(0)}
        table = np.array([row for row, _ in self._rows])  # (looks, layers, numbers)
        found = {name: table[:, :, i] for i, name in enumerate(NUMBERS[:-1])}
        return found | {"rest": np.array([rest for _, rest in self._rows])}

    def __str__(self):
        if not self.steps:
            return f"Nothing was seen yet: it is called as seen(step, model), and looks every {self.every} steps."
        lines = [f"- Step {step}: {sentence}" for step, sentence in self.alarms]
        lines = lines or [f"- No alarm in {len(self.steps)} looks, at steps {self.steps[0]} to {self.steps[-1]}."]
        last = {name: values[-1] for name, values in self.numbers.items() if np.isfinite(values[-1]).any()}
        last.pop("evenness_lost")
        words = ", ".join(f"{name} {_from_to(values)}" for name, values in last.items())
        return "\n".join([*lines, f"- At step {self.steps[-1]}, {words}."])

    __repr__ = __str__

    def _shown(self, model):
        """What look returns, in a form that read() knows; a pair is (weights, states)."""
        shown = self.look(model)
        if isinstance(shown, tuple) and len(shown) == 2 and isinstance(shown[1], (list, tuple)):
            return {"weights": shown[0], "states": list(shown[1])}
        return shown

    def _sample(self, layer):
        """(sampled heads, n_queries, n_keys) of the first sequence."""
        chosen = np.unique(np.linspace(0, layer.n_heads - 1, min(self.heads, layer.n_heads)).round().astype(int))
        return np.stack([layer.head(0, head) for head in chosen])

    def _seen(self, number, layer):
        """(n_queries,) how many keys each query of a layer may see; recognized at the first look."""
        if (number, layer.shape) not in self._patterns:
            A = self._sample(layer)
            pattern = recognize((A != 0).any(0), A[0])
            see = np.zeros(layer.shape[0], int)
            see[pattern.queries] = pattern.may_see
            self._patterns[number, layer.shape] = see
        return self._patterns[number, layer.shape]

    def _judge(self, step, row, rest):
        """Raise each kind of alarm once for each layer."""
        end = False
        for kind, where, sentence in _alarms(row, rest):
            if (kind, where) not in self._raised:
                self._raised.add((kind, where))
                self.alarms.append((step, sentence))
                end |= self.on_alarm is not None and self.on_alarm(step, sentence) is True
        return end


def _from_to(values):
    low, high = f"{np.nanmin(values):.2g}", f"{np.nanmax(values):.2g}"
    return low if low == high else f"{low} to {high}"


def _numbers(A, may_see):
    """The numbers of one layer, means over the sampled heads (measures.py defines them), and the saturated share."""
    A = A.astype(np.float64)[:, may_see > 0]  # (heads, n, n_keys)
    many = may_see[may_see > 0]
    most = np.log(np.maximum(many, 1))  # (n,)
    entropy = -(A * np.log(np.maximum(A, 1e-300))).sum(-1)  # (heads, n)
    choice = many > 1
    share = (entropy[:, choice] / most[choice]).clip(0, 1).mean(1) if choice.any() else np.full(len(A), np.nan)
    lost = np.maximum(most - entropy, 0)[:, choice].mean() if choice.any() else np.nan
    columns = A.mean(1)  # (heads, n_keys)
    n = min(A.shape[1:])
    left = (A**2).sum((1, 2)) - A.shape[1] * (columns**2).sum(-1)
    survives = np.sqrt(left.clip(0) / (n - 1)).mean() if n > 1 else np.nan
    sink, expected = columns.max(-1), float((1 / many).mean())
    heads = [{"entropy": e, "sink": s, "sink_expected": expected} for e, s in zip(share, sink, strict=True)]
    return share.mean(), lost, survives, sink.mean(), np.mean([is_saturated(head) for head in heads])


def _rest(X):
    """The share of the tokens, each scaled to length 1, outside the direction that they share most.

    By power iteration without BLAS, whose threads take ten times as long on a machine that is busy training. Exact to
    a percent, and to more digits where little is left.
    """
    X = X.astype(np.float64)
    size = np.linalg.norm(X, axis=-1)
    light = (size > 0) & (size <= 10 * np.median(size))
    if not light.any():
        return np.nan
    X = X[light] / size[light, None]  # (tokens, d)
    way, share = X[0] + X.mean(0), 0.0
    for _ in range(PASSES):
        along = np.einsum("td,d->t", X, way)
        before, share = share, float((along**2).mean() / (way**2).sum())
        if share - before < 1e-6 * share:
            break
        way = np.einsum("td,t->d", X, along)
    away = X - np.outer(np.einsum("td,d->t", X, way), way) / (way**2).sum()
    return float(np.sqrt((away**2).sum(-1).mean()))


def _alarms(row, rest):
    """(kind, layer, sentence) for each threshold that is passed."""
    entropy, *_, saturated = row.T  # (layers,) each
    for i in np.flatnonzero(saturated > SHARE):
        yield "saturated", int(i), (
            f"entropy collapse in layer {i + 1}: {saturated[i]:.0%} of the sampled heads look at one key per query "
            f"(mean entropy {entropy[i]:.2g}, bound {THRESHOLDS['saturated'].bound:g}). Scale the scores, normalize "
            "queries and keys, or lower the rate."
        )
    bound = THRESHOLDS["rest"].bound
    if rest < bound:
        yield "collapse", -1, (
            f"rank collapse at the last state: {rest:.2g} of the tokens lies outside one direction, below "
            f"{bound:g}."
        )
