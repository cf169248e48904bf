"""Experts of transformers' models, one parameter of three dimensions for each projection, with quantized weights."""

import copy
import inspect
import itertools
import json

import torch
from torch import nn

from fp8.errors import ArgumentError
from fp8.torch import expert_programs, packed, schemes
from fp8.torch.dense import check_tensor, is_recorded
from fp8.torch.expert_programs import Gate, Shape
from fp8.torch.quantized_linear import QuantizedWeight

PROJECTIONS = ("gate_up_proj", "up_proj", "down_proj")
_FACTORS = "weight_global_scale"


def find_projections(module):
    """The names of an experts' parameters of three dimensions, the last of them "down_proj", or none of what is no
    module of experts as transformers has them since 5.0."""
    names = [name for name in PROJECTIONS
             if isinstance(getattr(module, name, None), nn.Parameter) and getattr(module, name).ndim == 3]
    if len(names) != 2 or names[1] != "down_proj" or not (hasattr(module, "_apply_gate") or takes_all_rows(module)):
        return []
    others = {name for name, _ in module.named_parameters(recurse=False)} - {
        name + end for name in names for end in ("", "_bias")}
    return [] if others else names


def takes_all_rows(module):
    """Whether experts are called with rows of all tokens for each of them, as Llama 4's are."""
    return (not hasattr(module, "_apply_gate") and hasattr(module, "expert_dim") and callable(getattr(module, "act_fn", None))
            and list(inspect.signature(module.forward).parameters) == ["hidden_states"])


def is_transposed(module):
    """Whether matrices of experts are K x N."""
    return getattr(module, "is_transposed", takes_all_rows(module))


def get_sizes(module, name):
    """How many experts there are, N and K of a projection."""
    groups, *sizes = getattr(module, name).shape
    return (groups, *(reversed(sizes) if is_transposed(module) else sizes))


def apply_gate(module, z):
    """What experts in high precision make of the first product."""
    if hasattr(module, "_apply_gate"):
        return module._apply_gate(z)
    gate, up = z.chunk(2, -1)
    return up * module.act_fn(gate)


def find_gate(module):
    """The Gate that a module's `_apply_gate` computes, or None for something else. It is found by what it gives."""
    if not getattr(module, "has_gate", True):
        return None
    generator = torch.Generator().manual_seed(0)
    probe = torch.randn(4, 64, generator=generator, dtype=torch.float64) * 12
    try:
        with torch.no_grad(), torch.device("cpu"):
            expected = apply_gate(module, probe)
    except (AttributeError, RuntimeError, TypeError):
        return None
    limits, alphas = ({default, *(getattr(module, name, default) for name in names)} for default, names in (
        (None, ("limit", "swiglu_limit")), (1.0, ("alpha", "swiglu_alpha"))))
    for gate in itertools.starmap(Gate, itertools.product(
            alphas - {None}, limits, (0.0, 1.0), (False, True))):
        found = gate.compute(probe)
        if found.shape == expected.shape and torch.allclose(found, expected, rtol=1e-9, atol=1e-12):
            return gate
    return None


class QuantizedGroups(QuantizedWeight):
    """The weights of one projection of all experts, each N x K, and what each has for a bias."""

    # Whether rows are in another order than a checkpoint has: those of gates, then the others.
    is_deinterleaved = False

    def __init__(self, groups, n, k, scheme, tensors, bias=None):
        """`tensors` as get_expected has them."""
        parts = tensors["weight_global_scale"].shape[-1] if "weight_global_scale" in tensors else 1
        super().__init__(scheme, get_expected(scheme, groups, n, k, parts), tensors, bias)
        self.groups, self.out_features, self.in_features = groups, n, k

    def get_shape(self):
        bias = None if self.bias is None else schemes.ELEMENTS[self.bias.dtype]
        factors = self._parameters.get("weight_global_scale")
        if factors is None and self.scheme.multiplies_sums(self.out_features, self.in_features):
            factors = self.weight_scale.flatten(1)
        return Shape(self._scheme, self.groups, self.out_features, self.in_features, bias,
                     factors is not None and factors.shape[1] == 1)

    def make_room(self, state_dict, prefix):
        """Takes as many scales for a tensor as a state_dict has of each expert. How many there are is up to their values."""
        own, given = self._parameters.get(_FACTORS), state_dict.get(prefix + _FACTORS)
        if own is not None and given is not None and own.shape == (self.groups, 1) and given.shape == (self.groups, 2):
            self._parameters[_FACTORS] = nn.Parameter(own.detach().repeat(1, 2), requires_grad=False)

    def _load_from_state_dict(self, state_dict, prefix, *arguments):
        own, given = self._parameters.get(_FACTORS), state_dict.get(prefix + _FACTORS)
        is_one = own is not None and given is not None and own.shape == (self.groups, 2) and given.shape == (self.groups, 1)
        if is_one:
            state_dict[prefix + _FACTORS] = given.repeat(1, 2)
        super()._load_from_state_dict(state_dict, prefix, *arguments)
        if is_one:
            state_dict[prefix + _FACTORS] = given

    def has_two_factors(self):
        """Whether a gate and what goes with it have scales of their own for a tensor."""
        factors = self._parameters.get(_FACTORS)
        return factors is not None and factors.shape[1] == 2

    def extra_repr(self):
        return (f"{self.groups} of in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}, {self.scheme.describe()}")


def get_expected(scheme, groups, n, k, parts=1):
    """Shape and dtype of what is stored of all experts' weights, by name. A scale for the tensor is one for each of
    the `parts` that were a tensor: of NVFP4 those of a gate and of what goes with it."""
    return {name: ((groups, parts) if name == "weight_global_scale" else (groups, *shape), dtype)
            for name, (shape, dtype) in scheme.get_tensors(n, k).items()}


class QuantizedExperts(nn.Module):
    """Experts with quantized weights: tokens are sorted by expert, and one compiled program casts them, multiplies,
    gates, and multiplies again. It is called as transformers calls experts, with tokens x features, the experts of each
    token and their weights, both tokens x experts of a token. Forward only.

    - of: the module in whose place it is, for what is between the products and after them;
    - first, second: QuantizedGroups of the two projections, called as theirs.
    """

    def __init__(self, of, first, second):
        super().__init__()
        names = find_projections(of)
        self.names = names
        self.add_module(names[0], first)
        self.add_module(names[1], second)
        self.num_experts = first.groups
        self.gate = find_gate(of)
        # What is there of the other module without parameters: its functions, and modules of its own.
        shell = copy.copy(of)
        shell._parameters, shell._modules, shell._buffers = {}, dict(of._modules), dict(of._buffers)
        self._shell = [shell]
        for name, child in of._modules.items():
            self.add_module(name, child)
        self.has_post_expert_norm = getattr(of, "has_post_expert_norm", False)
        if self.gate is not None and self.gate.interleaved:
            if first.scheme.weight_block[0] == 1:
                deinterleave(first)
            else:
                self.gate = None
        self.describe()

    def describe(self):
        """What programs are of, as text, which graphs of torch.compile take as it is."""
        first, second = self.first.get_shape(), self.second.get_shape()
        meets = self.gate is not None and self.first.has_two_factors() and first.bias is None
        self._shapes = [json.dumps(shapes) for shapes in (
            [first], [second], [first._replace(has_ratio=meets), second])]
        self._gate = json.dumps(self.gate) if self.gate else ""

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.describe()
        return self

    def _load_from_state_dict(self, state_dict, prefix, *arguments):
        # Projections load theirs after this.
        if self.names[0] == "gate_up_proj":
            self.first.make_room(state_dict, f"{prefix}gate_up_proj.")
            self.describe()
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    @property
    def first(self):
        return self._modules[self.names[0]]

    @property
    def second(self):
        return self._modules[self.names[1]]

    def forward(self, hidden_states, top_k_index, top_k_weights):
        self._check(hidden_states)
        tokens, each = top_k_index.shape
        count, chosen, share = tokens * each, top_k_index.flatten(), top_k_weights.flatten()
        rows = expert_programs.count_rows(count, hidden_states.is_cuda) or count
        if rows != count:
            # Rows that are added are no expert's, as those of experts of other devices: the last ones, and zeros.
            chosen = nn.functional.pad(chosen, (0, rows - count), value=self.num_experts)
            share = nn.functional.pad(share, (0, rows - count))
        owners, order = torch.sort(chosen, stable=True)
        ends = torch.searchsorted(owners, torch.arange(self.num_experts, device=owners.device, dtype=owners.dtype),
                                  right=True, out_int32=True)
        owners = owners.clamp(max=self.num_experts - 1)
        y = self._multiply(hidden_states[(order // each).clamp(max=tokens - 1)], ends, owners, share[order].float())
        found = torch.empty_like(y)
        found[order] = y
        return found[:count].view(tokens, each, y.shape[1]).sum(1, dtype=torch.float32).to(hidden_states.dtype)

    def _check(self, x):
        check_tensor(x, "activations")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ArgumentError("expected activations that require no gradient in experts for inference; "
                                "torch.no_grad() and torch.inference_mode() see to it")
        if x.dtype not in schemes.ELEMENTS or x.ndim != 2 or x.shape[-1] != self.first.in_features:
            raise ArgumentError(f"expected activations of f32, bf16 or f16, tokens x {self.first.in_features}, but got "
                                f"{x.dtype} of {tuple(x.shape)}")

    @property
    def programs(self):
        """What programs of forward are of: shapes and gate, as expert_programs.compile has them."""
        if self.gate is not None and not self.has_post_expert_norm:
            return [expert_programs.read(self._shapes[2], self._gate)]
        return [expert_programs.read(shapes, "") for shapes in self._shapes[:2]]

    def _multiply(self, x, ends, owners, share):
        shell = self._shell[0]
        if self.gate is not None and not self.has_post_expert_norm:
            return self._compute(2, x, ends, owners, share)
        z = self._compute(0, x, ends, owners)
        has_gate = getattr(shell, "has_gate", True)
        if has_gate and self.gate is not None:
            z = self.gate._replace(interleaved=False).compute(z)
        else:
            z = apply_gate(shell, z) if has_gate else shell.act_fn(z)
        y = self._compute(1, z, ends, owners)
        if self.has_post_expert_norm:
            y = shell.post_expert_norm(y)
        return (y * share[:, None]).to(x.dtype)

    def _compute(self, which, x, ends, owners, share=None):
        """The product with the first, the second, or, 2, both of the projections."""
        run = expert_programs.operation if is_recorded() else expert_programs.compute
        projections = [self.first] * (which != 1) + [self.second] * (which != 0)
        tensors = [tensor for projection in projections for tensor in projection.get_tensors()]
        biases = [projection.bias for projection in projections if projection.bias is not None]
        return run(x, ends, owners, share, tensors, biases, self._shapes[which], self._gate if which == 2 else "")


class QuantizedRows(QuantizedExperts):
    """The same of experts that are called with rows of all tokens for each of them, one expert's behind the other's. Rows
    of zeros, of tokens that go to other experts, are left out."""

    def forward(self, hidden_states):
        self._check(hidden_states)
        rows = hidden_states.shape[0]
        if rows % self.num_experts:
            raise ArgumentError(f"expected as many rows for each of {self.num_experts} experts, but got {rows} in all")
        owners = torch.arange(self.num_experts, device=hidden_states.device).repeat_interleave(rows // self.num_experts)
        owners = torch.where((hidden_states != 0).any(1), owners, self.num_experts)[:, None]
        return super().forward(hidden_states, owners, torch.ones_like(owners, dtype=torch.float32))


def make(module, *projections):
    """What takes the place of experts, of its QuantizedGroups."""
    return (QuantizedRows if takes_all_rows(module) else QuantizedExperts)(module, *projections)


def deinterleave(projection):
    """Puts the even rows of each expert's matrix before the odd ones."""
    n = projection.out_features
    order = torch.cat([torch.arange(0, n, 2), torch.arange(1, n, 2)])
    for name, value in projection._parameters.items():
        dim = None if value is None else _find_rows(value.shape[1:], n, name)
        if dim is not None:
            moved = _select(value.detach(), dim + 1, order)
            projection._parameters[name] = nn.Parameter(moved, requires_grad=False)
    projection.is_deinterleaved = True


def _find_rows(shape, n, name):
    """The dimension that has the N rows of a matrix, or None."""
    dim = 1 if name == "weight_exponents" else 0
    return dim if dim < len(shape) and shape[dim] == n else None


def _select(value, dim, order):
    as_bytes = value.view(torch.uint8) if value.element_size() == 1 else value
    return as_bytes.index_select(dim, order.to(value.device)).view(value.dtype)


def interleave_rows(value, dim):
    """What deinterleave made of rows, as they were."""
    n = value.shape[dim]
    return _select(value.detach(), dim, torch.arange(n).view(2, -1).t().flatten())


def interleave(value, n, name):
    """The same of what is stored of one expert."""
    dim = _find_rows(value.shape, n, name)
    return value if dim is None else interleave_rows(value, dim)


def quantize(module, scheme):
    """QuantizedExperts of a module's weights, each quantized by itself."""
    scheme = expert_programs.make_grouped(scheme)
    projections = []
    for name in find_projections(module):
        groups, n, k = get_sizes(module, name)
        weight = getattr(module, name).detach()
        writer = Writer(scheme, groups, n, k, weight.device)
        for i in range(groups):
            one = weight[i].t() if is_transposed(module) else weight[i]
            if scheme.packed:
                writer.put_lifted(i, schemes.pack_weight(one))
            else:
                writer.put(i, schemes.quantize_weight(one, scheme))
        bias = getattr(module, f"{name}_bias", None)
        projections.append(writer.finish(bias))
    return make(module, *projections)


class Writer:
    """What is stored of the weights of a projection, put there one expert after another."""

    def __init__(self, scheme, groups, n, k, device, parts=1):
        self.scheme, self.sizes = scheme, (groups, n, k)
        self.device = device = torch.device("cpu") if torch.device(device).type == "meta" else device
        self.tensors = {name: torch.empty(shape, dtype=dtype, device=device) for name, (shape, dtype) in get_expected(
            scheme, groups, n, k, parts).items()}
        self.exactness, self.lost = [], {}

    def put(self, expert, tensors):
        for name, value in tensors.items():
            own = self.tensors[name][expert].view(torch.uint8)
            own.copy_(value.flatten().contiguous().view(torch.uint8).view(own.shape))

    def put_stored(self, expert, parts):
        """What a checkpoint has of an expert, of each part of its rows."""
        tensors = {}
        for name in parts[0]:
            values = [part[name] for part in parts]
            if name in ("input_scale", "input_global_scale"):
                # Parts have one input: the one with the larger values decides.
                joined = torch.stack(values)
                tensors[name] = joined.amin(0) if name == "input_global_scale" else joined.amax(0)
            else:
                tensors[name] = values[0] if len(values) == 1 else torch.cat(
                    [value.contiguous().view(torch.uint8) for value in values]).view(values[0].dtype)
        if self.scheme.packed:
            self.put_lifted(expert, packed.lift(tensors["weight_packed"], tensors["weight_scale"]))
        else:
            self.put(expert, tensors)

    def put_lifted(self, expert, lifted):
        self.put(expert, lifted.get_tensors())
        self.exactness.append(lifted.exactness)
        if len(lifted.lost.groups):
            self.lost[expert] = lifted.lost

    def finish(self, bias=None):
        factors = self.tensors.get("weight_global_scale")
        if factors is not None and factors.shape[1] > 1 and bool((factors == factors[:, :1]).all()):
            # Parts that were quantized as one have one: results take no factor for each of their columns then.
            self.tensors["weight_global_scale"] = factors[:, :1].clone()
        projection = QuantizedGroups(*self.sizes, self.scheme, self.tensors, bias)
        if self.exactness:
            projection.exactness = packed.join(self.exactness)
        projection.lost = self.lost
        return projection
