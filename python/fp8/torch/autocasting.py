"""The recipe of a part of a program."""

import functools

import torch

import fp8
from fp8.recipes import get_text
from fp8.torch.attention_calls import Attention, describe, get_shared, share
from fp8.torch.capture import Mode, show_dynamo


@functools.cache
def check_recipe(recipe, target, options):
    """Says mistakes before a layer is called."""
    checked = {key: value for key, value in options if key != "cache"}
    fp8.emit("module {}", "mlir", recipe, target="cpu" if target == "auto" else target, **checked)


class _Mode(Mode):
    """The mode of `autocast`: under its recipe all parameters are taken."""

    takes_all = True
    skips_layers = False

    def get_recipe(self):
        return autocast.current

    def get_attention(self):
        return autocast.attention


class use_attention:
    """Within it, calls of torch.nn.functional.scaled_dot_product_attention compute
    `fp8.attention`, forward and backward, and so do modules that call it, as
    torch.nn.MultiheadAttention does without weights:

        with fp8.torch.use_attention(format="e4m3") as used:
            loss = model(x)
        used.explain()

    Options are those of fp8.torch.scaled_dot_product_attention; `untimed` takes calls also on GPUs where nobody has timed our
    kernels. It gives an Attention, whose `reasons` say what is PyTorch's: on a GPU what has no kernel, such
    as masks. For the thread that enters it.
    """

    def __init__(self, format=None, accumulate=None, *, smooth_k=False, hadamard=False, block=None, untimed=False):
        self._settings = Attention(format, accumulate, smooth_k=smooth_k, hadamard=hadamard, block=block, untimed=untimed)
        self._mode = _AttentionMode(self._settings)

    def __enter__(self):
        self._mode.__enter__()
        return self._settings

    def __exit__(self, *exception):
        self._mode.__exit__(*exception)


class _AttentionMode(Mode):
    """Products with parameters are those of modes around it."""

    def __init__(self, settings):
        super().__init__()
        self._settings = settings

    def get_attention(self):
        return self._settings

    def find(self, tensor):
        return -1, False


class autocast:
    """Within it, `Linear` layers without a recipe of their own compute in FP8, and so do products
    with parameters (x @ w, F.linear, grouped_mm, what PyTorch's own modules call), but for those
    that convert_to_fp8_training has left out:

        with fp8.torch.autocast(fp8.DelayedScaling()):
            loss = model(x)

    Backward is that of the forward, wherever it is called. Without it, or with
    `enabled=False`, all of them are PyTorch's. For all threads of the process; products with
    parameters for the one that enters it, and so is attention, with a recipe that has `fp8_dpa`.
    """

    current = None
    attention = None

    def __init__(self, recipe, enabled=True):
        self._recipe = get_text(recipe) if enabled else None
        self._attention = get_shared(share(describe(recipe))) if enabled else None
        self._mode = _Mode()
        if enabled and not torch.compiler.is_compiling():
            show_dynamo()
            check_recipe(self._recipe, "cpu", ())

    def __enter__(self):
        self._before = autocast.current, autocast.attention
        autocast.current, autocast.attention = self._recipe, self._attention
        if self._recipe is not None:
            self._mode.__enter__()
        return self

    def __exit__(self, *exception):
        if self._recipe is not None:
            self._mode.__exit__(*exception)
        autocast.current, autocast.attention = self._before
