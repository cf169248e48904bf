//===- Arrays.h - Arrays of Python as tensors of the C API ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arrays go in without a copy, by the fastest way that their type offers:
// DLPack's table of C functions (PyTorch), NumPy's __array_struct__, which also
// knows the types of ml_dtypes, or __dlpack__ (JAX, CuPy and all others).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_ARRAYS_H
#define FP8_PYTHON_ARRAYS_H

#include "DLPack.h"
#include "fp8/Runtime/Program.h"
#include <nanobind/nanobind.h>

#include <atomic>
#include <string>
#include <vector>

namespace fp8py {
namespace nb = nanobind;

/// How the arrays of a type of Python are taken and made.
struct ArrayType {
  enum class Kind {
    ExchangeAPI,
    NumPy,
    DLPack,
    /// Numbers, and all that cannot be an array.
    Other
  };

  Kind kind;
  const ExchangeAPI *api = nullptr;
  /// PyTorch's tensors say whether there is more to them than their memory.
  bool isTorch = false;
  /// NumPy's arrays with a mask.
  bool mayBeMasked = false;

  /// Remembered for each type.
  static const ArrayType &get(nb::handle array);
};

/// An argument of a call, while the call lasts.
class Argument {
public:
  Argument() = default;
  Argument(const Argument &) = delete;

  /// `info` of `function` says what a number becomes, and how errors call the
  /// array.
  void begin(const fp8rt_program_function &function,
             const fp8rt_program_value &info) {
    this->function = &function;
    this->info = &info;
  }
  /// `stream` is what the work will be in.
  void set(nb::handle array, void *stream);
  /// Throws unless the program may write to the array.
  void checkWritable() const;
  /// Takes a copy of a tensor of PyTorch in place of one that begins where
  /// programs cannot read it, as views and what torch.compile allocates may.
  /// The copy is made in the framework's current stream.
  void align(nb::handle array);

  const fp8c_tensor &getTensor() const { return tensor; }

private:
  std::string describe() const;
  /// Throws for an array that its framework cannot hand out, with why.
  [[noreturn]] void raiseExport(nb::handle array,
                                const std::string &reason) const;
  void checkTorch(nb::handle array) const;
  void setTorch(nb::handle array, const ArrayType &type);
  void setNumPy(nb::handle array);
  void setDLPack(nb::handle array, void *stream);
  void takeCapsule();

  const fp8rt_program_function *function = nullptr;
  const fp8rt_program_value *info = nullptr;
  fp8c_tensor tensor = {};
  bool isReadOnly = false;
  /// NumPy's sizes, and strides in elements.
  std::vector<int64_t> extents;
  /// What keeps the memory: a capsule or an array. Of this thread, which has
  /// the GIL when arguments come and go.
  nb::object owner;
  /// The array that was made of a number, and the copy that is aligned.
  nb::object scalar, aligned;
};

/// (dtype, rank, whether it is a GPU's).
nb::tuple inspectArray(nb::handle array);

/// What the framework of the first array on a GPU has there.
struct Framework {
  /// Null where there is none.
  const ExchangeAPI *api = nullptr;
  int32_t device = 0;

  /// The stream that it works in; null, the default stream, where it does not
  /// say.
  void *getCurrentStream() const;
  /// From now on memory for work in that stream is the framework's: results,
  /// and what programs need meanwhile.
  void shareMemory() const;
};
Framework findFramework(nb::handle arguments);

/// An attribute of a module, or a module, that is looked up at first use and
/// kept for good, as interpreters may be gone before statics are. A static's
/// own initializer must not look it up: importing gives the GIL away, and a
/// thread that waits for the static's guard then has it and keeps it.
class KeptAttribute {
public:
  constexpr KeptAttribute(const char *module, const char *name = nullptr)
      : module(module), name(name) {}

  /// With the GIL. Throws what Python raises.
  nb::handle get();

private:
  const char *module, *name;
  std::atomic<PyObject *> found{nullptr};
};

/// What PyTorch is about, and what it knows of a tensor besides its memory.
bool isGradEnabled();
/// Whether tensors may have tangents: within its forward mode.
bool isForwardMode();
bool requiresGrad(nb::handle tensor);
bool isNegative(nb::handle tensor, fp8c_dtype dtype);

/// The first array, whose like results are; null if there is none.
nb::handle getPrototype(nb::handle arguments);

} // namespace fp8py

#endif // FP8_PYTHON_ARRAYS_H
