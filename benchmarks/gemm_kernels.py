"""Makes the kernels that benchmarks/gemm.py checks and times, from programs of
the dialect: machine code and the description of each kernel's launch. Configs follow
the shape: of kinds that are timed, those that some shape selects.

usage: gemm_kernels.py [--build-dir build] [--jobs N] [--machine NAME] [--sample SEED,COUNT]
                       [--large SEED,COUNT] [--configs-of FILE] --out DIR [KIND...]
"""

import argparse
import collections
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gemm_shapes import DECODE_SHAPES, SHAPES, large_shapes, parse_sample, random_shapes
from matmul.kinds import KINDS, TIMED
from matmul.program import program


TARGET = "--fp8-set-target=chip=sm_90a"


def build(name, spec, tools, out, parts=("cubin", "json"), target=TARGET):
    """Writes NAME.cubin, and NAME.json with the kernels' launches; of PTX NAME.ptx."""
    source = out / f"{name}.mlir"
    source.write_text(program(spec))
    built = out / f"{name}.built.mlir"
    subprocess.run([tools / "fp8-opt", target, "--fp8-select-kernels=every-candidate",
                    "--fp8-build-kernels", source, "-o", built], check=True)
    for what in parts:
        subprocess.run([tools / "fp8-translate", f"--kernels-to-{what}", built,
                        "-o", out / f"{name}.{what}"], check=True)
    if "json" in parts:  # Factors with their rows innermost leave a transpose behind.
        path = out / f"{name}.json"
        infos = json.loads(path.read_text())
        matmuls = {key: info for key, info in infos.items() if ".gemm<" in info["config"]}
        path.write_text(json.dumps(matmuls))
    source.unlink()
    built.unlink()


def get_target(machine):
    return f"{TARGET} machine={machine}" if machine else TARGET


def select(spec, shapes, tools, target=TARGET):
    """What the selection chooses for each shape; nothing where no kernel fits."""
    extents = [shape[:3] for shape in shapes]
    text = "".join(program(spec, *extent).replace("@f0", f"@s{i}")
                   for i, extent in enumerate(extents))
    result = subprocess.run([tools / "fp8-opt", target, "--fp8-select-kernels"], input=text,
                            text=True, capture_output=True, check=True).stdout
    functions = re.split(r"func\.func @s\d+", result)[1:]
    configs = [re.search(r"#fp8_sm90.gemm<[^>]*>", f) for f in functions]
    return {"x".join(map(str, extent)): config.group(0)
            for extent, config in zip(extents, configs) if config}


def with_configs(name, selected, others=()):
    """The kind, with the configs to build: those selected where it says none."""
    spec = KINDS[name]
    if name in selected:
        spec = {**spec, "configs": sorted({*selected[name].values(), *others})}
    return spec


def read_configs(path):
    """Those of each kind in a gemm_sustained.json."""
    configs = collections.defaultdict(set)
    for row in json.loads(path.read_text())["rows"] if path else []:
        if row["name"].startswith("#"):
            configs[row["kind"]].add(row["name"])
    return configs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--out", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--machine", help="by whose costs, as --machine= of the compiler has it; "
                        "an H200's otherwise")
    parser.add_argument("--sample", type=parse_sample, default=(1, 0), metavar="SEED,COUNT",
                        help="choose for random shapes, too")
    parser.add_argument("--large", type=parse_sample, metavar="SEED,COUNT",
                        help="choose for random large ones instead")
    parser.add_argument("--configs-of", type=Path, metavar="FILE",
                        help="build those that gemm_sustained.py measured, too")
    parser.add_argument("kinds", nargs="*")
    args = parser.parse_args()
    out, tools = Path(args.out), Path(args.build_dir) / "bin"
    target = get_target(args.machine)
    out.mkdir(parents=True, exist_ok=True)
    names = args.kinds or list(KINDS)
    shapes = SHAPES + DECODE_SHAPES + random_shapes(*args.sample)
    if args.large:
        shapes = large_shapes(*args.large)
    with ThreadPoolExecutor(args.jobs) as pool:
        chosen = pool.map(lambda spec: select(spec, shapes, tools, target), TIMED.values())
        selected = dict(zip(TIMED, chosen))
        (out / "selected.json").write_text(json.dumps(selected))
        others = read_configs(args.configs_of)
        specs = {name: with_configs(name, selected, others[name]) for name in names}
        for name, _ in zip(names, pool.map(
                lambda name: build(name, specs[name], tools, out, target=target), names)):
            print(name, flush=True)


if __name__ == "__main__":
    main()
