"""Products of MXFP8 and NVFP4 on a GPU that multiplies neither, beside PyTorch's in bf16.

Random shapes. A row has the times of one: of the product of codes and factors on both sides (`both`), as the compiler
has it, with a number of rows that the program does not know (`any`), and as one of bf16 (`wide`); of one whose A is bf16 and whose B kernels read as codes (`weights`), and as the compiler has it with
any number of rows (`weights_any`), and of four bits with codes that are arranged for that (`arranged`, `both_arranged`,
docs/PackedWeights.md); of ours in bf16, of a pass that decodes B, both one after the other (`apart`), and of ours
in E4M3 with a factor for each row (`rows`), also with weights in MXFP4 that are lifted to it (`w4a8`, `w4a8_arranged`), and
of bf16 beside E4M3 that kernels read (`e4m3_weights`). Copies that move as many bytes as weights of 8 and of 4.5 bits have are `copy_8` and `copy_4`. Beside them are PyTorch's `F.linear` in bf16 and `torch._scaled_mm`, in
the same rounds, by CUDA graphs. `--grouped` has mixtures of experts in their place, whose groups are of random sizes,
one of them empty. Results are compared with those of numbers that PyTorch decodes.

usage: microscaled.py [--build-dir build] [--programs DIR] [--compile-only] [--rounds N] [--seed N] [--count N]
                      [--shapes MxNxK,...] [--functions REGEX] [--grouped] [--configs N] [--out FILE]

With `--functions` programs have no others than those whose whole names match. With `--configs` those products whose weights are read as codes, and those of FP8 with factors for each 32, run in N more
configs: of each tile and way to lift the one that the compiler expects to be the fastest. `--compile-only` makes programs in DIR, for a machine without the compiler.
"""

import json
import math
import random
import re
import subprocess
import sys

from device import Call, run_shapes
from programs import (Program, compile_program, get_name, list_work, make_parser, make_programs, parse_shapes, tensor_type)
from timing import get_ratio, measure, torch

# Codes, factors, elements of K that share one, bits of a code, and whether the tensor has a factor.
KINDS = {"mxfp8": ("f8E4M3FN", "f8E8M0FNU", 32, 8, False), "nvfp4": ("f4E2M1FN", "f8E4M3FN", 16, 4, True)}
GROUPS = 8
MOST_ROWS = 64  # With more, products in FP8 with factors for each 32 do not run in several configs.
WARM_UP_S = 0.04
MAX_ERROR = 4e-3  # A share of the norm: a result is rounded to bf16.


def draw_shapes(seed, count):
    draw, shapes = random.Random(seed), []
    rows = [1, 16, 64, 256, 1024, 2048, 4096, 8192]
    for i in range(count):
        m = rows[i % len(rows)]
        if m > 1:
            m -= draw.randrange(m // 4 + 1)
        shapes.append((m, 64 * draw.randint(32, 160), 128 * draw.randint(16, 96)))
    return shapes


# ===----------------------------------------------------------------------===
# Programs
# ===----------------------------------------------------------------------===


class Operand:
    """An operand's arguments and what makes it of them."""

    def __init__(self, kind, name, shape, has_tensor=None, arranged=False):
        codes, factor, group, _, has = KINDS[kind]
        factors = [*shape[:-1], shape[-1] // group]
        one = [1] * len(shape)
        block = ", ".join(["1"] * (len(shape) - 1) + [str(group)])
        more = ", tensor_scale = f32" if has else ""
        self.type = f"!fp8.scaled<{'x'.join(map(str, shape))}x{codes}, block = [{block}], scale = {factor}{more}>"
        types, names = [tensor_type(shape, codes), tensor_type(factors, factor)], [f"%{name}", f"%{name}_factors"]
        self.made = ""
        if has:
            types.append(tensor_type(one, "f32"))
            names.append(f"%{name}_tensor")
            if has_tensor is False:
                self.made = f"  {names[-1]} = arith.constant dense<1.0> : {types[-1]}\n"
        given = len(types) if has_tensor is not False else 2
        self.arguments = [f"{own}: {type_}" for own, type_ in zip(names[:given], types)]
        self.arguments[0] += " {fp8.arranged = 1}" * arranged
        self.made += f"  %{name}_value = fp8.assemble {', '.join(names)} : {', '.join(types)} -> {self.type}\n"
        self.value = f"%{name}_value"


def function(name, arguments, body, result):
    return f"func.func @{name}({', '.join(arguments)}) -> {result} {{\n{body}  return %r : {result}\n}}\n"


def write_weights(kind, name, m, n, k, pin="", arranged=False):
    wide_a, wide_b, d = tensor_type((m, k), "bf16"), tensor_type((n, k), "bf16"), tensor_type((m, n), "bf16")
    weights = Operand(kind, "b", (n, k), has_tensor=False, arranged=arranged)
    folded = "" if m == "?" else " {fp8.folded}"
    return function(name, [f"%x: {wide_a}", *weights.arguments], weights.made +
                    f"  %w = fp8.dequantize {weights.value}{folded} : {weights.type} -> {wide_b}\n"
                    f"  %r = fp8.matmul %x, %w accumulate = fast{pin} : {wide_a}, {wide_b} -> {d}\n", d)


def write_arranged(kind, name, m, n, k, pin=""):
    return write_weights(kind, name, m, n, k, pin, arranged=True)


def write_both(kind, name, m, n, k, pin="", arranged=False):
    a, b, d = Operand(kind, "a", (m, k)), Operand(kind, "b", (n, k), arranged=arranged), tensor_type((m, n), "bf16")
    return function(name, a.arguments + b.arguments, f"{a.made}{b.made}  %r = fp8.matmul {a.value}, {b.value}{pin} : "
                    f"{a.type}, {b.type} -> {d}\n", d)


def write_wide(kind, name, m, n, k):
    a, b, d = Operand(kind, "a", (m, k)), Operand(kind, "b", (n, k)), tensor_type((m, n), "bf16")
    wide_a, wide_b = tensor_type((m, k), "bf16"), tensor_type((n, k), "bf16")
    return function(name, a.arguments + b.arguments,
                    f"{a.made}{b.made}  %x = fp8.dequantize {a.value} : {a.type} -> {wide_a}\n"
                    f"  %y = fp8.dequantize {b.value} : {b.type} -> {wide_b}\n"
                    f"  %r = fp8.matmul %x, %y accumulate = fast : {wide_a}, {wide_b} -> {d}\n", d)


def list_configs(build, write, kind, shape, count):
    """The one that is expected to be the fastest of each tile, way to lift and part of K, the best of them."""
    done = subprocess.run([build / "bin/fp8-tune", "-", "--costs", "--target=sm_90a", "--recipe=none"], check=True, text=True,
                          capture_output=True, input=write(kind, "f", *shape))
    if write is write_both and "multiplied in bf16" in done.stderr:
        if shape[0] <= 8:  # It always is.
            return []
        return widen_configs(list_configs(build, write, kind, (8, *shape[1:]), count), shape[0])
    found = {}
    keys = "tile_m|tile_n|lifters|lift_warps|swap_ab|schedule|consumers" + ("|split_k" if write is write_both else "")
    for entry in json.loads(done.stdout)[0]["costs"]:
        found.setdefault(tuple(re.findall(rf"({keys}) = (\w+)", entry["config"])), entry)
    return list(found.values())[:count]


def widen_configs(entries, rows):
    """Those of few rows with tiles of more, without what they are expected to take: the compiler chooses bf16."""
    def widen(config):
        config = re.sub(r"tile_m = \d+", f"tile_m = {-(-rows // 8) * 8}", config)
        return re.sub(r"stages = (\d+)", lambda match: f"stages = {min(int(match[1]), 6)}", config)
    return [{"config": config} for config in dict.fromkeys(widen(entry["config"]) for entry in entries)]


def write_kind(kind, m, n, k):
    wide_b, weights = tensor_type((n, k), "bf16"), Operand(kind, "b", (n, k), has_tensor=False)
    return "".join([
        write_both(kind, f"{kind}_both", m, n, k),
        write_both(kind, f"{kind}_any", "?", n, k),
        write_wide(kind, f"{kind}_wide", m, n, k) if kind == "mxfp8" else "",
        write_weights(kind, f"{kind}_weights", m, n, k),
        write_weights(kind, f"{kind}_weights_any", "?", n, k),
        write_arranged(kind, f"{kind}_arranged", m, n, k), write_arranged(kind, f"{kind}_arranged_any", "?", n, k),
        write_both(kind, f"{kind}_both_arranged", m, n, k, arranged=True),
        function(f"{kind}_decode", weights.arguments,
                 f"{weights.made}  %r = fp8.dequantize {weights.value} : {weights.type} -> {wide_b}\n", wide_b)])


def write_lifted(name, m, n, k, pin="", arranged=False):
    """E4M3 by MXFP4 that is lifted to it, with factors for each row."""
    arguments, made, types = [], "", []
    mark = " {fp8.arranged = 1}" * arranged
    codes, exponents = tensor_type((n, k), "f4E2M1FN"), tensor_type((-(-k // 128), n), "i32")
    for own, rows in zip("ab", (m, n)):
        lifted, factors = tensor_type((rows, k), "f8E4M3FN"), tensor_type((rows, 1), "f32")
        types.append(f"!fp8.scaled<{rows}x{k}xf8E4M3FN, block = [1, *], scale = f32>")
        if own == "a":
            arguments.append(f"%a: {lifted}")
        else:
            arguments += [f"%codes: {codes}{mark}", f"%exponents: {exponents}"]
            made += f"  %b = fp8.lift %codes, %exponents : {codes}, {exponents} -> {lifted}\n"
        arguments.append(f"%{own}_factors: {factors}")
        made += f"  %{own}_value = fp8.assemble %{own}, %{own}_factors : {lifted}, {factors} -> {types[-1]}\n"
    d = tensor_type((m, n), "bf16")
    if name == "w4a8_decode":
        lifted = tensor_type((n, k), "f8E4M3FN")
        return function(name, arguments[2:4], f"  %r = fp8.lift %codes, %exponents : {codes}, {exponents} -> {lifted}\n", lifted)
    return function(name, arguments, made + f"  %r = fp8.matmul %a_value, %b_value accumulate = fast{pin} : {types[0]}, "
                    f"{types[1]} -> {d}\n", d)


def write_unscaled(m, n, k, arranged=False):
    """bf16 by E4M3 with a factor for each row, as layers have it: sums are multiplied with factors."""
    wide_a, wide_b, d = tensor_type((m, k), "bf16"), tensor_type((n, k), "bf16"), tensor_type((m, n), "bf16")
    codes, units, factors = tensor_type((n, k), "f8E4M3FN"), tensor_type((n, k // 32), "f8E8M0FNU"), tensor_type((n,), "f32")
    scaled = f"!fp8.scaled<{n}x{k}xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>"
    name, mark = "e4m3_arranged" if arranged else "e4m3_weights", " {fp8.arranged = 1}" * arranged
    return function(name, [f"%x: {wide_a}", f"%b: {codes}{mark}", f"%f: {factors}"],
                    f"  %units = arith.constant dense<1.0> : {units}\n"
                    f"  %w = fp8.assemble %b, %units : {codes}, {units} -> {scaled}\n"
                    f"  %y = fp8.dequantize %w {{fp8.folded}} : {scaled} -> {wide_b}\n"
                    f"  %r = fp8.matmul %x, %y accumulate = fast epilogue(%f : {factors}) {{\n  ^bb0(%acc: f32, %o: f32):\n"
                    f"    %v = arith.mulf %acc, %o : f32\n    %t = arith.truncf %v : f32 to bf16\n    fp8.yield %t : bf16\n  }} : "
                    f"{wide_a}, {wide_b} -> {d}\n", d)


def write_shape(m, n, k):
    wide_a, wide_b, d = tensor_type((m, k), "bf16"), tensor_type((n, k), "bf16"), tensor_type((m, n), "bf16")
    types = [f"!fp8.scaled<{rows}x{k}xf8E4M3FN, block = [1, *], scale = f32>" for rows in (m, n)]
    arguments, made = [], ""
    for name, rows, type_ in zip("ab", (m, n), types):
        codes, factors = tensor_type((rows, k), "f8E4M3FN"), tensor_type((rows, 1), "f32")
        arguments += [f"%{name}: {codes}", f"%{name}_factors: {factors}"]
        made += f"  %{name}_value = fp8.assemble %{name}, %{name}_factors : {codes}, {factors} -> {type_}\n"
    return "".join([*(write_kind(kind, m, n, k) for kind in KINDS), function(
        "bf16", [f"%x: {wide_a}", f"%y: {wide_b}"], f"  %r = fp8.matmul %x, %y accumulate = fast : {wide_a}, {wide_b} -> {d}\n",
        d), *(write_lifted(name, m, n, k, arranged="arranged" in name) for name in ("w4a8", "w4a8_arranged", "w4a8_decode")),
        write_unscaled(m, n, k), write_unscaled(m, n, k, arranged=True),
        function("rows", arguments, made + f"  %r = fp8.matmul %a_value, %b_value accumulate = fast : {types[0]}, "
                     f"{types[1]} -> {d}\n", d)])


def write_groups(m, n, k):
    d, offsets = tensor_type((m, n), "bf16"), tensor_type((GROUPS + 1,), "i32")
    text = ""
    for kind, arranged in ((kind, arranged) for kind in KINDS for arranged in (False, True)):
        if arranged and KINDS[kind][3] == 8:
            continue
        a, b = Operand(kind, "a", (m, k)), Operand(kind, "b", (GROUPS, n, k), arranged=arranged)
        text += function(f"{kind}_both" + "_arranged" * arranged, [*a.arguments, *b.arguments, f"%o: {offsets}"],
                         f"{a.made}{b.made}  %r = fp8.grouped_matmul {a.value}, {b.value} offsets(%o : {offsets}) : "
                         f"{a.type}, {b.type} -> {d}\n", d)
    wide_a, wide_b = tensor_type((m, k), "bf16"), tensor_type((GROUPS, n, k), "bf16")
    return text + function("bf16", [f"%x: {wide_a}", f"%y: {wide_b}", f"%o: {offsets}"],
                           f"  %r = fp8.grouped_matmul %x, %y offsets(%o : {offsets}) accumulate = fast : {wide_a}, "
                           f"{wide_b} -> {d}\n", d)


def compile_programs(args, folder):
    work = {}
    for shape in args.shapes:
        source = folder / f"{get_name(shape)}.mlir"
        text, configs = (write_groups if args.grouped else write_shape)(*shape), {}
        for kind in KINDS if args.configs and not args.grouped else ():
            for form, write in (("weights", write_weights), ("arranged", write_arranged), ("both", write_both)):
                if form == "both" and (kind != "mxfp8" or shape[0] > MOST_ROWS):
                    continue
                for i, entry in enumerate(list_configs(args.build_dir, write, kind, shape, args.configs)):
                    name = f"{kind}_{form}_{i}"
                    configs[name] = entry
                    text += write(kind, name, *shape, f" {{fp8_gpu.config = {entry['config']}}}")
        for form in ("w4a8", "w4a8_arranged") if args.configs and not args.grouped else ():
            write = lambda _, *others, form=form: write_lifted(*others, arranged=form == "w4a8_arranged")
            for i, entry in enumerate(list_configs(args.build_dir, write, form, shape, args.configs)):
                configs[f"{form}_{i}"] = entry
                text += write(form, f"{form}_{i}", *shape, f" {{fp8_gpu.config = {entry['config']}}}")
        source.write_text("".join(function for function in re.split(r"(?m)^(?=func\.func @)", text)
                                  if re.match(rf"func\.func @({args.functions})\(", function)))
        options = ("--target=sm_90a", "--recipe=none")
        compile_program(args.build_dir, source, folder / f"{get_name(shape)}.so", *options)
        work[get_name(shape)] = {"work": list_work(args.build_dir, source, *options), "configs": configs}
        print(get_name(shape), flush=True)
    (folder / "microscaled.json").write_text(json.dumps(work, indent=1) + "\n")


# ===----------------------------------------------------------------------===
# Runs
# ===----------------------------------------------------------------------===


def draw_operand(kind, shape, generator):
    """Its arguments, and its values in bf16 without the tensor's factor."""
    codes, _, group, bits, has_tensor = KINDS[kind]
    draw = lambda low, high, *extents: torch.randint(low, high, extents, device="cuda", generator=generator)
    *rows, k = shape
    if bits == 8:
        stored = (torch.randn(shape, device="cuda", generator=generator) * 16).to(torch.float8_e4m3fn)
        values = stored.float()
        bytes_ = draw(118, 127, *rows, k // group).to(torch.uint8)
        factors = torch.exp2(bytes_.float() - 127)
    else:
        numbers = draw(0, 16, *shape)
        stored = (numbers[..., ::2] | numbers[..., 1::2] << 4).to(torch.uint8)
        magnitudes = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6], device="cuda")
        values = torch.cat([magnitudes, -magnitudes])[numbers]
        bytes_ = (torch.rand((*rows, k // group), device="cuda", generator=generator) * 2 + .25).to(torch.float8_e4m3fn)
        factors = bytes_.float()
    values = values * factors.repeat_interleave(group, -1)
    wide = values.to(torch.bfloat16)
    assert bool((wide.float() == values).all())
    given = [stored, bytes_]
    if has_tensor:
        given.append(torch.full([1] * len(shape), .5, device="cuda"))
    return given, wide


def draw_lifted(n, k, generator):
    """Codes of MXFP4, words of exponents and factors of rows, and the E4M3 that they are lifted to."""
    draw = lambda most, *extents: torch.randint(0, most, extents, device="cuda", generator=generator)
    numbers, exponents = draw(16, n, k), draw(15, n, -(-k // 128) * 4).to(torch.uint8)
    magnitudes = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6], device="cuda")
    values = torch.cat([magnitudes, -magnitudes])[numbers]
    values = values * torch.exp2(exponents.float() - 8).repeat_interleave(32, 1)[:, :k]
    lifted = values.to(torch.float8_e4m3fn)
    assert bool((lifted.float() == values).all())
    codes = (numbers[:, ::2] | numbers[:, 1::2] << 4).to(torch.uint8)
    return [codes, exponents.view(torch.int32).t().contiguous(), torch.ones(n, 1, device="cuda")], lifted


def arrange(kind, given):
    """The same weight with codes as kernels read them."""
    from fp8.torch.code_order import arrange_codes
    return [arrange_codes(given[0], is_lifted=kind == "w4a8"), *given[1:]]


class Shape:
    """Calls of ours and of peers on the same numbers, and what they have to give."""

    def __init__(self, gpu, program, shape, is_grouped, seed=1):
        m, n, k = shape
        generator = torch.Generator("cuda").manual_seed(seed)
        self.calls, self.expected, self.gpu, self.functions = {}, {}, gpu, program.functions
        for kind in KINDS:
            a, wide_a = draw_operand(kind, (m, k), generator)
            b, wide_b = draw_operand(kind, (GROUPS, n, k) if is_grouped else (n, k), generator)
            bounds = []
            if is_grouped:
                cuts = torch.randint(0, m + 1, (GROUPS - 2,), generator=generator, device="cuda").sort().values
                offsets = torch.cat([cuts.new_zeros(1), cuts, cuts[-1:], cuts.new_full((1,), m)]).int()
                bounds = [offsets]
            scale = math.prod(float(part[2].flatten()[0]) for part in (a, b) if len(part) > 2)
            exact = self.multiply(wide_a, wide_b, bounds) * scale
            of = {False: b, True: arrange(kind, b)}
            for name in [name for name in self.functions if re.match(f"{kind}_(both|any|wide)", name)]:
                self.add(name, [*a, *of["arranged" in name], *bounds], exact)
            if not is_grouped:
                for name in [name for name in self.functions if re.match(f"{kind}_(weights|arranged)", name)]:
                    self.add(name, [wide_a, *of["arranged" in name][:2]], exact / scale)
                self.add(f"{kind}_decode", b[:2], wide_b.float())
        if is_grouped:
            self.add("bf16", [wide_a, wide_b, *bounds], exact / scale)
            # PyTorch's groups are column-major, as weights are.
            self.calls["torch_bf16"] = lambda: torch._grouped_mm(wide_a, wide_b.transpose(-2, -1), offs=offsets[1:])
            return
        self.add("bf16", [wide_a, wide_b], exact / scale)
        packed, lifted = draw_lifted(n, k, generator)
        codes = wide_a.to(torch.float8_e4m3fn), lifted
        ones = [torch.ones(rows, 1, device="cuda") for rows in (m, n)]
        exact = self.multiply(*codes, [])
        self.add("rows", [codes[0], ones[0], codes[1], ones[1]], exact, most=2e-2)
        self.add("w4a8_decode", packed[:2], lifted.float())
        for name in [name for name in self.functions if re.match("w4a8(_arranged)?(_[0-9]+)?$", name)]:
            own = arrange("w4a8", packed) if "arranged" in name else packed
            self.add(name, [codes[0], ones[0], *own], exact, most=2e-2)
        for name, codes_of in (("e4m3_weights", [lifted]), ("e4m3_arranged", arrange("e4m3", [lifted]))):
            self.add(name, [wide_a, *codes_of, torch.ones(n, device="cuda")], self.multiply(wide_a, lifted, []))
        for name, share in (("copy_8", 1), ("copy_4", 0.5625)):
            self.add_copy(name, int(share * n * k / 2))
        self.calls["torch_bf16"] = lambda: torch.nn.functional.linear(wide_a, wide_b)
        self.calls["torch_rows"] = lambda: torch._scaled_mm(
            codes[0], codes[1].t(), ones[0], ones[1].t(), out_dtype=torch.bfloat16, use_fast_accum=True)

    @staticmethod
    def multiply(a, b, bounds):
        if not bounds:
            return a.float() @ b.float().t()
        offsets = bounds[0].tolist()
        return torch.cat([a[first:last].float() @ b[i].float().t()
                          for i, (first, last) in enumerate(zip(offsets, offsets[1:]))])

    def add(self, name, values, expected, most=MAX_ERROR):
        if name in self.functions:
            self.calls[name] = Call(self.gpu, self.functions[name], [value.contiguous() for value in values])
            self.expected[name] = (expected, most)

    def add_copy(self, name, size):
        source, copied = torch.ones(2, size, dtype=torch.uint8, device="cuda")
        self.calls[name] = lambda: copied.copy_(source)

    def check(self):
        """The errors of those that are wrong."""
        wrong = {}
        for name, (expected, most) in self.expected.items():
            dtype = torch.float8_e4m3fn if name == "w4a8_decode" else torch.bfloat16
            found = self.calls[name].read()[0].view(dtype).float().reshape(expected.shape)
            error = float((found - expected).norm() / expected.norm())
            if not error <= most:
                wrong[name] = error
        return wrong


def run_shape(gpu, folder, shape, args):
    torch.backends.cuda.matmul.allow_tf32 = False
    program = Program(gpu.library, folder / f"{get_name(shape)}.so")
    one = Shape(gpu, program, shape, args.grouped)
    wrong = one.check()
    times = measure(one.calls, args.rounds, WARM_UP_S)
    work = json.loads((folder / "microscaled.json").read_text())[get_name(shape)]
    row = {"shape": shape, "wrong": wrong, "times": times, **work, "ratios": {
        name: get_ratio(times["torch_bf16"], own) for name, own in times.items()
        if name != "torch_bf16" and not name.endswith("_decode")}}
    row["copy_ratios"] = {name: get_ratio(times[f"copy_{8 if '8' in name.split('_')[0] or 'e4m3' in name else 4}"], times[name])
                          for name in ("mxfp8_weights", "mxfp8_arranged", "e4m3_weights", "e4m3_arranged", "nvfp4_weights", "nvfp4_arranged")
                          if name in times}
    for kind in KINDS:
        both = [times.get(name, {}).get("ms") for name in ("bf16", f"{kind}_decode")]
        if all(both) and "ms" in times["torch_bf16"]:
            row["ratios"][f"{kind}_apart"] = times["torch_bf16"]["ms"] / sum(both)
    if "torch_rows" in times and "rows" in times:
        row["rows_ratio"] = get_ratio(times["torch_rows"], times["rows"])
        row["w4a8_ratios"] = {name: get_ratio(times["rows"], own) for name, own in times.items() if name.startswith("w4a8")}
        if all("ms" in times.get(name, {}) for name in ("rows", "w4a8_decode")):
            row["w4a8_ratios"]["w4a8_apart"] = times["rows"]["ms"] / (times["rows"]["ms"] + times["w4a8_decode"]["ms"])
    print(f"{get_name(shape):>18}  torch {1e3 * times['torch_bf16'].get('ms', math.nan):8.1f} us  " + "  ".join(
        f"{name} {ratio:.2f}" if ratio else f"{name} failed" for name, ratio in row["ratios"].items()) +
        (f"  WRONG {wrong}" if wrong else ""), flush=True)
    return row


def show_means(rows):
    """Geometric means and the least of the speeds by PyTorch's in bf16, of few rows and of many."""
    for label, first, last in (("rows <= 64", 0, 64), ("65 to 1023", 65, 1023), ("rows >= 1024", 1024, 1 << 30)):
        of_rows = [row for row in rows if first <= row["shape"][0] <= last]
        for of, peer in (("ratios", ""), ("w4a8_ratios", " of rows"), ("copy_ratios", " of a copy")):
            for name in dict.fromkeys(name for row in of_rows for name in row.get(of, ())):
                ratios = [row[of][name] for row in of_rows if row[of].get(name)]
                if ratios and not name[-1].isdigit():
                    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
                    print(f"{label:14} {name + peer:22} {mean:.2f} in the mean of {len(ratios)}, least {min(ratios):.2f}")


def main():
    parser = make_parser(rounds=8)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--grouped", action="store_true")
    parser.add_argument("--functions", default=".*")
    parser.add_argument("--configs", type=int, default=0)
    parser.add_argument("--shapes", type=parse_shapes)
    args = parser.parse_args()
    args.shapes = args.shapes or draw_shapes(args.seed, args.count)
    folder = make_programs(args, lambda folder: compile_programs(args, folder))
    if not folder:
        return 0
    rows, failed = run_shapes(run_shape, folder, args)
    show_means(rows)
    return int(bool(failed) or any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
