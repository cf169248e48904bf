//===- MLIRTest.cpp - The runtime's structs and calls in MLIR -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/ABI/MLIR.h"
#include "fp8/Runtime/ABI/LLVM.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/TypeToLLVM.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// A module with a function, at whose end things are built.
class MLIRTest : public testing::Test {
protected:
  MLIRTest() {
    context.loadDialect<func::FuncDialect, LLVM::LLVMDialect>();
    context.getDiagEngine().registerHandler(
        [this](Diagnostic &diagnostic) { error += diagnostic.str(); });
    b.setInsertionPointToStart(module->getBody());
    Type ptr = getLLVMType<void *>(&context);
    auto function = func::FuncOp::create(
        b, "f", b.getFunctionType({ptr, b.getI32Type(), b.getI64Type()}, {}));
    b.setInsertionPointToStart(function.addEntryBlock());
    func::ReturnOp::create(b);
    b.setInsertionPointToStart(&function.front());
    pointer = function.getArgument(0);
    i32 = function.getArgument(1);
    i64 = function.getArgument(2);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  ImplicitLocOpBuilder b{UnknownLoc::get(&context), &context};
  Value pointer, i32, i64;
  std::string error;
};

TEST_F(MLIRTest, TypesAreThoseOfLLVM) {
  llvm::LLVMContext llvmContext;
  LLVM::TypeToLLVMIRTranslator translator(llvmContext);
#define FP8RT_STRUCT(NAME, ALIGNMENT)                                          \
  EXPECT_EQ(translator.translateType(getLLVMType<::NAME>(&context)),           \
            getLLVMType<::NAME>(llvmContext))                                  \
      << #NAME;
#define FP8RT_FUNCTION(RESULT, NAME, PARAMETERS)                               \
  EXPECT_EQ(translator.translateType(getLLVMType(&context, runtime::NAME)),    \
            getLLVMType(llvmContext, runtime::NAME))                           \
      << #NAME;
#include "fp8/Runtime/ABI.def"
}

TEST_F(MLIRTest, CallDeclaresOnce) {
  Value result =
      createRuntimeCall(b, runtime::fp8rt_context_alloc, pointer, i64, i32);
  createRuntimeCall(b, runtime::fp8rt_context_alloc, pointer, i64, i32);
  EXPECT_EQ(result.getType(), pointer.getType());
  EXPECT_FALSE(
      createRuntimeCall(b, runtime::fp8rt_context_free, pointer, result));
  EXPECT_TRUE(succeeded(verify(*module))) << error;
  auto declarations = module->getOps<LLVM::LLVMFuncOp>();
  EXPECT_EQ(std::distance(declarations.begin(), declarations.end()), 2);
  EXPECT_TRUE(
      succeeded(verifyRuntimeSymbol(*module, runtime::fp8rt_context_alloc)));
}

TEST_F(MLIRTest, ArgumentsOfOtherTypesDoNotVerify) {
  createRuntimeCall(b, runtime::fp8rt_context_alloc, pointer, i32, i64);
  EXPECT_TRUE(failed(verify(*module)));
  EXPECT_NE(error.find("operand type mismatch for operand 1: 'i32' != 'i64'"),
            std::string::npos)
      << error;
}

TEST_F(MLIRTest, NamesOfOthersAreFound) {
  b.setInsertionPointToStart(module->getBody());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&context),
                                          {b.getF32Type()});
  LLVM::LLVMFuncOp::create(b, runtime::fp8rt_context_free.name, type);
  EXPECT_TRUE(
      succeeded(verifyRuntimeSymbol(*module, runtime::fp8rt_context_alloc)));
  EXPECT_TRUE(
      failed(verifyRuntimeSymbol(*module, runtime::fp8rt_context_free)));
  EXPECT_EQ(error, "expected 'fp8rt_context_free' to be the runtime's "
                   "function, '!llvm.func<void (ptr, ptr)>'");
}

TEST_F(MLIRTest, FieldsHaveTheirTypesAndPlaces) {
  using Config = runtime::Struct<fp8rt_launch_config>;
  auto getPath = [](Value address) {
    return SmallVector<int32_t>(
        address.getDefiningOp<LLVM::GEPOp>().getRawConstantIndices());
  };
  EXPECT_EQ(loadField(b, pointer, Config::flags).getType(), b.getI32Type());
  EXPECT_EQ(loadField(b, pointer, Config::grid).getType(),
            LLVM::LLVMArrayType::get(b.getI32Type(), 3));
  EXPECT_EQ(loadField(b, pointer, Config::grid[2]).getType(), b.getI32Type());
  EXPECT_EQ(getPath(getFieldAddress(b, pointer, Config::flags)),
            (SmallVector<int32_t>{0, 5}));
  EXPECT_EQ(getPath(getFieldAddress(b, pointer, Config::cluster[1])),
            (SmallVector<int32_t>{0, 3, 1}));
  storeField(b, pointer, Config::block[0], i32);
  Value config =
      LLVM::UndefOp::create(b, getLLVMType<fp8rt_launch_config>(&context));
  insertField(b, config, Config::block[0], i32);
  EXPECT_TRUE(succeeded(verify(*module))) << error;
}

TEST_F(MLIRTest, FunctionOfTheFuncDialect) {
  Operation *op = b.getInsertionBlock()->getTerminator();
  FailureOr<func::FuncOp> gemm =
      declareRuntimeFunction(b, op, runtime::_mlir_ciface_fp8rt_gemm_f32);
  ASSERT_TRUE(succeeded(gemm));
  EXPECT_EQ(gemm->getSymName(), "fp8rt_gemm_f32");
  EXPECT_TRUE((*gemm)->hasAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName()));
  FailureOr<func::FuncOp> record =
      declareRuntimeFunction(b, op, runtime::fp8rt_stats_record);
  ASSERT_TRUE(succeeded(record));
  EXPECT_FALSE(
      (*record)->hasAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName()));
  EXPECT_EQ(*declareRuntimeFunction(b, op, runtime::fp8rt_stats_record),
            *record);
  EXPECT_TRUE(succeeded(verify(*module))) << error;
}

} // namespace
