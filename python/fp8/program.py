"""Compiled programs."""

import json
from collections import namedtuple

from fp8 import _core
from fp8.errors import ArgumentError, NotFoundError
from fp8.remarks import explain
from fp8.state import State

# An argument or a result: `dtype` as in .safetensors files, e.g. "BF16"; `shape` is a tuple
# with None for a size that calls choose, or None for a scalar.
ValueInfo = namedtuple("ValueInfo", "name dtype shape")


class Function:
    """A function of a program. Calling it takes an array for each of `arguments`, in their
    order, and gives an array for each of `results`: nothing, one, or a tuple.

    Arrays are NumPy's, PyTorch's, JAX's or of anything that has `__dlpack__`, in row-major
    order, of the dtype and shape that the info has; nothing is converted or copied. A number
    does for a scalar. Results are of the kind of the first array, or have `__dlpack__`.
    Programs for a GPU take arrays of one device and return when all is launched.

    - state: a State of the program, needed where `takes_state`;
    - stream: of CUDA, as an int; without it, that in which PyTorch is, if the first array on
      the GPU is PyTorch's, else the default stream.

    Raises ArgumentError for arrays that do not fit, DeviceError for those in the wrong
    place, MismatchError for another program's state, BusyError for one that is in use.
    """

    __slots__ = ("name", "arguments", "results", "takes_state", "runs_on_gpu", "_call", "_core",
                 "_index")

    def __init__(self, program, index, description):
        self.name, arguments, results, self.takes_state, self.runs_on_gpu = description
        self.arguments = tuple(ValueInfo(*info) for info in arguments)
        self.results = tuple(ValueInfo(*info) for info in results)
        self._call, self._core, self._index = program.call, program, index

    def __call__(self, *arguments, state=None, stream=None):
        if isinstance(state, State):
            state = state._core
        elif self.takes_state or state is not None:
            raise ArgumentError(
                f"expected a state for '{self.name}', but got "
                f"{'None' if state is None else type(state).__name__}; fp8.State(program) makes one")
        return self._call(self._index, arguments, state, stream)

    def prepare(self, calls, kind, values, order, state):
        """Adds it to _core.PreparedCalls as one of a kind, for such tensors, of which it takes those of
        the numbers `order`, and a State or None, if it runs on a GPU."""
        if self.runs_on_gpu:
            calls.add(kind, values, self._core, self._index, order,
                      None if state is None else state._core)

    def make_layer_call(self, dtype, parameters):
        """A _core.LayerCall of a function of rows and a layer's parameters, of each of which
        `parameters` has the name, itself, and what the function takes; None if it does not run
        on a GPU."""
        if not self.runs_on_gpu:
            return None
        return _core.LayerCall(self._core, self._index, dtype, parameters)

    def make_part_call(self, values, arguments, results):
        """A _core.PartCall of tensors such as `values`, which it describes as that says; None where it does not
        run on a GPU, or for others."""
        if not self.runs_on_gpu or self.takes_state:
            return None
        try:
            return _core.PartCall(self._core, self._index, values, arguments, results)
        except ArgumentError:
            return None

    def __repr__(self):
        def describe(infos):
            return ", ".join(
                f"{p.name}: {p.dtype}"
                + ("" if p.shape is None else
                   f"[{', '.join('?' if size is None else str(size) for size in p.shape)}]")
                for p in infos)
        return f"<fp8 function {self.name}({describe(self.arguments)}) -> ({describe(self.results)})>"


class Program:
    """What fp8.compile and fp8.load return.

    `functions` are its Functions by name; they are attributes and items too. A program with
    one function is called as that. `remarks` say what was decided of each matrix product,
    `diagnostics` are the compiler's warnings; a program that was loaded from a file has
    neither. Threads may call a program at the same time.
    """

    def __init__(self, core, remarks=(), diagnostics=(), compile_again=None):
        self._core = core
        # What makes a core that can be saved, where this one was taken from a cache.
        self._compile_again = compile_again
        self.remarks = tuple(remarks)
        self.diagnostics = tuple(diagnostics)
        self.functions = {
            description[0]: Function(core, index, description)
            for index, description in enumerate(core.describe_functions())}
        self._only = next(iter(self.functions.values())) if len(self.functions) == 1 else None

    @property
    def manifest(self):
        """What docs/Runtime.md lists: name, target, recipe, functions, state, ..."""
        return json.loads(self._core.manifest)

    @property
    def target(self):
        """"cpu" or the GPU that it is for, e.g. "sm_90a"."""
        return self.manifest["target"]

    def __call__(self, *arguments, state=None, stream=None):
        if self._only is None:
            raise ArgumentError(f"expected one of the functions {', '.join(self.functions)} to be "
                                f"called, since the program has several")
        return self._only(*arguments, state=state, stream=stream)

    def __getitem__(self, name):
        try:
            return self.functions[name]
        except KeyError:
            raise NotFoundError(f"expected one of the functions {', '.join(self.functions)}, but "
                                f"got '{name}'") from None

    def __getattr__(self, name):
        # Only for what is no attribute; `functions` is missing in an object half made.
        functions = self.__dict__.get("functions", {})
        if name in functions:
            return functions[name]
        raise AttributeError(f"expected an attribute or a function of the program, but got "
                             f"'{name}'")

    def create_state(self):
        """A new State, as State(program)."""
        return State(self)

    def explain(self):
        """Prints each matrix product: what runs it, and why it is not in FP8."""
        print(explain(self.remarks))

    def save(self, path, header=None):
        """Writes a shared object for fp8.load, fp8-run and C, and to `header`, if given, a
        header for C. Takes a linker, ld.lld or ld. A program of the cache is compiled for it. Raises ArgumentError
        without a linker and for a program that fp8.load made, FileError."""
        core = self._core if self._compile_again is None else self._compile_again()
        core.save(path, header)

    def __repr__(self):
        return f"<fp8 program for {self.target}: {', '.join(self.functions)}>"


def load(path):
    """The program in a shared object that Program.save or fp8-compile wrote; it is code, which
    runs. Raises FileError, MismatchError for another version, UnsupportedError for another
    processor."""
    return Program(_core.load_program(path))
