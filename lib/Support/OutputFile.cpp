//===- OutputFile.cpp - Writing files whole or not at all -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Unlike llvm::writeToOutput, which renames over /dev/null and ends the process
// when a disk is full.
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/OutputFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

/// An error that a stream kept would end the process in its destructor.
static std::error_code writeTo(llvm::raw_fd_ostream &os, StringRef contents) {
  os << contents;
  os.flush();
  std::error_code error = os.error();
  os.clear_error();
  return error;
}

static llvm::Error replaceFile(StringRef path, StringRef contents,
                               bool isExecutable) {
  unsigned mode = llvm::sys::fs::all_read | llvm::sys::fs::all_write;
  if (isExecutable)
    mode |= llvm::sys::fs::all_exe;
  auto file = llvm::sys::fs::TempFile::create(path + ".tmp%%%%%%", mode);
  if (!file)
    return file.takeError();
  llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  if (std::error_code error = writeTo(os, contents)) {
    llvm::consumeError(file->discard());
    return llvm::errorCodeToError(error);
  }
  return file->keep(path);
}

static llvm::Error writeContents(StringRef path, StringRef contents,
                                 bool isExecutable) {
  if (path == "-")
    return llvm::errorCodeToError(writeTo(llvm::outs(), contents));
  llvm::sys::fs::file_status status;
  // What a link leads to is written, not the link.
  SmallString<256> target(path);
  if (!llvm::sys::fs::status(path, status) &&
      status.type() != llvm::sys::fs::file_type::file_not_found) {
    if (std::error_code error = llvm::sys::fs::real_path(path, target))
      return llvm::errorCodeToError(error);
    if (status.type() == llvm::sys::fs::file_type::directory_file)
      return llvm::errorCodeToError(
          std::make_error_code(std::errc::is_a_directory));
    if (status.type() != llvm::sys::fs::file_type::regular_file) {
      std::error_code error;
      llvm::raw_fd_ostream os(target, error);
      if (!error)
        error = writeTo(os, contents);
      return llvm::errorCodeToError(error);
    }
  }
  return replaceFile(target, contents, isExecutable);
}

llvm::Error fp8::writeOutputFile(StringRef path, StringRef contents,
                                 bool isExecutable) {
  if (llvm::Error error = writeContents(path, contents, isExecutable))
    return llvm::createStringError(
        (path == "-" ? "standard output" : "'" + path + "'") + ": " +
        llvm::toString(std::move(error)));
  return llvm::Error::success();
}
