//===- TensorProducts.cpp - tcgen05.mma -----------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "tcgen05.mma". A pair's blocks each have half of the rows of A and
// D, and half of the columns of B; of D's columns all, and the factors of all.
//
//===----------------------------------------------------------------------===//

#include "Exec/Floats.h"
#include "InstructionDescriptor.h"
#include "TensorMemory.h"

#include <cmath>

using namespace fp8emu;

namespace {
/// Op::flags.
enum : uint32_t {
  kKindMask = 7,
  kPair = 8,
  kAInTensor = 16,
  kFactorsShift = 5, /* of a row: 1, 2 or 4 */
  kHasLaneMask = 1 << 8,
};

/// One that has been issued.
struct TensorProduct {
  Warp *warp;
  const Op *op;
  Mask lane;
  TensorInstruction instruction;
  TensorBlocks blocks;
  Descriptor a{0}, b{0};
  bool aInTensor = false, fresh = false;
  TensorAddress d{0}, aAt{0}, factorsA{0}, factorsB{0};
  int shrink = 0;         /* D is taken times 2^-shrink */
  uint32_t skip[8] = {0}; /* lanes of D, of both blocks, that stay */

  void checkRegions();
  void announce(Checker &checker, Announcement done);
  void multiply();

private:
  unsigned columnsOfD() const {
    return instruction.columns / (instruction.isStacked() ? 2 : 1);
  }
  unsigned columnsOfFactors(bool ofA) const;
  unsigned laneOfRow(unsigned row) const;
  uint8_t lanesOfD() const;
  bool isPadded(Element type) const {
    return type >= Element::E2M3 && !instruction.isFP4();
  }
  template <class F>
  void forEachUnit(const Descriptor &descriptor, unsigned rows, Element type,
                   bool transposed, F visit) const;
  void unpack(const uint8_t *unit, Element type, uint8_t *codes) const;
  void read(Cta &cta, const Descriptor &descriptor, unsigned rows, Element type,
            bool transposed, uint8_t (*out)[kRowBytes]) const;
  void readTensor(TensorMemory &memory, unsigned lane, uint8_t *out) const;
  void readFactors(TensorMemory &memory, unsigned lane, uint32_t column,
                   unsigned first, uint8_t *out) const;
  void multiplyBlock(Cta &cta, const uint32_t *skipped, BlockSums &sums,
                     const uint8_t (*columns)[kRowBytes]);
};
} // namespace

//===----------------------------------------------------------------------===//
// Where operands are
//===----------------------------------------------------------------------===//

/// Units of 16 bytes of shared memory: those of a row along K, or of rows side
/// by side. Of FP4 and FP6 beside larger types 16 elements are one.
template <class F>
void TensorProduct::forEachUnit(const Descriptor &descriptor, unsigned rows,
                                Element type, bool transposed, F visit) const {
  if (!transposed) {
    for (unsigned row = 0; row < rows; ++row)
      for (unsigned byte = 0; byte < 32; byte += 16)
        visit(descriptor.locateK(row, byte), row, byte);
    return;
  }
  unsigned bytes = getBytes(type);
  for (unsigned row = 0; row < rows; row += 16 / bytes)
    for (unsigned k = 0; k < instruction.products(); ++k)
      visit(descriptor.locateMN(row, k, bytes), row, k);
}

void TensorProduct::unpack(const uint8_t *unit, Element type,
                           uint8_t *codes) const {
  unsigned bits = type == Element::E2M1 ? 4 : 6;
  if (!instruction.isFP4() && !isPadded(type)) {
    std::memcpy(codes, unit, 16);
    return;
  }
  unsigned count = instruction.isFP4() ? 32 : 16;
  for (unsigned i = 0; i < count; ++i) {
    unsigned bit = i * bits;
    unsigned two = unit[bit / 8] | (bit / 8 < 15 ? unit[bit / 8 + 1] << 8 : 0);
    codes[i] = static_cast<uint8_t>(two >> bit % 8 & ((1 << bits) - 1));
  }
}

void TensorProduct::read(Cta &cta, const Descriptor &descriptor, unsigned rows,
                         Element type, bool transposed,
                         uint8_t (*out)[kRowBytes]) const {
  unsigned bytes = getBytes(type);
  forEachUnit(
      descriptor, rows, type, transposed,
      [&](uint32_t address, unsigned row, unsigned k) {
        if (address < kSharedBase || address + 16 > cta.sharedBytes)
          warp->fault(*op, lane, kIllegalAddress,
                      "an operand at " + toHex(address) +
                          " of shared memory is out of bounds: the block has " +
                          toHex(kSharedBase) + " to " + toHex(cta.sharedBytes));
        if (!transposed) {
          unsigned perByte = instruction.isFP4() ? 2 : 1;
          unpack(cta.shared + address, type, out[row] + k * perByte);
          return;
        }
        uint8_t codes[16];
        unpack(cta.shared + address, type, codes);
        for (unsigned i = 0; i < 16 / bytes; ++i)
          std::memcpy(out[row + i] + k * bytes, codes + i * bytes, bytes);
      });
}

/// A row of A: 32 bytes of 8 columns.
void TensorProduct::readTensor(TensorMemory &memory, unsigned at,
                               uint8_t *out) const {
  uint32_t words[8];
  for (unsigned i = 0; i < 8; ++i)
    words[i] = memory.word(at, aAt.column + i);
  for (unsigned unit = 0; unit < 2; ++unit)
    unpack(reinterpret_cast<const uint8_t *>(words + 4 * unit),
           instruction.typeA, out + unit * (instruction.isFP4() ? 32 : 16));
}

void TensorProduct::readFactors(TensorMemory &memory, unsigned at,
                                uint32_t column, unsigned first,
                                uint8_t *out) const {
  uint32_t word = memory.word(at, column);
  for (unsigned i = 0; i < instruction.factors; ++i)
    out[i] = static_cast<uint8_t>(word >> 8 * (first + i));
}

unsigned TensorProduct::columnsOfFactors(bool ofA) const {
  unsigned rows = ofA ? instruction.rowsOfBlock() : columnsOfD();
  return (rows + 31) / 32;
}

/// Of D and of A in tensor memory: a block's 64 rows are 16 in each 32 lanes,
/// unless there is a pair of which the columns' second half is in the upper 64.
unsigned TensorProduct::laneOfRow(unsigned row) const {
  if (instruction.rowsOfBlock() == 64 && !instruction.isStacked())
    return d.lane + row % 16 + row / 16 * 32;
  return row;
}

uint8_t TensorProduct::lanesOfD() const {
  if (instruction.rowsOfBlock() == 64 && !instruction.isStacked())
    return d.lane ? 0xaa : 0x55;
  return kAllTensorLanes;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void TensorProduct::checkRegions() {
  bool quarters = instruction.rowsOfBlock() == 64 && !instruction.isStacked();
  for (const TensorAddress *at : {&d, &aAt, &factorsA, &factorsB}) {
    bool mayBe16 = quarters && (at == &d || at == &aAt);
    if (at->lane != 0 && !(mayBe16 && at->lane == 16))
      warp->fault(*op, lane, kIllegalAddress,
                  std::string("expected an address at lane 0 ") +
                      (mayBe16 ? "or 16 " : "") +
                      "of tensor memory, but got lane " +
                      std::to_string(at->lane));
  }
  for (Cta *cta : blocks) {
    requireAllocated(*warp, *op, lane, *cta, d.column, columnsOfD(), "D");
    if (aInTensor)
      requireAllocated(*warp, *op, lane, *cta, aAt.column, 8, "A");
    if (!instruction.isScaled())
      continue;
    requireAllocated(*warp, *op, lane, *cta, factorsA.column,
                     columnsOfFactors(true), "factors of A");
    requireAllocated(*warp, *op, lane, *cta, factorsB.column,
                     columnsOfFactors(false), "factors of B");
  }
}

void TensorProduct::announce(Checker &checker, Announcement done) {
  for (Cta *cta : blocks) {
    auto readShared = [&](uint32_t address, unsigned, unsigned) {
      if (address >= kSharedBase && address + 16 <= cta->sharedBytes)
        checker.accessLater(*warp, *op, lane, *cta, address, 16, kAsyncProxy,
                            done);
    };
    if (!aInTensor)
      forEachUnit(a, instruction.rowsOfBlock(), instruction.typeA,
                  instruction.transposeA, readShared);
    forEachUnit(b, instruction.columns / instruction.group, instruction.typeB,
                instruction.transposeB, readShared);
    auto use = [&](const TensorAddress &at, unsigned columns, uint8_t lanes,
                   TensorUse how) {
      checker.accessTensor(*warp, *op, lane, *cta, {at.column, columns, lanes},
                           how, done);
    };
    if (aInTensor)
      use(aAt, 8, lanesOfD(), TensorUse::Operand);
    if (instruction.isScaled()) {
      use(factorsA, columnsOfFactors(true), kAllTensorLanes,
          TensorUse::Factors);
      use(factorsB, columnsOfFactors(false), kAllTensorLanes,
          TensorUse::Factors);
    }
    use(d, columnsOfD(), lanesOfD(),
        fresh ? TensorUse::Result : TensorUse::Accumulator);
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void TensorProduct::multiplyBlock(Cta &cta, const uint32_t *skipped,
                                  BlockSums &sums,
                                  const uint8_t (*columns)[kRowBytes]) {
  TensorMemory &memory = getTensorMemory(cta);
  unsigned rows = instruction.rowsOfBlock(), width = columnsOfD();
  uint8_t a[128][kRowBytes];
  if (!aInTensor)
    read(cta, this->a, rows, instruction.typeA, instruction.transposeA, a);
  using Factors = uint8_t[kMaxColumns][kMaxFactors];
  Factors factors = {}, lastFactors = {};
  bool known = false;
  for (unsigned half = 0; half < instruction.columns / width; ++half)
    for (unsigned row = 0; row < rows; ++row) {
      unsigned at = laneOfRow(row) + 64 * half, first = half * width;
      // Each 32 lanes have factors of their own.
      unsigned quarter = at / 32 * 32;
      uint8_t factorsOfRow[kMaxFactors] = {};
      if (instruction.isScaled()) {
        readFactors(memory, quarter + row % 32, factorsA.column + row / 32,
                    instruction.factorA, factorsOfRow);
        if (row % 32 == 0)
          for (unsigned n = 0; n < width; ++n)
            readFactors(memory, quarter + n % 32, factorsB.column + n / 32,
                        instruction.factorB, factors[first + n]);
      }
      if (!known || std::memcmp(factors, lastFactors, sizeof(factors)) != 0) {
        sums.setColumns(columns, factors);
        std::memcpy(lastFactors, factors, sizeof(factors));
        known = true;
      }
      if (skipped[at / 32] >> at % 32 & 1)
        continue;
      if (aInTensor)
        readTensor(memory, at, a[row]);
      float out[kMaxColumns];
      for (unsigned n = 0; n < width && !fresh; ++n) {
        uint32_t word = memory.word(at, d.column + n);
        float c = instruction.half ? fromF16(static_cast<uint16_t>(word))
                                   : toFloat(word);
        out[first + n] = shrink ? std::ldexp(c, -shrink) : c;
      }
      sums.addRow(a[row], factorsOfRow, fresh, first, first + width, out);
      for (unsigned n = 0; n < width; ++n) {
        uint32_t &word = memory.word(at, d.column + n);
        float sum = out[first + n];
        word =
            instruction.half ? (word & 0xffff0000) | toF16(sum) : toBits(sum);
      }
    }
}

void TensorProduct::multiply() {
  checkRegions();
  auto columns = std::make_unique<uint8_t[][kRowBytes]>(kMaxColumns);
  unsigned each = instruction.columns / instruction.group, done = 0;
  for (Cta *cta : blocks) {
    read(*cta, b, each, instruction.typeB, instruction.transposeB,
         columns.get() + done);
    done += each;
  }
  BlockProducts products;
  products.typeA = instruction.typeA;
  products.typeB = instruction.typeB;
  products.negate = instruction.negateA != instruction.negateB;
  products.products = instruction.products();
  products.columns = instruction.columns;
  products.scale = instruction.scale;
  products.factors = instruction.isScaled() ? instruction.factors : 0;
  products.half = instruction.half;
  products.exact = warp->cta.cluster.grid.settings.exact;
  auto sums = std::make_unique<BlockSums>(products);
  for (unsigned i = 0; i < blocks.count; ++i)
    multiplyBlock(*blocks.blocks[i], skip + 4 * i, *sums, columns.get());
}

//===----------------------------------------------------------------------===//
// Issue
//===----------------------------------------------------------------------===//

static void issue(Warp &warp, const Op &op, unsigned lane) {
  Cluster &cluster = warp.cta.cluster;
  const uint32_t *rows = &cluster.grid.program.rows[op.rows];
  Mask one = Mask{1} << lane;
  auto product = std::make_shared<TensorProduct>();
  product->warp = &warp;
  product->op = &op;
  product->lane = one;
  TensorInstruction &instruction = product->instruction;
  instruction.kind = static_cast<TensorKind>(op.flags & kKindMask);
  instruction.group = op.flags & kPair ? 2 : 1;
  instruction.factors = op.flags >> kFactorsShift & 7;
  auto require = [&](const std::string &wrong, const char *of) {
    if (!wrong.empty())
      warp.fault(op, one, kIllegalInstruction, wrong + of);
  };
  require(instruction.decode(warp.row<uint32_t>(op.s[2])[lane]), "");
  auto address = [&] {
    TensorAddress at(static_cast<uint32_t>(getAddress(warp, rows, lane)));
    rows += 3;
    return at;
  };
  product->d = address();
  product->aInTensor = op.flags & kAInTensor;
  if (product->aInTensor) {
    product->aAt = address();
    if (instruction.transposeA ||
        (instruction.typeA >= Element::E2M3 && !instruction.isFP4()))
      require("expected A in tensor memory to lie along K, in types of at "
              "least 8 bits, but got another",
              "");
  } else {
    require(decodeDescriptor(getAddress(warp, rows, lane), product->a),
            " (of A)");
    rows += 3;
  }
  require(decodeDescriptor(getAddress(warp, rows, lane), product->b),
          " (of B)");
  rows += 3;
  if (instruction.kind == TensorKind::TF32 &&
      (instruction.transposeA || instruction.transposeB))
    require("expected tf32 to lie along K, the only layout that is modelled, "
            "but got another",
            "");
  if (instruction.isScaled()) {
    product->factorsA = address();
    product->factorsB = address();
  }
  if (op.flags & kHasLaneMask)
    for (unsigned i = 0; i < 4 * instruction.group; ++i)
      product->skip[i] = warp.row<uint32_t>(rows[i])[lane];
  product->fresh =
      !((warp.predicate(op.s[3]) ^ (op.width ? ~Mask{0} : 0)) & one);
  product->shrink = static_cast<int>(op.imm);
  product->blocks = getTensorBlocks(warp, op, one, instruction.group);
  if (product->blocks.blocks[0] != &warp.cta)
    warp.fault(op, one, kLaunchFailed,
               "expected the even block of the pair to issue it, but got "
               "block " +
                   std::to_string(warp.cta.rank) + " of the cluster");
  product->checkRegions();
  TensorIssue issued = issueTensorWork(warp, lane);
  if (Checker *checker = cluster.checker.get())
    product->announce(*checker, issued.done);
  AsyncOp work;
  work.stream = issued.stream;
  work.line = cluster.grid.program.getLine(op);
  work.advance = [product] {
    product->multiply();
    return false;
  };
  cluster.queue.push(std::move(work));
}

static Step issueLanes(Warp &warp, const Op &op, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1)
    issue(warp, op, static_cast<unsigned>(__builtin_ctz(rest)));
  return Step::Next;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// How many factors a row has.
static unsigned takeFactors(Decoder &decoder, Modifiers &modifiers,
                            TensorKind kind) {
  auto said = modifiers.takeOneOf({"scale_vec::1X", "scale_vec::2X",
                                   "scale_vec::4X", "block32", "block16"});
  bool one = kind == TensorKind::MXF8F6F4;
  if (!said) {
    if (kind == TensorKind::MXF4NVF4)
      decoder.fail("expected .block16 or .block32");
    return one ? 1 : 2;
  }
  unsigned factors = *said < 3 ? 1u << *said : *said == 4 ? 4 : one ? 1 : 2;
  bool fits = one                        ? factors == 1
              : kind == TensorKind::MXF4 ? factors == 2
                                         : factors >= 2;
  if (!fits)
    decoder.fail("expected blocks that this kind has");
  return factors;
}

void fp8emu::decodeTensorProduct(Decoder &decoder, Modifiers &modifiers,
                                 Op &op) {
  unsigned group = takeGroup(decoder, modifiers);
  auto kind =
      modifiers.takeOneOf({"kind::f16", "kind::tf32", "kind::f8f6f4",
                           "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"});
  if (!kind)
    decoder.fail("expected a .kind that is modelled");
  auto which = static_cast<TensorKind>(*kind);
  bool scaled = which >= TensorKind::MXF8F6F4;
  if (modifiers.take("block_scale") != scaled)
    decoder.fail(scaled ? "expected .block_scale" : "expected no .block_scale");
  unsigned factors = scaled ? takeFactors(decoder, modifiers, which) : 0;
  // A hint.
  modifiers.takeOneOf({"collector::a::fill", "collector::a::use",
                       "collector::a::lastuse", "collector::a::discard"});
  op.flags = *kind | (group == 2 ? kPair : 0) | factors << kFactorsShift;
  std::vector<uint32_t> rows;
  decoder.addAddress(rows, decoder.operand(0));
  if (decoder.operand(1).kind == Operand::Memory)
    op.flags |= kAInTensor;
  decoder.addAddress(rows, decoder.operand(1));
  decoder.addAddress(rows, decoder.operand(2));
  op.s[2] = decoder.sourceBits(decoder.operand(3), 32);
  size_t next = 4;
  if (scaled) {
    decoder.addAddress(rows, decoder.operand(next++));
    decoder.addAddress(rows, decoder.operand(next++));
  } else if (decoder.operand(next).kind == Operand::Vector) {
    op.flags |= kHasLaneMask;
    auto words = decoder.elements(decoder.operand(next++));
    if (words.size() != 4 * group)
      decoder.fail("expected " + std::to_string(4 * group) +
                   " words of lanes, but got " + std::to_string(words.size()));
    for (const Operand *word : words)
      rows.push_back(decoder.sourceBits(*word, 32));
  }
  bool negated;
  op.s[3] = decoder.predicate(decoder.operand(next++), negated);
  op.width = negated;
  if (next < decoder.numOperands()) {
    if (which != TensorKind::F16 && which != TensorKind::TF32)
      decoder.fail("expected no scale of D, which f16 and tf32 alone have");
    op.imm = decoder.immediate(decoder.operand(next++));
    if (op.imm < 0 || op.imm > 15)
      decoder.fail("expected a scale of D from 0 to 15, but got " +
                   std::to_string(op.imm));
  }
  decoder.expectOperands(next);
  op.rows = decoder.addRows(rows);
  op.handler = issueLanes;
}
