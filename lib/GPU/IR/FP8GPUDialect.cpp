//===- FP8GPUDialect.cpp - The fp8_gpu dialect ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/IR/FP8GPUDialect.h"
#include "fp8/GPU/IR/FP8GPUOps.h"

using namespace mlir;
using namespace mlir::fp8;

#include "fp8/GPU/IR/FP8GPUDialect.cpp.inc"

namespace {
/// A program names each target and each kernel's launch at its top.
struct FP8GPUAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attribute, raw_ostream &os) const final {
    if (isa<GPUTargetAttr>(attribute)) {
      os << "target";
      return AliasResult::FinalAlias;
    }
    if (isa<LaunchAttr>(attribute)) {
      os << "launch";
      return AliasResult::FinalAlias;
    }
    return AliasResult::NoAlias;
  }
};
} // namespace

void FP8GPUDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "fp8/GPU/IR/FP8GPUOps.cpp.inc"
      >();
  addInterfaces<FP8GPUAsmInterface>();
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

static bool isFewRows(Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  if (!list || !llvm::all_of(list, [](Attribute entry) {
        auto fewRows = dyn_cast<FewRowsAttr>(entry);
        return fewRows && isa<KernelConfigAttrInterface>(fewRows.getConfig());
      }))
    return false;
  return llvm::is_sorted(list, [](Attribute lhs, Attribute rhs) {
    return cast<FewRowsAttr>(lhs).getMost() <= cast<FewRowsAttr>(rhs).getMost();
  });
}

static bool isRange(Attribute value) {
  auto range = dyn_cast<DenseI64ArrayAttr>(value);
  return range && range.size() == 2 && range[0] >= 0 && range[0] <= range[1];
}

LogicalResult FP8GPUDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute named) {
  StringRef name = named.getName();
  Attribute value = named.getValue();
  auto check = [&](StringRef key, bool isValid, StringRef expected) {
    if (name != key || isValid)
      return success();
    return LogicalResult(op->emitOpError("expected '")
                         << key << "' to be " << expected << ", but got "
                         << value);
  };
  return success(
      succeeded(check(kTargetAttrName, isa<GPUTargetAttr>(value),
                      "a #fp8_gpu.target")) &&
      succeeded(check(kConfigAttrName, isa<KernelConfigAttrInterface>(value),
                      "the config of a kernel")) &&
      succeeded(
          check(kFewRowsAttrName, isFewRows(value),
                "a list of #fp8_gpu.few_rows with configs, `most` rising")) &&
      succeeded(check(kRowsAttrName, isRange(value),
                      "array<i64: least, most>, neither below zero")) &&
      succeeded(
          check(kKernelAttrName, isa<SymbolRefAttr>(value), "a symbol")) &&
      succeeded(check(kLaunchAttrName, isa<LaunchAttr>(value),
                      "a #fp8_gpu.launch")) &&
      succeeded(check(kMathAttrName, isa<KernelMathAttr>(value),
                      "#fp8_gpu.math<exact> or #fp8_gpu.math<approximate>")));
}
