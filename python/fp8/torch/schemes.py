"""How linear layers are quantized for inference: what is stored of a weight, how activations
are scaled, and the programs that compute them.

A program takes the stored tensors as they are, so that any checkpoint of such a layout is
computed with its own codes and scales.
"""

import functools
import json
from dataclasses import asdict, dataclass

import torch

import fp8
from fp8 import casts, recipes
from fp8.errors import ArgumentError, UnsupportedError
from fp8.formats import E2M1, E4M3, E8M0, F32
from fp8.torch import packed
from fp8.torch.dense import make_dense

# By the names that safetensors files have for them, and the elements of programs.
ELEMENTS = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}
FUNCTION = "linear"
_SCALES = {"f32": F32, "e8m0": E8M0, "e4m3": E4M3}
# What NVFP4 maps a tensor's largest magnitude to: the largest of E4M3 times that of E2M1.
NVFP4_MAX = E4M3.max * E2M1.max


@dataclass(frozen=True)
class Scheme:
    """- weight_block, input_block: how many elements share a scale, along (N, K) and (M, K);
      None for all;
    - scale: "f32"; "e8m0", MX; or "e4m3", NVFP4, whose codes are E2M1 instead of E4M3, with one
      more scale for the tensor;
    - dynamic: activations are scaled by what they are, else by what calibration found: their
      scale, or NVFP4's scale for the tensor;
    - rule: of scales, as fp8.casts.make_rule has it;
    - accumulate: "promote" or "fast";
    - packed: whether a weight is E2M1 with exponents, as fp8.torch.packed has it, and multiplied
      as E4M3 with a scale for each row.
    """

    weight_block: tuple
    input_block: tuple
    scale: str = "f32"
    dynamic: bool = True
    rule: tuple = ()
    accumulate: str = "promote"
    packed: bool = False

    def __post_init__(self):
        if self.weight_block[1] != self.input_block[1]:
            raise UnsupportedError(
                f"expected weights and activations to share scales over equally many elements "
                f"along K, but got {self.weight_block[1] or 'all'} and "
                f"{self.input_block[1] or 'all'}")

    @property
    def codes(self):
        return E2M1 if self.scale == "e4m3" else E4M3

    @property
    def k_multiple(self):
        """What K has to be a multiple of, for scales, and for tensor cores."""
        return packed.GROUP if self.packed else max(16, self.input_block[1] or 1)

    def describe(self):
        """A few words for a report."""
        def write(block):
            return "x".join("*" if size is None else str(size) for size in block)
        how = "dynamic" if self.dynamic else "static"
        if self.packed:
            return (f"{self.codes.name}, weights mxfp4 with scales in {self.scale} "
                    f"{write(self.weight_block)}, activations {write(self.input_block)} {how}")
        return (f"{self.codes.name}, scales in {self.scale}, weights {write(self.weight_block)}, "
                f"activations {write(self.input_block)} {how}")

    def get_tensors(self, n, k):
        """The stored tensors of a weight of N x K: (shape, dtype) by name. These are the names
        of compressed-tensors."""
        tensors = {}
        if self.packed:
            tensors["weight_packed"] = (n, k // 2), torch.uint8
            tensors["weight_exponents"] = (-(-k // packed.WORD), n), torch.int32
        elif self.scale == "e4m3":
            tensors["weight_packed"] = (n, k // 2), torch.uint8
        else:
            tensors["weight"] = (n, k), torch.float8_e4m3fn
        grid = self.get_grid(self.weight_block, n, k)
        dtype = {"f32": torch.float32, "e8m0": torch.uint8, "e4m3": torch.float8_e4m3fn}[self.scale]
        tensors["weight_scale"] = (1,) if self.weight_block == (None, None) else grid, dtype
        one = (1,), torch.float32
        if self.scale == "e4m3":
            tensors["weight_global_scale"] = one
        if not self.dynamic:
            tensors["input_global_scale" if self.scale == "e4m3" else "input_scale"] = one
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
            entries[key] = tuple(tuple(value) if isinstance(value, list) else value
                                 for value in entries[key])
        return Scheme(**entries)


_OPTIONS = {"use_power_2_scales": "pow2", "amax_epsilon": "amax_epsilon", "style": "style",
            "mode": "mode", "nonfinite": "nonfinite"}


def make_scheme(recipe, is_calibrated, weights=None):
    """The Scheme of a recipe, with `weights` of it or "mxfp4". Raises ArgumentError for one that
    inference has no use for."""
    recipe = recipes.parse(recipe)
    if weights not in (None, "mxfp4"):
        raise ArgumentError(f"expected weights to be mxfp4 or None, but got {weights!r}")
    if weights and not isinstance(recipe, (recipes.Float8CurrentScaling, recipes.RowwiseScaling)):
        raise ArgumentError(f"expected current or rowwise with weights of mxfp4, but got "
                            f"'{recipes.get_text(recipe)}'")
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
    if weights:
        blocks = (1, None), blocks[1]
    return Scheme(*blocks, scale, not is_calibrated, casts.make_rule(scale, options), accumulate,
                  packed=bool(weights))


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
    text = write_linear(Scheme.read(scheme), n, k, element, bias)
    return fp8.compile(text, target=target).functions[FUNCTION]


def write_linear(scheme, n, k, element, bias):
    """The program of compile_linear as text, of a Scheme."""
    scale = _SCALES[scheme.scale].mlir
    codes, is_nvfp4 = scheme.codes.mlir, scheme.scale == "e4m3"
    rows, columns = ("?" if size is None else size for size in (
        1 if scheme.input_block[0] is None else None,
        1 if scheme.input_block[1] is None else -(-k // scheme.input_block[1])))
    weight_grid = "x".join(map(str, scheme.get_grid(scheme.weight_block, n, k)))
    blocks = {name: "[" + ", ".join("*" if size is None else str(size) for size in block) + "]"
              for name, block in (("x", scheme.input_block), ("w", scheme.weight_block))}
    extra = ", tensor_scale = f32" if is_nvfp4 else ""
    nan, rule = casts.write_rule(scheme.rule)
    x, y, w = f"tensor<?x{k}x{element}>", f"tensor<?x{n}x{element}>", f"tensor<{n}x{k}x{codes}>"
    one, amax = "tensor<1x1xf32>", f"tensor<{rows}x{columns}xf32>"
    factors, weight_factors = f"tensor<{rows}x{columns}x{scale}>", f"tensor<{weight_grid}x{scale}>"
    scaled = f"<?x{k}x{codes}, block = {blocks['x']}, scale = {scale}{extra}>"
    weight = f"<{n}x{k}x{codes}, block = {blocks['w']}, scale = {scale}{extra}>"

    arguments = [f"%x: {x} {{fp8.name = \"x\"}}", f"%w: {w} {{fp8.weight}}",
                 f"%ws: {weight_factors}"]
    if scheme.packed:
        codes_type, exponents = f"tensor<{n}x{k}x{E2M1.mlir}>", f"tensor<{-(-k // packed.WORD)}x{n}xi32>"
        arguments[1:2] = [f"%p: {codes_type} {{fp8.weight}}", f"%e: {exponents}"]
    arguments += [f"%wg: {one}"] * is_nvfp4 + [f"%xs: {one}"] * (not scheme.dynamic)
    arguments += [f"%bias: tensor<{n}x{bias}>"] * (bias is not None)
    body = []
    if is_nvfp4 or scheme.dynamic:
        body.append(f"%amax = fp8.amax %x block = {blocks['x']}{nan} : {x}")
    if is_nvfp4:
        if scheme.dynamic:
            body.append(f"%all = fp8.amax %x block = [*, *] : {x}")
        else:
            body += [f"%max = arith.constant dense<{NVFP4_MAX:e}> : {one}",
                     f"%all = arith.divf %max, %xs : {one}"]
        body += [f"%c1 = arith.constant dense<1.0> : {one}", f"%wt = arith.divf %c1, %wg : {one}",
                 f"%s, %i, %t = fp8.compute_scale %amax tensor_amax(%all : {one}) format = {codes} "
                 f"scale_type = {scale} : {amax}"]
    elif scheme.dynamic:
        body.append(f"%s, %i = fp8.compute_scale %amax format = {codes} scale_type = {scale} "
                    f"{rule} : {amax}")
    else:
        body += [f"%c1 = arith.constant dense<1.0> : {one}", f"%s = arith.divf %c1, %xs : {one}"]
    inverse = "%i" if is_nvfp4 or scheme.dynamic else "%xs"
    body.append(f"%q = fp8.quantize %x scale(%s, {inverse} : {amax}, {factors})"
                + f" tensor_scale_inv(%t : {one})" * is_nvfp4 + f" : {x} -> {scaled}")
    if scheme.packed:
        body.append(f"%w = fp8.lift %p, %e : {codes_type}, {exponents} -> {w}")
    body.append("%wq = fp8.assemble %w, %ws" + ", %wt" * is_nvfp4 + f" : {w}, {weight_factors}"
                + f", {one}" * is_nvfp4 + f" -> {weight}")
    epilogue = _write_epilogue(n, element, bias) if bias else ""
    body.append(f"%y = fp8.matmul %q, %wq accumulate = {scheme.accumulate}{epilogue} : "
                f"!fp8.scaled{scaled}, "
                f"!fp8.scaled{weight} -> {y}")
    return (f"func.func @{FUNCTION}({', '.join(arguments)}) -> {y} {{\n  " + "\n  ".join(body)
            + f"\n  return %y : {y}\n}}\n")


def _write_epilogue(n, element, bias):
    lines = [f" epilogue(%bias : tensor<{n}x{bias}>) {{", f"^bb0(%acc: f32, %b: {bias}):"]
    if bias != "f32":
        lines.append(f"  %b32 = arith.extf %b : {bias} to f32")
    lines.append(f"  %sum = arith.addf %acc, {'%b' if bias == 'f32' else '%b32'} : f32")
    if element != "f32":
        lines.append(f"  %out = arith.truncf %sum : f32 to {element}")
    lines += [f"  fp8.yield {'%sum' if element == 'f32' else '%out'} : {element}", "  }"]
    return "\n  ".join(lines)
