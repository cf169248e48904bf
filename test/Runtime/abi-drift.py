# RUN: %python %s %fp8_source %cxx_compiler
"""The runtime does not compile unless the C headers say what ABI.def says."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE, COMPILER = Path(sys.argv[1]), sys.argv[2]
PLACE, TYPE = "its place is not that of ABI.def", "its type is not that of ABI.def"
SIZE = "its size is not that of the fields in ABI.def"


class Drift(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.include = Path(scratch.name)
        self.headers = self.include / "fp8" / "Runtime"
        shutil.copytree(SOURCE / "include" / "fp8" / "Runtime", self.headers)
        shutil.copy(SOURCE / "include" / "fp8" / "Formats.def", self.include / "fp8")

    def compile(self):
        return subprocess.run(
            [COMPILER, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
             f"-I{self.include}", SOURCE / "lib" / "Runtime" / "ABI" / "Assertions.cpp"],
            text=True, capture_output=True)

    def refuse(self, header, old, new, message):
        """Not with `new` in the place of `old`, which is there once."""
        path = self.headers / header
        text = path.read_text()
        self.assertEqual(text.count(old), 1, f"{header} has another '{old}'")
        path.write_text(text.replace(old, new))
        result = self.compile()
        path.write_text(text)
        self.assertNotEqual(result.returncode, 0, f"{header} compiles with '{new}'")
        self.assertIn(message, result.stderr)

    def swap(self, header, first, second, message):
        """Not with two pieces, one behind the other, in the other order."""
        text = (self.headers / header).read_text()
        between = text[text.index(first) + len(first):text.index(second)]
        self.refuse(header, first + between + second, second + between + first, message)

    def test_compiles_as_it_is(self):
        result = self.compile()
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_fields_in_another_order(self):
        self.swap("ScalingState.h", "float *scale; ", "float *scale_inv; ",
                  f"scale: {PLACE}")
        self.swap("Module.h", "uint32_t dynamic_smem;", "uint32_t flags;", f"flags: {PLACE}")
        self.swap("Program.h", "int64_t offset;", "int64_t sizes[rank];", f"sizes: {PLACE}")
        self.swap("Kernel.h", "int64_t sizes[FP8RT_KERNEL_MAX_RANK];",
                  "int64_t strides[FP8RT_KERNEL_MAX_RANK];", f"sizes: {PLACE}")
        self.swap("Context.h", "const char *name;", "const char *launch;", f"name: {PLACE}")
        self.swap("ABI.def", "FP8RT_FIELD(u32[3], block)", "FP8RT_FIELD(u32[3], cluster)",
                  f"cluster: {PLACE}")
        self.swap("ABI.def", "FP8RT_FIELD(u32, version)", "FP8RT_FIELD(u32, num_functions)",
                  f"version: {PLACE}")

    def test_fields_of_another_type(self):
        self.refuse("Module.h", "uint32_t dynamic_smem;", "int32_t dynamic_smem;",
                    f"dynamic_smem: {TYPE}")
        self.refuse("Module.h", "uint32_t cluster[3];", "uint32_t cluster[4];", f"cluster: {TYPE}")
        self.refuse("Kernel.h", "#define FP8RT_KERNEL_MAX_RANK 8",
                    "#define FP8RT_KERNEL_MAX_RANK 5", f"sizes: {TYPE}")
        self.refuse("ScalingState.h", "float *amax; ", "double *amax; ", f"amax: {TYPE}")
        self.refuse("Program.h", "void (*invoke)(void **arguments);",
                    "void (*invoke)(const void **arguments);", f"invoke: {TYPE}")
        self.refuse("ABI.def", "FP8RT_FIELD(const i64 *, sizes)", "FP8RT_FIELD(const i32 *, sizes)",
                    f"sizes: {TYPE}")

    def test_fields_too_many_and_too_few(self):
        self.refuse("Module.h", "uint32_t flags;\n", "uint32_t flags;\n  uint32_t priority;\n",
                    f"fp8rt_launch_config: {SIZE}")
        # Where alignment would leave a gap, too.
        self.refuse("ScalingState.h", "int32_t reserved;   /* 0 */", "", "reserved")
        self.refuse("ABI.def", "  FP8RT_FIELD(i32, l2_promotion)\n", "",
                    f"fp8rt_tensor_map_desc: {SIZE}")
        self.refuse("ABI.def", "FP8RT_FIELD(i32, l2_promotion)",
                    "FP8RT_FIELD(i32, l2_promotion)\n  FP8RT_FIELD(i32, oob_fill)", "oob_fill")

    def test_structs_of_another_alignment(self):
        self.refuse("TensorMap.h", "FP8RT_ALIGNAS(64)", "FP8RT_ALIGNAS(128)",
                    "fp8rt_tensor_map: its alignment is not that of ABI.def")
        self.refuse("ABI.def", "FP8RT_STRUCT(fp8rt_stats, 8)", "FP8RT_STRUCT(fp8rt_stats, 16)",
                    "fp8rt_stats: its alignment is not that of ABI.def")

    def test_layouts_without_a_version(self):
        """What is right in itself, and not what programs were compiled with."""
        message = "ABI.def changed, but not FP8RT_VERSION"
        definition, header = (self.headers / name for name in ("ABI.def", "Stats.h"))
        texts = definition.read_text(), header.read_text()
        # A field in the middle of a struct, then at its end.
        for field, declaration in (("f64, count", "double count; "), ("f64, noise", "double noise; ")):
            for path, text, old, new in (
                    (definition, texts[0], f"  FP8RT_FIELD({field})\n", "  FP8RT_FIELD(f64, more)\n"),
                    (header, texts[1], f"  {declaration}", "  double more;\n")):
                place = text.index(old)
                place += len(old) if field == "f64, noise" and path == definition else 0
                if field == "f64, noise" and path == header:
                    place = text.index("} fp8rt_stats;")
                path.write_text(text[:place] + new + text[place:])
            result = self.compile()
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count("error:"), 1, result.stderr)
        definition.write_text(texts[0])
        header.write_text(texts[1])
        # A version that nothing is said of.
        self.refuse("Status.h", "FP8RT_VERSION_MINOR 1", "FP8RT_VERSION_MINOR 2", message)

    def test_functions_of_another_type(self):
        self.swap("Context.h", "void fp8rt_context_copy(fp8rt_context *context, void *dst, ",
                  "const void *src,", f"fp8rt_context_copy: {TYPE}")
        self.refuse("Context.h", "int32_t condition,", "int64_t condition,",
                    f"fp8rt_context_require: {TYPE}")
        self.refuse("Kernel.h", "int32_t fp8rt_kernel_get_num_workspaces",
                    "int64_t fp8rt_kernel_get_num_workspaces",
                    f"fp8rt_kernel_get_num_workspaces: {TYPE}")
        self.refuse("Context.h", "const fp8rt_kernel_argument *arguments,",
                    "fp8rt_kernel_argument *arguments,", f"fp8rt_context_launch_kernel: {TYPE}")
        self.refuse("ABI.def", "i64 count, str name))\nFP8RT_FUNCTION(void, fp8rt_context_require",
                    "str name, i64 count))\nFP8RT_FUNCTION(void, fp8rt_context_require",
                    f"fp8rt_context_check_memory: {TYPE}")
        self.refuse("ABI.def", "(i64 slot, fp8rt_stats *stats)", "(i64 slot)",
                    f"fp8rt_stats_get: {TYPE}")

    def test_other_names_of_another_type(self):
        self.refuse("ScalingState.h", "typedef uint64_t fp8rt_state;",
                    "typedef uint32_t fp8rt_state;", f"fp8rt_state: {TYPE}")
        self.refuse("ABI.def", "FP8RT_TYPE(fp8rt_stream, void *)",
                    "FP8RT_TYPE(fp8rt_stream, const void *)", f"fp8rt_stream: {TYPE}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
