"""The page of `python -m fp8 report`: HTML with its styles and drawings in it."""

import html
import math
from pathlib import Path

from fp8 import files
from fp8.errors import ArgumentError, FileError

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em;
       color: #1b1b1b; background: #fff }
table { border-collapse: collapse; margin: .7em 0 1.5em }
th, td { padding: .2em .8em; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child, .text { text-align: left }
th { font-weight: 600 } h2 { margin-top: 2em } h3 { margin: 1.6em 0 .3em }
.chosen { background: #d8efd8 } .bad { color: #b02a1c } .quiet { color: #777 }
svg text { font: 11px system-ui, sans-serif; fill: #555 }
"""
_WIDTH, _HEIGHT = 640, 150
_DIGIT = 6.5  # The width of a character of a label, or a little more.


def write_page(measured):
    """The whole page, of Measurements."""
    title = html.escape(f"{measured.program}: {measured.function}")
    parts = [f"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}"
             f"</title><style>{_STYLE}</style></head><body>\n<h1>{title}</h1>",
             _write_products(measured), _write_recipe_file(measured), _write_reasons(measured)]
    for name, stats in sorted(measured.tensors.items()):
        parts += [f"<h3>{html.escape(name)}</h3>",
                  draw_histogram(measured.histograms.get(name)), _write_stats(measured, stats)]
    return "\n".join(parts) + "\n</body></html>\n"


def name_files(path):
    """The paths of a page and of the recipe file beside it, of the same name with the ending .json.
    Raises ArgumentError where that is the page's."""
    page = Path(path)
    if page.suffix == ".json":
        raise ArgumentError(f"expected a page with another ending than its recipe file's, .json, but "
                            f"got '{path}'")
    return page, page.with_suffix(".json")


def write_files(measured, paths):
    """Writes both of `name_files`. Raises FileError."""
    texts = write_page(measured), measured.write_recipe_file()
    for path, text in zip(paths, texts):
        try:
            files.write_text(path, text)
        except OSError as error:
            raise FileError(f"{path}: {error.strerror}") from error


def _write_table(header, rows):
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "\n".join("<tr>" + "".join(cell if cell.startswith("<td") else f"<td>{cell}</td>"
                                      for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _write_decibels(value):
    return "exact" if value == math.inf else "NaN" if value == -math.inf else f"{value:.1f}"


def _write_products(measured):
    rows = []
    for product in measured.products.values():
        chosen, why = product.choose()
        row = [html.escape(product.name), html.escape(product.role or "-"),
               html.escape(product.shape)]
        for recipe in measured.recipes:
            value = product.decibels.get(recipe)
            text = ('<span class="quiet">-</span>' if recipe not in product.computed else
                    "FP8" if value is None else _write_decibels(value))
            row.append(f'<td class="chosen">{text}</td>' if recipe == chosen else text)
        rows.append([*row, f'<td class="text"><b>{chosen}</b>: {html.escape(why)}</td>'])
    return ("<h2>Which recipe for which layer</h2>\n<p>For each matrix product the energy of the "
            "result over that of the error that rounding its operands makes, in dB: more is "
            "better, 6 dB are one bit. Recipes cost more to the right, but for nvfp4, which is "
            "coarser.</p>\n"
            + _write_table(["product", "role", "shape", *measured.recipes, "take"], rows))


def _write_recipe_file(measured):
    return ("<details><summary>The recipe file that says so, with one recipe for forward and backward of "
            f"a layer</summary><pre>{html.escape(measured.write_recipe_file())}</pre></details>")


def _write_reasons(measured):
    rows = [[html.escape(product.name), recipe, f'<td class="text">{html.escape(reason)}</td>',
             f'<td class="text">{html.escape(suggestion)}</td>']
            for product in measured.products.values()
            for recipe, (reason, suggestion) in product.reasons.items()]
    rows += [["the program", recipe, f'<td class="text bad">{html.escape(str(error))}</td>', ""]
             for recipe, error in measured.failures.items()]
    table = (_write_table(["product", "recipe", "why not", "what would change that"], rows)
             if rows else "<p>Every product is in FP8 under every recipe.</p>")
    return f"<h2>Why a layer is not in FP8</h2>\n{table}\n<h2>Tensors</h2>"


def _write_share(value):
    text = f"{100 * value:.3f}"
    return f'<td class="bad">{text}</td>' if value >= 0.01 else text


def _write_stats(measured, stats):
    rows = [[recipe, f"{value.amax:.6g}", _write_share(value.underflow),
             _write_share(value.saturation), _write_decibels(value.sqnr)]
            for recipe, value in ((recipe, stats.get(recipe)) for recipe in measured.recipes)
            if value is not None]
    return _write_table(["recipe", "amax", "underflow %", "saturation %", "SQNR dB"], rows)


def draw_histogram(histogram):
    """SVG: how many elements have a magnitude of each power of two."""
    if histogram is None:
        return ("<p class=\"quiet\">No histogram: the tensor is within a loop or a function that "
                "is called.</p>")
    counts, total = histogram.counts, max(histogram.total, 1)
    zeros = f"{100 * histogram.zeros / total:.2f} % zeros"
    if histogram.others:
        zeros += f", {histogram.others} not finite"
    if not counts:
        return f"<p>{zeros}</p>"
    bar, base, top = _WIDTH / len(counts), _HEIGHT - 34, max(counts)
    parts = [f'<svg role="img" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} '
             f'{_HEIGHT}"><title>magnitudes, {zeros}</title>']
    # With one scale the largest becomes 448, and what is below 2^-10 zero: 2^-18.8 of it.
    flushed = max(len(counts) - 1 - 19, 0) * bar
    if flushed:
        parts.append(f'<rect x="0" y="0" width="{flushed:.1f}" height="{base}" fill="#f4d9d5"/>'
                     f'<text x="4" y="12">zero in E4M3 with one scale</text>')
    # Labels begin at their bars, and each has room for the longest and a gap.
    longest = max(len(f"2^{exponent}") for exponent in (
        histogram.low, histogram.low + len(counts) - 1))
    step = math.ceil((longest + 1) * _DIGIT / bar)
    for index, count in enumerate(counts):
        height, exponent = (base - 16) * count / top, histogram.low + index
        parts.append(f'<rect x="{index * bar:.1f}" y="{base - height:.1f}" width="{bar * .9:.1f}" '
                     f'height="{height:.1f}" fill="#4878a8"><title>from 2^{exponent}: {count} '
                     f'({100 * count / total:.2f} %)</title></rect>')
        if index % step == 0 and index * bar + longest * _DIGIT <= _WIDTH:
            parts.append(f'<text x="{index * bar:.1f}" y="{base + 14}">2^{exponent}</text>')
    parts.append(f'<text x="{_WIDTH}" y="{_HEIGHT - 4}" text-anchor="end">{zeros}</text></svg>')
    return "".join(parts)
