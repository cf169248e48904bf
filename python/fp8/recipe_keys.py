"""The recipes and their keys. Made by `make docs` from include/fp8/IR/FP8Recipes.td."""

from collections.abc import Sequence
from typing import NamedTuple


class Key(NamedTuple):
    name: str
    default: bool | int | float | str | None  # None for a path, which has to be given
    low: float = 0  # bounds of a number, both inclusive
    high: float = 0
    words: Sequence[str] = ()  # those of a key that takes a word


RECIPES: dict[str, list[Key]] = {
    "block": [
        Key("format", "e4m3", words="hybrid, e4m3, e5m2".split(", ")),
        Key("pow2", True),
        Key("amax_epsilon", 0.0, 0.0, 3.4028234663852886e+38),
        Key("x_dim", 1, 1, 2),
        Key("w_dim", 2, 1, 2),
        Key("grad_dim", 1, 1, 2),
    ],
    "current": [
        Key("format", "hybrid", words="hybrid, e4m3, e5m2".split(", ")),
        Key("pow2", False),
        Key("amax_epsilon", 0.0, 0.0, 3.4028234663852886e+38),
        Key("style", "te", words="te, torchao".split(", ")),
        Key("accumulate", "promote", words="promote, fast, fast_fprop".split(", ")),
    ],
    "delayed": [
        Key("format", "hybrid", words="hybrid, e4m3, e5m2".split(", ")),
        Key("amax_history_len", 1024, 1, 65536),
        Key("amax_compute_algo", "max", words="max, most_recent".split(", ")),
        Key("margin", 0, -64, 64),
        Key("reduce_amax", True),
        Key("compat", "te_fused", words="te_fused, te_unfused, flax".split(", ")),
        Key("pow2", False),
        Key("initial", "auto", words="auto, current, one".split(", ")),
        Key("accumulate", "promote", words="promote, fast, fast_fprop".split(", ")),
    ],
    "mxfp8": [
        Key("format", "e4m3", words="hybrid, e4m3, e5m2".split(", ")),
        Key("mode", "rceil", words="rceil, floor, ceil, even".split(", ")),
        Key("nonfinite", "saturate", words="saturate, nan".split(", ")),
        Key("weight_2d", False),
    ],
    "nvfp4": [
        Key("weight_2d", False),
        Key("stochastic_rounding", False),
        Key("hadamard", False),
    ],
    "none": [
    ],
    "rowwise": [
        Key("format", "e4m3", words="hybrid, e4m3, e5m2".split(", ")),
        Key("pow2", True),
        Key("amax_epsilon", 0.0, 0.0, 3.4028234663852886e+38),
        Key("style", "te", words="te, torchao".split(", ")),
        Key("accumulate", "promote", words="promote, fast, fast_fprop".split(", ")),
    ],
    "static": [
        Key("state", None),
        Key("format", "hybrid", words="hybrid, e4m3, e5m2".split(", ")),
        Key("accumulate", "promote", words="promote, fast, fast_fprop".split(", ")),
    ],
}
