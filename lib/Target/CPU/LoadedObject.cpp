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
#include "llvm/Support/Memory.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"

#include <sys/mman.h>

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

namespace {
/// One range of addresses for all sections of an object, so that code reaches
/// them with 32 bits. In LLVM's own reservation there may be no room for the
/// table of global offsets, which is then wherever the system has some, and
/// calls through it go astray.
class Arena : public llvm::SectionMemoryManager::MemoryMapper {
public:
  explicit Arena(size_t size) : size(size) {
    void *reserved = mmap(nullptr, size, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    base = reserved == MAP_FAILED ? nullptr : static_cast<char *>(reserved);
  }
  ~Arena() override {
    if (base)
      munmap(base, size);
  }

  llvm::sys::MemoryBlock
  allocateMappedMemory(llvm::SectionMemoryManager::AllocationPurpose,
                       size_t bytes, const llvm::sys::MemoryBlock *,
                       unsigned flags, std::error_code &error) override {
    bytes = llvm::alignTo(bytes, llvm::sys::Process::getPageSizeEstimate());
    if (!base || bytes > size - used) {
      error = std::make_error_code(std::errc::not_enough_memory);
      return {};
    }
    llvm::sys::MemoryBlock block(base + used, bytes);
    used += bytes;
    error = protectMappedMemory(block, flags);
    return block;
  }
  std::error_code protectMappedMemory(const llvm::sys::MemoryBlock &block,
                                      unsigned flags) override {
    return llvm::sys::Memory::protectMappedMemory(block, flags);
  }
  /// With all of it.
  std::error_code releaseMappedMemory(llvm::sys::MemoryBlock &) override {
    return {};
  }

private:
  size_t size, used = 0;
  char *base = nullptr;
};

/// Outlives the memory manager that it is a base of.
struct ArenaOwner {
  explicit ArenaOwner(size_t size) : arena(size) {}
  Arena arena;
};

struct NearMemoryManager : private ArenaOwner, llvm::SectionMemoryManager {
  explicit NearMemoryManager(size_t size)
      : ArenaOwner(size), SectionMemoryManager(&arena) {}
};
} // namespace

/// Not JITLink, which takes the table of global offsets to be at 0 where code
/// of the medium model refers to one without entries.
static llvm::Expected<std::unique_ptr<ObjectLayer>>
createLinkingLayer(ExecutionSession &session) {
  return std::make_unique<RTDyldObjectLinkingLayer>(
      session, [](const llvm::MemoryBuffer &object) {
        // Sections, stubs and tables are smaller than the file twice over.
        constexpr size_t kLeast = size_t{16} << 20;
        return std::make_unique<NearMemoryManager>(kLeast +
                                                   2 * object.getBufferSize());
      });
}

llvm::Expected<std::unique_ptr<LoadedObject>>
LoadedObject::load(ArrayRef<std::string> objects) {
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
  for (StringRef object : objects)
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
