"""Functions for from-jax.test."""

import jax
import jax.numpy as jnp

WEIGHTS = {"up": jnp.ones((64, 128)), "down": jnp.ones((128, 64))}


def mlp(weights, x):
    with jax.named_scope("up"):
        h = jax.nn.relu(x @ weights["up"])
    with jax.named_scope("down"):
        return h @ weights["down"]


def backward():
    def gradients(weights, x, dy):
        return jax.vjp(mlp, weights, x)[1](dy)

    return gradients, WEIGHTS, (jnp.ones((32, 64)), jnp.ones((32, 64)))


def sort():
    return lambda weights, x: jnp.sort(x @ weights["up"], axis=None), WEIGHTS, (jnp.ones((32, 64)),)
