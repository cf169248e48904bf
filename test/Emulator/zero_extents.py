# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools --target=sm_100a
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Products whose extents show when the program runs, on the emulator with all that it can look for, where an extent is
zero. Without K results are zeros, and what an epilogue makes of them, without M or N they have no elements.

A program has, for each config, a product of each of some extents. The last ones are not zero.
"""

import sys

import numpy as np

from products import FAST, OF_K, PROMOTE, Operand, blackwell, check_target, choose, compare, config, run, tensor

BATCH = GROUPS = 3
EXTENTS = [(144, 80, 0), (0, 80, 272), (144, 0, 272), (0, 0, 0), (144, 80, 272)]
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
    """Shapes of A, B, another B and the results: of the second one, a group of products' alone."""
    m, n, k = extents
    shapes = {"batched": ([BATCH, m, k], [BATCH, n, k], [BATCH, m, n]), "offsets": ([m, k], [GROUPS, n, k], [m, n]),
              "offsets_k": ([m, k], [n, k], [GROUPS, m, n]), "counts": ([GROUPS, m, k], [GROUPS, n, k], [GROUPS, m, n]),
              "counts_k": ([GROUPS, m, k], [GROUPS, n, k], [GROUPS, m, n])}
    return shapes.get(form, ([m, k], [n, k], [m, n]))


def multiply(a, b, form, bounds):
    """In f32; groups are of `bounds`."""
    if form not in ("offsets", "offsets_k", "counts", "counts_k"):
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


def run_kind(name, kind, args):
    element, block_a, block_b, accumulate, layout, configs, *more = kind
    form = next((word for word in more if word != "stored"), None)
    is_grouped = form in ("offsets", "offsets_k", "counts", "counts_k")
    rng = np.random.default_rng(1)
    open_a, open_b, open_d = get_shapes("???", form)
    flags = (" transpose_a" if layout[0] == "t" else "") + (" transpose_b" if layout[1] == "n" else "")
    flags += " accumulate = fast" if accumulate == "fast" else ""
    arguments, body, arrays, values = [], "", [], []
    type_d, type_bounds = tensor(open_d, "f32"), f"tensor<{GROUPS + (form or '').startswith('offsets')}xi32>"
    for i, extents in enumerate(EXTENTS):
        a = Operand(f"a{i}", open_a, element, block_a, layout[0] == "t", "stored" in more)
        b = Operand(f"b{i}", open_b, element, block_b, layout[1] == "n", "stored" in more)
        shape_a, shape_b, _ = get_shapes(extents, form)
        arrays_a, values_a = a.draw(shape_a, rng)
        arrays_b, values_b = b.draw(shape_b, rng)
        arguments += a.arguments + b.arguments
        arrays += arrays_a + arrays_b
        body += a.made + b.made
        if is_grouped:
            bounds = BOUNDS[extents[2 if form.endswith("_k") else 0]]
            arguments.append(f"%bounds{i}: {type_bounds}")
            arrays.append(np.array(bounds if form.startswith("offsets") else np.diff(bounds), np.int32))
            values.append(multiply(values_a, values_b, form, bounds))
        else:
            bias = rng.integers(-4, 5, extents[1]).astype(np.float32)
            arguments.append(f"%bias{i}: tensor<?xf32>")
            arrays.append(bias)
            values.append((multiply(values_a, values_b, form, None), bias))
    if form == "group":  # With one that has no columns, of the same K.
        for i, extents in enumerate(EXTENTS):
            c = Operand(f"c{i}", open_b, element, block_b)
            arguments += c.arguments
            arrays += c.draw([0, extents[2]], rng)[0]
            body += c.made
    results, expected = [], []
    for number, (chosen_config, i) in enumerate(
            (config, i) for config in choose(configs, args) for i in range(len(EXTENTS))):
        config_text = f"fp8_gpu.config = {chosen_config}"
        types = f"{a.type}, {b.type} -> {type_d}"
        label = f"{name} {EXTENTS[i]} {chosen_config}"
        results.append((f"%r{number}", type_d))
        if is_grouped:
            word = "offsets" if form == "offsets_k" else form
            body += (f"  %r{number} = fp8.grouped_matmul %a{i}, %b{i} {word}(%bounds{i} : {type_bounds}){flags} "
                     f"{{{config_text}}} : {types}\n")
            expected.append((label, values[i]))
            continue
        product, bias = values[i]
        if form == "group":
            body += (f"  %r{number}, %s{number} = fp8.sibling_matmuls {{\n    %0 = fp8.matmul %a{i}, %b{i}{flags} : {types}\n"
                     f"    %1 = fp8.matmul %a{i}, %c{i}{flags} : {types}\n    fp8.yield %0, %1 : {type_d}, {type_d}\n"
                     f"  }} {{{config_text}}} : {type_d}, {type_d}\n")
            results.append((f"%s{number}", type_d))
            expected += [(label, product), (label, product[:, :0])]
            continue
        # Every other one adds a bias.
        region = ""
        if number % 2:
            region = (f" epilogue(%bias{i} : tensor<?xf32>) {{\n  ^bb0(%acc: f32, %of: f32):\n"
                      "    %sum = arith.addf %acc, %of : f32\n    fp8.yield %sum : f32\n  }")
            product = product + bias
        body += f"  %r{number} = fp8.matmul %a{i}, %b{i}{flags}{region} {{{config_text}}} : {types}\n"
        expected.append((label, product))
    actual = run(args.tools, args.target, arguments, body, results, arrays)
    return sum(compare(label, tensor, values)
               for (label, values), tensor in zip(expected, actual, strict=True)), len(expected)


if __name__ == "__main__":
    sys.exit(check_target({"sm_90a": HOPPER, "sm_100a": BLACKWELL}, run_kind))
