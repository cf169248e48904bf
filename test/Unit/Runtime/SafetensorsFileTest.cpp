//===- SafetensorsFileTest.cpp - Reading and writing files ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SafetensorsBytes.h"

#include "fp8/Runtime/Safetensors.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

using namespace fp8rt;

namespace {
class SafetensorsFile : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "fp8-safetensors-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory = pattern;
    path = directory + "/t.safetensors";
  }

  void TearDown() override {
    for (const std::string &name : list())
      if (::unlink((directory + "/" + name).c_str()) != 0)
        ::rmdir((directory + "/" + name).c_str());
    ::rmdir(directory.c_str());
  }

  std::vector<std::string> list() {
    std::vector<std::string> names;
    if (DIR *stream = ::opendir(directory.c_str())) {
      while (dirent *entry = ::readdir(stream))
        if (std::string(entry->d_name) != "." &&
            std::string(entry->d_name) != "..")
          names.push_back(entry->d_name);
      ::closedir(stream);
    }
    return names;
  }

  std::string readAll() {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  void writeAll(const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  std::string directory, path, error;
};
} // namespace

TEST_F(SafetensorsFile, RoundTrips) {
  const float weights[] = {1.5f, -2.0f, 0.25f, 1e30f, -0.0f, 3.0f};
  const uint8_t codes[] = {0x7e, 0xff, 0x00};
  ASSERT_TRUE(writeSafetensors(path,
                               {{"q", DType::F8_E4M3, {3}, codes},
                                {"w\"\n", DType::F32, {2, 3}, weights},
                                {"empty", DType::F32, {4, 0}, nullptr}},
                               {{"made", "here"}}, error))
      << error;
  std::optional<SafetensorsReader> reader =
      SafetensorsReader::open(path, error);
  ASSERT_TRUE(reader) << error;
  EXPECT_EQ(reader->getHeader().metadata, (Metadata{{"made", "here"}}));
  EXPECT_EQ(reader->getHeader().dataOffset % 8, 0u);

  const TensorInfo *w = reader->getHeader().lookup("w\"\n");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->shape, (std::vector<int64_t>{2, 3}));
  float weightsBack[6];
  ASSERT_TRUE(reader->read(*w, weightsBack, error)) << error;
  EXPECT_EQ(std::memcmp(weightsBack, weights, sizeof(weights)), 0);
  const TensorInfo *q = reader->getHeader().lookup("q");
  ASSERT_NE(q, nullptr);
  uint8_t codesBack[3];
  ASSERT_TRUE(reader->read(*q, codesBack, error)) << error;
  EXPECT_EQ(std::memcmp(codesBack, codes, sizeof(codes)), 0);
}

// A search for each of them, or a look at all after each, would take minutes.
TEST_F(SafetensorsFile, HasManyTensors) {
  constexpr size_t count = 100000;
  std::vector<TensorData> tensors;
  uint8_t value = 7;
  for (size_t i = 0; i < count; ++i)
    tensors.push_back({"t" + std::to_string(i), DType::U8, {1}, &value});
  ASSERT_TRUE(writeSafetensors(path, tensors, {}, error)) << error;
  std::optional<SafetensorsReader> reader =
      SafetensorsReader::open(path, error);
  ASSERT_TRUE(reader) << error;
  for (size_t i = 0; i < count; ++i) {
    const TensorInfo *info =
        reader->getHeader().lookup("t" + std::to_string(i));
    ASSERT_NE(info, nullptr);
    ASSERT_EQ(info->name, "t" + std::to_string(i));
  }
  EXPECT_EQ(reader->getHeader().lookup("t"), nullptr);
  EXPECT_EQ(reader->getHeader().lookup("u"), nullptr);
}

TEST_F(SafetensorsFile, DoesNotDependOnTheOrderOfTensors) {
  const double a = 1;
  const float b = 2, c = 3;
  TensorData first{"a", DType::F64, {}, &a}, second{"b", DType::F32, {}, &b},
      third{"c", DType::F32, {}, &c};
  ASSERT_TRUE(writeSafetensors(path, {first, second, third}, {}, error));
  std::string bytes = readAll();
  ASSERT_TRUE(writeSafetensors(path, {third, first, second}, {}, error));
  EXPECT_EQ(readAll(), bytes);
}

TEST_F(SafetensorsFile, ReplacesAFileAndLeavesNoOther) {
  writeAll("old");
  ASSERT_TRUE(writeSafetensors(path, {}, {}, error)) << error;
  EXPECT_EQ(readAll(), makeFile("{}      ", 0));
  EXPECT_EQ(list(), std::vector<std::string>{"t.safetensors"});
}

TEST_F(SafetensorsFile, FollowsALink) {
  writeAll("old");
  std::string link = directory + "/link";
  ASSERT_EQ(::symlink("t.safetensors", link.c_str()), 0);
  ASSERT_TRUE(writeSafetensors(link, {}, {}, error)) << error;
  EXPECT_EQ(readAll(), makeFile("{}      ", 0));
  struct stat status;
  ASSERT_EQ(::lstat(link.c_str(), &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
}

TEST_F(SafetensorsFile, KeepsTheOldFileWhenItCannotWrite) {
  writeAll("old");
  // Write protection does not stop root, but nothing reads an unmapped page:
  // the header is already in the temporary file when the data fails.
  const void *unmapped = reinterpret_cast<const void *>(4096);
  EXPECT_FALSE(
      writeSafetensors(path, {{"x", DType::U8, {8}, unmapped}}, {}, error));
  EXPECT_EQ(error, path + ": cannot write: Bad address");
  EXPECT_EQ(readAll(), "old");
  EXPECT_EQ(list(), std::vector<std::string>{"t.safetensors"});
}

TEST_F(SafetensorsFile, RefusesToReplaceADirectory) {
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  EXPECT_FALSE(writeSafetensors(path, {}, {}, error));
  EXPECT_EQ(error, path + ": expected a regular file");
  EXPECT_EQ(list(), std::vector<std::string>{"t.safetensors"});
}

TEST_F(SafetensorsFile, RefusesToReplaceADevice) {
  EXPECT_FALSE(writeSafetensors("/dev/null", {}, {}, error));
  EXPECT_EQ(error, "/dev/null: expected a regular file");
}

TEST_F(SafetensorsFile, RefusesAMissingDirectory) {
  std::string nowhere = directory + "/no/t.safetensors";
  EXPECT_FALSE(writeSafetensors(nowhere, {}, {}, error));
  EXPECT_EQ(error, nowhere + ": cannot open its directory: No such file or "
                             "directory");
}

TEST_F(SafetensorsFile, RefusesBadTensorsBeforeWriting) {
  const uint8_t byte = 0;
  auto expectError = [&](std::vector<TensorData> tensors, Metadata metadata,
                         const std::string &message) {
    EXPECT_FALSE(writeSafetensors(path, tensors, metadata, error));
    EXPECT_EQ(error, path + ": " + message);
    EXPECT_TRUE(list().empty());
  };
  expectError({{"x", DType::U8, {1}, &byte}, {"x", DType::U8, {1}, &byte}}, {},
              "expected unique names, but got 'x' twice");
  expectError({{"__metadata__", DType::U8, {1}, &byte}}, {},
              "tensor '__metadata__': expected a name other than the format's "
              "own");
  expectError({{"x", DType::U8, {-1}, &byte}}, {},
              "tensor 'x': expected non-negative dimensions");
  expectError({{"x", DType::F64, {int64_t(1) << 61}, &byte}}, {},
              "tensor 'x': expected a size that fits in 63 bits");
  expectError({{"\xff", DType::U8, {1}, &byte}}, {},
              "expected names and metadata in UTF-8");
  expectError({}, {{"k", "\xff"}}, "expected names and metadata in UTF-8");
}

TEST_F(SafetensorsFile, RefusesWhatCannotBeRead) {
  EXPECT_FALSE(SafetensorsReader::open(path, error));
  EXPECT_EQ(error, path + ": cannot open: No such file or directory");
  EXPECT_FALSE(SafetensorsReader::open(directory, error));
  EXPECT_EQ(error, directory + ": expected a regular file");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(SafetensorsReader::open(path, error));
  EXPECT_EQ(error, path + ": expected a regular file");
}

TEST_F(SafetensorsFile, ReportsALyingFile) {
  writeAll(makeFile(1000, "{}"));
  EXPECT_FALSE(SafetensorsReader::open(path, error));
  EXPECT_EQ(error, path + ": expected a header of 1000 bytes, but the file has "
                          "2 bytes after the length field");
}

TEST_F(SafetensorsFile, ReportsAFileThatShrinks) {
  writeAll(
      makeFile(R"({"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 8));
  std::optional<SafetensorsReader> reader =
      SafetensorsReader::open(path, error);
  ASSERT_TRUE(reader) << error;
  const TensorInfo &x = reader->getHeader().tensors[0];
  ASSERT_EQ(::truncate(path.c_str(), reader->getHeader().dataOffset + 3), 0);
  uint8_t bytes[8];
  EXPECT_FALSE(reader->read(x, bytes, error));
  EXPECT_EQ(error, path + ": tensor 'x': expected 8 bytes, but the file ends "
                          "after 3");
}
