//===- Remarks.h - What was decided about contractions ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_REPORT_REMARKS_H
#define FP8_REPORT_REMARKS_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/JSON.h"

#include <functional>
#include <string>
#include <utility>

namespace mlir {
class Location;
class MLIRContext;
} // namespace mlir

namespace mlir::fp8 {

/// `file:line:column`; empty if `loc` has none.
std::string describeLocation(Location loc);

/// What was decided about a contraction, or what its kernel costs beside it.
struct GemmRemark {
  enum class Kind {
    /// It is in FP8.
    Passed,
    /// It stays in high precision.
    Missed,
    /// An operand is copied, since its kernel wants it in another order.
    Copy
  };

  /// The value of `key`; empty without one.
  StringRef get(StringRef key) const;

  /// `name: fp8`, `name: high precision` or `name: copy`, and `key value` for
  /// the rest.
  std::string getText() const;
  llvm::json::Object getJSON() const;

  Kind kind;
  /// The function that it is in.
  std::string function;
  /// `file:line:column`; empty if that is not known.
  std::string location;
  /// `gemm`, which is its name, `role`, `shape`, `recipe`; then what it was
  /// made to, or `reason` and `suggestion`. Of a copy `gemm`, `operand` (a or
  /// b), `type`; `bytes` if they are known, `shared_with`, the names of others
  /// that read the same copy; `reason` and `suggestion`.
  SmallVector<std::pair<std::string, std::string>> arguments;
};

/// Makes `context` hand the remarks of category `fp8` to `handler`, as they are
/// made. A context has one handler; a later one takes its place.
void enableRemarks(MLIRContext *context,
                   std::function<void(GemmRemark)> handler);

/// Makes `context` write them as `spec` says: `json:FILE` or `text:FILE`, with
/// `-` for the standard output. The file is written when the context is
/// destroyed, whole or not at all; `onWriteError` is told then that it could
/// not be. On failure `error` says what was expected.
LogicalResult enableRemarks(MLIRContext *context, StringRef spec,
                            std::function<void(llvm::Error)> onWriteError,
                            std::string &error);

} // namespace mlir::fp8

#endif // FP8_REPORT_REMARKS_H
