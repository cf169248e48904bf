"""Maxima over ranks, which layers take many of: for less of the host's time than by torch.distributed's functions."""

import torch


def reduce_max(amaxes, group=None):
    """Makes amaxes, of f32, the maximum over a group's ranks; where this is none of them they stay. They are compared as
    integers of their bits, so that a NaN, where a recipe keeps it, is above all, whatever its sign is."""
    group = group or torch.distributed.group.WORLD
    if group is torch.distributed.GroupMember.NON_GROUP_MEMBER:
        return
    amaxes.abs_()
    options = torch.distributed.AllreduceOptions()
    options.reduceOp = torch.distributed.ReduceOp.MAX
    options.asyncOp = False
    work = group.allreduce([amaxes.view(torch.int32)], options)
    if work is not None:
        work.wait()
