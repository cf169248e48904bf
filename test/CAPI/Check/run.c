//===- run.c - Programs on the CPU ----------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "check.h"

static const char text[] =
    "func.func @add(%x: tensor<?x3xf32> {fp8.name = \"x\"},\n"
    "               %y: tensor<?x3xf32> {fp8.name = \"y\"})\n"
    "    -> (tensor<?x3xf32> {fp8.name = \"sum\"}) {\n"
    "  %0 = arith.addf %x, %y : tensor<?x3xf32>\n"
    "  return %0 : tensor<?x3xf32>\n"
    "}\n"
    "func.func @mixed(%s: f64, %n: i8, %t: tensor<f32>)\n"
    "    -> (i8, tensor<f32>, f64, tensor<f32>) {\n"
    "  %0 = arith.addf %s, %s : f64\n"
    "  %1 = arith.addi %n, %n : i8\n"
    "  %2 = arith.addf %t, %t : tensor<f32>\n"
    "  return %1, %2, %0, %2 : i8, tensor<f32>, f64, tensor<f32>\n"
    "}\n"
    "func.func @fill(%m: memref<4xbf16>, %v: bf16) {\n"
    "  linalg.fill ins(%v : bf16) outs(%m : memref<4xbf16>)\n"
    "  return\n"
    "}\n"
    "func.func @check(%n: i32) -> i32 {\n"
    "  %zero = arith.constant 0 : i32\n"
    "  %good = arith.cmpi sgt, %n, %zero : i32\n"
    "  cf.assert %good, \"expected n to be above 0\"\n"
    "  return %n : i32\n"
    "}\n"
    "func.func @count(%n: i32) -> i32 {\n"
    "  %zero = arith.constant 0 : i32\n"
    "  %one = arith.constant 1 : i32\n"
    "  %goes_on = arith.cmpi ne, %n, %zero : i32\n"
    "  %r = scf.if %goes_on -> i32 {\n"
    "    %m = arith.subi %n, %one : i32\n"
    "    %s = func.call @count(%m) : (i32) -> i32\n"
    "    scf.yield %s : i32\n"
    "  } else {\n"
    "    scf.yield %n : i32\n"
    "  }\n"
    "  return %r : i32\n"
    "}\n";

static void check_info(fp8c_program *program) {
  const fp8rt_program_info *info;
  EXPECT_OK(fp8c_program_get_info(program, &info));
  EXPECT(info->num_functions == 5 && strcmp(info->name, "test") == 0);
  const fp8rt_program_function *add = &info->functions[0];
  EXPECT(strcmp(add->name, "add") == 0 && add->flags == 0);
  EXPECT(add->num_arguments == 2 && add->num_results == 1);
  const fp8rt_program_value *x = &add->arguments[0], *sum = &add->results[0];
  EXPECT(strcmp(x->name, "x") == 0 && strcmp(x->dtype, "F32") == 0);
  EXPECT(x->rank == 2 && x->sizes[0] == -1 && x->sizes[1] == 3);
  EXPECT(strcmp(sum->name, "sum") == 0 && sum->width == 4);
  EXPECT(info->functions[1].arguments[0].rank == -1);
  EXPECT(strstr(info->manifest, "\"functions\""));
  EXPECT(!info->state_manifest);
  EXPECT_INVALID(fp8c_program_get_info(program, NULL), "null");
  EXPECT_INVALID(fp8c_program_get_info(NULL, &info), "null");
}

static void check_results(fp8c_program *program) {
  float x[] = {1, 2, 3, 4, 5, 6}, y[] = {10, 20, 30, 40, 50, 60};
  int64_t sizes[] = {2, 3}, strides[] = {3, 1};
  fp8c_tensor tx = make_host(x, "F32", 2, sizes), ty = tx;
  ty.data = (char *)y - 16;
  ty.byte_offset = 16;
  ty.strides = strides;
  ty.device.type = FP8C_CUDA_HOST;
  const fp8c_tensor *arguments[] = {&tx, &ty};
  fp8c_managed_tensor *sum;
  EXPECT_OK(fp8c_program_run(program, "add", arguments, 2, &sum, 1, 0, NULL));
  EXPECT(sum->tensor.rank == 2 && sum->tensor.device.type == FP8C_CPU);
  EXPECT(sum->tensor.sizes[0] == 2 && sum->tensor.sizes[1] == 3);
  EXPECT(sum->tensor.strides[0] == 3 && sum->tensor.strides[1] == 1);
  EXPECT(strcmp(fp8c_dtype_get_name(sum->tensor.dtype), "F32") == 0);
  for (int i = 0; i < 6; ++i)
    EXPECT(((float *)sum->tensor.data)[i] == x[i] + y[i]);

  // A result may be an argument, and empty.
  const fp8c_tensor *result[] = {&sum->tensor};
  arguments[0] = result[0];
  EXPECT_OK(
      fp8c_program_run_into(program, "add", arguments, 2, result, 1, 0, NULL));
  for (int i = 0; i < 6; ++i)
    EXPECT(((float *)sum->tensor.data)[i] == x[i] + 2 * y[i]);
  sum->deleter(sum);
  int64_t none[] = {0, 3};
  fp8c_tensor empty = make_host(NULL, "F32", 2, none);
  const fp8c_tensor *empties[] = {&empty, &empty};
  EXPECT_OK(fp8c_program_run(program, "add", empties, 2, &sum, 1, 0, NULL));
  EXPECT(sum->tensor.sizes[0] == 0);
  fp8c_managed_tensor_destroy(sum);
  EXPECT_OK(
      fp8c_program_run_into(program, "add", empties, 2, empties, 1, 0, NULL));
  fp8c_managed_tensor_destroy(NULL);
  fp8c_managed_tensor borrowed = {tx, NULL, NULL};
  fp8c_managed_tensor_destroy(&borrowed);
}

static void check_scalars(fp8c_program *program) {
  double s = 1.25;
  int8_t n = 21;
  float t = 0.5;
  fp8c_tensor ts = make_host(&s, "F64", 0, NULL),
              tn = make_host(&n, "I8", 0, NULL),
              tt = make_host(&t, "F32", 0, NULL);
  const fp8c_tensor *arguments[] = {&ts, &tn, &tt};
  fp8c_managed_tensor *results[4];
  EXPECT_OK(
      fp8c_program_run(program, "mixed", arguments, 3, results, 4, 0, NULL));
  EXPECT(*(int8_t *)results[0]->tensor.data == 42);
  EXPECT(*(float *)results[1]->tensor.data == 1);
  EXPECT(*(double *)results[2]->tensor.data == 2.5);
  EXPECT(results[1]->tensor.data != results[3]->tensor.data);
  for (int i = 0; i < 4; ++i) {
    EXPECT(results[i]->tensor.rank == 0);
    fp8c_managed_tensor_destroy(results[i]);
  }
  double twice = 0;
  int8_t sum = 0;
  float once = 0, again = 0;
  fp8c_tensor out[] = {
      make_host(&sum, "I8", 0, NULL), make_host(&once, "F32", 0, NULL),
      make_host(&twice, "F64", 0, NULL), make_host(&again, "F32", 0, NULL)};
  const fp8c_tensor *places[] = {&out[0], &out[1], &out[2], &out[3]};
  EXPECT_OK(fp8c_program_run_into(program, "mixed", arguments, 3, places, 4, 0,
                                  NULL));
  EXPECT(sum == 42 && once == 1 && twice == 2.5 && again == 1);

  uint16_t m[4] = {0}, v = 0x3F80;
  int64_t size = 4;
  fp8c_tensor tm = make_host(m, "BF16", 1, &size),
              tv = make_host(&v, "BF16", 0, NULL);
  const fp8c_tensor *memref[] = {&tm, &tv};
  EXPECT_OK(fp8c_program_run(program, "fill", memref, 2, NULL, 0, 0, NULL));
  EXPECT(m[0] == 0x3F80 && m[3] == 0x3F80);
}

static void check_arguments(fp8c_program *program) {
  float x[8] = {0}, y[8];
  int64_t sizes[] = {2, 3};
  fp8c_tensor good = make_host(x, "F32", 2, sizes), bad = good;
  const fp8c_tensor *arguments[] = {&good, &bad};
  fp8c_managed_tensor *sum = NULL;
#define REFUSE(status, message)                                                \
  EXPECT_STATUS(                                                               \
      fp8c_program_run(program, "add", arguments, 2, &sum, 1, 0, NULL),        \
      status, message);                                                        \
  bad = good
  bad.dtype = make_dtype("BF16");
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT,
         "expected argument 'y' of 'add' to be F32, but got BF16");
  bad.dtype.lanes = 2;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT,
         "but got dtype 2 of 32 bits and 2 lanes");
  bad.rank = 1;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT,
         "expected argument 'y' of 'add' to have rank 2, but got 1");
  bad.sizes = NULL;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT, "to have sizes, but got null");
  int64_t others[] = {2, 4};
  bad.sizes = others;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT,
         "'y' of 'add' to have size 3 in dimension 1, but got 4");
  int64_t strides[] = {1, 2};
  bad.strides = strides;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT,
         "to be in row-major order, with stride 1 in dimension 1, but got 2");
  int64_t huge[] = {INT64_MAX, INT64_MAX};
  bad.sizes = huge;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT, "to have size 3 in dimension 1");
  bad.data = NULL;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT, "to have data, but got null");
  bad.byte_offset = 1;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT, "to be aligned to 4 bytes");
  bad.device.type = FP8C_CUDA;
  REFUSE(FP8RT_ERROR_WRONG_DEVICE,
         "expected argument 'y' of 'add' in memory of "
         "the host, but it is CUDA device 0's");
  bad.device.type = 99;
  REFUSE(FP8RT_ERROR_WRONG_DEVICE, "that of a device of type 99");
  arguments[1] = NULL;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT, "to be given, but got null");
#undef REFUSE
  EXPECT(!sum);
  arguments[1] = &good;

  // Sizes that do not fit together, and an assertion.
  int64_t one[] = {1, 3};
  bad.sizes = one;
  arguments[1] = &bad;
  EXPECT_INVALID(
      fp8c_program_run(program, "add", arguments, 2, &sum, 1, 0, NULL), "");
  int32_t n = 0;
  fp8c_tensor tn = make_host(&n, "I32", 0, NULL);
  const fp8c_tensor *number[] = {&tn};
  EXPECT_INVALID(
      fp8c_program_run(program, "check", number, 1, &sum, 1, 0, NULL),
      "expected n to be above 0");
  int32_t endless = -1;
  tn.data = &endless;
  EXPECT_STATUS(fp8c_program_run(program, "count", number, 1, &sum, 1, 0, NULL),
                FP8RT_ERROR_OUT_OF_MEMORY,
                "expected the calls of 'count' to end before the stack does");
  tn.data = NULL;
  EXPECT_INVALID(
      fp8c_program_run(program, "check", number, 1, &sum, 1, 0, NULL),
      "expected argument 'arg0' of 'check' to have data, but got null");

  arguments[1] = &good;
  EXPECT_INVALID(
      fp8c_program_run(program, "add", arguments, 1, &sum, 1, 0, NULL),
      "expected 2 arguments for 'add', but got 1");
  EXPECT_INVALID(
      fp8c_program_run(program, "add", arguments, 2, &sum, 0, 0, NULL),
      "expected 1 results for 'add', but got 0");
  EXPECT_INVALID(
      fp8c_program_run(program, NULL, arguments, 2, &sum, 1, 0, NULL),
      "expected the name of one of the functions 'add', 'mixed'");
  EXPECT_STATUS(
      fp8c_program_run(program, "sub", arguments, 2, &sum, 1, 0, NULL),
      FP8RT_ERROR_NOT_FOUND, "but got 'sub'");
  EXPECT_INVALID(fp8c_program_run(NULL, "add", arguments, 2, &sum, 1, 0, NULL),
                 "null");
  EXPECT_INVALID(fp8c_program_run(program, "add", NULL, 2, &sum, 1, 0, NULL),
                 "null");
  EXPECT_INVALID(
      fp8c_program_run(program, "add", arguments, 2, NULL, 1, 0, NULL), "null");
  (void)y;
}

static void check_destinations(fp8c_program *program) {
  float x[6] = {1, 2, 3, 4, 5, 6}, y[12] = {0};
  int64_t sizes[] = {2, 3};
  fp8c_tensor tx = make_host(x, "F32", 2, sizes),
              good = make_host(y, "F32", 2, sizes), bad = good;
  const fp8c_tensor *arguments[] = {&tx, &tx}, *results[] = {&bad};
#define REFUSE(status, message)                                                \
  EXPECT_STATUS(fp8c_program_run_into(program, "add", arguments, 2, results,   \
                                      1, 0, NULL),                             \
                status, message);                                              \
  bad = good
  bad.dtype = make_dtype("F64");
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT,
         "expected result 'sum' of 'add' to be F32, but got F64");
  bad.rank = 3;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT, "to have rank 2, but got 3");
  int64_t wide[] = {2, 4}, deep[] = {3, 3};
  bad.sizes = wide;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT,
         "'sum' of 'add' to have size 3 in dimension 1, but got 4");
  int64_t strides[] = {6, 1};
  bad.strides = strides;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT,
         "to be in row-major order, with stride 3 in dimension 0, but got 6");
  bad.data = NULL;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT, "to have data, but got null");
  bad.device.type = FP8C_CUDA;
  REFUSE(FP8RT_ERROR_WRONG_DEVICE, "expected result 'sum' of 'add' in memory");
  results[0] = NULL;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT, "to be given, but got null");
  results[0] = &bad;
  // This shows only when the program has run.
  bad.sizes = deep;
  REFUSE(FP8RT_ERROR_INVALID_ARGUMENT, "to have size 2 in dimension 0");
#undef REFUSE
  for (int i = 0; i < 12; ++i)
    EXPECT(y[i] == 0);
  EXPECT_OK(
      fp8c_program_run_into(program, "add", arguments, 2, results, 1, 0, NULL));
  EXPECT(y[5] == 12);
  EXPECT_INVALID(
      fp8c_program_run_into(NULL, "add", arguments, 2, results, 1, 0, NULL),
      "null");
  EXPECT_INVALID(
      fp8c_program_run_into(program, "add", arguments, 2, NULL, 1, 0, NULL),
      "null");
}

void check_running(void) {
  fp8c_program *program = compile(text, "name", "test", NULL);
  check_info(program);
  check_results(program);
  check_scalars(program);
  check_arguments(program);
  check_destinations(program);
  fp8c_program_destroy(program);
  fp8c_program_destroy(NULL);
}
