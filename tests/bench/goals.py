"""What the figures of tests/bench should be: docs/performance.md prints these beside what was measured.

A goal is for a workload (a name, or a start followed by *) at a number of threads (0: any), and bounds a figure of its row: `nanos`
per node, step or iteration, `ratio` of our time to a peer's, or another field of the row.
"""

import dataclasses
import fnmatch


@dataclasses.dataclass(frozen=True)
class Goal:
    workload: str
    threads: int
    figure: str
    limit: float
    peer: str = ""
    at_least: bool = False

    def value(self, row):
        if self.figure == "ratio":
            peer = row["peers"].get(self.peer)
            return peer["ratio"] if peer else None
        return row.get(self.figure)

    def is_kept(self, row):
        """None if the row does not say."""
        value = self.value(row)
        if value is None:
            return None
        return value >= self.limit if self.at_least else value <= self.limit

    def text(self):
        sign = "≥" if self.at_least else "≤"
        if self.figure == "ratio":
            return f"{sign} {self.limit:.3g} × {self.peer}"
        unit = {"nanos": " ns", "load_seconds": " s to the first step", "overhead_nanos": " ns per node for recording",
                "overhead_share": " of a step for recording", "callers_8_to_2": " × the throughput of 2 callers",
                "to_one_thread": " × one thread", "load_ratio": " × TensorFlow's load", "difference": " between printed and measured",
                "general_ratio": " × TensorFlow with general frames"}[self.figure]
        return f"{sign} {self.limit:.3g}{unit}"


GOALS = (
    Goal("empty_step", 0, "nanos", 1500),
    Goal("empty_step", 0, "ratio", 1 / 8, "TensorFlow"),
    Goal("chain_*", 1, "nanos", 15),
    Goal("chain_*", 0, "ratio", 0.4, "TensorFlow"),
    Goal("chain_*", 0, "ratio", 1 / 3, "oneTBB"),
    Goal("chain_*", 0, "ratio", 1 / 15, "ONNX Runtime"),
    Goal("chain_*", 2, "to_one_thread", 1.05),
    Goal("fan_out_in_*", 1, "nanos", 15),
    Goal("fan_out_in_*", 0, "ratio", 1 / 2.3, "TensorFlow"),
    Goal("fan_out_in_*", 2, "to_one_thread", 1.05),
    Goal("diamonds_*", 0, "ratio", 0.25, "TensorFlow"),
    Goal("random_dag_*", 1, "nanos", 10),
    Goal("random_dag_*", 1, "ratio", 0.3, "TensorFlow"),
    Goal("random_dag_*", 2, "ratio", 1, "TensorFlow"),
    Goal("random_dag_100k", 0, "load_seconds", 0.4),
    Goal("random_dag_100k", 0, "load_ratio", 1 / 19),
    Goal("add_chain_10k", 0, "nanos", 60),
    Goal("add_chain_10k", 0, "ratio", 0.25, "TensorFlow"),
    Goal("add_chain_10k", 0, "ratio", 0.25, "ONNX Runtime"),
    Goal("callers", 0, "callers_8_to_2", 0.95, at_least=True),
    Goal("recording chain_*", 1, "overhead_nanos", 60),
    Goal("recording random_dag_*", 1, "overhead_nanos", 60),
    Goal("recording resnet50", 1, "overhead_share", 0.05),
    Goal("recording resnet50", 1, "difference", 0.01),
    Goal("counter*", 1, "nanos", 100),
    Goal("counter*", 1, "ratio", 0.08, "TensorFlow"),
    Goal("counter*", 1, "general_ratio", 0.25),
    Goal("nested", 1, "ratio", 0.2, "TensorFlow"),
    Goal("variables_100", 1, "ratio", 0.2, "TensorFlow"),
    Goal("two_devices", 1, "ratio", 0.1, "TensorFlow"),
    Goal("lstm_*", 0, "ratio", 0.5, "TensorFlow"),
    Goal("lstm_*", 0, "ratio", 0.5, "ONNX Runtime"),
    Goal("resnet50", 0, "ratio", 1.1, "ONNX Runtime"),
    Goal("mobilenet_v2", 0, "ratio", 1.15, "ONNX Runtime"),
    Goal("inception_v3", 0, "ratio", 1.1, "ONNX Runtime"),
    Goal("bert_*", 0, "ratio", 1.05, "ONNX Runtime"),
    *(Goal(model, 0, "ratio", 1.0, "TensorFlow")
      for model in ("resnet50", "mobilenet_v2", "inception_v3", "efficientnet_b0", "vgg16", "bert_*")),
)


def goals_of(row):
    return [g for g in GOALS if fnmatch.fnmatch(row["workload"], g.workload) and g.threads in (0, row["threads"])]
