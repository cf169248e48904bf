// RUN: rm -rf %t && mkdir %t && cp %s %t/program.mlir
// RUN: %python %S/Inputs/make_state.py %t/missing.safetensors l0.x:e4m3:4.0 l0.v:e4m3:0.5
// RUN: %python %S/Inputs/make_state.py %t/format.safetensors l0.x:e4m3:4.0 l0.w:e5m2:0.5
// RUN: %python %S/Inputs/make_state.py %t/fresh.safetensors l0.x:e4m3:4.0 l0.w:e4m3:1.0:0
// RUN: head -c 100 %t/fresh.safetensors > %t/truncated.safetensors

// RUN: cd %t && not fp8-opt program.mlir --fp8-pipeline="recipe=static,state=absent.safetensors to=scaling" 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: error: absent.safetensors: {{.*}}
// RUN: cd %t && not fp8-opt program.mlir --fp8-pipeline="recipe=static,state=truncated.safetensors to=scaling" 2>&1 | FileCheck %s --check-prefix=TRUNCATED
// TRUNCATED: error: truncated.safetensors: expected
// RUN: cd %t && not fp8-opt program.mlir --fp8-pipeline="recipe=static,state=missing.safetensors to=scaling" 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: missing.safetensors: expected slot 'l0.w', but got none; the nearest is 'l0.{{[xv]}}'
// RUN: cd %t && not fp8-opt program.mlir --fp8-pipeline="recipe=static,state=format.safetensors to=scaling" 2>&1 | FileCheck %s --check-prefix=FORMAT
// FORMAT: error: format.safetensors: expected slot 'l0.w' to be e4m3, but got e5m2
// RUN: cd %t && fp8-opt program.mlir --fp8-pipeline="recipe=static,state=fresh.safetensors to=scaling" 2>&1 | FileCheck %s --check-prefix=FRESH
// FRESH: warning: fresh.safetensors: slot 'l0.w' has never seen a tensor; its scale is 1
// RUN: not fp8-opt %s --fp8-pipeline="recipe=static" 2>&1 | FileCheck %s --check-prefix=KEY
// KEY: expected key 'state' of recipe 'static', the path of a saved state

func.func @linear(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16>) -> tensor<32x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %y = linalg.matmul {fp8.name = "l0"} ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %y : tensor<32x16xf32>
}
