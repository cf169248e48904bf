//===- ProgramContext.cpp - Where compiled programs for GPUs run ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Over the functions that hosts call too: a program can do nothing that its
// host could not.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Context.h"

#include "ContextDetail.h"
#include "GroupDetail.h"
#include "Profiler.h"
#include "StatusDetail.h"
#include "StructSize.h"

#include "fp8/Runtime/Memory.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>

using namespace fp8rt;

struct fp8rt_context {
  fp8rt_context(int32_t device, fp8rt_stream stream)
      : device(device), stream(stream) {}

  int32_t device;
  fp8rt_stream stream;
  fp8rt_status status = FP8RT_OK;
  char message[1024] = "";

  struct Kernel {
    fp8rt_function function;
    /// Null without a description of its launch.
    fp8rt_kernel *described;
  };
  std::unordered_map<const fp8rt_program_image *, fp8rt_module> modules;
  std::unordered_map<const fp8rt_program_kernel *, Kernel> kernels;
  std::unordered_map<const void *, void *> constants;
  /// Null until a profile is started.
  std::unique_ptr<Profiler> profiler;
  bool isProfiled = false;

  bool isHealthy() const { return status == FP8RT_OK; }
  /// Calls `run`, which puts work into the stream, and times it if that is
  /// asked for: `describe` says what it is.
  template <typename Describe, typename Run>
  fp8rt_status doWork(Describe &&describe, Run &&run) {
    if (!isProfiled)
      return run();
    ProfiledWork work;
    if (fp8rt_status failure = describe(work))
      return failure;
    return profiler->time(std::move(work), stream, run);
  }
  /// The same of moving or writing bytes.
  template <typename Run>
  fp8rt_status moveBytes(const char *name, int32_t kind, double bytes,
                         Run &&run) {
    auto describe = [&](ProfiledWork &work) {
      work = {name, kind, bytes};
      return FP8RT_OK;
    };
    return doWork(describe, run);
  }
  void keep(fp8rt_status failure) noexcept;
};

/// What follows from the first error is no news.
void fp8rt_context::keep(fp8rt_status failure) noexcept {
  if (failure == FP8RT_OK || !isHealthy())
    return;
  status = failure;
  const char *text = fp8rt_get_last_error();
  size_t size = std::min(std::strlen(text), sizeof(message) - 1);
  std::memcpy(message, text, size);
  message[size] = '\0';
}

/// Runs `body`, which returns a status, in a context that has not failed.
template <typename Body>
static void inHealthy(fp8rt_context *context, Body &&body) noexcept {
  if (context && context->isHealthy())
    context->keep(detail::guard(body));
}

void detail::runInContext(fp8rt_context *context,
                          const std::function<fp8rt_status()> &body) noexcept {
  inHealthy(context, body);
}

static fp8rt_status failNullContext() {
  return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                      "expected context to be given, but got null");
}

//===----------------------------------------------------------------------===//
// For hosts
//===----------------------------------------------------------------------===//

fp8rt_status fp8rt_context_create(int32_t device, fp8rt_stream stream,
                                  fp8rt_context **context) {
  return detail::guard([&]() -> fp8rt_status {
    if (!context)
      return failNullContext();
    fp8rt_device_info info;
    if (fp8rt_status status = fp8rt_device_get_info(device, &info))
      return status;
    *context = new fp8rt_context(device, stream);
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_context_destroy(fp8rt_context *context) {
  if (!context)
    return FP8RT_OK;
  context->profiler.reset();
  // Kernels that are still running must not lose their code.
  fp8rt_status first = fp8rt_device_synchronize(context->device);
  auto keepFirst = [&](fp8rt_status status) {
    if (first == FP8RT_OK)
      first = status;
  };
  for (auto &[program, kernel] : context->kernels)
    keepFirst(fp8rt_kernel_destroy(kernel.described));
  for (auto &[image, module] : context->modules)
    keepFirst(fp8rt_module_unload(module));
  for (auto &[data, copy] : context->constants)
    keepFirst(fp8rt_memory_free(context->device, copy));
  delete context;
  return first;
}

fp8rt_status fp8rt_context_set_stream(fp8rt_context *context,
                                      fp8rt_stream stream) {
  if (!context)
    return failNullContext();
  context->stream = stream;
  return FP8RT_OK;
}

int32_t fp8rt_context_get_device(const fp8rt_context *context) {
  return context ? context->device : -1;
}

fp8rt_stream fp8rt_context_get_stream(const fp8rt_context *context) {
  return context ? context->stream : nullptr;
}

fp8rt_status fp8rt_context_take_status(fp8rt_context *context) {
  if (!context)
    return failNullContext();
  fp8rt_status status = context->status;
  context->status = FP8RT_OK;
  return status == FP8RT_OK ? FP8RT_OK : detail::fail(status, context->message);
}

//===----------------------------------------------------------------------===//
// Profiles
//===----------------------------------------------------------------------===//

fp8rt_status fp8rt_context_start_profile(fp8rt_context *context) {
  return detail::guard([&]() -> fp8rt_status {
    if (!context)
      return failNullContext();
    context->profiler = std::make_unique<Profiler>(context->device);
    context->isProfiled = true;
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_context_stop_profile(fp8rt_context *context) {
  return detail::guard([&]() -> fp8rt_status {
    if (!context)
      return failNullContext();
    context->isProfiled = false;
    return context->profiler ? context->profiler->stop() : FP8RT_OK;
  });
}

int64_t fp8rt_context_get_profile_size(const fp8rt_context *context) {
  return context && context->profiler
             ? static_cast<int64_t>(context->profiler->getSize())
             : 0;
}

fp8rt_status fp8rt_context_get_profile_entry(const fp8rt_context *context,
                                             int64_t index,
                                             fp8rt_profile_entry *entry) {
  return detail::guard([&]() -> fp8rt_status {
    if (!context)
      return failNullContext();
    if (fp8rt_status status = detail::checkStruct("entry", entry))
      return status;
    int64_t size = fp8rt_context_get_profile_size(context);
    if (index < 0 || index >= size)
      return detail::fail(
          FP8RT_ERROR_INVALID_ARGUMENT,
          "expected the index of one of " + std::to_string(size) +
              " entries of a profile, but got " + std::to_string(index));
    detail::giveStruct(entry,
                       context->profiler->getEntry(static_cast<size_t>(index)));
    return FP8RT_OK;
  });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void *fp8rt_context_alloc(fp8rt_context *context, uint64_t bytes,
                          uint32_t flags) {
  void *ptr = nullptr;
  auto allocate = [&] {
    return fp8rt_workspace_alloc(context->device, context->stream, bytes, flags,
                                 &ptr);
  };
  inHealthy(context, [&] {
    if (!(flags & FP8RT_WORKSPACE_ZERO) || bytes == 0)
      return allocate();
    return context->moveBytes("fill", FP8RT_PROFILE_FILL,
                              static_cast<double>(bytes), allocate);
  });
  return ptr;
}

void fp8rt_context_free(fp8rt_context *context, void *ptr) {
  // After an error too: it was allocated before.
  if (context && ptr)
    context->keep(fp8rt_workspace_free(context->device, context->stream, ptr));
}

void fp8rt_context_copy(fp8rt_context *context, void *dst, const void *src,
                        uint64_t bytes) {
  auto copy = [&] {
    return fp8rt_memory_copy(context->device, dst, src, bytes, context->stream);
  };
  inHealthy(context, [&] {
    // Each byte is read and written.
    return bytes == 0
               ? FP8RT_OK
               : context->moveBytes("copy", FP8RT_PROFILE_COPY,
                                    2 * static_cast<double>(bytes), copy);
  });
}

void fp8rt_context_read(fp8rt_context *context, void *dst, const void *src,
                        uint64_t bytes) {
  std::memset(dst, 0, bytes);
  auto copy = [&] {
    return fp8rt_memory_copy(context->device, dst, src, bytes, context->stream);
  };
  inHealthy(context, [&]() -> fp8rt_status {
    if (fp8rt_status status = context->moveBytes(
            "read", FP8RT_PROFILE_READ, static_cast<double>(bytes), copy))
      return status;
    return fp8rt_stream_synchronize(context->device, context->stream);
  });
}

/// Copies to the device and waits: calls that use a constant may be in another
/// stream than the one that brought it there.
static fp8rt_status copyNow(int32_t device, void *dst, const void *src,
                            uint64_t bytes) {
  fp8rt_stream stream = nullptr;
  if (fp8rt_status status = fp8rt_stream_create(device, &stream))
    return status;
  fp8rt_status status = fp8rt_memory_copy(device, dst, src, bytes, stream);
  if (status == FP8RT_OK)
    status = fp8rt_stream_synchronize(device, stream);
  fp8rt_stream_destroy(device, stream);
  return status;
}

void *fp8rt_context_get_constant(fp8rt_context *context, const void *data,
                                 uint64_t bytes) {
  void *copy = nullptr;
  inHealthy(context, [&]() -> fp8rt_status {
    auto [entry, isNew] = context->constants.try_emplace(data, nullptr);
    if (isNew) {
      fp8rt_status status =
          fp8rt_memory_alloc(context->device, bytes, &entry->second);
      if (status == FP8RT_OK && bytes != 0)
        status = copyNow(context->device, entry->second, data, bytes);
      if (status != FP8RT_OK) {
        fp8rt_memory_free(context->device, entry->second);
        context->constants.erase(entry);
        return status;
      }
    }
    copy = entry->second;
    return FP8RT_OK;
  });
  return copy;
}

void fp8rt_context_check_memory(fp8rt_context *context, const void *ptr,
                                int64_t count, const char *name) {
  inHealthy(context, [&] {
    return count == 0 ? FP8RT_OK
                      : fp8rt_memory_check(context->device, ptr, name);
  });
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void fp8rt_context_require(fp8rt_context *context, int32_t condition,
                           const char *message) {
  inHealthy(context, [&] {
    return condition ? FP8RT_OK
                     : detail::fail(FP8RT_ERROR_INVALID_ARGUMENT, message);
  });
}

/// Finds the kernel, loading its module at first.
static fp8rt_status getKernel(fp8rt_context &context,
                              const fp8rt_program_kernel *kernel,
                              fp8rt_context::Kernel *&found) {
  auto it = context.kernels.find(kernel);
  if (it == context.kernels.end()) {
    fp8rt_module &module = context.modules[kernel->image];
    if (!module)
      if (fp8rt_status status =
              fp8rt_module_load(context.device, kernel->image->data,
                                kernel->image->size, &module)) {
        context.modules.erase(kernel->image);
        return status;
      }
    fp8rt_function function;
    if (fp8rt_status status =
            fp8rt_module_get_function(module, kernel->name, &function))
      return status;
    fp8rt_kernel *described = nullptr;
    if (kernel->launch)
      if (fp8rt_status status =
              fp8rt_kernel_create(function, kernel->launch,
                                  std::strlen(kernel->launch), &described))
        return status;
    it = context.kernels
             .emplace(kernel, fp8rt_context::Kernel{function, described})
             .first;
  }
  found = &it->second;
  return FP8RT_OK;
}

void fp8rt_context_launch(fp8rt_context *context,
                          const fp8rt_program_kernel *kernel,
                          const fp8rt_launch_config *config, void **params) {
  inHealthy(context, [&]() -> fp8rt_status {
    if (config->grid[0] == 0 || config->grid[1] == 0 || config->grid[2] == 0)
      return FP8RT_OK;
    fp8rt_context::Kernel *found;
    if (fp8rt_status status = getKernel(*context, kernel, found))
      return status;
    auto describe = [&](ProfiledWork &work) {
      work = {kernel->name, FP8RT_PROFILE_KERNEL};
      return FP8RT_OK;
    };
    return context->doWork(describe, [&] {
      return fp8rt_launch(found->function, config, params, context->stream);
    });
  });
}

void fp8rt_context_launch_kernel(fp8rt_context *context,
                                 const fp8rt_program_kernel *kernel,
                                 const fp8rt_kernel_argument *arguments,
                                 const void *const *captures) {
  inHealthy(context, [&]() -> fp8rt_status {
    fp8rt_context::Kernel *found;
    if (fp8rt_status status = getKernel(*context, kernel, found))
      return status;
    auto describe = [&](ProfiledWork &work) {
      work = {kernel->name, FP8RT_PROFILE_KERNEL};
      return fp8rt_kernel_get_work(found->described, arguments, &work.bytes,
                                   &work.flops);
    };
    return context->doWork(describe, [&] {
      return fp8rt_kernel_launch(found->described, arguments, captures,
                                 /*workspaces=*/nullptr, context->stream);
    });
  });
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

void fp8rt_context_all_reduce(fp8rt_context *context, const char *name,
                              float *amaxes, int64_t count, int32_t flags) {
  if (detail::isSkipped(flags))
    return;
  inHealthy(context, [&] {
    return fp8rt_group_all_reduce(name, amaxes, count, context->device,
                                  context->stream);
  });
}
