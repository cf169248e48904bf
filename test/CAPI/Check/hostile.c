//===- hostile.c - Calls that nobody should make --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "check.h"

#include <stdint.h>

static const char *kProgram = "func.func @f(%x: tensor<?x4xf32> {fp8.name = "
                              "\"x\"}) -> tensor<?x4xf32> {\n"
                              "  return %x : tensor<?x4xf32>\n"
                              "}\n";

/// Refused with a line that says something.
static void expect_refused(fp8rt_status status, const char *what) {
  const char *said = fp8rt_get_last_error();
  if (status == FP8RT_OK || said[0] == '\0' || strchr(said, '\n')) {
    fprintf(stderr, "%s: status %d, '%s'\n", what, (int)status, said);
    exit(1);
  }
}

static void check_sources(void) {
  static const char *texts[] = {
      "",
      "func.func @f( {",
      "func.func private @f()",
      "func.func @f() -> f32 { return %nothing : f32 }",
      "func.func @f(%x: tensor<*xf32>) { return }",
      "func.func @f(%x: tensor<4xf128>) { return }",
      "func.func @f(%x: complex<f32>) { return }",
      "func.func @f(%x: tensor<2x3xf4E2M1FN>) { return }",
      "func.func @a() { return }\nfunc.func @a() { return }",
      "\"nothing.nothing\"() : () -> ()",
      "ML\xefR\xff\xff\xff\xff",
  };
  for (size_t i = 0; i < LENGTH(texts); ++i) {
    fp8c_context *context = make_context(NULL);
    fp8c_source *source = NULL;
    fp8c_program *program = NULL;
    fp8rt_status status =
        fp8c_source_create(context, texts[i], strlen(texts[i]), "s", &source);
    if (status == FP8RT_OK)
      status = fp8c_compile(source, NULL, 0, &program);
    expect_refused(status, texts[i]);
    EXPECT(!program);
    fp8c_source_destroy(source);
    fp8c_context_destroy(context);
  }
}

static void check_options(void) {
  static const fp8c_option options[] = {
      {"", ""},
      {"nothing", "1"},
      {"target", ""},
      {"target", "sm_70"},
      {"target", "\xff"},
      {"recipe", "nothing"},
      {"recipe", "current,"},
      {"recipe", "current,format=nothing"},
      {"recipe", "delayed,amax_history_len=-1"},
      {"recipe-file", "/nothing"},
      {"recipe-file", "/"},
      {"kernel-table", "/nothing"},
      {"name", "a/b"},
      {"name", "int"},
      {"name", "\xff"},
      {"cpu", "abacus"},
      {"to", "nowhere"},
      {"to", "fusion"},
      {"require", "maybe"},
      {"memory-price", "nothing"},
      {NULL, "1"},
      {"target", NULL},
  };
  fp8c_context *context = make_context(NULL);
  fp8c_source *source = parse(context, kProgram);
  for (size_t i = 0; i < LENGTH(options); ++i) {
    fp8c_program *program = NULL;
    expect_refused(fp8c_compile(source, &options[i], 1, &program),
                   options[i].key ? options[i].key : "null");
    EXPECT(!program);
  }
  static const char *kinds[] = {"", "nothing", "\xff", "ptx", NULL};
  for (size_t i = 0; i < LENGTH(kinds); ++i) {
    fp8c_buffer *code = NULL;
    expect_refused(fp8c_emit(source, kinds[i], NULL, 0, &code), "a kind");
    EXPECT(!code);
  }
  fp8c_source_destroy(source);
  fp8c_context_destroy(context);
}

static void check_tensors(void) {
  // Device, dtype (code, bits, lanes), rank, sizes, strides, offset in bytes.
  static const struct {
    int32_t device, code, bits, lanes, rank;
    int64_t sizes[2], strides[2];
    uint64_t offset;
  } cases[] = {
      {FP8C_CUDA, FP8C_FLOAT, 32, 1, 2, {2, 4}, {4, 1}, 0},
      {99, FP8C_FLOAT, 32, 1, 2, {2, 4}, {4, 1}, 0},
      {-1, FP8C_FLOAT, 32, 1, 2, {2, 4}, {4, 1}, 0},
      {FP8C_CPU, FP8C_INT, 32, 1, 2, {2, 4}, {4, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 16, 1, 2, {2, 4}, {4, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 2, 2, {2, 4}, {4, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 0, 0, 2, {2, 4}, {4, 1}, 0},
      {FP8C_CPU, 255, 255, 65535, 2, {2, 4}, {4, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, -1, {2, 4}, {4, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, INT32_MAX, {2, 4}, {4, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, 1, {2, 4}, {4, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, 2, {2, 3}, {3, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, 2, {-1, 4}, {4, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, 2, {INT64_MIN, 4}, {4, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, 2, {INT64_MAX, 4}, {4, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, 2, {2, 4}, {1, 2}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, 2, {2, 4}, {0, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, 2, {2, 4}, {-4, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, 2, {2, 4}, {4, 0}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, 2, {2, 4}, {INT64_MAX, 1}, 0},
      {FP8C_CPU, FP8C_FLOAT, 32, 1, 2, {2, 4}, {4, 1}, 2},
  };
  fp8c_program *program = compile(kProgram, NULL);
  static float data[16];
  for (size_t i = 0; i < LENGTH(cases); ++i) {
    int64_t sizes[2] = {cases[i].sizes[0], cases[i].sizes[1]};
    int64_t strides[2] = {cases[i].strides[0], cases[i].strides[1]};
    fp8c_tensor tensor = make_host(data, "F32", cases[i].rank, sizes);
    tensor.device.type = cases[i].device;
    tensor.dtype.code = (uint8_t)cases[i].code;
    tensor.dtype.bits = (uint8_t)cases[i].bits;
    tensor.dtype.lanes = (uint16_t)cases[i].lanes;
    tensor.strides = strides;
    tensor.byte_offset = cases[i].offset;
    const fp8c_tensor *arguments[] = {&tensor};
    fp8c_managed_tensor *result = NULL;
    char what[32];
    snprintf(what, sizeof(what), "tensor %d", (int)i);
    expect_refused(
        fp8c_program_run(program, "f", arguments, 1, &result, 1, 0, NULL),
        what);
    EXPECT(!result);
  }
  fp8c_program_destroy(program);
}

static void check_files(const char *directory) {
  char path[4096];
  static const char *names[] = {"",          "/nothing", "/dev/null",
                                "/dev/full", "/",        "libc.so.6"};
  for (size_t i = 0; i < LENGTH(names); ++i) {
    fp8c_program *program = NULL;
    expect_refused(fp8c_program_load(names[i], &program), names[i]);
    EXPECT(!program);
  }
  // A program that was compiled outlives its context: also what a header says.
  fp8c_program *program = compile(kProgram, "name", "hostile", NULL);
  fp8c_context_destroy(make_context(NULL));
  snprintf(path, sizeof(path), "%s/hostile.so", directory);
  expect_refused(fp8c_program_save(program, path, directory), "a folder");
  expect_refused(fp8c_program_save(program, directory, NULL), "a folder");
  expect_refused(fp8c_program_save(program, path, path), "the same file");
  expect_refused(fp8c_program_save(program, path, "/nothing/x.h"), "no folder");
  expect_refused(fp8c_program_save(program, path, "/dev/full"), "a full disk");
  FILE *file = fopen(path, "r");
  EXPECT(!file);
  fp8c_program_destroy(program);
}

void check_hostile(const char *directory) {
  check_sources();
  check_options();
  check_tensors();
  check_files(directory);
}
