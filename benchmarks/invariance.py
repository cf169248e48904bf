"""Whether the bits of a row depend on that row alone (the option `invariant`, docs/Inference.md).

usage: invariance.py configs [--shapes N] [--seed N] [--build-dir build]
       invariance.py check [--target sm_90a|sm_100a|cpu] [--triples N] [--seed N] [--free]
       invariance.py make DIR [--triples N] [--seed N] [--build-dir build]
       invariance.py run DIR [--triples N] [--rounds N] --out FILE

`configs` runs every config that selection thinks of, for random extents, on the emulator, and says which of them
have the same bits. `check` runs random programs (invariance_programs.py) with random numbers of rows, and compares
each row with what it is alone: a triple is a number of rows, the place of one among them, and what the others are.
Programs for a CPU have a tensor core's sums; with FP8_CUDA_DRIVER=emulator those for a GPU need none. `--free` is
without the option, to show that it does something.

`make` compiles programs for an H200, and pairs with and without the option of those random extents for which
another kernel is chosen. `run` needs PyTorch, a GPU and no compiler: the same triples there, and what the option costs.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from invariance_programs import GROUPS, KINDS, SERVED, write_served

POOL = 24  # Different rows of a program.
MOST_ROWS = 200
COST_ROWS = {"few": (1, 64), "some": (65, 512), "many": (1024, 8192)}


def draw_problem(rng, kinds=KINDS):
    """(kind, recipe, N, K): few columns and a long K, of which parts would be added up, among them."""
    name = rng.choice(list(kinds))
    n = 8 * rng.randint(4, 24) if rng.random() < 0.5 else 128 * rng.randint(1, 2)
    return name, rng.choice(kinds[name].recipes), n, 128 * rng.randint(2, 56)


def draw_rows(rng, most=MOST_ROWS):
    return min(most, int(2 ** rng.uniform(0, math.log2(most + 1))))


def draw_call(rng, kind, rows):
    """Which of the pool are the rows, and where groups begin. Row i of the pool is of group i % GROUPS."""
    chosen = [rng.randrange(POOL) for _ in range(rows)]
    if not kind.is_grouped:
        return chosen, None
    chosen.sort(key=lambda i: i % GROUPS)
    counts = Counter(i % GROUPS for i in chosen)
    offsets = [0]
    for group in range(GROUPS):
        offsets.append(offsets[-1] + counts[group])
    return chosen, offsets


def fill(shape, seed):
    """The same numbers everywhere, of several binades, so that sums lose bits at every step: as bits of bf16."""
    import numpy as np

    rng = np.random.Generator(np.random.PCG64(seed))
    values = rng.standard_normal(shape) * np.exp2(rng.integers(-3, 3, shape))
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


class Tally:
    """Triples, and those that differ, by kind and recipe."""

    def __init__(self):
        self.triples, self.wrong, self.examples = Counter(), Counter(), []

    def add(self, key, rows, places):
        self.triples[key] += rows
        self.wrong[key] += len(places)
        if places and len(self.examples) < 20:
            self.examples.append([*key, rows, places[:5]])

    def show(self):
        for key in sorted(self.triples):
            print(f"{' '.join(map(str, key)):45} {self.triples[key]:7} triples {self.wrong[key]:6} differ")
        print(f"{sum(self.triples.values())} triples, {sum(self.wrong.values())} differ", flush=True)

    def record(self):
        return {"triples": {" ".join(map(str, key)): count for key, count in self.triples.items()},
                "differ": {" ".join(map(str, key)): count for key, count in self.wrong.items() if count},
                "examples": self.examples}


# ===----------------------------------------------------------------------===
# With a compiler
# ===----------------------------------------------------------------------===


class _Compiled:
    """A problem's programs: for any rows, for one, and for other numbers as they come."""

    def __init__(self, problem, seed, options):
        import ml_dtypes

        self.name, self.recipe, self.n, self.k = problem
        self.kind, self.options, self.functions = KINDS[self.name], options, {}
        self.pool = fill((POOL, self.k), seed).view(ml_dtypes.bfloat16)
        self.weights = [fill(shape, seed + 1 + i).view(ml_dtypes.bfloat16)
                        for i, shape in enumerate(self.kind.weights(self.n, self.k))]

    def call(self, rows, chosen, offsets, options=None):
        """The bits of the result, [rows of chosen, ...]; `rows` are those that the program says."""
        import fp8
        import numpy as np

        key = rows, str(options)
        if key not in self.functions:
            text = self.kind.write(rows, self.n, self.k)
            self.functions[key] = fp8.compile(text, self.recipe, cache=False, **(options or self.options))
        given = [] if offsets is None else [np.array(offsets, np.int32)]
        x = np.ascontiguousarray(self.pool[chosen])
        return np.asarray(self.functions[key].functions["main"](x, *self.weights, *given)).view(np.uint32)

    def call_alone(self, options=None):
        """Each row of the pool by itself, by the program for one row."""
        import numpy as np

        rows = []
        for i in range(POOL):
            offsets = [int(group > i % GROUPS) for group in range(GROUPS + 1)] if self.kind.is_grouped else None
            rows.append(self.call(1, [i], offsets, options)[0])
        return np.stack(rows)


def check(args):
    import numpy as np

    rng, tally, machines = random.Random(args.seed), Tally(), Counter()
    options = {"target": args.target}
    options.update({"accumulate": "tensor-core"} if args.target == "cpu" and args.free else {})
    options.update({} if args.free else {"invariant": True})
    start = time.monotonic()
    while sum(tally.triples.values()) < args.triples:
        problem = draw_problem(rng)
        compiled = _Compiled(problem, rng.randrange(1 << 30), options)
        alone = compiled.call_alone()
        # Functions and sums outside of products are each machine's own.
        if args.target == "sm_90a" and not args.free and problem[0] in ("linear", "grouped"):
            same = np.array_equal(alone, compiled.call_alone({"target": "cpu", "invariant": True}))
            machines["same" if same else "differ"] += 1
        fixed = {draw_rows(rng) for _ in range(2)}
        for turn in range(args.calls):
            rows = draw_rows(rng) if turn % 2 else rng.choice(sorted(fixed))
            chosen, offsets = draw_call(rng, compiled.kind, rows)
            y = compiled.call(rows if rows in fixed else None, chosen, offsets)
            wrong = np.flatnonzero((y != alone[chosen]).any(axis=1)).tolist()
            tally.add(problem[:2], rows, wrong)
    tally.show()
    print(f"beside a CPU with a tensor core's sums: {dict(machines)}; {time.monotonic() - start:.0f} s")
    return int(bool(sum(tally.wrong.values()) or machines["differ"]))


def _list_costs(build, shapes, kind):
    """What selection thinks of for each (M, N, K): configs, the best first, with what they should take."""
    scales, accumulate = {"row": ("row", "promote"), "row_fast": ("row", "fast"), "block": ("block", "promote")}[kind]
    done = subprocess.run([build / "bin/fp8-tune", "--costs", f"--scales={scales}", f"--accumulate={accumulate}",
                           *(f"--shape={m}x{n}x{k}" for m, n, k in shapes)],
                          check=True, text=True, capture_output=True)
    return [entry["costs"] for entry in json.loads(done.stdout)]


def _get_parts(config):
    parts = config.partition("split_k = ")[2]
    return int(parts.split(",")[0].rstrip(">")) if parts else 1


def configs(args):
    import fp8
    import ml_dtypes
    import numpy as np

    rng = random.Random(args.seed)
    total, wrong, parts_differ, several = 0, 0, 0, 0
    for _ in range(args.shapes):
        kind = rng.choice(list(SERVED))
        m, n, k = draw_rows(rng, 96), 16 * rng.randint(2, 12), 128 * rng.randint(8, 32)
        bits = {}
        factors = (-(-n // 128), -(-k // 128)) if kind == "block" else (n, 1)
        x = fill((m, k), 1).view(ml_dtypes.bfloat16)
        codes = fill((n, k), 2).view(ml_dtypes.bfloat16).astype(ml_dtypes.float8_e4m3fn)
        factors = np.exp2(np.arange(math.prod(factors)) % 5 - 2).astype(np.float32).reshape(factors)
        for entry in _list_costs(args.build_dir, [(m, n, k)], kind)[0]:
            text = write_served(m, n, k, kind, entry["config"], "f32")
            program = fp8.compile(text, None, target="sm_90a", cache=False)
            y = np.asarray(program.functions["main"](x, codes, factors)).tobytes()
            bits.setdefault(_get_parts(entry["config"]), Counter())[y] += 1
            total += 1
        wrong += sum(len(found) > 1 for found in bits.values())
        one = next(iter(bits.get(1, [b""])))
        others = [found for parts, found in bits.items() if parts > 1]
        several += len(others)
        parts_differ += sum(one not in found for found in others) if 1 in bits else 0
        print(f"{kind} {m}x{n}x{k}: " + ", ".join(
            f"{sum(found.values())} configs of {parts} parts have {len(found)} results"
            for parts, found in sorted(bits.items())), flush=True)
    print(f"{total} configs; of as many parts of K {wrong} times with other bits; "
          f"{parts_differ} of {several} numbers of parts have other bits than one part")
    return int(bool(wrong))


# ===----------------------------------------------------------------------===
# For a GPU without one
# ===----------------------------------------------------------------------===


def _make_triples(args, rng):
    from programs import compile_program

    problems, made = [], []
    for name in KINDS:
        for recipe in KINDS[name].recipes:
            problems += [(name, recipe, *draw_problem(rng)[2:]) for _ in range(args.problems)]
    for number, (name, recipe, n, k) in enumerate(problems):
        fixed = [1, *sorted({draw_rows(rng) for _ in range(2)} - {1})]
        for rows in (None, *fixed):
            path = args.folder / f"t{number}_{rows or 'any'}.so"
            source = path.with_suffix(".mlir")
            source.write_text(KINDS[name].write(rows, n, k))
            compile_program(args.build_dir, source, path, "--target=sm_90a", f"--recipe={recipe}", "--invariant",
                            stderr=subprocess.DEVNULL)
            source.unlink()
        made.append({"problem": [name, recipe, n, k], "rows": fixed, "seed": rng.randrange(1 << 30)})
        print(f"{number + 1} of {len(problems)}: {name} {recipe} {n} {k}", flush=True)
    return made


def _make_costs(args, rng):
    """Random extents whose kernel is another one, and how many were drawn."""
    from programs import compile_program

    drawn, made = {}, []
    for kind in SERVED:
        for label, (least, most) in COST_ROWS.items():
            shapes = [(rng.randint(least, most), 128 * rng.randint(4, 224), 128 * rng.randint(4, 128))
                      for _ in range(args.shapes)]
            drawn[f"{kind} {label}"] = len(shapes)
            for shape, costs in zip(shapes, _list_costs(args.build_dir, shapes, kind)):
                if _get_parts(costs[0]["config"]) == 1:
                    continue
                one = [entry["clocks"] for entry in costs if _get_parts(entry["config"]) == 1]
                made.append({"kind": kind, "rows": label, "shape": shape, "free": costs[0]["config"],
                             "expected": one[0] / costs[0]["clocks"] if one else None})
    rng.shuffle(made)
    for number, entry in enumerate(made):
        source = args.folder / f"c{number}.mlir"
        source.write_text(write_served(*entry["shape"], entry["kind"]))
        for mode, options in (("free", []), ("invariant", ["--invariant"])):
            compile_program(args.build_dir, source, args.folder / f"c{number}_{mode}.so", "--target=sm_90a",
                            *options, stderr=subprocess.DEVNULL)
        source.unlink()
    print(f"{len(made)} of {sum(drawn.values())} extents have another kernel", flush=True)
    return {"drawn": drawn, "pairs": made}


def make(args):
    from programs import copy_libraries

    args.folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(args.seed)
    record = {"seed": args.seed, "triples": _make_triples(args, rng), "costs": _make_costs(args, rng)}
    (args.folder / "invariance.json").write_text(json.dumps(record, indent=1) + "\n")
    copy_libraries(args.build_dir, args.folder)
    return 0


class _Shipped:
    """A problem's programs on a GPU."""

    def __init__(self, gpu, folder, number, entry):
        from programs import Program

        self.gpu, (self.name, self.recipe, self.n, self.k) = gpu, entry["problem"]
        self.kind = KINDS[self.name]
        self.functions = {rows: Program(gpu.library, folder / f"t{number}_{rows or 'any'}.so").functions["main"]
                          for rows in (None, *entry["rows"])}
        self.pool = self._upload(fill((POOL, self.k), entry["seed"]))
        self.weights = [self._upload(fill(shape, entry["seed"] + 1 + i))
                        for i, shape in enumerate(self.kind.weights(self.n, self.k))]

    @staticmethod
    def _upload(bits):
        import torch

        return torch.from_numpy(bits.view("int16")).cuda()

    def call(self, rows, chosen, offsets):
        import torch
        from device import Call

        given = [] if offsets is None else [torch.tensor(offsets, dtype=torch.int32, device="cuda")]
        x = self.pool[torch.tensor(chosen, device="cuda")].contiguous()
        return Call(self.gpu, self.functions[rows], [x, *self.weights, *given]).read()[0]

    def call_alone(self):
        import torch

        offsets = [[int(group > i % GROUPS) for group in range(GROUPS + 1)] if self.kind.is_grouped else None
                   for i in range(POOL)]
        return torch.cat([self.call(1, [i], offsets[i]) for i in range(POOL)])


def _run_triples(args, gpu, record):
    import torch

    tally, rng = Tally(), random.Random(args.seed)
    share = -(-args.triples // len(record["triples"]))
    for number, entry in enumerate(record["triples"]):
        shipped = _Shipped(gpu, args.folder, number, entry)
        alone, done = shipped.call_alone(), 0
        while done < share:
            rows = rng.choice(entry["rows"][1:] or [1]) if rng.random() < 0.3 else draw_rows(rng)
            chosen, offsets = draw_call(rng, shipped.kind, rows)
            y = shipped.call(rows if rows in entry["rows"] else None, chosen, offsets)
            same = (y == alone[torch.tensor(chosen, device="cuda")]).all(dim=1)
            tally.add((shipped.name, shipped.recipe), rows, torch.nonzero(~same).flatten().tolist())
            done += rows
    return tally


def _run_costs(args, gpu, costs):
    """A row for each pair until the time is over, and how much longer the option takes."""
    import torch
    from device import Call
    from programs import Program
    from timing import measure

    rows, start = [], time.monotonic()
    for number, entry in enumerate(costs["pairs"]):
        if time.monotonic() - start > args.seconds:
            break
        m, n, k = entry["shape"]
        factors = (-(-n // 128), -(-k // 128)) if entry["kind"] == "block" else (n, 1)
        values = [torch.randn(m, k, device="cuda").bfloat16(),
                  torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn).view(torch.uint8),
                  torch.ones(factors, device="cuda")]
        calls = {mode: Call(gpu, Program(gpu.library, args.folder / f"c{number}_{mode}.so").functions["main"], values)
                 for mode in ("free", "invariant")}
        x = values[0]
        w = values[1].view(torch.float8_e4m3fn).bfloat16()
        times = measure({**calls, "bf16": lambda: x @ w.t()}, args.rounds, 0.05)
        row = {**entry, **{f"{name}_us": 1e3 * found["ms"] for name, found in times.items() if "ms" in found}}
        if "free_us" in row and "invariant_us" in row:
            row["ratio"] = row["invariant_us"] / row["free_us"]
        rows.append(row)
    return rows


def _show_costs(drawn, rows):
    """Over all that were drawn: those with the same kernel take the same time."""
    for key, count in drawn.items():
        kind, label = key.split()
        own = [row for row in rows if row["kind"] == kind and row["rows"] == label and "ratio" in row]
        ratios = sorted(row["ratio"] for row in own)
        if not ratios:
            print(f"{key:16} {count} extents, none measured with another kernel")
            continue
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{key:16} {count} extents, {len(ratios)} measured with another kernel: mean {mean:.3f}, worst "
              f"{ratios[-1]:.3f} {next(row['shape'] for row in own if row['ratio'] == ratios[-1])}")


def run(args):
    from device import Gpu
    from programs import open_library
    from timing import show_machine, write_record

    record = json.loads((args.folder / "invariance.json").read_text())
    show_machine()
    gpu = Gpu(open_library(None, args.folder.absolute()))
    tally = _run_triples(args, gpu, record)
    tally.show()
    rows = _run_costs(args, gpu, record["costs"])
    _show_costs(record["costs"]["drawn"], rows)
    write_record(args.out, invariance=tally.record(), drawn=record["costs"]["drawn"], costs=rows)
    return int(bool(sum(tally.wrong.values())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (configs, check, make, run):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--build-dir", type=Path, default=Path("build"))
        if function in (make, run):
            command.add_argument("folder", type=Path)
        if function is check:
            command.add_argument("--target", choices=["sm_90a", "sm_100a", "cpu"], default="sm_90a")
            command.add_argument("--free", action="store_true")
            command.add_argument("--calls", type=int, default=6, help="of a program's")
        if function in (check, run):
            command.add_argument("--triples", type=int, default=10000)
        if function in (configs, make):
            command.add_argument("--shapes", type=int, default=6 if function is configs else 100)
        if function is make:
            command.add_argument("--problems", type=int, default=2, help="of a kind and recipe")
        if function is run:
            command.add_argument("--rounds", type=int, default=4)
            command.add_argument("--seconds", type=float, default=70, help="for what the option costs")
            command.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    return args.function(args)


if __name__ == "__main__":
    sys.exit(main())
