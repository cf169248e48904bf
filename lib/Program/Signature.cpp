//===- Signature.cpp - What a program takes and gives ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Program/Signature.h"

#include "fp8/Formats.h"
#include "fp8/IR/FP8Types.h"
#include "fp8/IR/Formats.h"
#include "fp8/IR/PackedCodes.h"
#include "fp8/IR/ValueNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fp8;
using fp8rt::DType;

SmallVector<ValueInfo> Signature::getOutputs() const {
  if (!results.empty())
    return results;
  return llvm::to_vector(llvm::make_filter_range(
      arguments, [](const ValueInfo &info) { return info.isMemRef(); }));
}

std::string mlir::fp8::describe(DType dtype, ArrayRef<int64_t> shape) {
  // As in files, by their codes.
  int64_t lanes = fp8rt::getNumLanes(dtype);
  bool isPairs = lanes > 1 && !shape.empty();
  SmallVector<int64_t> sizes(shape);
  if (isPairs && !ShapedType::isDynamic(sizes.back()))
    sizes.back() *= lanes;
  std::string text(isPairs ? "F4" : fp8rt::stringifyDType(dtype));
  llvm::raw_string_ostream os(text);
  os << " [";
  llvm::interleaveComma(sizes, os, [&](int64_t dim) {
    if (ShapedType::isDynamic(dim))
      os << '?';
    else
      os << dim;
  });
  os << ']';
  return text;
}

/// How elements of `type` are stored.
static std::optional<DType> getDType(Type type) {
#define FP8_FORMAT(NAME, TEXT, TYPE, MLIR, DTYPE, ...)                         \
  if (isa<TYPE##Type>(type))                                                   \
    return DType::DTYPE;
#include "fp8/Formats.def"
  if (isa<Float64Type>(type))
    return DType::F64;
  if (isa<IndexType>(type))
    return DType::I64;
  if (type.isUnsignedInteger())
    return type.isUnsignedInteger(8) ? std::optional(DType::U8) : std::nullopt;
  if (auto integer = dyn_cast<IntegerType>(type)) {
    switch (integer.getWidth()) {
    case 1:
      return DType::BOOL;
    case 8:
      return DType::I8;
    case 16:
      return DType::I16;
    case 32:
      return DType::I32;
    case 64:
      return DType::I64;
    }
  }
  return std::nullopt;
}

/// Whether memory that is dense and row-major can be passed as `type`.
static bool admitsRowMajor(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (type.getMemorySpace() ||
      failed(type.getStridesAndOffset(strides, offset)))
    return false;
  if (!ShapedType::isDynamic(offset) && offset != 0)
    return false;
  int64_t expected = 1;
  for (int64_t i = type.getRank() - 1; i >= 0; --i) {
    if (!ShapedType::isDynamic(strides[i]) && strides[i] != expected)
      return false;
    // From a dynamic dimension outwards, a static stride would be luck.
    if (type.isDynamicDim(i))
      expected = ShapedType::kDynamic;
    else if (!ShapedType::isDynamic(expected))
      expected *= type.getDimSize(i);
  }
  return true;
}

/// The types of infos, for messages.
static std::string listTypes() {
  std::string list;
  for (const fp8rt::NumberFormat *format : fp8rt::kFormats)
    list += (Twine(format->mlirName) + ", ").str();
  return list + "f64, i64, i32, i16, i8, ui8, i1 or index";
}

/// What a info of `type` would have to do to be passed; empty if it can be.
static std::string findObstacle(Type type) {
  if (isa<UnrankedTensorType, UnrankedMemRefType>(type))
    return "have a rank";
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto memref = dyn_cast<MemRefType>(type);
  if (tensor && tensor.getEncoding())
    return "have no encoding";
  if (memref && !admitsRowMajor(memref))
    return "be in row-major order and the default memory space";
  if (isPacked(type)) {
    if (!tensor)
      return std::string("be a tensor, since codes of ") +
             getNumberFormat(getElementTypeOrSelf(type))->mlirName +
             " share bytes";
    if (tensor.getRank() == 0 ||
        !isWhole(getPacking(type), tensor.getShape().back()))
      return "have a last dimension of " + describeGroups(type);
  }
  if ((isa<ShapedType>(type) && !tensor && !memref) ||
      !getDType(getElementTypeOrSelf(type)))
    return "be a tensor, memref or scalar of " + listTypes();
  return "";
}

FailureOr<ValueInfo> mlir::fp8::getValueInfo(StringRef name, Type type) {
  if (!findObstacle(type).empty())
    return failure();
  ValueInfo info;
  info.name = name.str();
  info.type = type;
  info.shaped = isa<ShapedType>(type);
  info.memRef = isa<MemRefType>(type);
  info.dtype = *getDType(getElementTypeOrSelf(type));
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    type = getStoredType(tensor);
  if (auto shaped = dyn_cast<ShapedType>(type))
    info.shape.assign(shaped.getShape().begin(), shaped.getShape().end());
  return info;
}

bool mlir::fp8::isEntry(func::FuncOp function) {
  auto update = function->getParentOp()->getAttrOfType<FlatSymbolRefAttr>(
      kStateUpdateAttrName);
  return function.isPublic() && !function.isExternal() &&
         !(update && update.getValue() == function.getSymName());
}

FailureOr<func::FuncOp> mlir::fp8::findEntry(ModuleOp module, StringRef name) {
  SmallVector<func::FuncOp> candidates;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    if (!name.empty() && function.getSymName() == name)
      return function;
    if (isEntry(function))
      candidates.push_back(function);
  }
  if (name.empty() && candidates.size() == 1)
    return candidates.front();

  InFlightDiagnostic diagnostic = module.emitError();
  if (name.empty())
    diagnostic << "expected one public function or --entry=NAME";
  else
    diagnostic << "expected a function '" << name << "' with a body";
  if (candidates.empty())
    return diagnostic << ", but the module has no public func.func";
  diagnostic << ", but the module has ";
  llvm::interleaveComma(candidates, diagnostic, [&](func::FuncOp function) {
    diagnostic << "'" << function.getSymName() << "'";
  });
  return failure();
}

FailureOr<Signature> mlir::fp8::getSignature(func::FuncOp entry) {
  Signature signature;
  signature.entry = entry.getSymName().str();
  auto collect = [&](TypeRange types, StringRef kind, auto getName,
                     SmallVectorImpl<ValueInfo> &infos) -> LogicalResult {
    llvm::StringSet<> names;
    for (auto [index, type] : llvm::enumerate(types)) {
      std::string name = getName(entry, index);
      FailureOr<ValueInfo> info = getValueInfo(name, type);
      if (failed(info))
        return entry.emitError()
               << "expected " << kind << " '" << name << "' to "
               << findObstacle(type) << ", but got " << type;
      if (!names.insert(name).second)
        return entry.emitError()
               << "expected names of " << kind << "s to be unique, but got '"
               << name << "' twice";
      infos.push_back(std::move(*info));
    }
    return success();
  };
  TypeRange arguments = entry.getArgumentTypes();
  signature.takesState = !arguments.empty() && isa<StateType>(arguments.back());
  if (failed(collect(arguments.drop_back(signature.takesState), "argument",
                     getArgumentName, signature.arguments)) ||
      failed(collect(entry.getResultTypes(), "result", getResultName,
                     signature.results)))
    return failure();
  return signature;
}
