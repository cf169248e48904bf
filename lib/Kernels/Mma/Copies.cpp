//===- Copies.cpp - Operands to shared memory, by all threads -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Copies.h"
#include "../Matmul/MatmulArguments.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

static constexpr int64_t kChunkBytes = 16;

OperandLoader::OperandLoader(const MatmulContext &kernel, const Tile &at,
                             bool ofRows, int64_t number)
    : kernel(kernel), b(kernel.b),
      tile(ofRows ? kernel.layout.rows : kernel.layout.colsPart),
      threads(kernel.config.getThreads()) {
  const MatmulLayout &layout = kernel.layout;
  StringRef name = ofRows ? kernel.getRowName() : kernel.getColName();
  bool isA = name == "a";
  const OperandSpec &operand =
      ofRows ? kernel.getRowSpec() : kernel.getColSpec();
  elementBytes = operand.getElementBytes();
  offset = (ofRows ? layout.offsetRows : layout.offsetCols) +
           number * tile.getBytes();
  stride = (ofRows ? layout.rows : layout.cols).getBytes();
  auto getParam = [&](StringRef part) {
    return number ? kernel.getParam(getNameOfResult(name, number) + part)
                  : kernel.getParam(at, name, part);
  };
  base = getParam(".ptr");
  strideRow = getParam(".stride_row");
  if (kernel.spec.hasBatch(name))
    base = b.element(base, b.mul(b.widen(at.batch), getParam(".stride_batch")),
                     operand.elementType);
  first = isA ? at.m : at.n;
  end = kernel.getParam(at, isA ? "m" : "n");
  // Codes that share bytes lie along K.
  extentK = b.div(kernel.getParam("k"), operand.getSharing());
  firstK = at.firstK;
}

Value OperandLoader::getBytesLeft(Value begin, Value extent) const {
  Value left = b.min(b.sub(extent, begin), b.i32(kChunkBytes));
  return b.select(b.less(begin, extent), left, b.i32(0));
}

void OperandLoader::copyOne(Value to, Value from, Value bytes) const {
  NVVM::CpAsyncOp::create(b, to, from, kChunkBytes,
                          NVVM::LoadCacheModifierKind::CG, bytes);
}

// With a count ptxas computes four instructions more for each copy. LLVM has no
// intrinsic with a predicate.
void OperandLoader::copyWhole(Value to, Value from, Value isThere) const {
  Value ignored = b.select(isThere, b.i1(false), b.i1(true));
  LLVM::InlineAsmOp::create(
      b, TypeRange(), ValueRange{to, from, ignored},
      "cp.async.cg.shared.global [$0], [$1], 16, $2;", "l,l,b,~{memory}",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
}

void OperandLoader::copy(Value k, Value stage) const {
  Value to =
      b.offset(kernel.shared, b.add(b.mul(stage, stride), b.i32(offset)));
  if (tile.isTransposed())
    copyLines(k, to);
  else
    copyRows(k, to);
}

/// K innermost: eight threads have a row of 128 bytes.
void OperandLoader::copyRows(Value k, Value to) const {
  constexpr int64_t chunks = kRowBytes / kChunkBytes;
  int64_t rows = tile.getBytes() / kRowBytes, together = threads / chunks;
  Value chunk = b.rem(kernel.thread, chunks);
  Value row = b.div(kernel.thread, chunks);
  Value begin = b.add(b.mul(k, kRowBytes), b.mul(chunk, kChunkBytes));
  if (firstK)
    begin = b.add(begin, b.mul(firstK, elementBytes));
  Value bytesK = b.mul(extentK, elementBytes);
  bool isWhole = kernel.config.getWholeChunks();
  Value bytes = isWhole ? Value() : getBytesLeft(begin, bytesK);
  Value isInK = isWhole ? b.less(begin, bytesK) : Value();
  Value index =
      b.mul(b.widen(b.add(first, row)), b.mul(strideRow, elementBytes));
  Value from = b.offset(base, b.add(index, b.widen(begin)));
  Value step = b.mul(strideRow, elementBytes * together);
  // Rows that a thread copies have the same place among the eight of an atom.
  Value place = b.add(b.mul(row, kRowBytes),
                      b.mul(b.bitXor(chunk, b.bitAnd(row, 7)), kChunkBytes));
  Value own = b.offset(to, place);
  for (int64_t i = 0; i < rows; i += together) {
    auto copyRow = [&] {
      Value isInside = b.less(b.add(b.add(first, row), i), end);
      Value at = b.offset(own, b.i32(i * kRowBytes));
      if (isWhole)
        copyWhole(at, from, b.bitAnd(isInside, isInK));
      else
        copyOne(at, from, b.select(isInside, bytes, b.i32(0)));
    };
    if (i + together <= rows)
      copyRow();
    else
      b.ifThen(b.less(row, b.i32(rows - i)), copyRow);
    from = b.offset(from, step);
  }
}

/// Rows innermost: a line of the tile's rows for each K.
void OperandLoader::copyLines(Value k, Value to) const {
  int64_t blockK = tile.getBlockK();
  int64_t lineBytes = tile.getBytes() / blockK,
          chunks = lineBytes / kChunkBytes;
  int64_t swizzle = tile.getSwizzle(), together = threads / chunks;
  Value inLine = b.mul(b.rem(kernel.thread, chunks), kChunkBytes);
  Value line = b.div(kernel.thread, chunks);
  Value begin = b.add(b.mul(first, elementBytes), inLine);
  Value bytes = getBytesLeft(begin, b.mul(end, elementBytes));
  Value firstLine = b.add(b.mul(k, blockK), line);
  if (firstK)
    firstLine = b.add(firstLine, firstK);
  Value index = b.mul(b.widen(firstLine), b.mul(strideRow, elementBytes));
  Value from = b.offset(base, b.add(index, b.widen(begin)));
  Value step = b.mul(strideRow, elementBytes * together);
  Value box = b.mul(b.div(inLine, swizzle), tile.getBoxBytes());
  Value inBox = b.rem(inLine, swizzle);
  for (int64_t i = 0; i < blockK; i += together) {
    auto copyLine = [&] {
      Value place = b.add(b.mul(b.add(line, i), swizzle), inBox);
      Value isInside = b.less(b.add(firstLine, i), extentK);
      copyOne(b.offset(to, b.add(box, tile.getSwizzled(b, place))), from,
              b.select(isInside, bytes, b.i32(0)));
    };
    if (i + together <= blockK)
      copyLine();
    else
      b.ifThen(b.less(line, b.i32(blockK - i)), copyLine);
    from = b.offset(from, step);
  }
}
