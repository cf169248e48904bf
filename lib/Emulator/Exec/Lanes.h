//===- Lanes.h - Functions of one lane over all lanes -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_EXEC_LANES_H
#define FP8_LIB_EMULATOR_EXEC_LANES_H

#include "Exec/Machine.h"
#include "PTX/Decoder.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace fp8emu {

/// Writes results of the lanes that take part. What is computed for the others
/// must do no harm.
template <class T>
inline void assign(T *row, const T *results, Mask mask) {
  if (mask == ~Mask{0}) {
    std::memcpy(row, results, sizeof(T) * kLanes);
    return;
  }
  for (unsigned i = 0; i < kLanes; ++i)
    row[i] = mask >> i & 1 ? results[i] : row[i];
}

/// d = F(sources...), each of its own type.
template <class F, class D, class A>
Step mapUnary(Warp &warp, const Op &op, Mask mask) {
  const A *a = warp.row<A>(op.s[0]);
  alignas(64) D results[kLanes];
  for (unsigned i = 0; i < kLanes; ++i)
    results[i] = F()(a[i]);
  assign(warp.row<D>(op.d), results, mask);
  return Step::Next;
}

template <class F, class D, class A, class B = A>
Step mapBinary(Warp &warp, const Op &op, Mask mask) {
  const A *a = warp.row<A>(op.s[0]);
  const B *b = warp.row<B>(op.s[1]);
  alignas(64) D results[kLanes];
  for (unsigned i = 0; i < kLanes; ++i)
    results[i] = F()(a[i], b[i]);
  assign(warp.row<D>(op.d), results, mask);
  return Step::Next;
}

template <class F, class D, class A, class B = A, class C = A>
Step mapTernary(Warp &warp, const Op &op, Mask mask) {
  const A *a = warp.row<A>(op.s[0]);
  const B *b = warp.row<B>(op.s[1]);
  const C *c = warp.row<C>(op.s[2]);
  alignas(64) D results[kLanes];
  for (unsigned i = 0; i < kLanes; ++i)
    results[i] = F()(a[i], b[i], c[i]);
  assign(warp.row<D>(op.d), results, mask);
  return Step::Next;
}

/// The lanes whose word is not zero.
inline Mask packLanes(const int32_t *words) {
#ifdef __AVX2__
  Mask mask = 0;
  for (unsigned i = 0; i < 4; ++i) {
    __m256i eight =
        _mm256_loadu_si256(reinterpret_cast<const __m256i *>(words + 8 * i));
    __m256i zero = _mm256_cmpeq_epi32(eight, _mm256_setzero_si256());
    auto bits =
        static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(zero)));
    mask |= (~bits & 0xff) << 8 * i;
  }
  return mask;
#else
  Mask mask = 0;
  for (unsigned i = 0; i < kLanes; ++i)
    mask |= Mask{words[i] != 0} << i;
  return mask;
#endif
}

/// The NaN that a GPU's f32 arithmetic gives, whatever it was given.
constexpr uint32_t kNaN32 = 0x7fffffff;

inline float canonical(float x) {
  uint32_t word;
  std::memcpy(&word, &x, sizeof(word));
  // Keep NaNs apart: for floats the compiler takes any for as good.
  word = (word & 0x7fffffff) > 0x7f800000 ? kNaN32 : word;
  std::memcpy(&x, &word, sizeof(x));
  return x;
}

inline float flush(float x) {
  uint32_t word;
  std::memcpy(&word, &x, sizeof(word));
  if ((word & 0x7f800000) == 0)
    word &= 0x80000000;
  std::memcpy(&x, &word, sizeof(x));
  return x;
}

template <class To, class From>
inline To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

/// The row of an operand that must be the same in all lanes, or a fault.
template <class T>
T getUniform(Warp &warp, const Op &op, Mask mask, uint32_t row,
             const char *what) {
  const T *values = warp.row<T>(row);
  T value = values[__builtin_ctz(mask)];
  for (unsigned i = 0; i < kLanes; ++i)
    if ((mask >> i & 1) && values[i] != value)
      warp.fault(op, Mask{1} << i, kLaunchFailed,
                 "expected " + std::string(what) +
                     " to be the same in all lanes, but got " +
                     std::to_string(values[i]) + " and " +
                     std::to_string(value));
  return value;
}

inline std::string toHex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(value));
  return text;
}

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_EXEC_LANES_H
