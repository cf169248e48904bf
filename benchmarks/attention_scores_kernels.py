"""Makes the kernels that benchmarks/attention_scores.py times: attention with a cap of scores or a mask, and gradients with a
cap or with ranges of keys, each beside the one without. See attention_kernels.py.

usage: attention_scores_kernels.py [--build-dir build] [--configs] --out DIR

`--configs` makes those with a cap with other numbers of polynomials, too, and those with a mask with other tiles.
"""

from attention_kernels import build_all, make_parser

CAP = 50.0


def specs(with_configs):
    """By name."""
    wide = {"element": "bf16", "sums": None, "dim": 128, "heads": 32, "heads_of_k": 8, "lse": True}
    codes = {**wide, "element": "f8E4M3FN", "sums": "fast"}
    narrow = {**wide, "dim": 64, "heads": 16, "heads_of_k": 16}
    found = {}
    for name, spec in (("bf16_d128", wide), ("bf16_d64", narrow), ("f8_d128", codes)):
        for causal in (True, False):
            base = f"{name}_{'causal' if causal else 'full'}"
            found[base] = {**spec, "causal": causal}
            found[f"{base}_cap"] = {**spec, "causal": causal, "cap": CAP}
            for polynomials in (0, 4, 8) if with_configs and name != "bf16_d64" else ():
                tile = (128, 192, "scored") if name == "f8_d128" else (128, 160, "issued")
                found[f"{base}_cap_p{polynomials}"] = {
                    **spec, "causal": causal, "cap": CAP,
                    "config": "#fp8_sm90.attention<tile_q = {}, tile_k = {}, stages = 2, turn = {}, polynomials = {}>".format(
                        *tile, polynomials)}
    found["bf16_d128_full_ranges"] = {**wide, "causal": False, "others": ["key_ranges"]}
    for mask, of_queries in (("i1", True), ("bf16", True), ("f32", True), ("i1", False)):
        base = f"bf16_d128_full_mask_{mask}_{'qk' if of_queries else 'k'}"
        spec = {**wide, "causal": False, "mask": mask, "mask_of_queries": of_queries}
        found[base] = spec
        for keys in (96, 128, 160) if with_configs else ():
            found[f"{base}_t{keys}"] = {
                **spec, "config": f"#fp8_sm90.attention<tile_q = 128, tile_k = {keys}, stages = 2, turn = issued>"}
    for name, spec in (("bf16_d128", wide), ("bf16_d64", narrow)):
        for order in ("deterministic", "any"):
            common = {**spec, "order": order, "gradients": True}
            for causal in (True, False):
                base = f"{name}_{'causal' if causal else 'full'}_gradients_{order}"
                found[base] = {**common, "causal": causal}
                found[f"{base}_cap"] = {**common, "causal": causal, "cap": CAP}
            found[f"{name}_full_gradients_{order}_ranges"] = {**common, "causal": False, "others": ["key_ranges"]}
    return found


def main():
    args = make_parser().parse_args()
    build_all(specs(args.configs), args)


if __name__ == "__main__":
    main()
