//===- KernelBuilder.cpp - Builder with the vocabulary of kernels ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"

using namespace mlir;
using namespace mlir::fp8;

Value KernelBuilder::i1(bool value) {
  return arith::ConstantOp::create(*this, getBoolAttr(value));
}
Value KernelBuilder::i32(int64_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
}
Value KernelBuilder::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}
Value KernelBuilder::f32(float value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// A constant of the type of `like`.
static Value constantLike(KernelBuilder &b, Value like, int64_t value) {
  return arith::ConstantOp::create(b, b.getIntegerAttr(like.getType(), value));
}

Value KernelBuilder::add(Value lhs, Value rhs) {
  return createOrFold<arith::AddIOp>(lhs, rhs);
}
Value KernelBuilder::sub(Value lhs, Value rhs) {
  return createOrFold<arith::SubIOp>(lhs, rhs);
}
Value KernelBuilder::mul(Value lhs, Value rhs) {
  return createOrFold<arith::MulIOp>(lhs, rhs);
}
Value KernelBuilder::div(Value lhs, Value rhs) {
  return createOrFold<arith::DivUIOp>(lhs, rhs);
}
Value KernelBuilder::rem(Value lhs, Value rhs) {
  return createOrFold<arith::RemUIOp>(lhs, rhs);
}
Value KernelBuilder::min(Value lhs, Value rhs) {
  return createOrFold<arith::MinUIOp>(lhs, rhs);
}
Value KernelBuilder::max(Value lhs, Value rhs) {
  return createOrFold<arith::MaxUIOp>(lhs, rhs);
}
Value KernelBuilder::bitAnd(Value lhs, Value rhs) {
  return createOrFold<arith::AndIOp>(lhs, rhs);
}
Value KernelBuilder::bitXor(Value lhs, Value rhs) {
  return createOrFold<arith::XOrIOp>(lhs, rhs);
}
Value KernelBuilder::shiftRight(Value value, int64_t bits) {
  return createOrFold<arith::ShRUIOp>(value, constantLike(*this, value, bits));
}
Value KernelBuilder::add(Value lhs, int64_t rhs) {
  return rhs == 0 ? lhs : add(lhs, constantLike(*this, lhs, rhs));
}
Value KernelBuilder::mul(Value lhs, int64_t rhs) {
  return mul(lhs, constantLike(*this, lhs, rhs));
}
Value KernelBuilder::div(Value lhs, int64_t rhs) {
  return div(lhs, constantLike(*this, lhs, rhs));
}
Value KernelBuilder::rem(Value lhs, int64_t rhs) {
  return rem(lhs, constantLike(*this, lhs, rhs));
}
Value KernelBuilder::bitAnd(Value lhs, int64_t rhs) {
  return bitAnd(lhs, constantLike(*this, lhs, rhs));
}
Value KernelBuilder::ceilDiv(Value lhs, int64_t rhs) {
  return div(add(lhs, rhs - 1), rhs);
}
Value KernelBuilder::widen(Value value) {
  return createOrFold<arith::ExtUIOp>(getI64Type(), value);
}
Value KernelBuilder::equal(Value lhs, Value rhs) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, lhs, rhs);
}
Value KernelBuilder::equal(Value lhs, int64_t rhs) {
  return equal(lhs, constantLike(*this, lhs, rhs));
}
Value KernelBuilder::less(Value lhs, Value rhs) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult, lhs, rhs);
}
Value KernelBuilder::select(Value condition, Value lhs, Value rhs) {
  return createOrFold<arith::SelectOp>(condition, lhs, rhs);
}
Value KernelBuilder::mulF(Value lhs, Value rhs) {
  return arith::MulFOp::create(*this, lhs, rhs);
}
Value KernelBuilder::uniform(Value value) {
  return NVVM::ShflOp::create(*this, getI32Type(), i32(-1), value, i32(0),
                              i32(31), NVVM::ShflKind::idx,
                              /*return_value_and_is_valid=*/UnitAttr());
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value KernelBuilder::offset(Value base, Value bytes) {
  return LLVM::GEPOp::create(*this, base.getType(), getI8Type(), base, bytes);
}
Value KernelBuilder::element(Value base, Value index, Type elementType) {
  // LLVM has no 8-bit floats; the width is all that counts. A bit has a byte.
  Type stored =
      getIntegerType(std::max(elementType.getIntOrFloatBitWidth(), 8u));
  return LLVM::GEPOp::create(*this, base.getType(), stored, base, index);
}
Value KernelBuilder::load(Value pointer, Type type) {
  return LLVM::LoadOp::create(*this, type, pointer);
}
Value KernelBuilder::loadConstant(Value pointer, Type type) {
  auto load = LLVM::LoadOp::create(*this, type, pointer);
  load.setInvariant(true);
  return load;
}
SmallVector<Value> KernelBuilder::loadStreamed(Value pointer, int64_t words) {
  std::string constraints, registers;
  for (int64_t i = 0; i < words; ++i) {
    constraints += "=r,";
    registers += (i ? ", $" : "$") + std::to_string(i);
  }
  std::string vector = words == 1 ? "" : ".v" + std::to_string(words);
  std::string code = "ld.global.nc" + vector + ".b32 " +
                     (words == 1 ? registers : "{" + registers + "}") + ", [$" +
                     std::to_string(words) + "];";
  Type i32 = getI32Type();
  Type type = words == 1 ? i32
                         : LLVM::LLVMStructType::getLiteral(
                               getContext(), SmallVector<Type>(words, i32));
  Value loaded =
      LLVM::InlineAsmOp::create(
          *this, type, pointer, code, constraints + "l",
          /*has_side_effects=*/true, /*is_align_stack=*/false,
          LLVM::TailCallKind::None,
          LLVM::AsmDialectAttr::get(getContext(), LLVM::AsmDialect::AD_ATT),
          /*operand_attrs=*/ArrayAttr())
          .getRes();
  if (words == 1)
    return {loaded};
  SmallVector<Value> values;
  for (int64_t i = 0; i < words; ++i)
    values.push_back(LLVM::ExtractValueOp::create(*this, loaded, i));
  return values;
}
void KernelBuilder::store(Value value, Value pointer) {
  LLVM::StoreOp::create(*this, value, pointer);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void KernelBuilder::ifThen(Value condition, llvm::function_ref<void()> body) {
  auto op = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  body();
}

void KernelBuilder::ifThenElse(Value condition,
                               llvm::function_ref<void()> thenBody,
                               llvm::function_ref<void()> elseBody) {
  auto op = scf::IfOp::create(*this, condition, /*withElseRegion=*/true);
  InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  thenBody();
  setInsertionPointToStart(op.elseBlock());
  elseBody();
}

SmallVector<Value> KernelBuilder::choose(Value condition, Branch thenBranch,
                                         Branch elseBranch) {
  auto emit = [&](Branch branch) {
    return [this, branch](OpBuilder &builder, Location) {
      InsertionGuard guard(*this);
      setInsertionPointToEnd(builder.getInsertionBlock());
      scf::YieldOp::create(*this, branch());
    };
  };
  auto thenBuilder = emit(thenBranch), elseBuilder = emit(elseBranch);
  auto op = scf::IfOp::create(*this, condition, thenBuilder, elseBuilder);
  return SmallVector<Value>(op.getResults());
}

static scf::ForOp buildLoop(KernelBuilder &b, Value lower, Value upper,
                            Value step, ValueRange initial,
                            KernelBuilder::LoopBody body) {
  return scf::ForOp::create(
      b, lower, upper, step, initial,
      [&](OpBuilder &, Location, Value index, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(index.getParentBlock());
        scf::YieldOp::create(b, body(index, carried));
      },
      /*unsignedCmp=*/true);
}

SmallVector<Value> KernelBuilder::loop(Value lower, Value upper, Value step,
                                       ValueRange initial, LoopBody body) {
  return SmallVector<Value>(
      buildLoop(*this, lower, upper, step, initial, body).getResults());
}

SmallVector<Value> KernelBuilder::loopRolled(Value lower, Value upper,
                                             Value step, ValueRange initial,
                                             LoopBody body) {
  scf::ForOp op = buildLoop(*this, lower, upper, step, initial, body);
  // The conversions hand it to the llvm.br that repeats the loop, under the
  // name that it has there; the NVPTX backend prints it as .pragma "nounroll".
  auto unroll = LLVM::LoopUnrollAttr::get(
      getContext(), /*disable=*/getBoolAttr(true), {}, {}, {}, {}, {}, {});
  op->setAttr("loop_annotation", LLVM::LoopAnnotationAttr::get(
                                     getContext(), {}, {}, {}, unroll, {}, {},
                                     {}, {}, {}, {}, {}, {}, {}, {}, {}));
  return SmallVector<Value>(op.getResults());
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

void KernelBuilder::electOne(llvm::function_ref<void()> body) {
  ifThen(NVVM::ElectSyncOp::create(*this, getI1Type(), /*membermask=*/Value()),
         body);
}
void KernelBuilder::namedBarrier(Value id, int64_t threads) {
  NVVM::BarrierOp::create(*this, /*res=*/Type(), id, i32(threads),
                          /*reductionOp=*/{}, /*reductionPredicate=*/Value());
}
void KernelBuilder::namedBarrierArrive(Value id, int64_t threads) {
  NVVM::BarrierArriveOp::create(*this, id, i32(threads));
}
void KernelBuilder::ptx(StringRef code, ValueRange inputs, Value predicate) {
  NVVM::InlinePtxOp::create(*this, TypeRange(), inputs, ValueRange(),
                            getStringAttr(code), predicate);
}
