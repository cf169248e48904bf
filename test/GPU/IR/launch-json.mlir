// RUN: fp8-translate --kernels-to-json %s | FileCheck %s

// What the runtime reads: all keys, also of defaults; types as it moves them,
// expressions in postfix order. A function without a launch is no kernel.

// CHECK:      {{^}}{
// CHECK-NEXT: {{^}} "most": {{{$}}
// CHECK-NEXT: {{^}}  "launch": {"version":2,"arguments":[
// CHECK-SAME: {"name":"a","type":"u8","rank":2,"access":"read","alignment":16},
// CHECK-SAME: {"name":"b","type":"bf16","rank":1,"access":"read","alignment":2},
// CHECK-SAME: {"name":"c","type":"f16","rank":1,"access":"read","alignment":2},
// CHECK-SAME: {"name":"i","type":"u32","rank":0,"access":"read","alignment":4},
// CHECK-SAME: {"name":"j","type":"u16","rank":0,"access":"read","alignment":2},
// CHECK-SAME: {"name":"d","type":"f32","rank":5,"access":"write","alignment":16},
// CHECK-SAME: {"name":"sum","type":"u64","rank":0,"access":"update","alignment":8},
// CHECK-SAME: {"name":"amax","type":"f32","rank":2,"access":"raise","alignment":4}],
// CHECK-SAME: "extents":[{"name":"m","argument":0,"dim":0},{"name":"n","argument":0,"dim":1}],
// CHECK-SAME: "params":[{"tensor_map":0,"box":[128,64],"swizzle":128,"l2":128},{"tensor_map":0,"box":[128,64],"swizzle":128,"l2":128,"tail":1},{"pointer":1},
// CHECK-SAME: {"stride":5,"dim":3},{"value":"m n * 2 floordiv n 3 mod +","bytes":4},
// CHECK-SAME: {"value":"m -1 * 7 +","bytes":8},{"capture":1,"bytes":1},{"capture":0,"bytes":8},{"scratch":0}],
// CHECK-SAME: "workspaces":[{"bytes":"m 4 *","zero":true}],
// CHECK-SAME: "grid":["m 64 ceildiv n 32 ceildiv *","1","n"],
// CHECK-SAME: "block":384,"cluster":2,"shared_bytes":1024,"resident":1,"overlap":true,"flops":"m n * n * 2 *"}{{$}}
// CHECK-NEXT: {{^}} },
// CHECK-NEXT: {{^}} "least": {{{$}}
// CHECK-NEXT: {{^}}  "launch": {"version":2,"arguments":[{"name":"y","type":"f32","rank":1,"access":"write","alignment":4}],"extents":[],"params":[],"workspaces":[],"grid":["1"],"block":32,"cluster":1,"shared_bytes":0,"resident":0,"overlap":false,"flops":"0"}{{$}}
// CHECK-NEXT: {{^}} }{{$}}
// CHECK-NEXT: {{^}}}

gpu.module @kernels {
  llvm.func @helper(!llvm.ptr)
  llvm.func @most(!llvm.ptr) attributes {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [
      #fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, access = read, alignment = 16>,
      #fp8_gpu.argument<name = "b", element = bf16, rank = 1, access = read, alignment = 2>,
      #fp8_gpu.argument<name = "c", element = f16, rank = 1, access = read, alignment = 2>,
      #fp8_gpu.argument<name = "i", element = i32, rank = 0, access = read, alignment = 4>,
      #fp8_gpu.argument<name = "j", element = i16, rank = 0, access = read, alignment = 2>,
      #fp8_gpu.argument<name = "d", element = f32, rank = 5, access = write, alignment = 16>,
      #fp8_gpu.argument<name = "sum", element = f64, rank = 0, access = update, alignment = 8>,
      #fp8_gpu.argument<name = "amax", element = f32, rank = 2, access = raise, alignment = 4>],
    extents = [#fp8_gpu.extent<"m", 0, 0>, #fp8_gpu.extent<"n", 0, 1>],
    params = [
      #fp8_gpu.tensor_map<0, box = [128, 64], swizzle = 128, l2 = 128>,
      #fp8_gpu.tensor_map<0, box = [128, 64], swizzle = 128, l2 = 128, tail = 1>,
      #fp8_gpu.pointer<1>, #fp8_gpu.stride<5, 3>,
      #fp8_gpu.value<affine_map<()[m, n] -> ((m * n) floordiv 2 + n mod 3)> : i32>,
      #fp8_gpu.value<affine_map<()[m, n] -> (7 - m)> : i64>,
      #fp8_gpu.capture<1 : i1>, #fp8_gpu.capture<0 : i64>, #fp8_gpu.scratch<0>],
    grid = affine_map<()[m, n] -> ((m ceildiv 64) * (n ceildiv 32), 1, n)>, block = 384,
    cluster = 2, shared_bytes = 1024, resident = 1, overlap = true,
    workspaces = [#fp8_gpu.workspace<bytes = affine_map<()[m, n] -> (m * 4)>, zero = true>],
    flops = affine_map<()[m, n] -> (m * n * n * 2)>>}
  llvm.func @least(!llvm.ptr) attributes {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
    extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>}
}
