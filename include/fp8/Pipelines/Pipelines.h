//===- Pipelines.h - The road from bf16 to a binary -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PIPELINES_PIPELINES_H
#define FP8_PIPELINES_PIPELINES_H

#include "fp8/Support/OptionTable.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace mlir {
class InFlightDiagnostic;
class OpPassManager;
} // namespace mlir

namespace mlir::fp8 {

/// The phases of docs/Pipeline.md, in order. Each is the name that
/// `to=` and `--compile-to=` take.
enum class Phase { Import, Recipe, Scaling, Fusion, Buffers, Kernels, Host };

/// Name of `phase`, e.g. "fusion".
StringRef stringifyPhase(Phase phase);

/// The phase called `name`; nothing for another name.
std::optional<Phase> symbolizePhase(StringRef name);

struct PipelineOptions {
  /// Recipe of contractions that neither an attribute nor the recipe file
  /// decides: `name[,key=value...]`; empty leaves them in high precision.
  std::string recipe;
  /// Path of a JSON recipe file; empty for none.
  std::string recipeFile;
  /// Recipe of attention's products, which `recipe` is not for; empty leaves
  /// them in high precision.
  std::string attentionRecipe;
  /// Target: "cpu", or the chip of an architecture that kernels are built for.
  std::string target = "cpu";
  /// Whose numbers kernels are chosen by (fp8/Kernels/Machine.h); empty for the
  /// usual GPU of the chip.
  std::string machine;
  /// What a GPU's kernels are embedded as: "cubin", which needs ptxas, "ptx",
  /// which the driver compiles, or "auto", a cubin if there is a ptxas.
  std::string kernelFormat = "auto";
  /// Directory of assembled kernels (KernelCache.h); "off" for none, and the
  /// user's own if it is empty.
  std::string kernelCache;
  /// Path of a table of measured kernel configs, from fp8-tune; empty for none.
  std::string kernelTable;
  /// Path of the report of kernels that `fp8-report-fusion` writes, "-" for the
  /// standard output; empty for none. For GPUs.
  std::string fusionReport;
  /// First phase to run, a name of `Phase`: the program is what the one before
  /// left.
  std::string from = "import";
  /// Last phase to run, a name of `Phase`.
  std::string to = "host";
  /// A contraction that stays in high precision although its recipe is not
  /// `none` is an error.
  bool require = false;
  /// Largest share of K that padding may add before a contraction stays in
  /// high precision instead.
  double maxPadding = 0.25;
  /// Microseconds that a program may take longer for each megabyte (10^6 bytes)
  /// that the most that it allocates falls. For GPUs.
  double memoryPrice = 0;
  /// Copies of codes that would raise the peak above that of the program in
  /// high precision are made when they are needed. For GPUs.
  bool keepPeak = true;
  /// What becomes of FP8 operands that a GPU's tensor cores want in the other
  /// order: "copy", "kernel", which transposes one, or "cost", what is expected
  /// to take less.
  std::string transposedCodes = "copy";
  /// Products with a softmax between them become attention where the GPU has a
  /// kernel for it. Invariant programs keep them.
  bool raiseAttention = true;
  /// Scaling state is ordinary tensor arguments and results of public functions
  /// instead of one opaque argument.
  bool functionalState = false;
  /// What follows from constants is quantized now, not in every call.
  bool evaluateConstants = true;
  /// How a CPU adds up products: "f32", or "tensor-core", as a GPU's kernels
  /// do, bit by bit. GPUs do in any case.
  std::string accumulate = "f32";
  /// Which GPU's, the chip of an architecture; empty for the first of them.
  std::string accumulationOf;
  /// The bits of a row depend on that row alone (`fp8-mark-invariant`); a CPU
  /// then adds up products as a GPU does.
  bool invariant = false;
  /// Let tensor cores round operands in f32 to TF32. For GPUs, and CPUs that
  /// add up as they do.
  bool tf32 = false;
  /// The program reports statistics of every quantized tensor while it runs.
  bool stats = false;
};

/// Every member, as PipelineOptions.td has it.
ArrayRef<OptionInfo<PipelineOptions>> getPipelineOptions();

/// Appends the phases from `options.from` to `options.to` to `pm`, a pass
/// manager of `builtin.module`. Reports an unknown recipe, target or phase
/// through `emitError`.
LogicalResult buildPipeline(OpPassManager &pm, const PipelineOptions &options,
                            llvm::function_ref<InFlightDiagnostic()> emitError);

/// Appends phases `buffers` to `host` to `pm`: from the end of `fusion` to the
/// llvm dialect of a CPU.
void buildCPUPipeline(OpPassManager &pm);

/// Registers `--fp8-pipeline="recipe=... target=cpu to=fusion"`. Options that
/// are not given are those of `defaults`, if there are any, when a pipeline is
/// made.
void registerPipelines(const PipelineOptions *defaults = nullptr);

} // namespace mlir::fp8

#endif // FP8_PIPELINES_PIPELINES_H
