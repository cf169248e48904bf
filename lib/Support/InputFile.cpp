//===- InputFile.cpp - Reading what somebody names ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/InputFile.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;

static llvm::Error failErrno() {
  return llvm::errorCodeToError(
      std::error_code(errno, std::generic_category()));
}

static ssize_t readSome(int fd, char *bytes, size_t size) {
  ssize_t count;
  do
    count = ::read(fd, bytes, size);
  while (count < 0 && errno == EINTR);
  return count;
}

/// What is no file. Only a pipe that somebody has open for writing may keep the
/// reader waiting.
static llvm::Expected<std::string> readStream(int fd,
                                              const struct stat &status) {
  char bytes[1 << 14];
  std::string text;
  ssize_t count = readSome(fd, bytes, sizeof(bytes));
  bool isPipe = S_ISFIFO(status.st_mode);
  if (S_ISCHR(status.st_mode) && count == 0)
    return text;
  if (!isPipe || count == 0)
    return llvm::createStringError(
        isPipe ? "expected a regular file, but got a pipe without a writer"
               : "expected a regular file or a pipe");
  if (count < 0 && errno != EAGAIN)
    return failErrno();
  if (::fcntl(fd, F_SETFL, 0) != 0)
    return failErrno();
  if (count < 0)
    count = readSome(fd, bytes, sizeof(bytes));
  for (; count > 0; count = readSome(fd, bytes, sizeof(bytes)))
    text.append(bytes, static_cast<size_t>(count));
  if (count < 0)
    return failErrno();
  return text;
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
fp8::readInputFile(StringRef path) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait.
  int fd =
      ::open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return failErrno();
  llvm::scope_exit close([&] { ::close(fd); });
  struct stat status;
  if (::fstat(fd, &status) != 0)
    return failErrno();
  if (S_ISDIR(status.st_mode))
    return llvm::errorCodeToError(
        std::make_error_code(std::errc::is_a_directory));
  if (S_ISREG(status.st_mode)) {
    auto buffer = llvm::MemoryBuffer::getOpenFile(
        llvm::sys::fs::convertFDToNativeFile(fd), path, /*FileSize=*/-1);
    if (!buffer)
      return llvm::errorCodeToError(buffer.getError());
    return std::move(*buffer);
  }
  llvm::Expected<std::string> text = readStream(fd, status);
  if (!text)
    return text.takeError();
  return llvm::MemoryBuffer::getMemBufferCopy(*text, path);
}
