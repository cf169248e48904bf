"""Programs that quantize a part of a weight's rows with scales that all ranks share.

A weight is [outputs, inputs], and a rank has some of its rows. Each measures what it has, the
maximum over ranks is what one process measures, and so scales and codes are those of one process.
"""

import functools
from collections import namedtuple

import torch

import fp8
from fp8 import casts
from fp8.recipe_keys import RECIPES
from fp8.torch.linear_programs import ELEMENTS
from fp8.torch.program_text import write_block

# The codes of a recipe's weights: their format, which elements share a scale in the forward and
# in the gradient of x, how many K and N are a multiple of, and pairs of a scale's rule.
Codes = namedtuple("Codes", "format forward backward multiple rule")

_DTYPES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
_LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}
_NAMES = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}
_BLOCKS = {"current": ((None, None), (None, None), 16), "delayed": ((None, None), (None, None), 16),
           "rowwise": ((1, None), (None, 1), 16), "block": ((128, 128), (128, 128), 128)}


def find_codes(recipe, operand="weight"):
    """The Codes of a recipe's text, or None for one whose weights are not gathered as codes."""
    name = recipe.partition(",")[0]
    if name not in _BLOCKS:
        return None
    options = _read(recipe)
    if options.get("w_dim", "2") != "2":
        return None
    rule = []
    if name != "delayed":
        rule += [("pow2", "true")] if options["pow2"] == "true" else []
        epsilon = float(options["amax_epsilon"])
        rule += [("epsilon", f"{epsilon:.9e}")] if epsilon else []
        rule += [("style", "torchao")] if options.get("style") == "torchao" else []
    is_wide = options["format"] == "e5m2" or operand == "gradient" and options["format"] == "hybrid"
    format = "e5m2" if is_wide else "e4m3"
    return Codes(format, *_BLOCKS[name], tuple(rule))


def keeps_one_order(recipe, options):
    """Whether programs of a recipe take codes of the weight in one order for all of their products."""
    if dict(options).get("transposed_codes") in (None, "copy"):
        return False
    codes = find_codes(recipe)
    return codes is not None and codes.forward == codes.backward


def _read(recipe):
    """The keys of a recipe's text, and those that it leaves out, as texts."""
    name, *entries = recipe.split(",")
    values = {key.name: str(key.default).lower() for key in RECIPES[name]}
    return {**values, **dict(entry.split("=", 1) for entry in entries)}


def read_rule(rule):
    """Pairs of a scale's rule, as fp8.quantize has them."""
    names = {"pow2": "pow2", "epsilon": "amax_epsilon", "style": "style"}
    read = {"pow2": lambda text: text == "true", "epsilon": float, "style": str}
    return {names[key]: read[key](value) for key, value in rule}


def get_dtype(codes):
    return _DTYPES[codes.format]


def _find_rule(codes, block, element):
    if block != (128, 128) or element == "f32":
        return codes.rule
    largest = torch.finfo({text: dtype for dtype, text in ELEMENTS.items()}[element]).max
    return codes.rule + (("overflow", f"{largest:.9e}"),)


@functools.lru_cache(maxsize=None)
def _compile(codes, block, inputs, element, target):
    """Functions of any number of rows: `measure(x) -> amax`, `scale(amax) -> (scale, inverse)`, and
    `quantize(x, scale, inverse) -> codes`."""
    rows, columns = block
    grid = f"{'1' if rows is None else '?'}x{1 if columns is None else -(-inputs // columns)}"
    kind, source = f"tensor<{grid}xf32>", f"tensor<?x{inputs}x{element}>"
    result, written = f"tensor<?x{inputs}x{_NAMES[codes.format]}>", write_block(block)
    scaled = f"!fp8.scaled<?x{inputs}x{_NAMES[codes.format]}, block = {written}, scale = f32>"
    nan, rule = casts.write_rule(_find_rule(codes, block, element))
    text = f"""
func.func @measure(%x: {source} {{fp8.name = "x"}}) -> {kind} {{
  %amax = fp8.amax %x block = {written}{nan} : {source}
  return %amax : {kind}
}}
func.func @scale(%amax: {kind}) -> ({kind}, {kind}) {{
  %s, %i = fp8.compute_scale %amax format = {_NAMES[codes.format]} scale_type = f32 {rule} : {kind}
  return %s, %i : {kind}, {kind}
}}
func.func @quantize(%x: {source} {{fp8.name = "x"}}, %s: {kind}, %i: {kind}) -> {result} {{
  %q = fp8.quantize %x scale(%s, %i : {kind}, {kind}) : {source} -> {scaled}
  %c, %f = fp8.disassemble %q : {scaled}
  return %c : {result}
}}
"""
    return fp8.compile(text, target=target)


class Shard:
    """A rank's rows of a weight: `data` is [rows, inputs], of which the weight has `outputs` and
    those before `start` are other ranks'."""

    def __init__(self, codes, data, start, outputs, target="auto"):
        self.codes, self.data, self.start, self.outputs = codes, data, start, outputs
        self.target = target

    def _get_program(self, block):
        target = _find_target(self.data, self.target)
        return _compile(self.codes, block, self.data.shape[1], ELEMENTS[self.data.dtype], target)

    def find_function(self, block, name):
        """A Function of all rows, where no block of them is another rank's."""
        return self._get_program(block).functions[name]

    def _divide(self, block):
        """Rows of `data` as (begin, end, first row of the grid): a block that begins with another
        rank's rows is one of its own."""
        rows, size = self.data.shape[0], block[0]
        if size is None:
            return [(0, rows, 0)] if rows else []
        head = min(rows, -self.start % size)
        pieces = [(0, head, self.start // size)] if head else []
        return pieces + ([(head, rows, (self.start + head) // size)] if head < rows else [])

    def get_grid(self, block):
        """The sizes of the whole weight's amaxes."""
        sizes = self.outputs, self.data.shape[1]
        return tuple(1 if each is None else -(-size // each) for size, each in zip(sizes, block))

    def measure(self, block):
        """The amaxes of the whole weight, zeros for what is other ranks'."""
        pieces, sizes = self._divide(block), self.get_grid(block)
        if len(pieces) == 1 and sizes[0] == 1:
            return self._get_program(block).measure(self.data)
        grid = torch.zeros(sizes, device=self.data.device)
        for begin, end, first in pieces:
            amax = self._get_program(block).measure(self.data[begin:end])
            grid[first:first + amax.shape[0]] = amax
        return grid

    def scale(self, block, amax):
        """Scales of the whole weight, and their inverses."""
        return self._get_program(block).scale(amax)

    def quantize(self, block, scale, inverse, rows):
        """Codes as bytes, [rows, inputs], zeros behind what there is."""
        pieces = self._divide(block)
        if rows == self.data.shape[0] and len(pieces) == 1:
            return self._quantize(block, scale, inverse, *pieces[0]).view(torch.uint8)
        result = torch.zeros((rows, self.data.shape[1]), dtype=torch.uint8, device=self.data.device)
        for begin, end, first in pieces:
            codes = self._quantize(block, scale, inverse, begin, end, first)
            result[begin:end] = codes.view(torch.uint8)
        return result

    def _quantize(self, block, scale, inverse, begin, end, first):
        """Codes of some rows, of which one block or more begin with the first of the grid."""
        count = 1 if block[0] is None else -(-(end - begin) // block[0])
        parts = (each[first:first + count].contiguous() for each in (scale, inverse))
        return self._get_program(block).quantize(self.data[begin:end], *parts)


# Codes of a whole weight both ways, [outputs, inputs] and [inputs, outputs] in memory, with the inverses of their scales, and
# its amax where scales were given.
Whole = namedtuple("Whole", "codes inverse turned turned_inverse amax")


def _find_target(tensor, target):
    return target if target != "auto" else "auto" if tensor.is_cuda else "cpu"


@functools.lru_cache(maxsize=None)
def _compile_whole(codes, rows, columns, element, is_given, target):
    """Both ways by one kernel, which reads the weight once."""
    block, code = codes.forward, _NAMES[codes.format]
    grid = "x".join(str(1 if each is None else -(-size // each)) for size, each in zip((rows, columns), block))
    kind, source = f"tensor<{grid}xf32>", f"tensor<{rows}x{columns}x{element}>"
    scaled = f"<{rows}x{columns}x{code}, block = {write_block(block)}, scale = f32>"
    turned = f"!fp8.scaled<{columns}x{rows}x{code}, block = {write_block(block[::-1])}, scale = f32>"
    nan, rule = casts.write_rule(_find_rule(codes, block, element))
    given = f", %s: {kind}, %i: {kind}" if is_given else ""
    scales = "" if is_given else (
        f"  %s, %i = fp8.compute_scale %amax format = {code} scale_type = f32 {rule} : {kind}\n")
    results = f"tensor<{rows}x{columns}x{code}>, tensor<{columns}x{rows}x{code}>, {kind}"
    return fp8.compile(f"""
func.func @whole(%x: {source} {{fp8.name = "x"}}{given}) -> ({results}) {{
  %amax = fp8.amax %x block = {write_block(block)}{nan} : {source}
{scales}  %q = fp8.quantize %x scale(%s, %i : {kind}, {kind}) : {source} -> !fp8.scaled{scaled}
  %c, %f = fp8.disassemble %q : !fp8.scaled{scaled}
  %t = fp8.transpose %q permutation = [1, 0] : {scaled}
  %d, %g = fp8.disassemble %t : {turned}
  return %c, %d, {"%amax" if is_given else "%f"} : {results}
}}
""", target=target)


def quantize_whole(codes, x, target="auto", scales=None):
    """A Whole of a weight whose codes are the same both ways; `scales`, and their inverses, are its own where none are given."""
    program = _compile_whole(codes, *x.shape, ELEMENTS[x.dtype], scales is not None, _find_target(x, target))
    found, turned, last = program.whole(x, *(scales or ()))
    inverse, amax = (scales[1], last) if scales else (last, None)
    turned_inverse = inverse.view(inverse.shape[::-1]) if 1 in inverse.shape else inverse.t().contiguous()
    return Whole(found.view(torch.uint8), inverse, turned, turned_inverse, amax)


@functools.lru_cache(maxsize=None)
def _compile_turn(format, rows, columns, target):
    kind, turned = (f"tensor<{sizes}x{_NAMES[format]}>" for sizes in (f"{rows}x{columns}", f"{columns}x{rows}"))
    return fp8.compile(f"""
func.func @turn(%x: {kind} {{fp8.name = "x"}}) -> {turned} {{
  %e = tensor.empty() : {turned}
  %t = linalg.transpose ins(%x : {kind}) outs(%e : {turned}) permutation = [1, 0]
  return %t : {turned}
}}
""", target=target)


def turn(codes, target="auto"):
    """Codes, [rows, columns] of 8 bits, the other way round in memory: [columns, rows]."""
    format = next(name for name, dtype in _DTYPES.items() if dtype == codes.dtype)
    return _compile_turn(format, *codes.shape, _find_target(codes, target)).turn(codes)


def make_first_scale(codes, recipe, amax):
    """The scale that delayed scaling begins with: a float, of an amax that is one. 1 where it
    follows from nothing."""
    import numpy as np
    options = _read(recipe)
    if not 0 < amax < float("inf"):
        return 1.0
    with np.errstate(over="ignore"):
        largest = np.float32(_LARGEST[codes.format]) / np.float32(2.0 ** float(options["margin"]))
        scale = min(largest / np.float32(amax), np.finfo(np.float32).max)
    if options["pow2"] == "true":
        scale = np.exp2(np.floor(np.log2(np.float64(scale))))
    return float(scale)


def begins_with_current(recipe):
    """Whether a first step under delayed scaling has the scales of its own tensors."""
    options = _read(recipe)
    if options["initial"] != "auto":
        return options["initial"] == "current"
    return options["compat"] not in ("te_unfused", "flax")


def make_given(recipe):
    """The recipe of programs that take scales of `current` from a state, in which they are written
    before each call."""
    options = _read(recipe)
    return (f"delayed,format={options['format']},amax_history_len=1,initial=one,"
            f"accumulate={options['accumulate']}")
