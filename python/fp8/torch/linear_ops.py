"""Custom operations of PyTorch that call programs of linear layers."""

import hashlib
import itertools
import math
import os
import tempfile
import weakref

import torch

import fp8
from fp8 import _core
from fp8.errors import UnsupportedError
from fp8.formats import DTYPES
from fp8.torch import operations, seeds, shared_codes
from fp8.torch.coded_results import CodedResult, turn
from fp8.torch.dense import make_dense, wait
from fp8.torch.gathered import BACKWARD, FORWARD, is_gathered
from fp8.torch.linear_programs import ELEMENTS, Shape, reuses_activations
from fp8.torch.shard_programs import find_codes, get_dtype, keeps_one_order, read_rule

_numbers = itertools.count()
# Bits of a Unit's number that count.
_COUNTED = 24
_units = weakref.WeakValueDictionary()


def _make_number(*what):
    """A number for what computes by such programs. Graphs have it, which PyTorch keeps between processes: for another recipe,
    by which results have other sizes, it has to be another one."""
    digest = hashlib.sha256(repr((_core.get_versions(), *what)).encode()).digest()
    return int.from_bytes(digest[:4], "little") << _COUNTED | next(_numbers)


class _Function:
    """A function of a program, called with tensors by the names of its arguments."""

    def __init__(self, function):
        self._function = function
        self.arguments = tuple(info.name for info in function.arguments)
        self.results = tuple(info.name for info in function.results)
        self.infos = function.results
        # What tells codes apart that are returned beside the first result.
        self.kept = tuple((info.name, info.dtype, info.shape and tuple(info.shape)) for info in self.infos[1:]) or None

    def __call__(self, values, state):
        """The results in their order, a list."""
        function = self._function
        results = function(*[values[name] for name in self.arguments],
                           state=state if function.takes_state else None)
        return list(results) if isinstance(results, tuple) else [results]

    def prepare(self, calls, kind, names, values, state):
        """Adds it to _core.PreparedCalls of `values`, the names of which are `names`."""
        order = [names.index(name) for name in self.arguments]
        self._function.prepare(calls, kind, values, order, state)


# The numbers that functions have among prepared calls.
_KINDS = {"forward": 0, "train": 1, "backward": 2, "dgrad": 3, "wgrad": 4, "reuse": 5, "coded_bf16": 6, "coded_f16": 7,
          "coded_f32": 8}
# Codes do not say what type results have.
_CODED = {dtype: f"coded_{element}" for dtype, element in ELEMENTS.items()}


class Unit:
    """What computes one layer under one recipe: programs, and a state if the recipe has one.

    Each backward ends a step, unless `steps` is off; a forward that activation checkpointing
    repeats before it so has the scales of the first one. With `caches_weight` the weight is
    quantized once in a step, and its codes are kept until the step ends. With `is_transposed` it
    is [inputs, outputs].
    """

    # Whether another one may have kept what its backward takes of x.
    shares_codes = True
    # Whether graphs for any number of rows call it.
    has_any_rows = False

    def __init__(self, programs, saved=None, caches_weight=False, is_transposed=False, told=()):
        self.programs, self.state = programs, None
        self.steps, self.caches_weight = True, caches_weight
        self.is_transposed = is_transposed
        # Whether a backward takes the codes of the weight that a forward takes.
        self.has_one_order = programs is not None and keeps_one_order(programs.recipe, programs.options)
        # Whether it multiplies with codes of x that another one has made.
        self.reuses = programs is not None and reuses_activations(programs.recipe, programs.options)
        # Attention has programs of its own: it is `told` what graphs depend on.
        self.number = _make_number(*(told if programs is None else (
            programs.recipe, programs.target, sorted(programs.options.items()), is_transposed)))
        self._saved = saved
        self.used, self._functions, self._weight = {}, {}, None
        self.dtype = None  # That of activations, in the last forward.
        self._prepared, self.before_call = _core.PreparedCalls(), None
        # A held_codes.HeldCodes, where an optimizer writes codes of the weight.
        self.held = None
        # Whether a weight that is gathered as codes may have no scale of a step before.
        self.is_first_gather = True
        # Which values of it this step has the amax of.
        self.gathered_key = self._weight_slot = None
        _units[self.number] = self

    def _get(self, name, rows, weight, has_bias, device=None, dtype=None):
        """A function for that many rows, None for one for any number; `dtype` is what the weight is
        rounded to."""
        key = name, rows, dtype or weight.dtype, (device or weight.device).type, weight.shape
        return self._functions.get(key) or self._find(key, has_bias)

    def _find(self, key, has_bias):
        name, rows, dtype, device, weight_sizes = key  # A parameter may be replaced by one of another size.
        shape = self._make_shape(rows, weight_sizes, dtype, has_bias)
        program = self.programs.get(shape, device)
        function = program.functions[name]
        if self.state is None and any(each.takes_state for each in program.functions.values()):
            self._make_state(program)
        self.used[id(program)] = program
        self._functions[key] = _Function(function)
        return self._functions[key]

    def get_sizes(self, weight_sizes):
        """Sizes of a weight: inputs and outputs."""
        return tuple(weight_sizes if self.is_transposed else reversed(weight_sizes))

    def find_coded(self, x, weight, has_bias):
        """What multiplies a CodedResult, (function, names of codes, whether a backward wants them turned), or None if the
        recipe has other codes of x than these. Its programs have the slots of all others, of which that of x is not used."""
        key = "coded", *x.shape, weight.shape, x.dtype, x.codes.dtype, x.device.type, has_bias
        if key not in self._functions:
            self._functions[key] = self._find_coded(x, weight, has_bias)
        return self._functions[key]

    def _find_coded(self, x, weight, has_bias):
        usual = self._get("train", x.shape[0], weight, has_bias, dtype=x.dtype)
        shape = self._make_shape(x.shape[0], weight.shape, x.dtype, has_bias)._replace(takes_codes=True)
        program = self.programs.get(shape, x.device.type)
        function = program.functions["forward"]
        names = [info.name for info in function.arguments[:2]]
        kept = [(tuple(info.shape), _DTYPES[info.dtype]) for info in usual.infos[1:]]
        given = [(tuple(info.shape), _DTYPES[info.dtype]) for info in function.arguments[:2]]
        rows, columns = x.shape
        wanted = [((rows, columns), x.codes.dtype), ((1, 1), torch.float32)]
        # Shapes do not tell where there are as many rows as columns.
        is_turned = f"{names[0]}_1" in [info.name for info in program.functions["wgrad"].arguments]
        sizes = (columns, rows) if is_turned else (rows, columns)
        if given != wanted or kept != [(sizes, x.codes.dtype), wanted[1]] or function.takes_state and (
                list(fp8.State(program).slots) != list(self.state.slots)):
            return None
        self.used[id(program)] = program
        return _Function(function), names, is_turned

    def forward_coded(self, x, weight, bias, saves):
        """The same as `forward` of a CodedResult that `find_coded` takes: its codes are multiplied, and kept."""
        if self.before_call:
            self.before_call()
        self.dtype = x.dtype
        own, codes = self._list_weight(weight, x.dtype, ""), make_dense(x.codes)
        results = self._prepared.run(_KINDS[_CODED[x.dtype]], [codes, *own.values(), x.factor, bias], False)
        if results is None:
            results = self._forward_coded(x, codes, weight, bias, own)
        if saves:
            *_, is_turned = self.find_coded(x, weight, bias is not None)
            results += [turn(codes) if is_turned else codes, x.factor]
        return results

    def _forward_coded(self, x, codes, weight, bias, own):
        has_bias = bias is not None
        with torch.no_grad():
            function, names, _ = self.find_coded(x, weight, has_bias)
            values = self._get_weight(weight, x.shape[0], has_bias, not self.steps, x.dtype)
            results = function({**dict(zip(names, (codes, x.factor))), "bias": bias, **values}, self.state)
        self._prepare(_CODED[x.dtype], function, (names[0], *own, names[1], "bias"), [codes, *own.values(), x.factor, bias])
        return results

    def _make_shape(self, rows, weight_sizes, dtype, has_bias):
        inputs, outputs = self.get_sizes(weight_sizes)
        return Shape(rows, inputs, outputs, dtype, has_bias, self.caches_weight,
                     self.is_transposed)

    def _make_state(self, program):
        self.state, self._prepared = fp8.State(program), _core.PreparedCalls()
        seeds.seed(self.state)
        if self._saved is not None:
            with tempfile.TemporaryDirectory(prefix="fp8-") as folder:
                path = os.path.join(folder, "state.safetensors")
                with open(path, "wb") as file:
                    file.write(self._saved)
                self.state.load(path)
            self._saved = None

    def get_saved(self):
        """The state as the bytes of a file, or None: nothing has been computed."""
        if self.state is None:
            return self._saved
        with tempfile.TemporaryDirectory(prefix="fp8-") as folder:
            path = os.path.join(folder, "state.safetensors")
            self.state.save(path)
            with open(path, "rb") as file:
                return file.read()

    def set_saved(self, saved):
        self.state, self._saved, self._weight = None, saved, None
        self.is_first_gather, self.gathered_key = True, None
        self._functions, self._prepared = {}, _core.PreparedCalls()
        self._drop_held()

    def _drop_held(self):
        """Codes whose scales are no more those of the state are none."""
        if self.held is not None and self.held.is_delayed:
            self.held.drop()

    def hold(self, held):
        """From now on programs take codes of the weight, where they can those that an optimizer writes."""
        if self.held is not held:
            self.held = held
            self.take_codes()

    def end_step(self):
        """Also lets go of the codes of the weight."""
        self._weight = self.gathered_key = None
        self._drop_held()
        if self.state is not None:
            self.state.end_step()

    def take_codes(self):
        """From now on programs take codes of the weight."""
        if not self.caches_weight and self.state is not None:
            # That of programs which quantize the weight themselves has other slots: its histories go on in a new one.
            self._saved, self.state = self.get_saved(), None
        self.caches_weight, self._weight = True, None
        self._functions, self._prepared = {}, _core.PreparedCalls()

    def make_state(self, sizes, dtype, device, has_bias, rows=None):
        """Makes the state, if there is none and the recipe has one, for a weight of such sizes."""
        if self.state is None:
            if rows is None:  # All programs of a layer have one state.
                rows = self.programs.find_rows(self._make_shape(None, sizes, dtype, has_bias), device.type)
            self._get("forward", rows, torch.empty(sizes, dtype=dtype, device="meta"), has_bias,
                      device)

    def find_weight_slot(self):
        """The place and the name of the weight's slot in the state."""
        # They stay, and asking a GPU's state for them waits for it.
        if self._weight_slot is not None and self._weight_slot[0] is self.state:
            return self._weight_slot[1:]
        for place, slot in enumerate(self.state.slots.values()):
            if slot.operand == "weight":
                self._weight_slot = self.state, place, slot.name
                return place, slot.name
        raise UnsupportedError("expected a state with the scale of a weight, but got one without")

    def _get_weight(self, weight, rows, has_bias, reuse, dtype, direction=FORWARD):
        """What functions may take for the weight, by names."""
        if is_gathered(weight):
            return weight._content.get_values(direction, self.has_one_order)
        if not self.caches_weight:
            return {"weight": weight}
        held = self._get_held(weight, dtype)
        if held is not None:
            return held
        weight = weight.to(dtype)
        # What a graph is captured with is computed in each of its replays.
        captures = weight.is_cuda and torch.cuda.is_current_stream_capturing()
        key = weight.data_ptr(), weight._version, weight.dtype, captures
        if not reuse or self._weight is None or self._weight[0] != key:
            quantize = self._get("quantize_weight", rows, weight, has_bias, dtype=dtype)
            codes = quantize({"weight": weight}, self.state)
            # With the tensor, so that no other one comes to be where it is.
            self._weight = key, {"weight": weight, **dict(zip(quantize.results, codes))}
        return self._weight[1]

    def find_codes(self, rows, weight, has_bias, dtype):
        """The ValueInfos of what `forward` says of x besides y, with None for `rows`."""
        return self._get("train", rows, weight, has_bias, dtype=dtype).infos[1:]

    def find_kept(self, x, weight, bias):
        """What tells codes apart that `train` returns of x, or None: it returns none."""
        return self._get("train", x.shape[0], weight, bias is not None, dtype=x.dtype).kept

    def _prepare(self, name, function, names, values):
        """Lets calls of the same sizes go without what found the function."""
        if not self.caches_weight or "weight" not in names:
            function.prepare(self._prepared, _KINDS[name], names, values, self.state)

    def _get_held(self, weight, dtype):
        """Codes that an optimizer has written of a weight that is rounded to a type, or None."""
        if self.held is None or self.held.dtype != dtype or is_gathered(weight):
            return None
        return self.held.get(weight)

    def _list_weight(self, weight, dtype, suffix):
        """What prepared calls take for the weight, by names."""
        if is_gathered(weight):
            return weight._content.get_values(BACKWARD if suffix else FORWARD, self.has_one_order)
        held = self._get_held(weight, dtype)
        if held is None:
            return {"weight": weight}
        suffix = "" if self.has_one_order else suffix
        return {name: held[name] for name in (f"weight.codes{suffix}", f"weight.scale_inv{suffix}")}

    def forward(self, x, weight, bias, saves=False):
        """[y], with `saves` also codes and factors of x, if the backward takes them for x."""
        if type(x) is CodedResult:
            return self.forward_coded(x, weight, bias, saves)
        if self.before_call:
            self.before_call()
        name, self.dtype = "train" if saves else "forward", x.dtype
        own = self._list_weight(weight, x.dtype, "")
        results = self._prepared.run(_KINDS[name], [x, *own.values(), bias], False)
        return self._forward(name, x, weight, bias, own) if results is None else results

    def forward_recorded(self, x, weight, bias, saves):
        """The same for a graph. One for any number of rows takes codes that programs for any number say, also where those
        of so many keep x. A graph for so many takes the first result alone."""
        rows, has_bias = x.shape[0], bias is not None
        if saves and self.has_any_rows and type(x) is not CodedResult and not (
                self.find_codes(rows, weight, has_bias, x.dtype)) and self.find_codes(None, weight, has_bias, x.dtype):
            self.dtype = x.dtype
            return self._forward("train", x, weight, bias, {}, None)
        return self.forward(x, weight, bias, saves)

    def _forward(self, name, x, weight, bias, own, *any_rows):
        has_bias, (rows,) = bias is not None, any_rows or x.shape[:1]
        with torch.no_grad():
            function = self._get(name, rows, weight, has_bias, dtype=x.dtype)
            # Outside of a step of several calls each forward is of the weight as it is then.
            values = self._get_weight(weight, rows, has_bias, not self.steps, x.dtype)
            results = function({"x": x, "bias": bias, **values}, self.state)
        if not any_rows:
            self._prepare(name, function, ("x", *own, "bias"), [x, *own.values(), bias])
        return results

    def find_code_type(self):
        """The type of codes of x, where this `reuses` them."""
        return get_dtype(find_codes(self.programs.recipe, "activation"))

    def encode(self, x):
        """x as `forward` quantizes it, where this `reuses` codes: an fp8.ScaledTensor."""
        spec = find_codes(self.programs.recipe, "activation")
        return fp8.quantize(make_dense(x), spec.format, spec.forward, **read_rule(spec.rule))

    def reuse(self, x, codes, weight, bias):
        """[y] of codes and factors of x that `forward` of another Unit said, whose `find_kept` is that of this one."""
        if not self.reuses:
            return self.forward(x, weight, bias)
        if self.before_call:
            self.before_call()
        self.dtype = x.dtype
        own = self._list_weight(weight, x.dtype, "")
        # The first two values tell prepared calls apart: codes of any x have one type.
        results = self._prepared.run(_KINDS["reuse"], [x, *own.values(), *codes, bias], False)
        return self._reuse(x, codes, weight, bias, own) if results is None else results

    def _reuse(self, x, codes, weight, bias, own):
        rows, has_bias = x.shape[0], bias is not None
        with torch.no_grad():
            # A graph for any number of rows keeps what programs for any number say.
            for rows in (x.shape[0], None):
                infos = self._get("train", rows, weight, has_bias, dtype=x.dtype).infos[1:]
                if len(infos) == len(codes) and all(
                        size in (None, own) for info, each in zip(infos, codes) for size, own in zip(info.shape, each.shape)):
                    break
            names = [info.name for info in infos]
            function = self._get("reuse", rows, weight, has_bias, dtype=x.dtype)
            if "x" in function.arguments:  # Its product is in high precision.
                return self.forward(x, weight, bias)
            values = {"bias": bias, **dict(zip(names, codes)), **self._get_weight(weight, rows, has_bias, not self.steps, x.dtype)}
            results = function(values, self.state)
        self._prepare("reuse", function, ("x", *own, *names, "bias"), [x, *own.values(), *codes, bias])
        return results

    def backward(self, dy, saved, weight, has_bias, needs_x, needs_weight):
        """Those of dx, dweight and dbias that are needed, in this order. `saved` is what
        `forward` said besides y, or [x]."""
        name = "backward" if needs_x and needs_weight else "dgrad" if needs_x else "wgrad"
        results, has_ended = self.run_backward(name, dy, saved, weight, has_bias, self.steps)
        if has_ended:
            self._drop_held()
        elif self.steps:
            self.end_step()
        return results

    def run_backward(self, name, dy, saved, weight, has_bias, ends):
        """Results of one of the functions of a backward, and whether the state's step has ended with them, which
        `ends` allows."""
        # Codes that were gathered are turned for what takes them alone.
        own = {} if name == "wgrad" and is_gathered(weight) else self._list_weight(weight, dy.dtype, "_1")
        results = self._prepared.run(_KINDS[name], [dy, *own.values(), *saved], ends) if own else None
        if results is not None:
            return results, ends
        return self._backward(name, [dy, weight, *saved], has_bias, own), False

    def _backward(self, name, tensors, has_bias, own):
        dy, weight, *saved = tensors
        with torch.no_grad():
            # A graph for any number of rows keeps what programs for any number say.
            for rows in (dy.shape[0], None):
                names = self._get("train", rows, weight, has_bias, dtype=dy.dtype).results[1:] or ("x",)
                if name == "dgrad" or len(names) == len(saved):
                    break
            function = self._get(name, rows, weight, has_bias, dtype=dy.dtype)
            values = {"dy": dy, **dict(zip(names, saved))}
            if name != "wgrad":
                values.update(own if is_gathered(weight) else
                              self._get_weight(weight, rows, has_bias, True, dy.dtype, BACKWARD))
            results = function(values, self.state)
        if own:
            self._prepare(name, function, ("dy", *own, *names), [dy, *own.values(), *saved])
        return results


def get_unit(number):
    """The Unit of that number. Raises ArgumentError if it is gone."""
    unit = _units.get(number)
    if unit is None:
        raise fp8.ArgumentError("expected the layer of a compiled function to be alive, but it "
                                "is gone")
    return unit


def find_unit(number):
    """The same, or None if it is gone."""
    return _units.get(number)


# Types of codes and factors, by the names of infos.
_DTYPES = {name: getattr(torch, dtype.numpy + (f"_x{dtype.lanes}" if dtype.lanes > 1 else ""),
                         torch.uint8) for name, dtype in DTYPES.items()}


def _run_forward(x, weight, bias, unit, saves):
    return get_unit(unit).forward_recorded(x, weight, bias, saves)


def _infer_forward(x, weight, bias, unit, saves):
    shared_codes.use_in_graphs()
    rows = x.shape[0]
    results = [x.new_empty((rows, get_unit(unit).get_sizes(weight.shape)[1]))]
    if saves:
        known = rows if isinstance(rows, int) else None
        if known is None:
            get_unit(unit).has_any_rows = True
        for info in get_unit(unit).find_codes(known, weight, bias is not None, x.dtype):
            results.append(x.new_empty([rows if size is None else size for size in info.shape],
                                       dtype=_DTYPES[info.dtype]))
    return results


def _run_reuse(x, codes, weight, bias, unit):
    return get_unit(unit).reuse(x, codes, weight, bias)


def _infer_reuse(x, codes, weight, bias, unit):
    return [x.new_empty((x.shape[0], get_unit(unit).get_sizes(weight.shape)[1]))]


def _run_backward(dy, saved, weight, has_bias, unit, needs_x, needs_weight):
    return get_unit(unit).backward(dy, saved, weight, has_bias, needs_x, needs_weight)


def _infer_backward(dy, saved, weight, has_bias, unit, needs_x, needs_weight):
    inputs, outputs = get_unit(unit).get_sizes(weight.shape)
    results = [dy.new_empty((dy.shape[0], inputs))] if needs_x else []
    if needs_weight:
        results.append(dy.new_empty(weight.shape))
        if has_bias:
            results.append(dy.new_empty((outputs,)))
    return results


def _count_forward(x, weight, *_, **others):
    return 2 * x[0] * math.prod(weight)


def _count_backward(dy, saved, weight, has_bias, unit, needs_x, needs_weight, **others):
    return 2 * dy[0] * math.prod(weight) * (needs_x + needs_weight)


# x w^T + b of a matrix x, or x w + b where the Unit is_transposed, all contiguous and of one
# dtype; `unit` is a Unit's number. With `saves` also what its backward takes for x, if that is
# not x.
_forward = operations.define(
    "linear_forward(Tensor x, Tensor weight, Tensor? bias, int unit, bool saves) -> Tensor[]",
    _run_forward, _infer_forward, flops=_count_forward)
# The same of codes that another layer has made of x, from which the result has its type.
operations.define("linear_reuse(Tensor x, Tensor[] codes, Tensor weight, Tensor? bias, int unit) -> Tensor[]",
                  _run_reuse, _infer_reuse, flops=lambda x, codes, *others, **named: _count_forward(x, *others))
# Those of dx, dweight and dbias that are needed, in this order.
_backward = operations.define(
    "linear_backward(Tensor dy, Tensor[] saved, Tensor weight, bool has_bias, int unit, "
    "bool needs_x, bool needs_weight) -> Tensor[]", _run_backward, _infer_backward, flops=_count_backward)


def _save(ctx, inputs, output):
    x, weight, bias, ctx.unit, *_ = inputs
    ctx.has_bias = bias is not None
    codes = output[1:]
    # An assignment to the data of a parameter in FP8 gives it other codes, which its version does not show.
    ctx.content = weight.content if is_gathered(weight) and hasattr(weight, "content") else None
    if codes:
        ctx.mark_non_differentiable(*codes)
        ctx.set_materialize_grads(False)
    _, needs_weight, needs_bias, *_ = ctx.needs_input_grad
    ctx.save_for_backward(weight, *((codes or [x]) if needs_weight or needs_bias else []))


def _differentiate(ctx, backward, dy):
    """The gradients of x, the weight and the bias, None for those that nobody needs."""
    weight, *saved = ctx.saved_tensors
    if ctx.content is not None and ctx.content is not weight.content:
        weight = weight.make_like(ctx.content)
    needs_x, needs_weight, needs_bias, *_ = ctx.needs_input_grad
    # The gradient of a bias comes with that of the weight.
    computes_weight = needs_weight or needs_bias
    results = list(backward(make_dense(wait(dy)), saved, weight, ctx.has_bias, ctx.unit, needs_x,
                            computes_weight))
    dx = results.pop(0) if needs_x else None
    dw = results.pop(0) if computes_weight else None
    db = results.pop(0) if computes_weight and ctx.has_bias else None
    return dx, dw if needs_weight else None, db if needs_bias else None


def _check_first():
    """Raises UnsupportedError where a second derivative is wanted."""
    if torch.is_grad_enabled():
        raise UnsupportedError("expected a backward without create_graph, since a layer in FP8 "
                               "has no second derivative")


class _Traced(torch.autograd.Function):
    """What graphs record: the operations of both directions."""

    @staticmethod
    def forward(ctx, x, weight, bias, unit, saves):
        results = _forward(x, weight, bias, unit, saves)
        _save(ctx, (x, weight, bias, unit), results)
        return tuple(results)

    @staticmethod
    def backward(ctx, dy, *_):
        _check_first()
        return (*_differentiate(ctx, _backward, dy), None, None)


# As linear_forward, with a gradient.
linear = operations.define_composite(
    "linear(Tensor x, Tensor weight, Tensor? bias, int unit, bool saves) -> Tensor[]",
    lambda *arguments: list(_Traced.apply(*arguments)))


def _differentiate_unit(dy, saved, weight, has_bias, unit, needs_x, needs_weight):
    return unit.backward(dy, saved, weight, has_bias, needs_x, needs_weight)


class Linear(torch.autograd.Function):
    """The same without operations of PyTorch: for eager mode."""

    @staticmethod
    def forward(ctx, x, weight, bias, unit, saves, identity=None):
        results = (shared_codes.forward(identity, unit, x, weight, bias) if saves
                   else unit.forward(x, weight, bias, False))
        _save(ctx, (x, weight, bias, unit), results)
        return results[0]

    @staticmethod
    def backward(ctx, dy):
        _check_first()
        return (*_differentiate(ctx, _differentiate_unit, dy), None, None, None)
