//===- Shadow.cpp - Who touched a block's shared memory last --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Shadow.h"

using namespace fp8emu;

/// A later access that is ordered after `now` is ordered after `old`, too: if
/// `now` writes it is reported or ordered; of reads, those of the same agent.
static bool covers(const ShadowEntry &now, const ShadowEntry &old) {
  bool sameAgent = old.warp == now.warp && old.agent == now.agent &&
                   old.cluster == now.cluster && !(old.lanes & ~now.lanes);
  if (!(now.flags & kWrites))
    return sameAgent && (old.flags & ~kWrites) == now.flags &&
           !(old.flags & kWrites);
  // Others' strong accesses have no quarrel with this one, but may have one
  // with what came before.
  if (now.flags & kStrong)
    return sameAgent && (old.flags & kStrong);
  return true;
}

void Shadow::insert(uint32_t cell, const ShadowEntry &entry) {
  unsigned count = 0, reads = 0;
  uint32_t *link = &heads[cell];
  while (uint32_t i = *link) {
    ShadowEntry &old = pool[i];
    // Lanes of one instruction that touch the same bytes.
    if (old.bytes == entry.bytes && old.op == entry.op &&
        old.time == entry.time && old.warp == entry.warp &&
        old.agent == entry.agent && old.cluster == entry.cluster) {
      old.lanes |= entry.lanes;
      return;
    }
    if (covers(entry, old))
      old.bytes &= static_cast<uint16_t>(~entry.bytes);
    bool isOneTooMany = ++count >= mostEntries ||
                        (!(old.flags & kWrites) && ++reads >= mostReads);
    if (old.bytes == 0 || isOneTooMany) {
      *link = old.next;
      old.next = free;
      free = i;
      continue;
    }
    link = &old.next;
  }
  uint32_t i = free;
  if (i) {
    free = pool[i].next;
  } else {
    i = static_cast<uint32_t>(pool.size());
    pool.emplace_back();
  }
  pool[i] = entry;
  pool[i].next = heads[cell];
  heads[cell] = i;
}

void Shadow::clear(uint32_t cell, uint16_t bytes) {
  written[cell] &= static_cast<uint16_t>(~bytes);
  uint32_t *link = &heads[cell];
  while (uint32_t i = *link) {
    ShadowEntry &old = pool[i];
    old.bytes &= static_cast<uint16_t>(~bytes);
    if (old.bytes) {
      link = &old.next;
      continue;
    }
    *link = old.next;
    old.next = free;
    free = i;
  }
}
