"""What was read of functions over scores and masks, kept until something that they use is another, or was changed in place."""

import dis
import functools
import inspect
import math
import types
import weakref

import torch

# Layers take turns at a few masks and sizes of one function. Masks of numbers for each query and key are large.
_MOST_PLANS = 8
_MOST_BYTES = 1 << 30
_MOST_DEPTH = 8
# Tensors that functions use are copied to be compared if there are no more bytes of them.
MOST_COPIED = 1 << 24
_PLAIN = (int, float, bool, str, type(None), torch.dtype, torch.device)
# By these a function reaches what its code does not name.
_REACHING = ("__import__", "delattr", "eval", "exec", "getattr", "globals", "setattr", "vars")
_plans = weakref.WeakKeyDictionary()


class _Unknown(Exception):
    """Raised where a function uses what nobody can watch."""


def find(score_mod, block_mask, place, make):
    """What `make` gives for these functions at this place, sizes and a device, or gave while they were the same."""
    holder, function = score_mod or block_mask, None
    if isinstance(holder, types.MethodType):
        # Each look at an object makes another one.
        holder, function = holder.__self__, holder.__func__
    try:
        state = [] if holder is None else _find_state(score_mod, block_mask)
        kept = None if holder is None else _plans.setdefault(holder, {})
    except (_Unknown, TypeError):
        # Not all objects have a hash, or know who refers to them.
        kept = None
    if kept is None:
        return make()
    key = *place, id(block_mask), function
    identities = [_identify(x) for x in state]
    if key in kept:
        known, _, mask, plan = kept[key]
        if known == identities and (block_mask is None or mask() is block_mask):
            return plan
        del kept[key]
    plan = make()
    # Values are kept so that no others have their addresses.
    kept[key] = [x.keep() if isinstance(x, _Contents) else x for x in identities], state, None if block_mask is None else weakref.ref(block_mask), plan
    _drop(kept)
    return plan


def uses_tensors(score_mod, block_mask):
    """Whether tensors say something to functions, or it is not known."""
    try:
        return any(isinstance(x, torch.Tensor) for x in _find_state(score_mod, block_mask))
    except _Unknown:
        return True


def _drop(kept):
    """The oldest ones, and those of masks that are gone."""
    for key, (_, _, mask, _) in list(kept.items()):
        if mask is not None and mask() is None:
            del kept[key]
    while len(kept) > 1 and (len(kept) > _MOST_PLANS or sum(_count_bytes(x[3]) for x in kept.values()) > _MOST_BYTES):
        del kept[next(iter(kept))]


def _count_bytes(plan):
    return sum(x.numel() * x.element_size() for x in plan if isinstance(x, torch.Tensor))


def _find_state(score_mod, block_mask):
    state = []
    if score_mod is not None:
        _collect(score_mod, state)
    if block_mask is not None:
        _collect(block_mask.mask_mod, state)
        state += [block_mask.kv_num_blocks, block_mask.kv_indices, block_mask.full_kv_num_blocks, block_mask.full_kv_indices]
    return state


def _collect(value, state, depth=0):
    """Adds all that a value consists of or uses. Raises _Unknown where that is not known."""
    if depth > _MOST_DEPTH or isinstance(value, torch.Tensor) and value.is_inference():
        # Tensors of inference mode do not say when they are changed.
        raise _Unknown
    if isinstance(value, (torch.Tensor, *_PLAIN)):
        state.append(value)
    elif type(value) in (tuple, list):
        state += [type(value), len(value)]
        for one in value:
            _collect(one, state, depth + 1)
    elif type(value) is functools.partial:
        _collect([value.func, *value.args, *value.keywords, *value.keywords.values()], state, depth + 1)
    elif inspect.isfunction(value):
        _collect_function(value, state, depth)
    elif inspect.ismethod(value):
        _collect_method(value, state, depth)
    elif inspect.ismodule(value):
        if value is not math and not _is_torch(value.__name__):
            raise _Unknown
    elif inspect.isbuiltin(value):
        if value.__name__ in _REACHING or not isinstance(value.__self__, (type(None), type, types.ModuleType)):
            raise _Unknown
    elif not (isinstance(value, type) and (value.__module__ == "builtins" or _is_torch(value.__module__))):
        raise _Unknown


def _collect_function(function, state, depth):
    code = function.__code__
    state.append(code)
    used = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
    try:
        used += [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError as error:
        raise _Unknown from error
    # What PyTorch's own functions have beside it is PyTorch.
    if not _is_torch(function.__module__ or ""):
        names, imports = _read_code(code)
        if imports:
            raise _Unknown
        here, builtins = function.__globals__, function.__builtins__
        used += [here[name] if name in here else builtins[name] for name in names if name in here or name in builtins]
    for value in used:
        if value is not function:
            _collect(value, state, depth + 1)


def _collect_method(method, state, depth):
    """A method, and what it reads of its object."""
    owner, function = method.__self__, method.__func__
    if not inspect.isfunction(function) or isinstance(owner, (type, types.ModuleType)):
        raise _Unknown
    _collect_function(function, state, depth)
    for name in _read_attributes(function.__code__):
        _collect(_look_up(owner, name), state, depth + 1)


def _look_up(owner, name):
    """What an object has by this name. Raises _Unknown where code says what that is."""
    if type(owner).__getattribute__ is not object.__getattribute__:
        raise _Unknown
    found, own = inspect.getattr_static(type(owner), name, None), getattr(owner, "__dict__", {})
    if inspect.isdatadescriptor(found):
        raise _Unknown
    places = [own, *(own.get(place, {}) for place in ("_parameters", "_buffers") if isinstance(owner, torch.nn.Module))]
    for values in places:
        if name in values:
            return values[name]
    if isinstance(found, staticmethod):
        return found.__func__
    if found is None or hasattr(found, "__get__") and not inspect.isfunction(found):
        raise _Unknown
    return types.MethodType(found, owner) if inspect.isfunction(found) else found


@functools.lru_cache(1024)
def _read_attributes(code):
    """What a method reads of its object, its first argument. Raises _Unknown where it does anything else with that."""
    if code.co_argcount == 0 or code.co_varnames[0] in code.co_cellvars:
        raise _Unknown
    name, found, steps = code.co_varnames[0], [], list(dis.get_instructions(code))
    for step, following in zip(steps, [*steps[1:], None]):
        used = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if "FAST" not in step.opname or name not in used:
            continue
        if not step.opname.startswith("LOAD") or used[-1] != name or following is None or (
                following.opname not in ("LOAD_ATTR", "LOAD_METHOD")) or used.count(name) > 1:
            raise _Unknown
        found.append(following.argval)
    return tuple(dict.fromkeys(found))


@functools.lru_cache(1024)
def _read_code(code):
    """Names that it and functions within it may look for outside, and whether it imports something."""
    names, imports = [], False
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.append(step.argval)
        imports = imports or step.opname == "IMPORT_NAME"
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more, also = _read_code(inner)
            names, imports = [*names, *more], imports or also
    return tuple(dict.fromkeys(names)), imports


def _is_torch(name):
    return name == "torch" or name.startswith("torch.")


def hides_writes(tensor):
    """Whether it may be written into without another version, as fused optimizers write into parameters."""
    return tensor.requires_grad or isinstance(tensor, torch.nn.Parameter)


class _Contents:
    """A tensor, and what is in it, of which its version does not say when it changes."""

    def __init__(self, tensor, *parts):
        self.tensor, self.parts = tensor, parts

    def keep(self):
        return _Contents(self.tensor.detach().clone(), *self.parts)

    def __eq__(self, other):
        return isinstance(other, _Contents) and self.parts == other.parts and self.tensor.device == other.tensor.device and (
            self.tensor.dtype == other.tensor.dtype) and torch.equal(self.tensor, other.tensor)

    __hash__ = None


def _identify(value):
    """What changes where a value does. A tensor that needs a gradient is another one where gradients are computed: there it is
    refused."""
    if isinstance(value, torch.Tensor):
        parts = id(value), None if value.is_inference() else value._version, value.requires_grad and torch.is_grad_enabled()
        is_small = value.numel() * value.element_size() <= MOST_COPIED
        # On a CPU it costs little, and memory may be NumPy's, too.
        return _Contents(value, *parts) if hides_writes(value) or value.device.type == "cpu" and is_small else parts
    if isinstance(value, types.CodeType):
        return id(value)
    return type(value), value
