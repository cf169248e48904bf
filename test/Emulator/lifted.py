# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Runs kernels that lift packed weights (fp8.lift) on the emulator, with all that it can look for. Each result has the
bits that the same kernel has of weights which were E4M3 before, lifted by ml_dtypes. And fp8.lift by itself has
ml_dtypes' codes, on a CPU and in a GPU's loops.
"""

import re
import sys

import ml_dtypes
import numpy as np

from products import check_target, choose, choose_for, config, make_parser, run_each, tensor

# Tails in each dimension: of K a group, of 128 elements, and less than the ring has stages; and a single group.
SHAPES = [(72, 136, 288), (24, 320, 544), (136, 64, 384), (136, 64, 128)]
SWAPPED = {"swap_ab": "true", "store": "direct", "group": 1}
REGISTERS = SWAPPED | {"lifters": 0}
FAST = [config(16, 64, 4, consumers=1, **SWAPPED), config(8, 64, 4, consumers=1, lifters=2, **SWAPPED),
        config(64, 128, 3, **SWAPPED), config(24, 192, 3, consumers=3, **SWAPPED), config(32, 256, 3, **SWAPPED),
        config(16, 64, 4, consumers=1, split_k=2, **SWAPPED), config(16, 64, 4, consumers=1, cluster_n=2, **SWAPPED),
        config(16, 64, 4, consumers=1, cluster_m=2, **SWAPPED), config(64, 64, 4, consumers=1, pending=1),
        config(16, 64, 4, consumers=1, lift_warps=1, **SWAPPED), config(32, 64, 8, consumers=1, lifters=2, lift_warps=2, **SWAPPED),
        config(64, 128, 4, lift_warps=2, cluster_n=2, **SWAPPED), config(32, 128, 4, lifters=2, lift_warps=8, **SWAPPED),
        config(128, 96, 4, schedule="ping_pong", lifters=2), config(128, 128), config(128, 72, lifters=2, lift_warps=8), config(128, 48, schedule="ping_pong"), config(256, 128),
        config(128, 64, cluster_m=2), config(64, 64, consumers=1, cluster_m=2, cluster_n=2), config(128, 200, store="direct"),
        config(64, 48, 8, consumers=1, pending=1, lifters=2, lift_warps=2), config(64, 32, 8, schedule="ping_pong", pending=1, lifters=2, lift_warps=2),
        config(256, 64, 4, lifters=2, lift_warps=2),
        # In registers, and parts of K in a block; and results that are transposed in shared memory.
        config(16, 64, 4, consumers=1, **REGISTERS), config(8, 128, 3, **REGISTERS), config(24, 256, 3, **REGISTERS | {"store": "tma"}),
        config(64, 64, 4, consumers=2, **REGISTERS), config(40, 64, 6, consumers=3, cluster_n=2, **REGISTERS)]
PROMOTE = [config(16, 64, 4, consumers=1, **SWAPPED), config(64, 128, 3, **SWAPPED), config(128, 128),
           config(64, 64, consumers=1, overlap="true"), config(64, 64, schedule="ping_pong", overlap="true"),
           config(16, 64, 4, consumers=1, overlap="true", lift_warps=2, **SWAPPED),
           config(16, 64, 4, consumers=1, **REGISTERS), config(64, 128, 3, **REGISTERS), config(8, 64, 4, consumers=2, **REGISTERS),
           config(24, 256, 3, **REGISTERS)]
# Block of A's factors and of B's, accumulation, configs.
KINDS = {"row_fast": (("1", "*"), ("1", "*"), "fast", FAST), "tensor_fast": (("*", "*"), ("*", "*"), "fast", FAST[::3]),
         "row_promote": (("1", "*"), ("1", "*"), "promote", PROMOTE)}


def get_unlifted(text):
    """The config of weights that are not packed, with as many parts of K."""
    shared = re.search(r"tile_n = 64,.* consumers = ([23]),.* swap_ab = true", text)
    if shared:
        text = text.replace(f"consumers = {shared[1]}", f"consumers = 1, split_k = {shared[1]}")
    return re.sub(", (lifters|lift_warps) = .", "", text)


# Groups of rows of the first shape, which are empty, begin anywhere and leave rows over; of 5 weights.
OFFSETS = [0, 0, 37, 38, 64, 70]
GROUPED = {"row_fast": FAST[:2] + FAST[8:11] + FAST[13:15] + FAST[24:26], "row_promote": PROMOTE[:8:2]}


def round_codes(codes, exponents):
    """E4M3 of codes whose exponents are bytes of words, and what they are before they are rounded."""
    n, k = codes.shape
    bytes_ = exponents.T.copy().view(np.uint8).reshape(n, -1)  # Little endian: of a row, group by group.
    of_codes = np.repeat(bytes_, 32, axis=1)[:, :k].astype(np.int32) - 8
    values = codes.astype(np.float32) * np.exp2(of_codes.astype(np.float32))
    return np.clip(values, -448, 448).astype(ml_dtypes.float8_e4m3fn), values


def lift(codes, exponents):
    lifted, values = round_codes(codes, exponents)
    if not np.array_equal(lifted.astype(np.float32), values):
        raise SystemExit("expected every weight to be an E4M3")
    return lifted


def check_definition(tools):
    """Every code with every exponent, by bits of words that nothing else reads."""
    codes = np.tile(np.repeat(np.arange(16), 2), (16, 9)).astype(np.uint8).view(ml_dtypes.float4_e2m1fn)
    words = np.arange(16)[:, None] + np.zeros((1, 12)) + 16 * np.arange(12)
    words = words.astype(np.uint8).view(np.int32).T.copy()
    expected, _ = round_codes(codes, (words.view(np.uint8) & 15).view(np.int32))
    arguments = ["%p: tensor<16x288xf4E2M1FN>", "%e: tensor<3x16xi32>"]
    body = "  %l = fp8.lift %p, %e : tensor<16x288xf4E2M1FN>, tensor<3x16xi32> -> tensor<16x288xf8E4M3FN>\n"
    failures = 0
    for target in ("cpu", "sm_90a"):
        found = run_each(tools, target, arguments, body, [("%l", "tensor<16x288xf8E4M3FN>")], [[codes, words]])[0][0]
        failures += int((found.view(np.uint8) != expected.view(np.uint8)).any())
    print(f"definition: {2 - failures} of 2 right")
    return failures


def draw(shape, blocks, rng):
    m, n, k = shape
    a = (rng.standard_normal((m, k)) * 8).astype(ml_dtypes.float8_e4m3fn)
    codes = rng.integers(0, 16, (n, k)).astype(np.uint8).view(ml_dtypes.float4_e2m1fn)
    exponents = rng.integers(0, 15, (n, -(-k // 128) * 4)).astype(np.uint8).view(np.int32).T.copy()
    factors = [rng.uniform(0.5, 2, [1 if block == "*" else rows, 1]).astype(np.float32)
               for rows, (block, _) in zip((m, n), blocks)]
    return [a, factors[0], codes, exponents, factors[1], lift(codes, exponents)]


def run_kind(name, kind, args):
    *blocks, accumulate, configs = kind
    failures, total = 0, 0
    for number, shape in enumerate(SHAPES):
        m, n, k = shape
        chosen = choose_for(number, SHAPES, configs, args, parts=1 if accumulate == "promote" else 2)
        if not chosen:
            continue
        types, factors = [], []
        for rows, block in zip((m, n), blocks):
            types.append(f"!fp8.scaled<{rows}x{k}xf8E4M3FN, block = [{', '.join(block)}], scale = f32>")
            factors.append(tensor([1 if block[0] == "*" else rows, 1], "f32"))
        codes = [tensor((rows, k), "f8E4M3FN") for rows in (m, n)]
        packed, words = tensor((n, k), "f4E2M1FN"), tensor((-(-k // 128), n), "i32")
        arguments = [f"%a_codes: {codes[0]}", f"%a_factors: {factors[0]}", f"%packed: {packed}", f"%words: {words}",
                     f"%b_factors: {factors[1]}", f"%b_codes: {codes[1]}"]
        body = (f"  %a = fp8.assemble %a_codes, %a_factors : {codes[0]}, {factors[0]} -> {types[0]}\n"
                f"  %b = fp8.assemble %b_codes, %b_factors : {codes[1]}, {factors[1]} -> {types[1]}\n"
                f"  %lifted = fp8.lift %packed, %words : {packed}, {words} -> {codes[1]}\n"
                f"  %l = fp8.assemble %lifted, %b_factors : {codes[1]}, {factors[1]} -> {types[1]}\n")
        results = []
        for i, text in enumerate(chosen):
            for operand, own in (("l", text), ("b", get_unlifted(text))):
                results.append((f"%{operand}{i}", tensor((m, n), "bf16")))
                body += (f"  {results[-1][0]} = fp8.matmul %a, %{operand} accumulate = {accumulate} "
                         f"{{fp8_gpu.config = {own}}} : {types[0]}, {types[1]} -> {results[-1][1]}\n")
        inputs = [draw(shape, blocks, np.random.default_rng(seed)) for seed in range(2)]
        for found in run_each(args.tools, "sm_90a", arguments, body, results, inputs):
            for text, lifted, expected in zip(chosen, found[::2], found[1::2], strict=True):
                wrong = lifted.view(np.uint16) != expected.view(np.uint16)
                total += 1
                failures += bool(wrong.any())
                if wrong.any():
                    print(f"{name} {shape} {text}: {wrong.sum()} differ, the first at {np.argwhere(wrong)[0]}")
    return failures, total


def run_grouped(name, configs, args):
    groups, (t, n, k) = len(OFFSETS) - 1, SHAPES[0]
    rng = np.random.default_rng(1)
    drawn = [draw((t, n, k), [("1", "*")] * 2, rng) for _ in range(groups)]
    a, factors_a, offsets = *drawn[0][:2], np.array(OFFSETS, np.int32)
    packed, words, factors_b, codes_b = (np.stack([of_group[i] for of_group in drawn]) for i in range(2, 6))
    type_a, type_b = (f"!fp8.scaled<{extents}xf8E4M3FN, block = [{block}], scale = f32>" for extents, block in (
        (f"{t}x{k}", "1, *"), (f"{groups}x{n}x{k}", "1, 1, *")))
    of = {"a": tensor((t, k), "f8E4M3FN"), "fa": tensor((t, 1), "f32"), "o": tensor((groups + 1,), "i32"),
          "p": tensor((groups, n, k), "f4E2M1FN"), "e": tensor(words.shape, "i32"), "fb": tensor((groups, n, 1), "f32"),
          "c": tensor((groups, n, k), "f8E4M3FN")}
    body = (f"  %x = fp8.assemble %a, %fa : {of['a']}, {of['fa']} -> {type_a}\n"
            f"  %b = fp8.assemble %c, %fb : {of['c']}, {of['fb']} -> {type_b}\n"
            f"  %l = fp8.lift %p, %e : {of['p']}, {of['e']} -> {of['c']}\n"
            f"  %w = fp8.assemble %l, %fb : {of['c']}, {of['fb']} -> {type_b}\n")
    results, chosen = [], choose(configs, args)
    for i, text in enumerate(chosen):
        for operand, own in (("w", text), ("b", get_unlifted(text))):
            results.append((f"%{operand}{i}", tensor((t, n), "bf16")))
            body += (f"  {results[-1][0]} = fp8.grouped_matmul %x, %{operand} offsets(%o : {of['o']}) "
                     f"accumulate = {name[4:]} {{fp8_gpu.config = {own}}} : {type_a}, {type_b} -> {results[-1][1]}\n")
    found = run_each(args.tools, "sm_90a", [f"%{key}: {type_}" for key, type_ in of.items()], body, results,
                     [[a, factors_a, offsets, packed, words, factors_b, codes_b]])[0]
    wrong = [text for text, lifted, expected in zip(chosen, found[::2], found[1::2], strict=True)
             if (lifted.view(np.uint16) != expected.view(np.uint16)).any() or not lifted.astype(np.float32).any()]
    print(*(f"grouped {name} {text} differs" for text in wrong), sep="\n")
    print(f"grouped {name}: {len(chosen) - len(wrong)} of {len(chosen)} right")
    return len(wrong)


GATE = """ epilogue(%{0} : {1}) {{
  ^bb0(%acc: f32, %g: bf16):
    %wide = arith.extf %g : bf16 to f32
    %y = arith.mulf %acc, %wide : f32
    %r = arith.truncf %y : f32 to bf16
    fp8.yield %r : bf16
  }}"""


def check_pair(tools):
    """Two products that meet in a tile, of weights that are lifted and of weights that were."""
    m, n, k = 200, 256, 288
    rng = np.random.default_rng(2)
    pair = [draw((m, n, k), [("1", "*")] * 2, rng) for _ in range(2)]
    codes, packed, words, factors = (tensor((n, k), "f8E4M3FN"), tensor((n, k), "f4E2M1FN"), tensor((3, n), "i32"),
                                     tensor((n, 1), "f32"))
    type_a, type_b = (f"!fp8.scaled<{rows}x{k}xf8E4M3FN, block = [1, *], scale = f32>" for rows in (m, n))
    type_d, codes_a, factors_a = tensor((m, n), "bf16"), tensor((m, k), "f8E4M3FN"), tensor((m, 1), "f32")
    found = []
    for is_lifted in (True, False):
        arguments, arrays = [f"%a: {codes_a}", f"%fa: {factors_a}"], pair[0][:2]
        body = f"  %x = fp8.assemble %a, %fa : {codes_a}, {factors_a} -> {type_a}\n"
        for i, (_, _, of_packed, of_words, of_factors, of_codes) in enumerate(pair):
            arguments += [f"%f{i}: {factors}"] + (
                [f"%p{i}: {packed}", f"%e{i}: {words}"] if is_lifted else [f"%c{i}: {codes}"])
            arrays = arrays + [of_factors] + ([of_packed, of_words] if is_lifted else [of_codes])
            if is_lifted:
                body += f"  %c{i} = fp8.lift %p{i}, %e{i} : {packed}, {words} -> {codes}\n"
            body += f"  %w{i} = fp8.assemble %c{i}, %f{i} : {codes}, {factors} -> {type_b}\n"
            body += (f"  %d{i} = fp8.matmul %x, %w{i} accumulate = fast{GATE.format('d0', type_d) if i else ''} : "
                     f"{type_a}, {type_b} -> {type_d}\n")
        found += run_each(tools, "sm_90a", arguments, body, [("%d1", type_d)], [arrays])[0]
    is_same = (found[0].view(np.uint16) == found[1].view(np.uint16)).all()
    print(f"pair: {'the same bits' if is_same else 'other bits'}")
    return int(not is_same)


if __name__ == "__main__":
    status = check_target({"sm_90a": KINDS}, run_kind)
    args = make_parser({"sm_90a": KINDS}).parse_args()
    wrong = check_definition(args.tools) + check_pair(args.tools) + sum(
        run_grouped(*kind, args) for kind in GROUPED.items() if kind[0] in (args.kinds or GROUPED))
    sys.exit(int(status or wrong > 0))
