"""Makes the kernels that benchmarks/attention.py times, from programs of the dialect: machine code
and the description of each kernel's launch. Batches and positions are known when they run.

usage: attention_kernels.py [--build-dir build] [--configs] [--lse | --gradients | --turns | --maxima] --out DIR

`--configs` makes those of other tiles, too, for whoever chooses them. `--turns` makes those of narrow and wide heads by each
kind of turn. `--maxima` makes those of numbers that are chosen, whose rows raise maxima only where powers outgrow their type, and others
whose rows raise them for each tile: attention.py times these beside each other. With `--lse` they write the logarithms of sums,
which a backward takes. `--gradients` makes those of attention's gradients, for attention_gradients.py.
"""

import argparse
import itertools
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TARGET = "--fp8-set-target=chip=sm_90a"
# Head dimension, heads of Q and of K.
HEADS = [(64, 16, 16), (128, 32, 8), (256, 16, 4)]
# Element, sums.
TYPES = [("bf16", None), ("f8E4M3FN", "fast"), ("f8E4M3FN", "promote")]
TILES = {64: [(192, 128), (192, 96), (128, 160)], 128: [(128, 128), (128, 160), (128, 192)],
         256: [(128, 64), (128, 80)]}
# Element, columns of Q and of V, heads of Q and of K, the tile that is chosen, and the turn that was before there was `raised`.
TURNS = [("bf16", 64, 64, 16, 16, (192, 128), "issued"), ("bf16", 256, 256, 16, 4, (128, 80), "issued"),
         ("bf16", 192, 128, 16, 16, (128, 112), "issued"), ("bf16", 160, 160, 16, 4, (128, 144), "issued"),
         ("bf16", 96, 96, 16, 16, (128, 160), "issued"), ("f8E4M3FN", 64, 64, 16, 16, (192, 160), "issued"),
         ("f8E4M3FN", 96, 96, 16, 16, (128, 192), "issued"), ("f8E4M3FN", 256, 256, 16, 4, (128, 64), "scored")]
# Columns, heads of Q and of K, and what was chosen while rows raised maxima for each tile of keys: a tile, and
# turns of causal attention and of others.
MAXIMA = [(64, 16, 16, (192, 128), ("raised", "issued")), (128, 32, 8, (128, 160), ("issued", "issued"))]


def write_scale(spec):
    return f"scale = {spec['dim'] ** -0.5:e}" + (f" cap = {spec['cap']:e}" if spec.get("cap") else "")


def program(spec):
    """Takes the operands as they are: codes with a factor each."""
    element, dim = spec["element"], spec["dim"]

    def sizes(rows, heads, columns=dim):
        return f"?x{rows}x{heads}x{columns}"

    queries, dim_of_v = spec.get("queries", "?"), spec.get("dim_of_v", dim)
    shapes = {"q": sizes(queries, spec["heads"]), "k": sizes("?", spec["heads_of_k"]),
              "v": sizes("?", spec["heads_of_k"], dim_of_v)}
    tensors = {name: f"tensor<{shape}x{element}>" for name, shape in shapes.items()}
    one, result = "tensor<1x1x1x1xf32>", f"tensor<{sizes(queries, spec['heads'], dim_of_v)}xbf16>"
    if element == "bf16":
        arguments, made, types = [f"%{name}: {kind}" for name, kind in tensors.items()], "", list(tensors.values())
    else:
        scaled = {name: f"!fp8.scaled<{shape}x{element}, block = [*, *, *, *], scale = f32>"
                  for name, shape in shapes.items()}
        arguments = [f"%{name}_codes: {kind}, %{name}_scale: {one}" for name, kind in tensors.items()]
        made = "".join(f"  %{name} = fp8.assemble %{name}_codes, %{name}_scale : {kind}, {one} -> {scaled[name]}\n"
                       for name, kind in tensors.items())
        types = list(scaled.values())
    others = ""
    for name, kind in (("key_lengths", "tensor<?xi32>"), ("key_starts", "tensor<?xi32>"),
                       ("key_ranges", f"tensor<?x{queries}x2xi32>"), ("sinks", f"tensor<{spec['heads']}xf32>")):
        if name in spec.get("others", ()):
            arguments.append(f"%{name}: {kind}")
            others += f" {name}(%{name} : {kind})"
    if spec.get("dropout"):
        arguments.append("%dropout: tensor<2xi64>")
        others += f" dropout(%dropout : tensor<2xi64>) rate = {spec['dropout']:e}"
    if spec.get("mask"):
        # It tells batches and keys apart, and maybe queries.
        kind = f"tensor<?x1x{queries if spec['mask_of_queries'] else 1}x?x{spec['mask']}>"
        arguments.append(f"%mask: {kind}")
        others = f" mask(%mask : {kind}){others}"
    left = spec.get("left", "*")
    attributes = write_scale(spec) + f" window = [{left}, 0]" * spec["causal"]
    attributes += " bottom_right" * (queries != "?" and spec["causal"])
    attributes += f" accumulate = {spec['sums']}" if spec["sums"] else ""
    if spec.get("config"):
        attributes += f" {{fp8_gpu.config = {spec['config']}}}"
    sums = f", tensor<?x{spec['heads']}x?xf32>" if spec.get("lse") else ""
    names = "%o, %lse" if sums else "%o"
    return (f"func.func @attention({', '.join(arguments)}) -> ({result}{sums}) {{\n{made}"
            f"  {names} = fp8.attention %q, %k, %v{others} {attributes} : {', '.join(types)} -> {result}{sums}\n"
            f"  return {names} : {result}{sums}\n}}\n")


def program_gradients(spec):
    """Q, K and V as they are, gradients in bf16."""
    element, dim = spec["element"], spec["dim"]
    queries, keys = f"?x?x{spec['heads']}x{dim}", f"?x?x{spec['heads_of_k']}x{dim}"
    one, rows = "tensor<1x1x1x1xf32>", f"tensor<?x{spec['heads']}x?xf32>"
    arguments, types, made = [f"%grad: tensor<{queries}xbf16>"], [f"tensor<{queries}xbf16>"], ""
    for name, shape in (("q", queries), ("k", keys), ("v", keys)):
        if element == "bf16":
            types.append(f"tensor<{shape}x{element}>")
            arguments.append(f"%{name}: {types[-1]}")
        else:
            codes = f"tensor<{shape}x{element}>"
            types.append(f"!fp8.scaled<{shape}x{element}, block = [*, *, *, *], scale = f32>")
            arguments.append(f"%{name}_codes: {codes}, %{name}_scale: {one}")
            made += f"  %{name} = fp8.assemble %{name}_codes, %{name}_scale : {codes}, {one} -> {types[-1]}\n"
    arguments += [f"%lse: {rows}", f"%delta: {rows}"]
    others = ""
    if "key_ranges" in spec.get("others", ()):
        arguments.append("%key_ranges: tensor<?x?x2xi32>")
        others = " key_ranges(%key_ranges : tensor<?x?x2xi32>)"
    if spec.get("dropout"):
        arguments.append("%dropout: tensor<2xi64>")
        others += f" dropout(%dropout : tensor<2xi64>) rate = {spec['dropout']:e}"
    results = ", ".join(f"tensor<{shape}xbf16>" for shape in (queries, keys, keys))
    attributes = write_scale(spec) + " window = [*, 0]" * spec["causal"] + f" order = {spec['order']}"
    return (f"func.func @gradients({', '.join(arguments)}) -> ({results}) {{\n{made}"
            f"  %dq, %dk, %dv = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta{others} {attributes} : "
            f"{', '.join([*types, rows, rows])} -> {results}\n"
            f"  return %dq, %dk, %dv : {results}\n}}\n")


def specs_of_gradients():
    """By name. There is no kernel for 256 columns."""
    return {f"{element}_d{dim}_{'causal' if causal else 'full'}_{order}":
            {"element": element, "dim": dim, "heads": heads, "heads_of_k": heads_of_k, "causal": causal,
             "order": order, "gradients": True}
            for dim, heads, heads_of_k in HEADS[:2] for element in ("bf16", "f8E4M3FN")
            for causal in (True, False) for order in ("deterministic", "any")}


def specs(with_configs):
    """By name."""
    found = {}
    for dim, heads, heads_of_k in HEADS:
        for element, sums in TYPES:
            for causal in (True, False):
                name = "_".join(filter(None, [element, f"d{dim}", sums, "causal" if causal else "full"]))
                spec = {"element": element, "dim": dim, "heads": heads, "heads_of_k": heads_of_k,
                        "causal": causal, "sums": sums}
                found[name] = spec
                for queries, keys in TILES[dim] if with_configs else []:
                    for turn, polynomials in itertools.product(("issued", "scored"), (0, 4)):
                        config = (f"#fp8_sm90.attention<tile_q = {queries}, tile_k = {keys}, stages = 2, "
                                  f"polynomials = {polynomials}, turn = {turn}>")
                        found[f"{name}_{queries}x{keys}_{turn}_{polynomials}"] = {**spec, "config": config}
    return found


def specs_of_turns():
    """By name: each head's tile with the turn that was chosen before, and given with the maxima."""
    found = {}
    for element, dim, dim_of_v, heads, heads_of_k, (queries, keys), before in TURNS:
        for causal in (True, False):
            for turn in (before, "raised"):
                columns = f"{dim}" if dim == dim_of_v else f"{dim}_{dim_of_v}"
                found[f"{'bf16' if element == 'bf16' else 'fast'}_d{columns}_{'causal' if causal else 'full'}_{turn}"] = {
                    "element": element, "dim": dim, "dim_of_v": dim_of_v, "heads": heads, "heads_of_k": heads_of_k,
                    "causal": causal, "sums": None if element == "bf16" else "fast",
                    "config": f"#fp8_sm90.attention<tile_q = {queries}, tile_k = {keys}, stages = 2, turn = {turn}>"}
    return found


def specs_of_maxima():
    """By name: kernels of numbers as they are chosen, whose rows raise maxima only where powers are too large, and as
    they were, which raise them for each tile."""
    found = {}
    for dim, heads, heads_of_k, (queries, keys), turns in MAXIMA:
        for causal, turn in zip((True, False), turns):
            name = f"bf16_d{dim}_{'causal' if causal else 'full'}"
            found[name] = {"element": "bf16", "dim": dim, "heads": heads, "heads_of_k": heads_of_k, "causal": causal,
                           "sums": None}
            config = (f"#fp8_sm90.attention<tile_q = {queries}, tile_k = {keys}, stages = 2, turn = {turn}, "
                      "maxima = tile>")
            found[f"{name}_tile"] = {**found[name], "config": config}
    return found


def build(name, spec, tools, out):
    """Writes NAME.cubin and NAME.json; says whether it could: not every tile has room."""
    built = out / f"{name}.mlir"
    made = subprocess.run([tools / "fp8-opt", TARGET, "--fp8-select-kernels", "--fp8-build-kernels", "-o", built],
                          input=(program_gradients if spec.get("gradients") else program)(spec),
                          text=True, capture_output=True)
    if made.returncode or "gpu.module" not in built.read_text():
        return False
    for what in ("cubin", "json"):
        subprocess.run([tools / "fp8-translate", f"--kernels-to-{what}", built, "-o", out / f"{name}.{what}"],
                       check=True)
    built.unlink()
    return True


def make_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--configs", action="store_true")
    return parser


def build_all(wanted, args):
    """Those of `wanted`, by name, that there is room for, and kernels.json of them."""
    args.out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda item: build(*item, args.build_dir / "bin", args.out), wanted.items())
        made = {name: spec for (name, spec), is_made in zip(wanted.items(), done) if is_made}
    (args.out / "kernels.json").write_text(json.dumps(made))
    print(f"{len(made)} of {len(wanted)} kernels")


def main():
    parser = make_parser()
    parser.add_argument("--lse", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--turns", action="store_true")
    parser.add_argument("--maxima", action="store_true")
    args = parser.parse_args()
    build_all(specs_of_gradients() if args.gradients else specs_of_turns() if args.turns else
              specs_of_maxima() if args.maxima else
              {name: {**spec, "lse": args.lse} for name, spec in specs(args.configs).items()}, args)


if __name__ == "__main__":
    main()
