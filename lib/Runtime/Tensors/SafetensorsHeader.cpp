//===- SafetensorsHeader.cpp - Header of a .safetensors file --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Untrusted bytes in, a header whose every statement has been checked out. The
// JSON library's exceptions end in this file.
//
//===----------------------------------------------------------------------===//

#include "SafetensorsDetail.h"
#include "StrictJSON.h"
#include "fp8/Runtime/Safetensors.h"

#include <algorithm>
#include <limits>
#include <tuple>

using namespace fp8rt;
using detail::parseStrictJSON;
using detail::quote;
using detail::summarize;
using nlohmann::json;

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

namespace {
struct DTypeRow {
  DType dtype;
  std::string_view name, nameInFiles;
  unsigned bits;
  uint8_t lanes;
};
} // namespace

static constexpr DTypeRow kDTypes[] = {
#define FP8_DTYPE(NAME, FILE, CODE, BITS, LANES, ...)                          \
  {DType::NAME, #NAME, FILE, BITS, LANES},
#include "fp8/Formats.def"
};

static const DTypeRow &getRow(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)];
}

std::string_view fp8rt::stringifyDType(DType dtype) {
  return getRow(dtype).name;
}

/// The spelling of the format.
static std::string_view getNameInFiles(DType dtype) {
  return getRow(dtype).nameInFiles;
}

size_t fp8rt::getByteWidth(DType dtype) {
  return getRow(dtype).bits * getRow(dtype).lanes / 8;
}

unsigned fp8rt::getNumLanes(DType dtype) { return getRow(dtype).lanes; }

std::optional<DType> fp8rt::symbolizeDType(std::string_view name) {
  for (const DTypeRow &row : kDTypes)
    if (row.name == name)
      return row.dtype;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

std::string detail::stringifyShape(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<uint64_t>
detail::computeByteSize(const std::vector<int64_t> &shape, DType dtype) {
  // Zeros are left out of the product so that its range does not depend on
  // where they stand: strides are products of the other dimensions too.
  constexpr uint64_t limit = std::numeric_limits<int64_t>::max();
  uint64_t product = getByteWidth(dtype);
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim == 0) {
      empty = true;
      continue;
    }
    if (static_cast<uint64_t>(dim) > limit / product)
      return std::nullopt;
    product *= static_cast<uint64_t>(dim);
  }
  return empty ? 0 : product;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

namespace {
/// Checks one header; the first finding becomes the error.
class HeaderParser {
public:
  HeaderParser(std::string_view origin, SafetensorsHeader &header,
               std::string &error)
      : origin(origin), header(header), error(error) {}

  bool parse(const uint8_t *bytes, size_t size, uint64_t fileSize);

private:
  bool parseMetadata(const json &entry);
  bool parseTensor(const std::string &name, const json &entry);
  bool parseShape(const std::string &name, const json &shape, TensorInfo &info);
  bool parseOffsets(const std::string &name, const json &offsets,
                    TensorInfo &info);
  bool checkLayout(uint64_t dataSize);

  bool fail(const std::string &message) {
    error = std::string(origin) + ": " + message;
    return false;
  }
  bool fail(const std::string &tensor, const std::string &message) {
    return fail("tensor " + quote(tensor) + ": " + message);
  }

  std::string_view origin;
  SafetensorsHeader &header;
  std::string &error;
};
} // namespace

bool HeaderParser::parseMetadata(const json &entry) {
  if (!entry.is_object())
    return fail("expected __metadata__ to be an object of strings, but got " +
                summarize(entry));
  for (const auto &[key, value] : entry.items()) {
    if (!value.is_string())
      return fail("expected __metadata__ " + quote(key) +
                  " to be a string, but got " + summarize(value));
    header.metadata.emplace(key, value.get<std::string>());
  }
  return true;
}

bool HeaderParser::parseShape(const std::string &name, const json &shape,
                              TensorInfo &info) {
  if (!shape.is_array())
    return fail(name,
                "expected shape to be an array, but got " + summarize(shape));
  for (const json &dim : shape) {
    constexpr uint64_t limit = std::numeric_limits<int64_t>::max();
    if (!dim.is_number_unsigned() || dim.get<uint64_t>() > limit)
      return fail(name, "expected dimensions to be non-negative 64-bit "
                        "integers, but got " +
                            summarize(dim));
    info.shape.push_back(static_cast<int64_t>(dim.get<uint64_t>()));
  }
  return true;
}

bool HeaderParser::parseOffsets(const std::string &name, const json &offsets,
                                TensorInfo &info) {
  if (!offsets.is_array() || offsets.size() != 2 ||
      !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    return fail(name, "expected data_offsets to be two non-negative integers, "
                      "but got " +
                          summarize(offsets));
  info.begin = offsets[0].get<uint64_t>();
  info.end = offsets[1].get<uint64_t>();
  if (info.begin > info.end)
    return fail(name, "expected data_offsets in rising order, but got " +
                          summarize(offsets));
  return true;
}

bool HeaderParser::parseTensor(const std::string &name, const json &entry) {
  if (!entry.is_object())
    return fail(name, "expected an object with dtype, shape and data_offsets, "
                      "but got " +
                          summarize(entry));
  for (const auto &[key, value] : entry.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      return fail(name, "expected the keys dtype, shape and data_offsets, but "
                        "got " +
                            quote(key));
  for (const char *key : {"dtype", "shape", "data_offsets"})
    if (!entry.contains(key))
      return fail(name, "expected the key '" + std::string(key) +
                            "', but it is missing");

  const json &dtypeName = entry["dtype"];
  std::optional<DType> dtype;
  for (const DTypeRow &row : kDTypes)
    if (dtypeName.is_string() &&
        getNameInFiles(row.dtype) == dtypeName.get<std::string>())
      dtype = row.dtype;
  if (!dtype) {
    std::string known;
    for (const DTypeRow &row : kDTypes)
      known +=
          (known.empty() ? "" : ", ") + std::string(getNameInFiles(row.dtype));
    return fail(name, "expected dtype to be one of " + known + ", but got " +
                          summarize(dtypeName));
  }

  TensorInfo info;
  info.name = name;
  info.dtype = *dtype;
  if (!parseShape(name, entry["shape"], info) ||
      !parseOffsets(name, entry["data_offsets"], info))
    return false;

  std::string what = detail::stringifyShape(info.shape) + " of " +
                     std::string(getNameInFiles(info.dtype));
  if (int64_t lanes = getRow(info.dtype).lanes; lanes > 1) {
    if (info.shape.empty() || info.shape.back() % lanes != 0)
      return fail(name, "expected a last dimension that is a multiple of " +
                            std::to_string(lanes) +
                            ", as elements share bytes, but got " + what);
    info.shape.back() /= lanes;
  }
  std::optional<uint64_t> byteSize =
      detail::computeByteSize(info.shape, info.dtype);
  if (!byteSize)
    return fail(name, "expected a size that fits in 63 bits, but got " + what);
  if (*byteSize != info.getByteSize())
    return fail(name, "expected data_offsets to span " +
                          std::to_string(*byteSize) + " bytes (" + what +
                          "), but got " + std::to_string(info.getByteSize()));
  header.tensors.push_back(std::move(info));
  return true;
}

bool HeaderParser::checkLayout(uint64_t dataSize) {
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const TensorInfo &a, const TensorInfo &b) {
              return std::tie(a.begin, a.end, a.name) <
                     std::tie(b.begin, b.end, b.name);
            });
  uint64_t position = 0;
  const TensorInfo *previous = nullptr;
  for (const TensorInfo &info : header.tensors) {
    if (info.end > dataSize)
      return fail(info.name, "expected data_offsets within the file's " +
                                 std::to_string(dataSize) +
                                 " bytes of data, but got [" +
                                 std::to_string(info.begin) + ", " +
                                 std::to_string(info.end) + "]");
    if (info.begin < position)
      return fail(info.name, "expected data of its own from byte " +
                                 std::to_string(info.begin) +
                                 ", but it overlaps tensor '" + previous->name +
                                 "', which ends at " +
                                 std::to_string(position));
    if (info.begin > position)
      return fail(info.name, "expected data to begin at byte " +
                                 std::to_string(position) +
                                 ", where the previous tensor ends, but got " +
                                 std::to_string(info.begin));
    position = info.end;
    previous = &info;
  }
  if (position != dataSize)
    return fail("expected the tensors to cover all " +
                std::to_string(dataSize) + " bytes of data, but they end at " +
                std::to_string(position));
  return true;
}

bool HeaderParser::parse(const uint8_t *bytes, size_t size, uint64_t fileSize) {
  header = SafetensorsHeader();
  if (fileSize < 8 || size < 8)
    return fail("expected a header length of 8 bytes, but the file has " +
                std::to_string(fileSize) + " bytes");
  uint64_t length = detail::readHeaderLength(bytes);
  if (length > kMaxSafetensorsHeaderSize)
    return fail("expected a header of at most " +
                std::to_string(kMaxSafetensorsHeaderSize) +
                " bytes, but its length field says " + std::to_string(length));
  if (length > fileSize - 8 || length > size - 8)
    return fail("expected a header of " + std::to_string(length) +
                " bytes, but the file has " + std::to_string(fileSize - 8) +
                " bytes after the length field");

  const char *begin = reinterpret_cast<const char *>(bytes) + 8;
  if (length == 0 || *begin != '{')
    return fail("expected the header to begin with '{'");
  json root;
  std::string message;
  if (!parseStrictJSON({begin, length}, "the header", 7, root, message))
    return fail(message);
  for (const auto &[key, value] : root.items())
    if (!(key == "__metadata__" ? parseMetadata(value)
                                : parseTensor(key, value)))
      return false;
  header.dataOffset = 8 + length;
  if (!checkLayout(fileSize - header.dataOffset))
    return false;
  // A header is too short for more than 2^32 of them.
  for (size_t i = 0; i < header.tensors.size(); ++i)
    header.byName.push_back(static_cast<uint32_t>(i));
  std::sort(header.byName.begin(), header.byName.end(),
            [&](uint32_t a, uint32_t b) {
              return header.tensors[a].name < header.tensors[b].name;
            });
  return true;
}

bool fp8rt::parseSafetensorsHeader(const uint8_t *bytes, size_t size,
                                   uint64_t fileSize, std::string_view origin,
                                   SafetensorsHeader &header,
                                   std::string &error) {
  return HeaderParser(origin, header, error).parse(bytes, size, fileSize);
}

const TensorInfo *SafetensorsHeader::lookup(std::string_view name) const {
  auto isBefore = [&](uint32_t index, std::string_view other) {
    return tensors[index].name < other;
  };
  auto found = std::lower_bound(byName.begin(), byName.end(), name, isBefore);
  return found != byName.end() && tensors[*found].name == name
             ? &tensors[*found]
             : nullptr;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

std::optional<std::string>
detail::printHeader(const std::vector<TensorInfo> &tensors,
                    const Metadata &metadata) {
  json root = json::object();
  if (!metadata.empty())
    root["__metadata__"] = metadata;
  for (const TensorInfo &info : tensors) {
    std::vector<int64_t> shape = info.shape;
    if (!shape.empty())
      shape.back() *= getRow(info.dtype).lanes;
    root[info.name] = {{"dtype", getNameInFiles(info.dtype)},
                       {"shape", shape},
                       {"data_offsets", {info.begin, info.end}}};
  }
  try {
    std::string text = root.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    return text;
  } catch (const json::exception &) {
    return std::nullopt;
  }
}
