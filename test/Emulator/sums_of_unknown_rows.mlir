// Means of columns of each batch, whose parts are summed by several blocks: neither batches nor rows are known.
// RUN: %python %S/../Integration/CUDA/Inputs/tensors.py %t.in x=bf16:2x300x64
// RUN: fp8-run %s --inputs=%t.in --target=sm_90a --device=emulator --check=all --compare=cpu --tolerance=1e-6 | FileCheck %s
// RUN: fp8-run %s --inputs=%t.in --target=sm_90a --device=emulator --fp8-fusion-report=- | FileCheck %s --check-prefix=REPORT
// REQUIRES: linker
// UNSUPPORTED: sanitizers

// CHECK: m: {{.*}} of 128 elements differ
// REPORT: 1  fusion {{.*}} reduction of x
// REPORT: reads ?x?x64xbf16, writes ?x?x64xf32
// REPORT: loop {{.*}} reduction of #1's ?x?x64xf32
#all = affine_map<(b, s, d) -> (b, s, d)>
#each = affine_map<(b, s, d) -> (b, d)>
#sums = affine_map<(b, d) -> (b, d)>
func.func @f(%x: tensor<?x?x64xbf16> {fp8.name = "x"}) -> (tensor<?x64xf32> {fp8.name = "m"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x64xbf16>
  %s = tensor.dim %x, %c1 : tensor<?x?x64xbf16>
  %i = arith.index_cast %s : index to i64
  %n = arith.sitofp %i : i64 to f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%b) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %sum = linalg.generic {indexing_maps = [#all, #each], iterator_types = ["parallel", "reduction", "parallel"]} ins(%x : tensor<?x?x64xbf16>) outs(%z : tensor<?x64xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %w = arith.extf %v : bf16 to f32
    %a = arith.addf %o, %w : f32
    linalg.yield %a : f32
  } -> tensor<?x64xf32>
  %r = tensor.empty(%b) : tensor<?x64xf32>
  %m = linalg.generic {indexing_maps = [#sums, #sums], iterator_types = ["parallel", "parallel"]} ins(%sum : tensor<?x64xf32>) outs(%r : tensor<?x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %q = arith.divf %v, %n : f32
    linalg.yield %q : f32
  } -> tensor<?x64xf32>
  return %m : tensor<?x64xf32>
}
