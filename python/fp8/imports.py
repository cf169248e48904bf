"""What importers of PyTorch and JAX share: names for a program in linalg, and the
files that fp8-run and fp8-compile read.

Importers come with copies of MLIR of their own, with one Python interface;
functions here take the `ir` module of one.
"""

import argparse
import importlib.util
import os
import sys
from collections import Counter, namedtuple
from pathlib import Path

from fp8 import files, tensors

# An argument or a result: its fp8.name, or None, whether it is a weight or comes from a
# backward pass, and whether it is saved, by its name, in another function (fp8.saved).
ValueInfo = namedtuple("ValueInfo", "name is_weight is_gradient is_saved",
                       defaults=(False, False, False))
# What fp8-opt has of the dialects that importers leave.
DIALECTS = {"affine", "arith", "bufferization", "builtin", "cf", "complex", "func", "linalg",
            "math", "ml_program", "scf", "tensor"}


class UnsupportedProgram(Exception):
    """A program that does not become linalg; the message says what is in the way."""


def walk(operation):
    """An operation and those in it, the outer first."""
    yield operation
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from walk(inner.operation)


def get_location_name(ir, location):
    """The first name in a location, as fp8-annotate-gemms looks for it, or None."""
    if isinstance(location, ir.NameLoc):
        return location.name_str
    if isinstance(location, ir.FusedLoc):
        names = (get_location_name(ir, inner) for inner in location.locations)
        return next(filter(None, names), None)
    if isinstance(location, ir.CallSiteLoc):
        return get_location_name(ir, location.callee) or get_location_name(ir, location.caller)
    return None


def is_contraction(operation):
    """Whether an operation multiplies two operands and adds the products up."""
    if not operation.name.startswith("linalg.") or len(operation.regions) != 1:
        return False
    body = [op.operation.name for op in operation.regions[0].blocks[0].operations]
    # Two operands and what they are added to.
    return ("arith.mulf" in body and "arith.addf" in body and len(operation.operands) == 3
            and set(body) <= {"arith.mulf", "arith.addf", "arith.extf", "linalg.yield"})


def name_contractions(ir, module, get_layer):
    """Gives each contraction `fp8.name`: the layer that `get_layer` makes of the name in
    its location, and its role, if it has one; where that is None, the compiler makes one up."""
    copies = Counter()
    for operation in walk(module.operation):
        layer = is_contraction(operation) and get_layer(
            get_location_name(ir, operation.location) or "")
        if layer:
            if "fp8.role" in operation.attributes:
                layer += "." + str(operation.attributes["fp8.role"]).partition("<")[2][:-1]
            name = f"{layer}_{copies[layer]}" if copies[layer] else layer
            operation.attributes["fp8.name"] = ir.StringAttr.get(name)
            copies[layer] += 1


def name_values(ir, function, arguments, results):
    """Sets `fp8.name`, `fp8.weight` and `fp8.grad` of a function's arguments and results,
    ValueInfos in their order."""
    def merge(attribute, infos):
        old = (ir.ArrayAttr(function.attributes[attribute])
               if attribute in function.attributes else [ir.DictAttr.get({})] * len(infos))
        merged = []
        for info, attributes in zip(infos, old, strict=True):
            entries = {entry.name: entry.attr for entry in ir.DictAttr(attributes)
                       if "." not in entry.name}
            if info.name is not None:
                entries["fp8.name"] = ir.StringAttr.get(info.name)
            if info.is_weight:
                entries["fp8.weight"] = ir.UnitAttr.get()
            if info.is_gradient:
                entries["fp8.grad"] = ir.UnitAttr.get()
            if info.is_saved:
                entries["fp8.saved"] = ir.StringAttr.get(info.name)
            merged.append(ir.DictAttr.get(entries))
        function.attributes[attribute] = ir.ArrayAttr.get(merged)

    merge("arg_attrs", arguments)
    merge("res_attrs", results)


def check_dialects(module):
    """Raises UnsupportedProgram where an operation is none of those that fp8-opt has."""
    for operation in walk(module.operation):
        if operation.name.split(".")[0] not in DIALECTS:
            raise UnsupportedProgram(
                f"expected what becomes operations of linalg, but got '{operation.name}' from "
                f"{operation.location}")


def save(path, text, parameters):
    """Writes PATH, a program, and beside it PATH with the suffix .safetensors, its
    parameters by name; each whole or not at all."""
    tensors.save(Path(path).with_suffix(".safetensors"), parameters)
    files.write_text(path, text)


def make_arguments(infos, gradients):
    """The ValueInfos of a function's arguments, those named in `gradients` marked.

    Raises UnsupportedProgram where two have one name, or none has that of a gradient.
    """
    names = [info.name for info in infos]
    for name, count in Counter(names).items():
        if count > 1:
            raise UnsupportedProgram(f"expected one argument or parameter '{name}', but got {count}")
    for name in gradients:
        if name not in names:
            raise UnsupportedProgram(
                f"expected a gradient to be one of {', '.join(names)}, but got '{name}'")
    return [info._replace(is_gradient=info.name in gradients) for info in infos]


def load_object(spec):
    """What FILE.py:NAME names."""
    file, _, name = spec.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"expected FILE.py:NAME, but got '{spec}'")
    if not os.path.exists(file):
        raise argparse.ArgumentTypeError(f"'{file}': no such file")
    module_spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise argparse.ArgumentTypeError(f"'{file}' has no '{name}'")
    return getattr(module, name)


def run_importer(convert, framework, compute=None):
    """The command line of an importer: `convert` takes what MODEL.py:NAME returns, `name`
    and `gradients`, and returns a program and its parameters. `compute`, if there is one, takes
    the same without these two, and returns the arguments beside parameters and the framework's
    results, both as arrays by the names that the program has for them."""
    parser = argparse.ArgumentParser(
        description=f"Takes a program of {framework} to linalg, as fp8-run reads it")
    parser.add_argument("model", metavar="MODEL.py:NAME", type=load_object,
                        help="a function that returns what is to be imported")
    parser.add_argument("-o", dest="output", metavar="OUT.mlir", required=True,
                        help="the program; parameters go to OUT.safetensors")
    parser.add_argument("--name", default="main", help="of the program's function (main)")
    parser.add_argument("--gradient", dest="gradients", action="append", default=[],
                        metavar="ARGUMENT", help="mark an argument fp8.grad")
    if compute is not None:
        parser.add_argument("--check", action=argparse.BooleanOptionalAction, default=True,
                            help=f"run the program on the example's arguments and compare it with "
                                 f"{framework} (yes)")
    options = parser.parse_args()
    try:
        model = options.model()
        text, parameters = convert(*model, name=options.name, gradients=options.gradients)
        if compute is not None and options.check:
            _check(parser.prog, text, options.name, parameters, lambda: compute(*model))
        save(options.output, text, parameters)
    except (UnsupportedProgram, OSError) as error:
        parser.exit(1, f"{parser.prog}: error: {error}\n")


def _check(tool, text, name, parameters, compute):
    from fp8 import import_check
    try:
        arguments, expected = compute()
        import_check.check(text, name, {**parameters, **arguments}, expected)
    except import_check.Unchecked as error:
        print(f"{tool}: warning: the program was not compared: {error}", file=sys.stderr)
