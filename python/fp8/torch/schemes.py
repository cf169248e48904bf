"""How linear layers are quantized for inference: what is stored of a weight, how activations
are scaled, and the programs that compute them.

A program takes the stored tensors as they are, so that any checkpoint of such a layout is
computed with its own codes and scales.
"""

import functools
import json
from dataclasses import asdict, dataclass, replace

import torch

import fp8
from fp8 import casts, recipes
from fp8.errors import ArgumentError, UnsupportedError
from fp8.formats import E2M1, E4M3
from fp8.torch import expected, packed, program_text
from fp8.torch.dense import make_dense

# By the names that safetensors files have for them, and the elements of programs.
ELEMENTS = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}
FUNCTION = "linear"
NVFP4_MAX = program_text.NVFP4_MAX


@dataclass(frozen=True)
class Scheme:
    """- weight_block, input_block: how many elements share a scale, along (N, K) and (M, K);
      None for all; an input_block of None leaves activations in high precision, and weights are
      multiplied as what they are rounded to the type of activations;
    - scale: "f32"; "e8m0", MX; or "e4m3", NVFP4, whose codes are E2M1 instead of E4M3, with one
      more scale for the tensor;
    - dynamic: activations are scaled by what they are, else by what calibration found: their
      scale, or NVFP4's scale for the tensor;
    - rule: of scales, as fp8.casts.make_rule has it;
    - accumulate: "promote" or "fast";
    - packed: whether a weight is E2M1 with exponents, as fp8.torch.packed has it, and multiplied
      as E4M3 with a scale for each row;
    - in_halves: whether codes are E2M1 with scales in "e8m0", MXFP4, multiplied in high precision;
    - arranged: whether codes lie as kernels read them that lift them (fp8.torch.arranged);
    - invariant: whether the bits of a row of the result depend on that row of activations alone.
    """

    weight_block: tuple
    input_block: tuple
    scale: str = "f32"
    dynamic: bool = True
    rule: tuple = ()
    accumulate: str = "promote"
    packed: bool = False
    invariant: bool = False
    arranged: bool = False
    in_halves: bool = False

    def __post_init__(self):
        if self.invariant and self.dynamic and self.input_block is not None and (
                self.input_block[0] != 1 or self.scale == "e4m3"):
            raise UnsupportedError(
                "expected scales of activations that depend on one row in an invariant model, but "
                "got one for all rows; rowwise, block and mxfp8 have such scales, and calibration "
                "makes one that stays")
        if self.input_block is not None and self.weight_block[1] != self.input_block[1]:
            raise UnsupportedError(
                f"expected weights and activations to share scales over equally many elements "
                f"along K, but got {self.weight_block[1] or 'all'} and "
                f"{self.input_block[1] or 'all'}")

    @property
    def codes(self):
        return E2M1 if self.scale == "e4m3" or self.in_halves else E4M3

    @property
    def is_mxfp4(self):
        return self.packed or self.in_halves

    @property
    def shares_bytes(self):
        """Whether two codes share a byte."""
        return self.packed or self.codes is E2M1

    @property
    def plain_codes(self):
        """The name of the stored tensor with codes that are not arranged."""
        return "weight_packed" if self.shares_bytes else "weight"

    @property
    def has_blocks(self):
        """Whether E4M3 beside activations in high precision have scales in f32 for 128x128."""
        return self.input_block is None and self.scale == "f32" and self.weight_block == (128, 128)

    def multiplies_sums(self, n, k):
        """Whether sums of products with E4M3, of a weight of N x K, are multiplied with scales, so that kernels read codes."""
        return (self.input_block is None and self.scale == "f32" and not self.packed and self.weight_block[1] is None
                and n % 2 == 0 and k % 64 == 0)

    @property
    def sums(self):
        """How products add up: those in high precision are fast."""
        return "fast" if self.input_block is None else self.accumulate

    @property
    def options(self):
        """Those of fp8.compile for its programs."""
        return {"invariant": True} if self.invariant else {}

    @property
    def k_multiple(self):
        """What K has to be a multiple of, for scales, and for tensor cores."""
        return packed.GROUP if self.packed else max(16, self.weight_block[1] or 1)

    def describe(self):
        """A few words for a report."""
        def write(block):
            return "x".join("*" if size is None else str(size) for size in block)
        activations = "in high precision"
        if self.input_block is not None:
            activations = f"{write(self.input_block)} {'dynamic' if self.dynamic else 'static'}"
        if self.invariant:
            activations += ", invariant"
        if self.packed:
            return (f"{self.codes.name}, weights mxfp4 with scales in {self.scale} "
                    f"{write(self.weight_block)}, activations {activations}")
        return (f"{self.codes.name}, scales in {self.scale}, weights {write(self.weight_block)}, "
                f"activations {activations}")

    def get_tensors(self, n, k):
        """The stored tensors of a weight of N x K: (shape, dtype) by name. These are the names
        of compressed-tensors."""
        tensors, codes = {}, "weight_arranged" if self.arranged else self.plain_codes
        if self.packed:
            tensors[codes] = (n, k // 2), torch.uint8
            tensors["weight_exponents"] = (-(-k // packed.WORD), n), torch.int32
        elif self.shares_bytes:
            tensors[codes] = (n, k // 2), torch.uint8
        else:
            tensors[codes] = (n, k), torch.float8_e4m3fn
        grid = self.get_grid(self.weight_block, n, k)
        dtype = {"f32": torch.float32, "e8m0": torch.uint8, "e4m3": torch.float8_e4m3fn}[self.scale]
        tensors["weight_scale"] = (1,) if self.weight_block == (None, None) else grid, dtype
        one = (1,), torch.float32
        if self.scale == "e4m3":
            tensors["weight_global_scale"] = one
        if not self.dynamic:
            tensors["input_global_scale" if self.scale == "e4m3" else "input_scale"] = one
        return tensors

    def get_stored(self, n, k):
        """What checkpoints have of a weight: (shape, dtype) by name, as get_tensors has it but for
        MXFP4, whose E8M0 they have in place of exponents and factors, and codes in plain order."""
        tensors = replace(self, arranged=False).get_tensors(n, k)
        if self.packed:
            del tensors["weight_exponents"]
            tensors["weight_scale"] = (n, k // packed.GROUP), torch.uint8
        return tensors

    @staticmethod
    def get_grid(block, rows, columns):
        """How many scales there are along each dimension."""
        return tuple(1 if extent is None else -(-size // extent)
                     for size, extent in zip((rows, columns), block))

    def __str__(self):
        return json.dumps(asdict(self))

    @staticmethod
    @functools.lru_cache(maxsize=None)
    def read(text):
        """The Scheme of its `str`."""
        entries = json.loads(text)
        for key in ("weight_block", "input_block", "rule"):
            entries[key] = None if entries[key] is None else tuple(
                tuple(value) if isinstance(value, list) else value for value in entries[key])
        return Scheme(**entries)


_OPTIONS = {"use_power_2_scales": "pow2", "amax_epsilon": "amax_epsilon", "style": "style",
            "mode": "mode", "nonfinite": "nonfinite"}


# What weights are beside activations in high precision, where they are not those of the recipe: block and scale. Those
# without are those of the recipe of that name.
_WEIGHTS = {"mxfp4": ((1, 32), "e8m0"), "mxfp8": ((1, 32), "e8m0"), "nvfp4": ((1, 16), "e4m3"),
            "current": None, "rowwise": None, "block": None}


def make_scheme(recipe, is_calibrated, weights=None, activations=None):
    """The Scheme of a recipe, with `weights` of it, "mxfp4" or those of another recipe by its name, and
    `activations` of it, in "fp8", or in "bf16" for those as they are. Raises ArgumentError for
    what inference has no use for, UnsupportedError for what no product computes."""
    recipe = recipes.parse(recipe)
    if weights not in (None, *_WEIGHTS):
        raise ArgumentError(f"expected weights to be {', '.join(_WEIGHTS)} or None, but got {weights!r}")
    if activations not in (None, "fp8", "bf16"):
        raise ArgumentError(f"expected activations to be fp8, bf16 or None, but got {activations!r}")
    scheme = _make_scheme(recipe, is_calibrated)
    if activations == "bf16":
        if is_calibrated:
            raise ArgumentError("expected no calibration with activations in bf16, which have no scales")
        if weights and not _WEIGHTS[weights] and weights != recipe._name:
            scheme = _make_scheme(recipes.parse(weights), False)
        scheme = replace(scheme, input_block=None)
        if weights and _WEIGHTS[weights]:
            block, scale = _WEIGHTS[weights]
            scheme = replace(scheme, weight_block=block, scale=scale, in_halves=weights == "mxfp4",
                             rule=casts.make_rule(scale, {}))
        return scheme
    if activations == "fp8" and "nvfp4" in (weights, recipe._name):
        raise UnsupportedError("expected activations in bf16, or in FP4 by the recipe nvfp4, with weights "
                               "of nvfp4, since no product has them with activations in fp8")
    if weights == "mxfp4":
        if not isinstance(recipe, (recipes.Float8CurrentScaling, recipes.RowwiseScaling)):
            raise ArgumentError(f"expected current or rowwise with weights of mxfp4, but got "
                                f"'{recipes.get_text(recipe)}'")
        return replace(scheme, weight_block=(1, None), packed=True)
    if weights and weights != recipe._name:
        raise ArgumentError(f"expected the recipe {weights}, or activations in bf16, with weights of "
                            f"{weights}, but got '{recipes.get_text(recipe)}'")
    return scheme


def leave_activations(scheme):
    """The Scheme of the same weights with activations as they are: MXFP4 has no need to be E4M3 then."""
    left = replace(scheme, input_block=None, dynamic=True)
    return replace(left, weight_block=(1, packed.GROUP), scale="e8m0", packed=False, in_halves=True,
                   rule=casts.make_rule("e8m0", {})) if scheme.packed else left


def with_activations(scheme, activations, name):
    """The Scheme of the layer `name` with activations in "bf16", as they are, or in "fp8"; None for those it has.
    Raises UnsupportedError where nothing computes it."""
    if activations not in (None, "fp8", "bf16"):
        raise ArgumentError(f"expected activations to be fp8, bf16 or None, but got {activations!r}")
    if activations == "bf16":
        return leave_activations(scheme)
    if activations is None or scheme.input_block is not None and scheme.scale != "e4m3":
        return scheme
    if scheme.scale == "e4m3":
        raise UnsupportedError(f"expected '{name}' with activations in bf16, or as its config has them, since no product has "
                               f"weights of nvfp4 with activations in fp8")
    return replace(scheme, input_block=(1, scheme.weight_block[1]))


def _make_scheme(recipe, is_calibrated):
    if not isinstance(recipe, (recipes.Float8CurrentScaling, recipes.RowwiseScaling,
                               recipes.Float8BlockScaling, recipes.MXFP8BlockScaling,
                               recipes.NVFP4BlockScaling)):
        raise ArgumentError(f"expected current, rowwise, block, mxfp8 or nvfp4 for inference, but "
                            f"got '{recipes.get_text(recipe)}'; current with calibration has "
                            f"scales that stay as they are")
    if getattr(recipe, "fp8_format", None) is recipes.Format.E5M2:
        raise ArgumentError("expected codes in e4m3 for inference, but got e5m2")
    if getattr(recipe, "enable_2d_quantization", False):
        raise ArgumentError("expected no weight_2d for inference: it saves a cast in training")
    is_block = isinstance(recipe, recipes.Float8BlockScaling)
    dims = is_block and (recipe.x_block_scaling_dim, recipe.w_block_scaling_dim)
    if dims not in (False, (1, 1), (1, 2)):
        raise ArgumentError(f"expected x_dim 1 and w_dim 1 or 2 for inference, but got "
                            f"{dims[0]} and {dims[1]}")
    if is_calibrated and not isinstance(recipe, (recipes.Float8CurrentScaling,
                                                 recipes.NVFP4BlockScaling)):
        raise ArgumentError(f"expected no calibration with '{recipe}', whose scales are always "
                            f"those of the present activations; current and nvfp4 take one")
    blocks = {"current": ((None, None),) * 2, "rowwise": ((1, None),) * 2,
              "block": ((128, 128) if is_block and recipe.w_block_scaling_dim == 2 else (1, 128),
                        (1, 128)),
              "mxfp8": ((1, 32),) * 2, "nvfp4": ((1, 16),) * 2}[recipe._name]
    scale = {"mxfp8": "e8m0", "nvfp4": "e4m3"}.get(recipe._name, "f32")
    options = {key: getattr(recipe, name) for name, key in _OPTIONS.items()
               if hasattr(recipe, name)}
    if is_block:
        options["pow2"] = not recipe.use_f32_scales
    options["epsilon"] = options.pop("amax_epsilon", None) or None
    # fast_fprop is fast in the forward, which is all that there is.
    accumulate = "promote" if getattr(recipe, "accumulate", "promote") == "promote" else "fast"
    return Scheme(*blocks, scale, not is_calibrated, casts.make_rule(scale, options), accumulate)


def quantize_weight(weight, scheme):
    """The stored tensors of a weight of N x K, where it is."""
    if scheme.packed:
        return pack_weight(weight).get_tensors()
    options = {"amax_epsilon" if key == "epsilon" else key: value for key, value in scheme.rule}
    quantized = fp8.quantize(make_dense(weight.detach()), scheme.codes.name, scheme.weight_block,
                             scheme.scale, **options)
    scale = quantized.scale_inv
    if scheme.scale == "e4m3":
        # Rounded once, as compressed-tensors has it: x ~ code * scale / global_scale.
        return {"weight_packed": quantized.codes.view(torch.uint8), "weight_scale": scale,
                "weight_global_scale": 1 / quantized.tensor_scale_inv.reshape(1)}
    if scheme.scale == "e8m0":
        scale = scale.view(torch.uint8)
    if scheme.in_halves:
        return {"weight_packed": quantized.codes.view(torch.uint8), "weight_scale": scale}
    if scheme.weight_block == (None, None):
        scale = scale.reshape(1)
    return {"weight": quantized.codes, "weight_scale": scale}


def pack_weight(weight):
    """A weight of N x K in MXFP4, as packed.Lifted."""
    quantized = fp8.quantize(make_dense(weight.detach()), "e2m1", (1, packed.GROUP), "e8m0")
    return packed.lift(quantized.codes, quantized.scale_inv)


def make_input_scale(amax, scheme):
    """The stored tensor, by name, of activations whose largest magnitude is `amax`."""
    if scheme.scale == "e4m3":
        value = NVFP4_MAX / amax if amax else 1.0
        return {"input_global_scale": torch.tensor([value], dtype=torch.float32)}
    options = {"amax_epsilon" if key == "epsilon" else key: value for key, value in scheme.rule}
    return {"input_scale": fp8.quantize(torch.tensor([amax], dtype=torch.float32),
                                        **options).scale_inv}


@functools.lru_cache(maxsize=None)
def compile_linear(scheme, n, k, element, bias, target):
    """A fp8.Function of x, M x K for any M, the stored tensors in the order of get_tensors, and
    the bias: (M x N) of x's type. `scheme` is the str of one, whose hash is known; `element`
    and `bias` are types of MLIR, `bias` None for none."""
    known = Scheme.read(scheme)
    text = write_linear(known, n, k, element, bias)
    return expected.compile(None, (), text, target=target, **known.options).functions[FUNCTION]


def write_linear(scheme, n, k, element, bias):
    """The program of compile_linear as text, of a Scheme."""
    y = f"tensor<?x{n}x{element}>"
    x = program_text.write_input(scheme, "%x", k, element)
    w = program_text.write_weight(scheme, n, k, element)
    arguments = [f"%x: tensor<?x{k}x{element}> {{fp8.name = \"x\"}}", *w.arguments, *x.arguments]
    steps = list(w.steps)
    if bias is not None:
        steps.append(("addf", "%bias", f"tensor<{n}x{bias}>"))
        arguments.append(f"%bias: {steps[-1][2]}")
    body = [*x.lines, *w.lines,
            f"%y = fp8.matmul {x.name}, {w.name} accumulate = {scheme.sums}"
            f"{program_text.write_epilogue(element, steps)} : {x.type}, {w.type} -> {y}"]
    return (f"func.func @{FUNCTION}({', '.join(arguments)}) -> {y} {{\n  " + "\n  ".join(body)
            + f"\n  return %y : {y}\n}}\n")
