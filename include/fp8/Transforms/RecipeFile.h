//===- RecipeFile.h - Rules that map names to recipes -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_RECIPEFILE_H
#define FP8_TRANSFORMS_RECIPEFILE_H

#include "fp8/IR/AttentionRecipe.h"
#include "llvm/Support/GlobPattern.h"

namespace llvm::json {
class Value;
} // namespace llvm::json

namespace mlir::fp8 {

/// A recipe file: ordered rules on the names of contractions.
///
/// ```json
/// { "version": 1,
///   "rules": [ {"match": "*.lm_head", "recipe": "none"},
///              {"match": "*.mlp.*",   "recipe": "mxfp8,mode=floor"},
///              {"role": "attention.*", "recipe": "delayed,smooth_k=true"},
///              {"match": "*",         "recipe": "current"} ],
///   "first_layers_high_precision": 1,
///   "last_layers_high_precision": 1 }
/// ```
///
/// The first rule whose globs match decides, that of the name and that of the
/// role; one without a role is for no product of attention. The first and last
/// layers are those of `fp8::getLayers`, and win over the rules.
class RecipeFile {
public:
  /// Reads and checks the file at `path`; reports through `emitError` which
  /// key is wrong and what was expected.
  static FailureOr<RecipeFile>
  load(StringRef path, MLIRContext *context,
       llvm::function_ref<InFlightDiagnostic()> emitError);

  /// The recipe of the first rule for `name` and `role`; null if there is none.
  RecipeAttrInterface lookup(StringRef name, StringRef role,
                             bool isOfAttention) const;

  /// What that rule says of queries and keys of attention.
  AttentionTransforms lookupTransforms(StringRef name, StringRef role) const;

  int64_t getFirstLayersHighPrecision() const { return firstLayers; }
  int64_t getLastLayersHighPrecision() const { return lastLayers; }

private:
  struct Rule {
    llvm::GlobPattern name;
    std::optional<llvm::GlobPattern> role;
    RecipeAttrInterface recipe;
    AttentionTransforms transforms;
  };
  /// The first rule for `name` and `role`, or null.
  const Rule *find(StringRef name, StringRef role, bool isOfAttention) const;
  /// Reads a rule; says what is wrong with it through `error`, or, where that
  /// is its recipe, `emitError`.
  static FailureOr<Rule>
  readRule(llvm::json::Value &value, MLIRContext *context,
           llvm::function_ref<LogicalResult(const Twine &)> error,
           llvm::function_ref<InFlightDiagnostic()> emitError);
  std::vector<Rule> rules;
  int64_t firstLayers = 0;
  int64_t lastLayers = 0;
};

/// The layer of each contraction in `names`, counted from 0. The layer is the
/// first component of a dotted name that is a number up to 2^20
/// (`model.layers.3.mlp.up` is in layer 3). Names without one are in no layer
/// (-1) if any name has one, otherwise every contraction is a layer of its own.
/// `numLayers` receives the number of layers.
SmallVector<int64_t> getLayers(ArrayRef<StringRef> names, int64_t &numLayers);

} // namespace mlir::fp8

#endif // FP8_TRANSFORMS_RECIPEFILE_H
