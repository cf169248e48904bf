# RUN: %python %s

"""What the environment says of the driver: failures, what it lacks, several devices, kernels that are not run."""

import os
import tempfile
import unittest

from emulator import run

# Functions as a program gets them, whose calls are counted.
GET = """
library = ctypes.CDLL(LIBRARY)
def call(name, *arguments):
    address = ctypes.c_void_p()
    if code := library.cuGetProcAddress_v2(name.encode(), ctypes.byref(address), 13000, ctypes.c_uint64(1), None):
        return code
    return ctypes.CFUNCTYPE(ctypes.c_int)(address.value)(*arguments)
contexts = [ctypes.c_void_p(), ctypes.c_void_p()]
def start(device=0):
    code = call("cuInit", 0) or call("cuDevicePrimaryCtxRetain", ctypes.byref(contexts[device]), device)
    return code or call("cuCtxSetCurrent", contexts[device])
def allocate(bytes=64):
    return call("cuMemAlloc", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(bytes))
"""

KERNEL = """
text = kernel("st.global.b32 [%a0], 7;", directives=".reqntid 32, 1, 1")
out = Buffer(device, np.zeros(1, np.uint32))
"""


class Driver(unittest.TestCase):
    def prints(self, expected, code, **environment):
        printed, report = run(GET + code, **environment)
        self.assertEqual((printed.split(), report), (expected.split(), ""))

    def refuses(self, message, **environment):
        printed, report = run(GET + "print(start())", **environment)
        self.assertEqual(printed.strip(), "3")
        self.assertIn(message, report)

    def test_fails_at_a_call(self):
        code = "print(start(), *(allocate() for _ in range(3)))"
        self.prints("0 0 0 0", code)
        self.prints("0 0 2 0", code, FAIL="cuMemAlloc@2=2")
        self.prints("0 700 0 2", code, FAIL="cuMemAlloc@3=2,cuMemAlloc@1=700")
        self.prints("0 2 2 2", code, FAIL="cuMemAlloc=2")
        self.prints("803 201 201 201", code, FAIL="cuInit=803")

    def test_failures_that_make_no_sense(self):
        expected = "expected FP8_EMULATOR_FAIL to be a list of FUNCTION=ERROR and FUNCTION@CALL=ERROR, but got "
        for text in ("cuInit", "cuInit=", "cuInit=0", "cuInit=two", "cuInit@0=2", "cuInit@=2", "cuInit=2@1",
                     "cuMemFree=1,cuInit=2x"):
            self.refuses(f"{expected}'{text}'", FAIL=text)
        self.refuses("expected FP8_EMULATOR_FAIL to name functions of the driver, but got 'cuMemAlloc_v2'",
                     FAIL="cuMemAlloc_v2=2")
        self.refuses("expected FP8_EMULATOR_WITHOUT to name functions of the driver, but got 'cuda'", WITHOUT="cuda")

    def test_lacks_functions(self):
        self.prints("500 500 0", "print(call('cuMemAlloc'), call('cuMemFree'), start())",
                    WITHOUT="cuMemAlloc,cuMemFree")

    def test_what_it_is(self):
        version = "version = ctypes.c_int(); call('cuDriverGetVersion', ctypes.byref(version)); print(version.value)"
        self.prints("13000", version)
        self.prints("11040", version, VERSION=11040)
        self.prints("100", "print(start())", DEVICES=0)
        self.prints("0 2 0", "print(start(), allocate(4097), allocate(4096))", MEMORY=4096)
        self.refuses("expected FP8_EMULATOR_ARCH to be 80, 89, 90, 100, 120 or 121, but got '95'", ARCH=95)

    def test_empty_is_not_set(self):
        self.prints("0", "print(start())", ARCH="", VERSION="", DEVICES="", ORDER="", FAIL="", REPORT="")

    def test_devices(self):
        self.prints("0 101", "print(start(), call('cuDeviceGet', ctypes.byref(ctypes.c_int()), 1))")
        # Each has memory, streams and kernels of its own, and is lost by itself.
        self.prints("0 0 2 0 0", "print(start(0), allocate(4096), allocate(1), start(1), allocate(4096))",
                    DEVICES=2, MEMORY=4096)
        self.prints("400 700 0", """
device = Device()
text = kernel("mov.u64 %d0, 0; ld.global.b32 %r0, [%d0];", params=0)
function = device.load(text)
start(1)
try:
    device.launch(function, [])
except DriverError as error:
    print(error.code)
start(0)
device.library.fp8emu_lose(0)
print(call("cuCtxSynchronize"))
start(1)
print(call("cuCtxSynchronize"))
""", DEVICES=2)

    def test_skips_kernels(self):
        launch = "device = Device()" + KERNEL + """
function = device.load(text)
try:
    device.launch(function, [out], block=(threads, 1, 1))
    print(out.array[0])
except DriverError as error:
    print(error.code)
"""
        self.prints("7", "threads = 32\n" + launch)
        self.prints("0", "threads = 32\n" + launch, KERNELS="skip")
        self.prints("1", "threads = 64\n" + launch, KERNELS="skip")

    def test_runs_on_an_older_device(self):
        launch = "device = Device()" + KERNEL + """
try:
    device.launch(device.load(text.replace("sm_90a", target)), [out], cluster=cluster)
    print(out.array[0])
except DriverError as error:
    print(error.code)
"""
        self.prints("7", "target, cluster = 'sm_80', None\n" + launch, ARCH=80)
        self.prints("801", "target, cluster = 'sm_80', (1, 1, 1)\n" + launch, ARCH=80)
        self.prints("218", "target, cluster = 'sm_90a', None\n" + launch, ARCH=80)

    def test_clusters_that_run_at_once(self):
        # A cluster is in one of eight groups of 16 or 18 multiprocessors.
        code = "device = Device()" + KERNEL + """
for cluster in (1, 2, 4, 8, 16):
    attribute = LaunchAttribute(4, 0, (cluster, 1, 1))
    config = LaunchConfig((cluster, 1, 1), (32, 1, 1), 200 << 10, None, ctypes.addressof(attribute), 1)
    function, clusters = device.load(text), ctypes.c_int()
    device.call("cuFuncSetAttribute", function, 8, 200 << 10)
    device.call("cuOccupancyMaxActiveClusters", ctypes.byref(clusters), function, ctypes.byref(config))
    print(clusters.value)
"""
        self.prints("132 66 32 16 8", code, SMS=132)
        self.prints("148 74 36 18 9", code, SMS=148)
        self.prints("4 2 1 0 0", code)

    def test_traces_calls(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace")
            self.prints("0 0", "print(start(), allocate())\ndevice = Device()" + KERNEL + """
device.launch(device.load(text), [out], grid=(2, 1, 1))
""", TRACE=path)
            with open(path) as file:
                lines = file.read().splitlines()
            self.assertEqual(lines[:-1], ["cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc",
                                          "  kernel grid 2x1x1 block 32x1x1 cluster 1 smem 0"])
            self.assertRegex(lines[-1], r"^  kernel took \d+ steps$")


if __name__ == "__main__":
    unittest.main()
