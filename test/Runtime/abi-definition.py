# RUN: %python %s %fp8_source
"""What Python makes of ABI.def: all of it, as C has it, or an error."""

import ctypes
import json
import random
import re
import subprocess
import sys
import unittest
from pathlib import Path

from fp8 import abi

SOURCE = Path(sys.argv[1])
TEXT = abi.DEFINITION.read_text()


def describe(definition):
    """All that there is to a definition, for comparisons."""
    def name(type):
        return getattr(type, "__name__", None), getattr(type, "_argtypes_", None)

    return (
        {struct: (type._alignment, [(field, name(of)) for field, of in type._fields_])
         for struct, type in definition.structs.items()},
        {function.name: (function.result, name(function.restype),
                         [(parameter, name(of)) for of, parameter in function.parameters])
         for function in definition.functions.values()})


class ABIDefinition(unittest.TestCase):
    def refuse(self, text, message):
        with self.assertRaisesRegex(abi.DefinitionError, "^" + re.escape(message)):
            abi.Definition(text)

    def test_structs_have_no_gaps(self):
        for name, struct in vars(abi.structs).items():
            offset = 0
            for field, type in struct._fields_:
                self.assertEqual(getattr(struct, field).offset, offset, f"{name}.{field}")
                offset += ctypes.sizeof(type)
            self.assertEqual(ctypes.sizeof(struct), offset, name)

    def test_structs_are_aligned(self):
        for struct in vars(abi.structs).values():
            values = [struct() for _ in range(8)]
            for value in values:
                self.assertEqual(ctypes.addressof(value) % struct._alignment, 0)
                size = ctypes.sizeof(struct)
                self.assertEqual(getattr(value, "struct_size", size), size)
                if hasattr(value, "struct_size"):
                    value.struct_size = 0
                self.assertEqual(bytes(value), bytes(size))

    def test_fields_can_be_given(self):
        config = abi.structs.fp8rt_launch_config((1, 2, 3), flags=1)
        self.assertEqual((list(config.grid), config.flags), ([1, 2, 3], 1))
        # A field that has the name of what Python needs to know.
        self.assertEqual(abi.structs.fp8rt_program_value(alignment=16).alignment, 16)

    def test_parameters_have_the_names_of_the_headers(self):
        """Two of one type can change places without the compiler's noticing."""
        headers = re.findall(
            r"#include (\"fp8/.*\")", (SOURCE / "include/fp8/Runtime/ABI/Definition.h").read_text())
        output = subprocess.run(
            ["clang-22", "-x", "c", "-", f"-I{SOURCE / 'include'}", "-fsyntax-only", "-Xclang",
             "-ast-dump=json"], input="".join(f"#include {header}\n" for header in headers),
            text=True, check=True, stdout=subprocess.PIPE).stdout
        declared = {
            node["name"]: [child.get("name") for child in node.get("inner", [])
                           if child["kind"] == "ParmVarDecl"]
            for node in json.loads(output)["inner"] if node["kind"] == "FunctionDecl"}
        for name, function in abi.functions.items():
            self.assertEqual([parameter for _, parameter in function.parameters], declared[name],
                             name)

    def test_no_letter_is_overlooked(self):
        """A definition that lost a character is another one, or none."""
        whole = describe(abi.Definition(TEXT))
        places = [match.start() + i
                  for match in re.finditer(r"^(?: *FP8RT_| {9}).*$", TEXT, re.MULTILINE)
                  for i, character in enumerate(match[0]) if character not in " \\"]
        for place in random.Random(1).sample(places, 400):
            try:
                changed = describe(abi.Definition(TEXT[:place] + TEXT[place + 1:]))
            except abi.DefinitionError:
                continue
            # Not assertNotEqual, which prints them.
            self.assertTrue(changed != whole, f"{TEXT[place - 30:place]}>{TEXT[place]}<")

    def test_what_is_no_entry(self):
        self.refuse("FP8RT_TYPE(a, i32)\nint b;\n", "2: expected an entry, but got 'int b;'")
        self.refuse("FP8RT_TYPE(a, i32) ;", "1: expected an entry, but got ';'")
        self.refuse("#if 0\nFP8RT_TYPE(a, i32)\n#endif\n", "1: expected an entry, but got '#if 0'")
        self.refuse("#ifndef FP8RT_A\nFP8RT_TYPE(a, i32)\n#endif\n",
                    "1: expected an entry, but got '#ifndef FP8RT_A'")
        self.refuse("/* a */", "1: expected an entry, but got '/* a */'")
        self.refuse("\nFP8RT_FUNCTION(void, f, (i32 a)\n",
                    "2: expected ')', but the definition ends")
        self.refuse("FP8RT_TYPES(a, i32)",
                    "1: expected an entry of ABI.def, but got FP8RT_TYPES with 2 arguments")
        self.refuse("FP8RT_TYPE(a)",
                    "1: expected an entry of ABI.def, but got FP8RT_TYPE with 1 arguments")
        self.refuse("FP8RT_STRUCT()",
                    "1: expected an entry of ABI.def, but got FP8RT_STRUCT with 0 arguments")

    def test_what_is_in_no_struct(self):
        message = "expected fields between FP8RT_STRUCT and FP8RT_END(), but got FP8RT_"
        self.refuse("FP8RT_FIELD(i32, a)", f"1: {message}FIELD")
        self.refuse("FP8RT_END()", f"1: {message}END")
        self.refuse("FP8RT_STRUCT(a, 4)\nFP8RT_TYPE(b, i32)\nFP8RT_END()", f"2: {message}TYPE")
        self.refuse("FP8RT_STRUCT(a, 4)\nFP8RT_FIELD(i32, b)\n",
                    "2: expected FP8RT_END(), but the definition ends")

    def test_what_is_no_type(self):
        field = "FP8RT_STRUCT(s, 8)\nFP8RT_FIELD({}, a)\nFP8RT_END()\nFP8RT_OPAQUE(o)".format
        self.refuse(field("int"), "2: expected a type, but got 'int'")
        self.refuse(field("i32 &"), "2: expected a type, but got 'i32 &'")
        self.refuse(field("u32[]"), "2: expected a type, but got 'u32[]'")
        self.refuse(field("u32[0]"), "2: expected a type, but got 'u32[0]'")
        self.refuse(field("o"), "2: expected a type, but got 'o'")
        self.refuse(field("void"), "2: expected a type with a size, but got 'void'")
        self.refuse(field("s"), "2: expected a type with a size, but got 's'")
        self.refuse(field("s[2]"), "2: expected a type with a size, but got 's'")
        self.refuse("FP8RT_FUNCTION(void, f, (i32))", "1: expected types and names, but got '(i32)'")
        self.refuse("FP8RT_FUNCTION(void, f, i32 a)",
                    "1: expected parameters in parentheses, but got 'i32 a'")
        self.refuse("FP8RT_FUNCTION(void, f, (u32[3] a))", "1: expected a type, but got 'u32[3]'")
        self.refuse("FP8RT_STRUCT(s, eight)", "1: expected an alignment, but got 'eight'")

    def test_names_are_new(self):
        self.refuse("FP8RT_TYPE(a, i32)\nFP8RT_OPAQUE(a)",
                    "2: expected a new name, but got 'a' again")
        self.refuse("FP8RT_TYPE(i32, i32)", "1: expected a new name, but got 'i32' again")
        self.refuse("FP8RT_TYPE(a-b, i32)", "1: expected a name, but got 'a-b'")
        self.refuse("FP8RT_STRUCT(s, 4)\nFP8RT_FIELD(i32, a)\nFP8RT_FIELD(i32, a)\nFP8RT_END()",
                    "3: expected the name of another field, but got 'a'")

    def test_gaps_are_named(self):
        self.refuse("FP8RT_STRUCT(s, 8)\nFP8RT_FIELD(i32, a)\nFP8RT_FIELD(i64, b)\nFP8RT_END()",
                    "4: expected no gaps in s")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
