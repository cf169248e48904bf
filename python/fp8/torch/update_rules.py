"""The arithmetic of optimizers on an element, in f32, with the roundings of torch.optim's fused forms on a CPU
with FMA, and of its other forms where there is no fused one."""

from collections import namedtuple


class Body:
    """Arithmetic on elements, a line for each operation."""

    def __init__(self):
        self.lines, self._count, self._known = [], 0, {}

    def emit(self, text, kind="f32"):
        if (text, kind) in self._known:
            return self._known[text, kind]
        self._count += 1
        self.lines.append(f"    %e{self._count} = {text} : {kind}")
        self._known[text, kind] = f"%e{self._count}"
        return f"%e{self._count}"

    def widen(self, value, element):
        return value if element == "f32" else self.emit(f"arith.extf {value}", f"{element} to f32")

    def round(self, value, element):
        return value if element == "f32" else self.emit(f"arith.truncf {value}", f"f32 to {element}")

    def number(self, value):
        return self.emit(f"arith.constant {value!r}")

    def integer(self, value):
        """A constant of 32 bits, as a number with a sign."""
        return self.emit(f"arith.constant {value - (value >> 31 << 32)}", "i32")

    def bits(self, value):
        return self.emit(f"arith.bitcast {value}", "f32 to i32")

    def unbits(self, value):
        return self.emit(f"arith.bitcast {value}", "i32 to f32")

    def select(self, condition, one, other, kind="f32"):
        return self.emit(f"arith.select {condition}, {one}, {other}", kind)

    def compare(self, predicate, one, other):
        return self.emit(f"arith.cmpf {predicate}, {one}, {other}")

    def combine(self, operation, one, other):
        """An operation on integers of 32 bits; a number stands for a constant."""
        other = self.integer(other) if isinstance(other, int) else other
        return self.emit(f"arith.{operation} {one}, {other}", "i32")

    def rough_div(self, one, other):
        return self.emit(f"arith.divf {one}, {other} fastmath<afn> {{fp8.rough}}")

    def rough_sqrt(self, value):
        return self.emit(f"math.sqrt {value} fastmath<afn> {{fp8.rough}}")

    def __getattr__(self, name):
        operation = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf",
                     "max": "arith.maximumf", "fma": "math.fma", "sqrt": "math.sqrt", "neg": "arith.negf"}[name]
        return lambda *values: self.emit(f"{operation} {', '.join(values)}")


_ADAM = ("decay", "lerp", "beta2", "square", "step_size", "root", "eps")
# Numbers that all parameters share, in the order of arguments.
_FACTORS = {"adamw": _ADAM, "adam": _ADAM, "sgd": ("decay", "momentum", "damp", "step_size"),
            "lion": ("decay", "beta1", "rest", "beta2", "square", "step_size"), "muon": ("decay", "step_size"),
            "momentum": ("lerp", "momentum"), "none": (), "turn": ()}


class Rule(namedtuple("Rule", "kind options", defaults=((),))):
    """The arithmetic of an optimizer: `kind` is adamw, adam, sgd, lion; momentum and muon, which are Muon's before
    and behind its products of matrices; none, which writes codes alone; or turn, which writes those in the other order.

    Options: "decay", "maximize", "amsgrad", "nesterov"; "first", of SGD, whose buffer is not there yet;
    "momentum", of SGD; "late", with a beta1 of up to 1/2, or a momentum of as much; "low", with a momentum of less; "scaled", with GradScaler's
    factor and flag; "clipped", with a factor of all gradients; "drawn", with the number of the step, from which
    random numbers are made.
    """

    __slots__ = ()

    @property
    def moments(self):
        """Names of a parameter's tensors in the optimizer's state."""
        if self.kind in ("adam", "adamw"):
            return ("exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * ("amsgrad" in self.options))
        if self.kind == "lion":
            return ("exp_avg",)
        return ("momentum_buffer",) * ("momentum" in self.options or self.kind == "momentum")

    @property
    def counts(self):
        """Whether numbers depend on how many steps there were."""
        return self.kind in ("adam", "adamw")

    @property
    def is_rough(self):
        """Whether a GPU's approximations do, which are off by far less than what is rounded stochastically."""
        return "drawn" in self.options

    @property
    def has_param(self):
        return self.kind != "momentum"

    @property
    def factors(self):
        """Numbers that all parameters share, in the order of arguments."""
        return (*_FACTORS[self.kind], *["count"] * ("drawn" in self.options),
                *["grad_scale", "found_inf"] * ("scaled" in self.options), *["clip"] * ("clipped" in self.options))

    def write(self, body, p, g, moments, factors):
        """The parameter and the moments behind the step; of "momentum" what is to be orthogonal, and the moments."""
        if "scaled" in self.options and None in moments.values():
            none = body.number(0.0)  # A buffer that is not there yet.
            moments = {name: none if value is None else value for name, value in moments.items()}
        old = p, *moments.values()
        if "scaled" in self.options:
            scale = factors["grad_scale"]
            # The inverse of what all elements have in common is made once.
            g = body.mul(g, body.div(body.number(1.0), scale)) if self.is_rough else body.div(g, scale)
        if "clipped" in self.options:
            g = body.mul(g, factors["clip"])
        if "maximize" in self.options:
            g = body.neg(g)
        compute = getattr(self, f"_write_{'adam' if self.kind == 'adamw' else self.kind}")
        new = compute(body, p, g, moments, factors)
        if "scaled" in self.options:
            keeps = body.compare("one", factors["found_inf"], body.number(0.0))
            new = [after if before is None else body.select(keeps, before, after) for before, after in zip(old, new)]
        return new

    def _write_adam(self, body, p, g, moments, factors):
        mean, square, *most = moments.values()
        if self.kind == "adamw":
            p = body.mul(p, factors["decay"])
        elif "decay" in self.options:
            g = body.fma(p, factors["decay"], g)
        mean = body.fma(body.sub(g, mean), factors["lerp"], g if "late" in self.options else mean)
        square = body.fma(body.mul(factors["square"], g), g, body.mul(factors["beta2"], square))
        most = [body.max(each, square) for each in most]
        if self.is_rough:
            root = body.rough_sqrt((most or [square])[0])
            below = body.fma(root, body.div(body.number(1.0), factors["root"]), factors["eps"])
            change = body.mul(mean, body.neg(factors["step_size"]))
            p = body.fma(change, body.rough_div(body.number(1.0), below), p)
            return [p, mean, square, *most]
        root = body.sqrt((most or [square])[0])
        below = body.add(body.div(root, factors["root"]), factors["eps"])
        p = body.sub(p, body.div(body.mul(factors["step_size"], mean), below))
        return [p, mean, square, *most]

    def _write_sgd(self, body, p, g, moments, factors):
        if "decay" in self.options:
            g = body.fma(p, factors["decay"], g)
        kept = []
        if "momentum" in self.options:
            buffer = g
            if "first" not in self.options:
                before = body.mul(moments["momentum_buffer"], factors["momentum"])
                buffer = body.fma(g, factors["damp"], before)
            kept = [buffer]
            g = body.fma(buffer, factors["momentum"], g) if "nesterov" in self.options else buffer
        return [body.fma(g, factors["step_size"], p), *kept]

    def _write_lion(self, body, p, g, moments, factors):
        mean, = moments.values()
        p = body.mul(p, factors["decay"])
        update = body.add(body.mul(mean, factors["beta1"]), body.mul(g, factors["rest"]))
        zero = body.number(0.0)
        less, more = (body.select(body.compare(predicate, update, zero), body.number(sign), zero)
                      for predicate, sign in (("olt", -1.0), ("ogt", 1.0)))
        p = body.fma(body.add(less, more), factors["step_size"], p)
        return [p, body.fma(g, factors["square"], body.mul(mean, factors["beta2"]))]

    def _write_momentum(self, body, p, g, moments, factors):
        mean, = moments.values()
        mean = body.fma(body.sub(g, mean), factors["lerp"], g if "late" in self.options else mean)
        update = mean
        if "nesterov" in self.options:
            update = body.fma(body.sub(mean, g), factors["momentum"], g if "low" in self.options else mean)
        return [update, mean]

    def _write_muon(self, body, p, g, moments, factors):
        return [body.fma(g, factors["step_size"], body.mul(p, factors["decay"]))]
