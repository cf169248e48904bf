# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Stochastic rounding and the Hadamard transform on a GPU beside the CPU, byte by byte: codes and factors of casts with
a seed and of rotated tensors, and both gradients of a layer, with seeds of a state, over some steps."""

import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

from fp8 import tensors

BF16 = ml_dtypes.bfloat16
TOKENS, OUTPUTS, INPUTS, STEPS = 64, 128, 192, 3

# Blocks along rows and columns; a row and a column that only show at run time.
CASTS = """
func.func @main(%x: tensor<?x64xbf16> {fp8.name = "x"}, %seed: tensor<4xi32> {fp8.name = "seed"})
    -> (tensor<?x64xf4E2M1FN> {fp8.name = "rows"}, tensor<?x4xf8E4M3FN> {fp8.name = "factors"},
        tensor<?x64xf4E2M1FN> {fp8.name = "columns"}, tensor<?x64xbf16> {fp8.name = "rotated"}) {
  %y = fp8.hadamard %x signs = 0xd7e8 : tensor<?x64xbf16>
  %a = fp8.amax %y block = [1, 16] : tensor<?x64xbf16>
  %whole = fp8.amax %a block = [*, *] : tensor<?x4xf32>
  %s, %si, %t = fp8.compute_scale %a tensor_amax(%whole : tensor<1x1xf32>) format = f4E2M1FN
      scale_type = f8E4M3FN : tensor<?x4xf32>
  %q = fp8.quantize %y scale(%s, %si : tensor<?x4xf32>, tensor<?x4xf8E4M3FN>)
      tensor_scale_inv(%t : tensor<1x1xf32>) seed(%seed : tensor<4xi32>) : tensor<?x64xbf16>
      -> !fp8.scaled<?x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  %codes, %factors, %factor = fp8.disassemble %q
      : !fp8.scaled<?x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  %b = fp8.amax %x block = [16, 1] : tensor<?x64xbf16>
  %u, %ui, %v = fp8.compute_scale %b tensor_amax(%whole : tensor<1x1xf32>) format = f4E2M1FN
      scale_type = f8E4M3FN : tensor<?x64xf32>
  %p = fp8.quantize %x scale(%u, %ui : tensor<?x64xf32>, tensor<?x64xf8E4M3FN>)
      tensor_scale_inv(%v : tensor<1x1xf32>) seed(%seed : tensor<4xi32>) : tensor<?x64xbf16>
      -> !fp8.scaled<?x64xf4E2M1FN, block = [16, 1], scale = f8E4M3FN, tensor_scale = f32>
  %columns, %more, %last = fp8.disassemble %p
      : !fp8.scaled<?x64xf4E2M1FN, block = [16, 1], scale = f8E4M3FN, tensor_scale = f32>
  return %codes, %factors, %columns, %y
      : tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<?x64xf4E2M1FN>, tensor<?x64xbf16>
}
"""

# The results are the sums' f32; products of codes in an order of the target's own, so close and not the same.
LAYER = f"""
func.func @main(%x: tensor<{TOKENS}x{INPUTS}xbf16> {{fp8.name = "x"}},
                %w: tensor<{OUTPUTS}x{INPUTS}xbf16> {{fp8.name = "w", fp8.weight}},
                %dy: tensor<{TOKENS}x{OUTPUTS}xbf16> {{fp8.name = "dy", fp8.grad}})
    -> (tensor<{TOKENS}x{INPUTS}xf32> {{fp8.name = "dx"}}, tensor<{OUTPUTS}x{INPUTS}xf32> {{fp8.name = "dw"}}) {{
  %zx = arith.constant dense<0.0> : tensor<{TOKENS}x{INPUTS}xf32>
  %zw = arith.constant dense<0.0> : tensor<{OUTPUTS}x{INPUTS}xf32>
  %dx = linalg.matmul {{fp8.name = "l.dgrad", fp8.role = #fp8.role<dgrad>}}
      ins(%dy, %w : tensor<{TOKENS}x{OUTPUTS}xbf16>, tensor<{OUTPUTS}x{INPUTS}xbf16>)
      outs(%zx : tensor<{TOKENS}x{INPUTS}xf32>) -> tensor<{TOKENS}x{INPUTS}xf32>
  %dw = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>] {{fp8.name = "l.wgrad", fp8.role = #fp8.role<wgrad>}}
      ins(%dy, %x : tensor<{TOKENS}x{OUTPUTS}xbf16>, tensor<{TOKENS}x{INPUTS}xbf16>)
      outs(%zw : tensor<{OUTPUTS}x{INPUTS}xf32>) -> tensor<{OUTPUTS}x{INPUTS}xf32>
  return %dx, %dw : tensor<{TOKENS}x{INPUTS}xf32>, tensor<{OUTPUTS}x{INPUTS}xf32>
}}
"""


class Runner:
    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder

    def run(self, name, text, values, target, *options):
        source, inputs, outputs = (os.path.join(self.folder, f"{name}.{end}") for end in ("mlir", "in", "out"))
        with open(source, "w") as file:
            file.write(text)
        tensors.save(inputs, values)
        environment = dict(os.environ)
        if target != "cpu":
            environment["FP8_EMULATOR_ARCH"] = target[3:].rstrip("a")
        done = subprocess.run([self.tool, source, f"--target={target}", f"--inputs={inputs}", f"--outputs={outputs}",
                               *options], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{target} {name}: {done.stdout}{done.stderr[-3000:]}")
        return tensors.load(outputs)


def same(a, b):
    """Whether two arrays have the same bytes, but for those of NaNs in high precision, which targets choose."""
    if a.dtype == BF16:
        a, b = (np.where(np.isnan(values), BF16(np.nan), values) for values in (a, b))
    return a.tobytes() == b.tobytes()


def main():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((35, 64)).astype(BF16)
    x[3, 7], x[9, 40:60] = np.nan, 0
    casts = {"x": x, "seed": np.array([3, -4, 5, -6], np.int32)}
    layer = {name: rng.standard_normal((STEPS, *shape)).astype(BF16)
             for name, shape in (("x", (TOKENS, INPUTS)), ("w", (OUTPUTS, INPUTS)), ("dy", (TOKENS, OUTPUTS)))}
    # The same in each step, so that what differs is the seeds.
    layer = {name: np.broadcast_to(values[:1], values.shape).copy() for name, values in layer.items()}
    recipes = ("stochastic_rounding=true,hadamard=true", "stochastic_rounding=true", "hadamard=true,weight_2d=true")
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(os.path.join(sys.argv[1], "fp8-run"), folder)
        state = os.path.join(folder, "state.safetensors")

        def run_layer(recipe, target):
            """The results by name, and the bytes of the state behind the steps, if there is one."""
            has_state = "stochastic" in recipe
            options = [f"--recipe=nvfp4,{recipe}", f"--steps={STEPS}"] + [f"--state-out={state}"] * has_state
            results = runner.run("layer", LAYER, layer, target, *options)
            return results, open(state, "rb").read() if has_state else b""

        codes, references = runner.run("casts", CASTS, casts, "cpu"), {}
        for recipe in recipes:
            references[recipe] = run_layer(recipe, "cpu")
            for name, values in references[recipe][0].items():
                count = STEPS if "stochastic" in recipe else 1
                if len({step.tobytes() for step in values}) != count:
                    raise SystemExit(f"{recipe}: expected {count} roundings in {STEPS} steps of {name}")
        for target in ("sm_90a", "sm_100a"):
            for name, values in runner.run("casts", CASTS, casts, target).items():
                if not same(values, codes[name]):
                    raise SystemExit(f"{target}: {name} differs from the CPU's")
            for recipe, (gradients, saved) in references.items():
                results, after = run_layer(recipe, target)
                for name, values in results.items():
                    error = np.abs(values - gradients[name]).max() / np.abs(gradients[name]).max()
                    if error > 1e-5:
                        raise SystemExit(f"{target}, {recipe}: {name} is {error} from the CPU's")
                if after != saved:
                    raise SystemExit(f"{target}, {recipe}: the state differs from the CPU's")
            print(f"{target}: right", flush=True)


if __name__ == "__main__":
    main()
