//===- Kernel.cpp - Launches that are described ---------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one interpreter of launches: compiled programs, fp8-tune and benchmarks
// come here.
//
//===----------------------------------------------------------------------===//

#include "LaunchPlan.h"
#include "Module.h"

#include "fp8/Runtime/Kernel.h"
#include "fp8/Runtime/Memory.h"
#include "fp8/Runtime/TensorMap.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

using namespace fp8rt;
using namespace fp8rt::cuda;

struct fp8rt_kernel {
  fp8rt_function function;
  int32_t device;
  /// Clusters, or blocks without, that run at once if the kernel is persistent.
  int64_t numActive;
  LaunchPlan plan;
};

static fp8rt_status countActive(fp8rt_kernel &kernel, int64_t numSMs) {
  const LaunchPlan &plan = kernel.plan;
  kernel.numActive = numSMs * plan.resident / plan.cluster;
  if (!plan.resident || plan.cluster == 1)
    return FP8RT_OK;
  fp8rt_launch_config config = {};
  config.grid[0] = plan.cluster;
  config.block[0] = plan.block;
  config.grid[1] = config.grid[2] = config.block[1] = config.block[2] = 1;
  config.dynamic_smem = plan.sharedBytes;
  int32_t clusters = 0;
  if (fp8rt_status status = fp8rt_function_get_max_active_clusters(
          kernel.function, &config, &clusters))
    return status;
  kernel.numActive = std::min<int64_t>(kernel.numActive, clusters);
  return FP8RT_OK;
}

fp8rt_status fp8rt_kernel_create(fp8rt_function function, const char *launch,
                                 size_t size, fp8rt_kernel **kernel) {
  return detail::guard([&]() -> fp8rt_status {
    if (!launch || !kernel)
      return failNull(launch ? "kernel" : "launch");
    auto made = std::make_unique<fp8rt_kernel>();
    std::string error;
    if (!LaunchPlan::parse({launch, size}, made->plan, error))
      return detail::fail(FP8RT_ERROR_INVALID_MANIFEST, error);
    fp8rt_function_info info;
    if (fp8rt_status status = fp8rt_function_get_info(function, &info))
      return status;
    fp8rt_device_info device;
    if (fp8rt_status status = fp8rt_device_get_info(info.device, &device))
      return status;
    auto bytes = static_cast<int32_t>(made->plan.sharedBytes);
    if (bytes > info.max_dynamic_smem)
      if (fp8rt_status status =
              fp8rt_function_set_max_dynamic_smem(function, bytes))
        return status;
    made->function = function;
    made->device = info.device;
    if (fp8rt_status status = countActive(*made, device.num_sms))
      return status;
    *kernel = made.release();
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_kernel_destroy(fp8rt_kernel *kernel) {
  delete kernel;
  return FP8RT_OK;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {
/// Device memory for the time of a launch, freed whatever happens.
class Workspaces {
public:
  Workspaces(int32_t device, fp8rt_stream stream)
      : device(device), stream(stream) {}
  Workspaces(const Workspaces &) = delete;
  /// After an error, whose message is the one that counts.
  ~Workspaces() {
    if (pointers.empty())
      return;
    std::string message = fp8rt_get_last_error();
    free();
    detail::fail(FP8RT_OK, message);
  }

  fp8rt_status add(int64_t bytes, bool zero) {
    void *pointer = nullptr;
    fp8rt_status status =
        fp8rt_workspace_alloc(device, stream, static_cast<size_t>(bytes),
                              zero ? FP8RT_WORKSPACE_ZERO : 0, &pointer);
    if (status == FP8RT_OK)
      pointers.push_back(pointer);
    return status;
  }
  fp8rt_status free() {
    fp8rt_status first = FP8RT_OK;
    for (void *pointer : pointers)
      if (fp8rt_status status = fp8rt_workspace_free(device, stream, pointer))
        first = first ? first : status;
    pointers.clear();
    return first;
  }
  void *const *getPointers() const { return pointers.data(); }

private:
  int32_t device;
  fp8rt_stream stream;
  std::vector<void *> pointers;
};

/// Bytes of the zeros that a kernel is given for an argument without elements:
/// as many as one access reads.
constexpr int64_t kZeroBytes = 16;

/// One launch, from its arguments to the values of its parameters.
class Launch {
public:
  Launch(const fp8rt_kernel &kernel, const fp8rt_kernel_argument *arguments)
      : kernel(kernel), plan(kernel.plan), arguments(arguments) {}

  fp8rt_status begin();
  fp8rt_status run(const void *const *captures, void *const *given,
                   fp8rt_stream stream);
  fp8rt_status evaluate(const Expression &expression, int64_t &result) const;
  /// 0 if there are more than can be counted: nothing depends on them.
  double getFlops() const {
    int64_t flops;
    return plan.flops.evaluate(extents, flops) ? 0 : static_cast<double>(flops);
  }

private:
  fp8rt_status checkLayout(const LaunchPlan::Argument &argument,
                           const fp8rt_kernel_argument &tensor) const;
  fp8rt_status makeGrid(fp8rt_launch_config &config) const;
  fp8rt_status makeParams(const void *const *captures, void *const *spaces,
                          void **params);
  fp8rt_status makeTensorMap(const LaunchPlan::Param &param,
                             fp8rt_tensor_map &map) const;
  void beginResults(fp8rt_stream stream) const;
  void endResults(fp8rt_stream stream) const;
  bool hasElements(size_t argument) const {
    const int64_t *sizes = arguments[argument].sizes;
    return !std::count(sizes, sizes + plan.arguments[argument].rank, 0);
  }
  /// Data of an argument; of one without elements, the zeros.
  void *getData(size_t argument) const {
    return hasElements(argument) ? arguments[argument].data : zeros;
  }
  int64_t getStride(size_t argument, size_t dim) const;

  const fp8rt_kernel &kernel;
  const LaunchPlan &plan;
  const fp8rt_kernel_argument *arguments;
  std::vector<int64_t> extents;
  std::vector<uint64_t> values;
  std::vector<fp8rt_tensor_map> maps;
  /// Null where all arguments have elements.
  void *zeros = nullptr;
};
} // namespace

/// A kernel that is not told the stride of a dimension counts on in the next
/// one with it, batches in rows. So a dimension of a single element, which has
/// no stride of its own, goes on with that of the first one outside it that has
/// more, as far as the kernel counts on.
int64_t Launch::getStride(size_t argument, size_t dim) const {
  const fp8rt_kernel_argument &tensor = arguments[argument];
  const std::vector<bool> &takesStride = plan.arguments[argument].takesStride;
  if (!hasElements(argument))
    return 0;
  while (tensor.sizes[dim] == 1) {
    if (dim == 0 || takesStride[dim - 1])
      return 0;
    --dim;
  }
  return tensor.strides[dim];
}

fp8rt_status Launch::evaluate(const Expression &expression,
                              int64_t &result) const {
  const char *problem = expression.evaluate(extents, result);
  if (!problem)
    return FP8RT_OK;
  return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                      "expected extents that a kernel can be launched for, but "
                      "'" +
                          expression.text + "' " + problem);
}

fp8rt_status Launch::checkLayout(const LaunchPlan::Argument &argument,
                                 const fp8rt_kernel_argument &tensor) const {
  // The innermost dimension of more than one element is that of rows.
  bool isEmpty = false, isInnermost = true, isDense = true,
       areRowsAligned = true;
  // What the next dimension has to begin with, if not with any.
  std::optional<int64_t> dense = 1;
  for (int32_t dim = argument.rank; dim-- > 0;) {
    int64_t size = tensor.sizes[dim], stride = tensor.strides[dim];
    bool isTold = argument.takesStride[static_cast<size_t>(dim)];
    isEmpty |= size == 0;
    if (size == 1) {
      // See getStride.
      if (isTold)
        dense = std::nullopt;
      continue;
    }
    // Who copies words of dense rows that begin anywhere knows their extent.
    bool mayBeginAnywhere = !isTold && dense && argument.alignment <= 4;
    isDense &= isTold || !dense || stride == *dense;
    dense = stride * size;
    areRowsAligned &=
        isInnermost ? stride == 1
                    : mayBeginAnywhere ||
                          stride * argument.bytes % argument.alignment == 0;
    isInnermost = false;
  }
  // A single element is read alone, from anywhere.
  int64_t alignment = isInnermost ? argument.bytes : argument.alignment;
  bool hasRows = alignment > argument.bytes;
  bool isAligned = reinterpret_cast<uintptr_t>(tensor.data) %
                       static_cast<uint64_t>(alignment) ==
                   0;
  if (isEmpty || (isDense && isAligned && (areRowsAligned || !hasRows)))
    return FP8RT_OK;
  std::string expected =
      !isDense ? "lie as in a dense tensor where it takes no strides"
               : (hasRows ? "have rows whose elements lie together, " : "be ") +
                     ("aligned to " + std::to_string(alignment)) + " bytes";
  return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                      "expected argument '" + argument.name +
                          "' of a kernel to " + expected);
}

fp8rt_status Launch::begin() {
  if (!arguments)
    return failNull("arguments");
  for (const LaunchPlan::Extent &extent : plan.extents)
    extents.push_back(arguments[extent.argument].sizes[extent.dim]);
  return FP8RT_OK;
}

fp8rt_status Launch::makeGrid(fp8rt_launch_config &config) const {
  config = {};
  int64_t sizes[3] = {1, 1, 1};
  for (size_t i = 0; i < plan.grid.size(); ++i)
    if (fp8rt_status status = evaluate(plan.grid[i], sizes[i]))
      return status;
  // Persistent blocks: no more than run at once.
  if (plan.resident)
    sizes[0] = std::min(sizes[0], std::max<int64_t>(kernel.numActive, 1));
  if (sizes[0] > INT32_MAX / plan.cluster || sizes[1] > 65535 ||
      sizes[2] > 65535)
    return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                        "expected a grid of up to 2^31 x 65535 x 65535 blocks, "
                        "but got " +
                            std::to_string(sizes[0]) + " x " +
                            std::to_string(sizes[1]) + " x " +
                            std::to_string(sizes[2]));
  sizes[0] *= plan.cluster;
  for (int i = 0; i < 3; ++i) {
    config.grid[i] = static_cast<uint32_t>(sizes[i]);
    config.block[i] = i == 0 ? plan.block : 1;
  }
  // The cluster's shape is the function's own.
  config.dynamic_smem = plan.sharedBytes;
  config.flags = plan.overlap ? FP8RT_LAUNCH_OVERLAP : 0;
  return FP8RT_OK;
}

fp8rt_status Launch::makeTensorMap(const LaunchPlan::Param &param,
                                   fp8rt_tensor_map &map) const {
  const LaunchPlan::Argument &argument = plan.arguments[param.index];
  const fp8rt_kernel_argument &tensor = arguments[param.index];
  fp8rt_tensor_map_desc desc = {};
  desc.address = getData(param.index);
  desc.type = argument.mapType;
  desc.rank = argument.rank;
  for (int32_t i = 0; i < desc.rank; ++i) {
    auto dim = static_cast<size_t>(desc.rank - 1 - i);
    // No extent of a map is 0: it has one of the zeros, and out of its bounds
    // there are more.
    desc.sizes[i] =
        hasElements(param.index) ? static_cast<uint64_t>(tensor.sizes[dim]) : 1;
    // A dimension of one element has no stride; any that is allowed will do.
    int64_t stride = getStride(param.index, dim) * argument.bytes;
    desc.strides[i] = static_cast<uint64_t>(stride ? stride : 16);
    desc.box[i] = param.box[static_cast<size_t>(i)];
  }
  if (size_t dim = param.tail)
    if (auto rows = static_cast<uint32_t>(tensor.sizes[desc.rank - 1 - dim] %
                                          desc.box[dim]))
      desc.box[dim] = rows;
  desc.swizzle = param.swizzle;
  desc.l2_promotion = param.l2;
  return fp8rt_tensor_map_get(kernel.device, &desc, &map);
}

fp8rt_status Launch::makeParams(const void *const *captures,
                                void *const *spaces, void **params) {
  using Kind = LaunchPlan::Param::Kind;
  // Where these are must not change any more.
  values.assign(plan.params.size(), 0);
  maps.resize(plan.params.size());
  for (size_t i = 0; i < plan.params.size(); ++i) {
    const LaunchPlan::Param &param = plan.params[i];
    params[i] = &values[i];
    int64_t value = 0;
    switch (param.kind) {
    case Kind::TensorMap:
      params[i] = &maps[i];
      if (fp8rt_status status = makeTensorMap(param, maps[i]))
        return status;
      continue;
    case Kind::Pointer:
      values[i] = reinterpret_cast<uintptr_t>(getData(param.index));
      continue;
    case Kind::Stride:
      values[i] = static_cast<uint64_t>(getStride(param.index, param.dim));
      continue;
    case Kind::Value:
      if (fp8rt_status status = evaluate(param.value, value))
        return status;
      if (param.bytes == 4 && value > INT32_MAX)
        return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                            "expected '" + param.value.text +
                                "' of a kernel to be below 2^31, but got " +
                                std::to_string(value));
      values[i] = static_cast<uint64_t>(value);
      continue;
    case Kind::Capture:
      if (!captures || !captures[param.index])
        return failNull("captures");
      std::memcpy(&values[i], captures[param.index], param.bytes);
      continue;
    case Kind::Scratch:
      values[i] = reinterpret_cast<uintptr_t>(spaces[param.index]);
      continue;
    }
  }
  return FP8RT_OK;
}

/// Tells an emulator what the launch is to write all of.
void Launch::beginResults(fp8rt_stream stream) const {
  const Driver &driver = getDriver();
  for (size_t i = 0; driver.beginResult && i < plan.arguments.size(); ++i)
    if (const LaunchPlan::Argument &argument = plan.arguments[i];
        argument.isWritten && !argument.isRead && hasElements(i))
      driver.beginResult(asStream(stream), asDevicePtr(arguments[i].data),
                         argument.rank, arguments[i].sizes,
                         arguments[i].strides, argument.bytes);
}

void Launch::endResults(fp8rt_stream stream) const {
  const Driver &driver = getDriver();
  for (size_t i = 0; driver.endResult && i < plan.arguments.size(); ++i)
    if (const LaunchPlan::Argument &argument = plan.arguments[i];
        argument.isWritten && hasElements(i))
      driver.endResult(asStream(stream), asDevicePtr(arguments[i].data),
                       argument.rank, arguments[i].sizes, arguments[i].strides,
                       argument.bytes, argument.name.c_str());
}

fp8rt_status Launch::run(const void *const *captures, void *const *given,
                         fp8rt_stream stream) {
  fp8rt_launch_config config;
  if (fp8rt_status status = makeGrid(config))
    return status;
  if (config.grid[0] == 0 || config.grid[1] == 0 || config.grid[2] == 0)
    return FP8RT_OK;
  for (size_t i = 0; i < plan.arguments.size(); ++i)
    if (fp8rt_status status = checkLayout(plan.arguments[i], arguments[i]))
      return status;

  Workspaces spaces(kernel.device, stream), substitutes(kernel.device, stream);
  for (size_t i = 0; i < plan.arguments.size() && !zeros; ++i) {
    if (hasElements(i))
      continue;
    if (fp8rt_status status = substitutes.add(kZeroBytes, /*zero=*/true))
      return status;
    zeros = substitutes.getPointers()[0];
  }
  if (!given) {
    for (const LaunchPlan::Workspace &space : plan.workspaces) {
      int64_t bytes;
      if (fp8rt_status status = evaluate(space.bytes, bytes))
        return status;
      if (fp8rt_status status = spaces.add(bytes, space.zero))
        return status;
    }
    given = spaces.getPointers();
  }
  std::vector<void *> params(plan.params.size());
  if (fp8rt_status status = makeParams(captures, given, params.data()))
    return status;
  beginResults(stream);
  if (fp8rt_status status =
          fp8rt_launch(kernel.function, &config, params.data(), stream))
    return status;
  endResults(stream);
  if (fp8rt_status status = spaces.free())
    return status;
  return substitutes.free();
}

fp8rt_status fp8rt_kernel_launch(const fp8rt_kernel *kernel,
                                 const fp8rt_kernel_argument *arguments,
                                 const void *const *captures,
                                 void *const *workspaces, fp8rt_stream stream) {
  return detail::guard([&]() -> fp8rt_status {
    if (!kernel)
      return failNull("kernel");
    Launch launch(*kernel, arguments);
    if (fp8rt_status status = launch.begin())
      return status;
    return launch.run(captures, workspaces, stream);
  });
}

int32_t fp8rt_kernel_get_num_workspaces(const fp8rt_kernel *kernel) {
  return kernel ? static_cast<int32_t>(kernel->plan.workspaces.size()) : 0;
}

fp8rt_status
fp8rt_kernel_get_workspace_bytes(const fp8rt_kernel *kernel,
                                 const fp8rt_kernel_argument *arguments,
                                 int32_t index, uint64_t *bytes) {
  return detail::guard([&]() -> fp8rt_status {
    if (!kernel || !bytes)
      return failNull(kernel ? "bytes" : "kernel");
    const auto &spaces = kernel->plan.workspaces;
    if (index < 0 || static_cast<size_t>(index) >= spaces.size())
      return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                          "expected the index of one of " +
                              std::to_string(spaces.size()) +
                              " workspaces, but got " + std::to_string(index));
    Launch launch(*kernel, arguments);
    if (fp8rt_status status = launch.begin())
      return status;
    int64_t size;
    if (fp8rt_status status =
            launch.evaluate(spaces[static_cast<size_t>(index)].bytes, size))
      return status;
    *bytes = static_cast<uint64_t>(size);
    return FP8RT_OK;
  });
}

/// Bytes of elements that differ: those of a dimension with stride 0 are one.
static double getBytes(const LaunchPlan::Argument &argument,
                       const fp8rt_kernel_argument &tensor) {
  double bytes = static_cast<double>(argument.bytes *
                                     (argument.isRead + argument.isWritten));
  for (int32_t dim = 0; dim < argument.rank; ++dim)
    if (tensor.strides[dim] != 0 || tensor.sizes[dim] == 0)
      bytes *= static_cast<double>(tensor.sizes[dim]);
  return bytes;
}

fp8rt_status fp8rt_kernel_get_work(const fp8rt_kernel *kernel,
                                   const fp8rt_kernel_argument *arguments,
                                   double *bytes, double *flops) {
  return detail::guard([&]() -> fp8rt_status {
    if (!kernel || !bytes || !flops)
      return failNull(!kernel ? "kernel" : !bytes ? "bytes" : "flops");
    Launch launch(*kernel, arguments);
    if (fp8rt_status status = launch.begin())
      return status;
    *flops = launch.getFlops();
    *bytes = 0;
    for (size_t i = 0; i < kernel->plan.arguments.size(); ++i)
      *bytes += getBytes(kernel->plan.arguments[i], arguments[i]);
    return FP8RT_OK;
  });
}
