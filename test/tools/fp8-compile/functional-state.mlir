// RUN: rm -rf %t && mkdir %t
// RUN: fp8-compile %S/state.mlir --recipe=delayed,amax_history_len=2 --functional-state --name=scaled -o %t/tensors.so --header=%t/scaled.h
// RUN: FileCheck %s --check-prefix=HEADER --input-file=%t/scaled.h
// RUN: %c_compiler -std=c11 -Wall -Wextra -pedantic -Werror -I%t -I%fp8_source/include %S/Inputs/functional_state.c %t/tensors.so -L%fp8_build/lib -lfp8rt -Wl,-rpath,%fp8_build/lib -Wl,-rpath,%t -o %t/state
// RUN: %t/state | FileCheck %s
// UNSUPPORTED: sanitizers

// The steps of state.mlir, without a state: its tensors go in and come out.

// HEADER-NOT: fp8rt_state
// HEADER: fp8rt_status scaled_main(float s,
// HEADER-NEXT: const fp8rt_tensor2 *w,
// HEADER-NEXT: const fp8rt_tensor1 *fp8_state_scale,
// HEADER-NEXT: const fp8rt_tensor2 *fp8_state_amax_history,
// HEADER-NEXT: fp8rt_tensor2 *y,
// HEADER-NEXT: fp8rt_tensor1 *fp8_state_scale_2,
// HEADER-NEXT: fp8rt_tensor2 *fp8_state_amax_history_2);
// HEADER: fp8rt_status scaled_plain(const fp8rt_tensor2 *w);

// CHECK: step 0: 0: 16
// CHECK-NEXT: step 1: 0: 16
// CHECK-NEXT: step 2: 0: 31.25
// CHECK-NEXT: short: 1: expected argument 'fp8.state.scale' of 'main' to have size 2 in dimension 0, but got 1

// On a GPU the tensors are there too.

// RUN: fp8-compile %S/state.mlir --target=sm_90a --recipe=delayed,amax_history_len=2 --functional-state -o %t/gpu.so
// RUN: FileCheck %s --check-prefix=GPU --input-file=%t/gpu.h
// GPU-NOT: fp8rt_state
// GPU: fp8rt_tensor2 *fp8_state_amax_history_2,
// GPU-NEXT: fp8rt_context *context);
