"""Steps of an MLP in JAX, forward and backward, on GPUs: XLA's bf16 beside compiled functions and products in FP8, on one
device and with the batch, or the weights, cut between all.

Programs are made of StableHLO by iree-base-compiler. A machine without it reads what another one wrote: --make writes what
becomes of each function for --devices of the CPU, --texts reads it.

usage: jax_steps.py [--make FILE | --texts FILE] [--devices N] [--width N] [--wide N] [--rows N] [--only GLOB] [--out FILE]
"""

import argparse
import fnmatch
import hashlib
import json
import os
import statistics
import sys
import time
import traceback
from pathlib import Path

RECIPES = "current", "rowwise", "block", "mxfp8"
ROUNDS, CALLS = 7, 10


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", type=Path)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--devices", type=int, default=0)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--wide", type=int, default=14336)
    parser.add_argument("--rows", type=int, default=8192, help="of a device")
    parser.add_argument("--only", default="*")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def keep_texts(texts, writes):
    """Has the importer read what was written before, or write what it makes, into a dictionary."""
    import jax

    from fp8.jax import importer
    convert = importer.convert

    def look_up(function, arguments, **options):
        shapes = jax.tree_util.tree_map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", arguments)
        said = f"{getattr(function, '__name__', '')} {shapes} {sorted(options.items())}"
        key = hashlib.sha256(said.encode()).hexdigest()
        if writes:
            texts[key] = convert(function, arguments, **options).text
        elif key not in texts:
            raise KeyError(f"expected a text of {said}")
        with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())):
            return importer.Program(texts[key], jax.eval_shape(function, *arguments))
    importer.convert = look_up


def make_cases(options):
    """By name: a function that gives a step, what it takes and how this is shared, and the name of the one beside it."""
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import AxisType, PartitionSpec as P

    import fp8.jax
    devices, target = jax.device_count(), "cpu" if options.make else "auto"
    mesh = jax.make_mesh((devices,), ("data",), axis_types=(AxisType.Auto,))

    def mlp(weights, x, dot=lax.dot_general):
        numbers = (((1,), (0,)), ((), ()))
        with jax.named_scope("up"):
            y = jax.nn.gelu(dot(x, weights["up"], numbers))
        with jax.named_scope("down"):
            return x + dot(y, weights["down"], numbers)

    def make_step(dot=lax.dot_general):
        def step(weights, x):
            def get_loss(weights):
                return jnp.mean(mlp(weights, x, dot).astype(jnp.float32) ** 2)
            return jax.value_and_grad(get_loss)(weights)
        return step

    def make_exact(weights, x):
        return make_step()(jax.tree_util.tree_map(lambda leaf: leaf.astype(jnp.float32), weights),
                           x.astype(jnp.float32))

    def add(step):
        def run(weights, x):
            loss, gradients = step(weights, x)
            return lax.pmean(loss, "data"), jax.tree_util.tree_map(lambda leaf: lax.pmean(leaf, "data"), gradients)
        return jax.shard_map(run, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P()), check_vma=False)

    one = {"bf16": (make_step, (P(), P()))}
    for recipe in (*RECIPES, "delayed"):
        one[f"compile: {recipe}"] = (
            lambda recipe=recipe: fp8.jax.compile(make_step(), recipe, target=target), (P(), P()))
    for recipe in RECIPES[:2]:
        one[f"dot: {recipe}"] = lambda recipe=recipe: make_step(fp8.jax.DotGeneral(recipe, target=target)), (P(), P())
    cases = {} if devices > 1 else {f"one, {name}": case for name, case in one.items()}
    if devices > 1:
        for way, place in ("data", (P(), P("data"))), ("weights", (P("data"), P("data"))):
            cases[f"{way}, bf16"] = make_step, place
            for recipe in RECIPES[:2]:
                cases[f"{way}, dot: {recipe}"] = (
                    lambda recipe=recipe: make_step(fp8.jax.DotGeneral(recipe, target=target)), place)
        for recipe in RECIPES[:3]:
            cases[f"data, compile: {recipe}"] = (
                lambda recipe=recipe: add(fp8.jax.compile(make_step(), recipe, target=target)), (P(), P("data")))
    return mesh, make_exact, {name: case for name, case in cases.items() if fnmatch.fnmatch(name, options.only)}


def make_inputs(options, mesh, places, is_made):
    """Weights and x, or what has their shapes."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding
    keys = jax.random.split(jax.random.key(0), 3)
    rows = options.rows * jax.device_count()
    sizes = {"up": (options.width, options.wide), "down": (options.wide, options.width)}
    place, places = NamedSharding(mesh, places[0]), NamedSharding(mesh, places[1])
    if is_made:
        return ({name: jax.ShapeDtypeStruct(size, jnp.bfloat16, sharding=place) for name, size in sizes.items()},
                jax.ShapeDtypeStruct((rows, options.width), jnp.bfloat16, sharding=places))
    weights = {name: jax.device_put((jax.random.normal(key, size) / size[0] ** 0.5).astype(jnp.bfloat16), place)
               for (name, size), key in zip(sizes.items(), keys)}
    return weights, jax.device_put(jax.random.normal(keys[2], (rows, options.width), jnp.bfloat16), places)


def get_error(value, expected):
    import jax.numpy as jnp
    value, expected = value.astype(jnp.float32), expected.astype(jnp.float32)
    return float(jnp.linalg.norm(value - expected) / jnp.linalg.norm(expected))


def measure(step, inputs, expected):
    """A contender, called once: its errors, and whether a second call has the same bits."""
    import jax
    import jax.numpy as jnp
    loss, gradients = jax.block_until_ready(step(*inputs))
    again = jax.block_until_ready(step(*inputs))[1]
    return {"loss": float(abs(loss / expected[0] - 1)),
            "errors": {name: get_error(gradients[name], expected[1][name]) for name in sorted(gradients)},
            "same": all(bool(jnp.array_equal(gradients[name], again[name])) for name in gradients)}


def time_all(steps):
    """Seconds of a step of each, in turns: the middle of rounds, of calls that wait for the last alone."""
    import jax
    times = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, (step, inputs) in steps.items():
            jax.block_until_ready(step(*inputs))
            begin = time.perf_counter()
            for _ in range(CALLS):
                result = step(*inputs)
            jax.block_until_ready(result)
            times[name].append((time.perf_counter() - begin) / CALLS)
    return {name: statistics.median(each) for name, each in times.items()}


def run(options, texts):
    import jax
    keep_texts(texts, options.make is not None) if options.make or options.texts else None
    mesh, exact, cases = make_cases(options)
    device = jax.devices()[0]
    results = {"device": device.device_kind, "devices": jax.device_count(), "jax": jax.__version__,
               "command": " ".join(["python3", "benchmarks/jax_steps.py", *sys.argv[1:]]), "cases": {}, "errors": {}}
    ready, expected = {}, None
    for name, (make, places) in cases.items():
        try:
            begin = time.perf_counter()
            inputs = make_inputs(options, mesh, places, options.make is not None)
            step = jax.jit(make())
            if options.make:
                step.lower(*inputs).compile()
                print(f"{name}: {len(texts)} texts, {time.perf_counter() - begin:.1f} s", flush=True)
                continue
            expected = jax.jit(exact)(*inputs) if expected is None else expected
            results["cases"][name] = measure(step, inputs, expected)
            results["cases"][name]["ready"] = time.perf_counter() - begin
            ready[name] = step, inputs
        except Exception:
            results["errors"][name] = traceback.format_exc()
            print(f"{name}: {results['errors'][name][-1500:]}", flush=True)
    if options.make:
        return results
    for name, seconds in time_all(ready).items():
        case = results["cases"][name]
        peer = name.partition(",")[0] + ", bf16"
        case["ms"] = 1e3 * seconds
        print(f"{name:24} {case['ms']:8.3f} ms  " + (
            f"{seconds * 1e3 / results['cases'][peer]['ms']:5.3f} of bf16's  " if peer in ready else "")
            + f"loss {case['loss']:.1e}  " + "  ".join(f"{key} {value:.4f}" for key, value in case["errors"].items())
            + f"  {'same bits again' if case['same'] else 'OTHER BITS AGAIN'}", flush=True)
    return results


def main():
    options = read_options()
    if options.make:
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={max(1, options.devices)}"
        os.environ["JAX_PLATFORMS"] = "cpu"
    elif options.devices:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(options.devices)))
    texts = json.loads(options.texts.read_text()) if options.texts else {}
    results = run(options, texts)
    if options.make:
        options.make.write_text(json.dumps(texts))
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if results["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
