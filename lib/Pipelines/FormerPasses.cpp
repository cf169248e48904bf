//===- FormerPasses.cpp - What passes were called before ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TargetPipelines.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct FormerPass {
  StringRef former, name;
};
} // namespace

static constexpr FormerPass formerPasses[] = {
    {"fp8-fit-factors", "fp8-narrow-scales"},
    {"fp8-form-streams", "fp8-form-fusions"},
    {"fp8-order-factors", "fp8-choose-scale-layout"},
    {"fp8-protect-arguments", "fp8-mark-read-only-arguments"},
    {"fp8-save-codes", "fp8-save-quantized"},
    {"fp8-select-by-rows", "fp8-dispatch-by-rows"},
    {"fp8-select-sums", "fp8-select-accumulation"},
    {"fp8-separate-buffers", "fp8-duplicate-empty-tensors"},
    {"fp8-share-computations", "fp8-outline-equal-computations"},
    {"fp8-split-streams", "fp8-split-fusions"},
    {"fp8-tile-streams", "fp8-tile-fusions"}};

/// The options of a pass, some of which had another name.
static std::string getOptions(StringRef pass, StringRef options) {
  std::string text = options.str();
  StringRef former = "by-place";
  size_t place = StringRef(text).find(former);
  if (pass == "fp8-form-fusions" && place != StringRef::npos)
    text.replace(place, former.size(), "position-dependent");
  return text;
}

void fp8::registerFormerPasses() {
  for (const FormerPass &pass : formerPasses)
    registerPassPipeline(
        pass.former,
        ("Deprecated: the name of --" + pass.name + " before").str(),
        [pass](OpPassManager &pm, StringRef options,
               function_ref<LogicalResult(const Twine &)> errorHandler) {
          llvm::WithColor::warning()
              << "pass '" << pass.former << "' is called '" << pass.name
              << "' now\n";
          return PassInfo::lookup(pass.name)->addToPipeline(
              pm, getOptions(pass.name, options), errorHandler);
        },
        [](function_ref<void(const ::mlir::detail::PassOptions &)>) {});
}
