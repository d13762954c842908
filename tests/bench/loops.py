#!/usr/bin/env python3
"""Loops on thalweg beside TensorFlow's Session, tf.function and ONNX Runtime's Loop op: time per iteration, from one run.

    loops.py [--build build/release] [--models MODELS] [--only WORD] [--threads 1] [--rounds 7] [--retries 2] [--python PYTHON]
             [--json out.json] [--share 1]

Needs the project built, g++, and a network: the peers are installed into a virtual environment that is deleted afterwards (--python:
use the packages of that interpreter instead). MODELS (or the environment variable THALWEG_BENCH_MODELS) is a folder with lstm_v1 and
lstm_v2 as models.py takes them; without them whole models are left out.

  counter, counter_v2      one variable, 1,000,000 iterations: as Switch and Merge, and as a functional While that is lowered
  nested                   1,000 times 1,000 iterations
  variables_100            100 variables, 10,000 iterations
  two_devices              a body whose additions alternate between two CPU devices, 100,000 iterations
  tensor_array             100,000 writes into a TensorArray (ONNX Runtime: a scan output)

Programs take turns as in run.py, which also says what the control is. thalweg runs twice: as it chooses (replay on one thread) and with
its executor for many threads ("general frames"). Peers have graph rewrites off; tf.function has them on, as it comes.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import peers as peers_module
from peers import Server
from run import Bench
from workloads import Workload

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from graph_bytes import TYPES, attr, field, graph, node, scalar_field, type_attr  # noqa: E402

INT = type_attr("T", "int32")
GENERAL = "thalweg, general frames"


# ---- GraphDefs --------------------------------------------------------------------------------------------------------------


def constant(name, value, inputs=(), dtype="int32"):
    tensor = scalar_field(1, TYPES[dtype]) + field(2, b"") + (scalar_field(7, value) if dtype == "int32" else field(5, value))
    return node(name, "Const", inputs, type_attr("dtype", dtype), attr("value", field(8, tensor)))


def add(name, a, b, device=""):
    return node(name, "AddV2", [a, b], INT, device=device)


def while_v1(scope, starts, limit, body, types=None):
    """A loop while its first variable is below `limit`. `body(values)` -> (nodes, results). Results of the loop: scope/exitK."""
    types = types or ["int32"] * len(starts)
    t = [type_attr("T", dtype) for dtype in types]
    numbers = range(len(starts))
    nodes = [node(f"{scope}/enter{k}", "Enter", [starts[k]], t[k], attr("frame_name", field(2, scope))) for k in numbers]
    nodes += [node(f"{scope}/merge{k}", "Merge", [f"{scope}/enter{k}", f"{scope}/next{k}"], t[k], attr("N", scalar_field(3, 2))) for k in numbers]
    nodes += [constant(f"{scope}/limit", limit, [f"^{scope}/merge0"]), node(f"{scope}/less", "Less", [f"{scope}/merge0", f"{scope}/limit"], INT),
              node(f"{scope}/cond", "LoopCond", [f"{scope}/less"])]
    nodes += [node(f"{scope}/switch{k}", "Switch", [f"{scope}/merge{k}", f"{scope}/cond"], t[k]) for k in numbers]
    nodes += [node(f"{scope}/value{k}", "Identity", [f"{scope}/switch{k}:1"], t[k]) for k in numbers]
    inner, results = body([f"{scope}/value{k}" for k in numbers])
    nodes += inner
    nodes += [node(f"{scope}/next{k}", "NextIteration", [results[k]], t[k]) for k in numbers]
    nodes += [node(f"{scope}/exit{k}", "Exit", [f"{scope}/switch{k}"], t[k]) for k in numbers]
    return nodes


def sums(scope, devices=("",)):
    """A body that counts in its first variable and adds the count to all others, on one device after the other."""

    def body(values):
        nodes = [constant(f"{scope}/one", 1, [f"^{values[0]}"]), add(f"{scope}/sum0", values[0], f"{scope}/one", devices[0])]
        nodes += [add(f"{scope}/sum{k}", v, f"{scope}/sum0", devices[k % len(devices)]) for k, v in enumerate(values) if k > 0]
        return nodes, [f"{scope}/sum{k}" for k in range(len(values))]

    return body


def result(source, dtype="int32"):
    return node("y", "Identity", [source], type_attr("T", dtype))


def counter_graph(limit, variables=1, devices=("",)):
    exits = [f"loop/exit{k}" for k in range(variables)]  # all are read: none may be pruned
    total = node("y", "AddN", exits, INT, attr("N", scalar_field(3, variables)))
    return graph(constant("zero", 0), *while_v1("loop", ["zero"] * variables, limit, sums("loop", devices)), total)


def nested_graph(outer, inner):
    def body(values):
        nodes = [constant("outer/zero", 0, [f"^{values[0]}"]), constant("outer/one", 1, [f"^{values[0]}"]), add("outer/next", values[0], "outer/one")]
        nodes += while_v1("inner", ["outer/zero"], inner, sums("inner"))
        return nodes + [add("outer/total", values[1], "inner/exit0")], ["outer/next", "outer/total"]

    return graph(constant("zero", 0), *while_v1("outer", ["zero", "zero"], outer, body), result("outer/exit1"))


def tensor_array_graph(limit):
    element = type_attr("dtype", "float")

    def body(values):
        nodes = [constant("one", 1, [f"^{values[0]}"]), add("count", values[0], "one"), constant("item", b"\0\0\x80?", [f"^{values[0]}"], "float"),
                 node("write", "TensorArrayWriteV3", ["handle", values[0], "item", values[1]], type_attr("T", "float"))]
        return nodes, ["count", "write"]

    handle = node("handle", "Enter", ["array"], attr("T", scalar_field(6, 20)), attr("frame_name", field(2, "loop")), attr("is_constant", scalar_field(5, 1)))
    array = node("array", "TensorArrayV3", ["size"], element, attr("element_shape", field(7, b"")))
    loop = while_v1("loop", ["zero", "array:1"], limit, body, ["int32", "float"])
    # What is written must be read, else nobody need write it.
    last = node("y", "TensorArrayReadV3", ["array", "last", "loop/exit1"], element)
    return graph(constant("zero", 0), constant("size", limit), constant("last", limit - 1), array, handle, *loop, last)


def function(name, output_type, nodes, returned):
    """A FunctionDef of one int32 argument `i` and one result `r`."""
    argument = lambda arg, dtype: field(1, arg) + scalar_field(3, TYPES[dtype])  # noqa: E731
    signature = field(1, name) + field(2, argument("i", "int32")) + field(3, argument("r", output_type))
    inside = b"".join(field(3, message_of(n)) for n in nodes)
    return field(1, signature) + inside + field(4, field(1, "r") + field(2, returned))


def message_of(encoded):
    """The message in a field of one byte's number."""
    end = 1
    while encoded[end] & 128:
        end += 1
    return encoded[end + 1 :]


def functional_graph(limit):
    cond = function("below", "bool", [constant("limit", limit), node("less", "Less", ["i", "limit:output:0"], INT)], "less:z:0")
    body = function("count", "int32", [constant("one", 1), node("sum", "AddV2", ["i", "one:output:0"], INT)], "sum:z:0")
    named = lambda attribute, name: attr(attribute, field(10, field(1, name)))  # noqa: E731
    loop = node("loop", "StatelessWhile", ["zero"], attr("T", field(1, scalar_field(6, TYPES["int32"]))), named("cond", "below"), named("body", "count"),
                attr("_lower_using_switch_merge", scalar_field(5, 1)))
    return graph(constant("zero", 0), loop, result("loop")) + field(2, field(1, cond) + field(1, body))


# ---- ONNX models --------------------------------------------------------------------------------------------------------------

ONNX_FLOAT, ONNX_INT32, ONNX_INT64, ONNX_BOOL = 1, 6, 7, 9


def onnx_value(name, dtype=ONNX_INT32, dims=0):
    return field(1, name) + field(2, field(1, scalar_field(1, dtype) + field(2, field(1, b"") * dims)))


def onnx_constant(name, value, dtype=ONNX_INT32):
    return field(5, scalar_field(2, dtype) + scalar_field(5, value) + field(8, name))


def onnx_node(op, inputs, outputs, attributes=b""):
    return field(1, b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, op) + attributes)


def onnx_loop(scope, starts, body, outputs):
    """`body(values)` -> (nodes, condition, results, more outputs): see ONNX's Loop."""
    values = [f"{scope}/v{k}" for k in range(len(starts))]
    nodes, condition, results, scanned = body(values)
    inputs = [onnx_value(f"{scope}/i", ONNX_INT64), onnx_value(f"{scope}/c", ONNX_BOOL), *(onnx_value(v) for v in values)]
    outs = [onnx_value(condition, ONNX_BOOL), *(onnx_value(r) for r in results), *(onnx_value(s, ONNX_FLOAT) for s in scanned)]
    inside = b"".join(nodes) + field(2, scope) + b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outs)
    return onnx_node("Loop", ["", "true", *starts], outputs, field(5, field(1, "body") + field(6, inside) + scalar_field(20, 5)))


def onnx_sums(scope, limit):
    def body(values):
        nodes = [onnx_node("Add", [values[0], "one"], [f"{scope}/s0"]), onnx_node("Less", [f"{scope}/s0", limit], [f"{scope}/more"])]
        nodes += [onnx_node("Add", [v, f"{scope}/s0"], [f"{scope}/s{k}"]) for k, v in enumerate(values) if k > 0]
        return nodes, f"{scope}/more", [f"{scope}/s{k}" for k in range(len(values))], []

    return body


def onnx_model(nodes, constants, output):
    numbers = b"".join(onnx_constant(name, value) for name, value in {"zero": 0, "one": 1, **constants}.items())
    ends = field(11, onnx_value("x", ONNX_FLOAT, 1)) + field(12, output)
    main = b"".join(nodes) + field(2, "g") + numbers + onnx_constant("true", 1, ONNX_BOOL) + ends
    return scalar_field(1, 8) + field(7, main) + field(8, scalar_field(2, 17))


def counter_onnx(limit, variables=1):
    results = [f"r{k}" for k in range(variables)]
    loop = onnx_loop("loop", ["zero"] * variables, onnx_sums("loop", "limit"), results)
    return onnx_model([loop], {"limit": limit}, onnx_value(results[-1]))


def nested_onnx(outer, inner):
    def body(values):
        nodes = [onnx_loop("inner", ["zero"], onnx_sums("inner", "inner_limit"), ["inner_result"]), onnx_node("Add", [values[0], "one"], ["next"]),
                 onnx_node("Less", ["next", "limit"], ["more"]), onnx_node("Add", [values[1], "inner_result"], ["total"])]
        return nodes, "more", ["next", "total"], []

    return onnx_model([onnx_loop("outer", ["zero", "zero"], body, ["n", "t"])], {"limit": outer, "inner_limit": inner}, onnx_value("t"))


def scan_onnx(limit):
    def body(values):
        nodes = [onnx_node("Add", [values[0], "one"], ["next"]), onnx_node("Less", ["next", "limit"], ["more"]),
                 onnx_node("Cast", [values[0]], ["item"], field(5, field(1, "to") + scalar_field(3, ONNX_FLOAT) + scalar_field(20, 2)))]
        return nodes, "more", ["next"], ["item"]

    return onnx_model([onnx_loop("loop", ["zero"], body, ["n", "items"])], {"limit": limit}, onnx_value("items", ONNX_FLOAT, 1))


# ---- programs -----------------------------------------------------------------------------------------------------------------


class Loop(Workload):
    def __init__(self, name, iterations, graph_def, onnx=None, devices="CPU:0"):
        super().__init__(name, iterations, graph_def, fetch="y:0", onnx=onnx)
        self.devices = devices


class Sizes:
    """How often the loops run; `share` makes all of them shorter."""

    def __init__(self, share):
        self.million, self.tenth, self.few = max(1, int(1_000_000 * share)), max(1, int(100_000 * share)), max(1, int(10_000 * share))
        self.outer = max(1, int(1000 * share))


def all_loops(sizes):
    million, tenth, few, outer = sizes.million, sizes.tenth, sizes.few, sizes.outer
    yield Loop("counter", million, lambda: counter_graph(million), lambda: counter_onnx(million))
    yield Loop("counter_v2", million, lambda: functional_graph(million), lambda: counter_onnx(million))
    yield Loop("nested", outer * 1000, lambda: nested_graph(outer, 1000), lambda: nested_onnx(outer, 1000))
    yield Loop("variables_100", few, lambda: counter_graph(few, 100), lambda: counter_onnx(few, 100))
    yield Loop("two_devices", tenth, lambda: counter_graph(tenth, 4, ("/device:CPU:0", "/device:CPU:1")), devices="CPU:0,CPU:1")
    yield Loop("tensor_array", tenth, lambda: tensor_array_graph(tenth), lambda: scan_onnx(tenth))


class LoopServer(Server):
    """Hands thalweg the devices of a workload, and which executor it is to use."""

    def __init__(self, command, form, threads, cores, executor=None):
        super().__init__(command, form, threads, cores)
        self.executor = executor

    def load(self, folder, workload):
        more = "" if self.executor is None else f" {workload.devices} {self.executor}"
        path = os.path.join(folder, f"{workload.name}.{self.form}")
        if not os.path.exists(path):
            raise RuntimeError(f"no {self.form} of {workload.name}")
        return sum(self.ask(f"load {workload.name} {path} {workload.ends} {self.threads}{more}")) + self.run(workload, 1)


class LoopPeers(peers_module.Peers):
    def __init__(self, python, build, folder, share):
        super().__init__(python, build, folder)
        self.share = share

    def start(self, threads, pinned=True):
        cores = sorted(os.sched_getaffinity(0))[:threads]
        ours = [os.path.join(self.build, "bench_micro")]
        servers = {"thalweg": LoopServer(ours, "pb", threads, cores, ""), GENERAL: LoopServer(ours, "pb", threads, cores, "general")}
        if self.tensorflow:
            two_devices = field(1, field(1, "CPU") + scalar_field(2, 2)).hex()
            command = [self.tensorflow, two_devices + peers_module.tensorflow_config(threads)]
            servers["TensorFlow"] = LoopServer(command, "pb", threads, cores)
            command = [self.python, __file__, "--share", str(self.share), "--serve-tf-function", str(threads)]
            servers["tf.function"] = LoopServer(command, "pb", threads, cores)
        if self.onnxruntime:
            command = [self.python, peers_module.__file__, "--serve-onnxruntime", str(threads)]
            servers["ONNX Runtime"] = LoopServer(command, "onnx", threads, cores)
        return servers


def tf_functions(sizes):
    """What a user of tf.function would write for each workload."""
    import tensorflow as tf

    def sums(count, variables):
        body = lambda i, *values: [i + 1, *(v + i + 1 for v in values)]  # noqa: E731
        return tf.add_n(tf.while_loop(lambda i, *_: i < count, body, [tf.constant(0)] * variables))

    def nested():
        inner = lambda: tf.while_loop(lambda j: j < 1000, lambda j: [j + 1], [tf.constant(0)])[0]  # noqa: E731
        return tf.while_loop(lambda i, _: i < sizes.outer, lambda i, t: [i + 1, t + inner()], [tf.constant(0)] * 2)[1]

    def tensor_array():
        body = lambda i, a: [i + 1, a.write(i, 1.0)]  # noqa: E731
        return tf.while_loop(lambda i, _: i < sizes.tenth, body, [tf.constant(0), tf.TensorArray(tf.float32, sizes.tenth)])[1].read(sizes.tenth - 1)

    bodies = {"counter": lambda: sums(sizes.million, 1), "counter_v2": lambda: sums(sizes.million, 1), "nested": nested,
              "variables_100": lambda: sums(sizes.few, 100), "tensor_array": tensor_array}
    return {name: tf.function(body) for name, body in bodies.items()}


def serve_tf_function(threads, sizes):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    functions = tf_functions(sizes)
    for line in sys.stdin:
        verb, name, *rest = line.split()
        begin = time.perf_counter_ns()
        try:
            if verb == "load":
                functions[name].get_concrete_function()
            else:
                for _ in range(int(rest[0])):
                    functions[name]().numpy()
            print(f"{'ok' if verb == 'load' else 'ns'} {time.perf_counter_ns() - begin}", flush=True)
        except KeyError:
            print("error no such workload", flush=True)


# ---- measuring ----------------------------------------------------------------------------------------------------------------


class LoopBench(Bench):
    def steps_per_slice(self, server, workload):
        """Steps take long enough to be timed one by one; their loading has warmed them."""
        return max(1, round(self.options.slice * 1e9 / server.run(workload, 1)))

    def loops(self, threads):
        for loop in all_loops(Sizes(self.options.share)):
            if self.options.only not in loop.name:
                continue
            loop.write(self.folder)
            for _ in range(self.options.retries + 1):
                row = self.step(loop, threads)
                if row["accepted"]:
                    break
            if "TensorFlow" in row["peers"]:
                row["general_ratio"] = row["peers"]["TensorFlow"]["ratio"] / row["peers"][GENERAL]["ratio"]
            figures = "  ".join(f"{name} {peer['nanos']:.4g} ns ({peer['ratio']:.3f})" for name, peer in row["peers"].items())
            general = f"  general frames to TensorFlow {row['general_ratio']:.3f}" if "general_ratio" in row else ""
            self.say(row, f"thalweg {row['nanos']:.4g} ns per iteration (least {row['least_nanos']:.4g})  {figures}  A-A {row['control']:.3f}{general}")

    def lstm(self, threads):
        names = [name for name in ("lstm_v1", "lstm_v2") if self.options.models and (self.options.models / name / "model.pb").exists()]
        if not names:
            print("the LSTM models are left out: --models or THALWEG_BENCH_MODELS names no folder with lstm_v1 or lstm_v2", file=sys.stderr)
            return
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            command = [self.peers.python, str(HERE / "models.py"), str(self.options.models), "--bin", os.path.join(self.options.build, "thalweg"),
                       "--only", ",".join(names), "--peers", "tensorflow,onnxruntime", "--threads", str(threads), "--json", out.name]
            subprocess.run(command, check=True, stdout=sys.stderr)
            rows = json.loads(pathlib.Path(out.name).read_text())["rows"]
        for name in names:
            by_peer = {row["peer"]: row for row in rows if row["model"] == name}
            ours = by_peer.pop("thalweg")
            row = {"workload": name, "threads": threads, "nanos": ours["median_ms"] * 1e6, "least_nanos": ours["min_ms"] * 1e6,
                   "peers": {peer: {"nanos": r["median_ms"] * 1e6, "ratio": r["ratio_median"], "least_ratio": r["ratio_min"]} for peer, r in by_peer.items()}}
            figures = "  ".join(f"{peer} {r['nanos'] / 1e6:.2f} ms ({r['ratio']:.3f})" for peer, r in row["peers"].items())
            self.say(row, f"thalweg {ours['median_ms']:.2f} ms (least {ours['min_ms']:.2f})  {figures}")


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--models", type=pathlib.Path, default=os.environ.get("THALWEG_BENCH_MODELS"))
    parser.add_argument("--only", default="", help="workloads with this in their name")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--retries", type=int, default=2)
    parser.add_argument("--share", type=float, default=1, help="of the iterations: 0.01 for a quick look")
    parser.add_argument("--slice", type=float, default=0.02, help="seconds per program and round, at least one step")
    parser.add_argument("--python")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--serve-tf-function", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.models = options.models and pathlib.Path(options.models)
    return options


def main():
    options = read_options()
    if options.serve_tf_function:
        return serve_tf_function(options.serve_tf_function, Sizes(options.share))
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        python = options.python or peers_module.make_environment(os.path.join(folder, "venv"))
        bench = LoopBench(options, LoopPeers(python, options.build, folder, options.share), folder)
        for threads in options.threads:
            bench.loops(threads)
            if options.only in "lstm":
                bench.lstm(threads)
        document = {"schema": "thalweg.bench_loops/1", "versions": peers_module.versions(python), "rows": bench.rows, "closures": bench.closures}
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
