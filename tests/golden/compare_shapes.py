#!/usr/bin/env python3
"""What shape inference says of random nodes whose inputs are partly known: TensorFlow's shape functions beside thalweg's.

    compare_shapes.py --bin build/release/thalweg [--seed N] [--nodes N] [--ops REGEX] [--more]

The nodes are those of fuzz_ops.py. Each input is a constant, or a placeholder of which all, some dims, the rank or
nothing is known; index inputs may also be computed from shapes, element by element known or not. TensorFlow's answer is
that of the shape functions that its import runs. Printed are outputs of which thalweg knows less than TensorFlow or
something else, and nodes that only one of them refuses; with --more also outputs of which it knows more. Exit status 1 if
there was one of the first kinds.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import oracle

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

import fuzz
from fuzz_ops import attr_value, dtype_of, in_own_process

v1 = tf.compat.v1

# Where thalweg answers otherwise on purpose, and why.
EXPLAINED = {
    ("SplitV", "refused"): "with an unknown axis, TensorFlow's import compares the sizes with the last dimension",
    ("SplitV", "less"): "with an unknown axis, TensorFlow's import splits the last dimension",
    ("MaxPool", "other"): "windows along channels leave rows and columns alone, as in TensorFlow's kernel",
    ("MaxPool", "less"): "a window of no rows, which no kernel takes",
    ("Tile", "refused"): "TensorFlow's import takes negative multiples that were packed for unknown",
    ("MatrixDiagV3", "less"): "TensorFlow takes numbers of rows and columns that are not known for -1",
    ("MatrixDiagV3", "refused"): "TensorFlow compares the number of diagonals with one that is not known",
    ("MatrixSetDiagV3", "less"): "TensorFlow takes what is not known for one diagonal",
    ("MatrixSetDiagV3", "refused"): "TensorFlow takes bands of several diagonals for one",
    ("ResizeBilinear", "refused"): "TensorFlow's import takes negative sizes",
    ("ResizeNearestNeighbor", "refused"): "TensorFlow's import takes negative sizes",
    ("Substr", "refused"): "TensorFlow's import takes dims of which one is not known for unequal",
    ("Conv3D", "other"): "a filter without elements, which no kernel takes",
    ("Conv3D", "refused"): "a filter without elements, which no kernel takes",
    ("GatherV2", "less"): "batch_dims beyond the axis, which no kernel takes",
    ("BroadcastGradientArgs", "refused"): "TensorFlow's import takes sizes below -1",
    ("Reshape", "refused"): "TensorFlow's import takes sizes below -1 that were packed for unknown",
    ("OneHot", "less"): "an axis beyond the rank, which no kernel takes",
    ("EnsureShape", "refused"): "TensorFlow refuses a shape of unknown rank",
    ("Equal", "less"): "with incompatible_shape_error=false, unknown dims may turn out as a scalar",
    ("NotEqual", "less"): "as Equal",
    ("FusedBatchNorm", "less"): "the kernel takes videos, of rank 5, under every data format",
    ("FusedBatchNormV2", "less"): "as FusedBatchNorm",
    ("FusedBatchNormV3", "less"): "as FusedBatchNorm",
    ("GatherV2", "other"): "with an unknown axis, TensorFlow subtracts negative batch_dims from the rank",
}


class Builder:
    """One node and what computes its inputs, as a GraphDef."""

    def __init__(self, name, rng):
        self.name, self.rng, self.graph = name, rng, v1.GraphDef()
        self.graph.versions.producer = tf.version.GRAPH_DEF_VERSION

    def add(self, op, inputs=(), **attrs):
        node = self.graph.node.add(name=f"{self.name}_{len(self.graph.node)}", op=op)
        node.input.extend(inputs)
        kinds = {a.name: a.type for a in op_def_registry.get(op).attr}
        for key, value in attrs.items():
            node.attr[key].CopyFrom(attr_value(kinds[key], value))
        return node.name

    def constant(self, array):
        name = self.add("Const", dtype=dtype_of(array))
        tensor = tf.make_tensor_proto(array, dtype_of(array), shape=array.shape)
        self.graph.node[-1].attr["value"].tensor.CopyFrom(tensor)
        return name

    def placeholder(self, array):
        known = [None, array.shape, [d if self.rng.integers(2) else None for d in array.shape], [None] * array.ndim]
        return self.add("Placeholder", dtype=dtype_of(array), shape=known[int(self.rng.integers(4))])

    def dims(self, numbers, dtype):
        """The shape, as a vector of this dtype, of something of which only some sizes are known."""
        shape = [d if self.rng.integers(3) else None for d in numbers]
        source = self.add("Placeholder", dtype=tf.float32, shape=shape)
        return self.add("Shape", [source], T=tf.float32, out_type=dtype)

    def element(self, number, dtype):
        """A scalar of this dtype: a constant, a size taken out of a shape, or nothing known."""
        how = int(self.rng.integers(3))
        if how == 0 or not 0 <= number < 1 << 20:
            return self.constant(np.array(number, dtype.as_numpy_dtype))
        if how == 1:
            return self.add("Placeholder", dtype=dtype, shape=[])
        ends = [self.constant(np.array([i], np.int32)) for i in (1, 2, 1)]
        source = self.dims([3, number], dtype)
        return self.add("StridedSlice", [source, *ends], T=dtype, Index=tf.int32, shrink_axis_mask=1)

    def computed(self, array):
        """A vector of sizes, put together."""
        dtype, numbers = dtype_of(array), [int(n) for n in array]
        if self.rng.integers(2) and all(0 <= n < 1 << 20 for n in numbers):
            return self.dims(numbers, dtype)
        parts = [self.element(n, dtype) for n in numbers]
        return self.add("Pack", parts, N=len(parts), T=dtype, axis=0)

    def source(self, array):
        indices = array.dtype in (np.int32, np.int64) and array.size <= 8
        if indices and array.ndim == 1 and array.size and self.rng.integers(3) == 0:
            return self.computed(array)
        if indices and array.ndim == 0 and self.rng.integers(4) == 0:
            return self.element(int(array), dtype_of(array))
        return self.constant(array) if self.rng.integers(3) == 0 else self.placeholder(array)

    def finish(self, node):
        op_def = op_def_registry.get(node.op)
        main = v1.NodeDef(name=self.name, op=node.op)
        for arg, value in zip(op_def.input_arg, node.inputs):
            arrays = value if isinstance(value, list) else [value]
            types = [dtype_of(a) for a in arrays]
            if arg.number_attr:
                main.attr[arg.number_attr].CopyFrom(attr_value("int", len(arrays)))
            if arg.type_attr:
                main.attr[arg.type_attr].CopyFrom(attr_value("type", types[0]))
            if arg.type_list_attr:
                main.attr[arg.type_list_attr].CopyFrom(attr_value("list(type)", types))
            main.input.extend(self.source(a) for a in arrays)
        kinds = {a.name: a.type for a in op_def.attr}
        for key, value in node.attrs.items():
            main.attr[key].CopyFrom(attr_value(kinds[key], value))
        self.graph.node.append(main)
        return self.graph


def dims_of(shape):
    """The dims of a TensorShape, or None."""
    return None if shape.rank is None else shape.as_list()


def ask_tensorflow(graph, name):
    """The shapes of the outputs, or the text of a refusal."""
    loaded = tf.Graph()
    try:
        with loaded.as_default():
            tf.import_graph_def(graph, name="")
    except (ValueError, tf.errors.OpError) as error:
        return str(error)
    try:
        return [dims_of(t.shape) for t in loaded.get_operation_by_name(name).outputs]
    except ValueError as error:
        return f"not refused, but a shape that cannot be: {error}"


def ask_thalweg(binary, graphs):
    """By name of a node: the shapes of its outputs, or the text of a refusal."""
    answers, left = {}, dict(graphs)
    while left:
        graph = v1.GraphDef()
        for part in left.values():
            graph.node.extend(part.node)
            graph.versions.CopyFrom(part.versions)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "graph.pb"
            path.write_bytes(graph.SerializeToString())
            command = [binary, "inspect", str(path), "--json", "--all", "--node", r"n\d+"]
            document = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
        # What is wrong with a node of whose inputs nothing is known is a warning only.
        faults = [f for f in document["findings"] if f["severity"] == "error" or f["kind"] == "shape"]
        errors = {f["node"]: f["message"] for f in faults}
        answers.update({name: text for name, text in errors.items() if name in left})
        if not errors:
            for node in document["matched"]:
                answers[node["name"]] = [output["shape"] for output in node["outputs"]]
            return answers
        if not set(errors) & set(left):
            raise RuntimeError(f"thalweg refuses what is around the nodes: {errors}")
        left = {name: part for name, part in left.items() if name not in errors}
    return answers


def judge(got, want):
    """What thalweg's answer is beside TensorFlow's: same, less, more, other or refused."""
    if isinstance(got, str) or isinstance(want, str):
        return "same" if isinstance(got, str) and isinstance(want, str) else "refused"
    verdicts = {judge_shape(g, w) for g, w in zip(got, want)}
    return next((v for v in ("other", "less", "more") if v in verdicts), "same")


def judge_shape(got, want):
    if got == want:
        return "same"
    if got is None or want is None:
        return "less" if got is None else "more"
    if len(got) != len(want):
        return "other"
    pairs = list(zip(got, want))
    if any(g is not None and w is not None and g != w for g, w in pairs):
        return "other"
    return "less" if any(g is None and w is not None for g, w in pairs) else "more"


def show(graph):
    """The inputs of the node, as they were made."""
    lines = []
    for node in graph.node[:-1]:
        text = " ".join(node.input)
        if node.op == "Const":
            array = tf.make_ndarray(node.attr["value"].tensor)
            text = f"{list(array.shape)} {array.reshape(-1)[:8]}"
        elif node.op == "Placeholder":
            shape = node.attr["shape"].shape
            text = "unknown" if shape.unknown_rank else str([d.size for d in shape.dim])
        lines.append(f"    {node.name} {node.op} {text}")
    return "\n".join([*lines, f"    {graph.node[-1].name} reads {' '.join(graph.node[-1].input)}"])


def compare_op(binary, op, options, rng):
    """How often each verdict came out for random nodes of one op."""
    printed = {"less", "other", "refused"} | ({"more"} if options.more else set())
    verdicts = collections.Counter()
    nodes = {f"n{i}": fuzz.GENERATORS[op](rng) for i in range(options.nodes)}
    graphs = {name: Builder(name, rng).finish(node) for name, node in nodes.items()}
    got = ask_thalweg(binary, graphs)
    for name, graph in graphs.items():
        want = ask_tensorflow(graph, name)
        verdict = judge(got[name], want)
        if (op, verdict) in EXPLAINED:
            verdict = "explained"
        verdicts[verdict] += 1
        if verdict in printed:
            print(f"{verdict.upper()} {op} {nodes[name].attrs}: should be {want}, is {got[name]}\n{show(graph)}", flush=True)
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--ops", default=".*")
    parser.add_argument("--more", action="store_true")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.bin).resolve())
    verdicts = collections.Counter()
    for index, op in enumerate(sorted(fuzz.GENERATORS)):
        if not re.fullmatch(options.ops, op):
            continue
        rng = np.random.default_rng([options.seed, index])
        answer = in_own_process(lambda: compare_op(binary, op, options, rng))
        if answer is None:
            print(f"TensorFlow did not survive {op}, whose nodes do not count")
        verdicts.update(answer or {})
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    sys.exit(1 if any(verdicts[v] for v in ("less", "other", "refused")) else 0)


if __name__ == "__main__":
    main()
