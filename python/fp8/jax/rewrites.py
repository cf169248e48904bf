"""Operations of StableHLO as functions of others: IREE's conversion makes operations of its own of them, or none."""

from fp8 import imports
from fp8.jax import orders, scatters, windows

# Each makes the text of a function of the operands, or None.
_WRITERS = {"stablehlo.scatter": scatters.write, "stablehlo.select_and_scatter": windows.write_choice,
            "stablehlo.reduce_window": windows.write_scan, "stablehlo.sort": orders.write_sort, "chlo.top_k": orders.write_largest}


def rewrite(ir, module):
    """Has calls of functions in place of the module's operations that have a writer and are of a known kind."""
    for number, operation in enumerate(list(imports.walk(module.operation))):
        if operation.name not in _WRITERS:
            continue
        # No function of Python has a dot in its name.
        name = f"fp8.{operation.name.rpartition('.')[2]}_{number}"
        text = _WRITERS[operation.name](operation.operation, name)
        if text is None:
            continue
        made = ir.Module.parse(text)
        ir.InsertionPoint(module.body).insert(made.body.operations[0].operation.detach_from_parent())
        with operation.location, ir.InsertionPoint(operation):
            call = ir.Operation.create("func.call", [result.type for result in operation.results], list(operation.operands),
                                       {"callee": ir.FlatSymbolRefAttr.get(name)})
        for result, other in zip(operation.results, call.results, strict=True):
            result.replace_all_uses_with(other)
        operation.operation.erase()
