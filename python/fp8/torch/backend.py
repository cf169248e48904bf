"""The backend of torch.compile."""

import functools
import warnings
from collections import Counter
from collections.abc import Mapping

import torch
import torch._inductor
from torch._dynamo.utils import counters
from torch._functorch import config as functorch_config
from torch._inductor import compile_fx

import fp8
from fp8.errors import ArgumentError
from fp8.recipes import Recipe, get_text
from fp8.remarks import explain as explain_remarks
from fp8.torch import (attention_graphs, choices, coded_graphs, coded_parts, flex_graphs, fused_linears, graphs, kept_codes,
                       repeated)
from fp8.torch.attention_scales import AttentionUnit
from fp8.torch.linear_programs import settle_only_faster
from fp8.torch.written_weights import WrittenWeights


def _interpret(module, inputs, **others):
    """What runs a graph operation by operation, in place of Inductor's code."""
    for node in module.graph.nodes:
        # Results of parts, and so of what follows them, may lie otherwise than traced.
        if node.target is torch.ops.aten.view.default:
            node.target = torch.ops.aten.reshape.default
    module.graph.set_codegen(torch.fx.graph._BoxedCodeGen())
    module.recompile()

    def call(arguments):
        # Inductor's results are no views, either: autograd has views of several results of a graph changed by nobody.
        return tuple(value.data if isinstance(value, torch.Tensor) and value._is_view() else value
                     for value in module.forward(arguments))

    call._boxed_call = True
    return call


def _resolve(call):
    """The same for gradients with the negative bit, which are known when they come."""
    def resolved(arguments):
        for i, value in enumerate(arguments):
            if isinstance(value, torch.Tensor) and value.is_neg():
                arguments[i] = value.resolve_neg()
        return call(arguments)

    resolved._boxed_call = True
    return resolved


def _hold(call, owner, inputs):
    """The same function, and something that lives as long as it does. Of inputs with the negative
    bit, which Inductor does not look at, it takes what they stand for; torch.compile makes
    another function for those without."""
    if any(isinstance(value, torch.Tensor) and value.is_neg() for value in inputs):
        inner = call

        def call(*arguments):
            return inner(*(value.resolve_neg() if isinstance(value, torch.Tensor) else value
                           for value in arguments))
    held = functools.partial(call)
    held.owner = owner
    if getattr(call, "_boxed_call", False):
        held._boxed_call = True
    return held


def _divide_options(options):
    """Those of fp8.compile, and those of Inductor, which it has beside."""
    ours = {key for key, _, _ in fp8.get_options()}
    theirs = set(torch._inductor.list_options())
    inductor = {key: value for key, value in options.items()
                if key in theirs and key.replace("_", "-") not in ours}
    return {key: value for key, value in options.items() if key not in inductor}, inductor


def _get_mode_options(mode):
    """Raises ArgumentError for a mode that there is not."""
    if mode is None:
        return {}
    modes = torch._inductor.list_mode_options()
    if mode not in modes:
        raise ArgumentError(f"expected mode to be one of {', '.join(modes)}, but got {mode!r}")
    return modes[mode]


def _has_layers(graph):
    """Whether something is in FP8 already: layers and attention are operations of ours, parts are what a graph is made of."""
    names = (node.target.name() for node in graph.nodes if isinstance(node.target, torch._ops.OpOverload))
    return any(name.startswith("fp8::") and name != "fp8::part" for name in names)


class Backend:
    """Compiles what torch.compile captures: `torch.compile(model, backend=Backend(recipe))`.

    Forward and backward of each graph become programs: matrix products in FP8 under the
    recipe, with what is cast for them and what follows them element by element in their kernels
    or between them. All else is compiled by Inductor; `left` has a line for each operation that
    is never ours.

    - recipe: as fp8.compile takes it;
    - target: "cpu", "sm_89", "sm_90a", "sm_100a", or "auto", that of the graph's tensors;
    - cache_weights: parts quantize their weights once in a step of several calls (`accumulate`)
      and keep the codes until it ends, a byte for each element and part;
    - only_faster: on a GPU leaves products to Inductor that are expected to be no faster in FP8
      with the casts and launches that this takes (fp8.torch.choices), of 16 bits, static sizes
      and a recipe of which that is known. `explain` says which and why. None is True, but with the
      option `invariant`, which computes any number of rows alike;
    - rest: what runs all else, "inductor", as without us, or "eager", operation by operation,
      which takes no compiler for C++ on a CPU;
    - mode: of torch.compile, such as "reduce-overhead"; options of Inductor, such as
      `{"triton.cudagraphs": True}`, may stand beside ours;
    - attention: what computes calls of torch.nn.functional.scaled_dot_product_attention, and of flex_attention, forward and
      backward: "torch", Inductor as without us; "fp8", our kernel where there is one; "auto", that
      where it is expected to be no slower; or an Attention, with a format. None is "torch", but with
      a recipe that has `fp8_dpa` "fp8" in E4M3; our kernel on a GPU, in graphs of layers of
      quantize_for_inference, where one query sees what a mask of bool says, as in decoding with a
      static cache, and in graphs with products in FP8 for sliding windows and for calls that
      PyTorch has no kernel of;
    - share_layers: compiles what layers of quantize_for_inference repeat between their products once for all of them
      (fp8.torch.repeated), in graphs without a gradient. That takes Inductor less time, and each call of a layer
      more. None is True on a CPU. On an H200, in CUDA graphs, a token of 32 layers takes 7 % longer at batch 1;
    - keep_codes: keeps codes between forward and backward of what the backward only multiplies in FP8, where they are fewer
      bytes (fp8.torch.kept_codes); results have the same bits. `kept` says what;
    - options: of fp8.compile.

    Layers of quantize_for_inference become parts of their own with what is between them, `fused`
    (fp8.torch.fused_linears), whatever the recipe.

    `parts` are what else was compiled, in order; each has a `program`, with its remarks, and a
    `state` or None. `attention` is an Attention, or None. Raises ArgumentError and CompileError for
    unknown options and recipes.
    """

    def __init__(self, recipe=None, *, target="auto", cache_weights=False, only_faster=None,
                 rest="inductor", mode=None, attention=None, share_layers=None, keep_codes=True, **options):
        options, inductor = _divide_options(options)
        self.recipe, self.target, self.options = recipe, target, options
        only_faster = settle_only_faster(only_faster, options)
        self._cache_weights, self._only_faster = cache_weights, only_faster is not False
        # Mistakes are said here, and not by the first graph.
        checked = {key: value for key, value in options.items() if key != "cache"}
        fp8.emit("module {}", "mlir", recipe, target="cpu" if target == "auto" else target,
                 **checked)
        if rest not in ("inductor", "eager"):
            raise ArgumentError(f"expected rest to be 'inductor' or 'eager', but got {rest!r}")
        self.attention, self._attention_choice = attention_graphs.make(attention, recipe)
        # That of calls which nothing was said about.
        self._usual = attention_graphs.Attention() if attention is None and self.attention is None else None
        self.parts, self.left, self._remarks, self._calls = [], [], [], []
        self.fused, self._flex_calls = [], []
        # Whether a graph without a recipe is what was meant, or was said to be none in FP8.
        self._may_have_none = False
        self._config = {**_get_mode_options(mode), **inductor} or None
        self._replays = bool(self._config and self._config.get("triton.cudagraphs"))
        self._breaks_before = Counter(counters["graph_break"])
        self._inner = compile_fx.compile_fx_inner if rest == "inductor" else _interpret
        self._graphs, self._ends_steps, self._share_layers = 0, True, share_layers
        self._keep_codes, self.kept, self.coded = keep_codes, [], []
        # WrittenWeights, where an optimizer writes codes of weights (fuse_optimizer).
        self._written = None

    def __call__(self, module, inputs):
        number, self._graphs = self._graphs, self._graphs + 1
        # A graph that stays Inductor's stays it to the bit.
        expects_fp8 = self._expects_fp8(module)
        if self._usual is not None and fused_linears.has_layers(module.graph):
            attention_graphs.replace(module, self._usual, attention_graphs.DECODING)
        elif self._usual is not None and expects_fp8:
            attention_graphs.replace(module, self._usual, attention_graphs.SLOW)
        elif self.attention is not None or expects_fp8:
            reasons = attention_graphs.replace(module, self.attention, self._attention_choice,
                                               lambda recipe: self._make_unit(number, recipe))
            if self.attention is not None:
                reasons += self._replace_flex(number, module, inputs)
            self.left += [f"graph{number}: attention is Inductor's: {reason}" for reason in reasons]
        parameters = [graphs.get_parameter_name(node)
                      for node in graphs.get_placeholders(module.graph)]
        saved, config = {}, dict(self._config or {})
        # The backward, where its parts are there before those of the forward.
        early = None

        def keep(forward, backward, outputs):
            nonlocal early
            early = self._keep(number, forward, backward, outputs, parameters)

        prepare = self._find_coding(number, parameters)
        if expects_fp8 and (self._keep_codes or prepare):
            config["custom_partitioner_fn"] = kept_codes.Partitioner(
                keep if self._keep_codes else None,
                config.get("custom_partitioner_fn", torch._inductor.config.custom_partitioner_fn), prepare)

        def compile(graph, inputs, **others):
            if others.get("is_inference") and expects_fp8 and prepare:
                prepare(graph.graph)
            if not others.get("is_backward"):
                saved.update(graphs.get_saved_parameters(graph.graph, parameters))
                self._add(*self._compile(f"graph{number}.forward", graph, graphs.name_forward(graph.graph, parameters)))
                if early is not None:
                    self._add(*early)
            elif early is None:
                names = graphs.name_backward(graph.graph, parameters, saved)
                self._add(*self._compile(f"graph{number}.backward", graph, names))
            if others.get("is_inference") and self._shares(graph):
                self._calls.extend(repeated.share(graph, self._inner))
            made = self._inner(graph, inputs, **others)
            return _resolve(made) if others.get("is_backward") else made

        # What goes into a cast is computed again there, in a backward, for less than it takes to
        # keep and read it. A graph that was compiled by Inductor alone must not come out of its
        # cache.
        with functorch_config.patch(
                enable_autograd_cache=False,
                ban_recompute_materialized_backward=not expects_fp8):
            call = compile_fx.compile_fx(module, inputs, inner_compile=compile,
                                         config_patches=config or None)
        # With this Backend, whose parts it calls.
        return _hold(call, self, inputs)

    def _replace_flex(self, number, module, inputs):
        """Takes calls of flex_attention, and returns reasons for others."""
        calls, reasons = flex_graphs.replace(module, inputs, self.attention, self._attention_choice, self._replays,
                                             lambda recipe: self._make_unit(number, recipe))
        self._flex_calls += calls
        return reasons

    def _make_unit(self, number, recipe):
        """What keeps the scales of one call of attention of a graph; it is among `parts`."""
        made = sum(isinstance(part, AttentionUnit) and part.name.startswith(f"graph{number}.") for part in self.parts)
        unit = AttentionUnit(recipe)
        unit.name, unit.steps = f"graph{number}.attention{made}", self._ends_steps
        self.parts.append(unit)
        return unit

    def _find_coding(self, number, parameters):
        """What has attention of a graph give codes to parts, by fp8_mha, in its joint graph or one without a backward; or None."""
        units = [part for part in self.parts if isinstance(part, AttentionUnit) and part.name.startswith(f"graph{number}.")]
        if not any(unit.gives_codes for unit in units):
            return None

        def prepare(graph):
            names, backward = graphs.name_forward(graph, parameters), coded_graphs.list_backward(graph)
            products = [node for node in graph.nodes if node.name in names.layers and node not in backward]
            slower = self._find_slower(graph, names, products)
            coded = set(products).difference(slower)
            count = coded_parts.take(graph, coded.__contains__)
            if count:
                self.coded.append(f"graph{number}: results of {count} call{'s' * (count > 1)} of attention are codes")

        return prepare

    def _find_slower(self, graph, names, products):
        """Those products that stay in high precision by `only_faster`, with remarks."""
        recipe = self._get_recipe()
        if not (self._only_faster and recipe) or self._find_device(graph) is None:
            return {}
        return choices.find_slower(names, recipe, products, self._replays)

    def _keep(self, number, forward, backward, outputs, parameters):
        """Compiles a backward that takes codes, of a joint graph that was divided. Returns what _compile does, or None: it
        takes none."""
        found = kept_codes.find(forward, backward, outputs, parameters)
        if fused_linears.has_layers(backward.graph):
            return None
        saved, name = graphs.get_saved_parameters(forward.graph, parameters), f"graph{number}.backward"

        def compile(module, found):
            names = graphs.name_backward(module.graph, parameters, saved)
            kept_codes.name(module.graph, found, names.infos)
            return names, self._compile(name, module, names)

        while found:
            module, (names, made), uses, may_stay = kept_codes.try_compile(backward, found, compile)
            if may_stay:
                self.kept += kept_codes.describe(f"graph{number}", backward, uses, names.layers)
                self._calls += kept_codes.replace(forward, module, uses)
                backward.graph = module.graph
                backward.recompile()
                return made
            found = list(uses)
        return None

    def _compile(self, name, graph, names):
        """Puts parts into a graph. Returns a fused_linears result, or None, and partitions.Compiled, or None."""
        target, fused = self._find_target(graph), None
        if fused_linears.has_layers(graph.graph):
            self._may_have_none = True
            fused = fused_linears.fuse(name, graph, names, target)
            if not self._has_recipe():
                return fused, None
        # Not before it is needed: it takes torch-mlir.
        from fp8.torch import partitions

        def compile(text):
            return fp8.compile(text, self.recipe, target=target, **self.options)

        coded_parts.name(graph.graph, names.infos)
        made = partitions.compile_graph(name, graph, names, compile, self._cache_weights or self._written is not None,
                                        functools.partial(self._find_slower, graph.graph))
        turns_squares = name.endswith(".backward") if self.options.get("transposed_codes") in (None, "copy") else None
        made.calls.extend(coded_parts.give(graph.graph, turns_squares)[1])
        if name.endswith(".backward") and made.remarks and not self._has_recipe() and not (
                self._may_have_none or _has_layers(graph.graph)):
            self._may_have_none = True
            warnings.warn("fp8: no product of this model is in FP8, since the backend has no recipe: "
                          "torch.compile(model, backend=\"fp8\", options={\"recipe\": \"rowwise\"}); \"none\" is none without this",
                          stacklevel=2)
        return fused, made

    def _add(self, fused, made):
        """Adds what _compile has made of a graph that stays."""
        if fused is not None:
            self.fused.extend(fused.parts)
            self._calls.extend(fused.calls)
            self.left.extend(fused.lines)
        if made is not None:
            for part in made.parts:
                part.steps, part.written = self._ends_steps, self._written
            self.parts.extend(made.parts)
            self._calls.extend(made.calls)
            self._remarks.extend(made.remarks)
            self.left.extend(made.left)

    def write_weights(self, model):
        """Lets an optimizer write the codes of a model's weights that parts take: for fuse_optimizer. Returns
        WrittenWeights. Raises ArgumentError."""
        if self._written is None:
            if self._graphs:
                raise ArgumentError("expected fuse_optimizer before the first call that the Backend compiles, but got it behind one")
            self._written = WrittenWeights(model, self._get_recipe(), self.target, self.options, self._add_left)
        self._written.check_model(model)
        return self._written

    def _add_left(self, line):
        """Adds a line once, of what is found more than once."""
        if line not in self.left:
            self.left.append(line)

    def _list_holders(self):
        """What has a state, by name: parts, and weights that an optimizer writes."""
        holders = [*self.parts, *(self._written.list_holders() if self._written else ())]
        return {holder.name: holder for holder in holders if holder.state is not None}

    def _has_recipe(self):
        return self.recipe is not None or bool(self.options.get("recipe_file"))

    def _get_recipe(self):
        """The text of the one recipe, or None."""
        return get_text(self.recipe) if isinstance(self.recipe, (Recipe, str)) else None

    def _expects_fp8(self, graph):
        """Whether there will be products in FP8: without, a graph is just Inductor's."""
        recipe, device = self._get_recipe(), self._find_device(graph.graph)
        if self.recipe is None or recipe == "none":
            return False
        if recipe is None or device is None or not self._only_faster:
            return True
        return choices.expects_faster(graph.graph, recipe, self._replays)

    def _shares(self, graph):
        if self._share_layers is None:
            return self._inner is not _interpret and self._find_device(graph.graph) is None
        return self._share_layers

    def _find_device(self, graph):
        """The GPU that a graph's arguments are on, or None."""
        values = (node.meta.get("val", node.meta.get("example_value"))
                  for node in graphs.get_placeholders(graph))
        return next((value.device for value in values
                     if isinstance(value, torch.Tensor) and value.device.type == "cuda"), None)

    def _find_target(self, graph):
        if self.target != "auto":
            return self.target
        return "cpu" if self._find_device(graph.graph) is None else "auto"

    @property
    def remarks(self):
        """What was decided of each matrix product, of all parts."""
        return tuple(self._remarks)

    @property
    def breaks(self):
        """Why graphs ended early since it was made, and how often: nothing is compiled across such a place."""
        return dict(Counter(counters["graph_break"]) - self._breaks_before)

    def explain(self):
        """Prints each matrix product: what runs it, and why it is not in FP8; where graphs end early; and which
        operations are Inductor's."""
        print(explain_remarks(self.remarks))
        for reason, count in self.breaks.items():
            print(f"{count} graph break{'s' * (count > 1)}: {reason.strip().splitlines()[0]}")
        for text in (self.attention or self._usual).taken if self.attention or self._usual else ():
            print(f"attention of {text}: fp8.attention")
        for line in (*self.kept, *self.coded):
            print(line)
        for line in dict.fromkeys(self.left):
            print(line)

    def end_step(self):
        """Ends a step of all parts, where `accumulate` keeps calls from ending theirs."""
        for part in self.parts:
            part.end_step()

    def accumulate(self, is_on=True):
        """Makes a step of several calls, as with accumulated gradients: until `end_step`."""
        self._ends_steps = not is_on
        for part in self.parts:
            part.steps = self._ends_steps

    def state_dict(self):
        """The states of all parts, by the parts' names: what goes into a checkpoint, as tensors, which torch.load takes."""
        return {name: {key: torch.from_numpy(array) for key, array in holder.state.state_dict().items()}
                for name, holder in self._list_holders().items()}

    def load_state_dict(self, state_dict, strict=True):
        """The inverse, after the first call of the model has compiled its parts."""
        names = self._list_holders()
        if set(names) != set(state_dict):
            raise ArgumentError(f"expected states of {', '.join(names) or 'no parts'}, but got "
                                f"those of {', '.join(state_dict) or 'none'}")
        for name, state in state_dict.items():
            if isinstance(state, Mapping):  # Older checkpoints have NumPy's arrays.
                state = {key: value.cpu() if isinstance(value, torch.Tensor) else value for key, value in state.items()}
            names[name].state.load_state_dict(state, strict)
        if self._written:
            self._written.drop()


def explain(model, *inputs, recipe=None, backward=True, **options):
    """Compiles a module for these inputs, runs it, and prints what runs each matrix product,
    and why it is not in FP8. Returns the Backend."""
    torch._dynamo.reset()
    backend = Backend(recipe, **options)
    result = torch.compile(model, backend=backend)(*inputs)
    if backward:
        values = torch.utils._pytree.tree_leaves(result)
        losses = [value.sum() for value in values
                  if isinstance(value, torch.Tensor) and value.requires_grad]
        if losses:
            parameters = [value for value in model.parameters() if value.requires_grad]
            torch.autograd.grad(sum(losses), parameters, allow_unused=True)
    backend.explain()
    return backend
