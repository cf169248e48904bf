//===- Mma.cpp - Tensor cores of single warps -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mma.h"
#include "../Blocks/ExpandCodes.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

/// The name of the type in PTX; empty for none.
static StringRef getName(Type type) {
#define FP8_TENSOR_CORE_TYPE(NAME, TEXT, TYPE, ...)                            \
  if (isa<TYPE##Type>(type))                                                   \
    return TEXT;
#include "fp8/Formats.def"
  return "";
}

bool Mma::takes(Type type, bool hasFactors) {
  if (hasFactors)
    return isa<Float8E4M3FNType, Float8E5M2Type, Float4E2M1FNType>(type);
  return !::getName(type).empty() && type.getIntOrFloatBitWidth() >= 8;
}

/// What comes before the registers.
std::string Mma::getName() const {
  std::string name;
  llvm::raw_string_ostream os(name);
  bool isFP4 = isa<Float4E2M1FNType>(typeA);
  bool isE8M0 = factors && isa<Float8E8M0FNUType>(factors);
  os << "mma.sync.aligned.m16n8k" << 256 / typeA.getIntOrFloatBitWidth()
     << ".row.col.";
  if (factors)
    os << "kind::"
       << (!isFP4   ? "mxf8f6f4"
           : isE8M0 ? "mxf4"
                    : "mxf4nvf4")
       << ".block_scale.scale_vec::"
       << (!isFP4   ? 1
           : isE8M0 ? 2
                    : 4)
       << "X.";
  os << "f32." << ::getName(typeA) << '.' << ::getName(typeB) << ".f32";
  if (factors)
    os << (isE8M0 ? ".ue8m0" : ".ue4m3");
  return name;
}

void Mma::multiplyOne(const Words &rows, Value low, Value high,
                      const ScaleWords &scales, int64_t half,
                      MutableArrayRef<Value> sums) {
  std::string code = getName(), constraints = "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f";
  llvm::raw_string_ostream os(code);
  os << " {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13}";
  SmallVector<Value> inputs(rows.begin(), rows.end());
  inputs.append({low, high});
  inputs.append(sums.begin(), sums.end());
  if (factors) {
    // The lanes that have those of the second 8 columns are the second ones.
    os << ", $14, {" << scales.byte << ", 0}, $15, {" << scales.byte << ", "
       << half << '}';
    inputs.append({scales.rows, scales.cols});
    constraints += ",r,r";
  }
  os << ';';
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  Value results =
      LLVM::InlineAsmOp::create(
          b, type, inputs, code, constraints,
          /*has_side_effects=*/false, /*is_align_stack=*/false,
          LLVM::TailCallKind::None,
          LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
          /*operand_attrs=*/ArrayAttr())
          .getRes();
  for (auto [i, sum] : llvm::enumerate(sums))
    sum = LLVM::ExtractValueOp::create(b, results, static_cast<int64_t>(i));
}

// A lane has four neighbours along K of each row and column, of which the first
// two and the others take the places of both halves of 16: the order of K is
// another one, the same for both.
void Mma::multiplyExpanded(const Words &rows, Value low, Value high,
                           MutableArrayRef<Value> sums) {
  Type f16 = b.getF16Type();
  Mma halves(b, f16, f16, /*factors=*/Type(), /*expands=*/false);
  for (auto [i, column] : llvm::enumerate(std::array{low, high})) {
    std::array<Value, 2> first = expandCodes(b, rows[2 * i], typeA);
    std::array<Value, 2> second = expandCodes(b, rows[2 * i + 1], typeA);
    std::array<Value, 2> ofColumn = expandCodes(b, column, typeB);
    halves.multiplyOne({first[0], second[0], first[1], second[1]}, ofColumn[0],
                       ofColumn[1], ScaleWords(), /*half=*/0, sums);
  }
}

void Mma::multiply(const Words &rows, const Words &cols,
                   const ScaleWords &scales, MutableArrayRef<Value> sums) {
  if (expands) {
    multiplyExpanded(rows, cols[0], cols[1], sums.take_front(4));
    multiplyExpanded(rows, cols[2], cols[3], sums.take_back(4));
    return;
  }
  multiplyOne(rows, cols[0], cols[1], scales, 0, sums.take_front(4));
  multiplyOne(rows, cols[2], cols[3], scales, 1, sums.take_back(4));
}

// A lane brings the address of a row of 16 bytes of one of four matrices: of
// rows those of 0-7 and 8-15 of the first half of K, then of the second; of
// columns both halves of K of the first 8, then of the others. Where rows are
// innermost, a line of 16 bytes has 8 of them, and matrices are transposed.
FragmentLoader::FragmentLoader(KernelBuilder &b, const OperandTile &tile,
                               bool ofRows, Value lane, Value first)
    : b(b), tile(tile) {
  Value inMatrix = b.bitAnd(lane, 7);
  Value odd = b.bitAnd(b.shiftRight(lane, 3), 1), upper = b.shiftRight(lane, 4);
  Value rowHalf = ofRows ? odd : upper, kHalf = ofRows ? upper : odd;
  if (tile.isTransposed()) {
    row = b.mul(rowHalf, 8);
    k = b.add(b.mul(kHalf, 8), inMatrix);
  } else {
    row = b.add(b.mul(rowHalf, 8), inMatrix);
    k = b.mul(b.bitXor(kHalf, inMatrix), 16);
  }
  if (first)
    row = b.add(row, first);
}

Value FragmentLoader::getOffset(int64_t offset, int64_t step) const {
  if (!tile.isTransposed())
    return b.add(b.add(b.mul(row, kRowBytes), b.bitXor(k, b.i32(32 * step))),
                 offset * kRowBytes);
  int64_t swizzle = tile.getSwizzle(), boxRows = tile.getBoxRows();
  Value at = b.add(row, offset);
  Value line = b.add(k, step * tile.getInstructionK());
  Value inBox =
      b.add(b.mul(line, swizzle), b.mul(b.rem(at, boxRows), swizzle / boxRows));
  return b.add(b.mul(b.div(at, boxRows), tile.getBoxBytes()),
               tile.getSwizzled(b, inBox));
}

Words mma::loadMatrices(KernelBuilder &b, Value address, bool transposed) {
  Type word = b.getI32Type();
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                               SmallVector<Type>(4, word));
  Value loaded = NVVM::LdMatrixOp::create(
      b, type, address, /*num=*/4,
      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  Words words;
  for (auto [i, value] : llvm::enumerate(words))
    value = LLVM::ExtractValueOp::create(b, loaded, static_cast<int64_t>(i));
  return words;
}

Words FragmentLoader::load(Value base, int64_t offset, int64_t step) const {
  return loadMatrices(b, b.offset(base, getOffset(offset, step)),
                      tile.isTransposed());
}
