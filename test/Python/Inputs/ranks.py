"""Runs functions in several processes, the ranks of torch.distributed over gloo."""

import datetime
import os
import pickle
import signal
import tempfile
import traceback

import torch
import torch.distributed as dist

# Children of fork() have what their parent compiled, and none of the threads of OpenMP.
torch.set_num_threads(1)
PATIENCE = 400  # Seconds, of processors that have other work, too.


def _work(rank, world, folder, body, arguments, timeout):
    signal.alarm(PATIENCE)
    # PyTorch makes a new pool of threads for the one that fork() lost: before threads of autograd ask for it at once.
    torch.set_num_threads(1)
    status = 1
    try:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world,
                                timeout=datetime.timedelta(seconds=timeout))
        result = "result", body(*arguments)
        dist.destroy_process_group()
        status = 0
    except BaseException:
        result = "error", traceback.format_exc()
    with open(f"{folder}/{rank}", "wb") as file:
        pickle.dump(result, file)
    os._exit(status)


def run(world, body, *arguments, dies=(), timeout=PATIENCE):
    """What body(*arguments) returns on each of the ranks; an error of one is an AssertionError. Those that have to die
    return None. Collectives wait for `timeout` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(world):
            child = os.fork()
            if child == 0:
                _work(rank, world, folder, body, arguments, timeout)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        results = []
        for rank in range(world):
            if rank in dies:
                results.append(("result", None))
                continue
            if not os.path.exists(f"{folder}/{rank}"):
                raise AssertionError(f"rank {rank} of {world} ended without a result")
            with open(f"{folder}/{rank}", "rb") as file:
                results.append(pickle.load(file))
    for rank, (kind, value) in enumerate(results):
        if kind == "error":
            raise AssertionError(f"rank {rank} of {world}: {value}")
    return [value for _, value in results]
