"""The kinds of matmul that are checked on sm_120a and sm_121a: Ada's, and those of sm_100a whose factors tensor cores
multiply, with configs of Ada's form."""

from matmul.ada import KINDS as ADA, TABLE, config, swapped
from matmul.blackwell import KINDS as BLACKWELL


def is_microscaled(name, spec):
    """Whether factors are bytes; pairs of blocks are another chip's."""
    return spec["scale_a"] in ("1x32", "1x16") and not name.startswith("paired")


# Factors take room of a stage.
MICRO = [config(128, 128, 2, warpgroups=2), config(64, 128, 3), config(128, 64, 2, group=2),
         config(128, 32, 3, warpgroups=2, split_k=3), config(64, 64, 3, store="direct"), swapped(16, 64, 5),
         swapped(64, 128, 2, warpgroups=2), swapped(32, 64, 4, split_k=2)]
KINDS = {**ADA, **{name: {**spec, "configs": MICRO if spec["configs"] else TABLE}
                   for name, spec in BLACKWELL.items() if is_microscaled(name, spec)}}
