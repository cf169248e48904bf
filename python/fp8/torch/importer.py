"""Graphs of PyTorch's operations as linalg, by torch-mlir."""

import contextlib
import io

import torch
from torch._guards import detect_fake_mode
from torch.fx.experimental.proxy_tensor import make_fx

from fp8.frameworks import require

require("torch-mlir", "20260101", ", with which torch.compile's backend reads graphs: pip install torch-mlir. Layers by "
        "fp8.torch.convert_to_fp8_training take none")

from torch_mlir import fx, ir
from torch_mlir.compiler_utils import TorchMlirCompilerError
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.extras.fx_decomp_util import get_decomposition_table
from torch_mlir.extras.fx_importer import ContextCache, FxImporter

from fp8 import imports
from fp8.torch import graphs

FUNCTION = "main"
# Quantizes the weights that are saved, where there are some.
QUANTIZE = "quantize_weights"
# Quantizes one activation that is saved, of which there may be several: with its name behind.
KEEP = "quantize_"


class _Locations(ContextCache):
    """Gives operations, for locations, the name of their layer around that of torch's
    operation: locations survive lowering."""

    __slots__ = ["layers"]

    def __init__(self, context, layers):
        super().__init__(context)
        self.layers = layers

    def get_node_location(self, node):
        operation = ir.Location.name(str(node.target), context=self._c)
        return ir.Location.name(self.layers.get(node.name, ""), operation, context=self._c)


def _pow(x, exponent):
    """Small powers as products, which are what kernels compute element by element."""
    if not x.is_floating_point():
        return NotImplemented
    if exponent == 1:
        return x.clone()
    if exponent == 2:
        return x * x
    return x * x * x if exponent == 3 else NotImplemented


def _reciprocal(x):
    """A division: torch-mlir asserts that what a reciprocal is of is not zero, and a loop
    with an assertion has no kernel."""
    if not x.is_floating_point():
        return NotImplemented
    return torch.ones((), dtype=x.dtype, device=x.device) / x


def _scalar_tensor(value, *, dtype=None, layout=None, device=None, pin_memory=None):
    return torch.full((), value, dtype=dtype or torch.get_default_dtype(), device=device)


def _accumulate_wide(operation):
    """A sum or a mean of 16 bits as PyTorch has it: of f32, and rounded once."""
    def decompose(x, *args, dtype=None, **others):
        if x.dtype not in (torch.bfloat16, torch.float16) or dtype not in (None, x.dtype):
            return NotImplemented
        return operation(x.float(), *args, **others).to(x.dtype)

    return decompose


def _count(x, dims):
    count = 1
    for dim in dims:
        count = count * x.shape[dim]
    return count


def _var_mean(x, dim=None, *, correction=None, keepdim=False):
    """In f32, as PyTorch's own: torch-mlir's is in f64, of which a GPU has no fast kernels."""
    if x.dtype != torch.float32:
        return NotImplemented
    dims = list(range(x.ndim)) if not dim else dim
    mean = x.mean(dims, keepdim=True)
    difference = x - mean
    count = _count(x, dims) - (1 if correction is None else correction)
    var = (difference * difference).sum(dims, keepdim=keepdim) / count
    return var, mean if keepdim else x.mean(dims)


def _var(x, dim=None, *, correction=None, keepdim=False):
    result = _var_mean(x, dim, correction=correction, keepdim=keepdim)
    return result if result is NotImplemented else result[0]


def get_decompositions():
    """Those of torch-mlir, but for attention, which is Inductor's, and for constants: on a GPU
    they would be memory that is filled."""
    kept = ("aten::full", "aten::ones", "aten::zeros")
    table = {operation: decomposition for operation, decomposition
             in get_decomposition_table().items()
             if "attention" not in operation.name() and operation.name().split(".")[0] not in kept}
    return {**table, torch.ops.aten.pow.Tensor_Scalar: _pow,
            torch.ops.aten.reciprocal.default: _reciprocal,
            torch.ops.aten.scalar_tensor.default: _scalar_tensor,
            torch.ops.aten.var_mean.correction: _var_mean, torch.ops.aten.var.correction: _var,
            **{operation: _accumulate_wide(operation) for operation in (
                torch.ops.aten.sum.default, torch.ops.aten.sum.dim_IntList,
                torch.ops.aten.mean.default, torch.ops.aten.mean.dim)}}


def _describe(size):
    """An extent as text, the same for those that are known to be equal."""
    return str(size.node.expr) if isinstance(size, torch.SymInt) else str(size)


def _find_merged(before, after):
    """The dimensions (first, last) of shape `before` that are one of `after`, where all others
    are the same; None if it is not as simple."""
    before, after = ([_describe(size) for size in shape] for shape in (before, after))
    merged = len(before) - len(after)
    if merged < 1:
        return None
    first = next((i for i, (size, other) in enumerate(zip(before, after)) if size != other),
                 len(after) - 1)
    last = first + merged
    return (first, last) if before[last + 1:] == after[first + 1:] else None


def _flatten_views(graph):
    """Views that make one dimension of several, as that, which becomes tensor.collapse_shape: of
    several of unknown extent torch-mlir's views take all but the first for 1."""
    for node in graph.nodes:
        if node.target not in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default,
                               torch.ops.aten.reshape.default):
            continue
        source = node.args[0].meta.get("val")
        value = node.meta.get("val")
        if source is None or value is None:
            continue
        dims = _find_merged(source.shape, value.shape)
        if dims and sum(isinstance(size, torch.SymInt)
                        for size in source.shape[dims[0]:dims[1] + 1]) > 1:
            node.target, node.args = torch.ops.aten.flatten.using_ints, (node.args[0], *dims)
    graph.eliminate_dead_code()


def _keep_expanded(graph):
    """Extents that torch.expand leaves as they are, as -1, which says so: of an unknown one
    torch-mlir would ask for each element whether it is 1."""
    for node in graph.nodes:
        if node.target is not torch.ops.aten.expand.default:
            continue
        source, value = node.args[0].meta.get("val"), node.meta.get("val")
        if source is None or value is None:
            continue
        sizes, added = list(node.args[1]), value.ndim - source.ndim
        for dim, size in enumerate(source.shape):
            if _describe(size) == _describe(value.shape[dim + added]):
                sizes[dim + added] = -1
        node.args = (node.args[0], sizes, *node.args[2:])
    graph.eliminate_dead_code()


def _decompose(module, layers):
    """The same of the operations that torch-mlir takes, and the names of its products by those
    of its nodes."""
    values = [node.meta["val"] for node in graphs.get_placeholders(module.graph)]
    with detect_fake_mode(values) or contextlib.nullcontext():
        decomposed = make_fx(torch.fx.Interpreter(module).run,
                             decomposition_table=get_decompositions())(*values)
    names = [layers.get(node.name) for node in module.graph.nodes
             if graphs.get_operation(node) in graphs.PRODUCTS]
    products = [node for node in decomposed.graph.nodes
                if graphs.get_operation(node) in graphs.PRODUCTS]
    return decomposed, {node.name: name for node, name in zip(products, names) if name}


def can_convert(module):
    """Whether a torch.fx.GraphModule becomes linalg."""
    try:
        convert(module, [imports.ValueInfo(None)] * len(graphs.get_placeholders(module.graph)), {})
    except imports.UnsupportedProgram:
        return False
    return True


def convert(module, infos, layers):
    """The program, as text, of a torch.fx.GraphModule on tensors, with the ValueInfos of its
    arguments and the names of products by those of their nodes.

    Raises UnsupportedProgram for what does not become linalg.
    """
    module, layers = _decompose(module, layers)
    _flatten_views(module.graph)
    _keep_expanded(module.graph)
    context = ir.Context()
    torch_dialect.register_dialect(context)
    importer = FxImporter(context=context)
    importer._cc = _Locations(context, layers)
    said = io.StringIO()
    # Otherwise MLIR writes it to the standard error.
    context.attach_diagnostic_handler(lambda diagnostic: said.write(f"error: {diagnostic}\n") > 0)
    try:
        with contextlib.redirect_stderr(said):
            lowered = fx.stateless_fx_import(module, output_type="linalg-on-tensors",
                                             fx_importer=importer, model_name=FUNCTION,
                                             backend_legal_ops=["aten.flatten.using_ints"])
    except (TorchMlirCompilerError, RuntimeError, NotImplementedError, ValueError, TypeError, AssertionError, KeyError,
            AttributeError) as error:
        raise imports.UnsupportedProgram(_get_reason(f"{error}\n{said.getvalue()}")) from error
    with context:
        context.allow_unregistered_dialects = True
        imports.check_dialects(lowered)
        imports.name_contractions(ir, lowered, lambda layer: layer)
        _set_roles(lowered)
        function = next(op for op in lowered.body.operations
                        if op.operation.name == "func.func" and op.name.value == FUNCTION)
        results = len(ir.FunctionType(function.type).results)
        imports.name_values(ir, function, infos, [imports.ValueInfo(None)] * results)
        _add_quantize(lowered, infos, ir.FunctionType(function.type).inputs)
        return str(lowered)


def _add_quantize(module, infos, types):
    """The functions that saved arguments come from: fp8-save-quantized fills them. Weights are quantized together,
    activations each when it is there."""
    saved = [(info, kind) for info, kind in zip(infos, types) if info.is_saved]
    functions = {KEEP + info.name: [(info, kind)] for info, kind in saved if not info.is_weight}
    weights = [(info, kind) for info, kind in saved if info.is_weight]
    if weights:
        functions[QUANTIZE] = weights
    for name, arguments in functions.items():
        text = ", ".join(
            f"%a{i}: {kind} {{fp8.name = {ir.StringAttr.get(info.name)}, {'fp8.weight, ' * info.is_weight}"
            f"fp8.save = {ir.StringAttr.get(info.name)}}}" for i, (info, kind) in enumerate(arguments))
        made = ir.Module.parse(f"func.func @{name}({text}) {{ return }}")
        module.body.append(made.body.operations[0].detach_from_parent())


def _set_roles(module):
    """Sets the roles of products whose names say what they are: in a part of a graph, the arguments
    alone would not tell."""
    for operation in imports.walk(module.operation):
        if "fp8.name" in operation.attributes:
            last = ir.StringAttr(operation.attributes["fp8.name"]).value.split(".")[-1]
            role = last.split("_")[0]
            if role in ("dgrad", "wgrad"):
                operation.attributes["fp8.role"] = ir.Attribute.parse(f"#fp8.role<{role}>")


def _get_reason(text):
    """The first error of a text, else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    return (errors[0].split("error:", 1)[1].strip() if errors else lines[0] if lines else
            "expected a graph that torch-mlir imports")
