// RUN: fp8-opt --allow-unregistered-dialect --verify-roundtrip %s | FileCheck %s

// CHECK: a = #fp8_transpose.config<warps = 1>
// CHECK-SAME: b = #fp8_transpose.config<warps = 32>
"test.op"() {a = #fp8_transpose.config<warps = 1>, b = #fp8_transpose.config<warps = 32>} : () -> ()
