#!/usr/bin/env python3
"""Runs folders of graphs with known answers through the program; passes may only rise above the floor.

    run_conformance.py --suite release --bin build/release/thalweg [--root FOLDER] [--jobs N]
                       [--folders NAME...] [--filter RE] [--modes NAME...] [--sample N] [--update-floor] [-v]

Two places hold cases: tests/golden, always there, and the root (default: $THALWEG_CONFORMANCE, else ../shared/conformance
next to the repository), which may be missing. Of the root those cases count whose ops thalweg is meant to have: GROUPS names
the groups, the root's groups.json says which case needs which. A suite says how many of them run in which modes, spread
evenly over each folder and the same ones every time:

    plain       as a user would
    no-opt      without rewriting passes: what a pass changes shows as a difference
    scattered   every node on a random one of three CPU devices: partitioning
    sim         the same with a simulated accelerator: memory kinds, asynchronous kernels, transfers
    placements  the assignments of placements.json beside a case

Passes per mode and folder are compared with floor.json: fewer than there is a failure, and so is a root that exists but
cannot be read, or that THALWEG_CONFORMANCE names and is missing. --update-floor writes higher numbers, never lower ones.
The last line begins "NOTE:" and sums it up.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

from case import Case
from judge import Verdict, judge

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
FLOOR = os.path.join(HERE, "floor.json")
GOLDEN = os.path.join(REPOSITORY, "tests", "golden")

# The groups of cases that thalweg is meant to pass: 1 core ops, 2 control flow, 3 the other kernels, 4 state and saving.
GROUPS = (1, 2)

MODES = {
    "plain": [],
    "no-opt": ["--no-opt"],
    "scattered": ["-d", "CPU:0,CPU:1,CPU:2", "--policy", "scatter~7"],
    "sim": ["-d", "CPU:0,GPU:0=sim", "--policy", "scatter~7"],
    "placements": [],
}
# modes: how many cases of each folder at most; slow: multiplies time limits; memory: judge peak memory.
SUITES = {
    "release": {"modes": {"plain": 400, "no-opt": 150, "scattered": 150, "sim": 150}, "slow": 2, "memory": True},
    "asan": {"modes": {"plain": 30, "scattered": 15, "sim": 15}, "slow": 20, "memory": False},
    "tsan": {"modes": {"scattered": 12, "sim": 6}, "slow": 40, "memory": False},
}
DEFAULT_SECONDS = 60
MAX_OUTPUT = 4 << 20

Process = collections.namedtuple("Process", "exit_code signal timed_out seconds peak_mib stdout stderr")
Job = collections.namedtuple("Job", "mode folder path placement")
Result = collections.namedtuple("Result", "job kind detail seconds command")


# ---- running one case -------------------------------------------------------------------------------------------------


def execute(command, folder, seconds):
    """Runs a command in its own process group and kills the whole group when its time is over."""
    outputs = {name: os.path.join(folder, name) for name in (".stdout", ".stderr")}
    started = time.monotonic()
    with open(outputs[".stdout"], "wb") as out, open(outputs[".stderr"], "wb") as err:
        child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
    timed_out = threading.Event()

    def kill():
        timed_out.set()
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    timer = threading.Timer(seconds, kill)
    timer.start()
    _, status, usage = os.wait4(child.pid, 0)
    timer.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)

    def text(name):
        with open(outputs[name], "rb") as file:
            return file.read(MAX_OUTPUT).decode("utf-8", "replace")

    return Process(max(child.returncode, 0), max(-child.returncode, 0), timed_out.is_set(), time.monotonic() - started,
                   usage.ru_maxrss / 1024, text(".stdout"), text(".stderr"))


def write_script(case, inputs, folder):
    steps = []
    for index, step in enumerate(case.steps):
        row = {key: step[key] for key in ("name", "fetches", "targets", "timeout", "new_session", "extend", "close", "signature")
               if step.get(key)}
        feeds = case.feeds(index, inputs, folder)
        if feeds:
            row["inputs"] = f"in{index}.npz"
            np.savez(os.path.join(folder, row["inputs"]), **feeds)
        steps.append(row)
    with open(os.path.join(folder, "steps.json"), "w", encoding="utf-8") as file:
        json.dump({"format": "thalweg.script/1", "steps": steps}, file)
    return ["--script", "steps.json", "--json"]


def single_step(case, inputs, folder):
    step, arguments = case.steps[0], []
    feeds = case.feeds(0, inputs, folder)
    if feeds:
        np.savez(os.path.join(folder, "inputs.npz"), **feeds)
        arguments += ["-i", "@inputs.npz"]
    for fetch in step.get("fetches", []):
        arguments += ["-f", fetch]
    for target in step.get("targets", []):
        arguments += ["--target", target]
    if step.get("timeout"):
        arguments += ["--timeout", f"{step['timeout']}s"]
    if step.get("signature"):
        arguments += ["--signature", step["signature"]]
    return arguments


def placement_arguments(placement, folder):
    assignment, devices = placement
    document = {"schema": "thalweg.placement/1", "nodes": assignment.get("nodes", {}), "functions": assignment.get("functions", {})}
    with open(os.path.join(folder, "placement.json"), "w", encoding="utf-8") as file:
        json.dump(document, file)
    names = [f"{kind}:{number}" for kind, count in devices.items() for number in range(count)]
    return ["--placement", "placement.json", "-d", ",".join(names)]


def command_of(case, job, program, folder):
    inputs = case.arrays("inputs.npz")
    saved_model = case.saved_model
    command = [program, "run", saved_model["dir"] if saved_model else case.graph]
    if saved_model:
        command += ["--tags", ",".join(saved_model["tags"])]
    command += write_script(case, inputs, folder) if case.needs_script else single_step(case, inputs, folder)
    command += ["-o", "out.npz"]
    if case.session.get("devices"):
        command += ["-d", ",".join(case.session["devices"])]
    if "soft_placement" in case.session:
        command.append("--soft-placement" if case.session["soft_placement"] else "--no-soft-placement")
    command += placement_arguments(job.placement, folder) if job.placement else MODES[job.mode]
    if "mib" in case.limits:
        command += ["--memory-limit", f"{case.limits['mib']}MiB"]
    return command


def run_case(job, program, suite):
    folder = tempfile.mkdtemp(prefix="thalweg")
    command, seconds = [], 0
    try:
        case = Case(job.path)
        case.lay_out(folder)
        command = command_of(case, job, program, folder)
        process = execute(command, folder, case.limits.get("seconds", DEFAULT_SECONDS) * suite["slow"])
        seconds = process.seconds
        report = read_report(case, process)
        outputs = {}
        if os.path.exists(os.path.join(folder, "out.npz")):
            with np.load(os.path.join(folder, "out.npz"), allow_pickle=False) as archive:
                outputs = dict(archive)
        judge(case, process, report, outputs, case.arrays("expected.npz"))
        if suite["memory"] and process.peak_mib > case.limits.get("mib", float("inf")):
            raise Verdict("memory", f"peak {process.peak_mib:.0f} MiB, limit {case.limits['mib']} MiB")
        return Result(job, "pass", "", seconds, command)
    except Verdict as verdict:
        return Result(job, verdict.kind, verdict.detail, seconds, command)
    except (OSError, ValueError, KeyError) as error:
        return Result(job, "report", f"{type(error).__name__}: {error}", seconds, command)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_report(case, process):
    if not case.needs_script or not process.stdout.lstrip().startswith("{"):
        return {}
    try:
        return json.loads(process.stdout)
    except ValueError as error:
        raise Verdict("report", f"stdout is no JSON document: {error}") from error


# ---- which cases ------------------------------------------------------------------------------------------------------


class Unreadable(Exception):
    """The root is there, but not as it should be."""


def case_folders(top):
    def refuse(error):
        raise Unreadable(f"cannot read {error.filename}: {error.strerror}")

    found = []
    for folder, subfolders, files in os.walk(top, onerror=refuse):
        subfolders.sort()
        if "case.json" in files:
            subfolders.clear()
            found.append(folder)
    return found


def read_groups(root):
    """Path of a case below the root -> the group of ops that it needs."""
    path = os.path.join(root, "groups.json")
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path} should say which cases need which ops: {error}") from error


def all_folders(root):
    """Label -> paths of cases: some folders of tests/golden, and every folder of the root with cases of GROUPS."""
    labels = {f"golden/{name}": case_folders(os.path.join(GOLDEN, name)) for name in ("digits", "faults", "graphs")}
    if not os.path.exists(root):
        return labels
    groups = read_groups(root)
    for path in case_folders(root):
        name = os.path.relpath(path, root)
        if groups.get(name) in GROUPS:
            labels.setdefault(name.split(os.sep)[0], []).append(path)
    if not any(not label.startswith("golden/") for label in labels):
        raise Unreadable(f"{root} holds no cases")
    return labels


def spread(paths, count):
    if count is None or len(paths) <= count:
        return paths
    return [paths[i * len(paths) // count] for i in range(count)]


def jobs_of(labels, modes):
    jobs = []
    for mode, sample in modes.items():
        for label, paths in labels.items():
            for path in spread(paths, sample):
                beside = os.path.join(path, "placements.json")
                if mode != "placements":
                    jobs.append(Job(mode, label, path, None))
                elif os.path.exists(beside):
                    with open(beside, encoding="utf-8") as file:
                        described = json.load(file)
                    jobs += [Job(mode, label, path, (assignment, described["devices"])) for assignment in described["placements"]]
    return jobs


# ---- the floor ----------------------------------------------------------------------------------------------------------


def read_floor():
    if not os.path.exists(FLOOR):
        return {}
    with open(FLOOR, encoding="utf-8") as file:
        return json.load(file)


def below_floor(passes, floor, modes, labels):
    """Lines that say where there are fewer passes than the floor asks for."""
    lines = []
    for mode in modes:
        for label, least in floor.get(mode, {}).items():
            if label in labels and passes.get((mode, label), 0) < least:
                lines.append(f"{mode} {label}: {passes.get((mode, label), 0)} passes, the floor is {least}")
    return lines


def raise_floor(suite, passes):
    floor = read_floor()
    modes = floor.setdefault(suite, {})
    for (mode, label), count in sorted(passes.items()):
        folders = modes.setdefault(mode, {})
        folders[label] = max(folders.get(label, 0), count)
    with open(FLOOR, "w", encoding="utf-8") as file:
        json.dump(floor, file, indent=1, sort_keys=True)
        file.write("\n")


# ---- the report -----------------------------------------------------------------------------------------------------------


def print_table(results):
    kinds = ["wrong", "refused", "accepted", "code", "words", "crash", "timeout", "memory", "report"]
    print(f"{'mode':<11}{'folder':<18}{'cases':>6}{'pass':>6}  " + "".join(f"{kind:>9}" for kind in kinds) + f"{'max s':>8}")
    groups = collections.OrderedDict()
    for result in results:
        groups.setdefault((result.job.mode, result.job.folder), []).append(result)
    for (mode, label), group in groups.items():
        count = collections.Counter(result.kind for result in group)
        cells = "".join(f"{count[kind] or '.':>9}" for kind in kinds)
        print(f"{mode:<11}{label:<18}{len(group):>6}{count['pass']:>6}  {cells}{max(r.seconds for r in group):>8.1f}")


def print_failures(results, limit):
    failures = [result for result in results if result.kind != "pass"]
    for result in failures[:limit]:
        print(f"{result.kind:<9}{result.job.mode} {os.path.relpath(result.job.path, REPOSITORY)}\n         {result.detail[:300]!r}")
    if len(failures) > limit:
        print(f"... and {len(failures) - limit} more (-v lists all)")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--suite", choices=SUITES, default="release")
    parser.add_argument("--bin", required=True, help="the program")
    parser.add_argument("--root", default=os.environ.get("THALWEG_CONFORMANCE") or os.path.join(REPOSITORY, "..", "shared", "conformance"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folders", nargs="*", help="only these folders")
    parser.add_argument("--filter", help="only cases whose path matches this regular expression")
    parser.add_argument("--modes", nargs="*", choices=MODES, help="these modes instead of those of the suite")
    parser.add_argument("--sample", type=int, help="at most this many cases of each folder")
    parser.add_argument("--update-floor", action="store_true", help="write passes above the floor to floor.json")
    parser.add_argument("-v", "--verbose", action="store_true", help="list every failure")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    os.environ.setdefault("THALWEG_CHECK_COMPLETION", "1")  # steps end with every node accounted for (I2)
    suite = SUITES[arguments.suite]
    program = os.path.abspath(arguments.bin)
    if not os.access(program, os.X_OK):
        print(f"run_conformance.py: {program} is not there; build it first", file=sys.stderr)
        return 2
    try:
        labels = all_folders(arguments.root)
        if "THALWEG_CONFORMANCE" in os.environ and not os.path.exists(arguments.root):
            raise Unreadable(f"{arguments.root} is not there, but THALWEG_CONFORMANCE names it")
    except Unreadable as error:
        print(f"NOTE: {error}")
        return 1
    if arguments.folders:
        labels = {label: paths for label, paths in labels.items() if label in arguments.folders}
    if arguments.filter:
        labels = {label: [path for path in paths if re.search(arguments.filter, path)] for label, paths in labels.items()}
    modes = {mode: arguments.sample or suite["modes"].get(mode) for mode in arguments.modes or suite["modes"]}
    jobs = jobs_of(labels, modes)
    with concurrent.futures.ThreadPoolExecutor(max(1, arguments.jobs)) as pool:
        results = list(pool.map(lambda job: run_case(job, program, suite), jobs))

    print_table(results)
    print_failures(results, len(results) if arguments.verbose else 20)
    passes = collections.Counter((result.job.mode, result.job.folder) for result in results if result.kind == "pass")
    chosen = bool(arguments.filter or arguments.sample)
    low = [] if chosen else below_floor(passes, read_floor().get(arguments.suite, {}), modes, labels)
    if os.path.exists(arguments.root) and not chosen and not arguments.folders:
        named = {label for folders in read_floor().get(arguments.suite, {}).values() for label in folders}
        low += [f"{label}: the floor names this folder, but it holds no cases" for label in sorted(named - set(labels))]
    for line in low:
        print(f"below the floor: {line}")
    if arguments.update_floor and not chosen:
        raise_floor(arguments.suite, passes)
    without = "" if os.path.exists(arguments.root) else "; only tests/golden: the conformance folder is not here"
    print(f"NOTE: {sum(passes.values())} of {len(results)} passed, {len(low)} below the floor{without}")
    crashed = any(result.kind == "crash" for result in results)
    return 1 if low or crashed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
