"""Functions of JAX that programs compute."""

import functools
import inspect
import threading
from collections import namedtuple

import jax
import numpy

import fp8
from fp8 import _core, imports
from fp8.errors import ArgumentError, UnsupportedError, shorten
from fp8.jax import importer, partitioned
from fp8.remarks import explain

# What was compiled for arguments of one kind: the Program, the function of it, its State or
# None, the tree of the results' shapes, and what XLA calls it by.
Version = namedtuple("Version", "program function state results foreign_call")

# The handler of XLA's foreign function interface that calls programs.
HANDLER = "fp8_program"
# What a program has in place of integers without a sign.
_SIGNED = {f"uint{bits}": numpy.dtype(f"int{bits}") for bits in (16, 32, 64)}


@functools.cache
def register():
    for platform, is_on_gpu in (("cpu", False), ("CUDA", True)):
        jax.ffi.register_ffi_target(HANDLER, _core.get_xla_handler(is_on_gpu),
                                    platform=platform, api_version=1)


def compile(function, recipe=None, *, weights=None, gradients=(), target="auto", **options):
    """A Compiled function, that computes what `function` does, with matrix products in FP8.

    - function: of trees of arrays, as jax.jit takes it, without arguments by name; also one
      that jax.grad or jax.value_and_grad made: its products are dgrad and wgrad then;
    - recipe, target, options: as fp8.compile takes them;
    - weights: globs of the names of arguments that are weights. A name is the path of a leaf:
      in the first argument's tree, or after the name of another argument. None for leaves of
      two dimensions and more of the first argument, if that is a tree;
    - gradients: names of arguments that come from a backward pass.

    Also a decorator: `@functools.partial(fp8.jax.compile, recipe="current")`. Takes the package
    iree-base-compiler. Raises ArgumentError and CompileError for unknown recipes and options.
    """
    checked = {key: value for key, value in options.items() if key != "cache"}
    fp8.emit("module {}", "mlir", recipe, target="cpu" if target == "auto" else target, **checked)
    return Compiled(function, recipe, weights, gradients, target, options)


class Compiled:
    """A function that is compiled for each kind of arguments, by shapes and dtypes, when it is
    called. Arguments are trees of JAX's arrays, or of what becomes some; results are as the
    function's own.

    Under jax.jit it is a call by XLA, in its stream and of its memory; vmap calls it for each
    element. With a recipe that has a state each call is a step. `versions` are what was compiled.

    Reverse-mode derivatives (jax.grad, jax.vjp) are programs of their own, which compute what they
    need of the forward again: compile the function that jax.grad makes for one that shares it.

    Raises UnsupportedError, by the name of the operation, for what does not become linalg.
    """

    def __init__(self, function, recipe, weights, gradients, target, options):
        functools.update_wrapper(self, function)
        self._function, self._recipe, self._weights = function, recipe, weights
        self._marked, self._target, self._options = gradients, target, options
        self._versions, self._lock, self._gradients = {}, threading.Lock(), {}

    @property
    def versions(self):
        """The Versions, in their order: `program` with its remarks, `state` or None."""
        return tuple(self._versions.values())

    @property
    def remarks(self):
        """What was decided of each matrix product, of all versions."""
        return tuple(remark for version in self.versions for remark in version.program.remarks)

    def explain(self):
        """Prints each matrix product: what runs it, and why it is not in FP8."""
        print(explain(self.remarks))

    def compile(self, *arguments):
        """The Version for arguments, or for what has their shapes and dtypes."""
        leaves, tree = jax.tree_util.tree_flatten(arguments)
        try:
            kinds = tuple(jax.typeof(leaf) if not isinstance(leaf, jax.ShapeDtypeStruct) else
                          jax.core.ShapedArray(leaf.shape, leaf.dtype) for leaf in leaves)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"expected trees of arrays and numbers, but got: "
                                f"{shorten(' '.join(str(error).split()))}") from error
        key = tree, tuple((kind.shape, kind.dtype, kind.weak_type) for kind in kinds)
        with self._lock:
            if key not in self._versions:
                self._versions[key] = self._compile(tree, kinds)
            return self._versions[key]

    def _compile(self, tree, kinds):
        shapes = [jax.ShapeDtypeStruct(kind.shape, kind.dtype, weak_type=kind.weak_type)
                  for kind in kinds]
        function = self._function
        keys = {place: shape for place, shape in enumerate(shapes) if _is_key(shape)}
        results = None
        if keys:
            # Keys make keys.
            results = jax.eval_shape(function, *jax.tree_util.tree_unflatten(tree, shapes))
            function = _take_data_of_keys(function, keys)
            shapes = [jax.eval_shape(jax.random.key_data, shape) if _is_key(shape) else shape for shape in shapes]
        try:
            program = importer.convert(function, jax.tree_util.tree_unflatten(tree, shapes),
                                       weights=self._weights, gradients=self._marked)
        except imports.UnsupportedProgram as error:
            raise UnsupportedError(str(error)) from error
        compiled = fp8.compile(program.text, self._recipe, target=self._target, **self._options)
        function = compiled["main"]
        state = fp8.State(compiled) if function.takes_state else None
        foreign_call = _core.ForeignCall(compiled._core, function._index,
                                         None if state is None else state._core)
        return Version(compiled, function, state, program.results if results is None else results, foreign_call)

    def __call__(self, *arguments, **keywords):
        if keywords:
            raise ArgumentError(f"expected arguments by their places, but got "
                                f"{', '.join(keywords)} by name")
        version = self.compile(*arguments)
        leaves = jax.tree_util.tree_leaves(arguments)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            results = _call_traced(self, version, arguments)
        elif any(isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1 for leaf in leaves):
            return self._call_shared(*arguments)
        else:
            results = _call(version, [jax.numpy.asarray(leaf) for leaf in leaves])
        return jax.tree_util.tree_unflatten(
            jax.tree_util.tree_structure(version.results), results)

    @functools.cached_property
    def _call_shared(self):
        """Calls XLA with arrays that several devices share."""
        return jax.jit(lambda *arguments: self(*arguments))

    def find_gradient(self, count, places):
        """The Compiled function of the arguments, of which there are `count`, and of cotangents of the
        results, that has the cotangents of those leaves of the arguments that are at `places`."""
        with self._lock:
            key = count, places
            if key not in self._gradients:
                self._gradients[key] = _make_gradient(self, count, places)
            return self._gradients[key]

    @property
    def gradients(self):
        """The Compiled functions that derivatives are computed by: one for each set of arguments that
        had any."""
        return tuple(self._gradients.values())

    def __repr__(self):
        return f"<fp8 function of JAX {getattr(self._function, '__name__', '')}>"


def _is_key(leaf):
    return jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _take_data_of_keys(function, keys):
    """A function that has keys of random numbers, by their places among its leaves, and those among its results, as the integers
    that they are made of."""
    @functools.wraps(function)
    def run(*arguments):
        leaves, tree = jax.tree_util.tree_flatten(arguments)
        leaves = [jax.random.wrap_key_data(leaf, impl=keys[place].dtype._impl) if place in keys else leaf
                  for place, leaf in enumerate(leaves)]
        results = function(*jax.tree_util.tree_unflatten(tree, leaves))
        return jax.tree_util.tree_map(_take_data, results)

    return run


def _take_data(leaf):
    return jax.random.key_data(leaf) if hasattr(leaf, "dtype") and _is_key(leaf) else leaf


def _find_kind(kind):
    """The size and type that a program has for a result of this kind."""
    data = jax.eval_shape(jax.random.key_data, kind) if _is_key(kind) else kind
    return jax.ShapeDtypeStruct(data.shape, _SIGNED.get(data.dtype.name, data.dtype))


def _as_signed(leaf):
    """The bits of an array as a program has them, which knows no integers without a sign, and no keys of random numbers."""
    leaf = _take_data(leaf)
    return jax.lax.bitcast_convert_type(leaf, _SIGNED[leaf.dtype.name]) if leaf.dtype.name in _SIGNED else leaf


def _as_given(result, kind):
    """The inverse, of a result."""
    if _is_key(kind):
        return jax.random.wrap_key_data(jax.lax.bitcast_convert_type(result, "uint32"), impl=kind.dtype._impl)
    return jax.lax.bitcast_convert_type(result, kind.dtype) if kind.dtype.name in _SIGNED else result


def _call(version, leaves):
    """The results, a list of arrays."""
    function, leaves = version.function, [_as_signed(leaf) for leaf in leaves]
    if not leaves:
        raise ArgumentError("expected a function of arrays, but got no argument")
    arguments = [leaf.item() if info.shape is None else leaf
                 for info, leaf in zip(function.arguments, leaves)]
    results = function(*arguments, state=version.state)
    if version.state is not None:
        version.state.end_step()
    results = results if isinstance(results, tuple) else (results,) if function.results else ()
    return [_as_given(jax.numpy.asarray(result), kind)
            for result, kind in zip(results, jax.tree_util.tree_leaves(version.results))]


def _make_gradient(compiled, count, places):
    """The Compiled function of `find_gradient`."""
    function = compiled._function

    def differentiate(*arguments):
        arguments, cotangents = arguments[:count], arguments[count]
        leaves, tree = jax.tree_util.tree_flatten(arguments)

        def run(*given):
            values = list(leaves)
            for place, value in zip(places, given):
                values[place] = value
            return function(*jax.tree_util.tree_unflatten(tree, values))

        results, pull = jax.vjp(run, *(leaves[place] for place in places))
        kinds, results_tree = jax.tree_util.tree_flatten(results)
        given = iter(cotangents)
        # What is no float has cotangents that are no numbers.
        full = [next(given) if _has_gradient(kind) else
                numpy.zeros(kind.shape, jax.dtypes.float0) for kind in kinds]
        return pull(jax.tree_util.tree_unflatten(results_tree, full))

    # Arguments keep their names, by which weights are known.
    names = list(inspect.signature(function).parameters.values())[:count]
    differentiate.__signature__ = inspect.Signature(
        [parameter.replace(default=inspect.Parameter.empty) for parameter in names
         if parameter.kind is not parameter.VAR_POSITIONAL]
        + [inspect.Parameter(f"argument_{place}", inspect.Parameter.POSITIONAL_OR_KEYWORD)
           for place in range(len(names), count)]
        + [inspect.Parameter("cotangent", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    differentiate.__name__ = f"gradient of {getattr(function, '__name__', '')}"
    return Compiled(differentiate, compiled._recipe, compiled._weights,
                    compiled._marked, compiled._target, compiled._options)


def _has_gradient(leaf):
    return jax.numpy.issubdtype(jax.typeof(leaf).dtype if not hasattr(leaf, "dtype") else leaf.dtype,
                                jax.numpy.floating)


def _call_traced(compiled, version, arguments):
    """The results where JAX traces: a call by XLA."""
    register()
    function = version.function
    if function.runs_on_gpu and any(info.shape is None
                                    for info in function.arguments + function.results):
        raise UnsupportedError("expected arrays, but got a number, which XLA has on the GPU and a "
                               "program takes from the host: call it outside of jax.jit, or pass "
                               "an array of one element")
    shapes = tuple(jax.tree_util.tree_leaves(version.results))
    # A step must not be left out, nor taken twice.
    signed = tuple(map(_find_kind, shapes))
    call_by_xla = jax.ffi.ffi_call(HANDLER, signed, vmap_method="sequential",
                                   has_side_effect=version.state is not None)

    def run(*leaves):
        results = call_by_xla(*map(_as_signed, leaves), number=numpy.int64(version.foreign_call.number))
        results = [_as_given(result, kind) for result, kind in zip(results, shapes)]
        return partitioned.vary_with(results, leaves)

    if version.state is not None:
        run = partitioned.keep_on_one_device(run, *jax.tree_util.tree_leaves(arguments))

    call = jax.custom_vjp(run)
    tree = jax.tree_util.tree_structure(arguments)

    def forward(*primals):
        leaves = tuple(primal.value for primal in primals)
        # What is asked for a derivative, and None in the places of others.
        return run(*leaves), (leaves, tuple(primal.value if primal.perturbed else None
                                            for primal in primals))

    def backward(saved, cotangents):
        leaves, asked = saved
        places = tuple(place for place, leaf in enumerate(asked)
                       if leaf is not None and _has_gradient(leaf))
        given = tuple(
            jax.numpy.zeros(kind.shape, kind.dtype)
            if isinstance(value, jax.custom_derivatives.SymbolicZero) else value
            for value, kind in zip(cotangents, shapes) if _has_gradient(kind))
        gradient = compiled.find_gradient(len(arguments), places)
        results = gradient(*jax.tree_util.tree_unflatten(tree, leaves), given)
        found = {place: partitioned.add_to_match(value, leaves[place])
                 for place, value in zip(places, results)}
        return tuple(found.get(place) for place in range(len(leaves)))

    call.defvjp(forward, backward, symbolic_zeros=True)
    return list(call(*jax.tree_util.tree_leaves(arguments)))
