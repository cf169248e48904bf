"""fp8.jax.dot_product_attention beside jax.nn's by cuDNN, forward, and forward and backward, under jax.jit on a GPU: milliseconds of
calls of which the host waits for the last alone, and how far results and gradients are from each other.

usage: jax_attention.py [--out FILE]
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp

import fp8.jax

# Batches, positions, heads, heads of keys, columns, whether it is causal.
CASES = ((4, 4096, 32, 8, 128, True), (2, 8192, 32, 8, 128, True), (1, 16384, 32, 8, 128, True),
         (4, 4096, 32, 8, 128, False), (4, 4096, 32, 32, 64, True))
ROUNDS, CALLS = 5, 10


def make(case):
    batches, positions, heads, heads_of_k, columns, _ = case
    keys = jax.random.split(jax.random.key(0), 4)
    return [jax.random.normal(key, (batches, positions, count, columns), jnp.bfloat16)
            for key, count in zip(keys, (heads, heads_of_k, heads_of_k, heads))]


def make_calls(case, tensors):
    """By name: a call forward, and one forward and backward."""
    *given, grad = tensors
    attentions = {
        "cudnn": lambda *given: jax.nn.dot_product_attention(*given, is_causal=case[5], implementation="cudnn"),
        "ours": lambda *given: fp8.jax.dot_product_attention(*given, is_causal=case[5])}
    calls = {}
    for name, attend in attentions.items():
        forward = jax.jit(attend)
        both = jax.jit(lambda q, k, v, dy, attend=attend: jax.vjp(attend, q, k, v)[1](dy))
        calls[name] = (lambda forward=forward: forward(*given)), (lambda both=both: both(*given, grad))
    return calls


def get_error(value, expected):
    value, expected = value.astype(jnp.float32), expected.astype(jnp.float32)
    return float(jnp.linalg.norm(value - expected) / jnp.linalg.norm(expected))


def time_all(calls):
    times = {name: ([], []) for name in calls}
    for _ in range(ROUNDS):
        for name, both in calls.items():
            for call, found in zip(both, times[name]):
                jax.block_until_ready(call())
                begin = time.perf_counter()
                for _ in range(CALLS):
                    result = call()
                jax.block_until_ready(result)
                found.append(1e3 * (time.perf_counter() - begin) / CALLS)
    return {name: [statistics.median(each) for each in both] for name, both in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = {"device": jax.devices()[0].device_kind, "jax": jax.__version__, "cases": []}
    print("of cuDNN's speed           forward   with backward   errors of o, dq, dk, dv")
    for case in CASES:
        calls = make_calls(case, make(case))
        found = {name: (forward(), *both()) for name, (forward, both) in calls.items()}
        errors = [get_error(value, other) for value, other in zip(found["ours"], found["cudnn"])]
        times = time_all(calls)
        results["cases"].append({"case": case, "ms": times, "errors": errors})
        shares = [peer / own for peer, own in zip(times["cudnn"], times["ours"])]
        name = f"{case[0]}x{case[1]} {case[2]}/{case[3]} x {case[4]} {'causal' if case[5] else 'all'}"
        print(f"{name:26} {shares[0]:7.3f} {shares[1]:15.3f}   {' '.join(f'{error:.4f}' for error in errors)}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
