//===- FunctionReporter.cpp - The report of a function --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionReporter.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/ValueNames.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Report/Remarks.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static std::string describeType(Type type) {
  if (auto scaled = dyn_cast<ScaledType>(type))
    type = scaled.getPayloadType();
  auto shaped = dyn_cast<ShapedType>(type);
  std::string text;
  llvm::raw_string_ostream os(text);
  if (!shaped || !shaped.hasRank()) {
    os << type;
    return text;
  }
  for (int64_t extent : shaped.getShape())
    (ShapedType::isDynamic(extent) ? os << '?' : os << extent) << 'x';
  os << shaped.getElementType();
  return text;
}

static FusionReport::Tensor getTensor(Type type) {
  return {describeType(type), getBytes(type)};
}

/// Where it is, or else the innermost name, if it has either.
static std::string describePlace(Location loc) {
  std::string text = describeLocation(loc);
  if (text.empty())
    loc->walk([&](Location inner) {
      if (auto name = dyn_cast<NameLoc>(inner))
        text = name.getName().str();
      return WalkResult::advance();
    });
  return text;
}

static StringRef getName(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>(kNameAttrName);
  return name ? name.getValue() : StringRef();
}

std::string FunctionReporter::describeNode(unsigned node) const {
  StringRef name = getName(graph.getNodes()[node].op);
  if (!name.empty())
    return name.str();
  return numbers[node] ? "#" + std::to_string(numbers[node])
                       : describeWork(node);
}

std::string FunctionReporter::describeRoot(Value root) const {
  if (auto argument = dyn_cast<BlockArgument>(root)) {
    FunctionOpInterface function = graph.getFunction();
    return argument.getOwner()->getParentOp() == function.getOperation()
               ? getArgumentName(function, argument.getArgNumber())
               : "a value of a loop";
  }
  if (std::optional<unsigned> producer = graph.getProducer(root))
    return isLarge(root.getType())
               ? describeNode(*producer) + "'s " + describeType(root.getType())
               : describeNode(*producer) + "'s amax or scale";
  return (root.getDefiningOp()->getName().getStringRef() + " of " +
          describeType(root.getType()))
      .str();
}

std::string FunctionReporter::describeWork(unsigned number) const {
  const KernelNode &node = graph.getNodes()[number];
  if (StringRef name = getName(node.op); !name.empty())
    return name.str();
  llvm::SetVector<StringRef> kinds;
  node.op->walk([&](Operation *inner) {
    if (isa_and_present<FP8Dialect>(inner->getDialect()) &&
        (inner == node.op
             ? !isa<FusionOp>(inner)
             : !isa<AssembleOp, DisassembleOp, ComputeScaleOp, YieldOp>(inner)))
      kinds.insert(inner->getName().stripDialect());
    else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(inner);
             linalgOp && !isa<linalg::FillOp>(inner))
      kinds.insert(linalgOp.getNumReductionLoops() ? "reduction"
                                                   : "elementwise");
  });
  std::string text = llvm::join(kinds, " ");
  SmallVector<std::string> sources, users;
  for (const KernelNode::Read &read : node.reads)
    if (isLarge(read.root.getType()) || node.reads.size() == 1)
      sources.push_back(describeRoot(read.root));
  auto add = [&](StringRef name) {
    if (!name.empty() && !llvm::is_contained(users, name))
      users.push_back(name.str());
  };
  FunctionOpInterface function = graph.getFunction();
  Operation *end = function.getFunctionBody().back().getTerminator();
  for (Value result : node.op->getResults()) {
    for (unsigned reader : graph.getReaders(result))
      add(getName(graph.getNodes()[reader].op));
    for (auto [i, operand] : llvm::enumerate(end->getOperands()))
      if (graph.getRoots(operand).contains(result))
        add(getResultName(function, i));
  }
  if (!sources.empty())
    text += " of " + llvm::join(sources, ", ");
  if (!users.empty())
    text += " for " + llvm::join(users, ", ");
  return text;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

FunctionReporter::FunctionReporter(const KernelGraph &graph,
                                   ArrayRef<LaunchedKernel> launched,
                                   unsigned firstTag,
                                   const FusionReasons &reasons,
                                   GPUTargetAttr target)
    : graph(graph), launched(launched), firstTag(firstTag), reasons(reasons),
      target(target), numbers(graph.getNodes().size()) {
  for (auto [i, kernel] : llvm::enumerate(launched))
    if (kernel.kind == LaunchedKernel::Kind::Kernel ||
        kernel.kind == LaunchedKernel::Kind::Loop)
      for (unsigned tag : kernel.origins)
        if (size_t &number = numbers[tag - firstTag]; number == 0)
          number = i + 1;
}

std::optional<double> FunctionReporter::getFloor(std::optional<double> bytes,
                                                 double flops, int64_t bits,
                                                 unsigned numLaunches) const {
  double memory = target.getMemoryPeak() * 1e3;
  double peak = 2.0 * target.getMultiprocessors() * target.getMmaRate() *
                target.getClock() * 8 / bits;
  if (!bytes || memory <= 0 || peak <= 0)
    return std::nullopt;
  return std::max(*bytes / memory, flops / peak) +
         numLaunches * target.getLaunchTime() * 1e-3;
}

/// Operations of products on tensor cores; nothing if an extent is not known.
std::optional<double> FunctionReporter::getFlops(const KernelNode &node) const {
  auto multiply = [](RankedTensorType result,
                     int64_t k) -> std::optional<double> {
    if (!result.hasStaticShape() || ShapedType::isDynamic(k))
      return std::nullopt;
    return 2.0 * result.getNumElements() * k;
  };
  if (auto matmul = dyn_cast<MatmulOp>(node.op))
    return multiply(matmul.getResult().getType(), matmul.getShapeOfA().back());
  auto grouped = dyn_cast<GroupedMatmulOp>(node.op);
  if (!grouped)
    return 0;
  // As if every token were of a group; each is of one, but for those that have
  // a group's room.
  RankedTensorType result = grouped.getResult().getType();
  if (grouped.sumsGroups() && !grouped.isMasked())
    result = result.clone(result.getShape().drop_front());
  return multiply(result, grouped.getShapeOfA().back());
}

int64_t FunctionReporter::getBits(const KernelNode &node) const {
  if (!node.isContraction())
    return 8;
  auto getWidth = [](Value operand) -> int64_t {
    if (auto scaled = dyn_cast<ScaledType>(operand.getType()))
      return std::max<int64_t>(8,
                               scaled.getElementType().getIntOrFloatBitWidth());
    return getElementTypeOrSelf(operand.getType()).getIntOrFloatBitWidth();
  };
  return std::max(getWidth(node.op->getOperand(0)),
                  getWidth(node.op->getOperand(1)));
}

std::string FunctionReporter::getKind(const LaunchedKernel &kernel,
                                      std::optional<unsigned> node) const {
  switch (kernel.kind) {
  case LaunchedKernel::Kind::Copy:
    return "copy";
  case LaunchedKernel::Kind::Fill:
    return "fill";
  case LaunchedKernel::Kind::Loop:
    return "loop";
  case LaunchedKernel::Kind::Kernel:
    break;
  }
  auto op = node ? dyn_cast<KernelOpInterface>(graph.getNodes()[*node].op)
                 : KernelOpInterface();
  std::string unused;
  FailureOr<std::unique_ptr<KernelSpec>> spec = failure();
  if (op)
    spec = op.getKernelSpec(unused);
  return succeeded(spec) ? (*spec)->getKind().str() : "kernel";
}

/// Unknown if either is.
static void add(std::optional<double> &sum, std::optional<double> term) {
  sum = sum && term ? std::optional(*sum + *term) : std::nullopt;
}

FusionReport::Kernel
FunctionReporter::reportKernel(const LaunchedKernel &kernel) {
  FusionReport::Kernel report;
  std::optional<unsigned> node;
  if (!kernel.origins.empty())
    node = kernel.origins.front() - firstTag;
  report.kind = getKind(kernel, node);
  report.symbol = kernel.symbol;
  report.location =
      describePlace(node ? graph.getNodes()[*node].op->getLoc() : kernel.loc);
  for (Type type : kernel.reads)
    report.reads.push_back(getTensor(type));
  for (Type type : kernel.writes)
    report.writes.push_back(getTensor(type));
  if (kernel.hasAddresses) {
    report.reads.push_back({"memory by its address", std::nullopt});
    report.writes.push_back({"memory by its address", std::nullopt});
  }
  bool isWork = kernel.kind == LaunchedKernel::Kind::Kernel ||
                kernel.kind == LaunchedKernel::Kind::Loop;
  if (node && isWork)
    report.what =
        llvm::join(llvm::map_range(kernel.origins,
                                   [&](unsigned tag) {
                                     return describeWork(tag - firstTag);
                                   }),
                   "; ");
  else if (node)
    report.what = "for " + describeNode(*node);
  else
    report.what =
        report.location.empty() ? report.writes.front().type : report.location;
  std::optional<double> flops = 0;
  int64_t bits = 8;
  if (node && kernel.kind == LaunchedKernel::Kind::Kernel) {
    for (unsigned tag : kernel.origins)
      add(flops, getFlops(graph.getNodes()[tag - firstTag]));
    bits = getBits(graph.getNodes()[*node]);
  }
  report.flops = flops.value_or(0);
  if (flops)
    report.floor = getFloor(report.getBytes(), *flops, bits, 1);
  if (kernel.kind == LaunchedKernel::Kind::Loop && node)
    // What a kernel needs beside it has no reason.
    if (std::string reason = reasons.explainLoop(graph.getNodes()[*node].op);
        !reason.empty())
      report.notes.push_back("a loop: " + reason);
  if (kernel.isConditional)
    report.notes.push_back("in a loop or a branch, counted once");
  return report;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void FunctionReporter::addRefusals(FusionReport::Function &function) const {
  for (const KernelPair &pair : graph.getPairs()) {
    FusionReport::Refusal refusal;
    refusal.first = numbers[pair.first];
    refusal.second = numbers[pair.second];
    // Nothing is launched for it, or one kernel for both.
    if (!refusal.first || !refusal.second || refusal.first == refusal.second)
      continue;
    auto addNames = [&](const llvm::SetVector<Value> &values,
                        std::vector<std::string> &names) {
      for (Value value : values)
        if (std::string name = describeRoot(value);
            !llvm::is_contained(names, name))
          names.push_back(std::move(name));
    };
    addNames(pair.flows, refusal.flows);
    addNames(pair.shared, refusal.shared);
    refusal.savedBytes = pair.savedBytes;
    refusal.savedTime = getFloor(pair.savedBytes, 0, 8, 1);
    refusal.reason = reasons.explain(
        pair, [&](unsigned node) { return describeNode(node); });
    function.refusals.push_back(std::move(refusal));
  }
  // Those of which it is not known come last.
  llvm::sort(function.refusals, [](const auto &a, const auto &b) {
    double aBytes = a.savedBytes.value_or(-1);
    double bBytes = b.savedBytes.value_or(-1);
    return std::tie(bBytes, a.first, a.second) <
           std::tie(aBytes, b.first, b.second);
  });
}

void FunctionReporter::addFloor(FusionReport::Function &function) const {
  ProgramFloor floor =
      graph.getFloor([&](unsigned node) { return numbers[node]; });
  // Bytes of contractions, and beside them or in their epilogues.
  std::optional<double> products = 0, beside = floor.laterBytes;
  llvm::SmallDenseSet<size_t> launches;
  for (auto [number, bytes] : floor.operandBytes) {
    launches.insert(numbers[number]);
    const KernelNode &node = graph.getNodes()[number];
    std::optional<double> flops = getFlops(node);
    add(beside, bytes);
    add(products,
        flops ? getFloor(bytes, *flops, getBits(node), 0) : std::nullopt);
  }
  function.floorBytes = floor.earlyBytes;
  add(function.floorBytes, beside);
  // What comes before any contraction is a kernel more, or several.
  bool hasEarly = floor.earlyBytes.value_or(0) > 0;
  size_t numLaunches = std::max<size_t>(launches.size() + hasEarly, 1);
  function.floorTime = getFloor(floor.earlyBytes, 0, 8, numLaunches);
  std::optional<double> moving = getFloor(beside, 0, 8, 0);
  add(function.floorTime, products && moving
                              ? std::optional(std::max(*products, *moving))
                              : std::nullopt);
}

FusionReport::Function FunctionReporter::report() {
  FusionReport::Function function;
  function.name = graph.getFunction().getName();
  for (const LaunchedKernel &kernel : launched)
    function.kernels.push_back(reportKernel(kernel));
  addRefusals(function);
  addFloor(function);
  for (const RepeatedRead &repeated : graph.getRepeatedReads()) {
    FusionReport::Repeated entry{describeRoot(repeated.root),
                                 getTensor(repeated.root.getType()),
                                 {},
                                 {}};
    for (unsigned reader : repeated.readers)
      entry.readers.push_back(numbers[reader]);
    for (unsigned quantizer : repeated.quantizers)
      entry.quantizers.push_back(numbers[quantizer]);
    function.repeated.push_back(std::move(entry));
  }
  return function;
}
