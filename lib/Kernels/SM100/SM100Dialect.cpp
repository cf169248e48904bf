//===- SM100Dialect.cpp - Configs of Blackwell's kernels ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SM100Dialect.h"
#include "../Matmul/ConfigDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

#include "SM100Dialect.cpp.inc"

#include "SM100Enums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "SM100Attrs.cpp.inc"

void SM100Dialect::initialize() { registerAttributes(); }

void SM100Dialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "SM100Attrs.cpp.inc"
      >();
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

LogicalResult GemmConfigAttr::verify(EmitError emitError, int64_t tileM,
                                     int64_t tileN, int64_t stages,
                                     int64_t group, int64_t splitK, bool swapAB,
                                     GemmStore store, int64_t staging,
                                     int64_t epilogue_warpgroups,
                                     int64_t ctaGroup) {
  int64_t rows = swapAB ? tileN : tileM, cols = swapAB ? tileM : tileN;
  StringRef rowsName = swapAB ? "tile_n" : "tile_m";
  StringRef colsName = swapAB ? "tile_m" : "tile_n";
  // gemm_c3
  if (failed(checkRanges(emitError,
                         {{"stages", stages, 2, 16},
                          {"group", group, 1, 64},
                          {"split_k", splitK, 1, 64},
                          {"staging", staging, 1, 2},
                          {"epilogue_warpgroups", epilogue_warpgroups, 1, 2},
                          {"cta_group", ctaGroup, 1, 2}})))
    return failure();
  // gemm_c1
  if (rows != 128 * ctaGroup)
    return emitError() << "expected " << rowsName << " to be " << 128 * ctaGroup
                       << ", but got " << rows;
  // gemm_c2
  if (int64_t step = 16 * ctaGroup;
      cols < step || cols > 256 || cols % step != 0)
    return emitError() << "expected " << colsName << " to be a multiple of "
                       << step << " up to 256, but got " << cols;
  // gemm_c4
  if (swapAB && store != GemmStore::Direct)
    return emitError() << "expected store = direct with swap_ab, but got "
                       << stringifyGemmStore(store);
  // gemm_c5
  if (splitK != 1 && (epilogue_warpgroups != 1 || ctaGroup != 1 || cols > 64))
    return emitError()
           << "expected epilogue_warpgroups and cta_group to be 1 and "
           << colsName << " to be at most 64 with split_k, but got "
           << epilogue_warpgroups << ", " << ctaGroup << " and " << cols;
  return success();
}

std::string GemmConfigAttr::getLabel() const {
  std::string label;
  llvm::raw_string_ostream os(label);
  os << getTileM() << 'x' << getTileN() << "_s" << getStages();
  if (getEpilogueWarpgroups() > 1)
    os << 'f' << getEpilogueWarpgroups();
  if (isCTAPair())
    os << "_x2";
  if (getSwapAb())
    os << "_swap";
  if (getSplitK() > 1)
    os << "_k" << getSplitK();
  if (getStore() == GemmStore::Direct && !getSwapAb())
    os << "_direct";
  if (getStaging() == 1 && getStore() == GemmStore::TMA)
    os << "_stage1";
  os << "_g" << getGroup();
  return label;
}

LogicalResult AttentionConfigAttr::verify(EmitError emitError, int64_t tileQ,
                                          int64_t tileK, int64_t stages,
                                          int64_t polynomials,
                                          int64_t tileHeads,
                                          int64_t splitTiles) {
  // attention_c1
  if (tileQ != 128 && tileQ != 256)
    return emitError() << "expected tile_q to be 128 or 256, but got " << tileQ;
  // attention_c2
  if (tileK < 16 || tileK > 128 || tileK % 16 != 0)
    return emitError() << "expected tile_k to be a multiple of 16 from 16 to "
                          "128, but got "
                       << tileK;
  // attention_c3
  if (stages < 1 || stages > 8)
    return emitError() << "expected stages to be in 1..8, but got " << stages;
  // attention_c4
  if (polynomials < 0 || polynomials > 16)
    return emitError() << "expected polynomials to be in 0..16, but got "
                       << polynomials;
  // attention_c5
  if (splitTiles < 0 || splitTiles > 1024)
    return emitError() << "expected split_tiles to be in 0..1024, but got "
                       << splitTiles;
  if (splitTiles != 0 && (tileQ != 128 || tileK % 64 != 0))
    return emitError() << "expected tile_q of 128 and tile_k of a multiple of "
                          "64 with split_tiles, but got "
                       << tileQ << " and " << tileK;
  // attention_c6
  if (tileHeads < 1 || tileHeads > 32 || !llvm::isPowerOf2_64(tileHeads))
    return emitError() << "expected tile_heads to be a power of two from 1 to "
                          "32, but got "
                       << tileHeads;
  if (splitTiles == 0 && tileHeads != 1)
    return emitError() << "expected tile_heads of 1, but got " << tileHeads
                       << " without split_tiles";
  return success();
}

std::string AttentionConfigAttr::getLabel() const {
  std::string label;
  llvm::raw_string_ostream os(label);
  os << getTileQ() << 'x' << getTileK() << "_s" << getStages();
  if (getTileHeads() != 1)
    os << "_h" << getTileHeads();
  if (getSplitTiles() != 0)
    os << "_split" << getSplitTiles();
  if (getPolynomials() != 0)
    os << "_p" << getPolynomials();
  return label;
}
