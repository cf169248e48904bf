# RUN: %python %s %fp8_build/lib/libfp8rt.so fp8-compile %t
# REQUIRES: linker
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Compares the update that is compiled into programs with a model and with the runtime's, bit by bit."""

import ctypes
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[2] / "Runtime" / "Inputs")]
import libfp8rt  # noqa: E402
from fp8 import abi  # noqa: E402
from scaling_models import F32, MODELS, STEPS, amaxes, same  # noqa: E402

LIBRARY, COMPILER, DIRECTORY = sys.argv[1], sys.argv[2], Path(sys.argv[3])
SLOTS = 48
FORMATS = ["f8E4M3FN" if i % 8 < 4 else "f8E5M2" for i in range(SLOTS)]
FP8_MAX = np.array([448 if f == "f8E4M3FN" else 57344 for f in FORMATS], F32)
ROWS = {"amax": "f4", "scale": "f4", "scale_inv": "f4", "last_amax": "f4", "recorded": "i8",
        "non_finite": "i8", "underflow": "i8", "saturated": "i8"}


def cases():
    number = 0
    for length, compat in itertools.product((1, 2, 3, 33), MODELS):
        algo, margin = (("max", 0), ("most_recent", -2), ("max", 4))[number % 3]
        if compat == "flax":
            algo, margin = "max", 0
        yield compat, length, algo, margin, number % 2 == 0
        number += 1
    # A scale that becomes subnormal, or zero.
    yield "te_unfused", 2, "max", 64, True


def compile_program(number, compat, length, algo, margin, pow2):
    recipe = (f"#fp8.delayed<amax_history_len = {length}, amax_compute_algo = {algo}, "
              f"margin = {margin}, compat = {compat}, pow2 = {str(pow2).lower()}>")
    slots = ", ".join(f'#fp8.slot<"s{i}" : {f}, fprop activation>' for i, f in enumerate(FORMATS))
    source, program = DIRECTORY / f"{number}.mlir", DIRECTORY / f"{number}.so"
    source.write_text(f"""
module attributes {{fp8.state = #fp8.state_table<{recipe}, [{slots}]>}} {{
  func.func @scale(%state: !fp8.state) -> tensor<1xf32> {{
    %slot = arith.constant 5 : index
    %scale, %scale_inv = fp8.read_scale %state[%slot] : tensor<1xf32>
    return %scale : tensor<1xf32>
  }}
}}""")
    subprocess.run([COMPILER, source, "-o", program, "--recipe=none"], check=True)
    return program


class State:
    """A state of a program, and views of its rows."""

    def __init__(self, library, info):
        self.library, self.handle = library, ctypes.c_uint64()
        library.fp8rt_program_create_state(info, ctypes.byref(self.handle))
        rows = abi.structs.fp8rt_state_rows()
        library.fp8rt_state_get_rows(self.handle, ctypes.byref(rows))
        self.rows = {row: np.ctypeslib.as_array(getattr(rows, row), (SLOTS,)) for row in ROWS}
        self.words = np.ctypeslib.as_array(rows.words, (SLOTS * rows.num_words,)) \
            if rows.num_words else np.zeros(0, np.int32)
        self.steps = rows.steps

    def bytes(self):
        return {**{row: values.tobytes() for row, values in self.rows.items()},
                "words": self.words.tobytes(), "steps": self.steps[0]}

    def histories(self, length):
        out = np.empty((length, SLOTS), F32)
        self.library.fp8rt_state_get_histories(
            self.handle, out.ctypes.data_as(ctypes.POINTER(ctypes.c_float)), out.size)
        return out


def check(library, program, case, random):
    compat, length, algo, margin, pow2 = case
    opened, info = ctypes.c_void_p(), ctypes.POINTER(abi.structs.fp8rt_program_info)()
    library.fp8rt_program_open(str(program).encode(), ctypes.byref(opened))
    library.fp8rt_program_get_info(opened, ctypes.byref(info))
    compiled, host = State(library, info), State(library, info)
    model = MODELS[compat](FP8_MAX, length, algo, margin, pow2)
    for step, amax in enumerate(amaxes(random, SLOTS)):
        for state in (compiled, host):
            # The sign is ignored.
            state.rows["amax"][:] = np.where(np.arange(SLOTS) % 3 == step % 3, -amax, amax)
            state.rows["underflow"] += 1
        library.fp8rt_program_update_state(info, compiled.handle, None)
        library.fp8rt_state_update(host.handle)
        model.step(amax)
        ours, theirs = compiled.bytes(), host.bytes()
        for row, value in theirs.items():
            if ours[row] != value:
                return f"step {step}: {row} is not that of fp8rt_state_update"
        if not same(compiled.rows["scale"], model.scale):
            return f"step {step}: scale is not that of the model"
    if compiled.steps[0] != STEPS:
        return f"expected {STEPS} steps, but got {compiled.steps[0]}"
    if not same(compiled.histories(length), model.history):
        return "history is not that of the model"

    # Frozen, it clears what was recorded, and nothing else.
    library.fp8rt_state_freeze(compiled.handle)
    before = compiled.bytes()
    compiled.rows["amax"][:] = 3
    compiled.rows["saturated"][:] = 3
    library.fp8rt_program_update_state(info, compiled.handle, None)
    if compiled.bytes() != before:
        return "an update of a frozen state changed it"
    for state in (compiled, host):
        library.fp8rt_state_destroy(state.handle)
    library.fp8rt_program_close(opened)
    return ""


def main():
    DIRECTORY.mkdir(exist_ok=True)
    np.seterr(all="ignore")
    library, random = libfp8rt.Library(LIBRARY), np.random.default_rng(7)
    failures = number = 0
    for number, case in enumerate(cases(), 1):
        text = check(library, compile_program(number, *case), case, random)
        if text:
            print(f"{case}: {text}")
            failures += 1
    print(f"{number} recipes, {STEPS} steps each, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
