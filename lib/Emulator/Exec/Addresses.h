//===- Addresses.h - From addresses to memory of the host -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_EXEC_ADDRESSES_H
#define FP8_LIB_EMULATOR_EXEC_ADDRESSES_H

#include "Exec/Lanes.h"

namespace fp8emu {

/// Where an address points to, in Op::flags of what accesses memory.
enum class Place : uint8_t {
  Generic,
  Global,
  Shared,        /* of the own block */
  SharedCluster, /* of any block of the cluster */
  Local,
  Param,
  Const,
};

enum class Access : uint8_t { Read, Write, Atomic };

/// Op::flags of loads and stores.
constexpr uint32_t kPlaceMask = 7;
constexpr uint32_t kWideAddress = 8; /* the base has 64 bits */
constexpr uint32_t kRelease = 16, kAcquire = 32, kRelaxed = 64;
/// Marks a load of which somebody uses only some bytes: Op::s[3] has a bit for
/// each byte that somebody does. Compilers widen loads so.
constexpr uint32_t kPartlyUsed = 128;

/// Takes the state space off an opcode; generic without one.
Place takePlace(Modifiers &modifiers);

/// The address of a lane: base and offset.
uint64_t getAddress(Warp &warp, const Op &op, unsigned lane, uint32_t row);

/// The same of one of an operation's several (Decoder::addAddress).
inline uint64_t getAddress(Warp &warp, const uint32_t *entry, unsigned lane) {
  uint64_t base = entry[2] ? warp.row<uint64_t>(entry[0])[lane]
                           : warp.row<uint32_t>(entry[0])[lane];
  return base + static_cast<uint64_t>(
                    static_cast<int64_t>(static_cast<int32_t>(entry[1])));
}

/// Memory of the host for each lane that takes part, after checks of bounds,
/// alignment and, of shared memory, of what else happens there. Throws Fault.
void resolve(Warp &warp, const Op &op, Mask mask, uint32_t row, unsigned bytes,
             Access access, uint8_t *(&host)[kLanes]);

/// The same for a range of global memory that an asynchronous copy touches.
uint8_t *resolveGlobal(Warp &warp, const Op &op, Mask lane, uint64_t address,
                       uint64_t bytes, Access access);

/// A range of shared memory by its address in the cluster's window; the block
/// that has it.
struct SharedRange {
  Cta *cta;
  uint32_t offset;
  uint8_t *data() const { return cta->shared + offset; }
};
SharedRange resolveShared(Warp &warp, const Op &op, Mask lane, uint64_t address,
                          uint64_t bytes, unsigned align, bool anyBlock);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_EXEC_ADDRESSES_H
