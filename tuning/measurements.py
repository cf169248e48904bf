"""Times of matmul kernels, a measurement a line of a CSV file: of which shape and config, and
microseconds. `source` is which version of the kernels it was, or which sample of shapes; `peer`
what cuBLASLt's best took, if that was measured. Configs of plain operands have no stages,
overlap or staging: these follow from the others."""

import csv

CONFIG = ("rows", "cols", "pingpong", "consumers", "swapped", "cluster", "cluster_cols", "split_k")
# The rest follows from these for operands in high precision, and nothing is promoted.
SCALED_CONFIG = CONFIG + ("stages", "overlap", "staging")
SHAPE = ("kind", "m", "n", "k", "layout", "source", "peer")
COLUMNS = SHAPE + SCALED_CONFIG + ("microseconds",)


def load(path):
    """Rows: a shape each, with `configs`, of which each is its columns and microseconds."""
    rows = {}
    with open(path, newline="") as file:
        for line in csv.DictReader(file):
            shape = tuple(line[name] for name in SHAPE)
            row = rows.setdefault(shape, {
                "kind": line["kind"], **{name: int(line[name]) for name in "mnk"},
                **({"layout": line["layout"]} if line["layout"] else {}),
                "source": line["source"], "peer": float(line["peer"]) if line["peer"] else None,
                "configs": []})
            config = [int(line[name]) for name in SCALED_CONFIG if line[name]]
            row["configs"].append([*config, float(line["microseconds"])])
    return list(rows.values())


def save(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            shape = [row.get(name) for name in SHAPE]
            for *config, microseconds in row["configs"]:
                config += [None] * (len(SCALED_CONFIG) - len(config))
                writer.writerow([*shape, *config, microseconds])
