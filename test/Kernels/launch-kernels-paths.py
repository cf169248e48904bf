# RUN: %python %s | timeout 60 fp8-opt --fp8-launch-kernels | FileCheck %s
"""What uses a kernel's result is looked at once, not once for each of 2^64 paths."""

# CHECK-LABEL: func.func @paths
# CHECK:         %[[FIRST:.+]] = fp8_gpu.launch @fp8_kernels::@bf16
# CHECK:         math.absf %[[FIRST]]
# CHECK:         %[[LAST:.+]] = fp8_gpu.launch @fp8_kernels::@bf16
# CHECK-NOT:     arith.negf
# CHECK:         return %[[LAST]]

ARGUMENTS = ", ".join(
    f'#fp8_gpu.argument<name = "{name}", element = bf16, rank = 2, access = {access}, alignment = 16>'
    for name, access in (("a", "read"), ("b", "read"), ("d", "write")))
X = "tensor<64x64xbf16>"


def main():
    print("gpu.module @fp8_kernels {\n  llvm.func @bf16() attributes {fp8_gpu.launch = #fp8_gpu.launch<"
          f"arguments = [{ARGUMENTS}], extents = [], params = [], "
          "grid = affine_map<() -> (1)>, block = 32>}\n}")
    print(f"func.func @paths(%x: {X}, %w: {X}) -> {X} {{")
    kernel = f"%w accumulate = fast {{fp8_gpu.kernel = @fp8_kernels::@bf16}} : {X}, {X} -> {X}"
    print(f"  %x0 = fp8.matmul %x, {kernel}")
    for i in range(64):
        print(f"  %a{i} = math.absf %x{i} : {X}\n  %b{i} = math.ceil %x{i} : {X}")
        print(f"  %x{i + 1} = arith.addf %a{i}, %b{i} : {X}")
    print(f"  %y = fp8.matmul %x64, {kernel}")
    # Nobody uses the last of these, and so none of them.
    print(f"  %d0 = arith.negf %y : {X}\n  %d1 = arith.negf %d0 : {X}")
    print(f"  return %y : {X}\n}}")


if __name__ == "__main__":
    main()
