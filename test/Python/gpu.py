# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_HOST_TENSORS=0 %python %s %fp8_build/lib/libfp8rt.so
"""Calls on the model of a GPU: places, streams, states, and what is refused."""

import ctypes
import sys
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402

runtime = ctypes.CDLL(sys.argv.pop())
BF16, F32 = (4, 16, 1), (2, 32, 1)


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device", ctypes.c_int32), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("sizes", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


make_capsule = ctypes.pythonapi.PyCapsule_New
make_capsule.restype = ctypes.py_object
make_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype = ctypes.c_void_p
get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Array:
    """A tensor in a device's memory, as DLPack has it."""

    def __init__(self, shape, dtype, device=0):
        memory = ctypes.c_void_p()
        size = int(np.prod(shape)) * dtype[1] // 8
        assert runtime.fp8rt_memory_alloc(device, ctypes.c_size_t(size), ctypes.byref(memory)) == 0
        self.sizes = (ctypes.c_int64 * len(shape))(*shape)
        self.managed = DLManagedTensor(
            DLTensor(memory, 2, device, len(shape), *dtype, self.sizes, None, 0), None, None)
        self.streams = []

    def __dlpack_device__(self):
        return 2, self.managed.tensor.device

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return make_capsule(ctypes.addressof(self.managed), b"dltensor", None)

    def __array_namespace__(self):
        return Namespace


class Namespace:
    @staticmethod
    def from_dlpack(result):
        return result


def make_stream():
    stream = ctypes.c_void_p()
    assert runtime.fp8rt_stream_create(0, ctypes.byref(stream)) == 0
    return stream.value


def compile(recipe):
    return fp8.compile(programs.LINEAR, recipe, target="sm_90a", cache=False)


class GPU(unittest.TestCase):
    def setUp(self):
        self.x, self.w = Array((32, 256), BF16), Array((256, 64), BF16)

    def test_results_are_on_the_device(self):
        program = compile("current")
        self.assertTrue(program.linear.runs_on_gpu)
        y = program(self.x, self.w)
        self.assertEqual(y.__dlpack_device__(), (2, 0))
        managed = ctypes.cast(get_pointer(y.__dlpack__(stream=-1), b"dltensor"),
                              ctypes.POINTER(DLManagedTensor)).contents
        self.assertEqual(managed.tensor.sizes[:2], [32, 64])
        with self.assertRaises(BufferError):
            memoryview(y)

    def test_streams(self):
        program, stream = compile("current"), make_stream()
        y = program(self.x, self.w, stream=stream)
        program(self.x, self.w)
        # 1 is the default stream.
        self.assertEqual(self.x.streams, [stream, 1])
        for theirs in (None, -1, 1, stream, make_stream()):
            self.assertTrue(y.__dlpack__(stream=theirs))

    def test_auto_is_the_gpu(self):
        program = fp8.compile(programs.LINEAR, "current", cache=False)
        self.assertEqual(program.target, "sm_90a")
        self.assertEqual(fp8.check_support().target, "sm_90a")

    def test_states(self):
        program = compile(fp8.DelayedScaling(amax_history_len=4))
        state, stream = fp8.State(program), make_stream()
        for _ in range(3):
            program(self.x, self.w, state=state, stream=stream)
            state.end_step()
        self.assertEqual(len(state.slots), 2)
        program(self.x, self.w, state=state, stream=stream)
        address, count, device = state.get_amax_row()
        self.assertEqual((address != 0, count, device), (True, 2, 0))
        state.end_step(stream)
        other = fp8.State(program)
        other.load_state_dict(state.state_dict())
        with other.frozen():
            program(self.x, self.w, state=other, stream=stream)
        self.assertFalse(other._core.frozen)
        self.assertEqual(other.slots, state.slots)
        self.assertEqual(other.steps, state.steps)

    def test_arrays_of_the_host(self):
        program = compile("current")
        x, w = programs.make_inputs()
        for arguments in ((x, w), (self.x, w), (x, self.w)):
            with self.assertRaisesRegex(fp8.DeviceError, "in memory of CUDA device 0, but it is "
                                                         "the host's") as caught:
                program(*arguments)
            self.assertEqual(caught.exception.status, "WRONG_DEVICE")
        self.assertEqual(program(self.x, self.w).__dlpack_device__(), (2, 0))

    def test_arrays_of_the_device_on_the_host(self):
        program = fp8.compile(programs.LINEAR, "current", target="cpu", cache=False)
        with self.assertRaisesRegex(fp8.DeviceError, "in memory of the host"):
            program(self.x, self.w)

    def test_casts(self):
        x = Array((4, 40), F32)
        q = fp8.quantize(x, "e4m3", (1, None))
        self.assertEqual(q.codes.__dlpack_device__(), (2, 0))
        self.assertEqual(fp8.dequantize(q).__dlpack_device__(), (2, 0))


if __name__ == "__main__":
    unittest.main()
