//===- LayerCall.cpp - Calls of one layer ---------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerCall.h"

#include "Arrays.h"
#include "Errors.h"
#include "Results.h"

using namespace fp8py;

//===----------------------------------------------------------------------===//
// What stays
//===----------------------------------------------------------------------===//

[[noreturn]] static void fail(const std::string &expected) {
  raise(FP8RT_ERROR_INVALID_ARGUMENT, "expected " + expected);
}

LayerCall::LayerCall(const Program &program, uint32_t function,
                     nb::object dtype, nb::list list)
    : program(program), function(&program.getInfo().functions[function]),
      dtype(std::move(dtype)) {
  const fp8rt_program_function &called = *this->function;
  bool fits = (called.flags & FP8RT_FUNCTION_TAKES_CONTEXT) &&
              !(called.flags & FP8RT_FUNCTION_TAKES_STATE) &&
              called.num_results == 1 && called.results[0].rank == 2 &&
              called.arguments[0].rank == 2 && nb::len(list) > 0 &&
              nb::len(list) + 1 == static_cast<size_t>(called.num_arguments);
  if (!fits)
    fail("a function of rows and parameters on a GPU, but got '" +
         std::string(called.name) + "'");
  check(fp8c_dtype_from_name(called.arguments[0].dtype, &elements));
  parameters.resize(nb::len(list));
  for (size_t i = 0; i < parameters.size(); ++i) {
    Parameter &made = parameters[i];
    made.name = list[i][0];
    made.parameter = list[i][1];
    made.given = list[i][2];
    const ArrayType &type = ArrayType::get(made.parameter);
    if (type.kind != ArrayType::Kind::ExchangeAPI || !type.isTorch)
      fail("parameters of PyTorch");
    api = type.api;
    fp8c_tensor tensor, argument;
    if (api->view(made.parameter.ptr(), &tensor) != 0 ||
        api->view(made.given.ptr(), &argument) != 0)
      throw nb::python_error();
    if (getData(tensor) != getData(argument))
      fail("arguments that are a layer's parameters");
    made.tensor = KeptTensor(tensor);
    made.argument = KeptTensor(argument);
  }
  device = parameters[0].tensor.tensor.device;
  // Results of few rows are not kept for long.
  plan.mostWithResults = 256 << 10;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

bool LayerCall::isSame(const Parameter &parameter, nb::handle given) const {
  if (PyDict_GetItem(given.ptr(), parameter.name.ptr()) !=
      parameter.parameter.ptr())
    return false;
  fp8c_tensor tensor;
  if (api->view(parameter.parameter.ptr(), &tensor) == 0)
    return isSameTensor(tensor, parameter.tensor.tensor);
  PyErr_Clear();
  return false;
}

/// The dtype that PyTorch is about to convert operands to; null for none.
static nb::object getAutocastType(fp8c_device device) {
  static KeptAttribute isEnabled("torch", "is_autocast_enabled");
  static KeptAttribute getType("torch", "get_autocast_dtype");
  static nb::handle cuda = nb::str("cuda").release();
  static nb::handle cpu = nb::str("cpu").release();
  nb::handle type = device.type == FP8C_CUDA ? cuda : cpu;
  return isEnabled.get()(type).is(Py_True) ? getType.get()(type) : nb::object();
}

bool LayerCall::isFor(nb::handle x, const fp8c_tensor &tensor) const {
  if (!tensor.data || !isSameType(tensor.dtype, elements) ||
      !isSameDevice(tensor.device, device) || tensor.rank == 0 ||
      tensor.sizes[tensor.rank - 1] != function->arguments[0].sizes[1] ||
      reinterpret_cast<uintptr_t>(getData(tensor)) %
          function->arguments[0].alignment)
    return false;
  int64_t stride = 1;
  for (int32_t i = tensor.rank; i-- > 0; stride *= tensor.sizes[i])
    if (tensor.sizes[i] == 0 ||
        (tensor.strides && tensor.sizes[i] != 1 && tensor.strides[i] != stride))
      return false;
  if (isNegative(x, tensor.dtype) || (requiresGrad(x) && isGradEnabled()) ||
      isForwardMode())
    return false;
  nb::object autocast = getAutocastType(device);
  return !autocast.is_valid() || autocast.is(dtype);
}

nb::object LayerCall::call(nb::handle x, nb::handle given) {
  static KeptAttribute tensorType("torch", "Tensor");
  fp8c_tensor tensor;
  if (x.type().ptr() != tensorType.get().ptr())
    return nb::none();
  if (api->view(x.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return nb::none();
  }
  if (!isFor(x, tensor))
    return nb::none();
  for (const Parameter &parameter : parameters)
    if (!isSame(parameter, given))
      return nb::none();

  fp8c_tensor rows = tensor;
  int64_t sizes[2] = {1, tensor.sizes[tensor.rank - 1]};
  for (int32_t i = 0; i < tensor.rank - 1; ++i)
    sizes[0] *= tensor.sizes[i];
  rows.rank = 2;
  rows.sizes = sizes;
  rows.strides = nullptr;
  std::vector<const fp8c_tensor *> arguments = {&rows};
  for (const Parameter &parameter : parameters)
    arguments.push_back(&parameter.argument.tensor);
  Framework framework;
  if (device.type == FP8C_CUDA)
    framework = {api, device.index};
  void *stream = framework.getCurrentStream();
  framework.shareMemory();
  fp8c_managed_tensor *result = nullptr;
  fp8rt_status status;
  {
    CallMemory memory(plan);
    nb::gil_scoped_release release;
    status =
        fp8c_program_run(program.get(), function->name, arguments.data(),
                         arguments.size(), &result, 1, /*state=*/0, stream);
  }
  check(status);
  return makeBatches(makeShared(result), *api, tensor.sizes, tensor.rank - 1);
}

void fp8py::addLayerCalls(nb::module_ &module) {
  nb::class_<LayerCall>(module, "LayerCall")
      .def(nb::init<const Program &, uint32_t, nb::object, nb::list>(),
           nb::arg("program"), nb::arg("function"), nb::arg("dtype"),
           nb::arg("parameters"))
      .def("call", &LayerCall::call, nb::arg("x"), nb::arg("parameters"))
      // A copy of a layer finds its own.
      .def("__reduce__", [](const LayerCall &) {
        return nb::make_tuple(nb::none().type(), nb::tuple());
      });
}
