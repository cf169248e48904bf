//===- LoadedObjectTest.cpp - Objects linked into the process -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/CPU/LoadedObject.h"
#include "fp8/Target/CPU/Object.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

#include <list>
#include <string>

using namespace mlir;
using namespace mlir::fp8;

namespace {
class LoadedObjectTest : public testing::Test {
protected:
  LoadedObjectTest() { context.loadDialect<LLVM::LLVMDialect>(); }

  /// Loads what `source` compiles to.
  std::unique_ptr<LoadedObject> load(StringRef source) {
    auto module = parseSourceString<ModuleOp>(source, &context);
    auto object = emitObject(*module);
    EXPECT_TRUE(bool(object)) << llvm::toString(object.takeError());
    auto loaded = LoadedObject::load(objects.emplace_back(std::move(*object)));
    EXPECT_TRUE(bool(loaded)) << llvm::toString(loaded.takeError());
    return std::move(*loaded);
  }

  MLIRContext context;
  std::list<std::string> objects;
};
} // namespace

TEST_F(LoadedObjectTest, CallsWhatTheProcessHas) {
  auto object = load(R"mlir(
    llvm.func @hypot(f64, f64) -> f64
    llvm.func @length(%x: f64, %y: f64) -> f64 {
      %length = llvm.call @hypot(%x, %y) : (f64, f64) -> f64
      llvm.return %length : f64
    })mlir");
  auto length = object->lookup("length");
  ASSERT_TRUE(bool(length)) << llvm::toString(length.takeError());
  EXPECT_EQ(reinterpret_cast<double (*)(double, double)>(*length)(3, 4), 5);
}

TEST_F(LoadedObjectTest, HoldsConstantsOfAnySize) {
  // Beyond what is near: the code model has another section for it.
  auto object = load(R"mlir(
    llvm.mlir.global private constant @large(dense<7> : tensor<65536xi32>) : !llvm.array<65536 x i32>
    llvm.func @get(%i: i64) -> i32 {
      %base = llvm.mlir.addressof @large : !llvm.ptr
      %place = llvm.getelementptr %base[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i32
      %value = llvm.load volatile %place : !llvm.ptr -> i32
      llvm.return %value : i32
    })mlir");
  auto get = object->lookup("get");
  ASSERT_TRUE(bool(get)) << llvm::toString(get.takeError());
  EXPECT_EQ(reinterpret_cast<int32_t (*)(int64_t)>(*get)(65535), 7);
}

TEST_F(LoadedObjectTest, KeepsSymbolsToItself) {
  auto one = load("llvm.func @f() -> i32 {\n"
                  "  %c = llvm.mlir.constant(1 : i32) : i32\n"
                  "  llvm.return %c : i32\n"
                  "}");
  auto two = load("llvm.func @f() -> i32 {\n"
                  "  %c = llvm.mlir.constant(2 : i32) : i32\n"
                  "  llvm.return %c : i32\n"
                  "}");
  auto f = one->lookup("f"), g = two->lookup("f");
  ASSERT_TRUE(f && g);
  EXPECT_EQ(reinterpret_cast<int32_t (*)()>(*f)(), 1);
  EXPECT_EQ(reinterpret_cast<int32_t (*)()>(*g)(), 2);
}

TEST_F(LoadedObjectTest, NamesASymbolThatIsNotThere) {
  auto object = load("llvm.func @f() { llvm.return }");
  auto symbol = object->lookup("g");
  ASSERT_FALSE(bool(symbol));
  EXPECT_NE(llvm::toString(symbol.takeError()).find("g"), std::string::npos);
}

TEST_F(LoadedObjectTest, RefusesWhatIsNoObject) {
  auto object = LoadedObject::load(std::string("neither ELF nor anything"));
  if (object) {
    auto symbol = (*object)->lookup("f");
    EXPECT_FALSE(bool(symbol));
    llvm::consumeError(symbol.takeError());
  } else {
    llvm::consumeError(object.takeError());
  }
}
