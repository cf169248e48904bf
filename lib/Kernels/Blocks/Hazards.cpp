//===- Hazards.cpp - What LLVM must be told about asynchronous code -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hazards.h"

using namespace mlir;
using namespace mlir::fp8;

/// PTX's constraint letter for a register of `type`.
static char getConstraint(Type type) {
  if (type.isF32())
    return 'f';
  return type.isInteger(16) ? 'h' : 'r';
}

SmallVector<Value> fp8::tieRegisters(KernelBuilder &b, StringRef code,
                                     ValueRange values) {
  // "=f,=f,...,0,1,...": output i and input i share a register.
  std::string constraints;
  llvm::raw_string_ostream os(constraints);
  for (auto [i, value] : llvm::enumerate(values))
    os << (i ? ",=" : "=") << getConstraint(value.getType());
  for (size_t i = 0; i < values.size(); ++i)
    os << ',' << i;
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(values.getTypes()));
  auto assembly = LLVM::InlineAsmOp::create(
      b, type, values, code, constraints, /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  SmallVector<Value> results;
  for (size_t i = 0; i < values.size(); ++i)
    results.push_back(
        LLVM::ExtractValueOp::create(b, assembly.getRes(), int64_t(i)));
  return results;
}

SmallVector<Value> fp8::pinHere(KernelBuilder &b, ValueRange values) {
  return tieRegisters(b, "", values);
}

Value fp8::launder(KernelBuilder &b, Value value) {
  auto copy = NVVM::InlinePtxOp::create(
      b, TypeRange(value.getType()), value, ValueRange(),
      b.getStringAttr("mov.b32 {$w0}, {$r0};"), /*predicate=*/Value());
  return copy.getResult(0);
}
