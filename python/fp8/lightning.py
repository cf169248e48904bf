"""Plug-ins of Lightning and Fabric for training in FP8.

    import fp8.lightning
    trainer = lightning.Trainer(plugins=[fp8.lightning.FP8Precision("delayed")])
    fabric = lightning.Fabric(plugins=[fp8.lightning.FabricFP8Precision("delayed")])

docs/Frameworks.md has more.
"""

from fp8.frameworks import require

require("lightning", "2.4")

import contextlib  # noqa: E402
import weakref  # noqa: E402

import torch  # noqa: E402
from lightning.fabric.plugins.precision import Precision as FabricPrecision  # noqa: E402
from lightning.pytorch.plugins.precision import Precision  # noqa: E402

from fp8.recipes import get_text  # noqa: E402
from fp8.torch import modules, steps  # noqa: E402


class FabricFP8Precision(FabricPrecision):
    """Converts each module that Fabric sets up, as fp8.torch.convert_to_fp8_training does, with its
    arguments; all else is computed in `dtype` by torch.autocast, None for what it is. Each
    step of an optimizer ends one of the scales, however many batches and processes it has."""

    precision = "fp8-mlir"

    def __init__(self, recipe="delayed", dtype=torch.bfloat16, **options):
        self._recipe, self._dtype, self._options = get_text(recipe), dtype, options
        self._models = weakref.WeakSet()

    def convert_module(self, module):
        module = modules.convert_to_fp8_training(module, self._recipe, **self._options)
        steps.accumulate(module)
        self._models.add(module)
        return module

    def forward_context(self):
        if self._dtype is None:
            return contextlib.nullcontext()
        device = next((parameter.device.type for model in self._models
                       for parameter in model.parameters()), "cpu")
        return torch.autocast(device, self._dtype)

    def optimizer_step(self, optimizer, *arguments, **keywords):
        result = super().optimizer_step(optimizer, *arguments, **keywords)
        for model in self._models:
            steps.end_step(model)
        return result

    def teardown(self):
        super().teardown()
        for model in self._models:
            steps.accumulate(model, False)


class FP8Precision(FabricFP8Precision, Precision):
    """The same for a Trainer, which converts its module before it makes optimizers."""
