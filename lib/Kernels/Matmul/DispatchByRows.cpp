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

namespace mlir::fp8 {
#define GEN_PASS_DEF_DISPATCHBYROWSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// A config is that for one of these numbers of rows, and computes all down to
/// the number before; the last one also what is beyond.
static constexpr int64_t kRows[] = {16, 32, 64, 128, 256, 512, 1024, 4096};

/// One for a number in between needs another kernel. Products of codes with
/// factors of their own have it where the next one is expected to take so many
/// times as long: on an H200 it was up to 1.6. From 1024 rows on tiles fill
/// waves of blocks well or badly.
static constexpr int64_t kRowsBetween[] = {
    3072, 2048, 1536, 1280, 768, 640, 384, 320, 224, 192, 160, 96, 48, 24, 8};
static constexpr double kLeastGain = 1.08;

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
} // namespace

/// The fastest config for so many rows of all that `choices` have, or a new
/// one, which costs compile time, where those are expected to take longer.
static KernelConfigAttrInterface selectOrReuse(ArrayRef<FewRowsAttr> choices,
                                               const MatmulSpec &spec,
                                               int64_t rows,
                                               const KernelGenerator &generator,
                                               GPUTargetAttr target) {
  MatmulSpec known = spec;
  known.m = rows;
  std::string unused;
  auto getCost = [&](FewRowsAttr choice) {
    return generator.getCost(
        known, cast<KernelConfigAttrInterface>(choice.getConfig()), target);
  };
  FewRowsAttr best =
      *llvm::min_element(choices, [&](FewRowsAttr one, FewRowsAttr other) {
        return getCost(one) < getCost(other);
      });
  FailureOr<KernelConfigAttrInterface> config =
      generator.select(known, target, unused);
  if (failed(config) ||
      failed(generator.checkFit(spec, *config, target, unused)) ||
      getCost(best) <= kLeastGain * generator.getCost(known, *config, target))
    return cast<KernelConfigAttrInterface>(best.getConfig());
  return *config;
}

/// Adds to `choices`, whose last one is for `rows`, those in between the one
/// before it, for `before`, and it: from many rows to few, each beside the
/// next.
static void addBetween(SmallVectorImpl<FewRowsAttr> &choices,
                       const MatmulSpec &spec, int64_t before, int64_t rows,
                       const KernelGenerator &generator, GPUTargetAttr target) {
  if (!copiesFactors(spec.b.lifting) && !spec.isMicroscaled())
    return;
  size_t place = choices.size() - 1;
  for (int64_t between : kRowsBetween) {
    if (between <= before || between >= rows)
      continue;
    MatmulSpec known = spec;
    known.m = between;
    auto next = cast<KernelConfigAttrInterface>(choices[place].getConfig());
    KernelConfigAttrInterface config =
        selectOrReuse(choices, spec, between, generator, target);
    if (generator.getCost(known, config, target) * kLeastGain >
        generator.getCost(known, next, target))
      continue;
    choices.insert(choices.begin() + place,
                   FewRowsAttr::get(spec.a.elementType.getContext(), between,
                                    config, /*kernel=*/SymbolRefAttr()));
  }
}

/// Configs from few rows to many, neighbours different; none if the op's own
/// has to do, or does.
static SmallVector<FewRowsAttr> choose(MatmulOp op,
                                       const KernelTarget &target) {
  std::string unused;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, unused);
  // An amax that a launch records in place is of one launch.
  if (failed(spec) || spec->amax || !ShapedType::isDynamic(spec->m) ||
      llvm::any_of(ArrayRef{spec->n, spec->k, spec->batch},
                   ShapedType::isDynamic))
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
    int64_t first = std::max(before, least);
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
    if (!isInvariant(op))
      addBetween(choices, *spec, first, rows, *generator, target.attribute);
  }
  return choices;
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
