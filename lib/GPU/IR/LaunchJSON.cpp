//===- LaunchJSON.cpp - Launches as the runtime reads them ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/IR/LaunchJSON.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kVersion = 2;

static StringRef getOperator(AffineExprKind kind) {
  switch (kind) {
  case AffineExprKind::Add:
    return "+";
  case AffineExprKind::Mul:
    return "*";
  case AffineExprKind::FloorDiv:
    return "floordiv";
  case AffineExprKind::CeilDiv:
    return "ceildiv";
  case AffineExprKind::Mod:
    return "mod";
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

/// The runtime moves 8-bit and 4-bit floats as bytes.
static StringRef getTypeName(Type type) {
  if (type.isF32())
    return "f32";
  if (type.isBF16())
    return "bf16";
  if (type.isF16())
    return "f16";
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
  case 8:
    return "u8";
  case 16:
    return "u16";
  case 32:
    return "u32";
  default:
    return "u64";
  }
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
    json.attribute("version", kVersion);
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
