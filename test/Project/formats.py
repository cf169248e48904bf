# RUN: %python %s %fp8_source
"""Tables of Formats.def go together, and with DLPack's enumerators."""

import re
import sys
import unittest
from pathlib import Path

INCLUDE = Path(sys.argv[1]) / "include"


def read_table(name):
    """Lists of the fields of FP8_NAME's lines."""
    text = (INCLUDE / "fp8" / "Formats.def").read_text()
    return [re.split(r",\s*", line) for line in
            re.findall(rf"^FP8_{name}\(([^)]*)\)$", text, re.MULTILINE)]


def read_enumerators(header, opening, prefix=""):
    text = (INCLUDE / header).read_text()
    body = re.search(rf"{re.escape(opening)}([^}}]*)}}", text).group(1)
    names = re.findall(r"^ *(\w+)(?: = \d+)?,?$", body, re.MULTILINE)
    return [name.removeprefix(prefix) for name in names]


class Enumerators(unittest.TestCase):
    def test_tensor_core_types(self):
        lines = read_table("TENSOR_CORE_TYPE")
        self.assertGreater(len(lines), 5)
        self.assertEqual([line[3] for line in lines], [str(i) for i in range(len(lines))])
        # TF32 is a shorter f32.
        formats = {line[2]: [line[0], line[1], *line[6:9]]
                   for line in read_table("CODE_FORMAT") + read_table("FORMAT")
                   if line[0] != "F32"}
        for name, text, kind, _, *bits in lines:
            self.assertEqual(formats.get(kind, [name, text, *bits]), [name, text, *bits])

    def test_codes_of_dlpack(self):
        codes = {line[2] for line in read_table("DTYPE")}
        self.assertEqual(set(read_enumerators(
            "fp8-c/Tensor.h", "as DLDataTypeCode has it.\nenum {", "FP8C_")), codes)

    def test_dtypes_of_formats(self):
        dtypes = {line[0]: line for line in read_table("DTYPE")}
        for line in read_table("CODE_FORMAT") + read_table("FORMAT"):
            bits = sum(map(int, line[5:8]))
            self.assertEqual(str(bits), dtypes[line[4]][3], line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
