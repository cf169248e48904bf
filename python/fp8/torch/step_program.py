"""The numbers of a step computed on a GPU, where the number of steps or the learning rate is there: one
launch, which waits for nothing."""

import functools
import struct

import fp8

# Bits of a number of steps: f32 has no odd numbers beyond.
_BITS = 25


def _write_number(value):
    """A literal of f64 with all of its bits."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"


def find_lerp(rule, beta1):
    """What the difference of gradient and mean is multiplied by, and added to the nearer of both."""
    weight = 1 - beta1
    # Rounded to f32 before one is taken away, as torch.lerp has it.
    return struct.unpack("f", struct.pack("f", weight))[0] - 1 if "late" in rule.options else weight


def find_lerps(rule, momentum):
    """The same of Muon's buffer, and of what it takes with Nesterov's momentum of buffer and gradient."""
    narrow = struct.unpack("f", struct.pack("f", momentum))[0]
    return find_lerp(rule, momentum), momentum if "low" in rule.options else narrow - 1


class _Lines:
    def __init__(self):
        self.lines, self._count = [], 0

    def emit(self, text, kind="f64"):
        self._count += 1
        self.lines.append(f"    %n{self._count} = {text} : {kind}")
        return f"%n{self._count}"

    def constant(self, value):
        return self.emit(f"arith.constant {_write_number(value)}")

    def power(self, base, steps):
        """A constant to the power of a number of steps, i32, by squares: the same on each machine."""
        result, square = self.constant(1.0), self.constant(base)
        one, zero = self.emit("arith.constant 1", "i32"), self.emit("arith.constant 0", "i32")
        for bit in range(_BITS):
            place = self.emit(f"arith.constant {bit}", "i32")
            shifted = self.emit(f"arith.shrui {steps}, {place}", "i32")
            is_set = self.emit(f"arith.cmpi ne, {self.emit(f'arith.andi {shifted}, {one}', 'i32')}, {zero}", "i32")
            result = self.emit(f"arith.select {is_set}, {self.emit(f'arith.mulf {result}, {square}')}, {result}")
            square = self.emit(f"arith.mulf {square}, {square}")
        return result


def write(rule, constants, reads_lr, reads_found):
    """The text of `count(step[, found_inf], lr, numbers)`: adds one to the step, unless the gradients are not
    finite, and writes the numbers of a Rule in the order of its factors. `constants` are those of a group that the
    rule takes (step_factors.py), and the weight decay."""
    lines = _Lines()
    names = [name for name in rule.factors if name not in ("grad_scale", "found_inf", "clip", "count")]
    arguments = ["%lr: memref<1x1xf32>" if reads_lr else "%lr_n: f64", f"%numbers: memref<1x{len(names)}xf32>"]
    lines.lines.append("    %zero = arith.constant 0 : index")
    lr = "%lr_n"
    if reads_lr:
        lr = lines.emit(f"arith.extf {lines.emit('memref.load %lr[%zero, %zero]', 'memref<1x1xf32>')}", "f32 to f64")
    one = lines.constant(1.0)
    *others, decay = constants
    decayed = lines.emit(f"arith.mulf {lr}, {lines.constant(decay)}")
    is_beside = rule.kind in ("adamw", "lion", "muon")
    numbers = {"decay": lines.emit(f"arith.subf {one}, {decayed}") if is_beside else lines.constant(decay)}
    if not rule.counts:
        _write_others(rule, lines, numbers, lr, others)
    else:
        arguments.insert(0, "%step: memref<1x1xf32>")
        _write_moments(rule, lines, numbers, lr, one, others, reads_found)
        if reads_found:
            arguments.insert(1, "%found: memref<1x1xf32>")
    for i, name in enumerate(names):
        lines.lines.append(f"    %at{i} = arith.constant {i} : index")
        narrow = lines.emit(f"arith.truncf {numbers[name]}", "f64 to f32")
        lines.lines.append(f"    memref.store {narrow}, %numbers[%zero, %at{i}] : memref<1x{len(names)}xf32>")
    # What is done once would be done by the host, which waits for the GPU to read the step.
    return (f"func.func @count({', '.join(arguments)}) {{\n  %c2 = arith.constant 2 : index\n"
            "  scf.forall (%i) in (%c2) {\n    %c0 = arith.constant 0 : index\n"
            "    %is_first = arith.cmpi eq, %i, %c0 : index\n    scf.if %is_first {\n"
            + "\n".join(lines.lines) + "\n    }\n  } {fp8.tiles}\n  return\n}\n")


def _write_others(rule, lines, numbers, lr, constants):
    """Numbers of rules that do not depend on how many steps there were."""
    if rule.kind == "muon":
        lr = lines.emit(f"arith.mulf {lr}, {lines.constant(constants[0])}")
    numbers["step_size"] = lines.emit(f"arith.negf {lr}")
    if rule.kind == "sgd":
        momentum, dampening = constants
        numbers.update(momentum=lines.constant(momentum), damp=lines.constant(1 - dampening))
    elif rule.kind == "lion":
        (beta1, beta2) = constants
        numbers.update(beta1=lines.constant(beta1), rest=lines.constant(1 - beta1), beta2=lines.constant(beta2),
                       square=lines.constant(1 - beta2))
    elif rule.kind == "momentum":
        numbers.update(zip(("lerp", "momentum"), map(lines.constant, find_lerps(rule, constants[0]))))


def _write_moments(rule, lines, numbers, lr, one, constants, reads_found):
    beta1, beta2, eps = constants
    before = lines.emit("memref.load %step[%zero, %zero]", "memref<1x1xf32>")
    added = lines.emit("arith.constant 1.0", "f32")
    if reads_found:
        found = lines.emit("memref.load %found[%zero, %zero]", "memref<1x1xf32>")
        added = lines.emit(f"arith.subf {added}, {found}", "f32")
    step = lines.emit(f"arith.addf {before}, {added}", "f32")
    lines.lines.append(f"    memref.store {step}, %step[%zero, %zero] : memref<1x1xf32>")
    count = lines.emit(f"arith.fptosi {step}", "f32 to i32")
    first, second = (lines.emit(f"arith.subf {one}, {lines.power(beta, count)}") for beta in (beta1, beta2))
    numbers.update(
        lerp=lines.constant(find_lerp(rule, beta1)), beta2=lines.constant(beta2),
        square=lines.constant(1 - beta2), step_size=lines.emit(f"arith.divf {lr}, {first}"),
        root=lines.emit(f"math.sqrt {second}"), eps=lines.constant(eps))


@functools.lru_cache(maxsize=None)
def compile(rule, constants, reads_lr, reads_found, target):
    """The function, compiled."""
    return fp8.compile(write(rule, constants, reads_lr, reads_found), target=target).functions["count"]
