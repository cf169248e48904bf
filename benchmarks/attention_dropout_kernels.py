"""Makes the kernels that benchmarks/attention_dropout.py times: attention and its gradients with dropout, each beside the one
without. See attention_kernels.py.

usage: attention_dropout_kernels.py [--build-dir build] [--configs] --out DIR

`--configs` makes forwards with other tiles, too.
"""

from attention_kernels import build_all, make_parser

RATE = 0.1
TILES = {64: [(192, 128), (192, 96), (128, 128), (128, 160)], 128: [(128, 96), (128, 128), (128, 160)]}


def specs(with_configs):
    """By name."""
    wide = {"element": "bf16", "sums": None, "dim": 128, "heads": 32, "heads_of_k": 8, "lse": True}
    narrow = {**wide, "dim": 64, "heads": 16, "heads_of_k": 16}
    codes = {**wide, "element": "f8E4M3FN", "sums": "fast"}
    found = {}
    for name, spec in (("bf16_d128", wide), ("bf16_d64", narrow), ("f8_d128", codes)):
        for causal in (True, False):
            base = f"{name}_{'causal' if causal else 'full'}"
            found[base] = {**spec, "causal": causal}
            found[f"{base}_dropout"] = {**spec, "causal": causal, "dropout": RATE}
            for tile in TILES[spec["dim"]] if with_configs and name != "f8_d128" else ():
                config = "#fp8_sm90.attention<tile_q = {}, tile_k = {}, stages = 2, turn = issued>".format(*tile)
                found[f"{base}_dropout_{tile[0]}x{tile[1]}"] = {
                    **spec, "causal": causal, "dropout": RATE, "config": config}
            if name == "f8_d128":
                continue
            for order in ("deterministic", "any"):
                gradients = {**spec, "causal": causal, "order": order, "gradients": True}
                found[f"{base}_gradients_{order}"] = gradients
                found[f"{base}_gradients_{order}_dropout"] = {**gradients, "dropout": RATE}
    return found


def main():
    args = make_parser().parse_args()
    build_all(specs(args.configs), args)


if __name__ == "__main__":
    main()
