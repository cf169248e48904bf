# RUN: env PYTHONPATH=%fp8_source/tuning PYTHONDONTWRITEBYTECODE=1 %python %s %t
# RUN: env PYTHONDONTWRITEBYTECODE=1 %python %fp8_source/tuning/fit_matmul.py --kinds promote --first 8 | FileCheck %s
# RUN: env PYTHONDONTWRITEBYTECODE=1 %python %fp8_source/tuning/fit_matmul.py --kinds both --sources uniform | FileCheck %s --check-prefix=SOURCE
"""The fit's data and files: measurements come back as they were written, and a machine's file
that is written with its own numbers stays as it is."""

import shutil
import sys
import unittest
from pathlib import Path

import machine_file
import measurements
from fit_matmul import TIMES

FOLDER = Path(sys.argv.pop())
# CHECK:      chosen
# CHECK-NEXT: promote, M <= 512          48   {{0.9|1.0}}
# CHECK-NEXT: promote, M >= 1024        164   {{0.9|1.0}}
# SOURCE:     both, M <= 512             16


class Tuning(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)

    def test_measurements(self):
        rows = measurements.load(TIMES)
        self.assertEqual(len(rows), 2079)
        self.assertEqual(sum(len(row["configs"]) for row in rows), 35369)
        measurements.save(FOLDER / "times.csv", rows)
        self.assertEqual(measurements.load(FOLDER / "times.csv"), rows)
        self.assertEqual({len(config) for row in rows for config in row["configs"]},
                         {len(measurements.CONFIG) + 1, len(measurements.SCALED_CONFIG) + 1})

    def test_a_machine_is_written_in_place(self):
        path = FOLDER / "h200.mlir"
        shutil.copyfile(machine_file.MACHINE, path)
        constants = machine_file.read_constants(path)
        self.assertEqual(set(constants), set(machine_file.KINDS))
        machine_file.write_constants(constants, path)
        self.assertEqual(path.read_text(), machine_file.MACHINE.read_text())
        constants["fast"]["Launch"] = 1234.0
        machine_file.write_constants(constants, path)
        self.assertEqual(machine_file.read_constants(path), constants)


if __name__ == "__main__":
    unittest.main()
