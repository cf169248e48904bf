"""Checks a trace of fp8-run --profile: usage: check_trace.py TRACE MATMULS-OF-A-RUN"""

import json
import os
import sys

RUNS = 10

with open(sys.argv[1]) as file:
    events = json.load(file)["traceEvents"]
assert len(events) % RUNS == 0, len(events)
names = [event["name"] for event in events]
run = len(events) // RUNS
assert all(names[i] == names[i % run] for i in range(len(events)))
end = 0
for event in events:
    # Clocks of events tick every half a microsecond.
    assert event["ts"] >= end - 1 and event["dur"] > 0, event
    end = event["ts"] + event["dur"]
matmuls = [event for event in events if event["name"].startswith("fp8_matmul_")]
assert len(matmuls) == RUNS * int(sys.argv[2]), len(matmuls)
# The times of a model of a GPU are its own.
model = "fp8emu" in os.environ.get("FP8_CUDA_DRIVER", "")
for event in [] if model else matmuls:
    teraflops = event["args"]["flops"] / event["dur"] * 1e-6
    assert 1 < teraflops < 5000, event
    assert event["args"]["bytes"] / event["dur"] * 1e-3 < 20000, event
