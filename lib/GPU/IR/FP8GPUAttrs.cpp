//===- FP8GPUAttrs.cpp - Targets and launches of kernels ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "fp8/Runtime/LaunchRules.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

namespace rules = fp8rt::launch;

#include "fp8/GPU/IR/FP8GPUEnums.cpp.inc"

#include "fp8/GPU/IR/FP8GPUAttrInterfaces.cpp.inc"

/// Parses `, tail = 1`, if it is there, which was called `rest` before.
static ParseResult parseTail(AsmParser &parser, std::optional<int64_t> &tail) {
  if (failed(parser.parseOptionalComma()))
    return success();
  llvm::SMLoc place = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword("rest")))
    emitWarning(parser.getEncodedSourceLoc(place))
        << "'rest' of a tensor map is called 'tail' now";
  else if (parser.parseKeyword("tail"))
    return failure();
  return failure(parser.parseEqual() || parser.parseInteger(tail.emplace()));
}

static void printTail(AsmPrinter &printer, std::optional<int64_t> tail) {
  if (tail)
    printer << ", tail = " << *tail;
}

#define GET_ATTRDEF_CLASSES
#include "fp8/GPU/IR/FP8GPUAttrs.cpp.inc"

void FP8GPUDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fp8/GPU/IR/FP8GPUAttrs.cpp.inc"
      >();
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

LogicalResult GPUTargetAttr::verify(
    EmitError emitError, StringRef chip, int64_t computeCapability, StringRef,
    int64_t multiprocessors, int64_t sharedBytes, int64_t registers,
    int64_t mmaRate, int64_t l2Rate, int64_t memoryRate, int64_t clock,
    int64_t memoryPeak, int64_t launchTime, Attribute) {
  // target_c1
  if (chip.empty())
    return emitError() << "expected a target to have a chip";
  // target_c2
  for (auto [name, value] :
       {std::pair<StringRef, int64_t>{"compute_capability", computeCapability},
        {"multiprocessors", multiprocessors},
        {"shared_bytes", sharedBytes},
        {"registers", registers},
        {"mma_rate", mmaRate},
        {"l2_rate", l2Rate},
        {"memory_rate", memoryRate}})
    if (value <= 0)
      return emitError() << "expected " << name
                         << " of a target to be positive, but got " << value;
  for (auto [name, value] : {std::pair<StringRef, int64_t>{"clock", clock},
                             {"memory_peak", memoryPeak},
                             {"launch_time", launchTime}})
    if (value < 0)
      return emitError() << "expected " << name
                         << " of a target to be positive, or 0 if it is not "
                            "known, but got "
                         << value;
  return success();
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

LogicalResult KernelArgumentAttr::verify(EmitError emitError, StringRef name,
                                         Type element, int64_t rank,
                                         KernelAccess, int64_t alignment) {
  // argument_c1
  if (name.empty())
    return emitError() << "expected an argument of a kernel to have a name";
  // argument_c2
  if (rank < 0 || rank > rules::kMaxRank)
    return emitError() << "expected rank of argument '" << name
                       << "' to be in 0.." << rules::kMaxRank << ", but got "
                       << rank;
  // argument_c3
  int64_t bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  // A byte each in memory.
  if (element.isInteger(1))
    bits = 8;
  if (!llvm::is_contained({8, 16, 32, 64}, bits))
    return emitError() << "expected element of argument '" << name
                       << "' to have 8, 16, 32 or 64 bits, but got " << element;
  // argument_c4
  if (alignment < bits / 8 || alignment > rules::kMaxAlignment ||
      !llvm::isPowerOf2_64(alignment))
    return emitError() << "expected alignment of argument '" << name
                       << "' to be a power of two from " << bits / 8 << " to "
                       << rules::kMaxAlignment << ", but got " << alignment;
  return success();
}

/// Whether `expr` divides by positive constants alone.
static bool isEvaluable(AffineExpr expr) {
  bool result = true;
  expr.walk([&](AffineExpr part) {
    if (!llvm::is_contained({AffineExprKind::FloorDiv, AffineExprKind::CeilDiv,
                             AffineExprKind::Mod},
                            part.getKind()))
      return;
    auto divisor =
        dyn_cast<AffineConstantExpr>(cast<AffineBinaryOpExpr>(part).getRHS());
    result &= divisor && divisor.getValue() > 0;
  });
  return result;
}

/// Numbers that wait for an operation while `expr` is evaluated in postfix
/// order.
static int64_t countOperands(AffineExpr expr) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  return binary ? std::max(countOperands(binary.getLHS()),
                           countOperands(binary.getRHS()) + 1)
                : 1;
}

/// launch_c4
static LogicalResult verifyExpression(EmitError emitError, AffineMapAttr map,
                                      int64_t numExtents, StringRef what,
                                      unsigned mostResults = 1) {
  AffineMap value = map.getValue();
  // launch_c5, and the same of those that are one number.
  if (value.getNumResults() < 1 || value.getNumResults() > mostResults)
    return emitError() << "expected " << what << " to have 1 "
                       << (mostResults > 1 ? "to 3 results" : "result")
                       << ", but got " << value.getNumResults();
  if (value.getNumDims() != 0 || value.getNumSymbols() != numExtents)
    return emitError() << "expected " << what << " to have the " << numExtents
                       << " extents as symbols and no dimensions, but got "
                       << map;
  if (!llvm::all_of(value.getResults(), isEvaluable))
    return emitError() << "expected " << what
                       << " to divide by positive constants, but got " << map;
  for (AffineExpr result : value.getResults())
    if (int64_t operands = countOperands(result);
        operands > static_cast<int64_t>(rules::kMaxOperands))
      return emitError() << "expected " << what
                         << " to be evaluated with up to "
                         << rules::kMaxOperands << " numbers at hand, but got "
                         << operands << " for " << map;
  return success();
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// launch_c3: the argument that a parameter refers to, or an error.
static FailureOr<KernelArgumentAttr> getArgument(EmitError emitError,
                                                 const LaunchParts &launch,
                                                 int64_t index,
                                                 StringRef what) {
  int64_t count = launch.arguments.size();
  if (index < 0 || index >= count) {
    emitError() << "expected " << what << " to be of one of " << count
                << " arguments, but got " << index;
    return failure();
  }
  return cast<KernelArgumentAttr>(launch.arguments[index]);
}

/// Verifies launch_c3.
static LogicalResult verifyDim(EmitError emitError, KernelArgumentAttr argument,
                               int64_t dim, StringRef what) {
  if (dim >= 0 && dim < argument.getRank())
    return success();
  return emitError() << "expected " << what << " to be of one of the "
                     << argument.getRank() << " dimensions of argument '"
                     << argument.getName() << "', but got " << dim;
}

LogicalResult KernelExtentAttr::verify(EmitError emitError, StringRef name,
                                       int64_t, int64_t) {
  // extent_c1
  if (name.empty() || !llvm::isAlpha(name.front()) ||
      !llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    return emitError() << "expected the name of an extent to be a word, but "
                          "got '"
                       << name << "'";
  if (llvm::is_contained(rules::kOperators, name))
    return emitError() << "expected the name of an extent to be other than an "
                          "operator's, but got '"
                       << name << "'";
  return success();
}

LogicalResult TensorMapParamAttr::verifyParam(const LaunchParts &launch,
                                              EmitError emitError) const {
  auto argument =
      ::getArgument(emitError, launch, getArgument(), "a tensor map");
  if (failed(argument))
    return failure();
  auto fail = [&] {
    return emitError() << "tensor map of argument '" << argument->getName()
                       << "': ";
  };
  // tensor_map_c1
  int64_t rank = argument->getRank();
  if (rank < 1 || rank > rules::kMaxMapRank ||
      rank != static_cast<int64_t>(getBox().size()))
    return fail() << "expected a box of 1 to " << rules::kMaxMapRank
                  << " dimensions, as many as the argument's " << rank
                  << ", but got " << getBox().size();
  for (int64_t extent : getBox())
    if (extent < 1 || extent > rules::kMaxBox)
      return fail() << "expected extents of the box to be in 1.."
                    << rules::kMaxBox << ", but got " << extent;
  // tensor_map_c3
  if (!llvm::is_contained(rules::kSwizzles, getSwizzle()))
    return fail() << "expected swizzle to be 0, 32, 64 or 128, but got "
                  << getSwizzle();
  if (!llvm::is_contained(rules::kL2Sizes, getL2()))
    return fail() << "expected l2 to be 0, 64, 128 or 256, but got " << getL2();
  // tensor_map_c2
  int64_t bytes = getBox().front() * argument->getElementBytes();
  if (bytes % rules::kMapBytes != 0 || (getSwizzle() && bytes > getSwizzle()))
    return fail() << "expected rows of the box of a multiple of "
                  << rules::kMapBytes
                  << " bytes, no longer than the swizzle, but got " << bytes;
  // tensor_map_c4
  if (argument->getAlignment() % rules::kMapBytes != 0)
    return fail() << "expected an alignment of " << rules::kMapBytes
                  << " bytes, but got " << argument->getAlignment();
  // tensor_map_c5
  if (getTail() && (*getTail() < 1 || *getTail() >= rank))
    return fail() << "expected tail to be a dimension in 1.." << rank - 1
                  << ", but got " << *getTail();
  return success();
}

void TensorMapParamAttr::writeJSON(llvm::json::OStream &json,
                                   ArrayRef<StringRef>) const {
  json.attribute("tensor_map", getArgument());
  json.attributeArray("box", [&] {
    for (int64_t extent : getBox())
      json.value(extent);
  });
  json.attribute("swizzle", getSwizzle());
  json.attribute("l2", getL2());
  if (getTail())
    json.attribute("tail", *getTail());
}

LogicalResult PointerParamAttr::verifyParam(const LaunchParts &launch,
                                            EmitError emitError) const {
  return ::getArgument(emitError, launch, getArgument(), "a pointer");
}

void PointerParamAttr::writeJSON(llvm::json::OStream &json,
                                 ArrayRef<StringRef>) const {
  json.attribute("pointer", getArgument());
}

LogicalResult StrideParamAttr::verifyParam(const LaunchParts &launch,
                                           EmitError emitError) const {
  auto argument = ::getArgument(emitError, launch, getArgument(), "a stride");
  if (failed(argument))
    return failure();
  return verifyDim(emitError, *argument, getDim(), "a stride");
}

void StrideParamAttr::writeJSON(llvm::json::OStream &json,
                                ArrayRef<StringRef>) const {
  json.attribute("stride", getArgument());
  json.attribute("dim", getDim());
}

LogicalResult ValueParamAttr::verifyParam(const LaunchParts &launch,
                                          EmitError emitError) const {
  if (!llvm::is_contained({32u, 64u}, getType().getWidth()))
    return emitError() << "expected a value that is an i32 or i64, but got "
                       << getType();
  return verifyExpression(emitError, getValue(), launch.numExtents, "a value");
}

LogicalResult CaptureParamAttr::verifyParam(const LaunchParts &,
                                            EmitError emitError) const {
  unsigned bits =
      getType().isIntOrFloat() ? getType().getIntOrFloatBitWidth() : 0;
  if (bits == 0 || bits > 64)
    return emitError() << "expected a capture of up to 64 bits, but got "
                       << getType();
  return success();
}

void CaptureParamAttr::writeJSON(llvm::json::OStream &json,
                                 ArrayRef<StringRef>) const {
  json.attribute("capture", getIndex());
  json.attribute("bytes",
                 llvm::divideCeil(getType().getIntOrFloatBitWidth(), 8));
}

LogicalResult ScratchParamAttr::verifyParam(const LaunchParts &launch,
                                            EmitError emitError) const {
  int64_t count = launch.workspaces.size();
  if (getWorkspace() < 0 || getWorkspace() >= count)
    return emitError() << "expected scratch to be one of " << count
                       << " workspaces, but got " << getWorkspace();
  return success();
}

void ScratchParamAttr::writeJSON(llvm::json::OStream &json,
                                 ArrayRef<StringRef>) const {
  json.attribute("scratch", getWorkspace());
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Verifies launch_c1.
template <typename Element>
static LogicalResult verifyElements(EmitError emitError, ArrayAttr array,
                                    StringRef name, StringRef expected) {
  for (Attribute element : array)
    if (!isa<Element>(element))
      return emitError() << "expected " << name << " of a launch to be "
                         << expected << ", but got " << element;
  return success();
}

/// launch_c2
template <typename Element>
static LogicalResult verifyNames(EmitError emitError, ArrayAttr array,
                                 StringRef what) {
  llvm::StringSet<> names;
  for (auto element : array.getAsRange<Element>())
    if (!names.insert(element.getName()).second)
      return emitError() << "expected one " << what << " called '"
                         << element.getName() << "', but got several";
  return success();
}

/// Verifies launch_c1.
static LogicalResult verifyOrder(EmitError emitError, ArrayAttr arguments) {
  int64_t numInputs = 0;
  for (auto [number, argument] :
       llvm::enumerate(arguments.getAsRange<KernelArgumentAttr>())) {
    if (argument.getAccess() != KernelAccess::Read)
      continue;
    if (numInputs++ != static_cast<int64_t>(number))
      return emitError() << "expected arguments that are read before those "
                            "that are written, but got '"
                         << argument.getName() << "' after one of these";
  }
  if (numInputs == static_cast<int64_t>(arguments.size()))
    return emitError() << "expected a launch to write an argument";
  return success();
}

/// Verifies launch_c3.
static LogicalResult verifyParams(EmitError emitError, const LaunchParts &parts,
                                  ArrayAttr extents, ArrayAttr params) {
  for (auto extent : extents.getAsRange<KernelExtentAttr>()) {
    auto argument =
        ::getArgument(emitError, parts, extent.getArgument(), "an extent");
    if (failed(argument) ||
        failed(verifyDim(emitError, *argument, extent.getDim(), "an extent")))
      return failure();
  }
  SmallVector<int64_t> captures;
  for (auto param : params.getAsRange<KernelParamAttrInterface>()) {
    if (failed(param.verifyParam(parts, emitError)))
      return failure();
    if (auto capture = dyn_cast<CaptureParamAttr>(Attribute(param)))
      captures.push_back(capture.getIndex());
  }
  llvm::sort(captures);
  for (auto [number, index] : llvm::enumerate(captures))
    if (index != static_cast<int64_t>(number))
      return emitError() << "expected captures to be numbered from 0 without "
                            "gaps, but got "
                         << index << " in the place of " << number;
  return success();
}

/// Verifies launch_c6.
static LogicalResult verifySizes(EmitError emitError, int64_t block,
                                 int64_t cluster, int64_t sharedBytes,
                                 int64_t resident) {
  if (block < 32 || block > rules::kMaxBlock || block % 32 != 0)
    return emitError() << "expected block to be a multiple of 32 up to "
                       << rules::kMaxBlock << ", but got " << block;
  for (auto [name, value, low, high] :
       {std::tuple<StringRef, int64_t, int64_t, int64_t>{"cluster", cluster, 1,
                                                         rules::kMaxCluster},
        {"shared_bytes", sharedBytes, 0, rules::kMaxSharedBytes},
        {"resident", resident, 0, rules::kMaxResident}})
    if (value < low || value > high)
      return emitError() << "expected " << name << " to be in " << low << ".."
                         << high << ", but got " << value;
  return success();
}

LogicalResult LaunchAttr::verify(EmitError emitError, ArrayAttr arguments,
                                 ArrayAttr extents, ArrayAttr params,
                                 AffineMapAttr grid, int64_t block,
                                 int64_t cluster, int64_t sharedBytes,
                                 int64_t resident, bool, ArrayAttr workspaces,
                                 AffineMapAttr flops) {
  ArrayAttr spaces =
      workspaces ? workspaces : ArrayAttr::get(arguments.getContext(), {});
  if (failed(verifyElements<KernelArgumentAttr>(
          emitError, arguments, "arguments", "#fp8_gpu.argument")) ||
      failed(verifyElements<KernelExtentAttr>(emitError, extents, "extents",
                                              "#fp8_gpu.extent")) ||
      failed(verifyElements<KernelParamAttrInterface>(
          emitError, params, "params", "parameters of a kernel")) ||
      failed(verifyElements<KernelWorkspaceAttr>(
          emitError, spaces, "workspaces", "#fp8_gpu.workspace")) ||
      failed(
          verifyNames<KernelArgumentAttr>(emitError, arguments, "argument")) ||
      failed(verifyNames<KernelExtentAttr>(emitError, extents, "extent")))
    return failure();
  LaunchParts parts{arguments.getValue(), spaces.getValue(),
                    static_cast<int64_t>(extents.size())};
  if (failed(verifyOrder(emitError, arguments)) ||
      failed(verifyParams(emitError, parts, extents, params)))
    return failure();
  // launch_c4
  for (auto space : spaces.getAsRange<KernelWorkspaceAttr>())
    if (failed(verifyExpression(emitError, space.getBytes(), parts.numExtents,
                                "the bytes of a workspace")))
      return failure();
  if (failed(verifyExpression(emitError, grid, parts.numExtents, "the grid",
                              rules::kMaxGridRank)))
    return failure();
  if (flops &&
      failed(verifyExpression(emitError, flops, parts.numExtents, "the flops")))
    return failure();
  return verifySizes(emitError, block, cluster, sharedBytes, resident);
}

int64_t LaunchAttr::getNumInputs() const {
  return llvm::count_if(
      getArguments().getAsRange<KernelArgumentAttr>(),
      [](auto argument) { return argument.getAccess() == KernelAccess::Read; });
}

bool LaunchAttr::takesStride(int64_t argument, int64_t dim) const {
  return llvm::any_of(getParams(), [&](Attribute param) {
    if (auto stride = dyn_cast<StrideParamAttr>(param))
      return stride.getArgument() == argument && stride.getDim() == dim;
    // A map's innermost elements lie together.
    auto map = dyn_cast<TensorMapParamAttr>(param);
    return map && map.getArgument() == argument &&
           dim + 1 < getArgument(argument).getRank();
  });
}

SmallVector<Type> LaunchAttr::getCaptureTypes() const {
  SmallVector<CaptureParamAttr> captures;
  for (Attribute param : getParams())
    if (auto capture = dyn_cast<CaptureParamAttr>(param))
      captures.push_back(capture);
  SmallVector<Type> types(captures.size());
  for (CaptureParamAttr capture : captures)
    types[capture.getIndex()] = capture.getType();
  return types;
}
