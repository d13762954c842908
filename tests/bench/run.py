#!/usr/bin/env python3
"""thalweg beside its peers: every figure of docs/performance.md, from one run.

    run.py [--build build/release] [--models MODELS] [--markdown] [--update docs/performance.md] [--json out.json]
           [--sections step,callers,recording,loops,models] [--only WORD] [--threads 1,2] [--rounds 15] [--slice 0.02] [--python PYTHON]
           [--keep earlier.json]

Needs the project built, g++, and a network: TensorFlow, ONNX Runtime, OpenVINO and OpenCV are installed into a virtual environment
that is deleted afterwards (--python: use the packages of that interpreter instead). MODELS is a folder as models.py takes it; without
one, whole models are left out. Sections that are not measured now are taken from the earlier run that --keep names.

  step       empty step; chain, fan-out and fan-in, diamonds, random graph of nodes that do nothing, chain of scalar additions; time
             until a first step has run (load, place, compile). thalweg with --no-opt, TensorFlow with rewrites off.
  callers    1, 2 and 8 callers of one session
  recording  what a trace costs per node, and whether `thalweg profile` says so itself
  loops      conditionals and loops (loops.py)
  models     whole models (models.py)

All programs of a measurement take turns on the same cores, a round after the other, thalweg first and last: its two figures are the
A-A control, and a measurement whose control is outside 0.97 .. 1.03 is repeated, at most --retries times, and marked if it stays
outside. Ratios are medians over the rounds of our time to the peer's, so below 1 is faster. Busy time and gaps of a traced step are
compared with a clock around it for every workload; the worst is printed.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

import peers as peers_module
import workloads
from goals import goals_of

HERE = pathlib.Path(__file__).resolve().parent
CONTROL = (0.97, 1.03)
SECTIONS = {"step": "Nodes that do next to nothing, per node", "callers": "Callers of one session, steps of 1,000 additions per second",
            "recording": "Cost of recording", "loops": "Loops, per iteration", "models": "Whole models, per step"}
PEERS_OF_MODELS = {"tensorflow": "TensorFlow", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "opencv": "OpenCV"}
MARKS = ("<!-- figures: written by tests/bench/run.py -->", "<!-- end of figures -->")


def median_ratio(ours, theirs):
    return statistics.median(a / b for a, b in zip(ours, theirs))


class Bench:
    def __init__(self, options, peers, folder):
        self.options, self.peers, self.folder = options, peers, folder
        self.rows = []
        self.section = ""
        self.closures = {}  # workload -> busy and gaps as a share of the clock outside

    def say(self, row, text):
        self.rows.append({"section": self.section, **row})
        print(f"{row['workload']:<22} T={row['threads']}  {text}", file=sys.stderr, flush=True)

    # ---- step

    def steps(self, threads):
        for workload in workloads.all_workloads():
            if self.options.only not in workload.name:
                continue
            if not os.path.exists(os.path.join(self.folder, workload.name + ".pb")):
                workload.write(self.folder)
            for attempt in range(self.options.retries + 1):
                row = self.step(workload, threads)
                if row["accepted"]:
                    break
            figures = "  ".join(f"{name} {peer['nanos']:.4g} ns ({peer['ratio']:.3f})" for name, peer in row["peers"].items())
            self.say(row, f"thalweg {row['nanos']:.4g} ns  {figures}  A-A {row['control']:.3f}  first step after {row['load_seconds']:.2f} s")

    def start_loaded(self, workload, threads):
        """The servers that can run the workload, and how long each took until its first step."""
        servers, loads = {}, {}
        for name, server in self.peers.start(threads).items():
            try:
                loads[name] = server.load(self.folder, workload) / 1e9
                servers[name] = server
            except FileNotFoundError:  # not for this program
                server.close()
            except (RuntimeError, BrokenPipeError) as e:
                server.close()
                print(f"{workload.name}: {name} is left out: {e}", file=sys.stderr)
        return servers, loads

    def step(self, workload, threads):
        servers, loads = self.start_loaded(workload, threads)
        counts = {name: self.steps_per_slice(server, workload) for name, server in servers.items()}
        times = {name: [] for name in servers}
        again = []
        per_node = lambda name: servers[name].run(workload, counts[name]) / counts[name] / workload.nodes  # noqa: E731
        for _ in range(self.options.rounds):
            for name in servers:
                times[name].append(per_node(name))
            again.append(per_node("thalweg"))
        self.closures[f"{workload.name}, {threads} threads"] = self.closure(servers["thalweg"], workload)
        for server in servers.values():
            server.close()
        return self.row(workload, threads, times, again, loads)

    def steps_per_slice(self, server, workload):
        nanos = min(server.run(workload, 1) for _ in range(3))
        return max(1, min(1_000_000, round(self.options.slice * 1e9 / nanos)))

    def closure(self, server, workload):
        """The middle of several traced steps: one of them may lose its core between the two clocks."""
        answers = [server.ask(f"trace {workload.name}") for _ in range(9)]
        return statistics.median(accounted / wall for _, _, accounted, wall in answers)

    def row(self, workload, threads, times, again, loads):
        ours = times.pop("thalweg")
        both = [(a + b) / 2 for a, b in zip(ours, again)]
        control = statistics.median(ours) / statistics.median(again)
        row = {"workload": workload.name, "threads": threads, "nodes": workload.nodes, "nanos": statistics.median(ours + again),
               "least_nanos": min(ours + again), "control": control, "accepted": CONTROL[0] <= control <= CONTROL[1],
               "load_seconds": loads["thalweg"], "peers": {}}
        for name, theirs in times.items():
            row["peers"][name] = {"nanos": statistics.median(theirs), "least_nanos": min(theirs), "ratio": median_ratio(both, theirs),
                                  "least_ratio": row["least_nanos"] / min(theirs), "load_seconds": loads[name]}
        if "TensorFlow" in loads:
            row["load_ratio"] = loads["thalweg"] / loads["TensorFlow"]
        one = next((r for r in self.rows if r["workload"] == workload.name and r["threads"] == 1), None)
        if one and threads > 1:
            row["to_one_thread"] = row["nanos"] / one["nanos"]
        return row

    # ---- callers

    def callers(self, threads):
        workload = workloads.CALLERS
        workload.write(self.folder)
        servers = {name: s for name, s in self.peers.start(threads, pinned=False).items() if name != "oneTBB"}
        rates = {name: {} for name in servers}
        for name, server in servers.items():
            server.load(self.folder, workload)
        steps = {name: 10 * self.steps_per_slice(server, workload) for name, server in servers.items()}
        for _ in range(self.options.rounds):
            for name, server in servers.items():
                for callers in (1, 2, 8):
                    wall, processor = server.ask(f"callers {workload.name} {callers} {max(1, steps[name] // callers)}")
                    done = callers * max(1, steps[name] // callers)
                    rates[name].setdefault(callers, []).append((done / wall * 1e9, processor / done))
        for server in servers.values():
            server.close()
        row = {"workload": "callers", "threads": threads, "nodes": workload.nodes, "peers": {}}
        for name, by_callers in rates.items():
            figures = {f"per_second_{n}": statistics.median(rate for rate, _ in pairs) for n, pairs in by_callers.items()}
            figures["callers_8_to_2"] = median_ratio([r for r, _ in by_callers[8]], [r for r, _ in by_callers[2]])
            # On a busy machine more callers get more of it; the processor time of a step does not depend on that.
            figures["processor_8_to_2"] = median_ratio([p for _, p in by_callers[8]], [p for _, p in by_callers[2]])
            if name == "thalweg":
                row.update(figures)
            else:
                row["peers"][name] = figures
        rates_text = ", ".join(f"{row[f'per_second_{n}']:.0f}/s by {n}" for n in (1, 2, 8))
        self.say(row, f"{rates_text}; 8 to 2 {row['callers_8_to_2']:.3f}, processor time per step {row['processor_8_to_2']:.3f}")

    # ---- recording

    def recording(self):
        for name in ("chain_10k", "random_dag_100k"):
            workload = next(w for w in workloads.all_workloads() if w.name == name)
            if not os.path.exists(os.path.join(self.folder, name + ".pb")):
                workload.write(self.folder)
            server = self.thalweg_alone()
            server.load(self.folder, workload)
            plain, recorded, plain_median, recorded_median = server.ask(f"overhead {name} {10 * self.options.rounds}")
            nodes = server.ask(f"trace {name}")[1]
            server.close()
            row = {"workload": f"recording {name}", "threads": 1, "nodes": nodes, "overhead_nanos": (recorded - plain) / nodes,
                   "overhead_median_nanos": (recorded_median - plain_median) / nodes, "peers": {}}
            self.say(row, f"{row['overhead_nanos']:.1f} ns per node by least times, {row['overhead_median_nanos']:.1f} by medians")
        if self.options.models and (self.options.models / "resnet50" / "model.pb").exists():
            self.recording_of_resnet()

    def thalweg_alone(self):
        return peers_module.Server([os.path.join(self.options.build, "bench_micro")], "pb", 1, sorted(os.sched_getaffinity(0))[:1])

    def recording_of_resnet(self):
        """What `thalweg profile` prints beside an A-B measurement of our own."""
        path, steps = self.options.models / "resnet50" / "model.pb", 2 * self.options.rounds
        server = self.thalweg_alone()
        server.ask(f"load resnet50 {path} input:0=1x224x224x3 output:0 - 1")
        plain, recorded, plain_median, recorded_median = server.ask(f"overhead resnet50 {steps}")
        server.close()
        said = self.profile(path, ["-i", f"@{path.parent / 'inputs.npz'}", "-f", "output:0"], steps)["step"]["overhead"]
        row = {"workload": "recording resnet50", "threads": 1, "overhead_share": recorded / plain - 1,
               "overhead_median_share": recorded_median / plain_median - 1, "printed_share": said, "peers": {}}
        row["difference"] = abs(said - row["overhead_median_share"])
        self.say(row, f"{100 * row['overhead_share']:+.2f} % by least times, {100 * row['overhead_median_share']:+.2f} % by medians, "
                      f"`profile` says {100 * said:+.2f} %")

    def profile(self, graph, step, steps, threads=1):
        command = [os.path.join(self.options.build, "thalweg"), "profile", str(graph), *step, "--steps", str(steps), "--warmup", "3"]
        done = subprocess.run([*command, "--threads", str(threads), "--json", "-q"], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    # ---- models

    def models(self, threads):
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            command = [self.peers.python, str(HERE / "models.py"), str(self.options.models), "--bin",
                       os.path.join(self.options.build, "thalweg"), "--threads", str(threads), "--json", out.name]
            subprocess.run(command, check=True, stdout=sys.stderr)
            rows = json.loads(pathlib.Path(out.name).read_text())["rows"]
        for model in sorted({r["model"] for r in rows}):
            by_peer = {r["peer"]: r for r in rows if r["model"] == model}
            ours = by_peer.pop("thalweg")
            row = {"workload": model, "threads": threads, "nanos": ours["median_ms"] * 1e6, "least_nanos": ours["min_ms"] * 1e6,
                   "load_seconds": ours["load_ms"] / 1e3, "peak_mib": ours["peak_mib"], "peers": {}}
            for name, theirs in by_peer.items():
                row["peers"][PEERS_OF_MODELS.get(name, name)] = {"nanos": theirs["median_ms"] * 1e6, "least_nanos": theirs["min_ms"] * 1e6,
                                      "ratio": theirs["ratio_median"], "least_ratio": theirs["ratio_min"],
                                      "load_seconds": theirs["load_ms"] / 1e3, "peak_mib": theirs["peak_mib"]}
            self.say(row, f"thalweg {ours['median_ms']:.2f} ms")
            self.closures[f"{model}, {threads} threads"] = self.closure_of_model(model, threads)

    def closure_of_model(self, model, threads):
        folder = self.options.models / model
        fetches = subprocess.run([self.peers.python, "-c", "import numpy, sys; print(*numpy.load(sys.argv[1]))", folder / "expected.npz"],
                                 check=True, capture_output=True, text=True).stdout.split()
        step = ["-i", f"@{folder / 'inputs.npz'}", *(word for fetch in fetches for word in ("-f", fetch))]
        return self.profile(folder / "model.pb", step, 3, threads)["step"]["closure"]

    # ---- loops

    def loops(self):
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            command = [sys.executable, str(HERE / "loops.py"), "--build", self.options.build, "--python", self.peers.python, "--only",
                       self.options.only, "--rounds", str(self.options.rounds), "--retries", str(self.options.retries), "--json", out.name]
            more = ["--models", str(self.options.models)] if self.options.models else []
            subprocess.run([*command, *more], check=True)
            document = json.loads(pathlib.Path(out.name).read_text())
        self.rows += [{**row, "section": "loops"} for row in document["rows"]]
        self.closures.update(document["closures"])

    def run(self):
        measures = {"step": self.steps, "callers": self.callers, "recording": lambda threads: self.recording() if threads == 1 else None,
                    "loops": lambda threads: self.loops() if threads == 1 else None, "models": self.models}
        for section in SECTIONS:
            if section not in self.options.sections or section == "models" and not self.options.models:
                continue
            self.section = section
            for threads in self.options.threads:
                measures[section](threads)


# ---- the table ----------------------------------------------------------------------------------------------------------------


def time_text(nanos):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanos >= size:
            return f"{nanos / size:.3g} {unit}"
    return f"{nanos:.3g} ns"


def figure_text(row):
    if "nanos" in row:
        mark = "" if row.get("accepted", True) else f" (A-A {row['control']:.2f})"
        return time_text(row["nanos"]) + mark
    if row["workload"] == "callers":
        return " / ".join(f"{row[f'per_second_{n}'] / 1e3:.3g} k/s" for n in (1, 2, 8)) + f", 8 to 2: {row['callers_8_to_2']:.2f}"
    if "overhead_nanos" in row:
        return f"{row['overhead_nanos']:.0f} ns per node"
    return f"{100 * row['overhead_share']:+.1f} %, printed {100 * row['printed_share']:+.1f} %, by medians {100 * row['overhead_median_share']:+.1f} %"


def peer_text(peer):
    if peer is None:
        return ""
    return f"{peer['ratio']:.3g}" if "ratio" in peer else f"8 to 2: {peer['callers_8_to_2']:.2f}"


def goal_text(row):
    words = {True: "kept", False: "**missed**", None: "not measured"}
    return "; ".join(f"{goal.text()}: {words[goal.is_kept(row)]}" for goal in goals_of(row))


def table(rows):
    columns = []
    for row in rows:
        columns += [name for name in row["peers"] if name not in columns]
    has_load = any("load_seconds" in row for row in rows)
    heads = ["workload", "threads", "thalweg", *(f"to {c}" for c in columns), *(["first step after"] if has_load else []), "goals"]
    lines = ["| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|"]
    for row in rows:
        cells = [row["workload"].replace("_", " "), str(row["threads"]), figure_text(row), *(peer_text(row["peers"].get(c)) for c in columns)]
        if has_load:
            cells.append(f"{row['load_seconds']:.2g} s" if "load_seconds" in row else "")
        lines.append("| " + " | ".join([*cells, goal_text(row)]) + " |")
    return lines


def markdown(document):
    lines = [f"Measured on {document['machine']}, with " + ", ".join(f"{k} {v}" for k, v in document["versions"].items()) + "."]
    for section, title in SECTIONS.items():
        rows = [row for row in document["rows"] if row["section"] == section]
        if rows:
            lines += ["", f"### {title}", "", *table(rows)]
    if document["closures"]:
        name, worst = max(document["closures"].items(), key=lambda item: abs(item[1] - 1))
        lines += ["", f"Busy time and gaps beside a clock outside, worst of {len(document['closures'])}: {worst:.4f} ({name.replace('_', ' ')})."]
    return "\n".join(lines)


def update(path, text):
    content = path.read_text()
    begin, end = (content.index(mark) for mark in MARKS)
    path.write_text(content[: begin + len(MARKS[0])] + "\n" + text + "\n" + content[end:])


def processor_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = lambda text: [word for word in text.split(",") if word]  # noqa: E731
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--sections", type=listed, default=list(SECTIONS))
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in listed(text)], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--slice", type=float, default=0.02, help="seconds per program and round")
    parser.add_argument("--retries", type=int, default=2)
    parser.add_argument("--python")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="what --json wrote in an earlier run on this machine")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/performance.md")
    parser.add_argument("--update", type=pathlib.Path, help="write the table into this document")
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"--sections: {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    return options


def main():
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        python = options.python or peers_module.make_environment(os.path.join(folder, "venv"))
        bench = Bench(options, peers_module.Peers(python, options.build, folder), folder)
        bench.run()
        kept = json.loads(options.keep.read_text()) if options.keep else {"rows": [], "closures": {}}
        rows = [row for row in kept["rows"] if row["section"] not in options.sections] + bench.rows
        document = {"schema": "thalweg.bench_peers/1", "machine": f"{len(os.sched_getaffinity(0))} cores of {processor_name()}",
                    "versions": peers_module.versions(python), "rows": rows, "closures": {**kept["closures"], **bench.closures}}
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.update:
        update(options.update, markdown(document))
    if options.markdown or not (options.json or options.update):
        print(markdown(document))


if __name__ == "__main__":
    main()
