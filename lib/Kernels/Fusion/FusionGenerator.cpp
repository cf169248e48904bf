//===- FusionGenerator.cpp - Builds streaming kernels ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionGenerator.h"
#include "../MachineLookup.h"
#include "FusionKernel.h"
#include "FusionRegisters.h"
#include "FusionSignature.h"
#include "fp8/IR/ExactMath.h"
#include "fp8/IR/Philox.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

/// Rows of a thread times its chunks: what its registers hold of the inputs.
static constexpr int64_t kMaxPlaces = 16;
/// Warps of a block of threads.
static constexpr int64_t kMaxWarps = 32;
/// Chunks of a thread that has whole rows.
static constexpr int64_t kMaxChunks = 8;
/// Operations on an element from which on code of several places is worth
/// nothing: loads do not wait for each other, and it is no longer cached.
static constexpr int64_t kMinLongBody = 256;

/// Warps of a multiprocessor that leave each thread the registers that so many
/// places want: 64, or 128.
static int64_t getMaxResidentWarps(int64_t places) {
  return places < 8 ? 32 : 16;
}

static int64_t getExtent(int64_t extent, int64_t otherwise) {
  return ShapedType::isDynamic(extent) ? otherwise
                                       : std::max<int64_t>(1, extent);
}

/// Whole rows, in `cluster` blocks beside each other, each of `across` warps.
/// Few rows leave room for more below each other.
static FusionConfigAttr makeRowConfig(MLIRContext *context,
                                      const FusionSpec &spec, int64_t rows,
                                      int64_t across, int64_t warps,
                                      int64_t cluster, int64_t resident) {
  int64_t groups = std::max<int64_t>(
      1, llvm::divideCeil(getExtent(spec.columns, 4096), kChunk * cluster));
  int64_t lanes = std::min<int64_t>(llvm::PowerOf2Ceil(groups), 32);
  int64_t chunks = llvm::divideCeil(groups, lanes * across);
  int64_t down =
      llvm::bit_floor<uint64_t>(std::max<int64_t>(1, warps / across));
  return chunks > 32 ? FusionConfigAttr()
                     : FusionConfigAttr::get(context, rows, chunks, lanes,
                                             across, down, cluster, resident);
}

/// Numbers of warps beside each other for whole rows, the best four: of chunks
/// that are computed in vain each takes the time of others, as does what the
/// machine says of many of a thread and of few warps.
static SmallVector<int64_t> getWarpsAcross(const FusionSpec &spec,
                                           int64_t cluster, int64_t usualChunks,
                                           int64_t usualWarps) {
  int64_t needed =
      llvm::divideCeil(getExtent(spec.columns, 4096), 32 * kChunk * cluster);
  SmallVector<std::tuple<int64_t, int64_t, int64_t, int64_t>> ranked;
  for (int64_t across = 1; across <= 16; ++across) {
    int64_t chunks = llvm::divideCeil(needed, across);
    if (chunks <= kMaxChunks)
      ranked.emplace_back(across * chunks - needed,
                          std::max<int64_t>(0, chunks - usualChunks),
                          std::abs(across - usualWarps), across);
  }
  llvm::sort(ranked);
  SmallVector<int64_t> best;
  for (const auto &entry : ArrayRef(ranked).take_front(4))
    best.push_back(std::get<3>(entry));
  return best;
}

/// What the order of a row's sum follows from, in every invariant program: the
/// number of columns alone. Null where no cluster holds a row.
static FusionConfigAttr getInvariantRow(MLIRContext *context,
                                        const FusionSpec &spec) {
  // An H200's, whatever the machine is.
  constexpr int64_t kUsualChunks = 7, kUsualWarps = 8;
  for (int64_t cluster : {1, 2, 4, 8}) {
    SmallVector<int64_t> across =
        getWarpsAcross(spec, cluster, kUsualChunks, kUsualWarps);
    if (!across.empty())
      return makeRowConfig(context, spec, /*rows=*/1, across.front(),
                           kUsualWarps, cluster, /*resident=*/1);
  }
  return {};
}

/// Whether rows are added up in the same order.
static bool haveSameSums(FusionConfigAttr lhs, FusionConfigAttr rhs) {
  return lhs.getLanes() == rhs.getLanes() &&
         lhs.getChunks() == rhs.getChunks() &&
         lhs.getAcross() == rhs.getAcross() &&
         lhs.getCluster() == rhs.getCluster();
}

/// Fails, with the reason, if a row's sum would depend on the config, where it
/// may not.
static LogicalResult checkSums(const FusionSpec &spec, FusionConfigAttr config,
                               std::string &reason) {
  if (!spec.hasInvariantSums)
    return success();
  FusionConfigAttr row = getInvariantRow(config.getContext(), spec);
  if (row && haveSameSums(row, config))
    return success();
  llvm::raw_string_ostream os(reason);
  reason.clear();
  os << "expected rows of " << spec.columns
     << " to be added up as in every invariant program";
  if (row)
    os << llvm::formatv(", by {0} chunks, {1} lanes, {2} across and a cluster "
                        "of {3}",
                        row.getChunks(), row.getLanes(), row.getAcross(),
                        row.getCluster());
  os << ", but got " << config;
  return failure();
}

/// Tiles of `rows` rows a thread.
static FusionConfigAttr makeTileConfig(MLIRContext *context,
                                       const FusionSpec &spec, int64_t rows,
                                       int64_t lanes, int64_t warps,
                                       int64_t resident) {
  int64_t groups = llvm::PowerOf2Ceil(
      llvm::divideCeil(getExtent(spec.columns, 4096), kChunk));
  int64_t numRows = getExtent(spec.rows, 4096);
  lanes = std::min(groups, lanes);
  // Blocks of columns lie in a warp.
  lanes = std::max(lanes, std::min<int64_t>(32, spec.blockColumns / kChunk));
  int64_t across = 1, chunks = 1, down = warps, lanesDown = 32 / lanes;
  if (spec.transposes || spec.blockRows > 1) {
    rows = std::min(rows, spec.leastRows);
    int64_t least = std::max<int64_t>(spec.blockRows, spec.transposes ? 16 : 1);
    // Narrower warps have more rows each, where more of them would leave too
    // few registers.
    while (rows * lanesDown * down < least && down < kMaxWarps) {
      if (down < getMaxResidentWarps(rows) || lanes <= 4 ||
          lanes * kChunk <= spec.blockColumns) {
        down *= 2;
      } else {
        lanes /= 2;
        lanesDown *= 2;
      }
    }
  } else {
    // Few rows: as much beside each other instead.
    while (rows > 1 && rows * lanesDown > numRows) {
      rows /= 2;
      if (lanes * chunks < groups)
        chunks *= 2;
    }
    while (down > 1 && rows * lanesDown * down > numRows) {
      down /= 2;
      if (lanes * across * chunks < groups)
        across *= 2;
    }
  }
  resident = std::clamp<int64_t>(
      getMaxResidentWarps(rows * chunks) / (across * down), 1, resident);
  return FusionConfigAttr::get(context, rows, chunks, lanes, across, down,
                               /*cluster=*/1, resident);
}

/// Whether a step's weights and moments are codes: one is held while its blocks
/// are measured, others are measured row by row. Registers have room for half
/// of the usual rows (measured on an H200).
static bool measuresBoth(const FusionSpec &spec) {
  int64_t measured = llvm::range_size(spec.getBody().getOps<AmaxOp>());
  return spec.transposes && spec.heldTensors > 0 && readsSeveral(spec) &&
         measured > spec.heldTensors && !hasExactMath(spec.op);
}

static int64_t countOperations(const FusionSpec &spec) {
  int64_t operations = 0;
  spec.getBody().walk([&](Operation *op) {
    operations += isa<linalg::LinalgOp>(op->getParentOp());
  });
  return operations;
}

/// Tensors that are quantized here and leave as numbers.
static int64_t countDecoded(const FusionSpec &spec) {
  return llvm::range_size(spec.getBody().getOps<DequantizeOp>());
}

/// Whether scales of blocks are computed here of a tensor that has one itself:
/// an exact division more for each, and what it takes waits for the tensor's.
static bool hasTensorScales(const FusionSpec &spec) {
  return llvm::any_of(
      spec.getBody().getOps<ComputeScaleOp>(),
      [](ComputeScaleOp scale) { return bool(scale.getTensorAmax()); });
}

/// Leaves those whose threads have the fewest places.
static void dropLongCode(SmallVectorImpl<KernelConfigAttrInterface> &configs) {
  auto getPlaces = [](KernelConfigAttrInterface attribute) {
    auto config = cast<FusionConfigAttr>(attribute);
    return config.getRows() * config.getChunks();
  };
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (KernelConfigAttrInterface config : configs)
    fewest = std::min(fewest, getPlaces(config));
  llvm::erase_if(configs, [&](KernelConfigAttrInterface config) {
    return getPlaces(config) > fewest;
  });
}

/// Whether the registers of a thread do not hold so many rows at once.
static bool loadsInTurn(const FusionSpec &spec, int64_t rows, int64_t warps,
                        int64_t resident) {
  auto config = FusionConfigAttr::get(FusionOp(spec.op).getContext(), rows,
                                      /*chunks=*/1, /*lanes=*/32, /*across=*/1,
                                      warps, /*cluster=*/1, resident);
  return getFusionRowsAhead(spec, config) < rows;
}

/// Whether they hold one while it is computed, if rows are loaded in turn.
static bool holdsRow(const FusionSpec &spec,
                     KernelConfigAttrInterface attribute) {
  auto config = cast<FusionConfigAttr>(attribute);
  return getFusionRowsAhead(spec, config) == config.getRows() ||
         getFusionRowRegisters(spec, config.getChunks()) <=
             getFusionRegisters(config);
}

/// Those first whose registers do.
static void
sortByRegisters(const FusionSpec &spec,
                SmallVectorImpl<KernelConfigAttrInterface> &configs) {
  SmallVector<KernelConfigAttrInterface> others;
  llvm::erase_if(configs, [&](KernelConfigAttrInterface config) {
    if (holdsRow(spec, config))
      return false;
    others.push_back(config);
    return true;
  });
  llvm::append_range(configs, others);
}

/// Tiles that are turned need several rows of a thread. Of several tensors a
/// multiprocessor has as many warps as leave a thread the registers of one.
static void
addSeveral(const FusionSpec &spec, TileModelAttr few, TileModelAttr usual,
           llvm::function_ref<void(int64_t, int64_t, int64_t, int64_t)> add) {
  if (!loadsInTurn(spec, few.getRows(), few.getWarps(), few.getResident()))
    return;
  int64_t threads = usual.getWarps() * 32, resident = 1;
  while (getFusionRowRegisters(spec, /*chunks=*/1) * threads * (resident + 1) <=
         65536)
    ++resident;
  add(few.getRows(), /*lanes=*/16, usual.getWarps(), resident);
}

namespace {
class FusionGenerator : public KernelGenerator {
public:
  SmallVector<KernelConfigAttrInterface>
  getCandidates(const KernelSpec &kernelSpec, GPUTargetAttr target,
                bool exhaustive) const override {
    const auto &spec = cast<FusionSpec>(kernelSpec);
    MLIRContext *context = target.getContext();
    SmallVector<KernelConfigAttrInterface> candidates;
    std::string unused;
    auto add = [&](FusionConfigAttr config) {
      // What registers hold; a pinned config may spill.
      if (spec.heldTensors > 1)
        return;
      if (config && succeeded(checkFit(spec, config, target, unused)) &&
          !llvm::is_contained(candidates, config))
        candidates.push_back(config);
    };
    FusionModelAttr model = getMachine(target).getFusion();
    auto addTile = [&](int64_t rows, int64_t lanes, int64_t warps,
                       int64_t resident) {
      if (!spec.reducesRows)
        add(makeTileConfig(context, spec, rows, lanes, warps, resident));
    };
    auto addRow = [&](int64_t rows, int64_t across, int64_t warps,
                      int64_t cluster, int64_t resident) {
      if (spec.reducesRows)
        add(makeRowConfig(context, spec, rows, across, warps, cluster,
                          resident));
    };
    int64_t numFull = llvm::count_if(spec.inputs, [&](const auto &input) {
      return spec.getBlock(input.layout).isFull();
    });
    bool isTile = spec.transposes || spec.blockRows > 1;
    int64_t lanes = isTile ? 16 : 32;
    auto addModel = [&](TileModelAttr tile) {
      int64_t rows = tile.getRows();
      // Many tensors take fewer rows: that is better than rows in turn.
      while (!isTile && rows > 1 &&
             loadsInTurn(spec, rows, tile.getWarps(), tile.getResident()))
        rows /= 2;
      addTile(rows, lanes, tile.getWarps(), tile.getResident());
    };
    if (spec.transposes && spec.blockRows == 1)
      addSeveral(spec, model.getFew(), model.getUsual(), addTile);
    if (measuresBoth(spec))
      addTile(/*rows=*/4, /*lanes=*/16, /*warps=*/16, /*resident=*/1);
    if (!isTile && spec.blockColumns > 1 && readsSeveral(spec))
      addModel(model.getCrowded());
    // What rows or columns have in common is waited for in the middle: there
    // another block goes on.
    bool waits = llvm::any_of(spec.inputs, [&](const auto &input) {
      FusionBlock block = spec.getBlock(input.layout);
      return !block.isFull() && !block.isSingle();
    });
    double tiles = static_cast<double>(getExtent(spec.rows, 8192)) *
                   getExtent(spec.columns, 8192) * getExtent(spec.batch, 1) /
                   model.getTileElements();
    // Rotations and random words want registers beside what is loaded, which
    // ptxas does not spill so.
    bool readsWide = llvm::any_of(spec.inputs, [&](const auto &input) {
      return spec.getBlock(input.layout).isFull() &&
             getElementTypeOrSelf(input.argument.getType()).isF32();
    });
    if (spec.rotatesRows && readsWide)
      addModel(model.getRotated());
    else if (spec.draws && !isTile)
      addModel(readsWide ? model.getDrawnWide() : model.getDrawn());
    // So do the addresses of what is not read 8 at a time, factors of columns
    // among it.
    bool makesPairs = llvm::any_of(FusionOp(spec.op).getResultTypes(),
                                   [](Type type) { return isPacked(type); });
    if (spec.transposes && waits && makesPairs &&
        getExtent(spec.columns, 1) % kChunk != 0)
      addModel(model.getUnaligned());
    TileModelAttr waiting = model.getWaiting();
    // The numbers of codes by rows and by columns are held at once, and so are
    // their scales.
    int64_t held = (countDecoded(spec) > 1 ? 2 : 1) *
                   (spec.blockColumns > 1 && hasTensorScales(spec) ? 2 : 1);
    if (spec.blockRows > 1 && held > 1)
      addTile(waiting.getRows() / held, lanes, waiting.getWarps(),
              waiting.getResident());
    if (spec.blockRows > 1 || (isTile && waits) ||
        (isTile && numFull == 1 && tiles < model.getFewestTiles()))
      addModel(waiting);
    if (isTile && tiles < model.getFewTiles() && !spec.draws)
      addModel(model.getFew());
    else if (isTile && numFull == 1)
      addModel(model.getMany());
    if (spec.blockRows == 1 && !spec.draws)
      addModel(model.getPlain());
    addModel(model.getUsual());
    if (!spec.draws)
      addModel(model.getCrowded());
    addModel(model.getSmall());
    bool isLong = countOperations(spec) >= kMinLongBody;
    if (isLong)
      addTile(/*rows=*/1, lanes, model.getUsual().getWarps(),
              model.getUsual().getResident());
    if (spec.transposes) {
      // 64 rows fill the lines that are written, if a block has them.
      int64_t across =
          llvm::divideCeil(getExtent(spec.columns, 4096), 32 * kChunk);
      if (across <= 4)
        addRow(8, across, 8 * across, /*cluster=*/1, /*resident=*/1);
    } else if (spec.blockRows > 1) {
      // Beside sums of columns the registers hold 4 rows of 2 chunks, without
      // spills if a block has 8 warps. Longer rows are better read twice.
      // With 32 warps, 64 registers of a thread, they do not hold 4 rows.
      int64_t rows = spec.blockRows > 64 ? 8 : 4;
      for (int64_t cluster : {1, 2, 4, 8})
        if (getExtent(spec.columns, 4096) <= 8 / rows * 32 * kChunk * cluster)
          addRow(rows, 1, spec.blockRows / rows, cluster, 1);
    } else {
      for (int64_t cluster : {1, 2, 4, 8})
        for (int64_t across : getWarpsAcross(
                 spec, cluster, model.getRowChunks(), model.getRowWarps())) {
          addRow(1, across, model.getRowWarps(), cluster,
                 model.getRowResident());
          addRow(2, across, model.getRowWarps(), cluster,
                 model.getRowResident());
        }
    }
    // Another machine's best four may be without it.
    if (FusionConfigAttr row = spec.hasInvariantSums
                                   ? getInvariantRow(context, spec)
                                   : FusionConfigAttr())
      addRow(1, row.getAcross(), model.getRowWarps(), row.getCluster(),
             model.getRowResident());
    if (!spec.reducesRows)
      sortByRegisters(spec, candidates);
    if (exhaustive)
      for (int64_t rows : {1, 2, 4, 8, 16})
        for (int64_t warps : {4, 8, 16, 32})
          for (int64_t resident : {1, 2, 3, 4}) {
            addTile(rows, 16, warps, resident);
            addTile(rows, 32, warps, resident);
            for (int64_t cluster : {1, 2, 4, 8})
              for (int64_t across = 1; across <= 16; ++across)
                addRow(rows, across, warps, cluster, resident);
          }
    else if (isLong)
      dropLongCode(candidates);
    return candidates;
  }

  FailureOr<KernelConfigAttrInterface>
  select(const KernelSpec &kernelSpec, GPUTargetAttr target,
         std::string &reason) const override {
    const auto &spec = cast<FusionSpec>(kernelSpec);
    if (!getCandidates(spec, target, /*exhaustive=*/false).empty())
      return KernelGenerator::select(spec, target, reason);
    llvm::raw_string_ostream os(reason);
    reason.clear();
    FusionSpec free = spec;
    free.hasInvariantSums = false;
    if (spec.hasInvariantSums &&
        !getCandidates(free, target, /*exhaustive=*/false).empty())
      os << "expected a tile that adds up rows as every invariant program does";
    else if (spec.heldTensors > 1)
      os << "expected one tensor to be quantized by blocks of rows, but got "
         << spec.heldTensors;
    else if (spec.rotatesRows && (spec.reducesRows || spec.heldRows > 1))
      os << "expected no more to be measured than blocks, beside a rotation of "
            "rows";
    else if (spec.reducesRows && spec.transposes)
      os << "expected a tile with 64 whole rows for a transposed result, but "
            "got "
         << spec.columns << " columns";
    else if (spec.reducesRows)
      os << "expected rows that the registers of a cluster hold, but got "
         << spec.columns << " columns";
    else
      os << "expected a tile that fits, for blocks of " << spec.blockRows
         << " x " << spec.blockColumns;
    return failure();
  }

  LogicalResult checkFit(const KernelSpec &kernelSpec,
                         KernelConfigAttrInterface attribute,
                         GPUTargetAttr target,
                         std::string &reason) const override {
    const auto &spec = cast<FusionSpec>(kernelSpec);
    auto config = dyn_cast<FusionConfigAttr>(attribute);
    auto fail = [&](const auto &...parts) {
      reason = llvm::formatv(parts...);
      return failure();
    };
    if (!config)
      return fail("expected a #fp8_fusion.config, but got {0}", attribute);
    // Also of what was not parsed, for which nobody verifies the attribute.
    if (config.getWarps() > kMaxWarps)
      return fail("expected at most {0} warps of a block, but got {1}",
                  kMaxWarps, config.getWarps());
    if (config.getRows() * config.getChunks() > kMaxPlaces)
      return fail("expected at most {0} rows and chunks of a thread, but got "
                  "{1}",
                  kMaxPlaces, config.getRows() * config.getChunks());
    if (spec.transposes && (config.getRows() < 4 || config.getTileRows() < 16))
      return fail("expected a thread with 4 rows and a tile with 16, to be "
                  "transposed, but got {0} and {1}",
                  config.getRows(), config.getTileRows());
    if (spec.blockRows > 1 && (config.getTileRows() % spec.blockRows != 0 ||
                               spec.blockRows % config.getRows() != 0))
      return fail("expected a tile of whole blocks of {0} rows, but got {1}",
                  spec.blockRows, config.getTileRows());
    if (config.getRows() > spec.leastRows)
      return fail("expected at most {0} rows of a thread, for blocks of as "
                  "many, but got {1}",
                  spec.leastRows, config.getRows());
    if (spec.rotatesRows &&
        config.getRows() * 32 / config.getLanes() < HadamardOp::kSize)
      return fail(
          "expected {0} rows of a warp, which are rotated together, but "
          "got {1}",
          HadamardOp::kSize, config.getRows() * 32 / config.getLanes());
    if (spec.drawsRows && config.getRows() % kPhiloxWords != 0)
      return fail("expected a multiple of {0} rows of a thread, whose numbers "
                  "are drawn together, but got {1}",
                  kPhiloxWords, config.getRows());
    if (config.getLanes() * kChunk < spec.blockColumns)
      return fail("expected lanes for blocks of {0} columns, but got {1}",
                  spec.blockColumns, config.getLanes());
    int64_t columns = config.getTileColumns() * config.getCluster();
    if (spec.reducesRows && columns < spec.columns)
      return fail("expected tiles of whole rows of {0}, but got {1}",
                  spec.columns, columns);
    if (config.getCluster() > 1 && !hasClusters(target))
      return fail("expected a row in one block, for {0} has no clusters, but "
                  "got {1}",
                  target.getChip(), config);
    if (config.getCluster() > 1 &&
        (!spec.reducesRows || config.getLanes() < config.getCluster()))
      return fail("expected a cluster to have whole rows, and no more blocks "
                  "than {0} lanes, but got {1}",
                  config.getLanes(), config.getCluster());
    if (failed(checkSums(spec, config, reason)))
      return failure();
    int64_t shared = getFusionSharedBytes(spec, config);
    if (shared > target.getSharedBytes())
      return fail("expected at most {0} bytes of shared memory, but got {1}",
                  target.getSharedBytes(), shared);
    return success();
  }

  double getCost(const KernelSpec &kernelSpec,
                 KernelConfigAttrInterface attribute,
                 GPUTargetAttr target) const override {
    const auto &spec = cast<FusionSpec>(kernelSpec);
    auto config = cast<FusionConfigAttr>(attribute);
    double blocks =
        static_cast<double>(
            llvm::divideCeil(spec.columns, config.getTileColumns())) *
        llvm::divideCeil(spec.rows, config.getTileRows()) * spec.batch;
    double rate = target.getMemoryRate() * target.getMultiprocessors();
    // What is moved; where blocks are few, the multiprocessors that have none.
    double busy = std::min(1.0, blocks / target.getMultiprocessors());
    return spec.getBytes() / (rate * std::max(busy, 1e-3));
  }

  std::string describeInvariance(const KernelSpec &kernelSpec,
                                 KernelConfigAttrInterface config,
                                 GPUTargetAttr target) const override {
    FusionSpec free = cast<FusionSpec>(kernelSpec);
    if (!free.hasInvariantSums)
      return "";
    free.hasInvariantSums = false;
    std::string text, unused;
    FailureOr<KernelConfigAttrInterface> other = select(free, target, unused);
    if (failed(other) ||
        succeeded(checkFit(kernelSpec, *other, target, unused)))
      return "";
    llvm::raw_string_ostream(text)
        << "rows are added up as in every such program, and not as by "
        << *other;
    return text;
  }

  std::string getLabel(const KernelSpec &kernelSpec) const override {
    const auto &spec = cast<FusionSpec>(kernelSpec);
    std::string label = spec.transposes ? "both" : "rows";
    if (spec.blockRows > 1 || spec.blockColumns > 1)
      label += llvm::formatv("_{0}x{1}", spec.blockRows, spec.blockColumns);
    if (spec.reducesRows)
      label += "_whole";
    return label;
  }

  FailureOr<LLVM::LLVMFuncOp> build(OpBuilder &builder, Location loc,
                                    const KernelSpec &kernelSpec,
                                    KernelConfigAttrInterface attribute,
                                    GPUTargetAttr target, StringRef name,
                                    std::string &reason) const override {
    if (failed(checkFit(kernelSpec, attribute, target, reason)))
      return failure();
    const auto &spec = cast<FusionSpec>(kernelSpec);
    auto config = cast<FusionConfigAttr>(attribute);
    OpBuilder::InsertionGuard guard(builder);
    FusionSignature fusion =
        getFusionSignature(builder.getContext(), spec, config);
    fusion.launch.overlap = hasDependentLaunches(target);
    LLVM::LLVMFuncOp function = fusion.signature.create(
        builder, loc, name, fusion.launch, getFusionMath(spec));
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      builder.getI32IntegerAttr(config.getResident()));
    builder.setInsertionPointToStart(function.addEntryBlock(builder));
    KernelBuilder b(loc, builder);
    Value shared;
    if (fusion.launch.sharedBytes != 0)
      shared = LLVM::AddressOfOp::create(
          b, LLVM::LLVMPointerType::get(builder.getContext(), 3),
          KernelSignature::kSharedName);
    llvm::StringMap<Value> params = fusion.signature.getParams(function);
    SmallVector<Value> captures;
    for (size_t i = 0; i < spec.captures.size(); ++i)
      captures.push_back(params.lookup("capture" + std::to_string(i)));
    buildFusionKernel(b, spec, config, params, fusion.inputs, fusion.outputs,
                      captures, shared, fusion.launch.overlap);
    return function;
  }
};
} // namespace

std::unique_ptr<KernelGenerator> fp8::createFusionGenerator() {
  return std::make_unique<FusionGenerator>();
}
