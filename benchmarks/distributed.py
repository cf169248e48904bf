"""Steps of training on several GPUs: FSDP2, HSDP, DDP, tensor and expert parallelism, in bf16, with layers in FP8 and by torchao,
and what their collectives carry.

Each case is a decoder like Llama 3 8B, of fewer layers, and as many words as have its head the same part of all work, or, of
expert parallelism, layers of experts. A process has one GPU, or, without one, the CPU over gloo. Cases run one after the other in the same processes; one that fails or takes too
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


def make_fsdp_cases(world):
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
    cases["bf16, parts"] = world, "train", {"compiles": "parts"}
    for recipe in (None, "delayed", "current"):
        name = recipe or "bf16"
        cases[f"DDP: {name}"] = world, "train", {
            "library": "fp8" if recipe else "bf16", "recipe": recipe, "sharding": "ddp", "layers": 4, "compiles": "parts"}
    for name, options in (("bf16", {"compiles": "parts"}), *((f"{recipe}, codes", {
            "library": "fp8", "recipe": recipe, "gathers": True}) for recipe in ("current", "block"))):
        if world % 4 == 0:
            cases[f"HSDP: {name}"] = world, "train", {**options, "sharding": "hsdp"}
    return cases


def make_parallel_cases(world):
    """The same of tensor parallelism, with and without FSDP2, and of experts."""
    cases, whole = {}, {"parts": 0, "sharding": "none", "dtype": torch.bfloat16}
    for is_sequence in (True, False):
        end, cut = (", sequence", {**whole, "sequence": True}) if is_sequence else ("", whole)
        cases[f"TP: bf16{end}, parts"] = world, "train", {**cut, "compiles": "parts"}
        for recipe in RECIPES:
            options = {**cut, "library": "fp8", "recipe": recipe}
            cases[f"TP: {recipe}{end}"] = world, "train", options
            name = "codes" if is_sequence and recipe in ("delayed", "current") else "styles"
            cases[f"TP: {recipe}{end}, {name}"] = world, "train", {**options, "codes": True}
        cases[f"TP: bf16{end}"] = world, "train", cut
        cases[f"TP: torchao{end}"] = world, "train", {**cut, "library": "torchao"}
    if world % 4 == 0:
        cut = {"parts": 2, "sequence": True}
        cases["FSDP x TP: bf16"] = world, "train", {**cut, "compiles": "parts"}
        for recipe in RECIPES:
            options = {**cut, "library": "fp8", "recipe": recipe, "codes": True}
            cases[f"FSDP x TP: {recipe}, codes"] = world, "train", {**options, "gathers": True}
            cases[f"FSDP x TP: {recipe}"] = world, "train", {**options, "codes": False}
    cases["EP: bf16"] = world, "experts", {}
    for recipe in ("block,pow2=true", "rowwise"):
        cases[f"EP: {recipe}, codes"] = world, "experts", {"recipe": recipe, "codes": True}
        cases[f"EP: {recipe}"] = world, "experts", {"recipe": recipe}
    cases["EP: bf16, codes"] = world, "experts", {"codes": True}
    for recipe in RECIPES:
        cases[f"bits of TP: {recipe}"] = world, "bits of TP", {"recipe": recipe}
    for recipe in ("none", "block,pow2=true", "rowwise"):
        cases[f"bits of EP: {recipe}"] = world, "bits of EP", {"recipe": recipe}
    return cases


def make_cases(world):
    cases = {**make_fsdp_cases(world), **make_parallel_cases(world), "bf16, again": (world, "train", {})}
    for name, options in (("bf16", {"compiles": "parts"}), ("block", {"library": "fp8", "recipe": "block"}),
                          ("delayed", {"library": "fp8", "recipe": "delayed"})):
        for sharding in ("none", "fsdp"):
            cases[f"one: {name}, {sharding}"] = 1, "train", {**options, "sharding": sharding, "layers": 4,
                                                             "dtype": torch.bfloat16}
        if "library" in options:
            cases[f"one: {name}, fsdp, codes"] = 1, "train", {**options, "gathers": True, "layers": 4,
                                                              "dtype": torch.bfloat16}
        cases[f"one: {name}, in turns"] = 1, "turns", {**options, "layers": 4, "dtype": torch.bfloat16}
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


def measure(args, rank, device, contender, start, parts=1):
    """What steps of a contender take, of which a batch is that of so many ranks."""
    import distributed_traffic
    from distributed_profile import profile_step
    sizes = args.batch, args.length + 1
    generator = torch.Generator().manual_seed(contender.find_data(rank))
    tokens = torch.randint(args.words, sizes, generator=generator).to(device)
    losses = [contender.step(tokens).item() for _ in range(WARM_UP)]
    record = {"losses": losses, "ready_s": time.perf_counter() - start, "layers": args.layers}
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    record["seconds"] = [time_steps(contender, tokens, args.steps) for _ in range(args.rounds)]
    record["tokens_s"] = args.batch * args.length / parts / statistics.median(record["seconds"])
    losses.append(contender.step(tokens).item())
    if device.type == "cuda":
        record["peak"] = torch.cuda.max_memory_allocated()
        # All ranks take part; what one says of itself is enough.
        record["profile"] = profile_step(lambda: contender.step(tokens))
    record["traffic"] = distributed_traffic.count(lambda: contender.step(tokens))
    return record


def run_train(args, rank, device, layers=None, **options):
    from distributed_models import Contender
    args = argparse.Namespace(**{**vars(args), "layers": layers or args.layers})
    start = time.perf_counter()
    contender = Contender(args, device, **options)
    return measure(args, rank, device, contender, start, contender.parts)


def run_experts(args, rank, device, **options):
    from distributed_experts import MoE
    start = time.perf_counter()
    return measure(args, rank, device, MoE(args, device, **options), start)


def run_turns(args, rank, device, layers, **options):
    """ms of a step without FSDP2 and with it, of codes where there are some, in turns: clocks drift more than both differ."""
    from distributed_models import Contender
    args = argparse.Namespace(**{**vars(args), "layers": layers})
    tokens = torch.randint(args.words, (args.batch, args.length + 1), generator=torch.Generator().manual_seed(0)).to(device)
    contenders = {sharding: Contender(args, device, sharding=sharding, **options, **(
        {"gathers": True} if sharding == "fsdp" and "library" in options else {})) for sharding in ("none", "fsdp")}
    found = {name: [] for name in contenders}
    losses = {name: [each.step(tokens).item() for _ in range(WARM_UP)] for name, each in contenders.items()}
    for _ in range(args.rounds):
        for name, each in contenders.items():
            each.step(tokens)
            found[name].append(1e3 * time_steps(each, tokens, args.steps))
    middle = {name: statistics.median(times) for name, times in found.items()}
    return {"part": middle["fsdp"] / middle["none"], "ms": middle, "losses are equal": losses["none"] == losses["fsdp"],
            "rounds": {name: [round(each, 2) for each in times] for name, times in found.items()}}


def run_bits(args, rank, device, recipe):
    from distributed_bits import compare
    return compare(recipe, 256, 512 if device.type == "cuda" else 128, device)


def run_bits_of_parts(args, rank, device, recipe):
    from distributed_bits_parallel import compare_parts
    return compare_parts(recipe, 256, 1024 if device.type == "cuda" else 256, device)


def run_bits_of_experts(args, rank, device, recipe):
    from distributed_bits_parallel import compare_experts
    return compare_experts(recipe, 512 if device.type == "cuda" else 64, 256, device)


KINDS = {"train": run_train, "turns": run_turns, "experts": run_experts, "bits": run_bits, "bits of TP": run_bits_of_parts,
         "bits of EP": run_bits_of_experts}


def run_case(args, rank, device, kind, number, options):
    """What it found. An error that all ranks have at once leaves them able to go on; of another one some wait within a
    collective, and it goes on to who started them."""
    import torch.distributed as dist
    folder = Path(args.folder)
    try:
        record = KINDS[kind](args, rank, device, **options)
    except Exception:
        error = traceback.format_exc()
        traceback.print_exc()
        (folder / f"{number}.{rank}.failed").touch()
        end = time.time() + 10
        while len(list(folder.glob(f"{number}.*.failed"))) < args.world:
            if time.time() > end:
                raise
            time.sleep(0.1)
        return {"error": "all ranks failed", "logs": {str(rank): error[-3000:]}}
    if kind.startswith("bits"):
        every = [None] * args.world
        dist.all_gather_object(every, record)
        return record if all(each == record for each in every) else {"by_rank": every}
    return record


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
    cases = make_cases(args.most)
    for number in map(int, args.cases.split(",")):
        name = list(cases)[number]
        _, kind, options = cases[name]
        if rank == 0:
            (folder / f"{number}.started").touch()
        record = run_case(args, rank, device, kind, number, {key: value for key, value in options.items() if key != "sees_all"})
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
            limit = time.time() + args.patience + (60 if place == 0 else 0)
            while not (folder / f"{number}.json").exists():
                time.sleep(0.1)
                reason = None
                if any(each.poll() for each in ranks):
                    time.sleep(2)  # Another rank may say more.
                    reason = "a rank ended"
                elif time.time() > end:
                    reason = "no time was left while it ran"
                elif time.time() > limit:
                    reason = "it took too long"
                if reason:
                    stop(ranks, asks=True)
                    report(number, {"error": reason, "logs": read_error(folder, world)})
                    return numbers[place + 1:]
            report(number, json.loads((folder / f"{number}.json").read_text()))
        stop(ranks)
    return []


def find_kind(name):
    """Cases of one kind are beside its first in bf16: by what is before a colon, and how layers are cut."""
    way, colon, _ = name.partition(": ")
    return (way if colon else ""), "sequence" in name


def show(name, record, base):
    if "error" in record:
        last = [text.strip().splitlines()[-1:] for text in record["logs"].values()]
        return f"{name:30} failed: {record['error']}: {last}"
    if "seconds" not in record:
        return f"{name:30} {json.dumps(record)}"
    seconds = statistics.median(record["seconds"])
    line = f"{name:30}{1e3 * seconds:>9.1f}{seconds / base if base else 0:>8.3f}{record['tokens_s']:>9.0f}"
    given, leaving = (record["traffic"].get(key, {}) for key in ("bytes", "leaving"))
    line += f"{record.get('peak', 0) / 1e9:>8.2f}{sum(leaving.values()) / 1e9:>9.3f}"
    line += f"{(given.get('gather', 0) + given.get('exchange', 0)) / 1e9:>9.3f}{record['losses'][-1]:>9.4f}"
    profile = record.get("profile")
    if profile:
        share = profile["hidden_ms"] / profile["collectives_ms"] if profile["collectives_ms"] else 1
        line += f"{profile['collectives_ms']:>8.1f}{share:>8.1%}{profile['others_ms']:>8.1f}{profile['idle_ms']:>7.1f}"
    return line + f"{record['ready_s']:>8.1f}"


HEAD = (f"{'':30}{'ms':>9}{'of bf16':>8}{'tokens/s':>9}{'peak GB':>8}{'GB sent':>9}{'gathered':>9}{'loss':>9}"
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
    # In the order of what was asked for.
    chosen = list(dict.fromkeys(number for glob in globs for number, name in enumerate(names)
                                if fnmatch.fnmatchcase(name, glob)))
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
        key = find_kind(name)
        if "seconds" in record and "bf16" in name:
            bases.setdefault(key, statistics.median(record["seconds"]))
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
