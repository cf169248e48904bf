//===- XLA.h - What XLA calls handlers with ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Structs of XLA's foreign function interface, version 0.3 (xla/ffi/api/c_api.h
// of OpenXLA), field by field as far as they are used here, with our names.
// XLA keeps them as they are within version 0: what is newer comes at the end,
// and `size` says how much of a struct there is.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_XLA_H
#define FP8_PYTHON_XLA_H

#include <cstddef>
#include <cstdint>

namespace fp8py::xla {

inline constexpr int kMajorVersion = 0, kMinorVersion = 3;

/// The name of a capsule with a handler.
inline constexpr const char *kHandlerCapsule = "xla._CUSTOM_CALL_TARGET";

struct Error;
struct Context;

struct Extension {
  size_t size;
  int32_t type;
  Extension *next;
};

struct Version {
  size_t size;
  Extension *extensions;
  int32_t major, minor;
};

/// What a handler says of itself, when it is called with this extension.
struct Metadata {
  size_t size;
  Version version;
  uint32_t traits;
};
struct MetadataExtension : Extension {
  static constexpr int32_t kType = 1;
  Metadata *metadata;
};

enum ErrorCode : int32_t { kInvalidArgument = 3, kInternal = 13 };

/// Arguments of the functions below.
struct CreateError {
  size_t size;
  Extension *extensions;
  const char *message;
  ErrorCode code;
};
struct DestroyError {
  size_t size;
  Extension *extensions;
  Error *error;
};
struct GetStream {
  size_t size;
  Extension *extensions;
  Context *context;
  void *stream;
};
struct GetDevice {
  size_t size;
  Extension *extensions;
  Context *context;
  int32_t device;
};

struct Api {
  size_t size;
  Extension *extensions;
  Version version;
  const void *internal;

  Error *(*createError)(CreateError *);
  void *getErrorMessage;
  void (*destroyError)(DestroyError *);
  void *registerHandler;
  Error *(*getStream)(GetStream *);
  void *registerType, *getContext, *setState, *getState;
  void *allocate, *free, *schedule, *getNumThreads;
  void *createFuture, *setFutureAvailable, *setFutureError;
  void *getRun;
  /// Since 0.2.
  Error *(*getDevice)(GetDevice *);
};

struct Buffer {
  size_t size;
  Extension *extensions;
  int32_t type;
  void *data;
  int64_t rank;
  int64_t *sizes;
};

/// Arguments or results, all of which are buffers.
struct Buffers {
  size_t size;
  Extension *extensions;
  int64_t count;
  int32_t *kinds;
  Buffer **buffers;
};

struct Text {
  const char *data;
  size_t size;
};
struct Scalar {
  int32_t type;
  void *value;
};
/// By their names, in alphabetical order.
struct Attributes {
  size_t size;
  Extension *extensions;
  int64_t count;
  int32_t *kinds;
  Text **names;
  void **values;
};
inline constexpr int32_t kScalarAttribute = 3;

struct Frame {
  size_t size;
  Extension *extensions;
  const Api *api;
  Context *context;
  int32_t stage;
  Buffers arguments, results;
  Attributes attributes;
};

using Handler = Error *(Frame *);

} // namespace fp8py::xla

#endif // FP8_PYTHON_XLA_H
