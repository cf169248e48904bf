// RUN: fp8-opt --allow-unregistered-dialect --verify-roundtrip %s | FileCheck %s

// CHECK: least = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 1, across = 1, down = 1, cluster = 1, resident = 1>
// CHECK-SAME: most = #fp8_fusion.config<rows = 32, chunks = 32, lanes = 32, across = 1, down = 32, cluster = 8, resident = 8>
"test.op"() {
  least = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 1, across = 1, down = 1, cluster = 1, resident = 1>,
  most = #fp8_fusion.config<rows = 32, chunks = 32, lanes = 32, across = 1, down = 32, cluster = 8, resident = 8>
} : () -> ()
