//===- CPUEngineTest.cpp - Compiling and running here ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/CPU/Engine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
class CPUEngineTest : public testing::Test {
protected:
  CPUEngineTest() {
    context.loadDialect<LLVM::LLVMDialect, arith::ArithDialect>();
  }

  llvm::Expected<std::unique_ptr<CPUEngine>> create(StringRef source) {
    module = parseSourceString<ModuleOp>(source, &context);
    return CPUEngine::create(*module);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

TEST_F(CPUEngineTest, CallsThroughPointersToArguments) {
  auto engine = create(R"mlir(
    llvm.func @_mlir_ciface_add(%x: f64, %y: f64) -> f64 {
      %sum = llvm.fadd %x, %y : f64
      llvm.return %sum : f64
    })mlir");
  ASSERT_TRUE(bool(engine)) << llvm::toString(engine.takeError());
  auto add = (*engine)->lookup("add");
  ASSERT_TRUE(bool(add)) << llvm::toString(add.takeError());
  double x = 1.5, y = 2.25, sum = 0;
  void *arguments[] = {&x, &y, &sum};
  (*add)(arguments);
  EXPECT_EQ(sum, 3.75);
}

TEST_F(CPUEngineTest, RefusesOtherDialects) {
  auto engine = create(R"mlir(
    llvm.func @f() -> i32 {
      %c = arith.constant 1 : i32
      llvm.return %c : i32
    })mlir");
  ASSERT_FALSE(bool(engine));
  EXPECT_EQ(llvm::toString(engine.takeError()),
            "expected only operations of the LLVM dialect, but got "
            "'arith.constant'");
}

TEST_F(CPUEngineTest, NamesAMissingFunction) {
  auto engine = create(R"mlir(
    llvm.func @nowhere_defined()
    llvm.func @f() {
      llvm.call @nowhere_defined() : () -> ()
      llvm.return
    })mlir");
  ASSERT_FALSE(bool(engine));
  EXPECT_EQ(llvm::toString(engine.takeError()),
            "expected function 'nowhere_defined' to be defined in the program "
            "or the runtime, but it is neither");
}

TEST_F(CPUEngineTest, RefusesToLookUpAnUnknownName) {
  auto engine = create("llvm.func @f() { llvm.return }");
  ASSERT_TRUE(bool(engine)) << llvm::toString(engine.takeError());
  auto function = (*engine)->lookup("g");
  ASSERT_FALSE(bool(function));
  EXPECT_NE(llvm::toString(function.takeError()).find("_mlir_ciface_g"),
            std::string::npos);
}
