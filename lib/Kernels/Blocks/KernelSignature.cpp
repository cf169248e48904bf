//===- KernelSignature.cpp - What a kernel takes --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelSignature.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fp8;

KernelSignature::KernelSignature(MLIRContext *context,
                                 ArrayRef<KernelArgumentAttr> arguments)
    : context(context) {
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    this->arguments.push_back(argument);
    numbers[argument.getName()] = static_cast<int64_t>(number);
  }
}

int64_t KernelSignature::getNumber(StringRef argument) const {
  auto found = numbers.find(argument);
  assert(found != numbers.end() && "expected an argument of the kernel");
  return found->second;
}

AffineExpr KernelSignature::addExtent(StringRef name, StringRef argument,
                                      int64_t dim) {
  extents.push_back(
      KernelExtentAttr::get(context, name, getNumber(argument), dim));
  return getAffineSymbolExpr(extents.size() - 1, context);
}

int64_t KernelSignature::addWorkspace(AffineExpr bytes, bool zero) {
  spaces.emplace_back(bytes, zero);
  return static_cast<int64_t>(spaces.size()) - 1;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

void KernelSignature::add(const Twine &name, Type type, Attribute source) {
  params.emplace_back(Param{name.str(), type, source}, AffineExpr());
}

void KernelSignature::addTensorMap(const Twine &name, StringRef argument,
                                   ArrayRef<int64_t> box, int64_t swizzle,
                                   int64_t l2, std::optional<int64_t> tail) {
  add(name, LLVM::LLVMPointerType::get(context),
      TensorMapParamAttr::get(context, getNumber(argument), box, swizzle, l2,
                              tail));
}

void KernelSignature::addPointer(const Twine &name, StringRef argument) {
  add(name, LLVM::LLVMPointerType::get(context, /*addressSpace=*/1),
      PointerParamAttr::get(context, getNumber(argument)));
}

void KernelSignature::addStride(const Twine &name, StringRef argument,
                                int64_t dim) {
  add(name, IntegerType::get(context, 64),
      StrideParamAttr::get(context, getNumber(argument), dim));
}

void KernelSignature::addValue(const Twine &name, AffineExpr value,
                               unsigned width) {
  add(name, IntegerType::get(context, width), Attribute());
  params.back().second = value;
}

void KernelSignature::addCapture(const Twine &name, Type type) {
  add(name, type, CaptureParamAttr::get(context, numCaptures++, type));
}

void KernelSignature::addScratch(const Twine &name, int64_t workspace) {
  add(name, LLVM::LLVMPointerType::get(context, /*addressSpace=*/1),
      ScratchParamAttr::get(context, workspace));
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

AffineMapAttr KernelSignature::getMap(ArrayRef<AffineExpr> results) const {
  return AffineMapAttr::get(
      AffineMap::get(/*dimCount=*/0, extents.size(), results, context));
}

LaunchAttr KernelSignature::getLaunch(const Launch &launch) const {
  auto array = [&](ArrayRef<Attribute> elements) {
    return ArrayAttr::get(context, elements);
  };
  SmallVector<Attribute> sources, workspaces;
  for (const auto &[param, value] : params)
    sources.push_back(value ? ValueParamAttr::get(context, getMap(value),
                                                  cast<IntegerType>(param.type))
                            : param.source);
  for (auto [bytes, zero] : spaces)
    workspaces.push_back(
        KernelWorkspaceAttr::get(context, getMap(bytes), zero));
  return LaunchAttr::get(context, array(arguments), array(extents),
                         array(sources), getMap(launch.grid), launch.block,
                         launch.cluster, launch.sharedBytes, launch.resident,
                         launch.overlap,
                         workspaces.empty() ? ArrayAttr() : array(workspaces),
                         launch.flops ? getMap(launch.flops) : AffineMapAttr());
}

/// Declares dynamic shared memory once in the module around `builder`.
static void declareShared(OpBuilder &builder, Location loc) {
  Operation *module = builder.getInsertionBlock()
                          ->getParent()
                          ->getParentOfType<gpu::GPUModuleOp>();
  if (SymbolTable::lookupSymbolIn(module, KernelSignature::kSharedName))
    return;
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/false,
                         LLVM::Linkage::External, KernelSignature::kSharedName,
                         /*value=*/Attribute(), /*alignment=*/1024,
                         /*addrSpace=*/3);
}

LLVM::LLVMFuncOp KernelSignature::create(OpBuilder &builder, Location loc,
                                         StringRef name, const Launch &launch,
                                         KernelMath math) const {
  if (launch.sharedBytes != 0)
    declareShared(builder, loc);
  SmallVector<Type> types;
  for (const auto &[param, value] : params)
    types.push_back(param.type);
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types);
  auto function = LLVM::LLVMFuncOp::create(builder, loc, name, type);
  for (auto [i, param] : llvm::enumerate(params)) {
    if (!isa_and_present<TensorMapParamAttr>(param.first.source))
      continue;
    // Read in place from the constant bank, 64-byte aligned.
    function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                        builder.getI64IntegerAttr(64));
    function.setArgAttr(
        i, LLVM::LLVMDialect::getByValAttrName(),
        TypeAttr::get(LLVM::LLVMArrayType::get(builder.getI8Type(), 128)));
    function.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(),
                        builder.getUnitAttr());
  }
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    builder.getUnitAttr());
  function->setAttr(
      NVVM::NVVMDialect::getReqntidAttrName(),
      builder.getDenseI32ArrayAttr({static_cast<int32_t>(launch.block), 1, 1}));
  if (launch.cluster > 1)
    function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                      builder.getDenseI32ArrayAttr(
                          {static_cast<int32_t>(launch.cluster), 1, 1}));
  function->setAttr(kLaunchAttrName, getLaunch(launch));
  function->setAttr(kMathAttrName, KernelMathAttr::get(context, math));
  return function;
}

llvm::StringMap<Value>
KernelSignature::getParams(LLVM::LLVMFuncOp function) const {
  llvm::StringMap<Value> values;
  for (auto [param, argument] :
       llvm::zip_equal(params, function.getArguments()))
    values[param.first.name] = argument;
  return values;
}
