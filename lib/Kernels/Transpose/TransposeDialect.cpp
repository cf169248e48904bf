//===- TransposeDialect.cpp - Configs of transposing kernels --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TransposeDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

#include "TransposeDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "TransposeAttrs.cpp.inc"

void TransposeDialect::initialize() { registerAttributes(); }

void TransposeDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "TransposeAttrs.cpp.inc"
      >();
}

LogicalResult
TransposeConfigAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                            int64_t warps) {
  // C1
  if (warps < 1 || warps > 32 || !llvm::isPowerOf2_64(warps))
    return emitError() << "expected warps to be a power of two up to 32, but "
                          "got "
                       << warps;
  return success();
}

std::string TransposeConfigAttr::getLabel() const {
  return "w" + std::to_string(getWarps());
}
