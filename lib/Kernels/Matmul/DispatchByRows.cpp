//===- DispatchByRows.cpp - A kernel for few rows and one for many --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: matmuls with a config. Leaves: those whose M shows at run time with
// others for few rows.
//
// Every kernel computes any M, but the fastest for 8 rows takes twice as long
// for 8192, and the other way around.
//
//===----------------------------------------------------------------------===//

#include "../TargetLookup.h"
#include "fp8/GPU/IR/FP8GPUDialect.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "fp8/Kernels/Passes.h"
#include "llvm/ADT/SmallVectorExtras.h"

#include <cmath>

namespace mlir::fp8 {
#define GEN_PASS_DEF_DISPATCHBYROWSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// A config is that for one of these numbers of rows, and computes all down to
/// the number before; the last one also what is beyond.
static constexpr int64_t kRows[] = {16, 32, 64, 128, 256, 512, 1024, 4096};

/// Those of which products whose codes kernels decode may have configs, too.
/// From 1024 rows on tiles fill waves of blocks well or badly.
static constexpr int64_t kRowsBetween[] = {
    8,   24,  48,  96,   160,  192,  224,  288,  320,  384,  448, 576,
    640, 768, 896, 1152, 1280, 1536, 1792, 2048, 2560, 3072, 3584};

/// So many configs at most, each of which is expected to lower the mean of
/// squared ratios to the least time by so much: those are worth a kernel.
static constexpr size_t kMaxKernels = 16;
static constexpr double kLeastGain = 0.008;

/// A config goes on where another one is expected to take hardly less: entries
/// stay few.
static constexpr double kMaxLoss = 1.01;

namespace {
struct DispatchByRowsPass
    : fp8::impl::DispatchByRowsPassBase<DispatchByRowsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }

  void runOnOperation() override;
};

/// A number of rows that stands for all down to the one before, and how often a
/// program is expected to have one of these: 8 to 16 as often as 2048 to 4096.
struct Rows {
  int64_t most;
  double share;
};

/// A config, and what it is expected to take for each of some `Rows`.
struct Candidate {
  KernelConfigAttrInterface config;
  SmallVector<double> costs;
};
} // namespace

/// All between `least` and `most`. Tiles have multiples of 8 rows; of many rows
/// a few more change little.
static SmallVector<Rows> getGrid(int64_t least, int64_t most) {
  SmallVector<Rows> grid;
  for (int64_t before = 0, rows = 0; rows < most; before = rows) {
    rows = std::min(before + (before < 512    ? 8
                              : before < 1024 ? 16
                                              : 32),
                    most);
    if (rows >= least)
      grid.push_back({rows, double(rows - before) / double(rows)});
  }
  return grid;
}

/// Moves to `chosen` those of `others` that lower the expected times most, one
/// after the other.
static void addWorthwhile(SmallVectorImpl<Candidate> &chosen,
                          SmallVectorImpl<Candidate> &others,
                          ArrayRef<Rows> grid) {
  SmallVector<double> costs(grid.size(), HUGE_VAL), least;
  auto lower = [](SmallVectorImpl<double> &costs, const Candidate &candidate) {
    for (auto [cost, own] : llvm::zip_equal(costs, candidate.costs))
      cost = std::min(cost, own);
  };
  for (const Candidate &candidate : chosen)
    lower(costs, candidate);
  least = costs;
  for (const Candidate &other : others)
    lower(least, other);
  double shares = 0;
  for (Rows rows : grid)
    shares += rows.share;
  auto getGain = [&](const Candidate &other) {
    double gain = 0;
    for (auto [rows, cost, own, best] :
         llvm::zip_equal(grid, costs, other.costs, least)) {
      double now = cost / best, then = std::min(cost, own) / best;
      gain += rows.share / shares * (now * now - then * then);
    }
    return gain;
  };
  while (chosen.size() < kMaxKernels && !others.empty()) {
    SmallVector<double> gains = llvm::map_to_vector(others, getGain);
    auto best = llvm::max_element(gains);
    if (*best < kLeastGain)
      return;
    auto *other = others.begin() + (best - gains.begin());
    lower(costs, *other);
    chosen.push_back(std::move(*other));
    others.erase(other);
  }
}

/// Which config is expected to be the fastest for how many rows, from `least`
/// on, of those in `choices` and of others that are worth a kernel: a config
/// may come back for more rows. The last one of `choices` stays what computes
/// all that is beyond it.
static SmallVector<FewRowsAttr> chooseFinely(ArrayRef<FewRowsAttr> choices,
                                             const MatmulSpec &spec,
                                             int64_t least,
                                             const KernelGenerator &generator,
                                             GPUTargetAttr target) {
  FewRowsAttr last = choices.back();
  SmallVector<Rows> grid = getGrid(least, last.getMost());
  MatmulSpec known = spec;
  llvm::SmallDenseSet<Attribute> seen;
  auto add = [&](SmallVectorImpl<Candidate> &candidates, Attribute attribute) {
    if (!seen.insert(attribute).second)
      return;
    auto config = cast<KernelConfigAttrInterface>(attribute);
    Candidate &added = candidates.emplace_back(Candidate{config, {}});
    for (Rows rows : grid) {
      known.m = rows.most;
      added.costs.push_back(generator.getCost(known, config, target));
    }
  };
  SmallVector<Candidate> chosen, others;
  for (FewRowsAttr choice : choices)
    add(chosen, choice.getConfig());
  // Others are not worth their kernels.
  bool isDecoded = spec.b.isLifted() || spec.isMicroscaled();
  for (int64_t rows : kRowsBetween) {
    if (!isDecoded || rows < least || rows >= last.getMost())
      continue;
    std::string unused;
    known.m = rows;
    FailureOr<KernelConfigAttrInterface> config =
        generator.select(known, target, unused);
    if (succeeded(config) &&
        succeeded(generator.checkFit(spec, *config, target, unused)))
      add(others, *config);
  }
  addWorthwhile(chosen, others, grid);

  SmallVector<FewRowsAttr> fine;
  const Candidate *current = nullptr;
  for (auto [i, rows] : llvm::enumerate(grid)) {
    auto getCost = [i = i](const Candidate &candidate) {
      return candidate.costs[i];
    };
    const Candidate *best = llvm::min_element(
        chosen, [&](const Candidate &one, const Candidate &other) {
          return getCost(one) < getCost(other);
        });
    if (!current || getCost(*current) > kMaxLoss * getCost(*best))
      current = best;
    else
      fine.pop_back();
    fine.push_back(FewRowsAttr::get(target.getContext(), rows.most,
                                    current->config,
                                    /*kernel=*/SymbolRefAttr()));
  }
  if (fine.back().getConfig() != last.getConfig())
    fine.push_back(last);
  return fine;
}

/// Configs from few rows to many, neighbours different; none if the op's own
/// has to do, or does. The last one computes what is beyond, too.
static SmallVector<FewRowsAttr> choose(MatmulOp op,
                                       const KernelTarget &target) {
  std::string unused;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, unused);
  // An amax that a launch records in place is of one launch.
  if (failed(spec) || spec->amax || !ShapedType::isDynamic(spec->m) ||
      llvm::any_of(ArrayRef{spec->n, spec->k, spec->batch},
                   ShapedType::isDynamic))
    return {};
  // Nothing takes no time, whatever computes it.
  if (spec->n == 0 || spec->k == 0 || spec->batch == 0)
    return {};
  const KernelGenerator *generator =
      target.architecture->getGenerator(*spec, unused);
  if (!generator)
    return {};
  auto own = op->getAttrOfType<KernelConfigAttrInterface>(kConfigAttrName);
  FailureOr<KernelConfigAttrInterface> usual =
      generator->select(*spec, target.attribute, unused);
  // One from a table, or given, stays.
  if (failed(usual) || *usual != own)
    return {};
  // Others are in another branch.
  int64_t least = 0, most = kRows[std::size(kRows) - 1];
  if (auto range = op->getAttrOfType<DenseI64ArrayAttr>(kRowsAttrName)) {
    least = range[0];
    most = std::min(most, range[1]);
  }
  SmallVector<FewRowsAttr> choices;
  int64_t before = 0;
  for (int64_t step : kRows) {
    int64_t rows = std::min(step, most);
    if (rows == before || rows < least)
      continue;
    before = rows;
    MatmulSpec known = *spec;
    known.m = rows;
    FailureOr<KernelConfigAttrInterface> config =
        generator->select(known, target.attribute, unused);
    if (failed(config) ||
        failed(generator->checkFit(*spec, *config, target.attribute, unused)))
      config = own;
    // For any number of rows `fp8-select-kernels` has said so.
    std::string remark =
        generator->describeInvariance(known, *config, target.attribute);
    if (!remark.empty())
      op->emitRemark() << "invariant: up to " << rows << " rows: " << remark;
    if (!choices.empty() && choices.back().getConfig() == *config)
      choices.pop_back();
    choices.push_back(FewRowsAttr::get(op.getContext(), rows, *config,
                                       /*kernel=*/SymbolRefAttr()));
  }
  if (choices.empty() || isInvariant(op))
    return choices;
  return chooseFinely(choices, *spec, least, *generator, target.attribute);
}

void DispatchByRowsPass::runOnOperation() {
  SmallVector<MatmulOp> ops;
  getOperation().walk([&](MatmulOp op) {
    if (op->hasAttr(kConfigAttrName))
      ops.push_back(op);
  });
  if (ops.empty())
    return markAllAnalysesPreserved();
  FailureOr<KernelTarget> target = lookupTarget(getOperation());
  if (failed(target))
    return signalPassFailure();
  for (MatmulOp op : ops) {
    SmallVector<FewRowsAttr> choices = choose(op, *target);
    if (choices.empty())
      continue;
    op->setAttr(kConfigAttrName, choices.pop_back_val().getConfig());
    if (choices.empty())
      continue;
    op->setAttr(
        kFewRowsAttrName,
        ArrayAttr::get(&getContext(),
                       SmallVector<Attribute>(choices.begin(), choices.end())));
    ++numChosen;
  }
}
