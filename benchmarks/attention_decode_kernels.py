"""Makes the kernels that benchmarks/attention_decode.py times: attention of one query to a head, as
decoding has it. Batches and keys are known when they run.

usage: attention_decode_kernels.py [--build-dir build] [--configs] --out DIR

`--configs` makes those of other tiles, too, for whoever chooses them.
"""

from attention_kernels import build_all, make_parser

# Head dimension, heads of Q and of K.
HEADS = [(128, 32, 8), (128, 64, 8), (64, 32, 8), (128, 32, 32), (256, 16, 8)]
TYPES = [("bf16", None), ("f8E4M3FN", "fast"), ("f8E4M3FN", "promote")]
# Keys of a tile, stages, and tiles of keys that a block has at least.
TILES = {("bf16", 128): [(64, 2, 2), (128, 2, 1), (128, 3, 1)],
         ("f8E4M3FN", 128): [(64, 4, 4), (64, 4, 2), (128, 3, 2)],
         ("f8E4M3FN", 64): [(64, 4, 4), (128, 4, 4), (256, 2, 2)]}


def specs(with_configs):
    """By name."""
    found = {}
    for dim, heads, heads_of_k in HEADS:
        for element, sums in TYPES:
            name = "_".join(filter(None, [element, f"d{dim}", f"h{heads}x{heads_of_k}", sums]))
            spec = {"element": element, "dim": dim, "heads": heads, "heads_of_k": heads_of_k, "causal": False,
                    "sums": sums, "queries": 1}
            found[name] = spec
            tiles = TILES.get((element, dim), []) if with_configs and heads == 32 and sums != "promote" else []
            for keys, stages, least in tiles:
                group = 1 << (heads // heads_of_k - 1).bit_length()
                config = (f"#fp8_sm90.attention<tile_q = 64, tile_k = {keys}, stages = {stages}, "
                          f"tile_heads = {group}, split_tiles = {least}, turn = none>")
                found[f"{name}_{keys}_s{stages}_{least}"] = {**spec, "config": config}
    return found


def main():
    args = make_parser().parse_args()
    build_all(specs(args.configs), args)


if __name__ == "__main__":
    main()
