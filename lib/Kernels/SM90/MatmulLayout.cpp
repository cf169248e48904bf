//===- MatmulLayout.cpp - Shared memory and registers of matmuls ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulLayout.h"
#include "../Blocks/GroupTable.h"
#include "../Matmul/MatmulArguments.h"
#include "TransposeFragments.h"
#include "Wgmma.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// Where bulk copies of tensors write to in shared memory.
static constexpr int64_t kBulkTensorAlignment = 128;

/// The most elements of one dimension that a bulk tensor copy brings.
static constexpr int64_t kMaxBoxRows = 256;

bool sm90::areFactorsInBulk(const MatmulSpec &spec, bool ofA) {
  return spec.areFactorsInFours(ofA) && (ofA || !spec.isDual());
}

/// Whether the factors of a tile begin up to three before its first row: at 16
/// bytes, as bulk copies do, where rows of a group begin anywhere.
static bool mayBeginBefore(const MatmulSpec &spec, bool ofA) {
  return ofA && spec.hasAdjacentRows() && areFactorsInBulk(spec, ofA);
}

/// Factors of one operand in a stage of the ring.
static int64_t getScalesPerStage(const MatmulSpec &spec, bool ofA,
                                 int64_t extent) {
  ScaleBlock scale = (ofA ? spec.a : spec.b).scale;
  if (!isBlockedAlongK(scale))
    return 0;
  if (areFactorsInBulk(spec, ofA)) {
    int64_t rows = extent + (mayBeginBefore(spec, ofA) ? 4 : 0);
    int64_t boxes = llvm::divideCeil(rows, kMaxBoxRows);
    int64_t step = boxes > 1 ? kBulkTensorAlignment / 4 : 4;
    return boxes * llvm::alignTo(llvm::divideCeil(rows, boxes), step);
  }
  // Tiles begin at multiples of their extent, which may cut blocks.
  int64_t rows = getScaleRows(scale), step = std::gcd(extent, rows);
  return llvm::divideCeil(rows - step + extent, rows);
}

TileConfig TileConfig::get(GemmConfigAttr config) {
  return {config.getRows(),        config.getCols(),    config.getSchedule(),
          config.getConsumers(),   config.getSwapAb(),  config.getClusterRows(),
          config.getClusterCols(), config.getSplitK(),  config.getStages(),
          config.getStaging(),     config.getLifters(), config.getLiftWarps(),
          config.getStageBlocks(), config.getClusterK()};
}

int64_t sm90::getFactorBoxes(int64_t factors) {
  return llvm::divideCeil(factors, kMaxBoxRows);
}

/// Bytes of so many factors in the ring.
static int64_t getScaleStride(int64_t count, bool inBulk) {
  return inBulk ? llvm::alignTo(4 * count, kBulkTensorAlignment) : 4 * count;
}

int64_t sm90::getFactorBytes(const MatmulSpec &spec, const TileConfig &config) {
  bool swapped = config.swapped;
  int64_t parts = spec.isDual() ? 2 : 1;
  return getScaleStride(getScalesPerStage(spec, !swapped, config.rows),
                        areFactorsInBulk(spec, !swapped)) +
         getScaleStride(
             parts * getScalesPerStage(spec, swapped, config.cols / parts),
             areFactorsInBulk(spec, swapped));
}

/// Bytes of a stage's exponents, of so many rows.
static int64_t getExponentBytes(int64_t extent) {
  return llvm::alignTo(4 * extent, kBulkTensorAlignment);
}

int64_t LiftLayout::getStageBytes(const OperandSpec &operand, int64_t extent,
                                  int64_t blocks) {
  int64_t codes =
      getLiftedPacking(operand.lifting)
          .getBytesOf(extent * kRowBytes / operand.getElementBytes());
  return blocks * (codes + getExponentBytes(extent)) + 16;
}

/// The registers of a thread that lifts, beside others that multiply.
static int64_t getLifterRegisters(int64_t consumers) {
  return consumers == 1 ? 96 : 56;
}

/// As below, of what a block has when it begins, where warpgroups lift.
static std::pair<int64_t, int64_t>
getRegistersBesideLifters(int64_t consumers, int64_t lifters, bool hasFactors) {
  int64_t groups = consumers + 1 + lifters;
  int64_t all = 512 / groups / 8 * 8 * groups;
  int64_t producer = consumers == 1 || hasFactors ? 40 : 24;
  int64_t left = all - producer - lifters * getLifterRegisters(consumers);
  return {producer, std::min<int64_t>(left / consumers / 8 * 8, 232)};
}

/// What 512 registers, one of each warpgroup's threads, are divided into, in
/// multiples of 8. The warp that copies factors needs more than one that only
/// issues bulk copies, which has no more than it must where there are many
/// accumulators.
static std::pair<int64_t, int64_t> getRegisters(const MatmulSpec &spec,
                                                int64_t consumers,
                                                int64_t accumulators,
                                                int64_t lifters) {
  if (spec.b.isLifted())
    return getRegistersBesideLifters(consumers, lifters,
                                     copiesFactors(spec.b.lifting));
  if (consumers > 3) {
    int64_t all = 512 / (consumers + 1) / 8 * 8 * (consumers + 1);
    return {40, (all - 40) / consumers / 8 * 8};
  }
  if (consumers == 3)
    return spec.isBlocked() ? std::pair<int64_t, int64_t>{40, 152}
                            : std::pair<int64_t, int64_t>{32, 160};
  return spec.isBlocked() || accumulators <= 160
             ? std::pair<int64_t, int64_t>{40, 232}
             : std::pair<int64_t, int64_t>{24, 240};
}

/// Words of a subtile's K block in a thread that lifts them itself.
static constexpr int64_t kFragmentWords = 16;
/// What takes codes apart, and addresses of a transposed store.
static constexpr int64_t kBesideFragments = 20;

bool sm90::canOverlapPromotion(const MatmulSpec &spec,
                               const TileConfig &config) {
  // The sums, and two products.
  int64_t registers = 3 * config.cols / 2;
  if (transposesRows(spec, config.swapped))
    registers += 2 * kFragmentWords + kBesideFragments;
  if ((config.swapped ? spec.a : spec.b).scale == ScaleBlock::Row128)
    registers += config.cols / 4;
  // It begins with a product, and a group of K may have none.
  return spec.accumulate == Accumulate::Promote && !spec.isMicroscaled() &&
         config.getSubtiles() == 1 && config.splitK == 1 &&
         spec.getGrouping() != Grouping::K &&
         registers <=
             getRegisters(spec, config.consumers, registers, config.lifters)
                     .second -
                 36;
}

/// What transposes codes, and addresses of its loads and of stores: tiles with
/// fewer registers beside their sums spilled.
static int64_t getBesideTransposed(GemmConfigAttr config) {
  int64_t ofSubtiles = config.getSubtiles() > 1 ? 16 : 0;
  return ofSubtiles + (config.getSwapAb() ? 34 : 18);
}

/// The accumulator registers of one consumer thread: f32 sums of all subtiles
/// and, with promotion, one more subtile that the tensor core writes to.
static int64_t getAccumulatorRegisters(const MatmulSpec &spec,
                                       GemmConfigAttr config) {
  int64_t subtile = config.getCols() / 2;
  int64_t accumulators = subtile * (config.getSubtiles() +
                                    (spec.accumulate == Accumulate::Promote));
  const OperandSpec &rows = config.getSwapAb() ? spec.b : spec.a;
  const OperandSpec &cols = config.getSwapAb() ? spec.a : spec.b;
  // Several instructions are under way, and a stage's factors in bf16.
  if (spec.isMicroscaled())
    accumulators += subtile * (getNumProductSets(config.getCols()) - 1) +
                    config.getCols() / 2 + 4;
  // Words of a K block that is multiplied, and of the next one; with promotion
  // the products of both.
  if (config.getLifters() == 0) {
    accumulators += 2 * kFragmentWords * config.getSubtiles();
    // ptxas serializes products where there is no room for these.
    bool isLifted = spec.b.isLifted();
    if (!isLifted)
      accumulators += getBesideTransposed(config);
    else if (config.getSwapAb() && config.getStore() != GemmStore::Direct)
      accumulators += kBesideFragments;
    // Two ways to multiply by a factor, of which a block takes one.
    if (spec.b.isArranged && spec.b.lifting == Lifting::E4M3Blocks)
      accumulators += 24;
    // Those of codes that are transposed may wait for each other.
    if (spec.accumulate == Accumulate::Promote)
      accumulators += isLifted || config.getOverlap()
                          ? subtile * (2 * config.getSubtiles() - 1)
                          : subtile * (config.getSubtiles() - 1);
  }
  // Factors of columns live through all subtiles of a k-block.
  if (cols.scale == ScaleBlock::Row128)
    accumulators += config.getCols() / 4;
  // An epilogue holds results of one subtile beside the sums of the next;
  // factors per row take some registers, too.
  bool perRow = rows.scale == ScaleBlock::Row || cols.scale == ScaleBlock::Row;
  int64_t sums = config.getSubtiles() * subtile;
  // So do the addresses of stores of one element each.
  int64_t beside = spec.epilogue                            ? 64
                   : perRow                                 ? 44
                   : config.getStore() == GemmStore::Direct ? 16
                                                            : 0;
  return std::max(accumulators, sums + beside);
}

int64_t sm90::getStoreBytes(int64_t bytes) {
  for (int64_t width : {128, 64, 32, 16})
    if (width <= bytes && int64_t(llvm::alignTo(bytes, width)) * 4 <= bytes * 5)
      return width;
  return 0;
}

/// Fails, with the reason, if no kernel lifts the B of such a product.
static LogicalResult checkLifted(const MatmulSpec &spec, std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  if (spec.getGrouping() == Grouping::K)
    return fail("expected packed weights for groups of rows, but got groups of "
                "K");
  if (spec.b.major != Major::K)
    return fail("expected K to be the innermost dimension of packed weights");
  for (bool ofA : {true, false})
    if (isBlockedAlongK((ofA ? spec.a : spec.b).scale) &&
        !areFactorsInBulk(spec, ofA))
      return fail("expected factors beside packed weights that bulk copies "
                  "bring, or that do not change along K");
  if (copiesFactors(spec.b.lifting)) {
    if (ShapedType::isDynamic(spec.k) || spec.k == 0 || spec.k % 64 != 0)
      return fail("expected K to be a multiple of 64 for packed weights with "
                  "factors along K, but got {0}",
                  spec.k);
    // A word of E8M0 is of 128 of K: rows begin within words, but every other.
    if (!beginWithinWords(spec))
      return success();
    for (MatmulSpec::ResultExtents result : spec.getResults())
      if (ShapedType::isDynamic(result.n) || result.n % 2 != 0)
        return fail("expected N to be even where K is no multiple of 128, of "
                    "which packed weights have a word of factors, but got {0}",
                    result.n);
    return success();
  }
  for (MatmulSpec::ResultExtents result : spec.getResults())
    if (ShapedType::isDynamic(result.n) || result.n % 4 != 0)
      return fail("expected N to be a multiple of 4, which bulk tensor copies "
                  "of exponents need, but got {0}",
                  result.n);
  if (ShapedType::isDynamic(spec.k) || spec.k % 32 != 0)
    return fail("expected K to be a multiple of 32, which bulk tensor copies "
                "of packed weights need, but got {0}",
                spec.k);
  return success();
}

/// Fails, with the reason, if no kernel adds up sums of 32 with their factors.
static LogicalResult checkMicroscaled(const MatmulSpec &spec,
                                      std::string &reason) {
  if (spec.isDual() || spec.getGrouping() == Grouping::K) {
    reason = "expected no pairs and no groups of K with factors of 32 of K";
    return failure();
  }
  if (ShapedType::isDynamic(spec.k) || spec.k == 0 || spec.k % kRowBytes != 0) {
    reason = llvm::formatv("expected K to be a multiple of {0}, of which there "
                           "is a word of factors, but got {1}",
                           kRowBytes, spec.k);
    return failure();
  }
  return success();
}

/// Fails, with the reason, if consumers cannot transpose codes that lie with
/// rows innermost.
static LogicalResult checkTransposedCodes(const MatmulSpec &spec,
                                          std::string &reason) {
  if (!isTransposedCodes(spec.a) && !isTransposedCodes(spec.b))
    return success();
  bool areBoth = spec.a.major != Major::K && spec.b.major != Major::K;
  if (areBoth)
    reason = "expected K to be the innermost dimension of A or B, of which "
             "consumers transpose one of 8-bit elements";
  else if (isBlockedAlongK(spec.a.scale) || isBlockedAlongK(spec.b.scale))
    reason = "expected factors that do not change along K where 8-bit elements "
             "of an operand are transposed";
  else if (spec.isGrouped() || spec.areSiblings() || spec.isDual() ||
           spec.b.isLifted())
    reason = "expected one product of codes where 8-bit elements of an operand "
             "are transposed";
  return success(reason.empty());
}

LogicalResult sm90::checkOperands(const MatmulSpec &spec, std::string &reason) {
  bool isMX = spec.isMicroscaled() && spec.a.scale == ScaleBlock::Row32;
  for (auto [operand, name] : {std::pair{&spec.a, "A"}, {&spec.b, "B"}})
    if (isMicroscaled(operand->scale) && !isMX) {
      reason = llvm::formatv(
          "expected {0} to have f32 scale factors per tensor, per "
          "row, per 1x128 or per 128x128",
          name);
      return failure();
    }
  for (auto [operand, name] : {std::pair{&spec.a, "A"}, {&spec.b, "B"}})
    if (!Wgmma::takes(operand->elementType)) {
      reason = llvm::formatv("expected {0} of a type that the tensor core "
                             "multiplies, but got {1}",
                             name, operand->elementType);
      return failure();
    }
  for (auto [operand, name] : {std::pair{&spec.a, "A"}, {&spec.b, "B"}})
    if (operand->major != Major::K && operand->getElementBytes() > 2) {
      reason = llvm::formatv("expected K to be the innermost dimension of {0}, "
                             "which the tensor core transposes only of 16-bit "
                             "elements, but they are {1}",
                             name, operand->elementType);
      return failure();
    }
  if (failed(checkTransposedCodes(spec, reason)))
    return failure();
  if (spec.b.isLifted() && failed(checkLifted(spec, reason)))
    return failure();
  if (isMX && failed(checkMicroscaled(spec, reason)))
    return failure();
  if (spec.hasAdjacentRows() && spec.a.major != Major::K) {
    reason = "expected K to be the innermost dimension of A with groups of "
             "rows, as bulk copies begin at multiples of 16 bytes";
    return failure();
  }
  return success();
}

MatmulLayout::MatmulLayout(const MatmulSpec &spec, GemmConfigAttr config)
    : rows(config.getSwapAb() ? spec.b : spec.a, config.getRows(),
           config.getClusterCols()),
      cols(config.getSwapAb() ? spec.a : spec.b, config.getCols(),
           config.getClusterRows()),
      colsPart(config.getSwapAb() ? spec.a : spec.b,
               spec.getResultCols(config.getCols()), config.getClusterRows()),
      stageBlocks(config.getStageBlocks()) {
  if (!spec.b.isLifted())
    return;
  const OperandTile &part = config.getSwapAb() ? rows : colsPart;
  LiftLayout lifts{OperandTile::getPacked(part, spec.b.lifting, stageBlocks),
                   stageBlocks, spec.b.lifting};
  lifts.extent = config.getTileN();
  lifts.codeStride = lifts.extent * lifts.packed.getRowBytes();
  lifts.exponentStride = stageBlocks * getExponentBytes(lifts.extent);
  lifts.warps = 4 * config.getLifters();
  lifts.sharing = config.getLiftWarps();
  lifts.registers = getLifterRegisters(config.getConsumers());
  lift = lifts;
}

/// Fails if the config has lifters where nothing is lifted, or lacks them.
static LogicalResult checkLifters(const MatmulSpec &spec, GemmConfigAttr config,
                                  const MatmulLayout &layout,
                                  std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  bool swapped = config.getSwapAb();
  if (!layout.lift && (config.getLifters() > 1 || config.getLiftWarps() != 4))
    return fail("expected packed weights with lifters, but got {0}", config);
  bool transposes = transposesRows(spec, swapped);
  if (isTransposedCodes(swapped ? spec.a : spec.b) ||
      (transposes && (config.getLifters() != 0 ||
                      config.getSchedule() == GemmSchedule::PingPong)))
    return fail("expected no lifters, the cooperative schedule, and 8-bit "
                "elements that are transposed on the tensor core's M side, but "
                "got {0}",
                config);
  if (config.getLifters() == 0 && !transposes &&
      (!layout.lift || !swapped || isBlockedAlongK(spec.a.scale)))
    return fail("expected packed weights with swap_ab, and factors that do not "
                "change along K, without lifters, but got {0}",
                config);
  if (spec.b.isLiftedInRegisters() && config.getLifters() != 0)
    return fail("expected lifters = 0 with weights that are arranged and "
                "become bf16, have factors of 128 rows or become f16, but got "
                "{0}",
                config);
  // ptxas serializes products whose sums are promoted there.
  if (layout.stageBlocks > 1 && spec.accumulate == Accumulate::Promote)
    return fail("expected no promotion with stage_blocks, but got {0}", config);
  if (layout.stageBlocks > 1 &&
      (!layout.lift || layout.lift->packed.getRowBytes() > kRowBytes))
    return fail("expected packed weights of whose codes a stage's K has up to "
                "{0} bytes with stage_blocks, but got {1}",
                kRowBytes, config);
  return success();
}

/// Fails if the config has what such products cannot have.
static LogicalResult checkForm(const MatmulSpec &spec, GemmConfigAttr config,
                               const MatmulLayout &layout,
                               std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  bool swapped = config.getSwapAb();
  const OperandSpec &colSpec = swapped ? spec.a : spec.b;
  int64_t partCols = spec.getResultCols(config.getCols());
  if (spec.isDual() && colSpec.scale == ScaleBlock::Block128 &&
      partCols % 128 != 0 && 128 % partCols != 0)
    return fail("expected the columns of either product of a pair to divide "
                "128 or be a multiple of it with factors of 128 rows, but got "
                "{0}",
                partCols);
  if (spec.isGrouped() && config.getSplitK() > 1)
    return fail("expected no split-K with groups, but got {0}", config);
  if (spec.getGrouping() == Grouping::K &&
      (config.getSchedule() == GemmSchedule::PingPong || config.getOverlap() ||
       config.getPending()))
    return fail("expected the cooperative schedule without overlap and pending "
                "products with groups of K, but got {0}",
                config);
  if (spec.isDual() &&
      (swapped || config.getCols() % 16 != 0 ||
       layout.colsPart.getSwizzle() != layout.cols.getSwizzle()))
    return fail("expected columns of both products of a pair in a tile, halves "
                "of 8s with the swizzle of all, but got {0}",
                config);
  if (failed(checkLifters(spec, config, layout, reason)))
    return failure();
  bool takesParts = spec.isMicroscaled() || config.getLifters() == 0;
  // Who waited for a stage that another one had the round before would take
  // that one's for its own.
  if (config.getBlockParts() > 1 &&
      (!takesParts || config.getStages() % config.getBlockParts() != 0))
    return fail("expected consumers that share K with factors of 32 of K, or "
                "without lifters, and as many stages for each, but got {0}",
                config);
  // Words of the next block are made before the last one's stage is given back.
  if (config.getBlockParts() > 1 && config.getLifters() == 0 &&
      config.getStages() < 2 * config.getBlockParts())
    return fail(
        "expected two stages for each consumer that lifts or transposes in "
        "registers and has a part of K, but got {0}",
        config);
  if (takesParts && config.getPartsOfK() > 1 &&
      (ShapedType::isDynamic(spec.k) ||
       config.getPartsOfK() >
           int64_t(llvm::divideCeil(spec.k, layout.getStageK()))))
    return fail("expected each part of K to have some, but got {0}", config);
  // A warp that left out a round of a stage would take the next one for it.
  if (layout.lift && config.getStages() % layout.lift->getTurns() != 0)
    return fail("expected each stage to be lifted by the same warps in every "
                "round, but got {0} stages that {1} take turns with",
                config.getStages(), layout.lift->getTurns());
  if (layout.lift && spec.isDual() && partCols * 4 % kBulkTensorAlignment != 0)
    return fail("expected columns of either product of a pair of packed "
                "weights in 32s, but got {0}",
                partCols);
  if (spec.isMicroscaled() &&
      (!swapped || config.getCols() > 64 || config.getSubtiles() != 1 ||
       config.getSchedule() == GemmSchedule::PingPong))
    return fail("expected swapped operands, up to 64 rows of A and 64 of B for "
                "each consumer with factors of 32 of K, but got {0}",
                config);
  if (config.getOverlap() &&
      !canOverlapPromotion(spec, TileConfig::get(config)))
    return fail("expected promotion, and registers for a second set of "
                "accumulators, with overlap, but got {0}",
                config);
  if (config.getPending() && spec.accumulate == Accumulate::Promote)
    return fail("expected no pending products with promotion, but got {0}",
                config);
  return success();
}

/// Fails if a consumer thread's accumulators do not fit its registers.
static LogicalResult checkRegisters(GemmConfigAttr config, GPUTargetAttr target,
                                    const MatmulLayout &layout,
                                    int64_t accumulators, std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  // What addresses and factors need beside them.
  int64_t limit = layout.consumerRegisters - 24;
  if (accumulators > limit)
    return fail("expected accumulators of up to {0} registers a thread, but "
                "{1} need {2}",
                limit, config, accumulators);
  // ptxas gives an instruction no more than each thread has at the start, which
  // is a multiple of 8.
  int64_t initial = target.getRegisters() / layout.threads / 8 * 8;
  if (config.getCols() / 2 + 26 > initial)
    return fail("expected an instruction to write up to {0} registers of {1} "
                "threads, but {2} writes {3}",
                initial - 26, layout.threads, config, config.getCols() / 2);
  return success();
}

FailureOr<MatmulLayout> MatmulLayout::get(const MatmulSpec &spec,
                                          GemmConfigAttr config,
                                          GPUTargetAttr target,
                                          std::string &reason) {
  if (failed(checkOperands(spec, reason)))
    return failure();
  MatmulLayout layout(spec, config);
  bool swapped = config.getSwapAb();
  layout.rowScales = getScalesPerStage(spec, !swapped, config.getRows());
  int64_t partCols = spec.getResultCols(config.getCols());
  layout.colScales = getScalesPerStage(spec, swapped, partCols) *
                     (config.getCols() / partCols);
  layout.rowScalesInBulk = areFactorsInBulk(spec, !swapped);
  layout.colScalesInBulk = areFactorsInBulk(spec, swapped);
  layout.rowScaleStride =
      getScaleStride(layout.rowScales, layout.rowScalesInBulk);
  layout.colScaleStride =
      getScaleStride(layout.colScales, layout.colScalesInBulk);
  layout.factorsBefore = mayBeginBefore(spec, /*ofA=*/true);
  layout.threads = (config.getConsumers() + 1) * 128;
  if (layout.lift)
    layout.threads += layout.lift->warps * 32;
  int64_t accumulators = getAccumulatorRegisters(spec, config);
  std::tie(layout.producerRegisters, layout.consumerRegisters) = getRegisters(
      spec, config.getConsumers(), accumulators, config.getLifters());
  if (failed(checkForm(spec, config, layout, reason)) ||
      failed(checkRegisters(config, target, layout, accumulators, reason)))
    return failure();
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  // A bulk copy to memory that does not start at a multiple of 16 bytes is an
  // illegal instruction.
  int64_t bits = spec.resultType.getIntOrFloatBitWidth();
  int64_t storedBytes = spec.getResultCols(config.getTileN()) * bits / 8;
  if (swapped && config.getStore() == GemmStore::TMA) {
    if (bits != 16 || !spec.canStoreInBulk() ||
        spec.getGrouping() == Grouping::Rows)
      return fail("expected store = direct with swap_ab, unless results are of "
                  "16 bits, in rows of 16 bytes and not in groups of rows, but "
                  "got {0}",
                  config);
    layout.storeBytes = kRowBytes;
  } else if (config.getStore() == GemmStore::TMA &&
             (storedBytes % 16 != 0 ||
              !(layout.storeBytes = getStoreBytes(storedBytes))))
    return fail("expected rows of a tile that can be stored in slabs of 16 to "
                "128 bytes, but got {0} elements of {1}",
                spec.getResultCols(config.getTileN()), spec.resultType);
  layout.place(spec, config);
  if (layout.sharedBytes > target.getSharedBytes())
    return fail("expected up to {0} bytes of shared memory, but {1} needs {2}",
                target.getSharedBytes(), config, layout.sharedBytes);
  if ((config.getConsumers() * layout.consumerRegisters +
       layout.producerRegisters) *
          128 >
      target.getRegisters())
    return fail("expected up to {0} registers, but {1} needs more",
                target.getRegisters(), config);
  return layout;
}

void MatmulLayout::place(const MatmulSpec &spec, GemmConfigAttr config) {
  int64_t stages = config.getStages();
  offsetRows = 0;
  offsetCols = offsetRows;
  if (!liftsInRegisters())
    offsetCols += stages * rows.getBytes();
  offsetStaging = offsetCols + stages * stageBlocks * cols.getBytes();
  offsetRowScales = offsetStaging;
  if (storeBytes)
    offsetRowScales += config.getConsumers() * config.getStaging() *
                       getStagingBytes(TileConfig::get(config));
  if (lift) {
    lift->offsetCodes = offsetRowScales;
    lift->offsetExponents = lift->offsetCodes + stages * lift->codeStride;
    offsetRowScales = lift->offsetExponents + stages * lift->exponentStride;
  }
  offsetColScales =
      llvm::alignTo(offsetRowScales + stages * rowScaleStride,
                    colScalesInBulk ? kBulkTensorAlignment : int64_t(16));
  offsetFactors = llvm::alignTo(offsetColScales + stages * colScaleStride, 16);
  // A full and an empty barrier for each stage; a word for the last block of a
  // split tile.
  offsetBarriers = offsetFactors;
  if (spec.isMicroscaled())
    offsetBarriers += config.getConsumers() * kFactorBufferBytes;
  offsetParts = offsetBarriers + stages * 16 + 16;
  offsetGroups = offsetParts + getPartBytes(TileConfig::get(config));
  sharedBytes =
      offsetGroups +
      (spec.isGrouped() ? GroupTable::getBytes(spec.getNumGroups()) : 0);
  if (!lift)
    return;
  lift->offsetTable = llvm::alignTo(sharedBytes, 8);
  lift->offsetBarriers =
      lift->offsetTable + LiftLayout::getTableBytes(lift->lifting);
  sharedBytes = lift->offsetBarriers + stages * 16;
}
