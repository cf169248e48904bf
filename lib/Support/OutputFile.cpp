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
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace mlir;
using namespace mlir::fp8;
using llvm::sys::fs::TempFile;

namespace {
/// A file beside the one that it is to replace.
struct Replacement {
  StringRef path;
  std::string target;
  TempFile file;
  /// One more name of what was there; empty without one.
  std::string previous;
};
} // namespace

static llvm::Error nameFile(StringRef path, llvm::Error error) {
  if (!error)
    return error;
  return llvm::createStringError(
      std::make_error_code(std::errc::io_error),
      (path == "-" ? "standard output" : "'" + path + "'") + ": " +
          llvm::toString(std::move(error)));
}

/// An error that a stream kept would end the process in its destructor.
static std::error_code writeTo(llvm::raw_fd_ostream &os, StringRef contents) {
  os << contents;
  os.flush();
  std::error_code error = os.error();
  os.clear_error();
  return error;
}

/// Where to put a file for `path`: what a link leads to is replaced, not the
/// link. None for what cannot be replaced.
static llvm::Expected<std::optional<std::string>> getTarget(StringRef path) {
  if (path == "-")
    return std::nullopt;
  SmallString<256> target;
  llvm::sys::fs::file_status status;
  std::error_code error = llvm::sys::fs::status(path, status);
  // Links in a circle, for one.
  if (error && error != std::errc::no_such_file_or_directory)
    return llvm::errorCodeToError(error);
  if (error) {
    StringRef folder = llvm::sys::path::parent_path(path);
    error = llvm::sys::fs::real_path(folder.empty() ? "." : folder, target);
    if (error)
      return llvm::errorCodeToError(error);
    llvm::sys::path::append(target, llvm::sys::path::filename(path));
    return target.str().str();
  }
  if (status.type() == llvm::sys::fs::file_type::directory_file)
    return llvm::errorCodeToError(
        std::make_error_code(std::errc::is_a_directory));
  if (status.type() != llvm::sys::fs::file_type::regular_file)
    return std::nullopt;
  error = llvm::sys::fs::real_path(path, target);
  if (error)
    return llvm::errorCodeToError(error);
  return target.str().str();
}

static llvm::Expected<TempFile> writeBeside(StringRef target,
                                            const OutputFile &output) {
  unsigned mode = llvm::sys::fs::all_read | llvm::sys::fs::all_write;
  if (output.isExecutable)
    mode |= llvm::sys::fs::all_exe;
  if (output.isPrivate)
    mode &= llvm::sys::fs::owner_all;
  auto file = TempFile::create(target + ".tmp%%%%%%", mode);
  if (!file)
    return file.takeError();
  llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  if (std::error_code error = writeTo(os, output.contents)) {
    llvm::consumeError(file->discard());
    return llvm::errorCodeToError(error);
  }
  return file;
}

static llvm::Error writeThrough(const OutputFile &output) {
  if (output.path == "-")
    return llvm::errorCodeToError(writeTo(llvm::outs(), output.contents));
  std::error_code error;
  llvm::raw_fd_ostream os(output.path, error);
  if (!error)
    error = writeTo(os, output.contents);
  return llvm::errorCodeToError(error);
}

/// Writes what can be replaced beside it, and then the rest.
static llvm::Error
writeReplacements(ArrayRef<OutputFile> outputs,
                  SmallVectorImpl<Replacement> &replacements) {
  SmallVector<const OutputFile *> others;
  for (const OutputFile &output : outputs) {
    auto target = getTarget(output.path);
    if (!target)
      return nameFile(output.path, target.takeError());
    if (!*target) {
      others.push_back(&output);
      continue;
    }
    for (const Replacement &other : replacements)
      if (other.target == **target)
        return nameFile(output.path,
                        llvm::createStringError("expected another file than '" +
                                                other.path + "'"));
    auto file = writeBeside(**target, output);
    if (!file)
      return nameFile(output.path, file.takeError());
    replacements.push_back({output.path, **target, std::move(*file), ""});
  }
  for (const OutputFile *output : others)
    if (llvm::Error error = writeThrough(*output))
      return nameFile(output->path, std::move(error));
  return llvm::Error::success();
}

static std::error_code keepPrevious(Replacement &replacement) {
  if (!llvm::sys::fs::exists(replacement.target))
    return {};
  SmallString<256> name;
  llvm::sys::fs::createUniquePath(replacement.target + ".old%%%%%%", name,
                                  /*MakeAbsolute=*/false);
  // Not every file system has links.
  if (llvm::sys::fs::create_hard_link(replacement.target, name))
    if (auto error = llvm::sys::fs::copy_file(replacement.target, name))
      return error;
  replacement.previous = name.str();
  return {};
}

static void restorePrevious(const Replacement &replacement) {
  if (replacement.previous.empty())
    llvm::sys::fs::remove(replacement.target);
  else
    llvm::sys::fs::rename(replacement.previous, replacement.target);
}

/// Puts every file in its place, or none.
static llvm::Error replaceAll(MutableArrayRef<Replacement> replacements) {
  for (auto [index, replacement] : llvm::enumerate(replacements)) {
    llvm::Error error = llvm::Error::success();
    // Nothing follows the last one that could fail.
    if (index + 1 < replacements.size())
      error = llvm::errorCodeToError(keepPrevious(replacement));
    if (!error)
      error = replacement.file.keep(replacement.target);
    if (error) {
      llvm::for_each(replacements.take_front(index), restorePrevious);
      return nameFile(replacement.path, std::move(error));
    }
  }
  return llvm::Error::success();
}

llvm::Error fp8::writeOutputFiles(ArrayRef<OutputFile> files) {
  SmallVector<Replacement> replacements;
  llvm::Error error = writeReplacements(files, replacements);
  if (!error)
    error = replaceAll(replacements);
  for (Replacement &replacement : replacements) {
    // Those that are in their places are left alone.
    llvm::consumeError(replacement.file.discard());
    if (!replacement.previous.empty())
      llvm::sys::fs::remove(replacement.previous);
  }
  return error;
}

llvm::Error fp8::writeOutputFile(StringRef path, StringRef contents) {
  return writeOutputFiles({{path, contents}});
}
