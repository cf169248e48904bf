// RUN: rm -rf %t && split-file %s %t
// RUN: %python %t/inputs.py %t/in.safetensors

// Where kernels are not run, whatever a stream does takes a millisecond. Ten runs, of
// which none loads a kernel; what moves bytes or computes has rates, and the
// longest are first.

// RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip fp8-run %t/linear.mlir --target=sm_90a --recipe=delayed --inputs=%t/in.safetensors --profile=%t/trace.json --kernel-cache=off | FileCheck %s
// CHECK:      y: F32 [32, 64]
// CHECK-NEXT: {{^}}kernel count mean us share % GB/s of a copy TFLOP/s
// CHECK-NEXT: {{^}}fp8_fusion_sm90a_{{.*}} 10 1000.00 {{[0-9.]+}} 0.1 0.000 -{{$}}
// CHECK:      {{^}}fp8_matmul_sm90a_{{.*}} 10 1000.00 {{[0-9.]+}} 0.0 0.000 0.0{{$}}
// CHECK:      {{^}}all [[#ALL:]] 1000.00 100.0 - - -{{$}}
// CHECK-NEXT: a copy within the device: {{[0-9.]+}} GB/s
// RUN: %python %t/check.py %t/trace.json 10

// Without a trace; of a program that was compiled before; with the steps that
// were run, and what they end with.

// RUN: fp8-compile %t/linear.mlir --target=sm_90a --recipe=delayed --kernel-format=ptx -o %t/linear.so
// RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip fp8-run %t/linear.so --inputs=%t/in.safetensors --profile | FileCheck %s --check-prefix=SHARED
// RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip fp8-run %t/linear.so --inputs=%t/steps.safetensors --steps=3 --profile=- | FileCheck %s --check-prefix=STEPS
// SHARED: fp8_matmul_sm90a_{{.*}} 10 1000.00
// SHARED-NOT: traceEvents
// STEPS: {{^}}forall_{{[0-9]+}} 3 1000.00
// STEPS: {{^}}fp8_matmul_sm90a_{{.*}} 3 1000.00
// STEPS: "traceEvents": [

// A program that only copies its argument, and what cannot be profiled.

// RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip fp8-run %t/same.mlir --target=sm_90a --inputs=%t/in.safetensors --profile | FileCheck %s --check-prefix=NOTHING
// RUN: not fp8-run %t/same.mlir --inputs=%t/in.safetensors --profile 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip fp8-run %t/linear.so --inputs=%t/in.safetensors --profile=%t/none/trace.json 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip FP8_EMULATOR_FAIL=cuEventCreate=2 fp8-run %t/linear.so --inputs=%t/in.safetensors --profile 2>&1 | FileCheck %s --check-prefix=EVENTS
// NOTHING: {{^}}x: F32 [32, 256]
// NOTHING-NEXT: {{^}}kernel
// NOTHING-NEXT: {{^}}copy 10 1000.00 100.0 0.1 0.000 -{{$}}
// NOTHING-NEXT: {{^}}all 10
// NOTHING-NEXT: {{^}}a copy within the device
// CPU: {{^}}fp8-run: error: expected a program for a GPU with '--profile', which times kernels
// FILE: {{^}}fp8-run: error: '{{.*}}none/trace.json': No such file or directory
// EVENTS: {{^}}fp8-run: error: cannot make an event on device 0: CUDA_ERROR_OUT_OF_MEMORY

//--- linear.mlir
func.func @linear(%x: tensor<32x256xf32> {fp8.name = "x"}, %w: tensor<256x64xf32> {fp8.name = "w", fp8.weight})
    -> (tensor<32x64xf32> {fp8.name = "y"}) {
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<32x256xf32>, tensor<256x64xf32>)
                     outs(%zero : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}
//--- same.mlir
func.func @same(%x: tensor<32x256xf32> {fp8.name = "x"}, %w: tensor<256x64xf32> {fp8.name = "w"})
    -> (tensor<32x256xf32> {fp8.name = "x"}) {
  return %x : tensor<32x256xf32>
}
//--- inputs.py
import sys

import numpy as np
from fp8 import tensors

x, w = np.ones((32, 256), np.float32), np.ones((256, 64), np.float32)
tensors.save(sys.argv[1], {"x": x, "w": w})
tensors.save(sys.argv[1].replace("in.", "steps."),
             {"x": np.stack([x] * 3), "w": np.stack([w] * 3)})
//--- check.py
import json
import sys

trace = json.load(open(sys.argv[1]))
events = trace["traceEvents"]
assert len(events) % int(sys.argv[2]) == 0 and events
end = 0
for event in events:
    assert event["ph"] == "X" and event["cat"] in ("kernel", "copy", "read", "fill"), event
    assert {"name", "ts", "dur", "pid", "tid", "args"} <= event.keys(), event
    assert event["ts"] >= end and event["dur"] > 0, event
    end = event["ts"] + event["dur"]
matmuls = [event for event in events if event["name"].startswith("fp8_matmul_")]
assert len(matmuls) == int(sys.argv[2])
# Codes, two factors and the result.
for event in matmuls:
    assert event["args"] == {"bytes": 32 * 256 + 256 * 64 + 2 * 4 + 32 * 64 * 4,
                             "flops": 2 * 32 * 256 * 64}, event
