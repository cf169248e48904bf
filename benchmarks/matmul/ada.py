"""The kinds of matmul that are checked on Ada, and the configs of each."""

from matmul.kinds import KINDS as HOPPER, TABLE, TIMED, kind


def config(tile_m, tile_n, stages, **others):
    entries = {"tile_m": tile_m, "tile_n": tile_n, "stages": stages, **others}
    text = ", ".join(f"{key} = {value}" for key, value in entries.items())
    return f"#fp8_mma.gemm<{text}>"


def swapped(tile_m, tile_n, stages, **others):
    return config(tile_m, tile_n, stages, group=1, swap_ab="true", store="direct", **others)


# One of each way to build a kernel, for what does not depend on the tile; extents are powers of two, as rows that are
# innermost ask for.
SOME = [config(128, 128, 3, warpgroups=2), config(64, 128, 2), config(128, 64, 2, group=2),
        config(128, 32, 4, warpgroups=2, split_k=3), config(64, 64, 3, store="direct"), swapped(16, 64, 5),
        swapped(64, 128, 3, warpgroups=2), swapped(32, 64, 4, split_k=4)]
# Factors along K take room of a stage.
BLOCKED = [config(128, 128, 2, warpgroups=2), *SOME[1:]]
# Configs for results whose rows are no multiples of 16 bytes.
DIRECT = [one for one in SOME if "direct" in one]


def has_kernel(spec):
    """Whether a kernel multiplies such operands: none has 8 bits with rows innermost."""
    return not spec["a"].startswith("e") or spec.get("layout", "nt") == "nt"


def get_configs(name, spec):
    if name in TIMED:
        return TABLE
    return BLOCKED if spec["scale_a"].endswith("128") else SOME


KINDS = {
    **{name: {**spec, "configs": get_configs(name, spec)} for name, spec in HOPPER.items() if has_kernel(spec)},
    "direct": kind(configs=DIRECT),
}
