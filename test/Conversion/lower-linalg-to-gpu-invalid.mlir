// RUN: fp8-opt %s --fp8-lower-linalg-to-gpu --verify-diagnostics

// The host must not follow addresses of the device, which a recipe from outside
// would make it do.
func.func private @decide(f32) -> f32
func.func @update(%p: !llvm.ptr) {
  scf.forall (%i) in (8) {
    %0 = llvm.load %p : !llvm.ptr -> f32
    // expected-error @below {{'func.call' op expected arithmetic on numbers in a loop over slots, which threads of a GPU run}}
    %1 = func.call @decide(%0) : (f32) -> f32
    llvm.store %1, %p : f32, !llvm.ptr
  }
  return
}
