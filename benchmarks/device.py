"""Calls of compiled programs on PyTorch's tensors, on a GPU and on the host."""

import ctypes

from programs import abi, get_name, open_library, tensor
from timing import describe, show_machine, torch, write_record

DEVICE = 0


class Host:
    """Where the tensors of programs for a CPU are."""

    handle = None

    def __init__(self):
        self.free = ctypes.CDLL(None).free
        self.free.argtypes = [ctypes.c_void_p]

    def read(self, address, size):
        value = torch.empty(size, dtype=torch.uint8)
        ctypes.memmove(value.data_ptr(), address, size)
        return value


class Gpu:
    """A context in PyTorch's current stream, also where that is a graph's."""

    def __init__(self, library):
        self.library, self.handle = library, ctypes.c_void_p()
        self.stream = torch.cuda.current_stream().cuda_stream
        library.fp8rt_context_create(DEVICE, self.stream, ctypes.byref(self.handle))

    def follow(self):
        stream = torch.cuda.current_stream().cuda_stream
        if stream != self.stream:
            self.library.fp8rt_context_set_stream(self.handle, stream)
            self.stream = stream

    def free(self, address):
        self.library.fp8rt_workspace_free(DEVICE, self.stream, address)

    def read(self, address, size):
        value = torch.empty(size, dtype=torch.uint8, device="cuda")
        self.library.fp8rt_memory_copy(DEVICE, value.data_ptr(), address, size, self.stream)
        return value


class Call:
    """A call of a function with these tensors; a step, if the program has a state."""

    def __init__(self, place, function, values):
        self.place, self.function, self.values = place, function, values
        self.arguments = [tensor(list(value.shape), value.data_ptr()) for value in values]
        program = function.program
        self.state = program.create_state() if program.has_state else 0

    def __call__(self):
        """Throws the results away."""
        for result in self.run():
            self.place.free(result.allocated)

    def run(self):
        if self.place.handle:
            self.place.follow()
        results = self.function.call(self.arguments, self.state, self.place.handle)
        if self.state:
            self.function.program.update(self.state, self.place.handle)
        return results

    def read(self):
        """The bits of each result, as integers of the elements' width."""
        values = []
        for info, result in zip(self.function.results, self.run()):
            extents = [result.sizes[i] for i in range(info.rank)]
            strides = [result.strides[i] for i in range(info.rank)]
            span = 1 + sum((extent - 1) * stride for extent, stride in zip(extents, strides))
            bits = self.place.read(result.data, span * info.width)
            self.place.free(result.allocated)
            integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[info.width]
            values.append(bits.view(integer).as_strided(extents, strides).contiguous())
        return values

    def profile(self, steps):
        """What each kernel, and copies, took of a step: launches, ms, bytes and operations."""
        library, handle = self.function.program.library, self.place.handle
        library.fp8rt_context_start_profile(handle)
        for _ in range(steps):
            self()
        library.fp8rt_context_stop_profile(handle)
        rows, entry = {}, abi.structs.fp8rt_profile_entry()
        for i in range(library.fp8rt_context_get_profile_size(handle)):
            library.fp8rt_context_get_profile_entry(handle, i, ctypes.byref(entry))
            row = rows.setdefault(entry.name.decode(), dict.fromkeys(
                ("launches", "ms", "bytes", "flops"), 0))
            row["launches"] += 1 / steps
            row["ms"] += entry.duration_ms / steps
            row["bytes"] += entry.bytes / steps
            row["flops"] += entry.flops / steps
        return [{"name": name, **row}
                for name, row in sorted(rows.items(), key=lambda item: -item[1]["ms"])]


def run_shapes(run_shape, folder, args):
    """The rows that `run_shape(gpu, folder, shape, args)` returns, recorded as they come, and
    why there are none of other shapes, by their names."""
    show_machine()
    rows, failed = [], {}
    with torch.cuda.stream(torch.cuda.Stream()):
        gpu = Gpu(open_library(args.build_dir, folder))
        for shape in args.shapes:
            try:
                rows.append(run_shape(gpu, folder, shape, args))
            except Exception as error:
                failed[get_name(shape)] = describe(error)
                print(f"{get_name(shape)} failed: {failed[get_name(shape)]}", flush=True)
            torch.cuda.empty_cache()
            write_record(args.out, rounds=args.rounds, failed=failed, rows=rows)
    return rows, failed
