"""Passes of ours over graphs of Inductor, beside those that it has been given."""

import torch._inductor.config
from torch._inductor.custom_graph_pass import CustomGraphPass


class _Pass(CustomGraphPass):
    """A function of a graph after what Inductor has been given before, one, several or None."""

    def __init__(self, others, run, version):
        self._others, self.run, self._version = others, run, version

    def __call__(self, graph):
        for other in self._others:
            other(graph)
        self.run(graph)

    def uuid(self):
        versions = [other.uuid() if isinstance(other, CustomGraphPass) else None for other in self._others]
        # Graphs that an unknown function has changed are not kept.
        return None if None in versions else (self._version, *versions)


def install(option, run, version):
    """Gives Inductor a pass by the name of its option, once."""
    config = torch._inductor.config
    now = getattr(config, option)
    others = now if isinstance(now, (list, tuple)) else [] if now is None else [now]
    if not any(isinstance(each, _Pass) and each.run is run for each in others):
        setattr(config, option, _Pass(tuple(others), run, version))
