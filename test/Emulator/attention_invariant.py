# RUN: env PYTHONPATH=%fp8_package FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_SMS=3 %python %s sm_90a
# RUN: env PYTHONPATH=%fp8_package FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=100 %python %s sm_100a
# RUN: env PYTHONPATH=%fp8_package FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=80 %python %s sm_80
# RUN: env PYTHONPATH=%fp8_package FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=89 %python %s sm_89
# RUN: env PYTHONPATH=%fp8_package FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=120 %python %s sm_120a
# RUN: env PYTHONPATH=%fp8_package %python %s cpu
# REQUIRES: python-package, linker
# UNSUPPORTED: sanitizers
"""Invariant attention: a query has the same bits in a prompt, by itself, in a batch, behind padding, in a cache with room,
and with a mask in place of a window, whichever kernel computes it."""

import sys

import ml_dtypes
import numpy as np

import fp8

TARGET = sys.argv[1]
TYPES = {"bf16": ("bf16", ml_dtypes.bfloat16), "e4m3": ("f8E4M3FN", ml_dtypes.float8_e4m3fn)}
_functions = {}


def get_function(element, queries, heads, heads_of_k, dim, told, attributes, invariant):
    """A program of any batches and keys; `told` are operands beside Q, K and V, as text."""
    key = element, queries, heads, heads_of_k, dim, told, attributes, invariant
    if key in _functions:
        return _functions[key]
    name = TYPES[element][0]
    sizes = [f"?x{'?' if queries is None else queries}x{heads}x{dim}", *[f"?x?x{heads_of_k}x{dim}"] * 2]
    plain = [f"tensor<{size}x{name}>" for size in sizes]
    names, types, body = ["%q", "%k", "%v"], plain, ""
    if element != "bf16":
        types = [f"!fp8.scaled<{size}x{name}, block = [*, *, *, *], scale = f32>" for size in sizes]
        names = [f"{name}_s" for name in names]
        body = "  %one = arith.constant dense<0.125> : tensor<1x1x1x1xf32>\n" + "".join(
            f"  {scaled} = fp8.assemble {codes}, %one : {kind}, tensor<1x1x1x1xf32> -> {scaled_kind}\n"
            for scaled, codes, kind, scaled_kind in zip(names, ("%q", "%k", "%v"), plain, types))
    positions = "?" if queries is None else queries
    kinds = {"key_lengths": "tensor<?xi32>", "key_starts": "tensor<?xi32>", "key_ranges": f"tensor<?x{positions}x2xi32>",
             "mask": f"tensor<?x1x{positions}x?xi1>"}
    arguments = [f"{name}: {kind}" for name, kind in zip(("%q", "%k", "%v"), plain)]
    arguments += [f"%{operand}: {kinds[operand]}" for operand in told]
    given = "".join(f" {operand}(%{operand} : {kinds[operand]})" for operand in told)
    result = f"tensor<{sizes[0]}xbf16>"
    text = (f"func.func @main({', '.join(arguments)}) -> {result} {{\n{body}"
            f"  %o = fp8.attention {', '.join(names)}{given} scale = 0.17 {attributes} : {', '.join(types)} -> {result}\n"
            f"  return %o : {result}\n}}\n")
    program = fp8.compile(text, target=TARGET, cache=False, **({"invariant": True} if invariant else {}))
    return _functions.setdefault(key, program.functions["main"])


class Case:
    """Keys and queries of one sequence, and what each query has by itself."""

    def __init__(self, element, heads, heads_of_k, dim, keys, left=None, queries=None, invariant=True):
        self.first = keys - (queries or keys)
        self.kind, self.left, self.invariant, self.keys = (element, heads, heads_of_k, dim), left, invariant, keys
        rng = np.random.default_rng(keys)
        # Some queries at the end stand for all of a long prompt.
        self.q, self.k, self.v = (
            (rng.standard_normal((1, keys, count, dim)) * 2).astype(np.float32).astype(TYPES[element][1])
            for count in (heads, heads_of_k, heads_of_k))

    def attend(self, queries, q, k, v, window=True, **told):
        attributes = f"window = [{'*' if self.left is None else self.left}, 0] bottom_right" if window else ""
        element, *sizes = self.kind
        function = get_function(element, queries, *sizes, tuple(told), attributes, self.invariant)
        y = function(*(np.ascontiguousarray(x) for x in (q, k, v)), *told.values())
        return np.asarray(y).view(np.uint16)

    def read_prompt(self):
        return self.attend(None, self.q[:, self.first:], self.k, self.v)[0]

    def decode(self, i):
        return self.attend(1, self.q[:, i:i + 1], self.k[:, :i + 1], self.v[:, :i + 1])[0, 0]

    def decode_in_batch(self, places, starts, room):
        """Sequences that end at these places, padded on the left, in a cache with room, of which masks say what is seen."""
        rng = np.random.default_rng(1)
        size = max(place + 1 + start for place, start in zip(places, starts)) + room
        batch = len(places)
        k, v = (np.repeat(x[:, :1] * 0, size, 1).repeat(batch, 0).copy() for x in (self.k, self.v))
        for x in (k, v):
            x[:] = rng.standard_normal(x.shape).astype(x.dtype)
        mask = np.zeros((batch, 1, 1, size), bool)
        for b, (place, start) in enumerate(zip(places, starts)):
            k[b, start:start + place + 1], v[b, start:start + place + 1] = self.k[0, :place + 1], self.v[0, :place + 1]
            first = 0 if self.left is None else max(0, place - self.left)
            mask[b, 0, 0, start + first:start + place + 1] = True
        q = np.concatenate([self.q[:, place:place + 1] for place in places])
        lengths = np.array([place + 1 + start for place, start in zip(places, starts)], np.int32)
        return self.attend(1, q, k, v, window=False, mask=mask, key_lengths=lengths,
                           key_starts=np.array(starts, np.int32))[:, 0]

    def read_padded(self, start):
        """The prompt behind padding, by ranges."""
        pad = [np.concatenate([x[:, :start] * 0 + np.float32(7).astype(x.dtype), x], 1) for x in (self.q, self.k, self.v)]
        number = np.arange(start + self.keys, dtype=np.int32)
        first = np.maximum(start, number - (number if self.left is None else self.left))
        ranges = np.stack([np.minimum(first, number + 1), number + 1], -1)[None].astype(np.int32)
        first = start + self.first
        y = self.attend(None, pad[0][:, first:], *pad[1:], window=False, key_starts=np.array([start], np.int32),
                        key_ranges=ranges[:, first:])
        return y[0]

    def check(self, places):
        prompt = self.read_prompt()
        differ = []
        for place in places:
            if not np.array_equal(prompt[place - self.first], self.decode(place)):
                differ.append(("alone", place))
        starts = [(7 * i) % 50 + 3 * (i % 3) for i in range(len(places))]
        batch = self.decode_in_batch(places, starts, 37)
        differ += [("batch", place) for place, y in zip(places, batch) if not np.array_equal(prompt[place - self.first], y)]
        if not np.array_equal(prompt, self.read_padded(29)):
            differ.append("padded")
        return differ


def main():
    rng = np.random.default_rng(0)
    cases = [Case("bf16", 8, 2, 64, 200), Case("bf16", 2, 1, 128, 1000, queries=60), Case("bf16", 4, 2, 32, 330, left=70),
             Case("bf16", 1, 1, 256, 90), Case("e4m3", 4, 1, 64, 150), Case("bf16", 4, 1, 64, 1950, queries=60)]
    if TARGET in ("sm_80", "sm_89", "sm_120a"):
        # One kernel for all; 16 keys of 256 columns fit behind 128 queries, too.
        cases = [Case("bf16", 2, 1, 64, 150), Case("bf16", 1, 1, 256, 130, queries=3),
                 Case("bf16" if TARGET == "sm_80" else "e4m3", 2, 1, 32, 140, left=70, queries=40)]
    if TARGET == "sm_100a":  # 16 keys of 240 columns leave room for 256 queries.
        cases.append(Case("bf16", 1, 1, 240, 140, queries=3))
    for case in cases:
        places = sorted({case.first, case.keys - 1, *rng.integers(case.first, case.keys, 2).tolist()})
        places += [place for place in (95, 96, 959, 960, 1919, 1920) if case.first <= place < case.keys]
        differ = case.check(places)
        assert not differ, (case.kind, case.keys, differ)
    if TARGET == "sm_90a":
        free = Case("bf16", 4, 1, 64, 1950, queries=60, invariant=False)
        assert free.check([1919, 1920]), "expected other bits without the option"


main()
