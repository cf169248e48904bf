"""What every recipe does to the tensors of a program: `python -m fp8 report`.

The program runs on the CPU under each recipe, with statistics of every tensor that is
quantized (docs/GettingStarted.md#statistics); report_page.py makes a page of it.
"""

import contextlib
import json
import math
import os
import re
from dataclasses import dataclass, field

import numpy as np

import fp8
from fp8 import _core
from fp8.errors import ArgumentError, CompileError

# In the order of what they cost: docs/Report.md says how one is chosen.
RECIPES = ("current", "delayed", "rowwise", "block", "mxfp8", "nvfp4")
# A product that a cheaper recipe computes within so many dB of the best of 8 bits gets that.
MARGIN = 1.0


@dataclass(frozen=True)
class Stats:
    """One tensor under one recipe: amax; shares of elements that became zero, and that were beyond
    the largest code; and the ratio of energies in dB, inf for a copy without error."""

    amax: float
    underflow: float
    saturation: float
    sqnr: float


@dataclass(frozen=True)
class Histogram:
    """How many elements have a magnitude from 2^low on, for each power of two; and how many
    are zero, and not finite."""

    low: int
    counts: tuple
    zeros: int
    others: int

    @property
    def total(self):
        return sum(self.counts) + self.zeros + self.others


@dataclass
class Product:
    """A matrix product. `decibels` has the ratio of its energy to that of the error that both
    operands bring, by recipe, in the order of what those cost. `reasons` a (reason, suggestion) by recipe that does not
    compute it in FP8; `operands` the names of the tensors it multiplies."""

    name: str
    role: str
    shape: str
    decibels: dict = field(default_factory=dict)
    reasons: dict = field(default_factory=dict)
    operands: tuple = ()
    computed: list = field(default_factory=list)  # By these recipes.

    @property
    def best(self):
        """The most exact recipe of 8 bits, or None."""
        return max((recipe for recipe in self.decibels if not recipe.startswith("nvfp4")),
                   key=self.decibels.get, default=None)

    def get_gap(self, recipe):
        """How many dB a recipe is below the best, 0 or less."""
        value, best = self.decibels.get(recipe, -math.inf), self.decibels[self.best]
        return 0.0 if value == best else value - best

    def choose(self):
        """(recipe, why) of the one that this product should have."""
        best = self.best
        if best is None:
            return next(((recipe, "its operands were not measured") for recipe in self.computed),
                        ("none", "no recipe computes it in FP8"))
        chosen = next(recipe for recipe in self.decibels
                      if self.get_gap(recipe) >= -MARGIN and not recipe.startswith("nvfp4"))
        if self.get_gap(chosen) == 0:
            return chosen, "no other is more exact"
        return chosen, f"within {MARGIN:g} dB of {best}, which costs more"


@dataclass
class Measurements:
    """All of a program: Stats by tensor and recipe, Histograms by tensor, Products."""

    program: str
    function: str
    recipes: tuple
    tensors: dict = field(default_factory=dict)
    histograms: dict = field(default_factory=dict)
    products: dict = field(default_factory=dict)
    failures: dict = field(default_factory=dict)  # Recipes that do not compile, and why.

    def __str__(self):
        """The dB of each product under each recipe, and what its layer should have."""
        if not self.products:
            return f"{self.program}: no matrix products"
        chosen = self.choose_layers()
        rows = [["dB", "shape", *self.recipes, "recipe"]]
        for product in self.products.values():
            values = [f"{product.decibels[recipe]:.1f}" if recipe in product.decibels else "-" for recipe in self.recipes]
            rows.append([product.name, product.shape, *values, chosen[get_layer(product.name)]])
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join(f"{cell:{'<' if place < 2 else '>'}{width}}" for place, (cell, width) in enumerate(zip(row, widths)))
                 for row in rows]
        return "\n".join([*lines, *(f"{recipe}: {why}" for recipe, why in self.failures.items())])

    def choose_layers(self):
        """{layer: recipe}, of products by what they are called without `.dgrad` and `.wgrad`: the first
        recipe that each of a layer's products could have (Product.choose)."""
        layers = {}
        for product in self.products.values():
            layers.setdefault(get_layer(product.name), []).append(product)
        return {layer: _choose_together(products, self.recipes) or products[0].choose()[0]
                for layer, products in layers.items()}

    def write_recipe_file(self):
        """The recipe file (docs/Recipes/RecipeFile.md) with what `choose_layers` says."""
        def escape(name):
            return re.sub(r"([][*?{}\\])", r"\\\1", name)
        rules = [{"match": escape(layer) + end, "recipe": recipe}
                 for layer, recipe in self.choose_layers().items() for end in ("", ".[dw]grad")
                 if not end or any(f"{layer}.{role}" in self.products
                                   for role in ("dgrad", "wgrad"))]
        lines = ",\n".join(f"    {json.dumps(rule)}" for rule in rules)
        return f'{{\n  "version": 1,\n  "rules": [\n{lines}\n  ]\n}}\n'


def get_layer(name):
    """The layer that a product is of."""
    return re.sub(r"\.[dw]grad$", "", name)


def _choose_together(products, recipes):
    """The recipe of a layer with several products: the first that computes each within MARGIN of its
    best, else the one that is least far from that."""
    products = [product for product in products if product.best is not None]
    gaps = {recipe: min(product.get_gap(recipe) for product in products)
            for recipe in recipes if products and not recipe.startswith("nvfp4")}
    near = [recipe for recipe, gap in gaps.items() if gap >= -MARGIN]
    return near[0] if near else max(gaps, key=gaps.get, default=None)


def measure(program, inputs, function=None, recipes=RECIPES, note=lambda text: None):
    """Measurements of a program.

    - program: MLIR as compile takes it, text or a path;
    - inputs: arrays by the names of the function's arguments;
    - recipes: as compile takes them, in the order of what they cost;
    - function: its name, needed where there are several;
    - note: called with a line for each step.

    Raises ArgumentError for inputs that are missing or do not fit, and what compile raises
    where no recipe compiles.
    """
    return Plan(program, function, recipes, note).measure(inputs)


class Plan:
    """A program that was compiled under every recipe, for inputs of any number; arguments as
    `measure` and fp8.compile have them."""

    def __init__(self, program, function=None, recipes=RECIPES, note=lambda text: None, cache=False):
        self.name = "program" if "\n" in str(program) else os.path.basename(program)
        self.recipes, self.failures, self._note = tuple(recipes), {}, note
        self._cache = cache
        self._versions, self._histograms = {}, None
        for recipe in recipes:
            note(f"{recipe}: compiling")
            try:
                compiled = fp8.compile(program, recipe, target="cpu", stats=True, cache=cache)
                text = fp8.emit(program, "mlir", recipe, target="cpu", stats=True, to="fusion").decode()
            except CompileError as error:
                self.failures[recipe] = error
                continue
            called = _find_function(compiled, function)
            self._versions[recipe] = compiled, called, _Text(text, called.name)
        if not self._versions:
            raise next(iter(self.failures.values()))

    def measure(self, inputs):
        """Measurements for inputs. Raises ArgumentError."""
        result = Measurements(self.name, "", self.recipes, failures=self.failures)
        for recipe, (compiled, called, text) in self._versions.items():
            self._note(f"{recipe}: running")
            result.function = called.name
            stats = _run(compiled, called, _collect(called, inputs))
            for name, values in stats.items():
                result.tensors.setdefault(name, {})[recipe] = values
            _add_products(result, recipe, compiled, text, stats)
        self._note("histograms")
        if self._histograms is None:
            self._histograms = _Histograms(*next(iter(self._versions.values()))[1:], self._cache)
        result.histograms = self._histograms.measure(inputs)
        return result


def _find_function(program, name):
    if name is not None:
        return program[name]
    if len(program.functions) != 1:
        raise ArgumentError(f"expected one of the functions {', '.join(program.functions)} to be "
                            f"named, since the program has several")
    return next(iter(program.functions.values()))


def _collect(function, inputs):
    missing = [info.name for info in function.arguments if info.name not in inputs]
    if missing:
        raise ArgumentError(f"expected {', '.join(missing)} among the inputs of "
                            f"'{function.name}', but got {', '.join(inputs) or 'none'}")
    return [inputs[info.name] if info.shape is not None else np.asarray(inputs[info.name]).item()
            for info in function.arguments]


def _run(program, function, arguments):
    """Stats by the names of tensors."""
    state = fp8.State(program) if function.takes_state else None
    if state is not None:  # One step to learn scales, another to use them.
        function(*arguments, state=state)
        state.end_step()
    _core.reset_stats()
    function(*arguments, state=state)
    found = {}
    for name, (calls, amax, count, underflow, saturated, signal, noise) in zip(
            program.manifest.get("stats") or (), _core.get_stats()):
        if calls:
            sqnr = math.inf if noise == 0 else (
                10 * math.log10(signal / noise) if signal > 0 and noise == noise else -math.inf)
            found[name] = Stats(amax, underflow / count if count else 0.0,
                                saturated / count if count else 0.0, sqnr)
    return found


def _add_products(result, recipe, program, text, stats):
    operands = text.find_operands()
    for remark in program.remarks:
        if remark.kind == "copy":
            continue
        product = result.products.setdefault(
            remark.name, Product(remark.name, remark.role, remark.shape))
        if remark.kind != "fp8":
            product.reasons[recipe] = remark.reason, remark.suggestion
            continue
        product.computed.append(recipe)
        product.operands = operands.get(remark.name, ())
        known = [stats[name].sqnr for name in product.operands if name in stats]
        if len(known) == 2:
            noise = sum(10 ** (-value / 10) for value in known)
            product.decibels[recipe] = -10 * math.log10(noise) if noise else math.inf


class _Text:
    """A function of a program after `to=fusion` with statistics, as it is printed: an operation
    of its body stands four columns in."""

    def __init__(self, text, name):
        self.text = text
        self.slots = re.findall(r'"([^"]*)"', text.partition("fp8.stats_slots = [")[2]
                                .partition("]")[0])
        self._lines = text.splitlines()
        starts = [i for i, line in enumerate(self._lines)
                  if re.match(rf'  func\.func (?:private |public )?@"?{re.escape(name)}"?\(', line)]
        self._start = starts[0] if starts else len(self._lines)
        self._end = next((i for i in range(self._start, len(self._lines))
                          if self._lines[i] == "  }"), self._start)
        self.measured = self._find_measured()

    def _find_measured(self):
        """(slot, source, its type, codes) of each tensor that the body itself records; a state
        measures some for itself."""
        numbers, measures, found = {}, {}, []
        for line in self._lines[self._start:self._end]:
            if match := re.match(r"    (%[\w]+) = arith\.constant (\d+) : i64", line):
                numbers[match[1]] = int(match[2])
            elif match := re.match(r"    (%\w+), .* = fp8\.measure (%[\w#]+), (%[\w#]+) : "
                                   r"(tensor<[^>]*>)", line):
                measures[match[1]] = match[2], match[4], match[3]
            elif match := re.match(r"    call @fp8rt_stats_record\((%\w+), (%\w+),", line):
                if match[1] in numbers and match[2] in measures:
                    found.append((self.slots[numbers[match[1]]], *measures[match[2]]))
        return found

    def find_operands(self):
        """The names of the measured tensors that a product multiplies, by the product's name."""
        codes = {value: slot for slot, _, _, value in self.measured}
        defined, products, operands = {}, {}, None
        for line in self._lines[self._start:self._end]:
            match = re.match(r"    (%[\w:, %]+) = ([\w.]+)(.*)", line)
            if match:
                used = re.findall(r"%[\w#]+", match[3])
                for value in match[1].split(", "):
                    defined[value.partition(":")[0]] = used
                operands = used[:2] if match[2] == "fp8.matmul" else operands
            name = re.search(r'fp8\.name = "([^"]*)"', line)
            if name and operands is not None:
                products[name[1]] = tuple(filter(None, (
                    self._trace(value, defined, codes) for value in operands)))
                operands = None
        return products

    @staticmethod
    def _trace(value, defined, codes):
        """The slot of the codes that a value is a transposed, padded or other view of."""
        for _ in range(16):
            if value in codes or not defined.get(value):
                break
            value = defined[value][0]
        return codes.get(value)

    def write_sources(self):
        """The program with the sources of measured tensors for results, each once, and their
        names; None where there are none."""
        sources = {source: (slot, kind) for slot, source, kind, _ in reversed(self.measured)}
        if not sources:
            return None
        header, end = self._lines[self._start], self._lines[self._start].index("(")
        depth, is_quoted = 0, False
        for end in range(end, len(header)):
            is_quoted ^= header[end] == '"'
            depth += 0 if is_quoted else (header[end] == "(") - (header[end] == ")")
            if depth == 0 and not is_quoted:
                break
        types = ", ".join(kind for _, kind in sources.values())
        body = [line for line in self._lines[self._start + 1:self._end]
                if not line.startswith("    return") and " = fp8.measure " not in line
                and "@fp8rt_stats_record" not in line]
        # Without the statistics, which would be recorded again, and without other functions.
        return "\n".join(["module {", f"{header[:end + 1]} -> ({types}) {{", *body,
                          f"    return {', '.join(sources)} : {types}", "  }", "}"]), [
                              slot for slot, _ in sources.values()]


class _Histograms:
    """What computes the tensors that a function measures; of those in the body of a loop, or where
    the function calls another, none."""

    def __init__(self, function, text, cache):
        self._function, self._sources, self._program = function, {}, None
        written = text.write_sources()
        if written is None:
            return
        program, self._names = written
        with contextlib.suppress(CompileError):
            self._program = fp8.compile(program, None, target="cpu", cache=cache)
            self._sources = {slot: source for slot, source, _, _ in text.measured}

    def measure(self, inputs):
        """Histograms by the names of tensors."""
        if self._program is None:
            return {}
        values = self._program[self._function.name](*_collect(self._function, inputs))
        values = values if isinstance(values, tuple) else (values,)
        found = {self._sources[name]: make_histogram(value)
                 for name, value in zip(self._names, values)}
        return {slot: found[source] for slot, source in self._sources.items() if source in found}


def make_histogram(array):
    """The Histogram of an array of floats."""
    values = np.abs(np.asarray(array).astype(np.float64)).ravel()
    finite = values[np.isfinite(values)]
    positive = finite[finite > 0]
    if not positive.size:
        return Histogram(0, (), int(finite.size), int(values.size - finite.size))
    exponents = np.frexp(positive)[1] - 1  # 2^e <= x < 2^(e + 1).
    low = int(exponents.min())
    return Histogram(low, tuple(int(count) for count in np.bincount(exponents - low)),
                     int(finite.size - positive.size), int(values.size - finite.size))
