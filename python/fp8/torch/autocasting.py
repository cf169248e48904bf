"""The recipe of a part of a program."""

import functools

import torch

import fp8
from fp8.recipes import get_text
from fp8.torch.capture import Mode, show_dynamo


@functools.cache
def check_recipe(recipe, target, options):
    """Says mistakes before a layer is called."""
    checked = {key: value for key, value in options if key != "cache"}
    fp8.emit("module {}", "mlir", recipe, target="cpu" if target == "auto" else target, **checked)


class _Mode(Mode):
    """The mode of `autocast`: under its recipe all parameters are taken."""

    takes_all = True

    def get_recipe(self):
        return autocast.current


class autocast:
    """Within it, `Linear` layers without a recipe of their own compute in FP8, and so do products
    with parameters (x @ w, F.linear, grouped_mm, what PyTorch's own modules call), but for those
    that convert_to_fp8_training has left out:

        with fp8.torch.autocast(fp8.DelayedScaling()):
            loss = model(x)

    Backward is that of the forward, wherever it is called. Without it, or with
    `enabled=False`, all of them are PyTorch's. For all threads of the process; products with
    parameters for the one that enters it.
    """

    current = None

    def __init__(self, recipe, enabled=True):
        self._recipe = get_text(recipe) if enabled else None
        self._mode = _Mode()
        if enabled and not torch.compiler.is_compiling():
            show_dynamo()
            check_recipe(self._recipe, "cpu", ())

    def __enter__(self):
        self._before = autocast.current
        autocast.current = self._recipe
        if self._recipe is not None:
            self._mode.__enter__()
        return self

    def __exit__(self, *exception):
        if self._recipe is not None:
            self._mode.__exit__(*exception)
        autocast.current = self._before
