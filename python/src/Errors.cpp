//===- Errors.cpp - Statuses as exceptions --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Errors.h"

using namespace fp8py;

nb::object fp8py::decode(const std::string &text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), text.size(), "replace"));
}

void fp8py::raise(fp8rt_status status, const std::string &message) {
  nb::object error = nb::module_::import_("fp8.errors")
                         .attr("make_error")(status, decode(message));
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}
