"""Runs the BERT, Llama and ViT of examples/models under every recipe on this machine,
and prints how far their results are from PyTorch's, a table in Markdown.

usage: model_errors.py [--build-dir build] [--recipe RECIPE]... [--keep DIR]

Needs what from_pytorch.py needs. Takes a few minutes, mostly the compiler's.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
from fp8 import tensors
from from_pytorch import convert, to_numpy
from models import transformers

MODELS = ["bert", "llama", "vit"]
RECIPES = ["none", "current", "rowwise", "block", "mxfp8", "nvfp4", "delayed"]


def run(build, path, recipe):
    """The result of a program, and how many of its contractions are FP8, of how many."""
    outputs, remarks = path.with_suffix(".outputs"), path.with_suffix(".json")
    subprocess.run([build / "bin" / "fp8-run", path, f"--inputs={path.with_suffix('.inputs')}",
                    f"--outputs={outputs}", f"--recipe={recipe}", f"--fp8-remarks=json:{remarks}"],
                   check=True)
    kinds = [remark["kind"] for remark in json.loads(remarks.read_text())["remarks"]]
    return tensors.load(outputs)["result0"], kinds.count("passed"), len(kinds)


def get_error(result, expected):
    """The error of the result as a whole, in the 2-norm."""
    expected = expected.astype(np.float64)
    return np.linalg.norm(result - expected) / np.linalg.norm(expected)


def prepare(name, directory):
    """Writes a model and its inputs; returns its path and the framework's result."""
    module, arguments = getattr(transformers, name)()
    text, parameters = convert(module, arguments, name=name)
    path = directory / f"{name}.mlir"
    path.write_text(text)
    info = {"bert": "tokens", "llama": "tokens", "vit": "images"}[name]
    tensors.save(path.with_suffix(".inputs"), {**parameters, info: arguments[0].numpy()})
    return path, to_numpy(module(*arguments))


def report(build, recipes, directory):
    prepared = {name: prepare(name, directory) for name in MODELS}
    print("| recipe |" + "".join(f" {name} | FP8 |" for name in MODELS))
    print("| --- |" + " --- | --- |" * len(MODELS))
    for recipe in recipes:
        cells = []
        for path, expected in prepared.values():
            result, passed, total = run(build, path, recipe)
            cells += [f"{get_error(result, expected):.1e}", f"{passed} of {total}"]
        print(f"| `{recipe}` | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build-dir", type=Path, default=Path("build"))
    parser.add_argument("--recipe", action="append", dest="recipes")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep programs and inputs there")
    options = parser.parse_args()
    with torch.no_grad(), tempfile.TemporaryDirectory() as scratch:
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
        report(options.build_dir, options.recipes or RECIPES, options.keep or Path(scratch))


if __name__ == "__main__":
    main()
