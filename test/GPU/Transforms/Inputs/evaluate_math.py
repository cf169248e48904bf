"""Evaluates functions of one f32 that --fp8-lower-kernels left, with every
operation rounded to f32, and compares them with the functions of their names.

usage: evaluate_math.py LOWERED.mlir
"""

import math
import re
import struct
import sys


def f32(x):
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def exp2(x):
    return 0.0 if x < -126 else f32(2.0**x) if x < 128 else math.inf


def number(text):
    if text.startswith("0x"):
        return struct.unpack(">f", bytes.fromhex(text[2:]))[0]
    return f32(float(text))


# Each operation's pattern, and what it does; products of f32 are exact in f64.
OPERATIONS = [
    (r"llvm\.fmul (\S+), (\S+) :", lambda a, b: f32(a * b)),
    (r"llvm\.fadd (\S+), (\S+) :", lambda a, b: f32(a + b)),
    (r"llvm\.intr\.fabs\((\S+)\)", abs),
    (r"llvm\.intr\.fma\((\S+), (\S+), (\S+)\)", lambda a, b, c: f32(a * b + c)),
    (r"llvm\.intr\.copysign\((\S+), (\S+)\)", math.copysign),
    (r'llvm\.fcmp "ogt" (\S+), (\S+) :', lambda a, b: a > b),
    (r"llvm\.select (\S+), (\S+), (\S+) :", lambda c, a, b: a if c else b),
    (r'llvm\.call_intrinsic "llvm\.nvvm\.ex2\.approx\.ftz\.f32"\((\S+)\)', exp2),
    (r'llvm\.call_intrinsic "llvm\.nvvm\.rcp\.approx\.ftz\.f"\((\S+)\)',
     lambda a: f32(1 / a)),
]


def program(body):
    """A function that maps the value loaded to the value stored."""
    steps, constants, source = [], {}, None
    for line in body.splitlines():
        match = re.match(r"\s+(%\S+) = (.*)", line)
        if not match:
            stored = re.match(r"\s+llvm\.store (%\S+), ", line)
            result = stored.group(1) if stored else result if steps else None
            continue
        name, text = match.groups()
        constant = re.match(r"llvm\.mlir\.constant\((\S+) : f32\)", text)
        if constant:
            constants[name] = number(constant.group(1))
        elif text.startswith("llvm.load"):
            source = name
        else:
            found = [(m.groups(), do) for pattern, do in OPERATIONS
                     if (m := re.match(pattern, text))]
            if not found:
                sys.exit(f"expected an operation that is known, but got: {text}")
            steps.append((name, *found[0]))

    def run(x):
        values = {**constants, source: x}
        for name, operands, do in steps:
            values[name] = do(*(values[o] for o in operands))
        return values[result]

    return run


def gelu_tanh(x):
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return x * (1 + math.tanh(inner)) / 2


EXACT = {
    "erf": math.erf,
    "tanh": math.tanh,
    "one_plus_erf": lambda x: math.erfc(-x),
    "one_plus_erf_afn": lambda x: math.erfc(-x),
    "one_plus_tanh": lambda x: 1 + math.tanh(x),
    "gelu_erf": lambda x: x * math.erfc(-x * math.sqrt(0.5)) / 2,
    "gelu_tanh": gelu_tanh,
}

text = open(sys.argv[1]).read()
for name, body in re.findall(r"llvm\.func @(\w+)\(.*?\{\n(.*?)\n    \}", text, re.S):
    run, exact = program(body), EXACT[name]
    worst = 0.0
    for i in range(-24000, 24001):
        x = f32(i * 2.0**-12 * 1.37)
        worst = max(worst, abs(run(x) - exact(x)) / max(1, abs(x)))
    for x in (1e4, 1e38, -1e4):  # The polynomials' ends.
        worst = max(worst, abs(run(f32(x)) - exact(f32(x))) / abs(x))
    last = run(math.inf)
    print(f"{name}: error {worst:.1e}"
          + ("" if last == exact(math.inf) else f", {last} at infinity"))
