// RUN: rm -rf %t && split-file %s %t
// RUN: fp8-opt %t/program.mlir --fp8-pipeline="recipe=delayed target=sm_90a to=buffers" --fp8-fusion-report=- -o /dev/null \
// RUN:   | FileCheck %t/program.mlir
// RUN: fp8-compile %t/program.mlir --recipe=block --target=sm_90a --emit=mlir --fp8-fusion-report=%t/block.txt -o /dev/null
// RUN: FileCheck %t/program.mlir --check-prefix=BLOCK < %t/block.txt

// The same as JSON, from another tool, beside what is launched in the end.

// RUN: fp8-run %t/program.mlir --recipe=delayed --target=sm_90a --compile-to=kernels --fp8-fusion-report=%t/delayed.json > %t/kernels.mlir
// RUN: %python %t/check.py %t/delayed.json %t/kernels.mlir | FileCheck %t/check.py

// A state that is tensors is compiled in two parts, of which the second has the
// kernels.

// RUN: fp8-compile %t/program.mlir --recipe=delayed --target=sm_90a --functional-state --fp8-fusion-report=%t/functional.txt -o %t/program.so
// RUN: FileCheck %t/program.mlir --check-prefix=FUNCTIONAL < %t/functional.txt

//--- check.py
import json
import re
import sys

report = json.load(open(sys.argv[1]))
assert report["version"] == 1
assert report["target"] == {"chip": "sm_90a", "memory_gbps": 4800,
                            "tflops": 2e-6 * 132 * 4096 * 1830, "launch_us": 2.5}

# A launch for each kernel, and no other.
launches = {}
for line in open(sys.argv[2]):
    if found := re.match(r"  func.func @(\w+)", line):
        name = found[1]
    elif re.search(r"fp8_gpu\.launch @|gpu\.launch_func|memref\.copy", line):
        launches[name] = launches.get(name, 0) + 1
assert launches == {f["name"]: len(f["kernels"]) for f in report["functions"]}, launches

for function in report["functions"]:
    kernels = function["kernels"]
    for all_kernels, floor in ("bytes", "floor_bytes"), ("time_us", "floor_us"):
        assert function[all_kernels] is None or function[floor] <= function[all_kernels], function
    for kernel in kernels:
        for key, total in ("reads", "read_bytes"), ("writes", "written_bytes"):
            sizes = [tensor["bytes"] for tensor in kernel[key]]
            assert kernel[total] == (None if None in sizes else sum(sizes)), kernel
    for pair in function["not_fused"]:
        assert 1 <= pair["first"] < pair["second"] <= len(kernels), pair
        assert pair["reason"] and (pair["flows"] or pair["shared"]), pair

# What a linear layer moves: bf16 in, codes in two orders out, and the products.
m, n, k = 512, 2048, 1024
linear = report["functions"][0]
casts = (2 + 1 + 1) * (m * k + n * k + m * n)
products = (m * k + n * k + 2 * m * n) + (m * n + n * k + 2 * m * k) + (m * n + m * k + 2 * n * k)
assert casts + products <= linear["floor_bytes"] <= linear["bytes"] < casts + products + 500, linear
matmuls = [kernel for kernel in linear["kernels"] if kernel["kind"] == "matmul"]
assert [kernel["flops"] for kernel in matmuls] == [2 * m * n * k] * 3
for kernel in matmuls:
    moving = (kernel["read_bytes"] + kernel["written_bytes"]) / 4800e3
    multiplying = kernel["flops"] / (report["target"]["tflops"] * 1e6)
    assert abs(kernel["floor_us"] - max(moving, multiplying) - 2.5) < 1e-6, kernel
assert linear["floor_us"] < sum(kernel["floor_us"] for kernel in linear["kernels"])

# CHECK: {{^}}fp8_matmul_sm90a_{{.*}} down {{.*}}program.mlir:
mlp = report["functions"][1]
down = next(kernel for kernel in mlp["kernels"] if kernel["what"] == "down")
print(down["symbol"], down["what"], down["location"])

//--- program.mlir
#full = affine_map<(m, n) -> (m, n)>
#a = affine_map<(m, n, k) -> (m, k)>
#a_columns = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#b_columns = affine_map<(m, n, k) -> (n, k)>
#d = affine_map<(m, n, k) -> (m, n)>

// Nothing is read twice, and nothing that is not needed: but for what the state
// takes, it is what the floor has.

// CHECK-LABEL: @linear
// CHECK-NEXT: {{[0-9]+}} kernels 29.36
// CHECK-NEXT: floor 29.36 16.3
// CHECK-NEXT: kernels / floor 1.00
// CHECK: # kind read MB write MB GFLOP floor us what it computes
// CHECK: fusion 1.05 1.05 2.9 quantize amax transpose of x for linear, linear.wgrad
// CHECK: fusion 4.19 4.19 4.2 quantize amax transpose of w for linear, linear.dgrad
// CHECK: matmul 2.62 2.10 2.15 3.6 linear{{$}}
// CHECK: fusion 2.10 2.10 3.4 quantize amax transpose of dy for linear.dgrad, linear.wgrad
// CHECK: matmul 3.15 1.05 2.15 3.6 linear.dgrad
// CHECK: matmul 1.57 4.19 2.15 3.7 linear.wgrad
// CHECK: read again only to be quantized: none

// FUNCTIONAL-LABEL: @linear
// FUNCTIONAL: matmul 2.62 2.10 2.15 3.6 linear{{$}}

// BLOCK-LABEL: @linear
// BLOCK-NEXT: 6 kernels 29.56 21.5
// BLOCK-NEXT: floor 29.56
// BLOCK-NOT: what one would save
// BLOCK: read again only to be quantized: none
func.func @linear(%x: tensor<512x1024xbf16> {fp8.name = "x"}, %w: tensor<2048x1024xbf16> {fp8.name = "w", fp8.weight},
                  %dy: tensor<512x2048xbf16> {fp8.name = "dy", fp8.grad})
    -> (tensor<512x2048xbf16> {fp8.name = "y"}, tensor<512x1024xbf16> {fp8.name = "dx"}, tensor<2048x1024xbf16> {fp8.name = "dw"}) {
  %zero = arith.constant 0.0 : f32
  %y_empty = tensor.empty() : tensor<512x2048xf32>
  %y_zeros = linalg.fill ins(%zero : f32) outs(%y_empty : tensor<512x2048xf32>) -> tensor<512x2048xf32>
  %y_sums = linalg.matmul indexing_maps = [#a, #b_columns, #d] {fp8.name = "linear"} ins(%x, %w : tensor<512x1024xbf16>, tensor<2048x1024xbf16>) outs(%y_zeros : tensor<512x2048xf32>) -> tensor<512x2048xf32>
  %y = arith.truncf %y_sums : tensor<512x2048xf32> to tensor<512x2048xbf16>
  %dx_empty = tensor.empty() : tensor<512x1024xf32>
  %dx_zeros = linalg.fill ins(%zero : f32) outs(%dx_empty : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  %dx_sums = linalg.matmul indexing_maps = [#a, #b, #d] {fp8.name = "linear.dgrad"} ins(%dy, %w : tensor<512x2048xbf16>, tensor<2048x1024xbf16>) outs(%dx_zeros : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  %dx = arith.truncf %dx_sums : tensor<512x1024xf32> to tensor<512x1024xbf16>
  %dw_empty = tensor.empty() : tensor<2048x1024xf32>
  %dw_zeros = linalg.fill ins(%zero : f32) outs(%dw_empty : tensor<2048x1024xf32>) -> tensor<2048x1024xf32>
  %dw_sums = linalg.matmul indexing_maps = [#a_columns, #b, #d] {fp8.name = "linear.wgrad"} ins(%dy, %x : tensor<512x2048xbf16>, tensor<512x1024xbf16>) outs(%dw_zeros : tensor<2048x1024xf32>) -> tensor<2048x1024xf32>
  %dw = arith.truncf %dw_sums : tensor<2048x1024xf32> to tensor<2048x1024xbf16>
  return %y, %dx, %dw : tensor<512x2048xbf16>, tensor<512x1024xbf16>, tensor<2048x1024xbf16>
}

// SwiGLU is computed in the tiles of both matmuls; with a scale that is given its
// codes too, with one for a block they are made by a pass of their own.

// CHECK-LABEL: @mlp
// CHECK-NEXT: 6 kernels 30.41 22.5
// CHECK-NEXT: floor 30.41
// CHECK: matmul 4.72 1.05 4.29 4.7 gate; up
// CHECK: matmul 3.15 1.05 2.15 3.6 down
// CHECK-NOT: what one would save
// CHECK: read again only to be quantized: none

// BLOCK-LABEL: @mlp
// BLOCK-NEXT: 7 kernels 34.70 25.7
// BLOCK-NEXT: floor
// BLOCK: 4 matmul 4.74 2.10 4.29 4.7 gate; up
// BLOCK-NEXT: 5 fusion 2.10 1.08 3.2 amax quantize of up's 512x2048xbf16 for down
// BLOCK: what one would save
// BLOCK: 4.19 3.4 #4 -> #5 through up's 512x2048xbf16: fp8.amax: of blocks, which no epilogue has
func.func @mlp(%x: tensor<512x1024xbf16> {fp8.name = "x"}, %w_gate: tensor<2048x1024xbf16> {fp8.name = "w_gate", fp8.weight},
               %w_up: tensor<2048x1024xbf16> {fp8.name = "w_up", fp8.weight}, %w_down: tensor<1024x2048xbf16> {fp8.name = "w_down", fp8.weight})
    -> (tensor<512x1024xbf16> {fp8.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %gate_empty = tensor.empty() : tensor<512x2048xf32>
  %gate_zeros = linalg.fill ins(%zero : f32) outs(%gate_empty : tensor<512x2048xf32>) -> tensor<512x2048xf32>
  %gate_sums = linalg.matmul indexing_maps = [#a, #b_columns, #d] {fp8.name = "gate"} ins(%x, %w_gate : tensor<512x1024xbf16>, tensor<2048x1024xbf16>) outs(%gate_zeros : tensor<512x2048xf32>) -> tensor<512x2048xf32>
  %gate = arith.truncf %gate_sums : tensor<512x2048xf32> to tensor<512x2048xbf16>
  %up_empty = tensor.empty() : tensor<512x2048xf32>
  %up_zeros = linalg.fill ins(%zero : f32) outs(%up_empty : tensor<512x2048xf32>) -> tensor<512x2048xf32>
  %up_sums = linalg.matmul indexing_maps = [#a, #b_columns, #d] {fp8.name = "up"} ins(%x, %w_up : tensor<512x1024xbf16>, tensor<2048x1024xbf16>) outs(%up_zeros : tensor<512x2048xf32>) -> tensor<512x2048xf32>
  %up = arith.truncf %up_sums : tensor<512x2048xf32> to tensor<512x2048xbf16>
  %empty = tensor.empty() : tensor<512x2048xbf16>
  %h = linalg.generic {indexing_maps = [#full, #full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%gate, %up : tensor<512x2048xbf16>, tensor<512x2048xbf16>) outs(%empty : tensor<512x2048xbf16>) {
  ^bb0(%g_in: bf16, %u_in: bf16, %old: bf16):
    %g = arith.extf %g_in : bf16 to f32
    %u = arith.extf %u_in : bf16 to f32
    %one = arith.constant 1.0 : f32
    %negative = arith.negf %g : f32
    %exp = math.exp %negative : f32
    %divisor = arith.addf %exp, %one : f32
    %silu = arith.divf %g, %divisor : f32
    %out = arith.mulf %silu, %u : f32
    %rounded = arith.truncf %out : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<512x2048xbf16>
  %y_empty = tensor.empty() : tensor<512x1024xf32>
  %y_zeros = linalg.fill ins(%zero : f32) outs(%y_empty : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  %y_sums = linalg.matmul indexing_maps = [#a, #b_columns, #d] {fp8.name = "down"} ins(%h, %w_down : tensor<512x2048xbf16>, tensor<1024x2048xbf16>) outs(%y_zeros : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  %y = arith.truncf %y_sums : tensor<512x1024xf32> to tensor<512x1024xbf16>
  return %y : tensor<512x1024xbf16>
}
