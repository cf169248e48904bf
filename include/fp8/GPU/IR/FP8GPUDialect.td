//===- FP8GPUDialect.td - The fp8_gpu dialect --------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_GPU_IR_FP8GPUDIALECT_TD
#define FP8_GPU_IR_FP8GPUDIALECT_TD

include "mlir/IR/OpBase.td"

def FP8GPU_Dialect : Dialect {
  let name = "fp8_gpu";
  let cppNamespace = "::mlir::fp8";
  let summary = "kernels of GPUs: what they run on, how they are built and launched";
  let description = [{
    Between an operation that a kernel computes and the driver's call that runs
    it lie decisions: for which GPU, with which tiles and stages, with which
    parameters, on which grid. This dialect writes them down, so that a pass
    makes each once and whoever comes later obeys: selection writes a config,
    the generator a kernel with a `#fp8_gpu.launch`, and one interpreter in the
    runtime reads that, for compiled programs, for tuning and for benchmarks.

    Nothing here knows an architecture or what a kernel computes. The configs of
    an architecture are attributes of its own dialect.

    Discardable attributes understood by the passes:

    | attribute | on | meaning |
    | --- | --- | --- |
    | `fp8_gpu.target` | module | `#fp8_gpu.target` of all kernels, set by `fp8-set-target` |
    | `fp8_gpu.config` | operation that a kernel computes, kernel function | how its kernel is built: an attribute with `KernelConfigAttrInterface`, set by `fp8-select-kernels`, read by `fp8-build-kernels` |
    | `fp8_gpu.few_rows` | operation that a kernel computes | list of `#fp8_gpu.few_rows`, `most` rising: what computes it in place of `fp8_gpu.config` where its first result has so many rows, its last dimension but one; set by `fp8-dispatch-by-rows` |
    | `fp8_gpu.rows` | `fp8.matmul` | `array<i64: least, most>`: how many rows it is for, in a branch that others do not take; set by `fp8-branch-by-rows`, read by `fp8-dispatch-by-rows` |
    | `fp8_gpu.kernel` | operation that a kernel computes | symbol of its kernel, set by `fp8-build-kernels` |
    | `fp8_gpu.launch` | kernel function | `#fp8_gpu.launch`: what it takes and how it is launched, set by `fp8-build-kernels` |
    | `fp8_gpu.math` | kernel function | `#fp8_gpu.math<exact>`, the default, or `approximate`: how elementwise functions are computed |
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

#endif // FP8_GPU_IR_FP8GPUDIALECT_TD
