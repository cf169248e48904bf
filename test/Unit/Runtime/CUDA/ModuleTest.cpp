//===- ModuleTest.cpp - Loading and launching kernels ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedDriver.h"

#include "fp8/Runtime/Module.h"

#include <cstring>
#include <elf.h>
#include <thread>
#include <vector>

namespace {
class Module : public EmulatedDriver {
protected:
  static fp8rt_status load(const std::string &image, fp8rt_module *module,
                           int32_t device = 0) {
    return fp8rt_module_load(device, image.data(), image.size(), module);
  }

  static std::string getPTX(const std::string &target = "sm_90a",
                            const std::string &version = "8.0") {
    return "// Made by hand.\n.version " + version + "\n.target " + target +
           "\n.address_size 64\n.visible .entry kernel(\n.param .u64 x)\n"
           ".maxntid 512, 1, 1\n{ ret; }\n";
  }

  /// A cubin without contents, as CUDA 13 marks it or as those before did.
  static std::string getCubin(int arch, bool accelerated, bool moved = true) {
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_ABIVERSION] = moved ? 8 : 7;
    header.e_flags = moved ? arch << 8 | (accelerated ? 8 : 0)
                           : arch | (accelerated ? 0x800 : 0);
    header.e_shoff = sizeof(header);
    header.e_shnum = 1;
    header.e_shentsize = sizeof(Elf64_Shdr);
    Elf64_Shdr section = {};
    section.sh_type = SHT_PROGBITS;
    section.sh_offset = sizeof(header) + sizeof(section);
    section.sh_size = 16;
    std::string bytes(reinterpret_cast<char *>(&header), sizeof(header));
    bytes.append(reinterpret_cast<char *>(&section), sizeof(section));
    return bytes + std::string(16, '\0');
  }
};

/// A module with its kernel and a stream, on device 1.
class Launch : public Module {
protected:
  void SetUp() override {
    Module::SetUp();
    expectOk(load(getPTX(), &module, 1));
    expectOk(fp8rt_module_get_function(module, "kernel", &function));
    expectOk(fp8rt_stream_create(1, &stream));
  }
  void TearDown() override {
    Module::TearDown();
    expectOk(fp8rt_stream_destroy(1, stream));
    expectOk(fp8rt_module_unload(module));
  }

  fp8rt_status launch() {
    void *params[] = {&param};
    return fp8rt_launch(function, &config, params, stream);
  }

  fp8rt_module module = 0;
  fp8rt_function function = 0;
  fp8rt_stream stream = nullptr;
  void *param = this;
  fp8rt_launch_config config = {
      sizeof(fp8rt_launch_config), {4, 3, 2}, {128, 2, 1}, {0, 0, 0}, 0, 0};
};
} // namespace

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

TEST_F(Module, IsLoadedFromPTXThatDoesNotEndInZero) {
  fp8rt_module module = 0;
  std::string text = getPTX();
  // What follows the text is not read.
  std::string longer = text + "syntax error";
  expectOk(fp8rt_module_load(0, longer.data(), text.size(), &module));
  EXPECT_NE(module, 0u);
  expectOk(fp8rt_module_unload(module));
}

TEST_F(Module, IsLoadedFromPTXInAnyLayout) {
  fp8rt_module module;
  expectOk(load("  /* x */ .version\t8.0 .target\n\tsm_90a, debug\n"
                ".address_size 64\n",
                &module));
  expectOk(fp8rt_module_unload(module));
  expectError(load("\t.version 8.0\n\t.target sm_100a, debug\n", &module),
              FP8RT_ERROR_UNSUPPORTED_ARCH, "PTX 8.0 for sm_100a");
}

// The emulator runs PTX alone, but it is asked.
TEST_F(Module, GivesACubinToTheDriver) {
  fp8rt_module module;
  expectError(load(getCubin(90, true), &module), FP8RT_ERROR_UNSUPPORTED_ARCH,
              "but got a cubin for sm_90a");
  EXPECT_EQ(getCalls("cuModuleLoadDataEx"), 1);
}

TEST_F(Module, TellsWhatTheCompilerSaid) {
  fp8rt_module module = 7;
  expectError(
      load(getPTX() + "syntax error\n", &module), FP8RT_ERROR_INVALID_IMAGE,
      "cannot load PTX 8.0 for sm_90a on device 0 (Emulated H200, sm_90): "
      "CUDA_ERROR_INVALID_PTX, a PTX JIT compilation failed: line "
      "9: expected a directive of a module, but got 'syntax'");
  EXPECT_EQ(module, 7u);
}

TEST_F(Module, NamesBothArchitectures) {
  fp8rt_module module;
  const char *expected =
      "expected code for device 0 (Emulated H200, sm_90), but got ";
  expectError(load(getPTX("sm_100a"), &module), FP8RT_ERROR_UNSUPPORTED_ARCH,
              std::string(expected) + "PTX 8.0 for sm_100a");
  expectError(load(getCubin(100, true), &module), FP8RT_ERROR_UNSUPPORTED_ARCH,
              std::string(expected) + "a cubin for sm_100a");
  expectError(load(getCubin(80, false, /*moved=*/false), &module),
              FP8RT_ERROR_UNSUPPORTED_ARCH,
              std::string(expected) + "a cubin for sm_80");
  expectError(load(getCubin(89, true, /*moved=*/false), &module),
              FP8RT_ERROR_UNSUPPORTED_ARCH,
              std::string(expected) + "a cubin for sm_89a");
}

TEST_F(Module, NeedsADriverThatKnowsThePTX) {
  fp8rt_module module;
  expectError(load(getPTX("sm_90a", "99.0"), &module),
              FP8RT_ERROR_DRIVER_TOO_OLD,
              "expected PTX that a driver for CUDA 12.8 knows, but got PTX "
              "99.0 for sm_90a");
}

TEST_F(Module, RefusesWhatIsNoImage) {
  fp8rt_module module;
  expectError(load("", &module), FP8RT_ERROR_INVALID_IMAGE,
              "expected image to be a cubin, a fatbin or PTX, but got 0 bytes");
  expectError(load("no image", &module), FP8RT_ERROR_INVALID_IMAGE,
              "but got 8 bytes that are none of these");
  expectError(load("a.version 8.0", &module), FP8RT_ERROR_INVALID_IMAGE,
              "but got 13 bytes that are none of these");
  expectError(load(".version", &module), FP8RT_ERROR_INVALID_IMAGE,
              "but got 8 bytes that are none of these");
  EXPECT_EQ(getCalls("cuModuleLoadDataEx"), 0);
}

TEST_F(Module, RefusesImagesThatWereCutOff) {
  fp8rt_module module;
  std::string cubin = getCubin(90, true);
  for (size_t size = 4; size < cubin.size(); ++size)
    expectError(load(cubin.substr(0, size), &module), FP8RT_ERROR_INVALID_IMAGE,
                "of as many bytes as it says");
  std::string fatbin("\x50\xed\x55\xba\x01\x00\x10\x00\x08\0\0\0\0\0\0\0", 16);
  expectError(load(fatbin + "1234567", &module), FP8RT_ERROR_INVALID_IMAGE,
              "expected a fatbin of as many bytes as it says, 24, but got 23");
  EXPECT_EQ(getCalls("cuModuleLoadDataEx"), 0);
}

TEST_F(Module, IsLoadedDuringACapture) {
  fp8rt_stream stream;
  fp8rt_module module;
  expectOk(fp8rt_stream_create(0, &stream));
  capture(stream, true);
  expectOk(load(getPTX(), &module));
  capture(stream, false);
  expectOk(fp8rt_module_unload(module));
  expectOk(fp8rt_stream_destroy(0, stream));
}

//===----------------------------------------------------------------------===//
// Handles
//===----------------------------------------------------------------------===//

TEST_F(Module, IsKnownByItsHandle) {
  fp8rt_module module;
  expectError(fp8rt_module_unload(0), FP8RT_ERROR_INVALID_HANDLE,
              "expected a module, but got 0");
  expectOk(load(getPTX(), &module));
  expectOk(fp8rt_module_unload(module));
  expectError(fp8rt_module_unload(module), FP8RT_ERROR_INVALID_HANDLE,
              ", which was unloaded or never given out");
  fp8rt_function function;
  expectError(fp8rt_module_get_function(module, "kernel", &function),
              FP8RT_ERROR_INVALID_HANDLE, "expected a module");
}

TEST_F(Module, TakesItsFunctionsAlong) {
  fp8rt_module module, other;
  fp8rt_function function;
  expectOk(load(getPTX(), &module));
  expectOk(fp8rt_module_get_function(module, "kernel", &function));
  expectOk(fp8rt_module_unload(module));
  // The entry of the table is used again, the handle is not.
  expectOk(load(getPTX(), &other));
  fp8rt_function otherFunction;
  expectOk(fp8rt_module_get_function(other, "kernel", &otherFunction));
  EXPECT_NE(function, otherFunction);
  fp8rt_launch_config config = {
      sizeof(fp8rt_launch_config), {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0, 0};
  expectError(fp8rt_launch(function, &config, nullptr, nullptr),
              FP8RT_ERROR_INVALID_HANDLE, "expected a function, but got ");
  fp8rt_function_info info;
  expectError(fp8rt_function_get_info(function, &info),
              FP8RT_ERROR_INVALID_HANDLE, "expected a function, but got ");
  expectOk(fp8rt_module_unload(other));
}

TEST_F(Module, HasKernelsByName) {
  fp8rt_module module;
  fp8rt_function function, same;
  expectOk(load(getPTX(), &module));
  expectOk(fp8rt_module_get_function(module, "kernel", &function));
  expectOk(fp8rt_module_get_function(module, "kernel", &same));
  EXPECT_EQ(function, same);
  EXPECT_EQ(getCalls("cuModuleGetFunction"), 1);
  expectError(fp8rt_module_get_function(module, "kern", &function),
              FP8RT_ERROR_NOT_FOUND,
              "expected the name of a kernel of the module, but got 'kern'");
  fp8rt_function_info info;
  expectOk(fp8rt_function_get_info(function, &info));
  EXPECT_EQ(info.device, 0);
  EXPECT_EQ(info.num_registers, 64);
  EXPECT_EQ(info.local_bytes, 0);
  EXPECT_EQ(info.static_smem, 0);
  EXPECT_EQ(info.max_dynamic_smem, 49152);
  EXPECT_EQ(info.max_threads_per_block, 512);
  EXPECT_EQ(info.binary_version, 90);
  expectOk(fp8rt_module_unload(module));
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

TEST_F(Launch, PassesTheConfigurationOn) {
  config.cluster[0] = 2;
  config.cluster[1] = config.cluster[2] = 1;
  config.dynamic_smem = 1000;
  config.flags = FP8RT_LAUNCH_OVERLAP;
  expectOk(launch());
  fp8emu_launch last = getLastLaunch();
  EXPECT_EQ(last.grid[0], 4u);
  EXPECT_EQ(last.grid[1], 3u);
  EXPECT_EQ(last.grid[2], 2u);
  EXPECT_EQ(last.block[0], 128u);
  EXPECT_EQ(last.block[1], 2u);
  EXPECT_EQ(last.block[2], 1u);
  EXPECT_EQ(last.cluster[0], 2u);
  EXPECT_EQ(last.cluster[1], 1u);
  EXPECT_EQ(last.cluster[2], 1u);
  EXPECT_EQ(last.dynamic_smem, 1000u);
  EXPECT_EQ(last.overlap, 1);
  EXPECT_EQ(last.device, 1);
  EXPECT_EQ(last.stream, stream);
  EXPECT_EQ(getParam<void *>(0), this);
}

TEST_F(Launch, HasNoAttributesByItself) {
  expectOk(launch());
  EXPECT_EQ(getLastLaunch().cluster[0], 0u);
  EXPECT_EQ(getLastLaunch().overlap, 0);
}

TEST_F(Launch, WaitsForNothing) {
  capture(stream, true);
  expectOk(launch());
  capture(stream, false);
  EXPECT_EQ(getCalls("cuStreamSynchronize"), 0);
  EXPECT_EQ(getCalls("cuCtxSynchronize"), 0);
}

TEST_F(Launch, NamesTheFieldThatIsImpossible) {
  config.grid[1] = 0;
  expectError(launch(), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected config.grid[1] to be 1 or more, but got 0");
  config.grid[1] = 3;
  config.block[2] = 0;
  expectError(launch(), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected config.block[2] to be 1 or more, but got 0");
  config.block[2] = 3;
  expectError(launch(), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected config.block to have at most 512 threads, what kernel "
              "'kernel' can have, but got 768");
  // A product that is 0 in 64 bits.
  config.block[0] = config.block[1] = config.block[2] = 1u << 31;
  expectError(launch(), FP8RT_ERROR_INVALID_ARGUMENT, "at most 512 threads");
  config.block[0] = config.block[1] = config.block[2] = 1;
  config.cluster[0] = 3;
  expectError(launch(), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected config.cluster[0] to be a divisor of grid[0], 4, but "
              "got 3");
  config.cluster[0] = 2;
  expectError(launch(), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected config.cluster[1] to be a divisor of grid[1], 3, but "
              "got 0");
  config.cluster[0] = 0;
  config.flags = 2;
  expectError(launch(), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected config.flags to be FP8RT_LAUNCH_OVERLAP or 0, but got "
              "2");
  EXPECT_EQ(getCalls("cuLaunchKernelEx"), 0);
}

TEST_F(Launch, HasTheSharedMemoryItWasGiven) {
  config.dynamic_smem = 200 * 1024;
  expectError(launch(), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected config.dynamic_smem to be at most 49152, what kernel "
              "'kernel' was given, but got 204800");
  expectOk(fp8rt_function_set_max_dynamic_smem(function, 200 * 1024));
  expectOk(launch());
  expectOk(fp8rt_function_set_max_dynamic_smem(function, 232448));
  expectError(fp8rt_function_set_max_dynamic_smem(function, 232449),
              FP8RT_ERROR_INVALID_ARGUMENT,
              "expected bytes to be from 0 to 232448, what device 1 "
              "(Emulated H200, sm_90) has for kernel 'kernel', but got 232449");
  expectError(fp8rt_function_set_max_dynamic_smem(function, -1),
              FP8RT_ERROR_INVALID_ARGUMENT, "but got -1");
}

// What the kernel declares itself comes out of the same 227 KiB.
TEST_F(Launch, HasWhatTheKernelLeavesOfTheSharedMemory) {
  fp8rt_module other;
  expectOk(load(".version 8.0\n.target sm_90a\n.address_size 64\n"
                ".shared .align 16 .b8 table[1000];\n"
                ".shared .align 4 .b8 sums[24];\n"
                ".visible .entry kernel()\n{\n.reg .b32 %r<2>;\n"
                "mov.b32 %r1, 0;\nst.shared.b32 [table], %r1;\n"
                "st.shared.b32 [sums], %r1;\nret;\n}\n",
                &other, 1));
  expectOk(fp8rt_module_get_function(other, "kernel", &function));
  fp8rt_function_info info;
  expectOk(fp8rt_function_get_info(function, &info));
  EXPECT_EQ(info.static_smem, 1024);
  EXPECT_EQ(info.max_dynamic_smem, 49152 - 1024);
  expectOk(fp8rt_function_set_max_dynamic_smem(function, 232448 - 1024));
  expectError(fp8rt_function_set_max_dynamic_smem(function, 232448 - 1023),
              FP8RT_ERROR_INVALID_ARGUMENT,
              "expected bytes to be from 0 to 231424");
  expectOk(fp8rt_module_unload(other));
}

// Whatever the grid; blocks of a cluster are neighbours, and share the
// multiprocessor's memory with others.
TEST_F(Launch, KnowsHowManyClustersRunAtOnce) {
  int32_t clusters = 0;
  auto count = [&](uint32_t cluster) {
    config.cluster[0] = config.grid[0] = cluster;
    config.cluster[1] = config.cluster[2] = 1;
    expectOk(
        fp8rt_function_get_max_active_clusters(function, &config, &clusters));
    return clusters;
  };
  expectOk(fp8rt_function_set_max_dynamic_smem(function, 200 * 1024));
  config.dynamic_smem = 200 * 1024;
  EXPECT_EQ(count(2), 66);
  EXPECT_EQ(count(4), 32);
  config.dynamic_smem = 100 * 1024;
  EXPECT_EQ(count(2), 132);
  expectError(
      fp8rt_function_get_max_active_clusters(function, &config, nullptr),
      FP8RT_ERROR_INVALID_ARGUMENT, "clusters");
  expectError(fp8rt_function_get_max_active_clusters(0, &config, &clusters),
              FP8RT_ERROR_INVALID_HANDLE, "expected a function, but got 0");
  config.block[0] = 0;
  expectError(
      fp8rt_function_get_max_active_clusters(function, &config, &clusters),
      FP8RT_ERROR_INVALID_ARGUMENT, "config.block");
}

TEST_F(Launch, KnowsAStreamOfAnotherDevice) {
  fp8rt_stream own = stream, other;
  expectOk(fp8rt_stream_create(0, &other));
  stream = other;
  expectError(launch(), FP8RT_ERROR_WRONG_DEVICE,
              "expected stream on the device of kernel 'kernel', but got one "
              "of another device");
  stream = own;
  expectOk(fp8rt_stream_destroy(0, other));
}

TEST_F(Launch, PassesOnWhatTheDriverSays) {
  fail("cuLaunchKernelEx", kLaunchOutOfResources, 1);
  expectError(launch(), FP8RT_ERROR_CUDA,
              "cannot launch kernel 'kernel': "
              "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
  expectOk(launch());
}

TEST_F(Launch, GoesOnElsewhereWhenTheDeviceIsLost) {
  lose(1);
  expectError(launch(), FP8RT_ERROR_DEVICE_LOST, "CUDA_ERROR_ILLEGAL_ADDRESS");
  fp8rt_module other;
  fp8rt_function otherFunction;
  expectOk(load(getPTX(), &other, 0));
  expectOk(fp8rt_module_get_function(other, "kernel", &otherFunction));
  void *params[] = {&param};
  expectOk(fp8rt_launch(otherFunction, &config, params, nullptr));
  expectOk(fp8rt_module_unload(other));
}

TEST_F(Launch, IsSafeWhileOthersLoadAndUnload) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        EXPECT_EQ(launch(), FP8RT_OK);
    });
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 50; ++i) {
        fp8rt_module module;
        fp8rt_function function;
        EXPECT_EQ(load(getPTX(), &module), FP8RT_OK);
        EXPECT_EQ(fp8rt_module_get_function(module, "kernel", &function),
                  FP8RT_OK);
        EXPECT_EQ(fp8rt_module_unload(module), FP8RT_OK);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}
