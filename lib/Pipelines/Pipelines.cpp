//===- Pipelines.cpp - The road from bf16 to a binary ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of contents of the compiler: one function for each phase, in order.
// docs/Pipeline.md says what each promises.
//
//===----------------------------------------------------------------------===//

#include "fp8/Pipelines/Pipelines.h"
#include "TargetPipelines.h"
#include "fp8/IR/FP8Attrs.h"
#include "fp8/Pipelines/Passes.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

static constexpr std::pair<StringLiteral, Phase> phases[] = {
    {"import", Phase::Import},   {"recipe", Phase::Recipe},
    {"scaling", Phase::Scaling}, {"fusion", Phase::Fusion},
    {"buffers", Phase::Buffers}, {"kernels", Phase::Kernels},
    {"host", Phase::Host}};

StringRef fp8::stringifyPhase(Phase phase) {
  return phases[static_cast<size_t>(phase)].first;
}

std::optional<Phase> fp8::symbolizePhase(StringRef name) {
  for (auto [phaseName, phase] : phases)
    if (phaseName == name)
      return phase;
  return std::nullopt;
}

void fp8::addVerifyStagePass(OpPassManager &pm, Phase phase) {
  VerifyStagePassOptions options;
  options.stage = stringifyPhase(phase).str();
  pm.addPass(createVerifyStagePass(options));
}

/// 1: other dialects' contractions become linalg's, and get names.
static void buildImportPipeline(OpPassManager &pm) {
  pm.addPass(createFoldGlobalsPass());
  // Names come first: raising tosa.matmul keeps its location, upstream's
  // decompositions may not.
  pm.addPass(createAnnotateGemmsPass());
  TosaToLinalgOptions tosaOptions;
  tosa::addTosaToLinalgPasses(pm, tosaOptions, TosaToLinalgNamedOptions(),
                              /*validationOptions=*/std::nullopt);
  addFuncPass(pm, createTosaToArithPass());
  addFuncPass(pm, createTosaToTensorPass());
  addFuncPass(pm, createTosaToSCFPass());
  pm.addPass(createAnnotateGemmsPass());
}

/// 2: quantize and dequantize around contractions.
static void buildRecipePipeline(OpPassManager &pm,
                                const PipelineOptions &options) {
  ApplyRecipePassOptions applyOptions;
  applyOptions.recipe = options.recipe;
  applyOptions.recipeFile = options.recipeFile;
  applyOptions.require = options.require;
  applyOptions.maxPadding = options.maxPadding;
  pm.addPass(createApplyRecipePass(applyOptions));
}

/// 3: every scale an SSA value.
static void buildScalingPipeline(OpPassManager &pm,
                                 const PipelineOptions &options) {
  // Before scales are given: a quantize that names its recipe moves as one
  // operation, and equal ones merge before each gets an amax of its own.
  addFuncPass(pm, createSimplifyCastsPass());
  pm.addPass(createCSEPass());
  AllocateStatePassOptions stateOptions;
  stateOptions.counts = options.stats && !options.functionalState;
  // Tensors have no place to keep a weight.
  stateOptions.cacheWeights = !options.functionalState;
  pm.addPass(createAllocateStatePass(stateOptions));
  addFuncPass(pm, createInferScalesPass());
  pm.addPass(createCSEPass());
  pm.addPass(createVerifyStatePass());
  pm.addPass(createBindScalesPass());
  if (options.functionalState)
    pm.addPass(createFunctionalizeStatePass());
  // Of a state that is left.
  pm.addPass(createBuildStateUpdatePass());
}

/// 4: fp8.matmul with epilogues.
static void buildFusionPipeline(OpPassManager &pm,
                                const PipelineOptions &options) {
  addFuncPass(pm, createFormMatmulPass());
  // What surrounds the matmuls becomes few elementwise generics, which then
  // move into the epilogues whole.
  addFuncPass(pm, createConvertElementwiseToLinalgPass());
  addFuncPass(pm, createFuseElementwisePass());
  addFuncPass(pm, createFuseEpiloguesPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (options.stats)
    pm.addPass(createInstrumentQuantizePass());
  // Last: what is measured of a constant is constant too, and casts that have
  // been fused or shared are evaluated once.
  if (options.evaluateConstants)
    pm.addPass(createEvaluateConstantsPass());
}

LogicalResult
fp8::buildPipeline(OpPassManager &pm, const PipelineOptions &options,
                   llvm::function_ref<InFlightDiagnostic()> emitError) {
  bool isGPU = options.target == "sm_90a";
  if (options.target != "cpu" && !isGPU)
    return emitError() << "expected target to be cpu or sm_90a, but got '"
                       << options.target << "'";
  std::optional<Phase> first = symbolizePhase(options.from);
  std::optional<Phase> last = symbolizePhase(options.to);
  if (!first || !last)
    return emitError() << "expected a phase (import, recipe, scaling, fusion, "
                          "buffers, kernels, host), but got '"
                       << (first ? options.to : options.from) << "'";
  if (*last < *first)
    return emitError() << "expected phase '" << options.from
                       << "' or a later one to end with, but got '"
                       << options.to << "'";
  for (auto [name, phase] : phases) {
    if (phase < *first)
      continue;
    switch (phase) {
    case Phase::Import:
      buildImportPipeline(pm);
      break;
    case Phase::Recipe:
      buildRecipePipeline(pm, options);
      break;
    case Phase::Scaling:
      buildScalingPipeline(pm, options);
      break;
    case Phase::Fusion:
      buildFusionPipeline(pm, options);
      break;
    case Phase::Buffers:
      isGPU ? buildGPUBufferPipeline(pm, options) : buildCPUBufferPipeline(pm);
      break;
    case Phase::Kernels:
      isGPU ? buildGPUKernelPipeline(pm) : buildCPUKernelPipeline(pm);
      break;
    case Phase::Host:
      isGPU ? buildGPUHostPipeline(pm, options) : buildCPUHostPipeline(pm);
      break;
    }
    addVerifyStagePass(pm, phase);
    if (phase == *last)
      break;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

/// Splits `key=value key=value`; the values of `recipe` hold `=` and commas, so
/// that upstream's parser of pipeline options, which would take them apart, is
/// told that the value is one string in braces or quotes, or ends at a space.
static LogicalResult
parsePipelineOptions(StringRef text, PipelineOptions &options,
                     llvm::function_ref<LogicalResult(const Twine &)> error) {
  SmallVector<StringRef> settings;
  text.split(settings, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef setting : settings) {
    StringRef key = setting.split('=').first;
    StringRef value = setting.split('=').second.trim("{}\"'");
    auto parseBool = [&](bool &flag) -> LogicalResult {
      if (value == "true" || value.empty() || value == "1")
        flag = true;
      else if (value == "false" || value == "0")
        flag = false;
      else
        return error("expected option '" + key +
                     "' to be true or false, but "
                     "got '" +
                     value + "'");
      return success();
    };
    if (key == "recipe")
      options.recipe = value.str();
    else if (key == "recipe-file")
      options.recipeFile = value.str();
    else if (key == "target")
      options.target = value.str();
    else if (key == "kernel-format")
      options.kernelFormat = value.str();
    else if (key == "kernel-table")
      options.kernelTable = value.str();
    else if (key == "from")
      options.from = value.str();
    else if (key == "to")
      options.to = value.str();
    else if (key == "require") {
      if (failed(parseBool(options.require)))
        return failure();
    } else if (key == "stats") {
      if (failed(parseBool(options.stats)))
        return failure();
    } else if (key == "functional-state") {
      if (failed(parseBool(options.functionalState)))
        return failure();
    } else if (key == "evaluate-constants") {
      if (failed(parseBool(options.evaluateConstants)))
        return failure();
    } else if (key == "max-padding") {
      if (value.getAsDouble(options.maxPadding))
        return error("expected option 'max-padding' to be a number, but got '" +
                     value + "'");
    } else {
      return error("unknown option '" + key +
                   "': expected recipe, recipe-file, target, from, to, "
                   "require, max-padding, kernel-format, kernel-table, "
                   "functional-state, evaluate-constants or stats");
    }
  }
  return success();
}

void fp8::registerPipelines() {
  registerPassPipeline(
      "fp8-pipeline",
      "bf16 program to FP8: recipe=R recipe-file=F target=cpu|sm_90a "
      "from=PHASE "
      "to=PHASE require max-padding=X kernel-format=F kernel-table=FILE "
      "functional-state "
      "evaluate-constants=BOOL stats",
      [](OpPassManager &pm, StringRef text,
         llvm::function_ref<LogicalResult(const Twine &)> errorHandler) {
        PipelineOptions options;
        if (failed(parsePipelineOptions(text, options, errorHandler)))
          return failure();
        // buildPipeline reports through a diagnostic, which needs a context
        // that a pipeline under construction does not have.
        MLIRContext context;
        std::string message;
        ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
          message = diagnostic.str();
          return success();
        });
        auto emitError = [&] {
          return mlir::emitError(UnknownLoc::get(&context));
        };
        // Recipes are checked here too: the pass would report them later, at
        // the module. Those of other dialects are known there only.
        bool isOurs = !StringRef(options.recipe).split(',').first.contains('.');
        if (!options.recipe.empty() && isOurs &&
            !parseRecipe(options.recipe, &context, emitError))
          return errorHandler(message);
        if (failed(buildPipeline(pm, options, emitError)))
          return errorHandler(message);
        return success();
      },
      [](llvm::function_ref<void(const mlir::detail::PassOptions &)>) {});
}
