"""Recipes by the names that Transformer Engine and torchao gave them.

`str` of a recipe is the compiler's text for it, e.g. "delayed,amax_history_len=16", which
every function that takes a recipe also takes as it is. docs/Recipes says what each does, to
the bit. Values are checked by the compiler, when something is compiled.
"""

import enum
import types
from dataclasses import Field, dataclass, field, fields
from typing import Any

from fp8.errors import ArgumentError
from fp8.recipe_keys import RECIPES


class Format(enum.Enum):
    """The format of codes: E4M3 or E5M2 for all, or HYBRID, E4M3 and for gradients E5M2."""

    E4M3 = "e4m3"
    E5M2 = "e5m2"
    HYBRID = "hybrid"


def _key(key=None, negated=False) -> Any:
    """A field that is the compiler's option `key`, else of its own name, with the compiler's
    default."""
    return field(metadata={"key": key, "negated": negated})


def _get_default(key, negated):
    if key.words and set(key.words) <= {known.value for known in Format}:
        return Format(key.default)
    if key.default is None:
        return ""
    return not key.default if negated else key.default


def _write(key, value):
    if isinstance(value, Format):
        return value.value
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (int, float, str)) or set(",=") & set(str(value)):
        raise TypeError(f"expected a number, a word or a Format for '{key}', but got {value!r}")
    return repr(value) if isinstance(value, float) else str(value)


def get_options(kind):
    """The fields of a Recipe, or of a class of them, that are keys of the compiler."""
    return [option for option in fields(kind) if "key" in option.metadata]


@dataclass(frozen=True)
class Recipe:
    """What all have in common. A subclass has a field for each key of the compiler's recipe
    `name`: those that it declares first, for the sake of their names or places.

    - fp8_dpa: attention, too, is of E4M3. fp8.compile and fp8.jax.compile take it as
      `attention_recipe`, with the scales of this recipe where these are of tensors, else with
      present ones. So does PyTorch, where a module keeps scales of earlier steps: one of
      convert_to_fp8_training, or of transformers' models, and a Backend for its calls. It is
      for Python, and no part of the text.
    - dpa_smooth_k, dpa_hadamard: of attention in FP8 the mean of each head's keys is taken away
      before they are codes, and columns of queries and keys are rotated (docs/Attention.md);
    - dpa_block: so many positions of a head share a factor there, with scales of present numbers;
    - fp8_mha: the same, and what attention computes is codes for the layer behind it, by scales
      of earlier steps or given ones (docs/Attention.md).
    """

    fp8_dpa: bool = field(default=False, kw_only=True)
    fp8_mha: bool = field(default=False, kw_only=True)
    dpa_smooth_k: bool = field(default=False, kw_only=True)
    dpa_hadamard: bool = field(default=False, kw_only=True)
    dpa_block: int | None = field(default=None, kw_only=True)

    def __init_subclass__(cls, name):
        cls._name = name
        declared = {value.metadata["key"] or attribute: value
                    for attribute, value in vars(cls).items() if isinstance(value, Field)}
        for key in RECIPES[name]:
            option = declared.pop(key.name, None)
            if option is None:
                option = _key()
                setattr(cls, key.name, option)
                cls.__annotations__[key.name] = Any
            option.default = _get_default(key, option.metadata["negated"])
        assert not declared, f"expected keys of '{name}', but got {', '.join(declared)}"

    def __str__(self):
        parts = [self._name]
        for option in get_options(self):
            value = getattr(self, option.name)
            if value != option.default:
                key = option.metadata["key"] or option.name
                value = not value if option.metadata["negated"] else value
                parts.append(f"{key}={_write(option.name, value)}")
        return ",".join(parts)


@dataclass(frozen=True)
class DelayedScaling(Recipe, name="delayed"):
    """One f32 scale for a tensor, from the amaxes of earlier steps, which a State keeps.

    - margin: scales are 2^-margin of what fits;
    - fp8_format: E4M3, E5M2 or HYBRID;
    - amax_history_len: of how many steps;
    - amax_compute_algo: "max" of the history, or the "most_recent";
    - reduce_amax: for the caller, who reduces amaxes over ranks;
    - compat: the system whose order of the history is followed: "te_fused", "te_unfused" or
      "flax";
    - pow2: scales are powers of two;
    - accumulate: "promote" to f32 as the sum goes on, "fast", or "fast_fprop";
    - initial: the scale of a tensor without a history: "current", by its own amax, "one", or
      "auto": "current" unless compat is another system's.
    """

    margin: int = _key()
    fp8_format: Format = _key("format")
    amax_history_len: int = _key()
    amax_compute_algo: str = _key()
    reduce_amax: bool = _key()
    compat: str = _key()
    pow2: bool = _key()
    accumulate: str = _key()
    initial: str = _key()


@dataclass(frozen=True)
class Float8CurrentScaling(Recipe, name="current"):
    """One f32 scale for a tensor, from its present amax: TE's Float8CurrentScaling, or with
    style="torchao" torchao's "tensorwise". A smaller amax than amax_epsilon counts as it."""

    fp8_format: Format = _key("format")
    use_power_2_scales: bool = _key("pow2")
    amax_epsilon: float = _key()
    style: str = _key()
    accumulate: str = _key()


@dataclass(frozen=True)
class RowwiseScaling(Recipe, name="rowwise"):
    """An f32 scale for each row of A and each column of B: torchao's "rowwise", with
    style="torchao" to the bit."""

    fp8_format: Format = _key("format")
    use_power_2_scales: bool = _key("pow2")
    amax_epsilon: float = _key()
    style: str = _key()
    accumulate: str = _key()


@dataclass(frozen=True)
class Float8BlockScaling(Recipe, name="block"):
    """An f32 scale for 1x128 elements (dim 1) or 128x128 (dim 2), a power of two unless
    use_f32_scales: TE's Float8BlockScaling."""

    fp8_format: Format = _key("format")
    use_f32_scales: bool = _key("pow2", negated=True)
    amax_epsilon: float = _key()
    x_block_scaling_dim: int = _key("x_dim")
    w_block_scaling_dim: int = _key("w_dim")
    grad_block_scaling_dim: int = _key("grad_dim")


@dataclass(frozen=True)
class MXFP8BlockScaling(Recipe, name="mxfp8"):
    """A power of two, in a byte, for 32 elements along K, as OCP's MX has it: with the
    defaults TE's MXFP8BlockScaling, with mode="floor" and nonfinite="nan" torchao's."""

    fp8_format: Format = _key("format")
    mode: str = _key()
    nonfinite: str = _key()
    enable_2d_quantization: bool = _key("weight_2d")


@dataclass(frozen=True)
class NVFP4BlockScaling(Recipe, name="nvfp4"):
    """E2M1 codes with an E4M3 scale for 16 elements along K and one f32 for the tensor: the
    formats and scales of TE's NVFP4BlockScaling.

    - enable_2d_quantization: a weight shares scales over 16x16 elements;
    - enable_stochastic_rounding: of gradients, from seeds that a State keeps (State.set_seed);
    - enable_rht: what a weight gradient is a product of goes through a random Hadamard
      transform before it is quantized.
    """

    enable_2d_quantization: bool = _key("weight_2d")
    enable_stochastic_rounding: bool = _key("stochastic_rounding")
    enable_rht: bool = _key("hadamard")


@dataclass(frozen=True)
class StaticScaling(Recipe, name="static"):
    """The scales that DelayedScaling has learned, from the file of a saved State."""

    state: str = _key()
    fp8_format: Format = _key("format")
    accumulate: str = _key()


def _get_kinds():
    """Subclasses of Recipe by the names of their recipes."""
    return {kind._name: kind for kind in Recipe.__subclasses__()}


def _make_kind(name):
    """The class of a recipe that has none above, with the compiler's names."""
    doc = f"The recipe '{name}', with the keys that docs/Recipes has of it."
    kind = types.new_class(name, (Recipe,), {"name": name},
                           lambda body: body.update(__module__=__name__, __doc__=doc))
    return dataclass(frozen=True)(kind)


globals().update({name: _make_kind(name) for name in RECIPES.keys() - {"none", *_get_kinds()}})


def parse(recipe):
    """The Recipe, or None, of what functions that take a recipe take. Raises ArgumentError for
    a name or a key that there is not; values are for the compiler to check."""
    if recipe is None or isinstance(recipe, Recipe):
        return recipe
    name, *entries = get_text(recipe).split(",")
    kinds = _get_kinds()
    if name == "none" and not entries:
        return None
    if name not in kinds:
        raise ArgumentError(f"expected one of the recipes {', '.join(sorted(kinds))}, but got "
                            f"'{name}'")
    options = {option.metadata["key"] or option.name: option for option in get_options(kinds[name])}
    values = {}
    for entry in entries:
        key, _, text = entry.partition("=")
        if key not in options:
            raise ArgumentError(f"expected one of the keys {', '.join(options)} of '{name}', but "
                                f"got '{key}'")
        option = options[key]
        try:
            values[option.name] = _read(text, option.default, option.metadata["negated"])
        except ValueError:
            raise ArgumentError(f"expected a value of '{key}' like "
                                f"{_write(key, option.default)}, but got '{text}'") from None
    return kinds[name](**values)


def _read(text, default, negated):
    """What a text stands for, where the default is `default`."""
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise ValueError
        return (text == "true") != negated
    return type(default)(text)


def get_attention_text(recipe):
    """The text of the recipe that a recipe with `fp8_dpa`, or `fp8_mha`, has for attention, else
    None: factors there are of tensors."""
    if not (getattr(recipe, "fp8_dpa", False) or getattr(recipe, "fp8_mha", False)):
        return None
    is_of_tensors = recipe._name in ("delayed", "current", "static")
    return write_transforms(str(recipe if is_of_tensors else Float8CurrentScaling()), recipe)


def write_transforms(text, recipe):
    """The text of attention's recipe with what is done before its codes, and what of these shares a factor."""
    text += ",smooth_k=true" * recipe.dpa_smooth_k + ",hadamard=true" * recipe.dpa_hadamard
    if recipe.dpa_block is None:
        return text
    if text.partition(",")[0] != "current":
        raise ArgumentError(f"expected dpa_block of a recipe whose attention has present scales, but got '{text}'")
    return f"{text},block={recipe.dpa_block}"


def get_text(recipe):
    """The compiler's text of a Recipe, a str or None. Raises TypeError for all else."""
    if recipe is None:
        return "none"
    if isinstance(recipe, (Recipe, str)):
        return str(recipe)
    raise TypeError(f"expected a recipe, its text or None, but got {recipe!r}")
