//===- Text.cpp - Words, paths and numbers of Python ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Text.h"

#include "Errors.h"

#include <cstdint>

using namespace fp8py;

std::string fp8py::readText(nb::handle object, const char *what) {
  PyObject *bytes = nullptr;
  if (PyUnicode_FSConverter(object.ptr(), &bytes)) {
    nb::object owner = nb::steal(bytes);
    return std::string(PyBytes_AsString(bytes), PyBytes_Size(bytes));
  }
  // A __fspath__ may be interrupted.
  if (!PyErr_ExceptionMatches(PyExc_Exception))
    throw nb::python_error();
  PyErr_Clear();
  raise(FP8RT_ERROR_INVALID_ARGUMENT,
        std::string("expected ") + what +
            " to be text or a path without null characters, but got " +
            describe(nb::repr(object)));
}

void *fp8py::readStream(nb::handle object) {
  // A bool is an int to Python.
  if (PyIndex_Check(object.ptr()) && !PyBool_Check(object.ptr())) {
    nb::object number = nb::steal(PyNumber_Index(object.ptr()));
    if (number.is_valid()) {
      unsigned long long value = PyLong_AsUnsignedLongLong(number.ptr());
      if (!PyErr_Occurred())
        return reinterpret_cast<void *>(static_cast<uintptr_t>(value));
    }
    PyErr_Clear();
  }
  raise(FP8RT_ERROR_INVALID_ARGUMENT,
        "expected a stream of CUDA as an int from 0 to 2^64 - 1, but got " +
            describe(nb::repr(object)));
}

std::string fp8py::describe(nb::handle object) {
  nb::object text =
      nb::module_::import_("fp8.errors").attr("shorten")(nb::str(object));
  return nb::cast<std::string>(text);
}
