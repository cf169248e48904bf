//===- RuntimeCalls.h - Calls of the runtime's context ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_GPUTORUNTIME_RUNTIMECALLS_H
#define FP8_LIB_CONVERSION_GPUTORUNTIME_RUNTIMECALLS_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "fp8/Runtime/ABI/MLIR.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir {
class LLVMTypeConverter;
class RewritePatternSet;
} // namespace mlir

namespace mlir::fp8 {

/// A kernel of a gpu.binary: the fp8rt_program_kernel in the host's module, and
/// its launch, if it is described.
struct KernelGlobal {
  std::string name;
  LaunchAttr launch;
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

/// Constants of a module that end in a NUL, one for each text. A symbol is
/// looked for in all of a module: who makes many texts keeps this.
class RuntimeTexts {
public:
  explicit RuntimeTexts(ModuleOp module);

  /// The name of the constant, which is made if there is none.
  StringAttr get(OpBuilder &b, Location loc, const Twine &text);

private:
  static constexpr StringLiteral kPrefix = "fp8_text_";

  ModuleOp module;
  SymbolTable symbols;
  DenseMap<StringAttr, StringAttr> names;
  unsigned number = 0;
};

/// Fails, with an error, if a symbol has the name of a function that takes a
/// context and is something else.
LogicalResult verifyRuntimeSymbols(ModuleOp module);

/// Builds calls of functions that take a context (fp8/Runtime/Context.h) at one
/// place, in a module whose symbols are verified.
class RuntimeCalls : public ImplicitLocOpBuilder {
public:
  /// In front of `op`, in a function whose last argument is the context.
  RuntimeCalls(OpBuilder &builder, Operation *op);

  Value i32(int64_t value) { return constant(getI32Type(), value); }
  Value i64(int64_t value) { return constant(getI64Type(), value); }
  Value narrow(Value value); /* to i32 */
  Type getPtrType() { return getLLVMType<void *>(getContext()); }

  /// Memory in the frame of the function, so that loops do not add to it.
  Value allocate(Type type, int64_t alignment = 0, int64_t count = 1);
  /// The same for a struct of the runtime, or so many of them.
  template <class S>
  Value allocate(int64_t count = 1) {
    return allocate(getLLVMType<S>(getContext()), runtime::Layout<S>::alignment,
                    count);
  }

  /// Calls a function with the context in front of the arguments.
  template <class R, class... Ps, class... Values>
  Value call(runtime::Function<R(fp8rt_context *, Ps...)> callee,
             Values... arguments) {
    return createRuntimeCall(*this, callee, Value(getContextArgument()),
                             arguments...);
  }
  /// The address of a constant that ends in a NUL.
  Value text(RuntimeTexts &texts, const Twine &text);
  void require(RuntimeTexts &texts, Value condition, const Twine &message);
  /// `flags` as in fp8rt_launch_config.
  void launch(const KernelGlobal &kernel, ArrayRef<Value> grid,
              ArrayRef<Value> block, Value dynamicSmem, int32_t flags,
              ArrayRef<Value> params);
  /// A kernel whose launch is described: `arguments` is an array of
  /// fp8rt_kernel_argument.
  void launchKernel(const KernelGlobal &kernel, Value arguments,
                    ValueRange captures);

private:
  /// Pointers to the values, in an array in the frame.
  Value storePointers(ValueRange pointers);
  Value constant(Type type, int64_t value);
  BlockArgument getContextArgument() { return function.getArguments().back(); }

  FunctionOpInterface function;
};

void populateLaunchKernelPatterns(const LLVMTypeConverter &converter,
                                  const KernelGlobals &kernels,
                                  RewritePatternSet &patterns);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_GPUTORUNTIME_RUNTIMECALLS_H
