//===- state.c - Steps of delayed scaling, files and threads --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "check.h"

#include "fp8/Runtime/Group.h"

#include <pthread.h>
#include <string.h>

static const char text[] =
    "func.func @layer(%x: tensor<16x16xf32> {fp8.name = \"x\"},\n"
    "                 %w: tensor<16x16xf32> {fp8.name = \"w\", fp8.weight})\n"
    "    -> tensor<16x16xf32> {\n"
    "  %zero = arith.constant dense<0.0> : tensor<16x16xf32>\n"
    "  %0 = linalg.matmul ins(%x, %w : tensor<16x16xf32>, tensor<16x16xf32>)\n"
    "      outs(%zero : tensor<16x16xf32>) -> tensor<16x16xf32> loc(\"l\")\n"
    "  return %0 : tensor<16x16xf32>\n"
    "}\n";
static const char recipe[] = "delayed,amax_history_len=4";

/// One run with all elements of x and w equal, which is exact.
static void run(fp8c_program *program, fp8rt_state state, float x, float w) {
  static const int64_t count = 16 * 16;
  float a[16 * 16], b[16 * 16];
  for (int64_t i = 0; i < count; ++i)
    a[i] = x, b[i] = w;
  int64_t sizes[] = {16, 16};
  fp8c_tensor ta = make_host(a, "F32", 2, sizes),
              tb = make_host(b, "F32", 2, sizes);
  const fp8c_tensor *arguments[] = {&ta, &tb};
  fp8c_managed_tensor *y;
  EXPECT_OK(fp8c_program_run(program, NULL, arguments, 2, &y, 1, state, NULL));
  for (int64_t i = 0; i < count; ++i)
    EXPECT(((float *)y->tensor.data)[i] == 16 * x * w);
  fp8c_managed_tensor_destroy(y);
}

static float get_scale(fp8rt_state state, const char *name) {
  float scale;
  EXPECT_OK(fp8rt_state_get_scale(state, name, &scale));
  return scale;
}

/// Another rank has an amax of 4, or is gone.
static fp8rt_status reduce(void *data, float *amaxes, int64_t count,
                           int32_t device, fp8rt_stream stream) {
  (void)stream;
  int *calls = data;
  EXPECT(device == -1);
  if (++*calls == 4)
    return fp8rt_set_last_error(FP8RT_ERROR_CUDA, "a rank is gone");
  for (int64_t i = 0; i < count; ++i)
    if (amaxes[i] < 4)
      amaxes[i] = 4;
  return FP8RT_OK;
}

/// A program whose amaxes are those of all ranks.
static void check_group(void) {
  static const char of_group[] =
      "module attributes {fp8.amax_group = \"tp\"} {\n";
  char program_text[2048];
  snprintf(program_text, sizeof(program_text), "%s%s}\n", of_group, text);
  fp8c_program *program =
      compile(program_text, "recipe", "delayed,initial=one,pow2=true", NULL);
  const fp8rt_program_info *info;
  EXPECT_OK(fp8c_program_get_info(program, &info));
  fp8rt_state state;
  EXPECT_OK(fp8rt_program_create_state(info, &state));
  EXPECT_STATUS(fp8c_program_end_step(program, state, 0, NULL),
                FP8RT_ERROR_NOT_FOUND, "reduces over the group 'tp'");
  int calls = 0;
  // ISO C converts no pointer to a function to one to void, as every host can.
  fp8rt_reduce_function function = reduce;
  void *pointer;
  memcpy(&pointer, &function, sizeof(pointer));
  EXPECT_OK(fp8rt_group_set("tp", pointer, &calls));
  for (int step = 0; step < 3; ++step) {
    run(program, state, 1, 2);
    EXPECT_OK(fp8c_program_end_step(program, state, 0, NULL));
    EXPECT(calls == step + 1);
    EXPECT(get_scale(state, "l.x") == 64);
  }
  EXPECT_STATUS(fp8c_program_end_step(program, state, 0, NULL),
                FP8RT_ERROR_CUDA, "a rank is gone");
  EXPECT_OK(fp8rt_group_set("tp", NULL, NULL));
  EXPECT_OK(fp8rt_state_destroy(state));
  fp8c_program_destroy(program);
}

void check_states(const char *directory) {
  check_group();
  fp8c_program *program = compile(text, "recipe", recipe, NULL);
  const fp8rt_program_info *info;
  EXPECT_OK(fp8c_program_get_info(program, &info));
  EXPECT(info->num_slots == 2);
  EXPECT(info->functions[0].flags == FP8RT_FUNCTION_TAKES_STATE);
  fp8rt_state state, other;
  EXPECT_OK(fp8rt_program_create_state(info, &state));
  run(program, state, 7, 0.4375);
  // Those of the first step are of its own tensors.
  EXPECT(get_scale(state, "l.x") == 64);
  EXPECT_OK(fp8c_program_end_step(program, state, 0, NULL));
  EXPECT(get_scale(state, "l.x") == 64 && get_scale(state, "l.w") == 1024);

  // Frozen, nothing is recorded.
  EXPECT_OK(fp8rt_state_freeze(state));
  run(program, state, 3.5, 0.21875);
  EXPECT_OK(fp8c_program_end_step(program, state, 0, NULL));
  EXPECT_OK(fp8rt_state_unfreeze(state));
  EXPECT(get_scale(state, "l.x") == 64);

  char path[4096];
  snprintf(path, sizeof(path), "%s/state.safetensors", directory);
  EXPECT_OK(fp8rt_state_save(state, path));
  EXPECT_OK(fp8rt_program_create_state(info, &other));
  EXPECT_OK(fp8rt_state_load(other, path, FP8RT_LOAD_STRICT, NULL));
  EXPECT(get_scale(other, "l.x") == 64);
  run(program, other, 7, 0.4375);
  EXPECT_OK(fp8rt_state_destroy(other));

  float x[16 * 16] = {0};
  int64_t sizes[] = {16, 16};
  fp8c_tensor tx = make_host(x, "F32", 2, sizes);
  const fp8c_tensor *arguments[] = {&tx, &tx};
  fp8c_managed_tensor *y;
  EXPECT_STATUS(fp8c_program_run(program, NULL, arguments, 2, &y, 1, 0, NULL),
                FP8RT_ERROR_INVALID_HANDLE, "expected a state, but got 0");
  EXPECT_STATUS(fp8c_program_end_step(program, 0, 0, NULL),
                FP8RT_ERROR_INVALID_HANDLE, "expected a state, but got 0");
  EXPECT_INVALID(fp8c_program_end_step(NULL, state, 0, NULL), "null");
  const char *manifest =
      "{\"version\": 1, \"slots\": [{\"name\": \"a\", \"format\": \"e4m3\"}]}";
  EXPECT_OK(fp8rt_state_create(manifest, strlen(manifest), &other));
  EXPECT_STATUS(
      fp8c_program_run(program, NULL, arguments, 2, &y, 1, other, NULL),
      FP8RT_ERROR_MISMATCH, "expected a state of program 'program'");
  EXPECT_OK(fp8rt_state_destroy(other));
  EXPECT_OK(fp8rt_state_destroy(state));
  fp8c_program_destroy(program);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

void check_saving(const char *directory) {
  char path[4096], header[4096], nowhere[4096], line[256] = "";
  snprintf(path, sizeof(path), "%s/libmodel.so", directory);
  snprintf(header, sizeof(header), "%s/model.h", directory);
  snprintf(nowhere, sizeof(nowhere), "%s/no/directory.so", directory);
  remove(path);
  remove(header);
  fp8c_program *program = compile(text, "recipe", "current", "name", "model",
                                  "rpath", "/one", "rpath", "/two", NULL);
  EXPECT_OK(fp8c_program_save(program, path, header));
  // Saving uses nothing up.
  run(program, 0, 7, 0.4375);
  EXPECT_STATUS(fp8c_program_save(program, nowhere, NULL), FP8RT_ERROR_FILE,
                "no/directory.so");
  EXPECT_INVALID(fp8c_program_save(NULL, path, NULL), "null");
  EXPECT_INVALID(fp8c_program_save(program, NULL, NULL), "null");
  fp8c_program_destroy(program);
  FILE *file = fopen(header, "r");
  int found = 0;
  while (file && fgets(line, sizeof(line), file))
    found |= strstr(line, "fp8rt_status model_layer(") != NULL;
  EXPECT(file && found && fclose(file) == 0);

  program = NULL;
  EXPECT_OK(fp8c_program_load(path, &program));
  run(program, 0, 7, 0.4375);
  EXPECT_INVALID(fp8c_program_save(program, path, NULL),
                 "compiled in this process, but got one that was loaded");
  fp8c_program_destroy(program);
  EXPECT_STATUS(fp8c_program_load(nowhere, &program), FP8RT_ERROR_FILE,
                "no/directory.so");
  EXPECT_STATUS(fp8c_program_load(header, &program), FP8RT_ERROR_FILE,
                "expected a 64-bit ELF shared object");
  EXPECT_INVALID(fp8c_program_load(NULL, &program), "null");
  EXPECT_INVALID(fp8c_program_load(path, NULL), "null");

  program = compile(text, "linker", "/no/such/linker", NULL);
  EXPECT_INVALID(fp8c_program_save(program, path, NULL),
                 "but got '/no/such/linker'");
  fp8c_program_destroy(program);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

static void *compile_and_run(void *unused) {
  fp8c_program *program = compile(text, "recipe", "current", NULL);
  run(program, 0, 7, 0.4375);
  fp8c_program_destroy(program);
  return unused;
}

static void *run_often(void *program) {
  for (int i = 0; i < 100; ++i)
    run((fp8c_program *)program, 0, 7, 0.4375);
  return NULL;
}

static void on_threads(void *(*work)(void *), void *data) {
  pthread_t threads[4];
  for (size_t i = 0; i < LENGTH(threads); ++i)
    EXPECT(pthread_create(&threads[i], NULL, work, data) == 0);
  for (size_t i = 0; i < LENGTH(threads); ++i)
    EXPECT(pthread_join(threads[i], NULL) == 0);
}

void check_threads(void) {
  on_threads(compile_and_run, NULL);
  fp8c_program *program = compile(text, "recipe", "current", NULL);
  on_threads(run_often, program);
  fp8c_program_destroy(program);
}
