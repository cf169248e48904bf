//===- MmaDialect.cpp - Configs of kernels by mma.sync --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MmaDialect.h"
#include "../Matmul/ConfigDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

#include "MmaDialect.cpp.inc"

#include "MmaEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "MmaAttrs.cpp.inc"

void MmaDialect::initialize() { registerAttributes(); }

void MmaDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "MmaAttrs.cpp.inc"
      >();
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

LogicalResult GemmConfigAttr::verify(EmitError emitError, int64_t tileM,
                                     int64_t tileN, int64_t stages,
                                     int64_t group, int64_t splitK, bool swapAB,
                                     GemmStore store, int64_t warpgroups,
                                     bool /*wholeChunks*/) {
  // gemm_c3
  if (failed(checkRanges(emitError, {{"stages", stages, 2, 8},
                                     {"group", group, 1, 64},
                                     {"split_k", splitK, 1, 64},
                                     {"warpgroups", warpgroups, 1, 2}})))
    return failure();
  int64_t rows = swapAB ? tileN : tileM, cols = swapAB ? tileM : tileN;
  auto checkExtent = [&](bool ofRows, int64_t value,
                         int64_t step) -> LogicalResult {
    if (value >= step && value <= 256 && value % step == 0)
      return success();
    return emitError() << "expected "
                       << (ofRows == swapAB ? "tile_n" : "tile_m")
                       << " to be a multiple of " << step
                       << " up to 256, but got " << value;
  };
  // gemm_c1, gemm_c2
  if (failed(checkExtent(true, rows, 64 * warpgroups)) ||
      failed(checkExtent(false, cols, 16)))
    return failure();
  // gemm_c4
  if (swapAB && store != GemmStore::Direct)
    return emitError() << "expected store = direct with swap_ab, but got "
                       << stringifyGemmStore(store);
  // gemm_c5
  if (int64_t sums = rows * cols / (128 * warpgroups); sums > 128)
    return emitError() << "expected up to 128 sums of a thread, but got "
                       << sums;
  return success();
}

std::string GemmConfigAttr::getLabel() const {
  std::string label;
  llvm::raw_string_ostream os(label);
  os << getTileM() << 'x' << getTileN() << "_s" << getStages() << 'w'
     << getWarpgroups();
  if (getSwapAb())
    os << "_swap";
  if (getSplitK() > 1)
    os << "_k" << getSplitK();
  if (getStore() == GemmStore::Direct && !getSwapAb())
    os << "_direct";
  if (getWholeChunks())
    os << "_whole";
  os << "_g" << getGroup();
  return label;
}

LogicalResult AttentionConfigAttr::verify(EmitError emitError, int64_t tileQ,
                                          int64_t tileK, int64_t stages) {
  // attention_c1
  if (tileQ != 64 && tileQ != 128)
    return emitError() << "expected tile_q to be 64 or 128, but got " << tileQ;
  // attention_c2
  if (tileK % 16 != 0)
    return emitError() << "expected tile_k to be a multiple of 16, but got "
                       << tileK;
  // attention_c2, attention_c3
  return checkRanges(emitError,
                     {{"tile_k", tileK, 16, 256}, {"stages", stages, 2, 8}});
}

std::string AttentionConfigAttr::getLabel() const {
  std::string label;
  llvm::raw_string_ostream os(label);
  os << getTileQ() << 'x' << getTileK() << "_s" << getStages();
  return label;
}
