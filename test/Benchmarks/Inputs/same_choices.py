"""Fails unless the first candidate of each shape is what the selection takes."""

import json
import sys

candidates, selected = (json.load(open(path)) for path in sys.argv[1:])
for kind, shapes in candidates.items():
    for shape, configs in shapes.items():
        if configs[0] != selected[kind][shape]:
            sys.exit(f"{kind} {shape}: expected {selected[kind][shape]} first, but got {configs[0]}")
