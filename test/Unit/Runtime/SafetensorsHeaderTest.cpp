//===- SafetensorsHeaderTest.cpp - What a file may say --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SafetensorsBytes.h"

#include "fp8/Runtime/Safetensors.h"

#include "gtest/gtest.h"

using namespace fp8rt;

static bool parse(const std::string &bytes, SafetensorsHeader &header,
                  std::string &error) {
  return parseSafetensorsHeader(reinterpret_cast<const uint8_t *>(bytes.data()),
                                bytes.size(), bytes.size(), "f", header, error);
}

TEST(SafetensorsHeader, ReadsTensorsInDataOrder) {
  SafetensorsHeader header;
  std::string error;
  ASSERT_TRUE(parse(
      makeFile(
          R"({"__metadata__":{"format":"pt"},)"
          R"("late":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[24,27]},)"
          R"("early":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
          R"("none":{"dtype":"BF16","shape":[0,7],"data_offsets":[24,24]},)"
          R"("scalar":{"dtype":"BOOL","shape":[],"data_offsets":[27,28]}}  )",
          28),
      header, error))
      << error;
  ASSERT_EQ(header.tensors.size(), 4u);
  EXPECT_EQ(header.tensors[0].name, "early");
  EXPECT_EQ(header.tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header.tensors[1].name, "none");
  EXPECT_EQ(header.tensors[2].dtype, DType::F8_E4M3);
  EXPECT_EQ(header.tensors[3].getByteSize(), 1u);
  EXPECT_EQ(header.metadata, (Metadata{{"format", "pt"}}));
  EXPECT_EQ(header.lookup("late"), &header.tensors[2]);
  EXPECT_EQ(header.lookup("later"), nullptr);
}

TEST(SafetensorsHeader, NamesWhatIsWrongOnOneLine) {
  SafetensorsHeader header;
  std::string error;
  for (const char *text :
       {R"({"x":{"a\nb":[7]}})", R"({"a\nb":7})",
        R"({"__metadata__":{"a\nb":7}})", R"({"a\nb":1,"a\nb":2})"}) {
    EXPECT_FALSE(parse(makeFile(text, 0), header, error));
    EXPECT_NE(error.find(R"('a\nb')"), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(SafetensorsHeader, AcceptsAFileWithoutTensors) {
  SafetensorsHeader header;
  std::string error;
  EXPECT_TRUE(parse(makeFile("{}", 0), header, error)) << error;
  EXPECT_EQ(header.dataOffset, 10u);
}

TEST(SafetensorsHeader, SpellsEveryDType) {
  for (int i = 0; i <= static_cast<int>(DType::BOOL); ++i) {
    DType dtype = static_cast<DType>(i);
    EXPECT_EQ(symbolizeDType(stringifyDType(dtype)), dtype);
    EXPECT_GE(getByteWidth(dtype), 1u);
  }
  EXPECT_EQ(symbolizeDType("f32"), std::nullopt);
}

TEST(SafetensorsHeader, CountsBytesOfTwoCodes) {
  SafetensorsHeader header;
  std::string error;
  ASSERT_TRUE(parse(makeFile(R"({"x":{"dtype":"F4","shape":[2,6],)"
                             R"("data_offsets":[0,6]}})",
                             6),
                    header, error))
      << error;
  EXPECT_EQ(header.tensors[0].dtype, DType::F4x2);
  EXPECT_EQ(header.tensors[0].shape, (std::vector<int64_t>{2, 3}));
}

namespace {
struct BadFile {
  const char *name;
  std::string bytes;
  /// The whole message, after the file's name.
  std::string error;
};
} // namespace

static BadFile tensor(const char *name, const std::string &entry,
                      size_t dataSize, const std::string &error) {
  return {name, makeFile("{\"x\":" + entry + "}", dataSize),
          "tensor 'x': " + error};
}

static BadFile header(const char *name, const std::string &header,
                      size_t dataSize, const std::string &error) {
  return {name, makeFile(header, dataSize), error};
}

static const std::string kByte =
    R"({"dtype":"U8","shape":[1],"data_offsets":[)";

static const BadFile kBadFiles[] = {
    // Length field.
    {"Empty", "",
     "expected a header length of 8 bytes, but the file has 0 bytes"},
    {"SevenBytes", std::string(7, '\0'),
     "expected a header length of 8 bytes, but the file has 7 bytes"},
    {"TruncatedHeader", makeFile(100, "{}"),
     "expected a header of 100 bytes, but the file has 2 bytes after the "
     "length field"},
    {"HugeLength", makeFile(uint64_t(1) << 63, "{}"),
     "expected a header of at most 100000000 bytes, but its length field says "
     "9223372036854775808"},
    {"LengthOverCap", makeFile(100'000'001, "{}"),
     "expected a header of at most 100000000 bytes, but its length field says "
     "100000001"},
    {"NoHeader", makeFile(0, ""), "expected the header to begin with '{'"},
    // JSON.
    header("Array", "[]", 0, "expected the header to begin with '{'"),
    header("LeadingSpace", " {}", 0, "expected the header to begin with '{'"),
    header("NotJSON", "{x}", 0,
           "expected the header to be JSON in UTF-8, but it is malformed at "
           "byte 9"),
    header("TrailingGarbage", "{}x", 0,
           "expected the header to be JSON in UTF-8, but it is malformed at "
           "byte 10"),
    header("InvalidUTF8", "{\"\xff\":{}}", 0,
           "expected the header to be JSON in UTF-8, but it is malformed at "
           "byte 10"),
    header("HugeNumber", "{\"x\":1e999}", 0,
           "expected the header to be JSON in UTF-8, but got "
           "[json.exception.out_of_range.406] number overflow parsing '1e999'"),
    header("DuplicateTensor",
           "{\"x\":" + kByte + "0,1]},\"x\":" + kByte + "0,1]}}", 1,
           "expected keys to be unique, but got 'x' twice"),
    header("DuplicateField",
           R"({"x":{"dtype":"U8","dtype":"I8","shape":[1],)"
           R"("data_offsets":[0,1]}})",
           1, "expected keys to be unique, but got 'dtype' twice"),
    // Metadata.
    header(
        "MetadataArray", R"({"__metadata__":["a"]})", 0,
        R"(expected __metadata__ to be an object of strings, but got ["a"])"),
    header("MetadataNumber", R"({"__metadata__":{"step":3}})", 0,
           "expected __metadata__ 'step' to be a string, but got 3"),
    // Fields.
    tensor("NotAnObject", "3", 0,
           "expected an object with dtype, shape and data_offsets, but got 3"),
    tensor("MissingDType", R"({"shape":[1],"data_offsets":[0,1]})", 1,
           "expected the key 'dtype', but it is missing"),
    tensor("MissingShape", R"({"dtype":"U8","data_offsets":[0,1]})", 1,
           "expected the key 'shape', but it is missing"),
    tensor("MissingOffsets", R"({"dtype":"U8","shape":[1]})", 1,
           "expected the key 'data_offsets', but it is missing"),
    tensor("UnknownKey",
           R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"scale":2})", 1,
           "expected the keys dtype, shape and data_offsets, but got 'scale'"),
    tensor("UnknownDType", R"({"dtype":"F3","shape":[1],"data_offsets":[0,1]})",
           1,
           "expected dtype to be one of F64, F32, F16, BF16, F8_E4M3, F8_E5M2, "
           "F8_E8M0, F4, I64, I32, I16, I8, U8, BOOL, but got \"F3\""),
    tensor("DTypeNumber", R"({"dtype":8,"shape":[1],"data_offsets":[0,1]})", 1,
           "expected dtype to be one of F64, F32, F16, BF16, F8_E4M3, F8_E5M2, "
           "F8_E8M0, F4, I64, I32, I16, I8, U8, BOOL, but got 8"),
    tensor("PairsOfCodes",
           R"({"dtype":"F4x2","shape":[1],"data_offsets":[0,1]})", 1,
           "expected dtype to be one of F64, F32, F16, BF16, F8_E4M3, F8_E5M2, "
           "F8_E8M0, F4, I64, I32, I16, I8, U8, BOOL, but got \"F4x2\""),
    tensor("OddCodes", R"({"dtype":"F4","shape":[2,3],"data_offsets":[0,3]})",
           3,
           "expected a last dimension that is a multiple of 2, as elements "
           "share bytes, but got [2, 3] of F4"),
    tensor("CodeWithoutRow",
           R"({"dtype":"F4","shape":[],"data_offsets":[0,1]})", 1,
           "expected a last dimension that is a multiple of 2, as elements "
           "share bytes, but got [] of F4"),
    tensor("CodesInBytes",
           R"({"dtype":"F4","shape":[2,4],"data_offsets":[0,8]})", 8,
           "expected data_offsets to span 4 bytes ([2, 4] of F4), but got 8"),
    // Shape.
    tensor("ShapeNumber", R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})", 1,
           "expected shape to be an array, but got 1"),
    tensor("NegativeDim", R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})",
           1,
           "expected dimensions to be non-negative 64-bit integers, but got "
           "-1"),
    tensor("FractionalDim",
           R"({"dtype":"U8","shape":[1.5],"data_offsets":[0,1]})", 1,
           "expected dimensions to be non-negative 64-bit integers, but got "
           "1.5"),
    tensor("DimOver63Bits",
           R"({"dtype":"U8","shape":[9223372036854775808],)"
           R"("data_offsets":[0,1]})",
           1,
           "expected dimensions to be non-negative 64-bit integers, but got "
           "9223372036854775808"),
    // 2^32 * 2^32 wraps to 0 and 2^31 * 2^31 * 4 to 2^64.
    tensor("ProductWraps",
           R"({"dtype":"U8","shape":[4294967296,4294967296],)"
           R"("data_offsets":[0,0]})",
           0,
           "expected a size that fits in 63 bits, but got [4294967296, "
           "4294967296] of U8"),
    tensor("BytesWrap",
           R"({"dtype":"F32","shape":[2147483648,2147483648],)"
           R"("data_offsets":[0,0]})",
           0,
           "expected a size that fits in 63 bits, but got [2147483648, "
           "2147483648] of F32"),
    tensor("StrideWraps",
           R"({"dtype":"U8","shape":[0,4294967296,4294967296],)"
           R"("data_offsets":[0,0]})",
           0,
           "expected a size that fits in 63 bits, but got [0, 4294967296, "
           "4294967296] of U8"),
    // Offsets.
    tensor("OneOffset", R"({"dtype":"U8","shape":[1],"data_offsets":[0]})", 1,
           "expected data_offsets to be two non-negative integers, but got "
           "[0]"),
    tensor("NegativeOffset", kByte + "-1,0]}", 1,
           "expected data_offsets to be two non-negative integers, but got "
           "[-1,0]"),
    tensor("FallingOffsets", kByte + "1,0]}", 1,
           "expected data_offsets in rising order, but got [1,0]"),
    tensor("TooFewBytes",
           R"({"dtype":"F32","shape":[2,4],"data_offsets":[0,30]})", 30,
           "expected data_offsets to span 32 bytes ([2, 4] of F32), but got "
           "30"),
    tensor("BeyondTheFile", kByte + "5,6]}", 1,
           "expected data_offsets within the file's 1 bytes of data, but got "
           "[5, 6]"),
    tensor("EndWraps", kByte + "18446744073709551614,18446744073709551615]}", 1,
           "expected data_offsets within the file's 1 bytes of data, but got "
           "[18446744073709551614, 18446744073709551615]"),
    tensor("TruncatedData", kByte + "0,1]}", 0,
           "expected data_offsets within the file's 0 bytes of data, but got "
           "[0, 1]"),
    tensor("HoleAtTheStart", kByte + "1,2]}", 2,
           "expected data to begin at byte 0, where the previous tensor ends, "
           "but got 1"),
    header("HoleBetween", "{\"x\":" + kByte + "0,1]},\"y\":" + kByte + "2,3]}}",
           3,
           "tensor 'y': expected data to begin at byte 1, where the previous "
           "tensor ends, but got 2"),
    header("Overlap", "{\"x\":" + kByte + "0,1]},\"y\":" + kByte + "0,1]}}", 1,
           "tensor 'y': expected data of its own from byte 0, but it overlaps "
           "tensor 'x', which ends at 1"),
    header("TrailingData", "{\"x\":" + kByte + "0,1]}}", 3,
           "expected the tensors to cover all 3 bytes of data, but they end at "
           "1"),
    header("LongValueIsCut", "{\"x\":\"" + std::string(100, 'a') + "\"}", 0,
           "tensor 'x': expected an object with dtype, shape and data_offsets, "
           "but got \"" +
               std::string(59, 'a') + "..."),
};

class SafetensorsBadFile : public testing::TestWithParam<BadFile> {};

TEST_P(SafetensorsBadFile, IsRefused) {
  SafetensorsHeader header;
  std::string error;
  EXPECT_FALSE(parse(GetParam().bytes, header, error));
  EXPECT_EQ(error, "f: " + GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(All, SafetensorsBadFile, testing::ValuesIn(kBadFiles),
                         [](const testing::TestParamInfo<BadFile> &info) {
                           return std::string(info.param.name);
                         });

TEST(SafetensorsHeader, RefusesEveryTruncation) {
  std::string whole =
      makeFile(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  SafetensorsHeader header;
  std::string error;
  ASSERT_TRUE(parse(whole, header, error)) << error;
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse(whole.substr(0, size), header, error)) << size;
}

TEST(SafetensorsHeader, RefusesDeepNesting) {
  SafetensorsHeader header;
  std::string error;
  std::string arrays = "{\"x\":" + std::string(1'000'000, '[') +
                       std::string(1'000'000, ']') + "}";
  EXPECT_FALSE(parse(makeFile(arrays, 0), header, error));
  EXPECT_EQ(error, "f: expected the header to nest at most 8 levels deep");
  std::string objects;
  for (int i = 0; i < 100'000; ++i)
    objects += "{\"x\":";
  objects += "1" + std::string(100'000, '}');
  EXPECT_FALSE(parse(makeFile(objects, 0), header, error));
  EXPECT_EQ(error, "f: expected the header to nest at most 8 levels deep");
}
