//===- gpu.c - Programs on a GPU ------------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU or on the model of one, which also tells what is left in its memory.
//
//===----------------------------------------------------------------------===//

#include "check.h"

#include "fp8/Runtime/DeviceState.h"
#include "fp8/Runtime/Memory.h"

#include <dlfcn.h>

static const char text[] =
    "!t = tensor<128x128xf32>\n"
    "func.func @layer(%x: !t {fp8.name = \"x\"}, %w: !t {fp8.name = \"w\"})\n"
    "    -> (!t {fp8.name = \"y\"}, !t) {\n"
    "  %zero = arith.constant dense<0.0> : !t\n"
    "  %y = linalg.matmul ins(%x, %w : !t, !t) outs(%zero : !t) -> !t\n"
    "      loc(\"l\")\n"
    "  return %y, %y : !t, !t\n"
    "}\n"
    "func.func @scale(%x: !t, %by: f32) -> !t {\n"
    "  %s = tensor.splat %by : !t\n"
    "  %y = arith.mulf %x, %s : !t\n"
    "  return %y : !t\n"
    "}\n";
enum { COUNT = 128 * 128, BYTES = COUNT * sizeof(float) };
static int64_t sizes[] = {128, 128};

static fp8c_tensor make_filled(float value, fp8rt_stream stream) {
  static float data[COUNT];
  for (int i = 0; i < COUNT; ++i)
    data[i] = value;
  void *memory;
  EXPECT_OK(fp8rt_memory_alloc(0, BYTES, &memory));
  EXPECT_OK(fp8rt_memory_copy(0, memory, data, BYTES, stream));
  EXPECT_OK(fp8rt_stream_synchronize(0, stream));
  fp8c_device gpu = {FP8C_CUDA, 0};
  return fp8c_make_tensor(memory, gpu, make_dtype("F32"), 2, sizes);
}

static void expect_filled(const fp8c_tensor *tensor, float value,
                          fp8rt_stream stream) {
  static float data[COUNT];
  EXPECT_OK(fp8rt_memory_copy(0, data, tensor->data, BYTES, stream));
  EXPECT_OK(fp8rt_stream_synchronize(0, stream));
  for (int i = 0; i < COUNT; ++i)
    EXPECT(data[i] == value);
}

static void check_runs(fp8c_program *program, fp8rt_state state,
                       fp8rt_stream stream, const fp8c_tensor *x,
                       const fp8c_tensor *w) {
  const fp8c_tensor *arguments[] = {x, w};
  fp8c_managed_tensor *y[2];
  EXPECT_OK(
      fp8c_program_run(program, "layer", arguments, 2, y, 2, state, stream));
  for (int i = 0; i < 2; ++i) {
    EXPECT(y[i]->tensor.device.type == FP8C_CUDA);
    EXPECT(y[i]->tensor.sizes[1] == 128 && y[i]->tensor.strides[0] == 128);
    expect_filled(&y[i]->tensor, 128 * 3.0625f, stream);
  }
  EXPECT(y[0]->tensor.data != y[1]->tensor.data);

  // A scalar is the host's, also here; and a result of one call an argument.
  float by = 2;
  fp8c_tensor scalar = make_host(&by, "F32", 0, NULL);
  const fp8c_tensor *scaled[] = {&y[0]->tensor, &scalar},
                    *results[] = {&y[1]->tensor};
  EXPECT_OK(fp8c_program_run_into(program, "scale", scaled, 2, results, 1, 0,
                                  stream));
  expect_filled(results[0], 128 * 6.125f, stream);
  fp8c_managed_tensor_destroy(y[0]);
  fp8c_managed_tensor_destroy(y[1]);
}

static void check_errors(fp8c_program *program, fp8rt_state state,
                         fp8rt_stream stream, const fp8c_tensor *x) {
  float memory[1];
  fp8c_tensor bad = *x;
  const fp8c_tensor *arguments[] = {x, &bad}, *results[] = {x, &bad};
  fp8c_managed_tensor *y[2];
#define REFUSE(status, message)                                                \
  EXPECT_STATUS(                                                               \
      fp8c_program_run(program, "layer", arguments, 2, y, 2, state, stream),   \
      status, message);                                                        \
  EXPECT_STATUS(fp8c_program_run_into(program, "layer", results, 2, results,   \
                                      2, state, stream),                       \
                status, message);                                              \
  bad = *x
  bad.device.type = FP8C_CPU;
  REFUSE(FP8RT_ERROR_WRONG_DEVICE, "expected argument 'w' of 'layer' in memory "
                                   "of CUDA device 0, but it is the host's");
  bad.device.index = 1;
  REFUSE(FP8RT_ERROR_WRONG_DEVICE, "but it is CUDA device 1's");
  // Whatever it says of itself.
  bad.data = memory;
  bad.byte_offset = (16 - (uintptr_t)memory % 16) % 16;
  REFUSE(FP8RT_ERROR_WRONG_DEVICE, "");
  bad.byte_offset = 4;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT, "to be aligned to 16 bytes");
#undef REFUSE
  fp8c_tensor host = *x;
  host.device.type = FP8C_CPU;
  const fp8c_tensor *good[] = {x, x}, *places[] = {x, &host};
  EXPECT_STATUS(fp8c_program_run_into(program, "layer", good, 2, places, 2,
                                      state, stream),
                FP8RT_ERROR_WRONG_DEVICE,
                "expected result 'result1' of 'layer' in memory of CUDA");
}

/// Allocations on the emulator's devices; 0 on a GPU, and before it is loaded.
static int count_blocks(void) {
  int (*count)(void) = NULL;
  void *driver = dlopen("libfp8emu.so", RTLD_NOW | RTLD_NOLOAD);
  if (!driver)
    return 0;
  *(void **)&count = dlsym(driver, "fp8emu_count_allocations");
  EXPECT(count);
  return count();
}

/// The times of a run, once.
static void check_profile(fp8c_program *program, fp8rt_stream stream,
                          fp8c_tensor *x) {
  const fp8c_tensor *arguments[] = {x, x};
  fp8c_managed_tensor *y;
  fp8c_buffer *trace = NULL;
  EXPECT_OK(fp8c_program_start_profile(program, 0, stream));
  float by = 1;
  fp8c_device cpu = {FP8C_CPU, 0};
  fp8c_tensor scalar = fp8c_make_tensor(&by, cpu, make_dtype("F32"), 0, NULL);
  arguments[1] = &scalar;
  EXPECT_OK(fp8c_program_run(program, "scale", arguments, 2, &y, 1, 0, stream));
  y->deleter(y);
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(fp8c_program_stop_profile(program, 0, stream, &trace));
    size_t size;
    const char *text = fp8c_buffer_get_data(trace, &size);
    EXPECT(strstr(text, "\"traceEvents\": [") && strstr(text, "fp8_fusion_"));
    fp8c_buffer_destroy(trace);
  }
  EXPECT_INVALID(fp8c_program_start_profile(NULL, 0, stream), "null");
  EXPECT_INVALID(fp8c_program_stop_profile(NULL, 0, stream, &trace), "null");
  EXPECT_INVALID(fp8c_program_stop_profile(program, 0, stream, NULL), "null");
}

void check_gpu(void) {
  fp8c_program *program = compile(text, "recipe", "delayed,amax_history_len=4",
                                  "target", "sm_90a", NULL);
  const fp8rt_program_info *info;
  EXPECT_OK(fp8c_program_get_info(program, &info));
  EXPECT(info->functions[0].flags ==
         (FP8RT_FUNCTION_TAKES_STATE | FP8RT_FUNCTION_TAKES_CONTEXT));
  fp8rt_stream streams[2];
  fp8rt_state states[2];
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(fp8rt_stream_create(0, &streams[i]));
    EXPECT_OK(fp8rt_program_create_state(info, &states[i]));
  }
  fp8c_tensor x = make_filled(7, streams[0]),
              w = make_filled(0.4375, streams[0]);
  check_errors(program, states[0], streams[0], &x);
  check_profile(program, streams[0], &x);
  // Steps that take turns in two streams.
  for (int step = 0; step < 6; ++step) {
    fp8rt_stream stream = streams[step % 2];
    fp8rt_state state = states[step % 2];
    check_runs(program, state, stream, &x, &w);
    float scale;
    EXPECT_OK(fp8c_program_end_step(program, state, 0, stream));
    /* The device has the state until it is asked for. */
    EXPECT_STATUS(fp8rt_state_get_scale(state, "l.x", &scale),
                  FP8RT_ERROR_ON_DEVICE, "fp8rt_state_download");
    EXPECT_OK(fp8rt_state_download(state, stream));
    EXPECT_OK(fp8rt_state_get_scale(state, "l.x", &scale));
    EXPECT(scale == 448 / 7.0f);
  }
  // A step in which nothing ran.
  EXPECT_OK(fp8c_program_end_step(program, states[0], 0, streams[0]));
  fp8c_program_destroy(program);
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(fp8rt_state_destroy(states[i]));
    EXPECT_OK(fp8rt_stream_destroy(0, streams[i]));
  }
  EXPECT_OK(fp8rt_memory_free(0, x.data));
  EXPECT_OK(fp8rt_memory_free(0, w.data));
  EXPECT(count_blocks() == 0);
}

void check_no_driver(void) {
  fp8c_program *program = compile(text, "target", "sm_90a", NULL);
  float memory[4];
  fp8c_device gpu = {FP8C_CUDA, 0};
  fp8c_tensor x = fp8c_make_tensor(memory, gpu, make_dtype("F32"), 2, sizes);
  const fp8c_tensor *arguments[] = {&x, &x};
  fp8c_managed_tensor *y[2];
  x.byte_offset = (16 - (uintptr_t)memory % 16) % 16;
  EXPECT_STATUS(fp8c_program_run(program, "layer", arguments, 2, y, 2, 0, NULL),
                FP8RT_ERROR_NO_DRIVER, "expected a CUDA driver");
  fp8c_program_destroy(program);
}
