"""FP8 in JAX: functions that are compiled whole.

    import fp8.jax
    forward = fp8.jax.compile(forward, fp8.Float8CurrentScaling())
    y = forward(parameters, x)

docs/JAX.md goes through all of it.
"""

import importlib

# Imported when it is asked for: the importer alone does without the compiler.
_ORIGINS = {"Compiled": "compiled", "DotGeneral": "dot_general", "compile": "compiled",
            "dot_product_attention": "attention", "report": "measuring"}

__all__ = sorted(_ORIGINS)


def __getattr__(name):
    if name in _ORIGINS:
        return getattr(importlib.import_module(f"fp8.jax.{_ORIGINS[name]}"), name)
    raise AttributeError(f"module 'fp8.jax' has no attribute '{name}'")
