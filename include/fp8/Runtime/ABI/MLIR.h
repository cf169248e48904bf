//===- MLIR.h - Calls and structs of the runtime in MLIR --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What ABI.def says, as types and operations of the llvm dialect; and for
// passes above it, as functions of the func dialect. The number of a call's
// arguments is checked when the pass is compiled, their types by the verifier.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_ABI_MLIR_H
#define FP8_RUNTIME_ABI_MLIR_H

#include "fp8/Runtime/ABI/Definition.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fp8 {

/// Not `abi`, which <cxxabi.h> gives to the whole world.
namespace runtime = ::fp8rt::abi;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

template <class T>
Type getLLVMType(MLIRContext *context);

namespace detail {
template <class... Ts>
Type getLLVMStructType(MLIRContext *context, runtime::Fields<void, Ts...>) {
  SmallVector<Type> fields{getLLVMType<Ts>(context)...};
  return LLVM::LLVMStructType::getLiteral(context, fields);
}
} // namespace detail

/// The llvm dialect's type of a type of ABI.def.
template <class T>
Type getLLVMType(MLIRContext *context) {
  if constexpr (std::is_void_v<T>)
    return LLVM::LLVMVoidType::get(context);
  else if constexpr (std::is_pointer_v<T>)
    return LLVM::LLVMPointerType::get(context);
  else if constexpr (std::is_same_v<T, float>)
    return Float32Type::get(context);
  else if constexpr (std::is_same_v<T, double>)
    return Float64Type::get(context);
  else if constexpr (std::is_integral_v<T>)
    return IntegerType::get(context, 8 * sizeof(T));
  else if constexpr (std::is_array_v<T>)
    return LLVM::LLVMArrayType::get(
        getLLVMType<std::remove_extent_t<T>>(context), std::extent_v<T>);
  else
    return detail::getLLVMStructType(context,
                                     typename runtime::Layout<T>::Fields());
}

template <class R, class... Ps>
LLVM::LLVMFunctionType getLLVMType(MLIRContext *context,
                                   runtime::Function<R(Ps...)>) {
  SmallVector<Type> parameters{getLLVMType<Ps>(context)...};
  return LLVM::LLVMFunctionType::get(getLLVMType<R>(context), parameters);
}

//===----------------------------------------------------------------------===//
// Structs
//===----------------------------------------------------------------------===//

/// The address of a field of the S that `object` points to.
template <class S, class T>
Value getFieldAddress(ImplicitLocOpBuilder &b, Value object,
                      runtime::Field<S, T> field) {
  SmallVector<LLVM::GEPArg> path{0, static_cast<int32_t>(field.index)};
  if (field.element >= 0)
    path.push_back(field.element);
  return LLVM::GEPOp::create(b, getLLVMType<void *>(b.getContext()),
                             getLLVMType<S>(b.getContext()), object, path);
}

template <class S, class T>
Value loadField(ImplicitLocOpBuilder &b, Value object,
                runtime::Field<S, T> field) {
  return LLVM::LoadOp::create(b, getLLVMType<T>(b.getContext()),
                              getFieldAddress(b, object, field));
}

template <class S, class T>
void storeField(ImplicitLocOpBuilder &b, Value object,
                runtime::Field<S, T> field, Value value) {
  LLVM::StoreOp::create(b, value, getFieldAddress(b, object, field));
}

/// The S that `object` is, with another value of a field.
template <class S, class T>
Value insertField(ImplicitLocOpBuilder &b, Value object,
                  runtime::Field<S, T> field, Value value) {
  SmallVector<int64_t> path{field.index};
  if (field.element >= 0)
    path.push_back(field.element);
  return LLVM::InsertValueOp::create(b, object, value, path);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace detail {
LogicalResult verifyRuntimeSymbol(ModuleOp module, StringRef name,
                                  LLVM::LLVMFunctionType type);
Value createRuntimeCall(ImplicitLocOpBuilder &b, StringRef name,
                        LLVM::LLVMFunctionType type, ValueRange arguments);
FailureOr<func::FuncOp> declareRuntimeFunction(OpBuilder &b, Operation *op,
                                               StringRef name,
                                               TypeRange parameters);

/// A memref for a pointer to the descriptor of one, else a scalar.
template <class T>
Type getBuiltinType(MLIRContext *context) {
  if constexpr (std::is_pointer_v<T>) {
    using MemRef = runtime::MemRef<std::remove_cv_t<std::remove_pointer_t<T>>>;
    SmallVector<int64_t> dynamic(MemRef::rank, ShapedType::kDynamic);
    return MemRefType::get(
        dynamic, getLLVMType<typename MemRef::Element>(context),
        StridedLayoutAttr::get(context, ShapedType::kDynamic, dynamic));
  } else {
    static_assert(std::is_arithmetic_v<T>, "expected a scalar");
    return getLLVMType<T>(context);
  }
}
} // namespace detail

/// Fails, with an error, if a symbol of the module has the name of a function
/// and is not its declaration in the llvm dialect: a program can have it.
template <class F>
LogicalResult verifyRuntimeSymbol(ModuleOp module,
                                  runtime::Function<F> function) {
  return detail::verifyRuntimeSymbol(
      module, function.name, getLLVMType(module.getContext(), function));
}

/// Calls a function, whose name has been verified, at the place of the builder;
/// returns its result, if it has one.
template <class R, class... Ps, class... Values>
Value createRuntimeCall(ImplicitLocOpBuilder &b,
                        runtime::Function<R(Ps...)> function,
                        Values... arguments) {
  static_assert(sizeof...(Ps) == sizeof...(Values),
                "expected an argument for each parameter");
  SmallVector<Value> values{arguments...};
  return detail::createRuntimeCall(
      b, function.name, getLLVMType(b.getContext(), function), values);
}

/// Declares a function for func.call, beside the function that `op` is in:
/// memrefs, which go through MLIR's C interface, stand for pointers to their
/// descriptors. Fails if a symbol that is something else has the name.
template <class... Ps>
FailureOr<func::FuncOp>
declareRuntimeFunction(OpBuilder &b, Operation *op,
                       runtime::Function<void(Ps...)> function) {
  SmallVector<Type> parameters{detail::getBuiltinType<Ps>(b.getContext())...};
  return detail::declareRuntimeFunction(b, op, function.name, parameters);
}

} // namespace mlir::fp8

#endif // FP8_RUNTIME_ABI_MLIR_H
