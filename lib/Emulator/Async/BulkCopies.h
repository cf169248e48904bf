//===- BulkCopies.h - Bulk copies -------------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_ASYNC_BULKCOPIES_H
#define FP8_LIB_EMULATOR_ASYNC_BULKCOPIES_H

#include "Async/MBarriers.h"
#include "Check/Checker.h"

namespace fp8emu {

/// One that is in a thread's group that is not committed yet.
struct BulkTicket {
  Cta *cta;
  unsigned thread;
  uint64_t number;

  BulkGroup &group() const {
    BulkGroups &groups = cta->bulkGroups[thread];
    return groups.groups[number - groups.first];
  }
  /// The race checker's: when the group's reads have been waited for.
  Announcement announcement() const {
    return {cta->bulkGroups[thread].agent, static_cast<uint32_t>(number) + 1};
  }
  /// The same of its writes.
  Announcement announcementOfWrites() const {
    Announcement reads = announcement();
    return {reads.agent + 1, reads.time};
  }
  void readDone() const { --group().unread; }
  void writeDone() const;
};

BulkTicket joinBulkGroup(Warp &warp, unsigned lane);

/// An action of a copy goes wrong later than where it was issued: what reports
/// say of that place.
struct IssuePlace {
  IssuePlace(Warp &warp, const Op &op, unsigned lane)
      : warp(&warp), op(&op), lane(lane) {}
  [[noreturn]] void fault(int code, const std::string &what) const {
    warp->fault(*op, Mask{1} << lane, code, what);
  }
  Warp *warp;
  const Op *op;
  unsigned lane;
};

/// Tells barriers of transactions, in up to `pieces` parts.
class Completion {
public:
  Completion(IssuePlace place, std::vector<MBarrierRef> barriers, int64_t bytes)
      : place(place), barriers(std::move(barriers)), left(bytes) {}
  /// False when all are told.
  bool advance();

private:
  IssuePlace place;
  std::vector<MBarrierRef> barriers;
  int64_t left;
};

/// When the barrier's phase ends.
Announcement announce(const MBarrierRef &barrier);

/// From the issue of a copy on nobody may rely on what its targets held; to the
/// race checker it writes them until each one's barrier has ended its phase.
void writeLater(Warp &warp, const Op &op, unsigned lane,
                const std::vector<SharedRange> &targets,
                const std::vector<MBarrierRef> &barriers, uint32_t bytes);

/// The bits of a hint or a mask of blocks.
std::vector<MBarrierRef> multicastBarriers(Warp &warp, const Op &op,
                                           unsigned lane,
                                           const MBarrierRef &barrier,
                                           uint32_t mask);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_ASYNC_BULKCOPIES_H
