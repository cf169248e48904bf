// RUN: not fp8-opt --fp8-set-target=chip=sm_90a --fp8-share-transposes=memory-price=-1 %s 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not fp8-opt --fp8-share-transposes=memory-price=1 %s 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not fp8-opt --fp8-pipeline="target=cpu memory-price=1" %s 2>&1 | FileCheck %s --check-prefix=CPU

// NEGATIVE: error: expected memory-price to be a number that is not negative, but got -1
// TARGET: error: expected a module with the attribute 'fp8_gpu.target'
// CPU: error: expected a GPU as the target with memory-price, but got 'cpu'
func.func @f() {
  return
}
