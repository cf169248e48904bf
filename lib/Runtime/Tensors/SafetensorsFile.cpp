//===- SafetensorsFile.cpp - Reading and writing files --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// System calls: what may be read, and how a new file takes the place of an old
// one without a moment in which there is neither.
//
//===----------------------------------------------------------------------===//

#include "SafetensorsDetail.h"
#include "StrictJSON.h"
#include "fp8/Runtime/Safetensors.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

using namespace fp8rt;

/// Linux moves at most this much in one call.
static constexpr size_t kMaxTransfer = 0x7ffff000;

static bool failErrno(const std::string &path, const char *what,
                      std::string &error) {
  error = path + ": cannot " + what + ": " + std::strerror(errno);
  return false;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Reads as much of `size` bytes as the file has; -1 on an error.
static ssize_t readAt(int fd, void *destination, size_t size, uint64_t offset) {
  size_t done = 0;
  while (done < size) {
    ssize_t count = ::pread(fd, static_cast<char *>(destination) + done,
                            std::min(size - done, kMaxTransfer),
                            static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return -1;
    if (count == 0)
      break;
    done += static_cast<size_t>(count);
  }
  return static_cast<ssize_t>(done);
}

SafetensorsReader::SafetensorsReader(SafetensorsReader &&other)
    : path(std::move(other.path)), fd(other.fd),
      header(std::move(other.header)) {
  other.fd = -1;
}

SafetensorsReader::~SafetensorsReader() {
  if (fd >= 0)
    ::close(fd);
}

std::optional<SafetensorsReader>
SafetensorsReader::open(const std::string &path, std::string &error) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    failErrno(path, "open", error);
    return std::nullopt;
  }
  SafetensorsReader reader(path, fd);
  struct stat status;
  if (::fstat(fd, &status) != 0) {
    failErrno(path, "inspect", error);
    return std::nullopt;
  }
  if (!S_ISREG(status.st_mode)) {
    error = path + ": expected a regular file";
    return std::nullopt;
  }

  uint64_t fileSize = static_cast<uint64_t>(status.st_size);
  std::vector<uint8_t> bytes(std::min<uint64_t>(fileSize, 8));
  ssize_t count = readAt(fd, bytes.data(), bytes.size(), 0);
  if (count == 8) {
    // A length that cannot be true is left to the parser to report.
    uint64_t length = detail::readHeaderLength(bytes.data());
    if (length <= std::min(kMaxSafetensorsHeaderSize, fileSize - 8)) {
      bytes.resize(8 + length);
      count = readAt(fd, bytes.data(), bytes.size(), 0);
    }
  }
  if (count < 0) {
    failErrno(path, "read", error);
    return std::nullopt;
  }
  if (!parseSafetensorsHeader(bytes.data(), static_cast<size_t>(count),
                              fileSize, path, reader.header, error))
    return std::nullopt;
  return reader;
}

bool SafetensorsReader::read(const TensorInfo &tensor, void *destination,
                             std::string &error) const {
  ssize_t count = readAt(fd, destination, tensor.getByteSize(),
                         header.dataOffset + tensor.begin);
  if (count < 0)
    return failErrno(path, "read", error);
  if (static_cast<uint64_t>(count) != tensor.getByteSize()) {
    error = path + ": tensor " + detail::quote(tensor.name) + ": expected " +
            std::to_string(tensor.getByteSize()) +
            " bytes, but the file ends after " + std::to_string(count);
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {
/// A file beside its destination that vanishes unless it is committed.
class PendingFile {
public:
  PendingFile(const std::string &path, std::string &error)
      : path(path), error(error) {}
  ~PendingFile();

  bool create();
  bool write(const void *data, size_t size);
  bool commit();

private:
  const std::string &path;
  std::string &error;
  /// Symbolic links are followed, so that a link stays one.
  std::string target;
  std::string temporary;
  int fd = -1;
  int directory = -1;
};
} // namespace

PendingFile::~PendingFile() {
  if (fd >= 0)
    ::close(fd);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
  if (directory >= 0)
    ::close(directory);
}

bool PendingFile::create() {
  target = path;
  if (char *resolved = ::realpath(path.c_str(), nullptr)) {
    target = resolved;
    std::free(resolved);
  } else if (errno == ELOOP) {
    return failErrno(path, "create", error);
  }
  // A device or directory must not be replaced by a file.
  struct stat status;
  if (::stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    error = path + ": expected a regular file";
    return false;
  }

  size_t slash = target.rfind('/');
  std::string parent =
      slash == std::string::npos ? "./" : target.substr(0, slash + 1);
  directory = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0)
    return failErrno(path, "open its directory", error);
  // The name is not derived from the target's, which may be as long as names
  // are allowed to be.
  for (int attempt = 0; attempt < 100 && fd < 0; ++attempt) {
    std::string name = parent + ".safetensors-" + std::to_string(::getpid()) +
                       "-" + std::to_string(attempt) + ".tmp";
    fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
      temporary = name;
    else if (errno != EEXIST)
      break;
  }
  return fd >= 0 || failErrno(path, "create", error);
}

bool PendingFile::write(const void *data, size_t size) {
  const char *position = static_cast<const char *>(data);
  while (size > 0) {
    ssize_t count = ::write(fd, position, std::min(size, kMaxTransfer));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failErrno(path, "write", error);
    position += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

bool PendingFile::commit() {
  int closing = fd;
  if (::fsync(closing) != 0)
    return failErrno(path, "write", error);
  fd = -1;
  if (::close(closing) != 0)
    return failErrno(path, "write", error);
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    return failErrno(path, "replace", error);
  temporary.clear();
  // Some file systems have no notion of syncing a directory.
  if (::fsync(directory) != 0 && errno != EINVAL && errno != ENOTSUP)
    return failErrno(path, "sync its directory", error);
  return true;
}

bool fp8rt::writeSafetensors(const std::string &path,
                             std::vector<TensorData> tensors,
                             const Metadata &metadata, std::string &error) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorData &a, const TensorData &b) {
              return std::make_tuple(getByteWidth(b.dtype), std::cref(a.name)) <
                     std::make_tuple(getByteWidth(a.dtype), std::cref(b.name));
            });
  auto fail = [&](const TensorData &tensor, const char *message) {
    error = path + ": tensor " + detail::quote(tensor.name) + ": " + message;
    return false;
  };
  std::vector<TensorInfo> infos;
  std::vector<std::string> names;
  uint64_t position = 0;
  for (const TensorData &tensor : tensors) {
    if (tensor.name == "__metadata__")
      return fail(tensor, "expected a name other than the format's own");
    if (std::any_of(tensor.shape.begin(), tensor.shape.end(),
                    [](int64_t dim) { return dim < 0; }))
      return fail(tensor, "expected non-negative dimensions");
    std::optional<uint64_t> byteSize =
        detail::computeByteSize(tensor.shape, tensor.dtype);
    if (!byteSize || *byteSize > UINT64_MAX - position)
      return fail(tensor, "expected a size that fits in 63 bits");
    infos.push_back({tensor.name, tensor.dtype, tensor.shape, position,
                     position + *byteSize});
    names.push_back(tensor.name);
    position += *byteSize;
  }
  std::sort(names.begin(), names.end());
  auto twin = std::adjacent_find(names.begin(), names.end());
  if (twin != names.end()) {
    error = path + ": expected unique names, but got " + detail::quote(*twin) +
            " twice";
    return false;
  }
  std::optional<std::string> text = detail::printHeader(infos, metadata);
  if (!text) {
    error = path + ": expected names and metadata in UTF-8";
    return false;
  }

  uint8_t length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<uint8_t>(text->size() >> (8 * i));
  PendingFile file(path, error);
  if (!file.create() || !file.write(length, sizeof(length)) ||
      !file.write(text->data(), text->size()))
    return false;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!file.write(tensors[i].data, infos[i].getByteSize()))
      return false;
  return file.commit();
}
