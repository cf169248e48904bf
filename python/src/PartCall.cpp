//===- PartCall.cpp - Calls of a part of a graph --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PartCall.h"

#include "Arrays.h"
#include "Errors.h"
#include "Results.h"

#include <utility>

using namespace fp8py;

/// Plans of more numbers of rows are forgotten.
static constexpr size_t kMaxPlans = 64;

//===----------------------------------------------------------------------===//
// What stays
//===----------------------------------------------------------------------===//

[[noreturn]] static void fail(const std::string &expected) {
  raise(FP8RT_ERROR_INVALID_ARGUMENT, "expected " + expected);
}

static size_t readNumber(nb::handle number, const TorchValues &values) {
  auto index = nb::cast<size_t>(number);
  if (index >= values.tensors.size() || !values.tensors[index].data)
    fail("the number of a value");
  return index;
}

void PartCall::addArgument(nb::handle given, const TorchValues &values) {
  nb::object first = given[0], second = given[1];
  Argument &made = arguments.emplace_back();
  if (nb::isinstance<nb::str>(second)) {
    auto kind = nb::cast<std::string>(second);
    made.number = readNumber(first, values);
    made.kind = kind == "full"     ? Kind::Full
                : kind == "row"    ? Kind::Row
                : kind == "vector" ? Kind::Vector
                                   : Kind::Scalar;
    return;
  }
  made.kind = Kind::Stored;
  made.owner = second;
  fp8c_tensor tensor;
  if (values.api->view(second.ptr(), &tensor) != 0)
    throw nb::python_error();
  made.tensor = KeptTensor(tensor);
  const char *begin = getData(tensor);
  for (nb::handle number : first) {
    size_t index = readNumber(number, values);
    const fp8c_tensor &value = values.tensors[index];
    // What they take the place of begins with the first of them.
    if (begin && getData(value) != begin)
      fail("an argument that is stored tensors");
    begin = nullptr;
    stored.push_back({index, KeptTensor(value)});
  }
}

void PartCall::addResult(nb::handle given, const TorchValues &values) {
  Result &made = results.emplace_back();
  nb::object number = given[0], sizes = given[1];
  if (!number.is_none()) {
    made.number = static_cast<int64_t>(readNumber(number, values));
    return;
  }
  for (nb::handle size : sizes)
    made.sizes.push_back(nb::cast<int64_t>(size));
}

PartCall::PartCall(const Program &program, uint32_t function, nb::list list,
                   nb::list arguments, nb::list results)
    : program(program), function(&program.getInfo().functions[function]),
      numValues(nb::len(list)) {
  const fp8rt_program_function &called = *this->function;
  TorchValues values;
  bool fits = (called.flags & FP8RT_FUNCTION_TAKES_CONTEXT) &&
              !(called.flags & FP8RT_FUNCTION_TAKES_STATE) &&
              nb::len(arguments) == static_cast<size_t>(called.num_arguments) &&
              nb::len(results) == static_cast<size_t>(called.num_results);
  for (int32_t i = 0; i < called.num_results; ++i)
    fits = fits && (called.results[i].rank == 1 || called.results[i].rank == 2);
  if (!fits || !values.set(list))
    fail("a function of tensors on a GPU, but got '" +
         std::string(called.name) + "'");
  for (nb::handle argument : arguments)
    addArgument(argument, values);
  for (nb::handle result : results)
    addResult(result, values);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

bool PartCall::isFor(const TorchValues &values) const {
  if (values.tensors.size() != numValues)
    return false;
  for (const Stored &one : stored)
    if (!isSameTensor(values.tensors[one.number], one.tensor.tensor))
      return false;
  for (const Argument &argument : arguments)
    if (argument.kind != Kind::Stored) {
      const fp8c_tensor &value = values.tensors[argument.number];
      if (!value.data || (argument.kind == Kind::Full && value.rank == 0))
        return false;
    }
  return true;
}

std::shared_ptr<MemoryPlan> PartCall::getPlan(int64_t rows) {
  if (plans.size() >= kMaxPlans && !plans.count(rows))
    plans.clear();
  std::shared_ptr<MemoryPlan> &plan = plans[rows];
  if (!plan) {
    plan = std::make_shared<MemoryPlan>();
    // Results of few rows are not kept for long.
    plan->mostWithResults = 256 << 10;
  }
  return plan;
}

nb::list PartCall::makeResults(std::vector<fp8c_managed_tensor *> made,
                               const TorchValues &values) const {
  std::vector<SharedTensor> shared;
  for (fp8c_managed_tensor *result : made)
    shared.push_back(makeShared(result));
  nb::list list;
  for (size_t i = 0; i < shared.size(); ++i) {
    const Result &result = results[i];
    const int64_t *sizes = result.sizes.data();
    auto count = static_cast<int32_t>(result.sizes.size());
    int64_t rows = shared[i]->tensor.sizes[0];
    if (result.number >= 0) {
      sizes = values.tensors[result.number].sizes;
      count = values.tensors[result.number].rank - 1;
    } else if (count == 1) {
      sizes = &rows;
    }
    list.append(makeBatches(std::move(shared[i]), *values.api, sizes, count));
  }
  return list;
}

nb::object PartCall::call(nb::list list) {
  TorchValues values;
  if (!values.set(list) || !isFor(values))
    return nb::none();

  // Sizes of values as the function has them: rows and their elements.
  std::vector<int64_t> sizes(2 * arguments.size());
  std::vector<fp8c_tensor> flat(arguments.size());
  std::vector<const fp8c_tensor *> tensors(arguments.size());
  fp8c_device device = {};
  int64_t rows = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument &argument = arguments[i];
    if (argument.kind == Kind::Stored) {
      tensors[i] = &argument.tensor.tensor;
      continue;
    }
    const fp8c_tensor &value = values.tensors[argument.number];
    int64_t count = 1, *own = &sizes[2 * i];
    bool isFull = argument.kind == Kind::Full;
    for (int32_t dim = 0; dim < value.rank - isFull; ++dim)
      count *= value.sizes[dim];
    own[0] = count;
    own[1] = isFull ? value.sizes[value.rank - 1] : 1;
    flat[i] = value;
    flat[i].rank = isFull ? 2 : argument.kind == Kind::Scalar ? 0 : 1;
    flat[i].sizes = own;
    flat[i].strides = nullptr;
    tensors[i] = &flat[i];
    device = value.device;
    rows = isFull ? count : rows;
  }

  Framework framework;
  if (device.type == FP8C_CUDA)
    framework = {values.api, device.index};
  void *stream = framework.getCurrentStream();
  framework.shareMemory();
  std::vector<fp8c_managed_tensor *> made(results.size());
  std::shared_ptr<MemoryPlan> plan = getPlan(rows);
  fp8rt_status status;
  {
    CallMemory memory(*plan);
    nb::gil_scoped_release release;
    status = fp8c_program_run(program.get(), function->name, tensors.data(),
                              tensors.size(), made.data(), made.size(),
                              /*state=*/0, stream);
  }
  check(status);
  return makeResults(std::move(made), values);
}

void fp8py::addPartCalls(nb::module_ &module) {
  nb::class_<PartCall>(module, "PartCall")
      .def(nb::init<const Program &, uint32_t, nb::list, nb::list, nb::list>(),
           nb::arg("program"), nb::arg("function"), nb::arg("values"),
           nb::arg("arguments"), nb::arg("results"))
      .def("call", &PartCall::call, nb::arg("values"));
}
