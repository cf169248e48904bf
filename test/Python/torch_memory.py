# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_HOST_TENSORS=0 %import_python %s %fp8_build/lib/libfp8rt.so
"""What calls allocate from PyTorch, whose tensors of the host, in an emulated GPU's memory, say here
that they are on one."""

import ctypes
import gc
import random
import sys
import unittest
from unittest import mock

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import linear_ops, quantized_linear, schemes

runtime = ctypes.CDLL(sys.argv.pop())


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device", ctypes.c_int32), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("sizes", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


Delete = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                    ("manager", ctypes.c_void_p), ("deleter", Delete), ("flags", ctypes.c_uint64),
                    ("tensor", DLTensor)]
Allocate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(DLTensor),
                            ctypes.POINTER(ctypes.POINTER(Managed)), ctypes.c_void_p,
                            ctypes.c_void_p)
Export = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(Managed)))
# These need the GIL, as they are called with it.
Import = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.c_void_p))
View = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(DLTensor))
GetStream = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32,
                             ctypes.POINTER(ctypes.c_void_p))


class API(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("previous", ctypes.c_void_p), ("allocate", Allocate), ("export", Export),
                ("import_", Import), ("view", View), ("get_stream", GetStream)]


class Device:
    """PyTorch on an emulated GPU: what it has allocated, and how often."""

    NAME = ctypes.create_string_buffer(b"dlpack_exchange_api")

    def __init__(self):
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
        pointer = get(torch.Tensor.__dlpack_c_exchange_api__, self.NAME.value)
        self.theirs = API.from_address(pointer)
        self.used, self.count, self.deleter = {}, 0, Delete(self.delete)
        self.api = API(self.theirs.major, self.theirs.minor, None, Allocate(self.allocate),
                       self.theirs.export, Import(self.import_), View(self.view),
                       GetStream(lambda *_: 0))
        torch.Tensor.__dlpack_c_exchange_api__ = make(
            ctypes.addressof(self.api), ctypes.addressof(self.NAME), None)
        nn.Parameter.__dlpack_c_exchange_api__ = torch.Tensor.__dlpack_c_exchange_api__

    def get_memory(self, size):
        memory = ctypes.c_void_p()
        assert runtime.fp8rt_memory_alloc(0, ctypes.c_size_t(size), ctypes.byref(memory)) == 0
        return memory.value

    def allocate(self, prototype, result, context, set_error):
        self.count += 1
        size = prototype[0].sizes[0]
        sizes = (ctypes.c_int64 * 2)(size, 1)
        made = Managed(1, 0, None, self.deleter, 0, DLTensor(
            self.get_memory(size), 2, 0, 1, 1, 8, 1, sizes, None, 0))
        self.used[made.tensor.data] = made, sizes
        result[0] = ctypes.pointer(made)
        return 0

    def delete(self, made):
        memory = made[0].tensor.data
        # Whoever still reads it finds something else.
        ctypes.memset(memory, 0x7f, self.used[memory][1][0])
        del self.used[memory]
        runtime.fp8rt_memory_free(0, ctypes.c_void_p(memory))

    def import_(self, managed, array):
        managed[0].tensor.device_type = 1
        return self.theirs.import_(managed, array)

    def view(self, array, tensor):
        status = self.theirs.view(array, tensor)
        tensor[0].device_type = 2
        return status

    def put(self, tensor):
        """A copy in the GPU's memory, for good."""
        size = tensor.numel() * tensor.element_size()
        memory = (ctypes.c_char * size).from_address(self.get_memory(size))
        made = torch.frombuffer(memory, dtype=torch.uint8).view(tensor.dtype).view(tensor.shape)
        made.view(torch.uint8).copy_(tensor.view(torch.uint8))
        return made

    def put_parameters(self, module):
        for value in module.parameters():
            value.data = self.put(value.detach())
        return module


def make_values(*sizes, seed=1):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).bfloat16()


_compile = schemes.compile_linear
device = Device()
torch.manual_seed(2)
quantized = device.put_parameters(fp8.torch.quantize_for_inference(
    device.put_parameters(nn.Linear(64, 32).bfloat16()), "rowwise"))


class Memory(unittest.TestCase):
    def tearDown(self):
        gc.collect()
        self.assertEqual(device.used, {})

    def count(self, call):
        before = device.count
        call()
        return device.count - before

    @mock.patch.object(schemes, "compile_linear", lambda *given: _compile(*given[:-1], "sm_90a"))
    def test_inference(self):
        def compute(x):
            return quantized_linear.compute(x, quantized.get_tensors(), quantized.bias,
                                            str(quantized.scheme))

        with torch.no_grad():
            inputs = [device.put(make_values(rows, 64, seed=rows)) for rows in (1, 3, 40)]
            expected = [compute(x).clone() for x in inputs]
            quantized(inputs[0])
            # Codes, factors and the result; the second call of a size has them in one piece.
            self.assertEqual([self.count(lambda: quantized(inputs[0])) for _ in range(3)],
                             [3, 1, 1])
            self.assertEqual(device.used, {})
            kept, order = [], random.Random(5)
            for _ in range(30):
                i = order.choice((0, 0, 0, 1, 2))
                kept.append((i, quantized(inputs[i])))
                if order.random() < 0.3:
                    kept.pop(order.randrange(len(kept)))
            for i, y in kept:
                self.assertTrue(torch.equal(y, expected[i]))

    def test_large_results(self):
        """Results that are large do not keep what a call needs beside them."""
        with mock.patch.object(schemes, "compile_linear",
                               lambda *given: _compile(*given[:-1], "sm_90a")), torch.no_grad():
            x = device.put(make_values(4096, 64))
            counts = [self.count(lambda: quantized(x)) for _ in range(4)]
            self.assertEqual(counts[-1], 2)
            y = quantized(x)
            self.assertEqual(len(device.used), 1)
            self.assertEqual([sizes[0] for _, sizes in device.used.values()], [4096 * 32 * 2])
            self.assertEqual(y.shape, (4096, 32))
            del y

    def train(self, prepares):
        torch.manual_seed(3)
        layer = nn.Sequential(nn.Linear(64, 48)).bfloat16()
        device.put_parameters(layer)
        fp8.torch.convert_to_fp8_training(layer, "delayed,initial=one", first_last_bf16=0,
                                          target="sm_90a", only_faster=False)
        found, counts = [], []
        prepare = linear_ops.Unit._prepare if prepares else lambda *given: None
        with mock.patch.object(linear_ops.Unit, "_prepare", prepare):
            for step in range(5):
                x = device.put(make_values(32, 64, seed=step)).requires_grad_()
                dy, before = device.put(make_values(32, 48, seed=9)), device.count
                y = layer(x)
                y.backward(dy)
                counts.append(device.count - before)
                found += [y.detach(), x.grad, *(value.grad for value in layer.parameters())]
                for value in layer.parameters():
                    value.grad = None
        return found, counts

    @mock.patch.object(schemes, "compile_linear", lambda *given: _compile(*given[:-1], "sm_90a"))
    def test_results_begin_what_was_allocated(self):
        """PyTorch's CUDA graphs look for them there (check_memory_pool)."""
        with torch.no_grad():
            x = device.put(make_values(3, 64))
            for _ in range(3):
                y = quantized(x)
            self.assertIn(y.untyped_storage().data_ptr(), device.used)
            del y

    def test_training(self):
        (found, counts), (expected, others) = self.train(True), self.train(False)
        for value, correct in zip(found, expected, strict=True):
            self.assertTrue(torch.equal(value, correct))
        # Six results, and what each of both directions needs meanwhile.
        self.assertEqual((others[-1], counts[-1]), (11, 8))
        biases = found[3::4]
        del found, value
        for value, correct in zip(biases, expected[3::4], strict=True):
            self.assertTrue(torch.equal(value, correct))


if __name__ == "__main__":
    unittest.main()
