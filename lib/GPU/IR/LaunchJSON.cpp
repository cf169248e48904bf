//===- LaunchJSON.cpp - Launches as the runtime reads them ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/IR/LaunchJSON.h"
#include "fp8/Runtime/LaunchRules.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

namespace rules = fp8rt::launch;

static StringRef getOperator(AffineExprKind kind) {
  using rules::Operator;
  switch (kind) {
  case AffineExprKind::Add:
    return getName(Operator::Add);
  case AffineExprKind::Mul:
    return getName(Operator::Multiply);
  case AffineExprKind::FloorDiv:
    return getName(Operator::FloorDiv);
  case AffineExprKind::CeilDiv:
    return getName(Operator::CeilDiv);
  case AffineExprKind::Mod:
    return getName(Operator::Mod);
  default:
    llvm_unreachable("expected a binary operation");
  }
}

static void writePostfix(raw_ostream &os, AffineExpr expr,
                         ArrayRef<StringRef> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    os << constant.getValue();
    return;
  }
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    os << symbols[symbol.getPosition()];
    return;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  writePostfix(os, binary.getLHS(), symbols);
  os << ' ';
  writePostfix(os, binary.getRHS(), symbols);
  os << ' ' << getOperator(expr.getKind());
}

std::string fp8::getPostfix(AffineExpr expr, ArrayRef<StringRef> symbols) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writePostfix(os, expr, symbols);
  return text;
}

/// What the runtime has no name for it moves as bytes, 8-bit floats too.
static StringRef getTypeName(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  int64_t bytes = llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
  const auto *found =
      llvm::find_if(rules::kElementTypes,
                    [&](const auto &known) { return known.name == name; });
  if (found == std::end(rules::kElementTypes))
    found = llvm::find_if(rules::kElementTypes, [&](const auto &known) {
      return known.bytes == bytes;
    });
  return found->name;
}

void ValueParamAttr::writeJSON(llvm::json::OStream &json,
                               ArrayRef<StringRef> extents) const {
  json.attribute("value",
                 getPostfix(getValue().getValue().getResult(0), extents));
  json.attribute("bytes", getType().getWidth() / 8);
}

std::string fp8::getLaunchJSON(LaunchAttr launch) {
  SmallVector<StringRef> symbols;
  for (auto extent : launch.getExtents().getAsRange<KernelExtentAttr>())
    symbols.push_back(extent.getName());
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  auto writeArray = [&](StringRef key, ArrayAttr array, auto writeElement) {
    json.attributeArray(key, [&] {
      for (Attribute element : array ? array.getValue() : ArrayRef<Attribute>())
        json.object([&] { writeElement(element); });
    });
  };
  json.object([&] {
    json.attribute("version", rules::kVersion);
    writeArray("arguments", launch.getArguments(), [&](Attribute element) {
      auto argument = cast<KernelArgumentAttr>(element);
      json.attribute("name", argument.getName());
      json.attribute("type", getTypeName(argument.getElement()));
      json.attribute("rank", argument.getRank());
      json.attribute("access", stringifyKernelAccess(argument.getAccess()));
      json.attribute("alignment", argument.getAlignment());
    });
    writeArray("extents", launch.getExtents(), [&](Attribute element) {
      auto extent = cast<KernelExtentAttr>(element);
      json.attribute("name", extent.getName());
      json.attribute("argument", extent.getArgument());
      json.attribute("dim", extent.getDim());
    });
    writeArray("params", launch.getParams(), [&](Attribute element) {
      cast<KernelParamAttrInterface>(element).writeJSON(json, symbols);
    });
    writeArray("workspaces", launch.getWorkspaces(), [&](Attribute element) {
      auto space = cast<KernelWorkspaceAttr>(element);
      json.attribute(
          "bytes",
          getPostfix(space.getBytes().getValue().getResult(0), symbols));
      json.attribute("zero", space.getZero());
    });
    json.attributeArray("grid", [&] {
      for (AffineExpr expr : launch.getGrid().getValue().getResults())
        json.value(getPostfix(expr, symbols));
    });
    json.attribute("block", launch.getBlock());
    json.attribute("cluster", launch.getCluster());
    json.attribute("shared_bytes", launch.getSharedBytes());
    json.attribute("resident", launch.getResident());
    json.attribute("overlap", launch.getOverlap());
    AffineMapAttr flops = launch.getFlops();
    json.attribute("flops",
                   flops ? getPostfix(flops.getValue().getResult(0), symbols)
                         : "0");
  });
  return text;
}
