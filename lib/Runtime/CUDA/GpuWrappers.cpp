//===- GpuWrappers.cpp - The names that upstream's GPU code calls ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/GpuWrappers.h"

#include "Memory.h"
#include "Module.h"
#include "WrapperErrors.h"

#include <cstring>

using namespace fp8rt;
using namespace fp8rt::cuda;

static Module asModule(void *module) { return static_cast<Module>(module); }
static Function asFunction(void *function) {
  return static_cast<Function>(function);
}
static Event asEvent(void *event) { return static_cast<Event>(event); }

/// "cannot copy: ..." for calls that have nothing more to say.
static fp8rt_status check(Result result, const char *action) {
  return result == SUCCESS ? FP8RT_OK : cuda::fail(result, action);
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

static void *loadModule(const char *name, const void *image, size_t size,
                        int optLevel) {
  Module module = nullptr;
  inWrapper(name, [&](const Driver &driver, int32_t device) {
    return image ? loadImage(driver, device,
                             {static_cast<const char *>(image), size}, optLevel,
                             module)
                 : failNull("image");
  });
  return module;
}

void *mgpuModuleLoad(void *image, size_t size) {
  return loadModule("mgpuModuleLoad", image, size, /*optLevel=*/4);
}

void *mgpuModuleLoadJIT(void *ptx, int opt_level) {
  return loadModule("mgpuModuleLoadJIT", ptx,
                    ptx ? std::strlen(static_cast<char *>(ptx)) : 0, opt_level);
}

void mgpuModuleUnload(void *module) {
  // Destructors of a program unload what its constructors could not load.
  if (!module)
    return;
  inWrapper("mgpuModuleUnload", [&](const Driver &driver, int32_t) {
    RelaxedCapture relaxed(driver);
    return check(driver.cuModuleUnload(asModule(module)), "unload a module");
  });
}

void *mgpuModuleGetFunction(void *module, const char *name) {
  Function function = nullptr;
  inWrapper("mgpuModuleGetFunction",
            [&](const Driver &driver, int32_t) -> fp8rt_status {
              if (!module || !name)
                return failNull(module ? "name" : "a module that was loaded");
              RelaxedCapture relaxed(driver);
              Result result =
                  driver.cuModuleGetFunction(&function, asModule(module), name);
              return result == SUCCESS
                         ? FP8RT_OK
                         : cuda::fail(result,
                                      "get kernel '" + std::string(name) + "'");
            });
  return function;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The driver's numbers are smaller than MLIR's index.
static bool narrow(const intptr_t (&from)[9], fp8rt_launch_config &config) {
  for (int i = 0; i < 9; ++i) {
    if (from[i] < 0 || from[i] > INT32_MAX)
      return false;
    uint32_t *to = i < 3 ? config.grid : i < 6 ? config.block : config.cluster;
    to[i % 3] = static_cast<uint32_t>(from[i]);
  }
  return true;
}

static void launch(const char *name, void *function, const intptr_t (&dims)[9],
                   int32_t dynamicSmem, void *stream, void **params,
                   void **extra) {
  inHealthyWrapper(
      name, [&](const Driver &driver, int32_t device) -> fp8rt_status {
        fp8rt_launch_config config = {};
        if (!function)
          return failNull("a kernel of a module that was loaded");
        if (!narrow(dims, config) || dynamicSmem < 0)
          return detail::fail(
              FP8RT_ERROR_INVALID_ARGUMENT,
              "expected a grid, block, cluster and shared memory "
              "from 0 to 2^31 - 1, but got others");
        if (fp8rt_status status = checkLaunch(config))
          return status;
        config.dynamic_smem = static_cast<uint32_t>(dynamicSmem);
        Context context;
        if (fp8rt_status status = getPrimaryContext(device, context))
          return status;
        if (dynamicSmem > 0)
          if (Result result = driver.cuFuncSetAttribute(
                  asFunction(function),
                  FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamicSmem))
            return cuda::fail(result, "give a kernel " +
                                          std::to_string(dynamicSmem) +
                                          " bytes of shared memory on " +
                                          describeDevice(device));
        Result result = launchKernel(driver, asFunction(function), config,
                                     params, extra, asStream(stream));
        return result == SUCCESS ? FP8RT_OK
                                 : failLaunch(driver, result, "of a GPU module",
                                              context, asStream(stream));
      });
}

void mgpuLaunchKernel(void *function, intptr_t grid_x, intptr_t grid_y,
                      intptr_t grid_z, intptr_t block_x, intptr_t block_y,
                      intptr_t block_z, int32_t dynamic_smem, void *stream,
                      void **params, void **extra, size_t num_params) {
  launch("mgpuLaunchKernel", function,
         {grid_x, grid_y, grid_z, block_x, block_y, block_z, 0, 0, 0},
         dynamic_smem, stream, params, extra);
}

void mgpuLaunchClusterKernel(void *function, intptr_t cluster_x,
                             intptr_t cluster_y, intptr_t cluster_z,
                             intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                             intptr_t block_x, intptr_t block_y,
                             intptr_t block_z, int32_t dynamic_smem,
                             void *stream, void **params, void **extra,
                             size_t num_params) {
  launch("mgpuLaunchClusterKernel", function,
         {grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x,
          cluster_y, cluster_z},
         dynamic_smem, stream, params, extra);
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

void *mgpuStreamCreate(void) {
  Stream stream = nullptr;
  inWrapper("mgpuStreamCreate", [&](const Driver &driver, int32_t) {
    RelaxedCapture relaxed(driver);
    return check(driver.cuStreamCreate(&stream, STREAM_NON_BLOCKING),
                 "make a stream");
  });
  return stream;
}

void mgpuStreamDestroy(void *stream) {
  // What mgpuStreamCreate returned when it failed.
  if (!stream)
    return;
  inWrapper("mgpuStreamDestroy", [&](const Driver &driver, int32_t) {
    return check(driver.cuStreamDestroy(asStream(stream)), "destroy a stream");
  });
}

void mgpuStreamSynchronize(void *stream) {
  inWrapper("mgpuStreamSynchronize", [&](const Driver &driver, int32_t) {
    return check(driver.cuStreamSynchronize(asStream(stream)),
                 "synchronize a stream");
  });
}

void mgpuStreamWaitEvent(void *stream, void *event) {
  inHealthyWrapper("mgpuStreamWaitEvent", [&](const Driver &driver, int32_t) {
    return event ? check(driver.cuStreamWaitEvent(asStream(stream),
                                                  asEvent(event), /*flags=*/0),
                         "let a stream wait for an event")
                 : failNull("event");
  });
}

void *mgpuEventCreate(void) {
  Event event = nullptr;
  inWrapper("mgpuEventCreate", [&](const Driver &driver, int32_t) {
    RelaxedCapture relaxed(driver);
    return check(driver.cuEventCreate(&event, EVENT_DISABLE_TIMING),
                 "make an event");
  });
  return event;
}

void mgpuEventDestroy(void *event) {
  if (!event)
    return;
  inWrapper("mgpuEventDestroy", [&](const Driver &driver, int32_t) {
    return check(driver.cuEventDestroy(asEvent(event)), "destroy an event");
  });
}

void mgpuEventSynchronize(void *event) {
  inHealthyWrapper("mgpuEventSynchronize", [&](const Driver &driver, int32_t) {
    return event ? check(driver.cuEventSynchronize(asEvent(event)),
                         "wait for an event")
                 : failNull("event");
  });
}

void mgpuEventRecord(void *event, void *stream) {
  inHealthyWrapper("mgpuEventRecord", [&](const Driver &driver, int32_t) {
    return event ? check(driver.cuEventRecord(asEvent(event), asStream(stream)),
                         "record an event")
                 : failNull("event");
  });
}
