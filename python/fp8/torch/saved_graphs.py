"""What Inductor made of graphs, beside a checkpoint's programs.

A graph of torch.compile with quantized layers is parts of ours and what Inductor makes of the rest. Its
cache finds that again, by the graph's text, in another process on this machine. With the checkpoint, it
does so where that cache is empty.
"""

import torch

from fp8 import programs

_KIND = "inductor"


def save(directory):
    """programs.save with what this process has of Inductor's. Returns how many programs there are."""
    made = torch.compiler.save_cache_artifacts()
    if made is None or not made[1].artifacts.get(_KIND):
        return programs.save(directory)
    return programs.save(directory, _get_maker(), made[0])


def take(maker, content):
    """Puts graphs into Inductor's cache, for programs.attach. Those of another PyTorch are of no use."""
    if maker == _get_maker():
        torch.compiler.load_cache_artifacts(content)


def _get_maker():
    return f"torch {torch.__version__}"
