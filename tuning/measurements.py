"""Times on a GPU, a measurement a line of a CSV file (tuning/data).

Of matmul kernels: which shape and config, and microseconds. `source` is which version of the
kernels it was, or which sample of shapes; `peer` what cuBLASLt's best took, if that was measured.
Of sustained ones (benchmarks/gemm_sustained.py): moreover the board's watts and MHz, where it
said them; of layers (benchmarks/layer_speed.py): of a shape and a recipe."""

import csv
import re

CONFIG = ("rows", "cols", "pingpong", "consumers", "swapped", "cluster", "cluster_cols", "split_k",
          "stages", "overlap", "staging", "cluster_k")
SHAPE = ("kind", "m", "n", "k", "layout", "source", "peer")
LAYER_SHAPE = ("rows", "outputs", "inputs")
COLUMNS = SHAPE + CONFIG + ("microseconds",)

# What kinds of benchmarks/matmul/kinds.py are to the compiler's models.
MODELS = {"tensor_fast": "fast", "tensor_promote": "promote", "block": "block"}


def parse_config(text):
    """The columns of CONFIG from a #fp8_sm90.gemm."""
    def value(key, otherwise):
        found = re.search(rf"\b{key} = (\d+)", text)
        return int(found[1]) if found else otherwise
    swapped = "swap_ab = true" in text
    tile = value("tile_m", 0), value("tile_n", 0)
    cluster = value("cluster_m", 1), value("cluster_n", 1)
    # Columns are of the tensor core's sides, which swap_ab exchanges.
    rows, cols = tile[::-1] if swapped else tile
    cluster, cluster_cols = cluster[::-1] if swapped else cluster
    return (rows, cols, int("ping_pong" in text), value("consumers", 2), int(swapped),
            cluster, cluster_cols, value("split_k", 1),
            value("stages", 0), int("overlap = true" in text), value("staging", 2),
            int("cluster_k = true" in text))


def get_config(columns, n):
    """The #fp8_sm90.gemm of the columns of CONFIG, for a result of `n` columns."""
    rows, cols, pingpong, consumers, swapped, cluster, cluster_cols, split_k, *ring = columns
    stages, overlap, staging, cluster_k = ring
    tile_m, tile_n = (cols, rows) if swapped else (rows, cols)
    cluster_m, cluster_n = (cluster_cols, cluster) if swapped else (cluster, cluster_cols)
    schedule = "ping_pong" if pingpong else "cooperative"
    store = "direct" if swapped or n % 8 else "tma"
    boolean = ("false", "true")
    return (f"#fp8_sm90.gemm<tile_m = {tile_m}, tile_n = {tile_n}, stages = {stages}, "
            f"consumers = {consumers}, schedule = {schedule}, split_k = {split_k}, "
            f"swap_ab = {boolean[swapped]}, store = {store}, cluster_m = {cluster_m}, "
            f"cluster_n = {cluster_n}, staging = {staging}, overlap = {boolean[overlap]}, "
            f"cluster_k = {boolean[cluster_k]}>")


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
            config = [int(line[name]) for name in CONFIG]
            row["configs"].append([*config, float(line["microseconds"])])
    return list(rows.values())


def load_sustained(path):
    """Rows as they are, `config` being a config's text or the name of a peer."""
    with open(path, newline="") as file:
        return [{"kind": line["kind"], **{name: int(line[name]) for name in "mnk"},
                 "config": line["config"], "microseconds": float(line["microseconds"]),
                 "mhz": float(line["mhz"]) if line["mhz"] else None}
                for line in csv.DictReader(file)]


def load_layers(path):
    """By shape (rows, outputs, inputs), the microseconds of each recipe and of bf16."""
    layers = {}
    with open(path, newline="") as file:
        for line in csv.DictReader(file):
            shape = tuple(int(line[name]) for name in LAYER_SHAPE)
            layers.setdefault(shape, {})[line["recipe"]] = float(line["microseconds"])
    return layers


def save_layers(path, layers):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*LAYER_SHAPE, "recipe", "microseconds"))
        for shape, times in layers.items():
            writer.writerows((*shape, name, round(time, 3)) for name, time in times.items())


def save(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            shape = [row.get(name) for name in SHAPE]
            writer.writerows([*shape, *config] for config in row["configs"])
