//===- OutputFileTest.cpp - Files that are written together ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/OutputFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include "gtest/gtest.h"

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace mlir::fp8;
using namespace llvm::sys;

namespace {
class OutputFileTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(fs::createUniqueDirectory("fp8-output", folder));
  }
  void TearDown() override { fs::remove_directories(folder); }

  std::string getPath(const std::string &name) const {
    return (folder + "/" + name).str();
  }
  void write(const std::string &name, const std::string &contents) const {
    std::ofstream(getPath(name)) << contents;
  }
  std::string read(const std::string &name) const {
    auto buffer = llvm::MemoryBuffer::getFile(getPath(name));
    return buffer ? (*buffer)->getBuffer().str() : "nothing";
  }
  std::set<std::string> list() const {
    std::set<std::string> names;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; it != end && !error;
         it.increment(error))
      names.insert(path::filename(it->path()).str());
    return names;
  }

  llvm::SmallString<128> folder;
};
} // namespace

TEST_F(OutputFileTest, ReplacesAll) {
  write("a", "old");
  std::string a = getPath("a"), b = getPath("b");
  llvm::Error error = writeOutputFiles({{a, "new"}, {b, "newer", true}});
  EXPECT_FALSE(static_cast<bool>(error));
  EXPECT_EQ(read("a"), "new");
  EXPECT_EQ(read("b"), "newer");
  EXPECT_FALSE(fs::can_execute(a));
  EXPECT_TRUE(fs::can_execute(b));
  EXPECT_EQ(list(), (std::set<std::string>{"a", "b"}));
}

TEST_F(OutputFileTest, ReplacesNothingWhenOneCannotBeWritten) {
  write("a", "old");
  std::string a = getPath("a"), b = getPath("nowhere/b");
  EXPECT_EQ(
      llvm::toString(writeOutputFiles({{a, "new"}, {b, "new"}, {"-", "x"}})),
      "'" + b + "': No such file or directory");
  EXPECT_EQ(read("a"), "old");
  EXPECT_EQ(list(), std::set<std::string>{"a"});
}

TEST_F(OutputFileTest, ReplacesNothingWhenTwoAreOne) {
  std::string a = getPath("a"), same = getPath("./a");
  EXPECT_EQ(llvm::toString(writeOutputFiles({{a, "new"}, {same, "newer"}})),
            "'" + same + "': expected another file than '" + a + "'");
  EXPECT_EQ(list(), std::set<std::string>{});
  write("a", "old");
  EXPECT_EQ(llvm::toString(writeOutputFiles({{a, "new"}, {same, "newer"}})),
            "'" + same + "': expected another file than '" + a + "'");
  EXPECT_EQ(read("a"), "old");
  EXPECT_EQ(list(), std::set<std::string>{"a"});
}

TEST_F(OutputFileTest, ReplacesNothingWhenADeviceIsFull) {
  write("a", "old");
  std::string a = getPath("a"), b = getPath("b");
  EXPECT_EQ(llvm::toString(writeOutputFiles(
                {{a, "new"}, {"/dev/full", "new"}, {b, "new"}})),
            "'/dev/full': No space left on device");
  EXPECT_EQ(read("a"), "old");
  EXPECT_EQ(list(), std::set<std::string>{"a"});
}

// A folder takes the place of the last file when all have been written and
// none has been put in its place: more than a pipe holds waits for its reader.
TEST_F(OutputFileTest, PutsBackWhatItHasReplaced) {
  write("a", "old");
  std::string a = getPath("a"), b = getPath("b"), c = getPath("c"),
              pipe = getPath("pipe"), text(1 << 20, 'x');
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread reader([&] {
    std::ifstream stream(pipe);
    fs::create_directory(c);
    std::string contents(std::istreambuf_iterator<char>(stream), {});
  });
  std::string message = llvm::toString(
      writeOutputFiles({{pipe, text}, {a, "new"}, {b, "new"}, {c, "new"}}));
  reader.join();
  EXPECT_EQ(unlink(pipe.c_str()), 0);
  EXPECT_EQ(message, "'" + c + "': Is a directory");
  EXPECT_EQ(read("a"), "old");
  EXPECT_EQ(list(), (std::set<std::string>{"a", "c"}));
}
