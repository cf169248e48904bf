"""What the compiler expects matmuls to take, by its own models: `fp8-tune --costs=FILE`, which
answers for a machine after another, as often as constants are tried. Needs NumPy."""

import contextlib
import pathlib
import shutil
import subprocess
import tempfile
import weakref

import numpy as np
from machine_file import MACHINE, ROOT, with_constants

TOOLS = ROOT / "build" / "bin"
# Layouts: whether the rows of A and of B are innermost.
TRANSPOSED = {"nt": (0, 0), "nn": (0, 1), "tn": (1, 1), "tt": (1, 0)}
# What of A and of B shares a factor.
BLOCKS = {"fast": ("[*, *]", "[*, *]"), "promote": ("[*, *]", "[*, *]"),
          "block": ("[1, 128]", "[128, 128]"), "both": ("[1, 128]", "[1, 128]")}
DIGITS = 17


def get_function(name, kind, m, n, k, layout):
    """A matmul of one of the models' kinds."""
    flags = [f"transpose_{name}" for name, is_transposed in zip("ab", TRANSPOSED[layout])
             if is_transposed]
    flags += ["accumulate = fast"] if kind in ("plain", "fast") else []
    types = []
    for i, rows in enumerate((m, n)):
        if kind != "plain":
            types.append(f"!fp8.scaled<{rows}x{k}xf8E4M3FN, block = {BLOCKS[kind][i]}, "
                         "scale = f32>")
        elif TRANSPOSED[layout][i]:
            types.append(f"tensor<{k}x{rows}xbf16>")
        else:
            types.append(f"tensor<{rows}x{k}xbf16>")
    a, b = types
    return (f"func.func @{name}(%a: {a}, %b: {b}) -> tensor<{m}x{n}xbf16> {{\n"
            f"  %d = fp8.matmul %a, %b {' '.join(flags)} : {a}, {b} -> tensor<{m}x{n}xbf16>\n"
            f"  return %d : tensor<{m}x{n}xbf16>\n}}\n")


def find_tool():
    return shutil.which("fp8-tune") or TOOLS / "fp8-tune"


def stop(process, folder):
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.stdout.close()
    process.wait()
    shutil.rmtree(folder)


class Costs:
    """Those of matmuls of one kind, each (m, n, k, layout, config). `fills` says whether kernels
    bring zeros out of bounds in every block of K, as those did before 2026-11-23."""

    def __init__(self, kind, rows, machine=MACHINE, fills=False):
        self.kind, self.count, self.text = kind, len(rows), machine.read_text()
        if fills:
            self.text = self.text.replace("#fp8_machine.wgmma<", "#fp8_machine.wgmma<fills = true,")
        names = {}
        for *problem, _ in rows:
            names.setdefault(tuple(problem), f"matmul{len(names)}")
        folder = pathlib.Path(tempfile.mkdtemp())
        program, configs = folder / "program.mlir", folder / "configs"
        program.write_text("".join(get_function(name, kind, *problem)
                                   for problem, name in names.items()))
        configs.write_text("".join(f"{names[tuple(problem)]} {config}\n"
                                   for *problem, config in rows))
        self.process = subprocess.Popen([find_tool(), program, f"--costs={configs}"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        weakref.finalize(self, stop, self.process, folder)

    def __call__(self, constants):
        """The clocks of each with these constants of its kind in place of the machine's."""
        text = with_constants(self.text, {self.kind: constants}, DIGITS)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{text}\n// -----\n".encode())
            self.process.stdin.flush()
        answer = self.process.stdout.read(8 * self.count)
        if len(answer) < 8 * self.count:
            raise RuntimeError("expected costs of fp8-tune, which says why there are none")
        return np.frombuffer(answer, "<f8")
