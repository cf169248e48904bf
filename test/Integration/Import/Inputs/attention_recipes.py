"""What recipes do to attention that PyTorch exports: F.scaled_dot_product_attention and as models write it, of bf16 and of f32,
which no kernel raises.

The first of them also runs on the emulated GPU, where attention is a kernel of codes, beside a CPU.

usage: attention_recipes.py FP8_OPT FP8_RUN EXAMPLES DIRECTORY
"""

import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import torch
from fp8 import tensors
from torch.nn import functional as F

fp8_opt, fp8_run, examples, directory = sys.argv[1:]
sys.path.insert(0, examples)
import from_pytorch  # noqa: E402

WIDTH, HEADS, LENGTH = 128, 2, 64


class Layer(torch.nn.Module):
    def __init__(self, is_written):
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.is_written = is_written

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        if self.is_written:
            scores = q @ k.mT * q.shape[-1] ** -0.5
            y = torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


def decide(path, options):
    """Lines of remarks, and the program."""
    run = subprocess.run([fp8_opt, path, f"--fp8-pipeline={options} to=fusion", "--fp8-remarks=text:-"], capture_output=True,
                         text=True, check=True)
    lines = run.stdout.splitlines()
    return [line for line in lines if ": high precision; " in line or ": fp8; role " in line], run.stdout


def check(name, options, expected, attention):
    """`expected`: of each role "fp8" or "high precision"; `attention`: whether the operation is there, and of codes."""
    found, text = decide(Path(directory) / f"{name}.mlir", options)
    roles = {line.split("role ")[1].split(",")[0]: line.split(": ")[1].split(";")[0] for line in found}
    operation = [line for line in text.splitlines() if " fp8.attention " in line]
    codes = None if not operation else "f8E4M3FN" in operation[0]
    if roles != expected or codes != attention:
        sys.exit(f"{name}, {options}: expected {expected} and {attention}, but got {roles} and {codes}")


def run(name, module, x):
    """Steps with scales of their own, then of the one before."""
    tensors.save(f"{directory}/inputs.safetensors", {
        key: value.detach().float().numpy().astype(ml_dtypes.bfloat16) for key, value in [*module.named_parameters(), ("x", x)]})
    for recipe in "current", "delayed":
        subprocess.run([fp8_run, f"{directory}/{name}.mlir", f"--recipe={recipe}", f"--attention-recipe={recipe}",
                        "--target=sm_90a", "--device=emulator", "--compare=cpu", "--tolerance=0.05",
                        f"--inputs={directory}/inputs.safetensors"], check=True, env={**os.environ, "FP8_EMULATOR_CHECK": "all"})


SPELLED = {"attention.qk": "high precision", "attention.pv": "high precision"}
for dtype in torch.bfloat16, torch.float32:
    for is_written in False, True:
        name = f"{'written' if is_written else 'called'}_{str(dtype).removeprefix('torch.')}"
        module, x = Layer(is_written).to(dtype).eval(), torch.ones(1, LENGTH, WIDTH, dtype=dtype)
        text, _ = from_pytorch.convert(module, [x])
        (Path(directory) / f"{name}.mlir").write_text(text)
        linear, codes = {"fprop": "fp8"}, dict.fromkeys(SPELLED, "fp8")
        # A CPU raises nothing, and no kernel is of f32.
        raised = dtype == torch.bfloat16
        for recipe in "current", "delayed", "rowwise":
            check(name, f"recipe={recipe} target=cpu", linear | SPELLED, None)
            check(name, f"recipe={recipe} target=sm_90a", linear | SPELLED, False if raised else None)
        for recipe in "current", "delayed":
            check(name, f"recipe={recipe} attention-recipe={recipe} target=cpu", linear | codes, None)
            check(name, f"recipe={recipe} attention-recipe={recipe} target=sm_90a",
                  linear | ({"attention": "fp8"} if raised else codes), True if raised else None)
        check(name, "attention-recipe=current target=cpu", {"fprop": "high precision"} | codes, None)

torch.manual_seed(0)
module = Layer(False).bfloat16().eval()
run("called_bfloat16", module, torch.randn(1, LENGTH, WIDTH, dtype=torch.bfloat16))
