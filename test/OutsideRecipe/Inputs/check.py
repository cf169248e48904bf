"""check.py COMPILER RUNNER DIRECTORY: compares recipes from outside with NumPy, bit by bit."""

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2] / "python"))
from fp8 import tensors  # noqa: E402

COMPILER, RUNNER, DIRECTORY = sys.argv[1], sys.argv[2], Path(sys.argv[3])
F32, E4M3_MAX = np.float32, np.float32(448)


def compile_program(name, *options, source="program.mlir"):
    program = DIRECTORY / f"{name}.so"
    subprocess.run([COMPILER, HERE / source, "-o", program, *options], check=True)
    return program


def run(program, inputs, *options):
    files = DIRECTORY / "in.safetensors", DIRECTORY / "out.safetensors"
    tensors.save(files[0], inputs)
    subprocess.run([RUNNER, program, f"--inputs={files[0]}", f"--outputs={files[1]}", *options],
                   check=True)
    return tensors.load(files[1])


def require_same(what, got, expected):
    got, expected = np.asarray(got), np.asarray(expected)
    if got.tobytes() != expected.tobytes():
        sys.exit(f"{what}: expected {expected}, but got {got}")


def powers_scale(amax, headroom):
    if not (0 < amax < np.inf):
        return F32(1)
    bits = (E4M3_MAX / amax).view(np.uint32) & np.uint32(0xFF800000)
    return bits.view(F32) * F32(2.0**-headroom)


def check_powers(random):
    """Codes and factors of tensors of all sizes, and of strange ones."""
    program = compile_program("quantize", source="quantize.mlir")
    for exponent in (-130, -60, -3, 0, 5, 100, 125):
        for special in ([], [0], [np.inf], [np.nan]):
            x = (random.standard_normal((8, 64)) * 2.0**exponent).astype(F32)
            x.flat[: len(special)] = special
            if special == [0]:
                x[:] = 0
            amax = np.nanmax(np.abs(x))
            scale = powers_scale(amax, 3)
            codes = np.clip(x * scale, -E4M3_MAX, E4M3_MAX).astype(ml_dtypes.float8_e4m3fn)
            out = run(program, {"x": x})
            require_same(f"scale_inv of {exponent}, {special}", out["scale_inv"],
                         np.full((1, 1), F32(1) / scale))
            require_same(f"codes of {exponent}, {special}", out["codes"], codes)


def make_linear(random):
    """Few bits, so that products and sums are exact."""
    x = random.integers(-8, 9, (32, 64)).astype(ml_dtypes.bfloat16)
    w = random.integers(-4, 5, (64, 16)).astype(ml_dtypes.bfloat16)
    x.flat[0], w.flat[0] = 8, 4
    return {"x": x, "w": w}, x.astype(F32) @ w.astype(F32)


def check_linear(random):
    inputs, y = make_linear(random)
    for name, option in (("text", "--recipe=acme.powers,headroom=2"),
                         ("file", f"--recipe-file={HERE / 'recipes.json'}")):
        require_same(name, run(compile_program(name, option), inputs)["y"], y)


class MovingMax:
    """The update of acme.moving_max for slots of E4M3."""

    def __init__(self, slots, decay):
        self.scale, self.word = np.ones(slots, F32), np.zeros(slots, F32)
        self.decay = F32(decay)

    def step(self, amax):
        for i, a in enumerate(np.asarray(amax, F32)):
            if 0 < a < np.inf:
                self.word[i] = max(a, self.word[i] * self.decay)
            if 0 < self.word[i] < np.inf:
                self.scale[i] = E4M3_MAX / self.word[i]


def make_steps(random):
    """Inputs of some steps, one of them without a tensor and one with an Inf."""
    steps = []
    for exponent in (0, 3, -2, None, -40, 7, 2, 1):
        x = random.standard_normal((32, 64)) * 2.0 ** (exponent or 0)
        if exponent is None:
            x[:] = 0
        if exponent == 7:
            x[0, 0] = np.inf
        steps.append({"x": x.astype(ml_dtypes.bfloat16),
                      "w": random.standard_normal((64, 16)).astype(ml_dtypes.bfloat16)})
    return steps


def get_amaxes(step):
    return [np.nanmax(np.abs(step[name].astype(F32))) for name in ("x", "w")]


def check_state_as_tensors(random):
    program = compile_program("tensors", "--recipe=acme.moving_max,decay=0.75",
                              "--functional-state")
    model = MovingMax(2, 0.75)
    state = {"fp8.state.scale": model.scale.copy(),
             "fp8.state.words": np.zeros((2, 1), np.int32)}
    for number, step in enumerate(make_steps(random)):
        out = run(program, {**step, **state})
        model.step(get_amaxes(step))
        state = {name: out[name] for name in state}
        require_same(f"scale after step {number}", state["fp8.state.scale"], model.scale)
        require_same(f"word after step {number}", state["fp8.state.words"][:, 0],
                     model.word.view(np.int32))


def main():
    random = np.random.default_rng(0)
    np.seterr(all="ignore")
    check_powers(random)
    check_linear(random)
    check_state_as_tensors(random)


main()
