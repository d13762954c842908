#!/usr/bin/env python3
"""Elementwise kernels on one thread, beside the memory's bandwidth and TensorFlow's plain kernels (oneDNN off).

    kernels.py [--bin build/release/thalweg] [--rounds 12] [--runs 15]

  Add            two operands of 64 MiB: bytes read and written per second, at least 0.8 of what copying 64 MiB reaches
  Exp Tanh Erf   2^20 floats between -4 and 4: at least 3 times as fast as TensorFlow

The measurements take turns; compared are the least times. Exit status 1 if a promise is broken. Without TensorFlow only the
first line is measured. Not part of the tests: times depend on the machine.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from graph_bytes import graph, node, placeholder, type_attr  # noqa: E402

BIG, SMALL = 1 << 24, 1 << 20


def serve():
    """TensorFlow's process: answers each line "OP RUNS" with the least seconds of a step."""
    import tensorflow as tf

    v1 = tf.compat.v1
    values = numpy.random.default_rng(1).uniform(-4, 4, SMALL).astype(numpy.float32)
    calls = {}
    for op in ("Exp", "Tanh", "Erf"):
        with tf.Graph().as_default() as step:
            x = v1.placeholder(tf.float32, [SMALL])
            y = getattr(tf.raw_ops, op)(x=x)
        config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, use_per_session_threads=True)
        calls[op] = v1.Session(graph=step, config=config).make_callable([y.op], feed_list=[x])
        calls[op](values)
    print("ready", flush=True)
    for line in sys.stdin:
        op, runs = line.split()
        print(least(lambda: calls[op](values), int(runs)), flush=True)


def least(call, runs):
    best = float("inf")
    for _ in range(runs):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def start_tensorflow():
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    child = subprocess.Popen([sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, env=environment)
    return child if child.stdout.readline().strip() == "ready" else None


def ask(child, op, runs):
    child.stdin.write(f"{op} {runs}\n")
    child.stdin.flush()
    return float(child.stdout.readline())


def thalweg(binary, path, inputs, runs):
    """The least seconds of a step, in a process of its own."""
    feeds = [word for name, value in inputs.items() for word in ("-i", f"{name}={value}")]
    command = [binary, "bench", path, *feeds, "--target", "y", "--threads", "1", "-n", str(runs), "--warmup", "2", "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"][0]["latency_ns"]["min"] / 1e9


def write_graph(folder, op, size, operands):
    names = ["x", "z"][:operands]
    path = os.path.join(folder, f"{op}.pb")
    with open(path, "wb") as file:
        file.write(graph(*(placeholder(name, "float", [size]) for name in names), node("y", op, names, type_attr("T", "float"))))
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/thalweg")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve()
    peer = start_tensorflow()
    ops = ("Exp", "Tanh", "Erf") if peer else ()
    source, target = numpy.ones(BIG, numpy.float32), numpy.ones(BIG, numpy.float32)
    best = {}

    def note(what, seconds):
        best[what] = min(best.get(what, float("inf")), seconds)

    with tempfile.TemporaryDirectory() as folder:
        add = write_graph(folder, "AddV2", BIG, 2)
        paths = {op: write_graph(folder, op, SMALL, 1) for op in ops}
        for _ in range(options.rounds):
            note("copy", least(lambda: numpy.copyto(target, source), options.runs))
            note("Add", thalweg(options.bin, add, {"x": f"rand:f32:{BIG}~1", "z": f"rand:f32:{BIG}~2"}, options.runs))
            for op in ops:
                note(f"{op} peer", ask(peer, op, options.runs))
                note(op, thalweg(options.bin, paths[op], {"x": f"rand:f32:{SMALL}~1"}, options.runs))
    copied, added = 8 * BIG / best["copy"] / 1e9, 12 * BIG / best["Add"] / 1e9
    print(f"Add of 64 MiB   {added:6.1f} GB/s   copy {copied:6.1f} GB/s   {added / copied:5.2f} of it (at least 0.8)")
    broken = added < 0.8 * copied
    for op in ops:
        ratio = best[f"{op} peer"] / best[op]
        print(f"{op:<15} {best[op] * 1e6:6.0f} us     TensorFlow {best[f'{op} peer'] * 1e6:6.0f} us   {ratio:5.2f} times as fast "
              "(at least 3)")
        broken |= ratio < 3
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
