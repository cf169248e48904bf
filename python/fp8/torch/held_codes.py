"""Codes of weights that an optimizer writes, in memory that stays where it is."""

import torch

import fp8
from fp8.torch import shard_programs
from fp8.torch.linear_programs import ELEMENTS
from fp8.torch.steps import get_rows
from fp8.torch.update_text import Target


class HeldCodes:
    """The codes of a layer's weight, both ways or in one order, and the inverses of their scales.

    `values` are those that programs of the layer take in place of the weight. They are those of the
    weight as it is, while it is what it was when `mark` was called, and its scales are.
    """

    def __init__(self, layer, dtype):
        self.recipe, self.dtype = layer.recipe, dtype
        self.codes = shard_programs.find_codes(layer.recipe)
        self.is_delayed = layer.recipe.partition(",")[0] == "delayed"
        has_one_order = shard_programs.keeps_one_order(layer.recipe, layer._options)
        self.target = Target(self.codes, ELEMENTS[dtype], self.is_delayed, has_one_order)
        sizes, device = layer.weight.shape, layer.weight.device
        kind = shard_programs.get_dtype(self.codes)
        self.values = {"weight.codes": torch.empty(sizes, dtype=kind, device=device)}
        if not has_one_order:
            self.values["weight.codes_1"] = torch.empty(sizes[::-1], dtype=kind, device=device)
        self._key = self._rows = self._state = self._place = None
        # What programs of the optimizer take, by the names of their arguments.
        self.arguments = {name.removeprefix("weight."): value for name, value in self.values.items()}
        if self.is_delayed:
            # Its own, since a state's becomes that of the next step, whose codes are not there yet: a CUDA graph
            # does not see that these are dropped.
            inverse = self.arguments["inverse"] = torch.empty(1, 1, device=device)
            self.values["weight.scale_inv"] = inverse
            if not has_one_order:
                self.values["weight.scale_inv_1"] = inverse
        else:
            self._add_inverses(sizes, device)

    def _add_inverses(self, sizes, device):
        def make(block):
            grid = [1 if each is None else -(-size // each) for size, each in zip(sizes, block)]
            return torch.empty(grid, device=device)
        forward = make(self.codes.forward)
        self.arguments["inverse"] = self.values["weight.scale_inv"] = forward
        if self.target.has_one_order:
            return
        if self.codes.forward == self.codes.backward and 1 in forward.shape:
            self.values["weight.scale_inv_1"] = forward.view(forward.shape[::-1])
            return
        backward = make(self.codes.backward)
        is_line = 1 in backward.shape
        self.values["weight.scale_inv_1"] = backward.view(backward.shape[::-1]) if is_line else (
            backward.new_empty(backward.shape[::-1]))
        self.arguments["inverse_1"] = backward if is_line else self.values["weight.scale_inv_1"]

    def bind(self, unit):
        """Makes the scales and the row of amaxes those of a Unit's state. False if it has none yet."""
        if not self.is_delayed:
            return True
        if unit.state is None:
            return False
        if self._state is not unit.state:
            # Asking for names takes the state from a GPU, where it then is anew.
            self._place, _ = unit.find_weight_slot()
            self._state, self._rows = unit.state, None
        rows = get_rows(unit.state, self.values["weight.codes"].device)
        key = tuple(row.data_ptr() for row in rows)
        if key != self._rows:
            one = [row[self._place:self._place + 1].view(1, 1) for row in rows]
            self.arguments.update(zip(("row", "scale", "factor"), one))
            self._rows = key
        return True

    def find_copy(self, is_master=False):
        """What has to be copied behind a step, or None: programs write all that is theirs."""
        return None

    def mark(self, weight):
        """Codes are those of a weight as it is now."""
        self._key = weight.data_ptr(), weight._version, weight.shape

    def drop(self):
        self._key = None

    def get(self, weight):
        """`values`, or None if they are not those of the weight as it is."""
        return self.values if self._key == (weight.data_ptr(), weight._version, weight.shape) else None


def find_overlaps(model):
    """Names of other parameters over the memory of one, by its id: what changes one changes the other, whose version says
    nothing of it."""
    spans = {}
    for name, each in model.named_parameters():
        if type(each.data) is torch.Tensor and each.layout is torch.strided and each.numel() and each.device.type != "meta":
            start = each.data_ptr()
            size = 1 + sum((count - 1) * step for count, step in zip(each.shape, each.stride()))
            spans.setdefault(each.device, []).append((start, start + size * each.element_size(), name, each))
    found = {}
    for others in spans.values():
        before = []
        for span in sorted(others, key=lambda span: span[0]):
            before = [each for each in before if each[1] > span[0]]
            for other in before:
                found.setdefault(id(other[3]), []).append(span[2])
                found.setdefault(id(span[3]), []).append(other[2])
            before.append(span)
    return found


def find_reason(layer, names, overlaps):
    """Why the codes of a layer's weight are not written by an optimizer, or None; `names` are of all layers
    by the id of their weight, and `overlaps` those that find_overlaps says."""
    from fp8.torch.sharded import find_reason as find_other
    from fp8.torch.coded_weights import is_coded
    weight = layer.weight
    if is_coded(weight):
        return None
    if type(weight.data) is not torch.Tensor or not weight.is_contiguous():
        return "its weight is sharded, or no dense tensor"
    if len(names[id(weight)]) > 1:
        return f"it shares its weight with {', '.join(names[id(weight)])}"
    if id(weight) in overlaps:
        return f"it shares its memory with {', '.join(overlaps[id(weight)])}"
    if weight.dtype not in ELEMENTS:
        return f"its weight is of {weight.dtype}"
    if layer._amax_groups:
        return "its amaxes are shared between ranks"
    return find_other(layer)
