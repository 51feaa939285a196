"""An encoder and a decoder of a few numbers, for tests that compute them another way, or hand them what is wrong."""


def small_encoder(rng, layers=2, heads=3, d=6, d_head=4, d_ff=5, words=11, longest=7):
    shapes = {"W_Q": (heads, d, d_head), "b_Q": (heads, 1, d_head), "W_K": (heads, d, d_head), "b_K": (heads, 1, d_head)}
    shapes |= {"W_V": (heads, d, d_head), "b_V": (heads, 1, d_head), "W_O": (heads, d_head, d), "b_O": (d,)}
    shapes |= {"W_1": (d, d_ff), "b_1": (d_ff,), "W_2": (d_ff, d), "b_2": (d,)}
    shapes |= {f"{part}.{name}": (d,) for part in ("attention", "mlp") for name in ("gain", "shift")}
    params = {f"{i}.{name}": rng.normal(size=shape) for i in range(layers) for name, shape in shapes.items()}
    params |= {"embed.W": rng.normal(size=(words, d)), "embed.position": rng.normal(size=(longest, d))}
    return params | {"embed.sentence": rng.normal(size=(2, d)), "embed.gain": rng.normal(size=d), "embed.shift": rng.normal(size=d)}


def small_decoder(rng, layers=2, heads=4, shared=2, d=6, d_head=4, d_ff=5, words=11):
    shapes = {"W_Q": (heads, d, d_head), "W_K": (heads // shared, d, d_head), "W_V": (heads // shared, d, d_head)}
    shapes |= {"W_O": (heads, d_head, d), "attention.gain": (d,), "mlp.gain": (d,)}
    shapes |= {"W_gate": (d, d_ff), "W_1": (d, d_ff), "W_2": (d_ff, d)}
    params = {f"{i}.{name}": rng.normal(size=shape) for i in range(layers) for name, shape in shapes.items()}
    return params | {"embed.W": rng.normal(size=(words, d)), "final.gain": rng.normal(size=d)}
