//===- Arrays.cpp - Arrays of Python as tensors of the C API --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"

#include "CallMemory.h"
#include "Errors.h"
#include "Text.h"

#include "fp8/Runtime/Memory.h"

#include <optional>
#include <string_view>
#include <unordered_map>

using namespace fp8py;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static ArrayType classify(nb::handle type) {
  nb::object api = nb::getattr(type, kExchangeAPIAttribute, nb::none());
  if (PyCapsule_IsValid(api.ptr(), kExchangeAPICapsule)) {
    auto *table = static_cast<const ExchangeAPI *>(
        PyCapsule_GetPointer(api.ptr(), kExchangeAPICapsule));
    while (table && table->major != 1)
      table = table->previous;
    if (table && table->view)
      return {ArrayType::Kind::ExchangeAPI, table,
              nb::hasattr(type, "requires_grad") &&
                  nb::hasattr(type, "is_neg")};
  }
  if (nb::hasattr(type, "__array_struct__") &&
      nb::hasattr(type, "__array_interface__"))
    return {ArrayType::Kind::NumPy, nullptr, /*isTorch=*/false,
            nb::hasattr(type, "mask") && nb::hasattr(type, "filled")};
  if (nb::hasattr(type, "__dlpack__"))
    return {ArrayType::Kind::DLPack};
  return {ArrayType::Kind::Other};
}

const ArrayType &ArrayType::get(nb::handle array) {
  // Never destroyed: the interpreter may be gone by then. The types stay, so
  // that an address is one type's.
  static auto &known = *new std::unordered_map<PyObject *, ArrayType>;
  nb::handle type = array.type();
  if (auto found = known.find(type.ptr()); found != known.end())
    return found->second;
  // May let another thread run, which finds the type or does the same.
  ArrayType result = classify(type);
  auto [entry, isNew] = known.try_emplace(type.ptr(), result);
  if (isNew)
    type.inc_ref();
  return entry->second;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

std::string Argument::describe() const {
  return std::string("argument '") + info->name + "' of '" + function->name +
         "'";
}

[[noreturn]] static void raiseArgument(const std::string &message) {
  raise(FP8RT_ERROR_INVALID_ARGUMENT, message);
}

/// A tensor without memory that should have some.
static bool isMissing(const fp8c_tensor &tensor) {
  bool hasElements = true;
  for (int32_t i = 0; i < tensor.rank; ++i)
    hasElements &= tensor.sizes[i] != 0;
  return !tensor.data && hasElements;
}

void Argument::raiseExport(nb::handle array, const std::string &reason) const {
  nb::object text = nb::module_::import_("fp8.foreign")
                        .attr("explain")(array, decode(reason));
  raiseArgument("expected " + describe() +
                " to be an array that DLPack can hand out, but got: " +
                fp8py::describe(text));
}

/// The message of what a framework threw, unless it ends the program.
static std::string getReason(nb::python_error &error) {
  if (!error.matches(PyExc_Exception))
    throw std::move(error);
  return fp8py::describe(error.value());
}

/// The owner of the tensor from now on: a capsule that has not been consumed.
void Argument::takeCapsule() {
  bool isVersioned = PyCapsule_IsValid(owner.ptr(), kVersionedCapsule);
  void *managed = PyCapsule_GetPointer(
      owner.ptr(), isVersioned ? kVersionedCapsule : kCapsule);
  if (!managed)
    throw nb::python_error();
  if (!isVersioned) {
    tensor = static_cast<fp8c_managed_tensor *>(managed)->tensor;
    return;
  }
  tensor = static_cast<VersionedTensor *>(managed)->tensor;
  isReadOnly = static_cast<VersionedTensor *>(managed)->flags & kReadOnly;
}

void Argument::setDLPack(nb::handle array, void *stream) {
  // A producer whose array is on a GPU makes our stream wait for its own; 1
  // stands for the default stream.
  nb::object place = array.attr("__dlpack_device__")();
  int type = 0;
  if (!nb::try_cast(nb::object(place[0]), type))
    return raiseExport(array, "a __dlpack_device__ that is no pair of ints");
  if (type == FP8C_CUDA) {
    auto number = reinterpret_cast<uintptr_t>(stream);
    owner = array.attr("__dlpack__")(nb::arg("stream") = number ? number : 1);
  } else {
    owner = array.attr("__dlpack__")();
  }
  // The capsule frees what nobody consumes.
  takeCapsule();
}

namespace {
/// NumPy's PyArrayInterface, which __array_struct__ is a capsule of.
struct ArrayInterface {
  int two, rank;
  char kind;
  int itemSize, flags;
  Py_ssize_t *sizes, *strides; // In bytes.
  void *data;
  PyObject *description;
};
} // namespace

static constexpr int kNativeOrder = 0x200, kWritable = 0x400;

/// The dtypes that ml_dtypes adds to NumPy, by the type of their elements.
static fp8c_dtype getExtensionType(nb::handle array) {
  struct Name {
    std::string_view theirs;
    const char *ours;
    int lanes;
  };
  static constexpr Name names[] = {
#define FP8_DTYPE(NAME, FILE, CODE, BITS, LANES, SCALAR, NUMPY, ...)           \
  {NUMPY, #NAME, LANES},
#include "fp8/Formats.def"
  };
  static auto &known = *new std::unordered_map<PyObject *, fp8c_dtype>;
  nb::object type = array.attr("dtype").attr("type");
  if (auto found = known.find(type.ptr()); found != known.end())
    return found->second;
  fp8c_dtype result = {};
  std::string name = fp8py::describe(type.attr("__name__"));
  // Codes that share bytes in programs have one each there.
  for (const Name &known : names)
    if (known.theirs == name && known.lanes == 1)
      check(fp8c_dtype_from_name(known.ours, &result));
  if (known.try_emplace(type.ptr(), result).second)
    type.release();
  return result;
}

void Argument::setNumPy(nb::handle array) {
  try {
    owner = array.attr("__array_struct__");
  } catch (nb::python_error &error) {
    raiseExport(array, getReason(error));
  }
  auto *view =
      static_cast<ArrayInterface *>(PyCapsule_GetPointer(owner.ptr(), nullptr));
  if (!view) {
    PyErr_Clear();
    raiseExport(array, "an __array_struct__ that is no capsule");
  }
  auto bits = static_cast<uint8_t>(view->itemSize * 8);
  // E5M2 is a 'f' of one byte, other dtypes of ml_dtypes are not.
  switch (view->itemSize == 1 && view->kind == 'f' ? 'V' : view->kind) {
  case 'f':
    tensor.dtype = {FP8C_FLOAT, bits, 1};
    break;
  case 'i':
    tensor.dtype = {FP8C_INT, bits, 1};
    break;
  case 'u':
    tensor.dtype = {FP8C_UINT, bits, 1};
    break;
  case 'b':
    tensor.dtype = {FP8C_BOOL, bits, 1};
    break;
  default:
    tensor.dtype = getExtensionType(array);
  }
  // Codes of E2M1 have a byte each there.
  if (tensor.dtype.bits == 0 &&
      fp8py::describe(array.attr("dtype")) == "float4_e2m1fn")
    raiseArgument("expected " + describe() +
                  " to have two codes of E2M1 in a byte, but got "
                  "float4_e2m1fn; fp8.tensors.pack makes them");
  if (tensor.dtype.bits == 0 || !(view->flags & kNativeOrder))
    raiseArgument("expected " + describe() + " of a dtype that programs have" +
                  ", but got " + fp8py::describe(array.attr("dtype")));
  isReadOnly = !(view->flags & kWritable);
  extents.resize(2 * view->rank);
  tensor.data = view->data;
  tensor.device = {FP8C_CPU, 0};
  tensor.rank = view->rank;
  tensor.sizes = extents.data();
  tensor.strides = extents.data() + view->rank;
  for (int i = 0; i < view->rank; ++i) {
    tensor.sizes[i] = view->sizes[i];
    tensor.strides[i] = view->strides[i] / view->itemSize;
    if (view->strides[i] % view->itemSize != 0 && view->sizes[i] > 1)
      raiseArgument("expected " + describe() +
                    " to be in row-major order, but got a stride of " +
                    std::to_string(view->strides[i]) + " bytes in dimension " +
                    std::to_string(i));
  }
}

//===----------------------------------------------------------------------===//
// Tensors of PyTorch
//===----------------------------------------------------------------------===//

nb::handle KeptAttribute::get() {
  if (PyObject *object = found.load(std::memory_order_acquire))
    return object;
  nb::object object = nb::module_::import_(module);
  if (name)
    object = object.attr(name);
  // Another thread may have been here while this one imported.
  PyObject *others = nullptr;
  if (!found.compare_exchange_strong(others, object.ptr()))
    return others;
  return object.release();
}

bool fp8py::isGradEnabled() {
  static KeptAttribute isEnabled("torch", "is_grad_enabled");
  return nb::object(isEnabled.get()()).is(Py_True);
}

bool fp8py::isForwardMode() {
  static KeptAttribute forwardMode("torch.autograd", "forward_ad");
  static nb::handle level = nb::str("_current_level").release();
  return nb::cast<int>(nb::getattr(forwardMode.get(), level, nb::int_(-1)),
                       false) >= 0;
}

bool fp8py::requiresGrad(nb::handle tensor) {
  static nb::handle name = nb::str("requires_grad").release();
  return nb::object(tensor.attr(name)).is(Py_True);
}

bool fp8py::isNegative(nb::handle tensor, fp8c_dtype dtype) {
  static nb::handle name = nb::str("is_neg").release();
  // The parts of complex numbers, of which there are none of other types.
  bool mayBe = dtype.code == FP8C_FLOAT &&
               (dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64);
  return mayBe && nb::object(tensor.attr(name)()).is(Py_True);
}

/// Throws for a tensor of PyTorch that is more than what its memory tells. A
/// program takes no part in gradients: it must not look as if.
void Argument::checkTorch(nb::handle array) const {
  if (isNegative(array, tensor.dtype))
    raiseArgument("expected " + describe() +
                  " to have its values in memory, but got a tensor with the "
                  "negative bit; its resolve_neg() is a copy without");
  if (requiresGrad(array) && isGradEnabled())
    raiseArgument("expected " + describe() +
                  " not to require a gradient, which a program does not "
                  "compute; pass it detached, or call under torch.no_grad()");
  if (!isForwardMode())
    return;
  static KeptAttribute unpack("torch.autograd.forward_ad", "unpack_dual");
  if (!unpack.get()(array).attr("tangent").is_none())
    raiseArgument("expected " + describe() +
                  " to have no tangent, of which a program does not compute "
                  "the derivative; pass unpack_dual's primal");
}

void Argument::setTorch(nb::handle array, const ArrayType &type) {
  std::optional<nb::python_error> failure;
  if (type.api->view(array.ptr(), &tensor) != 0) {
    failure.emplace();
    tensor.dtype = {FP8C_FLOAT, 32, 1}; // Any that may be negative.
  }
  // What a tensor is besides says more than that it has no memory.
  if (type.isTorch)
    try {
      checkTorch(array);
    } catch (nb::python_error &error) {
      if (error.matches(nb::module_::import_("fp8.errors").attr("Error")))
        throw;
      raiseExport(array, getReason(error));
    }
  if (failure)
    raiseExport(array, getReason(*failure));
  if (isMissing(tensor))
    raiseExport(array, "a tensor without memory");
}

void Argument::set(nb::handle array, void *stream) {
  const ArrayType &type = ArrayType::get(array);
  switch (type.kind) {
  case ArrayType::Kind::ExchangeAPI:
    return setTorch(array, type);
  case ArrayType::Kind::NumPy:
    if (type.mayBeMasked &&
        nb::module_::import_("numpy.ma").attr("is_masked")(array).is(Py_True))
      raiseArgument("expected " + describe() +
                    " to have no masked elements, but got some; its filled() "
                    "has values for them");
    return setNumPy(array);
  case ArrayType::Kind::DLPack:
    try {
      return setDLPack(array, stream);
    } catch (nb::python_error &error) {
      if (error.matches(nb::module_::import_("fp8.errors").attr("Error")))
        throw;
      raiseExport(array, getReason(error));
    }
  case ArrayType::Kind::Other:
    break;
  }
  if (info->rank >= 0 || !PyNumber_Check(array.ptr()))
    raiseArgument("expected " + describe() + " to be an array, but got " +
                  fp8py::describe(array.type().attr("__name__")));
  scalar = nb::module_::import_("fp8.scalars")
               .attr("make_scalar")(array, info->dtype, describe());
  setNumPy(scalar);
}

void Argument::align(nb::handle array) {
  auto address = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  if (info->rank < 0 || address % info->alignment == 0)
    return;
  const ArrayType &type = ArrayType::get(array);
  if (type.kind != ArrayType::Kind::ExchangeAPI || !type.isTorch)
    return;
  aligned = array.attr("detach")().attr("clone")();
  setTorch(aligned, type);
}

void Argument::checkWritable() const {
  if (isReadOnly)
    raiseArgument("expected " + describe() +
                  " to be writable, as the program writes to it, but got a "
                  "read-only array");
}

//===----------------------------------------------------------------------===//
// What a call takes from its arguments
//===----------------------------------------------------------------------===//

Framework fp8py::findFramework(nb::handle arguments) {
  for (nb::handle array : nb::borrow<nb::tuple>(arguments)) {
    const ArrayType &type = ArrayType::get(array);
    fp8c_tensor tensor;
    if (type.kind != ArrayType::Kind::ExchangeAPI)
      continue;
    if (type.api->view(array.ptr(), &tensor) != 0) {
      PyErr_Clear(); // Said of the argument.
      continue;
    }
    if (tensor.device.type == FP8C_CUDA)
      return {type.api, tensor.device.index};
  }
  return {};
}

void *Framework::getCurrentStream() const {
  void *stream = nullptr;
  if (api && api->getCurrentStream(FP8C_CUDA, device, &stream))
    throw nb::python_error();
  return stream;
}

void Framework::shareMemory() const {
  static const ExchangeAPI *shared;
  if (!api || api == shared || !api->allocate)
    return;
  shared = api;
  fp8rt_workspace_set_allocator(reinterpret_cast<void *>(CallMemory::allocate),
                                reinterpret_cast<void *>(CallMemory::free),
                                const_cast<ExchangeAPI *>(api));
}

nb::handle fp8py::getPrototype(nb::handle arguments) {
  for (nb::handle array : nb::borrow<nb::tuple>(arguments))
    if (ArrayType::get(array).kind != ArrayType::Kind::Other)
      return array;
  return {};
}

nb::tuple fp8py::inspectArray(nb::handle array) {
  // A call that is none, for the words of errors.
  fp8rt_program_value info = {};
  info.name = "x";
  fp8rt_program_function function = {};
  function.name = "the cast";
  Argument argument;
  argument.begin(function, info);
  argument.set(array, findFramework(nb::make_tuple(array)).getCurrentStream());
  const fp8c_tensor &tensor = argument.getTensor();
  return nb::make_tuple(fp8c_dtype_get_name(tensor.dtype), tensor.rank,
                        tensor.device.type == FP8C_CUDA);
}
