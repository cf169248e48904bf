// What is expected of kernels is printed without a GPU, the best first: of an
// operation with a config, of that one. Machines expect other things.

// RUN: fp8-tune %s --costs 2>&1 | FileCheck %s
// RUN: fp8-tune %s --costs -o %t.json 2>/dev/null
// RUN: %python -c "import json, sys; [(_, one), (_, two)] = [(k['kernel'], k['costs']) for k in json.load(open(sys.argv[1]))]; assert len(one) == 24 and one == sorted(one, key=lambda cost: cost['clocks']) and len(two) == 1" %t.json
// RUN: fp8-tune %s --costs --machine=h100 2>/dev/null | FileCheck %s --check-prefix=H100
// RUN: sed 's/memory_rate = 2[0-9]*,/memory_rate = 1000,/' %fp8_source/lib/Kernels/Machines/h200.mlir > %t.machine.mlir
// RUN: fp8-tune %s --costs --machine=%t.machine.mlir 2>/dev/null | not diff %t.json -

// CHECK: remark: no costs: not all of its extents are known
// CHECK: [{"function":"chosen","kernel":"matmul {{[^"]*}} 1x64x4096x4096","costs":[{"config":"#fp8_sm90.gemm<{{[^"]*}}>","clocks":{{[0-9.]+}}},
// CHECK-SAME: {"function":"pinned","kernel":"matmul {{[^"]*}} 1x64x4096x4096","costs":[{"config":"#fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 5>","clocks":{{[0-9.]+}}}]}]
// H100: [{"function":"chosen",

!a = !fp8.scaled<64x4096xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
!many = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>

func.func @chosen(%a: !a, %b: !b) -> tensor<64x4096xbf16> {
  %0 = fp8.matmul %a, %b : !a, !b -> tensor<64x4096xbf16>
  return %0 : tensor<64x4096xbf16>
}

func.func @pinned(%a: !a, %b: !b) -> tensor<64x4096xbf16> {
  %0 = fp8.matmul %a, %b {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 5>} : !a, !b -> tensor<64x4096xbf16>
  return %0 : tensor<64x4096xbf16>
}

func.func @unknown(%a: !many, %b: !b) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b : !many, !b -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}
