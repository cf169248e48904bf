# RUN: rm -rf %t && mkdir %t
# RUN: %python %s %t %fp8_source/lib/Kernels/Machines
"""Costs of given configs, of one machine after another that the standard input has: those
that `--costs` prints."""

import json
import pathlib
import struct
import subprocess
import sys
import unittest

MACHINES = pathlib.Path(sys.argv.pop())
FOLDER = pathlib.Path(sys.argv.pop())
PROGRAM, CONFIGS = FOLDER / "program.mlir", FOLDER / "configs"
OTHER = "#fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 5>"


def get_function(name, rows):
    a, b = (f"!fp8.scaled<{r}x4096xf8E4M3FN, block = [*, *], scale = f32>" for r in (rows, 1024))
    return (f"func.func @{name}(%a: {a}, %b: {b}) -> tensor<{rows}x1024xbf16> {{\n"
            f"  %0 = fp8.matmul %a, %b : {a}, {b} -> tensor<{rows}x1024xbf16>\n"
            f"  return %0 : tensor<{rows}x1024xbf16>\n}}\n")


def run(*options, machines=""):
    return subprocess.run(["fp8-tune", PROGRAM, *options], input=machines.encode(),
                          capture_output=True)


def ask(machines):
    done = run(f"--costs={CONFIGS}", machines=machines)
    return struct.unpack(f"<{len(done.stdout) // 8}d", done.stdout), done.stderr.decode()


class Costs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        PROGRAM.write_text(get_function("few", 64) + get_function("many", 4096))
        found = json.loads(run("--costs").stdout)
        # In another order than the program's.
        pairs = [(one["function"], cost["config"], cost["clocks"])
                 for one in found[::-1] for cost in one["costs"]]
        CONFIGS.write_text("".join(f"{name} {config}\n" for name, config, _ in pairs))
        cls.clocks = tuple(clocks for *_, clocks in pairs)

    def test_each_machine_has_an_answer(self):
        h200, h100 = ((MACHINES / f"{name}.mlir").read_text() for name in ("h200", "h100"))
        slower = h200.replace("mma_rate = 4096", "mma_rate = 2048")
        answer, errors = ask(f"{h200}\n// -----\n{slower}\n// -----\n{h200}")
        self.assertEqual(errors, "")
        one, two, three = (answer[i::1][:len(self.clocks)]
                           for i in range(0, len(answer), len(self.clocks)))
        self.assertEqual(one, self.clocks)
        self.assertEqual(three, self.clocks)
        self.assertTrue(all(a < b for a, b in zip(one, two)))
        self.assertEqual(ask(h100)[0], ask(h100 + "// -----\n")[0])

    def test_nothing_is_asked(self):
        self.assertEqual(ask(""), ((), ""))

    def test_kernels_that_filled_every_block(self):
        h200 = (MACHINES / "h200.mlir").read_text()
        filled = ask(h200.replace("#fp8_machine.wgmma<", "#fp8_machine.wgmma<fills = true,"))[0]
        self.assertNotEqual(filled, self.clocks)
        self.assertTrue(all(a <= b for a, b in zip(self.clocks, filled)))

    def test_a_machine_that_is_none(self):
        h200 = (MACHINES / "h200.mlir").read_text()
        for text, expected in (
                ("module {}", "expected a module with the attribute 'fp8_machine.machine'"),
                ("nothing", "machine '<stdin>': expected a program of MLIR"),
                (h200.replace("latency = 1838", "latency = -1"), "expected a number of at least 0"),
                ((MACHINES / "b200.mlir").read_text(), "expected one with chip sm_90a")):
            answer, errors = ask(f"{h200}// -----\n{text}")
            self.assertEqual(answer, self.clocks)
            self.assertIn(expected, errors)

    def test_configs_that_are_none(self):
        for line, expected in (
                (f"absent {OTHER}", "expected the name of a function that has one operation with "
                 "a kernel, but got 'absent'"),
                ("few 3 : i32", "expected a config, but got '3 : i32'"),
                ("few", "expected a config, but got ''"),
                ("few #fp8_sm100.gemm<tile_m = 128, tile_n = 128, stages = 4>",
                 "expected a #fp8_sm90.gemm")):
            path = FOLDER / "wrong"
            path.write_text(f"few {OTHER}\n{line}\n")
            done = run(f"--costs={path}")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"{path}:2:1", done.stderr.decode())
            self.assertIn(expected, done.stderr.decode())
        done = run(f"--costs={FOLDER / 'absent'}")
        self.assertIn("No such file", done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
