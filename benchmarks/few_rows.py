"""Products of few rows in configs that are forced, with weights that no cache has: what each takes beside a copy.

`list` has the compiler (`fp8-tune --costs`) say which configs there are for random or given shapes, adds other parts of K, and
writes them to a file. `compile` makes programs of these that are not there, with a build or the package `fp8`, in several processes. `run` compares
results with those of numbers that PyTorch decodes, and times each program as a CUDA graph of so many calls that their
weights together fill no cache, in rounds that alternate. A row has microseconds, and the share of a copy's speed that the
bytes of a weight have.

usage: few_rows.py list FILE [--build-dir build] [--shapes MxNxK,...] [--seed N] [--count N] [--kinds NAME...] [--splits N...]
                        [--stages N...]
       few_rows.py compile FILE DIR [--jobs N] [--build-dir DIR]
       few_rows.py run FILE DIR [--rounds N] [--out FILE]
"""

import argparse
import itertools
import json
import math
import random
import re
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import fp8

# The package that is installed, with what only a checkout has.
fp8.__path__.append(str(Path(__file__).resolve().parents[1] / "python/fp8"))

import microscaled  # noqa: E402
from timing import describe  # noqa: E402

CACHE = 192 << 20  # Bytes of weights that no cache holds.
# By name: what writes the function, and which kind of operand it has.
KINDS = {"mxfp8_both": (microscaled.write_both, "mxfp8"), "mxfp8_arranged": (microscaled.write_arranged, "mxfp8"),
         "mxfp8_weights": (microscaled.write_weights, "mxfp8"), "nvfp4_arranged": (microscaled.write_arranged, "nvfp4"),
         "w4a8_arranged": (None, "w4a8"), "rows": (None, "rows")}


def write(kind, shape, pin=""):
    writer, of = KINDS[kind]
    if kind == "w4a8_arranged":
        return microscaled.write_lifted("f", *shape, pin, arranged=True)
    if kind == "rows":
        return write_rows(*shape, pin)
    return writer(of, "f", *shape, pin)


def write_rows(m, n, k, pin):
    types = [f"!fp8.scaled<{rows}x{k}xf8E4M3FN, block = [1, *], scale = f32>" for rows in (m, n)]
    arguments, made = [], ""
    for name, rows, type_ in zip("ab", (m, n), types):
        codes, factors = microscaled.tensor_type((rows, k), "f8E4M3FN"), microscaled.tensor_type((rows, 1), "f32")
        arguments += [f"%{name}: {codes}", f"%{name}_factors: {factors}"]
        made += f"  %{name}_value = fp8.assemble %{name}, %{name}_factors : {codes}, {factors} -> {type_}\n"
    d = microscaled.tensor_type((m, n), "bf16")
    return microscaled.function("f", arguments, made + f"  %r = fp8.matmul %a_value, %b_value accumulate = fast{pin} : "
                                f"{types[0]}, {types[1]} -> {d}\n", d)


# ===----------------------------------------------------------------------===
# Configs
# ===----------------------------------------------------------------------===


def draw_shapes(seed, count):
    draw = random.Random(seed)
    return [(draw.choice((1, 2, 4, 8, 13, 16)), 64 * draw.randint(32, 160), 128 * draw.randint(16, 96)) for _ in range(count)]


def list_pins(build, kind, shape, splits, stages):
    """Configs, the first the one that is chosen, with what they are expected to take: of each tile and number of consumers
    the best one, and the same with other parts of K."""
    done = subprocess.run([build / "bin/fp8-tune", "-", "--costs", "--target=sm_90a", "--recipe=none"], check=True, text=True,
                          capture_output=True, input=write(kind, shape))
    costs = json.loads(done.stdout)[0]["costs"]
    found = {}
    for entry in costs:
        found.setdefault(tuple(re.findall(r"(tile_n|consumers|swap_ab|split_k|stage_blocks) = (\w+)", entry["config"])), entry)
    pins = {entry["config"]: entry for entry in found.values() if "swap_ab = true" in entry["config"]}
    for entry in list(pins.values()):
        config = entry["config"]
        for split in splits:
            other = re.sub(r"split_k = \d+", f"split_k = {split}", config)
            if "split_k" not in config:
                other = config.replace("swap_ab = true", f"split_k = {split}, swap_ab = true") if split > 1 else config
            rows = int(re.search(r"tile_n = (\d+)", config)[1])
            consumers = int((re.search(r"consumers = (\d+)", config) or [0, 2])[1])
            blocks = shape[2] // (64 if kind in ("mxfp8_arranged", "mxfp8_weights", "nvfp4_arranged") else 128)
            if blocks // split // (consumers if rows == 64 else 1) < 4 or -(-shape[1] // rows) * split > 4 * 132:
                continue
            pins.setdefault(other, {"config": other})
            for count in stages:
                more = re.sub(r"stages = \d+", f"stages = {count // consumers * consumers if rows == 64 else count}", other)
                if split in (1, 2, 3):
                    pins.setdefault(more, {"config": more})
    first = costs[0]["config"]
    return [pins.pop(first, costs[0]), *pins.values()]


def list_all(args):
    shapes = args.shapes or draw_shapes(args.seed, args.count)
    found = [{"shape": shape, "kind": kind, "pins": list_pins(args.build_dir, kind, shape, args.splits, args.stages)}
             for shape, kind in itertools.product(shapes, args.kinds)]
    args.file.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{sum(len(entry['pins']) for entry in found)} configs")


def get_name(entry, number):
    return f"{entry['kind']}_{'x'.join(map(str, entry['shape']))}_{number}"


def compile_one(job):
    name, text, folder, build = job
    path = folder / f"{name}.so"
    if path.exists():
        return None
    if build:
        done = subprocess.run([build / "bin/fp8-compile", "-", "-o", path, "--cpu=x86-64-v3", "--target=sm_90a", "--recipe=none"],
                              input=text, text=True, capture_output=True)
        return f"{name}: {done.stderr[:200]}" if done.returncode else None
    try:
        fp8.compile(text, target="sm_90a", cache=False).save(path)
    except fp8.Error as error:
        return f"{name}: {describe(error)}"
    return None


def compile_all(args):
    args.folder.mkdir(parents=True, exist_ok=True)
    jobs = [(get_name(entry, i), write(entry["kind"], entry["shape"], f" {{fp8_gpu.config = {pin['config']}}}"), args.folder,
             args.build_dir) for entry in json.loads(args.file.read_text()) for i, pin in enumerate(entry["pins"])]
    start = time.time()
    with ProcessPoolExecutor(args.jobs) as pool:
        failed = [line for line in pool.map(compile_one, jobs) if line]
    print("\n".join([*failed[:20], f"{len(jobs) - len(failed)} of {len(jobs)} programs in {time.time() - start:.0f} s"]))


# ===----------------------------------------------------------------------===
# Runs
# ===----------------------------------------------------------------------===


def draw(kind, shape):
    """Arguments, which of them are the weight's, and what has to come out."""
    import torch
    m, n, k = shape
    generator = torch.Generator("cuda").manual_seed(m + n + k)
    if kind in ("w4a8_arranged", "rows"):
        x = (torch.randn(m, k, device="cuda", generator=generator) * 4).to(torch.float8_e4m3fn)
        packed, lifted = microscaled.draw_lifted(n, k, generator)
        weight = microscaled.arrange("w4a8", packed) if kind != "rows" else [lifted, packed[2]]
        return [x, torch.ones(m, 1, device="cuda"), *weight], 2, x.float() @ lifted.float().t(), 2e-2
    of = KINDS[kind][1]
    b, wide_b = microscaled.draw_operand(of, (n, k), generator)
    a, wide_a = microscaled.draw_operand(of, (m, k), generator)
    if kind == "mxfp8_both":
        return [*a, *b], len(a), wide_a.float() @ wide_b.float().t(), microscaled.MAX_ERROR
    b = (microscaled.arrange(of, b) if "arranged" in kind else b)[:2]
    return [wide_a, *b], 1, wide_a.float() @ wide_b.float().t(), microscaled.MAX_ERROR


def measure_copy(capture, seconds):
    import torch
    source = torch.randint(0, 255, (1 << 30,), dtype=torch.uint8, device="cuda")
    copied = torch.empty_like(source)
    graph = capture(lambda: copied.copy_(source), 1)
    graph.replay()
    return 2 * source.nbytes / (1e6 * statistics.median(seconds(graph.replay) for _ in range(7)))


def find_library():
    """The runtime that the package has loaded."""
    from fp8 import _core  # noqa: F401
    from programs import abi
    return abi.Library(Path(re.search(r"/\S*libfp8rt\S*", Path("/proc/self/maps").read_text())[0]))


def run_entry(gpu, args, entry, rate, capture, seconds):
    import torch
    from device import Call
    from programs import Program
    shape = tuple(entry["shape"])
    values, first, expected, most = draw(entry["kind"], shape)
    size = sum(value.nbytes for value in values[first:])
    copies = [values[first:]] + [[value.clone() for value in values[first:]] for _ in range(math.ceil(CACHE / size) - 1)]
    graphs, times, rows, kept = {}, {}, [], []
    for i, pin in enumerate(entry["pins"]):
        path = args.folder / f"{get_name(entry, i)}.so"
        row = {"shape": shape, "kind": entry["kind"], **pin}
        rows.append(row)
        if not path.exists():
            row["failed"] = "no program"
            continue
        try:
            function = Program(gpu.library, path).functions["f"]
            calls = [Call(gpu, function, [*values[:first], *copy]) for copy in copies]
            found = calls[0].read()[0].view(torch.bfloat16).float().reshape(expected.shape)
            row["error"] = float((found - expected).norm() / expected.norm())
            if not row["error"] <= most:
                row["failed"] = "wrong"
                print(f"{get_name(entry, i)} WRONG {row['error']:.4f}  {pin['config']}", flush=True)
                continue
            for call in calls:
                call()
            graphs[i] = capture(lambda: [call() for call in calls], 1)
            kept.append(calls)
        except Exception as error:
            row["failed"] = describe(error)
    for round_ in range(args.rounds + 1):
        for i, graph in graphs.items():
            graph.replay()
            times.setdefault(i, []).append(1e6 * seconds(graph.replay) / len(copies))
    for i, own in times.items():
        rows[i]["us"] = statistics.median(own[1:])
        rows[i]["share"] = size / rows[i]["us"] / rate
    timed = [row for row in rows if "us" in row]
    if timed:
        best, chosen = min(timed, key=lambda row: row["us"]), rows[0]
        print(f"{'x'.join(map(str, shape)):>14} {entry['kind']:15} chosen {chosen.get('us', math.nan):6.2f} us {chosen.get('share', math.nan):.2f}"
              f"  best {best['us']:6.2f} us {best['share']:.2f}  {best['config']}", flush=True)
    return rows


def run_all(args):
    import torch
    from device import Gpu
    from timing import capture, seconds, show_machine, write_record
    show_machine()
    rows = []
    rate = measure_copy(capture, seconds)
    print(f"a copy moves {rate / 1e6:.2f} TB/s")
    with torch.cuda.stream(torch.cuda.Stream()):
        gpu = Gpu(find_library())
        for entry in json.loads(args.file.read_text()):
            rows += run_entry(gpu, args, entry, rate, capture, seconds)
            torch.cuda.empty_cache()
            write_record(args.out, rows=rows, copy_bytes_per_us=rate)
    return int(any(row.get("failed") == "wrong" for row in rows))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("list")
    one.add_argument("file", type=Path)
    one.add_argument("--build-dir", type=Path, default=Path("build"))
    one.add_argument("--shapes", type=lambda text: [tuple(map(int, part.split("x"))) for part in text.split(",")])
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--count", type=int, default=4)
    one.add_argument("--kinds", nargs="*", default=["nvfp4_arranged", "mxfp8_arranged", "mxfp8_both"], choices=list(KINDS))
    one.add_argument("--splits", type=int, nargs="*", default=[1, 2, 3, 4, 5, 7, 10, 15])
    one.add_argument("--stages", type=int, nargs="*", default=[])
    two = commands.add_parser("compile")
    two.add_argument("file", type=Path)
    two.add_argument("folder", type=Path)
    two.add_argument("--jobs", type=int, default=15)
    two.add_argument("--build-dir", type=Path)
    three = commands.add_parser("run")
    three.add_argument("file", type=Path)
    three.add_argument("folder", type=Path)
    three.add_argument("--rounds", type=int, default=5)
    three.add_argument("--out", type=Path)
    args = parser.parse_args()
    return {"list": list_all, "compile": compile_all, "run": run_all}[args.command](args)


if __name__ == "__main__":
    sys.exit(main())
