"""The CPU's lowering with and without passes over memory by tiles."""

import re
import subprocess

FUSION = "--fp8-pipeline=target=cpu recipe=none from=fusion to=fusion"
FROM_BUFFERS = "--fp8-pipeline=target=cpu recipe=none from=buffers to=host"
FORM, TILE = "fp8-form-fusions{position-dependent=false}", "fp8-tile-fusions{elements=16384}"


def fuse(text, fp8_opt):
    """What phase 4 makes of a program whose scales are given."""
    return subprocess.run([fp8_opt, FUSION], input=text, text=True, stdout=subprocess.PIPE,
                          check=True).stdout


def get_pipelines(fp8_opt, elements=None):
    """Phases 5 to 7 without streams, with streams that are taken apart again, and with
    tiles of so many elements."""
    text = subprocess.run([fp8_opt, FROM_BUFFERS, "--dump-pass-pipeline"], input="", text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True).stderr
    text = re.sub(r"\s+", " ", text[text.index("builtin.module(") :])
    form, tile = f"func.func( {FORM} ), ", f"{TILE}, "
    # Otherwise a test would compare what is the same.
    assert form in text and tile in text, text
    small = tile.replace("16384", str(elements)) if elements else tile
    return {"plain": text.replace(form, "").replace(tile, ""),
            "streams": text.replace(tile, ""),
            "tiles": text.replace(tile, small)}
