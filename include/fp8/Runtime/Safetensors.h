//===- Safetensors.h - Tensors in files -------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A .safetensors file is a little-endian 64-bit header length, a JSON header
// and the tensors' bytes. The header is not trusted: whatever it says is
// checked against the format and the file's size before a byte of data is used.
//
// Like all of the runtime this is free of LLVM and MLIR. Functions that can
// fail return false (or an empty optional) and set `error` to one line that
// names the file and, where there is one, the tensor.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_SAFETENSORS_H
#define FP8_RUNTIME_SAFETENSORS_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fp8rt {

/// F64, ...: those of Formats.def.
enum class DType : uint8_t {
#define FP8_DTYPE(NAME, ...) NAME,
#include "fp8/Formats.def"
};

/// The name of Formats.def, e.g. "F8_E4M3", which files have too, but for
/// codes that share bytes.
std::string_view stringifyDType(DType dtype);
std::optional<DType> symbolizeDType(std::string_view name);
/// Bytes of an element, and codes that share them: an element of F4x2 is a byte
/// of two, the first in the lower half, of which each counts in files.
size_t getByteWidth(DType dtype);
unsigned getNumLanes(DType dtype);

using Metadata = std::map<std::string, std::string>;

/// One entry of the header. `begin` and `end` count from the end of the header.
struct TensorInfo {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  uint64_t begin;
  uint64_t end;

  uint64_t getByteSize() const { return end - begin; }
};

struct SafetensorsHeader {
  /// In the order of the data; together they cover it without a hole.
  std::vector<TensorInfo> tensors;
  Metadata metadata;
  /// Where the data begins in the file.
  uint64_t dataOffset = 0;
  /// Places in `tensors`, in the order of names.
  std::vector<uint32_t> byName;

  const TensorInfo *lookup(std::string_view name) const;
};

/// Headers above this size are refused, as in the reference implementation.
inline constexpr uint64_t kMaxSafetensorsHeaderSize = 100'000'000;

/// Parses and checks the header of a file of `fileSize` bytes, of which
/// `bytes[0..size)` are the first: at least the header, or all of a file
/// shorter than its header says. `origin` names the file in errors.
bool parseSafetensorsHeader(const uint8_t *bytes, size_t size,
                            uint64_t fileSize, std::string_view origin,
                            SafetensorsHeader &header, std::string &error);

/// An open file whose header has been checked.
class SafetensorsReader {
public:
  static std::optional<SafetensorsReader> open(const std::string &path,
                                               std::string &error);
  SafetensorsReader(SafetensorsReader &&other);
  SafetensorsReader &operator=(SafetensorsReader &&) = delete;
  ~SafetensorsReader();

  const SafetensorsHeader &getHeader() const { return header; }

  /// Copies the tensor's bytes to `destination`, which holds
  /// `tensor.getByteSize()` bytes. The data is read rather than mapped, so a
  /// file that shrinks meanwhile is an error and not a signal.
  bool read(const TensorInfo &tensor, void *destination,
            std::string &error) const;

private:
  SafetensorsReader(std::string path, int fd) : path(std::move(path)), fd(fd) {}

  std::string path;
  int fd;
  SafetensorsHeader header;
};

/// A tensor to be written: `data` is row-major and as large as `shape` says.
struct TensorData {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  const void *data;
};

/// Writes a file which depends on nothing but its arguments; tensors are laid
/// out by falling element size, then name, which keeps each one aligned.
/// Either the whole file takes the place of `path` and is on disk, or `path`
/// is as before and nothing else is left behind.
bool writeSafetensors(const std::string &path, std::vector<TensorData> tensors,
                      const Metadata &metadata, std::string &error);

} // namespace fp8rt

#endif // FP8_RUNTIME_SAFETENSORS_H
