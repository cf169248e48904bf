// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --fp8-launch-kernels --canonicalize --cse %s | FileCheck %s

// Bits have a byte each in memory, and two columns' are not neighbours' bits.

// CHECK: #fp8_gpu.argument<name = "operand0", element = i1, rank = 2, access = read, alignment = 8>
// CHECK: fp8_gpu.launch {{.*}} ins(%arg0, %arg1, %arg2 : tensor<256x512xbf16>, tensor<256x512xbf16>, tensor<256x256xi1>)
// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK: %[[BYTES:.*]] = llvm.load %{{.*}} invariant : !llvm.ptr<1> -> vector<2xi8>
// CHECK: %[[BYTE:.*]] = llvm.extractelement %[[BYTES]]
// CHECK: %[[BIT:.*]] = arith.trunci %[[BYTE]] : i8 to i1
// CHECK: arith.select %[[BIT]]
func.func @mask(%a: tensor<256x512xbf16>, %b: tensor<256x512xbf16>, %mask: tensor<256x256xi1>) -> tensor<256x256xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue(%mask : tensor<256x256xi1>) {
  ^bb0(%acc: f32, %m: i1):
    %zero = arith.constant 0.0 : f32
    %1 = arith.select %m, %zero, %acc : f32
    %2 = arith.truncf %1 : f32 to bf16
    fp8.yield %2 : bf16
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>}
    : tensor<256x512xbf16>, tensor<256x512xbf16> -> tensor<256x256xbf16>
  return %0 : tensor<256x256xbf16>
}
