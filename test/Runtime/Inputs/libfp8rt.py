"""libfp8rt's scaling states through ctypes."""

import ctypes
import json

import numpy as np

from fp8 import abi
from fp8.abi import Error  # noqa: F401

OK, INVALID_ARGUMENT, INVALID_HANDLE, BUSY, NOT_FOUND = range(5)
INVALID_MANIFEST, FILE, VERSION, MISMATCH, OUT_OF_MEMORY = range(5, 10)
STRICT = 1


class Library(abi.Library):
    """`call` leaves out the start of the names."""

    def call(self, name, *args):
        getattr(self, f"fp8rt_state_{name}")(*args)

    def create(self, names, formats, history_len, **recipe):
        slots = [{"name": n, "format": f} for n, f in zip(names, formats)]
        manifest = {"version": 1, "slots": slots, "amax_history_len": history_len, **recipe}
        return self.create_from(manifest)

    def create_from(self, manifest):
        text = json.dumps(manifest).encode()
        handle = ctypes.c_uint64()
        self.call("create", text, len(text), ctypes.byref(handle))
        return State(self, handle, manifest.get("amax_history_len", 0))


class State:
    """`amax`, `scale`, `scale_inv`, ... are views of the state's own rows."""

    def __init__(self, library, handle, history_len):
        self.library, self.handle, self.history_len = library, handle, history_len
        self.rows = rows = abi.structs.fp8rt_state_rows()
        self.call("get_rows", ctypes.byref(rows))
        for row in ("amax", "scale", "scale_inv", "underflow", "saturated"):
            shape = (rows.num_slots,)
            setattr(self, row, np.ctypeslib.as_array(getattr(rows, row), shape))

    def call(self, name, *args):
        self.library.call(name, self.handle, *args)

    def histories(self):
        out = np.empty((self.history_len, len(self.amax)), np.float32)
        pointer = out.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        self.call("get_histories", pointer, out.size)
        return out

    def save(self, path):
        self.call("save", str(path).encode())

    def load(self, path, flags=0):
        report = abi.structs.fp8rt_load_report()
        self.call("load", str(path).encode(), flags, ctypes.byref(report))
        return report

    def destroy(self):
        self.call("destroy")
