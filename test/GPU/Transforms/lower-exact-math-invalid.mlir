// RUN: fp8-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(fp8-lower-exact-math)))" --split-input-file --verify-diagnostics

gpu.module @fp8_kernels {
  gpu.func @f64(%x: f64, %y: memref<f64>) kernel {
    // expected-error @+1 {{is not supported on a GPU on 'f64'}}
    %0 = math.erf %x : f64
    memref.store %0, %y[] : memref<f64>
    gpu.return
  }
}

// -----

gpu.module @fp8_kernels {
  gpu.func @remainder(%x: f32, %y: memref<f32>) kernel {
    // expected-error @+1 {{is not supported on a GPU on 'f32'}}
    %0 = arith.remf %x, %x : f32
    memref.store %0, %y[] : memref<f32>
    gpu.return
  }
}
