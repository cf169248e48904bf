// RUN: rm -rf %t && split-file %s %t
// RUN: not fp8-opt %t/empty.mlir --fp8-report-fusion 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not fp8-opt %t/empty.mlir --fp8-set-target=chip=sm_90a --fp8-report-fusion=file=%t/absent/report.txt 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ABSENT
// RUN: not fp8-opt %t/empty.mlir --fp8-set-target=chip=sm_90a --fp8-report-fusion=file=/dev/full 2>&1 \
// RUN:   | FileCheck %s --check-prefix=FULL
// RUN: not fp8-opt %t/empty.mlir --fp8-set-target=chip=sm_90a --fp8-report-fusion=file=%t 2>&1 \
// RUN:   | FileCheck %s --check-prefix=DIRECTORY

// TARGET: error: expected a module with the attribute 'fp8_gpu.target' of a chip that kernels are built for
// ABSENT: error: fusion report '{{.*}}/absent/report.txt': No such file or directory
// FULL: error: fusion report '/dev/full': No space left on device
// DIRECTORY: error: fusion report '{{.*}}': {{[Ii]}}s a directory

// A program that cannot be compiled leaves the report of the one before, and its
// error is told once.

// RUN: echo old > %t/report.txt
// RUN: not fp8-opt %t/unknown.mlir --allow-unregistered-dialect --fp8-pipeline="recipe=current target=sm_90a" \
// RUN:   --fp8-fusion-report=%t/report.txt 2>&1 | FileCheck %s --check-prefix=ONCE --implicit-check-not=error:
// RUN: FileCheck %s --check-prefix=OLD < %t/report.txt
// ONCE: error: op was not bufferized
// OLD: {{^}}old{{$}}

//--- empty.mlir
module {
}

//--- unknown.mlir
func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "test.unknown"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
