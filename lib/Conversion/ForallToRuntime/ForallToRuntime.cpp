//===- ForallToRuntime.cpp - Loops over the runtime's threads -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/Passes.h"
#include "fp8/Runtime/ABI/MLIR.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-convert-forall-to-runtime"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CONVERTFORALLTORUNTIMEPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// Takes the body of a loop into a function.
class Outliner {
public:
  Outliner(SymbolTable &symbols, LLVMTypeConverter &converter,
           scf::ForallOp loop)
      : symbols(symbols), converter(converter), loop(loop),
        b(loop.getLoc(), loop.getContext()) {}

  /// False if the body uses what no struct holds.
  bool run();

private:
  bool findCaptures();
  Value storeContext();
  func::FuncOp createBody();
  void buildBody(func::FuncOp body);
  Value convert(Value value, Type type) {
    if (value.getType() == type)
      return value;
    return UnrealizedConversionCastOp::create(b, type, value).getResult(0);
  }

  SymbolTable &symbols;
  LLVMTypeConverter &converter;
  scf::ForallOp loop;
  ImplicitLocOpBuilder b;
  SmallVector<Value> bounds;
  SmallVector<Value> captures;
  SmallVector<Operation *> constants;
  LLVM::LLVMStructType contextType;
};
} // namespace

bool Outliner::findCaptures() {
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(loop.getRegion(), used);
  // The number of iterations along each dimension: the function finds its own
  // place by them.
  b.setInsertionPoint(loop);
  for (OpFoldResult bound : loop.getMixedUpperBound()) {
    bounds.push_back(getValueOrCreateConstantIndexOp(b, b.getLoc(), bound));
    used.insert(bounds.back());
  }
  SmallVector<Type> types;
  for (Value value : used) {
    Operation *op = value.getDefiningOp();
    if (op && op->hasTrait<OpTrait::ConstantLike>()) {
      constants.push_back(op);
      continue;
    }
    Type type = converter.convertType(value.getType());
    if (!type || !LLVM::isCompatibleType(type)) {
      LDBG() << "not outlined, for it uses a value of type " << value.getType();
      return false;
    }
    captures.push_back(value);
    types.push_back(type);
  }
  contextType = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  return true;
}

Value Outliner::storeContext() {
  auto function = loop->getParentOfType<func::FuncOp>();
  Value context;
  {
    // Once for the call, even if the loop is in another one.
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.front());
    Value one = LLVM::ConstantOp::create(b, b.getI64Type(), 1);
    context = LLVM::AllocaOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext()), contextType, one);
  }
  Value fields = LLVM::UndefOp::create(b, contextType);
  for (auto [index, value] : llvm::enumerate(captures))
    fields = LLVM::InsertValueOp::create(
        b, fields, convert(value, contextType.getBody()[index]), index);
  LLVM::StoreOp::create(b, fields, context);
  return context;
}

func::FuncOp Outliner::createBody() {
  auto function = loop->getParentOfType<func::FuncOp>();
  Type i64 = b.getI64Type();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto body =
      func::FuncOp::create(b.getLoc(), (function.getName() + "_forall").str(),
                           b.getFunctionType({i64, i64, pointer}, {}));
  body.setPrivate();
  // A program that is linked into another keeps its loops to itself.
  body->setAttr("llvm.linkage", LLVM::LinkageAttr::get(
                                    b.getContext(), LLVM::Linkage::Internal));
  symbols.insert(body, std::next(Block::iterator(function)));
  return body;
}

void Outliner::buildBody(func::FuncOp body) {
  OpBuilder::InsertionGuard guard(b);
  Block *entry = body.addEntryBlock();
  b.setInsertionPointToStart(entry);
  IRMapping mapping;
  for (Operation *op : constants)
    if (!mapping.contains(op->getResult(0)))
      b.clone(*op, mapping);
  Value fields = LLVM::LoadOp::create(b, contextType, entry->getArgument(2));
  for (auto [index, value] : llvm::enumerate(captures)) {
    Value field = LLVM::ExtractValueOp::create(b, fields, index);
    mapping.map(value, convert(field, value.getType()));
  }
  auto toIndex = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, b.getIndexType(), value);
  };
  Value one = arith::ConstantIndexOp::create(b, 1);
  auto range = scf::ForOp::create(b, toIndex(entry->getArgument(0)),
                                  toIndex(entry->getArgument(1)), one);
  func::ReturnOp::create(b);

  b.setInsertionPointToStart(range.getBody());
  SmallVector<Value> basis;
  for (Value bound : bounds)
    basis.push_back(mapping.lookup(bound));
  auto place = affine::AffineDelinearizeIndexOp::create(
      b, range.getInductionVar(), basis);
  mapping.map(loop.getInductionVars(), place.getResults());
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, mapping);
}

bool Outliner::run() {
  if (!findCaptures())
    return false;
  func::FuncOp body = createBody();
  buildBody(body);

  Value count = arith::ConstantIndexOp::create(b, 1);
  for (Value bound : bounds)
    count = b.createOrFold<arith::MulIOp>(count, bound);
  count = arith::IndexCastOp::create(b, b.getI64Type(), count);
  Value address =
      func::ConstantOp::create(b, body.getFunctionType(), body.getName());
  address = convert(address, LLVM::LLVMPointerType::get(b.getContext()));
  createRuntimeCall(b, runtime::fp8rt_parallel_for, count, address,
                    storeContext());
  loop.erase();
  return true;
}

namespace {
struct ConvertForallToRuntimePass
    : fp8::impl::ConvertForallToRuntimePassBase<ConvertForallToRuntimePass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<scf::ForallOp> loops;
    getOperation().walk<WalkOrder::PreOrder>([&](scf::ForallOp op) {
      if (op.getNumResults() == 0 && op.isNormalized() &&
          op->getParentOfType<func::FuncOp>())
        loops.push_back(op);
      return WalkResult::skip();
    });
    if (loops.empty())
      return;
    if (failed(
            verifyRuntimeSymbol(getOperation(), runtime::fp8rt_parallel_for)))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    LLVMTypeConverter converter(&getContext());
    for (scf::ForallOp loop : loops)
      if (Outliner(symbols, converter, loop).run())
        ++numConverted;
  }
};
} // namespace
