"""diagnose() on PyTorch models that are not in the corpus: other sizes, depths and activations, each with its truth."""

import numpy as np
import pytest

from attn_utils import diagnose


def encoder(torch, d, heads, layers, norm_first, activation="gelu", dropout=0.1):
    torch.manual_seed(11)
    layer = torch.nn.TransformerEncoderLayer(
        d, heads, 3 * d, dropout, activation=activation, batch_first=True, norm_first=norm_first
    )
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval()


def tokens(torch, batch, T, d):
    return torch.randn(batch, T, d, generator=torch.Generator().manual_seed(5))


def run(torch, model, X, **how):
    """Weights (batch, heads, T, T) of each layer, and the states, with gradients as they come."""
    weights, states = [], [X]

    def ask(module, args, kwargs):
        return args, kwargs | {"need_weights": True, "average_attn_weights": False}

    hooks = []
    for layer in model.layers:
        hooks.append(layer.self_attn.register_forward_pre_hook(ask, with_kwargs=True))
        hooks.append(layer.self_attn.register_forward_hook(lambda module, args, out: weights.append(out[1])))
        hooks.append(layer.register_forward_hook(lambda module, args, out: states.append(out)))
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        model(X, **how)
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
        for hook in hooks:
            hook.remove()
    return tuple(weights), states


def alarms(*given, **how):
    return sorted({finding.kind for finding in diagnose(*given, progress=False, **how).alarms})


@pytest.mark.reference
@pytest.mark.parametrize("d, heads, layers, T, batch", [(192, 12, 3, 40, 8), (320, 10, 9, 77, 2), (64, 4, 16, 200, 1),
                                                        (96, 4, 4, 5, 3)])  # fmt: skip
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_default_encoder_is_healthy(torch, d, heads, layers, T, batch, norm_first):
    weights, states = run(torch, encoder(torch, d, heads, layers, norm_first), tokens(torch, batch, T, d))
    assert alarms(weights, states) == alarms(weights) == []


@pytest.mark.reference
@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_half_precision_is_healthy(torch, kind):
    kind = getattr(torch, kind)
    assert alarms(*run(torch, encoder(torch, 192, 12, 3, False).to(kind), tokens(torch, 8, 40, 192).to(kind))) == []


@pytest.mark.reference
@pytest.mark.parametrize("left", [True, False])
def test_padding_is_healthy(torch, left):
    padded = torch.arange(40)[None] >= 40 - 4 * torch.arange(8)[:, None]  # (8, 40)
    padded = padded.flip(1) if left else padded
    given = run(torch, encoder(torch, 192, 12, 3, False), tokens(torch, 8, 40, 192), src_key_padding_mask=padded)
    assert alarms(*given) == alarms(*given, mask=(~padded).int()) == []


@pytest.mark.reference
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
def test_train_mode_is_dropout_and_nothing_else(torch, rate):
    model = encoder(torch, 192, 12, 3, False, dropout=rate).train()
    assert alarms(*run(torch, model, tokens(torch, 1, 12, 192))) == ["dropout"]


@pytest.mark.reference
def test_queries_times_fifty_are_saturated(torch):
    model = encoder(torch, 160, 8, 4, True)
    with torch.no_grad():
        for layer in model.layers:
            layer.self_attn.in_proj_weight[:160] *= 50
    weights, states = run(torch, model, tokens(torch, 8, 60, 160))
    assert alarms(weights, states) == alarms(weights) == ["saturated"]


@pytest.mark.reference
@pytest.mark.parametrize("skip", [True, False])
def test_twelve_layers_of_attention_need_the_skip(torch, skip):
    X, weights = tokens(torch, 3, 60, 160), []
    states = [X]
    for layer in encoder(torch, 160, 8, 12, False).layers:
        Y, A = layer.self_attn(X, X, X, average_attn_weights=False)
        X = X + Y if skip else Y
        weights, states = [*weights, A], [*states, X]
    assert alarms(tuple(weights), states) == ([] if skip else ["collapse", "uniform"])


@pytest.mark.reference
def test_the_average_over_heads_is_read_where_its_axes_are_clear(torch):
    X = tokens(torch, 4, 30, 96)
    weights = torch.nn.MultiheadAttention(96, 6, batch_first=True)(X, X, X)[1]  # (4, 30, 30)
    with pytest.raises(ValueError, match="axes='batch'"):
        diagnose(weights)
    found = diagnose(weights, axes="batch")
    assert len(found.sequences) == 4 and found.alarms == [] and np.isfinite(found.layers[0]["entropy"])
