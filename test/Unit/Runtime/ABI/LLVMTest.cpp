//===- LLVMTest.cpp - The runtime's structs and calls in LLVM IR ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/ABI/LLVM.h"
#include "llvm/IR/Verifier.h"
#include "gtest/gtest.h"

#include <cstddef>

using namespace mlir::fp8;

namespace {

/// As on every 64-bit machine: LLVM's default aligns i64 to 4 bytes.
const llvm::DataLayout kLayout("e-p:64:64-i64:64-f64:64");

TEST(LLVMTest, LaysStructsOutAsC) {
  llvm::LLVMContext context;
#define FP8RT_STRUCT(NAME, ALIGNMENT)                                          \
  {                                                                            \
    SCOPED_TRACE(#NAME);                                                       \
    using S = ::NAME;                                                          \
    auto *type = llvm::cast<llvm::StructType>(getLLVMType<S>(context));        \
    const llvm::StructLayout *layout = kLayout.getStructLayout(type);          \
    EXPECT_EQ(layout->getSizeInBytes(), sizeof(S));                            \
    unsigned numFields = 0;
#define FP8RT_FIELD(TYPE, NAME)                                                \
  EXPECT_EQ(runtime::Struct<S>::NAME.index, numFields);                        \
  EXPECT_EQ(layout->getElementOffset(numFields++), offsetof(S, NAME)) << #NAME;
#define FP8RT_END()                                                            \
  EXPECT_EQ(type->getNumElements(), numFields);                                \
  }
#include "fp8/Runtime/ABI.def"
}

TEST(LLVMTest, StructConstantIsZeroWhereNothingIsSet) {
  using Info = runtime::Struct<fp8rt_program_info>;
  llvm::LLVMContext context;
  llvm::Module module("test", context);
  auto *table = new llvm::GlobalVariable(
      module, llvm::Type::getInt8Ty(context), /*isConstant=*/true,
      llvm::GlobalValue::ExternalLinkage, /*Initializer=*/nullptr, "table");
  llvm::Constant *constant = StructConstant<fp8rt_program_info>(context)
                                 .set(Info::magic, FP8RT_PROGRAM_MAGIC)
                                 .set(Info::functions, table)
                                 .set(Info::num_slots, -3)
                                 .get();
  EXPECT_EQ(constant->getType(), getLLVMType<fp8rt_program_info>(context));
  EXPECT_EQ(llvm::cast<llvm::ConstantDataArray>(
                constant->getAggregateElement(Info::magic.index))
                ->getAsString(),
            llvm::StringRef("FP8PROG", 8));
  EXPECT_EQ(constant->getAggregateElement(Info::functions.index), table);
  EXPECT_EQ(llvm::cast<llvm::ConstantInt>(
                constant->getAggregateElement(Info::num_slots.index))
                ->getSExtValue(),
            -3);
  EXPECT_TRUE(
      constant->getAggregateElement(Info::version.index)->isNullValue());
  EXPECT_TRUE(
      constant->getAggregateElement(Info::manifest.index)->isNullValue());
}

TEST(LLVMTest, CallDeclaresOnce) {
  llvm::LLVMContext context;
  llvm::Module module("test", context);
  llvm::IRBuilder<> b(context);
  auto *function = llvm::Function::Create(
      llvm::FunctionType::get(b.getVoidTy(), /*isVarArg=*/false),
      llvm::GlobalValue::ExternalLinkage, "f", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", function));
  llvm::Value *null = llvm::Constant::getNullValue(b.getPtrTy());
  for (int i = 0; i < 2; ++i)
    createRuntimeCall(b, runtime::fp8rt_context_alloc, null, b.getInt64(8),
                      b.getInt32(0));
  b.CreateRetVoid();
  EXPECT_EQ(module.size(), 2u);
  EXPECT_EQ(module.getFunction("fp8rt_context_alloc")->getFunctionType(),
            llvm::FunctionType::get(
                b.getPtrTy(), {b.getPtrTy(), b.getInt64Ty(), b.getInt32Ty()},
                /*isVarArg=*/false));
  EXPECT_FALSE(llvm::verifyModule(module, &llvm::errs()));
}

} // namespace
