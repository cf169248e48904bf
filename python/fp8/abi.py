"""libfp8rt through ctypes, as include/fp8/Runtime/ABI.def has it.

    library = abi.Library("build/lib/libfp8rt.so")
    info = abi.structs.fp8rt_device_info()
    library.fp8rt_device_get_info(0, ctypes.byref(info))

Functions take and return what they do in C, but those that return a fp8rt_status
raise Error unless it is FP8RT_OK. A pointer to char is bytes; one to void, or to a
struct that only the library knows, is a number. A struct's `struct_size` is there from
the beginning.
"""

import ctypes
import re
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

# The same in a source tree and in a bundle.
DEFINITION = Path(__file__).parents[2] / "include" / "fp8" / "Runtime" / "ABI.def"


class DefinitionError(Exception):
    """What is no part of a definition; the message begins with its line."""


class Error(Exception):
    """A call that failed, with its `status` and the library's message."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


# `result` is the name of a type, `parameters` are pairs of a type and a name.
Function = namedtuple("Function", "name result restype parameters")

# ===----------------------------------------------------------------------===
# The definition
# ===----------------------------------------------------------------------===

_SCALARS = {
    "void": None, "u8": ctypes.c_uint8, "i32": ctypes.c_int32, "u32": ctypes.c_uint32,
    "i64": ctypes.c_int64, "u64": ctypes.c_uint64, "f32": ctypes.c_float,
    "f64": ctypes.c_double, "usize": ctypes.c_size_t, "char": ctypes.c_char,
    "str": ctypes.c_char_p,
}
# Which of ctypes' alternatives a pointer to such is.
_POINTERS = {None: ctypes.c_void_p, ctypes.c_char: ctypes.c_char_p}

# Comments, and what the preprocessor does for those who want few entries.
_BETWEEN = re.compile(
    r"(?:\s+|//[^\n]*|#undef FP8RT_\w+"
    r"|#ifndef (FP8RT_\w+)\n#define \1\b(?:\\\n|[^\n])*\n#endif)*")
_MEMREF = re.compile(r"#define FP8RT_MEMREF\(NAME, ELEMENT, RANK\)((?:\\\n|[^\n])*)\n#endif")
_ENTRY = re.compile(r"FP8RT_([A-Z]+)(?=\()")
_TYPE = re.compile(r"(?:const )?(\w+) ?((?:\*(?:const ?)?)*)")
_FUNCTION_POINTER = re.compile(r"([\w *]+) \(\*\)(\([\w *,]*\))")
_ARRAY = re.compile(r"(\w+)\[([1-9]\d*)\]")
_PARAMETER = re.compile(r"(.*[ *])(\w+)")


def _split(text):
    """The arguments of `(a, b, ...)` at the start of a text, and where they end, if
    they do."""
    depth, start, arguments = 0, 1, []
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if (depth == 1 and character == ",") or depth == 0:
            arguments.append(" ".join(text[start:position].split()))
            start = position + 1
        if depth == 0:
            return (arguments if arguments != [""] else []), start
    return [], None


def _parse(text):
    """The entries of a definition as (line, name, arguments)."""
    position = _BETWEEN.match(text).end()
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        entry = _ENTRY.match(text, position)
        if not entry:
            found = text[position:].split("\n")[0]
            raise DefinitionError(f"{line}: expected an entry, but got '{found}'")
        arguments, size = _split(text[entry.end():])
        if size is None:
            raise DefinitionError(f"{line}: expected ')', but the definition ends")
        yield line, entry[1], arguments
        position = _BETWEEN.match(text, entry.end() + size).end()


def _expand(text):
    """The same with a struct for each FP8RT_MEMREF, as the preprocessor makes it."""
    memref = _MEMREF.search(text)
    for line, entry, arguments in _parse(text):
        if entry != "MEMREF" or not memref or len(arguments) != 3:
            yield line, entry, arguments
            continue
        body = memref[1].replace("\\\n", "\n")
        for parameter, argument in zip(("NAME", "ELEMENT", "RANK"), arguments):
            body = re.sub(rf"\b{parameter}\b", argument, body)
        for _, entry, arguments in _parse(body):
            yield line, entry, arguments


class _Struct(ctypes.Structure):
    """Lies at a multiple of its alignment; `_align_` is for Python 3.13 and later."""

    def __new__(cls, *arguments, **fields):
        alignment = cls._alignment
        buffer = ctypes.create_string_buffer(ctypes.sizeof(cls) + alignment)
        return cls.from_buffer(buffer, -ctypes.addressof(buffer) % alignment)

    def __init__(self, *arguments, **fields):
        if self._fields_[0][0] == "struct_size":
            arguments = ctypes.sizeof(self), *arguments
        super().__init__(*arguments, **fields)


class Definition:
    """The `structs` and `functions` of a definition, by name."""

    def __init__(self, text):
        self.structs, self.functions = {}, {}
        self._types, self._opaque = dict(_SCALARS), set()
        self._struct = None  # Whose fields come: its class, its alignment, and they.
        entries = list(_expand(text))
        for self._line, entry, arguments in entries:
            # A pointer may lead to a struct whose fields come later.
            if entry == "STRUCT" and arguments:
                self._declare(arguments[0])
        for self._line, entry, arguments in entries:
            handler, count = self._HANDLERS.get(entry, (None, None))
            if count != len(arguments):
                self._fail(f"expected an entry of ABI.def, but got FP8RT_{entry} with "
                           f"{len(arguments)} arguments")
            if (self._struct is None) == (entry in ("FIELD", "END")):
                self._fail(f"expected fields between FP8RT_STRUCT and FP8RT_END(), but got "
                           f"FP8RT_{entry}")
            handler(self, *arguments)
        if self._struct:
            self._fail("expected FP8RT_END(), but the definition ends")

    def _fail(self, message):
        raise DefinitionError(f"{self._line}: {message}")

    def _claim(self, name):
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            self._fail(f"expected a name, but got '{name}'")
        if name in self._types or name in self._opaque or name in self.functions:
            self._fail(f"expected a new name, but got '{name}' again")
        return name

    def _declare(self, name):
        self.structs[name] = self._types[self._claim(name)] = type(name, (_Struct,), {})

    def _resolve(self, text):
        """The ctypes type of a type of ABI.def."""
        pointer = _FUNCTION_POINTER.fullmatch(text)
        if pointer:
            return ctypes.CFUNCTYPE(self._resolve(pointer[1]),
                                    *map(self._resolve_value, _split(pointer[2])[0]))
        match = _TYPE.fullmatch(text)
        if not match:
            self._fail(f"expected a type, but got '{text}'")
        name, stars = match[1], match[2].count("*")
        if name not in self._types and (name not in self._opaque or stars == 0):
            self._fail(f"expected a type, but got '{name}'")
        result = self._types.get(name)
        for _ in range(stars):
            result = _POINTERS.get(result) or ctypes.POINTER(result)
        return result

    def _resolve_value(self, text):
        """The same for what has a size."""
        result = self._resolve(text)
        if result is None or (issubclass(result, _Struct) and not hasattr(result, "_fields_")):
            self._fail(f"expected a type with a size, but got '{text}'")
        return result

    def _add_type(self, name, text):
        self._types[self._claim(name)] = self._resolve_value(text)

    def _add_opaque(self, name):
        self._opaque.add(self._claim(name))

    def _add_struct(self, name, alignment):
        if not alignment.isdigit():
            self._fail(f"expected an alignment, but got '{alignment}'")
        self._struct = self.structs[name], int(alignment), []

    def _add_field(self, text, name):
        _, _, fields = self._struct
        if not name.isidentifier() or name in (other for other, _ in fields):
            self._fail(f"expected the name of another field, but got '{name}'")
        array = _ARRAY.fullmatch(text)
        result = self._resolve_value(array[1] if array else text)
        fields.append((name, result * int(array[2]) if array else result))

    def _add_end(self):
        struct, struct._alignment, struct._fields_ = self._struct
        if ctypes.sizeof(struct) != sum(ctypes.sizeof(type) for _, type in struct._fields_):
            self._fail(f"expected no gaps in {struct.__name__}")
        self._struct = None

    def _add_function(self, result, name, parameters):
        if not re.fullmatch(r"\(.*\)", parameters):
            self._fail(f"expected parameters in parentheses, but got '{parameters}'")
        matches = [_PARAMETER.fullmatch(parameter) for parameter in _split(parameters)[0]]
        if None in matches:
            self._fail(f"expected types and names, but got '{parameters}'")
        self.functions[self._claim(name)] = Function(
            name, result, self._resolve(result),
            [(self._resolve_value(match[1].strip()), match[2]) for match in matches])

    _HANDLERS = {
        "TYPE": (_add_type, 2), "OPAQUE": (_add_opaque, 1), "STRUCT": (_add_struct, 2),
        "FIELD": (_add_field, 2), "END": (_add_end, 0), "FUNCTION": (_add_function, 3),
    }


try:
    _definition = Definition(DEFINITION.read_text())
except DefinitionError as error:
    raise DefinitionError(f"{DEFINITION}:{error}") from None
structs = SimpleNamespace(**_definition.structs)
functions = _definition.functions

# ===----------------------------------------------------------------------===
# The library
# ===----------------------------------------------------------------------===


class Library:
    """The functions of a libfp8rt.so."""

    def __init__(self, path):
        self._dll = ctypes.CDLL(str(path))

    def __getattr__(self, name):
        if name not in functions:
            raise AttributeError(f"expected a function of ABI.def, but got '{name}'")
        definition, function = functions[name], getattr(self._dll, name)
        function.restype = definition.restype
        function.argtypes = [type for type, _ in definition.parameters]
        if definition.result == "fp8rt_status":
            function.errcheck = self._check
        setattr(self, name, function)
        return function

    def _check(self, status, function, arguments):
        if status:
            raise Error(status, self.fp8rt_get_last_error().decode())
        return status
