//===- Results.cpp - Results as arrays of Python --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Results.h"

#include "Arrays.h"
#include "Errors.h"

#include "fp8/Runtime/Stream.h"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace fp8py;

//===----------------------------------------------------------------------===//
// Row-major order
//===----------------------------------------------------------------------===//

static bool isRowMajor(const fp8c_tensor &tensor) {
  int64_t stride = 1;
  for (int32_t i = tensor.rank - 1; i >= 0 && tensor.strides; --i) {
    if (tensor.sizes[i] == 0)
      return true;
    if (tensor.sizes[i] != 1 && tensor.strides[i] != stride)
      return false;
    stride *= tensor.sizes[i];
  }
  return true;
}

static int64_t getWidth(const fp8c_tensor &tensor) {
  return tensor.dtype.bits * tensor.dtype.lanes / 8;
}

static int64_t getNumBytes(const fp8c_tensor &tensor) {
  int64_t count = getWidth(tensor);
  for (int32_t i = 0; i < tensor.rank; ++i)
    count *= tensor.sizes[i];
  return count;
}

static char *getData(const fp8c_tensor &tensor) {
  return static_cast<char *>(tensor.data) + tensor.byte_offset;
}

namespace {
/// A copy in row-major order of a tensor of the host.
struct Copy : fp8c_managed_tensor {
  explicit Copy(const fp8c_tensor &source)
      : fp8c_managed_tensor(), sizes(source.sizes, source.sizes + source.rank),
        memory(getNumBytes(source)) {
    char *next = memory.data();
    copy(source, 0, getData(source), next);
    tensor = source;
    tensor.data = memory.data();
    tensor.byte_offset = 0;
    tensor.sizes = sizes.data();
    tensor.strides = nullptr;
    deleter = [](fp8c_managed_tensor *self) {
      delete static_cast<Copy *>(self);
    };
  }

  static void copy(const fp8c_tensor &source, int32_t dim, const char *data,
                   char *&next) {
    int64_t width = getWidth(source);
    if (dim == source.rank) {
      std::memcpy(next, data, width);
      next += width;
      return;
    }
    if (dim == source.rank - 1 && source.strides[dim] == 1) {
      std::memcpy(next, data, width * source.sizes[dim]);
      next += width * source.sizes[dim];
      return;
    }
    for (int64_t i = 0; i < source.sizes[dim]; ++i)
      copy(source, dim + 1, data + i * source.strides[dim] * width, next);
  }

  std::vector<int64_t> sizes;
  std::vector<char> memory;
};
} // namespace

SharedTensor fp8py::makeShared(fp8c_managed_tensor *result) {
  SharedTensor shared(result, fp8c_managed_tensor_destroy);
  // Frameworks expect that of what they did not slice themselves.
  if (shared->tensor.device.type != FP8C_CUDA && !isRowMajor(shared->tensor))
    return SharedTensor(new Copy(shared->tensor), fp8c_managed_tensor_destroy);
  return shared;
}

//===----------------------------------------------------------------------===//
// A result that nobody knows
//===----------------------------------------------------------------------===//

namespace {
/// What offers a result to others: to NumPy as a buffer, since its __dlpack__
/// has neither bf16 nor 8 bits, and to all others as DLPack says.
struct Result {
  SharedTensor tensor;
  void *stream;

  nb::object exportTensor(nb::handle theirStream) const;
};

/// A managed tensor of a shared one, as old and as new frameworks take it.
template <typename Managed>
struct Share : Managed {
  explicit Share(SharedTensor shared) : Managed(), shared(std::move(shared)) {
    this->tensor = this->shared->tensor;
    this->manager = this;
    this->deleter = [](Managed *self) { delete static_cast<Share *>(self); };
  }

  SharedTensor shared;
};
} // namespace

/// Lets `theirs` wait for what is in `ours`.
static void wait(int32_t device, fp8rt_stream theirs, fp8rt_stream ours) {
  fp8rt_event event;
  check(fp8rt_event_create(device, &event));
  fp8rt_status status = fp8rt_event_record(device, event, ours);
  if (status == FP8RT_OK)
    status = fp8rt_stream_wait_event(device, theirs, event);
  fp8rt_event_destroy(device, event);
  check(status);
}

nb::object Result::exportTensor(nb::handle theirStream) const {
  fp8c_device device = tensor->tensor.device;
  // -1: the consumer wants no synchronization; 1: the default stream.
  if (device.type == FP8C_CUDA && !theirStream.is_none()) {
    auto number = nb::cast<int64_t>(theirStream);
    auto *theirs = reinterpret_cast<void *>(number == 1 ? 0 : number);
    if (number != -1 && theirs != stream)
      wait(device.index, theirs, stream);
  }
  auto destroy = [](PyObject *capsule) {
    // Not if it was renamed, which is how a consumer takes it.
    if (PyCapsule_IsValid(capsule, kCapsule))
      fp8c_managed_tensor_destroy(static_cast<fp8c_managed_tensor *>(
          PyCapsule_GetPointer(capsule, kCapsule)));
  };
  auto share = std::make_unique<Share<fp8c_managed_tensor>>(tensor);
  // No framework that comes here has elements of two codes.
  if (share->tensor.dtype.lanes != 1)
    share->tensor.dtype = {FP8C_UINT, 8, 1};
  nb::object capsule = nb::steal(PyCapsule_New(
      static_cast<fp8c_managed_tensor *>(share.get()), kCapsule, destroy));
  if (!capsule.is_valid())
    throw nb::python_error();
  share.release();
  return capsule;
}

static int getBuffer(PyObject *self, Py_buffer *view, int flags) {
  const fp8c_tensor &tensor = nb::inst_ptr<Result>(self)->tensor->tensor;
  if (tensor.device.type == FP8C_CUDA) {
    PyErr_SetString(PyExc_BufferError, "expected a result on the host, but it "
                                       "is a CUDA device's");
    return -1;
  }
  // NumPy refuses null, which a tensor without elements may have.
  static char nothing;
  void *data = tensor.data
                   ? static_cast<char *>(tensor.data) + tensor.byte_offset
                   : &nothing;
  return PyBuffer_FillInfo(view, self, data, getNumBytes(tensor),
                           /*readonly=*/0, flags);
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

static nb::object makeNumPyArray(Result result) {
  static KeptAttribute ndarray("numpy", "ndarray");
  static KeptAttribute dtypes("fp8.tensors", "DTYPES");
  const fp8c_tensor &tensor = result.tensor->tensor;
  nb::object sizes = nb::steal(PyTuple_New(tensor.rank));
  for (int32_t i = 0; i < tensor.rank; ++i)
    PyTuple_SetItem(sizes.ptr(), i, PyLong_FromLongLong(tensor.sizes[i]));
  nb::object dtype = dtypes.get()[fp8c_dtype_get_name(tensor.dtype)];
  return ndarray.get()(sizes, dtype, nb::cast(std::move(result)));
}

/// The framework that an array is of: what the array API says, or its package.
static nb::object getNamespace(nb::handle array) {
  if (nb::hasattr(array, "__array_namespace__"))
    return array.attr("__array_namespace__")();
  auto name = nb::cast<std::string>(array.type().attr("__module__"));
  return nb::module_::import_(name.substr(0, name.find('.')).c_str());
}

nb::object fp8py::makeArray(SharedTensor result, nb::handle prototype,
                            void *stream) {
  ArrayType type = {ArrayType::Kind::NumPy};
  if (prototype.is_valid())
    type = ArrayType::get(prototype);
  switch (type.kind) {
  case ArrayType::Kind::ExchangeAPI: {
    auto share = std::make_unique<Share<VersionedTensor>>(std::move(result));
    share->major = 1;
    void *array = nullptr;
    if (type.api->import(share.release(), &array) != 0)
      throw nb::python_error();
    return nb::steal(static_cast<PyObject *>(array));
  }
  case ArrayType::Kind::NumPy:
  case ArrayType::Kind::Other:
    return makeNumPyArray({std::move(result), stream});
  case ArrayType::Kind::DLPack: {
    nb::object array = nb::cast(Result{std::move(result), stream});
    nb::object framework = getNamespace(prototype);
    return nb::hasattr(framework, "from_dlpack")
               ? nb::object(framework.attr("from_dlpack")(array))
               : array;
  }
  }
}

namespace {
/// A result of rows with sizes and strides of its own.
struct Batches : Share<VersionedTensor> {
  Batches(SharedTensor rows, const int64_t *batches, int32_t numBatches)
      : Share(std::move(rows)), extents(2 * (numBatches + 1)) {
    int64_t *sizes = extents.data(), *strides = sizes + numBatches + 1;
    const fp8c_tensor &from = shared->tensor;
    std::copy(batches, batches + numBatches, sizes);
    bool isMatrix = from.rank > 1;
    sizes[numBatches] = isMatrix ? from.sizes[1] : 1;
    strides[numBatches] = isMatrix && from.strides ? from.strides[1] : 1;
    int64_t stride = from.strides ? from.strides[0] : sizes[numBatches];
    for (int32_t i = numBatches; i-- > 0; stride *= sizes[i])
      strides[i] = stride;
    major = 1;
    tensor.rank = numBatches + 1;
    tensor.sizes = sizes;
    tensor.strides = strides;
    deleter = [](VersionedTensor *self) {
      delete static_cast<Batches *>(self);
    };
  }

  std::vector<int64_t> extents;
};
} // namespace

nb::object fp8py::makeBatches(SharedTensor rows, const ExchangeAPI &api,
                              const int64_t *sizes, int32_t numBatches) {
  auto batches = std::make_unique<Batches>(std::move(rows), sizes, numBatches);
  void *array = nullptr;
  if (api.import(batches.release(), &array) != 0)
    throw nb::python_error();
  return nb::steal(static_cast<PyObject *>(array));
}

void fp8py::addResults(nb::module_ &module) {
  static PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void *>(getBuffer)}, {0, nullptr}};
  nb::class_<Result>(module, "Result", nb::type_slots(slots))
      .def(
          "__dlpack__",
          [](const Result &self, nb::handle stream, nb::kwargs) {
            return self.exportTensor(stream);
          },
          nb::arg("stream") = nb::none(), nb::arg("kwargs"))
      .def("__dlpack_device__", [](const Result &self) {
        fp8c_device device = self.tensor->tensor.device;
        return nb::make_tuple(device.type, device.index);
      });
}
