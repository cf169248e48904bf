//===- Matrices.cpp - ldmatrix and stmatrix -------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Addresses.h"

using namespace fp8emu;

/// Op::flags besides those of addresses.
enum : uint32_t { kTransposed = 1 << 8 };

/// Rows of 16 bytes: that of matrix j is where lane 8 j + row points to.
static void getRows(Warp &warp, const Op &op, Mask mask,
                    uint8_t *(&rows)[kLanes], Access access) {
  Mask used = op.count == 4 ? ~Mask{0} : (Mask{1} << 8 * op.count) - 1;
  resolve(warp, op, mask & used, op.s[0], 16, access, rows);
}

template <bool Store>
static Step moveMatrices(Warp &warp, const Op &op, Mask mask) {
  uint8_t *rows[kLanes];
  getRows(warp, op, mask, rows, Store ? Access::Write : Access::Read);
  const uint32_t *registers = &warp.cta.cluster.grid.program.rows[op.rows];
  bool transposed = op.flags & kTransposed;
  for (unsigned j = 0; j < op.count; ++j) {
    auto *fragment = warp.row<uint32_t>(registers[j]);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      for (unsigned half = 0; half < 2; ++half) {
        unsigned row = lane / 4, column = lane % 4 * 2 + half;
        if (transposed)
          std::swap(row, column);
        uint8_t *place = rows[8 * j + row] + 2 * column;
        auto *element = reinterpret_cast<uint8_t *>(fragment + lane) + 2 * half;
        if (Store)
          std::memcpy(place, element, 2);
        else
          std::memcpy(element, place, 2);
      }
  }
  return Step::Next;
}

template <bool Store>
static void decodeMatrices(Decoder &decoder, Modifiers &modifiers, Op &op) {
  modifiers.take("sync");
  auto count = modifiers.takeOneOf({"x1", "x2", "", "x4"});
  if (!modifiers.take("aligned") || !modifiers.take("m8n8") || !count ||
      !modifiers.take("b16"))
    decoder.fail("expected .aligned, .m8n8, a number and .b16");
  op.flags = modifiers.take("trans") ? kTransposed : 0;
  op.flags |= static_cast<uint32_t>(takePlace(modifiers));
  op.count = static_cast<uint16_t>(*count + 1);
  decoder.expectOperands(2);
  Decoder::Address address = decoder.address(decoder.operand(Store ? 0 : 1));
  op.s[0] = address.row;
  op.imm = address.offset;
  op.flags |= address.wide ? kWideAddress : 0;
  std::vector<uint32_t> rows;
  for (const Operand *element :
       decoder.elements(decoder.operand(Store ? 1 : 0)))
    rows.push_back(Store ? decoder.sourceBits(*element, 32)
                         : decoder.destination(*element, 32));
  if (rows.size() != op.count)
    decoder.fail("expected " + std::to_string(op.count) +
                 " registers, but got " + std::to_string(rows.size()));
  op.rows = decoder.addRows(rows);
  op.aligned = true;
  op.handler = moveMatrices<Store>;
}

void fp8emu::addMatrices(DecodeTable &table) {
  table["stmatrix"] = decodeMatrices<true>;
  table["ldmatrix"] = decodeMatrices<false>;
}
