//===- LoadedObject.h - Machine code in this process ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TARGET_CPU_LOADEDOBJECT_H
#define FP8_TARGET_CPU_LOADEDOBJECT_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace mlir::fp8 {

/// Objects that `emitObject` made, linked into this process without a linker.
/// Their code and data go with it.
class LoadedObject {
public:
  /// `objects` are not copied, and stay where they are as long as this lives.
  /// What they call but do not define is looked up in the process, where
  /// libfp8rt has to be.
  static llvm::Expected<std::unique_ptr<LoadedObject>>
  load(ArrayRef<std::string> objects);
  ~LoadedObject();

  /// The address of a symbol of the objects.
  llvm::Expected<void *> lookup(StringRef name) const;

private:
  explicit LoadedObject(std::unique_ptr<llvm::orc::LLJIT> jit);

  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace mlir::fp8

#endif // FP8_TARGET_CPU_LOADEDOBJECT_H
