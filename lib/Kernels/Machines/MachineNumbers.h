//===- MachineNumbers.h - Numbers of machines' files ---------- -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A number of a file is checked when it is read, against what its type says.
// They convert to what they hold; MLIR's own floats have no hash.

#ifndef FP8_LIB_KERNELS_MACHINES_MACHINENUMBERS_H
#define FP8_LIB_KERNELS_MACHINES_MACHINENUMBERS_H

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/Hashing.h"

#include <optional>

namespace mlir::fp8::machine {

enum class Range { Any, NotNegative, Positive };

/// A float that `range` allows, which may be written as an integer; or an
/// integer. Reports what is expected instead.
FailureOr<double> parseFloat(AsmParser &parser, Range range);
FailureOr<int64_t> parseCount(AsmParser &parser);

template <Range allowed>
struct Float {
  static constexpr Range kRange = allowed;
  double value;

  operator double() const { return value; }
  bool operator==(const Float &other) const { return value == other.value; }
  friend llvm::hash_code hash_value(const Float &number) {
    return llvm::hash_value(llvm::APFloat(number.value));
  }
};
using Number = Float<Range::Any>;
using Amount = Float<Range::NotNegative>;
using Rate = Float<Range::Positive>;

struct Count {
  int64_t value;

  operator int64_t() const { return value; }
  bool operator==(const Count &other) const { return value == other.value; }
  friend llvm::hash_code hash_value(const Count &count) {
    return llvm::hash_value(count.value);
  }
};

template <Range range>
AsmPrinter &operator<<(AsmPrinter &printer, const Float<range> &number) {
  printer.printFloat(llvm::APFloat(number.value));
  return printer;
}
inline AsmPrinter &operator<<(AsmPrinter &printer, const Count &count) {
  printer.getStream() << count.value;
  return printer;
}

} // namespace mlir::fp8::machine

template <mlir::fp8::machine::Range range>
struct mlir::FieldParser<mlir::fp8::machine::Float<range>> {
  static FailureOr<fp8::machine::Float<range>> parse(AsmParser &parser) {
    FailureOr<double> value = fp8::machine::parseFloat(parser, range);
    if (failed(value))
      return failure();
    return fp8::machine::Float<range>{*value};
  }
};

template <>
struct mlir::FieldParser<mlir::fp8::machine::Count> {
  static FailureOr<fp8::machine::Count> parse(AsmParser &parser) {
    FailureOr<int64_t> value = fp8::machine::parseCount(parser);
    if (failed(value))
      return failure();
    return fp8::machine::Count{*value};
  }
};

#endif // FP8_LIB_KERNELS_MACHINES_MACHINENUMBERS_H
