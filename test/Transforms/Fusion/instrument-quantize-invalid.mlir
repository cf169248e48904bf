// RUN: fp8-opt %s --fp8-instrument-quantize --split-input-file --verify-diagnostics

func.func private @fp8rt_stats_record(f32)
func.func @another_type(%x: tensor<4x64xf32>, %s: tensor<1x1xf32>) -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32> {
  // expected-error @+1 {{expected 'fp8rt_stats_record' to be the runtime's function}}
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x64xf32> -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
}

// -----

func.func private @fp8rt_stats_record(%slot: i64, %0: f64, %1: f64, %2: f64, %3: f64, %4: f64, %5: f64) {
  return
}
func.func @a_body(%x: tensor<4x64xf32>, %s: tensor<1x1xf32>) -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32> {
  // expected-error @+1 {{expected 'fp8rt_stats_record' to be the runtime's function}}
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x64xf32> -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
}
