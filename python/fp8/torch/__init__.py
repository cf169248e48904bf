"""FP8 in PyTorch: a backend of torch.compile.

    import fp8.torch
    model = torch.compile(model, backend="fp8", options={"recipe": fp8.DelayedScaling()})

docs/Torch.md goes through all of it.
"""

from torch._dynamo import register_backend

from fp8.torch.backend import Backend, compile_fp8, explain
from fp8.torch.parts import Part

__all__ = ["Backend", "Part", "compile_fp8", "explain"]

register_backend(compile_fp8, name="fp8")
