# RUN: %python %s %fp8_source
"""One name of a pass has four spellings: file `ApplyRecipe.cpp`, class
`ApplyRecipePass`, flag `--fp8-apply-recipe`, test `apply-recipe.mlir`. As
upstream's, a conversion between dialects is without `Convert` in its file, and
without a second `fp8` in its flag."""

import re
import sys
from pathlib import Path

SOURCE = Path(sys.argv[1])
DEFINITION = re.compile(r'^def (\w+)\s*:\s*(?:Interface)?Pass<"([^"]+)"', re.MULTILINE)
IMPLEMENTATION = re.compile(r"^struct (\w+)\s*(?:final)?\s*:[^{;]*\bimpl::(\w+)Base<", re.MULTILINE)


def spell_flag(name):
    """fp8-apply-recipe of ApplyRecipe."""
    words = re.split(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", name)
    flag = "-".join(words).lower()
    return flag if "FP8" in words else f"fp8-{flag}"


def find_implementations(errors):
    """The file of each pass, by the name of its definition."""
    files = {}
    for path in sorted((SOURCE / "lib").rglob("*.cpp")):
        for name, base in IMPLEMENTATION.findall(path.read_text()):
            if name != base:
                errors.append(f"{path.relative_to(SOURCE)}: expected class {base}, but got {name}")
            files[base] = path
    return files


def main():
    errors = []
    files = find_implementations(errors)
    tests = [path.name for path in (SOURCE / "test").rglob("*.mlir")]
    definitions = [(path, *found) for path in sorted((SOURCE / "include").rglob("*Passes.td"))
                   for found in DEFINITION.findall(path.read_text())]
    if {definition[1] for definition in definitions} != set(files):
        errors.append(f"expected each pass to be defined and implemented, but got "
                      f"{sorted({definition[1] for definition in definitions} ^ set(files))}")
    for path, name, flag in definitions:
        def expect(what, expected, got):
            if got != expected:
                errors.append(f"{path.relative_to(SOURCE)}: {name}: "
                              f"expected {what} {expected}, but got {got}")

        stem = name.removesuffix("Pass")
        expect("class", f"{stem}Pass", name)
        expect("flag", spell_flag(stem), flag)
        if name in files:
            conversion = re.fullmatch(r"Convert(\w+To\w+)", stem)
            expect("file", f"{conversion[1] if conversion else stem}.cpp", files[name].name)
        test = flag.removeprefix("fp8-")
        if not any(re.fullmatch(rf"{test}(-.*)?\.mlir", file) for file in tests):
            errors.append(f"{path.relative_to(SOURCE)}: {name}: expected a test {test}.mlir")
    print(*errors, sep="\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
