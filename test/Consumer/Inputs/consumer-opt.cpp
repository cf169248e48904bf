//===- consumer-opt.cpp - A compiler that uses fp8 ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"
#include "fp8/InitAll.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Pipelines/Pipelines.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace {
/// Whether a GPU that the project knows has a kernel for the operation.
bool hasKernel(fp8::KernelOpInterface op) {
  std::string reason;
  FailureOr<std::unique_ptr<fp8::KernelSpec>> spec = op.getKernelSpec(reason);
  return succeeded(spec) &&
         llvm::any_of(fp8::getArchitectureChips(), [&](StringRef chip) {
           return fp8::lookupArchitecture(chip)->getGenerator(**spec, reason);
         });
}

/// Writes the numbers of FP8 matmuls and of those with kernels on the module.
struct CountMatmulsPass
    : PassWrapper<CountMatmulsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountMatmulsPass)

  StringRef getArgument() const override { return "consumer-count-matmuls"; }

  void runOnOperation() override {
    int64_t count = 0, withKernel = 0;
    getOperation().walk([&](fp8::MatmulOp op) {
      ++count;
      withKernel += hasKernel(cast<fp8::KernelOpInterface>(*op));
    });
    Builder builder(&getContext());
    getOperation()->setAttr("consumer.matmuls",
                            builder.getI64IntegerAttr(count));
    getOperation()->setAttr("consumer.kernels",
                            builder.getI64IntegerAttr(withKernel));
  }
};
} // namespace

static void buildConsumerPipeline(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  fp8::PipelineOptions options;
  options.recipe = "current";
  options.to = "fusion";
  // The options above are right; only the text of a user can be wrong.
  (void)fp8::buildPipeline(pm, options, [] { return InFlightDiagnostic(); });
  pm.addPass(std::make_unique<CountMatmulsPass>());
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  fp8::registerPipelineDialects(registry);
  PassPipelineRegistration<> pipeline("consumer-pipeline",
                                      "Own passes around those of fp8",
                                      buildConsumerPipeline);
  return failed(MlirOptMain(argc, argv, "consumer", registry));
}
