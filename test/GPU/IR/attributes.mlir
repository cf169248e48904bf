// RUN: fp8-opt --allow-unregistered-dialect %s | fp8-opt --allow-unregistered-dialect | FileCheck %s

// Targets and launches are named at the top of a module.

// CHECK-DAG: #target = #fp8_gpu.target<chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 78, shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 34>
// CHECK-DAG: #[[MOST:.*]] = #fp8_gpu.launch<arguments = [#fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, access = read, alignment = 16>, #fp8_gpu.argument<name = "s", element = i32, rank = 8, access = read, alignment = 4096>, #fp8_gpu.argument<name = "d", element = bf16, rank = 5, access = write, alignment = 256>, #fp8_gpu.argument<name = "amax", element = f32, rank = 0, access = raise, alignment = 4>], extents = [#fp8_gpu.extent<"m", 0, 0>, #fp8_gpu.extent<"k_1", 0, 1>], params = [#fp8_gpu.tensor_map<0, box = [128, 64], swizzle = 128, l2 = 256>, #fp8_gpu.tensor_map<2, box = [8, 1, 1, 1, 256], swizzle = 0, l2 = 0, tail = 4>, #fp8_gpu.pointer<1>, #fp8_gpu.stride<1, 7>, #fp8_gpu.value<{{[^:]*}} : i32>, #fp8_gpu.value<{{[^:]*}} : i64>, #fp8_gpu.capture<1 : i1>, #fp8_gpu.capture<0 : f64>, #fp8_gpu.scratch<1>], grid = {{[^,]*}}, block = 1024, cluster = 16, shared_bytes = 232448, resident = 2, overlap = true, workspaces = [#fp8_gpu.workspace<bytes = {{[^,]*}}>, #fp8_gpu.workspace<bytes = {{[^,]*}}, zero = true>]>
// CHECK-DAG: #[[LEAST:.*]] = #fp8_gpu.launch<arguments = [#fp8_gpu.argument<name = "y", element = f64, rank = 0, access = update, alignment = 8>], extents = [], params = [], grid = {{[^,]*}}, block = 32>

// CHECK: module attributes {fp8_gpu.target = #target}
module attributes {fp8_gpu.target = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 78,
    shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 34>} {

  // Defaults are not printed.
  // CHECK: "test.least"() {fp8_gpu.launch = #[[LEAST]]}
  "test.least"() {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "y", element = f64, rank = 0, access = update, alignment = 8>],
    extents = [], params = [], grid = affine_map<() -> (1)>, block = 32,
    cluster = 1, shared_bytes = 0, resident = 0, overlap = false>} : () -> ()

  // Parameters come in any order, and captures too.
  // CHECK: "test.most"() {fp8_gpu.launch = #[[MOST]]}
  "test.most"() {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [
      #fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "s", element = i32, rank = 8, access = read, alignment = 4096>,
      #fp8_gpu.argument<name = "d", element = bf16, rank = 5, access = write, alignment = 256>,
      #fp8_gpu.argument<name = "amax", element = f32, rank = 0, access = raise, alignment = 4>],
    extents = [#fp8_gpu.extent<"m", 0, 0>, #fp8_gpu.extent<"k_1", 0, 1>],
    params = [
      #fp8_gpu.tensor_map<0, box = [128, 64], swizzle = 128, l2 = 256>,
      #fp8_gpu.tensor_map<2, box = [8, 1, 1, 1, 256], swizzle = 0, l2 = 0, tail = 4>,
      #fp8_gpu.pointer<1>, #fp8_gpu.stride<1, 7>,
      #fp8_gpu.value<affine_map<()[s0, s1] -> (s0 * s1)> : i32>,
      #fp8_gpu.value<affine_map<()[s0, s1] -> (s0 mod 3 + s1 floordiv 4)> : i64>,
      #fp8_gpu.capture<1 : i1>, #fp8_gpu.capture<0 : f64>, #fp8_gpu.scratch<1>],
    grid = affine_map<()[s0, s1] -> (s0 ceildiv 64, s1, 2)>, block = 1024,
    cluster = 16, shared_bytes = 232448, resident = 2, overlap = true,
    workspaces = [#fp8_gpu.workspace<bytes = affine_map<()[s0, s1] -> (s0 * 4)>>,
                  #fp8_gpu.workspace<bytes = affine_map<()[s0, s1] -> (4)>, zero = true>]>} : () -> ()

  // CHECK: "test.math"() {fp8_gpu.math = #fp8_gpu.math<exact>}
  "test.math"() {fp8_gpu.math = #fp8_gpu.math<exact>} : () -> ()
  // CHECK: "test.math"() {fp8_gpu.math = #fp8_gpu.math<approximate>}
  "test.math"() {fp8_gpu.math = #fp8_gpu.math<approximate>} : () -> ()
  // Bits have a byte each.
  // CHECK: "test.mask"() {a = #fp8_gpu.argument<name = "x", element = i1, rank = 2, access = read, alignment = 1>}
  "test.mask"() {a = #fp8_gpu.argument<name = "x", element = i1, rank = 2, access = read, alignment = 1>} : () -> ()
  // CHECK: "test.kernel"() {fp8_gpu.kernel = @kernels::@k}
  "test.kernel"() {fp8_gpu.kernel = @kernels::@k} : () -> ()
}
