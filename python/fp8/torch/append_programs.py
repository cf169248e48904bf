"""Programs that add positions to caches of keys and values, in place."""

import functools

from fp8.torch import expected
from fp8.torch.attention_programs import FORMATS

_LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}


def _write_element(name, element, format_):
    """What stores an element, of a memref `name`, in `name`_cache, at %at."""
    kind = FORMATS.get(format_, element)
    lines = [f"%{name}_x = memref.load %{name}[%b, %h, %i, %d] : %{name}_kind"]
    last = f"%{name}_x"
    if format_:
        if element != "f32":
            lines.append(f"%{name}_f = arith.extf {last} : {element} to f32")
            last = f"%{name}_f"
        lines += [f"%{name}_m = arith.mulf {last}, %{name}_s : f32",
                  f"%{name}_l = arith.minimumf %{name}_m, %most : f32",
                  f"%{name}_u = arith.maximumf %{name}_l, %least : f32",
                  f"%{name}_q = arith.truncf %{name}_u : f32 to {kind}"]
        last = f"%{name}_q"
    return [*lines, f"memref.store {last}, %{name}_cache[%b, %h, %at, %d] : %{name}_cache_kind"]


def _write_loop(names, heads, columns, element, format_):
    """A thread for each element of those, which have as many columns."""
    body = ["%length_i = memref.load %lengths[%b] : memref<?xi32>",
            "%length = arith.index_cast %length_i : i32 to index",
            "%next = arith.addi %length, %i : index",
            "%at = arith.minsi %next, %last : index"]
    for name in names:
        if format_:
            body.append(f"%{name}_s = memref.load %{name}_scale[%c0, %c0] : memref<1x1xf32>")
        body += _write_element(name, element, format_)
    # Indices are within what there is: nothing is left to check (fp8-check-extents).
    return (f"  scf.forall (%b, %h, %i, %d) in (%batches, {heads}, %count, {columns}) {{\n"
            + "".join(f"    {line}\n" for line in body) + "  } {fp8.tiles}\n")


def write(element, heads, columns, format_):
    """The program as text. Its function `append` takes new keys and values, `columns` wide, what they are multiplied by
    before they are codes, if they are, the lengths of batches, and the caches, all of which it changes."""
    kinds, scales, caches = {}, [], []
    for name, size in zip(("key", "value"), columns):
        kinds[f"%{name}_kind"] = f"memref<?x{heads}x?x{size}x{element}>"
        kinds[f"%{name}_cache_kind"] = f"memref<?x{heads}x?x{size}x{FORMATS.get(format_, element)}>"
        scales += [f"%{name}_scale: memref<1x1xf32>"] * bool(format_)
        caches.append(f"%{name}_cache: %{name}_cache_kind")
    arguments = ["%key: %key_kind", "%value: %value_kind", *scales, "%lengths: memref<?xi32>", *caches]
    text = f"func.func @append({', '.join(arguments)}) {{\n"
    text += "".join(f"  %c{i} = arith.constant {i} : index\n" for i in range(3))
    if format_:
        most = _LARGEST[format_]
        text += f"  %most = arith.constant {most} : f32\n  %least = arith.constant -{most} : f32\n"
    text += ("  %batches = memref.dim %key, %c0 : %key_kind\n  %count = memref.dim %key, %c2 : %key_kind\n"
             "  %room = memref.dim %key_cache, %c2 : %key_cache_kind\n  %last = arith.subi %room, %c1 : index\n")
    together = [("key", "value")] if columns[0] == columns[1] else [("key",), ("value",)]
    for names in together:
        text += _write_loop(names, heads, columns[names[0] == "value"], element, format_)
    # Once all threads have read them.
    text += ("  scf.forall (%b) in (%batches) {\n"
             "    %length_i = memref.load %lengths[%b] : memref<?xi32>\n"
             "    %length = arith.index_cast %length_i : i32 to index\n"
             "    %next = arith.addi %length, %count : index\n"
             "    %most_there = arith.minsi %next, %room : index\n"
             "    %next_i = arith.index_cast %most_there : index to i32\n"
             "    memref.store %next_i, %lengths[%b] : memref<?xi32>\n"
             "  } {fp8.tiles}\n  return\n}\n")
    # Longest names first: those of caches begin like others.
    for name in sorted(kinds, key=len, reverse=True):
        text = text.replace(name, kinds[name])
    return text


@functools.lru_cache(maxsize=64)
def get_append(element, heads, columns, format_, target):
    """What it is, compiled once."""
    return expected.compile(
        lambda: f"appending {element} of {heads} heads and {columns[0]} columns to a cache in {format_ or element}",
        [("append", heads, columns)], write(element, heads, columns, format_), target=target).functions["append"]
