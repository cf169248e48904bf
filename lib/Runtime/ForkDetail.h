//===- ForkDetail.h - Tables in a child of fork() ---------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_FORKDETAIL_H
#define FP8_LIB_RUNTIME_FORKDETAIL_H

#include <pthread.h>

namespace fp8rt::detail {

/// Makes a table, never destroyed, since threads may outlive main. No other
/// thread has its `mutex` when the process is forked: a child would wait for a
/// thread that it lacks. There, `table->enterChild()` is called.
///
/// For globals, made when the library is loaded: a local one's first use may be
/// under way in another thread, too.
template <typename Table>
Table *makeTable() {
  static Table *table = new Table;
  pthread_atfork([] { table->mutex.lock(); }, [] { table->mutex.unlock(); },
                 [] {
                   table->enterChild();
                   table->mutex.unlock();
                 });
  return table;
}

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_FORKDETAIL_H
