//===- Program.h - A program that can be called -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_PROGRAM_H
#define FP8_COMPILER_PROGRAM_H

#include "fp8/Compiler/Compile.h"
#include "fp8/Compiler/Profile.h"
#include "fp8/Runtime/Program.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace mlir::fp8 {

class LoadedObject;

/// A program in this process: compiled here, or before, to a shared object. It
/// needs no context of MLIR.
///
/// Calls may come from any thread, at the same time. On a GPU, one thread at a
/// time launches on a device.
class Program {
public:
  /// Makes what was compiled callable. Errors: FP8RT_ERROR_UNSUPPORTED_ARCH for
  /// another processor.
  static llvm::Expected<std::unique_ptr<Program>>
  create(CompiledProgram compiled);
  /// Opens a shared object. Errors: the same, and those of fp8rt_program_open.
  static llvm::Expected<std::unique_ptr<Program>> load(const std::string &path);
  /// Waits for the GPUs that it ran on.
  ~Program();
  Program(const Program &) = delete;

  /// Owned by the program.
  const fp8rt_program_info &getInfo() const { return *info; }
  bool isOnGPU() const;
  /// What it was made of; null for one that was loaded.
  const CompiledProgram *getCompiled() const { return compiled.get(); }

  /// The function called `name`. Errors: FP8RT_ERROR_NOT_FOUND.
  llvm::Expected<const fp8rt_program_function *>
  getFunction(const std::string &name) const;

  /// Calls a function, as fp8rt_program_call does: on a GPU in `stream` of
  /// `device`, without waiting for it.
  llvm::Error call(const fp8rt_program_function &function,
                   void *const *arguments, void *const *results,
                   fp8rt_state state = 0, int32_t device = 0,
                   fp8rt_stream stream = nullptr);

  /// Ends a step of `state`, as fp8rt_program_update_state does: on a GPU in
  /// `stream` of `device`, without waiting for it.
  llvm::Error updateState(fp8rt_state state, int32_t device = 0,
                          fp8rt_stream stream = nullptr);

  /// Times what calls put into `stream` of `device` until the profile is
  /// stopped, which waits for it; see fp8/Runtime/Profile.h.
  llvm::Error startProfile(int32_t device, fp8rt_stream stream);
  llvm::Expected<std::vector<ProfileEntry>> stopProfile(int32_t device,
                                                        fp8rt_stream stream);

private:
  /// Kernels and constants on a device.
  struct DeviceContext {
    ~DeviceContext() { fp8rt_context_destroy(context); }

    std::mutex mutex;
    fp8rt_context *context = nullptr;
  };

  Program() = default;
  /// Runs `body` with the context of `device`, whose work goes to `stream`.
  llvm::Error
  withContext(int32_t device, fp8rt_stream stream,
              llvm::function_ref<fp8rt_status(fp8rt_context *)> body);

  std::unique_ptr<CompiledProgram> compiled;
  std::unique_ptr<LoadedObject> object;
  std::unique_ptr<fp8rt_program, fp8rt_status (*)(fp8rt_program *)> library{
      nullptr, fp8rt_program_close};
  const fp8rt_program_info *info = nullptr;
  std::mutex mutex;
  /// Contexts of devices that the program ran on. Last: they precede the code.
  std::map<int32_t, DeviceContext> contexts;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_PROGRAM_H
