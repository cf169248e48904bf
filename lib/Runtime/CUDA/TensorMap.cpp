//===- TensorMap.cpp - Descriptors of tensors for the TMA -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Maps are kept in sets of a few entries, by the hash of all they are made
// from. A new one takes the place of the one in its set that was not used for
// longest. So the memory is bounded, none is allocated, and threads meet at the
// lock of a set only.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/TensorMap.h"

#include "Context.h"
#include "StructSize.h"

#include "fp8/Runtime/LaunchRules.h"

#include <cstring>
#include <memory>

using namespace fp8rt;
using namespace fp8rt::cuda;

static_assert(sizeof(fp8rt_tensor_map) == sizeof(TensorMap) &&
                  alignof(fp8rt_tensor_map) == alignof(TensorMap),
              "the map we give out is the driver's");

//===----------------------------------------------------------------------===//
// Checks: the rules of cuTensorMapEncodeTiled, which tells nobody which of them
// was broken.
//===----------------------------------------------------------------------===//

static constexpr uint64_t kElementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
static constexpr int32_t kNumTypes = std::size(kElementBytes);

static fp8rt_status failField(const std::string &field,
                              const std::string &expected, uint64_t got) {
  return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                      "expected desc." + field + " to be " + expected +
                          ", but got " + std::to_string(got));
}

static fp8rt_status failField(const char *field, int index,
                              const std::string &expected, uint64_t got) {
  return failField(std::string(field) + "[" + std::to_string(index) + "]",
                   expected, got);
}

static fp8rt_status checkEnum(const char *field, int32_t value, int32_t count) {
  if (value >= 0 && value < count)
    return FP8RT_OK;
  return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                      "expected desc." + std::string(field) +
                          " to be from 0 to " + std::to_string(count - 1) +
                          ", but got " + std::to_string(value));
}

static std::string getMultiple() {
  return "a multiple of " + std::to_string(launch::kMapBytes);
}

static fp8rt_status checkDimension(const fp8rt_tensor_map_desc &desc, int i) {
  if (desc.sizes[i] == 0 || desc.sizes[i] > uint64_t{1} << 32)
    return failField("sizes", i, "from 1 to 2^32", desc.sizes[i]);
  if (desc.box[i] == 0 || desc.box[i] > launch::kMaxBox)
    return failField("box", i, "from 1 to " + std::to_string(launch::kMaxBox),
                     desc.box[i]);
  if (i == 0)
    return FP8RT_OK;
  if (desc.strides[i] % launch::kMapBytes != 0)
    return failField("strides", i, getMultiple() + " bytes", desc.strides[i]);
  if (desc.strides[i] >= uint64_t{1} << 40)
    return failField("strides", i, "less than 2^40 bytes", desc.strides[i]);
  return FP8RT_OK;
}

static fp8rt_status checkDesc(const fp8rt_tensor_map_desc &desc) {
  if (fp8rt_status status = checkEnum("type", desc.type, kNumTypes))
    return status;
  if (fp8rt_status status =
          checkEnum("swizzle", desc.swizzle, std::size(launch::kSwizzles)))
    return status;
  if (fp8rt_status status = checkEnum("l2_promotion", desc.l2_promotion,
                                      std::size(launch::kL2Sizes)))
    return status;
  if (desc.rank < 1 || desc.rank > launch::kMaxMapRank)
    return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                        "expected desc.rank to be from 1 to " +
                            std::to_string(launch::kMaxMapRank) + ", but got " +
                            std::to_string(desc.rank));
  if (!desc.address)
    return failNull("desc.address");
  if (asDevicePtr(desc.address) % launch::kMapBytes != 0)
    return failField("address", getMultiple(), asDevicePtr(desc.address));
  for (int i = 0; i < desc.rank; ++i)
    if (fp8rt_status status = checkDimension(desc, i))
      return status;
  uint64_t rowBytes = desc.box[0] * kElementBytes[desc.type];
  if (rowBytes % launch::kMapBytes != 0)
    return failField("box", 0, getMultiple() + " bytes", rowBytes);
  int64_t swizzleBytes = launch::kSwizzles[desc.swizzle];
  if (swizzleBytes != 0 && rowBytes > static_cast<uint64_t>(swizzleBytes))
    return failField("box", 0,
                     "at most the " + std::to_string(swizzleBytes) +
                         " bytes of the swizzle",
                     rowBytes);
  return FP8RT_OK;
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

namespace {
/// What a map is made from: words without padding, 0 where there is no
/// dimension.
struct Key {
  explicit Key(const fp8rt_tensor_map_desc &desc);
  Key() = default;

  uint64_t words[15] = {};
};
} // namespace

Key::Key(const fp8rt_tensor_map_desc &desc) {
  words[0] = asDevicePtr(desc.address);
  words[1] = static_cast<uint64_t>(desc.rank) << 24 |
             static_cast<uint64_t>(desc.type) << 16 |
             static_cast<uint64_t>(desc.swizzle) << 8 |
             static_cast<uint64_t>(desc.l2_promotion);
  for (int i = 0; i < desc.rank; ++i) {
    words[2 + i] = desc.sizes[i];
    words[7 + i] = i == 0 ? 0 : desc.strides[i];
    words[12 + i / 2] |= static_cast<uint64_t>(desc.box[i]) << 32 * (i % 2);
  }
}

static uint64_t hash(const Key &key) {
  // Multiplying carries upwards only: the shift brings the high bits back.
  uint64_t sum = 0;
  for (uint64_t word : key.words) {
    sum = (sum ^ word) * 0x9e3779b97f4a7c15;
    sum ^= sum >> 32;
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

namespace {
struct Entry {
  Key key; /* no map's key is all zeros */
  uint64_t lastUse = 0;
  TensorMap map;
};

struct Set {
  std::mutex mutex;
  uint64_t clock = 0;
  Entry entries[8];
};
} // namespace

static constexpr size_t kNumSets = 128;

static Set &getSet(const Key &key) {
  // Never destroyed: threads may outlive main.
  static Set *sets = new Set[kNumSets];
  return sets[hash(key) % kNumSets];
}

static bool find(Set &set, const Key &key, fp8rt_tensor_map &map) {
  std::lock_guard<std::mutex> lock(set.mutex);
  for (Entry &entry : set.entries) {
    if (std::memcmp(&entry.key, &key, sizeof(key)) != 0)
      continue;
    entry.lastUse = ++set.clock;
    std::memcpy(&map, &entry.map, sizeof(map));
    return true;
  }
  return false;
}

/// Two threads that missed the same map may both put it in; the second copy is
/// never found and ages away.
static void insert(Set &set, const Key &key, const TensorMap &map) {
  std::lock_guard<std::mutex> lock(set.mutex);
  Entry *oldest = set.entries;
  for (Entry &entry : set.entries)
    if (entry.lastUse < oldest->lastUse)
      oldest = &entry;
  oldest->key = key;
  oldest->map = map;
  oldest->lastUse = ++set.clock;
}

static fp8rt_status encode(const Driver &driver, int32_t device,
                           const fp8rt_tensor_map_desc &desc, TensorMap &map) {
  const fp8rt_device_info *info;
  if (fp8rt_status status = getDeviceInfo(device, info))
    return status;
  if (info->compute_capability_major < 9)
    return detail::fail(FP8RT_ERROR_UNSUPPORTED_ARCH,
                        "expected a device with TMA, sm_90 or later, but got " +
                            describeDevice(device));
  const uint32_t elementStrides[5] = {1, 1, 1, 1, 1};
  // The driver's strides begin with that of dimension 1.
  Result result = driver.cuTensorMapEncodeTiled(
      &map, desc.type, static_cast<uint32_t>(desc.rank),
      const_cast<void *>(desc.address), desc.sizes, desc.strides + 1, desc.box,
      elementStrides, /*interleave=*/0, desc.swizzle, desc.l2_promotion,
      /*oobFill=*/0);
  return check(result, [&] {
    return "make a tensor map of rank " + std::to_string(desc.rank);
  });
}

fp8rt_status fp8rt_tensor_map_get(int32_t device,
                                  const fp8rt_tensor_map_desc *given,
                                  fp8rt_tensor_map *map) {
  if (fp8rt_status status = detail::checkStruct("desc", given))
    return status;
  if (!map)
    return failNull("map");
  fp8rt_tensor_map_desc storage;
  const fp8rt_tensor_map_desc &desc = detail::takeStruct(given, storage);
  return detail::guard([&]() -> fp8rt_status {
    DeviceState *state;
    if (fp8rt_status status = getDeviceState(device, state))
      return status;
    if (fp8rt_status status = checkDesc(desc))
      return status;
    Key key(desc);
    Set &set = getSet(key);
    if (find(set, key, *map))
      return FP8RT_OK;
    return inContext(device, [&](const Driver &driver) -> fp8rt_status {
      TensorMap made;
      if (fp8rt_status status = encode(driver, device, desc, made))
        return status;
      insert(set, key, made);
      std::memcpy(map, &made, sizeof(made));
      return FP8RT_OK;
    });
  });
}
