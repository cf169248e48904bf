//===- Passes.td - Tensor-level passes ---------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_PASSES_TD
#define FP8_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"
include "fp8/Transforms/BufferPasses.td"
include "fp8/Transforms/CastPasses.td"
include "fp8/Transforms/FusionPasses.td"
include "fp8/Transforms/ImportPasses.td"
include "fp8/Transforms/LoopFusionPasses.td"
include "fp8/Transforms/RecipePasses.td"
include "fp8/Transforms/StatePasses.td"

def VerifyStagePass : Pass<"fp8-verify-stage", "::mlir::ModuleOp"> {
  let summary = "check what a phase promises to the next";
  let description = [{
    | stage | contract |
    | --- | --- |
    | `import` | every contraction has a name and a role |
    | `recipe` | quantizes are fed from high precision, contractions with a recipe from dequantizes |
    | `scaling` | no unresolved quantize |
    | `fusion` | no contraction with a recipe; at most one quantize per value, scale and type |
    | `buffers` | no tensors |
    | `kernels` | no operation of the fp8 dialect, no 8-bit float arithmetic |
    | `host` | only the llvm dialect |

    All verifiers run as well: a release build's tools have them run at the end
    of a phase only.
  }];
  let options = [
    Option<"stage", "stage", "std::string", "\"\"", "Name of the phase">];
}

#endif // FP8_TRANSFORMS_PASSES_TD
