//===- Launch.cpp - Launching kernels -------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module.h"

using namespace fp8rt;
using namespace fp8rt::cuda;

static fp8rt_status failField(const char *field, int index,
                              const std::string &expected, uint32_t got) {
  return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                      std::string("expected config.") + field +
                          (index < 0 ? "" : "[" + std::to_string(index) + "]") +
                          " to be " + expected + ", but got " +
                          std::to_string(got));
}

static bool hasCluster(const fp8rt_launch_config &config) {
  return config.cluster[0] | config.cluster[1] | config.cluster[2];
}

fp8rt_status cuda::checkLaunch(const fp8rt_launch_config &config) {
  for (int i = 0; i < 3; ++i) {
    if (config.grid[i] == 0)
      return failField("grid", i, "1 or more", 0);
    if (config.block[i] == 0)
      return failField("block", i, "1 or more", 0);
  }
  if (hasCluster(config))
    for (int i = 0; i < 3; ++i)
      if (config.cluster[i] == 0 || config.grid[i] % config.cluster[i] != 0)
        return failField("cluster", i,
                         "a divisor of grid[" + std::to_string(i) + "], " +
                             std::to_string(config.grid[i]),
                         config.cluster[i]);
  if (config.flags & ~uint32_t{FP8RT_LAUNCH_OVERLAP})
    return failField("flags", -1, "FP8RT_LAUNCH_OVERLAP or 0", config.flags);
  return FP8RT_OK;
}

namespace {
/// The driver's form of a launch.
struct DriverLaunch {
  DriverLaunch(const fp8rt_launch_config &from, Stream stream);

  LaunchAttribute attributes[2];
  LaunchConfig config;
};
} // namespace

DriverLaunch::DriverLaunch(const fp8rt_launch_config &from, Stream stream) {
  unsigned numAttributes = 0;
  if (hasCluster(from)) {
    LaunchAttribute &attribute = attributes[numAttributes++];
    attribute.id = LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {from.cluster[0], from.cluster[1],
                                  from.cluster[2]};
  }
  if (from.flags & FP8RT_LAUNCH_OVERLAP) {
    LaunchAttribute &attribute = attributes[numAttributes++];
    attribute.id = LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
  }
  config.gridDimX = from.grid[0];
  config.gridDimY = from.grid[1];
  config.gridDimZ = from.grid[2];
  config.blockDimX = from.block[0];
  config.blockDimY = from.block[1];
  config.blockDimZ = from.block[2];
  config.sharedMemBytes = from.dynamic_smem;
  config.hStream = stream;
  config.attrs = attributes;
  config.numAttrs = numAttributes;
}

Result cuda::launchKernel(const Driver &driver, Function function,
                          const fp8rt_launch_config &config, void **params,
                          void **extra, Stream stream) {
  DriverLaunch launch(config, stream);
  return driver.cuLaunchKernelEx(&launch.config, function, params, extra);
}

Result cuda::getMaxActiveClusters(const Driver &driver, Function function,
                                  const fp8rt_launch_config &config,
                                  int32_t &clusters) {
  DriverLaunch launch(config, /*stream=*/nullptr);
  return driver.cuOccupancyMaxActiveClusters(&clusters, function,
                                             &launch.config);
}

fp8rt_status cuda::failLaunch(const Driver &driver, Result result,
                              const std::string &name, Context context,
                              Stream stream) {
  // The driver calls a stream of another context an invalid handle.
  Context owner = nullptr;
  if (getStatus(result) != FP8RT_ERROR_DEVICE_LOST && stream &&
      driver.cuStreamGetCtx(stream, &owner) == SUCCESS && owner != context)
    return detail::fail(FP8RT_ERROR_WRONG_DEVICE,
                        "expected stream on the device of kernel '" + name +
                            "', but got one of another device");
  return cuda::fail(result, "launch kernel '" + name + "'");
}
