# RUN: env FP8_CUDA_DRIVER=emulator %python %s
"""What layers take is read from the machines' files, by the names of devices."""

import unittest

from fp8 import machines


class Test(unittest.TestCase):
    def test_the_compilers(self):
        found = machines.get_machines()
        self.assertEqual(set(found), {"h200", "h100", "b200"})
        for machine in found.values():
            self.assertEqual(set(machine.layers), {"none", "delayed", "current", "rowwise", "block"})
            for layer in machine.layers.values():
                self.assertEqual(list(layer), ["launch", "product", "x", "weight", "y"])
            self.assertEqual(set(machine.host), {"product", "cast", "share"})
        self.assertEqual(found["h200"].layers["none"]["launch"], 9.842)

    def test_devices(self):
        for device, name in (("NVIDIA H200", "h200"), ("NVIDIA H100 80GB HBM3", "h100"),
                             ("NVIDIA B200", "b200"), ("NVIDIA GH200 480GB", "h200"), ("", "h200")):
            self.assertEqual(machines.find(device).name, name)
        # A GH200 is nobody's: h200 stands in.
        self.assertIs(machines.get_own(), machines.find("Emulated H200"))


if __name__ == "__main__":
    unittest.main()
