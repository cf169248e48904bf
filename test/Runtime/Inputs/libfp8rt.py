"""libfp8rt's scaling states through ctypes."""

import ctypes
import json

import numpy as np

OK, INVALID_ARGUMENT, INVALID_HANDLE, BUSY, NOT_FOUND = range(5)
INVALID_MANIFEST, FILE, VERSION, MISMATCH, OUT_OF_MEMORY = range(5, 10)
STRICT = 1


class Rows(ctypes.Structure):
    _fields_ = [
        ("num_slots", ctypes.c_int64),
        ("amax", ctypes.POINTER(ctypes.c_float)),
        ("scale", ctypes.POINTER(ctypes.c_float)),
        ("scale_inv", ctypes.POINTER(ctypes.c_float)),
        ("underflow", ctypes.POINTER(ctypes.c_int64)),
        ("saturated", ctypes.POINTER(ctypes.c_int64)),
        ("cache", ctypes.POINTER(ctypes.c_void_p)),
    ]


class Report(ctypes.Structure):
    _fields_ = [
        ("matched", ctypes.c_int64),
        ("missing", ctypes.c_int64),
        ("extra", ctypes.c_int64),
        ("amax_history_len", ctypes.c_int64),
        ("text", ctypes.c_char_p),
    ]


class Error(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Library:
    def __init__(self, path):
        self.dll = ctypes.CDLL(path)
        self.dll.fp8rt_get_last_error.restype = ctypes.c_char_p

    def call(self, name, *args):
        status = getattr(self.dll, f"fp8rt_state_{name}")(*args)
        if status != OK:
            raise Error(status, self.dll.fp8rt_get_last_error().decode())

    def create(self, names, formats, history_len, **recipe):
        slots = [{"name": n, "format": f} for n, f in zip(names, formats)]
        manifest = {"version": 1, "slots": slots, "amax_history_len": history_len, **recipe}
        return self.create_from(manifest)

    def create_from(self, manifest):
        text = json.dumps(manifest).encode()
        handle = ctypes.c_uint64()
        self.call("create", text, ctypes.c_size_t(len(text)), ctypes.byref(handle))
        return State(self, handle, manifest["amax_history_len"])


class State:
    """`amax`, `scale`, `scale_inv`, ... are views of the state's own rows."""

    def __init__(self, library, handle, history_len):
        self.library, self.handle, self.history_len = library, handle, history_len
        self.rows = rows = Rows()
        self.call("get_rows", ctypes.byref(rows))
        for row in ("amax", "scale", "scale_inv", "underflow", "saturated"):
            shape = (rows.num_slots,)
            setattr(self, row, np.ctypeslib.as_array(getattr(rows, row), shape))

    def call(self, name, *args):
        self.library.call(name, self.handle, *args)

    def histories(self):
        out = np.empty((self.history_len, len(self.amax)), np.float32)
        pointer = out.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        self.call("get_histories", pointer, ctypes.c_int64(out.size))
        return out

    def save(self, path):
        self.call("save", str(path).encode())

    def load(self, path, flags=0):
        report = Report()
        self.call("load", str(path).encode(), ctypes.c_uint32(flags), ctypes.byref(report))
        return report

    def destroy(self):
        self.call("destroy")
