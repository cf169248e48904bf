//===- Program.h - Running what was compiled --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8c's C interface; Compiler.h says what holds for all of it.
//
// A program runs on the CPU, with tensors of the host, or on GPUs, with tensors
// of a device and in the caller's stream. What it holds is described by the
// runtime's structs (fp8/Runtime/Program.h), whose functions may be used too.
//
// Threads: a program may be run from any thread, at the same time; on a GPU
// one thread at a time launches on a device. It must not be destroyed while it
// runs. States are used by one thread at a time (fp8/Runtime/ScalingState.h).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_C_PROGRAM_H
#define FP8_C_PROGRAM_H

#include "fp8-c/Compiler.h"
#include "fp8-c/Tensor.h"
#include "fp8/Runtime/Program.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Opens a shared object that fp8c_program_save or fp8-compile made; that is
/// code, which runs. Needs no context. Errors: FP8RT_ERROR_FILE;
/// FP8RT_ERROR_VERSION; FP8RT_ERROR_UNSUPPORTED_ARCH for a program that was
/// compiled for another processor.
fp8rt_status fp8c_program_load(const char *path, fp8c_program **program);

/// Writes a program that was compiled in this process as a shared object, and a
/// C header to call it with (docs/Runtime.md) unless `header` is null: both
/// files, or neither. Takes a linker (the option `linker`, or ld.lld or ld of
/// PATH). Names in C begin with the option `name`. Errors:
/// FP8RT_ERROR_INVALID_ARGUMENT without a linker, for a program that was
/// loaded, and for a tensor with more dimensions than C has structs for;
/// FP8RT_ERROR_FILE.
fp8rt_status fp8c_program_save(const fp8c_program *program, const char *path,
                               const char *header);

/// Waits for the GPUs that it ran on. Results that it gave out stay. Null is
/// allowed.
void fp8c_program_destroy(fp8c_program *program);

/// Functions with the names, types and sizes of their arguments and results,
/// whether they take a state or run on a GPU; and the same as JSON. Owned by
/// the program. fp8rt_program_create_state makes a state of it.
fp8rt_status fp8c_program_get_info(const fp8c_program *program,
                                   const fp8rt_program_info **info);

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Calls a function; `function` may be null in a program that has one.
///
/// `arguments` are in row-major order, as those of the function: of the same
/// dtype, rank and sizes. They are read until the call has ended, on a GPU
/// until its work in `stream` has; only memrefs are written. On the CPU they
/// are in the host's memory, on a GPU in that of one device, aligned to 16
/// bytes. Scalars are tensors of rank 0, always the host's. On an emulated GPU
/// (fp8rt_device_is_emulated) all tensors may be the host's, and results are
/// then.
///
/// `results[i]` is made by the call and the caller's: a tensor where the
/// program runs, a scalar on the host.
///
/// `state` is looked at by functions that take one. On a GPU the calls of a
/// state, and the end of its step, are in one stream, or in work that waits for
/// each other.
///
/// On a GPU the call returns when all is launched in `stream`, of the device of
/// the arguments (without any, the thread's current device); on the CPU
/// `stream` is not looked at. The first call on a device loads the kernels;
/// later ones may be captured in a CUDA graph. A tensor among the results is
/// allocated in the order of the stream, and freed in it: work in other streams
/// has to be done by then, and the stream still there.
///
/// Errors: FP8RT_ERROR_NOT_FOUND for a function that the program lacks;
/// FP8RT_ERROR_INVALID_ARGUMENT for another number of arguments or results,
/// arguments that do not fit, and sizes that turn out not to fit together;
/// FP8RT_ERROR_WRONG_DEVICE; of the state, FP8RT_ERROR_INVALID_HANDLE,
/// FP8RT_ERROR_MISMATCH and FP8RT_ERROR_BUSY; on a GPU those of
/// fp8/Runtime/Device.h and FP8RT_ERROR_UNSUPPORTED_ARCH.
fp8rt_status fp8c_program_run(fp8c_program *program, const char *function,
                              const fp8c_tensor *const *arguments,
                              size_t num_arguments,
                              fp8c_managed_tensor **results, size_t num_results,
                              fp8rt_state state, fp8rt_stream stream);

/// The same, but results are copied to tensors that the caller has, in
/// row-major order and where the program runs; they may be arguments. Errors:
/// also FP8RT_ERROR_INVALID_ARGUMENT for a result of another size. If that is a
/// size that only shows when the program has run, the state has recorded the
/// run, and results before it may be written.
fp8rt_status fp8c_program_run_into(fp8c_program *program, const char *function,
                                   const fp8c_tensor *const *arguments,
                                   size_t num_arguments,
                                   const fp8c_tensor *const *results,
                                   size_t num_results, fp8rt_state state,
                                   fp8rt_stream stream);

/// Ends a step of a state of the program, after one run or several: the scales
/// become those of the next step. On a GPU this is work in `stream` of
/// `device`, as the runs are, for which nothing waits; after a first time it
/// may be captured with them. On the CPU neither is looked at. Errors: those of
/// fp8rt_program_update_state.
fp8rt_status fp8c_program_end_step(fp8c_program *program, fp8rt_state state,
                                   int32_t device, fp8rt_stream stream);

/// Between these two calls each kernel and copy of the program on `device` is
/// timed (fp8/Runtime/Profile.h), whatever the stream. Stopping waits for
/// `stream` and makes a trace in JSON that chrome://tracing and Perfetto open,
/// to be destroyed with fp8c_buffer_destroy. On the CPU nothing is timed.
/// Errors: FP8RT_ERROR_NO_DRIVER, and what the work failed with.
fp8rt_status fp8c_program_start_profile(fp8c_program *program, int32_t device,
                                        fp8rt_stream stream);
fp8rt_status fp8c_program_stop_profile(fp8c_program *program, int32_t device,
                                       fp8rt_stream stream,
                                       fp8c_buffer **trace);

#ifdef __cplusplus
}
#endif

#endif // FP8_C_PROGRAM_H
