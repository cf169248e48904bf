"""Training in FP8 with accelerate.

    import fp8.accelerate
    model, optimizer, data = fp8.accelerate.prepare(accelerator, model, optimizer, data, recipe="delayed")

docs/Frameworks.md has more; a Trainer takes fp8.transformers.FP8Callback.
"""

from fp8.frameworks import require

require("accelerate", "1.0")

import torch  # noqa: E402

from fp8.errors import ArgumentError  # noqa: E402
from fp8.torch import modules, steps  # noqa: E402


def prepare(accelerator, *objects, recipe="delayed", **options):
    """accelerator.prepare of a model that is converted first, with what else is to be prepared;
    returns what that returns.

    Each step of an optimizer ends one of the scales, however many batches (accelerator.accumulate)
    and processes it has; steps that are skipped, as after an Inf in fp16, end none. `recipe` and
    `options` are those of fp8.torch.convert_to_fp8_training. Raises ArgumentError, with nothing
    changed, without a model, and beside accelerate's own mixed_precision="fp8".
    """
    if str(accelerator.mixed_precision) == "fp8":
        raise ArgumentError("expected an Accelerator with mixed_precision bf16, fp16 or no, but got "
                            "fp8, which is another implementation")
    convert(*objects, recipe=recipe, **options)
    return accelerator.prepare(*objects)


def convert(*objects, recipe="delayed", **options):
    """What `prepare` does before it calls accelerate, and accelerate itself where
    examples/patches/accelerate.patch was applied to it."""
    models = [each for each in objects if isinstance(each, torch.nn.Module)]
    optimizers = [each for each in objects if isinstance(each, torch.optim.Optimizer)]
    if len(models) != 1:
        raise ArgumentError(f"expected one model to prepare, but got {len(models)}")
    model = modules.convert_to_fp8_training(models[0], recipe, **options)
    if optimizers:
        steps.accumulate(model)
        # The last one of several ends it: each has its own parameters.
        optimizers[-1].register_step_post_hook(lambda *_: steps.end_step(model))
