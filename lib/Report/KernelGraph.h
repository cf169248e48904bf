//===- KernelGraph.h - Operations and the tensors between them --*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_REPORT_KERNELGRAPH_H
#define FP8_LIB_REPORT_KERNELGRAPH_H

#include "fp8/Analysis/TensorMemory.h"
#include "fp8/IR/FP8Ops.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace mlir::fp8 {

/// An operation of a tensor program whose kernels are chosen: what a kernel, or
/// loops, compute.
struct KernelNode {
  struct Read {
    /// Where the tensor is made, behind what only views it or puts it together:
    /// a result of a node, an argument, or memory that is nobody's result.
    Value root;
    /// Whether a contraction reads it as one of its operands.
    bool isOperand;
    /// What is read of it: of a slice the slice's.
    std::optional<double> bytes;
  };

  Operation *op;
  SmallVector<Read> reads;

  /// Whether it is a product of two tensors, which are in memory.
  bool isContraction() const { return isa<MatmulOp, GroupedMatmulOp>(op); }
};

/// Two nodes of which the second reads what the first computes, or what the
/// first reads too.
struct KernelPair {
  unsigned first, second;
  llvm::SetVector<Value> flows, shared;
  /// Bytes that one kernel in place of both would not move.
  std::optional<double> savedBytes;
};

/// What moves at least, by docs/FusionReport.md: nothing where an extent is not
/// known.
struct ProgramFloor {
  /// What each contraction reads, by node.
  llvm::MapVector<unsigned, std::optional<double>> operandBytes;
  /// What is read and written before any product, and what can be read and
  /// written beside one.
  std::optional<double> earlyBytes, laterBytes;
};

/// A tensor in high precision that is read more than once, and at least once by
/// whom only quantizes or measures it.
struct RepeatedRead {
  Value root;
  /// The nodes that read it, and those of them that only quantize.
  SmallVector<unsigned> readers, quantizers;
};

/// The nodes of a function, and the tensors between them. Nodes in regions of
/// control flow are among them, what passes through its results is not.
class KernelGraph {
public:
  explicit KernelGraph(FunctionOpInterface function);

  FunctionOpInterface getFunction() const { return function; }
  ArrayRef<KernelNode> getNodes() const { return nodes; }
  /// Whether the function returns it, or a part of it.
  bool isReturned(Value root) const { return returned.contains(root); }

  /// The number of the node that computes `root`, if one does.
  std::optional<unsigned> getProducer(Value root) const;
  ArrayRef<unsigned> getReaders(Value root) const;
  /// A node that needs the first one's results, and whose results the second
  /// one needs.
  std::optional<unsigned> findBetween(unsigned first, unsigned second) const;

  /// Where what `value` holds is made, with its factors if it is scaled.
  llvm::SetVector<Value> getRoots(Value value) const;

  /// Without those whose tensor has to be in memory, as it is an operand of the
  /// second, a contraction.
  SmallVector<KernelPair> getPairs() const;
  /// `getLaunch` says which launch computes a node, 0 if none does: equal nodes
  /// are one, and some go into others. What contractions of one launch share
  /// counts once, and not at all what one of them makes for the other.
  ProgramFloor getFloor(llvm::function_ref<unsigned(unsigned)> getLaunch) const;
  SmallVector<RepeatedRead> getRepeatedReads() const;

private:
  void addNode(Operation *op);
  /// The most of it that a node reads, and what of it has to be written.
  std::optional<double> getReadBytes(Value root) const;
  std::optional<double> getWrittenBytes(Value root) const;
  void collectRoots(Value value, llvm::SetVector<Value> &roots) const;
  bool isOperand(Value root) const;
  /// Whether the first one measures all of a tensor, and the second one needs
  /// to know.
  bool waits(const KernelPair &pair) const;
  std::optional<double> getSavedBytes(const KernelPair &pair) const;
  /// Results of contractions that another one's kernel, or a pass over several,
  /// reads.
  llvm::SetVector<Value> getJoined() const;

  FunctionOpInterface function;
  SmallVector<KernelNode> nodes;
  /// What the function returns but for arguments, and how much of it.
  llvm::MapVector<Value, std::optional<double>> returned;
  DenseMap<Operation *, unsigned> numbers;
  DenseMap<Value, SmallVector<unsigned>> readers;
  /// Whose results each node needs, directly.
  SmallVector<llvm::SmallSetVector<unsigned, 4>> needs;
};

} // namespace mlir::fp8

#endif // FP8_LIB_REPORT_KERNELGRAPH_H
