//===- Nesting.cpp - How deep a source is nested --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/Nesting.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <utility>

using namespace mlir;

/// Drops a comment, a string or an arrow, which are no brackets, from the front
/// of `rest`; false if there is none.
static bool consumeOther(StringRef &rest) {
  if (rest.starts_with("//")) {
    rest = rest.drop_front(std::min(rest.find('\n'), rest.size()));
    return true;
  }
  if (rest.consume_front("\"")) {
    while (!rest.empty() && rest.front() != '"' && rest.front() != '\n')
      rest = rest.drop_front(rest.front() == '\\' && rest.size() > 1 ? 2 : 1);
    rest.consume_front("\"");
    return true;
  }
  return rest.consume_front("->") || rest.consume_front(">=") ||
         rest.consume_front("<=");
}

llvm::Error fp8::checkNesting(StringRef source, StringRef name) {
  // MLIR's bytecode begins so.
  if (source.starts_with("ML\xefR"))
    return llvm::Error::success();
  // Apart, as `<` may be no bracket in the text of another dialect.
  unsigned depth = 0, angles = 0;
  for (StringRef rest = source; !rest.empty();) {
    if (consumeOther(rest))
      continue;
    char c = rest.front();
    unsigned &count = c == '<' || c == '>' ? angles : depth;
    if (StringRef("{[(<").contains(c))
      ++count;
    else if (StringRef("}])>").contains(c) && count > 0)
      --count;
    if (count > kMaxNested) {
      size_t at = source.size() - rest.size();
      return llvm::createStringError(
          name + ":" + Twine(source.take_front(at).count('\n') + 1) +
          ": expected up to " + Twine(kMaxNested) +
          " regions, lists and types in each other, but got more");
    }
    rest = rest.drop_front();
  }
  return llvm::Error::success();
}

llvm::Error fp8::checkNestingOfFiles(ArrayRef<const char *> arguments) {
  bool isWritten = false;
  for (StringRef argument : arguments) {
    // What an earlier run wrote is not read.
    bool isOutput = std::exchange(isWritten, argument == "-o");
    if (isOutput || argument.starts_with("-") ||
        !llvm::sys::fs::is_regular_file(argument))
      continue;
    auto file = llvm::MemoryBuffer::getFile(argument);
    if (file)
      if (llvm::Error error = checkNesting((*file)->getBuffer(), argument))
        return error;
  }
  return llvm::Error::success();
}
