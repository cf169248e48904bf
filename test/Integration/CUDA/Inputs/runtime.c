//===- runtime.c - A check of libfp8rt's CUDA half on a GPU ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain C11, linked to libfp8rt and libdl alone. Prints one JSON object, with
// what failed on stderr, and returns 1 if anything did; 77 without a GPU.
//
//   runtime-check            everything but what follows
//   runtime-check --timed    and that a launch takes the host 5 us at most: a
//                            benchmark's question, of a host at rest
//   runtime-check --illegal  a kernel that loses the device, which no later
//                            check of the process could survive
//
//===----------------------------------------------------------------------===//

#include "graphs.h"
#include "runtime_kernels.h"

#include "fp8/Runtime/GpuWrappers.h"
#include "fp8/Runtime/Memory.h"
#include "fp8/Runtime/Module.h"
#include "fp8/Runtime/TensorMap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICE = 0, COUNT = 1 << 16 };
enum { MAX_LAUNCH_NS = 5000 }; /* the goal for the host's time */

static int failures;

static void check(int condition, const char *what, int line) {
  if (condition)
    return;
  ++failures;
  fprintf(stderr, "line %d: %s (%s)\n", line, what, fp8rt_get_last_error());
}
#define CHECK(condition) check(condition, #condition, __LINE__)
#define OK(call) CHECK((call) == FP8RT_OK)
#define FAILS(call, status) CHECK((call) == (status))

static fp8rt_stream stream;
static fp8rt_module module;

static fp8rt_function get_kernel(const char *name) {
  fp8rt_function function = 0;
  OK(fp8rt_module_get_function(module, name, &function));
  return function;
}

/// x[i] *= factor for COUNT elements.
static fp8rt_status launch_scale(fp8rt_function function, void *x, float factor,
                                 uint32_t flags) {
  uint32_t count = COUNT;
  void *params[] = {&x, &factor, &count};
  fp8rt_launch_config config = {
      sizeof(config), {COUNT / 256, 1, 1}, {256, 1, 1}, {0, 0, 0}, 0, flags};
  return fp8rt_launch(function, &config, params, stream);
}

/// Whether all of `x` on the device is `expected`.
static int is_all(void *x, float expected) {
  static float host[COUNT];
  OK(fp8rt_memory_copy(DEVICE, host, x, sizeof(host), stream));
  OK(fp8rt_stream_synchronize(DEVICE, stream));
  for (int i = 0; i < COUNT; ++i)
    if (host[i] != expected)
      return 0;
  return 1;
}

static void fill(void *x, float value) {
  static float host[COUNT];
  for (int i = 0; i < COUNT; ++i)
    host[i] = value;
  OK(fp8rt_memory_copy(DEVICE, x, host, sizeof(host), stream));
  OK(fp8rt_stream_synchronize(DEVICE, stream));
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static void check_launch(void *x) {
  fp8rt_function scale = get_kernel("scale");
  fp8rt_function_info info = {.struct_size = sizeof(info)};
  OK(fp8rt_function_get_info(scale, &info));
  CHECK(info.device == DEVICE && info.num_registers > 0 &&
        info.local_bytes == 0 && info.max_threads_per_block >= 256 &&
        info.binary_version >= 90);
  fill(x, 1.5f);
  OK(launch_scale(scale, x, 2.0f, 0));
  OK(launch_scale(scale, x, 2.0f, FP8RT_LAUNCH_OVERLAP));
  // The kernel does not wait for its predecessor by itself.
  OK(fp8rt_stream_synchronize(DEVICE, stream));
  fill(x, 1.5f);
  OK(launch_scale(scale, x, 2.0f, 0));
  CHECK(is_all(x, 3.0f));

  // In a cluster of 2.
  uint32_t count = COUNT;
  float factor = 0.5f;
  void *params[] = {&x, &factor, &count};
  fp8rt_launch_config config = {
      sizeof(config), {COUNT / 256, 1, 1}, {256, 1, 1}, {2, 1, 1}, 0, 0};
  OK(fp8rt_launch(scale, &config, params, stream));
  CHECK(is_all(x, 1.5f));

  // More shared memory than 48 KiB, and more than there is.
  config.dynamic_smem = 200 * 1024;
  FAILS(fp8rt_launch(scale, &config, params, stream),
        FP8RT_ERROR_INVALID_ARGUMENT);
  OK(fp8rt_function_set_max_dynamic_smem(scale, 200 * 1024));
  OK(fp8rt_launch(scale, &config, params, stream));
  CHECK(is_all(x, 0.75f));
  FAILS(fp8rt_function_set_max_dynamic_smem(scale, 1 << 20),
        FP8RT_ERROR_INVALID_ARGUMENT);
}

static void check_modules(void) {
  fp8rt_module other = 0;
  FAILS(fp8rt_module_load(DEVICE, "nothing", 7, &other),
        FP8RT_ERROR_INVALID_IMAGE);
  static const char broken[] =
      ".version 8.0\n.target sm_90\n.address_size 64\nnonsense;\n";
  FAILS(fp8rt_module_load(DEVICE, broken, sizeof(broken) - 1, &other),
        FP8RT_ERROR_INVALID_IMAGE);
  CHECK(strstr(fp8rt_get_last_error(), "line 4") != NULL);
  // PTX for an older GPU runs on all later ones.
  static const char older[] = ".version 8.0\n.target sm_89\n.address_size "
                              "64\n.visible .entry k() { ret; }\n";
  OK(fp8rt_module_load(DEVICE, older, sizeof(older) - 1, &other));
  fp8rt_function function;
  FAILS(fp8rt_module_get_function(other, "l", &function),
        FP8RT_ERROR_NOT_FOUND);
  OK(fp8rt_module_unload(other));
  FAILS(fp8rt_module_unload(other), FP8RT_ERROR_INVALID_HANDLE);
  static const char newer[] = ".version 8.6\n.target sm_100a\n.address_size "
                              "64\n.visible .entry k() { ret; }\n";
  fp8rt_device_info info = {.struct_size = sizeof(info)};
  OK(fp8rt_device_get_info(DEVICE, &info));
  if (info.compute_capability_major == 9)
    FAILS(fp8rt_module_load(DEVICE, newer, sizeof(newer) - 1, &other),
          FP8RT_ERROR_UNSUPPORTED_ARCH);
}

static fp8rt_tensor_map_desc make_desc(void *x) {
  // 100 rows of 96 bytes, 112 apart; boxes of 64 x 64.
  fp8rt_tensor_map_desc desc = {
      .struct_size = sizeof(desc),
      .address = x,
      .type = FP8RT_TENSOR_MAP_U8,
      .rank = 2,
      .sizes = {96, 100},
      .strides = {0, 112},
      .box = {64, 64},
      .swizzle = FP8RT_TENSOR_MAP_SWIZZLE_NONE,
      .l2_promotion = FP8RT_TENSOR_MAP_L2_128B,
  };
  return desc;
}

static void check_tensor_map(void *x) {
  static uint8_t in[112 * 100], out[4096];
  for (size_t i = 0; i < sizeof(in); ++i)
    in[i] = (uint8_t)(i * 7 + i / 112 * 3);
  uint8_t *result = (uint8_t *)x + 65536;
  OK(fp8rt_memory_copy(DEVICE, x, in, sizeof(in), stream));
  fp8rt_tensor_map_desc desc = make_desc(x);
  fp8rt_tensor_map map;
  OK(fp8rt_tensor_map_get(DEVICE, &desc, &map));
  uint32_t column = 48, row = 50;
  void *params[] = {&map, &result, &column, &row};
  fp8rt_launch_config config = {sizeof(config), {1, 1, 1}, {128, 1, 1},
                                {0, 0, 0},      0,         0};
  OK(fp8rt_launch(get_kernel("tma_copy"), &config, params, stream));
  OK(fp8rt_memory_copy(DEVICE, out, result, sizeof(out), stream));
  OK(fp8rt_stream_synchronize(DEVICE, stream));
  int wrong = 0;
  for (uint32_t i = 0; i < 64; ++i)
    for (uint32_t j = 0; j < 64; ++j) {
      int inside = row + i < 100 && column + j < 96;
      uint8_t expected = inside ? in[(row + i) * 112 + column + j] : 0;
      wrong += out[i * 64 + j] != expected;
    }
  CHECK(wrong == 0);
  desc.address = (uint8_t *)x + 8;
  FAILS(fp8rt_tensor_map_get(DEVICE, &desc, &map),
        FP8RT_ERROR_INVALID_ARGUMENT);
}

static void check_memory(void *x) {
  void *workspace = NULL;
  uint8_t host[64];
  OK(fp8rt_workspace_alloc(DEVICE, stream, 64, FP8RT_WORKSPACE_ZERO,
                           &workspace));
  OK(fp8rt_memory_check(DEVICE, workspace, "workspace"));
  memset(host, 1, sizeof(host));
  OK(fp8rt_memory_copy(DEVICE, host, workspace, sizeof(host), stream));
  OK(fp8rt_workspace_free(DEVICE, stream, workspace));
  OK(fp8rt_stream_synchronize(DEVICE, stream));
  CHECK(host[0] == 0 && host[63] == 0);
  int32_t device = -2;
  OK(fp8rt_memory_get_device(x, &device));
  CHECK(device == DEVICE);
  OK(fp8rt_memory_get_device(host, &device));
  CHECK(device == -1);
  FAILS(fp8rt_memory_check(DEVICE, host, "host"), FP8RT_ERROR_WRONG_DEVICE);
  void *huge = NULL;
  FAILS(fp8rt_memory_alloc(DEVICE, (size_t)1 << 42, &huge),
        FP8RT_ERROR_OUT_OF_MEMORY);
  FAILS(fp8rt_workspace_alloc(DEVICE, stream, (size_t)1 << 42, 0, &huge),
        FP8RT_ERROR_OUT_OF_MEMORY);
  OK(fp8rt_stream_synchronize(DEVICE, stream));
}

/// A graph with launches and workspace, captured in the strictest mode while
/// modules are loaded, memory is allocated and a new tensor map is made.
static void check_graph(void *x) {
  graphs g = find_graphs();
  int entered = enter_graphs(&g, DEVICE);
  CHECK(entered);
  if (!entered)
    return;
  fp8rt_function scale = get_kernel("scale");
  fill(x, 1.0f);
  void *graph = NULL, *exec = NULL, *workspace = NULL, *memory = NULL;
  fp8rt_module other = 0;
  fp8rt_tensor_map_desc desc = make_desc((uint8_t *)x + 256);
  fp8rt_tensor_map map;
  CHECK(g.begin(stream, GRAPHS_CAPTURE_GLOBAL) == 0);
  OK(launch_scale(scale, x, 2.0f, 0));
  OK(fp8rt_workspace_alloc(DEVICE, stream, 1 << 20, FP8RT_WORKSPACE_ZERO,
                           &workspace));
  OK(fp8rt_module_load(DEVICE, kernels, sizeof(kernels) - 1, &other));
  OK(fp8rt_memory_alloc(DEVICE, 4096, &memory));
  OK(fp8rt_tensor_map_get(DEVICE, &desc, &map));
  OK(launch_scale(scale, x, 2.0f, 0));
  OK(fp8rt_workspace_free(DEVICE, stream, workspace));
  CHECK(g.end(stream, &graph) == 0);
  CHECK(is_all(x, 1.0f));
  int instantiated = g.instantiate(&exec, graph, 0);
  if (instantiated != 0)
    fprintf(stderr, "cuGraphInstantiate: %d\n", instantiated);
  CHECK(instantiated == 0);
  for (int i = 0; i < 3; ++i)
    CHECK(g.launch(exec, stream) == 0);
  CHECK(is_all(x, 64.0f));
  OK(fp8rt_memory_free(DEVICE, memory));
  OK(fp8rt_module_unload(other));
}

/// The names of upstream.
static void check_wrappers(void) {
  float host[4] = {1, 2, 3, 4};
  char *text = malloc(sizeof(kernels));
  memcpy(text, kernels, sizeof(kernels));
  void *jit = mgpuModuleLoadJIT(text, 2);
  void *scale = mgpuModuleGetFunction(jit, "scale");
  void *own = mgpuStreamCreate();
  void *x = mgpuMemAlloc(sizeof(host), own, false);
  uint32_t count = 4;
  float factor = 3;
  void *params[] = {&x, &factor, &count};
  mgpuMemcpy(x, host, sizeof(host), own);
  mgpuLaunchKernel(scale, 1, 1, 1, 4, 1, 1, 0, own, params, NULL, 3);
  mgpuMemcpy(host, x, sizeof(host), own);
  mgpuMemFree(x, own);
  mgpuStreamSynchronize(own);
  mgpuStreamDestroy(own);
  mgpuModuleUnload(jit);
  free(text);
  OK(fp8rt_gpu_take_error());
  CHECK(host[0] == 3 && host[3] == 12);
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

static double now(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/// Nanoseconds of the host for one launch of one thread, with `num_maps` tensor
/// maps looked up before it; the best of 20 rounds that do not fill the
/// stream's queue.
static double measure_launch(void *x, int num_maps) {
  enum { ROUNDS = 20, LAUNCHES = 500 };
  fp8rt_function scale = get_kernel("scale");
  uint32_t count = 0;
  float factor = 1;
  void *params[] = {&x, &factor, &count};
  fp8rt_launch_config config = {sizeof(config), {1, 1, 1}, {1, 1, 1},
                                {0, 0, 0},      0,         0};
  double best = 1e9;
  for (int round = 0; round < ROUNDS; ++round) {
    OK(fp8rt_stream_synchronize(DEVICE, stream));
    double start = now();
    for (int i = 0; i < LAUNCHES; ++i) {
      for (int m = 0; m < num_maps; ++m) {
        fp8rt_tensor_map_desc desc = make_desc((uint8_t *)x + m * 256);
        fp8rt_tensor_map map;
        OK(fp8rt_tensor_map_get(DEVICE, &desc, &map));
      }
      OK(fp8rt_launch(scale, &config, params, stream));
    }
    best = fmin(best, (now() - start) / LAUNCHES * 1e9);
  }
  return best;
}

/// Microseconds of the device for a launch over COUNT elements, by events.
static double measure_device(void *x) {
  fp8rt_event start, end;
  float milliseconds = 0;
  fp8rt_function scale = get_kernel("scale");
  OK(fp8rt_event_create(DEVICE, &start));
  OK(fp8rt_event_create(DEVICE, &end));
  OK(fp8rt_event_record(DEVICE, start, stream));
  for (int i = 0; i < 100; ++i)
    OK(launch_scale(scale, x, 1.0f, 0));
  OK(fp8rt_event_record(DEVICE, end, stream));
  OK(fp8rt_event_synchronize(DEVICE, end));
  OK(fp8rt_event_get_elapsed_ms(DEVICE, start, end, &milliseconds));
  OK(fp8rt_event_destroy(DEVICE, start));
  OK(fp8rt_event_destroy(DEVICE, end));
  CHECK(milliseconds > 0);
  return milliseconds * 10;
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

/// A kernel writes where nothing is.
static int run_illegal(void) {
  uint64_t address = 64;
  void *params[] = {&address}, *x = NULL;
  fp8rt_launch_config config = {sizeof(config), {1, 1, 1}, {1, 1, 1},
                                {0, 0, 0},      0,         0};
  fp8rt_function store = get_kernel("store");
  OK(fp8rt_launch(store, &config, params, stream));
  FAILS(fp8rt_stream_synchronize(DEVICE, stream), FP8RT_ERROR_DEVICE_LOST);
  CHECK(strstr(fp8rt_get_last_error(),
               "cannot synchronize a stream on device 0: "
               "CUDA_ERROR_ILLEGAL_ADDRESS") != NULL);
  printf("{\"after\": \"%s\"}\n", fp8rt_get_last_error());
  FAILS(fp8rt_memory_alloc(DEVICE, 64, &x), FP8RT_ERROR_DEVICE_LOST);
  FAILS(fp8rt_launch(store, &config, params, stream), FP8RT_ERROR_DEVICE_LOST);
  FAILS(fp8rt_module_unload(module), FP8RT_ERROR_DEVICE_LOST);
  // All other devices are as they were.
  int32_t count = 0;
  OK(fp8rt_device_get_count(&count));
  for (int32_t device = 1; device < count; ++device) {
    OK(fp8rt_memory_alloc(device, 64, &x));
    OK(fp8rt_memory_free(device, x));
  }
  return failures != 0;
}

int main(int argc, char **argv) {
  int32_t version = 0;
  fp8rt_device_info info = {.struct_size = sizeof(info)};
  if (fp8rt_device_get_driver_version(&version) != FP8RT_OK ||
      fp8rt_device_get_info(DEVICE, &info) != FP8RT_OK) {
    fprintf(stderr, "no GPU: %s\n", fp8rt_get_last_error());
    return 77;
  }
  void *x = NULL;
  OK(fp8rt_stream_create(DEVICE, &stream));
  OK(fp8rt_module_load(DEVICE, kernels, sizeof(kernels) - 1, &module));
  OK(fp8rt_memory_alloc(DEVICE, COUNT * sizeof(float), &x));
  if (failures)
    return 1;
  const char *mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "--illegal") == 0)
    return run_illegal();

  check_launch(x);
  check_modules();
  check_tensor_map(x);
  check_memory(x);
  check_graph(x);
  check_wrappers();
  double launch_ns = measure_launch(x, 0), maps_ns = measure_launch(x, 3);
  if (strcmp(mode, "--timed") == 0)
    CHECK(launch_ns <= MAX_LAUNCH_NS);
  printf("{\"device\": \"%s\", \"sm\": %d, \"driver\": %d, "
         "\"launch_ns\": %.0f, \"launch_with_3_tensor_maps_ns\": %.0f, "
         "\"kernel_us\": %.2f, \"failures\": %d}\n",
         info.name,
         info.compute_capability_major * 10 + info.compute_capability_minor,
         (int)version, launch_ns, maps_ns, measure_device(x), failures);
  OK(fp8rt_memory_free(DEVICE, x));
  OK(fp8rt_stream_destroy(DEVICE, stream));
  OK(fp8rt_module_unload(module));
  return failures != 0;
}
