//===- SM90Dialect.cpp - Configs of Hopper's kernels ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SM90Dialect.h"
#include "../Matmul/ConfigDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

#include "SM90Dialect.cpp.inc"

#include "SM90Enums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "SM90Attrs.cpp.inc"

void SM90Dialect::initialize() { registerAttributes(); }

void SM90Dialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "SM90Attrs.cpp.inc"
      >();
}

/// Consumers of a tile, at most: with 64 rows each has a part of K to itself,
/// and six have no registers for two K blocks.
static int64_t getMostConsumers(int64_t rows, bool swapAB) {
  if (!swapAB)
    return 3;
  return rows == 64 ? 5 : rows == 256 ? 4 : 3;
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

LogicalResult GemmConfigAttr::verify(
    EmitError emitError, int64_t tileM, int64_t tileN, int64_t stages,
    int64_t consumers, GemmSchedule schedule, int64_t group, int64_t splitK,
    bool swapAB, GemmStore store, int64_t clusterM, int64_t clusterN,
    int64_t staging, int64_t pending, bool overlap, GemmEpilogue,
    int64_t lifters, int64_t liftWarps, int64_t stageBlocks, bool clusterK) {
  bool pingPong = schedule == GemmSchedule::PingPong;
  int64_t rows = swapAB ? tileN : tileM, cols = swapAB ? tileM : tileN;
  StringRef rowsName = swapAB ? "tile_n" : "tile_m";
  StringRef colsName = swapAB ? "tile_m" : "tile_n";
  // gemm_c3, first: the others divide by these.
  if (failed(checkRanges(emitError, {{"stages", stages, 2, 32},
                                     {"consumers", consumers, 1,
                                      getMostConsumers(rows, swapAB)},
                                     {"group", group, 1, 64},
                                     {"split_k", splitK, 1, 64},
                                     {"cluster_m", clusterM, 1, 4},
                                     {"cluster_n", clusterN, 1, 4},
                                     {"staging", staging, 1, kMaxStaging},
                                     {"pending", pending, 0, 1},
                                     {"lifters", lifters, 0, 2},
                                     {"lift_warps", liftWarps, lifters ? 1 : 4,
                                      4 * std::max<int64_t>(lifters, 1)},
                                     {"stage_blocks", stageBlocks, 1, 4}})))
    return failure();
  if (!llvm::isPowerOf2_64(liftWarps))
    return emitError() << "expected lift_warps to be 1, 2, 4 or 8, but got "
                       << liftWarps;
  // gemm_c4
  if (pingPong && consumers != 2)
    return emitError() << "expected 2 consumers with ping_pong, but got "
                       << consumers;
  if (pingPong && (splitK != 1 || swapAB))
    return emitError()
           << "expected neither split_k nor swap_ab with ping_pong, "
              "but got "
           << (swapAB ? "swap_ab" : "split_k");
  // gemm_c1
  bool hasParts = swapAB && rows == 64;
  int64_t slice = 64 * (pingPong || hasParts ? 1 : consumers);
  if (rows < slice || rows > 256 || rows % slice != 0)
    return emitError() << "expected " << rowsName << " to be a multiple of "
                       << slice << " up to 256, but got " << rows;
  // gemm_c2
  if (cols < 8 || cols > 256 || cols % 8 != 0)
    return emitError() << "expected " << colsName
                       << " to be a multiple of 8 up to 256, but got " << cols;
  // gemm_c5
  if (lifters == 0 && pingPong)
    return emitError() << "expected lifters with ping_pong";
  // gemm_c6
  if (!llvm::isPowerOf2_64(clusterM) || !llvm::isPowerOf2_64(clusterN) ||
      clusterM * clusterN > 8)
    return emitError() << "expected cluster_m and cluster_n to be 1, 2 or 4 "
                          "and their product to be at most 8, but got "
                       << clusterM << " and " << clusterN;
  // gemm_c7
  if (splitK != 1 && (pending != 0 || overlap))
    return emitError() << "expected neither pending nor overlap with split_k, "
                          "but got "
                       << (overlap ? "overlap" : "pending");
  if (overlap && rows != slice)
    return emitError() << "expected " << rowsName << " to be " << slice
                       << " with overlap, but got " << rows;
  // gemm_c8
  if (stageBlocks == 3)
    return emitError() << "expected stage_blocks to be 1, 2 or 4, but got 3";
  if (stageBlocks > 1 && (!swapAB || lifters != 0))
    return emitError() << "expected swap_ab and no lifters with stage_blocks "
                       << stageBlocks;
  // gemm_c9
  if (clusterK && (splitK == 1 || splitK > 8 || !llvm::isPowerOf2_64(splitK) ||
                   clusterM * clusterN != 1))
    return emitError() << "expected split_k to be 2, 4 or 8 and neither "
                          "cluster_m nor cluster_n with cluster_k, but got "
                       << splitK << ", " << clusterM << " and " << clusterN;
  return success();
}

std::string GemmConfigAttr::getLabel() const {
  std::string label;
  llvm::raw_string_ostream os(label);
  os << getTileM() << 'x' << getTileN() << "_s" << getStages() << 'c'
     << getConsumers();
  if (getSchedule() == GemmSchedule::PingPong)
    os << "_pp";
  if (getSwapAb())
    os << "_swap";
  if (getSplitK() > 1)
    os << (getClusterK() ? "_kc" : "_k") << getSplitK();
  if (getStore() == GemmStore::Direct && !getSwapAb())
    os << "_direct";
  if (getStore() == GemmStore::TMA && getSwapAb())
    os << "_bulk";
  if (getClusterSize() > 1)
    os << "_cluster" << getClusterRows();
  if (getClusterCols() > 1)
    os << 'x' << getClusterCols();
  if (getStaging() != 2 && getStore() == GemmStore::TMA)
    os << "_stage" << getStaging();
  if (getPending() > 0)
    os << "_p" << getPending();
  if (getOverlap())
    os << "_overlap";
  if (getEpilogue() == GemmEpilogue::Looped)
    os << "_loop";
  if (getLifters() == 0)
    os << "_registers";
  if (getStageBlocks() > 1)
    os << "_b" << getStageBlocks();
  os << "_g" << getGroup();
  return label;
}

LogicalResult AttentionConfigAttr::verify(EmitError emitError, int64_t tileQ,
                                          int64_t tileK, int64_t stages,
                                          int64_t tileHeads, int64_t splitTiles,
                                          int64_t polynomials,
                                          AttentionTurn turn,
                                          AttentionMaxima maxima) {
  // attention_c1
  if (tileQ != 64 && tileQ != 128 && tileQ != 192)
    return emitError() << "expected tile_q to be 64, 128 or 192, but got "
                       << tileQ;
  // attention_c2
  if (tileK < 16 || tileK > 256 || tileK % 16 != 0)
    return emitError() << "expected tile_k to be a multiple of 16 from 16 to "
                          "256, but got "
                       << tileK;
  // attention_c3
  if (stages < 1 || stages > 8)
    return emitError() << "expected stages to be in 1..8, but got " << stages;
  // attention_c4
  if (splitTiles < 0 || splitTiles > 1024)
    return emitError() << "expected split_tiles to be in 0..1024, but got "
                       << splitTiles;
  if (tileQ != 64 && splitTiles != 0)
    return emitError() << "expected split_tiles of 0, but got " << splitTiles
                       << " with tile_q " << tileQ;
  // attention_c5
  if (tileHeads < 1 || tileHeads > 64 || !llvm::isPowerOf2_64(tileHeads))
    return emitError() << "expected tile_heads to be a power of two from 1 to "
                          "64, but got "
                       << tileHeads;
  if (splitTiles == 0 && tileHeads != 1)
    return emitError() << "expected tile_heads of 1, but got " << tileHeads
                       << " without split_tiles";
  // attention_c6
  if (polynomials < 0 || polynomials > 16)
    return emitError() << "expected polynomials to be in 0..16, but got "
                       << polynomials;
  // attention_c7
  if (maxima != AttentionMaxima::Tile &&
      (turn == AttentionTurn::Raised || splitTiles != 0))
    return emitError() << "expected maxima of a tile with turn raised or "
                          "split_tiles, but got "
                       << stringifyAttentionMaxima(maxima);
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
  if (getTurn() != AttentionTurn::Issued)
    os << '_' << stringifyAttentionTurn(getTurn());
  if (getMaxima() != AttentionMaxima::Tile)
    os << '_' << stringifyAttentionMaxima(getMaxima());
  return label;
}
