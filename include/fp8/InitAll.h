//===- InitAll.h - Registration of dialects and passes ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_INITALL_H
#define FP8_INITALL_H

namespace mlir {
class DialectRegistry;
}

namespace mlir::fp8 {

struct PipelineOptions;

/// The fp8 dialect and every upstream dialect and extension that its passes
/// and pipelines read, create or bufferize. Enough for a tool that runs
/// `buildPipeline`.
void registerPipelineDialects(DialectRegistry &registry);

/// The above and all of upstream's dialects and extensions.
void registerAllDialects(DialectRegistry &registry);

/// Our passes and pipelines; `defaults` are those of registerPipelines.
void registerFP8Passes(const PipelineOptions *defaults = nullptr);

/// The above and all of upstream's passes.
void registerAllPasses(const PipelineOptions *defaults = nullptr);

} // namespace mlir::fp8

#endif // FP8_INITALL_H
