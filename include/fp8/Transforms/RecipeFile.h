//===- RecipeFile.h - Rules that map names to recipes -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_RECIPEFILE_H
#define FP8_TRANSFORMS_RECIPEFILE_H

#include "fp8/IR/FP8Attrs.h"
#include "llvm/Support/GlobPattern.h"

namespace mlir::fp8 {

/// A recipe file: ordered rules on the names of contractions.
///
/// ```json
/// { "version": 1,
///   "rules": [ {"match": "*.lm_head", "recipe": "none"},
///              {"match": "*.mlp.*",   "recipe": "mxfp8,mode=floor"},
///              {"match": "*",         "recipe": "current"} ],
///   "first_layers_high_precision": 1,
///   "last_layers_high_precision": 1 }
/// ```
///
/// The first rule whose glob matches decides. The first and last layers are
/// those of `fp8::getLayers`, and win over the rules.
class RecipeFile {
public:
  /// Reads and checks the file at `path`; reports through `emitError` which
  /// key is wrong and what was expected.
  static FailureOr<RecipeFile>
  load(StringRef path, MLIRContext *context,
       llvm::function_ref<InFlightDiagnostic()> emitError);

  /// The recipe of the first rule that matches `name`; null if none does.
  RecipeAttrInterface lookup(StringRef name) const;

  int64_t getFirstLayersHighPrecision() const { return firstLayers; }
  int64_t getLastLayersHighPrecision() const { return lastLayers; }

private:
  struct Rule {
    llvm::GlobPattern pattern;
    RecipeAttrInterface recipe;
  };
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
