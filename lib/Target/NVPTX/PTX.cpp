//===- PTX.cpp - Kernels to PTX and machine code --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/NVPTX/PTX.h"
#include "mlir/Target/LLVM/ModuleToObject.h"
#include "mlir/Target/LLVM/NVVM/Utils.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace mlir::fp8;

/// Marks inline assembly as convergent. Barriers and warpgroup instructions
/// must be executed by all threads together, which MLIR 22 has no way to say of
/// llvm.inline_asm; without the mark LLVM may duplicate them or sink them into
/// branches.
static void markAssemblyConvergent(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = dyn_cast<llvm::CallBase>(&instruction);
          call && call->isInlineAsm())
        call->setConvergent();
}

namespace {
class KernelTranslator : public LLVM::ModuleToObject {
public:
  KernelTranslator(gpu::GPUModuleOp module, const PTXOptions &options)
      : ModuleToObject(*module, "nvptx64-nvidia-cuda", options.chip,
                       options.features, options.optLevel,
                       markAssemblyConvergent) {}

protected:
  FailureOr<SmallVector<char, 0>>
  moduleToObject(llvm::Module &translated) override {
    FailureOr<llvm::TargetMachine *> machine = getOrCreateTargetMachine();
    if (failed(machine))
      return failure();
    FailureOr<SmallString<0>> isa = translateModuleToISA(
        translated, **machine, [&] { return getOperation().emitError(); });
    if (failed(isa))
      return failure();
    return SmallVector<char, 0>(isa->begin(), isa->end());
  }
};
} // namespace

FailureOr<std::string> fp8::emitPTX(gpu::GPUModuleOp module,
                                    const PTXOptions &options) {
  NVVM::SerializeGPUModuleBase::init();
  std::optional<SmallVector<char, 0>> ptx =
      KernelTranslator(module, options).run();
  if (!ptx)
    return failure();
  return std::string(ptx->begin(), ptx->end());
}

//===----------------------------------------------------------------------===//
// ptxas
//===----------------------------------------------------------------------===//

bool fp8::isForEmulator() {
  const char *driver = std::getenv("FP8_CUDA_DRIVER");
  return driver && (StringRef(driver) == "emulator" ||
                    llvm::sys::path::filename(driver) == "libfp8emu.so");
}

std::string fp8::findPtxas() {
  auto find = [](ArrayRef<StringRef> paths) {
    llvm::ErrorOr<std::string> found =
        llvm::sys::findProgramByName("ptxas", paths);
    return found ? *found : std::string();
  };
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"})
    if (std::optional<std::string> home = llvm::sys::Process::GetEnv(variable))
      return find({*home + "/bin"});
  if (std::string found = find({}); !found.empty())
    return found;
  return find({"/usr/local/cuda/bin"});
}

SmallVector<std::string> fp8::getPtxasFlags(const PTXOptions &options) {
  return {"-v", "-arch", options.chip, "-O" + std::to_string(options.optLevel)};
}

/// Files with these suffixes, which are removed with `removers`, whatever
/// happens.
static std::error_code createTemporaryFiles(
    ArrayRef<StringRef> suffixes, SmallVectorImpl<std::string> &paths,
    SmallVectorImpl<std::unique_ptr<llvm::FileRemover>> &removers) {
  for (StringRef suffix : suffixes) {
    SmallString<128> path;
    if (std::error_code error =
            llvm::sys::fs::createTemporaryFile("fp8", suffix, path))
      return error;
    removers.push_back(std::make_unique<llvm::FileRemover>(path));
    paths.push_back(path.str().str());
  }
  return {};
}

/// Runs a program, whose output goes to a file.
static int execute(ArrayRef<StringRef> command, StringRef output,
                   std::string &message) {
  std::optional<StringRef> redirects[] = {StringRef(), output, output};
  return llvm::sys::ExecuteAndWait(command[0], command, /*Env=*/std::nullopt,
                                   redirects, /*SecondsToWait=*/0,
                                   /*MemoryLimit=*/0, &message);
}

std::string fp8::getPtxasVersion(StringRef ptxas) {
  SmallVector<std::string, 1> paths;
  SmallVector<std::unique_ptr<llvm::FileRemover>> removers;
  std::string message;
  if (createTemporaryFiles({"log"}, paths, removers) ||
      execute({ptxas, "--version"}, paths[0], message) != 0)
    return {};
  auto text = llvm::MemoryBuffer::getFile(paths[0]);
  return text ? (*text)->getBuffer().str() : std::string();
}

FailureOr<SmallVector<char>>
fp8::assemblePTX(StringRef ptx, const PTXOptions &options, std::string &log,
                 llvm::function_ref<InFlightDiagnostic()> emitError) {
  std::string ptxas = options.ptxas.empty() ? findPtxas() : options.ptxas;
  if (ptxas.empty()) {
    emitError() << kNoPtxas;
    return failure();
  }
  SmallVector<std::string, 3> paths;
  SmallVector<std::unique_ptr<llvm::FileRemover>> removers;
  if (std::error_code error =
          createTemporaryFiles({"ptx", "cubin", "log"}, paths, removers)) {
    emitError() << "expected to create a temporary file, but got: "
                << error.message();
    return failure();
  }
  std::error_code error;
  llvm::raw_fd_ostream input(paths[0], error);
  input << ptx;
  input.close();
  if (error || input.has_error()) {
    emitError() << "expected to write " << paths[0];
    input.clear_error();
    return failure();
  }
  SmallVector<std::string> flags = getPtxasFlags(options);
  SmallVector<StringRef> command{ptxas};
  llvm::append_range(command, flags);
  command.append({paths[0], "-o", paths[1]});
  std::string message;
  int code = execute(command, paths[2], message);
  if (auto text = llvm::MemoryBuffer::getFile(paths[2]))
    log = (*text)->getBuffer().str();
  if (code != 0) {
    emitError() << "ptxas failed: " << (message.empty() ? log : message);
    return failure();
  }
  auto cubin = llvm::MemoryBuffer::getFile(paths[1]);
  if (!cubin) {
    emitError() << "expected ptxas to write " << paths[1];
    return failure();
  }
  StringRef bytes = (*cubin)->getBuffer();
  return SmallVector<char>(bytes.begin(), bytes.end());
}
