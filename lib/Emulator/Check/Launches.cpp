//===- Launches.cpp - Launches that overlap -------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launches.h"

#include "Checker.h"

using namespace fp8emu;

/// Never destroyed: threads may outlive main.
LaunchHistory &LaunchHistory::get() {
  static auto *history = new LaunchHistory;
  return *history;
}

LaunchHistory::Word &LaunchHistory::getWord(uint64_t address) {
  uint64_t number = address >> kPageBits;
  if (number != lastNumber) {
    std::unique_ptr<Page> &page = pages[number];
    if (!page)
      page = std::make_unique<Page>();
    last = page.get();
    lastNumber = number;
  }
  return last->words[(address & ((1 << kPageBits) - 1)) / 4];
}

LaunchOverlap fp8emu::beginLaunch(const LaunchOverlap &previous,
                                  bool programmatic, std::string name) {
  static uint32_t numLaunches = 0;
  LaunchOverlap next;
  next.history = &LaunchHistory::get();
  next.number = ++numLaunches;
  next.history->names[next.number] = std::move(name);
  // One that lets the next begin early may itself still wait for others.
  if (programmatic && previous.triggers)
    next.first =
        previous.early && previous.first ? previous.first : previous.number;
  return next;
}

void Checker::waitForLaunches(Warp &warp, Mask lanes) {
  learn(warp, lanes, {launchAgent, 1});
}

void Checker::launchDependents(Warp &warp, Mask lanes) {
  cluster.grid.overlap.triggers = true;
  for (const WarpView::Part &part : warp.view.parts)
    if ((part.lanes & lanes) && getTime(part.view->known, launchAgent) == 0)
      cluster.grid.overlap.early = true;
}

void Checker::touchGlobal(Warp &warp, const Op &op, unsigned lane,
                          uint64_t address, uint64_t bytes, Access access) {
  LaunchOverlap &overlap = cluster.grid.overlap;
  if (!overlap.history || bytes == 0)
    return;
  bool waits = overlap.first &&
               getTime(getPart(warp, lane).view->known, launchAgent) == 0;
  for (uint64_t at = address / 4 * 4; at < address + bytes; at += 4) {
    LaunchHistory::Word &word = overlap.history->getWord(at);
    uint32_t other = access == Access::Read
                         ? word.writer
                         : std::max(word.writer, word.reader);
    if (waits && other >= overlap.first && other != overlap.number)
      report(kCheckLaunches, warp, op, Mask{1} << lane, other,
             std::string(access == Access::Read ? "reads" : "writes") +
                 " global memory at " + toHex(at) +
                 " before a griddepcontrol.wait, although kernel " +
                 overlap.history->names[other] +
                 (word.writer == other ? " writes it" : " reads it") +
                 " and may not have ended");
    if (access != Access::Write)
      word.reader = overlap.number;
    if (access != Access::Read)
      word.writer = overlap.number;
  }
}
