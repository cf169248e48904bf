//===- FP8Attrs.cpp - Enums, scale rules and states ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Attrs.h"
#include "fp8/IR/FP8Types.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

#include "fp8/IR/FP8Enums.cpp.inc"

#include "fp8/IR/FP8AttrInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "fp8/IR/FP8Attrs.cpp.inc"

void FP8Dialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fp8/IR/FP8Attrs.cpp.inc"
      >();
}

float fp8::getMaxFinite(Type type) {
  return llvm::APFloat::getLargest(cast<FloatType>(type).getFloatSemantics())
      .convertToFloat();
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

LogicalResult ScaleRuleAttr::verify(EmitError emitError, bool, Float32 epsilon,
                                    ScaleStyle, Float32, MXMode, NonFinite) {
  if (!(epsilon.value >= 0.0f) ||
      epsilon.value > std::numeric_limits<float>::max())
    return emitError()
           << "expected epsilon to be a finite number of at least 0";
  return success();
}

LogicalResult GemmConfigAttr::verify(EmitError emitError, int64_t tileM,
                                     int64_t tileN, int64_t stages,
                                     int64_t consumers, GemmSchedule schedule,
                                     int64_t group, int64_t splitK, bool swapAB,
                                     GemmStore store, int64_t cluster) {
  bool pingPong = schedule == GemmSchedule::PingPong;
  int64_t rows = swapAB ? tileN : tileM, cols = swapAB ? tileM : tileN;
  StringRef rowsName = swapAB ? "tile_n" : "tile_m";
  StringRef colsName = swapAB ? "tile_m" : "tile_n";
  // gemm_config_c3, first: the others divide by these.
  for (auto [name, value, low, high] :
       {std::tuple<StringRef, int64_t, int64_t, int64_t>{"stages", stages, 2,
                                                         16},
        {"consumers", consumers, 1, 3},
        {"group", group, 1, 64},
        {"split_k", splitK, 1, 64},
        {"cluster", cluster, 1, 2}})
    if (value < low || value > high)
      return emitError() << "expected " << name << " to be in " << low << ".."
                         << high << ", but got " << value;
  // gemm_config_c4
  if (pingPong && consumers != 2)
    return emitError() << "expected 2 consumers with ping_pong, but got "
                       << consumers;
  if (pingPong && (splitK != 1 || swapAB))
    return emitError() << "expected neither split_k nor swap_ab with ping_pong";
  // gemm_config_c1
  int64_t slice = 64 * (pingPong ? 1 : consumers);
  if (rows < slice || rows > 256 || rows % slice != 0)
    return emitError() << "expected " << rowsName << " to be a multiple of "
                       << slice << " up to 256, but got " << rows;
  // gemm_config_c2
  if (cols < 8 || cols > 256 || cols % 8 != 0)
    return emitError() << "expected " << colsName
                       << " to be a multiple of 8 up to 256, but got " << cols;
  // gemm_config_c5
  if (swapAB && store != GemmStore::Direct)
    return emitError() << "expected store = direct with swap_ab";
  // gemm_config_c6
  if (cluster == 2 && splitK != 1)
    return emitError() << "expected no split_k with cluster";
  if (cluster == 2 && cols % 16 != 0)
    return emitError() << "expected " << colsName
                       << " to be a multiple of 16 with cluster, but got "
                       << cols;
  return success();
}

LogicalResult SlotAttr::verify(EmitError emitError, StringRef name, Type format,
                               GemmRole, OperandKind, int64_t cache) {
  if (name.empty())
    return emitError() << "expected a slot to have a name";
  if (!isa<Float8E4M3FNType, Float8E5M2Type>(format))
    return emitError() << "expected the format of slot '" << name
                       << "' to be f8E4M3FN or f8E5M2, but got " << format;
  if (cache < 0)
    return emitError() << "expected the cache of slot '" << name
                       << "' to have a size, but got " << cache;
  return success();
}

LogicalResult StateTableAttr::verify(EmitError emitError,
                                     RecipeAttrInterface recipe,
                                     ArrayAttr slots) {
  if (!recipe.isStateful())
    return emitError() << "expected a recipe with state, but got " << recipe;
  llvm::StringSet<> names;
  for (Attribute attribute : slots) {
    auto slot = dyn_cast<SlotAttr>(attribute);
    if (!slot)
      return emitError() << "expected slots to be #fp8.slot, but got "
                         << attribute;
    if (!names.insert(slot.getName()).second)
      return emitError() << "expected one slot with the name '"
                         << slot.getName() << "', but got several";
  }
  return success();
}
