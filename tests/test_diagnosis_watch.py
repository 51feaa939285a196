"""watch(): the numbers are diagnose()'s, an alarm is raised once, and the training is the same."""

import numpy as np
import pytest
from drawn import gauss

from attn_utils import causal_mask, diagnose, softmax
from attn_utils.diagnosis.watch import watch
from attn_utils.training import fit


def drawn(sharp=1.0, n_layers=2, n_heads=4, T=8, causal=True, seed=0):
    """Weights as frameworks hand them out: (1, heads, T, T) for each layer."""
    hidden = 0 if not causal else np.where(causal_mask(T), 0, -np.inf)
    return [softmax(sharp * gauss(1, n_heads, T, T, seed=seed + i) + hidden) for i in range(n_layers)]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_numbers_are_those_of_diagnose(causal, seed):
    weights, states = drawn(causal=causal, seed=seed), list(gauss(3, 8, 16, seed=seed + 9))
    seen = watch(lambda model: (weights, states), every=1)
    seen(1, None)
    found = diagnose(weights, states)
    for name in ("entropy", "evenness_lost", "survives_typically", "sink"):
        means = [np.mean([head[name] for head in layer["heads"]]) for layer in found.layers]
        assert seen.numbers[name][0] == pytest.approx(means, rel=1e-5), name
    assert seen.numbers["rest"][0] == pytest.approx(found.states[-1]["rest"], rel=0.01)


def test_it_looks_at_a_sample_of_heads_and_of_steps():
    asked = []

    class Counted:
        shape = (1, 32, 6, 6)

        def __getitem__(self, index):
            return Head()

    class Head:
        shape = (32, 6, 6)

        def __getitem__(self, index):
            asked.append(index)
            return softmax(gauss(6, 6, seed=int(index)))

    seen = watch(lambda model: [Counted()], every=5, heads=3)
    for step in range(1, 11):
        seen(step, None)
    assert seen.steps == [1, 5, 10] and set(asked) == {0, 16, 31}
    assert seen.numbers["entropy"].shape == (3, 1) and np.isnan(seen.numbers["rest"]).all()


def test_entropy_collapse_is_raised_once_and_can_end_a_training():
    told = []
    seen = watch(lambda model: drawn(sharp=model), every=1, on_alarm=lambda step, words: told.append(words) or True)
    assert seen(1, 1.0) is False and not seen.alarms
    assert seen(2, 500.0) is True and len(told) == 2  # a sentence for each layer
    assert seen(3, 500.0) is False and len(told) == 2
    assert [step for step, _ in seen.alarms] == [2, 2] and "entropy collapse in layer 1" in told[0]
    assert "Step 2: entropy collapse in layer 1" in str(seen)


def test_a_sink_is_no_entropy_collapse():
    def sunk(model):
        scores = gauss(1, 2, 8, 8)
        scores[..., 0] += 40
        return [softmax(scores)]

    seen = watch(sunk, every=1)
    seen(1, None)
    assert not seen.alarms and seen.numbers["sink"][0, 0] > 0.99


def test_rank_collapse_is_seen_in_the_states():
    X = gauss(2, 8, 16)
    seen = watch(lambda size: (drawn(), [X[0], np.ones((8, 16)) + size * X[1]]), every=1)
    seen(1, 1.0)
    seen(2, 1e-3)
    assert len(seen.alarms) == 1 and seen.alarms[0][0] == 2 and "rank collapse" in seen.alarms[0][1]


def test_a_look_at_saturated_weights_knows_what_may_be_seen():
    """Weights that underflow to zero later are still measured against the keys of the first look."""
    seen = watch(lambda sharp: drawn(sharp=sharp), every=1)
    seen(1, 1.0)
    seen(2, 5000.0)
    assert seen.numbers["entropy"][1].max() < 0.05 and np.isfinite(seen.numbers["entropy"]).all()


def test_fit_calls_it_and_learns_the_same():
    from attn_utils.gradients import cross_entropy, rms_norm
    from attn_utils.vision_transformer import classifier, init_classifier

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 16, 4)).astype(np.float32), rng.integers(10, size=20)
    sizes = {"d_patch": 4, "n_tokens": 16, "n_classes": 10, "n_heads": 2, "d": 8, "d_ff": 16}
    params = init_classifier(rng, n_layers=2, **sizes)

    def train(on_step):
        def loss(params, X, y):
            return cross_entropy(classifier(params, X, norm=rms_norm)[0], y)

        return fit(loss, params, lambda rng: (X, y), 6, rng=rng, on_step=on_step, progress=False)[1]

    seen = watch(lambda params: classifier(params, X[:1], norm=rms_norm)[1], every=3)
    np.testing.assert_array_equal(train(seen), train(None))
    assert seen.steps == [1, 3, 6] and seen.numbers["entropy"].shape == (3, 2)


@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.03, 0.3])
def test_what_little_is_left_of_the_tokens_is_measured_well(size):
    X = np.ones((20, 32)) + size * gauss(20, 32)
    X[3] *= 1e4  # one massive token, which diagnose() leaves out as well
    seen = watch(lambda model: (drawn(T=20), [X]), every=1)
    seen(1, None)
    assert seen.numbers["rest"][0] == pytest.approx(diagnose(drawn(T=20), [X]).states[0]["rest"], rel=1e-3)


def test_a_look_decomposes_no_matrix(monkeypatch):
    """The threads of LAPACK took 0.2 s for one look on a machine that was busy training, where a look takes 2 ms."""
    for name in ("eigvalsh", "eigh", "svd"):
        monkeypatch.setattr(np.linalg, name, None)
    seen = watch(lambda model: (drawn(T=64), [gauss(64, 128)]), every=1)
    seen(1, None)
    assert 0 < seen.numbers["rest"][0] < 1


def test_tokens_of_zeros_are_no_number():
    seen = watch(lambda model: (drawn(), [np.zeros((8, 16))]), every=1)
    seen(1, None)
    assert np.isnan(seen.numbers["rest"]).all() and "rest" not in str(seen)


def test_before_the_first_look_it_says_so():
    seen = watch(lambda model: drawn(), every=7)
    assert "Nothing was seen yet" in str(seen) and seen.numbers["entropy"].shape == (0, 0)


@pytest.mark.parametrize("wrong, words", [
    ({"look": [1]}, "expected a function of the model"),
    ({"every": 0}, "every is 0, expected a whole number"),
    ({"every": 2.5}, "every is 2.5, expected a whole number"),
    ({"heads": 0}, "heads is 0"),
    ({"on_alarm": "stop"}, "expected a function of the step"),
])  # fmt: skip
def test_wrong_arguments_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        watch(**{"look": drawn} | wrong)


@pytest.mark.parametrize("given", [None, [None], 3.0])
def test_what_diagnose_refuses_is_refused(given):
    with pytest.raises(ValueError):
        watch(lambda model: given)(1, None)


@pytest.mark.reference
def test_a_loop_of_pytorch_is_watched(torch):
    """The example of the page "Diagnose your own model"."""
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    sample, optimizer = torch.randn(1, 10, 16), torch.optim.Adam(layer.parameters(), lr=1e-2)

    def look(layer):
        with torch.no_grad():
            return [layer(sample, sample, sample, average_attn_weights=False)[1]]

    seen = watch(look, every=2)
    for step in range(1, 7):
        X = torch.randn(8, 10, 16)
        loss = (layer(X, X, X)[0] - X.mean(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen(step, layer)
    assert seen.steps == [1, 2, 4, 6] and seen.numbers["entropy"].shape == (4, 1)
    assert not seen.alarms and (seen.numbers["entropy"] > 0.5).all()
