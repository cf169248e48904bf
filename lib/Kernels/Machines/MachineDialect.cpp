//===- MachineDialect.cpp - What a GPU takes for what ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MachineDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

#include "MachineDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "MachineAttrs.cpp.inc"

namespace {
/// A program names its machine at its top.
struct MachineAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attribute, raw_ostream &os) const final {
    if (!isa<MachineAttr>(attribute))
      return AliasResult::NoAlias;
    os << "machine";
    return AliasResult::FinalAlias;
  }
};
} // namespace

void MachineDialect::initialize() {
  registerAttributes();
  addInterfaces<MachineAsmInterface>();
}

void MachineDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "MachineAttrs.cpp.inc"
      >();
}

LogicalResult MachineDialect::verifyOperationAttribute(Operation *op,
                                                       NamedAttribute named) {
  if (named.getName() != kMachineAttrName || isa<MachineAttr>(named.getValue()))
    return success();
  return op->emitOpError("expected '")
         << kMachineAttrName << "' to be a #fp8_machine.machine, but got "
         << named.getValue();
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

FailureOr<double> machine::parseFloat(AsmParser &parser, Range range) {
  SMLoc loc = parser.getCurrentLocation();
  bool isNegative = succeeded(parser.parseOptionalMinus());
  double value = 0;
  APInt integer;
  OptionalParseResult isInteger = parser.parseOptionalInteger(integer);
  if (isInteger.has_value() ? failed(*isInteger)
                            : failed(parser.parseFloat(value)))
    return failure();
  if (isInteger.has_value())
    value = integer.signedRoundToDouble();
  if (isNegative)
    value = -value;
  StringRef expected = range == Range::Positive      ? "a positive number"
                       : range == Range::NotNegative ? "a number of at least 0"
                                                     : "a number";
  double least = range == Range::Any ? -HUGE_VAL : 0;
  if (!std::isfinite(value) || value < least ||
      (value == 0 && range == Range::Positive))
    return parser.emitError(loc)
           << "expected " << expected << ", but got " << value;
  return value;
}

FailureOr<int64_t> machine::parseCount(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t value = 0;
  if (failed(parser.parseInteger(value)))
    return failure();
  if (value <= 0)
    return parser.emitError(loc)
           << "expected a positive integer, but got " << value;
  return value;
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// What configs of streaming kernels may have.
static LogicalResult checkBlock(EmitError emitError, StringRef what,
                                int64_t warps, int64_t resident) {
  if (warps > 32 || !llvm::isPowerOf2_64(warps))
    return emitError() << "expected warps of " << what
                       << " to be a power of two up to 32, but got " << warps;
  if (resident > 8)
    return emitError() << "expected at most 8 resident blocks of " << what
                       << ", but got " << resident;
  return success();
}

LogicalResult TileModelAttr::verify(EmitError emitError, machine::Count rows,
                                    machine::Count warps,
                                    machine::Count resident) {
  // C1
  if (rows > 32 || !llvm::isPowerOf2_64(rows))
    return emitError() << "expected rows of a tile to be a power of two up to "
                          "32, but got "
                       << rows.value;
  return checkBlock(emitError, "a tile", warps, resident);
}

LogicalResult FusionModelAttr::verify(
    EmitError emitError, TileModelAttr, TileModelAttr, TileModelAttr,
    TileModelAttr, TileModelAttr, TileModelAttr, TileModelAttr, TileModelAttr,
    TileModelAttr, TileModelAttr, TileModelAttr, machine::Count, machine::Count,
    machine::Count, machine::Count rowWarps, machine::Count rowResident,
    machine::Count) {
  // C1
  return checkBlock(emitError, "whole rows", rowWarps, rowResident);
}

LogicalResult TransposeModelAttr::verify(EmitError emitError,
                                         machine::Count warpBytes) {
  // C1
  if (warpBytes != 8 && warpBytes != 16)
    return emitError() << "expected warp_bytes to be 8 or 16, but got "
                       << warpBytes.value;
  return success();
}

//===----------------------------------------------------------------------===//
// Machines
//===----------------------------------------------------------------------===//

LogicalResult MachineAttr::verify(EmitError emitError, StringRef name,
                                  ArrayAttr devices, bool, GPUTargetAttr target,
                                  machine::Count, machine::Count,
                                  Attribute matmul, FusionModelAttr,
                                  TransposeModelAttr, AttentionModelAttr,
                                  DictionaryAttr layers, HostModelAttr) {
  // C1
  if (name.empty())
    return emitError() << "expected a machine to have a name";
  if (devices.empty() || !llvm::all_of(devices, [](Attribute device) {
        auto text = dyn_cast<StringAttr>(device);
        return text && !text.empty();
      }))
    return emitError() << "expected 'devices' of a machine to be names, but "
                          "got "
                       << devices;
  // C2
  if (target.getMachine())
    return emitError() << "expected 'target' of a machine without one of its "
                          "own, but got "
                       << target;
  // C3
  if (!isa<WgmmaModelAttr, Tcgen05ModelAttr, MmaModelAttr>(matmul))
    return emitError() << "expected 'matmul' of a machine to be a "
                          "#fp8_machine.wgmma, a #fp8_machine.tcgen05 or a "
                          "#fp8_machine.mma, but got "
                       << matmul;
  // C4
  for (NamedAttribute layer : layers)
    if (!isa<LayerModelAttr>(layer.getValue()))
      return emitError() << "expected '" << layer.getName().getValue()
                         << "' of 'layers' to be a #fp8_machine.layer, but got "
                         << layer.getValue();
  if (!layers.contains("none"))
    return emitError() << "expected 'layers' of a machine to have 'none'";
  return success();
}

/// The files of this folder.
static constexpr StringLiteral kFiles[] = {
#include "Machines.inc"
};

ArrayRef<MachineAttr> MachineDialect::getMachines() {
  // Passes ask for them, in any thread.
  std::call_once(parsed, [this] {
    for (StringRef text : kFiles) {
      OwningOpRef<ModuleOp> module =
          parseSourceString<ModuleOp>(text, ParserConfig(getContext()));
      auto machine =
          module ? (*module)->getAttrOfType<MachineAttr>(kMachineAttrName)
                 : MachineAttr();
      if (!machine)
        llvm::report_fatal_error("a file of lib/Kernels/Machines is none");
      machines.push_back(machine);
    }
  });
  return machines;
}
