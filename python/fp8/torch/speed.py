"""How long linear layers take on a GPU, to choose between FP8 and high precision."""

# Microseconds of forward and backward of a layer of bf16 as a CUDA graph on an H200, by what
# get_terms has: least squares of relative errors over 60 random layers, of which
# benchmarks/results/layer_speed.txt has the judgement by others.
CONSTANTS = {
    None: (9.956, 7.76, 0.1669, 1.347, 0.0),
    "delayed": (16.24, 4.227, 1.745, 2.573, 2.295),
    "current": (22.73, 4.384, 2.401, 3.357, 2.412),
    "rowwise": (25.42, 4.435, 2.486, 3.207, 3.327),
    "block": (14.99, 5.452, 4.482, 2.339, 4.513),
}


def get_terms(rows, outputs, inputs):
    """What the constants are multiplied with: launches, products, and elements of x, the weight
    and y."""
    return (1.0, 1e-9 * rows * outputs * inputs, 1e-6 * rows * inputs, 1e-6 * outputs * inputs,
            1e-6 * rows * outputs)


def is_known(recipe):
    """Whether layers of a recipe, a text, have been measured."""
    return recipe.partition(",")[0] in CONSTANTS


def estimate(recipe, rows, outputs, inputs):
    """Microseconds of forward and backward of a layer under a recipe that is known, or in bf16
    for None."""
    constants = CONSTANTS[recipe and recipe.partition(",")[0]]
    return sum(constant * term
               for constant, term in zip(constants, get_terms(rows, outputs, inputs)))


def is_faster(recipe, rows, outputs, inputs):
    """Whether a layer is expected to take no longer under a recipe than in bf16: so where that
    is not known."""
    sizes = rows, outputs, inputs
    return not is_known(recipe) or estimate(recipe, *sizes) <= estimate(None, *sizes)
