"""One random program on a CPU with a tensor core's sums and on a GPU's model."""

import tempfile
from pathlib import Path

from generator.drawing import draw_arguments, is_near, make_canonical
from generator.program import write_module

STEPS = 3  # Calls of a program with a scaling state.


def get_inputs(program):
    import ml_dtypes
    import numpy as np

    dtypes = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "i32": np.int32,
              "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
              "f8E8M0FNU": ml_dtypes.float8_e8m0fnu, "f4E2M1FN": np.uint8, "index": np.int64}
    found = draw_arguments(program.seed, [(argument.shape, argument.element, argument.kind)
                                          for argument in program.arguments])
    inputs = []
    for argument, data in zip(program.arguments, found):
        array = np.frombuffer(data, dtypes[argument.element]).reshape(argument.shape)
        inputs.append(array.copy() if argument.type.startswith("tensor") else array.item())
    return inputs


def call(compiled, program, keep=None):
    """The results of all steps, one after the other; the state goes to `keep`."""
    import fp8

    inputs, function = get_inputs(program), compiled.functions[program.name]
    state = fp8.State(compiled) if function.takes_state else None
    results = []
    for _ in range(STEPS if state else 1):
        found = function(*inputs, state=state)
        results += found if isinstance(found, tuple) else [found]
        if state:
            state.end_step()
    if state and keep:
        state.save(keep)
    return results


def differ(program, expected, actual):
    """What of the results is not the same, in words."""
    import numpy as np

    for i, (one, other) in enumerate(zip(expected, actual, strict=True)):
        value = program.results[i % len(program.results)]
        one, other = np.asarray(one), np.asarray(other)
        what = f"result {i} {value.name} of {one.dtype}{list(one.shape)}"
        if one.shape != other.shape:
            return f"{what} is of {list(other.shape)}"
        if value.name in program.near:
            if not is_near(*program.near[value.name], *(list(map(float, array.flat))
                                                        for array in (one, other))):
                return f"{what} is not near the CPU's"
            continue
        data = [make_canonical(array.tobytes(), value.element) for array in (one, other)]
        if data[0] != data[1]:
            flat = [np.frombuffer(part, np.uint8).reshape(one.size, -1) for part in data]
            wrong = np.flatnonzero((flat[0] != flat[1]).any(axis=1))
            first = int(wrong[0])
            return (f"{len(wrong)} of {one.size} wrong in {what}, the first at {first}: expected "
                    f"{one.flat[first]!r}, but got {other.flat[first]!r}")
    return ""


class Pair:
    """Some programs for a CPU and for a GPU; a text in place of what is refused."""

    def __init__(self, programs, target, recipe=None):
        import fp8

        text, own = write_module(programs)
        self.target, self.compiled, self.refused = target, {}, []
        for where, options in (("cpu", {"accumulate": "tensor-core", "accumulation_of": target}), (target, {})):
            try:
                self.compiled[where] = fp8.compile(text, recipe or own, target=where, cache=False,
                                                   **options)
            except fp8.Error as error:
                self.refused.append(f"{where}: {type(error).__name__}: {error}")

    def check(self, program, keep=None):
        """A word for what came of it, what is wrong, and the GPU's results."""
        import fp8

        refused, results = list(self.refused), []
        for where, compiled in self.compiled.items():
            try:
                results.append(call(compiled, program, None if where == self.target else keep))
            except fp8.Error as error:
                refused.append(f"{where}: {type(error).__name__}: {error}")
                if isinstance(error, fp8.DeviceError):
                    return "lost", "\n".join(refused), []
        if refused:
            return "refused", "\n".join(refused), []
        wrong = differ(program, *results)
        return ("differs" if wrong else "same"), wrong, results[1]


def check_static(program, target, state):
    """With the scales that a state has learned."""
    status, text, _ = Pair([program], target, f"static,state={state}").check(program)
    return status, text and f"static: {text}"


def check_batch(programs, target):
    """For each program of a batch: itself, a word, what is wrong, and the GPU's results."""
    pair = Pair(programs, target)
    if pair.refused and len(programs) > 1:
        for program in programs:
            yield from check_batch([program], target)
        return
    for program in programs:
        with tempfile.TemporaryDirectory() as folder:
            state = Path(folder, "state.safetensors")
            status, text, results = pair.check(program, state)
            if status == "same" and state.exists():
                status, text = check_static(program, target, state)
        yield program, status, text, results
