//===- KernelGraph.cpp - Operations and the tensors between them ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelGraph.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

static bool isInMemory(Type type) { return isa<ShapedType, ScaledType>(type); }

/// Bytes of `root` that `view`, a slice of it perhaps, shows.
static std::optional<double> getBytesThrough(Value root, Value view) {
  std::optional<double> all = getBytes(root.getType());
  std::optional<double> seen = getBytes(view.getType());
  return all && seen ? std::optional(std::min(*all, *seen)) : all;
}

static void add(std::optional<double> &sum, std::optional<double> bytes) {
  sum = sum && bytes ? std::optional(*sum + *bytes) : std::nullopt;
}

static std::optional<double> getLarger(std::optional<double> a,
                                       std::optional<double> b) {
  return a && b ? std::optional(std::max(*a, *b)) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

/// What a kernel or a loop computes; all else views tensors, puts them
/// together, or makes room.
static bool isNode(Operation *op) {
  if (isa<linalg::FillOp>(op))
    return false;
  return isa<KernelOpInterface, linalg::LinalgOp, tensor::PadOp, AmaxOp,
             ComputeScaleOp, HadamardOp, QuantizeOp, DequantizeOp, MeasureOp,
             ReadSeedOp, RecordAmaxOp, StoreCachedOp, UpdateStateOp>(op);
}

void KernelGraph::collectRoots(Value value,
                               llvm::SetVector<Value> &roots) const {
  if (!isInMemory(value.getType()))
    return;
  Operation *op = value.getDefiningOp();
  if (!op || numbers.contains(op) || op->getNumRegions() != 0) {
    // A fill has a region, and holds nothing of anybody's.
    if (!isa_and_present<linalg::FillOp>(op))
      roots.insert(value);
    return;
  }
  if (isa<tensor::EmptyOp>(op))
    return;
  // Take the part of a scaled value that is meant.
  if (auto disassemble = dyn_cast<DisassembleOp>(op))
    if (auto assemble = disassemble.getSource().getDefiningOp<AssembleOp>()) {
      Value part = value == disassemble.getPayload() ? assemble.getPayload()
                   : value == disassemble.getScaleInv()
                       ? assemble.getScaleInv()
                       : assemble.getTensorScaleInv();
      return collectRoots(part, roots);
    }
  bool hasSource = false;
  for (Value operand : op->getOperands())
    if (isInMemory(operand.getType())) {
      collectRoots(operand, roots);
      hasSource = true;
    }
  // A constant, or a row of the state.
  if (!hasSource)
    roots.insert(value);
}

llvm::SetVector<Value> KernelGraph::getRoots(Value value) const {
  llvm::SetVector<Value> roots;
  collectRoots(value, roots);
  return roots;
}

/// Whether what `operand` holds is needed.
static bool isRead(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return !linalgOp.isDpsInit(&operand) ||
           linalgOp.payloadUsesValueFromOperand(&operand);
  // Codes are made with the scale alone, and a seed.
  if (auto quantize = dyn_cast<QuantizeOp>(op))
    return operand.get() == quantize.getSource() ||
           operand.get() == quantize.getScale() ||
           operand.get() == quantize.getSeed();
  if (auto fusion = dyn_cast<FusionOp>(op))
    return llvm::any_of(
        fusion.getBody().getArgument(operand.getOperandNumber()).getUses(),
        isRead);
  return true;
}

void KernelGraph::addNode(Operation *op) {
  KernelNode node{op, {}};
  llvm::SmallSetVector<unsigned, 4> needed;
  llvm::SmallSetVector<Value, 8> seen;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isRead(operand))
      continue;
    bool isOperand = node.isContraction() && operand.getOperandNumber() < 2;
    for (Value root : getRoots(operand.get())) {
      if (!seen.insert(root))
        continue;
      node.reads.push_back(
          {root, isOperand, getBytesThrough(root, operand.get())});
      readers[root].push_back(nodes.size());
      if (std::optional<unsigned> producer = getProducer(root))
        needed.insert(*producer);
    }
  }
  numbers[op] = nodes.size();
  nodes.push_back(std::move(node));
  needs.push_back(std::move(needed));
}

KernelGraph::KernelGraph(FunctionOpInterface function) : function(function) {
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isNode(op)) {
      addNode(op);
      return WalkResult::skip();
    }
    if (op->hasTrait<OpTrait::ReturnLike>() && op->getParentOp() == function)
      for (Value operand : op->getOperands())
        for (Value root : getRoots(operand)) {
          if (isa<BlockArgument>(root))
            continue;
          std::optional<double> bytes = getBytesThrough(root, operand);
          auto [known, isNew] = returned.insert({root, bytes});
          if (!isNew)
            known->second = getLarger(known->second, bytes);
        }
    return WalkResult::advance();
  });
}

std::optional<unsigned> KernelGraph::getProducer(Value root) const {
  Operation *op = root.getDefiningOp();
  auto found = op ? numbers.find(op) : numbers.end();
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

ArrayRef<unsigned> KernelGraph::getReaders(Value root) const {
  auto found = readers.find(root);
  return found == readers.end() ? ArrayRef<unsigned>() : found->second;
}

std::optional<unsigned> KernelGraph::findBetween(unsigned first,
                                                 unsigned second) const {
  // Nodes are in program order: what needs the first one comes after it.
  llvm::SmallDenseSet<unsigned> after{first};
  for (unsigned node = first + 1; node < second; ++node)
    if (llvm::any_of(needs[node],
                     [&](unsigned other) { return after.contains(other); }))
      after.insert(node);
  for (unsigned other : needs[second])
    if (other != first && after.contains(other))
      return other;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

bool KernelGraph::isOperand(Value root) const {
  return llvm::any_of(getReaders(root), [&](unsigned reader) {
    return llvm::any_of(nodes[reader].reads, [&](const KernelNode::Read &read) {
      return read.root == root && read.isOperand;
    });
  });
}

std::optional<double> KernelGraph::getReadBytes(Value root) const {
  std::optional<double> most = 0;
  for (unsigned reader : getReaders(root))
    for (const KernelNode::Read &read : nodes[reader].reads)
      if (read.root == root)
        most = getLarger(most, read.bytes);
  return most;
}

std::optional<double> KernelGraph::getWrittenBytes(Value root) const {
  const auto *found = returned.find(root);
  return found == returned.end() || isOperand(root) ? getBytes(root.getType())
                                                    : found->second;
}

std::optional<double> KernelGraph::getSavedBytes(const KernelPair &pair) const {
  std::optional<double> saved = 0;
  for (const auto *values : {&pair.flows, &pair.shared})
    for (Value value : *values)
      add(saved, getReadBytes(value));
  // What nobody else asks for is not written either.
  for (Value value : pair.flows)
    if (getReaders(value).size() == 1 && !isReturned(value))
      add(saved, getBytes(value.getType()));
  return saved;
}

SmallVector<KernelPair> KernelGraph::getPairs() const {
  llvm::MapVector<std::pair<unsigned, unsigned>, KernelPair> pairs;
  auto get = [&](unsigned first, unsigned second) -> KernelPair & {
    KernelPair &pair = pairs[{first, second}];
    pair.first = first;
    pair.second = second;
    return pair;
  };
  for (auto [number, node] : llvm::enumerate(nodes))
    for (const KernelNode::Read &read : node.reads) {
      std::optional<unsigned> producer = getProducer(read.root);
      if (producer && !read.isOperand)
        get(*producer, number).flows.insert(read.root);
      if (!isLarge(read.root.getType()))
        continue;
      for (unsigned other : getReaders(read.root))
        if (other < number)
          get(other, number).shared.insert(read.root);
    }
  SmallVector<KernelPair> result;
  for (auto &[key, pair] : pairs) {
    pair.savedBytes = getSavedBytes(pair);
    result.push_back(std::move(pair));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// What moves at least
//===----------------------------------------------------------------------===//

llvm::SetVector<Value> KernelGraph::getJoined() const {
  llvm::SetVector<Value> joined;
  for (auto [number, node] : llvm::enumerate(nodes)) {
    // The last of several products can do in its epilogue what needs them all.
    SmallVector<Value> results;
    for (const KernelNode::Read &read : node.reads)
      if (std::optional<unsigned> producer = getProducer(read.root);
          producer && !read.isOperand && isLarge(read.root.getType()) &&
          nodes[*producer].isContraction())
        results.push_back(read.root);
    if (!node.isContraction() && !results.empty()) {
      auto *last = llvm::max_element(results, [&](Value a, Value b) {
        return *getProducer(a) < *getProducer(b);
      });
      results.erase(last);
    }
    joined.insert_range(results);
  }
  return joined;
}

/// Whether `value` is the largest magnitude of all of a tensor.
static bool isWholeAmax(Value value) {
  if (isLarge(value.getType()))
    return false;
  Operation *op = value.getDefiningOp();
  if (auto fusion = dyn_cast_if_present<FusionOp>(op)) {
    Operation *end = fusion.getBody().front().getTerminator();
    op = end->getOperand(cast<OpResult>(value).getResultNumber())
             .getDefiningOp();
  }
  if (auto matmul = dyn_cast_if_present<MatmulOp>(op))
    return value == matmul.getAmax();
  return isa_and_present<AmaxOp>(op);
}

bool KernelGraph::waits(const KernelPair &pair) const {
  return llvm::any_of(pair.flows, isWholeAmax);
}

/// What is read to compute `value` a second time, if that is less than to write
/// it and read it back.
static std::optional<double> getBytesToRepeat(const KernelNode &producer,
                                              Value value) {
  if (producer.isContraction())
    return std::nullopt;
  std::optional<double> bytes = getBytes(value.getType()), sources = 0;
  for (const KernelNode::Read &source : producer.reads)
    if (isLarge(source.root.getType()))
      add(sources, source.bytes);
  if (!bytes || !sources || *sources >= 2 * *bytes)
    return std::nullopt;
  return sources;
}

/// Whether each node follows from arguments alone; `needs` are the nodes whose
/// results it needs.
static SmallVector<bool>
findEarly(ArrayRef<KernelNode> nodes,
          ArrayRef<llvm::SmallSetVector<unsigned, 4>> needs) {
  SmallVector<bool> isEarly;
  for (auto [node, producers] : llvm::zip_equal(nodes, needs))
    isEarly.push_back(!node.isContraction() &&
                      llvm::all_of(producers, [&](unsigned producer) {
                        return isEarly[producer];
                      }));
  return isEarly;
}

ProgramFloor
KernelGraph::getFloor(llvm::function_ref<unsigned(unsigned)> getLaunch) const {
  ProgramFloor floor{{}, 0, 0};
  SmallVector<bool> isEarly = findEarly(nodes, needs);
  auto isEarlyValue = [&](Value value) {
    std::optional<unsigned> producer = getProducer(value);
    return producer ? isEarly[*producer]
                    : llvm::any_of(getReaders(value), [&](unsigned reader) {
                        return isEarly[reader];
                      });
  };
  auto count = [&](Value value, std::optional<double> bytes) {
    std::optional<unsigned> producer = getProducer(value);
    if (producer && !getLaunch(*producer))
      return;
    add(isEarlyValue(value) ? floor.earlyBytes : floor.laterBytes, bytes);
  };

  // Arguments are read too.
  llvm::SetVector<Value> written, read = getJoined();
  read.remove_if([&](Value value) {
    unsigned launch = getLaunch(*getProducer(value));
    return launch && llvm::all_of(getReaders(value), [&](unsigned reader) {
             return getLaunch(reader) == launch;
           });
  });
  llvm::DenseSet<std::pair<unsigned, Value>> shared;
  for (const auto &[value, bytes] : returned)
    written.insert(value);
  written.insert_range(read);
  for (auto [number, node] : llvm::enumerate(nodes)) {
    if (!getLaunch(number))
      continue;
    std::optional<double> operands = 0;
    for (const KernelNode::Read &nodeRead : node.reads) {
      Value root = nodeRead.root;
      if (nodeRead.isOperand) {
        if (shared.insert({getLaunch(number), root}).second)
          add(operands, nodeRead.bytes);
        if (getProducer(root))
          written.insert(root);
      } else if (!getProducer(root) && isLarge(root.getType())) {
        read.insert(root);
      }
    }
    if (node.isContraction())
      floor.operandBytes[number] = operands;
  }
  // Once more what is needed after its amax is known, or what it is made of.
  llvm::SetVector<Value> repeated;
  for (const KernelPair &pair : getPairs()) {
    if (!waits(pair) || !getLaunch(pair.first) || !getLaunch(pair.second))
      continue;
    for (Value value : pair.shared)
      if (repeated.insert(value))
        count(value, getReadBytes(value));
    for (Value value : pair.flows) {
      if (!isLarge(value.getType()) || !repeated.insert(value))
        continue;
      std::optional<double> sources =
          getBytesToRepeat(nodes[pair.first], value);
      if (sources && !written.contains(value)) {
        add(isEarly[pair.first] ? floor.earlyBytes : floor.laterBytes, sources);
        continue;
      }
      written.insert(value);
      read.insert(value);
    }
  }
  for (Value value : written)
    count(value, getWrittenBytes(value));
  for (Value value : read)
    count(value, getReadBytes(value));
  return floor;
}

//===----------------------------------------------------------------------===//
// What is read for casts alone
//===----------------------------------------------------------------------===//

/// Whether `use` measures or quantizes what it reads: scales are given.
static bool quantizes(OpOperand &use) {
  return isa<AmaxOp, QuantizeOp>(use.getOwner()) && use.getOperandNumber() == 0;
}

/// Whether `op` does nothing with `root` but measure and quantize it.
static bool onlyQuantizes(const KernelGraph &graph, Operation *op, Value root) {
  auto fusion = dyn_cast<FusionOp>(op);
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    if (!graph.getRoots(operand.get()).contains(root))
      return true;
    if (!fusion)
      return quantizes(operand);
    BlockArgument argument =
        fusion.getBody().getArgument(operand.getOperandNumber());
    return llvm::all_of(argument.getUses(), quantizes);
  });
}

SmallVector<RepeatedRead> KernelGraph::getRepeatedReads() const {
  SmallVector<RepeatedRead> found;
  llvm::SetVector<Value> seen;
  for (const KernelNode &node : nodes)
    for (const KernelNode::Read &nodeRead : node.reads) {
      Value root = nodeRead.root;
      auto type = dyn_cast<RankedTensorType>(root.getType());
      auto element =
          type ? dyn_cast<FloatType>(type.getElementType()) : FloatType();
      if (!element || element.getWidth() < 16 || !isLarge(type) ||
          !seen.insert(root))
        continue;
      RepeatedRead repeated{root, SmallVector<unsigned>(getReaders(root)), {}};
      for (unsigned reader : repeated.readers)
        if (onlyQuantizes(*this, nodes[reader].op, root))
          repeated.quantizers.push_back(reader);
      if (repeated.readers.size() > 1 && !repeated.quantizers.empty())
        found.push_back(std::move(repeated));
    }
  return found;
}
