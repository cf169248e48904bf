"""How long linear layers take on a GPU, to choose between FP8 and high precision."""

# Microseconds of forward and backward of a layer of bf16 as a CUDA graph on an H200, by what
# get_terms has. Least squares of relative errors over 60 random layers, of which
# benchmarks/results/layer_speed.txt has the judgement by others.
CONSTANTS = {
    None: (9.842, 7.734, 0.2335, 1.348, 0.0),
    "delayed": (16.18, 4.147, 1.371, 2.543, 1.828),
    "current": (20.01, 4.268, 1.808, 3.283, 2.04),
    "rowwise": (25.14, 4.235, 2.699, 3.188, 3.364),
    "block": (14.9, 5.639, 4.197, 2.366, 4.266),
}


def get_terms(rows, outputs, inputs):
    """What the constants are multiplied with: launches, products, and elements of x, the weight
    and y."""
    return (1.0, 1e-9 * rows * outputs * inputs, 1e-6 * rows * inputs, 1e-6 * outputs * inputs,
            1e-6 * rows * outputs)


def is_known(recipe):
    """Whether layers of a recipe, a text, have been measured."""
    return recipe.partition(",")[0] in CONSTANTS


def get_constants(recipe):
    return CONSTANTS[recipe and recipe.partition(",")[0]]


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
