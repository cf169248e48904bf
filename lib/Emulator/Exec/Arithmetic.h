//===- Arithmetic.h - What lanes compute ------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_EXEC_ARITHMETIC_H
#define FP8_LIB_EMULATOR_EXEC_ARITHMETIC_H

#include "Exec/Lanes.h"
#include "TensorCore/Floats.h"

#include <algorithm>

namespace fp8emu {

template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<
        sizeof(T) == 4,
        std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
        std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

/// Signed numbers wrap, too.
struct Add {
  template <class T>
  T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
  }
};
struct MulLo {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wide<T>>(a) * b);
  }
};
struct MulHi {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wide<T>>(a) * b >> 8 * sizeof(T));
  }
};
struct MulWide {
  template <class T>
  Wide<T> operator()(T a, T b) const {
    return static_cast<Wide<T>>(a) * b;
  }
};
/// What a chip gives for a zero divisor is all ones.
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0)
      return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1)))
      return b == 0 ? a : T{0};
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct MadLo {
  template <class T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(MulLo()(a, b) + c);
  }
};
struct MadHi {
  template <class T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(MulHi()(a, b) + c);
  }
};
struct MadWide {
  template <class T>
  Wide<T> operator()(T a, T b, Wide<T> c) const {
    return static_cast<Wide<T>>(static_cast<Wide<T>>(a) * b + c);
  }
};
struct Sad {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add()(c, a > b ? Sub()(a, b) : Sub()(b, a));
  }
};
/// What is negative becomes zero.
template <class F>
struct Relu {
  template <class T>
  T operator()(T a, T b) const {
    return Max()(F()(a, b), T{0});
  }
};
struct Neg {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return a < 0 ? Neg()(a) : a;
  }
};

struct AddF {
  float operator()(float a, float b) const { return canonical(a + b); }
  double operator()(double a, double b) const { return a + b; }
};
struct SubF {
  float operator()(float a, float b) const { return canonical(a - b); }
  double operator()(double a, double b) const { return a - b; }
};
struct MulF {
  float operator()(float a, float b) const { return canonical(a * b); }
  double operator()(double a, double b) const { return a * b; }
};
struct DivF {
  float operator()(float a, float b) const { return canonical(a / b); }
  double operator()(double a, double b) const { return a / b; }
};
struct FmaF {
  float operator()(float a, float b, float c) const {
    return canonical(__builtin_fmaf(a, b, c));
  }
  double operator()(double a, double b, double c) const {
    return __builtin_fma(a, b, c);
  }
};
/// -0 is below +0, and a NaN gives way to a number.
struct MinF {
  float operator()(float a, float b) const {
    float lower = a < b || (a == b && std::signbit(a)) ? a : b;
    return canonical(a != a ? b : b != b ? a : lower);
  }
  double operator()(double a, double b) const {
    double lower = a < b || (a == b && std::signbit(a)) ? a : b;
    return a != a ? b : b != b ? a : lower;
  }
};
struct MaxF {
  float operator()(float a, float b) const {
    float higher = a > b || (a == b && !std::signbit(a)) ? a : b;
    return canonical(a != a ? b : b != b ? a : higher);
  }
  double operator()(double a, double b) const {
    double higher = a > b || (a == b && !std::signbit(a)) ? a : b;
    return a != a ? b : b != b ? a : higher;
  }
};
struct MinNaNF {
  float operator()(float a, float b) const {
    return a != a || b != b ? toFloat(kNaN32) : MinF()(a, b);
  }
};
struct MaxNaNF {
  float operator()(float a, float b) const {
    return a != a || b != b ? toFloat(kNaN32) : MaxF()(a, b);
  }
};
/// Compares magnitudes, with the sign of the product.
template <class F>
struct XorSign {
  float operator()(float a, float b) const {
    float value = F()(std::fabs(a), std::fabs(b));
    return value != value || std::signbit(a) == std::signbit(b) ? value
                                                                : -value;
  }
};
struct NegF {
  float operator()(float a) const { return -a; }
  double operator()(double a) const { return -a; }
};
struct AbsF {
  float operator()(float a) const { return std::fabs(a); }
  double operator()(double a) const { return std::fabs(a); }
};
struct SqrtF {
  float operator()(float a) const { return canonical(std::sqrt(a)); }
  double operator()(double a) const { return std::sqrt(a); }
};
/// The approximations of a chip are of its making; these are rounded once.
struct RcpF {
  float operator()(float a) const { return canonical(1.0f / a); }
  double operator()(double a) const { return 1.0 / a; }
};
struct RsqrtF {
  float operator()(float a) const {
    return canonical(
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))));
  }
};
struct Ex2F {
  float operator()(float a) const {
    return canonical(static_cast<float>(std::exp2(static_cast<double>(a))));
  }
};
struct Lg2F {
  float operator()(float a) const {
    return canonical(static_cast<float>(std::log2(static_cast<double>(a))));
  }
};
struct SinF {
  float operator()(float a) const {
    return canonical(static_cast<float>(std::sin(static_cast<double>(a))));
  }
};
struct CosF {
  float operator()(float a) const {
    return canonical(static_cast<float>(std::cos(static_cast<double>(a))));
  }
};
struct TanhF {
  float operator()(float a) const {
    return canonical(static_cast<float>(std::tanh(static_cast<double>(a))));
  }
};

/// Subnormal operands and results are zeros.
template <class F>
struct Flushed {
  template <class... T>
  float operator()(T... a) const {
    return flush(F()(flush(a)...));
  }
};

/// On f16 and bf16: in f32, where sums and products of two are exact enough to
/// be rounded once more.
template <class F>
struct OnF16 {
  template <class... T>
  uint16_t operator()(T... a) const {
    return toF16(F()(fromF16(a)...));
  }
};
template <class F>
struct OnBF16 {
  template <class... T>
  uint16_t operator()(T... a) const {
    return toBF16(F()(fromBF16(a)...));
  }
};
template <class F>
struct Packed {
  template <class... T>
  uint32_t operator()(T... a) const {
    return F()(static_cast<uint16_t>(a)...) |
           static_cast<uint32_t>(F()(static_cast<uint16_t>(a >> 16)...)) << 16;
  }
};
/// The same bits as a number with a sign.
template <class F>
struct OnS16 {
  template <class... T>
  uint16_t operator()(T... a) const {
    return static_cast<uint16_t>(F()(static_cast<int16_t>(a)...));
  }
};
/// f32 cannot hold the product and sum of three: f64 can, of 16 bits.
struct FmaF16 {
  uint16_t operator()(uint16_t a, uint16_t b, uint16_t c) const {
    return round(static_cast<double>(fromF16(a)) * fromF16(b), fromF16(c));
  }
  static uint16_t round(double product, double addend);
};
struct FmaBF16 {
  uint16_t operator()(uint16_t a, uint16_t b, uint16_t c) const;
};

/// The sum in f32, rounded to odd, so that rounding it again does no harm.
inline float addToOdd(double product, double addend) {
  double sum = product + addend, t = sum - product;
  double error = (product - (sum - t)) + (addend - t);
  if (std::isfinite(sum) && error != 0 && !(bitCast<uint64_t>(sum) & 1))
    sum = std::nextafter(sum, error > 0 ? INFINITY : -INFINITY);
  auto narrow = static_cast<float>(sum);
  if (!std::isfinite(sum) || narrow == sum)
    return narrow;
  if (std::fabs(static_cast<double>(narrow)) > std::fabs(sum))
    narrow = std::nextafter(narrow, 0.0f);
  return toFloat(toBits(narrow) | 1);
}

/// What is negative becomes zero, what is no number the canonical NaN.
template <class F, uint16_t Infinity>
struct Relu16 {
  uint16_t operator()(uint16_t a, uint16_t b, uint16_t c) const {
    uint16_t value = F()(a, b, c);
    if ((value & 0x7fff) > Infinity)
      return 0x7fff;
    return value >> 15 ? uint16_t{0} : value;
  }
};
using FmaReluF16 = Relu16<FmaF16, 0x7c00>;
using FmaReluBF16 = Relu16<FmaBF16, 0x7f80>;

inline uint16_t FmaF16::round(double product, double addend) {
  return toF16(addToOdd(product, addend));
}

inline uint16_t FmaBF16::operator()(uint16_t a, uint16_t b, uint16_t c) const {
  return toBF16(
      addToOdd(static_cast<double>(fromBF16(a)) * fromBF16(b), fromBF16(c)));
}

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_EXEC_ARITHMETIC_H
