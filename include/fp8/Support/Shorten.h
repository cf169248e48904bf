//===- Shorten.h - Texts of users in messages -------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names and lines of a program may have megabytes; what quotes them has not.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_SHORTEN_H
#define FP8_SUPPORT_SHORTEN_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace mlir::fp8 {

/// A message whose words are cut in the middle where they are long.
std::string shortenWords(StringRef message);

/// A text whose lines are cut at their end where they are long.
std::string shortenLines(StringRef text);

/// Passes on lines as `shortenLines` has them.
class ShortLineStream : public llvm::raw_ostream {
public:
  explicit ShortLineStream(llvm::raw_ostream &os)
      : llvm::raw_ostream(/*unbuffered=*/true), os(os) {}
  ~ShortLineStream() override { finishLine(); }

  bool is_displayed() const override { return os.is_displayed(); }
  bool has_colors() const override { return os.has_colors(); }
  llvm::raw_ostream &changeColor(enum Colors color, bool bold,
                                 bool background) override;
  llvm::raw_ostream &resetColor() override;

private:
  void write_impl(const char *data, size_t size) override;
  uint64_t current_pos() const override { return position; }
  void finishLine();

  llvm::raw_ostream &os;
  /// Width of the line that is being written, and position in all.
  size_t width = 0;
  uint64_t position = 0;
};

} // namespace mlir::fp8

#endif // FP8_SUPPORT_SHORTEN_H
