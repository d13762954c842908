"""The peers of tests/bench: an environment with their wheels, and a process for each that answers line by line.

The lines are those of tests/bench/micro_server.cc. TensorFlow runs behind a small C++ program on its C API (compiled here against
the wheel), oneTBB behind bench_tbb (built with the project), ONNX Runtime behind this file itself, since its wheel has no headers;
its times therefore hold some microseconds of Python per step.
"""

import os
import pathlib
import subprocess
import sys
import threading
import time
import venv

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from graph_bytes import field, scalar_field  # noqa: E402

WHEELS = ("tensorflow-cpu==2.21.0", "onnxruntime", "openvino", "opencv-python-headless", "numpy")


def make_environment(folder):
    """A virtual environment with the peers' wheels in `folder`; the path of its interpreter."""
    venv.create(folder, with_pip=True)
    python = str(pathlib.Path(folder) / "bin" / "python")
    print(f"installing {', '.join(WHEELS)} into {folder}", file=sys.stderr)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *WHEELS], check=True)
    return python


def package_folder(python, name):
    """Where `python` has a package; None if it does not. Nothing is imported."""
    find = f"import importlib.util as u; s = u.find_spec('{name}'); print(s.submodule_search_locations[0] if s else '')"
    return subprocess.run([python, "-c", find], check=True, capture_output=True, text=True).stdout.strip() or None


def versions(python):
    """What the peers call themselves."""
    names = [wheel.split("==")[0] for wheel in WHEELS]
    ask = f"import importlib.metadata as m\nfor n in {names!r}:\n try: print(n, m.version(n))\n except m.PackageNotFoundError: pass"
    lines = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(line.split() for line in lines)


def compile_tensorflow_server(python, folder):
    """Compiles the program on TensorFlow's C API; its path, or None without TensorFlow."""
    wheel = package_folder(python, "tensorflow")
    if wheel is None:
        return None
    program = os.path.join(folder, "tensorflow_server")
    libraries = ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"]
    command = ["g++", "-std=c++17", "-O2", f"-I{wheel}/include", str(HERE / "tensorflow_server.cc"), "-o", program]
    subprocess.run([*command, f"-L{wheel}", *libraries, f"-Wl,-rpath,{wheel}", "-pthread"], check=True)
    return program


def tensorflow_config(threads, executor=""):
    """A ConfigProto: graph rewrites off, `threads` threads of either kind for this session alone."""
    options = field(3, scalar_field(3, -1)) + field(10, scalar_field(19, 1))  # opt_level L0; disable_meta_optimizer
    config = scalar_field(2, threads) + scalar_field(5, threads) + scalar_field(9, 1) + field(10, options)
    return (config + (field(16, field(3, executor)) if executor else b"")).hex()


class Server:
    """One process; `form` is the ending of the files that it loads."""

    def __init__(self, command, form, threads, cores=None):
        self.form, self.threads = form, threads
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=environment)
        if cores:
            os.sched_setaffinity(self.process.pid, cores)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if not answer or answer[0] == "error":
            raise RuntimeError(f"{line}: {' '.join(answer) or 'the process ended'}")
        return [int(word) for word in answer[1:]]

    def load(self, folder, workload):
        """Nanoseconds until a first step has run. FileNotFoundError if there is no such form of the workload."""
        path = os.path.join(folder, f"{workload.name}.{self.form}")
        if not os.path.exists(path):
            raise FileNotFoundError(path)
        return sum(self.ask(f"load {workload.name} {path} {workload.ends} {self.threads}")) + self.run(workload, 1)

    def run(self, workload, steps):
        return self.ask(f"run {workload.name} {steps}")[0]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Peers:
    """Starts whatever is there."""

    def __init__(self, python, build, folder):
        self.python, self.build = python, build
        self.tensorflow = compile_tensorflow_server(python, folder)
        self.onnxruntime = package_folder(python, "onnxruntime")

    def start(self, threads, pinned=True):
        """A process per program, by name, thalweg first; all on the same cores."""
        cores = sorted(os.sched_getaffinity(0))[:threads] if pinned else None
        commands = {"thalweg": ([os.path.join(self.build, "bench_micro")], "pb")}
        if self.tensorflow:
            commands["TensorFlow"] = ([self.tensorflow, tensorflow_config(threads)], "pb")
            commands["TensorFlow, its executor for one thread"] = ([self.tensorflow, tensorflow_config(threads, "SINGLE_THREADED_EXECUTOR")], "pb")
        commands["oneTBB"] = ([os.path.join(self.build, "bench_tbb"), str(threads)], "edges")
        if self.onnxruntime:
            commands["ONNX Runtime"] = ([self.python, __file__, "--serve-onnxruntime", str(threads)], "onnx")
        if threads > 1:
            commands.pop("TensorFlow, its executor for one thread", None)
        return {name: Server(command, form, threads, cores) for name, (command, form) in commands.items()}


# ---- ONNX Runtime's process ---------------------------------------------------------------------------------------------------


class OnnxRuntime:
    """Sessions by name; graph optimisations off, so that every node is executed."""

    def __init__(self, threads):
        import numpy
        import onnxruntime

        self.ort, self.threads, self.sessions = onnxruntime, threads, {}
        self.feeds = {"x": numpy.zeros(1, "float32")}

    def load(self, name, path, *_):
        options = self.ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = self.threads, 1, 3
        options.graph_optimization_level = self.ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.sessions[name] = self.ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(self, name, count):
        session = self.sessions[name]
        for _ in range(int(count)):
            session.run(None, self.feeds)

    def callers(self, name, callers, count):
        threads = [threading.Thread(target=self.run, args=(name, count)) for _ in range(int(callers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def serve_onnxruntime(threads):
    server = OnnxRuntime(threads)
    for line in sys.stdin:
        verb, *arguments = line.split()
        begin, processor = time.perf_counter_ns(), time.process_time_ns()
        try:
            getattr(server, verb)(*arguments)
            more = f" {time.process_time_ns() - processor}" if verb == "callers" else ""
            print(f"{'ok' if verb == 'load' else 'ns'} {time.perf_counter_ns() - begin}{more}", flush=True)
        except Exception as e:  # noqa: BLE001: whatever the peer throws is the answer
            print(f"error {str(e).splitlines()[0] if str(e) else type(e).__name__}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] != "--serve-onnxruntime":
        sys.exit("run tests/bench/run.py instead")
    serve_onnxruntime(int(sys.argv[2]))
