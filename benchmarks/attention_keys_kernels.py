"""Makes the kernels that benchmarks/attention_keys.py times: attention that sees some keys, which are known when it runs,
and attention with sinks. See attention_kernels.py.

usage: attention_keys_kernels.py [--build-dir build] --out DIR
"""

from attention_kernels import TYPES, build_all, make_parser

OTHERS = [(), ("key_starts",), ("key_lengths",), ("key_ranges",), ("sinks",)]


def specs():
    """By name."""
    found = {}
    for element, sums in TYPES:
        base = "_".join(filter(None, [element, sums]))
        common = {"element": element, "sums": sums, "dim": 128, "heads": 32, "heads_of_k": 8, "causal": True}
        for others in OTHERS:
            name = "_".join([base, "causal", *others])
            found[name] = {**common, "others": others, "lse": True}
        found[f"{base}_full_key_ranges"] = {**common, "causal": False, "others": ("key_ranges",), "lse": True}
        # Decoding.
        for others in ((), ("key_starts",), ("key_ranges",), ("sinks",)):
            name = "_".join([base, "one", *others])
            found[name] = {**common, "causal": False, "queries": 1, "others": ("key_lengths", *others)}
        # gpt-oss: 64 columns, a window in every other layer.
        for left in ("*", 127):
            found[f"{base}_d64_{'causal' if left == '*' else 'window'}_sinks"] = {
                **common, "dim": 64, "heads": 64, "left": left, "others": ("sinks",), "lse": True}
    return found


def main():
    build_all(specs(), make_parser().parse_args())


if __name__ == "__main__":
    main()
