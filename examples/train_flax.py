"""Trains a model of flax NNX with products in FP8, on all devices that JAX sees: the batch is cut between them.

usage: train_flax.py [--recipe RECIPE] [--steps N] [--devices N]

Prints the loss of bf16's products and of the recipe's side by side. Without a GPU, --devices makes as many of the CPU.
Needs jax, iree-base-compiler, flax and optax.
"""

import argparse
import os

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--recipe", default="rowwise", help="one without a state: current, rowwise, block, mxfp8, nvfp4")
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--devices", type=int, default=0, help="devices to make of the CPU")
options = parser.parse_args()
if options.devices:
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={options.devices}"
    os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402
from flax import nnx  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec  # noqa: E402

import fp8.jax  # noqa: E402

WIDTH, CHARACTERS, LENGTH, BATCH = 128, 32, 32, 16


class Block(nnx.Module):
    """Mixes a character with those before it, and passes it through an MLP."""

    def __init__(self, dot, rngs):
        make = lambda inner, outer: nnx.Linear(  # noqa: E731
            inner, outer, use_bias=False, dot_general=dot, dtype=jnp.bfloat16, rngs=rngs)
        self.norm, self.mix = nnx.RMSNorm(WIDTH, rngs=rngs), make(2 * WIDTH, WIDTH)
        self.up, self.down = make(WIDTH, 4 * WIDTH), make(4 * WIDTH, WIDTH)

    def __call__(self, x):
        y = self.norm(x)
        before = jnp.pad(y, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        x = x + self.mix(jnp.concatenate([y, before], -1))
        return x + self.down(nnx.silu(self.up(x)))


class Model(nnx.Module):
    def __init__(self, dot, rngs):
        self.embed = nnx.Embed(CHARACTERS, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(dot, rngs) for _ in range(2)])
        self.head = nnx.Linear(WIDTH, CHARACTERS, rngs=rngs)  # Stays as it is.

    def __call__(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def get_loss(model, tokens):
    return optax.softmax_cross_entropy_with_integer_labels(model(tokens[:, :-1]), tokens[:, 1:]).mean()


@nnx.jit
def step(model, optimizer, tokens):
    loss, gradients = nnx.value_and_grad(get_loss)(model, tokens)
    optimizer.update(model, gradients)
    return loss


def make_batch(key):
    """Sequences of which each character follows from the two before it."""
    first = jax.random.randint(key, (BATCH, 2), 0, CHARACTERS)

    def follow(pair, _):
        return (pair[1], (3 * pair[0] + pair[1]) % CHARACTERS), pair[0]
    _, tokens = jax.lax.scan(follow, (first[:, 0], first[:, 1]), length=LENGTH + 1)
    return tokens.T


def main():
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    rows, everywhere = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("data",), ()))
    dot = fp8.jax.DotGeneral(options.recipe)
    runs = {}
    for name, product in ("bf16", jax.lax.dot_general), (options.recipe, dot):
        model = Model(product, nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adamw(3e-3), wrt=nnx.Param)
        for module in model, optimizer:
            nnx.update(module, jax.device_put(nnx.state(module), everywhere))
        runs[name] = model, optimizer
    print(f"{jax.device_count()} devices of {jax.default_backend()}")
    print("".join(f"{name:>10}" for name in ("step", *runs)))
    for number in range(options.steps):
        tokens = jax.device_put(make_batch(jax.random.key(number)), rows)
        losses = [float(step(*run, tokens)) for run in runs.values()]
        if number % 10 == 0 or number == options.steps - 1:
            print(f"{number:>10}" + "".join(f"{loss:>10.4f}" for loss in losses))
    dot.products.explain()


main()
