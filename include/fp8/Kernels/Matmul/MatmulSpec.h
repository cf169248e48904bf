//===- MatmulSpec.h - What a matmul kernel computes -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_MATMUL_MATMULSPEC_H
#define FP8_KERNELS_MATMUL_MATMULSPEC_H

#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/PackedCodes.h"
#include "fp8/Kernels/KernelSpec.h"

#include <variant>

namespace mlir::fp8 {

/// Which elements of an operand share a factor, rows being the operand's own:
/// the M of A, the N of B.
enum class ScaleBlock {
  /// No factors: an operand in high precision.
  None,
  /// One factor for all of an operand, or for each of its batches.
  Tensor,
  /// One for each row.
  Row,
  /// One for each row and 128 of K.
  Row128,
  /// One for 128 rows and 128 of K.
  Block128,
  /// A power of two (E8M0) for each row and 32 of K.
  Row32,
  /// An E4M3 for each row and 16 of K, and one f32 for all of an operand.
  Row16,
};

/// Rows that share a factor of a blocked operand.
inline int64_t getScaleRows(ScaleBlock block) {
  return block == ScaleBlock::Block128 ? 128 : 1;
}

/// Whether they are factors of a byte, for few elements.
inline bool isMicroscaled(ScaleBlock block) {
  return block == ScaleBlock::Row32 || block == ScaleBlock::Row16;
}

/// Whether the factors change along K: in f32, sums must be promoted.
inline bool isBlockedAlongK(ScaleBlock block) {
  return block == ScaleBlock::Row128 || block == ScaleBlock::Block128 ||
         isMicroscaled(block);
}

/// What an operand is in memory that a kernel turns into what it multiplies.
enum class Lifting {
  /// It is multiplied as it is.
  None,
  /// E2M1 with words of exponents (fp8.lift): E4M3.
  MXFP4ToE4M3,
  /// Codes with factors of a byte (fp8.dequantize): bf16 or f16.
  MXFP8,
  MXFP4,
  NVFP4,
  /// E4M3 with an f32 for each 128x128: bf16 or f16, rounded.
  E4M3Blocks,
};

/// Whether factors along K come with the codes, and whether these are a byte
/// for some elements.
inline bool copiesFactors(Lifting lifting) {
  return lifting != Lifting::None && lifting != Lifting::MXFP4ToE4M3;
}
inline bool hasByteFactors(Lifting lifting) {
  return copiesFactors(lifting) && lifting != Lifting::E4M3Blocks;
}

/// Whether codes have 8 bits.
inline bool hasWideCodes(Lifting lifting) {
  return lifting == Lifting::MXFP8 || lifting == Lifting::E4M3Blocks;
}

/// How codes lie that are lifted, and elements along K that share a factor.
inline fp8rt::CodePacking getLiftedPacking(Lifting lifting) {
  return fp8rt::CodePacking{hasWideCodes(lifting) ? 8 : 4};
}
inline int64_t getLiftedGroup(Lifting lifting) {
  return lifting == Lifting::NVFP4        ? 16
         : lifting == Lifting::E4M3Blocks ? 128
                                          : 32;
}

/// Which of an operand's dimensions is innermost: K, or that of its rows.
enum class Major { K, MN };

/// Whether these codes are a function's argument, or what was taken apart to
/// it, that lie as those who multiply read them.
bool areArranged(Value codes);

/// How kernels lift such an operand to bf16 or f16, the factor of its tensor
/// apart; None if they do not.
Lifting getLifting(ScaledType type);

struct OperandSpec {
  Type elementType;
  ScaleBlock scale = ScaleBlock::Tensor;
  Major major = Major::K;
  /// Order of factors that change along K, which are in memory as the codes or
  /// as their transpose.
  Major factorMajor = Major::K;
  /// What it is in memory, if it is of `elementType` only where it is
  /// multiplied.
  Lifting lifting = Lifting::None;
  /// Whether its codes lie as those who multiply read them (fp8.arranged).
  bool isArranged = false;

  bool isLifted() const { return lifting != Lifting::None; }
  /// Whether nobody lifts it but those who multiply it.
  bool isLiftedInRegisters() const {
    bool isWide = isArranged && copiesFactors(lifting);
    return isLifted() &&
           (isWide || lifting == Lifting::E4M3Blocks || elementType.isF16());
  }
  /// Bytes of an element, or of two that share them.
  int64_t getElementBytes() const {
    return llvm::divideCeil(elementType.getIntOrFloatBitWidth(), 8);
  }
  /// How many share these bytes.
  int64_t getSharing() const { return getPacking(elementType).getCodes(); }
  /// Elements that are in so many bytes; and the bytes of so many.
  int64_t getElementsOf(int64_t bytes) const {
    return bytes / getElementBytes() * getSharing();
  }
  double getBytesOf(double elements) const {
    return elements * double(getElementBytes()) / double(getSharing());
  }
  /// Elements along K that share a factor, where tensor cores multiply it.
  int64_t getFactorK() const { return scale == ScaleBlock::Row16 ? 16 : 32; }
  bool operator==(const OperandSpec &other) const {
    return elementType == other.elementType && scale == other.scale &&
           major == other.major && factorMajor == other.factorMajor &&
           lifting == other.lifting && isArranged == other.isArranged;
  }
};

/// The factors of an operand that is assembled, as they lie in memory: as they
/// are, or, of a transposition, before it.
struct StoredFactors {
  Value tensor;
  /// What is transposed, if its factors are read, which are no tensor yet.
  Value source;
  Major major = Major::K;

  /// Factors of any operand; of one that nothing visible assembles or
  /// transposes, neither.
  static StoredFactors get(Value operand);
};

/// A tensor that the epilogue reads, and the dimensions of the result that it
/// has; along the others it is repeated.
struct EpilogueOperandSpec {
  Type elementType;
  int64_t rank;
  bool alongBatch = false;
  bool alongM = false;
  bool alongN = false;

  bool operator==(const EpilogueOperandSpec &other) const {
    return elementType == other.elementType && rank == other.rank &&
           alongBatch == other.alongBatch && alongM == other.alongM &&
           alongN == other.alongN;
  }
};

/// What the groups of a grouped matmul are ranges of: of rows, each with a
/// matrix of B, or of K, each with a result.
enum class Grouping { None, Rows, K };

/// Everything about an fp8.matmul, or a group of them, that its kernel is made
/// from; extents are run-time values, except for what they say about the choice
/// of a config.
struct MatmulSpec : KernelSpec {
  static constexpr StringLiteral kKind = "matmul";

  MatmulSpec() : KernelSpec(kKind) {}
  static bool classof(const KernelSpec *spec) {
    return spec->getKind() == kKind;
  }

  struct ResultExtents {
    int64_t m, n;
  };

  /// One product, or one for each batch.
  struct Single {};

  /// Products of one A, or of one B, each with a result.
  struct Siblings {
    bool shareA;
    SmallVector<ResultExtents> results;
  };

  /// Two products of one A in each tile, of which the columns that the tensor
  /// core has of it hold one half each. The second one's epilogue, which is the
  /// kernel's, reads the first's result.
  struct Dual {
    /// What the first is rounded to.
    Type resultType;
    /// Body of its epilogue, null for a plain rounding.
    Block *epilogue = nullptr;
    /// Operands of both epilogues; those at the front are its own.
    size_t numOperands = 0;
    /// Where the second one's epilogue has it among its operands.
    size_t position = 0;
  };

  /// A grouped matmul: numbers in memory say where groups are.
  struct Groups {
    Grouping of;
    int64_t count;
    /// Whether every argument has a dimension of groups, and counts say how
    /// many of a group's rows, or of its K, are there. Else offsets say where
    /// each begins behind the one before.
    bool masked = false;
    /// How many of a group's rows may be expected, kDynamic where unknown.
    int64_t expectedM = ShapedType::kDynamic;
    /// Whether rows of the result that are of no group may be anything.
    bool undefPadding = false;
  };

  OperandSpec a, b;
  Accumulate accumulate = Accumulate::Promote;
  Type resultType;
  bool batched = false;
  /// Whether bits of a row may depend on nothing else: K is one part.
  bool invariant = false;
  /// Whether the largest magnitude of what the epilogue yields beside the
  /// result is wanted.
  bool amax = false;
  /// Body of the epilogue, null for a plain rounding to the result type.
  Block *epilogue = nullptr;
  SmallVector<EpilogueOperandSpec> operands;
  /// Values from around the op that the epilogue uses, constants excepted.
  SmallVector<Value> captures;
  /// Extents, kDynamic where unknown; of siblings M or N is the sum of those of
  /// their results, of a pair N is that of its products.
  int64_t m, n, k, batch;
  /// How many products there are, and what of.
  std::variant<Single, Siblings, Dual, Groups> many;

  const Siblings *getSiblings() const { return std::get_if<Siblings>(&many); }
  const Dual *getDual() const { return std::get_if<Dual>(&many); }
  const Groups *getGroups() const { return std::get_if<Groups>(&many); }

  bool isGrouped() const { return getGroups(); }
  Grouping getGrouping() const {
    return isGrouped() ? getGroups()->of : Grouping::None;
  }
  int64_t getNumGroups() const { return isGrouped() ? getGroups()->count : 0; }
  bool isMasked() const { return isGrouped() && getGroups()->masked; }
  bool hasUndefPadding() const {
    return isGrouped() && getGroups()->undefPadding;
  }
  /// Whether rows of one group follow those of another, and begin anywhere.
  bool hasAdjacentRows() const {
    return getGrouping() == Grouping::Rows && !isMasked();
  }
  /// Whether the argument of that name begins with a dimension of batches, or
  /// of groups.
  bool hasBatch(StringRef argument) const;
  /// The name of the argument that says where groups are.
  StringRef getBoundsName() const { return isMasked() ? "counts" : "offsets"; }
  int64_t getRank(StringRef argument) const {
    return hasBatch(argument) ? 3 : 2;
  }
  bool areSiblings() const { return getNumResults() > 1; }
  bool sharesA() const { return getSiblings() && getSiblings()->shareA; }
  bool isDual() const { return getDual(); }
  /// One, or those of siblings.
  size_t getNumResults() const {
    return getSiblings() ? getSiblings()->results.size() : 1;
  }
  SmallVector<ResultExtents> getResults() const;
  /// Columns of the result in a tile that has so many of the tensor core's.
  int64_t getResultCols(int64_t cols) const {
    return isDual() ? cols / 2 : cols;
  }
  /// The most arguments that there are of one name.
  size_t getNumSets() const { return isDual() ? 2 : getNumResults(); }
  /// How many there are of this name: of siblings one for each result, but for
  /// what all have in common ("a", "scale_a" and "m" are A's), of a pair two of
  /// what is B's.
  size_t getCount(StringRef name) const;
  /// Tiles of all results together, whose extents are known.
  int64_t getNumTiles(int64_t tileM, int64_t tileN) const;
  /// Whether the rows of every result are multiples of 16 bytes, as bulk copies
  /// want them.
  bool canStoreInBulk() const;

  bool isBlocked() const {
    return isBlockedAlongK(a.scale) || isBlockedAlongK(b.scale);
  }
  /// Whether tensor cores of Blackwell multiply the factors; Hopper's sum 32
  /// elements, and threads multiply that.
  bool isMicroscaled() const {
    return a.scale == b.scale && fp8::isMicroscaled(a.scale);
  }
  bool isScaled() const { return a.scale != ScaleBlock::None; }
  /// Whether factors of A, or of B, that change along K have their rows
  /// innermost, and a multiple of four of them.
  bool areFactorsInFours(bool ofA) const;
  /// How many of them a tile finds side by side at its first row and each that
  /// follows: they can be copied together.
  int64_t getFactorWidth(bool ofA) const;

  /// Instructions for an element of the epilogue beyond those of a plain store,
  /// roughly.
  int64_t getEpilogueInstructions() const;

  /// e4m3_e4m3_bf16_tensor_tensor_fast: types of A, B and the result, factors,
  /// accumulation, and the layout, as BLAS calls it, unless it is nt;
  /// bf16_bf16_f32_nt: of operands in high precision their layout in place of
  /// factors and accumulation.
  std::string getTypesName() const;

  bool hasKnownExtents() const override;
  /// What estimates take for an unknown extent: that of large products.
  static constexpr int64_t kUsualExtent = 4096;
  /// With these in place of unknown ones.
  MatmulSpec withUsualExtents() const;
  /// "e4m3_e4m3_bf16_tensor_tensor_fast 1x64x4096x4096 n:bf16 extf addf":
  /// types, factors and accumulation, then batch, M, N and K, then what the
  /// epilogue reads and does.
  std::string describe() const override;

  /// Read an fp8.matmul, fp8.grouped_matmul or fp8.sibling_matmuls; say why if
  /// no kernel can compute it. Nothing else reads one.
  static FailureOr<MatmulSpec> get(Operation *op, std::string &reason);
  /// Describes matmuls that one kernel is to compute; all have the same A,
  /// `shareA`, or the same B.
  static FailureOr<MatmulSpec> joinSiblings(ArrayRef<MatmulOp> matmuls,
                                            bool shareA, std::string &reason);
  /// Describes two of the same A, whose second one reads the first's result.
  static FailureOr<MatmulSpec> joinDual(MatmulOp first, MatmulOp second,
                                        std::string &reason);
  /// The captures of an op that there is a spec of, in its order.
  static SmallVector<Value> getCaptures(Operation *op);
};

} // namespace mlir::fp8

#endif // FP8_KERNELS_MATMUL_MATMULSPEC_H
