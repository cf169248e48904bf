"""An override of torchtitan's linear layers, in FP8.

    --override.imports 'fp8.torchtitan.linear={"recipe": "rowwise"}'

docs/Frameworks.md has more.
"""

from fp8.frameworks import require

require("torchtitan", "0.3")

from dataclasses import dataclass  # noqa: E402

from torchtitan.config import derive, override  # noqa: E402
from torchtitan.models.common.linear import Linear  # noqa: E402
from torchtitan.protocols.module import Module  # noqa: E402

from fp8.recipes import get_text  # noqa: E402
from fp8.torch import modules  # noqa: E402
from fp8.torch.autocasting import check_recipe  # noqa: E402


class FP8Linear(modules.Linear, Module):
    """fp8.torch.Linear that torchtitan's configs build. Each backward ends a step of its scales."""

    @dataclass(kw_only=True, slots=True)
    class Config(Linear.Config):
        recipe: str = "rowwise"
        target: str = "auto"
        options: dict | None = None

    def __init__(self, config):
        modules.Linear.__init__(self, config.in_features, config.out_features, config.bias,
                                recipe=config.recipe, target=config.target,
                                **(config.options or {}))


# Within layers: neither the first nor the last product of a model.
@override(target=Linear.Config, fqns=["*layers.*"], exact=True, description="linear layers in FP8")
def linear(config, *, recipe="rowwise", target="auto", **options):
    """The config of an FP8Linear in place of a Linear's, where both sizes are multiples of
    16; others stay what they are. `options` are those of fp8.torch.Linear."""
    recipe = get_text(recipe)
    check_recipe(recipe, "cpu", ())
    if config.in_features % 16 or config.out_features % 16:
        return config
    return derive(config, FP8Linear.Config, recipe=recipe, target=target, options=options)
