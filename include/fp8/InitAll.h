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

/// The fp8 dialect and every upstream dialect and extension that its passes
/// and pipelines read, create or bufferise. Enough for a tool that runs
/// `buildPipeline`.
void registerPipelineDialects(DialectRegistry &registry);

/// The above and all of upstream's dialects and extensions.
void registerAllDialects(DialectRegistry &registry);

/// Our passes and pipelines.
void registerFP8Passes();

/// The above and all of upstream's passes.
void registerAllPasses();

} // namespace mlir::fp8

#endif // FP8_INITALL_H
