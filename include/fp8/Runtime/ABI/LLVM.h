//===- LLVM.h - Calls and structs of the runtime in LLVM IR -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What ABI.def says, for those who write LLVM IR, after MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_ABI_LLVM_H
#define FP8_RUNTIME_ABI_LLVM_H

#include "fp8/Runtime/ABI/Definition.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace mlir::fp8 {

/// Not `abi`, which <cxxabi.h> gives to the whole world.
namespace runtime = ::fp8rt::abi;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

template <class T>
llvm::Type *getLLVMType(llvm::LLVMContext &context);

namespace detail {
template <class... Ts>
llvm::StructType *getLLVMStructType(llvm::LLVMContext &context,
                                    runtime::Fields<void, Ts...>) {
  llvm::SmallVector<llvm::Type *> fields{getLLVMType<Ts>(context)...};
  return llvm::StructType::get(context, fields);
}
} // namespace detail

/// LLVM's type of a type of ABI.def.
template <class T>
llvm::Type *getLLVMType(llvm::LLVMContext &context) {
  if constexpr (std::is_void_v<T>)
    return llvm::Type::getVoidTy(context);
  else if constexpr (std::is_pointer_v<T>)
    return llvm::PointerType::getUnqual(context);
  else if constexpr (std::is_same_v<T, float>)
    return llvm::Type::getFloatTy(context);
  else if constexpr (std::is_same_v<T, double>)
    return llvm::Type::getDoubleTy(context);
  else if constexpr (std::is_integral_v<T>)
    return llvm::Type::getIntNTy(context, 8 * sizeof(T));
  else if constexpr (std::is_array_v<T>)
    return llvm::ArrayType::get(getLLVMType<std::remove_extent_t<T>>(context),
                                std::extent_v<T>);
  else
    return detail::getLLVMStructType(context,
                                     typename runtime::Layout<T>::Fields());
}

template <class R, class... Ps>
llvm::FunctionType *getLLVMType(llvm::LLVMContext &context,
                                runtime::Function<R(Ps...)>) {
  llvm::SmallVector<llvm::Type *> parameters{getLLVMType<Ps>(context)...};
  return llvm::FunctionType::get(getLLVMType<R>(context), parameters,
                                 /*isVarArg=*/false);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// A constant S, whose fields are zero where they are not set.
template <class S>
class StructConstant {
public:
  explicit StructConstant(llvm::LLVMContext &context)
      : context(context),
        type(llvm::cast<llvm::StructType>(getLLVMType<S>(context))) {
    for (llvm::Type *element : type->elements())
      fields.push_back(llvm::Constant::getNullValue(element));
  }

  /// Sets a pointer.
  template <class T>
  StructConstant &set(runtime::Field<S, T *> field, llvm::Constant *value) {
    fields[field.index] = value;
    return *this;
  }
  /// Sets a number.
  template <class T>
  StructConstant &set(runtime::Field<S, T> field,
                      std::enable_if_t<std::is_integral_v<T>, T> value) {
    fields[field.index] = llvm::ConstantInt::get(getLLVMType<T>(context), value,
                                                 std::is_signed_v<T>);
    return *this;
  }
  /// Sets a text, zeros and all.
  template <size_t size>
  StructConstant &set(runtime::Field<S, char[size]> field,
                      const char (&value)[size]) {
    fields[field.index] = llvm::ConstantDataArray::getString(
        context, llvm::StringRef(value, size), /*AddNull=*/false);
    return *this;
  }

  llvm::Constant *get() const {
    return llvm::ConstantStruct::get(type, fields);
  }

private:
  llvm::LLVMContext &context;
  llvm::StructType *type;
  llvm::SmallVector<llvm::Constant *> fields;
};

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Declares a function in the module of the builder, if need be, and calls it.
/// No other function of the module has its name.
template <class R, class... Ps, class... Values>
llvm::CallInst *createRuntimeCall(llvm::IRBuilderBase &b,
                                  runtime::Function<R(Ps...)> function,
                                  Values... arguments) {
  static_assert(sizeof...(Ps) == sizeof...(Values),
                "expected an argument for each parameter");
  llvm::FunctionCallee callee =
      b.GetInsertBlock()->getModule()->getOrInsertFunction(
          function.name, getLLVMType(b.getContext(), function));
  llvm::SmallVector<llvm::Value *> values{arguments...};
  return b.CreateCall(callee, values);
}

} // namespace mlir::fp8

#endif // FP8_RUNTIME_ABI_LLVM_H
