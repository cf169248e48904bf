//===- MBarriers.h - Barriers in shared memory ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_ASYNC_MBARRIERS_H
#define FP8_LIB_EMULATOR_ASYNC_MBARRIERS_H

#include "Exec/Addresses.h"

namespace fp8emu {

/// A barrier by where it lies.
struct MBarrierRef {
  Cta *cta;
  uint32_t offset;
  MBarrier *get() const {
    auto it = cta->mbarriers.find(offset);
    return it == cta->mbarriers.end() ? nullptr : &it->second;
  }
};

/// Most that a count can be, and transactions at a time.
constexpr int64_t kMaxCount = (1 << 20) - 1;

/// The barrier at an address, which must have been initialized. Throws Fault.
MBarrierRef findMBarrier(Warp &warp, const Op &op, unsigned lane, uint32_t row,
                         Place place);

/// Transactions that took place; the phase may end. What is wrong, or "".
std::string completeBytes(const MBarrierRef &barrier, int64_t bytes);

/// An arrival of asynchronous work that a thread has issued, with what it
/// publishes. Throws Fault.
void arriveLater(Warp &warp, const Op &op, unsigned lane,
                 const MBarrierRef &barrier, const View &known);

/// "mbarrier 'name'+8" for reports.
std::string describe(const MBarrierRef &barrier);
std::string describeLastArrival(const MBarrier &barrier);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_ASYNC_MBARRIERS_H
