//===- Modules.cpp - The modules and functions behind handles -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One lock for all: launches share it, so that a module stays while one of its
// kernels is being launched, and whoever loads or unloads has it alone.
//
//===----------------------------------------------------------------------===//

#include "HandleTable.h"
#include "Module.h"
#include "StructSize.h"

#include <map>
#include <shared_mutex>

using namespace fp8rt;
using namespace fp8rt::cuda;

namespace {
struct LoadedModule {
  int32_t device;
  Module module;
  std::map<std::string, fp8rt_function> functions;
};

struct LoadedFunction {
  std::string name;
  int32_t device;
  Context context;
  Function function;
  fp8rt_function_info info;
};

struct Table {
  std::shared_mutex mutex;
  HandleTable<LoadedModule> modules;
  HandleTable<LoadedFunction> functions;
};
} // namespace

/// Never destroyed: threads may outlive main.
static Table &getTable() {
  static Table *table = new Table;
  return *table;
}

static fp8rt_status failInvalid(const char *what, uint64_t handle) {
  std::string expected = std::string("expected a ") + what + ", but got ";
  return detail::fail(FP8RT_ERROR_INVALID_HANDLE,
                      handle == 0
                          ? expected + "0"
                          : expected + std::to_string(handle) +
                                ", which was unloaded or never given out");
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

fp8rt_status fp8rt_module_load(int32_t device, const void *image, size_t size,
                               fp8rt_module *module) {
  if (!image || !module)
    return failNull(image ? "module" : "image");
  return inContext(device, [&](const Driver &driver) -> fp8rt_status {
    auto loaded = std::make_unique<LoadedModule>();
    loaded->device = device;
    if (fp8rt_status status =
            loadImage(driver, device, {static_cast<const char *>(image), size},
                      /*optLevel=*/4, loaded->module))
      return status;
    Module made = loaded->module;
    try {
      std::unique_lock<std::shared_mutex> lock(getTable().mutex);
      *module = getTable().modules.add(std::move(loaded));
    } catch (...) {
      driver.cuModuleUnload(made);
      throw;
    }
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_module_unload(fp8rt_module handle) {
  return detail::guard([&]() -> fp8rt_status {
    if (fp8rt_status status = checkProcess())
      return status;
    std::unique_ptr<LoadedModule> module;
    {
      Table &table = getTable();
      std::unique_lock<std::shared_mutex> lock(table.mutex);
      module = table.modules.remove(handle);
      if (!module)
        return failInvalid("module", handle);
      for (auto &[name, function] : module->functions)
        table.functions.remove(function);
    }
    return inContext(module->device, [&](const Driver &driver) {
      RelaxedCapture relaxed(driver);
      return check(driver.cuModuleUnload(module->module), [&] {
        return "unload a module on device " + std::to_string(module->device);
      });
    });
  });
}

/// Finds a kernel and what is to be known of it, in the module's context.
static fp8rt_status makeFunction(const Driver &driver,
                                 const LoadedModule &module, const char *name,
                                 LoadedFunction &function) {
  RelaxedCapture relaxed(driver);
  Result result =
      driver.cuModuleGetFunction(&function.function, module.module, name);
  if (result == ERROR_NOT_FOUND)
    return detail::fail(FP8RT_ERROR_NOT_FOUND,
                        "expected the name of a kernel of the module, but got "
                        "'" +
                            std::string(name) + "'");
  function.name = name;
  function.device = function.info.device = module.device;
  const std::pair<FunctionAttribute, int32_t *> attributes[] = {
      {FUNC_ATTRIBUTE_NUM_REGS, &function.info.num_registers},
      {FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &function.info.local_bytes},
      {FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &function.info.static_smem},
      {FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
       &function.info.max_dynamic_smem},
      {FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
       &function.info.max_threads_per_block},
      {FUNC_ATTRIBUTE_BINARY_VERSION, &function.info.binary_version},
  };
  for (auto [attribute, value] : attributes)
    if (result == SUCCESS)
      result = driver.cuFuncGetAttribute(value, attribute, function.function);
  if (result != SUCCESS)
    return cuda::fail(result, "get kernel '" + std::string(name) + "'");
  return getPrimaryContext(module.device, function.context);
}

fp8rt_status fp8rt_module_get_function(fp8rt_module handle, const char *name,
                                       fp8rt_function *function) {
  if (!name || !function)
    return failNull(name ? "function" : "name");
  return detail::guard([&]() -> fp8rt_status {
    if (fp8rt_status status = checkProcess())
      return status;
    Table &table = getTable();
    std::unique_lock<std::shared_mutex> lock(table.mutex);
    LoadedModule *module = table.modules.find(handle);
    if (!module)
      return failInvalid("module", handle);
    auto known = module->functions.find(name);
    if (known != module->functions.end() && known->second != 0) {
      *function = known->second;
      return FP8RT_OK;
    }
    return inContext(module->device, [&](const Driver &driver) -> fp8rt_status {
      auto made = std::make_unique<LoadedFunction>();
      if (fp8rt_status status = makeFunction(driver, *module, name, *made))
        return status;
      // Before the handle exists, so that none is lost for want of memory; then
      // it stays 0.
      fp8rt_function &slot = module->functions[name];
      slot = table.functions.add(std::move(made));
      *function = slot;
      return FP8RT_OK;
    });
  });
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

fp8rt_status fp8rt_function_get_info(fp8rt_function handle,
                                     fp8rt_function_info *info) {
  if (fp8rt_status status = detail::checkStruct("info", info))
    return status;
  return detail::guard([&]() -> fp8rt_status {
    if (fp8rt_status status = checkProcess())
      return status;
    std::shared_lock<std::shared_mutex> lock(getTable().mutex);
    LoadedFunction *function = getTable().functions.find(handle);
    if (!function)
      return failInvalid("function", handle);
    detail::giveStruct(info, function->info);
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_function_set_max_dynamic_smem(fp8rt_function handle,
                                                 int32_t bytes) {
  return detail::guard([&]() -> fp8rt_status {
    if (fp8rt_status status = checkProcess())
      return status;
    std::unique_lock<std::shared_mutex> lock(getTable().mutex);
    LoadedFunction *function = getTable().functions.find(handle);
    if (!function)
      return failInvalid("function", handle);
    const fp8rt_device_info *device;
    if (fp8rt_status status = getDeviceInfo(function->device, device))
      return status;
    int32_t limit = device->smem_per_block_optin - function->info.static_smem;
    if (bytes < 0 || bytes > limit)
      return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                          "expected bytes to be from 0 to " +
                              std::to_string(limit) + ", what " +
                              describeDevice(function->device) +
                              " has for kernel '" + function->name +
                              "', but got " + std::to_string(bytes));
    ScopedContext context(getDriver(), function->context);
    if (context.getStatus() != FP8RT_OK)
      return context.getStatus();
    Result result = context->cuFuncSetAttribute(
        function->function, FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        bytes);
    if (result != SUCCESS)
      return cuda::fail(result, "give kernel '" + function->name + "' " +
                                    std::to_string(bytes) +
                                    " bytes of shared memory");
    function->info.max_dynamic_smem = bytes;
    return FP8RT_OK;
  });
}

/// What is to be checked of a launch that depends on the kernel.
static fp8rt_status checkLimits(const LoadedFunction &function,
                                const fp8rt_launch_config &config) {
  if (config.dynamic_smem >
      static_cast<uint32_t>(function.info.max_dynamic_smem))
    return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                        "expected config.dynamic_smem to be at most " +
                            std::to_string(function.info.max_dynamic_smem) +
                            ", what kernel '" + function.name +
                            "' was given, but got " +
                            std::to_string(config.dynamic_smem));
  // No product of three numbers up to 2^32 that wraps is that small: each is
  // bounded before it is multiplied.
  uint64_t limit = static_cast<uint64_t>(function.info.max_threads_per_block);
  uint64_t threads = 1;
  for (uint32_t extent : config.block)
    if (threads <= limit)
      threads *= extent;
  if (threads > limit)
    return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                        "expected config.block to have at most " +
                            std::to_string(limit) + " threads, what kernel '" +
                            function.name + "' can have, but got " +
                            std::to_string(threads));
  return FP8RT_OK;
}

/// Calls `use` with a function and the launch, where it can be launched like
/// this, in the context of the function.
template <typename Use>
static fp8rt_status useFunction(fp8rt_function handle,
                                const fp8rt_launch_config *given, Use use) {
  if (fp8rt_status status = detail::checkStruct("config", given))
    return status;
  fp8rt_launch_config storage;
  const fp8rt_launch_config &config = detail::takeStruct(given, storage);
  return detail::guard([&]() -> fp8rt_status {
    if (fp8rt_status status = checkProcess())
      return status;
    std::shared_lock<std::shared_mutex> lock(getTable().mutex);
    LoadedFunction *function = getTable().functions.find(handle);
    if (!function)
      return failInvalid("function", handle);
    if (fp8rt_status status = checkLaunch(config))
      return status;
    if (fp8rt_status status = checkLimits(*function, config))
      return status;
    ScopedContext context(getDriver(), function->context);
    if (context.getStatus() != FP8RT_OK)
      return context.getStatus();
    return use(*function, config, *context.operator->());
  });
}

fp8rt_status
fp8rt_function_get_max_active_clusters(fp8rt_function handle,
                                       const fp8rt_launch_config *config,
                                       int32_t *clusters) {
  if (!clusters)
    return failNull("clusters");
  return useFunction(
      handle, config,
      [&](const LoadedFunction &function, const fp8rt_launch_config &config,
          const Driver &driver) -> fp8rt_status {
        Result result =
            getMaxActiveClusters(driver, function.function, config, *clusters);
        if (result == SUCCESS)
          return FP8RT_OK;
        return cuda::fail(result, "find how many clusters of kernel '" +
                                      function.name + "' run at once");
      });
}

fp8rt_status fp8rt_launch(fp8rt_function handle,
                          const fp8rt_launch_config *config, void **params,
                          fp8rt_stream stream) {
  return useFunction(
      handle, config,
      [&](const LoadedFunction &function, const fp8rt_launch_config &config,
          const Driver &driver) -> fp8rt_status {
        Result result = launchKernel(driver, function.function, config, params,
                                     /*extra=*/nullptr, asStream(stream));
        if (result == SUCCESS)
          return FP8RT_OK;
        return failLaunch(driver, result, function.name, function.context,
                          asStream(stream));
      });
}
