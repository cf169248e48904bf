//===- Wgmma.cpp - Matrix instructions of warpgroups ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "wgmma". Each of a warpgroup's four warps computes 16 of the 64 rows
// by itself: it reads its quarter of A and all of B. That happens late, and
// until it is waited for, the accumulators' registers hold nothing of use.
//
//===----------------------------------------------------------------------===//

#include "Check/Checker.h"
#include "Tensor/Descriptor.h"
#include "Tensor/Fragments.h"

using namespace fp8emu;

//===----------------------------------------------------------------------===//
// Operands in shared memory
//===----------------------------------------------------------------------===//

namespace {
/// What an instruction is, for all lanes.
struct Shape {
  Element typeA, typeB;
  unsigned columns;
  bool transposeA, transposeB, aInRegisters;
};
} // namespace

static Shape unpackShape(const Op &op) {
  return {static_cast<Element>(op.flags & 7),
          static_cast<Element>(op.flags >> 3 & 7),
          op.count,
          bool(op.flags >> 6 & 1),
          bool(op.flags >> 7 & 1),
          bool(op.flags >> 8 & 1)};
}

static uint32_t packShape(const Shape &shape) {
  return static_cast<uint32_t>(shape.typeA) |
         static_cast<uint32_t>(shape.typeB) << 3 |
         uint32_t{shape.transposeA} << 6 | uint32_t{shape.transposeB} << 7 |
         uint32_t{shape.aInRegisters} << 8;
}

/// Rows of 32 bytes of K.
static void readRows(Warp &warp, const Op &op, const Descriptor &descriptor,
                     unsigned firstRow, unsigned rows, Element type,
                     bool transposed, uint8_t (*out)[32]) {
  const Cta &cta = warp.cta;
  auto check = [&](uint32_t address, uint32_t bytes) {
    if (address < kSharedBase || address + bytes > cta.sharedBytes)
      warp.fault(op, warp.live, kIllegalAddress,
                 "an operand at " + toHex(address) +
                     " of shared memory is out of bounds: the block has " +
                     toHex(kSharedBase) + " to " + toHex(cta.sharedBytes));
  };
  unsigned bytes = getBytes(type);
  for (unsigned row = 0; row < rows; ++row) {
    if (!transposed) {
      for (unsigned byte = 0; byte < 32; byte += 16) {
        uint32_t address = descriptor.locateK(firstRow + row, byte);
        check(address, 16);
        std::memcpy(out[row] + byte, cta.shared + address, 16);
      }
      continue;
    }
    for (unsigned k = 0; k < 32 / bytes; ++k) {
      uint32_t address = descriptor.locateMN(firstRow + row, k, bytes);
      check(address, bytes);
      std::memcpy(out[row] + k * bytes, cta.shared + address, bytes);
    }
  }
}

/// The same to the race checker, by pieces of 16 bytes. What is out of bounds
/// is found when it is read.
static void checkRows(Checker &checker, Warp &warp, const Op &op,
                      const Descriptor &descriptor, unsigned firstRow,
                      unsigned rows, Element type, bool transposed,
                      Announcement done) {
  auto read = [&](uint32_t address) {
    if (address >= kSharedBase && address + 16 <= warp.cta.sharedBytes)
      checker.accessLater(warp, op, warp.live, warp.cta, address, 16,
                          kAsyncProxy, done);
  };
  unsigned bytes = getBytes(type);
  if (!transposed) {
    for (unsigned row = 0; row < rows; ++row)
      for (unsigned byte = 0; byte < 32; byte += 16)
        read(descriptor.locateK(firstRow + row, byte));
    return;
  }
  for (unsigned row = 0; row < rows; row += 16 / bytes)
    for (unsigned k = 0; k < 32 / bytes; ++k)
      read(descriptor.locateMN(firstRow + row, k, bytes));
}

//===----------------------------------------------------------------------===//
// Accumulators
//===----------------------------------------------------------------------===//

namespace fp8emu {
/// Registers that instructions in flight will write.
struct Accumulators {
  std::vector<uint32_t> rows; /* of registers */
  std::vector<float> values;  /* 16 rows of the product */
  unsigned inFlight = 0;
};
} // namespace fp8emu

static std::shared_ptr<Accumulators> takeAccumulators(Warp &warp, const Op &op,
                                                      const uint32_t *rows,
                                                      unsigned columns) {
  size_t count = columns / 2;
  for (auto &known : warp.tensor.accumulators)
    if (known->rows[0] == rows[0]) {
      if (!std::equal(known->rows.begin(), known->rows.end(), rows,
                      rows + count))
        warp.fault(op, warp.live, kLaunchFailed,
                   "expected the accumulators of the instruction in flight, "
                   "but got some of them");
      return known;
    }
  auto made = std::make_shared<Accumulators>();
  made->rows.assign(rows, rows + count);
  made->values.resize(size_t{kWarpRows} * columns);
  for (unsigned i = 0; i < count; ++i) {
    auto *row = warp.row<float>(rows[i]);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      made->values[locateSum(i, lane, columns)] = row[lane];
    std::memset(row, 0xff, sizeof(float) * kLanes);
  }
  warp.tensor.accumulators.push_back(made);
  return made;
}

static void giveBack(Warp &warp, const std::shared_ptr<Accumulators> &done) {
  auto columns = static_cast<unsigned>(done->rows.size()) * 2;
  for (unsigned i = 0; i < done->rows.size(); ++i) {
    auto *row = warp.row<float>(done->rows[i]);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      row[lane] = done->values[locateSum(i, lane, columns)];
  }
  std::erase(warp.tensor.accumulators, done);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

static uint64_t getStream(const Warp &warp) { return uint64_t{warp.agent} + 1; }

static Step multiply(Warp &warp, const Op &op, Mask mask) {
  Cluster &cluster = warp.cta.cluster;
  Shape shape = unpackShape(op);
  const uint32_t *rows = &cluster.grid.program.rows[op.rows];
  auto descriptorB =
      Descriptor(getUniform<uint64_t>(warp, op, mask, op.s[1], "a descriptor"));
  Descriptor descriptorA(0);
  auto operands = std::make_shared<Operands>();
  operands->typeA = shape.typeA;
  operands->typeB = shape.typeB;
  operands->columns = shape.columns;
  if (shape.aInRegisters)
    readFragments(warp, rows + shape.columns / 2, operands->a);
  else
    descriptorA = Descriptor(
        getUniform<uint64_t>(warp, op, mask, op.s[0], "a descriptor"));
  if (descriptorA.baseOffset || descriptorB.baseOffset)
    warp.fault(op, mask, kIllegalInstruction,
               "expected a base offset of 0, the only one that is modelled");
  Mask scale = (warp.predicate(op.s[2]) ^ (op.width ? ~Mask{0} : 0)) & mask;
  if (scale != 0 && scale != mask)
    warp.fault(op, mask, kLaunchFailed,
               "expected scale-d to be the same in all lanes");
  bool fresh = scale == 0;
  auto accumulators = takeAccumulators(warp, op, rows, shape.columns);
  ++accumulators->inFlight;
  WarpTensorState::Group &group = warp.tensor.groups.back();
  ++group.inFlight;
  uint64_t number = warp.tensor.first + warp.tensor.groups.size() - 1;
  unsigned quarter = warp.index % 4 * kWarpRows;
  if (Checker *checker = cluster.checker.get()) {
    if (!warp.tensor.agent)
      warp.tensor.agent = checker->addAgent();
    Announcement done{warp.tensor.agent, static_cast<uint32_t>(number) + 1};
    if (checker->looksFor(kCheckRegisters))
      checker->multiply(warp, op, rows, shape.columns, shape.aInRegisters,
                        done.time);
    if (!shape.aInRegisters)
      checkRows(*checker, warp, op, descriptorA, quarter, kWarpRows,
                shape.typeA, shape.transposeA, done);
    checkRows(*checker, warp, op, descriptorB, 0, shape.columns, shape.typeB,
              shape.transposeB, done);
  }
  AsyncOp work;
  work.stream = getStream(warp);
  work.line = cluster.grid.program.getLine(op);
  work.advance = [&warp, &op, shape, operands, descriptorA, descriptorB, fresh,
                  accumulators, number, quarter] {
    if (!shape.aInRegisters)
      readRows(warp, op, descriptorA, quarter, kWarpRows, shape.typeA,
               shape.transposeA, operands->a);
    readRows(warp, op, descriptorB, 0, shape.columns, shape.typeB,
             shape.transposeB, operands->b);
    bool exact = warp.cta.cluster.grid.settings.exact;
    (exact ? multiplyAccumulate : multiplyAccumulatePlain)(
        *operands, fresh, accumulators->values.data());
    if (--accumulators->inFlight == 0)
      giveBack(warp, accumulators);
    --warp.tensor.groups[number - warp.tensor.first].inFlight;
    return false;
  };
  cluster.queue.push(std::move(work));
  return Step::Next;
}

static Step fenceRegisters(Warp &warp, const Op &, Mask) {
  ++warp.tensor.fences;
  return Step::Next;
}

static Step commit(Warp &warp, const Op &, Mask) {
  WarpTensorState &tensor = warp.tensor;
  tensor.groups.emplace_back();
  while (tensor.groups.size() > 1 && tensor.groups.front().inFlight == 0) {
    tensor.groups.pop_front();
    ++tensor.first;
  }
  return Step::Next;
}

static Step waitGroup(Warp &warp, const Op &op, Mask) {
  auto committed = static_cast<int64_t>(warp.tensor.groups.size()) - 1;
  for (int64_t i = 0; i < committed - op.imm; ++i)
    if (warp.tensor.groups[static_cast<size_t>(i)].inFlight)
      return Step::Wait;
  if (Checker *checker = warp.cta.cluster.checker.get()) {
    int64_t last = static_cast<int64_t>(warp.tensor.first) + committed - op.imm;
    if (last > 0) {
      warp.tensor.waited =
          std::max(warp.tensor.waited, static_cast<uint32_t>(last));
      checker->learn(warp, warp.live,
                     {warp.tensor.agent, static_cast<uint32_t>(last)});
    }
  }
  return Step::Next;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

static unsigned takeColumns(Decoder &decoder, std::string_view shape,
                            Element type) {
  std::string suffix = "k" + std::to_string(32 / getBytes(type));
  unsigned columns = 0;
  if (shape.substr(0, 4) == "m64n" && shape.size() > 4 + suffix.size() &&
      shape.substr(shape.size() - suffix.size()) == suffix)
    for (char c : shape.substr(4, shape.size() - 4 - suffix.size()))
      columns = c >= '0' && c <= '9' && columns < 1000
                    ? columns * 10 + static_cast<unsigned>(c - '0')
                    : 1;
  if (columns == 0 || columns % 8 != 0 || columns > kMaxColumns)
    decoder.fail("expected a shape m64nN" + suffix +
                 " with N a multiple of 8 up to 256, but got " +
                 std::string(shape));
  return columns;
}

static void expectPositive(Decoder &decoder, size_t index) {
  int64_t sign = decoder.immediate(decoder.operand(index));
  if (sign != 1)
    decoder.fail("expected a sign of 1, the only one that is modelled, but "
                 "got " +
                 std::to_string(sign));
}

static void decodeMultiply(Decoder &decoder, Modifiers &modifiers, Op &op) {
  if (!modifiers.take("sync") || !modifiers.take("aligned") ||
      modifiers.empty())
    decoder.fail("expected .sync.aligned and a shape");
  std::string_view dimensions = modifiers.takeNext();
  if (!modifiers.take("f32"))
    decoder.fail("expected accumulators of f32");
  Shape shape = {};
  if (modifiers.empty())
    decoder.fail("expected types");
  shape.typeA = takeElement(decoder, modifiers.takeNext());
  if (modifiers.empty())
    decoder.fail("expected two types");
  shape.typeB = takeElement(decoder, modifiers.takeNext());
  if (!goTogether(shape.typeA, shape.typeB))
    decoder.fail("expected types that go together");
  shape.columns = takeColumns(decoder, dimensions, shape.typeA);
  shape.aInRegisters = decoder.operand(1).kind == Operand::Vector;
  bool halves = getBytes(shape.typeA) == 2;
  decoder.expectOperands(6 + (halves ? (shape.aInRegisters ? 1 : 2) : 0));

  std::vector<uint32_t> rows;
  for (const Operand *d : decoder.elements(decoder.operand(0)))
    rows.push_back(decoder.destination(*d, 32));
  if (rows.size() != shape.columns / 2)
    decoder.fail("expected " + std::to_string(shape.columns / 2) +
                 " accumulators, but got " + std::to_string(rows.size()));
  if (shape.aInRegisters) {
    auto fragments = decoder.elements(decoder.operand(1));
    if (fragments.size() != 4)
      decoder.fail("expected 4 registers of A, but got " +
                   std::to_string(fragments.size()));
    for (const Operand *fragment : fragments)
      rows.push_back(decoder.sourceBits(*fragment, 32));
  } else {
    op.s[0] = decoder.sourceBits(decoder.operand(1), 64);
  }
  op.s[1] = decoder.sourceBits(decoder.operand(2), 64);
  bool negated;
  op.s[2] = decoder.predicate(decoder.operand(3), negated);
  op.width = negated;
  expectPositive(decoder, 4);
  expectPositive(decoder, 5);
  if (halves) {
    size_t next = 6;
    if (!shape.aInRegisters)
      shape.transposeA = decoder.immediate(decoder.operand(next++)) != 0;
    shape.transposeB = decoder.immediate(decoder.operand(next)) != 0;
  }
  op.rows = decoder.addRows(rows);
  op.count = static_cast<uint16_t>(shape.columns);
  op.usesTensorCore = true;
  op.flags = packShape(shape);
  op.aligned = true;
  op.handler = multiply;
}

static void decodeWgmma(Decoder &decoder, Modifiers &modifiers, Op &op) {
  decoder.expectTarget(90, "a");
  auto what =
      modifiers.takeOneOf({"mma_async", "fence", "commit_group", "wait_group"});
  if (!what)
    decoder.fail("expected an operation");
  if (*what == 0)
    return decodeMultiply(decoder, modifiers, op);
  if (!modifiers.take("sync") || !modifiers.take("aligned"))
    decoder.fail("expected .sync.aligned");
  decoder.expectOperands(*what == 3 ? 1 : 0);
  op.aligned = true;
  if (*what == 3)
    op.imm = decoder.immediate(decoder.operand(0));
  op.handler = *what == 1 ? fenceRegisters : *what == 2 ? commit : waitGroup;
}

void fp8emu::addWgmma(DecodeTable &table) { table["wgmma"] = decodeWgmma; }
