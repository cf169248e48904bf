//===- ScalingState.h - The state of delayed scaling ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8rt's C interface. A state holds, for each quantized tensor (a
// slot), the scale of the present step and what its recipe keeps of earlier
// ones. A step:
//
//   1. Quantize with `scale`, and put each tensor's amax into its place of the
//      row `amax` (fp8rt_state_get_rows).
//   2. With several ranks: one all-reduce MAX over the row, in place.
//   3. fp8rt_program_update_state (fp8/Runtime/Program.h), or without a program
//      fp8rt_state_update: the row is cleared, and the scales become those of
//      the next step.
//
// A device may have the values of a state (fp8/Runtime/DeviceState.h). Then all
// functions here that read or change them return FP8RT_ERROR_ON_DEVICE.
//
// Threads: every function may be called from any thread. Those that only read
// may overlap on one state; any other overlap on one state does no harm, one of
// the calls returns FP8RT_ERROR_BUSY without effect. The rows are plain memory:
// nobody may touch them during a call that writes to the state.
//
// Handles are checked: 0, any other number that was not given out, and a
// destroyed state's give FP8RT_ERROR_INVALID_HANDLE. Every function may also
// return FP8RT_ERROR_INVALID_ARGUMENT, for a null pointer, and
// FP8RT_ERROR_OUT_OF_MEMORY; further errors are with the function.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_SCALINGSTATE_H
#define FP8_RUNTIME_SCALINGSTATE_H

#include "fp8/Runtime/Status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t fp8rt_state;

//===----------------------------------------------------------------------===//
// Life
//===----------------------------------------------------------------------===//

/// Makes a state from a manifest, JSON in UTF-8 of `size` bytes; scales are 1,
/// all else is 0. The caller destroys `*state`.
///
///   {
///     "version": 1,
///     "slots": [{"name": "l0.x", "format": "e4m3", "role": "fprop",
///                "operand": "activation", "cache": 0}],
///     "recipe": "delayed",
///     "amax_history_len": 1024,     1..65536
///     "amax_compute_algo": "max",   or "most_recent"
///     "margin": 0,                  -64..64
///     "pow2": false,                round new scales down to powers of two
///     "compat": "te_fused",         or "te_unfused", "flax"
///     "initial": "auto",            or "current", "one"
///     "reduce_amax": true,          for the caller's use
///     "uses": {"forward": [0]}      slots that calls of a function record
///   }
///
/// Names are unique; formats are e4m3, e5m2 and e2m1; `role` and `operand` are
/// any strings, kept for the reader. Only `version`, `slots` and of a slot
/// `name` and `format` are needed: the values above are the defaults, and those
/// of `role` and `operand` are empty. `cache` is the size in bytes of memory in
/// which compiled code keeps the quantized tensor between the micro-batches of
/// a step, at first zeros; it is not saved. `flax` knows margin 0 and max only.
/// `initial` says what fp8rt_program_call does about slots without a scale; of
/// a function that is not in `uses` it looks at all slots.
///
/// A state of any other recipe has that recipe's options in place of delayed's:
/// true or false, a number or a string for each key; and needs `words`, how
/// many of 32 bits a slot keeps, at first zeros. What they mean is known to the
/// program that was compiled with the recipe.
///
/// Errors: FP8RT_ERROR_INVALID_MANIFEST, with a message that names the key.
fp8rt_status fp8rt_state_create(const char *manifest, size_t size,
                                fp8rt_state *state);

/// Makes a state with the manifest and the values of a saved one, for tools
/// that know no program. Errors: as fp8rt_state_load.
fp8rt_status fp8rt_state_create_from_file(const char *path, fp8rt_state *state);

/// Makes a second state that is equal to the first and independent of it;
/// a clone of a frozen state is frozen. Reads `state`.
fp8rt_status fp8rt_state_clone(fp8rt_state state, fp8rt_state *clone);

/// Frees the state and all that it owns: rows, names, reports.
fp8rt_status fp8rt_state_destroy(fp8rt_state state);

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// What compiled code works on, one element per slot, in the manifest's order.
/// Owned by the state; the addresses stay the same until it is destroyed.
typedef struct fp8rt_state_rows {
  FP8RT_STRUCT_SIZE(uint64_t, fp8rt_state_rows)
  int64_t num_slots;
  float *amax;             /* of this step; 0 where there was none */
  float *scale;            /* multiplies on quantize */
  float *scale_inv;        /* 1 / scale, multiplies on dequantize */
  int64_t *underflow;      /* add the non-zero elements that became 0 */
  int64_t *saturated;      /* add the elements beyond the largest code */
  void *const *cache;      /* of the slot's size in bytes; null for 0 */
  const float *max_finite; /* the largest value of the slot's format */
  int64_t num_words;       /* of a slot */
  int32_t *words;          /* a slot's after the other's */
  float *last_amax;
  int64_t *recorded;
  int64_t *non_finite;
  int64_t *steps; /* one number */
} fp8rt_state_rows;

fp8rt_status fp8rt_state_get_rows(fp8rt_state state, fp8rt_state_rows *rows);

/// Ends a step of delayed scaling, for hosts without a program. The sign of an
/// amax is ignored. The result depends on the state
/// alone, not on the thread's rounding mode or on flush-to-zero. On a frozen
/// state only clears the rows that compiled code records in. Errors:
/// FP8RT_ERROR_INVALID_ARGUMENT for a state of another recipe, whose update
/// only its program has.
fp8rt_status fp8rt_state_update(fp8rt_state state);

/// Until fp8rt_state_unfreeze nothing is recorded: evaluation uses the scales,
/// then all goes on as if it had not been. Amaxes that are waiting for an
/// update are put aside. A frozen state may be frozen again, without effect,
/// and unfreezing one that is not frozen has none either.
fp8rt_status fp8rt_state_freeze(fp8rt_state state);
fp8rt_status fp8rt_state_unfreeze(fp8rt_state state);

/// Brings back the values of a new state; frozen stays frozen.
fp8rt_status fp8rt_state_reset(fp8rt_state state);

/// The same for one slot; the steps that the state counts stay.
/// Errors: FP8RT_ERROR_NOT_FOUND.
fp8rt_status fp8rt_state_reset_slot(fp8rt_state state, const char *name);

//===----------------------------------------------------------------------===//
// Contents
//===----------------------------------------------------------------------===//

typedef struct fp8rt_state_info {
  FP8RT_STRUCT_SIZE(uint64_t, fp8rt_state_info)
  int64_t num_slots;
  int64_t amax_history_len; /* 0 but for the recipe delayed */
  int64_t steps;            /* updates, without those while frozen */
  int32_t frozen;
  int32_t reduce_amax;
  const char *manifest; /* with all defaults spelled out; owned by the state */
  const char *recipe;   /* its name and options, as on a command line */
} fp8rt_state_info;

fp8rt_status fp8rt_state_get_info(fp8rt_state state, fp8rt_state_info *info);

/// Strings are owned by the state.
typedef struct fp8rt_state_slot {
  FP8RT_STRUCT_SIZE(uint64_t, fp8rt_state_slot)
  const char *name;
  const char *format;
  const char *role;
  const char *operand;
} fp8rt_state_slot;

/// Slots count from 0. Errors: FP8RT_ERROR_INVALID_ARGUMENT if `index` is none.
fp8rt_status fp8rt_state_get_slot(fp8rt_state state, int64_t index,
                                  fp8rt_state_slot *slot);

/// Errors: FP8RT_ERROR_NOT_FOUND, as for all functions that take a name.
fp8rt_status fp8rt_state_find_slot(fp8rt_state state, const char *name,
                                   int64_t *index);

/// Gives a slot another name, under which a program that was changed finds it.
/// The strings of the slot and the manifest are new ones, the old are gone.
/// Errors: FP8RT_ERROR_INVALID_ARGUMENT unless `new_name` is UTF-8, not empty
/// and no slot's.
fp8rt_status fp8rt_state_rename_slot(fp8rt_state state, const char *name,
                                     const char *new_name);

fp8rt_status fp8rt_state_get_scale(fp8rt_state state, const char *name,
                                   float *scale);

/// Errors: FP8RT_ERROR_INVALID_ARGUMENT unless `scale` is finite and above 0.
fp8rt_status fp8rt_state_set_scale(fp8rt_state state, const char *name,
                                   float scale);

/// What a slot of another recipe than delayed keeps, exactly `length` words, as
/// many as the manifest says. Those of nvfp4 with stochastic rounding are the
/// seed, two words, how many steps have ended, and a word that is free;
/// programs add the slot's index to the last. Errors:
/// FP8RT_ERROR_INVALID_ARGUMENT with a state of the recipe delayed, whose words
/// are its histories.
fp8rt_status fp8rt_state_get_words(fp8rt_state state, const char *name,
                                   int32_t *words, int64_t length);
fp8rt_status fp8rt_state_set_words(fp8rt_state state, const char *name,
                                   const int32_t *words, int64_t length);

/// Histories are those of the recipe delayed; with a state of another recipe
/// these functions fail with FP8RT_ERROR_INVALID_ARGUMENT.
///
/// Copies the amaxes of a slot: exactly `length` = amax_history_len of them, in
/// the order of the system that `compat` names. TE: [0] is waiting for the
/// update, [1] is the oldest, the last is the newest. Flax: [0] is the newest,
/// [1] the oldest, the last the next newest.
fp8rt_status fp8rt_state_get_history(fp8rt_state state, const char *name,
                                     float *history, int64_t length);

/// The inverse. Errors: FP8RT_ERROR_INVALID_ARGUMENT for a negative amax; Inf
/// and NaN are possible amaxes.
fp8rt_status fp8rt_state_set_history(fp8rt_state state, const char *name,
                                     const float *history, int64_t length);

/// All histories at once, amax_history_len x num_slots, row-major as in TE;
/// `length` is the product.
fp8rt_status fp8rt_state_get_histories(fp8rt_state state, float *histories,
                                       int64_t length);

typedef struct fp8rt_state_statistics {
  FP8RT_STRUCT_SIZE(uint64_t, fp8rt_state_statistics)
  float amax; /* of the last update */
  float scale;
  float scale_inv;
  int32_t reserved;   /* 0 */
  int64_t recorded;   /* updates with an amax other than 0 */
  int64_t non_finite; /* updates with an amax of Inf or NaN */
  int64_t underflow;  /* what compiled code added to the rows */
  int64_t saturated;
} fp8rt_state_statistics;

fp8rt_status fp8rt_state_get_statistics(fp8rt_state state, int64_t index,
                                        fp8rt_state_statistics *statistics);

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Writes all but whether the state is frozen to a .safetensors file, which
/// depends on nothing else. Atomic and durable: `path` holds the old contents
/// or, on disk, the new ones. Reads `state`. Errors: FP8RT_ERROR_FILE.
fp8rt_status fp8rt_state_save(fp8rt_state state, const char *path);

enum {
  /// Any difference is FP8RT_ERROR_MISMATCH.
  FP8RT_LOAD_STRICT = 1
};

typedef struct fp8rt_load_report {
  FP8RT_STRUCT_SIZE(uint64_t, fp8rt_load_report)
  int64_t matched;          /* slots of the state that the file has */
  int64_t missing;          /* slots that it has not: they keep their values */
  int64_t extra;            /* slots of the file alone: ignored */
  int64_t amax_history_len; /* the file's; 0 but for the recipe delayed */
  const char *text; /* a line for each difference; owned by the state, valid
                       until the next load */
} fp8rt_load_report;

/// Takes over what a file holds for slots of the same name; `report` may be
/// null. Of histories of another length the newest amaxes are kept, and zeros
/// come in as the oldest. Errors: FP8RT_ERROR_FILE; FP8RT_ERROR_VERSION;
/// FP8RT_ERROR_MISMATCH if the recipe is another, any other option of it
/// differs, a slot's format or operand, or if not one slot has the same name.
fp8rt_status fp8rt_state_load(fp8rt_state state, const char *path,
                              uint32_t flags, fp8rt_load_report *report);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_SCALINGSTATE_H
