# RUN: %python %s %fp8_source %fp8_build
"""The tables of docs/Pipeline.md have the passes that the pipeline has, in its order.

In a row `; ` ends what `with` or `without` an option there is, or for a GPU alone. Words without backticks stand for
upstream's passes, whichever there are."""

import itertools
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE, BUILD = map(Path, sys.argv[1:3])
PAGE = (SOURCE / "docs" / "Pipeline.md").read_text()
KERNELS = (SOURCE / "docs" / "Kernels.md").read_text()
OTHERS = None  # Passes that the page does not name.


def list_passes(options):
    """Names of what runs in each phase, without the check at its end."""
    done = subprocess.run(
        [BUILD / "bin" / "fp8-opt", "-", "-o", os.devnull, "--dump-pass-pipeline",
         f"--fp8-pipeline={options}"], input="", capture_output=True, text=True, check=True)
    phases = [[]]
    for name in re.findall(r"^ +([a-z][\w-]*)(?=[{,\n ])", done.stderr, re.MULTILINE):
        if name == "fp8-verify-stage":
            phases.append([])
        else:
            phases[-1].append(name)
    return phases[:-1]


def expand(cell, options, above=()):
    """The names in a row, of those that these options bring."""
    names = []
    for segment in cell.split("; "):
        if segment.startswith("for a GPU "):
            if "GPU" not in options:
                continue
            segment = segment.removeprefix("for a GPU ")
        condition = re.match(r"(with|without) `([^`]+)`: ", segment)
        if condition:
            if (condition[2] in options) != (condition[1] == "with"):
                continue
            segment = segment[condition.end():]
        for token in segment.split(", "):
            some = re.fullmatch(r"from `(\S+)` to `(\S+)` as above(?: without `(\S+)`)?", token)
            name = re.fullmatch(r"`(\S+)`", token)
            if some:
                first = above.index(some[1])
                last = above.index(some[2], first)
                names += [each for each in above[first:last + 1] if each != some[3]]
            elif name:
                names.append(name[1])
            elif names and names[-1] is not OTHERS:
                names.append(OTHERS)
    return names


def matches(names, actual):
    pattern = "".join(r"((?!fp8-)\S+ )*" if name is OTHERS else re.escape(name) + " "
                      for name in names)
    return re.fullmatch(pattern, "".join(f"{name} " for name in actual))


class Pipeline(unittest.TestCase):
    def setUp(self):
        # Rows of both tables: number, phase, builder, passes.
        rows = re.findall(r"^\| (\d) \| `(\w+)` \| `(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE)
        self.assertEqual([row[0] for row in rows], list("1234567" "4567"))
        self.rows = [row[1:] for row in rows]
        self.cpu = {phase: cell for phase, _, cell in self.rows[:7]}
        self.gpu = {phase: cell for phase, _, cell in self.rows[7:]}

    def check(self, target, options):
        text = " ".join([f"target={target}", *options])
        # What an option is set to is not said in the tables, but for the way of adding up.
        known = {option if option.startswith("accumulate") else option.split("=")[0]
                 for option in options} | ({"GPU"} if target != "cpu" else set())
        for (phase, cell), actual in zip(self.cpu.items(), list_passes(text), strict=True):
            expected = expand(cell, known)
            if target != "cpu" and phase in self.gpu:
                expected = expand(self.gpu[phase], known, expected)
            self.assertTrue(matches(expected, actual),
                            f"{text}, {phase}: expected the page to have\n{actual}, but got\n{expected}")

    def test_passes_of_a_cpu(self):
        for options in [], ["stats"], ["functional-state"], ["accumulate=tensor-core"], \
                ["accumulate=tensor-core", "stats"], ["accumulate=tensor-core", "invariant"]:
            self.check("cpu", options)

    def test_passes_of_a_gpu(self):
        for target, options in itertools.product(
                ("sm_90a", "sm_100a"), ([], ["stats"], ["functional-state"], ["fusion-report=-"], ["invariant"])):
            self.check(target, options)

    def test_builders_are_there(self):
        code = "".join(path.read_text() for path in (SOURCE / "lib" / "Pipelines").glob("*.cpp"))
        for _, builder, _ in self.rows:
            self.assertRegex(code, rf"\bvoid (fp8::)?{builder}\(")

    def test_passes_of_the_text_are_there(self):
        found = subprocess.run([BUILD / "bin" / "fp8-opt", "--help"],
                               capture_output=True, text=True, check=True)
        known = set(re.findall(r"^ +--([\w-]+)", found.stdout, re.MULTILINE))
        known |= {path.name for path in (SOURCE / "tools").iterdir()}
        names = set(re.findall(r"`((?:fp8|convert)-[\w-]+)`", PAGE))
        self.assertEqual(names - known, set())

    def test_kernels_passes_are_in_order(self):
        rows = re.findall(r"^\| `(fp8-[\w-]+)` \|", KERNELS, re.MULTILINE)
        phases = list_passes("target=sm_90a fusion-report=-")
        actual = list(itertools.chain.from_iterable(phases))
        # Serialization runs it on each kernel.
        rows.remove("fp8-lower-kernels")
        self.assertGreater(len(rows), 10)
        self.assertEqual(rows, sorted(rows, key=actual.index))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
