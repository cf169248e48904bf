# RUN: env FP8_CUDA_DRIVER=emulator %python %s
"""What layers take is read from the machines' files, by the names of devices."""

import unittest

import fp8
from fp8 import machines


PROGRAM = """
func.func @f(%a: !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>,
             %b: !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>) -> tensor<64x64xbf16> {
  %0 = fp8.matmul %a, %b : !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>,
                           !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32> -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}
"""


def emit(**options):
    return fp8.emit(PROGRAM, to="buffers", **options)


class Test(unittest.TestCase):
    def test_the_compilers(self):
        found = machines.get_machines()
        self.assertEqual(set(found), {"h200", "h100", "b200", "rtx4090", "l40s", "l4", "rtx5090",
                                      "rtxpro6000", "dgxspark", "rtx3090", "a100"})
        for machine in found.values():
            self.assertEqual(set(machine.layers), {"none", "delayed", "current", "rowwise", "block"})
            for layer in machine.layers.values():
                self.assertEqual(list(layer), ["launch", "product", "x", "weight", "y"])
            self.assertEqual(set(machine.host), {"product", "cast", "share"})
        self.assertEqual(found["h200"].layers["none"]["launch"], 9.842)

    def test_devices(self):
        for device, name in (("NVIDIA H200", "h200"), ("NVIDIA H100 80GB HBM3", "h100"),
                             ("NVIDIA B200", "b200"), ("NVIDIA GeForce RTX 4090", "rtx4090"), ("NVIDIA L40S", "l40s"),
                             ("NVIDIA L4", "l4"), ("NVIDIA GH200 480GB", "h200"), ("", "h200")):
            self.assertEqual(machines.find(device).name, name)
        # A GH200 is nobody's: h200 stands in.
        self.assertIs(machines.get_own(), machines.find("Emulated H200"))

    def test_compiling(self):
        # The emulator's GPU is the usual one.
        self.assertEqual(emit(), emit(target="sm_90a", machine="h200"))
        self.assertIn(b'machine = "h100"', emit(machine="h100"))
        with self.assertRaisesRegex(fp8.CompileError, "expected one with chip sm_90a"):
            emit(target="sm_90a", machine="b200")


if __name__ == "__main__":
    unittest.main()
