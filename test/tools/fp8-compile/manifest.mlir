// RUN: rm -rf %t && split-file %s %t
// RUN: fp8-compile %t/program.mlir --recipe=delayed,amax_history_len=4 --cpu=x86-64-v3 --name=p -o %t/p.so
// RUN: %python %t/print.py %t/p.so | FileCheck %t/program.mlir
// RUN: fp8-compile %t/program.mlir --target=sm_90a --kernel-format=ptx -o %t/gpu.so
// RUN: %python %t/print.py %t/gpu.so | FileCheck %t/program.mlir --check-prefix=GPU
// UNSUPPORTED: sanitizers

//--- program.mlir
// CHECK:      abi: {{[0-9]+}}
// CHECK-NEXT: cpu: x86-64-v3
// CHECK-NEXT: cpu_features:
// CHECK-NEXT: functions:
// CHECK-NEXT:   arguments:
// CHECK-NEXT:     alignment: 4
// CHECK-NEXT:     dtype: F32
// CHECK-NEXT:     name: x
// CHECK-NEXT:     shape: [null, 32]
// CHECK-NEXT:     type: tensor<?x32xf32>
// CHECK:          name: w
// CHECK:   name: linear
// CHECK-NEXT: results:
// CHECK-NEXT:   alignment: 4
// CHECK-NEXT:   dtype: F32
// CHECK-NEXT:   name: result0
// CHECK:   symbol: p_linear
// CHECK-NEXT: takes_state: true
// CHECK-NEXT:   arguments:
// CHECK-NEXT:     alignment: 8
// CHECK-NEXT:     dtype: I64
// CHECK-NEXT:     name: arg0
// CHECK-NEXT:     type: index
// CHECK-NEXT: name: class.of
// CHECK:      symbol: p_class_of
// CHECK-NEXT: takes_state: false
// CHECK-NEXT: name: p
// CHECK-NEXT: recipe: delayed,amax_history_len=4
// CHECK-NEXT: state:
// CHECK:        amax_history_len: 4
// CHECK:        name: l.x
// CHECK:        name: l.w
// CHECK:      target: cpu
// CHECK-NEXT: version: 1

// GPU: alignment: 16
// GPU: takes_state: false
// GPU: kernels: ptx
// GPU: name: gpu
// GPU-NOT: state:
// GPU: target: sm_90a

func.func @linear(%x: tensor<?x32xf32> {fp8.name = "x"}, %w: tensor<32x16xf32> {fp8.name = "w", fp8.weight},
                  %y: tensor<?x16xf32> {fp8.name = "y"}) -> tensor<?x16xf32> {
  %0 = linalg.matmul {fp8.name = "l"} ins(%x, %w : tensor<?x32xf32>, tensor<32x16xf32>)
                     outs(%y : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}
func.func @class.of(%n: index) -> index {
  return %n : index
}

//--- print.py
"""Prints the manifest of a program, which dlopen and dlsym find."""

import ctypes
import json
import sys

from fp8 import abi


def show(value, indent):
    for key, item in sorted(value.items()):
        if isinstance(item, dict) or (isinstance(item, list) and item and isinstance(item[0], dict)):
            print(f"{indent}{key}:")
            for element in item if isinstance(item, list) else [item]:
                show(element, indent + "  ")
        else:
            print(f"{indent}{key}:", json.dumps(item) if isinstance(item, list) else str(item).lower() if isinstance(item, bool) else item)


info = abi.structs.fp8rt_program_info.in_dll(ctypes.CDLL(sys.argv[1]), "fp8rt_program")
manifest = json.loads(info.manifest)
show(manifest, "")
assert info.magic == b"FP8PROG" and info.version == manifest["abi"]
assert info.num_functions == len(manifest["functions"])
if "state" in manifest:
    assert json.loads(info.state_manifest) == manifest["state"]
    assert info.num_slots == len(manifest["state"]["slots"])
else:
    assert info.state_manifest is None and info.num_slots == 0
