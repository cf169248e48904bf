"""Grouped products that are measured."""

# Groups, tokens of a group in the mean, and N and K of its matrix: training, with experts of models that are known;
# and decoding, where an expert has few tokens.
SHAPES = [(groups, mean, n, k)
          for groups, mean in ((4, 8192), (8, 4096))
          for n, k in ((6144, 7168), (7168, 3072), (4096, 4096), (4096, 2048))]
SHAPES += [(groups, mean, n, k) for groups, mean in ((8, 512), (32, 192), (32, 24)) for n, k in ((4096, 7168), (7168, 2048))]
# By which nothing was chosen.
OTHERS = [(16, 1024, 2816, 2048), (6, 2304, 5120, 1536), (64, 88, 3072, 4096), (12, 640, 8192, 3584), (16, 48, 5120, 2560),
          (5, 5600, 3584, 4608), (40, 320, 1536, 5120), (8, 1500, 6400, 4096)]
# Room for tokens in each masked group, as in DeepGEMM's tests.
CAPACITY = 4096
MASKED = [(groups, mean, n, k) for groups, mean in ((1, 1024), (2, 512), (4, 256), (6, 192))
          for n, k in ((4096, 7168), (7168, 2048))]
MASKED += [(groups, mean, n, k) for groups, mean in ((6, 1024), (32, 192), (6, 20), (32, 20))
           for n, k in ((6144, 7168), (7168, 3072), (4096, 4096), (4096, 2048))]

TENSOR, ROW, ROW128, BLOCK128 = ("*", "*"), ("1", "*"), ("1", "128"), ("128", "128")
EACH = ("1", "*", "*")  # A factor for each expert.

# Forward, and by the same kernels the gradient of the tokens; and the gradient of the weights.
KINDS = {
    "tensor_fast": {"grouped": "rows", "a": "e4m3", "b": "e4m3", "scale_a": TENSOR, "scale_b": EACH,
                    "accumulate": "fast", "result": "bf16"},
    "tensor_promote": {"grouped": "rows", "a": "e4m3", "b": "e4m3", "scale_a": TENSOR, "scale_b": EACH,
                       "accumulate": "promote", "result": "bf16"},
    "row_fast": {"grouped": "rows", "a": "e4m3", "b": "e4m3", "scale_a": ROW, "scale_b": ROW, "accumulate": "fast",
                 "result": "bf16"},
    "block": {"grouped": "rows", "a": "e4m3", "b": "e4m3", "scale_a": ROW128, "scale_b": BLOCK128,
              "accumulate": "promote", "result": "bf16"},
    "bf16": {"grouped": "rows", "a": "bf16", "b": "bf16", "scale_a": None, "scale_b": None, "accumulate": "fast",
             "result": "bf16"},
    "k_tensor": {"grouped": "k", "a": "e4m3", "b": "e4m3", "scale_a": TENSOR, "scale_b": TENSOR, "accumulate": "fast",
                 "result": "f32"},
    "k_row": {"grouped": "k", "a": "e4m3", "b": "e4m3", "scale_a": ROW, "scale_b": ROW, "accumulate": "promote",
              "result": "f32"},
    "k_block": {"grouped": "k", "a": "e4m3", "b": "e4m3", "scale_a": ROW128, "scale_b": ROW128,
                "accumulate": "promote", "result": "f32"},
}
# Groups with room for more rows: what is not there is left as it is, as by DeepGEMM, or cleared.
MASKED_KINDS = {f"masked_{name}": {**KINDS[name], "grouped": "masked"}
                for name in ("block", "bf16", "row_fast", "tensor_fast")}
MASKED_KINDS |= {f"{name}_cleared": {**MASKED_KINDS[name], "cleared": True} for name in ("masked_block", "masked_bf16")}
ALL_KINDS = KINDS | MASKED_KINDS


def label(shape):
    return "x".join(map(str, shape))
