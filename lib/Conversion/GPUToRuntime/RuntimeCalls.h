//===- RuntimeCalls.h - Calls of the runtime's context ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_GPUTORUNTIME_RUNTIMECALLS_H
#define FP8_LIB_CONVERSION_GPUTORUNTIME_RUNTIMECALLS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir {
class LLVMTypeConverter;
class RewritePatternSet;
} // namespace mlir

namespace mlir::fp8 {

/// A kernel of a gpu.binary: the fp8rt_program_kernel in the host's module, and
/// what its builder said of it.
struct KernelGlobal {
  std::string name;
  DictionaryAttr metadata;
};

/// The kernels of a module, by @binary::@kernel.
class KernelGlobals {
public:
  /// Makes constants of all gpu.binary ops, and of their kernels.
  static KernelGlobals create(ModuleOp module);

  /// Null if there is no such kernel.
  const KernelGlobal *lookup(SymbolRefAttr kernel) const;

private:
  llvm::DenseMap<Attribute, KernelGlobal> globals;
};

/// Builds calls of fp8rt_context_* (fp8/Runtime/Context.h) at one place.
class RuntimeCalls : public ImplicitLocOpBuilder {
public:
  /// In front of `op`, in a function whose last argument is the context.
  RuntimeCalls(OpBuilder &builder, Operation *op);

  Value i32(int64_t value) { return constant(getI32Type(), value); }
  Value i64(int64_t value) { return constant(getI64Type(), value); }
  Value narrow(Value value); /* to i32 */
  LLVM::LLVMPointerType getPtrType() {
    return LLVM::LLVMPointerType::get(getContext());
  }

  /// Memory in the frame of the function, so that loops do not add to it.
  Value allocate(Type type, int64_t count = 1, int64_t alignment = 0);
  /// Stores to field `index` of the struct, or array, of that type at `ptr`.
  void storeField(Type type, Value ptr, ArrayRef<int32_t> index, Value value);

  /// fp8rt_context_NAME(context, arguments...).
  Value call(StringRef name, Type resultType, ValueRange arguments);
  /// The address of a constant that ends in a NUL.
  Value text(const Twine &text);
  void require(Value condition, const Twine &message);
  /// `flags` as in fp8rt_launch_config.
  void launch(const KernelGlobal &kernel, ArrayRef<Value> grid,
              ArrayRef<Value> block, Value dynamicSmem, int32_t flags,
              ArrayRef<Value> params);

private:
  Value constant(Type type, int64_t value);

  FunctionOpInterface function;
  ModuleOp module;
};

void populateLaunchMatmulPatterns(const LLVMTypeConverter &converter,
                                  const KernelGlobals &kernels,
                                  RewritePatternSet &patterns);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_GPUTORUNTIME_RUNTIMECALLS_H
