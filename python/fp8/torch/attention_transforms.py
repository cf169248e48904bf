"""What is done to queries and keys before they are codes, so that less is lost, and which of these share a factor. Products
of both are what they were:

- smooth_k: of each head of keys the mean over its positions is taken away, as SageAttention does. A query's scores all
  change by the same number, which no softmax sees;
- hadamard: columns of queries and keys are rotated by the same orthogonal matrix, which spreads a large one over all;
- block: so many positions of a head share a factor, in place of all of the tensor.

A format with these is written as "e4m3,smooth_k,hadamard,block=128".
"""

import functools

import torch

from fp8.errors import ArgumentError
from fp8.torch.dense import is_recorded

SMOOTH, ROTATE = NAMES = "smooth_k", "hadamard"
_BLOCK = "block="
# Tiles of keys have a factor each, and the least ones have so many.
BLOCK_STEP = 32


def join(format_, smooth_k, hadamard, block=None):
    """A format with what is asked for. Raises ArgumentError where there are no codes, and for blocks of odd sizes."""
    chosen = [name for name, is_on in zip((*NAMES, "block"), (smooth_k, hadamard, block is not None)) if is_on]
    if chosen and format_ is None:
        raise ArgumentError(f"expected a format with {' and '.join(chosen)}, which {'are' if chosen[1:] else 'is'} for codes, "
                            "but got None")
    if block is not None:
        if type(block) is not int or block <= 0 or block % BLOCK_STEP:
            raise ArgumentError(f"expected block to be a positive multiple of {BLOCK_STEP} positions, but got {block!r}")
        chosen[-1] = f"{_BLOCK}{block}"
    return ",".join([format_, *chosen]) if format_ else format_


def split(format_):
    """The format itself, and the names of what goes before it."""
    if format_ is None:
        return None, ()
    name, *chosen = format_.split(",")
    return name, tuple(chosen)


def find_block(chosen):
    """How many positions share a factor, by what goes before codes; 0 if all do."""
    return next((int(each.removeprefix(_BLOCK)) for each in chosen if each.startswith(_BLOCK)), 0)


def drop(text):
    """The text of a recipe without what goes before codes."""
    return ",".join(entry for entry in text.split(",") if entry.partition("=")[0] not in NAMES)


def find_size(columns):
    """How many neighbours are rotated together: the largest power of two that columns are a multiple of."""
    return columns & -columns


def _find_exponent(size, is_query):
    """The matrix times this power of two has numbers that any type has: both together are orthogonal."""
    exponent = size.bit_length() - 1
    return -(exponent // 2) if is_query else exponent // 2 - exponent


_matrices = {}


def make_matrix(columns, is_query, dtype, device):
    """The matrix that rows are multiplied by. It is symmetric."""
    key = columns, is_query, dtype, device
    # What is made in a graph belongs to that.
    if is_recorded():
        return _make_matrix(*key)
    if key not in _matrices:
        with torch.inference_mode(False):
            _matrices[key] = _make_matrix(*key)
    return _matrices[key]


def _make_matrix(columns, is_query, dtype, device):
    size = find_size(columns)
    places = torch.arange(columns)
    bits = (places[:, None] & places) & (size - 1)
    signs = torch.ones(columns, columns, dtype=torch.float64)
    for bit in range(size.bit_length()):
        signs = torch.where((bits >> bit & 1).bool(), -signs, signs)
    inside = places[:, None] // size == places // size
    return (signs * inside * 2.0 ** _find_exponent(size, is_query)).to(dtype).to(device)


def rotate(x, is_query):
    """Rows times the matrix; the gradient of rotated ones becomes that of what they were."""
    return torch.matmul(x, make_matrix(x.shape[-1], is_query, x.dtype, x.device))


def smooth(x, heads_first=True):
    """Keys less the mean of each head, batches x heads x positions x columns, or with positions before heads."""
    mean = x.float().mean(2 if heads_first else 1, keepdim=True)
    return (x.float() - mean).to(x.dtype)


def apply(query, key, transforms, heads_first):
    """Both as codes are made of them."""
    key = smooth(key, heads_first) if SMOOTH in transforms else key
    return (rotate(query, True), rotate(key, False)) if ROTATE in transforms else (query, key)


def differentiate(gradients, format_):
    """Those of query, key and value, of what they were made into before they were codes. Taking a mean away has none of its
    own: what scores of a query pass back sums up to 0."""
    if ROTATE not in split(format_)[1]:
        return gradients
    query, key, value = gradients
    return rotate(query, True), rotate(key, False), value


def correct_sums(sums, query, key, scale):
    """The logarithms of sums of exponentials, batches x heads x positions, that scores of `key` have, where they are those of
    smooth keys; tensors are batches x heads x positions x columns."""
    mean = key.float().mean(2).repeat_interleave(query.shape[1] // key.shape[1], 1)
    return sums + torch.einsum("bhsd,bhd->bhs", query.float(), mean) * scale


def limit(format_, cap, sinks):
    """A format for these scores: what changes all of a query's by the same number is no use where others than their
    differences count."""
    name, chosen = split(format_)
    if SMOOTH not in chosen or cap is None and sinks is None:
        return format_
    return ",".join([name, *(each for each in chosen if each != SMOOTH)])


def describe(format_, cap, sinks):
    """A format as it is said to people, with what of it is left out, and why; None without one."""
    if format_ is None:
        return None
    kept = limit(format_, cap, sinks)
    text = ", ".join(kept.split(","))
    return text if kept == format_ else f"{text} without {SMOOTH}, as {find_reason(cap, sinks)}"


def find_reason(cap, sinks):
    """Why keys cannot be smooth, or None."""
    if cap is not None:
        return "a cap bends scores themselves, not their differences"
    return None if sinks is None else "a sink is a score of no key, which would not change with the others"


def find_three(heads, columns, heads_first):
    """How many columns have a mean of their own in three dimensions, and how four become these."""
    return (columns, "[[0, 1], [2], [3]]") if heads_first else (heads * columns, "[[0], [1], [2, 3]]")


@functools.lru_cache(maxsize=64)
def _write_matrix(columns, is_query, element):
    dtype, bits = {"bf16": (torch.bfloat16, torch.int16), "f16": (torch.float16, torch.int16),
                   "f32": (torch.float32, torch.int32)}[element]
    numbers = make_matrix(columns, is_query, dtype, torch.device("cpu")).view(bits).numpy()
    return numbers.astype(numbers.dtype.newbyteorder("<")).tobytes().hex().upper()


def write_rotation(name, rows, columns, element, is_query):
    """The text that rotates rows of columns, `rows`, and what the result is called."""
    kind, wide = f"tensor<?x{columns}x{element}>", f"tensor<?x{columns}xf32>"
    matrix = f"tensor<{columns}x{columns}x{element}>"
    text = (f'  %{name}_matrix = arith.constant dense<"0x{_write_matrix(columns, is_query, element)}"> : {matrix}\n'
            f"  %{name}_n = tensor.dim {rows}, %c0 : {kind}\n"
            f"  %{name}_zero = arith.constant 0.0 : f32\n"
            f"  %{name}_sums = tensor.empty(%{name}_n) : {wide}\n"
            f"  %{name}_zeros = linalg.fill ins(%{name}_zero : f32) outs(%{name}_sums : {wide}) -> {wide}\n"
            f'  %{name}_product = linalg.matmul {{fp8.name = "{name}.rotation", fp8.recipe = #fp8.none}} ins({rows}, %{name}_matrix : '
            f"{kind}, {matrix}) outs(%{name}_zeros : {wide}) -> {wide}\n")
    if element == "f32":
        return text, f"%{name}_product"
    return text + (
        f"  %{name}_room = tensor.empty(%{name}_n) : {kind}\n"
        f"  %{name}_rotated = linalg.generic {{indexing_maps = [affine_map<(r, d) -> (r, d)>, affine_map<(r, d) -> (r, d)>], "
        f'iterator_types = ["parallel", "parallel"]}} ins(%{name}_product : {wide}) outs(%{name}_room : {kind}) {{\n'
        f"  ^bb0(%wide: f32, %unused: {element}):\n"
        f"    %rounded = arith.truncf %wide : f32 to {element}\n"
        f"    linalg.yield %rounded : {element}\n  }} -> {kind}\n"), f"%{name}_rotated"


def write_smoothing(name, heads, columns, element, heads_first):
    """The text that makes %name_smooth of %name, four dimensions: less the mean of each head. In it what is of one mean lies in
    the last dimension, and positions before."""
    last, groups = find_three(heads, columns, heads_first)
    whole = f"tensor<?x{heads}x?x{columns}x{element}>" if heads_first else f"tensor<?x?x{heads}x{columns}x{element}>"
    kind, sums = f"tensor<?x?x{last}x{element}>", f"tensor<?x{last}xf32>"
    maps = "affine_map<(b, s, d) -> (b, s, d)>", "affine_map<(b, s, d) -> (b, d)>"
    is_wide = element == "f32"
    wide, less = ("%x", "%less") if is_wide else ("%w", "%rounded")
    widen = "" if is_wide else f"    %w = arith.extf %x : {element} to f32\n"
    narrow = "" if is_wide else f"    %rounded = arith.truncf %less : f32 to {element}\n"
    return (f"  %{name}_three = tensor.collapse_shape %{name} {groups} : {whole} into {kind}\n"
            f"  %{name}_h = tensor.dim %{name}_three, %c0 : {kind}\n"
            f"  %{name}_zero_sum = arith.constant 0.0 : f32\n"
            f"  %{name}_count_i = arith.index_cast %{name}_s : index to i64\n"
            f"  %{name}_count = arith.sitofp %{name}_count_i : i64 to f32\n"
            f"  %{name}_sum_room = tensor.empty(%{name}_h) : {sums}\n"
            f"  %{name}_sum_zeros = linalg.fill ins(%{name}_zero_sum : f32) outs(%{name}_sum_room : {sums}) -> {sums}\n"
            f'  %{name}_total = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = ["parallel", "reduction", '
            f'"parallel"]}} ins(%{name}_three : {kind}) outs(%{name}_sum_zeros : {sums}) {{\n'
            f"  ^bb0(%x: {element}, %sum: f32):\n{widen}"
            f"    %more = arith.addf %sum, {wide} : f32\n"
            f"    linalg.yield %more : f32\n  }} -> {sums}\n"
            f"  %{name}_smooth_room = tensor.empty(%{name}_h, %{name}_s) : {kind}\n"
            f'  %{name}_smooth = linalg.generic {{indexing_maps = [{maps[0]}, {maps[1]}, {maps[0]}], iterator_types = ["parallel", '
            f'"parallel", "parallel"]}} ins(%{name}_three, %{name}_total : {kind}, {sums}) outs(%{name}_smooth_room : {kind}) {{\n'
            f"  ^bb0(%x: {element}, %sum: f32, %unused: {element}):\n{widen}"
            f"    %mean = arith.divf %sum, %{name}_count : f32\n"
            f"    %less = arith.subf {wide}, %mean : f32\n{narrow}"
            f"    linalg.yield {less} : {element}\n  }} -> {kind}\n")


def write_rows(name, heads, columns, element, heads_first):
    """The text that makes rows, %name_less, of what write_smoothing made."""
    last, groups = find_three(heads, columns, heads_first)
    order = f"{heads}, %{name}_s" if heads_first else f"%{name}_s, {heads}"
    whole = f"tensor<?x{heads}x?x{columns}x{element}>" if heads_first else f"tensor<?x?x{heads}x{columns}x{element}>"
    return (f"  %{name}_four = tensor.expand_shape %{name}_smooth {groups} output_shape [%{name}_b, {order}, {columns}] : "
            f"tensor<?x?x{last}x{element}> into {whole}\n"
            f"  %{name}_less = tensor.collapse_shape %{name}_four [[0, 1, 2], [3]] : {whole} into tensor<?x{columns}x{element}>\n")
