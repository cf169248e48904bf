// RUN: rm -rf %t && mkdir %t
// RUN: fp8-compile %s --recipe=delayed,amax_history_len=2 -o %t/scaled.so
// RUN: FileCheck %s --check-prefix=HEADER --input-file=%t/scaled.h
// RUN: %c_compiler -std=c11 -Wall -Wextra -pedantic -Werror -I%t -I%fp8_source/include %S/Inputs/state.c %t/scaled.so -L%fp8_build/lib -lfp8rt -Wl,-rpath,%fp8_build/lib -Wl,-rpath,%t -o %t/state
// RUN: %t/state | FileCheck %s
// UNSUPPORTED: sanitizers

// HEADER: fp8rt_program_create_state(&scaled_program, &state)
// HEADER: fp8rt_status scaled_update_state(fp8rt_state state);
// HEADER: fp8rt_status scaled_main(float s,
// HEADER-NEXT: const fp8rt_tensor2 *w,
// HEADER-NEXT: fp8rt_tensor2 *y,
// HEADER-NEXT: fp8rt_state state);
// HEADER: fp8rt_status scaled_plain(const fp8rt_tensor2 *w);

// Step 0 has the scale of its own 2, and step 1 that again, under which 1000 saturates, and step 2
// that of 1000, under which 4 becomes 1.75 / 0.448.

// CHECK: step 0: 0: 16
// CHECK-NEXT: step 1: 0: 16
// CHECK-NEXT: step 2: 0: 31.25
// CHECK-NEXT: none: 2: {{.}}
// CHECK-NEXT: other: 8: expected a state of program 'scaled', with 2 slots of 3 words and the recipe 'delayed,amax_history_len=2,amax_compute_algo=max,margin=0,reduce_amax=true,compat=te_fused,pow2=false,initial=auto', but got 1 slots of 1025 words and the recipe 'delayed,amax_history_len=1024,

func.func @main(%s: f32 {fp8.name = "s"}, %w: tensor<16x1xf32> {fp8.name = "w", fp8.weight})
    -> (tensor<1x1xf32> {fp8.name = "y"}) {
  %empty = tensor.empty() : tensor<1x16xf32>
  %x = linalg.fill ins(%s : f32) outs(%empty : tensor<1x16xf32>) -> tensor<1x16xf32>
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %y = linalg.matmul {fp8.name = "l"} ins(%x, %w : tensor<1x16xf32>, tensor<16x1xf32>)
                     outs(%zero : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}
func.func @plain(%w: tensor<16x1xf32> {fp8.name = "w"}) {
  return
}
