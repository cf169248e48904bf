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

#include "TensorProduct.h"

#include "TensorCore/Floats.h"

#include <algorithm>
#include <cmath>

using namespace fp8emu;

/// Op::flags.
enum : uint32_t {
  kKindMask = 7,
  kPair = 8,
  kAInTensor = 16,
  kFactorsShift = 5, /* of a row: 1, 2 or 4 */
  kHasLaneMask = 1 << 8,
};

/// As TensorKind has them.
static constexpr const char *kKinds[] = {"f16",      "tf32", "f8f6f4",  "i8",
                                         "mxf8f6f4", "mxf4", "mxf4nvf4"};

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Adds 32 products and D, and wraps around unless it is to stay at its limits.
static uint32_t addIntegers(const TensorInstruction &instruction,
                            const uint8_t *a, const uint8_t *b, int32_t sum) {
  int64_t all = sum;
  auto load = [](uint8_t code, bool isSigned) {
    return isSigned ? static_cast<int8_t>(code) : int{code};
  };
  for (unsigned k = 0; k < instruction.products(); ++k)
    all += load(a[k], instruction.signedA) * load(b[k], instruction.signedB);
  if (instruction.saturate)
    all = std::clamp<int64_t>(all, INT32_MIN, INT32_MAX);
  return static_cast<uint32_t>(all);
}

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
      if (instruction.kind != TensorKind::I8 &&
          (!known || std::memcmp(factors, lastFactors, sizeof(factors)) != 0)) {
        sums.setColumns(columns, factors);
        std::memcpy(lastFactors, factors, sizeof(factors));
        known = true;
      }
      if (skipped[at / 32] >> at % 32 & 1)
        continue;
      if (aInTensor)
        readTensor(memory, at, a[row]);
      if (instruction.kind == TensorKind::I8) {
        for (unsigned n = 0; n < width; ++n) {
          uint32_t &word = memory.word(at, d.column + n);
          word = addIntegers(instruction, a[row], columns[first + n],
                             fresh ? 0 : static_cast<int32_t>(word));
        }
        continue;
      }
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

/// Reads the instruction's kind and descriptor, where its operands are, and
/// which lanes of the result are left alone.
static void decodeOperands(Warp &warp, const Op &op, unsigned lane,
                           TensorProduct &product) {
  const uint32_t *rows = &warp.cta.cluster.grid.program.rows[op.rows];
  Mask one = Mask{1} << lane;
  TensorInstruction &instruction = product.instruction;
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
  product.d = address();
  product.aInTensor = op.flags & kAInTensor;
  if (product.aInTensor) {
    product.aAt = address();
    if (instruction.transposeA ||
        (getBits(instruction.typeA) < 8 && !instruction.isFP4()))
      require("expected A in tensor memory to lie along K, in types of at "
              "least 8 bits, but got another",
              "");
  } else {
    require(decodeDescriptor(getAddress(warp, rows, lane), product.a),
            " (of A)");
    rows += 3;
  }
  require(decodeDescriptor(getAddress(warp, rows, lane), product.b), " (of B)");
  rows += 3;
  if (instruction.kind == TensorKind::TF32 &&
      (instruction.transposeA || instruction.transposeB))
    require("expected tf32 to lie along K, the only layout that is modelled, "
            "but got another",
            "");
  if (instruction.isScaled()) {
    product.factorsA = address();
    product.factorsB = address();
    // The first factor's byte is in the instruction descriptor; CuTe leaves it
    // in the address, too, where chips do not look.
    if (!warp.cta.cluster.grid.settings.strict) {
      product.factorsA.lane &= 0x3fff;
      product.factorsB.lane &= 0x3fff;
    }
  }
  if (op.flags & kHasLaneMask)
    for (unsigned i = 0; i < 4 * instruction.group; ++i)
      product.skip[i] = warp.row<uint32_t>(rows[i])[lane];
}

static void issue(Warp &warp, const Op &op, unsigned lane) {
  Cluster &cluster = warp.cta.cluster;
  Mask one = Mask{1} << lane;
  auto product = std::make_shared<TensorProduct>();
  product->warp = &warp;
  product->op = &op;
  product->lane = one;
  decodeOperands(warp, op, lane, *product);
  const TensorInstruction &instruction = product->instruction;
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
  if (Counts *counts = cluster.grid.counts.get())
    ++counts->products[std::string(kKinds[op.flags & kKindMask]) + " " +
                       std::to_string(instruction.rows) + "x" +
                       std::to_string(instruction.columns)];
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
  for (auto [modifier, what] :
       {std::pair{"sp", "sparse operands"}, {"ws", "weights that stay"}})
    if (modifiers.take(modifier))
      decoder.fail(std::string("expected no .") + modifier + ": " + what +
                   " are not modelled");
  unsigned group = takeGroup(decoder, modifiers);
  auto kind = modifiers.takeOneOf({"kind::f16", "kind::tf32", "kind::f8f6f4",
                                   "kind::i8", "kind::mxf8f6f4", "kind::mxf4",
                                   "kind::mxf4nvf4"});
  if (!kind)
    decoder.fail("expected a .kind that is modelled");
  auto which = static_cast<TensorKind>(*kind);
  if (which == TensorKind::I8)
    decoder.expectTarget(100, "a");
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
