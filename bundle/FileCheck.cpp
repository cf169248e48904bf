//===- FileCheck.cpp - LLVM's FileCheck, for tests that travel ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's library does the work; of the program's options there are those that
// the tests for GPUs use.
//
//===----------------------------------------------------------------------===//

#include "llvm/FileCheck/FileCheck.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

/// Adds a file to `sources`; null, with a message, if it cannot be read.
static const MemoryBuffer *addFile(StringRef path, FileCheck &check,
                                   SourceMgr &sources) {
  auto file = MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (!file) {
    errs() << "error: '" << path << "': " << file.getError().message() << '\n';
    return nullptr;
  }
  SmallString<4096> canonical;
  StringRef text = check.CanonicalizeFile(**file, canonical);
  unsigned id = sources.AddNewSourceBuffer(
      MemoryBuffer::getMemBufferCopy(text, path), SMLoc());
  return sources.getMemoryBuffer(id);
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::opt<std::string> checkFile(cl::Positional, cl::Required);
  cl::opt<std::string> inputFile("input-file", cl::init("-"));
  cl::list<std::string> prefixes("check-prefix", cl::CommaSeparated);
  cl::alias manyPrefixes("check-prefixes", cl::aliasopt(prefixes));
  cl::ParseCommandLineOptions(argc, argv);

  FileCheckRequest request;
  request.CheckPrefixes.assign(prefixes.begin(), prefixes.end());
  FileCheck check(request);
  if (!check.ValidateCheckPrefixes())
    return 2;
  SourceMgr sources;
  const MemoryBuffer *expected = addFile(checkFile, check, sources);
  if (!expected || check.readCheckFile(sources, expected->getBuffer()))
    return 2;
  const MemoryBuffer *input = addFile(inputFile, check, sources);
  if (!input)
    return 2;
  if (input->getBufferSize() == 0) {
    errs() << "error: '" << inputFile << "' is empty\n";
    return 2;
  }
  return check.checkInput(sources, input->getBuffer()) ? 0 : 1;
}
