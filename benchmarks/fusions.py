"""Passes over memory beside a copy, and beside what torch.compile makes of the same.

The functions of fusion_functions.py: casts in every granularity, row-major and transposed,
alone and with what makes their tensor. Each is compiled for the GPU and for the CPU, and
called on both over random, extreme and adversarial tensors of odd and even sizes, and so are
those of code_functions.py, which read codes, of place_functions.py, whose casts go by an
element's place, and of gather_functions.py, which read rows by their index; codes, factors and
amaxes have to be the same bits. Where functions such as exp are approximated, they have to be
the same or neighbours: codes and bf16 in their type, f32 as bf16.

Then large tensors are timed: the share is that of a device-to-device copy of the bytes that
have to move, in the same run. Small ones are timed in a graph, beside an empty kernel. With
`--peers`, the functions of fusion_peers.py run under torch.compile in the same rounds;
how far their results are from ours is reported.

usage: fusions.py [--build-dir build] [--programs DIR] [--compile-only] [--rounds N]
                  [--functions NAME,...] [--extents MxN] [--peers] [--out FILE]

`--compile-only` makes programs in DIR, for a machine without the compiler.
"""

import json
import sys

import fusion_peers
from code_functions import CODE_STREAMS
from device import Call, Gpu, Host
from gather_functions import GATHER_STREAMS
from place_functions import PLACE_STREAMS
from programs import (Program, compile_program, list_work, make_parser, make_programs,
                      open_library)
from fusion_checks import CHECKED, DYNAMIC, check_all, make_arguments
from fusion_functions import MAPS, STREAMS, get_function, get_name, has_whole_bytes
from timing import describe, get_ratio, measure, show_machine, show_time, torch, write_record

MOST_COPIED = 1 << 28  # Copies of 500 MB reach two thirds of this one's rate.
BIG = (8192, 14336)
BIG_ROWS = {"rmsnorm_both": (8192, 4096)}  # As wide as models have them.
SMALL = (128, 512)
TIMED = [*STREAMS, *PLACE_STREAMS]
ONLY_CHECKED = [*CODE_STREAMS, *GATHER_STREAMS]
PEER_GOAL = 2.0  # The time of torch.compile's by ours.


def timed_extents(fusion, extents):
    return extents or BIG_ROWS.get(fusion.name, BIG)


def compile_programs(build, folder, extents):
    timed = {get_name(fusion, *sizes): get_function(fusion, *sizes) for fusion in TIMED
             for sizes in (timed_extents(fusion, extents), SMALL)}
    checked = {get_name(fusion, *sizes): get_function(fusion, *sizes)
               for fusion in (*TIMED, *ONLY_CHECKED)
               for sizes in (*CHECKED, *DYNAMIC) if has_whole_bytes(fusion, *sizes)}
    work = {}
    for name, functions in (("timed", timed), ("checked", checked)):
        source = folder / f"{name}.mlir"
        source.write_text(MAPS + "".join(functions.values()))
        options = ("--target=sm_90a", "--recipe=none")
        compile_program(build, source, folder / f"{name}_gpu.so", *options)
        work.update(list_work(build, source, *options))
    compile_program(build, folder / "checked.mlir", folder / "checked_cpu.so", "--recipe=none")
    (folder / "fusions.json").write_text(json.dumps(work, indent=1) + "\n")


# ===----------------------------------------------------------------------===
# Times
# ===----------------------------------------------------------------------===


def bind(gpu, program, fusion, extents):
    values = [value.cuda() for value in make_arguments(fusion, extents, "random")]
    return Call(gpu, program.functions[get_name(fusion, *extents)], values)


def compare_peer(ours, peer, sums):
    """How far results are from the peer's, or why there are none."""
    dtypes = [info.dtype.decode() for info in ours.function.results]
    try:
        return fusion_peers.compare(dtypes, ours.read(), peer(*ours.values), sums,
                                    ours.values[0].view(torch.int16))
    except Exception as error:
        return {"failed": describe(error)}


def measure_big(ours, fusion, extents, args):
    half = int(fusion.bytes * extents[0] * extents[1]) // 2  # Codes of 4 bits are half bytes.
    copied = min(half, MOST_COPIED)
    source = torch.empty(copied, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    calls = {"ours": ours, "copy": lambda: target.copy_(source)}
    row = {"function": ours.function.name, "extents": list(extents), "bytes": fusion.bytes}
    has_peer = args.peers and fusion.name in fusion_peers.PEERS
    if has_peer:
        compiled = fusion_peers.compile_peer(fusion.name)
        row["peer"] = compare_peer(ours, compiled, fusion.sums)
        calls["compiled"] = lambda: compiled(*ours.values)
    row["times"] = times = measure(calls, args.rounds)
    of_copied = get_ratio(times["copy"], times["ours"])
    row.update(of_copy=of_copied and of_copied * half / copied, goal=fusion.goal)
    row["met"] = row["of_copy"] is not None and row["of_copy"] >= fusion.goal
    if has_peer:
        row["of_peer"] = get_ratio(times["compiled"], times["ours"])
    return row


def show_big(row):
    text = f"{row['function']:>32}: {show_time(row['times']['ours'])}"
    if row["of_copy"] is not None:
        text += (f", {row['of_copy']:.3f} of a copy's, goal {row['goal']}: "
                 f"{'met' if row['met'] else 'missed'}")
    if "peer" in row:
        text += f"; torch.compile {show_time(row['times']['compiled'])}"
        if row["of_peer"] is not None:
            met = "met" if row["of_peer"] >= PEER_GOAL else "missed"
            text += f", {row['of_peer']:.2f} of ours, goal {PEER_GOAL}: {met}"
    print(text)
    for times in row["times"].items():
        show_failures(*times)
    for message in row.get("peer", {}).get("messages", []):
        print(f"{'':>34}torch.compile: {message}")
    sys.stdout.flush()


def show_failures(name, times):
    for key, message in times.items():
        if key.endswith("_failed"):
            print(f"{'':>34}{name} by {key.removesuffix('_failed')} failed: {message}")


def measure_small(ours, args):
    """Beside the least that a kernel takes in a graph."""
    times = measure({"ours": ours, "empty": lambda: torch.cuda._sleep(0)}, args.rounds)
    return {"function": ours.function.name, "times": times,
            "of_empty": get_ratio(times["ours"], times["empty"])}


def show_small(row):
    us = {name: 1e3 * times["graph_ms"] for name, times in row["times"].items()
          if "graph_ms" in times}
    print(f"{row['function']:>32}: " + ", ".join(f"{name} {value:.2f} us in a graph"
                                                 for name, value in us.items()))
    for times in row["times"].items():
        show_failures(*times)
    sys.stdout.flush()


def run(library, folder, fusions, checked, args):
    gpu, work = Gpu(library), json.loads((folder / "fusions.json").read_text())
    checks = check_all(checked, (gpu, Program(library, folder / "checked_gpu.so")),
                       (Host(), Program(library, folder / "checked_cpu.so")), work)
    timed, rows, small = Program(library, folder / "timed_gpu.so"), [], []
    for fusion in fusions:
        extents = timed_extents(fusion, args.extents)
        ours = bind(gpu, timed, fusion, extents)
        rows.append({**measure_big(ours, fusion, extents, args),
                     "kernels": work[ours.function.name]})
        show_big(rows[-1])
    for fusion in fusions:
        ours = bind(gpu, timed, fusion, SMALL)
        small.append({**measure_small(ours, args), "kernels": work[ours.function.name]})
        show_small(small[-1])
    return checks, rows, small


def main():
    parser = make_parser(rounds=10)
    names = [fusion.name for fusion in (*TIMED, *ONLY_CHECKED)]
    parser.add_argument("--functions", type=lambda text: text.split(","), default=names)
    parser.add_argument("--extents", type=lambda text: tuple(map(int, text.split("x"))))
    parser.add_argument("--peers", action="store_true")
    args = parser.parse_args()
    if unknown := set(args.functions) - set(names):
        parser.error(f"expected some of {', '.join(names)}, but got {', '.join(unknown)}")
    folder = make_programs(
        args, lambda folder: compile_programs(args.build_dir, folder, args.extents))
    if not folder:
        return 0
    show_machine()
    fusions = [fusion for fusion in TIMED if fusion.name in args.functions]
    checked = fusions + [fusion for fusion in ONLY_CHECKED if fusion.name in args.functions]
    with torch.cuda.fusion(torch.cuda.Stream()):
        checks, rows, small = run(open_library(args.build_dir, folder), folder, fusions, checked,
                                  args)
    write_record(args.out, rounds=args.rounds, checks=checks, rows=rows, small=small)
    failed = any(check["message"] for check in checks)
    return 1 if failed or any("ms" not in row["times"]["ours"] for row in [*rows, *small]) else 0


if __name__ == "__main__":
    sys.exit(main())
