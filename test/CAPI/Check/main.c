//===- main.c - A host of libfp8c in C11 ----------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// usage: capi-check cpu|save|hostile DIRECTORY, or capi-check gpu|no-driver
//
// Every function of the interface and every error that it names. Files go to
// the directory.
//
//===----------------------------------------------------------------------===//

#include "check.h"

#include <stdarg.h>

void expect(int condition, const char *text, const char *file, int line) {
  if (condition)
    return;
  fprintf(stderr, "%s:%d: expected %s; last error: %s\n", file, line, text,
          fp8rt_get_last_error());
  exit(1);
}

void expect_status(fp8rt_status status, fp8rt_status expected,
                   const char *message, const char *text, const char *file,
                   int line) {
  const char *got = status == FP8RT_OK ? "" : fp8rt_get_last_error();
  if (status == expected && strstr(got, message))
    return;
  fprintf(stderr, "%s:%d: %s: expected %s with '%s', but got %s with '%s'\n",
          file, line, text, fp8rt_stringify_status(expected), message,
          fp8rt_stringify_status(status), got);
  exit(1);
}

static void append(messages *all, const char *text) {
  strncat(all->text, text, sizeof(all->text) - strlen(all->text) - 1);
}

static void on_diagnostic(const fp8c_diagnostic *diagnostic, void *data) {
  messages *all = (messages *)data;
  ++all->num_diagnostics;
  all->num_errors += diagnostic->severity == FP8C_SEVERITY_ERROR;
  EXPECT(strstr(diagnostic->text, diagnostic->message));
  EXPECT(diagnostic->line == 0 || diagnostic->file[0]);
  append(all, diagnostic->text);
  // Whoever is called is inside of a call.
  EXPECT_STATUS(fp8c_context_set_diagnostic_handler(all->context, NULL, NULL),
                FP8RT_ERROR_BUSY, "that nothing else is using");
}

static void on_remark(const fp8c_remark *remark, void *data) {
  messages *all = (messages *)data;
  ++all->num_remarks;
  all->num_fp8 += remark->kind == FP8C_REMARK_FP8;
  all->num_copies += remark->kind == FP8C_REMARK_COPY;
  EXPECT(strncmp(remark->text, remark->name, strlen(remark->name)) == 0);
  EXPECT((remark->kind == FP8C_REMARK_FP8) == (remark->reason[0] == '\0'));
  EXPECT((remark->kind == FP8C_REMARK_HIGH_PRECISION) ==
         (remark->num_details == 0));
  append(all, remark->text);
  append(all, "\n");
  fp8c_source *source;
  EXPECT_STATUS(fp8c_source_create(all->context, "", 0, "none", &source),
                FP8RT_ERROR_BUSY, "busy");
}

fp8c_context *make_context(messages *all) {
  fp8c_context *context;
  EXPECT_OK(fp8c_context_create(&context));
  if (!all)
    return context;
  memset(all, 0, sizeof(*all));
  all->context = context;
  EXPECT_OK(fp8c_context_set_diagnostic_handler(context, on_diagnostic, all));
  EXPECT_OK(fp8c_context_set_remark_handler(context, on_remark, all));
  return context;
}

fp8c_source *parse(fp8c_context *context, const char *text) {
  fp8c_source *source;
  EXPECT_OK(fp8c_source_create(context, text, strlen(text), "text", &source));
  return source;
}

fp8c_program *compile(const char *text, ...) {
  fp8c_option options[8];
  size_t num_options = 0;
  va_list list;
  va_start(list, text);
  const char *key;
  while ((key = va_arg(list, const char *))) {
    options[num_options].key = key;
    options[num_options++].value = va_arg(list, const char *);
  }
  va_end(list);
  fp8c_context *context = make_context(NULL);
  fp8c_source *source = parse(context, text);
  fp8c_program *program;
  EXPECT_OK(fp8c_compile(source, options, num_options, &program));
  // The program needs neither.
  fp8c_context_destroy(context);
  fp8c_source_destroy(source);
  return program;
}

fp8c_dtype make_dtype(const char *name) {
  fp8c_dtype dtype;
  EXPECT_OK(fp8c_dtype_from_name(name, &dtype));
  return dtype;
}

fp8c_tensor make_host(void *data, const char *dtype, int32_t rank,
                      int64_t *sizes) {
  fp8c_device host = {FP8C_CPU, 0};
  return fp8c_make_tensor(data, host, make_dtype(dtype), rank, sizes);
}

int main(int argc, char **argv) {
  const char *part = argc > 1 ? argv[1] : "";
  if (strcmp(part, "cpu") == 0 && argc == 3) {
    check_compiling(argv[2]);
    check_running();
    check_states(argv[2]);
    check_threads();
  } else if (strcmp(part, "hostile") == 0 && argc == 3) {
    check_hostile(argv[2]);
  } else if (strcmp(part, "save") == 0 && argc == 3) {
    check_saving(argv[2]);
  } else if (strcmp(part, "gpu") == 0) {
    check_gpu();
  } else if (strcmp(part, "no-driver") == 0) {
    check_no_driver();
  } else {
    fprintf(stderr, "usage: capi-check cpu|save DIRECTORY, or capi-check "
                    "gpu|no-driver\n");
    return 2;
  }
  puts("ok");
  return 0;
}
