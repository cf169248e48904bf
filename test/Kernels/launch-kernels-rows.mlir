// RUN: fp8-opt %s --fp8-launch-kernels | FileCheck %s
// RUN: fp8-opt %s --fp8-launch-kernels --canonicalize | FileCheck %s --check-prefix=KNOWN

#a = #fp8_gpu.argument<name = "a", element = bf16, rank = 2, access = read, alignment = 16>
#w = #fp8_gpu.argument<name = "w", element = bf16, rank = 2, access = read, alignment = 16>
#out = #fp8_gpu.argument<name = "out", element = f32, rank = 2, access = write, alignment = 16>
#launch = #fp8_gpu.launch<arguments = [#a, #w, #out], extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
gpu.module @fp8_kernels {
  llvm.func @narrow() attributes {fp8_gpu.launch = #launch}
  llvm.func @middle() attributes {fp8_gpu.launch = #launch}
  llvm.func @wide() attributes {fp8_gpu.launch = #launch}
}
#config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 5>
!w = tensor<64x128xbf16>

// Kernels that come back for more rows are launched in one place each: rows become the number of a kernel.
// CHECK-LABEL: func.func @again
// CHECK-DAG: %[[ROWS:.*]] = tensor.dim %{{.*}}, %c0{{.*}} : tensor<?x64xf32>
// CHECK: %[[TO_96:.*]] = arith.cmpi sle, %[[ROWS]], %c96{{.*}} : index
// CHECK: %[[AT_96:.*]] = arith.select %[[TO_96]], %c1{{.*}}, %c2{{.*}} : index
// CHECK: arith.cmpi sle, %[[ROWS]], %c48
// CHECK: arith.cmpi sle, %[[ROWS]], %c32
// CHECK: %[[TO_16:.*]] = arith.cmpi sle, %[[ROWS]], %c16{{.*}} : index
// CHECK: %[[NUMBER:.*]] = arith.select %[[TO_16]], %c0{{.*}}, %{{.*}} : index
// CHECK: %[[FIRST:.*]] = arith.cmpi sle, %[[NUMBER]], %c0{{.*}} : index
// CHECK: scf.if %[[FIRST]]
// CHECK: fp8_gpu.launch @fp8_kernels::@narrow
// CHECK: } else {
// CHECK: %[[SECOND:.*]] = arith.cmpi sle, %[[NUMBER]], %c1{{.*}} : index
// CHECK: scf.if %[[SECOND]]
// CHECK: fp8_gpu.launch @fp8_kernels::@middle
// CHECK: } else {
// CHECK: fp8_gpu.launch @fp8_kernels::@wide
// CHECK-NOT: fp8_gpu.launch
// CHECK: return
func.func @again(%a: tensor<?x128xbf16>, %w: !w) -> tensor<?x64xf32> {
  %0 = fp8.matmul %a, %w accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@wide, fp8_gpu.few_rows = [
      #fp8_gpu.few_rows<most = 16, config = #config, kernel = @fp8_kernels::@narrow>,
      #fp8_gpu.few_rows<most = 32, config = #config, kernel = @fp8_kernels::@middle>,
      #fp8_gpu.few_rows<most = 48, config = #config, kernel = @fp8_kernels::@narrow>,
      #fp8_gpu.few_rows<most = 96, config = #config, kernel = @fp8_kernels::@middle>]}
    : tensor<?x128xbf16>, !w -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// The kernel of all that is beyond may be one of those, too.
// CHECK-LABEL: func.func @beyond
// CHECK: scf.if
// CHECK: fp8_gpu.launch @fp8_kernels::@wide
// CHECK: fp8_gpu.launch @fp8_kernels::@narrow
// CHECK-NOT: fp8_gpu.launch
// CHECK: return
func.func @beyond(%a: tensor<?x128xbf16>, %w: !w) -> tensor<?x64xf32> {
  %0 = fp8.matmul %a, %w accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@wide, fp8_gpu.few_rows = [
      #fp8_gpu.few_rows<most = 16, config = #config, kernel = @fp8_kernels::@wide>,
      #fp8_gpu.few_rows<most = 32, config = #config, kernel = @fp8_kernels::@narrow>]}
    : tensor<?x128xbf16>, !w -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// Where each has rows of its own, those are what is compared.
// CHECK-LABEL: func.func @once
// CHECK-NOT: arith.select
// CHECK: return
func.func @once(%a: tensor<?x128xbf16>, %w: !w) -> tensor<?x64xf32> {
  %0 = fp8.matmul %a, %w accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@wide, fp8_gpu.few_rows = [
      #fp8_gpu.few_rows<most = 16, config = #config, kernel = @fp8_kernels::@narrow>]}
    : tensor<?x128xbf16>, !w -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// Known rows leave the one that computes so many.
// KNOWN-LABEL: func.func @up_to_96_16
// KNOWN-NOT: scf.if
// KNOWN: fp8_gpu.launch @fp8_kernels::@narrow
// KNOWN-NOT: fp8_gpu.launch
// KNOWN: return
func.func @up_to_96_16(%a: tensor<16x128xbf16>, %w: !w) -> tensor<16x64xf32> {
  %0 = fp8.matmul %a, %w accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@wide, fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, config = #config, kernel = @fp8_kernels::@narrow>, #fp8_gpu.few_rows<most = 32, config = #config, kernel = @fp8_kernels::@middle>, #fp8_gpu.few_rows<most = 48, config = #config, kernel = @fp8_kernels::@narrow>, #fp8_gpu.few_rows<most = 96, config = #config, kernel = @fp8_kernels::@middle>]}
    : tensor<16x128xbf16>, !w -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}
// KNOWN-LABEL: func.func @up_to_96_17
// KNOWN-NOT: scf.if
// KNOWN: fp8_gpu.launch @fp8_kernels::@middle
// KNOWN-NOT: fp8_gpu.launch
// KNOWN: return
func.func @up_to_96_17(%a: tensor<17x128xbf16>, %w: !w) -> tensor<17x64xf32> {
  %0 = fp8.matmul %a, %w accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@wide, fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, config = #config, kernel = @fp8_kernels::@narrow>, #fp8_gpu.few_rows<most = 32, config = #config, kernel = @fp8_kernels::@middle>, #fp8_gpu.few_rows<most = 48, config = #config, kernel = @fp8_kernels::@narrow>, #fp8_gpu.few_rows<most = 96, config = #config, kernel = @fp8_kernels::@middle>]}
    : tensor<17x128xbf16>, !w -> tensor<17x64xf32>
  return %0 : tensor<17x64xf32>
}
// KNOWN-LABEL: func.func @up_to_96_33
// KNOWN-NOT: scf.if
// KNOWN: fp8_gpu.launch @fp8_kernels::@narrow
// KNOWN-NOT: fp8_gpu.launch
// KNOWN: return
func.func @up_to_96_33(%a: tensor<33x128xbf16>, %w: !w) -> tensor<33x64xf32> {
  %0 = fp8.matmul %a, %w accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@wide, fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, config = #config, kernel = @fp8_kernels::@narrow>, #fp8_gpu.few_rows<most = 32, config = #config, kernel = @fp8_kernels::@middle>, #fp8_gpu.few_rows<most = 48, config = #config, kernel = @fp8_kernels::@narrow>, #fp8_gpu.few_rows<most = 96, config = #config, kernel = @fp8_kernels::@middle>]}
    : tensor<33x128xbf16>, !w -> tensor<33x64xf32>
  return %0 : tensor<33x64xf32>
}
// KNOWN-LABEL: func.func @up_to_96_49
// KNOWN-NOT: scf.if
// KNOWN: fp8_gpu.launch @fp8_kernels::@middle
// KNOWN-NOT: fp8_gpu.launch
// KNOWN: return
func.func @up_to_96_49(%a: tensor<49x128xbf16>, %w: !w) -> tensor<49x64xf32> {
  %0 = fp8.matmul %a, %w accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@wide, fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, config = #config, kernel = @fp8_kernels::@narrow>, #fp8_gpu.few_rows<most = 32, config = #config, kernel = @fp8_kernels::@middle>, #fp8_gpu.few_rows<most = 48, config = #config, kernel = @fp8_kernels::@narrow>, #fp8_gpu.few_rows<most = 96, config = #config, kernel = @fp8_kernels::@middle>]}
    : tensor<49x128xbf16>, !w -> tensor<49x64xf32>
  return %0 : tensor<49x64xf32>
}
// KNOWN-LABEL: func.func @up_to_96_96
// KNOWN-NOT: scf.if
// KNOWN: fp8_gpu.launch @fp8_kernels::@middle
// KNOWN-NOT: fp8_gpu.launch
// KNOWN: return
func.func @up_to_96_96(%a: tensor<96x128xbf16>, %w: !w) -> tensor<96x64xf32> {
  %0 = fp8.matmul %a, %w accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@wide, fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, config = #config, kernel = @fp8_kernels::@narrow>, #fp8_gpu.few_rows<most = 32, config = #config, kernel = @fp8_kernels::@middle>, #fp8_gpu.few_rows<most = 48, config = #config, kernel = @fp8_kernels::@narrow>, #fp8_gpu.few_rows<most = 96, config = #config, kernel = @fp8_kernels::@middle>]}
    : tensor<96x128xbf16>, !w -> tensor<96x64xf32>
  return %0 : tensor<96x64xf32>
}
// KNOWN-LABEL: func.func @up_to_96_97
// KNOWN-NOT: scf.if
// KNOWN: fp8_gpu.launch @fp8_kernels::@wide
// KNOWN-NOT: fp8_gpu.launch
// KNOWN: return
func.func @up_to_96_97(%a: tensor<97x128xbf16>, %w: !w) -> tensor<97x64xf32> {
  %0 = fp8.matmul %a, %w accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@wide, fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, config = #config, kernel = @fp8_kernels::@narrow>, #fp8_gpu.few_rows<most = 32, config = #config, kernel = @fp8_kernels::@middle>, #fp8_gpu.few_rows<most = 48, config = #config, kernel = @fp8_kernels::@narrow>, #fp8_gpu.few_rows<most = 96, config = #config, kernel = @fp8_kernels::@middle>]}
    : tensor<97x128xbf16>, !w -> tensor<97x64xf32>
  return %0 : tensor<97x64xf32>
}
// KNOWN-LABEL: func.func @up_to_32_16
// KNOWN-NOT: scf.if
// KNOWN: fp8_gpu.launch @fp8_kernels::@wide
// KNOWN-NOT: fp8_gpu.launch
// KNOWN: return
func.func @up_to_32_16(%a: tensor<16x128xbf16>, %w: !w) -> tensor<16x64xf32> {
  %0 = fp8.matmul %a, %w accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@wide, fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, config = #config, kernel = @fp8_kernels::@wide>, #fp8_gpu.few_rows<most = 32, config = #config, kernel = @fp8_kernels::@narrow>]}
    : tensor<16x128xbf16>, !w -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}
// KNOWN-LABEL: func.func @up_to_32_17
// KNOWN-NOT: scf.if
// KNOWN: fp8_gpu.launch @fp8_kernels::@narrow
// KNOWN-NOT: fp8_gpu.launch
// KNOWN: return
func.func @up_to_32_17(%a: tensor<17x128xbf16>, %w: !w) -> tensor<17x64xf32> {
  %0 = fp8.matmul %a, %w accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@wide, fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, config = #config, kernel = @fp8_kernels::@wide>, #fp8_gpu.few_rows<most = 32, config = #config, kernel = @fp8_kernels::@narrow>]}
    : tensor<17x128xbf16>, !w -> tensor<17x64xf32>
  return %0 : tensor<17x64xf32>
}
// KNOWN-LABEL: func.func @up_to_32_33
// KNOWN-NOT: scf.if
// KNOWN: fp8_gpu.launch @fp8_kernels::@wide
// KNOWN-NOT: fp8_gpu.launch
// KNOWN: return
func.func @up_to_32_33(%a: tensor<33x128xbf16>, %w: !w) -> tensor<33x64xf32> {
  %0 = fp8.matmul %a, %w accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@wide, fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, config = #config, kernel = @fp8_kernels::@wide>, #fp8_gpu.few_rows<most = 32, config = #config, kernel = @fp8_kernels::@narrow>]}
    : tensor<33x128xbf16>, !w -> tensor<33x64xf32>
  return %0 : tensor<33x64xf32>
}
