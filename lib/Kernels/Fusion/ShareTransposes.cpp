//===- ShareTransposes.cpp - When copies of codes are made ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../TargetLookup.h"
#include "FusionParts.h"
#include "HighPrecisionMemory.h"
#include "fp8/Analysis/TensorMemory.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/ScopedPrinter.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>

#define DEBUG_TYPE "fp8-share-transposes"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SHARETRANSPOSESPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// Codes that a fusion writes beside other results, and that are needed later
/// than it.
struct Copy {
  FusionOp fusion;
  /// Numbers of the results: the codes, then factors that nobody else needs.
  SmallVector<unsigned> results;
  /// What puts codes and factors together.
  SmallVector<AssembleOp> assembles;
  Operation *firstUser;
  double bytes = 0;
};

/// Another way to make a copy, in front of its first user.
struct Way {
  enum class Kind { Transpose, QuantizeAgain };
  Kind kind;
  /// Microseconds that it takes, and bytes by which the peak falls.
  double time, saved;
  MemoryProfile profile;

  /// Microseconds for a byte, of which no more than `wanted` count.
  double getPrice(double wanted) const {
    return time / std::min(saved, wanted);
  }
};

struct ShareTransposesPass
    : fp8::impl::ShareTransposesPassBase<ShareTransposesPass> {
  using Base::Base;

  void runOnOperation() override;
  void share(Block &block, GPUTargetAttr target);
  void keepPeak(Block &block, GPUTargetAttr target);
  void take(Copy &copy, const Way &way);
};
} // namespace

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static bool isCodes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return isa<FloatType>(type.getElementType()) &&
         type.getElementTypeBitWidth() == 8 && isLarge(type) &&
         !isa<Float8E8M0FNUType>(type.getElementType());
}

/// The first operation of the block that computes with `values`, or views of
/// them; null if something outside of the block does, or nothing.
static Operation *getFirstUser(ValueRange values, Block &block) {
  Operation *first = nullptr;
  llvm::SetVector<Value> all;
  all.insert_range(values);
  for (size_t i = 0; i < all.size(); ++i)
    for (Operation *user : all[i].getUsers()) {
      Operation *inBlock = block.findAncestorOpInBlock(*user);
      if (!inBlock)
        return nullptr;
      if (isViewOfTensor(user))
        all.insert_range(user->getResults());
      else if (!first || inBlock->isBeforeInBlock(first))
        first = inBlock;
    }
  return first;
}

/// The copy that result `number` is; nothing if it is no codes, or codes of
/// which not only scaled values are made.
static std::optional<Copy> getCopy(FusionOp fusion, unsigned number) {
  Value codes = fusion.getResult(number);
  Copy copy{fusion, {number}, {}, nullptr};
  if (!isCodes(codes) || codes.use_empty())
    return std::nullopt;
  for (Operation *user : codes.getUsers()) {
    auto assemble = dyn_cast<AssembleOp>(user);
    if (!assemble || assemble->getBlock() != fusion->getBlock())
      return std::nullopt;
    copy.assembles.push_back(assemble);
  }
  // One that is its own factors' only user takes them along.
  for (OpResult factors : fusion.getResults())
    if (factors != codes && !factors.use_empty() &&
        llvm::all_of(factors.getUsers(), [&](Operation *user) {
          return llvm::is_contained(copy.assembles, user);
        }))
      copy.results.push_back(factors.getResultNumber());
  if (copy.results.size() == fusion.getNumResults())
    return std::nullopt;
  SmallVector<Value> scaled;
  for (AssembleOp assemble : copy.assembles)
    scaled.push_back(assemble.getResult());
  copy.firstUser = getFirstUser(scaled, *fusion->getBlock());
  if (!copy.firstUser)
    return std::nullopt;
  for (unsigned result : copy.results) {
    std::optional<double> bytes = getBytes(fusion.getResult(result).getType());
    if (!bytes)
      return std::nullopt;
    copy.bytes += *bytes;
  }
  return copy;
}

//===----------------------------------------------------------------------===//
// Transposing
//===----------------------------------------------------------------------===//

/// The transpose in the body that makes the codes of `copy`.
static TransposeOp getTranspose(Copy &copy) {
  Value yielded = getTerminator(copy.fusion)->getOperand(copy.results.front());
  auto parts = yielded.getDefiningOp<DisassembleOp>();
  return parts ? parts.getSource().getDefiningOp<TransposeOp>() : TransposeOp();
}

/// What puts together, outside of the fusion, what `copy` is the transpose of,
/// if that is needed anyway.
static AssembleOp getTransposed(Copy &copy) {
  TransposeOp transpose = getTranspose(copy);
  if (!transpose || copy.assembles.size() != 1 ||
      transpose.getType() != copy.assembles.front().getType())
    return {};
  for (auto [result, yielded] :
       llvm::zip_equal(copy.fusion.getResults(),
                       getTerminator(copy.fusion)->getOperands())) {
    auto parts = yielded.getDefiningOp<DisassembleOp>();
    if (!parts || parts.getSource() != transpose.getSource() ||
        yielded != parts.getPayload())
      continue;
    for (Operation *user : result.getUsers())
      if (auto assemble = dyn_cast<AssembleOp>(user);
          assemble && assemble->getBlock() == copy.fusion->getBlock() &&
          assemble.getPayload() == result &&
          assemble.getType() == transpose.getSource().getType() &&
          getLastUser(assemble.getResult(), *assemble->getBlock()))
        return assemble;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

static double getTime(double bytes, GPUTargetAttr target) {
  return bytes / (target.getMemoryPeak() * 1e3) + target.getLaunchTime() * 1e-3;
}

/// `profile` with the copy in memory from its first user on.
static MemoryProfile delay(Copy &copy, MemoryProfile profile) {
  profile.add(copy.fusion, copy.firstUser, -copy.bytes);
  return profile;
}

static std::optional<Way>
getTransposing(Copy &copy, const MemoryProfile &profile, GPUTargetAttr target) {
  AssembleOp source = getTransposed(copy);
  if (!source)
    return std::nullopt;
  Way way{Way::Kind::Transpose, getTime(copy.bytes, target), 0,
          delay(copy, profile)};
  Operation *last = getLastUser(source.getPayload(), *source->getBlock());
  if (last->isBeforeInBlock(copy.firstUser))
    way.profile.add(last->getNextNode(), copy.firstUser->getNextNode(),
                    copy.bytes);
  way.saved = profile.getPeak() - way.profile.getPeak();
  return way;
}

/// What of the fusion's inputs the copy is made of.
static llvm::SetVector<Value> getInputs(Copy &copy) {
  SmallVector<Value> yields;
  for (unsigned result : copy.results)
    yields.push_back(getTerminator(copy.fusion)->getOperand(result));
  llvm::SetVector<Value> inputs;
  auto add = [&](Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value);
        argument && argument.getOwner() == &copy.fusion.getBody().front())
      inputs.insert(copy.fusion.getInputs()[argument.getArgNumber()]);
  };
  llvm::for_each(yields, add);
  for (Operation *op : getSlice(yields))
    walkOperands(op, add);
  return inputs;
}

/// Whether `value` is in memory when `user` runs, whatever else happens.
static bool isThere(Value value, Operation *user) {
  if (!isa<ShapedType>(value.getType()))
    return true;
  SmallVector<Value> roots{value};
  while (!roots.empty()) {
    Value root = roots.pop_back_val();
    Operation *op = root.getDefiningOp();
    if (op && isViewOfTensor(op)) {
      roots.append(op->operand_begin(), op->operand_end());
      continue;
    }
    // Factors are small.
    if (!op || op->getBlock() != user->getBlock() || !isLarge(root.getType()) ||
        op->hasTrait<OpTrait::ConstantLike>())
      continue;
    Operation *last = getLastUser(root, *user->getBlock());
    if (!last || last->isBeforeInBlock(user))
      return false;
  }
  return true;
}

static std::optional<Way> getQuantizingAgain(Copy &copy,
                                             const MemoryProfile &profile,
                                             GPUTargetAttr target) {
  double read = 0;
  for (Value input : getInputs(copy)) {
    std::optional<double> bytes = getBytes(input.getType());
    if ((!bytes && isa<ShapedType>(input.getType())) ||
        !isThere(input, copy.firstUser))
      return std::nullopt;
    read += bytes.value_or(0);
  }
  Way way{Way::Kind::QuantizeAgain, getTime(read, target), 0,
          delay(copy, profile)};
  way.saved = profile.getPeak() - way.profile.getPeak();
  return way;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

/// The way that takes least for a byte, of the first `wanted` that it saves.
static std::optional<Way>
choose(Copy &copy, const MemoryProfile &profile, GPUTargetAttr target,
       double wanted = std::numeric_limits<double>::infinity()) {
  std::optional<Way> best;
  for (std::optional<Way> way : {getTransposing(copy, profile, target),
                                 getQuantizingAgain(copy, profile, target)}) {
    if (!way || way->saved <= 0)
      continue;
    LDBG() << (way->kind == Way::Kind::Transpose ? "transposing" : "quantizing")
           << " later saves " << way->saved << " bytes for " << way->time
           << " us: " << copy.fusion.getResult(copy.results.front()).getType();
    if (!best || way->getPrice(wanted) < best->getPrice(wanted))
      best = std::move(way);
  }
  return best;
}

/// Moves what views the copy to its first user, in the order that it has.
static void delayViews(Copy &copy) {
  llvm::SetVector<Operation *> views;
  views.insert(copy.assembles.begin(), copy.assembles.end());
  for (size_t i = 0; i < views.size(); ++i)
    for (Operation *user : views[i]->getUsers())
      if (isViewOfTensor(user) &&
          user->getBlock() == copy.firstUser->getBlock())
        views.insert(user);
  SmallVector<Operation *> ordered = views.takeVector();
  llvm::sort(ordered,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *view : ordered)
    if (view->isBeforeInBlock(copy.firstUser))
      view->moveBefore(copy.firstUser);
}

void ShareTransposesPass::take(Copy &copy, const Way &way) {
  bool transposes = way.kind == Way::Kind::Transpose;
  std::string text;
  llvm::raw_string_ostream(text)
      << (transposes ? "codes are transposed" : "quantized again")
      << " when they are needed: the peak of memory falls by "
      << llvm::format("%.2f MB for %.1f us", way.saved * 1e-6, way.time);
  emitRemark(copy.fusion.getLoc())
      << copy.fusion.getResult(copy.results.front()).getType() << ": " << text;

  delayViews(copy);
  if (transposes) {
    OpBuilder b(copy.assembles.front());
    AssembleOp source = getTransposed(copy);
    Value codes = b.clone(*source)->getResult(0);
    Value transposed = TransposeOp::create(b, copy.fusion.getLoc(), codes,
                                           getTranspose(copy).getPermutation());
    copy.assembles.front().replaceAllUsesWith(transposed);
    copy.assembles.front().erase();
    ++numTransposed;
    return;
  }
  SmallVector<Value> yields;
  for (unsigned result : copy.results)
    yields.push_back(getTerminator(copy.fusion)->getOperand(result));
  FusionOp again = extractFusion(copy.fusion, yields);
  again->moveBefore(
      *llvm::min_element(copy.assembles, [](AssembleOp a, AssembleOp b) {
        return a->isBeforeInBlock(b);
      }));
  for (auto [number, result] :
       llvm::zip_equal(copy.results, again.getResults()))
    copy.fusion.getResult(number).replaceAllUsesWith(result);
  ++numQuantizedAgain;
}

/// Without the results that nobody needs any more.
static void dropUnused(FusionOp fusion) {
  SmallVector<Value> yields;
  SmallVector<OpResult> used;
  for (OpResult result : fusion.getResults())
    if (!result.use_empty()) {
      yields.push_back(
          getTerminator(fusion)->getOperand(result.getResultNumber()));
      used.push_back(result);
    }
  if (used.size() == fusion.getNumResults())
    return;
  FusionOp rest = extractFusion(fusion, yields);
  for (auto [old, result] : llvm::zip_equal(used, rest.getResults()))
    old.replaceAllUsesWith(result);
  fusion.erase();
}

void ShareTransposesPass::share(Block &block, GPUTargetAttr target) {
  SmallVector<FusionOp> fusions(block.getOps<FusionOp>());
  for (FusionOp fusion : fusions) {
    // Operations change places and fusions their results.
    bool isChanged = false;
    for (unsigned number = 0; number < fusion.getNumResults(); ++number) {
      std::optional<Copy> copy = getCopy(fusion, number);
      std::optional<MemoryProfile> profile =
          copy ? MemoryProfile::get(block) : std::nullopt;
      if (!profile)
        continue;
      if (auto way = choose(*copy, *profile, target);
          way && way->saved * 1e-6 * memoryPrice >= way->time) {
        take(*copy, *way);
        isChanged = true;
      }
    }
    if (isChanged)
      dropUnused(fusion);
  }
}

/// One copy at a time, that which takes least for what it saves.
void ShareTransposesPass::keepPeak(Block &block, GPUTargetAttr target) {
  std::optional<MemoryProfile> profile = MemoryProfile::get(block);
  if (!profile)
    return;
  double most = getPeakInHighPrecision(block, *profile);
  while (profile && profile->getPeak() > most) {
    double excess = profile->getPeak() - most;
    std::optional<Way> best;
    std::optional<Copy> cheapest;
    for (FusionOp fusion : block.getOps<FusionOp>())
      for (unsigned number = 0; number < fusion.getNumResults(); ++number) {
        std::optional<Copy> copy = getCopy(fusion, number);
        std::optional<Way> way =
            copy ? choose(*copy, *profile, target, excess) : std::nullopt;
        if (way && (!best || way->getPrice(excess) < best->getPrice(excess))) {
          best = std::move(way);
          cheapest = std::move(copy);
        }
      }
    if (!best)
      return;
    FusionOp fusion = cheapest->fusion;
    take(*cheapest, *best);
    dropUnused(fusion);
    profile = MemoryProfile::get(block);
  }
}

void ShareTransposesPass::runOnOperation() {
  if (!(memoryPrice >= 0.0)) {
    emitError(getOperation().getLoc(),
              "expected memory-price to be a number that is not negative, but "
              "got ")
        << llvm::to_string(llvm::format("%g", double(memoryPrice)));
    return signalPassFailure();
  }
  if (memoryPrice == 0 && !keepsPeak)
    return markAllAnalysesPreserved();
  FailureOr<KernelTarget> target = lookupTarget(getOperation());
  if (failed(target))
    return signalPassFailure();
  if (target->attribute.getMemoryPeak() == 0) {
    if (memoryPrice == 0)
      return markAllAnalysesPreserved();
    emitError(getOperation().getLoc(),
              "expected a target whose memory_peak is known with memory-price");
    return signalPassFailure();
  }
  SmallVector<Block *> blocks;
  getOperation().walk([&](FunctionOpInterface function) {
    for (Block &block : function.getFunctionBody())
      blocks.push_back(&block);
  });
  for (Block *block : blocks) {
    if (memoryPrice > 0)
      share(*block, target->attribute);
    if (keepsPeak)
      keepPeak(*block, target->attribute);
  }
}
