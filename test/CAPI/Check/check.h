//===- check.h - What the parts of capi-check share -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_CAPI_CHECK_H
#define FP8_TEST_CAPI_CHECK_H

#include "fp8-c/Compiler.h"
#include "fp8-c/Program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/// Ends the process with a message unless `condition` holds.
#define EXPECT(condition)                                                      \
  expect((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
/// The same unless the call returned `status`, with `message` in its error.
#define EXPECT_OK(call) EXPECT_STATUS(call, FP8RT_OK, "")
#define EXPECT_STATUS(call, status, message)                                   \
  expect_status(call, status, message, #call, __FILE__, __LINE__)
#define EXPECT_INVALID(call, message)                                          \
  EXPECT_STATUS(call, FP8RT_ERROR_INVALID_ARGUMENT, message)

void expect(int condition, const char *text, const char *file, int line);
void expect_status(fp8rt_status status, fp8rt_status expected,
                   const char *message, const char *text, const char *file,
                   int line);

/// What handlers were given.
typedef struct messages {
  int num_diagnostics, num_errors, num_remarks, num_fp8, num_copies;
  char text[16384]; /* of all of them */
  fp8c_context *context;
} messages;

/// A context with handlers that collect in `messages`, which may be null.
fp8c_context *make_context(messages *messages);

/// A source of its own context, whose options are `key`, `value` pairs that end
/// in null; and the same compiled.
fp8c_source *parse(fp8c_context *context, const char *text);
fp8c_program *compile(const char *text, ...);

fp8c_dtype make_dtype(const char *name);

/// Tensors of the host.
fp8c_tensor make_host(void *data, const char *dtype, int32_t rank,
                      int64_t *sizes);

/// The parts.
void check_compiling(const char *directory);
void check_running(void);
void check_states(const char *directory);
void check_threads(void);
void check_hostile(const char *directory);
void check_saving(const char *directory);
/// `runs` says whether there is a GPU that computes.
void check_gpu(void);
void check_no_driver(void);

#endif // FP8_TEST_CAPI_CHECK_H
