"""Takes a JAX function to linalg, as fp8-run and fp8-compile read it.

usage: from_jax.py MODEL.py:NAME -o OUT.mlir [--name FUNCTION] [--gradient ARGUMENT]...

NAME is a function that returns a function, its parameters, a tree of arrays, and a
tuple of example arguments. OUT.mlir gets a function of the leaves of the parameters,
by their paths there, and then of the arguments; OUT.safetensors gets the values of
the first. Contractions are called after the `jax.named_scope` that they stand in.

Needs jax==0.10.2 and iree-base-compiler==3.13.0.
"""

import inspect
import re

import jax
import numpy as np
from fp8 import imports
from iree.compiler import ir, passmanager

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


def get_layer(location):
    """The scopes of a location such as `jit(f)/transpose(jvp(layer0))/dot_general`, or
    None."""
    scopes = location.split("/")[:-1]
    while any(map(TRANSFORMED.fullmatch, scopes)):
        scopes = [TRANSFORMED.sub(r"\1", scope) for scope in scopes]
    scopes = [scope for scope in scopes if scope and not OWN_SCOPE.fullmatch(scope)]
    return ".".join(scopes) or None


def convert(function, parameters, arguments, name="main", gradients=()):
    """The program of a function as text, and its parameters by name.

    Raises UnsupportedProgram, and what JAX and IREE raise.
    """
    own_name, *names = inspect.signature(function).parameters
    named = {path or own_name: np.asarray(leaf) for path, leaf in name_leaves(parameters)}
    ports = [imports.Port(path, value.ndim >= 2) for path, value in named.items()]
    for own_name, argument in zip(names, arguments, strict=True):
        ports += [imports.Port(path) for path, _ in name_leaves(argument, own_name)]
    ports = imports.make_arguments(ports, gradients)
    lowered = jax.jit(function, keep_unused=True).lower(parameters, *arguments)
    # A tuple's have numbers for names.
    results = [imports.Port(path if path[:1].isalpha() else None)
               for path, _ in name_leaves(lowered.out_info)]
    text = lowered.compiler_ir("stablehlo").operation.get_asm(enable_debug_info=True)

    with ir.Context() as context:
        module = ir.Module.parse(text)
        passmanager.PassManager.parse(PIPELINE).run(module.operation)
        context.allow_unregistered_dialects = True
        imports.check_dialects(module)
        entry = next(op for op in module.body.operations
                     if op.operation.name == "func.func" and op.name.value == "main")
        imports.name_contractions(ir, module, get_layer)
        imports.name_ports(ir, entry, ports, results)
        entry.attributes["sym_name"] = ir.StringAttr.get(name)
        for attribute in list(module.operation.attributes):
            if "." in attribute:  # mhlo.num_partitions and the like.
                del module.operation.attributes[attribute]
        return str(module), named


if __name__ == "__main__":
    imports.run_importer(convert, "JAX")
