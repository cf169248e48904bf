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


@torch.compiler.assume_constant_result
def get_host():
    """What the host takes of a step by Inductor: microseconds for each product, and the time of all
    kernels over that of products."""
    host = machines.get_own().host
    return host["product"], host["share"]


def is_known(recipe):
    """Whether layers of a recipe, a text, have been measured."""
    return get_constants(recipe) is not None


def estimate(recipe, rows, outputs, inputs, has_codes=False):
    """Microseconds of forward and backward of a layer under a recipe that is known, or in bf16
    for None; `has_codes`, of a layer whose optimizer writes the codes of its weight."""
    constants = dict(zip(_TERMS, get_constants(recipe)))
    if has_codes:
        # No cast is left. Products read half of what they read of bf16, and the codes that the
        # optimizer writes are as many bytes as a bf16 weight has.
        constants["weight"] = min(constants["weight"], get_constants(None)[_TERMS.index("weight")])
    return sum(constant * term
               for constant, term in zip(constants.values(), get_terms(rows, outputs, inputs)))


def is_faster(recipe, rows, outputs, inputs, has_codes=False):
    """Whether a layer is expected to take no longer under a recipe than in bf16: so where that
    is not known."""
    sizes = rows, outputs, inputs
    return not is_known(recipe) or estimate(recipe, *sizes, has_codes) <= estimate(None, *sizes)


def is_slower(recipe, rows, outputs, inputs, sums=None, has_codes=False):
    """Whether a layer, for which its Model has these `get_sums`, is better off in bf16."""
    return not is_faster(recipe, rows, outputs, inputs, has_codes) or (
        is_known(recipe) and is_limited_by_host(rows, sums) and not is_replayed())


class Model:
    """The linear layers of a model, given by (outputs, inputs), and the rows that each was last
    called with: those of a tower of images and of one of texts differ."""

    # How often rows of a layer have changed: what was said of any may be another since.
    changes = 0

    def __init__(self, sizes):
        self._terms = [(outputs * inputs, inputs, outputs) for outputs, inputs in sizes]
        self._rows = [None] * len(self._terms)
        # What is added up of layers with known rows, times these, and of the others.
        self._known, self._unknown = [0, 0, 0], [sum(terms) for terms in zip(*self._terms)]
        self._weights = self._unknown[0] if self._terms else 0
        # For who tells layers: whether all know, and what they are called by, by their places.
        self.is_settled, self.numbers = True, {}

    def note(self, place, rows):
        """That the layer at a place was called with that many rows."""
        before = self._rows[place]
        if rows == before or not rows:
            return
        for i, term in enumerate(self._terms[place]):
            self._known[i] += term * (rows - (before or 0))
            if before is None:
                self._unknown[i] -= term
        self._rows[place] = rows
        self.changes += 1

    def get_rows(self, place):
        """Those that were noted, or None."""
        return self._rows[place]

    def get_sums(self, place):
        """For `is_limited_by_host`: how many layers there are, their products, inputs and outputs,
        of each times its rows over those of the layer at `place`, and elements of all weights.
        Layers that were not called yet count as if they had the same rows."""
        rows = self._rows[place] or 1
        return (len(self._terms), *(known / rows + unknown for known, unknown in zip(
            self._known, self._unknown)), self._weights)


def is_limited_by_host(rows, sums):
    """Whether a step of a model is expected to take as long as the host does, and not the GPU:
    casts are then launches more, and no time less. `sums` are a Model's for a layer that is called
    with that many rows, or None for a layer of which no model is known."""
    if sums is None:
        return False
    count, products, inputs, outputs, weights = sums
    launch, product, x, weight, y = get_constants(None)
    gpu = (launch * count + 1e-9 * product * rows * products + 1e-6 * (
        x * rows * inputs + weight * weights + y * rows * outputs))
    of_product, share = get_host()
    # Forward and backward of a layer are three products.
    return share * gpu / 3 <= of_product * count


@torch.compiler.assume_constant_result
def is_replayed():
    """Whether what Dynamo traces becomes a CUDA graph, whose launches take no time of the host."""
    from torch._dynamo.symbolic_convert import InstructionTranslator
    try:
        compiler = InstructionTranslator.current_tx().output.compiler_fn
    except AttributeError:  # Nothing is traced.
        return False
    for _ in range(4):  # What torch.compile was given, within functions of Dynamo's around it.
        if hasattr(compiler, "config"):
            return bool(compiler.config.get("triton.cudagraphs",
                                            torch._inductor.config.triton.cudagraphs))
        compiler = getattr(compiler, "_torchdynamo_orig_backend", None)
    return False
