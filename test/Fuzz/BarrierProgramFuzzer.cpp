//===- BarrierProgramFuzzer.cpp - Kernels of barriers and copies ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes choose exchanges between threads, each of which is right. All of them
// together must end without a report. With statements left out or doubled, the
// host must neither crash nor hang.
//
//===----------------------------------------------------------------------===//

#include "Exec/Machine.h"
#include "PTX/Decoder.h"

#include <cstdio>
#include <cstdlib>

using namespace fp8emu;

namespace {
struct Bytes {
  const uint8_t *data;
  size_t left;
  unsigned take(unsigned bound) {
    if (left == 0)
      return 0;
    --left;
    return *data++ % bound;
  }
};

constexpr unsigned kGlobalBytes = 4096;
alignas(256) uint8_t globalMemory[kGlobalBytes];

/// Statements of one exchange; `n` makes labels of its own. %r0 is smem, which
/// begins with four mbarriers for all threads of the block; words of threads
/// begin at smem + 64: %r1 is the thread's own, %r2 another's.
class Exchanges {
public:
  Exchanges(Bytes &bytes, unsigned threads, bool cluster)
      : bytes(bytes), threads(threads), cluster(cluster) {}

  std::string make() {
    unsigned count = 1 + bytes.take(6);
    for (unsigned i = 0; i < count; ++i)
      exchange(std::to_string(i));
    if (cluster)
      body +=
          "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
    return body;
  }

private:
  void add(const std::string &text) { body += text + "\n"; }
  void barrier() { add("bar.sync 0;"); }
  void read() { add("ld.shared.b32 %r3, [%r2];"); }
  void write() { add("st.shared.b32 [%r1], %t;"); }
  void wait(const std::string &n, unsigned which) {
    add("WAIT" + n + ": mbarrier.try_wait.parity.shared.b64 %p1, [%r0+" +
        std::to_string(8 * which) + "], " +
        std::to_string(phases[which]++ & 1) + ";");
    add("@!%p1 bra WAIT" + n + ";");
  }

  void exchange(const std::string &n) {
    std::string all = std::to_string(threads);
    switch (bytes.take(8)) {
    case 0: // all threads
      write(), barrier(), read(), barrier();
      break;
    case 1: // arrivals of all
      write();
      add("mbarrier.arrive.shared.b64 _, [%r0];");
      wait(n, 0);
      read(), barrier();
      break;
    case 2: // the lanes of a warp
      add("st.shared.b32 [%r1], %t;\nbar.warp.sync -1;");
      add("xor.b32 %r4, %r5, 4;\nld.shared.b32 %r3, [%r4];");
      add("bar.warp.sync -1;");
      barrier();
      break;
    case 3: // a copy from global memory
      add("fence.proxy.async.shared::cta;");
      barrier();
      add("@%p0 bra ISSUED" + n + ";");
      add("mbarrier.arrive.expect_tx.shared.b64 _, [%r0+8], 128;");
      add("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%r0+64], [%d0], 128, [%r0+8];");
      add("ISSUED" + n + ":");
      wait(n, 1);
      read(), barrier();
      break;
    case 4: // a copy to global memory
      write();
      add("fence.proxy.async.shared::cta;");
      barrier();
      add("@%p0 bra STORED" + n + ";");
      add("cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r0+64], 128;");
      add("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;");
      add("STORED" + n + ":");
      barrier();
      break;
    case 5: // plain copies
      add("cp.async.ca.shared.global [%r1], [%d0], 4;");
      if (bytes.take(2)) {
        add("cp.async.mbarrier.arrive.noinc.shared.b64 [%r0+16];");
        wait(n, 2);
      } else {
        add("cp.async.commit_group;\ncp.async.wait_group 0;");
        barrier();
      }
      read(), barrier();
      break;
    case 6: // one lane arrives for its warp
      read();
      add("bar.warp.sync -1;\nelect.sync _|%p2, -1;");
      add("@%p2 mbarrier.arrive.shared.b64 _, [%r0+24];");
      wait(n, 3);
      write(), barrier();
      break;
    case 7: // one warp tells another
      if (threads < 64) {
        barrier();
        break;
      }
      add("setp.lt.u32 %p3, %t, 32;\n@%p3 bra TELL" + n + ";");
      add("setp.ge.u32 %p3, %t, 64;\n@%p3 bra TOLD" + n + ";");
      add("bar.sync 1, 64;\nld.shared.b32 %r3, [%r0+64];\nbra TOLD" + n + ";");
      add("TELL" + n + ":\nst.shared.b32 [%r1], %t;\nbar.arrive 1, 64;");
      add("TOLD" + n + ":");
      barrier();
      break;
    }
  }

  Bytes &bytes;
  unsigned threads;
  bool cluster;
  unsigned phases[4] = {};
  std::string body;
};
} // namespace

static std::string wrap(const std::string &body, unsigned threads) {
  std::string all = std::to_string(threads);
  return ".version 8.6\n.target sm_90a\n.address_size 64\n"
         ".visible .entry kernel(.param .u64 p0)\n{\n"
         ".reg .pred %p<8>; .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .b32 %t;\n"
         ".shared .align 1024 .b8 smem[2048];\n"
         "ld.param.u64 %d0, [p0];\nmov.u32 %t, %tid.x;\nmov.u32 %r0, smem;\n"
         "shl.b32 %r1, %t, 2;\nadd.s32 %r1, %r1, %r0;\nadd.s32 %r1, %r1, 64;\n"
         "mov.b32 %r5, %r1;\nadd.s32 %r2, %t, 1;\nrem.u32 %r2, %r2, " +
         all +
         ";\nshl.b32 %r2, %r2, 2;\nadd.s32 %r2, %r2, %r0;\n"
         "add.s32 %r2, %r2, 64;\nsetp.ne.u32 %p0, %t, 0;\n"
         "st.shared.b32 [%r1], %t;\nfence.proxy.async.shared::cta;\n"
         "@%p0 bra BEGIN;\n"
         "mbarrier.init.shared.b64 [%r0], " +
         all +
         ";\nmbarrier.init.shared.b64 [%r0+8], 1;\n"
         "mbarrier.init.shared.b64 [%r0+16], " +
         all + ";\nmbarrier.init.shared.b64 [%r0+24], " +
         std::to_string(threads / 32) +
         ";\nfence.mbarrier_init.release.cluster;\n"
         "BEGIN: bar.sync 0;\n" +
         body + "ret;\n}\n";
}

/// What is wrong with it, or "".
static std::string runKernel(const std::string &text, const Settings &settings,
                             unsigned threads, bool cluster) {
  try {
    std::shared_ptr<const Module> module = parseModule(text);
    auto program = decodeFunction(module, module->functions.front(), {});
    Grid grid(*program, settings);
    grid.block = {threads, 1, 1};
    grid.grid = {2, 1, 1};
    if (cluster)
      grid.cluster = {2, 1, 1};
    grid.residentClusters = 1;
    auto address = reinterpret_cast<uint64_t>(globalMemory);
    grid.params.resize(8);
    std::memcpy(grid.params.data(), &address, 8);
    grid.run();
    return grid.findings.texts.empty() ? "" : grid.findings.texts.front();
  } catch (const Fault &fault) {
    return fault.text;
  } catch (const PTXError &error) {
    return error.what();
  }
}

/// Leaves a line out, or doubles it.
static std::string breakLine(const std::string &body, unsigned number,
                             bool twice) {
  std::string broken;
  size_t begin = 0;
  for (unsigned line = 0; begin < body.size(); ++line) {
    size_t end = body.find('\n', begin) + 1;
    std::string text = body.substr(begin, end - begin);
    if (line != number)
      broken += text;
    else if (twice)
      broken += text + text;
    begin = end;
  }
  return broken;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static bool known = [] {
    auto begin = reinterpret_cast<uint64_t>(globalMemory);
    GlobalMemory::get().add({begin, begin + kGlobalBytes});
    return true;
  }();
  (void)known;
  Bytes bytes{data, size};
  Settings settings;
  settings.order = static_cast<Order>(bytes.take(3));
  settings.seed = bytes.take(256);
  settings.maxSteps = 200000;
  settings.checks = kCheckRaces | kCheckProxies | kCheckUninitialized;
  unsigned threads = 32 * (1 + bytes.take(4));
  bool cluster = bytes.take(2);
  unsigned line = bytes.take(64);
  bool twice = bytes.take(2);
  std::string body = Exchanges(bytes, threads, cluster).make();
  std::string text = wrap(body, threads);
  if (std::string wrong = runKernel(text, settings, threads, cluster);
      !wrong.empty()) {
    std::fprintf(stderr, "%s\n%s\n", text.c_str(), wrong.c_str());
    std::abort();
  }
  runKernel(wrap(breakLine(body, line, twice), threads), settings, threads,
            cluster);
  return 0;
}
