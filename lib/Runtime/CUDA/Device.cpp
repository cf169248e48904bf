//===- Device.cpp - CUDA devices and their contexts -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"
#include "StructSize.h"

#include <memory>

using namespace fp8rt;
using namespace fp8rt::cuda;

fp8rt_status cuda::getDeviceState(int32_t device, DeviceState *&state) {
  const Driver *driver;
  if (fp8rt_status status = getDriver(driver))
    return status;
  if (device < 0 || device >= driver->numDevices)
    return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                        "expected device to be one of " +
                            std::to_string(driver->numDevices) + ", but got " +
                            std::to_string(device));
  // Never destroyed: threads may outlive main.
  static DeviceState *states = new DeviceState[driver->numDevices];
  state = &states[device];
  return FP8RT_OK;
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

fp8rt_status cuda::getPrimaryContext(int32_t device, Context &context) {
  DeviceState *state;
  if (fp8rt_status status = getDeviceState(device, state))
    return status;
  std::lock_guard<std::mutex> lock(state->mutex);
  if (!state->context) {
    RelaxedCapture relaxed(getDriver());
    Device handle;
    Result result = getDriver().cuDeviceGet(&handle, device);
    Context made = nullptr;
    if (result == SUCCESS)
      result = getDriver().cuDevicePrimaryCtxRetain(&made, handle);
    // Not kept if it fails: another process may leave the device.
    if (result != SUCCESS)
      return cuda::fail(result, "use device " + std::to_string(device));
    state->context = made;
  }
  context = state->context;
  return FP8RT_OK;
}

ScopedContext::ScopedContext(int32_t device) {
  const Driver *found;
  status = getDriver(found);
  if (status != FP8RT_OK)
    return;
  Context context;
  status = getPrimaryContext(device, context);
  if (status == FP8RT_OK)
    enter(*found, context);
}

void ScopedContext::enter(const Driver &theDriver, Context context) {
  driver = &theDriver;
  Context current = nullptr;
  if (driver->cuCtxGetCurrent(&current) == SUCCESS && current == context)
    return;
  Result result = driver->cuCtxPushCurrent(context);
  pushed = result == SUCCESS;
  if (!pushed)
    status = cuda::fail(result, "enter the device's context");
}

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

static Result readInfo(const Driver &driver, int32_t ordinal,
                       fp8rt_device_info &info) {
  Device device;
  if (Result result = driver.cuDeviceGet(&device, ordinal))
    return result;
  if (Result result =
          driver.cuDeviceGetName(info.name, sizeof(info.name), device))
    return result;
  size_t bytes;
  if (Result result = driver.cuDeviceTotalMem(&bytes, device))
    return result;
  info.total_memory = static_cast<int64_t>(bytes);
  const std::pair<DeviceAttribute, int32_t *> attributes[] = {
      {DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
       &info.compute_capability_major},
      {DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
       &info.compute_capability_minor},
      {DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &info.num_sms},
      {DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &info.max_threads_per_block},
      {DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &info.smem_per_block},
      {DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
       &info.smem_per_block_optin},
      {DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
       &info.smem_per_sm},
      {DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &info.l2_cache_size},
      {DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, &info.supports_clusters},
      {DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &info.supports_memory_pools},
  };
  for (auto [attribute, value] : attributes)
    if (Result result = driver.cuDeviceGetAttribute(value, attribute, device))
      return result;
  return SUCCESS;
}

fp8rt_status cuda::getDeviceInfo(int32_t device,
                                 const fp8rt_device_info *&info) {
  DeviceState *state;
  if (fp8rt_status status = getDeviceState(device, state))
    return status;
  std::lock_guard<std::mutex> lock(state->mutex);
  if (!state->hasInfo) {
    fp8rt_device_info read = {};
    if (Result result = readInfo(getDriver(), device, read))
      return cuda::fail(result, "ask about device " + std::to_string(device));
    state->info = read;
    state->hasInfo = true;
  }
  info = &state->info;
  return FP8RT_OK;
}

std::string cuda::describeDevice(int32_t device) {
  std::string text = "device " + std::to_string(device);
  const fp8rt_device_info *info;
  if (getDeviceInfo(device, info) != FP8RT_OK)
    return text;
  return text + " (" + info->name + ", sm_" +
         std::to_string(info->compute_capability_major) +
         std::to_string(info->compute_capability_minor) + ")";
}

//===----------------------------------------------------------------------===//
// The C interface
//===----------------------------------------------------------------------===//

fp8rt_status fp8rt_device_get_driver_version(int32_t *version) {
  return detail::guard([&]() -> fp8rt_status {
    if (!version)
      return failNull("version");
    const Driver *driver;
    if (fp8rt_status status = getDriver(driver))
      return status;
    *version = driver->version;
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_device_get_count(int32_t *count) {
  return detail::guard([&]() -> fp8rt_status {
    if (!count)
      return failNull("count");
    const Driver *driver;
    if (fp8rt_status status = getDriver(driver))
      return status;
    *count = driver->numDevices;
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_device_get_info(int32_t device, fp8rt_device_info *info) {
  return detail::guard([&]() -> fp8rt_status {
    if (fp8rt_status status = detail::checkStruct("info", info))
      return status;
    const fp8rt_device_info *found;
    if (fp8rt_status status = getDeviceInfo(device, found))
      return status;
    detail::giveStruct(info, *found);
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_device_is_emulated(int32_t *isEmulated) {
  return detail::guard([&]() -> fp8rt_status {
    if (!isEmulated)
      return failNull("is_emulated");
    const Driver *driver;
    if (fp8rt_status status = getDriver(driver))
      return status;
    *isEmulated = driver->isEmulator;
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_device_get_current(int32_t *device) {
  return detail::guard([&]() -> fp8rt_status {
    if (!device)
      return failNull("device");
    const Driver *driver;
    if (fp8rt_status status = getDriver(driver))
      return status;
    Context current = nullptr;
    driver->cuCtxGetCurrent(&current);
    // Devices are numbered from 0 in the order of the ordinals.
    Device found = 0;
    if (current)
      if (Result result = driver->cuCtxGetDevice(&found))
        return cuda::fail(result, "find the device of the current context");
    *device = found;
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_device_synchronize(int32_t device) {
  return inContext(device, [&](const Driver &driver) {
    return check(driver.cuCtxSynchronize(),
                 [&] { return "synchronize " + describeDevice(device); });
  });
}
