//===- Program.cpp - Calls of compiled programs ---------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code believes what a descriptor says, and knows static sizes better
// than it: everything is checked here, before it runs.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Program.h"

#include "ProgramDetail.h"
#include "State/InitialScales.h"
#include "State/ScalingStateHandles.h"
#include "StatusDetail.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using namespace fp8rt;
using detail::fail;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

namespace {
/// The words of a descriptor, whatever its rank.
struct Descriptor {
  Descriptor(void *tensor, int32_t rank)
      : words(static_cast<int64_t *>(tensor)), rank(rank) {}

  void *&allocated() { return reinterpret_cast<void *&>(words[0]); }
  void *&address() { return reinterpret_cast<void *&>(words[1]); }
  uint64_t data() const { return words[1]; }
  int64_t &offset() { return words[2]; }
  int64_t size(int32_t dim) const { return words[3 + dim]; }
  int64_t stride(int32_t dim) const { return words[3 + rank + dim]; }
  /// The first and the last element in memory, counted from `offset`; the
  /// last comes before the first if there is none.
  std::pair<int64_t, int64_t> span() const {
    int64_t first = 0, last = 0;
    for (int32_t dim = 0; dim < rank; ++dim) {
      if (size(dim) == 0)
        return {0, -1};
      int64_t extent = (size(dim) - 1) * stride(dim);
      (extent < 0 ? first : last) += extent;
    }
    return {first, last};
  }
  static size_t getByteSize(int32_t rank) {
    return (3 + 2 * static_cast<size_t>(rank)) * sizeof(int64_t);
  }

  int64_t *words;
  int32_t rank;
};

/// One call, from its arguments as they came to its results.
class Call {
public:
  Call(const fp8rt_program_function &function, fp8rt_context *context)
      : function(function), context(context) {}

  fp8rt_status check(void *const *arguments, void *const *results);
  fp8rt_status run(void *const *arguments, void *const *results,
                   fp8rt_state_rows *rows);
  /// Frees the results of the last run.
  void release();

private:
  fp8rt_status checkTensor(const fp8rt_program_value &info, Descriptor tensor);
  /// A program may return a tensor twice, or with a part of it: gives each of
  /// the results, at `offsets` of `bytes`, an allocation of its own.
  fp8rt_status separate(char *bytes, const std::vector<size_t> &offsets);
  void *allocate(int64_t size);
  template <typename Expected, typename Got>
  fp8rt_status failArgument(const fp8rt_program_value &info, Expected expected,
                            Got got) {
    return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                std::string("expected argument '") + info.name + "' of '" +
                    function.name + "' to " + expected + ", but got " + got);
  }
  bool takes(uint32_t flag) const { return function.flags & flag; }
  bool returnsStruct() const {
    return function.num_results > 1 ||
           (function.num_results == 1 && function.results[0].rank >= 0);
  }

  const fp8rt_program_function &function;
  fp8rt_context *context;
  /// What the results hold, each once.
  std::vector<void *> allocations;
};
} // namespace

fp8rt_status Call::checkTensor(const fp8rt_program_value &info,
                               Descriptor tensor) {
  bool isEmpty = false;
  for (int32_t dim = 0; dim < info.rank; ++dim) {
    int64_t size = tensor.size(dim), expected = info.sizes[dim];
    if (expected >= 0 ? size != expected : size < 0)
      return failArgument(
          info,
          "have size " + (expected >= 0 ? std::to_string(expected) : "0 up") +
              " in dimension " + std::to_string(dim),
          std::to_string(size));
    isEmpty |= size == 0;
  }
  if (tensor.offset() != 0)
    return failArgument(info, "have offset 0", std::to_string(tensor.offset()));
  if (isEmpty)
    return FP8RT_OK;
  int64_t stride = 1;
  for (int32_t dim = info.rank - 1; dim >= 0; --dim) {
    if (tensor.size(dim) != 1 && tensor.stride(dim) != stride)
      return failArgument(info,
                          "be in row-major order, with stride " +
                              std::to_string(stride) + " in dimension " +
                              std::to_string(dim),
                          std::to_string(tensor.stride(dim)));
    stride *= tensor.size(dim);
  }
  if (tensor.data() == 0)
    return failArgument(info, "have data", "null");
  if (tensor.data() % info.alignment != 0) {
    char address[32];
    std::snprintf(address, sizeof(address), "%#llx",
                  static_cast<unsigned long long>(tensor.data()));
    return failArgument(
        info, "be aligned to " + std::to_string(info.alignment) + " bytes",
        address);
  }
  return FP8RT_OK;
}

fp8rt_status Call::check(void *const *arguments, void *const *results) {
  if (takes(FP8RT_FUNCTION_TAKES_CONTEXT) && !context)
    return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                std::string("expected a context for '") + function.name +
                    "', which runs on a GPU, but got null");
  for (int32_t i = 0; i < function.num_arguments; ++i) {
    const fp8rt_program_value &info = function.arguments[i];
    if (!arguments[i])
      return failArgument(info, "be given", "null");
    if (info.rank < 0)
      continue;
    if (fp8rt_status status =
            checkTensor(info, Descriptor(arguments[i], info.rank)))
      return status;
  }
  for (int32_t i = 0; i < function.num_results; ++i)
    if (!results[i])
      return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                  std::string("expected a place for result '") +
                      function.results[i].name + "' of '" + function.name +
                      "', but got null");
  return FP8RT_OK;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void *Call::allocate(int64_t size) {
  if (takes(FP8RT_FUNCTION_TAKES_CONTEXT))
    return fp8rt_context_alloc(context, size, /*flags=*/0);
  constexpr size_t alignment = 64;
  return std::aligned_alloc(alignment,
                            (size + alignment) / alignment * alignment);
}

void Call::release() {
  for (void *memory : allocations)
    if (takes(FP8RT_FUNCTION_TAKES_CONTEXT))
      fp8rt_context_free(context, memory);
    else
      std::free(memory);
  allocations.clear();
}

fp8rt_status Call::separate(char *bytes, const std::vector<size_t> &offsets) {
  std::vector<int32_t> shared;
  for (int32_t i = 0; i < function.num_results; ++i) {
    if (function.results[i].rank < 0)
      continue;
    void *memory =
        Descriptor(bytes + offsets[i], function.results[i].rank).allocated();
    if (std::find(allocations.begin(), allocations.end(), memory) ==
        allocations.end())
      allocations.push_back(memory);
    else if (memory)
      shared.push_back(i);
  }
  for (int32_t i : shared) {
    const fp8rt_program_value &info = function.results[i];
    Descriptor result(bytes + offsets[i], info.rank);
    auto [first, last] = result.span();
    int64_t size = (last + 1 - first) * info.width;
    const char *source = static_cast<char *>(result.address()) +
                         (result.offset() + first) * info.width;
    void *copy = allocate(size);
    if (takes(FP8RT_FUNCTION_TAKES_CONTEXT))
      fp8rt_context_copy(context, copy, source, size);
    else if (!copy)
      return fail(FP8RT_ERROR_OUT_OF_MEMORY,
                  "cannot allocate " + std::to_string(size) +
                      " bytes for result '" + info.name + "'");
    else
      std::memcpy(copy, source, size);
    result.allocated() = result.address() = copy;
    result.offset() = -first;
    allocations.push_back(copy);
  }
  return FP8RT_OK;
}

fp8rt_status Call::run(void *const *arguments, void *const *results,
                       fp8rt_state_rows *rows) {
  // The struct of results: descriptors of words, and scalars by themselves.
  std::vector<size_t> offsets;
  size_t size = 0;
  for (int32_t i = 0; i < function.num_results; ++i) {
    const fp8rt_program_value &info = function.results[i];
    size_t alignment = info.rank < 0 ? info.width : sizeof(int64_t);
    size = (size + alignment - 1) / alignment * alignment;
    offsets.push_back(size);
    size += info.rank < 0 ? info.width : Descriptor::getByteSize(info.rank);
  }
  std::vector<int64_t> storage(size / sizeof(int64_t) + 1);
  char *bytes = reinterpret_cast<char *>(storage.data());

  std::vector<void *> packed;
  packed.reserve(function.num_arguments + 3);
  if (returnsStruct())
    packed.push_back(&bytes);
  for (int32_t i = 0; i < function.num_arguments; ++i)
    packed.push_back(function.arguments[i].rank < 0
                         ? arguments[i]
                         : const_cast<void **>(&arguments[i]));
  if (takes(FP8RT_FUNCTION_TAKES_STATE))
    packed.push_back(&rows);
  if (takes(FP8RT_FUNCTION_TAKES_CONTEXT))
    packed.push_back(&context);
  if (!returnsStruct() && function.num_results == 1)
    packed.push_back(bytes);

  fp8rt_status status = fp8rt_program_invoke(&function, packed.data());
  if (status != FP8RT_OK) {
    // What went wrong before the program gave up is the cause, and no longer
    // the context's.
    fp8rt_status first = takes(FP8RT_FUNCTION_TAKES_CONTEXT)
                             ? fp8rt_context_take_status(context)
                             : FP8RT_OK;
    return first ? first : status;
  }
  status = separate(bytes, offsets);
  if (takes(FP8RT_FUNCTION_TAKES_CONTEXT))
    status = fp8rt_context_take_status(context);
  if (status != FP8RT_OK) {
    release();
    return status;
  }
  for (int32_t i = 0; i < function.num_results; ++i) {
    const fp8rt_program_value &info = function.results[i];
    std::memcpy(results[i], bytes + offsets[i],
                info.rank < 0 ? info.width
                              : Descriptor::getByteSize(info.rank));
  }
  return FP8RT_OK;
}

static std::string describeState(const std::string &recipe, int64_t numSlots,
                                 int64_t numWords) {
  return std::to_string(numSlots) + " slots of " + std::to_string(numWords) +
         " words and the recipe '" + recipe + "'";
}

/// Whether the state is one of the program, which goes by its layout.
static fp8rt_status checkState(const fp8rt_program_info &program,
                               const detail::ScalingState &state) {
  auto numSlots = static_cast<int64_t>(state.getNumSlots());
  int64_t numWords = state.manifest.recipe.numWords;
  bool isSame = numSlots == program.num_slots;
  if (isSame && numWords == program.num_words &&
      state.recipeText == program.state_recipe)
    return FP8RT_OK;
  return fail(
      FP8RT_ERROR_MISMATCH,
      std::string("expected a state of program '") + program.name + "', with " +
          describeState(program.state_recipe, program.num_slots,
                        program.num_words) +
          ", but got " + describeState(state.recipeText, numSlots, numWords));
}

/// The rows of the state, where the program runs: on the device of `context`,
/// or on the host without one.
static fp8rt_status getRows(const fp8rt_program_info &program,
                            const detail::Access &access,
                            const fp8rt_context *context,
                            fp8rt_state_rows &rows) {
  if (access.getStatus() != FP8RT_OK)
    return access.getStatus();
  if (fp8rt_status status = checkState(program, *access))
    return status;
  if (context)
    return detail::uploadState(access, fp8rt_context_get_device(context),
                               fp8rt_context_get_stream(context), rows);
  if (fp8rt_status status = access.checkValues())
    return status;
  rows = (*access).getRows();
  return FP8RT_OK;
}

fp8rt_status fp8rt_program_call(const fp8rt_program_function *function,
                                void *const *arguments, void *const *results,
                                fp8rt_state state, fp8rt_context *context) {
  return detail::guard([&]() -> fp8rt_status {
    if (!function)
      return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                  "expected function to be given, but got null");
    if (fp8rt_status status = detail::checkProgram(*function->program))
      return status;
    Call call(*function, context);
    if (fp8rt_status status = call.check(arguments, results))
      return status;
    if (!(function->flags & FP8RT_FUNCTION_TAKES_STATE))
      return call.run(arguments, results, /*rows=*/nullptr);
    if (!(function->flags & FP8RT_FUNCTION_TAKES_CONTEXT))
      context = nullptr;
    fp8rt_state_rows rows;
    bool needsScales = false;
    {
      // Only to find the rows: functions read the state, and may overlap.
      detail::Access access(state, context ? detail::Access::Write
                                           : detail::Access::Read);
      if (fp8rt_status status =
              getRows(*function->program, access, context, rows))
        return status;
      if (fp8rt_status status = detail::InitialScales::find(
              access, function->name, context, needsScales))
        return status;
    }
    if (!needsScales)
      return call.run(arguments, results, &rows);
    detail::Access access(state, detail::Access::Write);
    if (access.getStatus() != FP8RT_OK)
      return access.getStatus();
    auto run = [&] {
      fp8rt_status status = getRows(*function->program, access, context, rows);
      return status ? status : call.run(arguments, results, &rows);
    };
    return detail::InitialScales(access, function->name, context).run(run, [&] {
      call.release();
    });
  });
}

//===----------------------------------------------------------------------===//
// The end of a step
//===----------------------------------------------------------------------===//

static fp8rt_status checkUpdate(const fp8rt_program_info *info,
                                const fp8rt_context *context, bool &isOnGPU) {
  if (!info)
    return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                "expected info to be given, but got null");
  if (fp8rt_status status = detail::checkProgram(*info))
    return status;
  std::string program = std::string("program '") + info->name + "'";
  if (!info->state_manifest)
    return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                "expected " + program + " to have a scaling state");
  if (!info->update_state)
    return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                "expected " + program +
                    " to have the update of its state, but got null");
  isOnGPU = info->functions[0].flags & FP8RT_FUNCTION_TAKES_CONTEXT;
  if (isOnGPU && !context)
    return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                "expected a context for " + program +
                    ", which runs on a GPU, but got null");
  return FP8RT_OK;
}

/// Runs the program's function on the rows.
static fp8rt_status runUpdate(const fp8rt_program_info &info,
                              fp8rt_state_rows *rows, fp8rt_context *context) {
  fp8rt_program_function function = {};
  function.invoke = info.update_state;
  void *arguments[] = {&rows, &context};
  if (fp8rt_status status = fp8rt_program_invoke(&function, arguments))
    return status;
  return context ? fp8rt_context_take_status(context) : FP8RT_OK;
}

fp8rt_status fp8rt_program_update_state(const fp8rt_program_info *info,
                                        fp8rt_state state,
                                        fp8rt_context *context) {
  return detail::guard([&]() -> fp8rt_status {
    bool isOnGPU = false;
    if (fp8rt_status status = checkUpdate(info, context, isOnGPU))
      return status;
    if (!isOnGPU)
      context = nullptr;
    detail::Access access(state, detail::Access::Write);
    fp8rt_state_rows rows;
    if (fp8rt_status status = getRows(*info, access, context, rows))
      return status;
    if ((*access).suspended) {
      if (isOnGPU)
        return access.getDeviceRows()->clearStaging(
            fp8rt_context_get_stream(context));
      (*access).clearStaging();
      return FP8RT_OK;
    }
    (*access).endFirstCalls();
    detail::DefaultFloatEnvironment environment;
    return runUpdate(*info, &rows, context);
  });
}
