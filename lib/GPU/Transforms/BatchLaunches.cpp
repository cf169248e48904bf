//===- BatchLaunches.cpp - Small launches of a kernel become one ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelSymbols.h"
#include "MemoryAccesses.h"
#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "fp8/GPU/IR/FP8GPUDialect.h"
#include "fp8/GPU/IR/FP8GPUOps.h"
#include "fp8/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-batch-launches"

namespace mlir::fp8 {
#define GEN_PASS_DEF_BATCHLAUNCHESPASS
#include "fp8/GPU/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Marks a module whose functions have no two arguments that share memory.
static constexpr llvm::StringLiteral kDisjointAttrName = "fp8_gpu.disjoint";
/// Blocks of a launch, at most: more fill a GPU by themselves.
static constexpr int64_t kMaxBlocks = 1024;
/// Bytes of parameters that every driver takes.
static constexpr int64_t kMaxParamBytes = 4000;

namespace {
/// Launches of one kernel that may be one, at the place of the last.
struct Batch {
  SmallVector<LaunchOp> launches;
  Accesses accesses;
};

struct BatchLaunchesPass : fp8::impl::BatchLaunchesPassBase<BatchLaunchesPass> {
  using Base::Base;
  void runOnOperation() override;
  void batchFills(Block &block);
  void batchLaunches(Block &block);
  void merge(ArrayRef<LaunchOp> launches);
};
} // namespace

//===----------------------------------------------------------------------===//
// Which launches are taken
//===----------------------------------------------------------------------===//

/// The blocks of a launch of known sizes, none if they are not known.
static std::optional<int64_t> countBlocks(LaunchOp op) {
  LaunchAttr launch = op.getLaunch();
  SmallVector<Value> operands(op.getIns());
  llvm::append_range(operands, op.getOuts());
  SmallVector<Attribute> extents;
  Builder b(op.getContext());
  for (auto extent : launch.getExtents().getAsRange<KernelExtentAttr>()) {
    auto type = cast<MemRefType>(operands[extent.getArgument()].getType());
    extents.push_back(b.getIndexAttr(type.getDimSize(extent.getDim())));
  }
  SmallVector<Attribute> grid;
  if (failed(launch.getGrid().getValue().constantFold(extents, grid)) ||
      grid.size() != 1)
    return std::nullopt;
  return cast<IntegerAttr>(grid.front()).getInt();
}

static LLVM::LLVMFuncOp findKernel(LaunchOp op) {
  return SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
      op, op.getKernelAttr());
}

/// Whether the blocks of several launches of a kernel can be those of one.
static bool isTaken(LaunchOp op) {
  LaunchAttr launch = op.getLaunch();
  auto isPlain = [](Value value) {
    auto type = dyn_cast<MemRefType>(value.getType());
    return type && type.hasStaticShape() && type.getLayout().isIdentity();
  };
  if (launch.getCluster() != 1 || launch.getResident() != 0 ||
      launch.getWorkspaces() || !op.getCaptures().empty() ||
      !llvm::all_of(op.getIns(), isPlain) ||
      !llvm::all_of(op.getOuts(), isPlain) ||
      !llvm::all_of(
          launch.getParams(),
          llvm::IsaPred<PointerParamAttr, StrideParamAttr, ValueParamAttr>))
    return false;
  std::optional<int64_t> blocks = countBlocks(op);
  if (!blocks || *blocks == 0 || *blocks > kMaxBlocks)
    return false;
  LLVM::LLVMFuncOp kernel = findKernel(op);
  if (!kernel || kernel.isExternal() || kernel.getAllArgAttrs())
    return false;
  return !kernel
              .walk([](Operation *inner) {
                bool isOfGrid =
                    isa<NVVM::GridDimXOp, NVVM::BlockIdYOp, NVVM::BlockIdZOp>(
                        inner);
                return isOfGrid ? WalkResult::interrupt()
                                : WalkResult::advance();
              })
              .wasInterrupted();
}

/// What launches that become one have in common.
static auto getKey(LaunchOp op) {
  return std::pair<Attribute, Attribute>(
      op.getKernelAttr(),
      TypeAttr::get(FunctionType::get(op.getContext(), op.getOperandTypes(),
                                      TypeRange())));
}

static int64_t countParamBytes(LaunchOp op, int64_t launches) {
  int64_t bytes = 0;
  for (Attribute param : op.getLaunch().getParams())
    bytes += isa<PointerParamAttr>(param) ? 8 * launches : 8;
  return bytes;
}

//===----------------------------------------------------------------------===//
// One launch
//===----------------------------------------------------------------------===//

/// A launch that has an argument for each of several launches, or one where
/// all have the same.
namespace {
struct Merged {
  SmallVector<Value> ins, outs;
  /// The first of an argument's new numbers, and whether there are more.
  SmallVector<int64_t> first;
  SmallVector<bool> isShared;
  SmallVector<Attribute> arguments;
};
} // namespace

static Merged mergeArguments(ArrayRef<LaunchOp> launches) {
  LaunchOp front = launches.front();
  Merged merged;
  auto add = [&](unsigned number, SmallVector<Value> &list) {
    auto get = [&](LaunchOp op) {
      return number < op.getIns().size()
                 ? op.getIns()[number]
                 : op.getOuts()[number - op.getIns().size()];
    };
    bool isShared = llvm::all_of(
        launches, [&](LaunchOp op) { return get(op) == get(front); });
    merged.first.push_back(static_cast<int64_t>(merged.arguments.size()));
    merged.isShared.push_back(isShared);
    KernelArgumentAttr argument = front.getLaunch().getArgument(number);
    for (auto [n, op] : llvm::enumerate(launches)) {
      if (n > 0 && isShared)
        break;
      list.push_back(get(op));
      merged.arguments.push_back(KernelArgumentAttr::get(
          front.getContext(), (argument.getName() + "_" + Twine(n)).str(),
          argument.getElement(), argument.getRank(), argument.getAccess(),
          argument.getAlignment()));
    }
  };
  unsigned count = front.getLaunch().getArguments().size();
  for (unsigned number = 0; number < count; ++number)
    add(number, number < front.getIns().size() ? merged.ins : merged.outs);
  return merged;
}

/// How often each parameter is there, and the launch that has them.
static std::pair<LaunchAttr, SmallVector<int64_t>>
mergeLaunch(LaunchAttr launch, const Merged &merged, int64_t launches) {
  MLIRContext *context = launch.getContext();
  Builder b(context);
  SmallVector<Attribute> params, extents;
  SmallVector<int64_t> counts;
  for (Attribute param : launch.getParams()) {
    counts.push_back(1);
    if (auto pointer = dyn_cast<PointerParamAttr>(param)) {
      int64_t argument = pointer.getArgument();
      counts.back() = merged.isShared[argument] ? 1 : launches;
      for (int64_t n = 0; n < counts.back(); ++n)
        params.push_back(
            PointerParamAttr::get(context, merged.first[argument] + n));
    } else if (auto stride = dyn_cast<StrideParamAttr>(param)) {
      params.push_back(StrideParamAttr::get(
          context, merged.first[stride.getArgument()], stride.getDim()));
    } else {
      params.push_back(param);
    }
  }
  for (auto extent : launch.getExtents().getAsRange<KernelExtentAttr>())
    extents.push_back(KernelExtentAttr::get(context, extent.getName(),
                                            merged.first[extent.getArgument()],
                                            extent.getDim()));
  AffineMap grid = launch.getGrid().getValue();
  grid = AffineMap::get(grid.getNumDims(), grid.getNumSymbols(),
                        grid.getResult(0) * launches);
  return {LaunchAttr::get(context, b.getArrayAttr(merged.arguments),
                          b.getArrayAttr(extents), b.getArrayAttr(params),
                          AffineMapAttr::get(grid), launch.getBlock(),
                          launch.getCluster(), launch.getSharedBytes(),
                          launch.getResident(), launch.getOverlap(),
                          launch.getWorkspaces(), launch.getFlops()),
          counts};
}

/// Branches on which of `choices` a block is of: to `target`, with its own.
static void branch(OpBuilder &b, Location loc, Value number, int64_t first,
                   ArrayRef<SmallVector<Value>> choices, Block *target) {
  if (choices.size() == 1) {
    LLVM::BrOp::create(b, loc, choices.front(), target);
    return;
  }
  size_t half = choices.size() / 2;
  Region *region = target->getParent();
  auto *below = new Block, *above = new Block;
  region->getBlocks().insert(target->getIterator(), below);
  region->getBlocks().insert(target->getIterator(), above);
  int64_t middle = first + static_cast<int64_t>(half);
  Value bound = LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(middle));
  Value isBelow =
      LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ult, number, bound);
  LLVM::CondBrOp::create(b, loc, isBelow, below, above);
  b.setInsertionPointToStart(below);
  branch(b, loc, number, first, choices.take_front(half), target);
  b.setInsertionPointToStart(above);
  branch(b, loc, number, middle, choices.drop_front(half), target);
}

/// A kernel whose blocks are those of as many launches of another one as some
/// parameters are there.
static LLVM::LLVMFuncOp buildKernel(LLVM::LLVMFuncOp kernel, LaunchAttr launch,
                                    ArrayRef<int64_t> counts,
                                    int64_t launches) {
  OpBuilder b(kernel);
  Location loc = kernel.getLoc();
  SmallVector<Type> types;
  for (auto [type, count] : llvm::zip_equal(kernel.getArgumentTypes(), counts))
    types.append(count, type);
  auto made = LLVM::LLVMFuncOp::create(
      b, loc, (kernel.getName() + "_x" + Twine(launches)).str(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  types));
  for (NamedAttribute attribute : kernel->getDiscardableAttrs())
    made->setDiscardableAttr(attribute.getName(), attribute.getValue());
  made->setAttr(kLaunchAttrName, launch);

  Block *entry = made.addEntryBlock(b);
  IRMapping mapping;
  kernel.getBody().cloneInto(&made.getBody(), mapping);
  // The kernel's own beginning takes what was chosen.
  Block *body = mapping.lookup(&kernel.getBody().front());
  SmallVector<SmallVector<Value>> choices(launches);
  int64_t place = 0;
  for (int64_t count : counts) {
    for (int64_t n = 0; n < launches; ++n)
      choices[n].push_back(entry->getArgument(place + (count > 1 ? n : 0)));
    place += count;
  }
  b.setInsertionPointToStart(entry);
  Type i32 = b.getI32Type();
  Value block = NVVM::BlockIdXOp::create(b, loc, i32);
  Value grid = NVVM::GridDimXOp::create(b, loc, i32);
  Value number =
      LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(launches));
  Value blocks = LLVM::UDivOp::create(b, loc, grid, number);
  Value chosen = LLVM::UDivOp::create(b, loc, block, blocks);
  Value own = LLVM::URemOp::create(b, loc, block, blocks);
  branch(b, loc, chosen, 0, choices, body);
  SmallVector<NVVM::BlockIdXOp> reads;
  made.walk([&](NVVM::BlockIdXOp read) {
    if (read.getResult() != block)
      reads.push_back(read);
  });
  for (NVVM::BlockIdXOp read : reads) {
    read.getResult().replaceAllUsesWith(own);
    read.erase();
  }
  return made;
}

void BatchLaunchesPass::merge(ArrayRef<LaunchOp> launches) {
  LaunchOp last = launches.back();
  Merged merged = mergeArguments(launches);
  auto count = static_cast<int64_t>(launches.size());
  auto [launch, counts] = mergeLaunch(last.getLaunch(), merged, count);
  LLVM::LLVMFuncOp kernel = findKernel(last), made;
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  std::string name = (kernel.getName() + "_x" + Twine(count)).str();
  made = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
  if (made && made->getAttr(kLaunchAttrName) != launch)
    return; // The same kernel with other arguments in common.
  if (!made)
    made = buildKernel(kernel, launch, counts, count);
  LDBG() << count << " launches of " << kernel.getName() << " are one";
  OpBuilder b(last);
  auto symbol = cast<FunctionOpInterface>(made.getOperation());
  LaunchOp::create(b, last.getLoc(), TypeRange(), getKernelReference(symbol),
                   launch, merged.ins, ValueRange(), merged.outs);
  numBatched += launches.size() - 1;
  for (LaunchOp op : launches)
    op.erase();
}

void BatchLaunchesPass::batchLaunches(Block &block) {
  llvm::MapVector<std::pair<Attribute, Attribute>, Batch> open;
  SmallVector<SmallVector<LaunchOp>> done;
  auto close = [&](Batch &batch) {
    if (batch.launches.size() > 1)
      done.push_back(batch.launches);
    batch = Batch();
  };
  for (Operation &op : block) {
    Accesses accesses = findAccesses(&op);
    auto launch = dyn_cast<LaunchOp>(op);
    bool isOne = launch && isTaken(launch);
    for (auto &[key, batch] : open)
      if (conflict(batch.accesses, accesses) ||
          (isOne && key == getKey(launch) &&
           countParamBytes(launch, static_cast<int64_t>(batch.launches.size() +
                                                        1)) > kMaxParamBytes))
        close(batch);
    if (!isOne)
      continue;
    Batch &own = open[getKey(launch)];
    own.launches.push_back(launch);
    own.accesses.add(accesses);
  }
  for (auto &[key, batch] : open)
    close(batch);
  for (ArrayRef<LaunchOp> launches : done)
    merge(launches);
}

/// The argument that a fill, or a copy of another one, makes; null for what is
/// no such thing.
static Value getSmallTarget(Operation *op) {
  Value target;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    target = fill.getOutputs().front();
  else if (auto copy = dyn_cast<memref::CopyOp>(op);
           copy && isFunctionArgument(copy.getSource()) &&
           copy.getSource().getType() == copy.getTarget().getType())
    target = copy.getTarget();
  auto type =
      dyn_cast_if_present<MemRefType>(target ? target.getType() : Type());
  bool isSmall = type && type.hasStaticShape() && isFunctionArgument(target) &&
                 type.getNumElements() <= kMaxBlocks;
  return isSmall ? target : Value();
}

/// Whether the number of a fill is there in front of `first`.
static bool isKnownBefore(Operation *op, Operation *first) {
  auto fill = dyn_cast<linalg::FillOp>(op);
  Operation *number = fill ? fill.getInputs().front().getDefiningOp() : nullptr;
  return !number || number->getBlock() != first->getBlock() ||
         number->isBeforeInBlock(first);
}

/// Fills and copies of arguments of one type, at the place of the first.
static SmallVector<SmallVector<Operation *>> findFills(Block &block) {
  struct Fills {
    SmallVector<Operation *> ops;
    /// What others have accessed since the first.
    Accesses since;
  };
  llvm::MapVector<Type, Fills> open;
  SmallVector<SmallVector<Operation *>> done;
  for (Operation &op : block) {
    Accesses accesses = findAccesses(&op);
    Value target = getSmallTarget(&op);
    if (target) {
      Fills &fills = open[target.getType()];
      Accesses own;
      for (Operation *other : fills.ops) {
        own.add(findAccesses(other));
      }
      if (!fills.ops.empty() &&
          (conflict(fills.since, accesses) || conflict(own, accesses) ||
           !isKnownBefore(&op, fills.ops.front()))) {
        done.push_back(fills.ops);
        fills = Fills();
      }
      fills.ops.push_back(&op);
    }
    for (auto &[type, fills] : open) {
      if (target && type == target.getType())
        continue;
      fills.since.add(accesses);
    }
  }
  for (auto &[type, fills] : open)
    done.push_back(fills.ops);
  return done;
}

/// Such fills and copies become one loop over all.
void BatchLaunchesPass::batchFills(Block &block) {
  for (ArrayRef<Operation *> ops : findFills(block)) {
    if (ops.size() < 2)
      continue;
    OpBuilder b(ops.front());
    SmallVector<Value> sources, targets;
    for (Operation *op : ops) {
      targets.push_back(getSmallTarget(op));
      if (auto copy = dyn_cast<memref::CopyOp>(op))
        sources.push_back(copy.getSource());
    }
    int64_t rank = cast<MemRefType>(targets.front().getType()).getRank();
    SmallVector<AffineMap> maps(sources.size() + targets.size(),
                                b.getMultiDimIdentityMap(rank));
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    linalg::GenericOp::create(
        b, ops.front()->getLoc(), TypeRange(), sources, targets, maps, loops,
        [&](OpBuilder &inner, Location loc, ValueRange arguments) {
          SmallVector<Value> results;
          for (Operation *op : ops) {
            auto fill = dyn_cast<linalg::FillOp>(op);
            results.push_back(fill ? fill.getInputs().front()
                                   : arguments.front());
            arguments = arguments.drop_front(fill ? 0 : 1);
          }
          linalg::YieldOp::create(inner, loc, results);
        });
    numBatched += ops.size() - 1;
    for (Operation *op : ops)
      op->erase();
  }
}

void BatchLaunchesPass::runOnOperation() {
  if (!getOperation()->hasAttr(kDisjointAttrName))
    return markAllAnalysesPreserved();
  for (auto function : getOperation().getOps<FunctionOpInterface>())
    function->walk([&](Block *block) {
      batchFills(*block);
      batchLaunches(*block);
    });
}
