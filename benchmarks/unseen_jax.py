"""Models and functions of JAX that nobody here wrote, compiled whole by fp8.jax beside jax.jit: do they run, and are they right?

flax (linen and NNX), haiku and equinox, steps of optax, and what JAX has of loops, branches, convolutions and odd extents. On the CPU. It
ends with 1 where one crashes or differs by more than roundings. Libraries that are not there are left out, and named.

usage: unseen_jax.py [--names GLOBS] [--recipes NAMES] [--out FILE]
"""

import argparse
import fnmatch
import importlib
import json
import sys
import time
import traceback

import jax
import jax.numpy as jnp
import numpy as np

import fp8
import fp8.jax

CASES, MISSING = {}, set()
WIDTH, ROWS, LENGTH = 48, 5, 13
# Errors of results in FP8, and in high precision, where an order of sums is all that differs.
BOUND, EXACT = 0.15, 0.02


def add(function):
    """A function without arguments that returns one to compile, and its arguments."""
    CASES[function.__name__] = function
    return function


def need(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        MISSING.add(name)
        raise


def draw(*sizes, seed=0, dtype=jnp.float32):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(sizes), dtype)


def make_step(apply, optimizer):
    """Gradients and an update of optax in one function."""
    optax = need("optax")

    def step(weights, state, x, y):
        loss, gradients = jax.value_and_grad(lambda w: ((apply(w, x) - y) ** 2).mean())(weights)
        updates, state = optimizer.update(gradients, state, weights)
        return loss, optax.apply_updates(weights, updates), state
    return step


def make_linen(model, x, optimizer=None, **options):
    optax = need("optax")
    weights = model.init(jax.random.key(0), x, **options)
    optimizer = optimizer or optax.adamw(1e-3)

    def apply(weights, x):
        y = model.apply(weights, x, **options)
        return y[0] if isinstance(y, tuple) else y
    y = apply(weights, x)
    return make_step(apply, optimizer), (weights, optimizer.init(weights), x, draw(*y.shape, seed=1).astype(y.dtype))


@add
def linen_mlp():
    nn = need("flax.linen")
    return make_linen(nn.Sequential([nn.Dense(97), nn.gelu, nn.LayerNorm(), nn.Dense(WIDTH)]), draw(ROWS, WIDTH))


@add
def linen_bf16():
    nn = need("flax.linen")
    return make_linen(nn.Sequential([nn.Dense(96, dtype=jnp.bfloat16), nn.silu, nn.Dense(WIDTH, dtype=jnp.bfloat16)]),
                      draw(ROWS, WIDTH))


@add
def linen_attention():
    nn = need("flax.linen")
    return make_linen(nn.MultiHeadDotProductAttention(num_heads=3, qkv_features=WIDTH), draw(2, LENGTH, WIDTH))


@add
def linen_convolutions():
    nn = need("flax.linen")
    return make_linen(nn.Sequential([nn.Conv(7, (3, 3)), nn.relu, lambda x: nn.avg_pool(x, (2, 2), (2, 2)),
                                     nn.GroupNorm(num_groups=7), nn.Conv(5, (1, 1), strides=2), lambda x: x.reshape(len(x), -1),
                                     nn.Dense(11)]), draw(2, 13, 11, 3))


@add
def linen_lstm():
    nn = need("flax.linen")
    return make_linen(nn.RNN(nn.LSTMCell(features=WIDTH)), draw(2, LENGTH, WIDTH))


@add
def linen_remat_scan():
    """Layers of one kind, scanned, each computed again in the backward."""
    nn = need("flax.linen")

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(2 * WIDTH)(nn.RMSNorm()(x)))), None
    scanned = nn.scan(nn.remat(Layer), variable_axes={"params": 0}, split_rngs={"params": True}, length=3)()
    weights = scanned.init(jax.random.key(0), draw(ROWS, WIDTH), None)
    optimizer = need("optax").sgd(1e-2, momentum=0.9)
    step = make_step(lambda w, x: scanned.apply(w, x, None)[0], optimizer)
    return step, (weights, optimizer.init(weights), draw(ROWS, WIDTH), draw(ROWS, WIDTH, seed=1))


def make_nnx(model, x, optimizer):
    nnx = need("flax.nnx")
    graph, weights = nnx.split(model)
    weights = nnx.to_pure_dict(weights)

    def apply(weights, x):
        state = nnx.state(model)
        nnx.replace_by_pure_dict(state, weights)
        return nnx.merge(graph, state)(x)
    y = apply(weights, x)
    return make_step(apply, optimizer), (weights, optimizer.init(weights), x, draw(*y.shape, seed=1))


@add
def nnx_mlp():
    nnx, optax = need("flax.nnx"), need("optax")

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.up, self.down = nnx.Linear(WIDTH, 131, rngs=rngs), nnx.Linear(131, WIDTH, rngs=rngs)
            self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)

        def __call__(self, x):
            return x + self.down(nnx.swish(self.up(self.norm(x))))
    return make_nnx(Net(nnx.Rngs(0)), draw(7, WIDTH), optax.lion(1e-3))


@add
def nnx_attention():
    nnx, optax = need("flax.nnx"), need("optax")
    model = nnx.MultiHeadAttention(num_heads=2, in_features=WIDTH, decode=False, rngs=nnx.Rngs(0))
    return make_nnx(model, draw(1, LENGTH, WIDTH), optax.chain(optax.clip_by_global_norm(1.0), optax.adafactor(1e-2)))


def make_haiku(build, x, optimizer):
    haiku = need("haiku")
    transformed = haiku.without_apply_rng(haiku.transform(build))
    weights = transformed.init(jax.random.key(0), x)
    y = transformed.apply(weights, x)
    return make_step(transformed.apply, optimizer), (weights, optimizer.init(weights), x, draw(*y.shape, seed=1))


@add
def haiku_mlp():
    hk, optax = need("haiku"), need("optax")
    return make_haiku(lambda x: hk.nets.MLP([73, 1, WIDTH])(x), draw(ROWS, WIDTH), optax.lamb(1e-2))


@add
def haiku_lstm():
    hk, optax = need("haiku"), need("optax")

    def build(x):
        cell = hk.LSTM(WIDTH)
        return hk.dynamic_unroll(cell, x, cell.initial_state(x.shape[1]))[0]
    return make_haiku(build, draw(LENGTH, 3, WIDTH), optax.rmsprop(1e-3))


@add
def haiku_attention():
    hk, optax = need("haiku"), need("optax")

    def build(x):
        mask = jnp.tril(jnp.ones((1, 1, LENGTH, LENGTH)))
        return hk.MultiHeadAttention(3, 16, w_init=hk.initializers.VarianceScaling())(x, x, x, mask)
    return make_haiku(build, draw(2, LENGTH, WIDTH), optax.adabelief(1e-3))


@add
def haiku_convolutions():
    hk, optax = need("haiku"), need("optax")
    return make_haiku(lambda x: hk.Linear(9)(hk.Flatten()(jax.nn.relu(hk.Conv2DTranspose(5, 3, 2)(
        jax.nn.relu(hk.DepthwiseConv2D(2, 3)(x)))))), draw(2, 7, 5, 3), optax.sgd(1e-3))


def make_equinox(model, x, optimizer, call=None):
    eqx = need("equinox")
    weights, rest = eqx.partition(model, eqx.is_inexact_array)
    call = call or (lambda model, x: jax.vmap(model)(x))

    def apply(weights, x):
        return call(eqx.combine(weights, rest), x)
    y = apply(weights, x)
    return make_step(apply, optimizer), (weights, optimizer.init(weights), x, draw(*y.shape, seed=1))


@add
def equinox_mlp():
    """A vmap of vectors."""
    eqx, optax = need("equinox"), need("optax")
    return make_equinox(eqx.nn.MLP(WIDTH, 17, 61, 2, key=jax.random.key(0)), draw(ROWS, WIDTH), optax.adam(1e-3))


@add
def equinox_gru():
    eqx, optax = need("equinox"), need("optax")

    def call(cell, x):
        def run(sequence):
            return jax.lax.scan(lambda state, each: (cell(each, state), None), jnp.zeros(WIDTH), sequence)[0]
        return jax.vmap(run)(x)
    return make_equinox(eqx.nn.GRUCell(WIDTH, WIDTH, key=jax.random.key(0)), draw(3, LENGTH, WIDTH), optax.nadam(1e-3), call)


@add
def equinox_attention():
    eqx, optax = need("equinox"), need("optax")
    model = eqx.nn.MultiheadAttention(3, WIDTH, key=jax.random.key(0))
    return make_equinox(model, draw(2, LENGTH, WIDTH), optax.adamw(1e-3), lambda m, x: jax.vmap(lambda s: m(s, s, s))(x))


@add
def equinox_convolutions():
    eqx, optax = need("equinox"), need("optax")
    model = eqx.nn.Sequential([eqx.nn.Conv2d(3, 7, 3, key=jax.random.key(0)), eqx.nn.Lambda(jax.nn.relu),
                               eqx.nn.MaxPool2d(2, 2), eqx.nn.Lambda(jnp.ravel), eqx.nn.Linear(7 * 4 * 3, 5, key=jax.random.key(1))])
    return make_equinox(model, draw(2, 3, 10, 9), optax.sgd(1e-2))


def make_function(function, *arguments):
    return function, arguments


def _w(*sizes):
    return draw(*sizes, seed=3) * 0.1


@add
def while_loop():
    return make_function(lambda w, x: jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.tanh(s[1] @ w)), (0, x))[1],
                         _w(WIDTH, WIDTH), draw(ROWS, WIDTH))


@add
def conditional():
    return make_function(lambda w, x, flag: jax.lax.cond(flag, lambda: x @ w, lambda: x @ w.T), _w(WIDTH, WIDTH),
                         draw(ROWS, WIDTH), jnp.asarray(True))


@add
def switch():
    return make_function(lambda w, x, place: jax.lax.switch(place, [lambda y: y @ w, lambda y: y + 1, lambda y: y * 0], x),
                         _w(WIDTH, WIDTH), draw(ROWS, WIDTH), jnp.asarray(0))


@add
def einsum_of_four():
    return make_function(lambda w, x, v: jnp.einsum("bqhd,bkhd,bkhe->bqhe", x, x, v) @ w, _w(16, 8), draw(2, 7, 3, 5),
                         draw(2, 7, 3, 16))


@add
def tensordot():
    return make_function(lambda w, x: jnp.tensordot(x, w, axes=((1, 3), (2, 0))), _w(6, 11, 5), draw(2, 5, 7, 6))


@add
def vector_products():
    return make_function(lambda w, x: (w @ x, jnp.vdot(x, x), jnp.outer(x, x) @ w.T), _w(7, 19),
                         draw(19))


@add
def kernel_of_distances():
    def function(w, x):
        squares = (x ** 2).sum(-1)
        return jnp.exp(-(squares[:, None] + (w ** 2).sum(-1) - 2 * x @ w.T))
    return make_function(function, _w(23, WIDTH), _w(ROWS, WIDTH))


@add
def embeddings():
    def function(w, ids):
        x = w["table"][ids]
        logits = x @ w["table"].T
        return jax.nn.log_softmax(logits)[jnp.arange(len(ids)), ids].mean()
    return make_function(jax.value_and_grad(function), {"table": _w(101, WIDTH)}, jnp.arange(7))


@add
def cache_update():
    def function(w, cache, x, place):
        cache = jax.lax.dynamic_update_slice(cache, x @ w, (place, 0))
        return cache, jax.nn.softmax(x @ cache.T) @ cache
    return make_function(function, _w(WIDTH, WIDTH), draw(17, WIDTH), draw(1, WIDTH), jnp.asarray(4))


@add
def experts_by_one_hot():
    def function(w, x):
        gates = jax.nn.softmax(x @ w["router"])
        chosen = jax.nn.one_hot(jnp.argmax(gates, -1), 4)
        return jnp.einsum("te,td,edf->tf", chosen, x, w["experts"])
    return make_function(function, {"router": _w(WIDTH, 4), "experts": _w(4, WIDTH, 32)}, draw(11, WIDTH))


@add
def no_rows():
    return make_function(lambda w, x: jax.nn.relu(x @ w), _w(WIDTH, 32), draw(0, WIDTH))


@add
def no_terms():
    return make_function(lambda w, x: x @ w + 1, _w(0, 32), draw(ROWS, 0))


@add
def ones():
    return make_function(lambda w, x: x @ w, _w(1, 1), draw(1, 1))


@add
def primes():
    return make_function(lambda w, x: jnp.tanh(x @ w) @ w.T, _w(127, 61), draw(31, 127))


@add
def half_and_mixed():
    return make_function(lambda w, x: (x.astype(jnp.float16) @ w.astype(jnp.float16)).astype(jnp.bfloat16) @ w.T.astype(jnp.bfloat16),
                         _w(WIDTH, 64), draw(ROWS, WIDTH))


@add
def preferred_type():
    return make_function(lambda w, x: jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32),
                         _w(WIDTH, 40).astype(jnp.bfloat16), draw(ROWS, WIDTH, dtype=jnp.bfloat16))


@add
def custom_gradient():
    @jax.custom_vjp
    def clamp(x):
        return x
    clamp.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))
    return make_function(jax.value_and_grad(lambda w, x: (clamp(x @ w) ** 2).sum()), _w(WIDTH, 24), draw(ROWS, WIDTH))


@add
def dilated_convolution():
    def function(w, x):
        return jax.lax.conv_general_dilated(x, w, (1, 2), ((1, 1), (2, 0)), rhs_dilation=(2, 1), feature_group_count=2,
                                            dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return make_function(function, _w(3, 3, 4, 6), draw(2, 9, 8, 8))


@add
def logsumexp_loss():
    return make_function(jax.value_and_grad(lambda w, x: jax.nn.logsumexp(x @ w, axis=-1).mean()), _w(WIDTH, 37), draw(ROWS, WIDTH))


@add
def random_dropout():
    def function(w, x):
        keep = jax.random.bernoulli(jax.random.key(3), 0.5, x.shape)
        return jnp.where(keep, x, 0) @ w
    return make_function(function, _w(WIDTH, 16), draw(ROWS, WIDTH))


@add
def cumulative_sum():
    return make_function(lambda w, x: jnp.cumsum(x @ w, axis=0), _w(WIDTH, 16), draw(ROWS, WIDTH))


@add
def segments():
    return make_function(lambda w, x, ids: jax.ops.segment_sum(x @ w, ids, 3), _w(WIDTH, 16), draw(ROWS, WIDTH),
                         jnp.asarray([0, 0, 1, 2, 2]))


@add
def largest():
    return make_function(lambda w, x: jax.lax.top_k(x @ w, 3), _w(WIDTH, 16), draw(ROWS, WIDTH))


@add
def sorted_rows():
    return make_function(lambda w, x: jnp.sort(x @ w, axis=-1), _w(WIDTH, 16), draw(ROWS, WIDTH))


@add
def fourier():
    return make_function(lambda w, x: jnp.abs(jnp.fft.rfft(x @ w)), _w(WIDTH, 16), draw(ROWS, WIDTH))


@add
def inverse():
    return make_function(lambda w, x: jnp.linalg.solve(w.T @ w + jnp.eye(16), x), _w(16, 16),
                         draw(16, 3))


@add
def scanned_state_space():
    """A linear recurrence by an associative scan."""
    def function(w, x):
        u = x @ w["b"]
        a = jnp.broadcast_to(jax.nn.sigmoid(w["a"]), u.shape)
        return jax.lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, u))[1] @ w["c"]
    return make_function(function, {"a": _w(24), "b": _w(WIDTH, 24), "c": _w(24, WIDTH)}, draw(LENGTH, WIDTH))


def compare(recipe, make):
    function, arguments = make()
    want = jax.jit(function)(*arguments)
    compiled = fp8.jax.compile(function, recipe, target="cpu", opt_level=0)
    got = compiled(*arguments)
    if jax.tree.structure(got) != jax.tree.structure(want):
        return {"error": float("inf")}
    if [each.shape for each in jax.tree.leaves(got)] != [each.shape for each in jax.tree.leaves(want)]:
        return {"error": float("inf")}
    # A tree is one vector: of zeros an optimizer makes the signs of gradients, which roundings turn.
    results = zip(*((tree if isinstance(tree, tuple) else (tree,)) for tree in (want, got)))
    errors = [find_error(*(flatten(tree) for tree in pair)) for pair in results]
    bound = BOUND if recipe != "none" else EXACT
    return {"error": max(errors), "is_right": bool(max(errors) < bound)}


def flatten(tree):
    leaves = [np.asarray(leaf).astype(np.float64).ravel() for leaf in jax.tree.leaves(tree)]
    return np.concatenate(leaves) if leaves else np.zeros(0)


def find_error(want, got):
    if np.isnan(want).any() or np.isnan(got).any():
        return 0.0 if np.array_equal(want, got, equal_nan=True) else float("inf")
    return float(np.linalg.norm(want - got) / (np.linalg.norm(want) + 1e-6))


def run(recipe, make):
    try:
        return compare(recipe, make)
    except ImportError as error:
        return {"missing": str(error)}
    except fp8.Error as error:
        return {"refused": f"{type(error).__name__}: {error}"}
    except Exception as error:
        return {"crash": "".join(traceback.format_exception(error))[-2500:]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--names", default="*")
    parser.add_argument("--recipes", default="none,current")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    records = {}
    for name, make in CASES.items():
        for recipe in arguments.recipes.split(","):
            if not any(fnmatch.fnmatch(name, each) for each in arguments.names.split(",")):
                continue
            start = time.perf_counter()
            record = records[f"{name} {recipe}"] = run(recipe, make)
            kind = next((key for key in ("missing", "refused", "crash") if key in record), None)
            text = record[kind].strip().splitlines()[-1][:200] if kind else f"error {record['error']:.3g}"
            kind = kind or ("right" if record.get("is_right") else "WRONG")
            record["kind"] = kind
            print(f"{name:22} {recipe:10} {kind:8} {text} ({time.perf_counter() - start:.0f} s)", flush=True)
            if arguments.out:
                with open(arguments.out, "w") as file:
                    json.dump(records, file, indent=1)
    if MISSING:
        print("not there:", *sorted(MISSING))
    return int(any(record["kind"] in ("crash", "WRONG") for record in records.values()))


if __name__ == "__main__":
    sys.exit(main())
