//===- Program.h - Compiled programs and their functions --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8rt's C interface. fp8-compile makes a shared object of a
// program and a header with a C function for each of its functions. Hosts that
// know the program when they are built include that header and link to the
// object; others open it here, and learn from its description what it holds.
//
// Functions may be called from any thread, at the same time, as far as their
// states and contexts allow it.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_PROGRAM_H
#define FP8_RUNTIME_PROGRAM_H

#include "fp8/Runtime/Context.h"
#include "fp8/Runtime/ScalingState.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// A tensor of that rank, MLIR's descriptor of a memref: `data` is the first
/// element. Programs want an offset of 0 and row-major order without gaps.
/// `allocated` is what a result is freed by; of an argument it is not read.
#define FP8RT_TENSOR(rank)                                                     \
  typedef struct fp8rt_tensor##rank {                                          \
    void *allocated;                                                           \
    void *data;                                                                \
    int64_t offset;                                                            \
    int64_t sizes[rank];                                                       \
    int64_t strides[rank];                                                     \
  } fp8rt_tensor##rank

typedef struct fp8rt_tensor0 {
  void *allocated;
  void *data;
  int64_t offset;
} fp8rt_tensor0;
FP8RT_TENSOR(1);
FP8RT_TENSOR(2);
FP8RT_TENSOR(3);
FP8RT_TENSOR(4);
FP8RT_TENSOR(5);
FP8RT_TENSOR(6);
FP8RT_TENSOR(7);
FP8RT_TENSOR(8);

/// Arguments of up to four dimensions in row-major order.
static inline fp8rt_tensor0 fp8rt_make_tensor0(void *data) {
  fp8rt_tensor0 tensor = {data, data, 0};
  return tensor;
}
static inline fp8rt_tensor1 fp8rt_make_tensor1(void *data, int64_t size0) {
  fp8rt_tensor1 tensor = {data, data, 0, {size0}, {1}};
  return tensor;
}
static inline fp8rt_tensor2 fp8rt_make_tensor2(void *data, int64_t size0,
                                               int64_t size1) {
  fp8rt_tensor2 tensor = {data, data, 0, {size0, size1}, {size1, 1}};
  return tensor;
}
static inline fp8rt_tensor3 fp8rt_make_tensor3(void *data, int64_t size0,
                                               int64_t size1, int64_t size2) {
  fp8rt_tensor3 tensor = {
      data, data, 0, {size0, size1, size2}, {size1 * size2, size2, 1}};
  return tensor;
}
static inline fp8rt_tensor4 fp8rt_make_tensor4(void *data, int64_t size0,
                                               int64_t size1, int64_t size2,
                                               int64_t size3) {
  fp8rt_tensor4 tensor = {data,
                          data,
                          0,
                          {size0, size1, size2, size3},
                          {size1 * size2 * size3, size2 * size3, size3, 1}};
  return tensor;
}

//===----------------------------------------------------------------------===//
// The description of a program
//===----------------------------------------------------------------------===//

/// An argument or a result.
typedef struct fp8rt_program_value {
  const char *name;     /* its fp8.name, else arg0, ... or result0, ... */
  const char *dtype;    /* as in .safetensors files, e.g. "BF16" */
  const int64_t *sizes; /* `rank` of them; -1 for one that calls choose */
  int32_t rank;         /* -1 for a scalar */
  int32_t width;        /* of an element, in bytes */
  int32_t alignment;    /* of the data, in bytes */
  int32_t reserved;
} fp8rt_program_value;

/// What it was called before 1.1.
typedef fp8rt_program_value fp8rt_program_port;

enum {
  FP8RT_FUNCTION_TAKES_STATE = 1,  /* a fp8rt_state */
  FP8RT_FUNCTION_TAKES_CONTEXT = 2 /* a fp8rt_context; tensors on its device */
};

typedef struct fp8rt_program_function {
  const struct fp8rt_program_info *program;
  const char *name; /* in the source */
  void (*invoke)(void **arguments);
  const fp8rt_program_value *arguments;
  const fp8rt_program_value *results;
  int32_t num_arguments;
  int32_t num_results;
  uint32_t flags;
  uint32_t reserved;
} fp8rt_program_function;

#define FP8RT_PROGRAM_MAGIC "FP8PROG"
/// The symbol of a fp8rt_program_info that every shared object has.
#define FP8RT_PROGRAM_SYMBOL "fp8rt_program"

/// The first two members are where they are in all versions.
typedef struct fp8rt_program_info {
  char magic[8];
  uint32_t version; /* the FP8RT_VERSION that it was compiled for */
  uint32_t num_functions;
  const fp8rt_program_function *functions;
  const char *name;
  const char *manifest;       /* JSON, of which docs/Runtime.md tells */
  const char *state_manifest; /* for fp8rt_state_create; null without a state */
  int64_t num_slots;          /* of the state */
  /* What follows is not there in programs for versions before 0.4. */
  int64_t num_words;        /* of a slot */
  const char *state_recipe; /* as fp8rt_state_info has it */
  void (*update_state)(void **arguments);
} fp8rt_program_info;

//===----------------------------------------------------------------------===//
// For hosts
//===----------------------------------------------------------------------===//

typedef struct fp8rt_program fp8rt_program;

/// Loads the shared object at `path`. The caller closes it, after the contexts
/// that ran it have been destroyed. Errors: FP8RT_ERROR_FILE for a file that
/// is missing, cut off, for another machine, or no program; FP8RT_ERROR_VERSION
/// for one that was compiled for another version of this library.
fp8rt_status fp8rt_program_open(const char *path, fp8rt_program **program);

/// Null is allowed.
fp8rt_status fp8rt_program_close(fp8rt_program *program);

/// Valid until the program is closed.
fp8rt_status fp8rt_program_get_info(const fp8rt_program *program,
                                    const fp8rt_program_info **info);

/// Errors: FP8RT_ERROR_NOT_FOUND.
fp8rt_status
fp8rt_program_get_function(const fp8rt_program_info *info, const char *name,
                           const fp8rt_program_function **function);

/// A new state for the program's functions, as fp8rt_state_create. Errors:
/// FP8RT_ERROR_INVALID_ARGUMENT if they take none.
fp8rt_status fp8rt_program_create_state(const fp8rt_program_info *info,
                                        fp8rt_state *state);

/// Calls a function, as those of the generated header do. `arguments` point to
/// a descriptor (fp8rt_tensor2, ...) for each tensor and to the value of each
/// scalar, `results` to where such go; `state` and `context` are not looked at
/// by functions that take none.
///
/// Every tensor among the results is an allocation of its own, for the caller
/// to free: with free, or on a GPU with fp8rt_workspace_free. There, the
/// function returns when all is launched in the context's stream.
///
/// A function that records slots of delayed scaling without a scale yet is
/// computed several times, until their scales are those of its own amaxes, and
/// results and records are those of the last time. Such a call writes to the
/// state, and waits for the GPU. Not in a capture, where it is computed once
/// with the scales that there are. docs/Recipes/Delayed.md defines it.
///
/// Errors: FP8RT_ERROR_INVALID_ARGUMENT for a tensor of another size, order or
/// alignment, and if the program finds sizes that do not fit together while it
/// runs (what it had allocated by then on the CPU is lost);
/// FP8RT_ERROR_OUT_OF_MEMORY, also of the stack for functions that call
/// themselves; FP8RT_ERROR_WRONG_DEVICE; FP8RT_ERROR_MISMATCH for a state of
/// another program; FP8RT_ERROR_VERSION; on a GPU those of the context. There
/// are no results after an error.
fp8rt_status fp8rt_program_call(const fp8rt_program_function *function,
                                void *const *arguments, void *const *results,
                                fp8rt_state state, fp8rt_context *context);

/// Ends a step of the state: every slot gets the scale of the next step from
/// the amaxes that functions recorded, as the program's recipe says, and the
/// step is counted. On a frozen state only clears what functions recorded.
///
/// On a GPU this is one kernel in the context's stream, which runs after what
/// is in it, such as a reduction of `amax` over ranks, and nothing waits. It
/// can be captured with the functions of a step, after a first call that is
/// not. On the CPU the result does not depend on the thread's rounding mode or
/// on flush-to-zero. For the recipe delayed it is that of fp8rt_state_update,
/// bit for bit.
///
/// `context` is not looked at by programs for the CPU. Writes to `state`.
/// Errors: FP8RT_ERROR_INVALID_ARGUMENT for a program without a state;
/// FP8RT_ERROR_MISMATCH; FP8RT_ERROR_VERSION for a program of a version without
/// an update; FP8RT_ERROR_ON_DEVICE on the CPU; on a GPU those of the context.
fp8rt_status fp8rt_program_update_state(const fp8rt_program_info *info,
                                        fp8rt_state state,
                                        fp8rt_context *context);

/// Calls a function without any check: `arguments` are what include/fp8/Target/
/// CPU/Engine.h says of its functions. Errors: FP8RT_ERROR_INVALID_ARGUMENT if
/// the program finds one.
fp8rt_status fp8rt_program_invoke(const fp8rt_program_function *function,
                                  void **arguments);

//===----------------------------------------------------------------------===//
// For compiled programs
//===----------------------------------------------------------------------===//

/// Ends the innermost fp8rt_program_call or _invoke of this thread with an
/// error; outside of one, the process. Does not return.
void fp8rt_program_fail(const char *message);

/// The same, with FP8RT_ERROR_OUT_OF_MEMORY, if little of this thread's stack
/// is left: functions that call themselves, or each other, begin with it.
/// `function` is the name of the caller.
void fp8rt_program_check_stack(const char *function);

/// The same program for one of several GPUs.
typedef struct fp8rt_program_variant {
  const fp8rt_program_info *program;
  int32_t compute_capability; /* 90 for 9.0 */
  uint32_t flags;
} fp8rt_program_variant;

enum {
  FP8RT_VARIANT_RUNS_LATER = 1 /* the driver assembles its kernels for
                                  later compute capabilities, too */
};

/// Calls function `index` of the variant for the context's device, or with -1
/// what ends a step. That is the first one of the device's own compute
/// capability, else the latest before it that runs later; without one the
/// context fails with FP8RT_ERROR_UNSUPPORTED_ARCH.
void fp8rt_program_invoke_variant(fp8rt_context *context,
                                  const fp8rt_program_variant *variants,
                                  uint32_t count, int32_t index,
                                  void **arguments);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_PROGRAM_H
