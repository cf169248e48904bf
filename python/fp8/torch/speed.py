"""How long linear layers take on a GPU, to choose between FP8 and high precision."""


def get_terms(rows, outputs, inputs):
    """What the constants are multiplied with: launches, products, and elements of x, the weight
    and y."""
    return (1.0, 1e-9 * rows * outputs * inputs, 1e-6 * rows * inputs, 1e-6 * outputs * inputs,
            1e-6 * rows * outputs)
