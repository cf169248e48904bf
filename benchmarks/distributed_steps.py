"""Steps of training by FSDP2 on 8 and 64 GPUs, on paper: of what was measured on 4 H200, bytes and links.

A GPU computes as it did, kernels alone; a gather of the next layer goes on beside a forward, one and a reduction of gradients beside
a backward, and what does not fit there is waited for. Nothing else is: no slower kernels beside NCCL's, no waits of ranks for each
other, no embedding's first gather. Of several hosts NCCL has rings through all GPUs, of which each host's links carry the sum.

usage: distributed_steps.py [--nvlink GB/S] [--link GB/S] [--layers N]
"""

import argparse
import re
import sys
from pathlib import Path

# A layer of Llama 3 8B. Measured decoders have as many words for 8 layers as it has for 32.
WIDTH, WIDE, GROUPED = 4096, 14336, 1024
ELEMENTS = 2 * WIDTH * WIDTH + 2 * WIDTH * GROUPED + 3 * WIDTH * WIDE
HERE = Path(__file__).parent
PUBLISHED = "torchao's README, Llama 3 8B on 8 H100: +25 % with one scale for a tensor and FP8 gathers, +10 % row-wise without"


def read_measured(path):
    """ms of kernels beside NCCL's in a step, and bytes of an element in the gathers of layers, by case, of 4 processes."""
    # Those of one run, the first.
    text = path.read_text().split("4 processes", 1)[1].split("\n\n", 1)[0]
    found, gathered = {}, {}
    for line in text.splitlines():
        name, numbers = line[:30].strip(), re.findall(r"[\d.]+", line[30:])
        if name and "%" in line:
            found[name], gathered[name] = float(numbers[9]), float(numbers[5])
    # What layers have beside embedding and head, which are in bf16 always: bf16 gathers both twice.
    beside = gathered["bf16"] - 2 * 8 * ELEMENTS * 2 / 4e9
    return found, {name: (value - beside) * 4e9 / (2 * 8 * ELEMENTS) for name, value in gathered.items()}


def estimate(computed, size, gpus, layers, rate):
    """ms of a step: `computed` are a layer's, of which a third are a forward's; `size` bytes of an element in gathers."""
    part = (gpus - 1) / gpus / rate / 1e6
    gather, reduce = ELEMENTS * size * part, ELEMENTS * 4 * part
    forward = max(computed / 3, gather)
    backward = max(computed * 2 / 3, gather + reduce)
    # The first gather, and the last reduction, have nothing beside them.
    return layers * (forward + backward) + gather + reduce


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    # Gathers of bf16 on 4 H200: 5.63 GB left a rank in 27.8 ms; on 2 3.75 GB in 15.0 ms.
    parser.add_argument("--nvlink", type=float, default=200)
    parser.add_argument("--link", type=float, default=45, help="GB/s to other hosts for a ring: 400 Gb/s, 90 % of it")
    parser.add_argument("--layers", type=int, default=32)
    args = parser.parse_args()
    computed, sizes = read_measured(HERE / "results" / "distributed.txt")
    print(f"{args.layers} layers: ms of a step, and tokens/s beside bf16. {PUBLISHED}.\n")
    print(f"{'':20}{'8 GPUs':>10}{'':>9}{'64, a link each':>17}{'':>9}{'64, one a host':>16}")
    bases = {}
    for name, milliseconds in computed.items():
        if name != "bf16" and not re.fullmatch(r"(torchao|current|delayed|block|rowwise)(, codes)?", name):
            continue
        line = f"{name:20}"
        for column, (gpus, rate) in enumerate(((8, args.nvlink), (64, min(args.nvlink, 8 * args.link)), (64, args.link))):
            step = estimate(milliseconds / 8, sizes[name], gpus, args.layers, rate)
            bases.setdefault(column, step)
            line += f"{step:>{(10, 17, 16)[column]}.0f}{bases[column] / step - 1:>+9.1%}"
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
