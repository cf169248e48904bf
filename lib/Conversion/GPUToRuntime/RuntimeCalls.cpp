//===- RuntimeCalls.cpp - Calls of the runtime's context ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// A private constant of several words, the fields of a struct, that `build`
/// makes.
static void
createStruct(OpBuilder &b, Location loc, StringRef name, ArrayRef<Type> types,
             llvm::function_ref<SmallVector<Value>(OpBuilder &)> build) {
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  auto global =
      LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true,
                             LLVM::Linkage::Internal, name, Attribute());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&global.getInitializer());
  Value value = LLVM::UndefOp::create(b, loc, type);
  for (auto [index, field] : llvm::enumerate(build(b)))
    value = LLVM::InsertValueOp::create(b, loc, value, field,
                                        static_cast<int64_t>(index));
  LLVM::ReturnOp::create(b, loc, value);
}

static void createBytes(OpBuilder &b, Location loc, StringRef name,
                        StringRef bytes, int64_t alignment) {
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true,
                         LLVM::Linkage::Internal, name, b.getStringAttr(bytes),
                         alignment);
}

KernelGlobals KernelGlobals::create(ModuleOp module) {
  KernelGlobals kernels;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto ptr = LLVM::LLVMPointerType::get(b.getContext());
  for (auto binary : module.getOps<gpu::BinaryOp>()) {
    Location loc = binary.getLoc();
    auto object = cast<gpu::ObjectAttr>(binary.getObjects()[0]);
    StringRef bytes = object.getObject().getValue();
    std::string image = (binary.getName() + "_image").str();
    auto addressOf = [&](OpBuilder &b, StringRef name) -> Value {
      return LLVM::AddressOfOp::create(b, loc, ptr, name);
    };
    createBytes(b, loc, image + "_data", bytes, /*alignment=*/64);
    createStruct(b, loc, image, {ptr, b.getI64Type()}, [&](OpBuilder &b) {
      Value size = LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                            b.getI64IntegerAttr(bytes.size()));
      return SmallVector<Value>{addressOf(b, image + "_data"), size};
    });
    if (!object.getKernels())
      continue;
    for (gpu::KernelMetadataAttr kernel : object.getKernels()) {
      KernelGlobal global{
          (binary.getName() + "_" + kernel.getName().getValue()).str(),
          kernel.getMetadata()};
      std::string text = kernel.getName().str() + '\0';
      createBytes(b, loc, global.name + "_name", text, /*alignment=*/1);
      createStruct(b, loc, global.name, {ptr, ptr}, [&](OpBuilder &b) {
        return SmallVector<Value>{addressOf(b, image),
                                  addressOf(b, global.name + "_name")};
      });
      auto symbol = SymbolRefAttr::get(
          binary.getNameAttr(), {FlatSymbolRefAttr::get(kernel.getName())});
      kernels.globals[symbol] = std::move(global);
    }
  }
  return kernels;
}

const KernelGlobal *KernelGlobals::lookup(SymbolRefAttr kernel) const {
  auto it = globals.find(kernel);
  return it == globals.end() ? nullptr : &it->second;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

RuntimeCalls::RuntimeCalls(OpBuilder &builder, Operation *op)
    : ImplicitLocOpBuilder(op->getLoc(), builder),
      function(op->getParentOfType<FunctionOpInterface>()),
      module(op->getParentOfType<ModuleOp>()) {}

Value RuntimeCalls::constant(Type type, int64_t value) {
  return LLVM::ConstantOp::create(*this, type, getIntegerAttr(type, value));
}

Value RuntimeCalls::narrow(Value value) {
  return LLVM::TruncOp::create(*this, getI32Type(), value);
}

Value RuntimeCalls::allocate(Type type, int64_t count, int64_t alignment) {
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(&function.getFunctionBody().front());
  return LLVM::AllocaOp::create(*this, getPtrType(), type, i64(count),
                                alignment);
}

void RuntimeCalls::storeField(Type type, Value ptr, ArrayRef<int32_t> index,
                              Value value) {
  SmallVector<LLVM::GEPArg> path{0};
  path.append(index.begin(), index.end());
  Value field = LLVM::GEPOp::create(*this, getPtrType(), type, ptr, path);
  LLVM::StoreOp::create(*this, value, field);
}

Value RuntimeCalls::call(StringRef name, Type resultType,
                         ValueRange arguments) {
  SmallVector<Value> operands{function.getArguments().back()};
  llvm::append_range(operands, arguments);
  if (!resultType)
    resultType = LLVM::LLVMVoidType::get(getContext());
  std::string symbol = ("fp8rt_context_" + name).str();
  auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
  if (!callee) {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(module.getBody());
    callee = LLVM::LLVMFuncOp::create(
        *this, symbol,
        LLVM::LLVMFunctionType::get(
            resultType, SmallVector<Type>(ValueRange(operands).getTypes())));
  }
  auto call = LLVM::CallOp::create(*this, callee, operands);
  return call.getNumResults() ? call.getResult() : Value();
}

Value RuntimeCalls::text(const Twine &text) {
  std::string bytes = text.str() + '\0', name;
  unsigned number = 0;
  LLVM::GlobalOp existing;
  do {
    name = "fp8_text_" + std::to_string(number++);
    existing = module.lookupSymbol<LLVM::GlobalOp>(name);
  } while (existing &&
           existing.getValueAttr() != StringAttr::get(getContext(), bytes));
  if (!existing) {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(module.getBody());
    createBytes(*this, getLoc(), name, bytes, /*alignment=*/1);
  }
  return LLVM::AddressOfOp::create(*this, getPtrType(), name);
}

void RuntimeCalls::require(Value condition, const Twine &message) {
  Value flag = LLVM::ZExtOp::create(*this, getI32Type(), condition);
  call("require", Type(), {flag, text(message)});
}

void RuntimeCalls::launch(const KernelGlobal &kernel, ArrayRef<Value> grid,
                          ArrayRef<Value> block, Value dynamicSmem,
                          int32_t flags, ArrayRef<Value> params) {
  // fp8rt_launch_config: grid, block, cluster, shared memory, flags.
  auto configType = LLVM::LLVMArrayType::get(getI32Type(), 11);
  Value config = allocate(configType);
  SmallVector<Value> fields(grid);
  llvm::append_range(fields, block);
  // The cluster that the kernel was compiled with, or none.
  fields.append(3, i32(0));
  fields.append({dynamicSmem, i32(flags)});
  for (auto [index, field] : llvm::enumerate(fields))
    storeField(configType, config, {static_cast<int32_t>(index)}, field);

  auto pointersType = LLVM::LLVMArrayType::get(getPtrType(), params.size());
  Value pointers = allocate(pointersType);
  for (auto [index, param] : llvm::enumerate(params))
    storeField(pointersType, pointers, {static_cast<int32_t>(index)}, param);
  Value address = LLVM::AddressOfOp::create(*this, getPtrType(), kernel.name);
  call("launch", Type(), {address, config, pointers});
}
