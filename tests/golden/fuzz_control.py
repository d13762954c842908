#!/usr/bin/env python3
"""Differential fuzzing of control flow: random graphs, answered by TensorFlow and by thalweg in several ways of running them.

    fuzz_control.py --bin build/release/thalweg [--seed N] [--graphs N] [--kinds dag,loop,v1,v2] [--keep FOLDER]

  dag    Switch, Merge, _SwitchN, ControlTrigger and control edges in any order: values that are dead, or may be
  loop   the same inside of loops and frames made of Enter, NextIteration and Exit, nested, with invariants, arrays and variables
  v1     programs of tf.cond, tf.while_loop, tf.case, calls, arrays, variables and gradients, as version 1 control flow
  v2     the same as If, While, Case, calls and tensor lists

Every output is fetched in a step of its own, because one that is dead fails its step. Values must agree, and the status code
where TensorFlow fails. Differences are printed; --keep writes each as a case, which goes to faults/ with its repair. Exit
status 1 if there was one.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import oracle  # first: it says how TensorFlow is to be loaded

import numpy as np
import tensorflow as tf

from fuzz import control
from fuzz_ops import CODES, ask_thalweg, difference, same

v1 = tf.compat.v1
TOLERANCE = (1e-4, 1e-5)
PATIENCE_MS = 10_000

WAYS = {
    "as it comes": [],
    "as written": ["--no-opt"],
    "one thread": ["--threads", "1"],
    "general frames": ["--general-frames", "--threads", "1"],
    "scattered": ["--policy", "scatter~SEED", "-d", "CPU:0,CPU:1,CPU:2"],
    "accelerator": ["--policy", "scatter~SEED", "-d", "CPU:0,GPU:0=sim"],
    "one iteration": ["--parallel-iterations", "1"],
}


def ask_tensorflow(graph_def, steps):
    """Per step the values or the name of a status code; None if TensorFlow does not come to an end."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    answers = []
    options = v1.RunOptions(timeout_in_ms=PATIENCE_MS)
    with v1.Session(graph=graph, config=oracle.config()) as session:
        for feeds, wanted in steps:
            operations = [w if ":" in w else graph.get_operation_by_name(w) for w in wanted]
            try:
                values = session.run(operations, feeds, options=options)
                answers.append([v for v in values if v is not None])
            except tf.errors.DeadlineExceededError:
                return None
            except tf.errors.OpError as error:
                answers.append(CODES[error.error_code])
    return answers


def compare(way, answer, arrays, steps, answers):
    """What differs, or None."""
    if len(answer.get("steps", [])) != len(steps):
        return f"{way}: {answer!s:.1500}"
    for i, ((_, wanted), expected) in enumerate(zip(steps, answers)):
        status, message = answer["steps"][i].get("status"), answer["steps"][i].get("message", "")
        if isinstance(expected, str):
            # TensorFlow makes such graphs itself, of the gradient of a conditional in a loop, and says "Internal" to some of them.
            no_loop = expected == "INTERNAL" and status == "INVALID_ARGUMENT" and "different frames" in message
            if status != expected and not no_loop:
                return f"{way}, step {i}, {wanted}: TensorFlow says {expected}, thalweg {status} {message}"
            continue
        if status != "OK":
            return f"{way}, step {i}, {wanted}: TensorFlow answers {expected}, thalweg says {status} {message}"
        for name, value in zip((w for w in wanted if ":" in w), expected):
            got = arrays.get(f"{name}#{i}" if len(steps) > 1 else name)
            value = np.asarray(value)
            if got is None or not same(got, value, TOLERANCE):
                return f"{way}, step {i}: {name} {difference(got, value, TOLERANCE)}"
    return None


def keep_case(folder, graph_def, steps, answers):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.pb").write_bytes(graph_def.SerializeToString(deterministic=True))
    entries, inputs, expected, dtypes = [], {}, {}, {}
    for i, ((feeds, wanted), answer) in enumerate(zip(steps, answers)):
        key = (lambda name: f"{name}#{i}") if len(steps) > 1 else (lambda name: name)
        entry = {"feeds": list(feeds), "fetches": [w for w in wanted if ":" in w]}
        if any(":" not in w for w in wanted):
            entry["targets"] = [w for w in wanted if ":" not in w]
        if isinstance(answer, str):
            entry["error"] = {"stage": "run", "code": [answer]}
        else:
            expected.update({key(name): np.asarray(value) for name, value in zip(entry["fetches"], answer)})
            dtypes.update({name: np.asarray(value).dtype.name for name, value in zip(entry["fetches"], answer)})
        inputs.update({key(name): np.asarray(value) for name, value in feeds.items()})
        dtypes.update({name: np.asarray(value).dtype.name for name, value in feeds.items()})
        entries.append(entry)
    np.savez(folder / "inputs.npz", **inputs)
    np.savez(folder / "expected.npz", **expected)
    case = {"format": "thalweg.conformance/1", "source": "tests/golden/fuzz_control.py", "licence": "as the project", "graph": "graph.pb",
            "steps": entries, "dtypes": dtypes, "tolerance": {"default": list(TOLERANCE)}, "tags": ["control"]}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--graphs", type=int, default=50, help="of each kind")
    parser.add_argument("--kinds", default="dag,loop,v1,v2")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    binary = str(pathlib.Path(options.bin).resolve())
    graphs = differences = without_end = failing = 0
    for kind in options.kinds.split(","):
        for number in range(options.graphs):
            rng = np.random.default_rng([options.seed, number, list(control.KINDS).index(kind)])
            graph_def, steps = control.KINDS[kind](rng)
            answers = ask_tensorflow(graph_def, steps)
            graphs += 1
            if answers is None:
                without_end += 1
                continue
            failing += any(isinstance(a, str) for a in answers)
            found = []
            for way, flags in WAYS.items():
                flags = [flag.replace("SEED", str(number)) for flag in flags]
                with tempfile.TemporaryDirectory() as folder:
                    answer, arrays = ask_thalweg(binary, pathlib.Path(folder), graph_def, steps, flags)
                found.append(compare(way, answer, arrays, steps, answers))
            found = [text for text in found if text]
            if found:
                differences += 1
                print(f"DIFFERENT {kind} {options.seed} {number}:", *found, sep="\n    ", flush=True)
                if options.keep:
                    keep_case(options.keep / f"{kind}_{options.seed}_{number}", graph_def, steps, answers)
    print(f"{graphs} graphs, {failing} of them with steps that fail, {without_end} at which TensorFlow hangs; {differences} differences")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
