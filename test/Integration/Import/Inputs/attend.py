"""Attention that PyTorch or JAX export is computed by the attention kernel, here of the emulated GPU: as it is imported, raised
and run on random numbers, and compared with what the framework computes in f32.

usage: attend.py torch|jax FP8_OPT FP8_RUN EXAMPLES DIRECTORY
"""

import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
from fp8 import tensors

framework, fp8_opt, fp8_run, examples, directory = sys.argv[1:]
sys.path.insert(0, examples)
BATCH, HEADS, LENGTH, WIDTH = 1, 2, 96, 64
CAP = 2.0
# The share of the result's norm that rounding shares and the result to bf16 may make.
TOLERANCE = 4e-3


def make(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(ml_dtypes.bfloat16)


def check(name, text, arguments, expected):
    path = Path(directory) / name
    path.with_suffix(".mlir").write_text(text)
    raised = subprocess.run([fp8_opt, path.with_suffix(".mlir"), "--fp8-raise-attention=chip=sm_90a"],
                            capture_output=True, text=True, check=True)
    if "fp8.attention" not in raised.stdout or raised.stderr:
        sys.exit(f"{name}: expected attention, but got {raised.stderr or raised.stdout}")
    tensors.save(f"{path}.inputs", arguments)
    subprocess.run([fp8_run, path.with_suffix(".mlir"), "--target=sm_90a", "--device=emulator", f"--inputs={path}.inputs",
                    f"--outputs={path}.outputs"], check=True, env={**os.environ, "FP8_EMULATOR_CHECK": "all"})
    result = next(iter(tensors.load(f"{path}.outputs").values())).astype(np.float64)
    error = np.linalg.norm(result - expected) / np.linalg.norm(expected)
    if not error <= TOLERANCE:
        sys.exit(f"{name}: expected an error of at most {TOLERANCE}, but got {error:.2e}")
    print(f"{name}: {error:.1e}")


def attend_torch():
    import from_pytorch
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    class Call(torch.nn.Module):
        def __init__(self, **options):
            super().__init__()
            self.options = options

        def forward(self, q, k, v):
            return scaled_dot_product_attention(q, k, v, **self.options)

    class Masked(torch.nn.Module):
        def forward(self, q, k, v, mask):
            return scaled_dot_product_attention(q, k, v, attn_mask=mask)

    class Written(torch.nn.Module):
        """As models of transformers have it, "eager": of heads that are beside each other in memory."""

        def forward(self, q, k, v):
            group = q.shape[2] // k.shape[2]
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
            k, v = (x[:, :, None].expand(-1, -1, group, -1, -1).flatten(1, 2) for x in (k, v))
            lowest = torch.full((q.shape[2], k.shape[2]), torch.finfo(q.dtype).min, dtype=q.dtype).triu(1)
            scores = q @ k.mT * WIDTH ** -0.5 + lowest
            shares = torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype)
            return (shares @ v).transpose(1, 2).flatten(2)

    class Capped(torch.nn.Module):
        """As Gemma 2 has it."""

        def forward(self, q, k, v, mask):
            scores = torch.tanh(q @ k.mT * WIDTH ** -0.5 / CAP) * CAP + mask
            return torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype) @ v

    def run(name, module, *arrays):
        given = [torch.tensor(x.astype(np.float32)).to(torch.bfloat16) if x.dtype != bool else torch.tensor(x)
                 for x in arrays]
        names = ["q", "k", "v", "mask"][:len(given)]
        text, _ = from_pytorch.convert(module.eval(), given)
        wide = [x.float() if x.is_floating_point() else x for x in given]
        expected = module(*wide).double().numpy()
        check(name, text, dict(zip(names, arrays)), expected)

    q, few = make(BATCH, HEADS, LENGTH, WIDTH), make(BATCH, 1, LENGTH, WIDTH)
    k, v = make(BATCH, HEADS, LENGTH, WIDTH), make(BATCH, HEADS, LENGTH, WIDTH)[..., ::-1].copy()
    run("full", Call(), q, k, v)
    run("causal", Call(is_causal=True, scale=0.2), q, k, v)
    run("grouped", Call(is_causal=True, enable_gqa=True), q, few, few)
    run("written", Written(), *(x.swapaxes(1, 2).copy() for x in (q, few, few)))
    run("masked", Masked(), q, k, v, np.tri(LENGTH, dtype=bool)[None, None])
    mask = np.where(np.tri(LENGTH, dtype=bool), 0, -1e9).astype(ml_dtypes.bfloat16)
    run("capped", Capped(), q, k, v, np.broadcast_to(mask, (BATCH, HEADS, LENGTH, LENGTH)).copy())


def attend_jax():
    import jax
    import jax.numpy as jnp
    from fp8.jax import importer

    def run(name, *arrays, **options):
        def attend(q, k, v):
            return jax.nn.dot_product_attention(q, k, v, **options)

        program = importer.convert(attend, tuple(map(jnp.asarray, arrays)))
        expected = attend(*(jnp.asarray(x, jnp.float32) for x in arrays))
        check(name, program.text, dict(zip("qkv", arrays)), np.asarray(expected, np.float64))

    q, k = make(BATCH, LENGTH, HEADS, WIDTH), make(BATCH, LENGTH, HEADS, WIDTH)[..., ::-1].copy()
    few = make(BATCH, LENGTH, 1, WIDTH)
    run("jax", q, k, k)
    run("jax_causal", q, k, k, is_causal=True)
    run("jax_grouped", q, few, few, is_causal=True)
    run("jax_window", q, k, k, is_causal=True, local_window_size=(15, 0))


attend_torch() if framework == "torch" else attend_jax()
