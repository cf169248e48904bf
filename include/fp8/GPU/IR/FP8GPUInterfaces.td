//===- FP8GPUInterfaces.td - What kernels' attributes say --*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_GPU_IR_FP8GPUINTERFACES_TD
#define FP8_GPU_IR_FP8GPUINTERFACES_TD

include "mlir/IR/OpBase.td"

def FP8GPU_KernelConfigAttrInterface
    : AttrInterface<"KernelConfigAttrInterface"> {
  let cppNamespace = "::mlir::fp8";
  let description = [{
    How a kernel is built: every decision that its generator would otherwise
    make by itself. Which attribute it is depends on the architecture and on
    what the kernel computes; only the generator looks inside.
  }];
  let methods = [
    InterfaceMethod<[{
      A short text that tells configs of one kind apart, of letters, digits and
      underscores, e.g. `128x256_s4c2`: part of a kernel's name.
      }],
      "::std::string", "getLabel", (ins)>,
  ];
}

def FP8GPU_KernelParamAttrInterface
    : AttrInterface<"KernelParamAttrInterface"> {
  let cppNamespace = "::mlir::fp8";
  let description = [{
    Where a parameter of a kernel comes from when it is launched.
  }];
  let methods = [
    InterfaceMethod<[{
      Fails, with an error, unless everything that the parameter refers to is in
      `launch`.
      }],
      "::llvm::LogicalResult", "verifyParam",
      (ins "const ::mlir::fp8::LaunchParts &":$launch,
           "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError)>,
    InterfaceMethod<[{
      Writes the keys of the parameter as an object of a launch in JSON
      (fp8/GPU/IR/LaunchJSON.h), whose extents have these names.
      }],
      "void", "writeJSON",
      (ins "::llvm::json::OStream &":$json,
           "::llvm::ArrayRef<::llvm::StringRef>":$extents)>,
  ];
}

#endif // FP8_GPU_IR_FP8GPUINTERFACES_TD
