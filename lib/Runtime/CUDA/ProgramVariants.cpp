//===- ProgramVariants.cpp - Programs for several GPUs --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"
#include "ContextDetail.h"
#include "StatusDetail.h"

#include "fp8/Runtime/Program.h"

#include <string>

using namespace fp8rt;

/// The variant that a device of that compute capability runs; null if there is
/// none.
static const fp8rt_program_variant *
findVariant(const fp8rt_program_variant *variants, uint32_t count,
            int32_t capability) {
  const fp8rt_program_variant *best = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    const fp8rt_program_variant &variant = variants[i];
    if (variant.compute_capability == capability)
      return &variant;
    if ((variant.flags & FP8RT_VARIANT_RUNS_LATER) &&
        variant.compute_capability < capability &&
        (!best || variant.compute_capability > best->compute_capability))
      best = &variant;
  }
  return best;
}

/// E.g. "compute capability 8.9 or later, or compute capability 10.0".
static std::string describe(const fp8rt_program_variant *variants,
                            uint32_t count) {
  std::string text;
  for (uint32_t i = 0; i < count; ++i) {
    int32_t capability = variants[i].compute_capability;
    text += (i == 0 ? "compute capability " : ", or compute capability ") +
            std::to_string(capability / 10) + "." +
            std::to_string(capability % 10);
    if (variants[i].flags & FP8RT_VARIANT_RUNS_LATER)
      text += " or later";
  }
  return text;
}

static fp8rt_status chooseVariant(int32_t device,
                                  const fp8rt_program_variant *variants,
                                  uint32_t count,
                                  const fp8rt_program_variant *&chosen) {
  const fp8rt_device_info *info;
  if (fp8rt_status status = cuda::getDeviceInfo(device, info))
    return status;
  chosen = findVariant(variants, count,
                       10 * info->compute_capability_major +
                           info->compute_capability_minor);
  if (chosen)
    return FP8RT_OK;
  return detail::fail(FP8RT_ERROR_UNSUPPORTED_ARCH,
                      "expected " + cuda::describeDevice(device) + " to have " +
                          describe(variants, count));
}

void fp8rt_program_invoke_variant(fp8rt_context *context,
                                  const fp8rt_program_variant *variants,
                                  uint32_t count, int32_t index,
                                  void **arguments) {
  const fp8rt_program_variant *chosen = nullptr;
  detail::runInContext(context, [&] {
    return chooseVariant(fp8rt_context_get_device(context), variants, count,
                         chosen);
  });
  if (!chosen)
    return;
  const fp8rt_program_info &program = *chosen->program;
  auto *invoke =
      index < 0 ? program.update_state : program.functions[index].invoke;
  invoke(arguments);
}
