//===- Machine.cpp - Which GPU's numbers count ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MachineLookup.h"
#include "fp8/Support/InputFile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr StringLiteral kDevicePrefix = "device:";

static ArrayRef<MachineAttr> getMachines(MLIRContext *context) {
  return context->getOrLoadDialect<MachineDialect>()->getMachines();
}

static MachineAttr findMachine(MLIRContext *context,
                               llvm::function_ref<bool(MachineAttr)> matches) {
  const auto *found = llvm::find_if(getMachines(context), matches);
  return found == getMachines(context).end() ? MachineAttr() : *found;
}

static MachineAttr findUsual(StringRef chip, MLIRContext *context) {
  return findMachine(context, [&](MachineAttr machine) {
    return machine.getUsual() && machine.getTarget().getChip() == chip;
  });
}

static MachineAttr findByName(StringRef name, MLIRContext *context) {
  return findMachine(
      context, [&](MachineAttr machine) { return machine.getName() == name; });
}

static GPUTargetAttr withMachine(GPUTargetAttr target, Attribute machine) {
  return GPUTargetAttr::get(
      target.getContext(), target.getChip(), target.getComputeCapability(),
      target.getFeatures(), target.getMultiprocessors(),
      target.getSharedBytes(), target.getRegisters(), target.getMmaRate(),
      target.getL2Rate(), target.getMemoryRate(), target.getClock(),
      target.getMemoryPeak(), target.getLaunchTime(), machine);
}

MachineAttr fp8::getMachine(GPUTargetAttr target) {
  MLIRContext *context = target.getContext();
  if (auto own = dyn_cast_or_null<MachineAttr>(target.getMachine()))
    return own;
  if (auto name = dyn_cast_or_null<StringAttr>(target.getMachine()))
    if (MachineAttr named = findByName(name, context))
      return named;
  MachineAttr usual = findUsual(target.getChip(), context);
  return usual ? usual : getMachines(context).front();
}

AttentionModelAttr fp8::getAttentionModel(GPUTargetAttr target) {
  if (AttentionModelAttr model = getMachine(target).getAttention())
    return model;
  MachineAttr usual = findUsual(target.getChip(), target.getContext());
  return usual ? usual.getAttention() : AttentionModelAttr();
}

GPUTargetAttr fp8::getUsualTarget(StringRef chip, MLIRContext *context) {
  MachineAttr usual = findUsual(chip, context);
  return usual ? usual.getTarget() : GPUTargetAttr();
}

/// The target of one of the compiler's own machines.
static GPUTargetAttr getTarget(MachineAttr machine) {
  // Programs need not say the usual one.
  return machine.getUsual() ? machine.getTarget()
                            : withMachine(machine.getTarget(),
                                          StringAttr::get(machine.getContext(),
                                                          machine.getName()));
}

static std::string getNames(StringRef chip, MLIRContext *context) {
  std::string names;
  for (MachineAttr machine : getMachines(context))
    if (machine.getTarget().getChip() == chip)
      names += (names.empty() ? "" : ", ") + machine.getName().str();
  return names.empty() ? "none" : names;
}

/// Whether a device's name has `word`: an H200 is no GH200.
static bool hasWord(StringRef device, StringRef word) {
  for (size_t at = device.find(word); at != StringRef::npos;
       at = device.find(word, at + 1)) {
    StringRef before = device.take_front(at);
    StringRef behind = device.drop_front(at + word.size());
    if ((before.empty() || !llvm::isAlnum(before.back())) &&
        (behind.empty() || !llvm::isAlnum(behind.front())))
      return true;
  }
  return false;
}

static FailureOr<GPUTargetAttr>
lookupDevice(StringRef device, StringRef chip, MLIRContext *context,
             llvm::function_ref<InFlightDiagnostic()> emitError,
             llvm::function_ref<InFlightDiagnostic()> emitRemark) {
  MachineAttr known = findMachine(context, [&](MachineAttr machine) {
    return machine.getTarget().getChip() == chip &&
           llvm::any_of(machine.getDevices().getAsRange<StringAttr>(),
                        [&](StringAttr name) {
                          return hasWord(device, name.getValue());
                        });
  });
  if (known)
    return getTarget(known);
  MachineAttr usual = findUsual(chip, context);
  if (!usual) {
    emitError() << "expected a file in place of device '" << device
                << "', for there are no machines with chip " << chip;
    return failure();
  }
  emitRemark() << "device '" << device << "' is none of the machines "
               << getNames(chip, context) << "; kernels are chosen as for "
               << usual.getName();
  return usual.getTarget();
}

/// The target of a machine that the compiler may not have, if kernels of `chip`
/// can be compared by it.
static FailureOr<GPUTargetAttr>
checkMachine(MachineAttr machine, StringRef name, StringRef chip,
             llvm::function_ref<InFlightDiagnostic()> emitError) {
  GPUTargetAttr target = machine.getTarget();
  if (target.getChip() != chip) {
    emitError() << "machine '" << name << "': expected one with chip " << chip
                << ", but got " << target.getChip();
    return failure();
  }
  // What a chip's kernels are compared by is one kind of model.
  MachineAttr usual = findUsual(chip, machine.getContext());
  if (usual && machine.getMatmul().getAbstractAttribute().getTypeID() !=
                   usual.getMatmul().getAbstractAttribute().getTypeID()) {
    emitError() << "machine '" << name << "': expected 'matmul' to be a #"
                << usual.getMatmul().getAbstractAttribute().getName()
                << ", but got a #"
                << machine.getMatmul().getAbstractAttribute().getName();
    return failure();
  }
  return target;
}

FailureOr<GPUTargetAttr>
fp8::parseMachine(std::unique_ptr<llvm::MemoryBuffer> text, StringRef name,
                  StringRef chip, MLIRContext *context,
                  llvm::function_ref<InFlightDiagnostic()> emitError) {
  // The parser reports what is wrong with the text, with its place.
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(text), llvm::SMLoc());
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, ParserConfig(context));
  if (!module) {
    emitError() << "machine '" << name << "': expected a program of MLIR";
    return failure();
  }
  auto machine =
      (*module)->getAttrOfType<MachineAttr>(MachineDialect::kMachineAttrName);
  if (!machine) {
    emitError() << "machine '" << name
                << "': expected a module with the attribute '"
                << MachineDialect::kMachineAttrName << "'";
    return failure();
  }
  FailureOr<GPUTargetAttr> target =
      checkMachine(machine, name, chip, emitError);
  if (failed(target))
    return failure();
  return withMachine(*target, machine);
}

FailureOr<GPUTargetAttr>
fp8::lookupMachine(StringRef machine, StringRef chip, MLIRContext *context,
                   llvm::function_ref<InFlightDiagnostic()> emitError,
                   llvm::function_ref<InFlightDiagnostic()> emitRemark) {
  if (machine.consume_front(kDevicePrefix))
    return lookupDevice(machine, chip, context, emitError, emitRemark);
  if (MachineAttr found = findByName(machine, context)) {
    if (failed(checkMachine(found, machine, chip, emitError)))
      return failure();
    return getTarget(found);
  }
  if (!llvm::sys::fs::exists(machine)) {
    emitError() << "expected machine to be one of " << getNames(chip, context)
                << ", or a file, but got '" << machine << "'";
    return failure();
  }
  auto text = readInputFile(machine);
  if (!text) {
    emitError() << "machine '" << machine
                << "': " << llvm::toString(text.takeError());
    return failure();
  }
  return parseMachine(std::move(*text), machine, chip, context, emitError);
}

void fp8::registerMachines(DialectRegistry &registry) {
  registry.insert<MachineDialect>();
}
