#!/usr/bin/env python3
"""Does `thalweg compare` keep its word on this machine? Real profiles of one program, and of one op made slower on purpose.

    compare_trials.py [--bin build/release/thalweg] [--trials 20] [--steps 30] [--graph GRAPH ARGUMENTS...]

Equal: in each trial the same graph is profiled twice, and compare must find nothing significant: at least 19 of 20 trials.
Planted: the second profile is of the same graph with one op 5% slower (a product with 5% more terms); compare must name that op
and call nothing else significant, in at least 19 of 20 trials.
Without --graph the graph is twelve products of matrices, the planted one among them, with small ops between them. Exit 1 if either
fails. Other load on the machine is welcome: it is what compare must not take for a difference.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from graph_bytes import graph, node, placeholder, type_attr  # noqa: E402

PRODUCTS = 12
PLANTED = 5
SIDE = 128
INNER = 320  # and 5% more in the planted product: its result, and so all after it, is as large as before
ALLOWED = 1 / 20


def products(planted_inner):
    """Products of matrices, one of them with more terms per element, each with a small op behind it."""
    f = type_attr("T", "float")
    inner = {"": INNER, "planted_": planted_inner}
    nodes = [placeholder(f"{p}x", "float", [SIDE, k]) for p, k in inner.items()] + [placeholder(f"{p}w", "float", [k, SIDE]) for p, k in inner.items()]
    for i in range(PRODUCTS):
        prefix = "planted_" if i == PLANTED else ""
        nodes.append(node(f"product{i}", "MatMul", [f"{prefix}x", f"{prefix}w"], f))
        nodes.append(node(f"small{i}", "Relu", [f"product{i}"], f))
    return graph(*nodes, node("end", "NoOp", [f"^small{i}" for i in range(PRODUCTS)]))


class Trials:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def profile(self, graph_path, arguments, out):
        command = [self.options.bin, "profile", graph_path, *arguments, "--steps", str(self.options.steps), "--threads", "1", "-q"]
        subprocess.run([*command, "--no-opt", "-o", self.path(out)], check=True, stdout=subprocess.DEVNULL)

    def compare(self):
        done = subprocess.run([self.options.bin, "compare", self.path("a.twp"), self.path("b.twp"), "--json"], check=True, capture_output=True)
        return json.loads(done.stdout)

    def named(self, document):
        return sorted(row["name"] for row in document["rows"] if row["significant"])

    def equal(self, graph_path, arguments):
        """How many trials called something significant."""
        alarms = 0
        for trial in range(self.options.trials):
            for out in ("a.twp", "b.twp"):
                self.profile(graph_path, arguments, out)
            document = self.compare()
            found = self.named(document)
            alarms += bool(found) or document["step"]["significant"]
            self.report("equal", trial, document, found)
        return alarms

    def planted(self, before, after, arguments):
        """How many trials did not find the planted op and nothing else."""
        missed = 0
        for trial in range(self.options.trials):
            for graph_path, out in ((before, "a.twp"), (after, "b.twp")):
                self.profile(graph_path, arguments, out)
            document = self.compare()
            found = self.named(document)
            missed += found != [f"product{PLANTED}"]
            self.report("planted", trial, document, found)
        return missed

    def report(self, what, trial, document, found):
        step = document["step"]
        print(f"{what} {trial + 1}: step {step['delta']:+.3f}, noise {step['noise']:.3f}, together x {step['common_factor']:.3f}, "
              f"significant: {', '.join(found) or 'nothing'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/thalweg")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--graph", nargs=argparse.REMAINDER, help="equal trials of this graph only, with these arguments of profile")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(options, folder)
        allowed = options.trials * ALLOWED
        if options.graph:
            alarms, missed = trials.equal(options.graph[0], options.graph[1:]), 0
        else:
            paths = [trials.path(name) for name in ("before.pb", "after.pb")]
            for path, inner in zip(paths, (INNER, round(INNER * 1.05))):
                with open(path, "wb") as file:
                    file.write(products(inner))
            alarms = trials.equal(paths[0], ["--target", "end"])
            missed = trials.planted(*paths, ["--target", "end"])
    print(f"{alarms} of {options.trials} equal trials with an alarm, {missed} of {options.trials} planted trials wrong; "
          f"at most {allowed:g} of each are allowed")
    return 1 if max(alarms, missed) > allowed else 0


if __name__ == "__main__":
    sys.exit(main())
