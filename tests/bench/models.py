#!/usr/bin/env python3
"""Whole models on thalweg beside TensorFlow, ONNX Runtime, OpenVINO and OpenCV: latency, load time and peak memory from one run.

    models.py MODELS --bin build/release/thalweg [--only NAME,...] [--threads 1,2] [--rounds 8] [--runs 4] [--json out.json]

MODELS holds a folder per model with model.pb (a frozen GraphDef), inputs.npz (feeds by tensor name), expected.npz (fetches)
and, for ONNX Runtime and OpenCV, model.onnx. Every peer has a process of its own; a round asks each in turn for a few runs, so that
what disturbs the machine disturbs all of them. Peers that cannot be imported, or cannot read the model, are left out.
Figures are milliseconds: the median of the rounds' medians, the least run, and the ratio of thalweg's median to the
peer's. Memory is the peak of the process less what it held with its libraries loaded (thalweg: all of it), in MiB. At the end,
for each model and number of threads, thalweg's time in TensorFlow's and in the best peer's.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

PEERS = ("tensorflow", "onnxruntime", "openvino", "opencv")
READ_ONNX = ("onnxruntime", "opencv")


def resident(field):
    """VmRSS or VmHWM of this process in MiB."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def load_tensorflow(folder, inputs, outputs, threads):
    import tensorflow as tf

    v1 = tf.compat.v1
    base, begin = resident("VmRSS"), time.perf_counter()
    graph_def = v1.GraphDef.FromString((folder / "model.pb").read_bytes())
    with tf.Graph().as_default() as graph:
        v1.import_graph_def(graph_def, name="")
    config = v1.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1, use_per_session_threads=True
    )
    call = v1.Session(graph=graph, config=config).make_callable(outputs, feed_list=list(inputs))
    values = list(inputs.values())
    return (lambda: call(*values)), base, begin


def load_onnxruntime(folder, inputs, outputs, threads):
    import onnxruntime

    base, begin = resident("VmRSS"), time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    feeds = {i.name: inputs[i.name] for i in session.get_inputs()}
    return (lambda: session.run(outputs, feeds)), base, begin


def load_openvino(folder, inputs, outputs, threads):
    import openvino

    base, begin = resident("VmRSS"), time.perf_counter()
    core = openvino.Core()
    model = core.read_model(str(folder / "model.pb"))
    model.reshape({model.input(name): array.shape for name, array in inputs.items()})
    # By default it computes in bfloat16 where the processor can; the others compute what the model says.
    options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(model, "CPU", options).create_infer_request()
    return (lambda: list(request.infer(inputs).values())), base, begin


def load_opencv(folder, inputs, outputs, threads):
    """From the ONNX twin: its reader of frozen graphs takes few models."""
    import cv2

    cv2.setNumThreads(threads)
    base, begin = resident("VmRSS"), time.perf_counter()
    net = cv2.dnn.readNetFromONNX(str(folder / "model.onnx"))

    def run():
        for name, value in inputs.items():
            net.setInput(value, name)
        return net.forward(outputs)

    return run, base, begin


def serve(peer, folder, threads):
    """A peer's process: loads the model, then answers each line "N" of stdin with the times of N runs."""
    import numpy

    sys.path += os.environ.get("THALWEG_BENCH_PATH", "").split(":")
    inputs = dict(numpy.load(folder / "inputs.npz"))
    outputs = list(numpy.load(folder / "expected.npz"))
    run, base, begin = globals()[f"load_{peer}"](folder, inputs, outputs, threads)
    loaded = time.perf_counter()
    run()
    first = time.perf_counter()
    answer = {"load_ms": (loaded - begin) * 1e3, "first_ms": (first - loaded) * 1e3}
    print(json.dumps(answer), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps({"times": times, "peak_mib": resident("VmHWM") - base}), flush=True)


class Peer:
    """One peer with one model; `row` collects what it says."""

    def __init__(self, name, folder, threads):
        self.row = {"times": [], "medians": []}
        command = [sys.executable, __file__, str(folder), "--serve", name, "--threads", str(threads)]
        environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        self.row.update(self.answer())

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the peer stopped")
        return json.loads(line)

    def round(self, runs):
        self.process.stdin.write(f"{runs}\n")
        self.process.stdin.flush()
        said = self.answer()
        self.row["times"] += said["times"]
        self.row["medians"].append(statistics.median(said["times"]))
        self.row["peak_mib"] = said["peak_mib"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Thalweg:
    """A fresh process per round, so that each round measures loading too."""

    def __init__(self, binary, folder, threads):
        self.row = {"times": [], "medians": [], "loads": [], "firsts": []}
        import numpy

        self.command = [binary, "bench", str(folder / "model.pb"), "-i", f"@{folder / 'inputs.npz'}"]
        for name in numpy.load(folder / "expected.npz"):
            self.command += ["-f", name]
        self.command += ["--threads", str(threads), "--json", "-q"]

    def round(self, runs):
        done = subprocess.run(
            [*self.command, "-n", str(runs), "--warmup", "1"], capture_output=True, text=True, check=True
        )
        row = json.loads(done.stdout)["rows"][0]
        self.row["times"].append(row["latency_ns"]["min"] / 1e6)
        self.row["medians"].append(row["latency_ns"]["p50"] / 1e6)
        self.row["loads"].append((row["load_ns"] + row["place_ns"] + row["compile_ns"]) / 1e6)
        self.row["firsts"].append(row["first_run_ns"] / 1e6)
        self.row["load_ms"] = statistics.median(self.row["loads"])
        self.row["first_ms"] = statistics.median(self.row["firsts"])
        self.row["peak_mib"] = row["peak_rss_bytes"] / 2**20

    def close(self):
        pass


def start_peers(options, folder, threads):
    peers = {"thalweg": Thalweg(options.bin, folder, threads)}
    for name in PEERS:
        if name not in options.peers.split(",") or (name in READ_ONNX and not (folder / "model.onnx").exists()):
            continue
        try:
            peers[name] = Peer(name, folder, threads)
        except RuntimeError:
            print(f"{folder.name}: {name} is left out", file=sys.stderr)
    return peers


def measure(options, folder, threads):
    peers = start_peers(options, folder, threads)
    for _ in range(options.rounds):
        for peer in peers.values():
            peer.round(options.runs)
    rows = []
    for name, peer in peers.items():
        peer.close()
        row = {k: v for k, v in peer.row.items() if k in ("load_ms", "first_ms", "peak_mib")}
        row.update(model=folder.name, threads=threads, peer=name)
        row.update(median_ms=statistics.median(peer.row["medians"]), min_ms=min(peer.row["times"]))
        rows.append(row)
    ours = rows[0]
    for row in rows:
        row["ratio_median"], row["ratio_min"] = ours["median_ms"] / row["median_ms"], ours["min_ms"] / row["min_ms"]
        print(
            f"| {row['model']:<16} | {threads} | {row['peer']:<11} | {row['median_ms']:8.2f} | {row['min_ms']:8.2f} "
            f"| {row['ratio_median']:5.2f} | {row['ratio_min']:5.2f} | {row['load_ms']:7.0f} | {row['first_ms']:7.0f} "
            f"| {row['peak_mib']:6.0f} |",
            flush=True,
        )
    return rows


def summarise(rows):
    """Prints thalweg's times in TensorFlow's and in the best peer's."""
    for key in dict.fromkeys((row["model"], row["threads"]) for row in rows):
        peers = [row for row in rows if (row["model"], row["threads"]) == key and row["peer"] != "thalweg"]
        if not peers:
            continue
        best = max(peers, key=lambda row: row["ratio_median"])
        tensorflow = [row for row in peers if row["peer"] == "tensorflow"]
        beside = "".join(f"{row['ratio_median']:.2f} of TensorFlow's time (least {row['ratio_min']:.2f}), " for row in tensorflow)
        print(f"{key[0]}, threads {key[1]}: {beside}{best['ratio_median']:.2f} of the best peer's, {best['peer']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--bin")
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve, options.models, int(options.threads))
    wanted = [name for name in options.only.split(",") if name]
    folders = [f for f in sorted(options.models.iterdir()) if (f / "model.pb").exists()]
    print("| model            | T | peer        |   median |      min | ratio | (min) |    load |   first |   peak |")
    print("|---" * 10 + "|")
    rows = []
    for folder in folders:
        if wanted and folder.name not in wanted:
            continue
        for threads in options.threads.split(","):
            rows += measure(options, folder, int(threads))
    if options.json:
        options.json.write_text(json.dumps({"schema": "thalweg.bench_models/1", "rows": rows}, indent=1) + "\n")
    summarise(rows)


if __name__ == "__main__":
    sys.exit(main())
