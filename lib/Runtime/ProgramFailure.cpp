//===- ProgramFailure.cpp - Programs that give up -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between a call and where the program gives up is compiled code alone, which
// has nothing to unwind.
//
//===----------------------------------------------------------------------===//

#include "ProgramDetail.h"
#include "StatusDetail.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>

using namespace fp8rt;

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

namespace {
/// Where a program that gives up goes.
struct Frame {
  std::jmp_buf target;
  volatile fp8rt_status status;
  Frame *outer;
};
} // namespace

static thread_local Frame *innermost = nullptr;
/// Why a program of this thread gave up last.
static thread_local char lastMessage[512];

fp8rt_status detail::runInFrame(void (*function)(void *), void *data,
                                const char *&message) {
  Frame frame;
  frame.status = FP8RT_OK;
  frame.outer = innermost;
  innermost = &frame;
  if (setjmp(frame.target) == 0)
    function(data);
  innermost = frame.outer;
  message = lastMessage;
  return frame.status;
}

void detail::giveUp(fp8rt_status status, const char *message) {
  if (!innermost) {
    std::fprintf(stderr, "%s\n", message);
    std::abort();
  }
  if (message != lastMessage)
    std::snprintf(lastMessage, sizeof(lastMessage), "%s", message);
  innermost->status = status;
  std::longjmp(innermost->target, 1);
}

fp8rt_status fp8rt_program_invoke(const fp8rt_program_function *function,
                                  void **arguments) {
  struct Invocation {
    const fp8rt_program_function *function;
    void **arguments;
  } invocation = {function, arguments};
  auto run = [](void *data) {
    auto *invocation = static_cast<Invocation *>(data);
    invocation->function->invoke(invocation->arguments);
  };
  const char *message;
  fp8rt_status status = detail::runInFrame(run, &invocation, message);
  return status ? detail::fail(status, message) : FP8RT_OK;
}

//===----------------------------------------------------------------------===//
// Reasons
//===----------------------------------------------------------------------===//

void fp8rt_program_fail(const char *message) {
  detail::giveUp(FP8RT_ERROR_INVALID_ARGUMENT, message);
}

/// What programs call in place of aligned_alloc, under the name that MLIR has
/// for an allocation function of a host's own.
extern "C" void *_mlir_memref_to_llvm_aligned_alloc(uint64_t alignment,
                                                    uint64_t size) {
  if (void *memory = std::aligned_alloc(alignment, size))
    return memory;
  char message[64];
  std::snprintf(message, sizeof(message), "cannot allocate %llu bytes",
                static_cast<unsigned long long>(size));
  detail::giveUp(FP8RT_ERROR_OUT_OF_MEMORY, message);
}

namespace {
/// The stack that the system gave a thread.
struct Stack {
  static Stack find();

  uintptr_t begin = 0, end = 0;
  /// Below it, too little is left for another call and what it calls.
  uintptr_t limit = 0;
};
} // namespace

Stack Stack::find() {
  // For the frame of a function of the program, which may be large, and for
  // products and launches.
  constexpr size_t reserve = 512 << 10;
  Stack stack;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes))
    return stack;
  void *address;
  size_t size, guard;
  if (!pthread_attr_getstack(&attributes, &address, &size) &&
      !pthread_attr_getguardsize(&attributes, &guard)) {
    stack.begin = reinterpret_cast<uintptr_t>(address);
    stack.end = stack.begin + size;
    // Keep some of a small stack.
    stack.limit =
        stack.begin + std::min(guard + std::min(reserve, size / 4), size);
  }
  pthread_attr_destroy(&attributes);
  return stack;
}

void fp8rt_program_check_stack(const char *function) {
  static thread_local const Stack stack = Stack::find();
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  // Nothing is known of a stack that the host has made itself.
  if (here >= stack.limit || here < stack.begin)
    return;
  char message[256];
  std::snprintf(message, sizeof(message),
                "expected the calls of '%.128s' to end before the stack does, "
                "but it has %zu KiB and no room for another call",
                function, (stack.end - stack.begin) >> 10);
  detail::giveUp(FP8RT_ERROR_OUT_OF_MEMORY, message);
}
