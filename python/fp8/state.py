"""Scaling states of programs with delayed scaling."""

import contextlib
import json
import os
import tempfile
from collections import namedtuple
from collections.abc import Mapping

import numpy as np
import safetensors
import safetensors.numpy

from fp8 import _core
from fp8.errors import ArgumentError, DeviceError, FileError, shorten

# A tensor that is quantized: `amax` is that of the last step; `recorded`, `non_finite`,
# `underflow` and `saturated` count steps with an amax, with one of Inf, and elements that
# became 0 or were too large. A NaN is in no amax.
Slot = namedtuple("Slot", "name format role operand amax scale recorded non_finite underflow "
                          "saturated")

# Words of a slot with stochastic rounding: two of the seed, the steps, and a free one.
_SEED_WORDS = 4

# Holds the file's metadata in a state_dict, JSON as bytes.
_METADATA = "metadata"


# Kinds of NumPy's dtypes that a state's arrays have.
_KINDS = "biuf"


def _make_array(name, value):
    """An array of a state_dict for a file. Raises ArgumentError."""
    try:
        name.encode()
        array = np.ascontiguousarray(value)
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"an array of {array.dtype}")
    except Exception as error:  # Frameworks may make anything of a conversion.
        raise ArgumentError(
            f"expected {shorten(repr(name))} of a state_dict to name an array of the host, but "
            f"got: {shorten(str(error))}") from None
    return array.reshape(np.shape(value))


class State:
    """Scales and amaxes of a program's quantized tensors.

    A step is one call or several of functions of the program, then `end_step`, which makes
    the scales of the next one. Where calls ran on a GPU, that is where the state is, and
    end_step is work in their stream; what looks at values here waits for that. One thread at
    a time: all methods raise BusyError otherwise.

    Raises ArgumentError for a program whose recipe has no state.
    """

    def __init__(self, program):
        core = getattr(program, "_core", None)
        if not isinstance(core, _core.Program):
            raise ArgumentError(f"expected a program, but got {type(program).__name__}")
        self._core = _core.State(core)
        self._runs_on_gpu = any(f.runs_on_gpu for f in program.functions.values())

    def end_step(self, stream=None):
        """Ends a step. `stream` is CUDA's, as an int; without it, that of the last call."""
        self._core.end_step(stream)

    @contextlib.contextmanager
    def frozen(self):
        """Within it, calls use the scales and record nothing: evaluation."""
        self._download()
        was_frozen = self._core.frozen
        self._core.freeze()
        try:
            yield self
        finally:
            if not was_frozen:
                self.unfreeze()

    def freeze(self):
        """From now on calls use the scales and record nothing, until `unfreeze`."""
        self._download()
        self._core.freeze()

    def unfreeze(self):
        self._download()
        self._core.unfreeze()

    def reset(self):
        """Back to no history: the next step is a first one."""
        self._download()
        self._core.reset()

    def set_scale(self, name, scale):
        """Gives a slot a scale, finite and above 0. Raises NotFoundError, ArgumentError."""
        try:
            value = float(scale)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError(f"expected a scale, but got {shorten(repr(scale))}") from None
        self._download()
        self._core.set_scale(name, value)

    def set_seed(self, seed):
        """Gives the tensors that are rounded stochastically a seed, 0 to 2^64 - 1 (0 in a new
        state): ranks that shall not round alike have one each. How many steps have ended stays.
        Raises ArgumentError for a program without such tensors."""
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2 ** 64:
            raise ArgumentError(f"expected a seed of 0 to 2^64 - 1, but got "
                                f"{shorten(repr(seed))}")
        if "stochastic_rounding=true" not in self.recipe.split(","):
            raise ArgumentError(f"expected a state with stochastic rounding, but got one of "
                                f"{self.recipe}")
        for name in self.slots:
            words = self._core.get_words(name, _SEED_WORDS)
            words[:2] = np.array([seed], np.uint64).view(np.int32).tolist()
            self._core.set_words(name, words)

    @property
    def steps(self):
        """How many have ended."""
        self._download()
        return self._core.steps

    @property
    def recipe(self):
        """As compile takes it."""
        self._download()
        return self._core.recipe

    @property
    def slots(self):
        """The Slots by name, in the order of the program."""
        self._download()
        slots = (Slot(*entry) for entry in self._core.describe_slots())
        return {slot.name: slot for slot in slots}

    def save(self, path):
        """Writes a .safetensors file, whole or not at all, which fp8-state shows and
        StaticScaling reads. Raises FileError."""
        self._download()
        self._core.save(path)

    def load(self, path, strict=False):
        """Takes over what a file has for slots of the same names. Returns a line for each
        difference, which with `strict` is a MismatchError. Raises FileError; MismatchError
        for another recipe, another format of a slot, or no slot of the same name."""
        self._download()
        return self._core.load(path, strict)

    def state_dict(self):
        """The contents of the saved file as NumPy arrays by name, and its metadata as bytes,
        U8, a checksum among it: what goes into a checkpoint. docs/Runtime.md lists them."""
        with tempfile.TemporaryDirectory(prefix="fp8-") as folder:
            path = os.path.join(folder, "state.safetensors")
            self.save(path)
            with safetensors.safe_open(path, "numpy") as file:
                metadata = file.metadata()
            arrays = safetensors.numpy.load_file(path)
        text = json.dumps(metadata, sort_keys=True)
        return {**arrays, _METADATA: np.frombuffer(text.encode(), np.uint8).copy()}

    def load_state_dict(self, state_dict, strict=True):
        """The inverse, of arrays on the host that nobody changed; as `load`, but for a
        dictionary."""
        if not isinstance(state_dict, Mapping):
            raise ArgumentError(f"expected a state_dict, but got {type(state_dict).__name__}")
        arrays = {name: _make_array(name, array) for name, array in state_dict.items()}
        try:
            metadata = json.loads(arrays.pop(_METADATA).tobytes())
            if not all(isinstance(value, str) for value in metadata.values()):
                raise ValueError
        except (KeyError, ValueError, AttributeError, RecursionError):
            raise FileError(f"expected '{_METADATA}' of a state_dict to be what state_dict() "
                            f"returned, but it is not") from None
        with tempfile.TemporaryDirectory(prefix="fp8-") as folder:
            path = os.path.join(folder, "state.safetensors")
            try:
                safetensors.numpy.save_file(arrays, path, metadata)
            except (safetensors.SafetensorError, OSError, ValueError) as error:
                raise FileError(f"expected a state_dict that can be written, but got: "
                                f"{shorten(str(error))}") from error
            return self.load(path, strict)

    def set_device(self, device):
        """Says before the first call on which GPU the state is to be: that of this index."""
        if self._runs_on_gpu and self._core.device != device:
            self._core.device = device

    def get_amax_row(self, stream=None):
        """Where the amaxes of the present step are, for the maximum over ranks before
        end_step: (address, count, device), f32, device None for the host."""
        address, count = self._core.get_amax_row(self._runs_on_gpu, stream)
        return address, count, self._core.device if self._runs_on_gpu else None

    def get_scale_rows(self, stream=None):
        """Where the scales of the present step are, and their inverses, for codes that others
        make with them: (address, address, count, device), as get_amax_row has them."""
        scales, inverses, count = self._core.get_scale_rows(self._runs_on_gpu, stream)
        return scales, inverses, count, self._core.device if self._runs_on_gpu else None

    def _download(self):
        """Takes the values back from a GPU that has them."""
        if not self._runs_on_gpu:
            return
        with contextlib.suppress(ArgumentError, DeviceError):
            self._core.download(None)

    def __repr__(self):
        return f"<fp8 state of {self.recipe}>"
