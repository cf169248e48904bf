// RUN: fp8-opt --fp8-form-fusions=position-dependent --fp8-set-target=chip=sm_90a --fp8-select-kernels="%every_candidate" --fp8-build-kernels %s --emit-bytecode -o %t.90.mlirbc
// RUN: fp8-translate --kernels-to-ptx %t.90.mlirbc -o %t.90.ptx
// RUN: %ptxas -v -arch=sm_90a %t.90.ptx -o %t.cubin > %t.90.log 2>&1
// RUN: %python %S/../Inputs/check_resources.py %t.90.log | FileCheck %s
// RUN: fp8-opt --fp8-form-fusions=position-dependent --fp8-set-target=chip=sm_100a --fp8-select-kernels="%every_candidate" --fp8-build-kernels %s --emit-bytecode -o %t.100.mlirbc
// RUN: fp8-translate --kernels-to-ptx %t.100.mlirbc -o %t.100.ptx
// RUN: %ptxas -v -arch=sm_100a %t.100.ptx -o %t.cubin > %t.100.log 2>&1
// RUN: %python %S/../Inputs/check_resources.py %t.100.log | FileCheck %s
// REQUIRES: ptxas

// Casts with a seed and rotations become machine code without spills or
// warnings, in every config that there is for them.

// CHECK: {{[0-9]+}} kernels

!x = tensor<8192x4096xbf16>
!t = tensor<4096x8192xbf16>
!f = tensor<8192x4096xf32>
!ft = tensor<4096x8192xf32>
!one = tensor<1x1xf32>
!w = tensor<4xi32>
!s = tensor<8192x256xf32>
!si = tensor<8192x256xf8E4M3FN>
!c = tensor<4096x512xf32>
!ci = tensor<4096x512xf8E4M3FN>
!q = !fp8.scaled<8192x4096xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!qt = !fp8.scaled<4096x8192xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

// Scales that are given.
func.func @seed(%x: !x, %s: !s, %si: !si, %t: !one, %seed: !w) -> !q {
  %q = fp8.quantize %x scale(%s, %si : !s, !si) tensor_scale_inv(%t : !one) seed(%seed : !w) : !x -> !q
  return %q : !q
}

// Computed in the pass.
func.func @seed_measured(%x: !x, %all: !one, %seed: !w) -> !q {
  %a = fp8.amax %x block = [1, 16] : !x
  %s, %si, %t = fp8.compute_scale %a tensor_amax(%all : !one) format = f4E2M1FN scale_type = f8E4M3FN : !s
  %q = fp8.quantize %x scale(%s, %si : !s, !si) tensor_scale_inv(%t : !one) seed(%seed : !w) : !x -> !q
  return %q : !q
}

func.func @rotated_amax(%x: !x) -> (!s, !one) {
  %y = fp8.hadamard %x signs = 55272 : !x
  %a = fp8.amax %y block = [1, 16] : !x
  %all = fp8.amax %a block = [*, *] : !s
  return %a, %all : !s, !one
}

func.func @rotated(%x: !x, %s: !s, %si: !si, %t: !one, %seed: !w) -> !q {
  %y = fp8.hadamard %x signs = 55272 : !x
  %q = fp8.quantize %y scale(%s, %si : !s, !si) tensor_scale_inv(%t : !one) seed(%seed : !w) : !x -> !q
  return %q : !q
}

// Along columns, to the other order.
func.func @turned_amax(%x: !x) -> (!c, !one) {
  %e = tensor.empty() : !t
  %xt = linalg.transpose ins(%x : !x) outs(%e : !t) permutation = [1, 0]
  %y = fp8.hadamard %xt signs = 55272 : !t
  %a = fp8.amax %y block = [1, 16] : !t
  %all = fp8.amax %a block = [*, *] : !c
  return %a, %all : !c, !one
}

func.func @turned(%x: !x, %s: !c, %si: !ci, %t: !one, %seed: !w) -> !qt {
  %e = tensor.empty() : !t
  %xt = linalg.transpose ins(%x : !x) outs(%e : !t) permutation = [1, 0]
  %y = fp8.hadamard %xt signs = 55272 : !t
  %q = fp8.quantize %y scale(%s, %si : !c, !ci) tensor_scale_inv(%t : !one) seed(%seed : !w) : !t -> !qt
  return %q : !qt
}

func.func @turned_nearest(%x: !x, %s: !c, %si: !ci, %t: !one) -> !qt {
  %e = tensor.empty() : !t
  %xt = linalg.transpose ins(%x : !x) outs(%e : !t) permutation = [1, 0]
  %y = fp8.hadamard %xt signs = 55272 : !t
  %q = fp8.quantize %y scale(%s, %si : !c, !ci) tensor_scale_inv(%t : !one) : !t -> !qt
  return %q : !qt
}

func.func @turned_f32(%x: !f, %s: !c, %si: !ci, %t: !one, %seed: !w) -> !qt {
  %e = tensor.empty() : !ft
  %xt = linalg.transpose ins(%x : !f) outs(%e : !ft) permutation = [1, 0]
  %y = fp8.hadamard %xt signs = 55272 : !ft
  %q = fp8.quantize %y scale(%s, %si : !c, !ci) tensor_scale_inv(%t : !one) seed(%seed : !w) : !ft -> !qt
  return %q : !qt
}

// One way of a gradient is quantized while the other is measured.
func.func @both(%x: !x, %s: !s, %si: !si, %t: !one, %seed: !w) -> (!q, !c, !one) {
  %q = fp8.quantize %x scale(%s, %si : !s, !si) tensor_scale_inv(%t : !one) seed(%seed : !w) : !x -> !q
  %e = tensor.empty() : !t
  %xt = linalg.transpose ins(%x : !x) outs(%e : !t) permutation = [1, 0]
  %y = fp8.hadamard %xt signs = 55272 : !t
  %a = fp8.amax %y block = [1, 16] : !t
  %all = fp8.amax %a block = [*, *] : !c
  return %q, %a, %all : !q, !c, !one
}
