"""A block of attention and a gated MLP in JAX, as from_jax.py takes it."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).parent))
from weights import make_input, make_tensor

BATCH, TOKENS, WIDTH, HIDDEN, HEADS = 2, 64, 256, 512, 4


def normalize(x, gain):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * gain


def attend(weights, x):
    def split(y):
        return y.reshape(BATCH, TOKENS, HEADS, -1)

    with jax.named_scope("qkv"):
        q, k, v = jnp.split(x @ weights["qkv"], 3, axis=-1)
    with jax.named_scope("scores"):
        scores = jnp.einsum("bqhd,bkhd->bhqk", split(q), split(k)) / (WIDTH // HEADS) ** 0.5
    mask = jnp.tril(jnp.ones((TOKENS, TOKENS), bool))
    shares = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    with jax.named_scope("values"):
        y = jnp.einsum("bhqk,bkhd->bqhd", shares, split(v))
    with jax.named_scope("out"):
        return y.reshape(x.shape) @ weights["out"]


def feed_forward(weights, x):
    with jax.named_scope("up"):
        h = jax.nn.gelu(x @ weights["up"], approximate=False)
    with jax.named_scope("down"):
        return h @ weights["down"]


def forward(weights, x):
    with jax.named_scope("attention"):
        x = x + attend(weights["attention"], normalize(x, weights["attention"]["norm"]))
    with jax.named_scope("mlp"):
        return x + feed_forward(weights["mlp"], normalize(x, weights["mlp"]["norm"]))


SHAPES = {
    "attention": {"norm": (WIDTH,), "qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH)},
    "mlp": {"norm": (WIDTH,), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)},
}


def attention():
    weights = {layer: {name: make_tensor(f"{layer}.{name}", shape)
                       for name, shape in shapes.items()}
               for layer, shapes in SHAPES.items()}
    return forward, weights, (make_input("x", (BATCH, TOKENS, WIDTH), "f32"),)
