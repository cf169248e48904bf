//===- PreparedCalls.cpp - Calls like those before ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PreparedCalls.h"

#include "Arrays.h"
#include "Errors.h"
#include "Results.h"
#include "TorchValues.h"

#include <nanobind/stl/vector.h>

using namespace fp8py;

static int64_t getNumRows(const TorchValues &values) {
  const fp8c_tensor &first = values.tensors[0];
  return first.rank > 0 ? first.sizes[0] : 0;
}

static uint32_t getType(const TorchValues &values, size_t index) {
  if (index >= values.tensors.size())
    return 0;
  fp8c_dtype dtype = values.tensors[index].dtype;
  return dtype.code << 24 | dtype.bits << 16 | dtype.lanes;
}

void PreparedCalls::add(uint32_t kind, nb::list list, const Program &program,
                        uint32_t function, std::vector<uint32_t> order,
                        nb::object state) {
  TorchValues values;
  const fp8rt_program_function &called = program.getInfo().functions[function];
  if (!(called.flags & FP8RT_FUNCTION_TAKES_CONTEXT) || !values.set(list) ||
      order.size() != static_cast<size_t>(called.num_arguments))
    return;
  for (int32_t i = 0; i < called.num_results; ++i)
    if (called.results[i].rank < 0)
      return;
  for (uint32_t index : order)
    if (index >= values.tensors.size() || list[index].is_none())
      return;
  Function made = {program,
                   &called,
                   std::move(order),
                   values.tensors.size(),
                   values.tensors[0].device,
                   std::move(state),
                   std::make_shared<MemoryPlan>()};
  functions.insert_or_assign(
      Key(kind, getNumRows(values), getType(values, 0), getType(values, 1)),
      std::move(made));
}

nb::object PreparedCalls::run(uint32_t kind, nb::list list, bool endsStep) {
  TorchValues values;
  if (!values.set(list))
    return nb::none();
  auto found = functions.find(
      Key(kind, getNumRows(values), getType(values, 0), getType(values, 1)));
  if (found == functions.end())
    return nb::none();
  const Function &called = found->second;
  fp8c_device device = values.tensors[0].device;
  if (called.numValues != values.tensors.size() ||
      called.device.type != device.type || called.device.index != device.index)
    return nb::none();

  Framework framework;
  if (device.type == FP8C_CUDA)
    framework = {values.api, device.index};
  void *stream = framework.getCurrentStream();
  framework.shareMemory();
  State *state = called.state.is_none()
                     ? nullptr
                     : &nb::cast<State &>(nb::handle(called.state));
  if (state) {
    state->stream = stream;
    if (device.type == FP8C_CUDA)
      state->device = device.index;
  }
  std::vector<const fp8c_tensor *> arguments;
  for (uint32_t index : called.order)
    arguments.push_back(&values.tensors[index]);
  std::vector<fp8c_managed_tensor *> results(called.function->num_results);
  // Kept: other threads may add functions meanwhile.
  Program program = called.program;
  const char *name = called.function->name;
  bool takesState = called.function->flags & FP8RT_FUNCTION_TAKES_STATE;
  nb::object kept = called.state;
  std::shared_ptr<MemoryPlan> plan = called.plan;
  fp8rt_status status, ended = FP8RT_OK;
  {
    CallMemory memory(*plan);
    nb::gil_scoped_release release;
    status = fp8c_program_run(program.get(), name, arguments.data(),
                              arguments.size(), results.data(), results.size(),
                              takesState ? state->get() : 0, stream);
    if (status == FP8RT_OK && endsStep && state)
      ended = fp8c_program_end_step(state->getProgram().get(), state->get(),
                                    state->device, stream);
  }
  check(status);
  std::vector<SharedTensor> shared;
  for (fp8c_managed_tensor *result : results)
    shared.push_back(makeShared(result));
  check(ended);
  nb::list made;
  for (SharedTensor &result : shared)
    made.append(makeArray(std::move(result), list[0], stream));
  return made;
}

void fp8py::addPreparedCalls(nb::module_ &module) {
  nb::class_<PreparedCalls>(module, "PreparedCalls")
      .def(nb::init<>())
      .def("add", &PreparedCalls::add, nb::arg("kind"), nb::arg("values"),
           nb::arg("program"), nb::arg("function"), nb::arg("order"),
           nb::arg("state").none())
      .def("run", &PreparedCalls::run, nb::arg("kind"), nb::arg("values"),
           nb::arg("ends_step"));
}
