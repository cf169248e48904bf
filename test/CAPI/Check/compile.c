//===- compile.c - Contexts, sources, options and code --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "check.h"

#include <stdint.h>

static const char matmuls[] =
    "func.func @layer(%x: tensor<32x64xf32>, %w: tensor<64x16xf32>,\n"
    "                 %v: tensor<3x16xf32>, %y: tensor<32x3xf32>)\n"
    "    -> (tensor<32x16xf32>, tensor<32x16xf32>) {\n"
    "  %zero = arith.constant dense<0.0> : tensor<32x16xf32>\n"
    "  %0 = linalg.matmul {fp8.name = \"large\"}\n"
    "      ins(%x, %w : tensor<32x64xf32>, tensor<64x16xf32>)\n"
    "      outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>\n"
    "  %1 = linalg.matmul {fp8.name = \"small\"}\n"
    "      ins(%y, %v : tensor<32x3xf32>, tensor<3x16xf32>)\n"
    "      outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>\n"
    "  return %0, %1 : tensor<32x16xf32>, tensor<32x16xf32>\n"
    "}\n";

static void check_names(void) {
  EXPECT(fp8c_get_version() == FP8C_VERSION);
  const char *names[] = {"F64",     "F32",     "F16",  "BF16", "F8_E4M3",
                         "F8_E5M2", "F8_E8M0", "F4x2", "I64",  "I32",
                         "I16",     "I8",      "U8",   "BOOL"};
  for (size_t i = 0; i < LENGTH(names); ++i)
    EXPECT(strcmp(fp8c_dtype_get_name(make_dtype(names[i])), names[i]) == 0);
  fp8c_dtype dtype = {FP8C_FLOAT, 32, 2};
  EXPECT(!fp8c_dtype_get_name(dtype));
  // One code of four bits is no element.
  fp8c_dtype code = {FP8C_FLOAT4_E2M1FN, 4, 1};
  EXPECT(!fp8c_dtype_get_name(code));
  EXPECT_STATUS(fp8c_dtype_from_name("F31", &dtype), FP8RT_ERROR_NOT_FOUND,
                "but got 'F31'");
  EXPECT_INVALID(fp8c_dtype_from_name(NULL, &dtype), "null");

  int has_recipe = 0, has_cpu = 0;
  fp8c_option_info info = {.struct_size = sizeof(info)};
  for (int32_t i = 0; i < fp8c_option_get_count(); ++i) {
    EXPECT_OK(fp8c_option_get_info(i, &info));
    EXPECT(info.key[0] && info.help[0]);
    has_recipe |= !strcmp(info.key, "recipe") && !strcmp(info.value, "RECIPE");
    has_cpu |= strcmp(info.key, "cpu") == 0;
  }
  EXPECT(has_recipe && has_cpu);
  EXPECT_INVALID(fp8c_option_get_info(-1, &info), "but got -1");
  EXPECT_INVALID(fp8c_option_get_info(fp8c_option_get_count(), &info),
                 "expected an option from 0 to");
  info.struct_size =
      0; // as callers have it that were compiled before there was one
  EXPECT_INVALID(fp8c_option_get_info(0, &info),
                 "expected info->struct_size to be 32, but got 0");
}

static void check_sources(const char *directory) {
  messages all;
  fp8c_context *context = make_context(&all);
  fp8c_source *source = NULL;
  const char *text = "func.func @f( {\n}\n";
  EXPECT_STATUS(
      fp8c_source_create(context, text, strlen(text), "mistake", &source),
      FP8RT_ERROR_INVALID_PROGRAM, "mistake:1:14: expected");
  EXPECT(!source && all.num_errors == 1);
  EXPECT(strstr(all.text, "func.func @f( {\n             ^"));

  // What does not verify, with a note that belongs to it.
  text = "func.func @f() -> i32 {\n  %0 = arith.constant 1 : i32\n"
         "  return %0 : f32\n}\n";
  EXPECT_STATUS(fp8c_source_create(context, text, strlen(text), "", &source),
                FP8RT_ERROR_INVALID_PROGRAM, "");
  EXPECT(all.num_diagnostics > all.num_errors);

  // Only as much as there is: what follows is no part of the text.
  text = "func.func private @f()#";
  EXPECT_OK(fp8c_source_create(context, text, strlen(text) - 1, "t", &source));
  fp8c_source_destroy(source);

  char path[4096];
  snprintf(path, sizeof(path), "%s/none.mlir", directory);
  remove(path);
  EXPECT_STATUS(fp8c_source_create_from_file(context, path, &source),
                FP8RT_ERROR_FILE, "No such file");
  FILE *file = fopen(path, "w");
  EXPECT(file && fputs(matmuls, file) >= 0 && fclose(file) == 0);
  EXPECT_OK(fp8c_source_create_from_file(context, path, &source));
  fp8c_program *program;
  EXPECT_OK(fp8c_compile(source, NULL, 0, &program));
  fp8c_program_destroy(program);

  EXPECT_INVALID(fp8c_context_create(NULL), "null");
  EXPECT_INVALID(fp8c_source_create(NULL, text, 1, "t", &source), "null");
  EXPECT_INVALID(fp8c_source_create(context, NULL, 0, "t", &source), "null");
  EXPECT_INVALID(fp8c_source_create(context, text, 1, NULL, &source), "null");
  EXPECT_INVALID(fp8c_source_create(context, text, 1, "t", NULL), "null");
  EXPECT_INVALID(fp8c_source_create(context, text, SIZE_MAX, "t", &source),
                 "expected the size of the text");
  EXPECT_INVALID(fp8c_source_create_from_file(context, NULL, &source), "null");
  EXPECT_INVALID(fp8c_context_set_remark_handler(NULL, NULL, NULL), "null");
  EXPECT_INVALID(fp8c_context_set_diagnostic_handler(NULL, NULL, NULL), "null");
  EXPECT_INVALID(fp8c_context_set_progress_handler(NULL, NULL, NULL), "null");
  fp8c_source_destroy(source);
  fp8c_context_destroy(context);
  fp8c_source_destroy(NULL);
  fp8c_context_destroy(NULL);
}

/// What `{key, value}` is refused with.
static void refuse(fp8c_source *source, const char *key, const char *value,
                   fp8rt_status status, const char *message) {
  fp8c_option option = {key, value};
  fp8c_program *program = NULL;
  EXPECT_STATUS(fp8c_compile(source, &option, 1, &program), status, message);
  EXPECT(!program);
}

static void check_options(void) {
  messages all;
  fp8c_context *context = make_context(&all);
  fp8c_source *source = parse(context, matmuls);
  const fp8rt_status invalid = FP8RT_ERROR_INVALID_ARGUMENT;
  refuse(source, "recipes", "current", invalid,
         "unknown option 'recipes'; did you mean 'recipe'?");
  refuse(source, "colour", "red", invalid, "expected one of ");
  refuse(source, "require", "perhaps", invalid,
         "expected option 'require' to be true or false, but got 'perhaps'");
  refuse(source, "max-padding", "much", invalid, "to be a number");
  refuse(source, NULL, "current", invalid, "to have a key");
  refuse(source, "cpu", "abacus", invalid, "but got 'abacus'");
  refuse(source, "opt-level", "4", invalid,
         "expected option 'opt-level' to be 0, 1, 2 or 3, but got '4'");
  refuse(source, "to", "fusion", invalid, "the last phase of a program");
#ifdef __x86_64__
  refuse(source, "cpu", "diamondrapids", FP8RT_ERROR_UNSUPPORTED_ARCH,
         "but this one lacks");
#endif
  EXPECT(all.num_diagnostics == 0);

  // What the compiler refuses is a diagnostic too.
  const fp8rt_status program = FP8RT_ERROR_INVALID_PROGRAM;
  refuse(source, "recipe", "fancy", program, "but got 'fancy'");
  refuse(source, "target", "abacus", program, "but got 'abacus'");
  refuse(source, "recipe-file", "/none/such.json", program, "/none/such.json");
  EXPECT(all.num_errors == 3);

  fp8c_option options[] = {
      {"recipe", "none"}, {"recipe", "block"}, {"require", NULL}};
  fp8c_program *compiled;
  EXPECT_STATUS(fp8c_compile(source, options, LENGTH(options), &compiled),
                FP8RT_ERROR_INVALID_PROGRAM,
                "text:5:8: expected 'large' to be in FP8, but K=64");
  // Remarks come also of what fails.
  EXPECT(strstr(all.text, "large: high precision"));
  EXPECT_INVALID(fp8c_compile(source, NULL, 1, &compiled), "null");
  EXPECT_INVALID(fp8c_compile(NULL, NULL, 0, &compiled), "null");
  EXPECT_INVALID(fp8c_compile(source, NULL, 0, NULL), "null");
  fp8c_context_destroy(context);
  fp8c_source_destroy(source);
}

static void check_remarks(void) {
  messages all;
  fp8c_context *context = make_context(&all);
  fp8c_source *source = parse(context, matmuls);
  fp8c_program *program;
  fp8c_option option = {"recipe", "mxfp8"};
  EXPECT_OK(fp8c_compile(source, &option, 1, &program));
  EXPECT(all.num_remarks == 2 && all.num_fp8 == 1);
  EXPECT(strstr(all.text, "large: fp8; role fprop, shape M=32 N=16 K=64, "
                          "recipe mxfp8, a f8E4M3FN[1x32]f8E8M0FNU"));
  EXPECT(strstr(all.text, "small: high precision; role fprop, shape M=32 N=16 "
                          "K=3, recipe mxfp8, reason K=3 is not a multiple"));
  fp8c_program_destroy(program);

  // The same source, in another way; and without handlers.
  EXPECT_OK(fp8c_compile(source, NULL, 0, &program));
  EXPECT(all.num_remarks == 4 && all.num_fp8 == 1 && all.num_copies == 0);
  fp8c_program_destroy(program);
  fp8c_option gpu[] = {{"target", "sm_90a"}, {"tf32", "true"}};
  EXPECT_OK(fp8c_compile(source, gpu, LENGTH(gpu), &program));
  EXPECT(all.num_remarks == 8 && all.num_fp8 == 1 && all.num_copies == 2);
  EXPECT(strstr(all.text, "large: copy; operand b, type 16x64xf32, bytes "
                          "4096, reason expected K to be the innermost"));
  fp8c_program_destroy(program);
  EXPECT_OK(fp8c_context_set_remark_handler(context, NULL, NULL));
  EXPECT_OK(fp8c_context_set_diagnostic_handler(context, NULL, NULL));
  EXPECT_OK(fp8c_compile(source, &option, 1, &program));
  EXPECT(all.num_remarks == 8);
  fp8c_program_destroy(program);
  refuse(source, "recipe", "fancy", FP8RT_ERROR_INVALID_PROGRAM, "'fancy'");
  // A K of 3 is filled up, so that there is nothing to remark of it.
  EXPECT(all.num_diagnostics == 0);
  fp8c_source_destroy(source);
  fp8c_context_destroy(context);
}

static void check_code(void) {
  fp8c_context *context = make_context(NULL);
  fp8c_source *source = parse(context, matmuls);
  fp8c_buffer *buffer;
  fp8c_option options[] = {
      {"recipe", "current"}, {"to", "fusion"}, {"name", "model"}};
  EXPECT_OK(fp8c_emit(source, "mlir", options, 2, &buffer));
  size_t size;
  const char *text = fp8c_buffer_get_data(buffer, &size);
  EXPECT(strstr(text, "fp8.matmul") && strlen(text) == size);
  fp8c_buffer_destroy(buffer);

  options[1].key = "functional-state";
  options[1].value = NULL;
  EXPECT_OK(fp8c_emit(source, "llvm", options, 3, &buffer));
  EXPECT(strstr(fp8c_buffer_get_data(buffer, NULL), "@model_layer("));
  fp8c_buffer_destroy(buffer);

  options[1].key = "target";
  options[1].value = "sm_90a";
  EXPECT_OK(fp8c_emit(source, "ptx", options, 2, &buffer));
  EXPECT(strstr(fp8c_buffer_get_data(buffer, NULL), ".target sm_90a"));
  fp8c_buffer_destroy(buffer);
  EXPECT_INVALID(fp8c_emit(source, "ptx", NULL, 0, &buffer),
                 "expected a program with kernels");
  EXPECT_INVALID(fp8c_emit(source, "asm", NULL, 0, &buffer),
                 "expected mlir, llvm, ptx or cubin, but got 'asm'");
  EXPECT_INVALID(fp8c_emit(source, NULL, NULL, 0, &buffer), "null");
  EXPECT_INVALID(fp8c_emit(source, "mlir", NULL, 0, NULL), "null");
  fp8c_buffer_destroy(NULL);
  fp8c_source_destroy(source);
  fp8c_context_destroy(context);
}

/// Stops at the step that begins with `last`, and counts.
typedef struct progress {
  const char *last;
  int num_steps, num_passes, num_after;
} progress;

static int32_t on_progress(const char *step, void *data) {
  progress *seen = data;
  ++seen->num_steps;
  seen->num_passes += strncmp(step, "fp8-", 4) == 0;
  if (!seen->last)
    return 0;
  if (strncmp(step, seen->last, strlen(seen->last)) == 0)
    return 1;
  seen->num_after += strcmp(step, "optimize LLVM IR") == 0;
  return 0;
}

static void check_progress(void) {
  fp8c_context *context = make_context(NULL);
  fp8c_source *source = parse(context, matmuls);
  fp8c_program *program = NULL;
  fp8c_buffer *code = NULL;
  progress seen = {0};
  EXPECT_OK(fp8c_context_set_progress_handler(context, on_progress, &seen));
  fp8c_option option = {"recipe", "mxfp8"};
  EXPECT_OK(fp8c_compile(source, &option, 1, &program));
  EXPECT(seen.num_passes > 10 && seen.num_steps > seen.num_passes);
  fp8c_program_destroy(program);
  program = NULL;

  // In the first pass, in the middle, and between passes.
  const char *stops[] = {"run passes", "fp8-apply-recipe", "fp8-fuse-epilogues",
                         "convert-fp8-to-linalg"};
  for (size_t i = 0; i < LENGTH(stops); ++i) {
    seen = (progress){stops[i], 0, 0, 0};
    EXPECT_STATUS(fp8c_compile(source, &option, 1, &program),
                  FP8RT_ERROR_STOPPED, "was stopped");
    EXPECT(!program && seen.num_after == 0);
    EXPECT_STATUS(fp8c_emit(source, "mlir", &option, 1, &code),
                  FP8RT_ERROR_STOPPED, "was stopped");
    EXPECT(!code);
  }

  // The source and the context are as they were.
  int num_steps = seen.num_steps;
  EXPECT_OK(fp8c_context_set_progress_handler(context, NULL, NULL));
  EXPECT_OK(fp8c_compile(source, &option, 1, &program));
  EXPECT(seen.num_steps == num_steps);
  fp8c_program_destroy(program);
  fp8c_source_destroy(source);
  fp8c_context_destroy(context);
}

void check_compiling(const char *directory) {
  check_names();
  check_sources(directory);
  check_options();
  check_remarks();
  check_progress();
  check_code();
}
