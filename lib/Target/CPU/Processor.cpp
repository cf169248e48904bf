//===- Processor.cpp - Which processors a program runs on -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/CPU/Processor.h"
#include "Host.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace mlir::fp8;

static std::unique_ptr<llvm::MCSubtargetInfo>
createSubtarget(StringRef cpu, StringRef features) {
  initializeHost();
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      target->createMCSubtargetInfo(triple, cpu, features));
}

llvm::Expected<Processor> Processor::get(StringRef cpu) {
  Processor processor;
  processor.name = cpu.str();
  if (cpu == "native") {
    processor.name = llvm::sys::getHostCPUName().str();
    // A virtual machine may lack what the name says.
    SmallVector<std::string> features;
    for (const auto &[name, isThere] : llvm::sys::getHostCPUFeatures())
      features.push_back((isThere ? "+" : "-") + name.str());
    llvm::sort(features);
    processor.features = llvm::join(features, ",");
    return processor;
  }
  // With a name that it does not know, LLVM would go on.
  auto subtarget = createSubtarget("", "");
  if (!subtarget || !subtarget->isCPUStringValid(cpu))
    return llvm::createStringError(
        "expected native or a processor that LLVM knows, such as x86-64-v3, "
        "but got '" +
        cpu + "'");
  return processor;
}

llvm::Error fp8::checkProcessor(const Processor &processor) {
  auto known = Processor::get(processor.name);
  if (!known)
    return known.takeError();
  auto subtarget = createSubtarget(processor.name, processor.features);
  SmallVector<std::string> missing;
  for (const auto &[name, isThere] : llvm::sys::getHostCPUFeatures())
    if (!isThere && subtarget->checkFeatures(("+" + name).str()))
      missing.push_back(name.str());
  if (missing.empty())
    return llvm::Error::success();
  llvm::sort(missing);
  return llvm::createStringError(
      "expected a processor like " + processor.name +
      ", for which the program was compiled, but this one lacks " +
      llvm::join(missing, ", "));
}
