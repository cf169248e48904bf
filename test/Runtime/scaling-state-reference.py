# RUN: %python %s %fp8_build/lib/libfp8rt.so
# UNSUPPORTED: sanitizers
"""Compares 100 steps of libfp8rt with a model of each compat mode, bit by bit."""

import itertools
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import libfp8rt  # noqa: E402
from scaling_models import F32, MODELS, STEPS, amaxes, same  # noqa: E402

SLOTS = 48


def main():
    library = libfp8rt.Library(sys.argv[1])
    configurations = [
        (compat, length, algo, margin)
        for compat, length, algo, margin in itertools.product(
            MODELS, range(1, 34), ("max", "most_recent"), range(-2, 5)
        )
        if compat != "flax" or (algo == "max" and margin == 0)
    ]
    random = np.random.default_rng(3)
    names = [f"s{i}" for i in range(SLOTS)]
    formats = ["e4m3" if i % 8 < 4 else "e5m2" for i in range(SLOTS)]
    fp8_max = np.array([448 if f == "e4m3" else 57344 for f in formats], F32)
    histories = 0
    for number, (compat, length, algo, margin) in enumerate(configurations):
        pow2 = number % 3 == 0
        recipe = dict(compat=compat, amax_compute_algo=algo, margin=margin, pow2=pow2)
        state = library.create(names, formats, length, **recipe)
        model = MODELS[compat](fp8_max, length, algo, margin, pow2)
        for step, row in enumerate(amaxes(random, SLOTS)):
            state.amax[:] = row
            state.call("update")
            model.step(row)
            for what, ours, theirs in (
                ("scale", state.scale, model.scale),
                ("scale_inv", state.scale_inv, model.scale_inv()),
                ("history", state.histories(), model.history),
            ):
                if not same(ours, theirs):
                    bad = np.argwhere(ours.view(np.uint32) != theirs.view(np.uint32))[0]
                    raise SystemExit(
                        f"{recipe}, length {length}, step {step}: {what}{list(bad)}: expected "
                        f"{theirs[tuple(bad)]!r}, but got {ours[tuple(bad)]!r}"
                    )
        state.destroy()
        histories += SLOTS
    assert histories >= 10_000
    print(f"{histories} histories, {len(configurations)} recipes, {STEPS} steps each")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
