//===- ConstantProgram.cpp - Computing values while compiling -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConstantProgram.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/PackedCodes.h"
#include "fp8/Target/CPU/Engine.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MemAlloc.h"

#include <cstdlib>
#include <cstring>

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Types and bytes
//===----------------------------------------------------------------------===//

/// Bytes of an element in an attribute: codes that share bytes take one each
/// there.
static std::optional<int64_t> getElementBytes(Type type) {
  if (isa<IndexType>(type))
    return sizeof(int64_t);
  if (isPacked(type))
    return 1;
  if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() % 8 != 0)
    return std::nullopt;
  return type.getIntOrFloatBitWidth() / 8;
}

SmallVector<RankedTensorType> fp8::getPartTypes(Type type) {
  if (auto scaled = dyn_cast<ScaledType>(type)) {
    SmallVector<RankedTensorType> parts{scaled.getPayloadType(),
                                        scaled.getScaleInvType()};
    if (scaled.getHasTensorScale())
      parts.push_back(scaled.getTensorScaleInvType());
    return parts;
  }
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return {tensor};
  if (type.isIntOrIndexOrFloat())
    return {RankedTensorType::get({}, type)};
  return {};
}

std::optional<int64_t> fp8::getByteSize(Type type) {
  SmallVector<RankedTensorType> parts = getPartTypes(type);
  if (parts.empty())
    return std::nullopt;
  int64_t size = 0;
  for (RankedTensorType part : parts) {
    std::optional<int64_t> width = getElementBytes(part.getElementType());
    if (!width || !part.hasStaticShape())
      return std::nullopt;
    size += *width * part.getNumElements();
  }
  return size;
}

/// The bytes of a constant, of one element if all are equal; nothing if it has
/// none, such as a resource whose data was elided.
static std::optional<ArrayRef<char>> getBytes(Attribute value) {
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    return dense.getRawData();
  auto resource = dyn_cast<DenseResourceElementsAttr>(value);
  if (!resource || !resource.getRawHandle().getBlob())
    return std::nullopt;
  return resource.getRawHandle().getBlob()->getData();
}

bool fp8::isArgument(arith::ConstantOp constant) {
  auto type = dyn_cast<RankedTensorType>(constant.getType());
  std::optional<int64_t> size = getByteSize(constant.getType());
  if (!type || !size)
    return false;
  std::optional<ArrayRef<char>> bytes = getBytes(constant.getValue());
  int64_t width = *getElementBytes(type.getElementType());
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  return bytes && static_cast<int64_t>(bytes->size()) ==
                      (dense && dense.isSplat() ? width : *size);
}

/// Codes of a row that share bytes in programs.
static int64_t getRowLength(RankedTensorType type) {
  return type.getRank() == 0 ? 1 : type.getShape().back();
}

/// A constant of `type` with what a program has at `data`.
static TypedAttr makeConstant(RankedTensorType type, const char *data) {
  size_t width = *getElementBytes(type.getElementType());
  ArrayRef<char> bytes(data, *getByteSize(getStoredType(type)));
  SmallVector<char> codes;
  if (isPacked(type))
    bytes = codes = unpackCodes(getPacking(type), bytes, getRowLength(type));
  // Equal neighbours are equal elements.
  bool isSplat =
      bytes.size() > width && std::memcmp(bytes.data(), bytes.data() + width,
                                          bytes.size() - width) == 0;
  if (isSplat)
    bytes = bytes.take_front(width);
  // The context copies, hashes and keeps the data of a dense attribute for
  // good; worth it for factors, not for codes.
  constexpr size_t maxDense = 4096;
  if (bytes.size() <= maxDense)
    return DenseElementsAttr::getFromRawBuffer(type, bytes);
  return DenseResourceElementsAttr::get(
      type, "fp8_constant",
      HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, /*align=*/64,
                                                    /*dataIsMutable=*/false));
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

static std::string getFunctionName(size_t index) {
  return "constant_" + std::to_string(index);
}

static void appendParts(OpBuilder &builder, Value value,
                        SmallVectorImpl<Value> &parts) {
  Location loc = value.getLoc();
  if (isa<ScaledType>(value.getType())) {
    auto disassemble = DisassembleOp::create(builder, loc, value);
    llvm::append_range(parts, disassemble->getResults());
  } else if (isa<RankedTensorType>(value.getType())) {
    parts.push_back(value);
  } else {
    parts.push_back(tensor::FromElementsOp::create(
        builder, loc, getPartTypes(value.getType()).front(), value));
  }
}

/// The constants that a computation is given.
static SmallVector<arith::ConstantOp>
getLeaves(const ConstantComputation &computation) {
  SmallVector<arith::ConstantOp> leaves;
  for (Operation *op : computation.ops)
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (isArgument(constant))
        leaves.push_back(constant);
  return leaves;
}

/// The computation as a function of its leaves, at the end of `module`.
static func::FuncOp buildFunction(ModuleOp module, StringRef name,
                                  const ConstantComputation &computation) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<arith::ConstantOp> leaves = getLeaves(computation);
  SmallVector<Type> types, results;
  for (arith::ConstantOp leaf : leaves)
    types.push_back(leaf.getType());
  for (Value result : computation.results)
    llvm::append_range(results, getPartTypes(result.getType()));
  auto function = func::FuncOp::create(builder, module.getLoc(), name,
                                       builder.getFunctionType(types, results));
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    builder.getUnitAttr());

  builder.setInsertionPointToStart(function.addEntryBlock());
  IRMapping mapping;
  for (auto [leaf, argument] :
       llvm::zip_equal(leaves, function.getArguments())) {
    mapping.map(leaf.getResult(), argument);
    // They are the bytes of attributes.
    function.setArgAttr(argument.getArgNumber(),
                        bufferization::BufferizationDialect::kWritableAttrName,
                        builder.getBoolAttr(false));
  }
  for (Operation *op : computation.ops)
    if (!mapping.contains(op->getResult(0)))
      builder.clone(*op, mapping);
  SmallVector<Value> parts;
  for (Value result : computation.results)
    appendParts(builder, mapping.lookup(result), parts);
  func::ReturnOp::create(builder, module.getLoc(), parts);
  return function;
}

void ConstantProgram::add(const ConstantComputation &computation) {
  Call call;
  for (arith::ConstantOp leaf : getLeaves(computation))
    call.arguments.push_back(leaf.getValue());
  for (Value result : computation.results)
    llvm::append_range(call.results, getPartTypes(result.getType()));

  func::FuncOp function =
      buildFunction(module, getFunctionName(functions.size()), computation);
  auto isEqual = [&](Operation *other) {
    return OperationEquivalence::isRegionEquivalentTo(
        &other->getRegion(0), &function.getBody(),
        OperationEquivalence::IgnoreLocations);
  };
  call.function = llvm::find_if(functions, isEqual) - functions.begin();
  if (call.function == functions.size())
    functions.push_back(function);
  else
    function.erase();

  auto isSame = [&](const Call &other) {
    return other.function == call.function && other.arguments == call.arguments;
  };
  auto *same = llvm::find_if(calls, isSame);
  computations.push_back(same - calls.begin());
  if (same == calls.end())
    calls.push_back(std::move(call));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {
/// A constant as the function sees it: the descriptor of a dense memref.
class Argument {
public:
  Argument(TypedAttr value) {
    auto type = cast<RankedTensorType>(value.getType());
    ArrayRef<char> bytes = *getBytes(value);
    size_t size = *getByteSize(type);
    size_t width = *getElementBytes(type.getElementType());
    const char *data = bytes.data();
    // A splat is spelled out, and a resource may lie anywhere in its file.
    if (bytes.size() != size ||
        reinterpret_cast<uintptr_t>(data) % width != 0) {
      copy.reset(static_cast<char *>(llvm::safe_malloc(size)));
      for (size_t at = 0; at < size; at += bytes.size())
        std::memcpy(copy.get() + at, data, bytes.size());
      data = copy.get();
    }
    if (isPacked(type)) {
      packed =
          packCodes(getPacking(type), ArrayRef(data, size), getRowLength(type));
      data = packed.data();
      type = getStoredType(type);
    }
    words.resize(3 + 2 * type.getRank());
    std::memcpy(&words[0], &data, sizeof(data));
    std::memcpy(&words[1], &data, sizeof(data));
    int64_t stride = 1;
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      words[3 + dim] = type.getDimSize(dim);
      words[3 + type.getRank() + dim] = stride;
      stride *= type.getDimSize(dim);
    }
    descriptor = words.data();
  }

  /// What a packed call points to.
  void *getPointer() { return &descriptor; }

private:
  struct Free {
    void operator()(char *memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> copy;
  SmallVector<char> packed;
  SmallVector<int64_t> words;
  void *descriptor;
};
} // namespace

/// Calls `function` and takes its results: dense memrefs, each allocated.
static SmallVector<TypedAttr> execute(CPUEngine::Function function,
                                      ArrayRef<TypedAttr> arguments,
                                      ArrayRef<RankedTensorType> results) {
  size_t numWords = 0;
  for (RankedTensorType type : results)
    numWords += 3 + 2 * type.getRank();
  SmallVector<void *> words(numWords);
  void *storage = words.data();
  SmallVector<void *> packed{&storage};
  std::vector<std::unique_ptr<Argument>> held;
  for (TypedAttr argument : arguments) {
    held.push_back(std::make_unique<Argument>(argument));
    packed.push_back(held.back()->getPointer());
  }
  function(packed.data());

  SmallVector<TypedAttr> values;
  SmallVector<void *> allocated;
  void **descriptor = words.data();
  for (RankedTensorType type : results) {
    allocated.push_back(descriptor[0]);
    values.push_back(
        makeConstant(type, static_cast<const char *>(descriptor[1])));
    descriptor += 3 + 2 * type.getRank();
  }
  llvm::sort(allocated);
  for (void *memory : llvm::make_range(
           allocated.begin(), std::unique(allocated.begin(), allocated.end())))
    std::free(memory);
  return values;
}

llvm::Expected<SmallVector<SmallVector<TypedAttr>>> ConstantProgram::run() {
  auto engine = CPUEngine::create(module);
  if (!engine)
    return engine.takeError();
  SmallVector<SmallVector<TypedAttr>> outcomes;
  for (const Call &call : calls) {
    auto function = (*engine)->lookup(getFunctionName(call.function));
    if (!function)
      return function.takeError();
    outcomes.push_back(execute(*function, call.arguments, call.results));
  }
  SmallVector<SmallVector<TypedAttr>> values;
  for (size_t call : computations)
    values.push_back(outcomes[call]);
  return values;
}
