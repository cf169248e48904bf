# REQUIRES: pytorch
# RUN: env PYTHONDONTWRITEBYTECODE=1 %import_python %s %t %fp8_source %fp8_build
"""The four commands for a new GPU, one after another. In the GPU's place stands the compiler's
own model with other numbers: those that are fitted shall come to choose as it does."""

import importlib.util
import json
import shutil
import sys
import unittest
from pathlib import Path
from unittest import mock

BUILD, SOURCE, FOLDER = (Path(sys.argv.pop()) for _ in range(3))
sys.path.insert(0, str(SOURCE / "tuning"))

import machine_file  # noqa: E402
import make_kernels  # noqa: E402
import measurements  # noqa: E402
from costs import Costs  # noqa: E402

# What is made, and the models of it.
MODELS = {"tensor_fast": "fast", "bf16_nn": "plain"}
# What the GPU has less of than an H200.
GPU = {"PortRate": 0.3, "MemoryRate": 0.4, "PairRate": 0.5, "OneRate": 0.5, "Latency": 2.0}


def run(module, *arguments):
    with mock.patch.object(sys, "argv", [module.__name__, *map(str, arguments)]):
        module.main()


class NewGPU(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        cls.machine, cls.times = FOLDER / "h300.mlir", FOLDER / "matmul.csv"
        cls.machine.write_text(machine_file.MACHINE.read_text().replace(
            "multiprocessors = 132", "multiprocessors = 96"))
        cls.before = machine_file.read_constants(cls.machine)
        cls.truth = {kind: {name: value * GPU.get(name, 1) for name, value in numbers.items()}
                     for kind, numbers in cls.before.items()}

    def time_shape(self, kind, shape, configs, kernels, rounds):
        rows = [(*shape, "nn" if kind == "bf16_nn" else "nt", config) for config in configs]
        costs = Costs(MODELS[kind], rows, self.machine)({**self.truth[MODELS[kind]], "Power": 0})
        return [[*measurements.parse_config(config), round(cost / 1.7e3, 3)]
                for config, cost in zip(configs, costs)]

    def test_1_make_kernels(self):
        # That they can be assembled fit-kernels.test shows.
        with mock.patch.object(make_kernels, "build") as build:
            run(make_kernels, "--build-dir", BUILD, "--out", FOLDER / "kernels", "--first", 8,
                "--sample", "3,9", *MODELS)
        self.assertEqual(build.call_count, len(MODELS))
        candidates = json.loads((FOLDER / "kernels/candidates.json").read_text())
        self.assertEqual({kind: [len(found) for found in shapes.values()]
                          for kind, shapes in candidates.items()}, dict.fromkeys(MODELS, [8] * 9))

    def test_1_make_kernels_of_a_machine(self):
        found, targets = {}, []
        for name in ("h200", self.machine):
            with mock.patch.object(make_kernels, "build") as build:
                run(make_kernels, "--build-dir", BUILD, "--out", FOLDER / "ordered", "--first", 8,
                    "--sample", "3,9", "--machine", name, "bf16_nn")
            targets.append(build.call_args.kwargs["target"].rpartition(" machine=")[2])
            found[name] = json.loads((FOLDER / "ordered/candidates.json").read_text())["bf16_nn"]
        self.assertEqual(targets, ["h200", str(self.machine)])
        # A matmul fills 96 multiprocessors otherwise than 132.
        self.assertEqual(found["h200"].keys(), found[self.machine].keys())
        self.assertNotEqual(found["h200"], found[self.machine])

    def test_2_collect(self):
        import collect
        with mock.patch.multiple(collect, load=lambda _, kinds: {kind: [] for kind in kinds},
                                 time_shape=self.time_shape, machine=dict):
            run(collect, "--kernels", FOLDER / "kernels", "--out", self.times, "--source", "rest")
        rows = measurements.load(self.times)
        self.assertEqual({(row["kind"], row.get("layout"), row["source"]) for row in rows},
                         {("fast", None, "rest"), ("plain", "nn", "rest")})
        self.assertEqual([len(row["configs"]) for row in rows], [8] * 18)

    @unittest.skipUnless(importlib.util.find_spec("scipy"), "needs SciPy")
    def test_3_fit(self):
        import fit_matmul
        run(fit_matmul, "--machine", self.machine, "--times", self.times, "--fit",
            "--iterations", 10)
        constants = machine_file.read_constants(self.machine)
        rows = fit_matmul.load_times(paths=[self.times])
        for kind in MODELS.values():
            times = fit_matmul.Times(kind, rows[kind], self.machine)
            loss = {name: fit_matmul.get_loss(times, each[kind]) for name, each in
                    (("before", self.before), ("after", constants), ("truth", self.truth))}
            self.assertLess(loss["after"] - loss["truth"],
                            0.5 * (loss["before"] - loss["truth"]))
        # Kinds without times stay as they are.
        for kind in ("promote", "block", "both"):
            self.assertEqual(constants[kind], self.before[kind])

    @unittest.skipUnless(importlib.util.find_spec("scipy"), "needs SciPy")
    def test_4_validate(self):
        import fit_matmul
        with mock.patch("builtins.print") as printed:
            run(fit_matmul, "--machine", self.machine, "--times", self.times, "--validate",
                "--iterations", 2)
        lines = [call.args[0] for call in printed.call_args_list]
        self.assertEqual(sum(int(line.split()[4]) for line in lines[1:] if " nn " not in line), 18)


if __name__ == "__main__":
    unittest.main()
