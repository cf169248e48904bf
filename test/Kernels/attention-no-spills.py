# RUN: %python %s %fp8_build/bin %ptxas sm_90a
# RUN: %python %s %fp8_build/bin %ptxas sm_89
# RUN: %python %s %fp8_build/bin %ptxas sm_120a
# RUN: %python %s %fp8_build/bin %ptxas sm_80
# RUN: %python %s %fp8_build/bin %ptxas sm_100a
# REQUIRES: ptxas
# UNSUPPORTED: sanitizers
"""Attention kernels with masks, ranges of keys, caps and dropout become machine code that spills no more than is known, in
bytes, and whose wgmma is not serialized: gradients have registers for little beside their sums. Those by mma.sync and tcgen05
spill nothing."""

import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Direction, element, columns, what else ("blocks" of positions have factors), attributes, and bytes of stores and loads at most.
HOPPER = {
    "forward_64_dropout": ("forward", "bf16", 64, ("dropout",), "window = [*, 0]", 0),
    "forward_128_dropout": ("forward", "bf16", 128, ("dropout",), "window = [*, 0]", 0),
    "forward_codes_dropout": ("forward", "f8E4M3FN", 128, ("dropout",), "accumulate = fast", 0),
    "forward_promoted_dropout": ("forward", "f8E4M3FN", 128, ("dropout",), "accumulate = promote", 0),
    "forward_128_cap": ("forward", "bf16", 128, (), "cap = 30.0 window = [*, 0]", 0),
    "forward_128_mask": ("forward", "bf16", 128, ("mask",), "", 0),
    "forward_128_ranges": ("forward", "bf16", 128, ("key_ranges",), "", 72),
    "forward_64_ranges": ("forward", "bf16", 64, ("key_ranges",), "", 0),
    "forward_64_codes": ("forward", "f8E4M3FN", 64, ("key_ranges",), "accumulate = fast", 0),
    "forward_64_blocks": ("forward", "f8E4M3FN", 64, ("blocks",), "accumulate = promote", 0),
    "forward_128_blocks": ("forward", "f8E4M3FN", 128, ("blocks",), "window = [*, 0] accumulate = promote", 24),
    "forward_64": ("forward", "bf16", 64, (), "", 0),
    "forward_64_causal": ("forward", "bf16", 64, (), "window = [*, 0]", 0),
    "forward_80_window": ("forward", "bf16", 80, (), "window = [511, 0]", 0),
    "forward_96": ("forward", "bf16", 96, (), "", 0),
    "forward_128": ("forward", "bf16", 128, (), "", 0),
    "forward_128_causal": ("forward", "bf16", 128, (), "window = [*, 0]", 0),
    "forward_160_causal": ("forward", "bf16", 160, (), "window = [*, 0]", 0),
    "forward_192": ("forward", "bf16", 192, (), "", 0),
    "forward_192_ranges": ("forward", "bf16", 192, ("key_ranges",), "", 104),
    "forward_256_causal": ("forward", "bf16", 256, (), "window = [*, 0]", 56),
    "forward_256_ranges": ("forward", "bf16", 256, ("key_ranges",), "", 152),
    "gradients_64_dropout": ("gradients", "bf16", 64, ("dropout",), "", 156),
    "gradients_128_dropout": ("gradients", "bf16", 128, ("dropout",), "window = [*, 0]", 16),
    "gradients_128_ranges": ("gradients", "bf16", 128, ("key_ranges",), "", 0),
    "gradients_64_ranges": ("gradients", "bf16", 64, ("key_ranges",), "", 188),
}
# Everything at once takes most registers.
ALL = "cap = 30.0 window = [*, 0]"
MMA = {
    "gradients_64": ("gradients", "bf16", 64, (), "", 0),
    "gradients_64_all": ("gradients", "bf16", 64, ("key_ranges", "dropout"), ALL, 0),
    "gradients_96": ("gradients", "bf16", 96, (), "window = [*, 0]", 0),
    "gradients_128": ("gradients", "bf16", 128, (), "", 0),
    "gradients_128_f16": ("gradients", "f16", 128, (), "window = [*, 0]", 0),
    "gradients_128_all": ("gradients", "bf16", 128, ("key_ranges", "dropout"), ALL, 0),
    "gradients_128_codes": ("gradients", "f8E4M3FN", 128, ("dropout",), "window = [*, 0]", 0),
    "gradients_256_all": ("gradients", "bf16", 256, ("key_ranges", "dropout"), ALL, 0),
}
BLACKWELL = {
    "gradients_64": ("gradients", "bf16", 64, (), "window = [*, 0]", 0),
    "gradients_64_all": ("gradients", "f16", 64, ("key_ranges",), ALL, 0),
    "gradients_128": ("gradients", "bf16", 128, (), "window = [1023, 0]", 0),
    "gradients_128_all": ("gradients", "bf16", 128, ("key_ranges",), ALL, 0),
}
KERNELS = {"sm_100a": BLACKWELL, "sm_90a": HOPPER, "sm_80": dict(list(MMA.items())[5:6])}
TYPES = {"dropout": "tensor<2xi64>", "mask": "tensor<2x1x?x?xi1>", "key_ranges": "tensor<2x?x2xi32>"}


def write(kernel):
    direction, element, columns, others, attributes, _ = kernel
    kind = result = f"tensor<2x?x16x{columns}x{element}>"
    if element.startswith("f8"):
        result = f"tensor<2x?x16x{columns}xbf16>"
        block = "1, 128, 1, *" if "blocks" in others else "*, *, *, *"
        kind = f"!fp8.scaled<2x?x16x{columns}x{element}, block = [{block}], scale = f32>"
    others = [name for name in others if name in TYPES]
    rows = "tensor<2x16x?xf32>"
    arguments = [f"%q: {kind}", f"%rows: {rows}", f"%grad: {result}", *(f"%{name}: {TYPES[name]}" for name in others)]
    told = "".join(f" {name}(%{name} : {TYPES[name]})" + " rate = 0.1" * (name == "dropout") for name in others)
    if direction == "forward":
        return (f"func.func @main({', '.join(arguments)}) -> ({result}, {rows}) {{\n"
                f"  %0, %1 = fp8.attention %q, %q, %q{told} scale = 0.125 {attributes} : {kind}, {kind}, {kind} -> {result}, {rows}\n"
                f"  return %0, %1 : {result}, {rows}\n}}\n")
    return (f"func.func @main({', '.join(arguments)}) -> {result} {{\n"
            f"  %0:3 = fp8.attention_backward %grad, %q, %q, %q, %rows, %rows{told} scale = 0.125 {attributes} : "
            f"{result}, {kind}, {kind}, {kind}, {rows}, {rows} -> {result}, {result}, {result}\n"
            f"  return %0#0 : {result}\n}}\n")


def assemble(tools, ptxas, chip, folder, name, kernel):
    """What ptxas says of a kernel."""
    program, ptx = folder / f"{name}.mlir", folder / f"{name}.ptx"
    subprocess.run([tools / "fp8-opt", f"--fp8-set-target=chip={chip}", "--fp8-select-kernels", "--fp8-build-kernels",
                    "-o", program], input=write(kernel), text=True, check=True)
    subprocess.run([tools / "fp8-translate", "--kernels-to-ptx", program, "-o", ptx], check=True)
    done = subprocess.run([ptxas, "-v", f"-arch={chip}", ptx, "-o", folder / f"{name}.cubin"], text=True,
                          capture_output=True, check=True)
    return done.stdout + done.stderr


def main():
    tools, ptxas, chip, wrong = Path(sys.argv[1]), *sys.argv[2:], []
    kernels = KERNELS.get(chip, MMA)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        said = pool.map(lambda named: assemble(tools, ptxas, chip, Path(folder), *named), kernels.items())
        for (name, kernel), log in zip(kernels.items(), said):
            (stores, loads), = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
            print(name, stores, loads, *re.findall(r"\((C75\d+)\)", log))
            # C7519 says where ptxas itself waits for the registers of a first product.
            if max(int(stores), int(loads)) > kernel[-1] or set(re.findall(r"C75\d+", log)) - {"C7519"}:
                wrong.append(log)
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
