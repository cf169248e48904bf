//===- Interface.h - What a compiled program offers -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pipeline leaves nothing of names and tensors: what a program takes and
// gives is collected before it runs, completed after it, and then described in
// three ways: to the runtime (fp8/Runtime/Program.h), to C, and in JSON.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PROGRAM_INTERFACE_H
#define FP8_PROGRAM_INTERFACE_H

#include "fp8/Pipelines/Pipelines.h"
#include "fp8/Program/Signature.h"
#include "fp8/Target/CPU/Processor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::fp8 {

/// A public function of the program.
struct ProgramFunction {
  Signature signature;
  /// What C calls it.
  std::string symbol;
  /// How many arguments MLIR's C interface of it has, of which on a GPU the
  /// last one is the context.
  int64_t numArguments = 0;
};

/// One of the programs that one for several GPUs consists of.
struct ProgramVariant {
  /// That of its description, which other objects see.
  std::string symbol;
  int64_t computeCapability;
  /// Whether its kernels are PTX that drivers of later GPUs assemble.
  bool runsLater;
};

struct ProgramInterface {
  /// The interface of `module`'s public functions with bodies, or of `entry`
  /// alone, which get the attribute that the rest of the road needs. `name` is
  /// what names in C begin with. Reports types that cannot be passed.
  static FailureOr<ProgramInterface> create(ModuleOp module, StringRef name,
                                            const PipelineOptions &options,
                                            func::FuncOp entry = {});

  /// After the pipeline: what it added. Reports what stands in its way.
  LogicalResult complete(ModuleOp module);

  bool isOnGPU() const { return target != "cpu"; }

  std::string name;
  std::string target;
  std::string recipe;
  /// "cubin" or "ptx"; empty without a GPU.
  std::string kernelFormat;
  /// What the host's code is compiled for.
  Processor processor;
  /// As getStateManifest writes it; empty without a state.
  std::string stateManifest;
  int64_t numSlots = 0;
  /// 32-bit words that each keeps, and the recipe as the runtime prints it.
  int64_t numWords = 0;
  std::string stateRecipe;
  /// The function that ends a step; empty without a state.
  std::string stateUpdate;
  /// The tensors whose statistics the program records, by their slots.
  std::vector<std::string> statsSlots;
  std::vector<ProgramFunction> functions;
  /// What calls go to of a program for several GPUs, whose object has nothing
  /// else.
  std::vector<ProgramVariant> variants;
  /// What a variant is in that list; nothing but its description is seen of
  /// one.
  std::optional<ProgramVariant> asVariant;

private:
  LogicalResult completeState(ModuleOp module);
};

/// `text` as an identifier of C and C++.
std::string makeIdentifier(StringRef text);

/// What C calls the program's description.
std::string getInfoSymbol(const ProgramInterface &program);

/// What C calls the end of a step.
std::string getUpdateSymbol(const ProgramInterface &program);

/// The alignment of `info`'s data, in bytes.
int64_t getAlignment(const ProgramInterface &program, const ValueInfo &info);

/// The description in JSON; docs/Runtime.md lists the keys.
std::string getManifest(const ProgramInterface &program);

/// What hosts need of such a description: the processor that the program was
/// compiled for, and its functions, whose types are made in `context`.
llvm::Expected<Processor> parseProcessor(StringRef manifest);
llvm::Expected<std::vector<Signature>> parseSignatures(StringRef manifest,
                                                       MLIRContext &context);

/// A header for C and C++; `file` is its own name.
llvm::Expected<std::string> getCHeader(const ProgramInterface &program,
                                       StringRef file);

/// Adds to the program's host code, in LLVM IR, a function for each in the
/// header and the fp8rt_program_info. Nothing else stays visible.
void addCInterface(llvm::Module &module, const ProgramInterface &program);

} // namespace mlir::fp8

#endif // FP8_PROGRAM_INTERFACE_H
