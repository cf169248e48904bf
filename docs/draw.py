"""Draws docs/images and prints the table of formats; PYTHONPATH has the package of a build.

usage: draw.py           writes the images
       draw.py --check   says whether they are what it would write
       draw.py --table   prints the table
"""

import json
import sys
from pathlib import Path

import numpy as np

import fp8
from fp8.formats import BF16, E2M1, E4M3, E5M2, E8M0, F16, F32, FORMATS

IMAGES = Path(__file__).parent / "images"
TRAINING = Path(__file__).parent.parent / "benchmarks" / "results" / "training.json"
BLUE, RED, GREY = "#2f6ea5", "#c0392b", "#777777"


class Drawing:
    """An SVG that is being drawn."""

    def __init__(self, width, height, title):
        self._width, self._height = width, height
        self._parts = [f"<title>{title}</title>",
                       f'<rect width="{width}" height="{height}" fill="#ffffff"/>']

    def line(self, x0, y0, x1, y1, color, width=1.0):
        self._parts.append(f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" '
                           f'stroke="{color}" stroke-width="{width}"/>')

    def curve(self, points, color, width=1.5):
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{places}" fill="none" stroke="{color}" '
                           f'stroke-width="{width}"/>')

    def rect(self, x, y, width, height, color):
        self._parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
                           f'height="{height:.1f}" fill="{color}"/>')

    def circle(self, x, y, radius, color):
        self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color}"/>')

    def text(self, x, y, text, color="#333333", anchor="start"):
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" '
                           f'text-anchor="{anchor}">{text}</text>')

    def write(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self._width} '
                f'{self._height}" width="{self._width}" height="{self._height}" '
                f'font-family="sans-serif" font-size="12">\n' + "\n".join(self._parts)
                + "\n</svg>\n")


def draw_formats():
    """The positive values of each format on an axis of powers of two; of those with more than
    8 bits the range."""
    low, high, left, right = -25, 17, 70, 830
    drawing = Drawing(850, 230, "The positive values of the formats")

    def place(value):
        return left + (np.log2(value) - low) / (high - low) * (right - left)

    def clip(value):
        return float(np.clip(place(value), left, right))

    for row, number in enumerate((E4M3, E5M2, E2M1, E8M0, F16, BF16)):
        y = 25 + 30 * row
        drawing.text(8, y + 4, number.name)
        if number.bits > 8:
            drawing.rect(clip(number.min_normal), y - 6,
                         clip(number.max) - clip(number.min_normal), 12, BLUE)
            drawing.rect(clip(number.min_subnormal), y - 2,
                         clip(number.min_normal) - clip(number.min_subnormal), 4, BLUE)
            continue
        values = sorted(value for value in number.values() if 0 < value < np.inf)
        for value in values:
            if low <= np.log2(value) <= high:
                is_normal = value >= number.min_normal
                height = 9 if is_normal else 5
                drawing.line(place(value), y - height, place(value), y + height, BLUE, 0.8)
    for exponent in range(low + 1, high, 4):
        x = place(2.0 ** exponent)
        drawing.line(x, 198, x, 203, GREY)
        drawing.text(x, 218, f"2^{exponent}", GREY, "middle")
    drawing.line(left, 198, right, 198, GREY)
    return drawing.write()


PROGRAM = """
func.func @step(%x: tensor<32x64xf32> {fp8.name = "x"}, %w: tensor<64x32xf32> {fp8.name = "w"})
    -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>) -> tensor<32x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<32x64xf32>, tensor<64x32xf32>)
                     outs(%init : tensor<32x32xf32>) -> tensor<32x32xf32> loc("layer")
  return %y : tensor<32x32xf32>
}
"""
SPIKE, NAN, STEPS, HISTORY = 8, 24, 36, 8


def run_delayed():
    """(amax, largest magnitude that the scale of the step holds, share of elements that
    saturated) of each step."""
    program = fp8.compile(PROGRAM, fp8.DelayedScaling(amax_history_len=HISTORY), target="cpu",
                          cache=False, stats=True)
    state, random = fp8.State(program), np.random.default_rng(0)
    w, rows, before = random.standard_normal((64, 32), np.float32), [], 0
    for step in range(STEPS):
        x = random.standard_normal((32, 64), np.float32)
        x *= 4 / np.abs(x).max()  # The largest magnitude, which else varies by itself.
        x *= 16 if step == SPIKE else 1.15 ** max(0, step - 27)
        if step == NAN:
            x[:] = np.nan
        program(x, w, state=state)
        scale = state.slots["layer.x"].scale
        state.end_step()
        slot = state.slots["layer.x"]
        rows.append((np.abs(x).max(), E4M3.max / scale, (slot.saturated - before) / x.size))
        before = slot.saturated
    return rows


def draw_delayed():
    """What a scale holds, beside what comes."""
    left, right, top, bottom, low, high = 60, 700, 30, 230, 0.0, 9.5
    drawing = Drawing(720, 330, "Delayed scaling, step by step")

    def place(step):
        return left + (step + 0.5) * (right - left) / STEPS

    def height(value):
        return bottom - (np.log2(value) - low) / (high - low) * (bottom - top)

    rows = run_delayed()
    for step, (amax, limit, saturated) in enumerate(rows):
        if step:
            before = height(rows[step - 1][1])
            drawing.line(place(step) - 8.9, before, place(step) - 8.9, height(limit), BLUE, 1.5)
        drawing.line(place(step) - 8.9, height(limit), place(step) + 8.9, height(limit), BLUE, 1.5)
        if np.isnan(amax):
            drawing.text(place(step), height(4) - 8, "NaN", RED, "middle")
        else:
            drawing.circle(place(step), height(amax), 3, RED if amax > limit else "#333333")
        if saturated:
            drawing.rect(place(step) - 6, 300 - 50 * saturated, 12, 50 * saturated, RED)
        if saturated > 0.05:  # Others would stand in each other's way.
            drawing.text(place(step), 294 - 50 * saturated, f"{100 * saturated:.0f} %", RED,
                         "middle")
        if step % 4 == 0:
            drawing.text(place(step), 318, str(step), GREY, "middle")
    for exponent in range(0, 10, 2):
        drawing.text(left - 8, height(2.0 ** exponent) + 4, str(2 ** exponent), GREY, "end")
    drawing.line(left, 300, right, 300, GREY)
    drawing.line(left, top, left, bottom, GREY)
    drawing.text(left, 18, "line: the largest magnitude that the scale holds; dots: amax of the "
                           "step, red above the line")
    drawing.text(left - 8, 296, "saturated", GREY, "end")
    return drawing.write()


CURVES = {"bf16": "#333333", "delayed": BLUE, "current": "#5dade2", "rowwise": "#1e8449",
          "block": "#82c341", "mxfp8": "#e59866", "nvfp4": RED}
WINDOW, EVERY = 20, 5


def read_training():
    """The losses of each recipe by layers, [seeds, steps]; and what the runs have in common."""
    record = json.loads(TRAINING.read_text())
    losses = {}
    for run in record["runs"]:
        if run["way"] == "layers":
            losses.setdefault(run["recipe"], []).append(run["losses"])
    return {recipe: np.array(losses[recipe]) for recipe in CURVES if recipe in losses}, record


def draw_training():
    """Loss by step under every recipe, and how far it is from bf16's."""
    left, right, steps_of = 60, 700, 100
    drawing = Drawing(720, 470, "Losses of a small transformer under every recipe")
    losses, record = read_training()
    steps = record["steps"]
    smooth = {recipe: np.array([rows[:, max(0, end - WINDOW):end].mean() for end in
                                range(1, steps + 1)]) for recipe, rows in losses.items()}
    plain = smooth["bf16"]

    def place(step):
        return left + step / steps * (right - left)

    def draw(top, bottom, low, high, ticks, form, curves):
        for tick in ticks:
            y = bottom - (tick - low) / (high - low) * (bottom - top)
            drawing.line(left, y, right, y, "#e4e4e4")
            drawing.text(left - 8, y + 4, form.format(tick), GREY, "end")
        for recipe, values in curves.items():
            points = [(place(step), bottom - (values[step - 1] - low) / (high - low)
                       * (bottom - top)) for step in range(EVERY, steps + 1, EVERY)]
            drawing.curve(points, CURVES[recipe], 3 if recipe == "bf16" else 1.2)

    low, high = np.floor(2 * plain.min()) / 2, np.ceil(2 * plain[EVERY - 1:].max()) / 2
    draw(40, 220, low, high, np.arange(low, high + 0.1, 0.5), "{:.1f}", smooth)
    apart = {recipe: 100 * (values / plain - 1) for recipe, values in smooth.items()}
    low = np.floor(2 * min(values[EVERY - 1:].min() for values in apart.values())) / 2
    high = np.ceil(2 * max(values[EVERY - 1:].max() for values in apart.values())) / 2
    draw(270, 430, low, high, np.arange(low, high + 0.1, 0.5), "{:+.1f} %", apart)
    for step in range(0, steps + 1, steps_of):
        drawing.text(place(step), 452, str(step), GREY, "middle")
    drawing.text(left, 18, f"loss, the mean of {WINDOW} steps and {len(losses['bf16'])} seeds")
    drawing.text(left, 258, "beside bf16")
    for column, recipe in enumerate(losses):
        x = 290 + 58 * column
        drawing.rect(x, 10, 10, 10, CURVES[recipe])
        drawing.text(x + 13, 19, recipe)
    return drawing.write()


def write_table():
    """A row for each format."""
    lines = [f"{'format':6}  {'bits':>4}  {'e, m':>5}  {'bias':>4}  {'max':>9}  {'min normal':>10}  "
             f"{'subnormal':>9}  Inf, NaN"]
    for number in (E4M3, E5M2, E2M1, E8M0, F16, BF16, F32):
        subnormal = "none" if number.min_subnormal is None else f"{number.min_subnormal:.3g}"
        special = ("both" if number.infinities else "NaN" if number.nans else "neither")
        lines.append(f"{number.name:6}  {number.bits:4}  "
                     f"{f'{number.exponent_bits}, {number.mantissa_bits}':>5}  {number.bias:4}  "
                     f"{number.max:9.4g}  {number.min_normal:10.3g}  {subnormal:>9}  {special}")
    assert len(lines) == len(FORMATS) + 1
    return "\n".join(lines)


def main():
    if sys.argv[1:] == ["--table"]:
        print(write_table())
        return 0
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__.partition("usage: ")[2], end="", file=sys.stderr)
        return 1
    for name, draw in (("formats.svg", draw_formats), ("delayed.svg", draw_delayed),
                       ("training.svg", draw_training)):
        path = IMAGES / name
        if not sys.argv[1:]:
            path.write_text(draw())
        elif path.read_text() != draw():
            print(f"error: {path} is out of date: run docs/draw.py and commit it",
                  file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
