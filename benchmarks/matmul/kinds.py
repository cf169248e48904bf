"""The kinds of matmul that are checked and timed, and the configs of each."""

def config(tile_m, tile_n, stages, **others):
    entries = {"tile_m": tile_m, "tile_n": tile_n, "stages": stages, **others}
    text = ", ".join(f"{key} = {value}" for key, value in entries.items())
    return f"#fp8_sm90.gemm<{text}>"


def swapped(tile_m, split_k=1, **others):
    stages = 12 if tile_m <= 32 else 10 if tile_m <= 64 else 8
    return config(tile_m, 64, stages, consumers=1, group=1, split_k=split_k,
                  swap_ab="true", store="direct", **others)


SMALL = [swapped(16), swapped(64), swapped(16, 4)]


def kind(a="e4m3", b="e4m3", result="bf16", scale_a="tensor", scale_b="tensor",
         accumulate="fast", epilogue="none", batched=False, configs=(), **others):
    return {"a": a, "b": b, "result": result, "scale_a": scale_a,
            "scale_b": scale_b, "accumulate": accumulate, "epilogue": epilogue,
            "batched": batched, "configs": configs, **others}


def plain(element, layout, result=None, configs=(), **others):
    """Operands in high precision; `layout` is that of A and B as BLAS calls it."""
    return kind(element, element, result or element, "none", "none", layout=layout,
                configs=configs, **others)


ONE_FAST = [config(128, 256, 4)]
ONE_PROMOTED = [config(256, 128, 4)]
ONE_BLOCK = [config(128, 128, 5)]

# What is timed, against peers: its configs are those that shapes select.
TABLE = None
TIMED = {
    "tensor_fast": kind(configs=TABLE),
    "tensor_promote": kind(accumulate="promote", configs=TABLE),
    "row_fast": kind(scale_a="row", scale_b="row", configs=TABLE),
    "block": kind(scale_a="1x128", scale_b="128x128", accumulate="promote",
                  configs=TABLE),
    "tensor_fast_gelu": kind(epilogue="bias_gelu_quantize", result="e4m3",
                             configs=TABLE),
    "tensor_fast_tanh": kind(epilogue="bias_gelu_tanh_quantize", result="e4m3",
                             configs=TABLE),
}
LAYOUTS = ("nt", "nn", "tt", "tn")
TIMED.update({f"{element}_{layout}": plain(element, layout, configs=TABLE)
              for layout in LAYOUTS for element in ("bf16", "f16")})
OPERANDS = [("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e5m2")]


def every_type():
    """Each pair of operand types with each type of the result, and each pair
    with the other accumulators."""
    for a, b in OPERANDS:
        for result in ("bf16", "f16", "f32", "e4m3", "e5m2"):
            epilogue = "quantize" if result in ("e4m3", "e5m2") else "none"
            yield f"{a}_{b}_{result}", kind(a, b, result, epilogue=epilogue,
                                            configs=ONE_FAST)
        yield f"promote_{a}_{b}", kind(a, b, "f32", accumulate="promote",
                                       configs=ONE_PROMOTED)
        yield f"block_{a}_{b}", kind(a, b, "f32", "1x128", "128x128", "promote",
                                     configs=ONE_BLOCK)


def every_layout():
    """Operands in high precision: each layout with other types of the result,
    with batches, and with tiles that no swizzle of 128 bytes takes."""
    some = [config(128, 256, 4), config(128, 176, 5), config(128, 160, 5, cluster_m=2),
            *SMALL, swapped(8), swapped(32)]
    for layout in LAYOUTS:
        yield f"bf16_f32_{layout}", plain("bf16", layout, "f32", some)
        yield f"f16_f32_{layout}", plain("f16", layout, "f32", ONE_FAST)
        yield f"batch_bf16_{layout}", plain("bf16", layout, configs=ONE_FAST + SMALL[:1],
                                            batched=True)
    yield "tf32", plain("f32", "nt", configs=[config(128, 128, 4), *SMALL])
    yield "bf16_bias_relu", plain("bf16", "nn", configs=ONE_FAST + SMALL[:1],
                                  epilogue="bias_relu")
    yield "bf16_quantize", plain("bf16", "nt", "e4m3", configs=ONE_FAST,
                                 epilogue="quantize")


# What is only checked.
CHECKED = {
    **dict(every_type()),
    **dict(every_layout()),
    "row_promote": kind(scale_a="row", scale_b="row", accumulate="promote",
                        configs=ONE_PROMOTED),
    "row_f32": kind(scale_a="row", scale_b="row", result="f32",
                    configs=[config(128, 192, 4)]),
    "block_1x128": kind(scale_a="1x128", scale_b="1x128", accumulate="promote",
                        configs=ONE_BLOCK),
    "block_128x128_1x128": kind(scale_a="128x128", scale_b="1x128", result="f32",
                                accumulate="promote", configs=ONE_BLOCK),
    "direct": kind(configs=[config(128, 128, 6, store="direct"),
                            config(128, 128, 6, split_k=2, store="direct")]),
    "direct_f32": kind(result="f32", scale_a="row", scale_b="row",
                       configs=[config(128, 128, 6, store="direct")]),
    "dynamic_m": kind(dynamic=True, configs=ONE_FAST + SMALL[:1]),
    "batch_tensor": kind(batched=True, configs=ONE_FAST + SMALL[::2]),
    "batch": kind(batched=True, scale_a="row", scale_b="row", configs=ONE_FAST),
    "batch_block": kind(batched=True, scale_a="1x128", scale_b="128x128",
                        accumulate="promote", configs=ONE_BLOCK),
    "bias_relu": kind(epilogue="bias_relu", configs=ONE_FAST + SMALL[:2]),
    "residual_silu": kind(epilogue="residual_silu", configs=ONE_FAST + SMALL[:2]),
    "gate": kind(epilogue="gate", configs=ONE_FAST),
    "gelu_tanh": kind(epilogue="gelu_tanh", result="f32", configs=ONE_FAST),
    "bias_gelu": kind(epilogue="bias_gelu", configs=ONE_FAST),
    "quantize_direct": kind(epilogue="quantize", result="e4m3",
                            configs=[config(128, 128, 6, store="direct")]
                            + SMALL[:2]),
    "accumulate": kind(epilogue="accumulate", result="f32", accumulate="promote",
                       configs=ONE_PROMOTED),
}
KINDS = {**TIMED, **CHECKED}
