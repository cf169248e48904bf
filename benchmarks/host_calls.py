"""What the host does for attention in eager mode, without a GPU: a driver that launches nothing (null_driver.c) has the
programs of an H200 called, so that the time is the host's. Numbers that are computed mean nothing. For one layer of a
transformer, forward and backward, by the difference between models of several and of one: microseconds, and how many
functions of Python and of C are called. The time is the thread's own, so that others on the machine count little.
Beside linear layers alone in FP8, with an addition in the place of attention.

With --device=cuda the same on a GPU, beside PyTorch's layers in bf16: microseconds of the host for a layer.

usage: host_calls.py [--device cpu|cuda] [--ways WAY,...] [--profile WAY] [--emulator FILE] [--out FILE]
"""

import argparse
import contextlib
import cProfile
import gc
import os
import pstats
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, ROUNDS, CALLS = 5, 15, 10
WAYS = "bf16", "linear", "dpa", "mha", "linear current", "dpa current"
DEVICE = "cpu"
EMULATOR = Path(__file__).parents[1] / "build/lib/libfp8emu.so"


def start_driver(emulator):
    """Begins again with that driver, which is named before the runtime loads one."""
    folder = tempfile.mkdtemp(prefix="fp8-")
    made = os.path.join(folder, "libfp8emu.so")
    source = Path(__file__).with_name("null_driver.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", made, "-ldl"], check=True)
    os.execve(sys.executable, [sys.executable, *sys.argv], {
        **os.environ, "FP8_CUDA_DRIVER": made, "FP8_NULL_DRIVER_OF": str(emulator)})


class Attention(nn.Module):
    """As a Llama's: rotated queries and keys, of which keys have fewer heads."""

    def __init__(self, width, attends, heads=4, kv_heads=2):
        super().__init__()
        self.dim, self.attends = width // heads, attends
        self.q, self.o = nn.Linear(width, width, False), nn.Linear(width, width, False)
        self.k, self.v = (nn.Linear(width, kv_heads * self.dim, False) for _ in range(2))

    def forward(self, x, cos, sin):
        q, k, v = (layer(x).view(*x.shape[:2], -1, self.dim).transpose(1, 2) for layer in (self.q, self.k, self.v))
        q, k = (y * cos + torch.cat((-y[..., self.dim // 2:], y[..., :self.dim // 2]), -1) * sin for y in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True) if self.attends else q + 0
        return self.o(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, width, attends):
        super().__init__()
        self.norm, self.norm2, self.attention = nn.RMSNorm(width), nn.RMSNorm(width), Attention(width, attends)
        self.gate, self.up, self.down = (nn.Linear(width, width, False) for _ in range(3))

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm(x), cos, sin)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self, count, attends, width=256):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, attends) for _ in range(count))

    def forward(self, x, cos, sin):
        for layer in self.layers:
            x = layer(x, cos, sin)
        return x


def make_call(way, count):
    """A function that trains a model for a step."""
    import fp8.torch
    kind, recipe = (*way.split(), "delayed")[:2]
    attends, target = kind != "linear" or DEVICE == "cuda", "auto" if DEVICE == "cuda" else "sm_90a"
    model = Model(count, attends).to(DEVICE, torch.bfloat16)
    x, dy = (torch.randn(2, 32, 256, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    cos, sin = torch.randn(2, 32, 64, device=DEVICE, dtype=torch.bfloat16)
    x.requires_grad_()
    if kind == "bf16":
        return lambda: model(x, cos, sin).backward(dy)
    options = {} if kind == "linear" else {f"fp8_{kind}": True}
    recipe = {"delayed": fp8.DelayedScaling, "current": fp8.Float8CurrentScaling}[recipe](**options)
    fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target=target, only_faster=False)
    return lambda: model(x, cos, sin).backward(dy)


@contextlib.contextmanager
def emulate():
    """Tensors of the host are those of a GPU, if there is none."""
    if DEVICE == "cuda":
        yield
        return
    from fp8.torch import attention_backward, attention_calls, attention_ops, attention_programs, attention_ready, coded_results
    with contextlib.ExitStack() as stack:
        for module in attention_backward, attention_calls, attention_ops, attention_programs, attention_ready, coded_results:
            stack.enter_context(mock.patch.object(module, "is_on_gpu", lambda tensor: True))
        yield


def count_calls(call):
    """How many functions of Python, and of C, a call calls, also in the backward's thread."""
    counts = {"call": 0, "c_call": 0}

    def count(frame, event, argument):
        if event in counts:
            counts[event] += 1

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return counts["call"], counts["c_call"]


def measure(way):
    """Microseconds and numbers of calls of a layer."""
    calls = [make_call(way, count) for count in (1, LAYERS)]
    for call in calls:
        for _ in range(5):
            call()
    times = [[], []]
    for _ in range(ROUNDS):
        for call, found in zip(calls, times):
            if DEVICE == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter() if DEVICE == "cuda" else time.thread_time()
            for _ in range(CALLS):
                call()
            end = time.perf_counter() if DEVICE == "cuda" else time.thread_time()
            found.append((end - start) / CALLS)
    counts = [count_calls(call) for call in calls]
    us = 1e6 * (min(times[1]) - min(times[0])) / (LAYERS - 1)
    return us, *((many - one) / (LAYERS - 1) for one, many in zip(*counts))


def profile(way):
    call = make_call(way, LAYERS)
    for _ in range(5):
        call()
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(40):
        call()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(45)


def main():
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=DEVICE, choices=("cpu", "cuda"))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--profile")
    parser.add_argument("--emulator", type=Path, default=EMULATOR)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    DEVICE = args.device
    if args.device == "cpu" and not os.environ.get("FP8_NULL_DRIVER_OF"):
        start_driver(args.emulator)
    from timing import write_record
    gc.disable()
    torch.set_num_threads(1)
    # In one thread the counts are of all that a step calls.
    torch.autograd.set_multithreading_enabled(False)
    rows = []
    with emulate():
        if args.profile:
            return profile(args.profile)
        for way in args.ways.split(","):
            us, python, c = measure(way)
            rows.append({"way": way, "us": us, "python": python, "c": c})
            print(f"{way:>15} {us:8.1f} us a layer, {python:6.0f} functions of Python, {c:6.0f} of C", flush=True)
    write_record(args.out, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
