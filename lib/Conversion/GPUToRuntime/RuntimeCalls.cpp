//===- RuntimeCalls.cpp - Calls of the runtime's context ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"
#include "fp8/GPU/IR/LaunchJSON.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// A private constant that `build` makes of an undefined one.
template <class S>
static void
createStruct(OpBuilder &builder, Location loc, StringRef name,
             function_ref<Value(ImplicitLocOpBuilder &, Value)> build) {
  ImplicitLocOpBuilder b(loc, builder);
  Type type = getLLVMType<S>(b.getContext());
  auto global = LLVM::GlobalOp::create(
      b, type, /*isConstant=*/true, LLVM::Linkage::Internal, name, Attribute());
  b.createBlock(&global.getInitializer());
  LLVM::ReturnOp::create(b, build(b, LLVM::UndefOp::create(b, type)));
}

static void createBytes(OpBuilder &b, Location loc, StringRef name,
                        StringRef bytes, int64_t alignment) {
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true,
                         LLVM::Linkage::Internal, name, b.getStringAttr(bytes),
                         alignment);
}

KernelGlobals KernelGlobals::create(ModuleOp module) {
  using Image = runtime::Struct<fp8rt_program_image>;
  using Kernel = runtime::Struct<fp8rt_program_kernel>;
  KernelGlobals kernels;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto addressOf = [](ImplicitLocOpBuilder &b, StringRef name) -> Value {
    return LLVM::AddressOfOp::create(b, getLLVMType<void *>(b.getContext()),
                                     name);
  };
  for (auto binary : module.getOps<gpu::BinaryOp>()) {
    Location loc = binary.getLoc();
    auto object = cast<gpu::ObjectAttr>(binary.getObjects()[0]);
    StringRef bytes = object.getObject().getValue();
    std::string image = (binary.getName() + "_image").str();
    createBytes(b, loc, image + "_data", bytes, /*alignment=*/64);
    createStruct<fp8rt_program_image>(
        b, loc, image, [&](ImplicitLocOpBuilder &b, Value value) {
          Value size = LLVM::ConstantOp::create(
              b, b.getI64Type(), b.getI64IntegerAttr(bytes.size()));
          value =
              insertField(b, value, Image::data, addressOf(b, image + "_data"));
          return insertField(b, value, Image::size, size);
        });
    if (!object.getKernels())
      continue;
    for (gpu::KernelMetadataAttr kernel : object.getKernels()) {
      DictionaryAttr metadata = kernel.getMetadata();
      KernelGlobal global{
          (binary.getName() + "_" + kernel.getName().getValue()).str(),
          metadata ? metadata.getAs<LaunchAttr>(kLaunchAttrName)
                   : LaunchAttr()};
      auto createText = [&](const Twine &suffix, StringRef text) {
        std::string name = (global.name + suffix).str();
        createBytes(b, loc, name, text.str() + '\0', /*alignment=*/1);
        return name;
      };
      std::string name = createText("_name", kernel.getName()), launch;
      if (global.launch)
        launch = createText("_launch", getLaunchJSON(global.launch));
      createStruct<fp8rt_program_kernel>(
          b, loc, global.name, [&](ImplicitLocOpBuilder &b, Value value) {
            Value none = LLVM::ZeroOp::create(
                b, getLLVMType<const char *>(b.getContext()));
            value = insertField(b, value, Kernel::image, addressOf(b, image));
            value = insertField(b, value, Kernel::name, addressOf(b, name));
            return insertField(b, value, Kernel::launch,
                               launch.empty() ? none : addressOf(b, launch));
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
// Texts
//===----------------------------------------------------------------------===//

RuntimeTexts::RuntimeTexts(ModuleOp module) : module(module), symbols(module) {
  for (auto global : module.getOps<LLVM::GlobalOp>())
    if (global.getName().starts_with(kPrefix))
      if (auto bytes = dyn_cast_if_present<StringAttr>(global.getValueAttr()))
        names.try_emplace(bytes, global.getNameAttr());
}

StringAttr RuntimeTexts::get(OpBuilder &b, Location loc, const Twine &text) {
  StringAttr &name = names[b.getStringAttr(text + Twine('\0'))];
  if (name)
    return name;
  std::string candidate;
  do
    candidate = (kPrefix + Twine(number++)).str();
  while (symbols.lookup(candidate));
  name = b.getStringAttr(candidate);
  OpBuilder::InsertionGuard guard(b);
  // Declarations are in front, where they are found soon.
  b.setInsertionPointToEnd(module.getBody());
  createBytes(b, loc, candidate, text.str() + '\0', /*alignment=*/1);
  return name;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

template <class R, class... Ps>
static LogicalResult
verify(ModuleOp module, runtime::Function<R(fp8rt_context *, Ps...)> function) {
  return verifyRuntimeSymbol(module, function);
}
template <class F>
static LogicalResult verify(ModuleOp, runtime::Function<F>) {
  return success();
}

LogicalResult fp8::verifyRuntimeSymbols(ModuleOp module) {
#define FP8RT_FUNCTION(RESULT, NAME, PARAMETERS)                               \
  if (failed(verify(module, runtime::NAME)))                                   \
    return failure();
#include "fp8/Runtime/ABI.def"
  return success();
}

RuntimeCalls::RuntimeCalls(OpBuilder &builder, Operation *op)
    : ImplicitLocOpBuilder(op->getLoc(), builder),
      function(op->getParentOfType<FunctionOpInterface>()) {}

Value RuntimeCalls::constant(Type type, int64_t value) {
  return LLVM::ConstantOp::create(*this, type, getIntegerAttr(type, value));
}

Value RuntimeCalls::narrow(Value value) {
  return LLVM::TruncOp::create(*this, getI32Type(), value);
}

Value RuntimeCalls::allocate(Type type, int64_t alignment, int64_t count) {
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(&function.getFunctionBody().front());
  return LLVM::AllocaOp::create(*this, getPtrType(), type, i64(count),
                                alignment);
}

Value RuntimeCalls::text(RuntimeTexts &texts, const Twine &text) {
  return LLVM::AddressOfOp::create(*this, getPtrType(),
                                   texts.get(*this, getLoc(), text));
}

void RuntimeCalls::require(RuntimeTexts &texts, Value condition,
                           const Twine &message) {
  Value flag = LLVM::ZExtOp::create(*this, getI32Type(), condition);
  call(runtime::fp8rt_context_require, flag, text(texts, message));
}

void RuntimeCalls::launch(const KernelGlobal &kernel, ArrayRef<Value> grid,
                          ArrayRef<Value> block, Value dynamicSmem,
                          int32_t flags, ArrayRef<Value> params) {
  using Config = runtime::Struct<fp8rt_launch_config>;
  Value config = allocate<fp8rt_launch_config>();
  storeField(*this, config, Config::struct_size,
             i32(sizeof(fp8rt_launch_config)));
  for (unsigned dim = 0; dim < 3; ++dim) {
    storeField(*this, config, Config::grid[dim], grid[dim]);
    storeField(*this, config, Config::block[dim], block[dim]);
    // The cluster that the kernel was compiled with, or none.
    storeField(*this, config, Config::cluster[dim], i32(0));
  }
  storeField(*this, config, Config::dynamic_smem, dynamicSmem);
  storeField(*this, config, Config::flags, i32(flags));

  Value address = LLVM::AddressOfOp::create(*this, getPtrType(), kernel.name);
  call(runtime::fp8rt_context_launch, address, config, storePointers(params));
}

Value RuntimeCalls::storePointers(ValueRange pointers) {
  auto type = LLVM::LLVMArrayType::get(getPtrType(), pointers.size());
  Value array = allocate(type);
  for (auto [index, pointer] : llvm::enumerate(pointers)) {
    Value place = LLVM::GEPOp::create(
        *this, getPtrType(), type, array,
        ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(index)});
    LLVM::StoreOp::create(*this, pointer, place);
  }
  return array;
}

void RuntimeCalls::launchKernel(const KernelGlobal &kernel, Value arguments,
                                ValueRange captures) {
  SmallVector<Value> places;
  for (Value capture : captures) {
    places.push_back(allocate(capture.getType()));
    LLVM::StoreOp::create(*this, capture, places.back());
  }
  Value address = LLVM::AddressOfOp::create(*this, getPtrType(), kernel.name);
  call(runtime::fp8rt_context_launch_kernel, address, arguments,
       storePointers(places));
}
