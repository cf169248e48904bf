// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-convert-forall-to-runtime

// expected-error @below {{expected 'fp8rt_parallel_for' to be the runtime's function}}
func.func private @fp8rt_parallel_for(%a: i32)

func.func @taken(%a: memref<8xf32>, %x: f32) {
  scf.forall (%i) in (8) {
    memref.store %x, %a[%i] : memref<8xf32>
  }
  return
}
