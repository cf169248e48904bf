# Runs the gtest executables, one lit test per gtest test.

import os

import lit.formats

config.name = "FP8-Unit"
config.suffixes = []
config.test_source_root = config.fp8_unit_dir
config.test_exec_root = config.fp8_unit_dir
config.test_format = lit.formats.GoogleTest("", "Tests")

for name in ("HOME", "TMPDIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# See test/lit.cfg.py.
if config.fp8_sanitizers:
    config.environment["ASAN_OPTIONS"] = "detect_leaks=0:allow_user_poisoning=0"
    config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1"
