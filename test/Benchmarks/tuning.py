# RUN: env PYTHONPATH=%fp8_source/tuning PYTHONDONTWRITEBYTECODE=1 %python %s %t
# RUN: env PYTHONDONTWRITEBYTECODE=1 %python %fp8_source/tuning/fit_matmul.py --kinds promote --first 8 | FileCheck %s
# RUN: env PYTHONDONTWRITEBYTECODE=1 %python %fp8_source/tuning/fit_matmul.py --kinds both --sources uniform | FileCheck %s --check-prefix=SOURCE
"""The fit's data, files and costs: measurements come back as they were written, a machine's file
that is written with its own numbers stays as it is, and costs are the compiler's."""

import json
import math
import random
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

import machine_file
import measurements
import numpy as np
from costs import Costs, get_function
from fit_matmul import TIMES, choose_again, get_mean

FOLDER = Path(sys.argv.pop())
DATA = TIMES.parent
# RUN: env PYTHONDONTWRITEBYTECODE=1 %python %fp8_source/tuning/fit_matmul.py --machine %fp8_source/lib/Kernels/Machines/h100.mlir --times %fp8_source/tuning/data/h100/matmul_judge.csv --again %fp8_source/tuning/data/h100/matmul_judge_again.csv | FileCheck %s --check-prefix=AGAIN
# CHECK:      chosen
# CHECK-NEXT: promote, M <= 512          48   {{0.9|1.0}}
# CHECK-NEXT: promote, M >= 1024        164   {{0.9|1.0}}
# SOURCE:     both, M <= 512             16
# AGAIN:      plain, M <= 512            40   0.9{{[789][0-9]}}
# AGAIN:      plain, error of a time 0.00
# AGAIN:      block, M >= 1024           20   0.9{{[89][0-9]}}


class Tuning(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)

    def test_measurements(self):
        rows = measurements.load(TIMES)
        self.assertEqual(len(rows), 2079)
        self.assertEqual(sum(len(row["configs"]) for row in rows), 35369)
        measurements.save(FOLDER / "times.csv", rows)
        self.assertEqual((FOLDER / "times.csv").read_text(), TIMES.read_text())

    def test_configs_are_the_text_that_they_come_from(self):
        for row in measurements.load(TIMES)[::20]:
            for *columns, _ in row["configs"]:
                config = measurements.get_config(columns, row["n"])
                self.assertEqual(measurements.parse_config(config), tuple(columns))

    def test_layers(self):
        for name, count in (("fit", 60), ("judge", 40)):
            layers = measurements.load_layers(DATA / f"layers_{name}.csv")
            self.assertEqual(len(layers), count)
            measurements.save_layers(FOLDER / "layers.csv", layers)
            self.assertEqual((FOLDER / "layers.csv").read_text(),
                             (DATA / f"layers_{name}.csv").read_text())

    def test_a_machine_is_written_in_place(self):
        path = FOLDER / "h200.mlir"
        shutil.copyfile(machine_file.MACHINE, path)
        constants = machine_file.read_constants(path)
        self.assertEqual(set(constants), set(machine_file.KINDS))
        layers = machine_file.read_layers(path)
        self.assertEqual(set(layers), {"bf16", "delayed", "current", "rowwise", "block"})
        machine_file.write_constants(constants, path)
        machine_file.write_layers(layers, path)
        self.assertEqual(path.read_text(), machine_file.MACHINE.read_text())
        constants["fast"]["Launch"] = 1234.0
        # MLIR reads a point where there is an exponent.
        constants["both"]["OutOfBounds"], constants["plain"]["MemoryLatency"] = 2e-5, 3e5
        layers["bf16"] = 1.0, 2.0, 3.0, 4.0, 0.00005
        machine_file.write_constants(constants, path)
        machine_file.write_layers(layers, path)
        self.assertEqual(machine_file.read_constants(path), constants)
        self.assertEqual(machine_file.read_layers(path), layers)
        subprocess.run(["fp8-opt", f"--fp8-set-target=chip=sm_90a machine={path}"],
                       input="module {}", text=True, stdout=subprocess.PIPE, check=True)

    def test_costs_are_the_compilers(self):
        machine = FOLDER / "machine.mlir"
        machine.write_text(machine_file.MACHINE.read_text().replace(
            "multiprocessors = 132", "multiprocessors = 114"))
        constants = machine_file.read_constants(machine)
        for kind in machine_file.KINDS:
            for layout in ("nt", "nn") if kind == "plain" else ("nt",):
                shape = 1160, 1264, 528, layout
                program = FOLDER / "program.mlir"
                program.write_text(get_function("f", kind, *shape))
                answer = subprocess.run(
                    ["fp8-tune", program, "--costs", f"--machine={machine}"],
                    capture_output=True, check=True).stdout
                (kernel,) = json.loads(answer)
                costs = {cost["config"]: cost["clocks"] for cost in kernel["costs"]}
                self.assertEqual(len(costs), 24)
                ask = Costs(kind, [(*shape, config) for config in costs], machine)
                self.assertEqual(list(ask(constants[kind])), list(costs.values()))
                slower = ask({**constants[kind], "Launch": constants[kind]["Launch"] + 100})
                for found, cost in zip(slower, costs.values()):
                    self.assertAlmostEqual(found, cost + 100)

    def test_the_luck_of_the_best_counts_for_nothing(self):
        """Whichever is chosen of kernels that are all the same is as good as the best."""
        rows, draw = [], random.Random(1)
        for number in range(200):
            configs = [[64, 8 * cols, 0, 1, 0, 1, 1, 1, 5, 0, 2] for cols in range(1, 17)]
            rows.append({"m": 64, "n": 64 + number, "k": 512, "configs": configs})

        def draw_times():
            return [{**row, "configs": [[*config, 10 * math.exp(draw.gauss(0, 0.02))]
                                        for config in row["configs"]]} for row in rows]
        times = SimpleNamespace(
            rows=draw_times(), index=np.repeat(np.arange(len(rows)), 16),
            get_costs=lambda constants: np.array([draw.random() for _ in range(16 * len(rows))]))
        choices, error = choose_again(times, draw_times(), None)
        self.assertEqual(len(choices), len(rows))
        self.assertAlmostEqual(get_mean([best for _, best, _ in choices]), 1, delta=0.006)
        self.assertAlmostEqual(error, 0.02, delta=0.002)

    def test_costs_that_cannot_be(self):
        constants = machine_file.read_constants()["fast"]
        ask = Costs("fast", [(64, 64, 64, "nt", "#fp8_sm90.gemm<tile_m = 64>")])
        with self.assertRaisesRegex(RuntimeError, "expected costs of fp8-tune"):
            ask(constants)


if __name__ == "__main__":
    unittest.main()
