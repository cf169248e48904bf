"""Makes the kernels that benchmarks/grouped.py checks and times: machine code, the description of each kernel's launch,
and which one the selection takes for each shape.

usage: grouped_kernels.py [--build-dir build] [--jobs N] [--candidates] [--others | --masked] --out DIR [KIND...]
"""

import argparse
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grouped_shapes import ALL_KINDS, CAPACITY, KINDS, MASKED, MASKED_KINDS, OTHERS, ROW128, SHAPES, label
from matmul.program import assembled

TARGET = "--fp8-set-target=chip=sm_90a"
FLOATS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}


def operand(element, scale, extents):
    shape = "x".join(map(str, extents))
    if scale is None:
        return f"tensor<{shape}x{element}>"
    block = ["1"] * (len(extents) - len(scale)) + list(scale)
    return f"!fp8.scaled<{shape}x{FLOATS[element]}, block = [{', '.join(block)}], scale = f32>"


def program(kind, shape, number, config=None):
    """A function of one product."""
    groups, mean, n, k = shape
    tokens = groups * mean
    spec = ALL_KINDS[kind]
    is_masked = spec["grouped"] == "masked"
    extents = {"rows": ((tokens, k), (groups, n, k), (tokens, n)), "k": ((n, tokens), (k, tokens), (groups, n, k)),
               "masked": ((groups, CAPACITY, k), (groups, n, k), (groups, CAPACITY, n))}[spec["grouped"]]
    a = operand(spec["a"], spec["scale_a"], extents[0])
    b = operand(spec["b"], spec["scale_b"], extents[1])
    d = operand(spec["result"], None, extents[2])
    arguments, made = [], ""
    for name, (*batch, rows, inner), type_ in (("a", extents[0], a), ("b", extents[1], b)):
        if spec[f"scale_{name}"] == ROW128:  # Stored with the rows innermost, as our passes do.
            taken, text = assembled(name, FLOATS[spec[name]], "".join(f"{n}x" for n in batch), rows, inner, type_)
            arguments, made = arguments + taken, made + text
        else:
            arguments.append(f"%{name}: {type_}")
    bounds = f"tensor<{groups if is_masked else groups + 1}xi32>"
    flags = " undef_padding" if is_masked and "cleared" not in spec else ""
    flags += " accumulate = fast" if spec["accumulate"] == "fast" else ""
    attributes = [f"fp8_gpu.config = {config}"] * (config is not None) + [f"expected_m = {mean}"] * is_masked
    flags += f" {{{', '.join(attributes)}}}" if attributes else ""
    return (f"func.func @s{number}({', '.join(arguments)}, %bounds: {bounds}) -> {d} {{\n{made}"
            f"  %0 = fp8.grouped_matmul %a, %b {'counts' if is_masked else 'offsets'}(%bounds : {bounds}){flags}"
            f" : {a}, {b} -> {d}\n"
            f"  return %0 : {d}\n}}\n")


def configs(text):
    """Configs of each function of a program."""
    functions = re.split(r"func\.func @s\d+", text)[1:]
    return [re.findall(r"#fp8_sm90.gemm<[^>]*>", function) for function in functions]


def build(kind, groups, shapes, candidates, tools, out):
    """Writes KIND_GROUPS.cubin and .json; returns the selected config of each shape."""
    text = "".join(program(kind, shape, i) for i, shape in enumerate(shapes))

    def run(*flags):
        return subprocess.run([tools / "fp8-opt", TARGET, *flags], input=text, text=True, capture_output=True,
                              check=True).stdout

    chosen = configs(run("--fp8-select-kernels"))
    tried = configs(run("--fp8-select-kernels=every-candidate")) if candidates else chosen
    pinned = sorted({config for each in tried for config in each})
    source = "".join(program(kind, shapes[0], i, config) for i, config in enumerate(pinned))
    name = f"{kind}_{groups}"
    built = out / f"{name}.built.mlir"
    subprocess.run([tools / "fp8-opt", TARGET, "--fp8-build-kernels", "-o", built], input=source, text=True, check=True)
    for what in ("cubin", "json"):
        subprocess.run([tools / "fp8-translate", f"--kernels-to-{what}", built, "-o", out / f"{name}.{what}"], check=True)
    built.unlink()
    path = out / f"{name}.json"  # Factors with their rows innermost leave a transpose behind.
    infos = json.loads(path.read_text())
    path.write_text(json.dumps({key: info for key, info in infos.items() if ".gemm<" in info["config"]}))
    return {label(shape): config[0] for shape, config in zip(shapes, chosen)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--out", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--candidates", action="store_true", help="also those that may be better")
    parser.add_argument("--others", action="store_true", help="for shapes that nothing was chosen by")
    parser.add_argument("--masked", action="store_true", help="of groups that have room for more rows than are there")
    parser.add_argument("kinds", nargs="*")
    args = parser.parse_args()
    out, tools = Path(args.out), Path(args.build_dir) / "bin"
    out.mkdir(parents=True, exist_ok=True)
    shapes = MASKED if args.masked else OTHERS if args.others else SHAPES
    kinds = args.kinds or (MASKED_KINDS if args.masked else KINDS)
    jobs = [(kind, groups) for kind in kinds for groups in sorted({shape[0] for shape in shapes})]
    with ThreadPoolExecutor(args.jobs) as pool:
        made = pool.map(lambda job: build(*job, [shape for shape in shapes if shape[0] == job[1]], args.candidates,
                                          tools, out), jobs)
        selected = {}
        for (kind, groups), chosen in zip(jobs, made):
            selected.setdefault(kind, {}).update(chosen)
            print(f"{kind}, {groups} groups", flush=True)
    (out / "selected.json").write_text(json.dumps(selected, indent=1))


if __name__ == "__main__":
    main()
