"""Times kernels that lift packed weights (fp8.lift) beside those of E4M3, and compares their
bits: W4A8 with weights of MXFP4 and exponents of 32 elements.

    packed.py make DIR [--build-dir build]   # Where the compiler is.
    packed.py time DIR [--out FILE] [--rounds N] [--only N,K ...] [--m M ...]

`make` builds kernels of some configs, and for E4M3 those that are selected for the shapes,
`time` needs a GPU and PyTorch. A row is a shape: the time of E4M3's selected kernel, and those
of the lifted kernels, with the ratio of the best one and of the selected one.
"""

import argparse
import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path

LAYERS = [(5120, 2880), (2880, 4096), (5760, 2880), (2880, 2880), (6144, 4096), (4096, 4096), (28672, 4096),
          (4096, 14336), (8192, 8192)]  # N and K: gpt-oss, Llama.
ROWS = [1, 8, 16, 32, 64, 128, 256, 512, 4096]


def get_configs():
    """Tiles for few rows, with warps of one and of two warpgroups that lift stages together or in
    turn; and for many, those that fit beside packed weights."""
    from matmul.kinds import config
    few = {"swap_ab": "true", "store": "direct", "group": 1}
    lifting = [{}, {"lift_warps": 2}, {"lifters": 2}, {"lifters": 2, "lift_warps": 2}]
    for tile_m in (8, 16, 64):
        for lift in lifting:
            for split in ({}, {"split_k": 2}):
                yield config(tile_m, 64, 16, consumers=1, **split, **lift, **few)
                yield config(tile_m, 128, 8, **split, **lift, **few)
            yield config(tile_m, 128, 8, split_k=4, **lift, **few)
    for lift in lifting[0], lifting[2]:
        for cluster in (2, 4):
            yield config(64, 64, 16, consumers=1, cluster_n=cluster, **lift, **few)
            yield config(64, 128, 8, cluster_n=cluster, **lift, **few)
        yield config(64, 256, 8, **lift, **few)
        yield config(128, 128, 8, **lift, **few)
        yield config(128, 128, 8, cluster_n=2, **lift, **few)
        yield config(128, 128, 8, **lift)
        yield config(64, 224, 8, consumers=1, pending=1, **lift)
        yield config(256, 128, 8, **lift)
    # In registers, where consumers may share K.
    for tile_m in (8, 16, 32, 64):
        for consumers in (1, 2, 3):
            yield config(tile_m, 64, 16, consumers=consumers, lifters=0, **few)
        for consumers in (1, 2):
            yield config(tile_m, 64, 16, consumers=consumers, split_k=2, lifters=0, **few)
        for split in ({}, {"split_k": 2}):
            yield config(tile_m, 128, 16, lifters=0, **split, **few)
    for tile_m in (104, 128, 256):
        for tile_n in (64, 128):
            yield config(tile_m, tile_n, 16, consumers=tile_n // 64, lifters=0, staging=1, **few | {"store": "tma", "group": 16})
    yield config(256, 128, 8, cluster_m=2)
    yield config(128, 256, 8, **few)
    yield config(128, 128, 8, schedule="ping_pong", cluster_m=2)


def fit(text, spec, tools):
    """The config with as many stages as there is room for, at most its own; None without two."""
    from gemm_kernels import TARGET
    from matmul.program import program
    for stages in range(int(re.search(r"stages = (\d+)", text).group(1)), 1, -1):
        fewer = re.sub(r"stages = \d+", f"stages = {stages}", text)
        done = subprocess.run([tools / "fp8-opt", TARGET, "--fp8-select-kernels"], text=True, capture_output=True,
                              input=program({**spec, "configs": [fewer]}))
        if not done.returncode:
            return fewer
    print(f"{text} has no room", flush=True)
    return None


def make(args):
    from gemm_kernels import build, select
    from matmul.kinds import kind
    out, tools = args.folder, Path(args.build_dir) / "bin"
    out.mkdir(parents=True, exist_ok=True)
    shapes = [(m, n, k) for n, k in LAYERS for m in ROWS]
    chosen = {}
    for name, others in (("e4m3", []), ("mxfp4", list(get_configs()))):
        spec = kind(b=name, scale_a="row", scale_b="row")
        chosen[name] = select(spec, shapes, tools)
        others = filter(None, [fit(text, spec, tools) for text in others])
        build(name, {**spec, "configs": sorted({*chosen[name].values(), *others})}, tools, out)
        print(name, flush=True)
    (out / "selected.json").write_text(json.dumps(chosen))


class Problem:
    """Weights in both forms, of the same values."""

    def __init__(self, m, n, k, seed=0):
        import torch
        generator = torch.Generator("cuda").manual_seed(seed)
        integers = lambda low, high, *shape: torch.randint(low, high, shape, device="cuda", generator=generator)
        self.m, self.n, self.k, self.scale = m, n, k, 1.0
        self.a = torch.randn(m, k, device="cuda", generator=generator).to(torch.float8_e4m3fn)
        words = -(-k // 128)
        exponents = integers(0, 15, n, words * 4).to(torch.uint8)
        self.exponents = exponents.view(torch.int32).t().contiguous()
        codes = integers(0, 16, n, k).to(torch.uint8)
        self.packed = codes[:, ::2] | codes[:, 1::2] << 4
        magnitudes = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6], device="cuda")
        values = torch.cat([magnitudes, -magnitudes])[codes.long()]
        values *= torch.exp2(exponents.float() - 8).repeat_interleave(32, 1)[:, :k]
        self.b = values.to(torch.float8_e4m3fn)
        assert bool((self.b.float() == values).all())
        self.scale_a = torch.rand(m, 1, device="cuda", generator=generator) + .5
        self.scale_b = torch.rand(n, 1, device="cuda", generator=generator) / 64
        self.d = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)

    def bind(self, kernel, is_packed):
        """A function that launches the kernel."""
        import torch
        from matmul.kernel import abi, describe
        names = [entry["name"] for entry in kernel.launch["arguments"]]
        tensors = [self.packed if is_packed and name == "b" else getattr(self, name) for name in names]
        described = [describe(tensor, entry["rank"]) for tensor, entry in zip(tensors, kernel.launch["arguments"])]
        arguments = (abi.structs.fp8rt_kernel_argument * len(described))(*described)
        captures = (ctypes.c_void_p * 1)()
        spaces = kernel.workspaces(arguments)
        workspaces = (ctypes.c_void_p * max(1, len(spaces)))(*[space.data_ptr() for space in spaces])

        def launch():
            kernel.library.fp8rt_kernel_launch(kernel.handle, arguments, captures, workspaces,
                                               torch.cuda.current_stream().cuda_stream)
        launch.keep = (tensors, spaces)
        return launch


def find(kernels, config):
    """The kernel of a config, which is printed in full in one place and short in another."""
    return next((kernel for kernel in kernels if kernel.config == config), None)


def time_shape(kernels, selected, m, n, k, rounds):
    import torch
    from matmul.timing import buffer_sets, launches_per_graph, measure
    key = f"{m}x{n}x{k}"
    sets = buffer_sets(m, n, k // 2, 1)
    problems = [Problem(m, n, k, seed) for seed in range(min(sets, 12))]
    first = problems[0]
    e4m3 = find(kernels["e4m3"], selected["e4m3"].get(key))
    contenders = {"e4m3": [problem.bind(e4m3, False) for problem in problems]}
    contenders["e4m3"][0]()
    expected = first.d.clone()
    wrong = []
    for kernel in kernels["mxfp4"]:
        if not ("swap_ab" in kernel.config) and m <= 32 or "swap_ab" in kernel.config and m > 1024:
            continue
        launches = [problem.bind(kernel, True) for problem in problems]
        first.d.fill_(float("nan"))
        launches[0]()
        torch.cuda.synchronize()
        # Parts of K are added in another order.
        same = torch.equal(first.d, expected)
        if not same and (kernel.split == e4m3.split == 1 or not torch.allclose(
                first.d.float(), expected.float(), rtol=.02, atol=1e-2 * float(expected.float().abs().max()))):
            wrong.append(kernel.config)
        contenders[kernel.config] = launches
    times = measure(contenders, min(100, launches_per_graph(m, n, k, 1, len(problems))), rounds)
    ours = {name: t for name, t in times.items() if name != "e4m3"}
    best = min(ours, key=ours.get)
    choice = ours.get(selected["mxfp4"].get(key))
    row = {"m": m, "n": n, "k": k, "e4m3_us": 1e6 * times["e4m3"], "best_us": 1e6 * ours[best], "best": best,
           "selected": selected["mxfp4"].get(key), "selected_us": 1e6 * choice if choice else None, "wrong": wrong,
           "e4m3_config": e4m3.config, "all_us": {name: 1e6 * t for name, t in ours.items()}}
    row["ratio"] = row["e4m3_us"] / row["best_us"]
    row["tb_s"] = (n * k * 17 / 32 + m * k + 2 * m * n) / ours[best] / 1e12
    chosen = f"{row['e4m3_us'] / row['selected_us']:.2f}" if choice else "-"
    print(f"{m:5} {n:6} {k:6}  e4m3 {row['e4m3_us']:8.2f} us  lifted {row['best_us']:8.2f} us, {row['ratio']:.2f}, "
          f"selected {chosen}, {row['tb_s']:.2f} TB/s  {best}" + (f"  {len(wrong)} WRONG" if wrong else ""), flush=True)
    return row


def time(args):
    import torch
    from matmul.kernel import load
    kernels = load(args.folder, ["e4m3", "mxfp4"])
    selected = json.loads((args.folder / "selected.json").read_text())
    rows = []
    print(torch.cuda.get_device_name(), flush=True)
    for n, k in args.only or LAYERS:
        for m in args.m or ROWS:
            rows.append(time_shape(kernels, selected, m, n, k, args.rounds))
            if args.out:
                args.out.write_text(json.dumps(rows, indent=1))
            torch.cuda.empty_cache()
    return int(any(row["wrong"] for row in rows))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["make", "time"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", type=lambda text: tuple(map(int, text.split(","))))
    parser.add_argument("--m", nargs="*", type=int)
    args = parser.parse_args()
    return {"make": make, "time": time}[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
