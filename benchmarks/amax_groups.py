"""Programs whose ranks share amaxes, reduced by NCCL and by torch.distributed: bits beside one process, and times of calls.

Each rank has a part of the rows, and a GPU, or without one the CPU over gloo, where nothing is NCCL's.

usage: amax_groups.py [--world N] [--rows N] [--width N] [--steps N] [--calls N] [--out FILE]
"""

import argparse
import datetime
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

import fp8
import fp8.torch

RECIPES = "current", "delayed,amax_history_len=4"
PATIENCE = 60
LINEAR = """
func.func @linear(%x: tensor<{rows}x{width}xbf16> {{fp8.name = "x"}},
                  %w: tensor<{width}x{width}xbf16> {{fp8.name = "w", fp8.weight}})
    -> (tensor<{rows}x{width}xf32> {{fp8.name = "y"}}) {attributes} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{rows}x{width}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{rows}x{width}xf32>) -> tensor<{rows}x{width}xf32>
  %y = linalg.matmul ins(%x, %w : tensor<{rows}x{width}xbf16>, tensor<{width}x{width}xbf16>)
                     outs(%init : tensor<{rows}x{width}xf32>) -> tensor<{rows}x{width}xf32> loc("linear")
  return %y : tensor<{rows}x{width}xf32>
}}
"""


def find_device(rank):
    return torch.device("cuda", rank) if torch.cuda.is_available() else torch.device("cpu")


def compile_program(recipe, rows, width, group=None):
    attributes = f'attributes {{fp8.amax_group = "{group}"}}' if group else ""
    target = "cpu"
    if torch.cuda.is_available():
        target = "sm_{}{}a".format(*torch.cuda.get_device_capability())
    return fp8.compile(LINEAR.format(rows=rows, width=width, attributes=attributes), recipe, target=target, cache=False)


def make_batches(args, device):
    """The largest element is another rank's in each step."""
    generator = torch.Generator().manual_seed(0)
    rows = args.rows * args.world
    batches = torch.randn(args.steps, rows, args.width, generator=generator).bfloat16()
    for step, batch in enumerate(batches):
        batch[args.rows * (step % args.world) + 3, 5] = 20 + step
    weight = torch.randn(args.width, args.width, generator=generator).bfloat16()
    return batches.to(device), weight.to(device)


def train(program, batches, weight, has_state):
    """Results and, under delayed scaling, amaxes and scales of each step."""
    state = fp8.State(program) if has_state else None
    results, slots = [], []
    for batch in batches:
        results.append(program(batch, weight, **({"state": state} if state else {})).clone())
        if state:
            state.end_step()
            slots.append([(slot.name, slot.amax, slot.scale) for slot in state.slots.values()])
    return results, slots


def time_calls(program, x, weight, has_state, calls):
    """Median microseconds of a step: a call, and the state's end."""
    state = {"state": fp8.State(program)} if has_state else {}
    times = []
    for _ in range(calls):
        if x.is_cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        program(x, weight, **state)
        if has_state:
            state["state"].end_step()
        if x.is_cuda:
            torch.cuda.synchronize()
        times.append(1e6 * (time.perf_counter() - start))
    return statistics.median(times[calls // 4:])


def set_groups(rank, args, device):
    """Names of what reduces."""
    fp8.torch.set_group("torch")
    if device.type != "cuda":
        return ["torch"]
    ids = [fp8.create_nccl_id() if rank == 0 else None]
    dist.broadcast_object_list(ids)
    fp8.create_nccl_group("nccl", ids[0], args.world, rank, device.index)
    return ["torch", "nccl"]


def check(recipe, groups, rank, args, device):
    has_state = recipe.startswith("delayed")
    batches, weight = make_batches(args, device)
    part = batches.chunk(args.world, 1)[rank]
    whole = compile_program(recipe, args.rows * args.world, args.width)
    expected, slots = train(whole, batches, weight, has_state)
    alone = compile_program(recipe, args.rows, args.width)
    record = {"microseconds": {"none": time_calls(alone, part[0], weight, has_state, args.calls)}}
    for group in groups:
        program = compile_program(recipe, args.rows, args.width, group)
        results, others = train(program, part, weight, has_state)
        record[group] = {
            "results": all(torch.equal(y, each.chunk(args.world)[rank]) for y, each in zip(results, expected)),
            "amaxes and scales": others == slots}
        record["microseconds"][group] = time_calls(program, part[0], weight, has_state, args.calls)
    return record


def work(rank, args, folder):
    device = find_device(rank)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", init_method=f"file://{folder}/store", rank=rank,
                            world_size=args.world, timeout=datetime.timedelta(seconds=PATIENCE))
    groups = set_groups(rank, args, device)
    records = {recipe: check(recipe, groups, rank, args, device) for recipe in RECIPES}
    Path(folder, f"{rank}.json").write_text(json.dumps(records))
    dist.barrier()
    dist.destroy_process_group()


def show(records):
    print(f"{'':26} {'rank':>4} {'':6} {'results':>10} {'amaxes':>10} {'us a step':>10}")
    is_same = True
    for rank, each in enumerate(records):
        for recipe, record in each.items():
            times = record.pop("microseconds")
            print(f"{recipe:26} {rank:4} {'none':6} {'':10} {'':10} {times['none']:10.1f}")
            for group, found in record.items():
                is_same = is_same and all(found.values())
                words = ["same" if value else "DIFFERENT" for value in found.values()]
                print(f"{recipe:26} {rank:4} {group:6} {words[0]:>10} {words[1]:>10} {times[group]:10.1f}")
            record["microseconds"] = times
    return is_same


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--world", type=int, default=min(2, torch.cuda.device_count()) or 2)
    for name, number in (("rows", 1024), ("width", 1024), ("steps", 6), ("calls", 40)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # Multicast over NVLink asks for more than every machine allows.
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (args, folder), args.world)
        records = [json.loads(Path(folder, f"{rank}.json").read_text()) for rank in range(args.world)]
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU, gloo"
    print(f"{args.world} x {device}, torch {torch.__version__}, {datetime.date.today().isoformat()}: a part has {args.rows} rows")
    print(f"$ python3 benchmarks/amax_groups.py {' '.join(sys.argv[1:])}".rstrip() + "\n")
    is_same = show(records)
    if args.out:
        args.out.write_text(json.dumps({**vars(args), "out": None, "device": device, "ranks": records}, indent=1) + "\n")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
