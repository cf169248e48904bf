//===- FusionValues.cpp - Values of a fusion in registers -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionValues.h"
#include "../Blocks/Rounding.h"
#include "FusionCodes.h"
#include "FusionRegisters.h"
#include "fp8/IR/ScalarBuilder.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;

FusionValues::FusionValues(KernelBuilder &b, const FusionSpec &spec,
                           FusionConfigAttr config, FusionTile &tile,
                           ArrayRef<FusionArgument> arguments,
                           ValueRange captured, Value scratch)
    : b(b), spec(spec), config(config), tile(tile), scratch(scratch),
      rowsAhead(getFusionRowsAhead(spec, config)) {
  for (auto [input, argument] : llvm::zip_equal(spec.inputs, arguments))
    inputs[input.argument] = &argument;
  for (auto [argument, value] : llvm::zip_equal(spec.captures, captured))
    captures[argument] = widen(value, argument.getType());
}

FusionBlock FusionValues::getBlock(Value value) const {
  if (const FusionArgument *input = inputs.lookup(value))
    return input->block;
  return spec.getBlock(*spec.layouts.lookup(value));
}

void FusionValues::loadInputs() {
  while (rowsLoaded < std::min(tile.getRows(), rowsAhead))
    loadRow();
  loadGathered();
}

void FusionValues::loadRow() {
  if (rowsLoaded == tile.getRows())
    return;
  for (const FusionSpec::Input &input : spec.inputs) {
    const FusionArgument &argument = *inputs.lookup(input.argument);
    if (argument.block.isFull() && !input.isGathered)
      for (int64_t chunk = 0; chunk < tile.getChunks(); ++chunk)
        words[{input.argument.getAsOpaquePointer(), rowsLoaded, chunk}] =
            loadChunk(argument, rowsLoaded, chunk);
    // Factors of a row come from memory, too, which those of few inputs, whose
    // rows are all under way, need not be asked for ahead.
    else if (argument.block.rows == 1 && !input.isGathered &&
             readsSeveral(spec))
      for (int64_t chunk = 0; chunk < tile.getChunks(); ++chunk)
        get(input.argument, rowsLoaded, chunk);
  }
  ++rowsLoaded;
}

bool FusionValues::mayBeInPlace(const FusionArgument &input) const {
  return llvm::any_of(
      spec.getBody().getTerminator()->getOperands(), [&](Value result) {
        return getElementTypeOrSelf(result.getType()) == input.elementType &&
               getBlock(result).isFull() &&
               !spec.isTransposed(*spec.layouts.lookup(result));
      });
}

/// Places outside would read elements of others, which these may change: where
/// a result may lie in an input's memory they are zeros.
SmallVector<Value> FusionValues::loadChunk(const FusionArgument &input,
                                           int64_t row, int64_t chunk) {
  Value pointer = tile.getPointer(input, row, /*clamped=*/true);
  auto load = [&] { return tile.loadChunk(input, pointer, chunk); };
  Value isInside = mayBeInPlace(input) ? tile.isInside(row, chunk, 0) : Value();
  if (!isInside)
    return load();
  return b.choose(isInside, load, [&] {
    int64_t bits = input.packing.isPacked()
                       ? 8
                       : input.elementType.getIntOrFloatBitWidth();
    return SmallVector<Value>(kChunk * bits / 32, b.i32(0));
  });
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// An element as it is stored, as it is computed with.
Value FusionValues::widen(Value stored, Type type) {
  if (type.getIntOrFloatBitWidth() == 8)
    return arith::ExtUIOp::create(b, b.getI32Type(), stored);
  if (isa<BFloat16Type, Float16Type>(type)) {
    if (stored.getType() != type)
      stored = arith::BitcastOp::create(b, type, stored);
    return arith::ExtFOp::create(b, b.getF32Type(), stored);
  }
  return stored;
}

/// The value of `type` that is nearest to the f32 `value`, as f32.
Value FusionValues::round(Value value, Type type) {
  if (!isa<BFloat16Type, Float16Type>(type))
    return value;
  auto [rounded, wide] = roundAlone(b, type, value);
  return wide ? wide : arith::ExtFOp::create(b, b.getF32Type(), rounded);
}

/// Rounds elements, an even number of 16-bit ones, to words of `type`.
SmallVector<Value> FusionValues::pack(ArrayRef<Value> values, Type type) {
  SmallVector<Value> packed;
  if (type.isF32()) {
    for (Value value : values)
      packed.push_back(arith::BitcastOp::create(b, b.getI32Type(), value));
    return packed;
  }
  for (size_t e = 0; e < values.size(); e += 2) {
    Value both = roundPair(b, type, values[e], values[e + 1]);
    packed.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), both));
  }
  return packed;
}

SmallVector<Value> FusionValues::unpack(ArrayRef<Value> packed, Type type) {
  SmallVector<Value> values;
  Type f32 = b.getF32Type();
  for (Value word : packed) {
    if (type.isF32()) {
      values.push_back(arith::BitcastOp::create(b, f32, word));
    } else if (type.isBF16()) {
      // The bits of a bf16 are the upper half of those of the same f32.
      for (Value bits : {Value(arith::ShLIOp::create(b, word, b.i32(16))),
                         b.bitAnd(word, 0xffff0000)})
        values.push_back(arith::BitcastOp::create(b, f32, bits));
    } else {
      Value pair = LLVM::BitcastOp::create(b, VectorType::get({2}, type), word);
      for (int64_t e = 0; e < 2; ++e)
        values.push_back(
            widen(LLVM::ExtractElementOp::create(b, pair, b.i32(e)), type));
    }
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

SmallVector<Value> FusionValues::get(Value value, int64_t row, int64_t chunk) {
  if (Value captured = captures.lookup(value))
    return {captured};
  FusionBlock block = getBlock(value);
  if (block.rows != 1)
    row = 0;
  if (block.columns == kWhole)
    chunk = 0;
  std::tuple key{value.getAsOpaquePointer(), row, chunk};
  auto found = elements.find(key);
  if (found != elements.end())
    return found->second;
  SmallVector<Value> computed = evaluate(value, row, chunk);
  return elements[key] = computed;
}

/// The factors of blocks and of the tensor that codes were made or read with.
static std::pair<Value, Value> findFactors(Value codes) {
  while (auto transpose = codes.getDefiningOp<TransposeOp>())
    codes = transpose.getSource();
  if (auto quantize = codes.getDefiningOp<QuantizeOp>())
    return {quantize.getScaleInv(), quantize.getTensorScaleInv()};
  auto assemble = codes.getDefiningOp<AssembleOp>();
  return {assemble.getScaleInv(), assemble.getTensorScaleInv()};
}

SmallVector<Value> FusionValues::evaluate(Value value, int64_t row,
                                          int64_t chunk) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return evaluateInput(argument, row, chunk);
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (isReduction(op)) {
    if (loadsInTurn() && isOfLanes(op))
      reduceRow(op, row);
    else
      reduce(op);
    return elements.at({value.getAsOpaquePointer(), row, chunk});
  }
  return llvm::TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case([&](linalg::GenericOp op) {
        return evaluateGeneric(op, number, row, chunk);
      })
      .Case([&](ComputeScaleOp op) {
        return evaluateScales(op, number, row, chunk);
      })
      .Case([&](QuantizeOp op) { return evaluateCodes(op, row, chunk); })
      .Case([&](DequantizeOp op) { return evaluateNumbers(op, row, chunk); })
      .Case([&](HadamardOp op) { return evaluateRotation(op, row, chunk); })
      .Case([&](AssembleOp op) { return get(op.getPayload(), row, chunk); })
      .Case([&](TransposeOp op) { return get(op.getSource(), row, chunk); })
      .Case([&](linalg::TransposeOp op) {
        return get(op.getInput(), row, chunk);
      })
      .Case([&](DisassembleOp op) {
        if (value == op.getPayload())
          return get(op.getSource(), row, chunk);
        auto [scaleInv, tensorScaleInv] = findFactors(op.getSource());
        return get(value == op.getScaleInv() ? scaleInv : tensorScaleInv, row,
                   chunk);
      });
}

SmallVector<Value> FusionValues::evaluateInput(BlockArgument argument,
                                               int64_t row, int64_t chunk) {
  const FusionArgument &input = *inputs.lookup(argument);
  if (input.block.isFull()) {
    ArrayRef<Value> loaded =
        words.at({argument.getAsOpaquePointer(), row, chunk});
    // Codes stay packed.
    if (input.elementType.getIntOrFloatBitWidth() == 8)
      return llvm::to_vector(loaded);
    return unpack(loaded, input.elementType);
  }
  // What elements have in common is in the cache for most of them.
  if (FusionTile::hasChunks(input))
    return unpack(tile.loadChunk(input, row, chunk), input.elementType);
  SmallVector<Value> values;
  for (int64_t e = 0; e < (input.block.columns == 1 ? kChunk : 1); ++e)
    values.push_back(
        widen(tile.loadElement(input, row, chunk, e), input.elementType));
  return values;
}

SmallVector<Value> FusionValues::getWords(Value value, int64_t row,
                                          int64_t chunk) {
  Type type = getElementTypeOrSelf(value.getType());
  auto scaled = dyn_cast<ScaledType>(value.getType());
  if (scaled || type.getIntOrFloatBitWidth() <= 8)
    return get(value, row, chunk);
  std::tuple key{value.getAsOpaquePointer(), row, chunk};
  auto found = words.find(key);
  if (found != words.end())
    return found->second;
  SmallVector<Value> values = get(value, row, chunk);
  found = words.find(key);
  if (found != words.end())
    return found->second;
  return words[key] = pack(values, type);
}

/// What computes on numbers rounds to its type; what only chooses does not.
static bool isRounded(Operation *op) {
  return isa<BFloat16Type, Float16Type>(op->getResult(0).getType()) &&
         !isa<arith::ConstantOp, arith::ExtFOp, arith::BitcastOp,
              arith::SelectOp, arith::NegFOp, math::AbsFOp, arith::MaximumFOp,
              arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp>(op);
}

/// The bits of a bf16, which is computed with as an f32.
static bool isOfHalf(Operation *op) {
  return isa_and_present<arith::BitcastOp>(op) &&
         (op->getOperand(0).getType().isBF16() ||
          op->getResult(0).getType().isBF16());
}

Value FusionValues::castBits(Value value, Type type) {
  if (type.isInteger(16)) {
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), value);
    return arith::TruncIOp::create(b, type, b.shiftRight(bits, 16));
  }
  Value bits = arith::ExtUIOp::create(b, b.getI32Type(), value);
  return arith::BitcastOp::create(b, b.getF32Type(),
                                  arith::ShLIOp::create(b, bits, b.i32(16)));
}

Value FusionValues::inlineValue(Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  if (Value captured = captures.lookup(value))
    return captured;
  Operation *op = value.getDefiningOp();
  Type type = value.getType();
  auto map = [&](Value computed) {
    mapping.map(value, computed);
    return computed;
  };
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
      return map(b.f32(number.getValue().convertToFloat()));
  for (Value operand : op->getOperands())
    mapping.map(operand, inlineValue(operand, mapping));
  if (isa<arith::ExtFOp>(op))
    return map(mapping.lookup(op->getOperand(0)));
  if (isa<arith::TruncFOp>(op))
    return map(round(mapping.lookup(op->getOperand(0)), type));
  if (isOfHalf(op))
    return map(castBits(mapping.lookup(op->getOperand(0)), type));
  Value computed = computeIn32(op, mapping);
  if (isRounded(op))
    computed = round(computed, type);
  return map(computed);
}

/// With its operands in `mapping`, and not yet rounded to its own type.
Value FusionValues::computeIn32(Operation *op, const IRMapping &mapping) {
  IRMapping own(mapping);
  Value computed = b.clone(*op, own)->getResult(0);
  if (isa<BFloat16Type, Float16Type>(computed.getType()))
    computed.setType(b.getF32Type());
  return computed;
}

Value FusionValues::inlineUnrounded(Value value, IRMapping &mapping) {
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    mapping.map(operand, inlineValue(operand, mapping));
  return isa<arith::TruncFOp>(op) ? mapping.lookup(op->getOperand(0))
                                  : computeIn32(op, mapping);
}

/// Element `e` of what a generic reads at a place.
IRMapping FusionValues::mapInputs(linalg::GenericOp op, int64_t row,
                                  int64_t chunk, int64_t e) {
  IRMapping mapping;
  for (auto [argument, input] :
       llvm::zip(op.getBody()->getArguments(), op.getInputs())) {
    SmallVector<Value> read = get(input, row, chunk);
    mapping.map(argument, read.size() == 1 ? read.front() : read[e]);
  }
  for (auto extract : op.getBody()->getOps<tensor::ExtractOp>())
    mapping.map(
        extract.getResult(),
        elements.at({extract.getResult().getAsOpaquePointer(), row, chunk})[e]);
  return mapping;
}

SmallVector<Value> FusionValues::evaluateGeneric(linalg::GenericOp op,
                                                 unsigned result, int64_t row,
                                                 int64_t chunk) {
  Value value = op.getResult(result);
  Type type = getElementTypeOrSelf(value.getType());
  Value yielded = op.getBody()->getTerminator()->getOperand(result);
  // What is only read by an index keeps its bits.
  if (auto extract = yielded.getDefiningOp<tensor::ExtractOp>()) {
    std::tuple key{extract.getResult().getAsOpaquePointer(), row, chunk};
    words[{value.getAsOpaquePointer(), row, chunk}] = words.at(key);
    return elements.at(key);
  }
  // The last rounding is one for two elements.
  Operation *last = yielded.getDefiningOp();
  bool isPair = last && last->getBlock() == op.getBody() && isRounded(last) &&
                getBlock(value).columns == 1;
  SmallVector<Value> values;
  for (int64_t e = 0; e < (getBlock(value).columns == 1 ? kChunk : 1); ++e) {
    IRMapping mapping = mapInputs(op, row, chunk, e);
    values.push_back(isPair ? inlineUnrounded(yielded, mapping)
                            : inlineValue(yielded, mapping));
  }
  // Bits are no number, which rounding might change.
  if (isOfHalf(last) && type.isBF16() && values.size() > 1) {
    SmallVector<Value> &packed =
        words[{value.getAsOpaquePointer(), row, chunk}];
    for (size_t e = 0; e < values.size(); e += 2) {
      auto getBits = [&](Value half) -> Value {
        return arith::BitcastOp::create(b, b.getI32Type(), half);
      };
      packed.push_back(
          arith::OrIOp::create(b, b.shiftRight(getBits(values[e]), 16),
                               b.bitAnd(getBits(values[e + 1]), 0xffff0000)));
    }
    return values;
  }
  if (!isPair)
    return values;
  // Which may be stored as it is.
  SmallVector<Value> &packed = words[{value.getAsOpaquePointer(), row, chunk}] =
      pack(values, type);
  return unpack(packed, type);
}

SmallVector<Value> FusionValues::evaluateScales(ComputeScaleOp op,
                                                unsigned result, int64_t row,
                                                int64_t chunk) {
  if (op->getResult(result) == op.getTensorScaleInv())
    return {buildTensorScale(op).second};
  FusionBlock block = getBlock(op.getScale());
  // Other rows have no amax yet where rows come in turn.
  if (block.rows == 1 && block.columns != 1 && tile.getRows() > 1 &&
      !(loadsInTurn() && isOfLanes(op.getAmax().getDefiningOp()))) {
    shareRowScales(op, block, chunk);
  } else if (block.rows > 1 && block.columns == 1) {
    shareColumnScales(op, block, chunk);
  } else {
    SmallVector<Value> scales, inverses;
    for (Value amax : get(op.getAmax(), row, chunk)) {
      auto [scale, inverse] = buildScale(op, amax);
      scales.push_back(scale);
      inverses.push_back(inverse);
    }
    setScales(op, row, chunk, scales, inverses);
  }
  return elements.at({op->getResult(result).getAsOpaquePointer(), row, chunk});
}

/// What is to be rounded to codes at a place: the numbers by their scales.
SmallVector<Value> FusionValues::getScaled(QuantizeOp op, int64_t row,
                                           int64_t chunk) {
  SmallVector<Value> numbers = get(op.getSource(), row, chunk);
  SmallVector<Value> scales = get(op.getScale(), row, chunk);
  for (auto [e, number] : llvm::enumerate(numbers))
    number = b.mulF(number, scales.size() == 1 ? scales[0] : scales[e]);
  return numbers;
}

SmallVector<Value> FusionValues::evaluateCodes(QuantizeOp op, int64_t row,
                                               int64_t chunk) {
  if (op.getSeed())
    return evaluateRandomCodes(op, row, chunk);
  return encode(b, getScaled(op, row, chunk),
                op.getResult().getType().getElementType());
}

SmallVector<Value> FusionValues::getFactors(Value codes, int64_t row,
                                            int64_t chunk) {
  auto [scaleInv, tensorScaleInv] = findFactors(codes);
  SmallVector<Value> factors = get(scaleInv, row, chunk);
  Type type = getElementTypeOrSelf(scaleInv.getType());
  if (!type.isF32()) {
    if (getBlock(scaleInv).isFull())
      factors = llvm::to_vector(llvm::concat<Value>(splitCodes(b, factors[0]),
                                                    splitCodes(b, factors[1])));
    for (Value &factor : factors)
      factor = decodeFactor(b, factor, type);
  }
  if (tensorScaleInv) {
    Value ofTensor = get(tensorScaleInv, 0, 0).front();
    for (Value &factor : factors)
      factor = b.mulF(factor, ofTensor);
  }
  return factors;
}

SmallVector<Value> FusionValues::evaluateNumbers(DequantizeOp op, int64_t row,
                                                 int64_t chunk) {
  Type type = op.getResult().getType().getElementType();
  SmallVector<Value> numbers =
      decode(b, get(op.getSource(), row, chunk),
             op.getSource().getType().getElementType());
  SmallVector<Value> factors = getFactors(op.getSource(), row, chunk);
  for (auto [e, number] : llvm::enumerate(numbers))
    number = b.mulF(number, factors.size() == 1 ? factors[0] : factors[e]);
  if (type.isF32())
    return numbers;
  // One rounding for two elements, which may be stored as they are.
  SmallVector<Value> &packed =
      words[{op.getResult().getAsOpaquePointer(), row, chunk}] =
          pack(numbers, type);
  return unpack(packed, type);
}
