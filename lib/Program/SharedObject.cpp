//===- SharedObject.cpp - Programs as shared objects ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A linker is called by itself, not through a C compiler: the object needs none
// of its start files, and the libraries to link to are those of this process.
//
//===----------------------------------------------------------------------===//

#include "fp8/Program/SharedObject.h"

#include "fp8/Runtime/Status.h"
#include "fp8/Support/OutputFile.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstdlib>
#include <dlfcn.h>

using namespace mlir;
using namespace mlir::fp8;

/// The file that holds `address` in this process.
static std::string getLibrary(const void *address) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname)
    return "";
  SmallString<256> path;
  if (llvm::sys::fs::real_path(info.dli_fname, path))
    return "";
  return path.str().str();
}

static llvm::Expected<std::string> findRuntime() {
  std::string path =
      getLibrary(reinterpret_cast<const void *>(&fp8rt_get_version));
  if (llvm::sys::path::filename(path).starts_with("libfp8rt.so"))
    return path;
  // Part of the tool: the library is in the installation beside it.
  SmallString<256> beside(llvm::sys::path::parent_path(path));
  llvm::sys::path::append(beside, "..", "lib", "libfp8rt.so");
  llvm::sys::path::remove_dots(beside, /*remove_dot_dot=*/true);
  if (llvm::sys::fs::exists(beside))
    return beside.str().str();
  return llvm::createStringError("expected libfp8rt.so at " + beside +
                                 ", but there is none");
}

static llvm::Expected<std::string> findLinker(const LinkOptions &options) {
  if (!options.linker.empty()) {
    // A path is found whether it exists or not.
    llvm::ErrorOr<std::string> found =
        llvm::sys::findProgramByName(options.linker);
    if (found && llvm::sys::fs::can_execute(*found))
      return *found;
    return llvm::createStringError(
        "expected a linker that can be run, but got '" + options.linker + "'");
  }
  for (StringRef name : {"ld.lld", "ld.lld-22", "ld"})
    if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName(name))
      return *found;
  return llvm::createStringError(
      "expected a linker (ld.lld or ld) in PATH, but got none; install lld or "
      "binutils, or name one with --linker=FILE");
}

/// What the linker said, in one line and without what it calls itself, so that
/// tools print one error.
static std::string readMessage(StringRef path) {
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text)
    return "";
  StringRef line = (*text)->getBuffer().trim().split('\n').first;
  auto [name, message] = line.split(": ");
  if (message.consume_front("error: ") || message.consume_front("fatal: "))
    return message.str();
  return line.str();
}

namespace {
/// A temporary file that is removed whatever happens.
struct TemporaryFile {
  explicit TemporaryFile(StringRef suffix)
      : error(llvm::sys::fs::createTemporaryFile("fp8", suffix, path)),
        remover(path) {}

  llvm::Error check() const {
    return error ? llvm::createStringError("cannot create a temporary file: " +
                                           error.message())
                 : llvm::Error::success();
  }

  SmallString<128> path;
  std::error_code error;
  llvm::FileRemover remover;
};
} // namespace

/// Writes objects to files of their own.
static llvm::Error
writeInputs(ArrayRef<std::string> objects,
            SmallVectorImpl<std::unique_ptr<TemporaryFile>> &inputs) {
  for (const std::string &object : objects) {
    inputs.push_back(std::make_unique<TemporaryFile>("o"));
    if (llvm::Error error = inputs.back()->check())
      return error;
    if (llvm::Error error = writeOutputFile(inputs.back()->path, object))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::string> fp8::linkSharedObject(ArrayRef<std::string> objects,
                                                  StringRef soname,
                                                  const LinkOptions &options) {
  auto linker = findLinker(options);
  if (!linker)
    return linker.takeError();
  auto runtime = findRuntime();
  if (!runtime)
    return runtime.takeError();
  TemporaryFile output("so"), log("log");
  for (const TemporaryFile *file : {&output, &log})
    if (llvm::Error error = file->check())
      return error;
  SmallVector<std::unique_ptr<TemporaryFile>> inputs;
  if (llvm::Error error = writeInputs(objects, inputs))
    return error;

  std::string runtimeDirectory = llvm::sys::path::parent_path(*runtime).str();
  SmallVector<std::string> rpaths{"$ORIGIN", runtimeDirectory};
  llvm::append_range(rpaths, options.rpaths);
  // libm and libc, so that their symbols get versions.
  std::string libm = getLibrary(
      reinterpret_cast<const void *>(static_cast<float (*)(float)>(&::expf)));
  std::string libc = getLibrary(reinterpret_cast<const void *>(&::malloc));
  SmallVector<StringRef> arguments{*linker, "-shared", "--build-id", "-soname",
                                   soname,  "-o",      output.path};
  for (const std::unique_ptr<TemporaryFile> &input : inputs)
    arguments.push_back(input->path);
  arguments.push_back(*runtime);
  for (StringRef library : {StringRef(libm), StringRef(libc)})
    if (library.contains(".so"))
      arguments.push_back(library);
  for (StringRef rpath : rpaths) {
    arguments.push_back("-rpath");
    arguments.push_back(rpath);
  }
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log.path),
                                          StringRef(log.path)};
  std::string message;
  int code = llvm::sys::ExecuteAndWait(*linker, arguments, std::nullopt,
                                       redirects, 0, 0, &message);
  if (code != 0)
    return llvm::createStringError(
        "the linker " + *linker +
        " failed: " + (message.empty() ? readMessage(log.path) : message));
  auto linked = llvm::MemoryBuffer::getFile(output.path);
  if (!linked)
    return llvm::createStringError(
        "expected the linker " + *linker +
        " to write a file: " + linked.getError().message());
  if (llvm::identify_magic((*linked)->getBuffer()) !=
      llvm::file_magic::elf_shared_object)
    return llvm::createStringError(
        "expected the linker " + *linker +
        " to write a shared object, but got " +
        ((*linked)->getBufferSize() == 0 ? "an empty file" : "another file"));
  return (*linked)->getBuffer().str();
}
