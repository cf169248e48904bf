"""Calls of PyTorch's flex_attention in graphs that torch.compile captures, which have functions over scores and masks as graphs
of their own: those that `fp8.attention` can say become it."""

import math
import operator

import torch
from torch.utils._python_dispatch import _disable_current_modes

from fp8.errors import UnsupportedError
from fp8.torch import (attention_calls, attention_graphs, attention_masks, attention_ops, attention_transforms, flex,
                       flex_ops)
from fp8.torch.attention_programs import ELEMENTS
from fp8.torch.dense import make_dense
from fp8.torch.flex_scores import Reading, Scores
from fp8.torch.scaled_dot_product import _lies_heads_first

_CALL = torch.ops.higher_order.flex_attention
# The first two of a BlockMask's are its lengths, then tensors of blocks; the last three are sizes of a block and the function.
_BLOCKS = slice(2, 6)
_LOG_2 = math.log(2)


def _get_value(value):
    return attention_graphs._get_value(value)


class _Found:
    """A node's operands by name, and those tensors of its functions that are operands of ours."""

    def __init__(self, graph, node):
        names = ("query", "key", "value", "score_mod", "block_mask", "scale", "kernel_options", "score_buffers", "mask_buffers")
        self.graph, self.bound = graph, {**dict(zip(names, node.args)), **node.kwargs}
        mask = self.bound["block_mask"]
        self.block_size = mask[-3:-1]
        self.score_mod, self.mask_mod = (self._get_module(x) for x in (self.bound["score_mod"], mask[-1]))
        self.operands = []
        self.tensors = {"score_mod": [self._place(x) for x in self.bound.get("score_buffers", ())],
                        "mask_mod": [self._place(x) for x in self.bound.get("mask_buffers", ())],
                        "blocks": [self._place(x) for x in mask[_BLOCKS]]}

    def _get_module(self, node):
        return self.graph.module.get_submodule(node.target) if isinstance(node, torch.fx.Node) else None

    def _place(self, node):
        """The number of an operand, or a constant: what the graph makes of nothing that it is given."""
        if not isinstance(node, torch.fx.Node):
            return node
        constant = self.graph._evaluate(node) if node.op != "placeholder" else None
        if constant is not None:
            return constant
        if node not in self.operands:
            self.operands.append(node)
        return self.operands.index(node)

    def is_watched(self, node):
        """Whether a tensor that a graph is given comes as it is, so that its version says when it was written into."""
        value = _get_value(node)
        return node.op == "placeholder" and node not in self.graph._written and value.is_contiguous()

    def make_call(self):
        constants = [x for each in self.tensors.values() for x in each if isinstance(x, torch.Tensor)]
        modules = [x for x in (self.score_mod, self.mask_mod) if x is not None]
        # Constants and tensors that functions hold are others in each.
        holds = constants or any(list(x.buffers()) + list(x.parameters()) or any(n.op == "get_attr" for n in x.graph.nodes)
                                 for x in modules)
        text = None if holds else repr((*(x.code for x in modules), self.tensors, self.block_size))
        return flex_ops.Call(self.score_mod, self.mask_mod, self.tensors, [self.is_watched(x) for x in self.operands],
                             self.block_size, text)


def _stand_in(value):
    """A tensor like one that is not known yet: numbers of it are nowhere taken for factors or caps."""
    sizes = [size if isinstance(size, int) else 1 for size in value.shape]
    return torch.full((), math.nan if value.is_floating_point() else 0, dtype=value.dtype, device=value.device).expand(sizes)


def _read(found, call):
    """Raises UnsupportedError for functions that `fp8.attention` cannot say. Returns whether something is added to scores."""
    values = [_get_value(x) for x in found.operands]
    score_mod, blocks = call.make_functions([_stand_in(x) for x in values])
    device = _get_value(found.bound["query"]).device
    scores = Scores(score_mod, device) if score_mod is not None else None
    if blocks is not None:
        Reading(blocks.mask_mod, device)
    return scores is not None and bool(scores.added)


def _find_reason_of_operands(found, replays):
    values = [_get_value(x) for x in found.operands]
    if not all(isinstance(x, torch.Tensor) for x in values):
        return "functions over scores with numbers that change"
    if torch.is_grad_enabled() and any(x.requires_grad for x in values):
        return "functions over scores with a learned tensor"
    if replays and values:
        return "functions over scores whose tensors nobody can look at in a CUDA graph"
    return None


def _find_reason(found, node, settings, choice, replays):
    """Why a call is left to PyTorch, or None."""
    values = [_get_value(found.bound[name]) for name in ("query", "key", "value")]
    scale, users = found.bound.get("scale"), list(node.users)
    if not all(isinstance(x, torch.Tensor) for x in values) or not isinstance(scale, (int, float)):
        return "operands that are not known"
    if not all(user.target is operator.getitem and user.args[1] in (0, 1) for user in users):
        return "the largest scores are a result"
    needs_gradient = torch.is_grad_enabled() and any(x.requires_grad for x in values)
    if needs_gradient and any(user.args[1] == 1 and user.users for user in users):
        return "logarithms of sums with a gradient"
    if choice == "auto":
        return "functions over scores, unless attention is 'fp8'"
    return attention_calls.find_reason(settings, *values, None, 0.0, scale) or _find_reason_of_operands(found, replays)


def _find_given(found, node_values):
    """The operands that a graph is given now, or None where it computes some."""
    given = [node_values.get(x) for x in found.operands]
    is_known = all(isinstance(x, torch.Tensor) and type(x) in (torch.Tensor, torch.nn.Parameter) for x in given)
    return given if is_known else None


def _find_reason_of_plan(found, call, node_values):
    """Why functions stay PyTorch's, or None, and what they are read as."""
    query, key = (_get_value(found.bound[name]) for name in ("query", "key"))
    with _disable_current_modes(), torch.no_grad():
        try:
            adds = _read(found, call)
        except UnsupportedError as error:
            return str(error).replace("expected ", "", 1), None
        given, sizes = _find_given(found, node_values), (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
        plan = None
        if given is not None and all(isinstance(size, int) for size in sizes):
            plan = call.find_plan(sizes, query.device, given)
    needs_gradient = torch.is_grad_enabled() and any(_get_value(found.bound[name]).requires_grad for name in
                                                     ("query", "key", "value"))
    has_mask = adds if plan is None else plan.mask is not None
    if has_mask and needs_gradient and query.device.type == "cuda":
        return "what is added to scores, and masks with gaps, have no kernel of a gradient on a GPU", None
    return None, _describe(plan)


def _describe(plan):
    """What functions are read as, as far as it is known."""
    if plan is None:
        return "functions over scores"
    parts = [] if plan.window == (None, None) else ["causal" if plan.window == (None, 0) else f"window {plan.window}"]
    parts += ["ranges of keys"] * (plan.ranges is not None) + ["mask"] * (plan.mask is not None)
    parts += [] if plan.cap is None else [f"cap {plan.cap:g}"]
    return ", ".join(["flex_attention", *parts])


def compute(settings, number, is_transposed, with_sums, query, key, value, *operands, scale, unit=-1):
    """A call that `replace` has put into a graph. Logarithms of sums are to the base of 2, as PyTorch's operation has them."""
    settings = attention_calls.get(settings)
    options = attention_ops.Options(_lies_heads_first((query, key, value)), scale, format=settings.format,
                                    accumulate=settings.accumulate if settings.format else None, unit=unit)
    y, sums = flex_ops.attend(query, key, value, operands, number, with_sums, options)
    if is_transposed is not None:
        y = make_dense(y.transpose(1, 2)).transpose(1, 2) if is_transposed else make_dense(y)
    return y, sums / _LOG_2 if with_sums else sums


def _take(module, node, found, call, settings, make_unit):
    """Puts a call of ours in a node's place."""
    with_sums = any(user.args[1] == 1 for user in node.users)
    options = {"scale": float(found.bound["scale"])}
    if settings.recipe is not None:
        options["unit"] = make_unit(settings.recipe).number
    operands = [found.bound[name] for name in ("query", "key", "value")] + found.operands
    is_transposed = attention_graphs._is_transposed(node)
    with module.graph.inserting_before(node):
        made = module.graph.call_function(compute, (settings.number, call.number, is_transposed, with_sums, *operands), options)
    key = "val" if "val" in node.meta else "example_value"
    made.meta = {**node.meta, key: tuple(node.meta[key][:2])}
    node.replace_all_uses_with(made)
    functions = [x for x in (found.bound["score_mod"], found.bound["block_mask"][-1]) if isinstance(x, torch.fx.Node)]
    module.graph.erase_node(node)
    for function in functions:
        if not function.users:
            module.graph.erase_node(function)


def replace(module, inputs, settings, choice, replays, make_unit=None):
    """Puts calls of ours in the place of PyTorch's into a graph of Dynamo, which is given `inputs`. Returns those calls, which
    have to live as long as it, and reasons for those that stay."""
    nodes = [node for node in module.graph.nodes if node.target is _CALL]
    if not nodes:
        return [], []
    graph, made, reasons = attention_masks.Graph(module), [], []
    values = dict(zip((node for node in module.graph.nodes if node.op == "placeholder"), inputs))
    for node in nodes:
        found = _Found(graph, node)
        reason = _find_reason(found, node, settings, choice, replays)
        if reason is None:
            call = found.make_call()
            reason, text = _find_reason_of_plan(found, call, values)
        if reason is not None:
            attention_calls.note(settings.number, "{}", reason)
            reasons.append(reason)
            continue
        query, key = (_get_value(found.bound[name]) for name in ("query", "key"))
        attention_calls.note_taken(settings.number, "{} heads over {} of {} columns, {} in {}", query.shape[1], key.shape[1],
                                   query.shape[3], text, attention_transforms.describe(settings.format, None, None) or ELEMENTS[query.dtype])
        _take(module, node, found, call, settings, make_unit)
        made.append(call)
    module.graph.lint()
    module.recompile()
    return made, reasons
