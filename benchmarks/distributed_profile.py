"""What of a step's collectives is hidden behind other kernels of a GPU: from PyTorch's profiler."""

import collections

import torch


def merge(spans):
    """Spans (begin, end) in order, without overlaps."""
    merged = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([begin, end])
    return merged


def measure(spans):
    return sum(end - begin for begin, end in spans)


def intersect(spans, others):
    found, place = [], 0
    for begin, end in spans:
        while place < len(others) and others[place][1] <= begin:
            place += 1
        each = place
        while each < len(others) and others[each][0] < end:
            found.append((max(begin, others[each][0]), min(end, others[each][1])))
            each += 1
    return found


def list_kernels(profile):
    """(name, begin, end) in us, without the spans that annotations have on a GPU."""
    return [(event.name, event.time_range.start, event.time_range.end) for event in profile.events()
            if event.device_type == torch.autograd.DeviceType.CUDA and event.time_range.end > event.time_range.start
            and not getattr(event, "is_user_annotation", False)
            and not event.name.startswith(("FSDP::", "Optimizer.", "ProfilerStep", "nccl:", "DistributedDataParallel"))]


def profile_step(step):
    """What a call takes: ms of collectives, those of them that are hidden, of other kernels, and the longest by name."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        step()
        torch.cuda.synchronize()
    kernels = list_kernels(profile)
    collectives = merge((begin, end) for name, begin, end in kernels if name.startswith("nccl"))
    others = merge((begin, end) for name, begin, end in kernels if not name.startswith("nccl"))
    times, counts = collections.Counter(), collections.Counter()
    for name, begin, end in kernels:
        times[name] += end - begin
        counts[name] += 1
    spans = merge((begin, end) for _, begin, end in kernels)
    return {"collectives_ms": measure(collectives) / 1e3, "hidden_ms": measure(intersect(collectives, others)) / 1e3,
            "others_ms": measure(others) / 1e3, "idle_ms": (spans[-1][1] - spans[0][0] - measure(spans)) / 1e3,
            "longest": [{"name": name[:120], "ms": time / 1e3, "calls": counts[name]}
                        for name, time in times.most_common(40)]}
