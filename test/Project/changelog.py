# RUN: %python %s %fp8_source
"""The changelog is kept: versions that other files name have their sections, and what it calls
by a name is called so."""

import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
TEXT = (SOURCE / "CHANGELOG.md").read_text()
PASS = re.compile(r'^def \w+\s*:\s*(?:Interface)?Pass<"([^"]+)"', re.MULTILINE)


def read(name):
    return (SOURCE / name).read_text()


def find(pattern, name):
    return re.search(pattern, read(name), re.MULTILINE)[1]


class Changelog(unittest.TestCase):
    def setUp(self):
        # Pairs of a version and what is below its heading.
        parts = re.split(r"^## (.+)\n", TEXT, flags=re.MULTILINE)[1:]
        self.sections = list(zip(parts[::2], parts[1::2]))

    def test_versions_are_semantic_and_descend(self):
        versions = []
        for heading, _ in self.sections:
            match = re.fullmatch(
                r"(\d+)\.(\d+)\.(\d+)(?: \((?:not released|\d{4}-\d\d-\d\d)\))?", heading)
            self.assertTrue(match, f"expected a version, but got '{heading}'")
            versions.append(tuple(map(int, match.groups())))
        self.assertEqual(versions, sorted(set(versions), reverse=True))

    def test_the_version_has_a_section(self):
        version = find(r"^project\(fp8 VERSION (\S+)", "CMakeLists.txt")
        self.assertEqual(self.sections[0][0].split()[0], version)
        self.assertEqual(find(r'^version = "(.*)"', "pyproject.toml"), version)

    def test_the_interface_of_the_runtime_has_an_entry(self):
        header = "include/fp8/Runtime/Status.h"
        version = ".".join(
            find(rf"^#define FP8RT_VERSION_{part} (\d+)", header) for part in ("MAJOR", "MINOR"))
        self.assertRegex(TEXT, rf"`FP8RT_VERSION`[^\n|]*\b{re.escape(version)}\b",
                         "expected an entry for the FP8RT_VERSION of Status.h")

    def test_passes_have_the_names_they_are_said_to_have(self):
        known = {name for path in (SOURCE / "include").rglob("*.td")
                 for name in PASS.findall(path.read_text())}
        self.assertTrue(known)
        checked = 0
        for table in re.findall(r"^\| before \| now \|\n(?:\|.*\n)+", TEXT, re.MULTILINE):
            for row in table.splitlines()[2:]:
                before, now = (set(re.findall(r"`--(fp8-[\w-]+|convert-[\w-]+)`", cell))
                               for cell in row.split("|")[1:3])
                self.assertEqual(now - known, set(), f"expected a pass of today in '{row}'")
                self.assertEqual(before & known, set(), f"expected no pass of today in '{row}'")
                checked += 1
        self.assertGreater(checked, 0)

    def test_functions_that_are_to_be_called_exist(self):
        known = set(re.findall(r"\bfp8rt_\w+", read("include/fp8/Runtime/ABI.def")))
        for path in (SOURCE / "include" / "fp8-c").glob("*.h"):
            known |= set(re.findall(r"\bfp8c_\w+", path.read_text()))
        for row in re.findall(r"^\|.*\|$", TEXT, re.MULTILINE):
            what_to_do = row.split("|")[2]
            for name in re.findall(r"`(fp8(?:rt|c)_\w+)", what_to_do):
                self.assertIn(name, known, f"expected a name of today in '{row}'")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
