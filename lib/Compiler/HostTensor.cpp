//===- HostTensor.cpp - Tensors between files and programs ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/HostTensor.h"

#include "fp8/IR/PackedCodes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir;
using namespace mlir::fp8;

llvm::Expected<Buffer> mlir::fp8::allocateBuffer(size_t size) {
  constexpr size_t alignment = 64;
  Buffer buffer(std::aligned_alloc(
      alignment, llvm::alignTo(std::max<size_t>(size, 1), alignment)));
  if (!buffer)
    return llvm::createStringError("cannot allocate " + Twine(size) + " bytes");
  return buffer;
}

int64_t HostTensor::getNumElements() const {
  return ShapedType::getNumElements(shape) * getPacking(elementType).getCodes();
}

double mlir::fp8::getElement(const HostTensor &tensor, int64_t index) {
  size_t width = fp8rt::getByteWidth(tensor.dtype);
  uint64_t bits = 0;
  Type type = tensor.elementType;
  fp8rt::CodePacking packing = getPacking(type);
  int64_t place = index / packing.getCodes();
  std::memcpy(&bits,
              static_cast<const char *>(tensor.data.get()) + place * width,
              width);
  bits >>= index % packing.getCodes() * packing.bits;
  if (auto floatType = dyn_cast<FloatType>(type)) {
    llvm::APInt code(floatType.getWidth(), bits, /*isSigned=*/false,
                     /*implicitTrunc=*/true);
    llvm::APFloat value(floatType.getFloatSemantics(), code);
    bool losesInfo;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return value.convertToDouble();
  }
  if (type.isUnsignedInteger() || type.isInteger(1))
    return static_cast<double>(bits);
  return static_cast<double>(llvm::SignExtend64(bits, 8 * width));
}

/// Reports inputs without a tensor and tensors without a input, both at once:
/// often one is the other misspelt.
static llvm::Error checkNames(ArrayRef<ValueInfo> inputs,
                              const fp8rt::SafetensorsHeader &header,
                              const std::string &path, bool ignoreExtra) {
  std::string missing, extra;
  auto append = [](std::string &list, StringRef name) {
    list += ((list.empty() ? "'" : ", '") + name + "'").str();
  };
  llvm::StringSet<> known;
  for (const ValueInfo &input : inputs) {
    known.insert(input.name);
    if (!header.lookup(input.name))
      append(missing, input.name);
  }
  for (const fp8rt::TensorInfo &info : header.tensors)
    if (!ignoreExtra && !known.contains(info.name))
      append(extra, info.name);
  if (missing.empty() && extra.empty())
    return llvm::Error::success();

  std::string message = path + ": expected one tensor for each argument, but ";
  if (!missing.empty())
    message += "got none for " + missing;
  if (!extra.empty())
    message += (missing.empty() ? "found no argument for "
                                : " and found no argument for ") +
               extra;
  return llvm::createStringError(message);
}

static bool fits(ArrayRef<int64_t> expected, ArrayRef<int64_t> actual) {
  return expected.size() == actual.size() &&
         llvm::all_of(llvm::zip_equal(expected, actual), [](auto dims) {
           auto [expectedDim, actualDim] = dims;
           return ShapedType::isDynamic(expectedDim) ||
                  expectedDim == actualDim;
         });
}

/// Whether the tensor has a slice for each step. The ranks tell that apart
/// from one that is the same in all.
static llvm::Expected<bool> checkType(const ValueInfo &input,
                                      const fp8rt::TensorInfo &info,
                                      const std::string &path,
                                      std::optional<int64_t> steps) {
  SmallVector<int64_t> slices;
  if (steps) {
    slices.push_back(*steps);
    llvm::append_range(slices, input.shape);
  }
  // Other checkpoints have pairs of codes as bytes.
  if (input.dtype == info.dtype ||
      (fp8rt::getNumLanes(input.dtype) > 1 && info.dtype == fp8rt::DType::U8)) {
    if (fits(input.shape, info.shape))
      return false;
    if (steps && fits(slices, info.shape))
      return true;
  }
  std::string expected = describe(input.dtype, input.shape);
  if (steps)
    expected += ", or " + describe(input.dtype, slices) + " for " +
                std::to_string(*steps) + " steps";
  return llvm::createStringError(path + ": expected tensor '" + input.name +
                                 "' to be " + expected + ", but got " +
                                 describe(info.dtype, info.shape));
}

/// Bytes of types narrower than a byte: the program relies on the rest being
/// zero.
static llvm::Error checkCodes(const HostTensor &tensor,
                              const std::string &path) {
  unsigned width = tensor.elementType.isIndex()
                       ? 64
                       : tensor.elementType.getIntOrFloatBitWidth();
  if (width >= 8 || isPacked(tensor.elementType))
    return llvm::Error::success();
  ArrayRef<uint8_t> codes(static_cast<const uint8_t *>(tensor.data.get()),
                          tensor.getByteSize());
  for (auto [index, code] : llvm::enumerate(codes))
    if (code >> width)
      return llvm::createStringError(
          path + ": expected tensor '" + tensor.name +
          "' to hold codes below " + Twine(1 << width) + ", but element " +
          Twine(index) + " is " + Twine(static_cast<unsigned>(code)));
  return llvm::Error::success();
}

llvm::Expected<std::vector<HostTensor>>
mlir::fp8::readTensors(ArrayRef<ValueInfo> inputs, const std::string &path,
                       std::optional<int64_t> steps, bool ignoreExtra) {
  std::vector<HostTensor> tensors;
  std::string error;
  auto reader = fp8rt::SafetensorsReader::open(path, error);
  if (!reader)
    return llvm::createStringError(error);
  if (llvm::Error names =
          checkNames(inputs, reader->getHeader(), path, ignoreExtra))
    return names;
  for (const ValueInfo &input : inputs) {
    const fp8rt::TensorInfo &info = *reader->getHeader().lookup(input.name);
    auto isPerStep = checkType(input, info, path, steps);
    if (!isPerStep)
      return isPerStep.takeError();
    auto data = allocateBuffer(info.getByteSize());
    if (!data)
      return data.takeError();
    if (!reader->read(info, data->get(), error))
      return llvm::createStringError(error);
    HostTensor tensor{
        input.name,       input.getElementType(),
        input.dtype,      SmallVector<int64_t>(ArrayRef(info.shape)),
        std::move(*data), *isPerStep};
    if (llvm::Error codes = checkCodes(tensor, path))
      return codes;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

llvm::Error mlir::fp8::writeTensors(ArrayRef<HostTensor> tensors,
                                    const std::string &path) {
  std::vector<fp8rt::TensorData> data;
  for (const HostTensor &tensor : tensors)
    data.push_back({tensor.name,
                    tensor.dtype,
                    {tensor.shape.begin(), tensor.shape.end()},
                    tensor.data.get()});
  std::string error;
  if (!fp8rt::writeSafetensors(path, std::move(data), {}, error))
    return llvm::createStringError(error);
  return llvm::Error::success();
}
