"""Every kind of kernel for sm_80 and sm_89 on another GPU, whose driver assembles their PTX: results beside f64 or the CPU's,
beside the bits of the GPU's model (docs/Emulator.md), and the same bits a thousand times.

usage: mma_kinds.py make DIR [--build-dir build] [--part I/N] [--only REGEX]
       mma_kinds.py run DIR --out FILE [--repeats N] [--seconds N] [--part I/N] [--only REGEX]
       mma_kinds.py show FILE...

`make` compiles the programs, with what the model of an H200 computes, which takes `fp8` with NumPy. `run` is for a machine with a
GPU and without a compiler: it takes `fp8` with NumPy, `benchmarks`, `test` and PyTorch; `--repeats 0` is for
compute-sanitizer. Cases are those of the emulator's tests. `show` counts what the parts of a run wrote.
"""

import argparse
import hashlib
import itertools
import json
import os
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
MAKES = len(sys.argv) > 1 and sys.argv[1] == "make"
if MAKES:
    os.environ.setdefault("FP8_CUDA_DRIVER", "emulator")
    os.environ.setdefault("FP8_EMULATOR_ARCH", "90")

import fp8  # noqa: E402  The package, before a source tree's that others add.
from fp8 import tensors  # noqa: E402

# Before this folder, which has files of the same names.
sys.path[:0] = [str(ROOT / "test/Emulator/Inputs")]

from bit_programs import get_programs  # noqa: E402
from every_config import combine, get_open_configs, has_cpu_bits  # noqa: E402
from matmul.ada import KINDS  # noqa: E402
from matmul.epilogues import EPILOGUES  # noqa: E402
from matmul.program import program as write_matmul  # noqa: E402
from matmul.tables import TABLES  # noqa: E402

TARGETS = ("sm_89", "sm_80")
SHAPES = [(264, 272, 400), (24, 136, 1168), (130, 1032, 272)]
CONFIGS = 3  # So many of a kind, in turn.
NEAR = {"e4m3": 0.07, "e5m2": 0.14}  # Shares of the norm, where functions are approximated.


def load_test(name):
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"emulator_{name}", ROOT / f"test/Emulator/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def draw(rng, dtype, shape):
    """Numbers of a few binades, factors that are positive, indices of a table of 50 rows."""
    kind = np.dtype(tensors.DTYPES[dtype])
    data = rng.integers(0, 256, (*shape, kind.itemsize), np.uint8)
    table = {"BF16": "bf16", "F16": "f16", "F32": "factor", "F8_E4M3": "e4m3", "F8_E5M2": "e5m2"}.get(dtype)
    if dtype == "I64":
        return data[..., 0].astype(np.int64) % 50
    if dtype == "F8_E8M0":
        data = 110 + data % 30
    if table:
        data[..., -1] = np.frombuffer(TABLES[table], np.uint8)[data[..., -1]]
    return np.ascontiguousarray(data).view(kind).reshape(shape)


def to_torch(array, torch):
    if array.dtype.kind != "V" and array.dtype.name in ("float32", "float16", "int32", "int64", "bool", "uint8", "int8"):
        return torch.from_numpy(np.ascontiguousarray(array)).cuda()
    bits = torch.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8)).cuda()
    return bits.view(getattr(torch, array.dtype.name)).reshape(array.shape)


def to_numpy(tensor, torch):
    kind = str(tensor.dtype).removeprefix("torch.")
    if hasattr(np, kind) and kind != "bool":
        return tensor.cpu().numpy()
    bits = tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return bits.view(np.bool_ if kind == "bool" else getattr(ml_dtypes, kind, np.uint8)).reshape(tensor.shape)


# ===----------------------------------------------------------------------===
# Programs
# ===----------------------------------------------------------------------===


class Recorded:
    """A function or a program of one, whose calls are told of."""

    def __init__(self, function, key, book):
        self.function, self.key, self.book, self.calls = function, key, book, 0
        self.arguments = function.arguments

    def __call__(self, *arguments):
        found = self.book.call(self.function, arguments)
        results = list(found) if isinstance(found, (list, tuple)) else [found]
        self.book.note(f"{self.key} {self.calls}", [digest(np.asarray(x)) for x in results])
        if self.calls == 0 and self.book.repeats:
            self.book.repeat(self.function, arguments)
        self.calls += 1
        return found


class Book:
    """Programs by what they are made of, and what came of their calls."""

    def __init__(self, folder, repeats):
        self.folder, self.repeats, self.compile_really = folder, repeats, fp8.compile
        self.expected, self.rows, self.unit = {}, [], None
        for path in [] if MAKES else folder.glob("hashes*.json"):
            self.expected.update(json.loads(path.read_text()))

    def compile(self, source, recipe=None, *, target, cache=None, **options):
        key = hashlib.sha256(repr((source, recipe, target, sorted(options.items()))).encode()).hexdigest()[:16]
        path = self.folder / f"{key}.so"
        if MAKES and not path.exists():
            if target != "cpu":
                options["kernel_format"] = "ptx"
            made = self.compile_really(source, recipe, target=target, cache=False, cpu="x86-64-v3", **options)
            self.unit["remarks"] += [str(remark) for remark in made.remarks if "no kernel" in str(remark)]
            made.save(os.fspath(path))
        program = fp8.load(os.fspath(path))
        if target == "cpu":
            return program
        self.unit["programs"] += 1
        if len(program.functions) == 1:
            return Recorded(next(iter(program.functions.values())), key, self)
        return SimpleNamespace(functions={
            name: Recorded(function, f"{key} {name}", self) for name, function in program.functions.items()})

    def call(self, function, arguments):
        """The results, on the host; a GPU's programs take what is there."""
        if "FP8_CUDA_DRIVER" in os.environ:
            return function(*arguments)
        import torch

        found = function(*(to_torch(x, torch) if isinstance(x, np.ndarray) else x for x in arguments))
        if isinstance(found, (list, tuple)):
            return [to_numpy(x, torch) for x in found]
        return to_numpy(found, torch)

    def note(self, name, found):
        if MAKES:
            self.expected[name] = found
        wanted = self.expected.get(name)
        self.unit["results"] += len(found)
        self.unit["same"] += sum(one == other for one, other in zip(found, wanted or []))

    def repeat(self, function, arguments):
        """The same call many times, compared on the device."""
        import torch

        given = [to_torch(x, torch) if isinstance(x, np.ndarray) else x for x in arguments]

        def call():
            found = function(*given)
            return [x.reshape(-1).view(torch.uint8) for x in (found if isinstance(found, (list, tuple)) else [found])]
        first, changed = call(), torch.zeros((), dtype=torch.int32, device="cuda")
        for _ in range(self.repeats):
            for one, other in zip(call(), first):
                changed += (one != other).any()
        self.unit["repeated"] += len(first)
        self.unit["changed"] += int(changed)

    def run(self, unit):
        group, name, is_exact, work = unit
        self.unit = {"group": group, "name": name, "exact": is_exact, "wrong": "", "remarks": [],
                     **dict.fromkeys(("programs", "results", "same", "repeated", "changed"), 0)}
        fp8.compile = self.compile
        start = time.monotonic()
        try:
            self.unit["wrong"] = work(self) or ""
        except Exception as error:
            self.unit["wrong"] = f"{type(error).__name__}: {error}"[:600]
        self.unit["seconds"] = round(time.monotonic() - start, 2)
        self.rows.append(self.unit)
        if self.unit["wrong"] or self.unit["changed"] or is_exact and self.unit["same"] != self.unit["results"]:
            print(self.unit, flush=True)


# ===----------------------------------------------------------------------===
# What is run: group, name, whether the model's bits are promised, and work that says what is wrong
# ===----------------------------------------------------------------------===


def get_matmuls(target, folder, build):
    """Some configs of each kind; the programs of those with functions beside the model's numbers."""
    path, chosen = folder / f"configs_{target}.json", {}
    if path.exists():
        chosen = json.loads(path.read_text())
    for number, (name, spec) in enumerate(KINDS.items()):
        if spec.get("dynamic"):
            continue
        m, n, k = SHAPES[number % len(SHAPES)]
        inner = [spec.get("layout", "nt")[i] == "tn"[i] for i in range(2)]
        rows = 16 if spec["a"].startswith("e") else 8
        cols = 16 if spec["result"].startswith("e") or inner[1] and rows == 16 else 1
        extents = (-(-m // rows) * rows if inner[0] else m, -(-n // cols) * cols, k)
        if name not in chosen:
            open_ones = spec["configs"] or get_open_configs(
                spec, extents, target, lambda tool: os.fspath(build / "bin" / tool))
            step = max(1, len(open_ones) // CONFIGS)
            chosen[name] = open_ones[number % step::step][:CONFIGS]
        spec = {**spec, "configs": chosen[name]}

        def work(book, name=name, spec=spec, extents=extents):
            text, arrays = combine(write_matmul(spec, *extents), np.random.default_rng(0), False)
            found = book.compile(text, target=target)(*arrays.values())
            found = list(found) if isinstance(found, (list, tuple)) else [found]
            near = folder / f"near_{target}_{name}.npz"
            numbers = [np.asarray(x).astype(np.float32) for x in found]
            if MAKES:
                expected = book.compile(text, target="cpu")(*arrays.values())
                expected = list(expected) if isinstance(expected, (list, tuple)) else [expected]
                if not has_cpu_bits(spec, EPILOGUES):
                    np.savez_compressed(near, *[np.asarray(x).astype(np.float16) for x in expected[:2]])
            elif near.exists():
                expected = np.load(near).values()
            else:
                return ""
            for number, (one, other) in enumerate(zip(numbers, expected)):
                other = np.asarray(other).astype(np.float32)
                error = np.linalg.norm(one - other) / np.linalg.norm(other)
                if not error <= NEAR.get(spec["result"], 0.01):
                    return f"result {number}: error {error}"
            return ""
        yield f"matmul {target}", name, has_cpu_bits(spec, EPILOGUES), work
    if MAKES:
        path.write_text(json.dumps(chosen))


def get_grouped(target):
    grouped = load_test("grouped")
    for name, kind in grouped.ADA.items():
        def work(book, name=name, kind=kind):
            def run(tools, target, arguments, body, results, arrays):
                types = ", ".join(type_ for _, type_ in results)
                text = (f"func.func @main({', '.join(arguments)}) -> ({types}) {{\n{body}"
                        f"  return {', '.join(value for value, _ in results)} : {types}\n}}\n")
                return [np.asarray(x) for x in book.compile(text, target=target)(*arrays)]
            grouped.run = run
            wrong, total = grouped.run_kind(name, kind, SimpleNamespace(tools="", target=target, only=None))
            return f"{wrong} of {total} wrong" if wrong else ""
        yield f"grouped {target}", name, True, work


def get_streams(target):
    """Programs of each recipe, passes over memory, transposes and loops."""
    for name, recipe, text in get_programs():
        if not re.match(r"(32x1664x1024|200x400x264)-|streams-(77x130|33x264)|transposes|loops", name):
            continue

        def work(book, name=name, recipe=recipe, text=text):
            made = book.compile(text, recipe, target=target)
            functions = made.functions if hasattr(made, "functions") else {name: made}
            for one, function in functions.items():
                rng = np.random.default_rng(list(one.encode()))
                function(*(draw(rng, info.dtype, info.shape) for info in function.arguments))
        yield f"passes {target}", name, True, work


def get_attention(target):
    """Beside f64, by the tests' own cases."""
    forward, backward = load_test("attention"), load_test("attention_backward")
    cases = [("forward", i, case) for i, case in enumerate(
        forward.CASES + forward.SOME + forward.CAPS + forward.MASKS + forward.DROPOUT)]
    if target != "sm_89":
        cases = cases[::4]
    gradients = [case for name in ("mma", "some", "codes", "bf16", "f16", "e4m3", "e5m2", "empty", "ranges", "caps", "dropout")
                 for case in backward.CASES[name]]
    rng = np.random.default_rng(42)
    gradients += [backward.Gradients.random(rng) for _ in range(12)]
    cases += [("gradient", i, case) for i, case in enumerate(gradients[::1 if target == "sm_89" else 3])]
    for what, i, case in cases:
        def work(book, i=i, case=case):
            case.check(target, np.random.default_rng(i))
        few = what == "forward" and case.queries <= 8
        yield f"{'decode' if few else what} {target}", f"{case.element} {i}", False, work
    bits = load_test("attention_backward_bits")

    def work(book):
        """With a CPU's exponentials, which are 1 here, its bits."""
        sys.argv[1:] = [target]
        bits.main()
    if target == "sm_89":
        yield f"gradient's bits {target}", "", True, work


def get_units(args):
    """One of each group after the other, matmuls last, so that time that ends leaves no group out."""
    groups = {}
    for target in TARGETS:
        for unit in itertools.chain(get_grouped(target), get_streams(target), get_attention(target)):
            groups.setdefault(unit[0], []).append(unit)
    yield from filter(None, itertools.chain(*itertools.zip_longest(*groups.values())))
    for target in reversed(TARGETS):
        yield from get_matmuls(target, args.folder, args.build_dir)


def execute(args):
    args.folder.mkdir(parents=True, exist_ok=True)
    book = Book(args.folder, 0 if MAKES else args.repeats)
    part, parts = map(int, args.part.split("/"))
    start = time.monotonic()
    for number, unit in enumerate(get_units(args)):
        if not MAKES and time.monotonic() - start > args.seconds:
            break
        if number % parts == part and re.search(args.only, f"{unit[0]} {unit[1]}"):
            book.run(unit)
            if not MAKES:  # What is done counts, should time end.
                args.out.write_text(json.dumps({"seconds": round(time.monotonic() - start, 1), "rows": book.rows}))
    if MAKES:
        (args.folder / f"hashes{part}.json").write_text(json.dumps(book.expected))
        for row in book.rows:
            if row["remarks"]:
                print(row["group"], row["name"], row["remarks"][:1])
    show_rows(book.rows)


def show_rows(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    print(f"{'group':24} cases wrong programs results model's bits repeated changed")
    for group, some in sorted(groups.items()):
        total = {key: sum(row[key] for row in some) for key in ("programs", "results", "same", "repeated", "changed")}
        wrong = sum(bool(row["wrong"]) or row["exact"] and row["same"] != row["results"] for row in some)
        print(f"{group:24} {len(some):5} {wrong:5} {total['programs']:8} {total['results']:7} {total['same']:12} "
              f"{total['repeated']:8} {total['changed']:7}")


def show(args):
    rows = [row for path in args.files for row in json.loads(path.read_text())["rows"]]
    show_rows(rows)
    for row in rows:
        if row["wrong"] or row["changed"] or row["exact"] and row["same"] != row["results"]:
            print("wrong:", row["group"], row["name"], row["wrong"][:300], f"{row['same']} of {row['results']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name in ("make", "run"):
        command = commands.add_parser(name)
        command.set_defaults(function=execute)
        command.add_argument("folder", type=Path)
        command.add_argument("--build-dir", type=Path, default=Path("build"))
        command.add_argument("--part", default="0/1", metavar="I/N")
        command.add_argument("--only", default="")
        if name == "run":
            command.add_argument("--out", type=Path, required=True)
            command.add_argument("--repeats", type=int, default=1000)
            command.add_argument("--seconds", type=float, default=600, help="after which no case begins")
    command = commands.add_parser("show")
    command.set_defaults(function=show)
    command.add_argument("files", type=Path, nargs="+")
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
