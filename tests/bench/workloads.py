"""The graphs of the micro-benchmarks: each as a GraphDef (thalweg, TensorFlow), as a list of predecessors where its nodes do
nothing (oneTBB) and as an ONNX model of the same shape (ONNX Runtime). Written byte by byte, so that no peer is needed to make them."""

import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from graph_bytes import attr, field, graph, node, placeholder, scalar_field, type_attr  # noqa: E402

FLOAT = 1  # the same number in TensorFlow's and ONNX's enumeration of types


# ---- shapes: for each node the nodes it waits for, which have smaller numbers ----------------------------------------------


def chain(count):
    return [[i - 1] if i else [] for i in range(count)]


def fan(count):
    """One node, `count` that wait for it, one that waits for all of them."""
    return [[]] + [[0]] * count + [list(range(1, count + 1))]


def grid(count):
    """A square of nodes that wait for their neighbours above and to the left: diamonds, closely packed."""
    side = round(count**0.5)
    above = lambda i: [i - side] if i >= side else []  # noqa: E731
    left = lambda i: [i - 1] if i % side else []  # noqa: E731
    return [above(i) + left(i) for i in range(side * side)]


def random_dag(count):
    """Two random predecessors among the thousand nodes before; a last node waits for the last thousand."""
    numbers = random.Random(1)
    waits = [sorted({numbers.randrange(max(0, i - 1000), i) for _ in range(2)}) if i else [] for i in range(count)]
    return waits + [list(range(count - min(1000, count), count))]


# ---- their forms ------------------------------------------------------------------------------------------------------------


def float_constant(name, value):
    tensor = scalar_field(1, FLOAT) + field(2, b"") + field(5, struct.pack("<f", value))
    return node(name, "Const", [], type_attr("dtype", "float"), attr("value", field(8, tensor)))


def noop_graph(waits):
    name = lambda i: f"scope{i % 100}/n{i}"  # noqa: E731
    return graph(*(node(name(i), "NoOp", [f"^{name(p)}" for p in before]) for i, before in enumerate(waits)))


def add_graph(count):
    t = type_attr("T", "float")
    links = (node(f"a{i}", "AddV2", [f"a{i - 1}" if i else "x", "one"], t) for i in range(count))
    return graph(placeholder("x", "float", []), float_constant("one", 1), *links, node("y", "Identity", [f"a{count - 1}"], t))


def empty_graph():
    return graph(placeholder("x", "float", []), node("y", "Identity", ["x"], type_attr("T", "float")))


def onnx_model(nodes, output, constants=()):
    """`nodes`: (op, inputs, output); the model takes x and gives `output`, all float[1]."""
    dims = field(2, field(1, scalar_field(1, 1)))
    value = lambda name: field(1, name) + field(2, field(1, scalar_field(1, FLOAT) + dims))  # noqa: E731
    body = [field(1, b"".join(field(1, i) for i in inputs) + field(2, out) + field(4, op)) for op, inputs, out in nodes]
    numbers = [field(5, scalar_field(1, 1) + scalar_field(2, FLOAT) + field(4, struct.pack("<f", v)) + field(8, n)) for n, v in constants]
    parts = body + [field(2, "g")] + numbers + [field(11, value("x")), field(12, value(output))]
    return scalar_field(1, 8) + field(7, b"".join(parts)) + field(8, scalar_field(2, 17))


def onnx_of_shape(waits):
    """Relu where a node waits for one, Sum where it waits for several: ONNX has no edges without data."""
    nodes = []
    for i, before in enumerate(waits):
        inputs = [f"n{p}" for p in before] or ["x"]
        nodes.append(("Relu" if len(inputs) == 1 else "Sum", inputs, f"n{i}"))
    return onnx_model(nodes, f"n{len(waits) - 1}")


class Workload:
    """One graph in its forms. `nodes` is what times are divided by."""

    def __init__(self, name, nodes, graph_def, feed="-", fetch="-", target="-", waits=None, onnx=None):
        self.name, self.nodes, self.ends = name, nodes, f"{feed} {fetch} {target}"
        self.graph_def, self.waits, self.onnx = graph_def, waits, onnx

    def write(self, folder):
        """Writes what there is of name.pb, name.edges and name.onnx."""
        texts = {"pb": self.graph_def()}
        if self.waits:
            texts["edges"] = "".join(" ".join(map(str, before)) + "\n" for before in self.waits).encode()
        if self.onnx:
            texts["onnx"] = self.onnx()
        for ending, content in texts.items():
            with open(os.path.join(folder, f"{self.name}.{ending}"), "wb") as file:
                file.write(content)


def of_shape(name, waits, in_onnx):
    last = len(waits) - 1
    return Workload(name, len(waits), lambda: noop_graph(waits), target=f"scope{last % 100}/n{last}", waits=waits,
                    onnx=(lambda: onnx_of_shape(waits)) if in_onnx else None)


def add_chain(name, count):
    nodes = [("Add", [f"a{i - 1}" if i else "x", "one"], f"a{i}") for i in range(count)]
    return Workload(name, count, lambda: add_graph(count), "x:0", "y:0",
                    onnx=lambda: onnx_model(nodes, f"a{count - 1}", [("one", 1.0)]))


def all_workloads():
    yield Workload("empty_step", 1, empty_graph, "x:0", "y:0", onnx=lambda: onnx_model([("Identity", ["x"], "y")], "y"))
    for count, size in ((10_000, "10k"), (100_000, "100k")):
        for what, shape in (("chain", chain), ("fan_out_in", fan), ("diamonds", grid), ("random_dag", random_dag)):
            # ONNX Runtime needs many minutes to load the other shapes with 100,000 nodes.
            yield of_shape(f"{what}_{size}", shape(count), in_onnx=count <= 10_000 or shape is chain)
    yield add_chain("add_chain_10k", 10_000)


CALLERS = add_chain("add_chain_1k", 1_000)
