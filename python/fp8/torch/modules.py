"""Linear layers in FP8, and models that have them."""

import copy
import fnmatch
import functools
import itertools
import sys
import warnings
import weakref

import torch
from torch import nn

import fp8
from fp8.errors import ArgumentError, UnsupportedError
from fp8.recipes import get_text
from fp8.remarks import explain as explain_remarks
from fp8.torch import attention_scales, converted, invariance, linear_ops, operations, products, shared_codes, speed
from fp8.torch import saved as saved_states
from fp8.torch.attention_callers import calls_attention
from fp8.torch.attention_calls import describe
from fp8.torch.coded_results import CodedResult
from fp8.torch.autocasting import autocast, check_recipe
from fp8.torch.dense import check_model, check_tensor, is_plain, is_recorded, is_watched_by_own, make_dense, saves_for_gradient
from fp8.torch.coded_weights import decode, encode, find_owners, find_spec, is_coded, move
from fp8.torch.coded_weights import load as load_codes
from fp8.torch.coded_weights import save as save_codes
from fp8.torch.gathered import get_plain, is_gathered, is_parallel
from fp8.torch.linear_programs import ELEMENTS, get_programs, settle_only_faster

_numbers = itertools.count()
_layers = weakref.WeakValueDictionary()


class _Units(dict):
    """By recipe. It is no plain dictionary, since torch.export gives these back what they held before."""


class Linear(nn.Linear):
    """A torch.nn.Linear whose products, forward and backward, are computed in FP8.

    - recipe: as fp8.compile takes it; None for that of `autocast` around a call;
    - others: as torch.nn.Linear;
    - cache_weights: quantizes the weight once in a step (fp8.torch.accumulated), for forward and
      backward of all its calls, and keeps the codes, two bytes for each element, until it ends;
    - only_faster: leaves calls to PyTorch for which fp8.torch.speed expects FP8 to be slower, as
      with few rows, of 16 bits and the recipes that it knows; in a model that was converted also
      all, where the host is expected to take longer for them than the GPU, but in CUDA graphs of
      torch.compile. By default on a GPU, with True on an emulated one, too, with False never;
    - options: of fp8.compile.

    x is [..., in_features] of float32, float16 or bfloat16, the result [..., out_features] of
    the same; parameters are of it too, or torch.autocast says what all are rounded to. With
    delayed scaling the layer has a state, which is in its state_dict as `fp8_state`; each
    backward ends a step. Raises ArgumentError for other dtypes, CompileError.
    """

    # A speed.Model, and what it says. Layers that were pickled before it have none.
    _model = _place = _sums = None
    # Groups over whose ranks amaxes of whole tensors are the maximum, by operand.
    _amax_groups = {}
    # The group that has parts of the weight, as DTensor cuts it, and the sizes of this rank's.
    _parallel = _part = None
    # Whether a state_dict has codes of a weight that is codes.
    saves_codes = False
    # Whether an optimizer writes codes of the weight, which may then be of f32 whatever x is.
    _holds = False
    # What of the layer is not in FP8, and why.
    notes = ()
    # What the last call was like, if it was left to PyTorch.
    _left_call = None

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None, *,
                 recipe=None, target="auto", cache_weights=False, only_faster=None, **options):
        super().__init__(in_features, out_features, bias, device, dtype)
        self._begin(recipe, target, cache_weights, only_faster, options)

    def _begin(self, recipe, target, cache_weights, only_faster, options, model=None, place=None):
        self.recipe = None if recipe is None else get_text(recipe)
        self._target, self._options = target, tuple(sorted(options.items()))
        self._cache_weights, self._holds, self.notes = cache_weights, False, ()
        if self.recipe is not None:
            check_recipe(self.recipe, target, self._options)
        self._units, self._steps = _Units(), True
        self._only_faster, self._slower, self._left_call = settle_only_faster(only_faster, options), set(), None
        self._model, self._place = model, place
        self._sums = None if model is None else model.get_sums(place)
        self._count()
        self._fp8_left = products.Left(self)

    def _count(self):
        self._number = next(_numbers)
        _layers[self._number] = self
        if self._model is not None:
            self._model.numbers[self._place] = self._number

    def _get_unit(self, recipe, saved=None):
        if recipe not in self._units:
            unit = self._make_unit(recipe, saved)
            unit.steps = self._steps
            if self._model is not None:
                unit.before_call = functools.partial(_settle, self._model)
            self._units[recipe] = unit
        return self._units[recipe]

    def forward(self, x):
        recipe = self.recipe if self.recipe is not None else autocast.current
        if recipe is None:
            return super().forward(x)
        if is_parallel(self.weight):
            from fp8.torch import tensor_parallel
            return tensor_parallel.forward(self, x, recipe)
        if torch.compiler.is_compiling():
            if is_gathered(self.weight) and not is_coded(self.weight) or type(x) is CodedResult:
                return self.compute_apart(x, self.weight, self.bias, recipe)
        elif is_watched_by_own() and type(x) in (torch.Tensor, CodedResult) and type(self.weight) is nn.Parameter:
            with torch._C.DisableTorchFunction():
                return self.compute(x, self.weight, self.bias, recipe)
        return self.compute(x, self.weight, self.bias, recipe)

    def compute(self, x, weight, bias, recipe):
        """x w^T + b of tensors that may be parts of the layer's."""
        if self._left_call is not None and weight is self.weight and not torch.compiler.is_compiling() and (
                self._describe(x, recipe) == self._left_call):
            # What gains nothing in FP8 shall not wait for who finds that out, either.
            return nn.functional.linear(x, weight, bias)
        check_tensor(x, "x")
        has_codes, holds, given = is_gathered(weight), self._has_held_codes(recipe), x
        if x.device.type in ("cpu", "cuda") and torch.is_autocast_enabled(x.device.type):
            dtype = torch.get_autocast_dtype(x.device.type)
            if has_codes and weight.dtype != dtype and not is_coded(weight):
                raise UnsupportedError(f"expected a MixedPrecisionPolicy with param_dtype={dtype}, since "
                                       f"weights are gathered as codes, but got torch.autocast")
            x, weight = x.to(dtype), weight if holds or is_coded(weight) else weight.to(dtype)
            bias = None if bias is None else bias.to(dtype)
        self._check(x, weight, bias)
        if self._only_faster is not False and not has_codes and self._is_slower(x, recipe, weight.shape):
            if weight is self.weight and not torch.compiler.is_compiling():
                self._left_call = self._describe(x, recipe)
            return nn.functional.linear(x, weight.to(x.dtype), bias)
        # A view would be a node of the gradient's graph.
        outputs, inputs = weight.shape
        rows = make_dense(x if x.ndim == 2 else x.reshape(-1, inputs))
        weight = weight if has_codes else make_dense(weight)
        bias = None if bias is None else make_dense(bias)
        saves = saves_for_gradient(weight, bias)
        if x.numel() == 0:
            # Nothing to compute, and no amax of it.
            y = nn.functional.linear(rows, weight.to(x.dtype), bias)
        elif type(rows) is CodedResult and (has_codes or is_plain(weight)):
            unit = self._get_unit(recipe)
            rows = rows if unit.find_coded(rows, weight, bias is not None) else rows + 0
            y = linear_ops.Linear.apply(rows, weight, bias, unit, saves, None)
        elif is_recorded() and (not has_codes or is_coded(weight) or torch.compiler.is_compiling()) or not (
                has_codes or is_plain(rows, weight)):
            y = torch.ops.fp8.linear(rows, weight, bias,
                                     _find_unit(self._number, recipe), saves)[0]
        else:
            identity = shared_codes.identify(given, x.dtype) if saves else None
            try:
                y = linear_ops.Linear.apply(rows, weight, bias, self._get_unit(recipe), saves, identity)
            except RuntimeError:
                # What PyTorch says of parameters within torch.func.grad is for those who write functions of autograd.
                for name, value in (("the weight", weight), ("the bias", bias)):
                    if value is not None:
                        check_tensor(value, name)
                raise
        return y if x.ndim == 2 else y.reshape(*x.shape[:-1], outputs)

    # Programs take codes as they are, gathered or of attention, where a graph would have their values: no graph has this.
    compute_apart = torch.compiler.disable(compute)

    def _make_unit(self, recipe, saved):
        if self._amax_groups and recipe == self.recipe:
            from fp8.torch import shared_amaxes
            return shared_amaxes.make_unit(recipe, self._target, self._options, self._amax_groups,
                                           self._parallel, saved, self._cache_weights)
        programs = get_programs(recipe, self._target, self._options)
        return linear_ops.Unit(programs, saved, self._cache_weights)

    def share_amaxes(self, group, operands=("activation", "gradient")):
        """From now on amaxes of whole tensors are the maximum over a group's ranks."""
        added = {operand: {*self._amax_groups.get(operand, ()), group} for operand in operands}
        self._amax_groups = {**self._amax_groups, **added}
        saved = {recipe: unit.get_saved() for recipe, unit in self._units.items()}
        self._units = _Units()
        for recipe, bytes_ in saved.items():
            self._get_unit(recipe, bytes_)

    def train(self, mode=True):
        """As a module's. What evaluates may have written weights through `.data`, as averages are swapped in,
        and nobody sees that: codes that an optimizer wrote are taken again behind its next step."""
        if mode != self.training:
            for unit in self._units.values():
                if unit.held is not None:
                    unit.held.drop()
        return super().train(mode)

    def _apply(self, fn, recurse=True):
        weight = self._parameters.get("weight")
        if is_coded(weight):
            move(weight, fn)
        return super()._apply(fn, recurse)

    def take_codes(self):
        """From now on programs take codes of the weight, as those that FSDP2 gathers."""
        self._cache_weights = True
        for unit in self._units.values():
            unit.take_codes()

    def _has_held_codes(self, recipe):
        """Whether an optimizer writes the codes of the weight."""
        return self._holds and recipe == self.recipe

    def _describe(self, x, recipe):
        """What makes a call be left to PyTorch, where nothing has to be converted; else None."""
        weight, bias, device = self.weight, self.bias, x.device
        if type(x) is not torch.Tensor or type(weight) is not nn.Parameter or torch.is_autocast_enabled(device.type):
            return None
        return (x.shape, x.dtype, device, weight.dtype, weight.device, None if bias is None else bias.dtype, recipe, self._holds,
                None if self._model is None else self._model.changes)

    def _is_slower(self, x, recipe, sizes=None):
        outputs, inputs = sizes or (self.out_features, self.in_features)
        rows = x.numel() // inputs
        is_on_gpu = x.device.type == "cuda" or self._only_faster and self._target.startswith("sm_")
        if not is_on_gpu or x.dtype == torch.float32:
            return False
        sums = self._sums
        if sums is not None and torch.compiler.is_compiling():
            torch.ops.fp8.note_rows(x, self._number)
        elif sums is not None:
            self._model.note(self._place, rows)
            sums = self._model.get_sums(self._place)
        if not speed.is_slower(recipe, rows, outputs, inputs, sums, self._has_held_codes(recipe)):
            return False
        if torch.compiler.is_compiling():
            _note_slower(self._number, recipe)  # Rows may be any number there.
        else:
            self._slower.add((recipe, rows))
        return True

    @property
    def slower(self):
        """What `only_faster` has left to PyTorch: texts with numbers of rows and times."""
        lines = []
        for recipe, rows in sorted(self._slower):
            if rows == 0:
                lines.append(f"few rows, in torch.compile: high precision: expected no gain under "
                             f"{recipe}")
                continue
            sizes = rows, self.out_features, self.in_features
            has_codes = self._has_held_codes(recipe)
            times = (f"{speed.estimate(None, *sizes):.0f} us forward and backward, and "
                     f"{speed.estimate(recipe, *sizes, has_codes):.0f} under {recipe}")
            if speed.is_faster(recipe, *sizes, has_codes):
                times += ", but the host to take longer for the model's layers than the GPU"
            lines.append(f"{rows} rows: high precision: expected {times}")
        return tuple(lines)

    def _check(self, x, weight, bias):
        if x.ndim == 0 or x.shape[-1] != weight.shape[1]:
            raise ArgumentError(f"expected x of [..., {weight.shape[1]}], but got "
                                f"{list(x.shape)}")
        if x.dtype not in ELEMENTS:
            raise ArgumentError(f"expected x of float32, float16 or bfloat16, but got {x.dtype}")
        for name, value in (("weight", weight), ("bias", bias)):
            if value is not None and value.dtype != x.dtype and not is_coded(value) and not (
                    self._holds and value is self.weight and value.dtype == torch.float32):
                raise ArgumentError(f"expected the {name} to be of {x.dtype} as x is, but got "
                                    f"{value.dtype}; torch.autocast converts both")
            if value is not None and value.device != x.device:
                raise ArgumentError(f"expected the {name} on {x.device}, where x is, but got it "
                                    f"on {value.device}")

    @property
    def units(self):
        """What has computed the layer, by recipe."""
        return dict(self._units)

    @property
    def remarks(self):
        """What was decided of each product, under each recipe and for all sizes that came."""
        return tuple({
            (recipe, remark.text): remark for recipe, unit in self._units.items()
            for program in unit.used.values() for remark in program.remarks
            if remark.function in ("forward", "backward")}.values())

    def extra_repr(self):
        return super().extra_repr() + f", recipe={self.recipe}"

    @property
    def fp8_state(self):
        """What `state_dict()` has of the layer's state, which torch.distributed.checkpoint looks for."""
        unit = self._units.get(self.recipe)
        data = None if unit is None else unit.get_saved()
        if data is None:
            raise AttributeError("expected a layer with a scaling state, but got one without")
        return saved_states.write(data)

    def __getstate__(self):
        saved = {recipe: unit.get_saved() for recipe, unit in self._units.items()}
        return {**self.__dict__, "_units": saved, "_amax_groups": {}, "_parallel": None,
                "_part": None}

    def __setstate__(self, state):
        saved = state["_units"]
        super().__setstate__({**state, "_units": _Units()})
        self._count()
        for recipe, bytes_ in saved.items():
            self._get_unit(recipe, bytes_)

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__setstate__({**{key: value if key == "_number" else copy.deepcopy(value, memo)
                              for key, value in self.__getstate__().items()},
                           "_amax_groups": self._amax_groups, "_parallel": self._parallel,
                           "_part": self._part})
        return made

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if is_coded(self.weight) and not keep_vars:
            save_codes(self, destination, prefix)
        elif prefix + "weight" in destination and not keep_vars:
            destination[prefix + "weight"] = get_plain(destination[prefix + "weight"])
        saved = {recipe: unit.get_saved() for recipe, unit in self._units.items()}
        for recipe, data in saved.items():
            if data is not None:
                key = saved_states.make_key("weight", "", "" if recipe == self.recipe else recipe)
                destination[prefix + key] = saved_states.write(data)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        own = {key: state_dict.pop(key) for key in list(state_dict) if key.startswith(prefix)
               and saved_states.parse_key(key[len(prefix):], "weight")}
        taken = load_codes(self, state_dict, prefix, args[0].get("assign_to_params_buffers", False))
        super()._load_from_state_dict(state_dict, prefix, *args)
        loaded = set()
        for key, value in own.items():
            recipe = saved_states.parse_key(key[len(prefix):], "weight")[1] or self.recipe
            if recipe is not None:
                self._get_unit(recipe).set_saved(saved_states.read(key, value))
                loaded.add(recipe)
        if prefix + "weight" in state_dict:  # Without a state nothing had been computed with it.
            for recipe, unit in self._units.items():
                if recipe not in loaded:
                    unit.set_saved(None)
        state_dict.update({**own, **taken})


@torch.compiler.assume_constant_result
def _find_unit(number, recipe):
    """The number of what computes a layer under a recipe: of each its own."""
    return _layers[number]._get_unit(recipe).number


def _note_rows(x, layer):
    return x.new_empty(0, dtype=torch.int64)


def _infer_rows(x, layer):
    """What a graph is traced with; where sizes may be any, one that there is."""
    found, count = _layers.get(layer), x.numel()
    if isinstance(count, torch.SymInt):
        count = getattr(count.node, "hint", None)
    if found is not None and found._model is not None and isinstance(count, int):
        found._model.note(found._place, count // found.in_features)
        found._model.is_settled = False
    return _note_rows(x, layer)


# Tells a model what its layer is called with in a graph, when Dynamo traces it. Nothing needs the
# result: who compiles the graph leaves it out.
operations.define("note_rows(Tensor x, int layer) -> Tensor", _note_rows, _infer_rows)


def _settle(model):
    """Gives layers other sums where these decide otherwise, for the next time that Dynamo traces
    them, which it then does: not while it is tracing, since it looks at all again in the end."""
    if model.is_settled:
        return
    model.is_settled = True
    for place, number in model.numbers.items():
        layer, rows = _layers.get(number), model.get_rows(place)
        if layer is not None and rows:
            sums = model.get_sums(place)
            if speed.is_limited_by_host(rows, sums) != speed.is_limited_by_host(rows, layer._sums):
                layer._sums = sums


@torch.compiler.assume_constant_result
def _note_slower(number, recipe):
    _layers[number]._slower.add((recipe, 0))


def _matches(filter, name, module):
    if filter is None:
        return True
    if callable(filter):
        return filter(name, module)
    globs = [filter] if isinstance(filter, str) else filter
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def _is_quantized(module):
    """Whether it is a QuantizedWeight, which needs no import where there is none."""
    quantized_linear = sys.modules.get("fp8.torch.quantized_linear")
    return quantized_linear is not None and isinstance(module, quantized_linear.QuantizedWeight)


def _find_converted(model, filter, has_attention=False):
    """Layers that convert_to_fp8_training takes, in order, and modules that have parameters of
    their own beside them, by name, and those that call attention, if it is converted."""
    layers, others = {}, {}
    for name, module in model.named_modules():
        if type(module) in (nn.Linear, Linear):
            if _matches(filter, name, module):
                layers[name] = module
        elif not _is_quantized(module) and (converted.is_layer(module) or converted.is_watched(module) or (
                has_attention and calls_attention(module))):
            try:
                matches = _matches(filter, name, module)
            except AttributeError:  # A function that asks for what an nn.Linear has.
                continue
            if matches:
                (layers if converted.is_layer(module) else others)[name] = module
    return layers, others


def convert_to_fp8_training(model, recipe, *, filter=None, first_last_bf16=1, target="auto",
                            cache_weights=False, only_faster=None, parameters=None, **options):
    """Makes the products of a model's layers those of FP8, in place, and returns it.

    - recipe: as fp8.compile takes it; None for that of `autocast` around a call;
    - filter: which modules: globs of their names, e.g. ["layers.*.mlp.*"], or a function of
      (name, module); None for all;
    - first_last_bf16: how many layers stay what they are at either end of the model, where
      FP8 costs most accuracy and saves least time;
    - cache_weights, only_faster: as `Linear` has them;
    - recipe with fp8_dpa: attention of modules that call PyTorch's function, or transformers', is in FP8, too, if they
      match the filter. With delayed scaling each has its histories as `fp8_attention`, an AttentionScales;
    - parameters: "fp8" makes the weights of `Linear` layers codes, and nothing else (docs/Torch.md): new Parameters,
      for an optimizer that is made behind it; of recipes block and current, and sizes that these take, where no
      other module has the same weight;
    - target, options: of fp8.compile.

    Layers are those of torch.nn.Linear, which become `Linear` ones, torch.nn.MultiheadAttention,
    transformers' Conv1D and experts. Other modules with parameters of their own compute their
    products with these (x @ w, F.linear(x, w), grouped_mm) in FP8. Modules and parameters stay
    the same objects with the same names, so that optimizers, hooks and checkpoints stay valid.
    Layers that are already `Linear` ones get the recipe. Raises ArgumentError if nothing is left.
    """
    check_model(model)
    text = None if recipe is None else get_text(recipe)
    if text is not None:
        check_recipe(text, target, tuple(sorted(options.items())))
    if parameters not in (None, "fp8"):
        raise ArgumentError(f"expected parameters to be None or 'fp8', but got {parameters!r}")
    if parameters == "fp8":
        find_spec(text)
    only_faster = settle_only_faster(only_faster, options)
    attention = describe(recipe)
    layers, others = _find_converted(model, filter, attention[0] is not None)
    names = list(layers)
    left = {*names[:first_last_bf16], *names[len(names) - first_last_bf16:]}
    chosen = {name: module for name, module in layers.items() if name not in left}
    ends = {layers[name] for name in left}
    if not chosen and not others:
        count = sum(map(_is_quantized, model.modules()))
        quantized = f"; {count} are quantized for inference already" if count else ""
        raise ArgumentError(f"expected linear layers to convert, but got {len(layers)} that "
                            f"match, of which {first_last_bf16} at either end stay what they are{quantized}")
    invariance.undo(model)
    for module in model.modules():
        if not isinstance(module, Linear) and not converted.is_converted(module):
            module._fp8_left = products.Left(module, ", as one of the first or last layers (first_last_bf16)" if module in ends else "")
    linear = [module for module in chosen.values() if isinstance(module, nn.Linear)]
    times = speed.Model((module.out_features, module.in_features) for module in linear)
    places = {module: place for place, module in enumerate(linear)}
    owners = find_owners(model)
    for module in {**chosen, **others}.values():
        module.__dict__.pop("_fp8_left", None)
        if type(module) in (nn.Linear, Linear):
            module.__class__ = Linear
            module._begin(text, target, cache_weights, only_faster, options, times,
                          places[module])
            if parameters == "fp8":
                reason = encode(module, owners.get(id(module.weight), ()))
                module.notes = () if reason is None else (reason,)
            else:
                decode(module)
        else:
            converted.convert(module, text, attention, target, cache_weights, only_faster,
                              tuple(sorted(options.items())))
    _convert_attention(model, recipe, {**chosen, **others})
    if options.get("invariant"):
        invariance.make_invariant(model)
    return model


def _convert_attention(model, recipe, converted_):
    """Gives modules that call attention the scales of a recipe, or says that they do not. One around those has no calls
    of its own."""
    is_asked_for = describe(recipe)[0] is not None
    callers = {name: module for name, module in model.named_modules() if calls_attention(module)}
    for name, module in model.named_modules():
        module.__dict__.pop("_fp8_keeps_attention", None)
        if name in converted_ and converted.is_converted(module):
            if name in callers:
                attention_scales.attach(module, recipe, name)
            elif any(other.startswith(f"{name}." if name else "") for other in callers):
                module._fp8_attention = None
        elif name in callers and is_asked_for:
            module._fp8_keeps_attention = True
    if is_asked_for and not callers:
        warnings.warn("fp8: the recipe has fp8_dpa, but no module was found to call attention; fp8.torch."
                      "scaled_dot_product_attention takes scales, register_attention a recipe, and Backend "
                      "flex_attention", stacklevel=3)


def convert_from_fp8(model):
    """The inverse, in place: all modules are what they were. Returns it."""
    invariance.undo(model)
    for module in model.modules():
        if type(module) is Linear:
            decode(module)
            module.__class__ = nn.Linear
            for name in ("recipe", "_target", "_options", "_units", "_steps", "_cache_weights",
                         "_only_faster", "_slower", "_left_call", "_number", "_model", "_place", "_sums",
                         "_amax_groups", "_parallel", "_part", "_holds", "notes"):
                module.__dict__.pop(name, None)
        converted.revert(module)
        for name in ("_fp8_left", "_fp8_keeps_attention"):
            module.__dict__.pop(name, None)
    for parameter in model.parameters():
        products.release(parameter)
    return model


def get_layers(model):
    """What computes in FP8, by name: `Linear` layers, Products of parameters, and scales of attention."""
    layers = {name: module for name, module in model.named_modules() if isinstance(module, Linear)}
    return {**layers, **converted.get_products(model), **attention_scales.find_all(model)}


def summarize(model):
    """A text with each linear layer of a model: its recipe, and what of it is not in FP8."""
    check_model(model)
    lines, layers = [], get_layers(model)
    for name, module in model.named_modules():
        names = [key for key in layers if key.partition("[")[0] in {
            name, *(f"{name}.{own}".removeprefix(".") for own, _ in module.named_parameters()
                    if "." not in own)}]
        for key in names:
            layer = layers.pop(key)
            lines.append(f"{key}: {layer.recipe or 'the recipe of autocast'}")
            if layer.remarks:
                lines += [f"  {line}" for line in explain_remarks(layer.remarks).split("\n")]
            lines += [f"  {line}" for line in layer.slower]
            lines += [f"  high precision: {reason}" for reason in getattr(layer, "notes", ())]
        if getattr(module, "_fp8_keeps_attention", False):
            lines.append(f"{name}: attention in high precision: it was not converted")
        if isinstance(module, nn.Bilinear):
            lines.append(f"{name}: high precision: a Bilinear multiplies three, which is not taken")
        elif isinstance(module, nn.Linear) and not names:
            lines.append(f"{name}: high precision: it was not converted{getattr(module, '_fp8_left', products.Left).note}")
    return "\n".join(lines)
