//===- ForeignCall.cpp - Programs that XLA calls --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One handler of XLA's foreign function interface for all programs. XLA's
// computations name a function by a number, an attribute, since they may be
// kept longer than the program.
//
//===----------------------------------------------------------------------===//

#include "ForeignCall.h"

#include "Program.h"
#include "State.h"
#include "XLA.h"

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

using namespace fp8py;

//===----------------------------------------------------------------------===//
// What is called
//===----------------------------------------------------------------------===//

namespace {
/// A function of a program with its state, each call of which is a step.
struct Target {
  Target(const Program &program, uint32_t function, nb::handle state)
      : program(program), function(program.getInfo().functions[function]),
        stateObject(nb::borrow(state)),
        state(state.is_none() ? nullptr : nb::cast<State *>(state)) {}

  /// The last to let go may be a call that is under way, in XLA's thread.
  ~Target() {
    if (!Py_IsInitialized()) {
      stateObject.release();
      return;
    }
    nb::gil_scoped_acquire acquire;
    stateObject.reset();
  }

  /// Null, or why not.
  const char *run(const std::vector<const fp8c_tensor *> &arguments,
                  const std::vector<const fp8c_tensor *> &results,
                  int32_t device, fp8rt_stream stream);

  Program program;
  const fp8rt_program_function &function;
  nb::object stateObject;
  State *state;
  /// A state is one thread's at a time; XLA has several.
  std::mutex mutex;
};

/// The targets by their numbers, as long as Python has them.
class Registry {
public:
  /// Never destroyed: XLA's threads may outlive main.
  static Registry &get() {
    static auto &registry = *new Registry;
    return registry;
  }

  int64_t add(const std::shared_ptr<Target> &target) {
    std::lock_guard lock(mutex);
    targets[++last] = target;
    return last;
  }
  void remove(int64_t number) {
    std::lock_guard lock(mutex);
    targets.erase(number);
  }
  std::shared_ptr<Target> find(int64_t number) {
    std::lock_guard lock(mutex);
    auto found = targets.find(number);
    return found == targets.end() ? nullptr : found->second.lock();
  }

private:
  std::mutex mutex;
  std::unordered_map<int64_t, std::weak_ptr<Target>> targets;
  int64_t last = 0;
};

/// What Python holds.
struct ForeignCall {
  ForeignCall(const Program &program, uint32_t function, nb::handle state)
      : target(std::make_shared<Target>(program, function, state)),
        number(Registry::get().add(target)) {}
  ~ForeignCall() { Registry::get().remove(number); }
  ForeignCall(const ForeignCall &) = delete;

  std::shared_ptr<Target> target;
  int64_t number;
};
} // namespace

const char *Target::run(const std::vector<const fp8c_tensor *> &arguments,
                        const std::vector<const fp8c_tensor *> &results,
                        int32_t device, fp8rt_stream stream) {
  std::unique_lock lock(mutex);
  fp8rt_status status = fp8c_program_run_into(
      program.get(), function.name, arguments.data(), arguments.size(),
      results.data(), results.size(), state ? state->get() : 0, stream);
  if (status == FP8RT_OK && state) {
    state->device = device;
    state->stream = stream;
    status = fp8c_program_end_step(program.get(), state->get(), device, stream);
  }
  return status == FP8RT_OK ? nullptr : fp8rt_get_last_error();
}

//===----------------------------------------------------------------------===//
// The handler
//===----------------------------------------------------------------------===//

/// XLA's PrimitiveType as the name of a dtype; null for what programs lack.
static const char *getTypeName(int32_t type) {
#define FP8_DTYPE(NAME, FILE, CODE, BITS, LANES, SCALAR, NUMPY, XLA)           \
  if (XLA >= 0 && type == XLA)                                                 \
    return #NAME;
#include "fp8/Formats.def"
  return nullptr;
}

static xla::Error *makeError(const xla::Frame &frame, const char *message,
                             xla::ErrorCode code = xla::kInternal) {
  xla::CreateError arguments = {sizeof(arguments), nullptr, message, code};
  return frame.api->createError(&arguments);
}

/// XLA's tensors as those of the C API: in row-major order, where `device` is.
static std::vector<fp8c_tensor> makeTensors(const xla::Buffers &buffers,
                                            fp8c_device device) {
  std::vector<fp8c_tensor> tensors(buffers.count);
  for (int64_t i = 0; i < buffers.count; ++i) {
    const xla::Buffer &buffer = *buffers.buffers[i];
    fp8c_tensor &tensor = tensors[i];
    tensor.data = buffer.data;
    tensor.device = device;
    tensor.rank = static_cast<int32_t>(buffer.rank);
    tensor.sizes = buffer.sizes;
    // One that is unknown is no info's.
    if (const char *name = getTypeName(buffer.type))
      fp8c_dtype_from_name(name, &tensor.dtype);
  }
  return tensors;
}

static std::vector<const fp8c_tensor *>
getPointers(const std::vector<fp8c_tensor> &tensors) {
  std::vector<const fp8c_tensor *> pointers;
  for (const fp8c_tensor &tensor : tensors)
    pointers.push_back(&tensor);
  return pointers;
}

static std::shared_ptr<Target> findTarget(const xla::Attributes &attributes) {
  for (int64_t i = 0; i < attributes.count; ++i) {
    std::string_view name(attributes.names[i]->data, attributes.names[i]->size);
    if (name == "number" && attributes.kinds[i] == xla::kScalarAttribute) {
      auto *scalar = static_cast<const xla::Scalar *>(attributes.values[i]);
      return Registry::get().find(*static_cast<const int64_t *>(scalar->value));
    }
  }
  return nullptr;
}

/// Answers a question about this handler; false if the call was none.
static bool describeHandler(const xla::Frame &frame) {
  for (xla::Extension *next = frame.extensions; next; next = next->next)
    if (next->type == xla::MetadataExtension::kType) {
      xla::Metadata &metadata =
          *static_cast<xla::MetadataExtension *>(next)->metadata;
      metadata.version.major = xla::kMajorVersion;
      metadata.version.minor = xla::kMinorVersion;
      metadata.traits = 0;
      return true;
    }
  return false;
}

/// The device and stream of a computation on a GPU.
static xla::Error *findPlace(const xla::Frame &frame, int32_t &device,
                             fp8rt_stream &stream) {
  xla::GetStream getStream = {sizeof(getStream), nullptr, frame.context,
                              nullptr};
  if (xla::Error *error = frame.api->getStream(&getStream))
    return error;
  stream = getStream.stream;
  xla::GetDevice getDevice = {sizeof(getDevice), nullptr, frame.context, 0};
  if (frame.api->size <= offsetof(xla::Api, getDevice))
    return makeError(frame, "expected a version of XLA that tells the device");
  if (xla::Error *error = frame.api->getDevice(&getDevice))
    return error;
  device = getDevice.device;
  return nullptr;
}

/// `isOnGPU`: it is registered for each platform.
static xla::Error *handle(xla::Frame &frame, bool isOnGPU) {
  if (describeHandler(frame))
    return nullptr;
  std::shared_ptr<Target> target = findTarget(frame.attributes);
  if (!target)
    return makeError(frame,
                     "expected the compiled function of a traced one to "
                     "be alive, but it is gone",
                     xla::kInvalidArgument);
  int32_t device = 0;
  fp8rt_stream stream = nullptr;
  if (isOnGPU)
    if (xla::Error *error = findPlace(frame, device, stream))
      return error;
  fp8c_device place = {isOnGPU ? FP8C_CUDA : FP8C_CPU, device};
  auto arguments = makeTensors(frame.arguments, place);
  auto results = makeTensors(frame.results, place);
  const char *message =
      target->run(getPointers(arguments), getPointers(results), device, stream);
  return message ? makeError(frame, message) : nullptr;
}

static xla::Error *handleOnCPU(xla::Frame *frame) {
  return handle(*frame, /*isOnGPU=*/false);
}
static xla::Error *handleOnGPU(xla::Frame *frame) {
  return handle(*frame, /*isOnGPU=*/true);
}

static nb::object makeCapsule(xla::Handler *handler) {
  nb::object capsule = nb::steal(PyCapsule_New(
      reinterpret_cast<void *>(handler), xla::kHandlerCapsule, nullptr));
  if (!capsule.is_valid())
    throw nb::python_error();
  return capsule;
}

void fp8py::addForeignCalls(nb::module_ &module) {
  nb::class_<ForeignCall>(module, "ForeignCall")
      .def(nb::init<const Program &, uint32_t, nb::handle>(),
           nb::arg("program"), nb::arg("function"), nb::arg("state").none())
      .def_ro("number", &ForeignCall::number);
  module.def(
      "get_xla_handler",
      [](bool isOnGPU) {
        return makeCapsule(isOnGPU ? handleOnGPU : handleOnCPU);
      },
      nb::arg("on_gpu"));
}
