//===- ReportCopies.cpp - Operands that are copied for their kernel -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: matmuls with the configs of their kernels. Leaves: the same, and a
// remark for each operand that lies otherwise in the program. Of the order that
// a tensor core takes, the kernel's generator knows; what it says is the
// reason.
//
//===----------------------------------------------------------------------===//

#include "../TargetLookup.h"
#include "MatmulClocks.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/ValueNames.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/FormatVariadic.h"

#define DEBUG_TYPE "fp8-report-copies"

namespace mlir::fp8 {
#define GEN_PASS_DEF_REPORTCOPIESPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// An operand of a matmul, and where it came from.
struct Operand {
  mutable MatmulOp op;
  bool isB;
  /// The last operation that moves its elements, null if none does.
  Operation *copy = nullptr;
  /// Where the moved elements, or their codes, were before.
  Value root{};

  StringRef getName() const { return isB ? "b" : "a"; }
  Value getValue() const { return isB ? op.getB() : op.getA(); }
};

struct ReportCopiesPass : fp8::impl::ReportCopiesPassBase<ReportCopiesPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }

  void runOnOperation() override;
  void report(const Operand &operand, const KernelTarget &target);
  std::string getSuggestion(const Operand &operand) const;

  SmallVector<Operand> operands;
};

} // namespace

static StringRef getGemmName(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>(kNameAttrName);
  return name ? name.getValue() : StringRef();
}

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

/// What `op` makes another order of, or null.
static Value getTransposed(Operation *op) {
  if (auto transpose = dyn_cast_if_present<TransposeOp>(op))
    return transpose.getSource();
  if (auto transpose = dyn_cast_if_present<linalg::TransposeOp>(op))
    return transpose.getInput();
  return {};
}

/// Where `value` has the same elements, or codes of them, in the same order;
/// null if it is new.
static Value getSameOrder(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  if (auto disassemble = dyn_cast<DisassembleOp>(op))
    return value == disassemble.getPayload() ? disassemble.getSource()
                                             : Value();
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([](AssembleOp assemble) { return assemble.getPayload(); })
      .Case([](QuantizeOp quantize) { return quantize.getSource(); })
      .Case<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
          [](auto reshape) { return reshape.getSrc(); })
      .Case<tensor::CastOp, tensor::PadOp>(
          [](auto op) { return op.getSource(); })
      .Default(Value());
}

static Operand trace(MatmulOp op, bool isB) {
  Operand operand{op, isB};
  Value value = operand.getValue();
  while (value) {
    operand.root = value;
    Value transposed = getTransposed(value.getDefiningOp());
    if (transposed && !operand.copy)
      operand.copy = value.getDefiningOp();
    value = transposed ? transposed : getSameOrder(value);
  }
  return operand;
}

//===----------------------------------------------------------------------===//
// Saying
//===----------------------------------------------------------------------===//

/// The codes or elements that the copy has.
static RankedTensorType getCopiedType(Operation *copy) {
  Type type = copy->getResult(0).getType();
  auto scaled = dyn_cast<ScaledType>(type);
  return scaled ? scaled.getPayloadType() : cast<RankedTensorType>(type);
}

static ArrayRef<int64_t> getPermutation(Operation *copy) {
  if (auto transpose = dyn_cast<TransposeOp>(copy))
    return transpose.getPermutation();
  return cast<linalg::TransposeOp>(copy).getPermutation();
}

/// "256x64xf8E4M3FN".
static std::string describeType(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t extent : type.getShape())
    (ShapedType::isDynamic(extent) ? os << '?' : os << extent) << 'x';
  os << type.getElementType();
  return text;
}

/// Why a kernel does not take the operand as it was; empty if one would.
static std::string getReason(const Operand &operand,
                             const KernelTarget &target) {
  ArrayRef<int64_t> permutation = getPermutation(operand.copy);
  int64_t last = permutation.size() - 1;
  if (permutation.back() == last)
    return llvm::formatv("expected the dimensions of {0} in the order of "
                         "batches, rows and K",
                         operand.isB ? "B" : "A");
  std::string reason, unused;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(operand.op, reason);
  if (failed(spec))
    return reason;
  (operand.isB ? spec->b : spec->a).major = Major::MN;
  const KernelGenerator *generator =
      target.architecture->getGenerator(*spec, reason);
  if (!generator)
    return reason;
  auto config =
      operand.op->getAttrOfType<KernelConfigAttrInterface>(kConfigAttrName);
  FailureOr<KernelConfigAttrInterface> found =
      generator->select(*spec, target.attribute, unused);
  if (succeeded(found) &&
      transposesCodes(*spec, SelectedKernel{generator, *found})) {
    const OperandSpec &own = operand.isB ? spec->b : spec->a;
    return llvm::formatv("expected K to be the innermost dimension of {0}, "
                         "which the tensor core transposes only of 16-bit "
                         "elements, but they are {1}",
                         operand.isB ? "B" : "A", own.elementType);
  }
  if (succeeded(generator->checkFit(*spec, config, target.attribute, reason)) ||
      succeeded(found))
    return "";
  return reason;
}

/// An argument can come in another order, unless it is read in this one too.
std::string ReportCopiesPass::getSuggestion(const Operand &operand) const {
  auto argument = dyn_cast<BlockArgument>(operand.root);
  auto function =
      argument
          ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
          : FunctionOpInterface();
  bool isReadAsItLies = llvm::any_of(operands, [&](const Operand &other) {
    return other.root == operand.root && !other.copy;
  });
  if (function && !isReadAsItLies)
    return "pass " + fp8::getArgumentName(function, argument.getArgNumber()) +
           " with the K of this product innermost";
  StringRef change = isa<ScaledType>(operand.getValue().getType())
                         ? "give it the recipe none"
                         : "compute it in bf16 or f16";
  return (change + ", for kernels read bf16 and f16 in either order").str();
}

void ReportCopiesPass::report(const Operand &operand,
                              const KernelTarget &target) {
  StringRef gemm = getGemmName(operand.op);
  std::string reason = getReason(operand, target);
  if (reason.empty()) {
    LDBG() << gemm << ": the kernel would take " << operand.getName()
           << " without " << *operand.copy;
    return;
  }
  ++numCopies;
  auto function = operand.op->getParentOfType<FunctionOpInterface>();
  auto remark = remark::analysis(
      operand.op.getLoc(),
      remark::RemarkOpts::name("copy").category("fp8").function(
          function ? function.getName() : StringRef()));
  using Arg = remark::detail::Remark::Arg;
  RankedTensorType type = getCopiedType(operand.copy);
  remark << Arg("gemm", gemm) << Arg("operand", operand.getName())
         << Arg("type", describeType(type));
  if (type.hasStaticShape())
    remark << Arg("bytes",
                  type.getNumElements() * type.getElementTypeBitWidth() / 8);
  SmallVector<StringRef> others;
  for (const Operand &other : operands)
    if (other.copy == operand.copy && other.op != operand.op)
      others.push_back(getGemmName(other.op));
  if (!others.empty())
    remark << Arg("shared_with", llvm::join(others, " "));
  remark << Arg("Reason", reason) << Arg("Suggestion", getSuggestion(operand));
}

void ReportCopiesPass::runOnOperation() {
  markAllAnalysesPreserved();
  operands.clear();
  getOperation()->walk([&](MatmulOp op) {
    // Others are not computed by a kernel, and had a remark that says so.
    if (!op->getAttrOfType<KernelConfigAttrInterface>(kConfigAttrName))
      return;
    for (bool isB : {false, true})
      operands.push_back(trace(op, isB));
  });
  if (operands.empty())
    return;
  FailureOr<KernelTarget> target = lookupTarget(getOperation());
  if (failed(target))
    return signalPassFailure();
  for (const Operand &operand : operands)
    if (operand.copy)
      report(operand, *target);
}
