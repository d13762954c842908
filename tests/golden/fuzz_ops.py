#!/usr/bin/env python3
"""Differential fuzzing of single ops: random nodes, legal and not, answered by TensorFlow and by thalweg.

    fuzz_ops.py --bin build/release/thalweg [--seed N] [--rounds N] [--nodes N] [--ops REGEX] [--keep FOLDER]

Each round makes for every op one graph of random nodes (fuzz/*.py say how), runs each node in a step of its own in
both engines and compares: values where TensorFlow gives one, the status code where it fails. A node that TensorFlow
refuses to import gets a graph of its own, which thalweg must refuse or fail to run. Differences are printed with all that
is needed to repeat them; --keep writes each as a case, which goes to faults/ with its repair. Exit status 1 if there was one.
"""

import argparse
import json
import os
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

v1 = tf.compat.v1
# What TensorFlow says to a node that it does not even import.
REFUSED = "INVALID_ARGUMENT at load"
CODES = {
    1: "CANCELLED",
    2: "UNKNOWN",
    3: "INVALID_ARGUMENT",
    4: "DEADLINE_EXCEEDED",
    5: "NOT_FOUND",
    6: "ALREADY_EXISTS",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    10: "ABORTED",
    11: "OUT_OF_RANGE",
    12: "UNIMPLEMENTED",
    13: "INTERNAL",
}


def attr_value(kind, value):
    """The AttrValue of a Python value for an attribute declared as `kind`."""
    out = tf.compat.v1.AttrValue()
    if kind.startswith("list("):
        field = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type"}[kind[5:-1]]
        out.list.SetInParent()
        getattr(out.list, field).extend(tf.as_dtype(v).as_datatype_enum if field == "type" else v for v in value)
    elif kind == "type":
        out.type = tf.as_dtype(value).as_datatype_enum
    elif kind == "shape":
        out.shape.CopyFrom(tf.TensorShape(value).as_proto())
    elif kind == "string":
        out.s = value.encode() if isinstance(value, str) else value
    else:
        setattr(out, {"int": "i", "float": "f", "bool": "b"}[kind], value)
    return out


def dtype_of(array):
    return tf.string if array.dtype == object else tf.as_dtype(array.dtype)


def build(name, node, rng):
    """The GraphDef of one node with its inputs, and what to feed."""
    op_def = op_def_registry.get(node.op)
    kinds = {a.name: a.type for a in op_def.attr}
    graph, feeds = v1.GraphDef(), {}
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    main = v1.NodeDef(name=name, op=node.op)
    for arg, value in zip(op_def.input_arg, node.inputs):
        values = value if isinstance(value, list) else [value]
        if arg.number_attr:
            main.attr[arg.number_attr].CopyFrom(attr_value("int", len(values)))
        if arg.type_attr:
            main.attr[arg.type_attr].CopyFrom(attr_value("type", dtype_of(values[0])))
        if arg.type_list_attr:
            main.attr[arg.type_list_attr].CopyFrom(attr_value("list(type)", [dtype_of(v) for v in values]))
        for i, array in enumerate(values):
            source = graph.node.add(name=f"{name}_{arg.name}_{i}")
            source.attr["dtype"].CopyFrom(attr_value("type", dtype_of(array)))
            how = rng.integers(4)
            if how == 0:
                source.op = "Const"
                source.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array, dtype_of(array), shape=array.shape))
            else:
                source.op = "Placeholder"
                shape = [None, array.shape, [d if rng.integers(2) else None for d in array.shape]][how - 1]
                source.attr["shape"].CopyFrom(attr_value("shape", shape))
                feeds[source.name + ":0"] = array
            main.input.append(source.name)
    for key, value in node.attrs.items():
        main.attr[key].CopyFrom(attr_value(kinds[key], value))
    graph.node.append(main)
    return graph, feeds


def outputs_of(loaded, name):
    """What to fetch of a node: its outputs, or the node itself where it has none."""
    return [t.name for t in loaded.get_operation_by_name(name).outputs] or [name]


def ask_tensorflow(graph_def, feeds_of):
    """By node: (fetches, values) or (fetches, code)."""
    loaded = tf.Graph()
    with loaded.as_default():
        tf.import_graph_def(graph_def, name="")
    answers = {}
    with v1.Session(graph=loaded, config=oracle.config()) as session:
        for name, feeds in feeds_of.items():
            fetches = outputs_of(loaded, name)
            try:
                got = session.run(fetches, feeds)
                answers[name] = fetches, [np.array(v, object) if isinstance(v, bytes) else v for v in got]
            except tf.errors.OpError as error:
                answers[name] = fetches, CODES[error.error_code]
    return answers


def importable(graph_def):
    try:
        with tf.Graph().as_default():
            tf.import_graph_def(graph_def, name="")
        return True
    except (ValueError, tf.errors.OpError):
        return False


def ask_thalweg(binary, folder, graph_def, steps, flags=()):
    """The parsed answer and the fetched arrays. A step is (feeds, fetches); names without a port are targets."""
    (folder / "graph.pb").write_bytes(graph_def.SerializeToString(deterministic=True))
    script = []
    for i, (feeds, fetches) in enumerate(steps):
        np.savez(folder / f"in{i}.npz", **{k: oracle.plain(v) for k, v in feeds.items()})
        what = {"fetches": [f for f in fetches if ":" in f], "targets": [f for f in fetches if ":" not in f]}
        script.append({**what, **({"inputs": f"in{i}.npz"} if feeds else {})})
    (folder / "steps.json").write_text(json.dumps({"format": "thalweg.script/1", "steps": script}))
    done = subprocess.run(
        [binary, "run", "graph.pb", "--script", "steps.json", "-o", "out.npz", "--json", *flags],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {"crash": done.returncode, "stderr": done.stderr[-2000:]}
    out = folder / "out.npz"
    return answer, read_arrays(np.load(out)) if out.exists() else {}


def read_arrays(archive):
    """What numpy can read: empty tensors may be wider than it allows."""
    arrays = {}
    for name in archive.files:
        try:
            arrays[name] = archive[name]
        except ValueError:
            print(f"{name} is not compared: numpy cannot hold it")
            arrays[name] = None
    return arrays


def same(got, want, tolerance):
    bfloat16 = want.dtype == tf.bfloat16.as_numpy_dtype
    want = oracle.plain(want)
    if bfloat16 and got.dtype == want.dtype:
        got, want = ((a.astype(np.uint32) << 16).view(np.float32) for a in (got, want))
    if got.dtype.kind == "S" and want.dtype.kind == "S":
        return got.shape == want.shape and bool((got == want).all())
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    if got.dtype.kind not in "fc" or tolerance is None:
        return got.tobytes() == want.tobytes() or bool(np.array_equal(got, want, equal_nan=got.dtype.kind in "fc"))
    return bool(np.allclose(got, want, *tolerance, equal_nan=True))


def difference(got, want, tolerance):
    """Where two arrays differ, in a line."""
    if got is None:
        return "has no value"
    if want.dtype == tf.bfloat16.as_numpy_dtype and got.dtype == np.uint16:
        got = got.view(want.dtype)
    elif want.dtype == object:
        want = oracle.plain(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"should be {want.dtype}{list(want.shape)}, is {got.dtype}{list(got.shape)}"
    wrong = ~((got == want) | ((got != got) & (want != want)))
    if tolerance is not None:
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        wrong &= ~np.isclose(got.astype(wide), want.astype(wide), *tolerance, equal_nan=True)
    if not wrong.any():
        return "differs in its bits"
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"differs in {int(wrong.sum())} of {wrong.size}, first at {list(at)}: should be {want[at]}, is {got[at]}"


class Report:
    def __init__(self, keep, seed):
        self.keep, self.seed, self.nodes, self.differences = keep, seed, 0, 0

    def differ(self, node, graph, feeds, want, text):
        self.differences += 1
        print(f"DIFFERENT {node.op} {node.attrs}: {text}")
        for arg in node.inputs:
            for array in arg if isinstance(arg, list) else [arg]:
                text = np.array2string(array, threshold=12, edgeitems=4).replace("\n", " ")
                print(f"    {dtype_of(array).name}{list(array.shape)} {text}")
        if self.keep:
            keep_case(self.keep / f"{node.op}_{self.seed}_{self.differences}", node, graph, feeds, want)


def keep_case(folder, node, graph, feeds, want):
    """Writes the node as a case (the form of graphs/), to be checked in with the repair."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.pb").write_bytes(graph.SerializeToString(deterministic=True))
    np.savez(folder / "inputs.npz", **{name: oracle.plain(value) for name, value in feeds.items()})
    fetches, expected = want
    what = "fetches" if fetches[0].count(":") else "targets"
    step = {"feeds": list(feeds), "fetches": [], what: fetches[: node.compared]}
    if isinstance(expected, str):
        step["error"] = {"stage": "load" if expected == REFUSED else "run", "code": [expected.split()[0]]}
        expected = []
    values = {f: v for f, v in zip(step["fetches"], expected) if v is not None}
    np.savez(folder / "expected.npz", **{name: oracle.plain(value) for name, value in values.items()})
    case = {
        "format": "thalweg.conformance/1",
        "source": "tests/golden/fuzz_ops.py",
        "licence": "as the project",
        "graph": "graph.pb",
        "steps": [step],
        "dtypes": {name: dtype_of(np.asarray(value)).name for name, value in {**feeds, **values}.items()},
    }
    if node.tolerance:
        case["tolerance"] = {"default": list(node.tolerance)}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def compare_refused(binary, node, graph, feeds, report):
    """TensorFlow does not import this graph; thalweg must not run it either."""
    with tempfile.TemporaryDirectory() as folder:
        output = ":0" if op_def_registry.get(node.op).output_arg else ""
        fetches = [graph.node[-1].name + output]
        answer, _ = ask_thalweg(binary, pathlib.Path(folder), graph, [(feeds, fetches)])
    status = answer.get("status") or (answer.get("steps") or [{}])[0].get("status")
    if status != "INVALID_ARGUMENT" and not (node.may_load and status == "OK"):
        text = f"TensorFlow refuses to import it, thalweg says {status or answer}"
        report.differ(node, graph, feeds, (fetches, REFUSED), text)


def compare_node(name, node, graph, feeds, want, step, arrays, index, report):
    fetches, expected = want
    status = step.get("status")
    if isinstance(expected, str):
        too_large = expected == "RESOURCE_EXHAUSTED" and status == "INVALID_ARGUMENT"
        more_able = expected == "UNIMPLEMENTED" and status in ("OK", "INVALID_ARGUMENT")
        if status != expected and not too_large and not more_able:
            text = f"TensorFlow says {expected}, thalweg {status} {step.get('message', '')}"
            report.differ(node, graph, feeds, want, text)
        return
    if status != "OK":
        text = f"TensorFlow answers, thalweg says {status} {step.get('message', '')}"
        report.differ(node, graph, feeds, want, text)
        return
    for fetch, value in zip(fetches[: node.compared], expected):
        key = f"{fetch}#{index}"
        if value is None or (key in arrays and arrays[key] is None):  # no output, or one too wide for numpy
            continue
        got = arrays.get(key)
        if got is None or not same(got, value, node.tolerance):
            report.differ(node, graph, feeds, want, f"{fetch} {difference(got, value, node.tolerance)}")
            return


def round_of(binary, op, count, rng, report):
    nodes, graph = {}, v1.GraphDef()
    for i in range(count):
        node = fuzz.GENERATORS[op](rng)
        part, feeds = build(f"n{i}", node, rng)
        report.nodes += 1
        if not importable(part):
            compare_refused(binary, node, part, feeds, report)
            continue
        nodes[f"n{i}"] = node, part, feeds
        graph.node.extend(part.node)
        graph.versions.CopyFrom(part.versions)
    if not nodes:
        return
    compare_imported(binary, op, nodes, graph.versions, report)


def compare_imported(binary, op, nodes, versions, report):
    """Nodes that TensorFlow imports, as one graph; those at which thalweg refuses to load it are left out then."""
    while nodes:
        graph = v1.GraphDef(versions=versions)
        for _, part, _ in nodes.values():
            graph.node.extend(part.node)
        answers = ask_tensorflow(graph, {name: feeds for name, (_, _, feeds) in nodes.items()})
        with tempfile.TemporaryDirectory() as folder:
            steps = [(nodes[n][2], answers[n][0]) for n in nodes]
            answer, arrays = ask_thalweg(binary, pathlib.Path(folder), graph, steps)
        if len(answer.get("steps", [])) == len(nodes):
            for index, (name, (node, part, feeds)) in enumerate(nodes.items()):
                compare_node(name, node, part, feeds, answers[name], answer["steps"][index], arrays, index, report)
            return
        message = answer.get("message", "")
        refused = set(re.findall(r"node '(\w+)'", message)) & set(nodes)
        for name in refused:
            node, part, feeds = nodes.pop(name)
            why = re.search(rf"node '{name}'.*", message).group()
            text = f"TensorFlow imports it and says {answers[name][1]!s:.80}, thalweg says {why}"
            report.differ(node, part, feeds, answers[name], text)
        if not refused:
            print(f"DIFFERENT {op}: TensorFlow imports the graph, thalweg says {answer!s:.2000}")
            report.differences += 1
            return


def in_own_process(work):
    """What work() returns, in JSON; None if its process died: TensorFlow aborts on some nodes."""
    sys.stdout.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        answer = json.dumps(work())
        sys.stdout.flush()
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def round_apart(report, *arguments):
    """round_of in a process of its own. Sessions live in such processes only."""

    def work():
        before = report.nodes, report.differences
        round_of(*arguments, report)
        return [report.nodes - before[0], report.differences - before[1]]

    answer = in_own_process(work)
    if answer is None:
        return False
    report.nodes += answer[0]
    report.differences += answer[1]
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=40)
    parser.add_argument("--ops", default=".*")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    binary = str(pathlib.Path(options.bin).resolve())
    report = Report(options.keep, options.seed)
    chosen = [op for op in sorted(fuzz.GENERATORS) if re.fullmatch(options.ops, op)]
    for number in range(options.rounds):
        for op in chosen:
            rng = np.random.default_rng([options.seed, number, sorted(fuzz.GENERATORS).index(op)])
            if not round_apart(report, binary, op, options.nodes, rng):
                print(f"TensorFlow did not survive round {number} of {op}, whose nodes do not count")
    print(f"{report.nodes} nodes of {len(chosen)} ops, {report.differences} differences")
    sys.exit(1 if report.differences else 0)


if __name__ == "__main__":
    main()
