#!/usr/bin/env python3
"""Memory, start-up and threads of the program: what was promised beside what is measured; exit 1 if a promise is broken.

    limits.py [--build build/release] [--without-recording build/norecord] [--only WORD]

  memory    peak of loading beyond the empty process: 1.5 x the file above 50 MB, else 400 bytes per node
  compile   load, place and compile 100,000 nodes within 0.8 s of processor time
  inspect   `thalweg inspect` of 100,000 nodes within a second
  version   `thalweg version` within 20 ms of processor time
  threads   /proc/PID/task of a running step never shows more than N compute threads and one
  overhead  two threads at most 1.05 of one on a chain that one thread runs best; with --without-recording (a build folder
            configured with -DTHALWEG_RECORDING=OFF) also recording compiled in but off, at most 1.03 of compiled out

Needs no TensorFlow; wants a quiet machine. Not part of the tests: times depend on the machine.
"""
import argparse
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from graph_bytes import attr, field, graph, node, placeholder, scalar_field, type_attr, varint  # noqa: E402

MILLION = 1_000_000


class Server:
    """bench_micro, driven line by line."""

    def __init__(self, build):
        self.child = subprocess.Popen([os.path.join(build, "bench_micro")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.wait()

    def ask(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline().split()
        if not answer or answer[0] == "error":
            raise RuntimeError(f"{line}: {' '.join(answer)}")
        return [int(word) for word in answer[1:]]

    def processor_seconds(self):
        with open(f"/proc/{self.child.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_bytes(self):
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


# ---- graphs ---------------------------------------------------------------------------------------------------------------


def constant(name, dtype, number, dims, values):
    shape = field(2, b"".join(field(2, scalar_field(1, d)) for d in dims))
    return node(name, "Const", [], type_attr("dtype", dtype), attr("value", field(8, scalar_field(1, number) + shape + values)))


def chain(count, op="NoOp"):
    if op == "NoOp":
        return graph(*(node(f"n{i}", "NoOp", [f"^n{i - 1}"] if i else []) for i in range(count)))
    links = (node(f"a{i}", "AddV2", [f"a{i - 1}" if i else "x", "one"], type_attr("T", "float")) for i in range(count))
    return graph(placeholder("x", "float", []), constant("one", "float", 1, [], field(5, struct.pack("<f", 1))), *links)


def big_constants(kind, megabytes):
    """Constants of a million elements each, as contents or as single values."""
    nodes = []
    for i in range(megabytes // 4):
        if kind == "content":
            values = field(4, os.urandom(4 * MILLION))
        elif kind == "float_val":
            values = field(5, os.urandom(4 * MILLION))
        else:  # int_val: mostly values that take four bytes in the file
            values = field(7, b"".join(varint((1 << 21) + k) for k in range(MILLION)))
        nodes.append(constant(f"c{i}", "int32" if kind == "int_val" else "float", 3 if kind == "int_val" else 1, [MILLION], values))
    return graph(*nodes)


# ---- what is measured -------------------------------------------------------------------------------------------------------


class Report:
    def __init__(self):
        self.broken = 0

    def row(self, what, value, limit, unit):
        kept = value <= limit
        self.broken += not kept
        print(f"{'ok' if kept else 'BROKEN':<7}{what:<58}{value:>12.4g} {unit:<12} at most {limit:g}", flush=True)


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


def peak_of_loading(build, path):
    with Server(build) as server:
        server.ask("ready")
        before = server.peak_bytes()
        server.ask(f"open {path}")
        return server.peak_bytes() - before


def memory(build, folder, report):
    for kind in ("content", "float_val", "int_val"):
        path = write(folder, f"{kind}.pb", big_constants(kind, 120))
        report.row(f"loading 120 MB of constants as {kind}", peak_of_loading(build, path) / os.path.getsize(path), 1.5, "x file")
        os.unlink(path)
    for op in ("NoOp", "AddV2"):
        path = write(folder, f"{op}.pb", chain(MILLION, op))
        report.row(f"loading a chain of {MILLION} {op} ({os.path.getsize(path) / MILLION:.0f} bytes per node)",
                   peak_of_loading(build, path) / MILLION, 400, "bytes/node")
        os.unlink(path)


def compile_time(build, folder, report):
    for op, ends in (("NoOp", "- - n99999"), ("AddV2", "x:0 a99999:0 -")):
        path = write(folder, f"{op}.pb", chain(100_000, op))
        clock, processor = [], []
        for _ in range(5):
            with Server(build) as server:
                server.ask("ready")
                before = server.processor_seconds()
                clock.append(sum(server.ask(f"load c {path} {ends} 1")) / 1e9)
                processor.append(server.processor_seconds() - before)
        report.row(f"compiling 100,000 {op}, processor ({statistics.median(clock):.2f} s on the clock)",
                   statistics.median(processor), 0.8, "s")


def seconds_of(command, runs):
    walls, cpus = [], []
    for _ in range(runs):
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        walls.append(time.perf_counter() - begin)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(walls), statistics.median(cpus)


def inspect(build, folder, report):
    for op in ("NoOp", "AddV2"):
        path = write(folder, "chain.pb", chain(100_000, op))
        wall, _ = seconds_of([os.path.join(build, "thalweg"), "inspect", path], 5)
        report.row(f"inspect a chain of 100,000 {op}", wall, 1, "s")


def version(build, _, report):
    wall, cpu = seconds_of([os.path.join(build, "thalweg"), "version"], 40)
    report.row(f"version, processor time ({wall * 1e3:.1f} ms on the clock)", cpu * 1e3, 20, "ms")


def wide(width, depth):
    """Columns of matrix products side by side: work for several threads."""
    f = type_attr("T", "float")
    nodes = [placeholder("x", "float", [256, 256])]
    for c in range(width):
        nodes += [node(f"p{c}_{k}", "MatMul", [f"p{c}_{k - 1}" if k else "x", "x"], f) for k in range(depth)]
    nodes.append(node("end", "NoOp", [f"^p{c}_{depth - 1}" for c in range(width)]))
    return graph(*nodes)


def threads(build, folder, report):
    path = write(folder, "wide.pb", wide(8, 200))
    for count in (1, 2):
        child = subprocess.Popen([os.path.join(build, "thalweg"), "bench", path, "-i", "x=rand:f32:256x256~1", "--target", "end",
                                  "--duration", "3s", "--threads", str(count)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        most = samples = 0
        while child.poll() is None:
            try:
                most = max(most, len(os.listdir(f"/proc/{child.pid}/task")))
                samples += 1
            except FileNotFoundError:
                break
            time.sleep(0.002)
        # The program itself has one more thread, which sleeps until an interrupt comes.
        report.row(f"threads of a step with --threads {count} ({samples} samples)", most - 1, count + 1, "threads")


def rounds_of(servers, name, path, feed, fetch, target, counts, steps, rounds):
    for server, count in zip(servers, counts):
        server.ask(f"load {name} {path} {feed} {fetch} {target} {count}")
        server.ask(f"run {name} {steps}")
    times = [[] for _ in servers]
    for _ in range(rounds):
        for server, mine in zip(servers, times):
            mine.append(server.ask(f"run {name} {steps}")[0])
    return [statistics.median(mine) for mine in times]


def ratio_of(builds, path, feed, fetch, target, counts, steps):
    """The second of two builds (or thread counts) as a multiple of the first: the median over pairs of fresh processes, as where
    the pages of a plan lie makes up to a fifth of a step that does nothing, and stays as it is while a process lives."""
    ratios = []
    for _ in range(7):
        with Server(builds[0]) as one, Server(builds[1]) as other:
            a, b = rounds_of((one, other), "g", path, feed, fetch, target, counts, steps, 7)
            ratios.append(b / a)
    return statistics.median(ratios)


def overhead(build, folder, report, without_recording=None):
    noops, adds = write(folder, "noops.pb", chain(10_000)), write(folder, "adds.pb", chain(10_000, "AddV2"))
    for what, path, feed, fetch, target, steps in (("NoOp chain", noops, "-", "-", "n9999", 200), ("Add chain", adds, "x:0", "a9999:0", "-", 10)):
        report.row(f"{what}: two threads, times one", ratio_of((build, build), path, feed, fetch, target, (1, 2), steps), 1.05, "x")
    if without_recording:
        a, b = (ratio_of((other, build), noops, "-", "-", "n9999", (1, 1), 400) for other in (build, without_recording))
        report.row(f"NoOp chain: recording compiled in, times out (A-A {a:.3f})", b, 1.03, "x")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--without-recording")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    report = Report()
    measures = {"memory": memory, "compile": compile_time, "inspect": inspect, "version": version, "threads": threads,
                "overhead": lambda *a: overhead(*a, without_recording=arguments.without_recording)}
    for name, measure in measures.items():
        if arguments.only in name:
            with tempfile.TemporaryDirectory() as folder:
                measure(arguments.build, folder, report)
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
