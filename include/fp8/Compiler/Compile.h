//===- Compile.h - From a module to machine code ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_COMPILE_H
#define FP8_COMPILER_COMPILE_H

#include "fp8/Pipelines/Pipelines.h"
#include "fp8/Program/Interface.h"
#include "fp8/Program/SharedObject.h"
#include "fp8/Support/OptionTable.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace mlir::fp8 {

class Monitor;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// All that has a say in compiling.
struct CompileOptions : PipelineOptions, LinkOptions {
  /// What names in C begin with.
  std::string name = "program";
  /// The processor of the host's code, as Processor.h has it.
  std::string cpu = "native";
  /// 0 to 3, how far LLVM optimizes it.
  std::string optLevel = "3";
  /// A table of measured kernels that is added to; "on" for that of this
  /// machine's GPU; empty or "off" for none.
  std::string tune;
  /// What is told of each step, if anything; not owned.
  Monitor *monitor = nullptr;
};

/// The members that PipelineOptions lacks.
ArrayRef<OptionInfo<CompileOptions>> getCompileOptions();

/// What stands for kernels as PTX, which drivers of later GPUs assemble.
inline constexpr StringLiteral kPortableTarget = "portable";

/// Sets the target, whatever stands for it.
void setTarget(CompileOptions &options, StringRef target);

/// The options with what their target stands for, once all are set.
llvm::Expected<CompileOptions> settleTarget(CompileOptions options);

/// Sets the option called `key`, one of getPipelineOptions() or
/// getCompileOptions(). Null if it is neither; else what its value should have
/// been, empty if it is that.
std::optional<StringRef> trySetOption(CompileOptions &options, StringRef key,
                                      StringRef value);

/// The same. The error names the key, or the nearest.
llvm::Error setOption(CompileOptions &options, StringRef key, StringRef value);

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//
//
// A module is used up by being compiled: whoever needs it again clones it.
// Errors in it are diagnostics, and then the ReportedError that is returned.

/// Runs the phases from `options.from` to `options.to`.
LogicalResult runPipeline(ModuleOp module, const PipelineOptions &options,
                          Monitor *monitor = nullptr);

/// Leaves of the module what `entry`, then public, needs: other functions cost
/// time, and their mistakes are not of interest. What stays is public if it
/// was: the slots of the scaling state depend on that.
LogicalResult isolate(ModuleOp module, func::FuncOp entry);

/// A program as machine code.
struct CompiledProgram {
  /// A C header for the program, of the file called `name`.
  llvm::Expected<std::string> getHeader(StringRef name) const {
    return getCHeader(interface, name);
  }
  /// Writes the object, or a shared object linked as was asked for, and the
  /// header unless its path is empty: all, or none after an error.
  llvm::Error writeObject(const std::string &path,
                          const std::string &header) const;
  llvm::Error writeSharedObject(const std::string &path,
                                const std::string &header) const;

  ProgramInterface interface;
  /// A relocatable object with the program's C interface; for several GPUs
  /// behind one for each.
  std::vector<std::string> objects;
  LinkOptions link;
};

/// Compiles the public functions of `module`; if it is given, `entry` alone is
/// to be called from outside. The target may be several of GPUs, with commas
/// between them: the device that a call runs on then decides.
llvm::Expected<CompiledProgram> compileProgram(ModuleOp module,
                                               const CompileOptions &options,
                                               func::FuncOp entry = {});

/// What can be emitted of a program beside a program.
enum class CodeKind { LLVM, PTX, Cubin, MLIR };

/// The kind called "llvm", "ptx", "cubin" or "mlir".
std::optional<CodeKind> symbolizeCodeKind(StringRef name);

/// The text or bytes: the host's code for LLVM, the kernels for PTX and Cubin,
/// what the phase `options.to` leaves for MLIR.
llvm::Expected<std::string> emitCode(ModuleOp module, CodeKind kind,
                                     const CompileOptions &options);

} // namespace mlir::fp8

#endif // FP8_COMPILER_COMPILE_H
