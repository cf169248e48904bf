"""Products in FP8 of an operand whose rows are innermost, on Hopper, whose tensor cores read K innermost alone.

Of each shape there is the kernel of an operand with K innermost (`plain`), that which transposes the other order in
registers (`kernel`), and a transposed copy with the product of it (`copy`), of B with one accumulation and the other
and of A. `torch` is torch._scaled_mm of K innermost. A row has times by CUDA graphs in rounds that alternate, and of
`kernel` and `copy` the speed by that of `plain`. With `--configs` kernels run in N more configs: of each tile the one that the
compiler expects to be the fastest. Behind each kind is what `transposed-codes=cost` takes. Results are compared with those of f32.

usage: transposing.py [--build-dir build] [--programs DIR] [--compile-only] [--rounds N] [--shapes MxNxK,...] [--configs N]
                      [--out FILE]

`--compile-only` makes programs in DIR, for a machine without the compiler.
"""

import json
import re
import subprocess
import sys

from device import Call, run_shapes
from programs import (Program, compile_program, get_name, list_work, make_parser, make_programs, parse_shapes, tensor_type)
from timing import get_ratio, measure, torch

# What is transposed, and how products are added up.
KINDS = {"b_fast": ("b", "fast"), "b_promote": ("b", "promote"), "a_fast": ("a", "fast"), "a_promote": ("a", "promote")}
SHAPES = [(8192, 4096, 14336), (8192, 14336, 4096), (4096, 4096, 4096), (1024, 8192, 8192), (2048, 11008, 4096)]
WARM_UP_S = 0.05
MAX_ERROR = 4e-3


def scaled(shape):
    return f"!fp8.scaled<{'x'.join(map(str, shape))}xf8E4M3FN, block = [*, *], scale = f32>"


def write(name, way, kind, shape, pin=""):
    m, n, k = shape
    transposed, accumulate = KINDS[kind]
    arguments, body, values, types = [], "", {}, {}
    for operand, rows in (("a", m), ("b", n)):
        turned = way != "plain" and operand == transposed
        own = (k, rows) if turned else (rows, k)
        arguments += [f"%{operand}: {tensor_type(own, 'f8E4M3FN')}", f"%s{operand}: tensor<1x1xf32>"]
        body += (f"  %v{operand} = fp8.assemble %{operand}, %s{operand} : {tensor_type(own, 'f8E4M3FN')}, tensor<1x1xf32> -> "
                 f"{scaled(own)}\n")
        values[operand], types[operand] = f"%v{operand}", scaled(own)
        if turned and way == "copy":
            values[operand], types[operand] = f"%t{operand}", scaled((rows, k))
            body += f"  %t{operand} = fp8.transpose %v{operand} permutation = [1, 0] : {scaled(own)}\n"
    flag = f" transpose_{transposed}" if way == "kernel" else ""
    d = tensor_type((m, n), "bf16")
    return (f"func.func @{name}({', '.join(arguments)}) -> {d} {{\n{body}"
            f"  %r = fp8.matmul {values['a']}, {values['b']}{flag} accumulate = {accumulate}{pin} : {types['a']}, {types['b']} -> {d}\n"
            f"  return %r : {d}\n}}\n")


def list_configs(build, kind, shape, count):
    """The one that is expected to be the fastest of each tile, the best of them."""
    done = subprocess.run([build / "bin/fp8-tune", "-", "--costs", "--target=sm_90a", "--recipe=none"], check=True, text=True,
                          capture_output=True, input=write("f", "kernel", kind, shape))
    found = {}
    for entry in json.loads(done.stdout)[0]["costs"]:
        found.setdefault(tuple(re.findall(r"(tile_m|tile_n|consumers) = (\w+)", entry["config"])), entry["config"])
    return list(found.values())[1:count + 1]


def list_choices(build, shape):
    """What transposed-codes=cost takes of each kind: the kernel or the copy."""
    choices = {}
    for kind in KINDS:
        done = subprocess.run([build / "bin/fp8-compile", "-", "--emit=mlir", "--compile-to=fusion", "--target=sm_90a", "--recipe=none",
                               "--transposed-codes=cost"], check=True, text=True, capture_output=True, input=write("f", "copy", kind, shape))
        choices[kind] = "copy" if "fp8.transpose" in done.stdout else "kernel"
    return choices


def compile_programs(args, folder):
    work = {}
    for shape in args.shapes:
        text, configs = "", {}
        for kind in KINDS:
            text += "".join(write(f"{kind}_{way}", way, kind, shape) for way in ("plain", "kernel", "copy"))
            for i, config in enumerate(list_configs(args.build_dir, kind, shape, args.configs) if args.configs else ()):
                configs[f"{kind}_kernel_{i}"] = config
                text += write(f"{kind}_kernel_{i}", "kernel", kind, shape, f" {{fp8_gpu.config = {config}}}")
        source = folder / f"{get_name(shape)}.mlir"
        source.write_text(text)
        options = ("--target=sm_90a", "--recipe=none")
        compile_program(args.build_dir, source, folder / f"{get_name(shape)}.so", *options)
        work[get_name(shape)] = {"work": list_work(args.build_dir, source, *options), "configs": configs,
                                 "cost": list_choices(args.build_dir, shape)}
        print(get_name(shape), flush=True)
    (folder / "transposing.json").write_text(json.dumps(work, indent=1) + "\n")


def run_shape(gpu, folder, shape, args):
    program = Program(gpu.library, folder / f"{get_name(shape)}.so")
    m, n, k = shape
    generator = torch.Generator("cuda").manual_seed(1)
    codes = {name: (torch.randn(rows, k, device="cuda", generator=generator) * 8).to(torch.float8_e4m3fn)
             for name, rows in (("a", m), ("b", n))}
    turned = {name: value.t().contiguous() for name, value in codes.items()}
    one = torch.full((1, 1), .25, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    expected = codes["a"].float() @ codes["b"].float().t() / 16
    calls, wrong = {}, {}
    for name, function in program.functions.items():
        kind = next(kind for kind in KINDS if name.startswith(kind + "_"))
        own = dict(codes)
        if "plain" not in name:
            own[KINDS[kind][0]] = turned[KINDS[kind][0]]
        call = Call(gpu, function, [own["a"], one, own["b"], one])
        found = call.read()[0].view(torch.bfloat16).float().reshape(m, n)
        error = float((found - expected).norm() / expected.norm())
        if not error <= MAX_ERROR:
            wrong[name] = error
        calls[name] = call
    scale = torch.full((), .25, device="cuda")
    calls["torch"] = lambda: torch._scaled_mm(codes["a"], codes["b"].t(), scale, scale, out_dtype=torch.bfloat16,
                                              use_fast_accum=True)
    times = measure(calls, args.rounds, WARM_UP_S)
    ratios = {name: get_ratio(times[re.sub(r"_(kernel|copy)(_\d+)?$", "_plain", name)], row)
              for name, row in times.items() if re.search("_kernel|_copy", name)}
    known = json.loads((folder / "transposing.json").read_text())[get_name(shape)]
    print(f"{get_name(shape):>16} torch {1e3 * times['torch'].get('ms', float('nan')):7.1f} us" +
          (f"  WRONG {wrong}" if wrong else ""), flush=True)
    for kind in KINDS:
        plain = times[f"{kind}_plain"].get("ms")
        print(f"  {kind:10} plain {1e3 * plain:7.1f} us, {2e-9 * m * n * k / plain:5.0f} TFLOP/s;  " if plain else f"  {kind} failed",
              *(f"{name[len(kind) + 1:]} {ratio:.3f}" if ratio else f"{name} failed" for name, ratio in ratios.items()
                if name.startswith(kind)), f"cost takes the {known['cost'][kind]}", flush=True)
    return {"shape": shape, "wrong": wrong, "times": times, "ratios": ratios, **known}


def main():
    parser = make_parser(rounds=6)
    parser.add_argument("--configs", type=int, default=0)
    parser.add_argument("--shapes", default=SHAPES, type=parse_shapes)
    args = parser.parse_args()
    folder = make_programs(args, lambda folder: compile_programs(args, folder))
    if not folder:
        return 0
    rows, failed = run_shapes(run_shape, folder, args)
    return int(bool(failed) or any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
