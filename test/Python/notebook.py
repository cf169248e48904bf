# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s %fp8_source/examples/lab.ipynb
"""Runs the cells of a notebook, in their order, and compares what they show with what the file has of it.

    PYTHONPATH=build/python python test/Python/notebook.py examples/lab.ipynb --update

writes that anew. Numbers of a cell with the tag "about", such as losses, may differ by a tenth. A cell shows
what it prints, and its last expression: by `_repr_svg_` or `_repr_html_` if it has one.
"""

import argparse
import ast
import contextlib
import difflib
import io
import json
import sys
from pathlib import Path

# Repositories and pages show notebooks up to some size.
LARGEST = 200_000


def run_cell(source, space):
    """The outputs of a cell, as notebooks have them."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, outputs, value = io.StringIO(), [], None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream",
                        "text": printed.getvalue().splitlines(True)})
    if value is not None:
        data = {"text/plain": [repr(value)]}
        for kind, name in (("image/svg+xml", "_repr_svg_"), ("text/html", "_repr_html_")):
            if hasattr(value, name):
                data = {kind: getattr(value, name)().splitlines(True), "text/plain": ["<drawing>"]}
        outputs.append({"data": data, "execution_count": None, "metadata": {},
                        "output_type": "execute_result"})
    return outputs


def is_near(outputs, expected):
    """Whether texts are equal but for their numbers, which are close."""
    texts = ["".join(line for output in each for line in output.get("text", ())).split()
             for each in (outputs, expected)]
    return len(texts[0]) == len(texts[1]) and all(map(_is_near, *texts))


def _is_near(word, expected):
    try:
        return abs(float(word) - float(expected)) <= 0.1 * abs(float(expected)) + 0.05
    except ValueError:
        return word == expected


def write(notebook):
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    before = arguments.notebook.read_text()
    notebook, space = json.loads(before), {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            expected = cell["outputs"]
            outputs = run_cell("".join(cell["source"]), space)
            may_differ = not arguments.update and "about" in cell["metadata"].get("tags", ())
            cell["outputs"] = expected if may_differ and is_near(outputs, expected) else outputs
            cell["execution_count"] = None
    after = write(notebook)
    if len(after) > LARGEST:
        sys.exit(f"expected a notebook of up to {LARGEST} bytes, but got {len(after)}")
    if arguments.update:
        arguments.notebook.write_text(after)
    elif after != before:
        sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "file", "now"))
        sys.exit("expected the outputs that the notebook has, but got others: --update writes them")


if __name__ == "__main__":
    main()
