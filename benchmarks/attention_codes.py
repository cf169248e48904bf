"""Attention of codes with the projection behind it, whose input its kernel stores as codes, or a pass makes of numbers.

Causal, heads of Llama 3 8B, of q, k and v in E4M3. `forward` is what inference has, a scale that is known before; `train`
also measures the result and transposes its codes for the gradient of the weight. Both ways have the same bits, which is
checked before anything is timed. `attention` is the attention alone, with numbers for a result.

usage: attention_codes.py --build DIR       (writes programs; needs the compiler, and no GPU)
       attention_codes.py --programs DIR [--rounds N] [--out FILE]     (times them)
"""

import argparse
from pathlib import Path

HEADS, GROUPS, DIM = 32, 8, 128
WIDTH = HEADS * DIM
SIZES = [(2, 4096), (1, 16384), (4, 2048)]
SUMS = ["fast", "promote"]
ONE = "tensor<1x1xf32>"


def write(batch, tokens, sums, kind, is_apart):
    """A program; apart, the numbers are a result, too."""
    sizes = {name: f"{batch}x{tokens}x{heads}x{DIM}" for name, heads in (("q", HEADS), ("k", GROUPS), ("v", GROUPS))}
    rows, factor = batch * tokens, "tensor<1x1x1x1xf32>"
    scaled = {name: f"!fp8.scaled<{size}xf8E4M3FN, block = [*, *, *, *], scale = f32>" for name, size in sizes.items()}
    arguments = "".join(f"%{name}c: tensor<{size}xf8E4M3FN>, %{name}s: {factor}, " for name, size in sizes.items())
    made = "".join(f"  %{name} = fp8.assemble %{name}c, %{name}s : tensor<{size}xf8E4M3FN>, {factor} -> {scaled[name]}\n"
                   for name, size in sizes.items())
    numbers, flat = f"tensor<{sizes['q']}xbf16>", f"tensor<{rows}x{WIDTH}xbf16>"
    lse = f"tensor<{batch}x{HEADS}x{tokens}xf32>"
    x, w = (f"!fp8.scaled<{count}x{WIDTH}xf8E4M3FN, block = [*, *], scale = f32>" for count in (rows, WIDTH))
    turned = f"{WIDTH}x{rows}xf8E4M3FN"
    results = {"y": flat}
    made += (f"  %o, %lse = fp8.attention %q, %k, %v scale = {DIM ** -0.5:e} window = [*, 0] accumulate = {sums} : "
             f"{', '.join(scaled.values())} -> {numbers}, {lse}\n")
    if kind == "attention":
        results = {"o": numbers, "lse": lse}
    else:
        made += (f"  %x = tensor.collapse_shape %o [[0, 1], [2, 3]] : {numbers} into {flat}\n"
                 f"  %c = fp8.quantize %x scale(%scale, %inverse : {ONE}, {ONE}) : {flat} -> {x[len('!fp8.scaled'):]}\n"
                 f"  %w = fp8.assemble %wc, %ws : tensor<{WIDTH}x{WIDTH}xf8E4M3FN>, {ONE} -> {w[len('!fp8.scaled'):]}\n"
                 f"  %y = fp8.matmul %c, %w accumulate = fast : {x}, {w} -> {flat}\n")
    if kind == "train":
        turned_type = f"<{turned}, block = [*, *], scale = f32>"
        made += (f"  %amax = fp8.amax %x block = [*, *] : {flat}\n"
                 f"  %t = fp8.transpose %c permutation = [1, 0] : {x}\n"
                 f"  %tc, %ti = fp8.disassemble %t : {turned_type}\n")
        results.update(lse=lse, amax=ONE, tc=f"tensor<{turned}>")
    if is_apart:
        results["x"] = flat
    kinds = ", ".join(results.values())
    return (f"func.func @{kind}({arguments}%wc: tensor<{WIDTH}x{WIDTH}xf8E4M3FN>, %ws: {ONE}, %scale: {ONE}, %inverse: {ONE}) "
            f"-> ({kinds}) {{\n{made}  return {', '.join(f'%{name}' for name in results)} : {kinds}\n}}\n")


def list_programs():
    for batch, tokens in SIZES:
        for sums in SUMS:
            for kind in ("attention", "forward", "train"):
                for is_apart in (False,) if kind == "attention" else (False, True):
                    yield f"{kind}_{batch}x{tokens}_{sums}{'_apart' * is_apart}", (batch, tokens, sums, kind, is_apart)


def build(folder):
    import fp8
    folder.mkdir(parents=True, exist_ok=True)
    for name, spec in list_programs():
        fp8.compile(write(*spec), target="sm_90a", cpu="x86-64-v3").save(folder / f"{name}.so")
        print(name, flush=True)


def run(folder, rounds, out):
    import fp8
    import torch
    from timing import measure, show_machine, write_record
    show_machine()
    rows = {}
    for batch, tokens in SIZES:
        generator = torch.Generator("cuda").manual_seed(37)

        def draw(*shape):
            return torch.randn(*shape, generator=generator, device="cuda")

        factor = torch.full((1, 1, 1, 1), 1 / 64, device="cuda")
        given = []
        for heads in (HEADS, GROUPS, GROUPS):
            given += [(draw(batch, tokens, heads, DIM) * 64).to(torch.float8_e4m3fn), factor]
        scale = torch.full((1, 1), 128.0, device="cuda")
        given += [(draw(WIDTH, WIDTH) * 64).to(torch.float8_e4m3fn), factor.view(1, 1), scale, 1 / scale]
        for sums in SUMS:
            calls = {}
            for kind in ("attention", "forward", "train"):
                for way in ("",) if kind == "attention" else ("", "_apart"):
                    name = f"{kind}_{batch}x{tokens}_{sums}{way}"
                    program = fp8.load(folder / f"{name}.so")
                    calls[name] = lambda program=program: program(*given)
            for kind in ("forward", "train"):
                name = f"{kind}_{batch}x{tokens}_{sums}"
                one, apart = calls[name](), calls[f"{name}_apart"]()
                one = one if isinstance(one, (tuple, list)) else [one]
                for ours, theirs in zip(one, apart):
                    assert torch.equal(ours.view(torch.uint8), theirs.view(torch.uint8)), name
                del one, apart
            found = measure(calls, rounds, 0.1)
            rows.update(found)
            for name, row in found.items():
                print(f"{name:40} {1e3 * row['ms']:9.1f} us  worst {1e3 * row['worst_ms']:9.1f}", flush=True)
            for kind in ("forward", "train"):
                name = f"{kind}_{batch}x{tokens}_{sums}"
                print(f"{name:40} {found[name]['ms'] / found[f'{name}_apart']['ms']:9.3f} of apart, the same bits", flush=True)
            if out:
                write_record(out, rows=rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path)
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.build:
        build(options.build)
    if options.programs:
        run(options.programs, options.rounds, options.out)


if __name__ == "__main__":
    main()
