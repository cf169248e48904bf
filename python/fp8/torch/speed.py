"""How long linear layers take on a GPU, to choose between FP8 and high precision."""

import torch

from fp8 import machines

_TERMS = ("launch", "product", "x", "weight", "y")


def get_terms(rows, outputs, inputs):
    """What the constants are multiplied with: launches, products, and elements of x, the weight
    and y."""
    return (1.0, 1e-9 * rows * outputs * inputs, 1e-6 * rows * inputs, 1e-6 * outputs * inputs,
            1e-6 * rows * outputs)


# Dynamo traces what layers ask, and cannot ask the driver which GPU there is.
@torch.compiler.assume_constant_result
def get_constants(recipe):
    """What `get_terms` are multiplied with under a recipe, a text, or in bf16 for None; None where
    no layers of the recipe have been measured."""
    name = recipe.partition(",")[0] if recipe else ""
    layer = machines.get_own().layers.get("none" if recipe is None else name)
    if layer is None or name == "none":
        return None
    return tuple(layer[term] for term in _TERMS)


def is_known(recipe):
    """Whether layers of a recipe, a text, have been measured."""
    return get_constants(recipe) is not None


def estimate(recipe, rows, outputs, inputs):
    """Microseconds of forward and backward of a layer under a recipe that is known, or in bf16
    for None."""
    constants = get_constants(recipe)
    return sum(constant * term
               for constant, term in zip(constants, get_terms(rows, outputs, inputs)))


def is_faster(recipe, rows, outputs, inputs):
    """Whether a layer is expected to take no longer under a recipe than in bf16: so where that
    is not known."""
    sizes = rows, outputs, inputs
    return not is_known(recipe) or estimate(recipe, *sizes) <= estimate(None, *sizes)
