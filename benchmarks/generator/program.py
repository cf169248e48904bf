"""Random programs: one function of a seed, its recipe and its arguments."""

import re

from generator import product_steps, scaled_steps, tensor_steps
from generator.builder import Builder, indent
from generator.values import Value, spell

RECIPES = ["none", "none", "none", "current", "current,pow2=true", "current,accumulate=fast", "rowwise",
           "rowwise,pow2=true", "block", "block,pow2=false", "mxfp8", "mxfp8,mode=floor",
           "mxfp8,weight_2d=true", "nvfp4", "nvfp4,weight_2d=true", "delayed,amax_history_len=2"]
CONSTANTS = {"half_f32": "0.5 : f32", "one_f32": "1.0 : f32", "minus_f32": "-8.0 : f32",
             "eight_f32": "8.0 : f32", "low_f32": "0xFF800000 : f32",
             **{f"zero_{element}": f"0.0 : {element}" for element in ("f32", "bf16", "f16")}}


class Program(Builder):
    def __init__(self, seed):
        super().__init__(seed)
        self.seed = seed
        for _ in range(4):
            self.make_dim()
        for _ in range(self.choice([1, 2, 2, 3])):
            self.argument(self.pick_dims(self.choice([1, 2, 2, 2, 3, 3, 4])))
        self.recipe = self.choice(RECIPES)
        # Take few kinds of step for a program, so that there are chains of each.
        steps = self.choice([tensor_steps.STEPS, scaled_steps.STEPS + tensor_steps.STEPS,
                             product_steps.STEPS + scaled_steps.STEPS,
                             product_steps.STEPS + tensor_steps.STEPS])
        for _ in range(self.choice([1, 1, 2, 3, 4, 6, 8])):
            self.choice(steps)(self)
        self.name = f"p{seed}"
        self.finish()
        self.head = [f"%{name} = arith.constant {value}" for name, value in CONSTANTS.items()]
        self.head += [f"%c{i} = arith.constant {i} : index" for i in range(5)]
        self.head += self.get_open_sizes()

    @property
    def has_state(self):
        return self.recipe.startswith("delayed")

    def argument_of(self, dims):
        """A new tensor, some of whose extents are 1 and no dimension."""
        type_ = spell(dims, "f32")
        name = self.argue([dim.size for dim in dims], "f32", type_, "normal")
        return Value(name, dims, "f32")

    def finish(self):
        """What nothing else is made of are the results, and some more."""
        text = "\n".join(self.lines)
        for value in self.values:
            if value.name.startswith("%arg"):
                continue
            is_used = len(re.findall(rf"{value.name}\b", text)) > 1
            if not is_used or self.chance(0.3):
                self.results.append(value)
        if not self.results:
            x = self.values[0]
            lines, name, _ = self.expression([x], "f32")
            self.results.append(self.generic([x], x.dims, self.new(x.dims, "f32"),
                                             indent([*lines, f"linalg.yield {name} : f32"])))

    def get_open_sizes(self):
        """Lines for the extents that show at run time, of arguments that have them."""
        lines, known = [], {line.split(" ")[0] for line in self.lines}
        for dim in self.dims:
            if not dim.is_open or f"%size_{dim.name}" in known:
                continue
            for value in self.values:
                if value.name.startswith("%arg") and dim in value.dims:
                    at = value.dims.index(dim)
                    lines.append(f"%size_{dim.name} = tensor.dim {value.name}, %c{at} : {value.type}")
                    break
            else:
                name = self.argue([], "index", "index", f"size {dim.size}")
                lines.append(f"%size_{dim.name} = arith.addi {name}, %c0 : index")
        return lines

    def write(self, recipe=""):
        """The function, under the recipe of its module or, as an attribute, another one."""
        arguments = []
        for argument in self.arguments:
            attributes = f" {{{', '.join(argument.attributes)}}}" if argument.attributes else ""
            arguments.append(f"{argument.name}: {argument.type}{attributes}")
        types = ", ".join(value.type for value in self.results)
        body = "\n  ".join([*self.head, *self.lines])
        more = f" attributes {{fp8.recipe = {spell_recipe(recipe)}}}" if recipe else ""
        return (f"func.func @{self.name}({', '.join(arguments)}) -> ({types}){more} {{\n  {body}\n"
                f"  return {', '.join(value.name for value in self.results)} : {types}\n}}\n")


def spell_recipe(recipe):
    """`name,key=value` as an attribute."""
    name, *settings = recipe.split(",")
    body = ", ".join(setting.replace("=", " = ") for setting in settings)
    return f"#fp8.{name}" + (f"<{body}>" if body else "")


def write_module(programs):
    """The text of some programs, and the recipe that it is to be compiled with."""
    if len(programs) == 1:
        return programs[0].write(), programs[0].recipe
    return "\n".join(program.write(program.recipe) for program in programs), "none"


def make_batches(seeds, size):
    """Programs that are compiled together, for the sake of time: a scaling state is all of a
    module's."""
    batch = []
    for seed in seeds:
        program = Program(seed)
        if program.has_state:
            yield [program]
            continue
        batch.append(program)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
