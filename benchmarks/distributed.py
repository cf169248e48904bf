"""Steps of training on several GPUs: FSDP2 and DDP, in bf16, with layers in FP8 and by torchao, and what their gathers carry.

Each case is a decoder like Llama 3 8B, of fewer layers, and as many words as have its head the same part of all work. A process
has one GPU, or, without one, the CPU over gloo. Cases run one after the other in the same processes; one that fails or takes too
long costs those no more than a restart. Results are written after each.

usage: distributed.py [--world N] [--cases "GLOB;..."] [--layers N] [--width N] [--wide N] [--heads N] [--groups N] [--words N]
                      [--batch N] [--length N] [--steps N] [--rounds N] [--patience S] [--seconds S] [--out FILE] [--list]
"""

import argparse
import datetime
import faulthandler
import fnmatch
import gc
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch

WARM_UP = 4
RECIPES = "delayed", "current", "block", "rowwise"
# Multicast over NVLink asks for more than every machine allows.
QUIET = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}


def make_cases(world):
    """By name: how many ranks, what of, and options of it."""
    cases = {"bf16": (world, "train", {})}
    for recipe in RECIPES:
        cases[f"{recipe}, codes"] = world, "train", {"library": "fp8", "recipe": recipe, "gathers": True}
    cases["torchao, codes"] = world, "train", {"library": "torchao", "gathers": True}
    for recipe in RECIPES:
        cases[recipe] = world, "train", {"library": "fp8", "recipe": recipe}
    for recipe in RECIPES:
        cases[f"bits of {recipe}"] = world, "bits", {"recipe": recipe}
    cases["torchao"] = world, "train", {"library": "torchao"}
    cases["torchao rowwise"] = world, "train", {"library": "torchao", "recipe": "rowwise"}
    cases["delayed, codes, layers"] = world, "train", {"library": "fp8", "recipe": "delayed", "gathers": True,
                                                       "compiles": "layers"}
    for recipe in (None, "delayed"):
        name = recipe or "bf16"
        cases[f"DDP: {name}"] = world, "train", {
            "library": "fp8" if recipe else "bf16", "recipe": recipe, "sharding": "ddp", "layers": 4}
    cases["bf16, again"] = world, "train", {}
    for name, options in (("bf16", {}), ("block", {"library": "fp8", "recipe": "block"}),
                          ("delayed", {"library": "fp8", "recipe": "delayed"})):
        for sharding in ("none", "fsdp"):
            cases[f"one: {name}, {sharding}"] = 1, "train", {**options, "sharding": sharding, "layers": 4,
                                                             "dtype": torch.bfloat16}
        if options:
            cases[f"one: {name}, fsdp, codes"] = 1, "train", {**options, "gathers": True, "layers": 4,
                                                              "dtype": torch.bfloat16}
    cases["second device"] = world, "bits", {"recipe": "delayed", "sees_all": True}
    return cases


# ===----------------------------------------------------------------------===
# A rank
# ===----------------------------------------------------------------------===


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def time_steps(contender, tokens, steps):
    """Seconds of a step: of the slowest rank."""
    import torch.distributed as dist
    synchronize(tokens.device)
    dist.barrier()
    start = time.perf_counter()
    for _ in range(steps):
        contender.step(tokens)
    synchronize(tokens.device)
    seconds = torch.tensor([(time.perf_counter() - start) / steps], dtype=torch.float64, device=tokens.device)
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.item()


def run_train(args, rank, device, layers=None, **options):
    from distributed_models import Contender, Traffic
    from distributed_profile import profile_step
    args = argparse.Namespace(**{**vars(args), "layers": layers or args.layers})
    start = time.perf_counter()
    contender = Contender(args, device, **options)
    sizes = args.batch, args.length + 1
    tokens = torch.randint(args.words, sizes, generator=torch.Generator().manual_seed(rank)).to(device)
    losses = [contender.step(tokens).item() for _ in range(WARM_UP)]
    record = {"losses": losses, "ready_s": time.perf_counter() - start, "layers": args.layers}
    with Traffic() as traffic:
        losses.append(contender.step(tokens).item())
    record.update(bytes=traffic.bytes, calls=traffic.calls)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    record["seconds"] = [time_steps(contender, tokens, args.steps) for _ in range(args.rounds)]
    record["tokens_s"] = args.batch * args.length / statistics.median(record["seconds"])
    losses.append(contender.step(tokens).item())
    if device.type == "cuda":
        record["peak"] = torch.cuda.max_memory_allocated()
        # All ranks take part; what one says of itself is enough.
        record["profile"] = profile_step(lambda: contender.step(tokens))
    return record


def run_bits(args, rank, device, recipe):
    from distributed_bits import compare
    return compare(recipe, 256, 512 if device.type == "cuda" else 128, device)


def work(args):
    import torch.distributed as dist
    faulthandler.register(signal.SIGUSR1)
    folder, rank, is_on_gpu = Path(args.folder), args.worker, torch.cuda.is_available()
    device = torch.device("cuda", rank if args.sees_all else 0) if is_on_gpu else torch.device("cpu")
    options = {}
    if is_on_gpu:
        torch.cuda.set_device(device)
        options["device_id"] = device
    dist.init_process_group("nccl" if is_on_gpu else "gloo", init_method=f"file://{folder}/store", rank=rank,
                            world_size=args.world, timeout=datetime.timedelta(seconds=args.patience), **options)
    cases, kinds = make_cases(args.most), {"train": run_train, "bits": run_bits}
    for number in map(int, args.cases.split(",")):
        name = list(cases)[number]
        _, kind, options = cases[name]
        if rank == 0:
            (folder / f"{number}.started").touch()
        record = kinds[kind](args, rank, device, **{key: value for key, value in options.items() if key != "sees_all"})
        if rank == 0:
            part = folder / f"{number}.part"
            part.write_text(json.dumps(record))
            part.rename(folder / f"{number}.json")
        gc.collect()
        if options.get("library", "bf16") != "fp8" or options.get("compiles"):
            torch._dynamo.reset()
        if is_on_gpu:
            torch.cuda.empty_cache()
        dist.barrier()
    dist.destroy_process_group()


# ===----------------------------------------------------------------------===
# The parent of ranks
# ===----------------------------------------------------------------------===


def start_ranks(arguments, world, sees_all, numbers, folder, patience):
    devices = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    devices = devices.split(",") if devices else [str(each) for each in range(world)]
    ranks = []
    for rank in range(world):
        environment = {**QUIET, **os.environ, "OMP_NUM_THREADS": "1"}
        if not sees_all and torch.cuda.is_available():
            environment["CUDA_VISIBLE_DEVICES"] = devices[rank]
        command = [sys.executable, os.path.abspath(__file__), *arguments, "--worker", str(rank), "--world", str(world),
                   "--cases", ",".join(map(str, numbers)), "--folder", str(folder)]
        log = open(folder / f"{rank}.log", "w")
        ranks.append(subprocess.Popen(command + ["--sees-all"] * sees_all, env=environment, stdout=log, stderr=log))
    return ranks


def stop(ranks, asks=False):
    """Ends processes; with `asks` they first say where they are."""
    for each in ranks:
        if asks and each.poll() is None:
            each.send_signal(signal.SIGUSR1)
    time.sleep(1)
    for each in ranks:
        if each.poll() is None:
            each.kill()
    for each in ranks:
        each.wait()


def read_error(folder, world):
    """The last lines of what ranks said."""
    return {str(rank): (folder / f"{rank}.log").read_text(errors="replace")[-3000:] for rank in range(world)}


def run_group(arguments, world, sees_all, numbers, args, end, report):
    """Runs cases in the same processes; returns those that are left after one has failed."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        ranks = start_ranks(arguments, world, sees_all, numbers, folder, args.patience)
        for place, number in enumerate(numbers):
            limit = min(time.time() + args.patience + (60 if place == 0 else 0), end)
            while not (folder / f"{number}.json").exists():
                time.sleep(0.1)
                reason = None
                if any(each.poll() for each in ranks):
                    time.sleep(2)  # Another rank may say more.
                    reason = "a rank ended"
                elif time.time() > limit:
                    reason = "it took too long"
                if reason:
                    stop(ranks, asks=True)
                    report(number, {"error": reason, "logs": read_error(folder, world)})
                    return numbers[place + 1:]
            report(number, json.loads((folder / f"{number}.json").read_text()))
        stop(ranks)
    return []


def show(name, record, base):
    if "error" in record:
        last = [text.strip().splitlines()[-1:] for text in record["logs"].values()]
        return f"{name:26} failed: {record['error']}: {last}"
    if "seconds" not in record:
        return f"{name:26} {json.dumps(record)}"
    seconds = statistics.median(record["seconds"])
    line = f"{name:26}{1e3 * seconds:>9.1f}{seconds / base if base else 0:>8.3f}{record['tokens_s']:>9.0f}"
    line += f"{record.get('peak', 0) / 1e9:>8.2f}{sum(record['bytes'].values()) / 1e9:>9.3f}"
    line += f"{record['bytes'].get('all_gather_into_tensor', 0) / 1e9:>9.3f}{record['losses'][-1]:>9.4f}"
    profile = record.get("profile")
    if profile:
        share = profile["hidden_ms"] / profile["collectives_ms"] if profile["collectives_ms"] else 1
        line += f"{profile['collectives_ms']:>8.1f}{share:>8.1%}{profile['others_ms']:>8.1f}{profile['idle_ms']:>7.1f}"
    return line + f"{record['ready_s']:>8.1f}"


HEAD = (f"{'':26}{'ms':>9}{'of bf16':>8}{'tokens/s':>9}{'peak GB':>8}{'GB sent':>9}{'gathered':>9}{'loss':>9}"
        f"{'NCCL ms':>8}{'hidden':>8}{'others':>8}{'idle':>7}{'ready s':>8}")


def make_parser():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--world", type=int, default=max(torch.cuda.device_count(), 1))
    parser.add_argument("--cases", default="*")
    for name, default in (("layers", 8), ("width", 4096), ("wide", 14336), ("heads", 32), ("groups", 8), ("words", 32000),
                          ("batch", 2), ("length", 4096), ("steps", 5), ("rounds", 3), ("patience", 90),
                          ("seconds", 400)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--most", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--sees-all", action="store_true", help=argparse.SUPPRESS)
    return parser


def main():
    args = make_parser().parse_args()
    if args.worker is not None:
        try:
            work(args)
        except Exception:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)  # Others may wait within a collective.
        return 0
    cases = make_cases(args.world)
    names, globs = list(cases), args.cases.split(";")
    chosen = [number for number, name in enumerate(names) if any(fnmatch.fnmatchcase(name, glob) for glob in globs)]
    if args.list:
        print("\n".join(names[number] for number in chosen))
        return 0
    from timing import show_machine, write_record
    if torch.cuda.is_available():
        show_machine()
    options = {key: value for key, value in vars(args).items() if key not in (
        "cases", "out", "list", "worker", "folder", "most", "sees_all")}
    records, bases = {}, {}
    print(f"{args.world} processes, {args.batch} x {args.length} tokens each, layers of {args.width}-{args.wide}\n{HEAD}",
          flush=True)

    def report(number, record):
        name = names[number]
        records[name] = record
        # What the case is beside: bf16 in the same way, which comes before it.
        key = "one" if name.startswith("one: ") else "DDP" if name.startswith("DDP: ") else ""
        if "seconds" in record and name in ("bf16", "DDP: bf16", "one: bf16, none"):
            bases[key] = statistics.median(record["seconds"])
        print(show(name, record, bases.get(key)), flush=True)
        if torch.cuda.is_available():
            write_record(args.out, cases=records, **options)
        elif args.out:
            args.out.write_text(json.dumps({"cases": records, **options}, indent=1) + "\n")

    end = time.time() + args.seconds
    given = [f"--{name}={getattr(args, name)}" for name in ("layers", "width", "wide", "heads", "groups", "words", "batch",
                                                            "length", "steps", "rounds", "patience")]
    given += ["--most", str(args.world)]
    groups = {}
    for number in chosen:
        world, _, of = cases[names[number]]
        groups.setdefault((world, bool(of.get("sees_all"))), []).append(number)
    for (world, sees_all), numbers in groups.items():
        while numbers and time.time() < end:
            numbers = run_group(given, world, sees_all, numbers, args, end, report)
        for number in numbers:
            report(number, {"error": "no time was left", "logs": {}})
    return 0


if __name__ == "__main__":
    sys.exit(main())
