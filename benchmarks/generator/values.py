"""What random programs are made of: dimensions, tensors, scaled tensors, arguments."""

from dataclasses import dataclass, field

# Bits of the significand.
BITS = {"f32": 24, "bf16": 8, "f16": 11}


@dataclass(eq=False)
class Dim:
    """An extent that several tensors have; `is_open` if it shows at run time."""

    name: str
    size: int
    is_open: bool = False

    def __str__(self):
        return "?" if self.is_open else str(self.size)


def spell(extents, element):
    return f"tensor<{''.join(f'{extent}x' for extent in extents)}{element}>"


@dataclass(eq=False)
class Value:
    """A tensor. All of it is multiples of 2^grid[0] that are at most 2^grid[1], if it has a
    grid: then sums of few of them are the same in any order."""

    name: str
    dims: list
    element: str
    grid: tuple = None

    @property
    def type(self):
        return spell(self.dims, self.element)

    @property
    def elements(self):
        return count(self.dims)


@dataclass(eq=False)
class Scaled:
    """Codes with factors."""

    name: str
    dims: list
    code: str
    block: list
    scale: str

    @property
    def type(self):
        tensor_scale = ", tensor_scale = f32" if self.code == "f4E2M1FN" else ""
        return (f"!fp8.scaled<{'x'.join(map(str, [*self.dims, self.code]))}, "
                f"block = [{', '.join(self.block)}], scale = {self.scale}{tensor_scale}>")

    @property
    def elements(self):
        return count(self.dims)

    @property
    def grid(self):
        """The type of the factors, without its element."""
        return get_grid(self.dims, self.block)


@dataclass(eq=False)
class Argument:
    """`kind` is how it is drawn (drawing.py)."""

    name: str
    shape: list
    element: str
    type: str
    kind: str
    attributes: list = field(default_factory=list)


def count(dims):
    product = 1
    for dim in dims:
        product *= dim.size
    return product


def get_grid(dims, block):
    """The extents of the factors, as text."""
    return [str(dim) if extent == "1" else "1" if extent == "*" else "?" if dim.is_open
            else str(-(-dim.size // int(extent))) for dim, extent in zip(dims, block)]


def get_grid_shape(dims, block):
    """The same, as numbers."""
    return [1 if extent == "*" else -(-dim.size // int(extent))
            for dim, extent in zip(dims, block)]
