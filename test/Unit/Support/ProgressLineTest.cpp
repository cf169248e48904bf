//===- ProgressLineTest.cpp - What a tool is doing ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/ProgressLine.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <condition_variable>
#include <mutex>
#include <string>

using namespace mlir::fp8;
using namespace std::chrono_literals;

namespace {
/// What has been written, for another thread to wait for.
class Terminal : public llvm::raw_ostream {
public:
  Terminal() { SetUnbuffered(); }

  void waitFor(llvm::StringRef expected) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock,
                 [&] { return llvm::StringRef(text).contains(expected); });
  }
  std::string getText() {
    std::lock_guard<std::mutex> lock(mutex);
    return text;
  }

private:
  void write_impl(const char *data, size_t size) override {
    std::lock_guard<std::mutex> lock(mutex);
    text.append(data, size);
    changed.notify_all();
  }
  uint64_t current_pos() const override { return 0; }

  std::mutex mutex;
  std::condition_variable changed;
  std::string text;
};
} // namespace

TEST(ProgressLineTest, SaysWhatIsGoingOnAndIsGone) {
  Terminal terminal;
  {
    ProgressLine line(terminal, "tool", /*wait=*/0ms, /*interval=*/1ms);
    line.set("first");
    terminal.waitFor(" s, first\033[K\r");
    line.set("second");
    terminal.waitFor(" s, second\033[K\r");
  }
  std::string text = terminal.getText();
  EXPECT_TRUE(llvm::StringRef(text).starts_with("\rtool: "));
  EXPECT_TRUE(llvm::StringRef(text).ends_with("\r\033[K"));
}

TEST(ProgressLineTest, IsNotThereForWhatIsShort) {
  Terminal terminal;
  {
    ProgressLine line(terminal, "tool", /*wait=*/1h);
    line.set("first");
  }
  EXPECT_EQ(terminal.getText(), "");
}
