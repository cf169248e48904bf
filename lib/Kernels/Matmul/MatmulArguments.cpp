//===- MatmulArguments.cpp - What a matmul is launched with ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulArguments.h"
#include "fp8/IR/FoldedReads.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Kinds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

std::string fp8::getNameOfResult(StringRef name, size_t result) {
  return result == 0 ? name.str() : (name + "_" + Twine(result)).str();
}

bool fp8::endsWithTensor(const MatmulSpec &spec, StringRef name) {
  return name != "a" || spec.getGrouping() != Grouping::Rows;
}

bool fp8::beginWithinWords(const MatmulSpec &spec) {
  return hasByteFactors(spec.b.lifting) &&
         spec.k % (4 * getLiftedGroup(spec.b.lifting)) != 0;
}

/// The granularity of factors that come with codes.
static ScaleBlock getLiftedBlock(Lifting lifting) {
  return lifting == Lifting::E4M3Blocks ? ScaleBlock::Block128
         : lifting == Lifting::NVFP4    ? ScaleBlock::Row16
                                        : ScaleBlock::Row32;
}

SmallVector<KernelArgumentAttr> fp8::getMatmulArguments(MLIRContext *context,
                                                        const MatmulSpec &spec,
                                                        bool storesInBulk,
                                                        int64_t alignment) {
  SmallVector<KernelArgumentAttr> arguments;
  size_t result = 0;
  auto add = [&](StringRef name, Type element, int64_t rank,
                 KernelAccess access, int64_t alignment) {
    int64_t bytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
    if (result < spec.getCount(name))
      arguments.push_back(KernelArgumentAttr::get(
          context, getNameOfResult(name, result), element, rank, access,
          std::max(alignment, bytes)));
  };
  Type f32 = Float32Type::get(context);
  auto getFactorType = [&](ScaleBlock scale) -> Type {
    if (scale == ScaleBlock::Row16)
      return Float8E4M3FNType::get(context);
    return scale == ScaleBlock::Row32 ? Type(Float8E8M0FNUType::get(context))
                                      : f32;
  };
  for (; result < spec.getNumSets(); ++result) {
    for (auto [name, operand] :
         {std::pair<StringRef, const OperandSpec &>{"a", spec.a},
          {"b", spec.b}}) {
      Type element = operand.elementType;
      add(name,
          hasWideCodes(operand.lifting) ? Type(Float8E4M3FNType::get(context))
          : isPacked(element) || operand.isLifted()
              ? Type(IntegerType::get(context, 8))
              : element,
          spec.getRank(name), KernelAccess::Read, kBulkAlignment);
      if (operand.lifting == Lifting::MXFP4ToE4M3)
        add("exponents", IntegerType::get(context, 32),
            spec.getRank("exponents"), KernelAccess::Read, kBulkAlignment);
      // Only those of neighbouring columns, B's rows, are loaded together.
      // Those of microscaling are copied by four, as are some others.
      std::string factors = ("scale_" + name).str();
      if (copiesFactors(operand.lifting))
        add(factors, getFactorType(getLiftedBlock(operand.lifting)),
            spec.getRank(factors), KernelAccess::Read, 4);
      if (operand.scale != ScaleBlock::None)
        add(factors, getFactorType(operand.scale), spec.getRank(factors),
            KernelAccess::Read,
            name == "b" && operand.scale == ScaleBlock::Row ? alignment
            : spec.areFactorsInFours(/*ofA=*/name == "a")   ? 16
                                                            : 4);
      if (operand.scale == ScaleBlock::Row16)
        add("tensor_" + factors, f32, spec.getRank("tensor_" + factors),
            KernelAccess::Read, 4);
    }
    for (auto [i, operand] : llvm::enumerate(spec.operands))
      add("operand" + std::to_string(i), operand.elementType, operand.rank,
          KernelAccess::Read, alignment);
  }
  result = 0;
  if (spec.isGrouped())
    add(spec.getBoundsName(), IntegerType::get(context, 32), 1,
        KernelAccess::Read, 4);
  for (result = 0; result < spec.getNumResults(); ++result) {
    // What is left as it is, is not overwritten.
    add("d", spec.resultType, spec.getRank("d"),
        spec.hasUndefPadding() ? KernelAccess::Update : KernelAccess::Write,
        storesInBulk ? kBulkAlignment : 1);
    if (spec.amax)
      add("amax", f32, spec.getRank("amax"), KernelAccess::Raise, 4);
  }
  return arguments;
}

/// Where the results go: for an amax, which the kernel raises, a zero.
static SmallVector<Value> createOuts(OpBuilder &b, MatmulOp op, Value a,
                                     Value otherB) {
  Location loc = op.getLoc();
  RankedTensorType type = op.getResult().getType();
  int64_t rank = type.getRank();
  SmallVector<OpFoldResult> sizes;
  if (rank == 3)
    sizes.push_back(tensor::getMixedSize(b, loc, a, 0));
  sizes.push_back(tensor::getMixedSize(
      b, loc, a, op.getTransposeA() ? rank - 1 : rank - 2));
  sizes.push_back(tensor::getMixedSize(
      b, loc, otherB, op.getTransposeB() ? rank - 1 : rank - 2));
  Value out = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  if (out.getType() != type)
    out = tensor::CastOp::create(b, loc, type, out);
  SmallVector<Value> outs{out};
  if (op.getAmax()) {
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
    Value empty = tensor::EmptyOp::create(b, loc, op.getAmax().getType(), {});
    outs.push_back(linalg::FillOp::create(b, loc, zero, empty).getResult(0));
  }
  return outs;
}

namespace {
/// Codes and factors of an operand, or its elements; returns the former, as
/// they are in the program.
Value addOperand(OpBuilder &b, Value value, SmallVectorImpl<Value> &ins) {
  if (DequantizeOp folded = getFoldedDequantize(value)) {
    auto parts = DisassembleOp::create(b, value.getLoc(), folded.getSource());
    auto codes = cast<TypedValue<RankedTensorType>>(parts.getPayload());
    ins.append({castCodes(b, getStoredType(codes.getType()), codes),
                parts.getScaleInv()});
    return value;
  }
  if (!isa<ScaledType>(value.getType())) {
    ins.push_back(value);
    return value;
  }
  if (LiftOp lift = LiftOp::getFolded(value)) {
    Value codes = lift.getCodes();
    ins.append({castCodes(b, getStoredType(lift.getCodes().getType()), codes),
                lift.getExponents(),
                value.getDefiningOp<AssembleOp>().getScaleInv()});
    return codes;
  }
  auto parts = DisassembleOp::create(b, value.getLoc(), value);
  StoredFactors stored = StoredFactors::get(value);
  Value factors = stored.tensor;
  if (stored.source)
    factors =
        DisassembleOp::create(b, value.getLoc(), stored.source).getScaleInv();
  auto codes = cast<TypedValue<RankedTensorType>>(parts.getPayload());
  ins.append({castCodes(b, getStoredType(codes.getType()), codes),
              factors ? factors : parts.getScaleInv()});
  if (Value ofTensor = parts.getTensorScaleInv())
    ins.push_back(ofTensor);
  return parts.getPayload();
}

/// What models have in common.
template <typename Model, typename OpTy>
struct MatmulModel : KernelOpInterface::ExternalModel<Model, OpTy> {
  FailureOr<std::unique_ptr<KernelSpec>>
  getKernelSpec(Operation *op, std::string &reason) const {
    FailureOr<MatmulSpec> spec = MatmulSpec::get(op, reason);
    if (failed(spec))
      return failure();
    return std::unique_ptr<KernelSpec>(
        std::make_unique<MatmulSpec>(std::move(*spec)));
  }
};

struct MatmulKernelOp : MatmulModel<MatmulKernelOp, MatmulOp> {
  KernelOperands getKernelOperands(Operation *operation, OpBuilder &b) const {
    auto op = cast<MatmulOp>(operation);
    KernelOperands operands;
    Value a = addOperand(b, op.getA(), operands.ins);
    Value otherB = addOperand(b, op.getB(), operands.ins);
    llvm::append_range(operands.ins, op.getEpilogueOperands());
    operands.captures = MatmulSpec::getCaptures(op);
    operands.outs = createOuts(b, op, a, otherB);
    return operands;
  }
};

struct GroupedMatmulKernelOp
    : MatmulModel<GroupedMatmulKernelOp, GroupedMatmulOp> {
  KernelOperands getKernelOperands(Operation *operation, OpBuilder &b) const {
    auto op = cast<GroupedMatmulOp>(operation);
    Location loc = op.getLoc();
    KernelOperands operands;
    Value a = addOperand(b, op.getA(), operands.ins);
    Value otherB = addOperand(b, op.getB(), operands.ins);
    llvm::append_range(operands.ins, op.getEpilogueOperands());
    operands.ins.push_back(op.getBounds());
    operands.captures = MatmulSpec::getCaptures(op);
    RankedTensorType type = op.getResult().getType();
    int64_t rankOfA = op.getShapeOfA().size();
    int64_t rankOfB = op.getShapeOfB().size();
    SmallVector<OpFoldResult> sizes;
    if (type.getRank() == 3)
      sizes.push_back(b.getIndexAttr(op.getNumGroups()));
    sizes.push_back(tensor::getMixedSize(
        b, loc, a, op.getTransposeA() ? rankOfA - 1 : rankOfA - 2));
    sizes.push_back(tensor::getMixedSize(
        b, loc, otherB, op.getTransposeB() ? rankOfB - 1 : rankOfB - 2));
    Value out = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
    if (out.getType() != type)
      out = tensor::CastOp::create(b, loc, type, out);
    operands.outs = {out};
    return operands;
  }
};

/// Operands of a pair: those of the first, with those of both epilogues, and
/// the second one's B.
KernelOperands getOperandsOfDual(SiblingMatmulsOp group, OpBuilder &b) {
  SmallVector<MatmulOp, 4> matmuls = group.getMatmuls();
  MatmulOp first = matmuls[0], second = matmuls[1];
  KernelOperands operands;
  Value a = addOperand(b, first.getA(), operands.ins);
  addOperand(b, first.getB(), operands.ins);
  llvm::append_range(operands.ins, first.getEpilogueOperands());
  for (Value operand : second.getEpilogueOperands())
    if (operand != first.getResult())
      operands.ins.push_back(operand);
  Value secondB = addOperand(b, second.getB(), operands.ins);
  operands.outs = createOuts(b, second, a, secondB);
  operands.captures = MatmulSpec::getCaptures(group);
  return operands;
}

struct SiblingMatmulsKernelOp
    : MatmulModel<SiblingMatmulsKernelOp, SiblingMatmulsOp> {
  KernelOperands getKernelOperands(Operation *operation, OpBuilder &b) const {
    auto group = cast<SiblingMatmulsOp>(operation);
    if (group.isDual())
      return getOperandsOfDual(group, b);
    KernelOperands operands;
    bool sharesA = group.sharesA();
    Value shared;
    for (MatmulOp op : group.getMatmuls()) {
      auto add = [&](Value value, bool isShared) {
        if (!isShared || !shared) {
          Value codes = addOperand(b, value, operands.ins);
          if (!isShared)
            return codes;
          shared = codes;
        }
        return shared;
      };
      Value a = add(op.getA(), sharesA);
      Value otherB = add(op.getB(), !sharesA);
      llvm::append_range(operands.ins, op.getEpilogueOperands());
      llvm::append_range(operands.outs, createOuts(b, op, a, otherB));
    }
    operands.captures = MatmulSpec::getCaptures(group);
    return operands;
  }

  /// A group may yield what one matmul has written more than once.
  SmallVector<Value> buildResults(Operation *operation, OpBuilder &,
                                  ValueRange written) const {
    auto group = cast<SiblingMatmulsOp>(operation);
    SmallVector<MatmulOp, 4> matmuls = group.getMatmuls();
    SmallVector<Value> results;
    for (MatmulOp op : ArrayRef(matmuls).drop_front(group.isDual() ? 1 : 0))
      llvm::append_range(results, op.getResults());
    return llvm::map_to_vector(
        group.getBody().front().getTerminator()->getOperands(),
        [&](Value value) -> Value {
          return written[std::distance(results.begin(),
                                       llvm::find(results, value))];
        });
  }
};
} // namespace

void fp8::registerMatmulKernels(DialectRegistry &registry) {
  registry.insert<FP8Dialect, arith::ArithDialect, linalg::LinalgDialect,
                  tensor::TensorDialect>();
  registry.addExtension(+[](MLIRContext *context, FP8Dialect *) {
    MatmulOp::attachInterface<MatmulKernelOp>(*context);
    GroupedMatmulOp::attachInterface<GroupedMatmulKernelOp>(*context);
    SiblingMatmulsOp::attachInterface<SiblingMatmulsKernelOp>(*context);
  });
}
