"""Functions of JAX as linalg: StableHLO through the input conversion of IREE's compiler."""

import fnmatch
import inspect
import re
from collections import namedtuple

import jax

from fp8 import imports
from fp8.jax import rewrites

# The text, and the tree of the results' shapes and dtypes.
Program = namedtuple("Program", "text results")

# From StableHLO to linalg; what is IREE's own comes after it.
PIPELINE = "builtin.module(iree-stablehlo-input-transformation-pipeline)"
# Scopes that JAX opens by itself, einsum's among them, and what it writes around others.
OWN_SCOPE = re.compile(r"jit\(.*\)|.*->.*|while|body|cond|branch_\d+_fun|closed_call|"
                       r"checkpoint|remat\d*|custom_[jv]vp_call")
TRANSFORMED = re.compile(r"(?:jvp|transpose|vmap|remat\d*|checkpoint)\((.*)\)")


def name_leaves(tree, prefix=""):
    """The path of each leaf of a tree, and its value."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(".".join(filter(None, [prefix, jax.tree_util.keystr(path, simple=True,
                                                                 separator=".")])), leaf)
            for path, leaf in leaves]


def name_arguments(function, arguments):
    """The leaves of arguments by their names: paths, in the first one those in its tree, in
    others after the argument's own name."""
    parameters = list(inspect.signature(function).parameters.values())
    named = []
    for index, argument in enumerate(arguments):
        own = parameters[min(index, len(parameters) - 1)]
        own = (f"{own.name}.{index}" if own.kind is own.VAR_POSITIONAL else own.name)
        leaves = name_leaves(argument, own if index else "")
        named += [(path or own, leaf) for path, leaf in leaves]
    return named


def get_layer(location):
    """The scopes of a location such as `jit(f)/transpose(jvp(layer0))/dot_general`, or
    None."""
    scopes = location.split("/")[:-1]
    while any(map(TRANSFORMED.fullmatch, scopes)):
        scopes = [TRANSFORMED.sub(r"\1", scope) for scope in scopes]
    scopes = [scope for scope in scopes if scope and not OWN_SCOPE.fullmatch(scope)]
    return ".".join(scopes) or None


def convert(function, arguments, *, name="main", weights=None, gradients=()):
    """The Program of a function of trees of arrays, or of what has their shapes and dtypes.

    Arguments are the leaves, under the names of name_arguments. Contractions are called after the
    `jax.named_scope`s that they stand in; those of a backward pass that JAX made are dgrad,
    where they read a weight, or wgrad.

    - weights: globs of the names of arguments that are weights; None for those of two
      dimensions and more of the first argument, if that is a tree and no array;
    - gradients: names of arguments that come from a backward pass.

    Raises UnsupportedProgram, and what JAX raises.
    """
    try:
        from iree.compiler import ir, passmanager
    except ImportError:
        raise imports.UnsupportedProgram(
            "expected the package iree-base-compiler, which takes StableHLO to linalg, but it is "
            "not installed") from None
    named = name_arguments(function, arguments)
    first = name_leaves(arguments[:1])
    is_tree = bool(arguments) and not hasattr(arguments[0], "shape")
    infos = [imports.ValueInfo(path, index < len(first) and is_tree and len(leaf.shape) >= 2
                          if weights is None else
                          any(fnmatch.fnmatchcase(path, glob) for glob in weights))
             for index, (path, leaf) in enumerate(named)]
    infos = imports.make_arguments(infos, gradients)
    # A program is one device's, whatever mesh is traced around it.
    with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())):
        lowered = jax.jit(function, keep_unused=True).lower(*arguments)
    # A tuple's have numbers for names.
    results = [imports.ValueInfo(path if path[:1].isalpha() else None)
               for path, _ in name_leaves(lowered.out_info)]
    text = lowered.compiler_ir("stablehlo").operation.get_asm(enable_debug_info=True)

    with ir.Context() as context:
        try:
            module = ir.Module.parse(text)
            _drop_barriers(module)
            _write_algorithms(ir, module)
            rewrites.rewrite(ir, module)
            passmanager.PassManager.parse(PIPELINE).run(module.operation)
        except ir.MLIRError as error:
            raise imports.UnsupportedProgram(_describe(text, error)) from error
        context.allow_unregistered_dialects = True
        imports.check_dialects(module)
        entry = next(op for op in module.body.operations
                     if op.operation.name == "func.func" and op.name.value == "main")
        _set_roles(ir, module, entry, {index for index, info in enumerate(infos) if info.is_weight})
        imports.name_contractions(ir, module, get_layer)
        imports.name_values(ir, entry, infos, results)
        entry.attributes["sym_name"] = ir.StringAttr.get(name)
        for attribute in list(module.operation.attributes):
            if "." in attribute:  # mhlo.num_partitions and the like.
                del module.operation.attributes[attribute]
        return Program(str(module), jax.tree_util.tree_map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), lowered.out_info))


def _drop_barriers(module):
    """Takes away the barriers that jax.checkpoint has against XLA's reuse of values: IREE makes its own operation of them."""
    for operation in list(imports.walk(module.operation)):
        if operation.name == "stablehlo.optimization_barrier":
            for result, operand in zip(operation.results, operation.operands):
                result.replace_all_uses_with(operand)
            operation.operation.erase()


def _write_algorithms(ir, module):
    """Writes the algorithm of products, which IREE's conversion does not take, as types of their operands: those of
    gradients of JAX's attention are one of f32 and one of bf16, of which both are read as bf16. Without one the
    narrower operand becomes what the other is of, and bf16 beside f16 both f32."""
    for operation in list(imports.walk(module.operation)):
        if operation.name != "stablehlo.dot_general":
            continue
        *kinds, result = [value.type.element_type for value in (*operation.operands, *operation.results)]
        algorithm = operation.attributes["algorithm"] if "algorithm" in operation.attributes else None
        if algorithm is not None:
            said = re.search(r"lhs_precision_type = (\w+), rhs_precision_type = (\w+), accumulation_type = (\w+), "
                             r"lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1,",
                             str(algorithm))
            if not said or said[3] != str(result) or not {said[1], said[2]} <= {"f64", "f32", "f16", "bf16"}:
                continue
            kinds = [ir.Type.parse(said[1]), ir.Type.parse(said[2])]
            del operation.attributes["algorithm"]
        elif kinds[0] != kinds[1] and all(isinstance(kind, ir.FloatType) for kind in kinds):
            # bf16 and f16 are of one width, and neither has the other's values.
            wide = max(kinds, key=lambda kind: kind.width)
            kinds = [wide if kinds[0].width != kinds[1].width else ir.F32Type.get(module.context)] * 2
        for number, kind in enumerate(kinds):
            _convert_operand(ir, operation, number, kind)


def _convert_operand(ir, operation, number, kind):
    value = operation.operands[number]
    if value.type.element_type == kind:
        return
    with operation.location, ir.InsertionPoint(operation):
        made = ir.Operation.create("stablehlo.convert", [ir.RankedTensorType.get(value.type.shape, kind)], [value])
    operation.operands[number] = made.result


def _describe(text, error):
    """What is in the way of a conversion: mostly calls of what is no StableHLO."""
    called = sorted(set(re.findall(r"stablehlo\.custom_call @([\w.]+)", text)))
    if called:
        return (f"expected what becomes operations of linalg, but got 'stablehlo.custom_call' of "
                f"{', '.join(called)}")
    said = error.error_diagnostics[0].message if error.error_diagnostics else error
    return f"expected what becomes operations of linalg, but IREE's conversion says: {said}"


def _set_roles(ir, module, entry, weights):
    """Sets the roles of contractions that JAX made for a backward pass: nothing else tells these
    where no gradient comes in. The first operand is one: JAX's rule for products has it there."""
    for operation in imports.walk(module.operation):
        location = imports.get_location_name(ir, operation.location) or ""
        if not imports.is_contraction(operation) or "transpose(" not in location:
            continue
        reads = [_find_argument(ir, operand, entry) for operand in operation.operands[:2]]
        role = "dgrad" if weights.intersection(reads) else "wgrad"
        operation.attributes["fp8.role"] = ir.Attribute.parse(f"#fp8.role<{role}>")


def _find_argument(ir, value, entry):
    """The number of the argument that a value is a transposed, reshaped or converted copy of,
    or None."""
    while not isinstance(value, ir.BlockArgument):
        operation = value.owner
        tensors = [operand for operand in operation.operands
                   if isinstance(operand.type, ir.RankedTensorType)]
        is_copy = operation.name.startswith("tensor.") and len(tensors) == 1
        if operation.name.startswith("linalg.") and len(tensors) == 2 and all(
                op.operation.name in ("linalg.yield", "arith.extf", "arith.truncf")
                for op in operation.regions[0].blocks[0].operations):
            is_copy = True
        if not is_copy:
            return None
        value = tensors[0]
    return value.arg_number if value.owner == entry.regions[0].blocks[0] else None
