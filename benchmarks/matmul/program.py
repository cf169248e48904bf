"""Matmuls as programs of the dialect."""

from matmul.epilogues import EPILOGUES

FLOATS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "e2m1": "f4E2M1FN"}
BLOCKS = {
    "tensor": ("*", "*"),
    "row": ("1", "*"),
    "1x128": ("1", "128"),
    "128x128": ("128", "128"),
    "1x32": ("1", "32"),
    "1x16": ("1", "16"),
}
# Types of factors that are not f32; those of 16 have one of the tensor beside them.
SCALES = {"1x32": "f8E8M0FNU", "1x16": "f8E4M3FN, tensor_scale = f32"}
EXTENT = 4096  # Every dimension in the programs; kernels take it at run time.
BATCHES = 3


def is_transposed(spec, name):
    """Whether an operand's rows are innermost in memory, not K."""
    return spec.get("layout", "nt")[name == "b"] == ("n" if name == "b" else "t")


def has_inner_rows(spec, name):
    """Whether a kernel takes an operand's factors with the rows innermost, as our passes store
    those of 1x128; rows then begin at multiples of 16 bytes."""
    return spec.get(f"scale_{name}") == "1x128" and not spec.get("dynamic") and not spec.get("inner_k")


def assembled(name, element, batch, rows, k, type_):
    """Arguments with codes and such factors, and how an operand is made of them."""
    blocks = -(-k // 128)
    codes, stored = f"tensor<{batch}{rows}x{k}x{element}>", f"tensor<{batch}{blocks}x{rows}xf32>"
    factors = f"tensor<{batch}{rows}x{blocks}xf32>"
    order = "0, 2, 1" if batch else "1, 0"
    made = f"""  %{name}_empty = tensor.empty() : {factors}
  %{name}_factors = linalg.transpose ins(%{name}_stored : {stored}) outs(%{name}_empty : {factors}) permutation = [{order}]
  %{name} = fp8.assemble %{name}_codes, %{name}_factors : {codes}, {factors} -> {type_}
"""
    return [f"%{name}_codes: {codes}", f"%{name}_stored: {stored}"], made


def lifted(n, k, type_):
    """Arguments with codes of E2M1, exponents and factors, and how B is made of them."""
    codes, exponents = f"tensor<{n}x{k}xf4E2M1FN>", f"tensor<{-(-k // 128)}x{n}xi32>"
    factors, result = f"tensor<{n}x1xf32>", f"tensor<{n}x{k}xf8E4M3FN>"
    made = f"""  %b_lifted = fp8.lift %b_codes, %b_exponents folded : {codes}, {exponents} -> {result}
  %b = fp8.assemble %b_lifted, %b_factors : {result}, {factors} -> {type_}
"""
    return [f"%b_codes: {codes}", f"%b_exponents: {exponents}", f"%b_factors: {factors}"], made


def program(spec, m=EXTENT, n=EXTENT, k=EXTENT):
    """One function for each config, or one that leaves the choice open."""
    m = "?" if spec.get("dynamic") else m
    batch = f"{BATCHES}x" if spec["batched"] else ""

    def operand(element, scale, rows, transposed):
        extents = f"{k}x{rows}" if transposed else f"{rows}x{k}"
        if scale == "none":
            return f"tensor<{batch}{extents}x{element}>"
        block = list(BLOCKS[scale])[:: -1 if transposed else 1]
        if spec["batched"]:
            block.insert(0, "*" if scale == "tensor" else "1")
        return (f"!fp8.scaled<{batch}{extents}x{FLOATS[element]}, "
                f"block = [{', '.join(block)}], scale = {SCALES.get(scale, 'f32')}>")

    transposed = [name for name in "ab" if is_transposed(spec, name)]
    a = operand(spec["a"], spec["scale_a"], m, "a" in transposed)
    is_lifted = spec["b"] == "mxfp4"
    b = operand("e4m3" if is_lifted else spec["b"], spec["scale_b"], n, "b" in transposed)
    element = FLOATS.get(spec["result"], spec["result"])
    types = [f"tensor<{batch}{m}x{n}x{element}>"]
    arguments, made = [], ""
    for name, rows, type_ in (("a", m, a), ("b", n, b)):
        if is_lifted and name == "b":
            taken, text = lifted(n, k, type_)
            arguments, made = arguments + taken, made + text
        elif has_inner_rows(spec, name):
            taken, text = assembled(name, FLOATS[spec[name]], batch, rows, k, type_)
            arguments, made = arguments + taken, made + text
        else:
            arguments.append(f"%{name}: {type_}")
    region = ""
    epilogue = EPILOGUES[spec["epilogue"]]
    if epilogue:
        names, inner = [], ["%acc: f32"]
        for i, (dims, dtype) in enumerate(epilogue["operands"]):
            shape = {"n": [n], "m": [m, 1], "mn": [m, n]}[dims]
            tensor = f"tensor<{'x'.join(map(str, shape))}x{dtype}>"
            arguments.append(f"%t{i}: {tensor}")
            names.append(f"%t{i} : {tensor}")
            inner.append(f"%o{i}: {dtype}")
        body, result = epilogue["body"], "%x"
        if not body:
            body, result = "", "%acc"
        yields = [f"{result} : f32"]
        if epilogue.get("quantize"):
            arguments.append("%scale: f32")
            limit = {"e4m3": "448.0", "e5m2": "57344.0"}[spec["result"]]
            body += f"""
    %high = arith.constant {limit} : f32
    %low = arith.constant -{limit} : f32
    %s = arith.mulf {result}, %scale : f32
    %above = arith.cmpf ogt, %s, %high : f32
    %s1 = arith.select %above, %high, %s : f32
    %below = arith.cmpf olt, %s1, %low : f32
    %s2 = arith.select %below, %low, %s1 : f32
    %q = arith.truncf %s2 : f32 to {element}"""
            yields = [f"%q, {result} : {element}, f32"]
            types.append("tensor<1x1xf32>")
        elif spec["result"] != "f32":
            body += f"\n    %r = arith.truncf {result} : f32 to {element}"
            yields = [f"%r : {element}"]
        operands = []
        shapes = []
        for name in names:
            value, tensor = name.split(" : ")
            operands.append(value)
            shapes.append(tensor)
        listed = f"({', '.join(operands)} : {', '.join(shapes)})" if operands else ""
        region = (f" epilogue{listed} {{\n  ^bb0({', '.join(inner)}):"
                  f"{body}\n    fp8.yield {yields[0]}\n  }}")
    accumulate = "".join(f" transpose_{name}" for name in transposed)
    accumulate += " accumulate = fast" if spec["accumulate"] == "fast" else ""
    values = "%0" if len(types) == 1 else "%0#0, %0#1"
    count = "" if len(types) == 1 else f":{len(types)}"
    text = []
    for i, pinned in enumerate(spec["configs"] or [None]):
        pin = f" {{fp8_gpu.config = {pinned}}}" if pinned else ""
        text.append(f"""func.func @f{i}({', '.join(arguments)}) -> ({', '.join(types)}) {{
{made}  %0{count} = fp8.matmul %a, %b{accumulate}{region}{pin}
    : {a}, {b} -> {', '.join(types)}
  return {values} : {', '.join(types)}
}}
""")
    return "".join(text)
