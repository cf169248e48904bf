"""Products of a mixture of experts, torch.nn.functional.grouped_mm, as parts of their own."""

import torch

import fp8
from fp8 import imports
from fp8.torch import graphs, importer
from fp8.torch.extraction import Partition
from fp8.torch.parts import Part

ELEMENTS = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}


def is_product(node):
    """Whether a node is a product of groups of rows, or of what is summed over, that
    fp8.grouped_matmul computes: A has two dimensions, B three or two, and there are offsets."""
    if graphs.get_operation(node) != "_grouped_mm":
        return False
    a, b, offsets, bias, result_type = _get_arguments(node)
    values = [value.meta.get("val") if isinstance(value, torch.fx.Node) else None
              for value in (a, b, offsets)]
    if bias is not None or any(value is None for value in values):
        return False
    a, b, offsets = values
    return (a.ndim == 2 and b.ndim in (2, 3) and a.dtype in ELEMENTS and a.dtype == b.dtype
            and offsets.dtype == torch.int32 and result_type in (None, a.dtype)
            and isinstance(offsets.shape[0], int))


def _get_arguments(node):
    names = ("self", "mat2", "offs", "bias", "out_dtype")
    given = {**dict(zip(names, node.args)), **node.kwargs}
    return [given.get(name) for name in names]


def _is_transpose(node):
    """Whether a node swaps the last two dimensions of what it reads, and nothing else."""
    if graphs.get_operation(node) == "t":
        return True
    if graphs.get_operation(node) not in ("transpose", "permute"):
        return False
    rank = node.meta["val"].ndim
    dims = [*range(rank - 2), rank - 1, rank - 2]
    if graphs.get_operation(node) == "permute":
        return [dim % rank for dim in node.args[1]] == dims
    return {dim % rank for dim in node.args[1:]} == {rank - 2, rank - 1}


def _find_stored(node):
    """The matrix, or the several, that a node is or is the transpose of; and whether it is the
    transpose."""
    transposed = False
    while _is_transpose(node):
        node, transposed = node.args[0], not transposed
    return node, transposed


class _Product:
    """A node that is_product: what it is of, as it lies in memory."""

    def __init__(self, node):
        self.node = node
        a, b, self.ends = _get_arguments(node)[:3]
        (self.a, self.a_transposed), (self.b, self.b_transposed) = map(_find_stored, (a, b))

    @property
    def operands(self):
        return [self.a, self.b]


def _find_clusters(graph):
    """Lists of products that share operands and do not wait for each other, which are quantized
    once for all of them. The first of each list is the first of the graph."""
    number = {node: i for i, node in enumerate(graph.nodes)}
    clusters = []
    for node in filter(is_product, graph.nodes):
        product = _Product(node)

        def takes(cluster):
            first = cluster[0]
            shared = {operand for other in cluster for operand in other.operands}
            return (first.ends is product.ends and shared.intersection(product.operands)
                    and all(number[operand] < number[first.node] for operand in product.operands))

        cluster = next(filter(takes, clusters), None)
        if cluster:
            cluster.append(product)
        else:
            clusters.append([product])
    return clusters


def _write_type(shape, element):
    extents = ["?" if isinstance(size, torch.SymInt) else str(size) for size in shape]
    return f"tensor<{'x'.join([*extents, element])}>"


def _get_type(node):
    value = node.meta["val"]
    return _write_type(value.shape, ELEMENTS[value.dtype])


def _write_attributes(attributes):
    return f" {{{', '.join(attributes)}}}" if attributes else ""


def _write_info(info):
    attributes = [f'fp8.name = "{info.name}"'] if info.name is not None else []
    attributes += ["fp8.weight"] * info.is_weight + ["fp8.grad"] * info.is_gradient
    attributes += [f'fp8.saved = "{info.name}"'] * info.is_saved
    return _write_attributes(attributes)


def _write_quantize(node, info):
    """The function that codes of an argument come from: fp8-save-quantized fills it."""
    attributes = _write_attributes([f'fp8.name = "{info.name}"', f'fp8.save = "{info.name}"'])
    return f"func.func @{importer.KEEP}{info.name}(%a: {_get_type(node)}{attributes}) {{\n  return\n}}\n"


def _write_product(index, product, numbers, layer, groups):
    # PyTorch's B has K in front, fp8.grouped_matmul's behind.
    flags = " transpose_a" * product.a_transposed + " transpose_b" * (not product.b_transposed)
    attributes = [f'fp8.name = "{layer}"'] if layer else []
    role = layer.split(".")[-1] if layer else ""
    if role in ("dgrad", "wgrad"):
        attributes.append(f"fp8.role = #fp8.role<{role}>")
    return f"""\
  %r{index} = fp8.grouped_matmul %a{numbers[product.a]}, %a{numbers[product.b]}
      offsets(%offsets : tensor<{groups + 1}xi32>){flags} accumulate = fast\
{_write_attributes(attributes)}
      : {_get_type(product.a)}, {_get_type(product.b)} -> {_get_type(product.node)}
"""


def write_program(products, inputs, infos, layers):
    """The program, as text, of products that have the same groups. It takes `inputs`, operands and the
    groups' ends, each once, described by `infos`: PyTorch has no first offset. `layers` is what the products are
    called, or None."""
    ends = products[0].ends
    groups = ends.meta["val"].shape[0]
    numbers = {node: i for i, node in enumerate(inputs)}
    arguments = ", ".join(f"%ends: tensor<{groups}xi32>" if node is ends else f"%a{i}: {_get_type(node)}{_write_info(info)}"
                          for i, (node, info) in enumerate(zip(inputs, infos)))
    results = ", ".join(f"%r{i}" for i in range(len(products)))
    types = ", ".join(_get_type(product.node) for product in products)
    body = "".join(_write_product(i, product, numbers, layer, groups)
                   for i, (product, layer) in enumerate(zip(products, layers)))
    saved = "".join(_write_quantize(node, info) for node, info in zip(inputs, infos) if info.is_saved)
    return f"""
func.func @{importer.FUNCTION}({arguments}) -> ({types}) {{
  %zero = arith.constant dense<0> : tensor<1xi32>
  %offsets = tensor.concat dim(0) %zero, %ends
      : (tensor<1xi32>, tensor<{groups}xi32>) -> tensor<{groups + 1}xi32>
{body}  return {results} : {types}
}}
{saved}"""


def _find_info(node, infos):
    """The ValueInfo of an argument. Codes are kept of a tensor as it is, and not of another type or a part of it."""
    info = infos.get(graphs.get_origin(node))
    if info is None:
        info = infos.get(graphs.get_origin(graphs.find_source(node)), imports.ValueInfo(None))
        info = imports.ValueInfo(None) if info.is_saved else info
    return info


def _find_nodes(graph, products):
    """The products with the transposes between them and what they are of, in order."""
    nodes = set()
    for product in products:
        nodes.add(product.node)
        for node in _get_arguments(product.node)[:2]:
            while _is_transpose(node):
                nodes.add(node)
                node = node.args[0]
    return [node for node in graph.nodes if node in nodes]


def replace_products(name, module, names, compile, compiled):
    """Puts calls of compiled products into a graph, and adds them to a partitions.Compiled.
    Returns how many there are."""
    count = 0
    for number, cluster in enumerate(_find_clusters(module.graph)):
        part_name = f"{name}.grouped{number}"
        partition = Partition(module, _find_nodes(module.graph, cluster), lays_out=False)
        infos = [_find_info(node, names.infos) for node in partition.inputs]
        layers = [names.layers.get(product.node.name) for product in cluster]
        try:
            part = Part(part_name, compile(write_program(cluster, partition.inputs, infos, layers)), infos)
        except fp8.CompileError as error:
            compiled.left.append(f"{part_name}: {error}")
            continue
        compiled.parts.append(part)
        compiled.calls.append(partition.call(part))
        compiled.remarks.extend(part.program.remarks)
        count += len(cluster)
    return count
