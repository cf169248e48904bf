//===- Collectives.cpp - Reductions over ranks to calls -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"

#include "fp8/IR/FP8CollectiveOps.h"
#include "fp8/Runtime/ABI/MLIR.h"
#include "fp8/Runtime/Group.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// The names of groups, as constants of a module.
class GroupNames {
public:
  explicit GroupNames(ModuleOp module) : module(module), symbols(module) {}

  Value getAddress(ImplicitLocOpBuilder &b, StringAttr group);

private:
  ModuleOp module;
  SymbolTable symbols;
  DenseMap<StringAttr, LLVM::GlobalOp> globals;
};
} // namespace

Value GroupNames::getAddress(ImplicitLocOpBuilder &b, StringAttr group) {
  LLVM::GlobalOp &global = globals[group];
  if (!global) {
    SmallString<16> text(group.getValue());
    text.push_back('\0');
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    global = LLVM::GlobalOp::create(
        b, LLVM::LLVMArrayType::get(b.getI8Type(), text.size()),
        /*isConstant=*/true, LLVM::Linkage::Internal, "fp8_group",
        b.getStringAttr(text));
    symbols.insert(global);
  }
  return LLVM::AddressOfOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext()), global.getSymName());
}

static LogicalResult convert(AllReduceAmaxOp op, GroupNames &names) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value memref = op.getAmax();
  auto type = cast<MemRefType>(memref.getType());
  // The runtime takes an address and a count.
  if (!type.getLayout().isIdentity())
    return op.emitOpError("expected amaxes that lie together, but got ")
           << type;
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
  address = arith::IndexCastOp::create(b, b.getI64Type(), address);
  address = LLVM::IntToPtrOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext()), address);
  Value count = arith::ConstantIndexOp::create(b, 1);
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value size = memref::DimOp::create(b, memref, dim);
    count = b.createOrFold<arith::MulIOp>(count, size);
  }
  count = arith::IndexCastOp::create(b, b.getI64Type(), count);
  Value flags = LLVM::ConstantOp::create(
      b, b.getI32Type(),
      b.getI32IntegerAttr(op.getFirstCall() ? FP8RT_REDUCE_FIRST_CALL : 0));
  createRuntimeCall(b, runtime::fp8rt_program_all_reduce,
                    names.getAddress(b, op.getGroupAttr()), address, count,
                    flags);
  op.erase();
  return success();
}

LogicalResult fp8::convertCollectivesToRuntime(ModuleOp module) {
  SmallVector<AllReduceAmaxOp> ops;
  module.walk([&](AllReduceAmaxOp op) {
    if (isa<MemRefType>(op.getAmax().getType()))
      ops.push_back(op);
  });
  if (ops.empty())
    return success();
  if (failed(verifyRuntimeSymbol(module, runtime::fp8rt_program_all_reduce)))
    return failure();
  GroupNames names(module);
  for (AllReduceAmaxOp op : ops)
    if (failed(convert(op, names)))
      return failure();
  return success();
}
