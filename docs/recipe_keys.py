"""Writes python/fp8/recipe_keys.py from what llvm-tblgen --dump-json says of FP8Recipes.td.

usage: llvm-tblgen-22 --dump-json ... include/fp8/IR/FP8Recipes.td | docs/recipe_keys.py
"""

import json
import sys

HEAD = '''"""The recipes and their keys. Made by `make docs` from include/fp8/IR/FP8Recipes.td."""

from collections.abc import Sequence
from typing import NamedTuple


class Key(NamedTuple):
    name: str
    default: bool | int | float | str | None  # None for a path, which has to be given
    low: float = 0  # bounds of a number, both inclusive
    high: float = 0
    words: Sequence[str] = ()  # those of a key that takes a word


RECIPES: dict[str, list[Key]] = {'''


def read_number(text):
    return float("3.4028234663852886e38" if text == "FLT_MAX" else text)


def write_key(name, key):
    kind, text = key["kind"], key["text"]
    name = json.dumps(name)
    if kind == "Word":
        return f"Key({name}, {json.dumps(text)}, words={json.dumps(key['words'])}.split(\", \"))"
    if kind == "Bool":
        return f"Key({name}, {text == 'true'})"
    if kind == "Path":
        return f"Key({name}, None)"
    convert = {"Integer": int, "Float": float}[kind]
    bounds = ", ".join(repr(convert(read_number(key[end]))) for end in ("low", "high"))
    return f"Key({name}, {convert(text)!r}, {bounds})"


def main():
    records = json.load(sys.stdin)
    print(HEAD)
    for name in records["!instanceof"]["FP8_RecipeAttr"]:
        recipe = records[name]
        keys = [records[key["def"]] for key in recipe["keys"]]
        print(f"    {json.dumps(recipe['recipeName'])}: [")
        for name, key in zip(recipe["keyNames"], keys):
            print(f"        {write_key(name, key)},")
        print("    ],")
    print("}")


main()
