// RUN: fp8-opt %s --fp8-strip-attributes --allow-unregistered-dialect | FileCheck %s

// What LLVM knows stays.
// CHECK: func.func @f(%{{.*}}: f32 {llvm.noundef}, %{{.*}}: f32) -> (f32 {llvm.noundef}) attributes {llvm.emit_c_interface} {
func.func @f(%x: f32 {fp8.name = "x", llvm.noundef}, %w: f32 {fp8.weight, iree.abi = 1 : i64})
    -> (f32 {fp8.name = "y", llvm.noundef}) attributes {fp8.recipe = #fp8.current, llvm.emit_c_interface, torch.debug} {
  return %x : f32
}

// CHECK: func.func private @g(f32) -> f32{{$}}
func.func private @g(f32 {fp8.name = "x"}) -> (f32 {fp8.name = "y"}) attributes {fp8.recipe = #fp8.none}

// LLVM's casts have no such flag.
// CHECK-LABEL: func.func @casts
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @casts(%x: f16) -> f16 {
  %0 = arith.extf %x fastmath<contract> : f16 to f32
  %1 = arith.truncf %0 fastmath<contract> : f32 to f16
  return %1 : f16
}
