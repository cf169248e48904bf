//===- Checker.h - Accesses without an order between them -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The checker of a cluster. Two accesses of the same bytes, one of which
// writes, must be ordered by barriers, fences and waits, whatever order they
// took place in here. An asynchronous operation counts as begun when it is
// issued, with what its issuer knows, and as done when its barrier's phase ends
// or its group is waited for. docs/Emulator.md has the rules.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_CHECK_CHECKER_H
#define FP8_LIB_EMULATOR_CHECK_CHECKER_H

#include "Async/MBarriers.h"
#include "Check/Shadow.h"

namespace fp8emu {

/// The agent that announces the end of an asynchronous operation, and when.
struct Announcement {
  uint32_t agent = kNoAgent;
  uint32_t time = 0;
};

constexpr unsigned kTensorLanes = 128, kTensorColumns = 512;
constexpr uint8_t kAllTensorLanes = 0xff;

/// Columns of tensor memory; of lanes, a bit for each 16.
struct TensorRegion {
  uint32_t column, columns;
  uint8_t lanes;
};

enum class TensorUse : uint8_t {
  Load,
  Store,
  Fill,    /* tcgen05.cp */
  Operand, /* A */
  Factors,
  Result,      /* D, whatever it was */
  Accumulator, /* D, which is added to */
  Free,
};

class Checker {
public:
  explicit Checker(Cluster &cluster);

  bool looksFor(uint32_t check) const { return checks & check; }

  //===--------------------------------------------------------------------===//
  // Order
  //===--------------------------------------------------------------------===//

  /// Publishes what lanes know and have done.
  void release(Warp &warp, Mask lanes, View &into);
  /// As a relaxed operation does: what their last fence has released.
  void releaseFenced(Warp &warp, Mask lanes, View &into);
  void acquire(Warp &warp, Mask lanes, const View &from);
  /// As a relaxed operation does: for the next fence.
  void acquireLater(Warp &warp, Mask lanes, const View &from);
  /// All of the lanes know what one of them does.
  void synchronize(Warp &warp, Mask lanes);
  void fence(Warp &warp, Mask lanes);
  void fenceProxy(Warp &warp, Mask lanes);

  /// One more agent, of asynchronous operations.
  uint32_t addAgent() { return numAgents++; }
  /// The lanes have waited for it.
  void learn(Warp &warp, Mask lanes, Announcement done);

  //===--------------------------------------------------------------------===//
  // Accesses
  //===--------------------------------------------------------------------===//

  /// Checks lanes' access to the host's memory. What is not in shared memory is
  /// only looked at for its order: op.flags say if it releases or acquires.
  void access(Warp &warp, const Op &op, Mask mask,
              uint8_t *const (&host)[kLanes], uint32_t bytes, Access access);
  /// Checks an asynchronous operation on a range of shared memory.
  void accessLater(Warp &warp, const Op &op, Mask lanes, const Cta &cta,
                   uint32_t offset, uint32_t bytes, uint8_t flags,
                   Announcement done);
  /// mbarrier.init and mbarrier.inval write, all others are atomic.
  void accessBarrier(Warp &warp, const Op &op, Mask lanes,
                     const MBarrierRef &barrier, bool writes);
  /// By what is announced there: the barrier's initialization must have been
  /// shown to the asynchronous proxy.
  void announceAt(Warp &warp, const Op &op, unsigned lane,
                  const MBarrierRef &barrier);

  //===--------------------------------------------------------------------===//
  // Tensor memory
  //===--------------------------------------------------------------------===//

  void accessTensor(Warp &warp, const Op &op, Mask lanes, const Cta &cta,
                    TensorRegion region, TensorUse use, Announcement done);
  /// Columns that are allocated: nobody has written them.
  void clearTensor(const Cta &cta, uint32_t column, uint32_t columns);
  void fenceTensorBefore(Warp &warp, Mask lanes);
  void fenceTensorAfter(Warp &warp, Mask lanes);
  /// What tcgen05.commit tells of: all that its thread has issued, and what
  /// that came after.
  void publishTensor(Warp &warp, unsigned lane, Announcement issued,
                     View &into);

  uint32_t getIndex(const Op &op) const;
  //===--------------------------------------------------------------------===//
  // Registers that wgmma uses
  //===--------------------------------------------------------------------===//

  /// An instruction of a warp that may have products in flight.
  void useRegisters(Warp &warp, const Op &op, Mask mask);
  /// A product of a group, with the rows of its accumulators, and of A.
  void multiply(Warp &warp, const Op &op, const uint32_t *rows, size_t columns,
                bool aInRegisters, uint32_t group);

  //===--------------------------------------------------------------------===//
  // Launches that overlap
  //===--------------------------------------------------------------------===//

  void waitForLaunches(Warp &warp, Mask lanes);
  void launchDependents(Warp &warp, Mask lanes);
  void touchGlobal(Warp &warp, const Op &op, unsigned lane, uint64_t address,
                   uint64_t bytes, Access access);

  //===--------------------------------------------------------------------===//
  // Global memory that nobody has written
  //===--------------------------------------------------------------------===//

  void touchUnwritten(Warp &warp, const Op &op, unsigned lane, uint64_t address,
                      uint64_t bytes, Access access);

  //===--------------------------------------------------------------------===//
  // Global memory within a launch
  //===--------------------------------------------------------------------===//

  /// Checks an asynchronous operation on a range.
  void accessGlobalLater(Warp &warp, const Op &op, unsigned lane,
                         uint64_t address, uint64_t bytes, Access access,
                         Announcement done);

  /// Tells once of each pair of statements.
  void report(uint32_t check, Warp &warp, const Op &op, Mask lanes,
              uint32_t other, const std::string &what);

private:
  struct Subject {
    Warp &warp;
    const Op &op;
    Mask lanes;
    const WarpView::Part &part;
    uint8_t flags;
    bool later;
  };
  enum class Verdict : uint8_t { Ordered, Unordered, Unfenced };

  WarpView::Part &getPart(Warp &warp, unsigned lane);
  /// Calls `change` with the view of each part of the lanes, which is that of
  /// these lanes alone.
  template <class F>
  void forEachPart(Warp &warp, Mask lanes, F change);
  void publishOwn(Warp &warp, Mask lanes, Clock &known) const;
  Verdict judge(const ShadowEntry &old, const Subject &subject) const;
  void check(const Subject &subject, const Cta &cta, uint32_t cell,
             uint16_t bytes);
  void reportUnwritten(const Subject &subject, const Cta &cta, uint32_t cell,
                       uint16_t bytes);
  bool addsNumbers(const Op &op) const;
  bool isOrderedGlobally(const ShadowEntry &old, const Subject &subject) const;
  void checkGlobal(const Subject &subject, const Shadow &page, uint32_t cell,
                   uint16_t bytes, uint64_t address);
  ShadowEntry makeGlobalEntry(const Warp &warp, const Op &op,
                              uint8_t flags) const;
  void accessGlobal(Warp &warp, const Op &op, Mask mask,
                    uint8_t *const (&host)[kLanes], uint32_t bytes,
                    uint8_t flags, uint32_t time);
  void touchElements(Warp &warp, const Op &op, Mask mask,
                     uint8_t *const (&host)[kLanes], uint32_t bytes,
                     Access access);
  void orderGlobal(Warp &warp, const Op &op, unsigned lane, const uint8_t *host,
                   Access access);
  std::string describeGlobal(const ShadowEntry &entry) const;
  void order(Warp &warp, const Op &op, unsigned lane, const uint8_t *word,
             Access access);
  bool isGlobal(const Warp &warp, const uint8_t *host) const;
  const Cta *findBlock(const Warp &warp, const uint8_t *host) const;
  std::string describe(const ShadowEntry &entry) const;
  Verdict judgeTensor(const ShadowEntry &old, const Subject &subject,
                      uint32_t stream) const;

  Cluster &cluster;
  const uint32_t checks;
  const bool strict;
  uint32_t numAgents;
  uint32_t launchAgent;        /* the end of the launches before */
  std::vector<Shadow> shadows; /* of each block */
  /// Shadows of each block's tensor memory: a byte is 16 lanes of a column.
  std::vector<Shadow> tensorShadows;
  /// What atomic and release operations have published at a word.
  std::unordered_map<const uint8_t *, View> words;
};

/// "a write", "an asynchronous read".
const char *describeUse(uint8_t flags, bool later);

/// "[name+8] of shared memory", of another block with its rank.
std::string describeShared(const Cta &cta, uint32_t offset,
                           const Cta *own = nullptr);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_CHECK_CHECKER_H
