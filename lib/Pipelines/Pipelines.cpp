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
#include "fp8/IR/AttentionRecipe.h"
#include "fp8/IR/FP8Attrs.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/Attention/Passes.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Pipelines/Passes.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

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
  addFuncPass(pm, createRaiseScalingCastsPass());
  // Names come first: raising tosa.matmul keeps its location, upstream's
  // decompositions may not.
  pm.addPass(createAnnotateGemmsPass());
  // Loops and branches before what is in them: their tosa.yield is no operation
  // of linalg.
  addFuncPass(pm, createTosaToSCFPass());
  TosaToLinalgOptions tosaOptions;
  tosa::addTosaToLinalgPasses(pm, tosaOptions, TosaToLinalgNamedOptions(),
                              /*validationOptions=*/std::nullopt);
  TosaToArithPassOptions arith;
  arith.includeApplyRescale = true;
  addFuncPass(pm, createTosaToArithPass(arith));
  addFuncPass(pm, createTosaToTensorPass());
  addFuncPass(pm, createRaiseConvolutionsPass());
  addFuncPass(pm, createRaiseTransposesPass());
  pm.addPass(createAnnotateGemmsPass());
}

/// Products and a softmax become attention where the GPU has a kernel for it.
static void addRaiseAttention(OpPassManager &pm, const PipelineOptions &options,
                              bool onlyWithRecipe = false) {
  RaiseAttentionPassOptions raiseOptions;
  raiseOptions.chip = options.target;
  raiseOptions.onlyWithRecipe = onlyWithRecipe;
  pm.addPass(createRaiseAttentionPass(raiseOptions));
}

/// Whether attention is raised; that is the kernel's own order of sums.
static bool raisesAttention(const PipelineOptions &options, bool isGPU) {
  return isGPU && options.raiseAttention && !options.invariant;
}

/// Whether a recipe may be for all attention. Then it is raised before recipes:
/// the kernel multiplies codes, and P is never in memory.
static bool raisesBeforeRecipes(const PipelineOptions &options, bool isGPU) {
  return raisesAttention(options, isGPU) &&
         (!options.attentionRecipe.empty() || !options.recipeFile.empty());
}

/// 2: quantize and dequantize around contractions.
static void buildRecipePipeline(OpPassManager &pm,
                                const PipelineOptions &options, bool isGPU) {
  // Else where an attribute gives one.
  if (raisesAttention(options, isGPU))
    addRaiseAttention(pm, options,
                      /*onlyWithRecipe=*/!raisesBeforeRecipes(options, isGPU));
  ApplyRecipePassOptions applyOptions;
  applyOptions.recipe = options.recipe;
  applyOptions.recipeFile = options.recipeFile;
  applyOptions.attentionRecipe = options.attentionRecipe;
  applyOptions.require = options.require;
  applyOptions.maxPadding = options.maxPadding;
  pm.addPass(createApplyRecipePass(applyOptions));
}

/// 3: every scale an SSA value.
static void buildScalingPipeline(OpPassManager &pm,
                                 const PipelineOptions &options) {
  addFuncPass(pm, createFlattenRowsPass());
  // Before scales are given: a quantize that names its recipe moves as one
  // operation, and equal ones merge before each gets an amax of its own.
  addFuncPass(pm, createSimplifyCastsPass());
  SaveQuantizedPassOptions saveOptions;
  // Who reads codes in the other order decides on copies.
  saveOptions.oneOrder = options.transposedCodes != "copy";
  pm.addPass(createSaveQuantizedPass(saveOptions));
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
  // Only a state that is left is updated.
  pm.addPass(createBuildStateUpdatePass());
}

/// Whether a CPU adds up products as a GPU does. Its own sums follow its cache
/// and its threads, which no invariant program may.
static bool hasSumsOfGPU(const PipelineOptions &options) {
  return options.accumulate == "tensor-core" || options.invariant;
}

/// Whose sums a CPU has; empty if it has its own.
static StringRef getChipOfSums(const PipelineOptions &options) {
  if (!hasSumsOfGPU(options))
    return {};
  return options.accumulationOf.empty() ? getArchitectureChips().front()
                                        : StringRef(options.accumulationOf);
}

/// 4: fp8.matmul with epilogues.
static void buildFusionPipeline(OpPassManager &pm,
                                const PipelineOptions &options, bool isGPU) {
  // A CPU that computes what a GPU does asks for that one's chip.
  StringRef chip = isGPU ? StringRef(options.target) : getChipOfSums(options);
  // Scales that are known are constants now, and matmuls are formed of
  // dequantizes only. Statistics are of tensors as the program has them.
  if (!options.stats)
    addFuncPass(pm, createFoldPowersOfTwoPass());
  // After recipes: products that one quantizes are not attention's.
  if (raisesAttention(options, isGPU) && !raisesBeforeRecipes(options, isGPU))
    addRaiseAttention(pm, options);
  addFuncPass(pm, createExchangeOperandsPass());
  addFuncPass(pm, createFormMatmulPass());
  DecomposeAttentionPassOptions attention;
  if (isGPU)
    attention.chip = options.target;
  pm.addPass(createDecomposeAttentionPass(attention));
  // No CPU reads weights that are arranged.
  if (!isGPU)
    pm.addPass(createFoldLiftsPass());
  if (!chip.empty()) {
    FormPlainMatmulPassOptions formOptions;
    formOptions.tf32 = options.tf32;
    addFuncPass(pm, createFormPlainMatmulPass(formOptions));
    // Before anybody makes the copies.
    FoldTransposesPassOptions foldOptions;
    foldOptions.chip = chip.str();
    foldOptions.codes = options.transposedCodes;
    pm.addPass(createFoldTransposesPass(foldOptions));
    NarrowScalesPassOptions fitOptions;
    fitOptions.chip = chip.str();
    pm.addPass(createNarrowScalesPass(fitOptions));
    DecodeOperandsPassOptions decodeOptions;
    decodeOptions.chip = chip.str();
    pm.addPass(createDecodeOperandsPass(decodeOptions));
    FoldLiftsPassOptions liftOptions;
    liftOptions.chip = chip.str();
    pm.addPass(createFoldLiftsPass(liftOptions));
  }
  // What surrounds the matmuls becomes few elementwise generics, which then
  // move into the epilogues whole.
  addFuncPass(pm, createConvertElementwiseToLinalgPass());
  addFuncPass(pm, createFuseElementwisePass());
  addFuncPass(pm, createFuseEpiloguesPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (options.stats) {
    pm.addPass(createInstrumentQuantizePass());
  } else if (isGPU) {
    // Statistics compare a tensor with its codes: both are needed.
    addFuncPass(pm, createFuseCastsPass());
    QuantizeAttentionPassOptions codes;
    codes.chip = options.target;
    pm.addPass(createQuantizeAttentionPass(codes));
  }
  // Last: what is measured of a constant is constant too, and casts that have
  // been fused or shared are evaluated once.
  if (options.evaluateConstants)
    pm.addPass(createEvaluateConstantsPass());
  if (!chip.empty()) {
    // Epilogues are where they belong by now.
    BranchByRowsPassOptions branchOptions;
    branchOptions.chip = chip.str();
    pm.addPass(createBranchByRowsPass(branchOptions));
  }
  // What is left to pass over memory for, once the rest is known.
  if (isGPU) {
    FormFusionsPassOptions fusions;
    fusions.positionDependent = true;
    addFuncPass(pm, createFormFusionsPass(fusions));
  }
  if (!isGPU && !chip.empty()) {
    SelectAccumulationPassOptions sums;
    sums.chip = chip.str();
    sums.table = options.kernelTable;
    sums.machine = options.machine;
    pm.addPass(createSelectAccumulationPass(sums));
  }
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// Fails where a tuning table cannot be read: a GPU's passes read it, and
/// elsewhere nobody would say that it is not there.
static LogicalResult checkTable(StringRef table, EmitError emitError) {
  llvm::sys::fs::file_status status;
  std::error_code error = llvm::sys::fs::status(table, status);
  if (!error && llvm::sys::fs::is_directory(status))
    error = std::make_error_code(std::errc::is_a_directory);
  if (error)
    return emitError() << "tuning table '" << table << "': " << error.message();
  return success();
}

/// Fails where an option is none of those that there are, or says nothing of
/// such a target.
static LogicalResult checkOptions(const PipelineOptions &options, bool isGPU,
                                  bool isInWarps, EmitError emitError) {
  if (options.target != "cpu" && !isGPU)
    return emitError() << "expected target to be one of cpu, "
                       << llvm::join(getArchitectureChips(), ", ")
                       << ", but got '" << options.target << "'";
  if (!options.kernelTable.empty() && !isGPU &&
      failed(checkTable(options.kernelTable, emitError)))
    return failure();
  if (options.accumulate != "f32" && options.accumulate != "tensor-core")
    return emitError()
           << "expected accumulate to be f32 or tensor-core, but got '"
           << options.accumulate << "'";
  if (!llvm::is_contained({"copy", "kernel", "cost"}, options.transposedCodes))
    return emitError() << "expected transposed-codes to be copy, kernel or "
                          "cost, but got '"
                       << options.transposedCodes << "'";
  if (!options.accumulationOf.empty() &&
      !lookupArchitecture(options.accumulationOf))
    return emitError() << "expected accumulation-of to be one of "
                       << llvm::join(getArchitectureChips(), ", ")
                       << ", but got '" << options.accumulationOf << "'";
  if (!options.accumulationOf.empty() && !isGPU && !isInWarps)
    return emitError()
           << "expected accumulate to be tensor-core with accumulation-of, "
              "but got '"
           << options.accumulate << "'";
  if (!options.machine.empty() && !isGPU && !isInWarps)
    return emitError() << "expected a GPU as the target with machine, but got '"
                       << options.target << "'";
  if (options.tf32 && !isGPU && !isInWarps)
    return emitError() << "expected a GPU as the target with tf32, but got '"
                       << options.target << "'";
  if (!options.fusionReport.empty() && !isGPU)
    return emitError() << "expected a GPU as the target with fusion-report, "
                          "but got '"
                       << options.target << "'";
  if (options.memoryPrice != 0 && !isGPU)
    return emitError() << "expected a GPU as the target with memory-price, but "
                          "got '"
                       << options.target << "'";
  return success();
}

static FailureOr<std::pair<Phase, Phase>>
parsePhases(const PipelineOptions &options, EmitError emitError) {
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
  if (!options.fusionReport.empty() &&
      (*first > Phase::Buffers || *last < Phase::Buffers))
    return emitError() << "expected phase 'buffers', which chooses kernels, to "
                          "be run with fusion-report, but got those from '"
                       << options.from << "' to '" << options.to << "'";
  return std::pair(*first, *last);
}

static void buildPhase(OpPassManager &pm, Phase phase,
                       const PipelineOptions &options, bool isGPU,
                       bool isInWarps) {
  switch (phase) {
  case Phase::Import:
    buildImportPipeline(pm);
    break;
  case Phase::Recipe:
    buildRecipePipeline(pm, options, isGPU);
    break;
  case Phase::Scaling:
    buildScalingPipeline(pm, options);
    break;
  case Phase::Fusion:
    buildFusionPipeline(pm, options, isGPU);
    break;
  case Phase::Buffers:
    isGPU ? buildGPUBufferPipeline(pm, options) : buildCPUBufferPipeline(pm);
    break;
  case Phase::Kernels:
    isGPU ? buildGPUKernelPipeline(pm) : buildCPUKernelPipeline(pm, isInWarps);
    break;
  case Phase::Host:
    isGPU ? buildGPUHostPipeline(pm, options) : buildCPUHostPipeline(pm);
    break;
  }
}

LogicalResult fp8::buildPipeline(OpPassManager &pm,
                                 const PipelineOptions &options,
                                 EmitError emitError) {
  registerAllArchitectures();
  bool isGPU = lookupArchitecture(options.target) != nullptr;
  bool isInWarps = hasSumsOfGPU(options);
  if (failed(checkOptions(options, isGPU, isInWarps, emitError)))
    return failure();
  FailureOr<std::pair<Phase, Phase>> range = parsePhases(options, emitError);
  if (failed(range))
    return failure();
  auto [first, last] = *range;
  if (options.invariant)
    pm.addPass(createMarkInvariantPass());
  for (auto [name, phase] : phases) {
    if (phase < first || phase > last)
      continue;
    buildPhase(pm, phase, options, isGPU, isInWarps);
    addVerifyStagePass(pm, phase);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

#define GET_PipelineOptionTable_IMPL
#include "fp8/Pipelines/PipelineOptions.inc"

ArrayRef<OptionInfo<PipelineOptions>> fp8::getPipelineOptions() {
  return PipelineOptionTable;
}

/// Splits `key=value key=value`. The values of `recipe` hold `=` and commas, so
/// that upstream's parser of pipeline options, which would take them apart, is
/// told that the value is one string in braces or quotes, or ends at a space.
static llvm::Error parsePipelineOptions(StringRef text,
                                        PipelineOptions &options) {
  SmallVector<StringRef> settings;
  text.split(settings, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef setting : settings) {
    auto [key, value] = setting.split('=');
    value = value.trim("{}\"'");
    const auto *option = findOption(getPipelineOptions(), key);
    if (!option)
      return makeUnknownOptionError(key, getPipelineOptions());
    if (StringRef expected = option->set(options, value); !expected.empty())
      return makeOptionValueError(key, expected, value);
  }
  return llvm::Error::success();
}

/// "bf16 program to FP8: recipe=RECIPE require ...".
static std::string describePipeline() {
  std::string text = "bf16 program to FP8:";
  for (const OptionInfo<PipelineOptions> &option : getPipelineOptions())
    text +=
        (" " + option.key + (option.value.empty() ? "" : "=") + option.value)
            .str();
  return text;
}

void fp8::registerPipelines(const PipelineOptions *defaults) {
  registerPassPipeline(
      "fp8-pipeline", describePipeline(),
      [defaults](
          OpPassManager &pm, StringRef text,
          llvm::function_ref<LogicalResult(const Twine &)> errorHandler) {
        StringRef anchor = pm.getOpAnchorName();
        if (anchor != ModuleOp::getOperationName() &&
            anchor != OpPassManager::getAnyOpAnchorName())
          return errorHandler("expected fp8-pipeline to run on builtin.module, "
                              "but got " +
                              anchor);
        PipelineOptions options = defaults ? *defaults : PipelineOptions();
        if (llvm::Error error = parsePipelineOptions(text, options))
          return errorHandler(llvm::toString(std::move(error)));
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
        std::string attention = options.attentionRecipe;
        if (failed(takeAttentionTransforms(attention, emitError)))
          return errorHandler(message);
        for (StringRef recipe :
             {StringRef(options.recipe), StringRef(attention)}) {
          bool isOurs = !recipe.split(',').first.contains('.');
          if (!recipe.empty() && isOurs &&
              !parseRecipe(recipe, &context, emitError))
            return errorHandler(message);
        }
        if (failed(buildPipeline(pm, options, emitError)))
          return errorHandler(message);
        return success();
      },
      [](llvm::function_ref<void(const mlir::detail::PassOptions &)>) {});
}
