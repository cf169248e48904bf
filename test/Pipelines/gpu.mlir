// Every example goes through the whole pipeline under every recipe. "auto"
// assembles the kernels where there is a ptxas.

// RUN: fp8-opt %fp8_source/examples/linear.mlir --fp8-pipeline="recipe=current target=sm_90a" | FileCheck %s
// RUN: fp8-opt %fp8_source/examples/linear.mlir --fp8-pipeline="target=sm_90a recipe=none" | FileCheck %s --check-prefix=PLAIN
// RUN: fp8-opt %fp8_source/examples/mlp.mlir --fp8-pipeline="target=sm_90a recipe=none" | FileCheck %s --check-prefix=HOST
// RUN: fp8-opt %fp8_source/examples/mlp.mlir --fp8-pipeline="target=sm_90a recipe=current" | FileCheck %s --check-prefix=HOST
// RUN: fp8-opt %fp8_source/examples/mlp.mlir --fp8-pipeline="target=sm_90a recipe=rowwise" | FileCheck %s --check-prefix=HOST
// RUN: fp8-opt %fp8_source/examples/mlp.mlir --fp8-pipeline="target=sm_90a recipe=block" | FileCheck %s --check-prefix=HOST
// RUN: fp8-opt %fp8_source/examples/train.mlir --fp8-pipeline="target=sm_90a recipe=current" | FileCheck %s --check-prefix=HOST
// RUN: fp8-opt %fp8_source/examples/train.mlir --fp8-pipeline="target=sm_90a recipe=block" | FileCheck %s --check-prefix=HOST
// RUN: fp8-opt %fp8_source/examples/train.mlir --fp8-pipeline="target=sm_90a recipe=delayed functional-state" | FileCheck %s --check-prefix=HOST

// Kernels are in the host's module, each in an image, and nothing else is left of
// the GPU: the amax and the cast of either operand, the matmul, and what sets both
// amaxes to 0 at once.

// CHECK-NOT:     gpu.
// CHECK-COUNT-6: _image_data("
// CHECK-NOT:     _image_data("
// CHECK-LABEL: llvm.func @linear(
// CHECK:       llvm.call @fp8rt_context_launch(
// CHECK-NOT:   llvm.call @fp8rt_context_launch(
// CHECK-COUNT-5: llvm.call @fp8rt_context_launch_kernel(
// CHECK-NOT:   llvm.call @{{malloc|aligned_alloc}}
// CHECK:       llvm.return

// HOST:     llvm.call @fp8rt_context_launch{{(_kernel)?}}(
// HOST-NOT: builtin.unrealized_conversion_cast

// What a recipe leaves in high precision is computed by a kernel, too.

// PLAIN:     llvm.mlir.global internal constant @fp8_kernels_fp8_matmul_sm90a_bf16_bf16_
// PLAIN:     llvm.call @fp8rt_context_launch_kernel(
// PLAIN-NOT: builtin.unrealized_conversion_cast

// Where no kernel multiplies the codes, operands become bf16 in one pass each,
// the weight, which lies as [in, out], in the order that it has.

// RUN: fp8-opt %fp8_source/examples/linear.mlir --fp8-pipeline="target=sm_90a recipe=mxfp8" 2>&1 | FileCheck %s --check-prefix=MXFP8
// MXFP8:     remark: {{.*}}multiplied in bf16, which the tensor core multiplies, and not as '!fp8.scaled<
// MXFP8-NOT: fp8_transpose_sm90a
// MXFP8-DAG: llvm.mlir.global internal constant @fp8_kernels_{{([0-9]+_)?}}fp8_fusion_sm90a_rows_32x1_{{.+}}_launch(
// MXFP8-DAG: llvm.mlir.global internal constant @fp8_kernels_{{([0-9]+_)?}}fp8_fusion_sm90a_rows_1x32_{{.+}}_launch(
// MXFP8-DAG: llvm.mlir.global internal constant @fp8_kernels_{{([0-9]+_)?}}fp8_matmul_sm90a_bf16_bf16_bf16_nn_{{.+}}_launch(
// MXFP8-NOT: llvm.call @fp8rt_context_launch(
// MXFP8-COUNT-3: llvm.call @fp8rt_context_launch_kernel(
// MXFP8-NOT: llvm.call @fp8rt_context_launch

// Loops compute as the CPU does, beside kernels that do not: no operation is left
// to be contracted. Here they compute scales of amaxes that are given.

// RUN: fp8-compile %s --target=sm_90a --recipe=rowwise --emit=ptx -o %t.ptx
// RUN: FileCheck %s --check-prefix=GENERATED --input-file=%t.ptx
// RUN: awk '/\.entry/ { exact = !/\.entry fp8_/ } exact' %t.ptx | FileCheck %s --check-prefix=PTX
// GENERATED: .entry fp8_matmul
// GENERATED: .approx.ftz.f32
// PTX-NOT: fp8_matmul{{.*}}({{$}}
// PTX-NOT: {{(add|sub|mul)\.f32|fma\.|\.approx|\.ftz}}
// PTX:     div.rn.f32
// PTX-NOT: {{(add|sub|mul)\.f32|fma\.|\.approx|\.ftz}}

// The state's rows are on the device; nothing of them is read by the host.

// RUN: fp8-opt %fp8_source/examples/train.mlir --fp8-pipeline="target=sm_90a recipe=delayed" | FileCheck %s --check-prefix=STATE
// STATE:     module attributes {{.*}}fp8.state_manifest
// STATE:     llvm.call @fp8rt_context_check_memory(
// STATE-NOT: llvm.call @fp8rt_context_read(

func.func @scales(%x: tensor<64x96xbf16>, %w: tensor<96x128xbf16>, %amax: tensor<1x96xf32>)
    -> (tensor<64x128xf32>, tensor<1x96xf32>, tensor<1x96xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x96xbf16>, tensor<96x128xbf16>) outs(%zeros : tensor<64x128xf32>) -> tensor<64x128xf32>
  %z = math.exp %y : tensor<64x128xf32>
  %scale, %scale_inv = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<1x96xf32>
  return %z, %scale, %scale_inv : tensor<64x128xf32>, tensor<1x96xf32>, tensor<1x96xf32>
}
