//===- KernelOpInterface.td - What a kernel can compute ----*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_KERNELOPINTERFACE_TD
#define FP8_KERNELS_KERNELOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def FP8_KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::mlir::fp8";
  let description = [{
    An operation on tensors that a kernel can compute. Operations get it as an
    external model (`fp8/Kernels/Kinds.h`), so that dialects know nothing of
    kernels. `fp8-select-kernels`, `fp8-build-kernels` and `fp8-launch-kernels`
    ask no operation for anything else.
  }];
  let methods = [
    InterfaceMethod<[{
      What the kernel has to compute; fails, with the reason, if no kernel of
      any architecture can.
      }],
      "::mlir::FailureOr<::std::unique_ptr<::mlir::fp8::KernelSpec>>",
      "getKernelSpec", (ins "::std::string &":$reason)>,
    InterfaceMethod<[{
      The arguments that a kernel of this operation is launched with, made with
      the builder in front of it.
      }],
      "::mlir::fp8::KernelOperands", "getKernelOperands",
      (ins "::mlir::OpBuilder &":$builder)>,
    InterfaceMethod<[{
      The results of the operation, made with the builder of what the kernel has
      written: one value for each of `outs`. By default these are the results.
      }],
      "::llvm::SmallVector<::mlir::Value>", "buildResults",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$written),
      /*methodBody=*/"", /*defaultImplementation=*/[{
        return ::llvm::SmallVector<::mlir::Value>(written);
      }]>,
  ];
}

#endif // FP8_KERNELS_KERNELOPINTERFACE_TD
