//===- Compiler.h - Programs from sources -----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface of the compiler, in libfp8c. A source is parsed in a context
// and compiled, as often as one likes, with options; the program runs without
// either (Program.h):
//
//   fp8c_context_create(&context);
//   fp8c_source_create(context, text, strlen(text), "text", &source);
//   fp8c_option options[] = {{"recipe", "current"}, {"target", "sm_90a"}};
//   fp8c_compile(source, options, 2, &program);
//   fp8c_program_run(program, "f", arguments, 2, results, 1, 0, stream);
//
// For all functions of libfp8c:
//  - They return a fp8rt_status, or cannot fail. fp8rt_get_last_error
//    (fp8/Runtime/Status.h, in libfp8rt) is one line about the last call of the
//    thread that failed. A call that fails has changed nothing, and its results
//    are not written, unless it says otherwise.
//  - Beside those that they name, they return FP8RT_ERROR_INVALID_ARGUMENT for
//    a null pointer where one is not said to be allowed, FP8RT_ERROR_INTERNAL
//    for a bug, and FP8RT_ERROR_OUT_OF_MEMORY. Where memory is short inside of
//    LLVM, the process ends.
//  - No function throws, or prints what it could return.
//  - What a function gives out with `**` is the caller's, who destroys it with
//    the function of that name. Handles are pointers and not checked: one that
//    was destroyed is undefined behaviour.
//  - Texts are UTF-8. Those that go in are copied.
//
// Threads: a context, with its sources, does one thing at a time; a call that
// meets another returns FP8RT_ERROR_BUSY without effect. Several contexts may
// be used at the same time, each by a thread. Programs may be used from any
// thread (Program.h).
//
// Memory: a context keeps types, attributes and constants of what it has parsed
// and compiled until it is destroyed. Whoever compiles without end makes a new
// one now and then.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_C_COMPILER_H
#define FP8_C_COMPILER_H

#include "fp8/Runtime/Status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The version of the interface in these headers, as in fp8/Runtime/Status.h.
#define FP8C_VERSION_MAJOR 0
#define FP8C_VERSION_MINOR 1
#define FP8C_VERSION (FP8C_VERSION_MAJOR * 1000 + FP8C_VERSION_MINOR)

/// The FP8C_VERSION that the library was compiled with.
uint32_t fp8c_get_version(void);

typedef struct fp8c_context fp8c_context;
typedef struct fp8c_source fp8c_source;
typedef struct fp8c_buffer fp8c_buffer;
typedef struct fp8c_program fp8c_program;

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

fp8rt_status fp8c_context_create(fp8c_context **context);

/// Null is allowed. Sources of the context may be destroyed before or after it;
/// until then they can be used.
void fp8c_context_destroy(fp8c_context *context);

enum {
  FP8C_SEVERITY_NOTE = 0, /* belongs to the one before it */
  FP8C_SEVERITY_WARNING = 1,
  FP8C_SEVERITY_ERROR = 2,
  FP8C_SEVERITY_REMARK = 3
};

/// What the compiler says of a source. All that it points to is valid during
/// the call of the handler.
typedef struct fp8c_diagnostic {
  int32_t severity;
  int32_t line;   /* from 1; 0 if the place is not known */
  int32_t column; /* from 1 */
  int32_t reserved;
  const char *file; /* the source's name, or another's; "" if not known */
  const char *message;
  const char *text; /* several lines: place, message, the line of the source */
} fp8c_diagnostic;

typedef void (*fp8c_diagnostic_handler)(const fp8c_diagnostic *diagnostic,
                                        void *user_data);

/// Lets calls on the context hand their diagnostics to `handler`, in the order
/// in which they were made, on the calling thread, before they return. Without
/// a handler (null) they are dropped but for the first error, which becomes the
/// message of the status. The handler may not use the context. Errors:
/// FP8RT_ERROR_BUSY.
fp8rt_status fp8c_context_set_diagnostic_handler(
    fp8c_context *context, fp8c_diagnostic_handler handler, void *user_data);

typedef struct fp8c_remark_detail {
  const char *key;
  const char *value;
} fp8c_remark_detail;

enum {
  FP8C_REMARK_FP8 = 0,
  FP8C_REMARK_HIGH_PRECISION = 1, /* it stays so */
  FP8C_REMARK_COPY = 2            /* of an operand, for a kernel of a GPU */
};

/// What was decided about a contraction (a matrix product), of which each gets
/// one remark, and one more for each operand that its kernel needs a copy of;
/// docs/GettingStarted.md lists the reasons. All that it points to is valid
/// during the call of the handler; what a remark lacks is "".
typedef struct fp8c_remark {
  int32_t kind;
  int32_t num_details;
  const char *name;       /* of the contraction */
  const char *function;   /* that it is in */
  const char *location;   /* file:line:column */
  const char *role;       /* fprop, dgrad or wgrad */
  const char *shape;      /* "M=32 N=64 K=256" */
  const char *recipe;     /* that decided */
  const char *reason;     /* why it stays in high precision, or is copied */
  const char *suggestion; /* what would change that */
  const char *text;       /* all of it in one line */
  /* The rest, of one in FP8: a and b (format, block and scale of an operand),
     a_granularity, b_granularity, accumulate, padding; of a copy: operand,
     type, bytes, shared_with. */
  const fp8c_remark_detail *details;
} fp8c_remark;

typedef void (*fp8c_remark_handler)(const fp8c_remark *remark, void *user_data);

/// The same for remarks, which calls that compile make, also if they fail.
fp8rt_status fp8c_context_set_remark_handler(fp8c_context *context,
                                             fp8c_remark_handler handler,
                                             void *user_data);

/// Is told what a call that compiles is at: a step, such as "optimize LLVM IR",
/// or the flag of a pass. Called by the thread that does it, which with passes
/// on several functions need not be the caller's, one at a time. If it returns
/// anything but 0, the call ends as soon as it can, before the next pass, with
/// FP8RT_ERROR_STOPPED. The handler may not use the context.
typedef int32_t (*fp8c_progress_handler)(const char *step, void *user_data);

/// Null for none. Errors: FP8RT_ERROR_BUSY.
fp8rt_status fp8c_context_set_progress_handler(fp8c_context *context,
                                               fp8c_progress_handler handler,
                                               void *user_data);

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

/// Parses and verifies `size` bytes of MLIR, as text or bytecode. `name` is
/// what diagnostics call it. Errors: FP8RT_ERROR_INVALID_PROGRAM;
/// FP8RT_ERROR_BUSY.
fp8rt_status fp8c_source_create(fp8c_context *context, const char *text,
                                size_t size, const char *name,
                                fp8c_source **source);

/// The same of a file. Errors: also FP8RT_ERROR_FILE.
fp8rt_status fp8c_source_create_from_file(fp8c_context *context,
                                          const char *path,
                                          fp8c_source **source);

/// Null is allowed. Not during a call on the context: that would have no way to
/// say that it is busy.
void fp8c_source_destroy(fp8c_source *source);

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// An option by its key, such as {"recipe", "mxfp8"}; fp8c_option_get_info has
/// them all. The last of several with one key counts, but a list grows by each.
/// A flag may have the value "true" or "false"; null and "" are "true".
typedef struct fp8c_option {
  const char *key;
  const char *value;
} fp8c_option;

/// Static strings.
typedef struct fp8c_option_info {
  FP8RT_STRUCT_SIZE(uint64_t, fp8c_option_info)
  const char *key;
  const char *value; /* what a value stands for, e.g. "FILE"; "" for a flag */
  const char *help;
} fp8c_option_info;

int32_t fp8c_option_get_count(void);

/// Options count from 0. Errors: FP8RT_ERROR_INVALID_ARGUMENT if `index` is
/// none.
fp8rt_status fp8c_option_get_info(int32_t index, fp8c_option_info *info);

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//
//
// Errors of both: FP8RT_ERROR_INVALID_ARGUMENT for an unknown option (the
// message names the nearest) or value; FP8RT_ERROR_INVALID_PROGRAM for all that
// a diagnostic tells, recipes and targets that do not exist among it;
// FP8RT_ERROR_BUSY. The source stays as it is.

/// Compiles the public functions of the source for this process. Without
/// options they run on this CPU, in high precision. `options` may be null if
/// there are none. Errors: also FP8RT_ERROR_UNSUPPORTED_ARCH for the option
/// `cpu` with a processor that has more than this one.
fp8rt_status fp8c_compile(fp8c_source *source, const fp8c_option *options,
                          size_t num_options, fp8c_program **program);

/// Compiles it to text or bytes: `kind` is "mlir" (what the phase `to` leaves),
/// "llvm" (the host's code), "ptx" or "cubin" (the kernels of a GPU). Errors:
/// also FP8RT_ERROR_INVALID_ARGUMENT for another kind, or a program without
/// kernels.
fp8rt_status fp8c_emit(fp8c_source *source, const char *kind,
                       const fp8c_option *options, size_t num_options,
                       fp8c_buffer **buffer);

/// The contents, valid until the buffer is destroyed, and followed by a zero
/// that does not count; `size` may be null.
const char *fp8c_buffer_get_data(const fp8c_buffer *buffer, size_t *size);

/// Null is allowed.
void fp8c_buffer_destroy(fp8c_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif // FP8_C_COMPILER_H
