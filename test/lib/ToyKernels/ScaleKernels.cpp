//===- ScaleKernels.cpp - Kernels of toy.scale, and their GPU -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Toy.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace toy;

std::string ScaleSpec::describe() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << type.getElementType() << ' ';
  llvm::interleave(type.getShape(), os, "x");
  return text;
}

/// Launches with x, y, the factor and the number of elements, one a thread.
static LaunchAttr getLaunch(const ScaleSpec &spec, ScaleConfigAttr config) {
  MLIRContext *context = config.getContext();
  int64_t rank = spec.type.getRank();
  Type element = spec.type.getElementType();
  SmallVector<Attribute> extents;
  AffineExpr count = getAffineConstantExpr(1, context);
  for (int64_t dim = 0; dim < rank; ++dim) {
    extents.push_back(
        KernelExtentAttr::get(context, "d" + std::to_string(dim), 0, dim));
    count = count * getAffineSymbolExpr(dim, context);
  }
  auto getMap = [&](AffineExpr expr) {
    return AffineMapAttr::get(AffineMap::get(0, rank, expr));
  };
  auto getArgument = [&](StringRef name, KernelAccess access) {
    return KernelArgumentAttr::get(context, name, element, rank, access,
                                   /*alignment=*/4);
  };
  Builder b(context);
  return LaunchAttr::get(
      context,
      b.getArrayAttr({getArgument("x", KernelAccess::Read),
                      getArgument("y", KernelAccess::Write)}),
      b.getArrayAttr(extents),
      b.getArrayAttr(
          {PointerParamAttr::get(context, 0), PointerParamAttr::get(context, 1),
           CaptureParamAttr::get(context, 0, element),
           ValueParamAttr::get(context, getMap(count), b.getI32Type())}),
      getMap(count.ceilDiv(config.getBlock())), config.getBlock(),
      /*cluster=*/1, /*shared_bytes=*/0, /*resident=*/0, /*overlap=*/false,
      /*workspaces=*/ArrayAttr(), /*flops=*/AffineMapAttr());
}

static void buildBody(ImplicitLocOpBuilder &b, LLVM::LLVMFuncOp kernel,
                      const ScaleSpec &spec) {
  Value x = kernel.getArgument(0), y = kernel.getArgument(1),
        factor = kernel.getArgument(2), count = kernel.getArgument(3);
  Type i32 = b.getI32Type(), element = spec.type.getElementType();
  Value first = arith::MulIOp::create(b, NVVM::BlockIdXOp::create(b, i32),
                                      NVVM::BlockDimXOp::create(b, i32));
  Value index =
      arith::AddIOp::create(b, first, NVVM::ThreadIdXOp::create(b, i32));
  Value inside =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, count);
  scf::IfOp::create(b, inside, [&](OpBuilder &builder, Location loc) {
    ImplicitLocOpBuilder b(loc, builder);
    auto getPlace = [&](Value pointer) {
      return LLVM::GEPOp::create(b, pointer.getType(), element, pointer, index);
    };
    Value value = LLVM::LoadOp::create(b, element, getPlace(x));
    LLVM::StoreOp::create(b, arith::MulFOp::create(b, value, factor),
                          getPlace(y));
    scf::YieldOp::create(b);
  });
  LLVM::ReturnOp::create(b, ValueRange());
}

namespace {
class ScaleGenerator : public KernelGenerator {
public:
  SmallVector<KernelConfigAttrInterface>
  getCandidates(const KernelSpec &spec, GPUTargetAttr target,
                bool exhaustive) const override {
    SmallVector<KernelConfigAttrInterface> configs;
    for (int64_t block : {64, 256})
      configs.push_back(ScaleConfigAttr::get(target.getContext(), block));
    if (exhaustive)
      configs.push_back(ScaleConfigAttr::get(target.getContext(), 1024));
    return configs;
  }

  LogicalResult checkFit(const KernelSpec &, KernelConfigAttrInterface config,
                         GPUTargetAttr target,
                         std::string &reason) const override {
    llvm::raw_string_ostream os(reason);
    auto scale = dyn_cast<ScaleConfigAttr>(config);
    if (!scale) {
      os << "expected a #toy.scale_config, but got " << config;
      return failure();
    }
    int64_t most = target.getRegisters() / 64;
    if (scale.getBlock() >= 32 && scale.getBlock() % 32 == 0 &&
        scale.getBlock() <= most)
      return success();
    os << "expected block to be a multiple of 32 up to " << most << ", but got "
       << scale.getBlock();
    return failure();
  }

  /// Waves of blocks, which cost something each.
  double getCost(const KernelSpec &spec, KernelConfigAttrInterface config,
                 GPUTargetAttr target) const override {
    int64_t block = cast<ScaleConfigAttr>(config).getBlock(),
            blocks = llvm::divideCeil(
                cast<ScaleSpec>(spec).type.getNumElements(), block);
    return static_cast<double>(
        llvm::divideCeil(blocks, target.getMultiprocessors()) * (100 + block));
  }

  std::string getLabel(const KernelSpec &spec) const override {
    return "rank" + std::to_string(cast<ScaleSpec>(spec).type.getRank());
  }

  FailureOr<LLVM::LLVMFuncOp> build(OpBuilder &builder, Location loc,
                                    const KernelSpec &spec,
                                    KernelConfigAttrInterface config,
                                    GPUTargetAttr target, StringRef name,
                                    std::string &reason) const override {
    if (failed(checkFit(spec, config, target, reason)))
      return failure();
    const auto &scale = cast<ScaleSpec>(spec);
    ImplicitLocOpBuilder b(loc, builder);
    auto pointer = LLVM::LLVMPointerType::get(b.getContext(), 1);
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(b.getContext()),
        {pointer, pointer, scale.type.getElementType(), b.getI32Type()});
    auto kernel = LLVM::LLVMFuncOp::create(b, name, type);
    kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
    kernel->setAttr(kLaunchAttrName,
                    getLaunch(scale, cast<ScaleConfigAttr>(config)));
    b.setInsertionPointToStart(kernel.addEntryBlock(b));
    buildBody(b, kernel, scale);
    return kernel;
  }
};

class ToyArchitecture : public Architecture {
public:
  /// LLVM generates code for it, which is all that is wanted of it.
  ToyArchitecture() : Architecture("sm_80") {
    addGenerator(ScaleSpec::kKind, std::make_unique<ScaleGenerator>());
  }

  GPUTargetAttr getTarget(MLIRContext *context) const override {
    return GPUTargetAttr::get(context, getChip(), /*compute_capability=*/80,
                              /*features=*/"+ptx80", /*multiprocessors=*/4,
                              /*shared_bytes=*/166912, /*registers=*/65536,
                              /*mma_rate=*/1, /*l2_rate=*/1, /*memory_rate=*/1,
                              /*clock=*/0, /*memory_peak=*/0,
                              /*launch_time=*/0, /*machine=*/{});
  }

  void registerDialects(DialectRegistry &registry) const override {
    registry.insert<ToyDialect, tensor::TensorDialect>();
  }
};
} // namespace

void toy::registerToyArchitecture() {
  registerArchitecture(std::make_unique<ToyArchitecture>());
}
