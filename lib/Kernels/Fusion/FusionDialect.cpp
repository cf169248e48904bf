//===- FusionDialect.cpp - How streaming kernels are built ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

#include "FusionDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "FusionAttrs.cpp.inc"

void FusionDialect::initialize() { registerAttributes(); }

void FusionDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "FusionAttrs.cpp.inc"
      >();
}

LogicalResult
FusionConfigAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                         int64_t rows, int64_t chunks, int64_t lanes,
                         int64_t across, int64_t down, int64_t cluster,
                         int64_t resident) {
  // C1, C2
  for (auto [name, value] : {std::pair<StringRef, int64_t>{"rows", rows},
                             {"lanes", lanes},
                             {"down", down}})
    if (value < 1 || value > 32 || !llvm::isPowerOf2_64(value))
      return emitError() << "expected " << name
                         << " to be a power of two up to 32, but got " << value;
  for (auto [name, value] :
       {std::pair<StringRef, int64_t>{"chunks", chunks}, {"across", across}})
    if (value < 1 || value > 32)
      return emitError() << "expected " << name << " to be 1 to 32, but got "
                         << value;
  // C3
  if (across * down > 32)
    return emitError() << "expected at most 32 warps, but got "
                       << across * down;
  // C4
  if (cluster < 1 || cluster > 8 || !llvm::isPowerOf2_64(cluster))
    return emitError() << "expected cluster to be 1, 2, 4 or 8, but got "
                       << cluster;
  // C5
  if (resident < 1 || resident > 8)
    return emitError() << "expected resident to be 1 to 8, but got "
                       << resident;
  return success();
}

std::string FusionConfigAttr::getLabel() const {
  std::string label =
      llvm::formatv("{0}x{1}_l{2}_w{3}x{4}_b{5}", getRows(), getChunks(),
                    getLanes(), getDown(), getAcross(), getResident());
  if (getCluster() > 1)
    label += "_c" + std::to_string(getCluster());
  return label;
}
