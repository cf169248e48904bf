//===- FusionCodes.h - Numbers as codes, in registers -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSION_FUSIONCODES_H
#define FP8_LIB_KERNELS_FUSION_FUSIONCODES_H

#include "../Blocks/KernelBuilder.h"

namespace mlir::fp8 {

/// Whether fusions read and write codes of this type.
bool hasCodes(Type type);

/// The f32 `numbers`, a multiple of four, as codes of `type`, rounded to even
/// and saturated; four to a word, also of f4E2M1FN.
SmallVector<Value> encode(KernelBuilder &b, ArrayRef<Value> numbers, Type type);
/// The numbers of such codes, f32.
SmallVector<Value> decode(KernelBuilder &b, ArrayRef<Value> words, Type type);

/// Codes of f4E2M1FN, each an i32, of numbers that are rounded to one of their
/// two neighbours by a random word, i32, for each, as fp8.quantize does with a
/// seed; and four of them as a word.
SmallVector<Value> encodeByChance(KernelBuilder &b, ArrayRef<Value> numbers,
                                  ArrayRef<Value> random);
Value joinCodes(KernelBuilder &b, ArrayRef<Value> codes);
/// The four codes of a word, each an i32.
SmallVector<Value> splitCodes(KernelBuilder &b, Value word);

/// Eight codes of f4E2M1FN, four to each of two words, as they share bytes in
/// memory; and the converse.
Value gatherCodes(KernelBuilder &b, Value first, Value second);
SmallVector<Value> spreadCodes(KernelBuilder &b, Value word);

/// The f8E4M3FN code of an f32, as i32.
Value encodeFactor(KernelBuilder &b, Value factor);
/// The f32 of a code (i32) of f8E4M3FN or f8E8M0FNU.
Value decodeFactor(KernelBuilder &b, Value code, Type type);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FUSION_FUSIONCODES_H
