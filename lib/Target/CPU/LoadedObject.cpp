//===- LoadedObject.cpp - Machine code in this process --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/CPU/LoadedObject.h"
#include "Host.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/SectionMemoryManager.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace llvm::orc;

namespace {
/// What the process defines, wherever it comes from: LLVM's own generator sees
/// no more than what the program itself is linked to.
class ProcessSymbols : public DefinitionGenerator {
public:
  llvm::Error tryToGenerate(LookupState &, LookupKind, JITDylib &dylib,
                            JITDylibLookupFlags,
                            const SymbolLookupSet &symbols) override {
    SymbolMap found;
    for (const auto &[name, flags] : symbols)
      if (void *address = findSymbol(*name))
        found[name] = {ExecutorAddr::fromPtr(address),
                       llvm::JITSymbolFlags::Exported};
    if (found.empty())
      return llvm::Error::success();
    return dylib.define(absoluteSymbols(std::move(found)));
  }
};
} // namespace

/// Not JITLink, which takes the table of global offsets to be at 0 where code
/// of the medium model refers to one without entries. In one block, so that
/// sections reach each other.
static llvm::Expected<std::unique_ptr<ObjectLayer>>
createLinkingLayer(ExecutionSession &session) {
  return std::make_unique<RTDyldObjectLinkingLayer>(
      session, [](const llvm::MemoryBuffer &) {
        return std::make_unique<llvm::SectionMemoryManager>(
            /*MM=*/nullptr, /*ReserveAlloc=*/true);
      });
}

llvm::Expected<std::unique_ptr<LoadedObject>>
LoadedObject::load(StringRef object) {
  initializeHost();
  auto jit = LLJITBuilder()
                 .setPlatformSetUp(setUpInactivePlatform)
                 .setLinkProcessSymbolsByDefault(false)
                 .setObjectLinkingLayerCreator(createLinkingLayer)
                 .create();
  if (!jit)
    return jit.takeError();
  // What it would print, lookup returns.
  (*jit)->getExecutionSession().setErrorReporter(llvm::consumeError);
  (*jit)->getMainJITDylib().addGenerator(std::make_unique<ProcessSymbols>());
  if (llvm::Error error =
          (*jit)->addObjectFile(llvm::MemoryBuffer::getMemBuffer(
              object, "program", /*RequiresNullTerminator=*/false)))
    return error;
  return std::unique_ptr<LoadedObject>(new LoadedObject(std::move(*jit)));
}

LoadedObject::LoadedObject(std::unique_ptr<LLJIT> jit) : jit(std::move(jit)) {}

LoadedObject::~LoadedObject() = default;

llvm::Expected<void *> LoadedObject::lookup(StringRef name) const {
  auto address = jit->lookup(name);
  if (!address)
    return address.takeError();
  return address->toPtr<void *>();
}
