# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools --target=sm_100a
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Products whose extents show when the program runs, on the emulator with all that it can look for, where an extent is
zero. Without K results are zeros, and what an epilogue makes of them, without M or N they have no elements.

A program has a product for each config. It is compiled once and called with each of some extents, the last of which are
not zero.
"""

import sys

import numpy as np

from products import FAST, OF_K, PROMOTE, Operand, blackwell, check_target, choose, compare, config, run_each, tensor

BATCH = GROUPS = 3
EXTENTS = [(144, 80, 0), (0, 80, 272), (144, 0, 272), (0, 0, 0), (144, 80, 272)]
GROUPED = "offsets", "offsets_k", "counts", "counts_k"
# Bounds of groups where rows, or K, are that many.
BOUNDS = {0: [0, 0, 0, 0], 144: [0, 50, 50, 130], 272: [0, 130, 130, 256]}

SPLIT = [config(128, 64, split_k=3), config(16, 64, consumers=1, swap_ab="true", store="direct", split_k=4, group=1)]
TENSOR, ROW, TOKENS, WEIGHTS = "*", ("1", "*"), ("1", "128"), ("128", "128")

# Elements of A and B, blocks of their factors, accumulation, layout, configs, and what else.
HOPPER = {
    "fast": ("f8E4M3FN", TENSOR, TENSOR, "fast", "nt", FAST + SPLIT),
    "promote": ("f8E5M2", TENSOR, TENSOR, "promote", "nt", PROMOTE + SPLIT),
    "row_fast": ("f8E4M3FN", ROW, ROW, "fast", "nt", FAST[:5] + SPLIT),
    "row_promote": ("f8E4M3FN", ROW, ROW, "promote", "nt", PROMOTE[:3]),
    "block": ("f8E4M3FN", TOKENS, WEIGHTS, "promote", "nt", PROMOTE + SPLIT),
    "block_stored": ("f8E4M3FN", TOKENS, WEIGHTS, "promote", "nt", PROMOTE + SPLIT, "stored"),
    "both": ("f8E4M3FN", TOKENS, TOKENS, "promote", "nt", PROMOTE + SPLIT),
    "both_stored": ("f8E4M3FN", TOKENS, TOKENS, "promote", "nt", PROMOTE[:3], "stored"),
    "plain": ("bf16", None, None, "fast", "nt", FAST + SPLIT),
    "plain_nn": ("bf16", None, None, "fast", "nn", FAST[:4]),
    "plain_tn": ("bf16", None, None, "fast", "tn", FAST[:3]),
    "batched": ("f8E4M3FN", TENSOR, TENSOR, "fast", "nt", FAST[:5] + SPLIT, "batched"),
    "batched_block": ("f8E4M3FN", TOKENS, WEIGHTS, "promote", "nt", PROMOTE[:3], "batched"),
    "group": ("f8E4M3FN", TENSOR, TENSOR, "fast", "nt", FAST[:5], "group"),
    "offsets": ("f8E4M3FN", ROW, ROW, "fast", "nt", FAST, "offsets"),
    "offsets_block": ("f8E4M3FN", TOKENS, WEIGHTS, "promote", "nt", PROMOTE, "offsets"),
    "offsets_k": ("f8E4M3FN", TENSOR, TENSOR, "fast", "nt", OF_K, "offsets_k"),
    "offsets_k_both": ("f8E4M3FN", TOKENS, TOKENS, "promote", "nt", OF_K[:4], "offsets_k"),
    "counts": ("bf16", None, None, "fast", "nt", FAST[:5], "counts"),
    "counts_k": ("bf16", None, None, "fast", "tn", OF_K[:5], "counts_k"),
}


FAST100 = [blackwell(128, 64), blackwell(128, 160, stages=2, group=4), blackwell(256, 64, cta_group=2),
           blackwell(128, 96, store="direct"), blackwell(16, 128, swap_ab="true", store="direct", group=1),
           blackwell(128, 32, split_k=3)]
PROMOTE100 = [blackwell(128, 64), blackwell(128, 128, stages=2),
              blackwell(16, 128, swap_ab="true", store="direct", group=1)]
BLACKWELL = {
    "fast": ("f8E4M3FN", TENSOR, TENSOR, "fast", "nt", FAST100),
    "promote": ("f8E5M2", TENSOR, TENSOR, "promote", "nt", PROMOTE100),
    "row": ("f8E4M3FN", ROW, ROW, "fast", "nt", FAST100[:3]),
    "block": ("f8E4M3FN", TOKENS, WEIGHTS, "promote", "nt", PROMOTE100),
    "both": ("f8E4M3FN", TOKENS, TOKENS, "promote", "nt", PROMOTE100),
    "plain": ("bf16", None, None, "fast", "nt", FAST100),
    "plain_tn": ("bf16", None, None, "fast", "tn", FAST100[:3]),
    "batched": ("f8E4M3FN", TENSOR, TENSOR, "fast", "nt", FAST100, "batched"),
    "group": ("f8E4M3FN", TENSOR, TENSOR, "fast", "nt", FAST100[:1], "group"),
    "offsets": ("f8E4M3FN", TENSOR, TENSOR, "fast", "nt", FAST100[:5], "offsets"),
    "counts": ("bf16", None, None, "fast", "nt", FAST100[:5], "counts"),
}


def get_shapes(extents, form):
    """Shapes of A, B and the results."""
    m, n, k = extents
    shapes = {"batched": ([BATCH, m, k], [BATCH, n, k], [BATCH, m, n]), "offsets": ([m, k], [GROUPS, n, k], [m, n]),
              "offsets_k": ([m, k], [n, k], [GROUPS, m, n]), "counts": ([GROUPS, m, k], [GROUPS, n, k], [GROUPS, m, n]),
              "counts_k": ([GROUPS, m, k], [GROUPS, n, k], [GROUPS, m, n])}
    return shapes.get(form, ([m, k], [n, k], [m, n]))


def multiply(a, b, form, bounds):
    """In f32; groups are of `bounds`."""
    if form not in GROUPED:
        return a @ b.swapaxes(-1, -2)
    result = np.zeros(((a.shape[0], b.shape[1]) if form == "offsets" else (GROUPS, a.shape[-2], b.shape[-2])), np.float32)
    for group, (begin, end) in enumerate(zip(bounds, bounds[1:])):
        if form == "offsets":
            result[begin:end] = a[begin:end] @ b[group].T
        elif form == "offsets_k":
            result[group] = a[:, begin:end] @ b[:, begin:end].T
        elif form == "counts":
            result[group, :end - begin] = a[group, :end - begin] @ b[group].T
        else:
            result[group] = a[group, :, :end - begin] @ b[group, :, :end - begin].T
    return result


def make_program(kind, configs):
    """Operands, what a function is given, its body and results, of which each config has as many. Products that are in no
    group are there twice, once with a bias."""
    element, block_a, block_b, accumulate, layout, _, *more = kind
    form = next((word for word in more if word != "stored"), None)
    open_a, open_b, open_d = get_shapes("???", form)
    operands = [Operand("a", open_a, element, block_a, layout[0] == "t", "stored" in more),
                Operand("b", open_b, element, block_b, layout[1] == "n", "stored" in more)]
    if form == "group":
        operands.append(Operand("c", open_b, element, block_b))
    a, b, *others = operands
    flags = (" transpose_a" if layout[0] == "t" else "") + (" transpose_b" if layout[1] == "n" else "")
    flags += " accumulate = fast" if accumulate == "fast" else ""
    type_d = tensor(open_d, "f32")
    types = f"{a.type}, {b.type} -> {type_d}"
    arguments, body = [text for operand in operands for text in operand.arguments], "".join(
        operand.made for operand in operands)
    is_grouped = form in GROUPED
    type_bounds = f"tensor<{GROUPS + (form or '').startswith('offsets')}xi32>"
    arguments.append(f"%bounds: {type_bounds}" if is_grouped else "%bias: tensor<?xf32>")
    with_bias = (" epilogue(%bias : tensor<?xf32>) {\n  ^bb0(%acc: f32, %of: f32):\n"
                 "    %sum = arith.addf %acc, %of : f32\n    fp8.yield %sum : f32\n  }")
    results = []
    for number, config_text in enumerate(configs):
        config_text = f"fp8_gpu.config = {config_text}"
        results += [(f"%r{number}", type_d), (f"%s{number}", type_d)][:1 if is_grouped else 2]
        if is_grouped:
            word = "offsets" if form == "offsets_k" else form
            body += (f"  %r{number} = fp8.grouped_matmul %a, %b {word}(%bounds : {type_bounds}){flags} "
                     f"{{{config_text}}} : {types}\n")
        elif form == "group":
            body += (f"  %r{number}, %s{number} = fp8.sibling_matmuls {{\n    %0 = fp8.matmul %a, %b{flags} : {types}\n"
                     f"    %1 = fp8.matmul %a, %c{flags} : {types}\n    fp8.yield %0, %1 : {type_d}, {type_d}\n"
                     f"  }} {{{config_text}}} : {type_d}, {type_d}\n")
        else:
            for result, region in (("r", ""), ("s", with_bias)):
                body += f"  %{result}{number} = fp8.matmul %a, %b{flags}{region} {{{config_text}}} : {types}\n"
    return operands, arguments, body, results, form


def draw(operands, form, extents, rng):
    """Arrays of a call, and the results of a config."""
    shapes = get_shapes(extents, form)
    (arrays_a, a), (arrays_b, b) = (operand.draw(shape, rng) for operand, shape in zip(operands[:2], shapes))
    if form in GROUPED:
        bounds = BOUNDS[extents[2 if form.endswith("_k") else 0]]
        given = bounds if form.startswith("offsets") else np.diff(bounds)
        return [*arrays_a, *arrays_b, np.array(given, np.int32)], [multiply(a, b, form, bounds)]
    product = multiply(a, b, form, None)
    bias = rng.integers(-4, 5, extents[1]).astype(np.float32)
    if form != "group":
        return [*arrays_a, *arrays_b, bias], [product, product + bias]
    # With one that has no columns, of the same K.
    arrays_c, _ = operands[2].draw([0, extents[2]], rng)
    return [*arrays_a, *arrays_b, *arrays_c, bias], [product, product[:, :0]]


def run_kind(name, kind, args):
    configs = choose(kind[5], args)
    operands, arguments, body, results, form = make_program(kind, configs)
    rng = np.random.default_rng(1)
    calls = [draw(operands, form, extents, rng) for extents in EXTENTS]
    failures = total = 0
    found = run_each(args.tools, args.target, arguments, body, results, [arrays for arrays, _ in calls])
    for extents, actual, (_, values) in zip(EXTENTS, found, calls, strict=True):
        labels = [f"{name} {extents} {config_text}" for config_text in configs for _ in values]
        failures += sum(compare(*one) for one in zip(labels, actual, values * len(configs), strict=True))
        total += len(labels)
    return failures, total


if __name__ == "__main__":
    sys.exit(check_target({"sm_90a": HOPPER, "sm_100a": BLACKWELL}, run_kind))
