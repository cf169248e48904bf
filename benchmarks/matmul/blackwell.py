"""The kinds of matmul that are checked on Blackwell, and the configs of each."""

from matmul.kinds import KINDS as HOPPER, LAYOUTS, OPERANDS, TABLE, TIMED, kind, plain


def config(tile_m, tile_n, stages, **others):
    entries = {"tile_m": tile_m, "tile_n": tile_n, "stages": stages, **others}
    text = ", ".join(f"{key} = {value}" for key, value in entries.items())
    return f"#fp8_sm100.gemm<{text}>"


def swapped(tile_m, split_k=1, stages=6, **others):
    return config(tile_m, 128, stages, group=1, split_k=split_k, swap_ab="true", store="direct", **others)


# One of each way to build a kernel, for what does not depend on the tile.
SOME = [config(128, 256, 3), config(128, 96, 3, staging=1), config(128, 128, 2, epilogue_warpgroups=2),
        config(128, 32, 4, group=2, split_k=3), config(128, 80, 4, store="direct"), swapped(16), swapped(64),
        swapped(32, 4)]
# Two blocks a tile.
PAIRED = [config(256, 256, 4, cta_group=2), config(256, 64, 3, group=3, cta_group=2),
          config(256, 96, 3, store="direct", cta_group=2), config(256, 128, 2, epilogue_warpgroups=2, cta_group=2),
          config(32, 256, 4, group=1, swap_ab="true", store="direct", cta_group=2)]
# With factors beside the sums in tensor memory: 256 columns of sums share some with the next tile's, which have to be taken
# first, 32 of them, or 64 beside factors of 16.
SHARED = [config(128, 256, 3), config(128, 256, 2, epilogue_warpgroups=2), config(128, 256, 3, store="direct"),
          swapped(256, stages=2)]
MICRO = SHARED + SOME[1:]
PAIRED_MICRO = PAIRED + [config(256, 224, 3, cta_group=2), config(256, 256, 3, staging=1, epilogue_warpgroups=2, cta_group=2),
                         config(256, 256, 3, store="direct", cta_group=2)]
# With factors in f32 along K, whose sums are promoted in registers: of one warpgroup and of two, which have up to 128
# columns each, or 64 where they store elements one by one.
PROMOTED = [config(128, 256, 3, staging=1, epilogue_warpgroups=2), config(128, 128, 4), config(128, 64, 3, staging=1),
            config(128, 32, 4, group=2, split_k=3), config(128, 128, 3, store="direct", epilogue_warpgroups=2),
            config(256, 256, 4, staging=1, epilogue_warpgroups=2, cta_group=2), config(256, 128, 3, group=3, cta_group=2),
            config(256, 64, 3, store="direct", cta_group=2), swapped(16), swapped(64), swapped(32, 4),
            swapped(128, epilogue_warpgroups=2), config(32, 256, 4, group=1, swap_ab="true", store="direct", cta_group=2)]
# Configs for results whose rows are no multiples of 16 bytes, and for the others.
DIRECT = [config for config in SOME if "direct" in config]


def is_promoted(spec):
    """Whether factors in f32 change along K, which the tensor core does not take."""
    return spec["scale_a"] in ("1x128", "128x128")


def every_layout():
    """FP8 in every layout, of every mix of types, with one factor and with those of rows."""
    for layout in LAYOUTS:
        for a, b in OPERANDS:
            yield f"{a}_{b}_{layout}", kind(a, b, layout=layout, configs=SOME)
        yield f"row_{layout}", kind(scale_a="row", scale_b="row", layout=layout, configs=TABLE)
        yield f"batch_{layout}", kind(scale_a="row", batched=True, layout=layout, configs=SOME)


def every_pair():
    """Two blocks that multiply together, in every layout and kind."""
    for layout in LAYOUTS:
        yield f"paired_{layout}", kind("e5m2", layout=layout, configs=PAIRED)
        yield f"paired_bf16_{layout}", plain("bf16", layout, configs=PAIRED)
    yield "paired_row", kind(scale_a="row", scale_b="row", batched=True, configs=PAIRED)
    yield "paired_tf32", plain("f32", "nt", configs=PAIRED[1:3])
    yield "paired_gelu", kind(epilogue="bias_gelu_quantize", result="e4m3", configs=PAIRED)


def every_microscaling():
    """Factors of 32, powers of two, which the tensor core multiplies."""
    for a, b in OPERANDS:
        yield f"micro_{a}_{b}", kind(a, b, "f32", "1x32", "1x32", "promote", configs=MICRO)
    yield "micro", kind(scale_a="1x32", scale_b="1x32", accumulate="promote", configs=TABLE)
    yield "micro_batch", kind(scale_a="1x32", scale_b="1x32", accumulate="promote", batched=True, configs=MICRO)
    yield "micro_gelu", kind(scale_a="1x32", scale_b="1x32", accumulate="promote", epilogue="bias_gelu_quantize",
                             result="e4m3", configs=TABLE)
    for a, b in OPERANDS[:2]:
        yield f"paired_micro_{a}_{b}", kind(a, b, "f32", "1x32", "1x32", "promote", configs=PAIRED_MICRO)
    yield "paired_micro_batch", kind(scale_a="1x32", scale_b="1x32", accumulate="promote", batched=True,
                                     configs=PAIRED_MICRO)
    yield "paired_micro_gelu", kind(scale_a="1x32", scale_b="1x32", accumulate="promote",
                                    epilogue="bias_gelu_quantize", result="e4m3", configs=PAIRED_MICRO)


def every_four_bits():
    """Two codes a byte: factors of 16 (NVFP4), E4M3 with one of the tensor, or of 32 (MXFP4)."""
    for name, scale in ("nvfp4", "1x16"), ("mxfp4", "1x32"):
        def of(*args, **others):
            return kind("e2m1", "e2m1", *args, scale_a=scale, scale_b=scale, accumulate="promote", **others)

        yield name, of(configs=TABLE)
        yield f"{name}_f32", of("f32", configs=MICRO)
        yield f"{name}_batch", of(batched=True, configs=MICRO)
        yield f"{name}_gelu", of("e4m3", epilogue="bias_gelu_quantize", configs=MICRO)
        yield f"paired_{name}", of("f32", configs=PAIRED_MICRO)
        yield f"paired_{name}_batch", of(batched=True, configs=PAIRED_MICRO)
        yield f"paired_{name}_gelu", of("e4m3", epilogue="bias_gelu_quantize", configs=PAIRED_MICRO)


def every_promoted():
    """Factors in f32 for 128 of K, of rows and of tiles, each way round."""
    for name, factors in ("block", ("1x128", "128x128")), ("rows", ("1x128", "1x128")), ("tiles", ("128x128", "1x128")):
        def of(a="e4m3", b="e4m3", result="bf16", **others):
            return kind(a, b, result, *factors, "promote", **others)

        yield f"promoted_{name}", of(configs=TABLE)
        yield f"promoted_{name}_f32", of("e5m2", result="f32", configs=PROMOTED)
        yield f"promoted_{name}_batch", of(b="e5m2", batched=True, configs=PROMOTED)
        yield f"promoted_{name}_relu", of(epilogue="bias_relu", configs=PROMOTED)
        yield f"promoted_{name}_gelu", of(result="e4m3", epilogue="bias_gelu_quantize", configs=PROMOTED)
        yield f"promoted_{name}_inner_k", of(result="f32", configs=PROMOTED, inner_k=True)
        yield f"promoted_{name}_direct", of(configs=[config for config in PROMOTED if "direct" in config])
    # Columns that cut blocks, where each has a factor.
    yield "promoted_rows_cut", kind(scale_a="1x128", scale_b="1x128", accumulate="promote",
                                    configs=[config(128, 96, 3), config(256, 192, 3, epilogue_warpgroups=2, cta_group=2),
                                             config(128, 80, 4), config(128, 48, 4, store="direct"), swapped(48)])


KINDS = {
    **{name: {**spec, "configs": TABLE if name in TIMED else PROMOTED if is_promoted(spec) else SOME}
       for name, spec in HOPPER.items()},
    **dict(every_layout()),
    **dict(every_pair()),
    **dict(every_microscaling()),
    **dict(every_four_bits()),
    **dict(every_promoted()),
    "direct": kind(configs=DIRECT),
}
