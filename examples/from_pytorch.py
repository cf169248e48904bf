"""Takes a PyTorch module to linalg, as fp8-run and fp8-compile read it.

usage: from_pytorch.py MODEL.py:NAME -o OUT.mlir [--name FUNCTION] [--gradient ARGUMENT]...
                       [--no-check]

NAME is a function that returns a torch.nn.Module and a tuple of example arguments,
and maybe `dynamic_shapes`, as torch.export.export takes them. OUT.mlir gets a
function whose arguments are the parameters, buffers and constants of the module,
by their names there, and then the module's own; OUT.safetensors gets the values of
the first. A buffer that the module writes is one more result, before its own.
Unless --no-check is given, the program is run on the example's arguments and has to
compute what the module does.

Needs torch==2.15.0 and torch-mlir==20261001.
"""

import copy
import operator
import re

import ml_dtypes
import torch
import torch.utils._pytree as pytree
from fp8 import import_check, imports
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch_mlir import fx, ir
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.extras.fx_decomp_util import get_decomposition_table
from torch_mlir.extras.fx_importer import ContextCache, FxImporter

BOUND = {InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR}
# What moves or converts a weight, or takes a part of it, on its way to a product.
MOVES = {"t", "transpose", "permute", "view", "_unsafe_view", "reshape", "expand", "squeeze",
         "unsqueeze", "slice", "select", "split", "split_with_sizes", "clone", "_to_copy",
         "convert_element_type"}


def linear(x, weight, bias=None):
    """All rows in one matmul; torch's own decomposition makes some a batch of matmuls
    with copies of the weight."""
    rows = x.reshape(-1, x.shape[-1]) @ weight.t()
    result = rows.reshape(*x.shape[:-1], weight.shape[0])
    return result if bias is None else result + bias


class LayerLocations(ContextCache):
    """Gives operations, for locations, the name of their layer around that of torch's
    operation: locations survive lowering."""

    __slots__ = ["layers"]

    def __init__(self, context, layers):
        super().__init__(context)
        self.layers = layers

    def get_node_location(self, node):
        operation = ir.Location.name(str(node.target), context=self._c)
        return ir.Location.name(self.layers.get(node, ""), operation, context=self._c)


def pad(x, amounts, *others):
    """Negative amounts as slices behind a pad of the others: torch-mlir folds away one whose
    amounts add up to nothing."""
    negative = [isinstance(amount, int) and amount < 0 for amount in amounts]
    if not any(negative):
        return NotImplemented
    rest = [0 if cut else amount for cut, amount in zip(negative, amounts)]
    if any(rest):
        x = torch.ops.aten.pad.default(x, rest, *others)
    for place, cut in enumerate(negative):
        if cut:
            dim, is_end = x.ndim - 1 - place // 2, place % 2
            size = x.shape[dim] + amounts[place]
            x = x.narrow(dim, 0 if is_end else -amounts[place], size)
    return x


def pad_constant(x, amounts, value=0):
    return pad(x, amounts, "constant", value)


def cumsum(x, dim, dtype=None):
    """Sums so far, by sums of ever more neighbours: torch-mlir makes a scan of it, which is no
    operation of linalg."""
    if x.ndim == 0 or not isinstance(x.shape[dim], int):
        return NotImplemented
    if dtype is None:
        dtype = x.dtype if x.dtype.is_floating_point or x.dtype.is_complex else torch.int64
    # As PyTorch adds up 16 bits.
    wide = torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype
    y, dim, distance = x.to(wide), dim % x.ndim, 1
    while distance < x.shape[dim]:
        before = y.narrow(dim, 0, x.shape[dim] - distance)
        y = y + torch.cat([torch.zeros_like(y.narrow(dim, 0, distance)), before], dim)
        distance *= 2
    return y.to(dtype)


# What torch-mlir, or torch's own decomposition of it, does not take as it is.
DECOMPOSITIONS = {torch.ops.aten.linear.default: linear, torch.ops.aten.pad.default: pad,
                  torch.ops.aten.constant_pad_nd.default: pad_constant,
                  torch.ops.aten.cumsum.default: cumsum}


def check_pads(program):
    """Raises UnsupportedProgram for a pad that torch-mlir gets wrong."""
    for node in program.graph.nodes:
        if "pad" not in str(node.target) or node.op != "call_function":
            continue
        amounts = next((argument for argument in node.args if isinstance(argument, list)), [])
        if any(isinstance(amount, int) and amount < 0 for amount in amounts):
            raise imports.UnsupportedProgram(
                f"expected a pad by amounts of at least 0, but got {amounts} in '{node.name}'; a "
                f"slice cuts off what a negative one does")


# Types that NumPy has from ml_dtypes, by one of PyTorch of the same size that both have.
EXTENSIONS = {torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
              torch.float8_e4m3fn: (torch.uint8, ml_dtypes.float8_e4m3fn),
              torch.float8_e5m2: (torch.uint8, ml_dtypes.float8_e5m2)}


def to_numpy(tensor):
    tensor = tensor.detach().cpu().resolve_neg().contiguous()
    if tensor.dtype in EXTENSIONS:
        same, extension = EXTENSIONS[tensor.dtype]
        return tensor.view(same).numpy().view(extension)
    return tensor.numpy()


def get_bound_tensors(program):
    """What the module holds, by name, in the order of the program's arguments."""
    bound = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind in BOUND:
            source = program.state_dict if spec.target in program.state_dict else program.constants
            bound[spec.target] = source[spec.target]
    return bound


def find_layers(program):
    """What a contraction that a node becomes is called: the parameter that it takes, without
    `.weight`, else the innermost module and `.matmul`."""
    parameters = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs
                  if spec.kind == InputKind.PARAMETER}

    def find_parameter(node):
        while node.op == "call_function":
            overload = node.target
            moves = overload is operator.getitem or (
                isinstance(overload, torch._ops.OpOverload)
                and overload._schema.name.split("::")[1] in MOVES)
            if not moves:
                return None
            node = node.args[0]
        return parameters.get(node.name)

    layers = {}
    for node in program.graph.nodes:
        parameter = next(filter(None, map(find_parameter, node.all_input_nodes[:2])), None)
        modules = list(node.meta.get("nn_module_stack", {}).values())
        if parameter:
            layers[node] = re.sub(r"(^|[._])weight$", "", parameter)
        elif modules and modules[-1][0]:
            layers[node] = f"{modules[-1][0]}.matmul"
    return layers


def make_infos(program):
    """ValueInfos of arguments and results. What the module holds becomes arguments, and what it
    writes results, like any other, in the program too."""
    signature, arguments, results = program.graph_signature, [], []
    for spec in signature.input_specs:
        if spec.kind in BOUND:
            is_weight = (spec.kind == InputKind.PARAMETER
                         and program.state_dict[spec.target].ndim >= 2)
            arguments.append(imports.ValueInfo(spec.target, is_weight))
            spec.kind, spec.target = InputKind.USER_INPUT, None
        elif isinstance(spec.arg, TensorArgument):  # Not a number, which is a constant.
            arguments.append(imports.ValueInfo(spec.arg.name))
    names = iter(get_result_names(program))
    for spec in signature.output_specs:
        if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION):
            results.append(imports.ValueInfo(spec.target))
            spec.kind, spec.target = OutputKind.USER_OUTPUT, None
        else:
            results.append(imports.ValueInfo(next(names)))
    return arguments, results


def get_result_names(program):
    """The keys of what a module returns, where it returns a dictionary, else None."""
    spec = program.call_spec.out_spec
    paths, _ = pytree.tree_flatten_with_path(pytree.tree_unflatten(range(spec.num_leaves), spec))
    keys = [[getattr(key, "key", None) for key in path] for path, _ in paths]
    return [".".join(map(str, path)) if path and all(path) else None for path in keys]


def convert(module, arguments, dynamic_shapes=None, name="main", gradients=()):
    """The program of a module as text, and its parameters by name.

    Raises UnsupportedProgram, and what torch.export and torch-mlir raise.
    """
    program = torch.export.export(module, tuple(arguments), dynamic_shapes=dynamic_shapes)
    program = program.run_decompositions({**get_decomposition_table(), **DECOMPOSITIONS})
    check_pads(program)
    parameters = {name: to_numpy(value) for name, value in get_bound_tensors(program).items()}
    layers = find_layers(program)
    argument_infos, result_infos = make_infos(program)
    argument_infos = imports.make_arguments(argument_infos, gradients)

    context = ir.Context()
    torch_dialect.register_dialect(context)
    importer = FxImporter(context=context)
    importer._cc = LayerLocations(context, layers)
    lowered = fx.export_and_import(program, output_type="linalg-on-tensors", func_name=name,
                                   fx_importer=importer, decomposition_table={},
                                   experimental_support_mutation=True)
    with context:
        context.allow_unregistered_dialects = True
        imports.check_dialects(lowered)
        imports.name_contractions(ir, lowered, lambda layer: layer)
        function = next(op for op in lowered.body.operations
                        if op.operation.name == "func.func" and op.name.value == name)
        imports.name_values(ir, function, argument_infos, result_infos)
        return str(lowered), parameters


def run(module, arguments):
    """What a module returns, leaf by leaf, and its buffers and arguments after that; the module
    stays as it is."""
    module = copy.deepcopy(module)
    arguments = pytree.tree_map_only(torch.Tensor, torch.clone, tuple(arguments))
    results = pytree.tree_leaves(module(*arguments))
    return results, dict(module.named_buffers(remove_duplicate=False)), pytree.tree_leaves(arguments)


def compute(module, arguments, dynamic_shapes=None):
    """A module's arguments, and what it makes of them, by the names in its program."""
    program = torch.export.export(module, tuple(arguments), dynamic_shapes=dynamic_shapes)
    program = program.run_decompositions({})
    inputs = [spec.arg for spec in program.graph_signature.input_specs
              if spec.kind == InputKind.USER_INPUT]
    names = [arg.name for arg in inputs]
    leaves = pytree.tree_leaves(tuple(arguments))
    taken = {arg.name: to_numpy(leaf) for arg, leaf in zip(inputs, leaves)
             if isinstance(arg, TensorArgument)}

    def collect():
        results, buffers, written = run(module, arguments)
        results, keys, expected = iter(results), iter(get_result_names(program)), {}
        for number, spec in enumerate(program.graph_signature.output_specs):
            if spec.kind == OutputKind.BUFFER_MUTATION:
                expected[spec.target] = to_numpy(buffers[spec.target])
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                expected[spec.target] = to_numpy(written[names.index(spec.target)])
            else:
                result = next(results)
                if not isinstance(result, torch.Tensor):
                    raise import_check.Unchecked(f"it returns a {type(result).__name__}")
                expected[next(keys) or f"result{number}"] = to_numpy(result)
        return expected

    expected, again = collect(), collect()
    if any(value.tobytes() != again[key].tobytes() for key, value in expected.items()):
        raise import_check.Unchecked("results of the module differ from call to call")
    return taken, expected


if __name__ == "__main__":
    with torch.no_grad():
        imports.run_importer(convert, "PyTorch", compute)
