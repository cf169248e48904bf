//===- KernelBuilder.h - Builder with the vocabulary of kernels -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_KERNELBUILDER_H
#define FP8_LIB_KERNELS_BLOCKS_KERNELBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fp8 {

/// 32- and 64-bit integer arithmetic, addresses, and control flow, so that the
/// blocks of a kernel read like the kernel. Everything is unsigned.
class KernelBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  //===--- Constants ------------------------------------------------------===//

  Value i1(bool value);
  Value i32(int64_t value);
  Value i64(int64_t value);
  Value f32(float value);

  //===--- Arithmetic; the right operand may be a constant ----------------===//

  Value add(Value lhs, Value rhs);
  Value sub(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  Value div(Value lhs, Value rhs);
  Value rem(Value lhs, Value rhs);
  Value min(Value lhs, Value rhs);
  Value max(Value lhs, Value rhs);
  Value bitAnd(Value lhs, Value rhs);
  Value bitXor(Value lhs, Value rhs);
  Value shiftRight(Value value, int64_t bits);
  Value add(Value lhs, int64_t rhs);
  Value mul(Value lhs, int64_t rhs);
  Value div(Value lhs, int64_t rhs);
  Value rem(Value lhs, int64_t rhs);
  Value bitAnd(Value lhs, int64_t rhs);
  Value ceilDiv(Value lhs, int64_t rhs);
  /// i32 to i64.
  Value widen(Value value);
  Value equal(Value lhs, Value rhs);
  Value equal(Value lhs, int64_t rhs);
  Value less(Value lhs, Value rhs);
  Value select(Value condition, Value lhs, Value rhs);
  Value mulF(Value lhs, Value rhs);
  /// That of lane 0, of a value (i32) that is the same in all lanes: through a
  /// shuffle, so that ptxas knows.
  Value uniform(Value value);

  //===--- Memory ---------------------------------------------------------===//

  /// `base` and a number of bytes, i32 in shared and i64 in global memory.
  Value offset(Value base, Value bytes);
  /// Element `index` (i64) of an array of `elementType`.
  Value element(Value base, Value index, Type elementType);
  Value load(Value pointer, Type type);
  /// A load of what no thread writes while the kernel runs (ld.global.nc).
  Value loadConstant(Value pointer, Type type);
  /// `words` (1, 2 or 4) of such, i32, loaded where the program says so: those
  /// of all rows are under way before the first is waited for.
  SmallVector<Value> loadStreamed(Value pointer, int64_t words);
  void store(Value value, Value pointer);

  //===--- Control flow ---------------------------------------------------===//

  void ifThen(Value condition, llvm::function_ref<void()> body);
  void ifThenElse(Value condition, llvm::function_ref<void()> thenBody,
                  llvm::function_ref<void()> elseBody);
  /// The values of one of two branches.
  using Branch = llvm::function_ref<SmallVector<Value>()>;
  SmallVector<Value> choose(Value condition, Branch thenBranch,
                            Branch elseBranch);
  /// for (i = lower; i < upper; i += step); the body maps the carried values to
  /// those of the next iteration.
  using LoopBody =
      llvm::function_ref<SmallVector<Value>(Value index, ValueRange carried)>;
  SmallVector<Value> loop(Value lower, Value upper, Value step,
                          ValueRange initial, LoopBody body);
  /// A loop that neither LLVM nor ptxas unrolls.
  SmallVector<Value> loopRolled(Value lower, Value upper, Value step,
                                ValueRange initial, LoopBody body);

  //===--- Threads --------------------------------------------------------===//

  /// One thread of the converged warp runs `body`.
  void electOne(llvm::function_ref<void()> body);
  /// Barrier `id` (bar.sync) for `threads` threads.
  void namedBarrier(Value id, int64_t threads);
  void namedBarrierArrive(Value id, int64_t threads);
  /// An instruction that no op of the NVVM dialect stands for; `$0`... are the
  /// inputs. `predicate` may be null.
  void ptx(StringRef code, ValueRange inputs, Value predicate = {});
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_KERNELBUILDER_H
