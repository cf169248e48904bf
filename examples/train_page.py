"""A page of trainings side by side: curves of their losses as SVG, and a table."""

import html

WIDTH, LEFT, TOP, RIGHT, BOTTOM = 760, 56, 16, 120, 40
COLORS = ("var(--first)", "var(--second)")

DARK = "--back:#16191d;--text:#e6e9ec;--soft:#9aa3ad;--line:#30363d;--first:#9aa3ad;--second:#5aa9f5"
STYLE = """:root{--back:#fff;--text:#1b1f24;--soft:#6a737d;--line:#e3e6ea;--first:#6a737d;--second:#0b69c7}
@media(prefers-color-scheme:dark){:root{""" + DARK + """}}
body{margin:0 auto;max-width:800px;padding:24px 16px;background:var(--back);color:var(--text)}
body{font:15px/1.5 system-ui,sans-serif}h1{font-size:20px;margin:0 0 4px}p{color:var(--soft);margin:0 0 16px}
svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font-size:12px}
table{border-collapse:collapse;margin-top:16px;font-variant-numeric:tabular-nums}
th,td{padding:4px 16px 4px 0;text-align:right;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left}"""


def smooth(values, count):
    """Means of the last `count` values, where there are as many."""
    sums, found = 0.0, []
    for index, value in enumerate(values):
        sums += value - (values[index - count] if index >= count else 0.0)
        found.append(sums / min(index + 1, count))
    return found


def choose_ticks(low, high, count=5):
    """Round numbers from `low` to `high`."""
    step = (high - low) / count or 1.0
    power = 10.0 ** len(str(int(1 / step))) if step < 1 else 1.0
    step = max(round(step * power) / power, 1 / power)
    first = int(low / step) * step
    return [round(first + step * index, 6) for index in range(count * 2 + 2)
            if low <= first + step * index <= high]


def draw(curves, height, unit=""):
    """A chart of (name, color, values, means) by steps: thin the values, thick their means, each
    with its name behind it."""
    steps = max(len(values) for _, _, values, _ in curves)
    every = [value for _, _, values, means in curves for value in (*values, *means)]
    low, high = min(every), max(every)
    inner_width, inner_height = WIDTH - LEFT - RIGHT, height - TOP - BOTTOM

    def place(step, value):
        x = LEFT + inner_width * step / max(1, steps - 1)
        return f"{x:.1f},{TOP + inner_height * (high - value) / ((high - low) or 1):.1f}"

    parts = []
    for tick in choose_ticks(low, high):
        y = place(0, tick).partition(",")[2]
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="var(--line)"/>'
                     f'<text x="{LEFT - 8}" y="{y}" text-anchor="end" dominant-baseline="middle">{tick:g}'
                     f"{unit}</text>")
    for step in sorted({0, steps // 2, steps - 1}):
        x = place(step, high).partition(",")[0]
        parts.append(f'<text x="{x}" y="{height - BOTTOM + 20}" text-anchor="middle">step {step + 1}</text>')
    ends = []
    for name, color, values, means in curves:
        for curve, width, opacity in ((values, 1, 0.3), (means, 2, 1)):
            points = " ".join(place(step, value) for step, value in enumerate(curve))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{width}" '
                         f'opacity="{opacity}"/>')
        ends.append([float(place(steps - 1, means[-1]).partition(",")[2]), name, color])
    ends.sort(reverse=True)
    for index, (y, name, color) in enumerate(ends):
        if index and ends[index - 1][0] - y < 15:  # Names that would be on each other.
            ends[index][0] = y = ends[index - 1][0] - 15
        parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{y:.1f}" dominant-baseline="middle" '
                     f'style="fill:{color}">{html.escape(name)}</text>')
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">' + "".join(parts) + "</svg>"


def draw_all(records):
    """Losses, and how far they are from those of bf16."""
    count = max(1, len(records[0]["losses"]) // 20)
    curves = [(record["recipe"].partition(",")[0], color, record["losses"], smooth(record["losses"], count))
              for record, color in zip(records, COLORS)]
    (_, _, base, base_means), (name, color, values, means) = curves
    far = [100 * (value / other - 1) for value, other in zip(values, base)]
    far_means = [100 * (value / other - 1) for value, other in zip(means, base_means)]
    return (draw(curves, 340) + f"<p>Beside bf16, percent of its loss; thick, of the means of {count} steps</p>"
            + draw([(name, color, far, far_means)], 200, "%"))


def write(records):
    """The page as text; records are those of train.py, that of bf16 first."""
    base, rows = records[0], []
    for record in records:
        cells = [record["recipe"], f"{record['last']:.4f}", f"{record['last'] / base['last'] - 1:+.2%}",
                 f"{record['tokens_per_second']:,.0f}",
                 f"{record['tokens_per_second'] / base['tokens_per_second']:.2f}",
                 f"{record['bytes'] / 2 ** 20:,.0f}"]
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    names = ["recipe", "loss of the last steps", "beside bf16", "tokens/s", "beside bf16", "MiB at most"]
    note = "" if base["device"] != "cpu" else (
        " On a CPU FP8 is there for exactness and not for speed, and memory is that of the process, which "
        "trains one after the other.")
    return (f'<!doctype html><html lang="en"><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width"><title>bf16 and FP8</title>'
            f"<style>{STYLE}</style><h1>Training in bf16 and in {html.escape(records[1]['recipe'])}</h1>"
            f"<p>{base['steps']} steps on {html.escape(base['device'])} with "
            f"{html.escape(base['optimizer'])}; losses in nats a byte.{note}</p>{draw_all(records)}<table><tr>"
            + "".join(f"<th>{name}</th>" for name in names) + "</tr>" + "".join(rows)
            + "</table></html>\n")
