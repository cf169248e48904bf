//===- SaveQuantized.cpp - Keep what later functions quantize -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: quantizes that name a recipe, at the source of data movement. Leaves:
// those of arguments marked `fp8.saved` in the function that marks the same
// tensor `fp8.save`; payloads and factors go from one to the other.
//
// Runs before scales are given, so that an amax and a scale move with their
// quantize, and before state is allocated, so that both functions share a slot.
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/QuantizeUses.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SAVEQUANTIZEDPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// A tensor that one function makes or takes and others take.
struct Link {
  func::FuncOp source;
  bool isResult = false;
  SmallVector<func::FuncOp> readers;
};

/// A copy of an operation, with the name of its codes or "".
using Created = std::pair<Operation *, std::string>;

/// What a reader computes of its argument and nothing else.
struct Slice {
  BlockArgument argument;
  /// In the order of the block.
  SetVector<Operation *> ops;
  /// The scaled values that the rest of the function reads.
  SetVector<Value> codes;
  /// Reads of extents by the rest of the function.
  SmallVector<tensor::DimOp> dims;
};

struct SaveQuantizedPass : fp8::impl::SaveQuantizedPassBase<SaveQuantizedPass> {
  using Base::Base;
  void runOnOperation() override;
  LogicalResult collect(llvm::MapVector<StringAttr, Link> &links);
  void move(StringAttr id, const Link &link);
};

} // namespace

//===----------------------------------------------------------------------===//
// Links
//===----------------------------------------------------------------------===//

static std::optional<unsigned> findArgument(func::FuncOp function,
                                            StringRef mark, StringAttr id) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (function.getArgAttr(i, mark) == id)
      return i;
  return std::nullopt;
}

static std::optional<unsigned> findResult(func::FuncOp function,
                                          StringAttr id) {
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (function.getResultAttr(i, kSaveAttrName) == id)
      return i;
  return std::nullopt;
}

static Type getType(const Link &link, StringAttr id) {
  func::FuncOp function = link.source;
  if (link.isResult)
    return function.getResultTypes()[*findResult(function, id)];
  return function
      .getArgumentTypes()[*findArgument(function, kSaveAttrName, id)];
}

LogicalResult
SaveQuantizedPass::collect(llvm::MapVector<StringAttr, Link> &links) {
  auto addSource = [&](func::FuncOp function, StringAttr id, bool isResult) {
    if (!id)
      return success();
    Link &link = links[id];
    if (link.source)
      return LogicalResult(function.emitOpError("expected one tensor with '")
                           << kSaveAttrName << "' = " << id
                           << ", but got another one");
    link.source = function;
    link.isResult = isResult;
    auto type = dyn_cast<RankedTensorType>(getType(link, id));
    if (!type || !isa<FloatType>(type.getElementType()))
      return LogicalResult(function.emitOpError("expected what has '")
                           << kSaveAttrName << "' = " << id
                           << " to be a tensor of floats, but got "
                           << getType(link, id));
    return success();
  };
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (failed(addSource(
              function, function.getArgAttrOfType<StringAttr>(i, kSaveAttrName),
              false)))
        return failure();
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (failed(addSource(
              function,
              function.getResultAttrOfType<StringAttr>(i, kSaveAttrName),
              true)))
        return failure();
  }
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto id = function.getArgAttrOfType<StringAttr>(i, kSavedAttrName);
      if (!id)
        continue;
      auto link = links.find(id);
      if (link == links.end())
        return function.emitOpError("expected a tensor of the module to have '")
               << kSaveAttrName << "' = " << id << ", as argument " << i
               << " has '" << kSavedAttrName << "', but got none";
      if (link->second.source == function)
        return function.emitOpError("expected another function to have '")
               << kSaveAttrName << "' = " << id << ", as argument " << i
               << " has '" << kSavedAttrName << "', but got its own";
      if (llvm::is_contained(link->second.readers, function))
        return function.emitOpError("expected one argument with '")
               << kSavedAttrName << "' = " << id << ", but got another one";
      if (Type type = getType(link->second, id);
          type != function.getArgumentTypes()[i])
        return function.emitOpError("expected argument ")
               << i << " to be what was saved as " << id << ", " << type
               << ", but got " << function.getArgumentTypes()[i];
      link->second.readers.push_back(function);
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Whether a value is a constant, or computed of extents of the argument only.
static bool isIndexOf(Value value, const Slice &slice) {
  if (matchPattern(value, m_Constant()))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return dim.getSource() == slice.argument && dim.getConstantIndex();
  return isa<arith::ArithDialect, affine::AffineDialect>(op->getDialect()) &&
         isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isIndexOf(operand, slice); });
}

/// Whether an operation can be where its tensor comes from.
static bool isMovable(Operation *op, const Slice &slice) {
  if (auto quantize = dyn_cast<QuantizeOp>(op)) {
    if (!quantize.isUnresolved())
      return false;
    // Codes of less than a byte have no form in which functions return them.
    ScaledType type = quantize.getResult().getType();
    return type.getElementType().getIntOrFloatBitWidth() == 8;
  }
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    if (!pad.getConstantPaddingValue())
      return false;
  } else if (!isa<TransposeOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                  tensor::CastOp>(op)) {
    return false;
  }
  return llvm::all_of(op->getOperands().drop_front(),
                      [&](Value operand) { return isIndexOf(operand, slice); });
}

/// What pads the codes that `parts` takes apart and puts them together again,
/// and is all that is done with them; none if that is not so.
static SmallVector<Operation *> findPadding(DisassembleOp parts) {
  Block *block = parts->getBlock();
  if (!parts.getPayload().hasOneUse())
    return {};
  auto pad = dyn_cast<tensor::PadOp>(*parts.getPayload().user_begin());
  if (!pad || !pad.getConstantPaddingValue() || !pad.getResult().hasOneUse() ||
      !pad.getLow().empty() || !pad.getHigh().empty())
    return {};
  auto codes = dyn_cast<AssembleOp>(*pad.getResult().user_begin());
  if (!codes ||
      !llvm::all_of(
          parts->getUsers(),
          [&](Operation *user) { return user == pad || user == codes; }) ||
      pad->getBlock() != block || codes->getBlock() != block)
    return {};
  return {parts, pad, codes};
}

/// Which dimension of `argument` a dimension of `value` is, where the way from
/// one to the other only permutes.
static std::optional<int64_t> findDimension(Value value, int64_t dimension,
                                            BlockArgument argument) {
  while (value != argument) {
    Operation *op = value.getDefiningOp();
    if (auto transpose = dyn_cast<TransposeOp>(op))
      dimension = transpose.getPermutation()[dimension];
    else if (!isa<QuantizeOp>(op))
      return std::nullopt; // It may be longer, or of several.
    value = op->getOperand(0);
  }
  return dimension;
}

/// Fills `slice` with what is computed of its argument alone. Says why not,
/// where the argument itself is needed.
static FailureOr<Slice> computeSlice(BlockArgument argument,
                                     std::string &reason) {
  Slice slice;
  slice.argument = argument;
  SmallVector<Value> worklist{argument};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (use.getOperandNumber() == 0 &&
          user->getBlock() == argument.getOwner() && isMovable(user, slice)) {
        if (slice.ops.insert(user))
          worklist.push_back(user->getResult(0));
        continue;
      }
      if (auto parts = dyn_cast<DisassembleOp>(user);
          parts && parts->getBlock() == argument.getOwner())
        if (SmallVector<Operation *> padding = findPadding(parts);
            !padding.empty()) {
          slice.ops.insert_range(padding);
          worklist.push_back(padding.back()->getResult(0));
          continue;
        }
      auto dim = dyn_cast<tensor::DimOp>(user);
      if (dim && value == argument && dim.getConstantIndex()) {
        slice.dims.push_back(dim);
        continue;
      }
      if (!isa<ScaledType>(value.getType())) {
        reason = "'" + user->getName().getStringRef().str() + "' reads it";
        return failure();
      }
      slice.codes.insert(value);
    }
  }
  auto isBefore = [](Operation *a, Operation *b) {
    return a->isBeforeInBlock(b);
  };
  SmallVector<Operation *> ops = slice.ops.takeVector();
  llvm::sort(ops, isBefore);
  slice.ops.insert_range(ops);
  SmallVector<Value> codes = slice.codes.takeVector();
  llvm::sort(codes, [&](Value a, Value b) {
    return isBefore(a.getDefiningOp(), b.getDefiningOp());
  });
  slice.codes.insert_range(codes);
  if (!slice.dims.empty() && llvm::none_of(slice.codes, [&](Value code) {
        return findDimension(code, 0, argument).has_value();
      })) {
    reason = "its extents are read";
    return failure();
  }
  return slice;
}

//===----------------------------------------------------------------------===//
// Move
//===----------------------------------------------------------------------===//

/// What `op` would be with these operands, if the block has it already.
static Operation *findEqual(Operation *op, const IRMapping &mapping,
                            Block *block) {
  if (op->getNumOperands() == 0)
    return nullptr;
  for (Operation *user : mapping.lookup(op->getOperand(0)).getUsers()) {
    if (user->getBlock() != block || user->getName() != op->getName())
      continue;
    auto isSame = [&](Value ours, Value theirs) {
      Attribute our, their;
      return success(mapping.lookupOrDefault(ours) == theirs ||
                     (ours.getType() == theirs.getType() &&
                      matchPattern(ours, m_Constant(&our)) &&
                      matchPattern(theirs, m_Constant(&their)) &&
                      our == their));
    };
    if (OperationEquivalence::isEquivalentTo(
            op, user, isSame, /*markEquivalent=*/nullptr,
            OperationEquivalence::IgnoreLocations))
      return user;
  }
  return nullptr;
}

/// The codes that a slice transposes last and their transposes, in one order.
static SmallVector<std::pair<Value, Value>> listTransposed(const Slice &slice) {
  SmallVector<std::pair<Value, Value>> transposed;
  for (Value code : slice.codes)
    if (auto transpose = code.getDefiningOp<TransposeOp>();
        transpose && isa<ScaledType>(transpose.getSource().getType()) &&
        llvm::none_of(code.getUsers(), [&](Operation *user) {
          return slice.ops.contains(user);
        }))
      transposed.emplace_back(transpose.getSource(), code);
  return transposed;
}

/// What is there of a slice where its tensor comes from.
static IRMapping mapToEqual(const Slice &slice, Value source, Block *block) {
  IRMapping mapping;
  mapping.map(slice.argument, source);
  for (Operation *op : slice.ops)
    if (op->getNumOperands() != 0 && mapping.contains(op->getOperand(0)))
      if (Operation *equal = findEqual(op, mapping, block))
        mapping.map(op->getResults(), equal->getResults());
  return mapping;
}

/// Whether another reader takes what `value` of a slice is.
static bool isTakenByOthers(Value value, const Slice &slice,
                            ArrayRef<Slice> slices) {
  for (const Slice &other : slices) {
    // As if the other argument were the source of this slice.
    IRMapping mapping =
        mapToEqual(slice, other.argument, other.argument.getOwner());
    if (Value same = mapping.lookupOrNull(value);
        same && other.codes.contains(same))
      return true;
  }
  return false;
}

/// Leaves transposes with the readers where codes in the order before are saved
/// anyway, or are there where the tensor comes from.
static void leaveTransposes(MutableArrayRef<Slice> slices, Value source,
                            StringAttr id) {
  for (Slice &slice : slices) {
    SmallVector<Value> saved(slice.codes.getArrayRef());
    for (auto [codes, transposed] : listTransposed(slice)) {
      if (!mapToEqual(slice, source, source.getParentBlock()).contains(codes) &&
          !isTakenByOthers(codes, slice, slices))
        continue;
      *llvm::find(saved, transposed) = codes;
      slice.ops.remove(transposed.getDefiningOp());
      emitRemark(slice.argument.getOwner()->getParentOp()->getLoc())
          << "saved in one order: " << id.getValue()
          << ": its codes are transposed where they are read";
    }
    slice.codes = SetVector<Value>(saved.begin(), saved.end());
  }
}

/// Clones the constant or index computation that makes `value`.
static void cloneIndex(Value value, OpBuilder &builder, IRMapping &mapping) {
  if (mapping.contains(value))
    return;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    cloneIndex(operand, builder, mapping);
  builder.clone(*op, mapping);
}

/// Computes a slice of `source`, with operations that `created` gets. Returns
/// its codes.
static SmallVector<Value> cloneSlice(const Slice &slice, Value source,
                                     OpBuilder &builder,
                                     SmallVectorImpl<Created> &created) {
  IRMapping mapping;
  mapping.map(slice.argument, source);
  for (Operation *op : slice.ops) {
    for (Value operand : op->getOperands().drop_front())
      cloneIndex(operand, builder, mapping);
    if (auto pad = dyn_cast<tensor::PadOp>(op))
      if (Value zero = pad.getConstantPaddingValue();
          zero.getParentRegion() != &pad.getRegion())
        cloneIndex(zero, builder, mapping);
    if (Operation *equal = findEqual(op, mapping, builder.getBlock())) {
      mapping.map(op->getResults(), equal->getResults());
      continue;
    }
    Operation *clone = builder.clone(*op, mapping);
    // The contraction that it is named after is in the other function.
    auto quantize = dyn_cast<QuantizeOp>(op);
    created.emplace_back(clone, quantize ? getTensorName(quantize) : "");
  }
  return llvm::map_to_vector(slice.codes,
                             [&](Value code) { return mapping.lookup(code); });
}

/// The types and names of what the value `number` of a tensor is made of.
static void getParts(ScaledType type, StringAttr id, unsigned number,
                     SmallVector<Type> &types,
                     SmallVector<std::string> &names) {
  auto add = [&](Type part, StringRef name) {
    types.push_back(part);
    names.push_back((id.getValue() + "." + name).str());
    if (number > 0)
      names.back() += "_" + std::to_string(number);
  };
  add(type.getPayloadType(), "codes");
  add(type.getScaleInvType(), "scale_inv");
  if (type.getHasTensorScale())
    add(type.getTensorScaleInvType(), "tensor_scale_inv");
}

static DictionaryAttr makeAttributes(StringRef name, MLIRContext *context) {
  return DictionaryAttr::get(
      context, NamedAttribute(StringAttr::get(context, kNameAttrName),
                              StringAttr::get(context, name)));
}

/// Reads an extent of the payloads that stand for the codes of a slice.
static void replaceExtent(tensor::DimOp dim, const Slice &slice,
                          ArrayRef<Value> payloads) {
  OpBuilder builder(dim);
  for (auto [code, payload] : llvm::zip_equal(slice.codes, payloads)) {
    int64_t rank = cast<RankedTensorType>(payload.getType()).getRank();
    for (int64_t i = 0; i < rank; ++i) {
      if (findDimension(code, i, slice.argument) != dim.getConstantIndex())
        continue;
      Value extent = tensor::DimOp::create(builder, dim.getLoc(), payload, i);
      dim.getResult().replaceAllUsesWith(extent);
      dim.erase();
      return;
    }
  }
  llvm_unreachable("expected codes that have the extent");
}

/// Gives a reader the parts of its codes for its argument.
static void replaceArgument(const Slice &slice, ArrayRef<unsigned> numbers,
                            StringAttr id) {
  auto function = cast<func::FuncOp>(slice.argument.getOwner()->getParentOp());
  Location loc = slice.argument.getLoc();
  unsigned index = slice.argument.getArgNumber();
  OpBuilder builder = OpBuilder::atBlockBegin(slice.argument.getOwner());
  unsigned next = index + 1;
  SmallVector<Value> payloads;
  // A reader may quantize a tensor several times, to what is one value.
  DenseMap<unsigned, SmallVector<Value, 3>> known;
  for (auto [code, number] : llvm::zip_equal(slice.codes, numbers)) {
    auto type = cast<ScaledType>(code.getType());
    SmallVector<Value, 3> &parts = known[number];
    if (parts.empty()) {
      SmallVector<Type> types;
      SmallVector<std::string> names;
      getParts(type, id, number, types, names);
      for (auto [partType, name] : llvm::zip_equal(types, names)) {
        (void)function.insertArgument(
            next, partType, makeAttributes(name, builder.getContext()), loc);
        parts.push_back(function.getArgument(next++));
      }
    }
    Value codes = AssembleOp::create(builder, loc, type, parts[0], parts[1],
                                     parts.size() > 2 ? parts[2] : Value());
    payloads.push_back(parts[0]);
    Value(code).replaceUsesWithIf(codes, [&](OpOperand &use) {
      return !slice.ops.contains(use.getOwner());
    });
  }
  for (tensor::DimOp dim : slice.dims)
    replaceExtent(dim, slice, payloads);
  for (Operation *op : llvm::reverse(slice.ops))
    op->erase();
  (void)function.eraseArgument(index);
}

/// Returns what codes are made of, from that result on.
static void returnParts(func::FuncOp source, ArrayRef<Value> codes,
                        StringAttr id, unsigned next) {
  auto terminator =
      cast<func::ReturnOp>(source.getBody().front().getTerminator());
  OpBuilder builder(terminator);
  for (auto [number, code] : llvm::enumerate(codes)) {
    SmallVector<Type> types;
    SmallVector<std::string> names;
    getParts(cast<ScaledType>(code.getType()), id, number, types, names);
    auto parts = DisassembleOp::create(builder, code.getLoc(), code);
    for (auto [part, type, name] :
         llvm::zip_equal(parts.getResults(), types, names)) {
      (void)source.insertResult(next, type,
                                makeAttributes(name, builder.getContext()));
      terminator->insertOperands(next++, part);
    }
  }
}

/// Bits per element of what is saved in place of a tensor.
static unsigned countBits(ArrayRef<Value> codes) {
  return llvm::sum_of(llvm::map_range(codes, [](Value code) {
    return cast<ScaledType>(code.getType())
        .getElementType()
        .getIntOrFloatBitWidth();
  }));
}

void SaveQuantizedPass::move(StringAttr id, const Link &link) {
  func::FuncOp source = link.source;
  auto refuse = [&](func::FuncOp function, const Twine &reason) {
    emitRemark(function.getLoc())
        << "saved in high precision: " << id.getValue() << ": " << reason;
  };
  if (link.readers.empty())
    return;
  SmallVector<func::FuncOp> functions(link.readers);
  functions.push_back(source);
  for (func::FuncOp function : functions)
    if (!function.getBody().hasOneBlock() ||
        !isa<func::ReturnOp>(function.getBody().front().getTerminator()) ||
        !SymbolTable::symbolKnownUseEmpty(function, getOperation()))
      return refuse(function, "expected a function of one block that is not "
                              "called in the module");
  SmallVector<Slice> slices;
  for (func::FuncOp reader : link.readers) {
    std::string reason;
    FailureOr<Slice> slice = computeSlice(
        reader.getArgument(*findArgument(reader, kSavedAttrName, id)), reason);
    if (failed(slice))
      return refuse(reader, reason);
    slices.push_back(std::move(*slice));
  }
  auto terminator =
      cast<func::ReturnOp>(source.getBody().front().getTerminator());
  std::optional<unsigned> result = findResult(source, id);
  std::optional<unsigned> argument = findArgument(source, kSaveAttrName, id);
  Value value = link.isResult ? terminator.getOperand(*result)
                              : source.getArgument(*argument);
  if (oneOrder)
    leaveTransposes(slices, value, id);
  OpBuilder builder(terminator);
  SetVector<Value> codes;
  SmallVector<Created> created;
  SmallVector<SmallVector<unsigned>> numbers;
  // Equal slices have each value computed once.
  for (const Slice &slice : slices) {
    SmallVector<unsigned> &ours = numbers.emplace_back();
    for (Value code : cloneSlice(slice, value, builder, created)) {
      codes.insert(code);
      ours.push_back(llvm::find(codes, code) - codes.begin());
    }
  }

  // Weights are there anyway: whoever saves their codes wants them once.
  bool isWeight = argument && source.getArgAttr(*argument, kWeightAttrName);
  unsigned bits = getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  if (!isWeight && countBits(codes.getArrayRef()) > bits) {
    for (auto &[op, name] : llvm::reverse(created))
      op->erase();
    return refuse(source, "its codes take more memory");
  }
  // Only now: with names no two of them are equal.
  for (auto &[op, name] : created)
    if (!name.empty())
      op->setAttr(kNameAttrName, builder.getStringAttr(name));

  unsigned next = link.isResult ? *result + 1 : source.getNumResults();
  returnParts(source, codes.getArrayRef(), id, next);
  if (link.isResult) {
    (void)source.eraseResult(*result);
    terminator->eraseOperand(*result);
  }
  for (auto [slice, ours] : llvm::zip_equal(slices, numbers))
    replaceArgument(slice, ours, id);
  ++numSaved;
}

void SaveQuantizedPass::runOnOperation() {
  llvm::MapVector<StringAttr, Link> links;
  if (failed(collect(links)))
    return signalPassFailure();
  for (auto &[id, link] : links)
    move(id, link);
}
