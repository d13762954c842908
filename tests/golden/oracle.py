"""What make_digits.py and make_graphs.py share: TensorFlow asked for its plain answers, and a case written as a folder.

Plain means: one thread, no graph rewriting, no oneDNN, no GPU. Import this module before tensorflow: the environment is read
when TensorFlow loads.
"""

import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

v1 = tf.compat.v1


def config():
    options = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, device_count={"CPU": 1, "GPU": 0})
    options.graph_options.rewrite_options.disable_meta_optimizer = True
    options.graph_options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    options.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
    options.graph_options.optimizer_options.do_function_inlining = False
    return options


def plain(value):
    """A value as .npy keeps it: text as fixed-width bytes, TensorFlow's own types as integers of the same bits."""
    value = np.asarray(value)
    if value.dtype == object:
        return value.astype("S") if value.size else np.zeros(value.shape, "S1")
    if value.dtype == tf.bfloat16.as_numpy_dtype:
        return value.view(np.uint16)
    return value


def write_case(folder, graph_def, steps, graph="graph.pb", **more):
    """Runs the steps and writes the folder; returns what each step fetched.

    A step is {"feeds": {tensor: value}, "fetches": [...], "targets": [...], "new_session": bool, "name": str}. A tensor of
    step i is kept under NAME#i, or under NAME where there is one step only.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / graph).write_bytes(graph_def.SerializeToString(deterministic=True))
    loaded = tf.Graph()
    with loaded.as_default():
        tf.import_graph_def(graph_def, name="")
    session = v1.Session(graph=loaded, config=config())
    fed, fetched, dtypes, written, answers = {}, {}, {}, [], []
    for i, step in enumerate(steps):
        key = (lambda name: f"{name}#{i}") if len(steps) > 1 else (lambda name: name)
        if step.get("new_session"):
            session.close()
            session = v1.Session(graph=loaded, config=config())
        feeds, fetches, targets = step.get("feeds", {}), step.get("fetches", []), step.get("targets", [])
        got = session.run([list(fetches), [loaded.get_operation_by_name(t) for t in targets]], feeds)[0]
        answers.append(got)
        fed.update({key(name): plain(value) for name, value in feeds.items()})
        fetched.update({key(name): plain(value) for name, value in zip(fetches, got)})
        for name in [*feeds, *fetches]:
            dtypes[name] = loaded.get_tensor_by_name(name).dtype.base_dtype.name
        entry = {"feeds": list(feeds), "fetches": list(fetches)}
        if targets:
            entry["targets"] = list(targets)
        entry.update({k: step[k] for k in ("new_session", "name") if k in step})
        written.append(entry)
    session.close()
    np.savez(folder / "inputs.npz", **fed)
    np.savez(folder / "expected.npz", **fetched)
    case = {"format": "thalweg.conformance/1", "source": "tests/golden", "licence": "as the project", "graph": graph,
            "steps": written, "dtypes": dtypes, **more}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
    return answers
