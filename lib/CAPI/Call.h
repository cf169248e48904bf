//===- Call.h - A call with a caller's tensors ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CAPI_CALL_H
#define FP8_LIB_CAPI_CALL_H

#include "fp8-c/Program.h"
#include "fp8/Compiler/Program.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <string>
#include <utility>
#include <vector>

namespace mlir::fp8::capi {

/// A descriptor in words, of any rank (fp8rt_tensor0, ...).
struct Descriptor {
  explicit Descriptor(int32_t rank) : words(3 + 2 * rank) {}

  void *getAllocated() const { return reinterpret_cast<void *>(words[0]); }
  char *getData(int32_t width) const {
    return reinterpret_cast<char *>(words[1]) + words[2] * width;
  }
  void setMemory(void *memory) {
    words[0] = words[1] = reinterpret_cast<int64_t>(memory);
  }
  int64_t *getSizes() { return words.data() + 3; }
  int64_t *getStrides() { return getSizes() + (words.size() - 3) / 2; }

  /// Those of up to four dimensions in place.
  SmallVector<int64_t, 11> words;
};

inline char *getData(const fp8c_tensor &tensor) {
  return static_cast<char *>(tensor.data) + tensor.byte_offset;
}

/// Frees what a program allocated for a result.
void freeResult(void *memory, fp8c_device device, fp8rt_stream stream);

/// An argument or a result, by the name that errors give it.
struct NamedValue {
  std::string describe() const;

  StringRef kind;
  const fp8rt_program_function &function;
  const fp8rt_program_value &info;
};

/// A copy of a tensor of the host in the memory of an emulated GPU, for a call.
class StagedTensor {
public:
  StagedTensor(StagedTensor &&other)
      : source(other.source), memory(std::exchange(other.memory, nullptr)),
        bytes(other.bytes) {}
  ~StagedTensor();

  static llvm::Expected<StagedTensor> create(const fp8c_tensor &tensor,
                                             int32_t width);
  /// What kernels have written, which are memrefs only, is the caller's too.
  void copyBack() const;

  void *getMemory() const { return memory; }

private:
  StagedTensor(void *source, size_t bytes) : source(source), bytes(bytes) {}

  void *source, *memory = nullptr;
  size_t bytes;
};

/// One call of a function. What the runtime checks (sizes, order, alignment) is
/// left to it.
class Call {
public:
  Call(Program &program, fp8rt_state state, fp8rt_stream stream)
      : program(program), state(state), stream(stream) {}

  /// Finds the function and checks the arguments, which stay where they are.
  llvm::Error prepare(const char *name, ArrayRef<const fp8c_tensor *> arguments,
                      size_t numResults);
  /// Writes scalars to `scalars`, which has a place for each result, and
  /// tensors to `results`.
  llvm::Error run(ArrayRef<void *> scalars);

  /// Dtype, rank, and whether it is where the function wants it.
  llvm::Error check(const NamedValue &info, const fp8c_tensor *tensor);

  NamedValue getResult(size_t index) const {
    return {"result", *function, function->results[index]};
  }
  bool isOnGPU() const {
    return function->flags & FP8RT_FUNCTION_TAKES_CONTEXT;
  }
  /// Where callers find a tensor among the results: with those of the arguments
  /// that are not scalars.
  fp8c_device getPlaceOfResults() const {
    return isOnHost ? fp8c_device{FP8C_CPU, 0} : device;
  }

  const fp8rt_program_function *function = nullptr;
  /// Where the work is done, and the memory of results is allocated.
  fp8c_device device = {FP8C_CPU, 0};
  std::vector<Descriptor> results;

private:
  llvm::Error findFunction(const char *name);
  llvm::Error checkType(const NamedValue &info, const fp8c_tensor *tensor);
  llvm::Error checkPlace(const NamedValue &info, const fp8c_tensor &tensor);
  llvm::Error chooseDevice(ArrayRef<const fp8c_tensor *> arguments);

  Program &program;
  fp8rt_state state;
  fp8rt_stream stream;
  /// An emulated GPU's, which takes tensors of the host.
  bool isOnHost = false;
  std::vector<StagedTensor> staged;
  std::vector<Descriptor> arguments;
  SmallVector<void *> packed;
};

llvm::Error makeArgumentError(const Twine &message);

} // namespace mlir::fp8::capi

#endif // FP8_LIB_CAPI_CALL_H
