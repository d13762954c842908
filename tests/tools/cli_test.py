#!/usr/bin/env python3
"""Runs the program as a user does and checks outputs, messages and exit codes.

    cli_test.py PROGRAM        usually through ctest
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "support"))
from graph_bytes import attr, field, graph, node, placeholder, scalar_field, shape_attr, type_attr  # noqa: E402

DIGITS = os.path.join(TESTS, "golden", "digits")
GRAPHS = os.path.join(TESTS, "golden", "graphs")
PROGRAM = None


# ---- small graphs ------------------------------------------------------------------------------------------------------


def add_graph(dtype="float"):
    return graph(placeholder("x", dtype, [-1, 2]), placeholder("y", dtype, [-1, 2]), node("sum", "AddV2", ["x", "y"], type_attr("T", dtype)))


def long_chain():
    """a matrix multiplied by itself, over and over: minutes of work, in pieces of a fraction of a second"""
    f = type_attr("T", "float")
    products = [node(f"p{k}", "MatMul", [f"p{k - 1}" if k else "x", "x"], f) for k in range(2000)]
    return graph(placeholder("x", "float"), *products, node("out", "Identity", ["p1999"], f))


def text_node(name, op, inputs=(), **attrs):
    """A node as text; values of attributes as text too, type= for T."""
    attrs = {("T" if key == "type" else key): f"type: {value}" if key in ("type", "dtype") else value for key, value in attrs.items()}
    return (f"node {{ name: '{name}' op: '{op}' " + " ".join(f"input: '{i}'" for i in inputs) +
            "".join(f" attr {{ key: '{key}' value {{ {value} }} }}" for key, value in attrs.items()) + " }\n")


def int_const(name, value, *controls):
    return text_node(name, "Const", controls, dtype="DT_INT32", value=f"tensor {{ dtype: DT_INT32 tensor_shape {{}} int_val: {value} }}")


def float_const(name, values, *controls):
    numbers = " ".join(f"float_val: {value}" for value in values)
    return text_node(name, "Const", controls, dtype="DT_FLOAT", value=f"tensor {{ dtype: DT_FLOAT tensor_shape {{ dim {{ size: {len(values)} }} }} {numbers} }}")


def variable_graph():
    """the variable v; assign makes it 5, add adds 1 to it, twice doubles it; y reads it"""
    f = "DT_FLOAT"
    return (text_node("v", "VariableV2", dtype=f, shape="shape { dim { size: 1 } }") + float_const("five", [5]) + float_const("one", [1]) +
            text_node("assign", "Assign", ["v", "five"], type=f) + text_node("add", "AssignAdd", ["v", "one"], type=f) +
            text_node("twice", "AssignAdd", ["v", "v"], type=f) + text_node("y", "Identity", ["v"], type=f))


def counter_loop(name, start, limit, step="one", body=""):
    """for (i = start; i < limit; i += step), in frame NAME; i is NAME/i:1 in the body, NAME/out after the loop"""
    n, t = name + "/", "DT_INT32"
    constant = {"frame_name": f"s: '{name}'", "is_constant": "b: true"}
    return (text_node(n + "in", "Enter", [start], type=t, frame_name=f"s: '{name}'") + text_node(n + "limit", "Enter", [limit], type=t, **constant) +
            text_node(n + "step", "Enter", [step], type=t, **constant) + text_node(n + "merge", "Merge", [n + "in", n + "next"], type=t, N="i: 2") +
            text_node(n + "less", "Less", [n + "merge", n + "limit"], type=t) + text_node(n + "cond", "LoopCond", [n + "less"]) +
            text_node(n + "i", "Switch", [n + "merge", n + "cond"], type=t) + text_node(n + "stay", "Identity", [n + "i:1"], type=t) +
            text_node(n + "sum", "AddV2", [n + "stay", n + "step"] + ([f"^{body}"] if body else []), type=t) +
            text_node(n + "next", "NextIteration", [n + "sum"], type=t) + text_node(n + "out", "Exit", [n + "i"], type=t))


EXECUTORS = {"replay": ["--threads", "1"], "frames": ["--threads", "1", "--general-frames"], "frames on two threads": ["--threads", "2", "--general-frames"],
             "scattered": ["-d", "CPU:0,CPU:1,CPU:2", "--policy", "scatter~3"], "sim": ["-d", "CPU:0,GPU:0=sim", "--policy", "scatter~3"]}


# ---- running ----------------------------------------------------------------------------------------------------------


class Finished:
    def __init__(self, process):
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr

    @property
    def json(self):
        return json.loads(self.out)


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="thalweg_cli_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return name

    def run_program(self, *arguments, env=None):
        return Finished(subprocess.run([PROGRAM, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300, check=False,
                                       env={**os.environ, **(env or {})}))

    def ok(self, *arguments):
        finished = self.run_program(*arguments)
        self.assertEqual(finished.code, 0, f"{arguments}\n{finished.out}{finished.err}")
        return finished

    def fails(self, exit_code, code, *arguments):
        """Every failure says the canonical code and a command to try."""
        finished = self.run_program(*arguments)
        self.assertEqual(finished.code, exit_code, f"{arguments}\n{finished.out}{finished.err}")
        self.assertRegex(finished.err, rf"(?m)^error: {code}: ")
        self.assertRegex(finished.err, r"(?m)^  try: \S+")
        return finished

    def outputs(self, name="out.npz"):
        with np.load(self.path(name)) as archive:
            return dict(archive)


# ---- run ----------------------------------------------------------------------------------------------------------------


class RunTest(CliTest):
    def test_a_name_without_a_port_is_output_0_and_others_are_listed(self):
        self.write("g.pbtxt", text_node("x", "Placeholder", dtype="DT_FLOAT") + int_const("axis", 0) +
                   text_node("parts", "Split", ["axis", "x"], type="DT_FLOAT", num_split="i: 2"))
        finished = self.ok("run", "g.pbtxt", "-i", "x=[1,2]", "-f", "parts")
        self.assertIn("-f parts is parts:0; the node's outputs are parts:0 (float32), parts:1 (float32)", finished.err)
        self.assertIn("{1}", finished.out)
        for fetch in ("parts:1", "x"):
            self.assertNotIn("outputs are", self.ok("run", "g.pbtxt", "-i", "x=[1,2]", "-f", fetch).err)

    def test_reads_every_digit(self):
        for digit in range(10):
            image = os.path.join(DIGITS, f"digit_{digit}.png")
            self.ok("run", os.path.join(DIGITS, "digits.pb"), "-i", f"image=@{image}:f32,nhwc,0..1", "-f", "digit", "-o", "out.npz")
            self.assertEqual(int(np.ravel(self.outputs()["digit"])[0]), digit)

    def test_prints_what_is_fetched(self):
        self.write("g.pb", add_graph())
        out = self.ok("run", "g.pb", "-i", "x=[[1,2]]", "-i", "y=[[3,4]]", "-f", "sum").out
        self.assertRegex(out, r"sum +float32\[1,2\] \{4, 6\}")

    def test_last_value_of_a_name_wins(self):
        self.write("g.pb", add_graph())
        np.savez(self.path("in.npz"), x=np.ones((1, 2), np.float32), y=np.ones((1, 2), np.float32))
        self.ok("run", "g.pb", "-i", "@in.npz", "-i", "x=[[5,6]]", "-f", "sum:0", "-o", "out.npz")
        np.testing.assert_array_equal(self.outputs()["sum:0"], [[6, 7]])

    def test_types_without_a_plain_form(self):
        self.write("g.pb", add_graph("bfloat16"))
        bits = np.array([[0x3F80, 0x4000]], np.uint16)  # 1, 2
        np.savez(self.path("in.npz"), x=bits, y=bits)
        self.ok("run", "g.pb", "-i", "@in.npz", "-f", "sum", "-o", "out.npz")
        result = self.outputs()["sum"]
        self.assertEqual(result.dtype, np.uint16)
        np.testing.assert_array_equal(result, [[0x4000, 0x4080]])  # 2, 4

    def test_strings(self):
        self.write("g.pb", graph(placeholder("s", "string"), node("t", "Identity", ["s"], type_attr("T", "string"))))
        for value in (np.array([b"a", b"", b"longer"]), np.array(["\u00e9", "b"])):
            np.save(self.path("s.npy"), value)
            self.ok("run", "g.pb", "-i", "s=@s.npy", "-f", "t", "-o", "t.npy")
            expected = [v if isinstance(v, bytes) else v.encode() for v in value.tolist()]
            self.assertEqual(np.load(self.path("t.npy")).tolist(), expected)

    def test_compressed_archives_and_fortran_order(self):
        self.write("g.pb", add_graph())
        x = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2))
        np.savez_compressed(self.path("in.npz"), x=x, y=x)
        self.ok("run", "g.pb", "-i", "@in.npz", "-f", "sum", "-o", "out.npz")
        np.testing.assert_array_equal(self.outputs()["sum"], 2 * x)

    def test_fill_is_said_and_repeatable(self):
        self.write("g.pb", add_graph())
        self.fails(1, "INVALID_ARGUMENT", "run", "g.pb", "-f", "sum", "--fill", "rand~1")  # the first size is open
        first = self.ok("run", "g.pb", "-f", "sum", "--fill", "rand~1", "--shape", "x=3x2", "--shape", "y=3x2", "-o", "a.npz")
        self.assertIn("filled x", first.err)
        self.ok("run", "g.pb", "-f", "sum", "--fill", "rand~1", "--shape", "x=3x2", "--shape", "y=3x2", "-o", "b.npz")
        np.testing.assert_array_equal(self.outputs("a.npz")["sum"], self.outputs("b.npz")["sum"])

    def test_expect(self):
        self.write("g.pb", add_graph())
        np.savez(self.path("ref.npz"), **{"sum:0": np.array([[4, 6.5]], np.float32)})
        arguments = ["run", "g.pb", "-i", "x=[[1,2]]", "-i", "y=[[3,4]]", "-f", "sum", "--expect", "ref.npz"]
        wrong = self.fails(4, "INVALID_ARGUMENT", *arguments)
        self.assertIn("1 of 2", wrong.err)
        self.assertIn("got 6, expected 6.5", wrong.err)
        self.ok(*arguments, "--tol", "f32=0.1")

    def test_json(self):
        self.write("g.pb", add_graph())
        document = self.ok("run", "g.pb", "-i", "x=[[1,2]]", "-i", "y=[[3,4]]", "-f", "sum", "--json", "--print", "--threads", "2").json
        self.assertEqual(document["schema"], "thalweg.run/1")
        self.assertEqual(document["status"], "OK")
        self.assertEqual(document["config"]["threads"], 2)
        self.assertEqual(document["steps"][0]["outputs"], [{"name": "sum", "dtype": "float32", "shape": [1, 2], "values": [4.0, 6.0]}])

    def test_trace(self):
        self.write("g.pb", add_graph())
        self.ok("run", "g.pb", "-i", "x=[[1,2]]", "-i", "y=[[3,4]]", "-f", "sum", "--trace", "t.json")
        with open(self.path("t.json"), encoding="utf-8") as file:
            trace = json.load(file)
        nodes = {event.get("args", {}).get("node") for event in trace["traceEvents"]}
        self.assertIn("sum", nodes)

    def test_dump_to_where_no_folder_can_be(self):
        self.write("g.pb", add_graph())
        self.write("file", b"")
        for folder in ("file", "file/below", "missing/below"):
            finished = self.fails(2, "[A-Z_]+", "run", "g.pb", "-i", "x=[[1,2]]", "-i", "y=[[3,4]]", "-f", "sum", "--dump", f".*={folder}")
            self.assertIn("--dump: ", finished.err)
            self.assertEqual(finished.out, "", "nothing has run")

    def test_dump(self):
        self.write("g.pb", graph(placeholder("x", "float", [2]), node("a/b", "Neg", ["x"], type_attr("T", "float")),
                                 node("c", "Neg", ["a/b"], type_attr("T", "float"))))
        self.ok("run", "g.pb", "-i", "x=[1,2]", "-f", "c", "--dump", "a/.*=values")
        np.testing.assert_array_equal(np.load(self.path("values/a.b.0.npy")), [-1, -2])

    def test_init_runs_once_before_the_steps(self):
        self.write("v.pbtxt", variable_graph())
        self.fails(1, "FAILED_PRECONDITION", "run", "v.pbtxt", "-f", "y")
        self.assertIn("{5}", self.ok("run", "v.pbtxt", "--init", "assign", "-f", "y").out)
        # In the order given, and not again before later steps.
        self.assertIn("{9}", self.ok("run", "v.pbtxt", "--init", "assign", "--init", "add", "-f", "add", "--steps", "3").out)
        report = self.ok("run", "v.pbtxt", "--init", "assign", "-f", "y", "--json").json
        self.assertEqual(report["config"]["init"], ["assign"])
        self.assertEqual(len(report["steps"]), 1)

    def test_init_that_fails_ends_the_run(self):
        self.write("v.pbtxt", variable_graph())
        failed = self.fails(1, "FAILED_PRECONDITION", "run", "v.pbtxt", "--init", "add", "--init", "assign", "-f", "y")
        self.assertRegex(failed.err, "--init: .*'add'")
        self.assertEqual(failed.out, "")
        self.assertRegex(self.fails(1, "NOT_FOUND", "run", "v.pbtxt", "--init", "asign", "-f", "y").err, "--init: .*asign.*assign")
        self.write("s.json", json.dumps({"format": "thalweg.script/1", "steps": []}))
        self.fails(2, "INVALID_ARGUMENT", "run", "v.pbtxt", "--init", "assign", "--script", "s.json")

    def test_devices_and_passes_do_not_change_the_answer(self):
        self.write("g.pb", add_graph())
        for flags in (["-d", "CPU:0,CPU:1", "--policy", "scatter~3"], ["-d", "CPU:0,GPU:0=sim", "--pin", "sum=GPU:0"], ["--no-opt"], ["--threads", "1"]):
            self.ok("run", "g.pb", "-i", "x=[[1,2]]", "-i", "y=[[3,4]]", "-f", "sum", "-o", "out.npz", *flags)
            np.testing.assert_array_equal(self.outputs()["sum"], [[4, 6]], str(flags))


class ScriptTest(CliTest):
    def run_script(self, steps, *flags):
        self.write("steps.json", json.dumps({"format": "thalweg.script/1", "steps": steps}))
        return self.run_program("run", "g.pb", "--script", "steps.json", "-o", "out.npz", "--json", *flags)

    def test_steps_share_a_session_and_a_failure_does_not_end_it(self):
        self.write("g.pb", add_graph())
        self.write("more.pb", graph(node("twice", "AddV2", ["sum", "sum"], type_attr("T", "float"))))
        np.savez(self.path("in0.npz"), x=np.ones((1, 2), np.float32), y=np.ones((1, 2), np.float32))
        finished = self.run_script([
            {"inputs": "in0.npz", "fetches": ["sum:0"]},
            {"inputs": "in0.npz", "fetches": ["twice"]},
            {"extend": "more.pb"},
            {"inputs": "in0.npz", "fetches": ["twice", "sum"], "name": "last"},
            {"inputs": "in0.npz", "fetches": ["sum"], "close": True},
            {"inputs": "in0.npz", "fetches": ["sum"], "new_session": True}])
        self.assertEqual(finished.code, 1)
        statuses = [step["status"] for step in finished.json["steps"]]
        self.assertEqual([statuses[0], *statuses[2:4], statuses[5]], ["OK"] * 4)
        self.assertNotEqual(statuses[1], "OK")
        self.assertEqual(finished.json["steps"][1]["stage"], "run")
        self.assertEqual(statuses[4], "CANCELLED")
        outputs = self.outputs()
        np.testing.assert_array_equal(outputs["twice#3"], [[4, 4]])
        self.assertEqual(sorted(outputs), ["sum#3", "sum#5", "sum:0#0", "twice#3"])

    def test_a_refused_graph_ends_it(self):
        self.write("g.pb", graph(node("a", "NoSuchOp")))
        finished = self.run_script([{"fetches": ["a"]}])
        self.assertEqual(finished.code, 3)
        self.assertEqual(finished.json["stage"], "load")
        self.assertNotIn("steps", finished.json)

    def test_malformed_scripts(self):
        self.write("g.pb", add_graph())
        self.write("steps.json", "{")
        self.fails(2, "INVALID_ARGUMENT", "run", "g.pb", "--script", "steps.json")
        self.fails(2, "NOT_FOUND", "run", "g.pb", "--script", "nowhere.json")
        self.write("steps.json", json.dumps({"format": "thalweg.script/1", "steps": []}))
        self.fails(2, "INVALID_ARGUMENT", "run", "g.pb", "--script", "steps.json", "-f", "sum")


class FailureTest(CliTest):
    def test_graphs_that_cannot_be_used(self):
        self.fails(3, "NOT_FOUND", "run", "nowhere.pb", "-f", "a")
        self.fails(3, "[A-Z_]+", "run", self.write("empty.pb", b""), "-f", "a")
        self.fails(3, "[A-Z_]+", "run", self.write("text.pb", "hello, this is no graph"), "-f", "a")
        self.fails(3, "[A-Z_]+", "run", self.write("cut.pb", add_graph()[:40]), "-f", "a")
        self.fails(3, "INVALID_ARGUMENT", "run", self.folder, "-f", "a")
        unknown = self.fails(3, "[A-Z_]+", "run", self.write("op.pb", graph(node("a", "NoSuchOp"))), "-f", "a")
        self.assertIn("NoSuchOp", unknown.err)
        os.mkdir(self.path("saved"))
        self.write("saved/saved_model.pb", b"x")
        saved = self.fails(3, "UNIMPLEMENTED", "run", "saved", "-f", "a")
        self.assertIn("SavedModel", saved.err)
        self.fails(3, "UNIMPLEMENTED", "run", "saved", "--tags", "serve", "-f", "a")

    def test_names_that_do_not_exist(self):
        self.write("g.pb", add_graph())
        inputs = ["-i", "x=[[1,2]]", "-i", "y=[[3,4]]"]
        near = self.fails(1, "(NOT_FOUND|INVALID_ARGUMENT)", "run", "g.pb", *inputs, "-f", "som")
        self.assertIn("sum", near.err)
        self.fails(1, "(NOT_FOUND|INVALID_ARGUMENT)", "run", "g.pb", *inputs, "-f", "sum:1")
        self.fails(1, "(NOT_FOUND|INVALID_ARGUMENT)", "run", "g.pb", *inputs, "--target", "train")
        self.fails(1, "(NOT_FOUND|INVALID_ARGUMENT)", "run", "g.pb", *inputs, "-i", "z=3", "-f", "sum")

    def test_feeds_that_do_not_fit(self):
        self.write("g.pb", add_graph())
        np.save(self.path("wide.npy"), np.ones((1, 2)))
        wrong = self.fails(1, "INVALID_ARGUMENT", "run", "g.pb", "-i", "x=@wide.npy", "-i", "y=[[1,2]]", "-f", "sum")
        self.assertIn("float64[1,2]", wrong.err)
        self.assertIn("float32", wrong.err)
        self.fails(1, "INVALID_ARGUMENT", "run", "g.pb", "-i", "x=[1,2,3]", "-i", "y=[[1,2]]", "-f", "sum")
        unfed = self.fails(1, "INVALID_ARGUMENT", "run", "g.pb", "-i", "x=[[1,2]]", "-f", "sum")
        self.assertIn("y", unfed.err)

    def test_input_files_that_cannot_be_read(self):
        self.write("g.pb", add_graph())
        self.fails(2, "NOT_FOUND", "run", "g.pb", "-i", "x=@nowhere.npy", "-f", "sum")
        self.write("broken.npz", b"PK\x03\x04 and no more")
        self.fails(2, "DATA_LOSS", "run", "g.pb", "-i", "@broken.npz", "-f", "sum")
        np.save(self.path("big.npy"), np.ones(2, ">f4"))
        self.fails(2, "UNIMPLEMENTED", "run", "g.pb", "-i", "x=@big.npy", "-f", "sum")

    def test_usage(self):
        self.write("g.pb", add_graph())
        flag = self.fails(2, "INVALID_ARGUMENT", "run", "g.pb", "--fetc", "sum")
        self.assertIn("--fetch", flag.err)
        verb = self.fails(2, "INVALID_ARGUMENT", "rum", "g.pb")
        self.assertIn("run", verb.err)
        for arguments in (["run"], ["run", "g.pb"], ["run", "g.pb", "-f", "sum", "--timeout", "soon"], ["run", "g.pb", "-f", "sum", "-i", "x"],
                          ["run", "g.pb", "-f", "sum", "--threads", "0"], ["run", "g.pb", "-f", "sum", "--policy", "best"],
                          ["run", "g.pb", "-f", "sum", "--pin", "("],
                          ["run", "g.pb", "-f", "sum", "--pin", "sum="], ["run", "g.pb", "-f", "sum", "--pin", "(=CPU:0"],
                          ["run", "g.pb", "-f", "sum", "--memory-limit", "much"], ["run", "g.pb", "-f", "sum", "--tol", "f32=1"],
                          ["run", "g.pb", "-f", "sum", "--no-opt=no-such-pass"], ["run", "g.pb", "-f", "sum", "-d", "what?"],
                          ["inspect"], ["inspect", "g.pb", "--node", "("], ["bench", "g.pb", "-n", "5", "--duration", "1s"], ["bench", "g.pb", "--duration", "0s"], ["help", "xyzzy"]):
            with self.subTest(arguments):
                self.fails(2, "(INVALID_ARGUMENT|NOT_FOUND)", *arguments)

    def test_output_that_cannot_be_written(self):
        self.write("g.pb", add_graph())
        self.fails(2, "[A-Z_]+", "run", "g.pb", "-i", "x=[[1,2]]", "-i", "y=[[3,4]]", "-f", "sum", "-o", "no/such/folder/out.npz")
        feeds = ("-i", "x=[[1,2]]", "-i", "y=[[3,4]]")
        # A folder that is not there is seen before anything runs, a full disk only afterwards.
        for command in (["run", "g.pb", *feeds, "-f", "sum", "--trace"], ["place", "g.pb", "-f", "sum", "--out"],
                        ["profile", "g.pb", "-f", "sum", "--steps", "1", "-o"],
                        ["profile", "g.pb", "-f", "sum", "--steps", "1", "--chrome"]):
            with self.subTest(command):
                self.assertNotIn("{", self.fails(2, "NOT_FOUND", *command, "no/such/folder/file").out)
                self.assertIn("df -h", self.fails(1, "RESOURCE_EXHAUSTED", *command, "/dev/full").err)

    def test_what_to_fetch_must_be_said_if_nothing_stands_out(self):
        self.write("c.pbtxt", int_const("c", 3))
        for verb in ("place", "bench", "profile"):
            with self.subTest(verb):
                self.assertIn("-f TENSOR", self.fails(2, "INVALID_ARGUMENT", verb, "c.pbtxt").err)

    def test_feeds_of_nothing_name_what_can_be_fed(self):
        self.write("g.pb", add_graph())
        err = self.fails(1, "NOT_FOUND", "run", "g.pb", "-i", "X=[[1,2]]", "-f", "sum").err
        self.assertIn("did you mean 'x'", err)
        self.assertIn("its placeholders: 'x' (float32), 'y' (float32)", err)
        self.write("c.pbtxt", int_const("c", 3))
        self.assertIn("it has no placeholders", self.fails(1, "NOT_FOUND", "run", "c.pbtxt", "-i", "x=1", "-f", "c").err)

    def test_arrays_that_are_none(self):
        self.write("g.pb", add_graph())
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}".ljust(117) + "\n"
        self.write("huge.npy", b"\x93NUMPY\x01\x00\x76\x00" + header.encode())
        self.write("text.npy", b"1 2 3\n")
        for file in ("huge.npy", "text.npy"):
            with self.subTest(file):
                self.assertIn(file, self.fails(2, "DATA_LOSS", "run", "g.pb", "-i", f"x=@{file}", "-f", "sum").err)

    def test_devices_that_are_missing(self):
        self.write("far.pb", graph(placeholder("x", "float"), node("y", "Neg", ["x"], type_attr("T", "float"), device="/device:GPU:3")))
        self.fails(7, "INVALID_ARGUMENT", "run", "far.pb", "-i", "x=1", "-f", "y", "--no-soft-placement")
        self.ok("run", "far.pb", "-i", "x=1", "-f", "y")
        away = node("y", "Neg", ["x"], type_attr("T", "float"), device="/job:worker/task:1")
        self.write("away.pb", graph(placeholder("x", "float"), away))
        self.fails(7, "INVALID_ARGUMENT", "run", "away.pb", "-i", "x=1", "-f", "y")
        self.fails(7, "INVALID_ARGUMENT", "place", "away.pb", "-f", "y")
        self.write("g.pb", add_graph())
        self.fails(7, "NOT_FOUND", "run", "g.pb", "-f", "sum", "-d", "CPU:0,GPU:0=warp")
        self.fails(7, "NOT_FOUND", "run", "g.pb", "-f", "sum", "--pin", "sum=GPU:0")
        self.write("p.json", '{"schema": "thalweg.placement/1", "nodes": {"sum": "GPU:0"}}')
        feeds = ("-i", "x=[[1,2]]", "-i", "y=[[3,4]]")
        self.fails(7, "NOT_FOUND", "run", "g.pb", *feeds, "-f", "sum", "--placement", "p.json")
        self.fails(7, "NOT_FOUND", "place", "g.pb", "-f", "sum", "--placement", "p.json")

    def test_what_matches_nothing_is_said(self):
        self.write("g.pb", add_graph())
        self.write("p.json", '{"schema": "thalweg.placement/1", "nodes": {"sum": "CPU:0", "gone": "CPU:0", "a": "CPU:0"}}')
        for command in (["run", "g.pb", "-i", "x=[[1,2]]", "-i", "y=[[3,4]]", "-f", "sum"], ["place", "g.pb", "-f", "sum"]):
            with self.subTest(command):
                err = self.ok(*command, "--pin", "su=CPU:0", "--pin", "sum=CPU:0", "--placement", "p.json").err
                self.assertIn("--pin 'su=CPU:0' matches no node", err)
                self.assertNotIn("'sum=CPU:0'", err)
                self.assertIn("names 2 nodes that the graph does not have, the first of them 'a'", err)
        for feed, request in (("x=[[1,2]]", ("-f", " sum")), (" x=[[1,2]]", ("-f", "sum")),
                              ("x=[[1,2]]", ("--target", "sum "))):
            self.assertIn("white space", self.ok("run", "g.pb", "-i", feed, "-i", "y=[[3,4]]", *request).err)

    def test_advice_can_be_followed(self):
        """The command after an error is one that helps, not the one that failed."""
        self.write("photo.pb", b"\xff\xd8\xff\xe0\0\x10JFIF")
        for verb in ("inspect", "run"):
            self.assertIn("try: ls -l photo.pb", self.fails(3, "INVALID_ARGUMENT", verb, "photo.pb", *(["-f", "x"] if verb == "run" else [])).err)
        self.write("g.pb", add_graph())
        unknown = self.fails(1, "NOT_FOUND", "run", "g.pb", "-i", "x=[[1,2]]", "-i", "y=[[3,4]]", "-f", "sun").err
        self.assertRegex(unknown, r"(?m)try: thalweg inspect g.pb$")
        open_shape = self.fails(1, "INVALID_ARGUMENT", "run", "g.pb", "-f", "sum", "--fill", "rand~1").err
        self.assertIn("--shape x=1x2", open_shape)

    def test_time_runs_out(self):
        self.write("g.pb", long_chain())
        started = time.monotonic()
        self.fails(6, "DEADLINE_EXCEEDED", "run", "g.pb", "-i", "x=rand:f32:1000x1000~1", "-f", "out", "--timeout", "300ms")
        self.assertLess(time.monotonic() - started, 30)

    def test_memory_runs_out(self):
        self.write("g.pb", graph(placeholder("x", "float"), node("y", "Neg", ["x"], type_attr("T", "float")),
                                 node("z", "AddV2", ["x", "y"], type_attr("T", "float"))))
        self.fails(5, "RESOURCE_EXHAUSTED", "run", "g.pb", "-i", "x=zeros:f32:4096x4096", "-f", "z", "--memory-limit", "16MiB")
        self.fails(5, "RESOURCE_EXHAUSTED", "run", "g.pb", "-i", "x=zeros:f32:1000000000x1000000", "-f", "z")
        self.write("fill.pb", graph(placeholder("dims", "int32"), placeholder("one", "float"), node("f", "Fill", ["dims", "one"], type_attr("T", "float"))))
        command = ["run", "fill.pb", "-i", "dims=[1000,1000]:i32", "-i", "one=1", "-f", "f"]
        little = self.fails(5, "RESOURCE_EXHAUSTED", *command, "--memory-limit", "1MiB")
        self.ok(*command, "--memory-limit", re.search(r"try: .*--memory-limit (\S+)", little.err).group(1))
        absurd = self.fails(5, "RESOURCE_EXHAUSTED", "run", "fill.pb", "-i", "dims=[1000000,1000000,1000]:i32", "-i", "one=1", "-f", "f").err
        self.assertIn("try: thalweg inspect fill.pb --node f", absurd)

    def test_interrupt_cancels_the_step(self):
        self.write("g.pb", long_chain())
        child = subprocess.Popen([PROGRAM, "run", "g.pb", "-i", "x=rand:f32:1000x1000~1", "-f", "out"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with contextlib.closing(child.stdout), contextlib.closing(child.stderr):
            time.sleep(1)
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(60), 130)
            self.assertIn("CANCELLED", child.stderr.read())


class DiagnosisTest(CliTest):
    """What is said of steps of conditionals and loops, by every executor."""

    def by_each_executor(self, check):
        for name, flags in EXECUTORS.items():
            with self.subTest(name):
                check(flags)

    def start(self, *arguments):
        """A run that does not end by itself; its stderr goes to a file."""
        with open(self.path("err"), "wb") as err:
            child = subprocess.Popen([PROGRAM, "run", *arguments], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=err)
        self.addCleanup(child.wait, 60)
        self.addCleanup(child.kill)
        return child

    def said(self):
        with open(self.path("err"), encoding="utf-8") as file:
            return file.read()

    def test_sigusr1_prints_what_the_step_does(self):
        self.write("g.pbtxt", int_const("zero", 0) + int_const("one", 1) + counter_loop("w", "zero", "one", "zero"))

        def check(flags):
            child = self.start("g.pbtxt", "-f", "w/out", *flags)
            deadline = time.monotonic() + 60
            while "frame 'w'" not in self.said() and time.monotonic() < deadline:
                with open(f"/proc/{child.pid}/status", encoding="utf-8") as status:
                    ignored = next(int(line.split()[1], 16) for line in status if line.startswith("SigIgn"))
                if ignored & 1 << (signal.SIGUSR1 - 1):  # the program is up
                    child.send_signal(signal.SIGUSR1)
                time.sleep(0.1)
            self.assertRegex(self.said(), r"(?s)step \d+, running for [\d.]+ s, of \d+ nodes, for 'w/out:0'\n.* iteration \d+")
            self.assertIsNone(child.poll(), "the step goes on")
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(60), 130)

        self.by_each_executor(check)

    def test_a_time_limit_says_frame_and_iteration(self):
        self.write("g.pbtxt", int_const("zero", 0) + int_const("one", 1) + counter_loop("w", "zero", "one", "zero"))

        def check(flags):
            error = self.fails(6, "DEADLINE_EXCEEDED", "run", "g.pbtxt", "-f", "w/out", "--timeout", "0.2s", *flags).err
            self.assertRegex(error, r"in iteration \d+ of frame 'w'")

        self.by_each_executor(check)

    def test_a_fetch_without_a_value_says_why(self):
        graph_text = (int_const("zero", 0) + int_const("one", 1) + int_const("four", 4) +
                      text_node("p", "Placeholder", dtype="DT_BOOL") + text_node("s", "Switch", ["one", "p"], type="DT_INT32") + text_node("y", "Neg", ["s:1"], type="DT_INT32"))
        self.write("g.pbtxt", graph_text)

        def check(flags):
            error = self.fails(1, "INVALID_ARGUMENT", "run", "g.pbtxt", "-i", "p=false", "-f", "y", *flags).err
            self.assertRegex(error, r"'s' \(Switch\) had the predicate false \(p(:0)?\)")
            self.ok("run", "g.pbtxt", "-i", "p=true", "-f", "y", *flags)

        self.by_each_executor(check)

    def test_a_fetch_without_a_value_says_in_which_iteration(self):
        self.write("g.pbtxt", int_const("zero", 0) + int_const("one", 1) + int_const("four", 4) + counter_loop("w", "zero", "four") +
                   text_node("never", "Less", ["w/stay", "w/stay"], type="DT_INT32") + text_node("s", "Switch", ["w/stay", "never"], type="DT_INT32") +
                   text_node("y", "Neg", ["s:1"], type="DT_INT32"))

        def check(flags):
            error = self.fails(1, "INVALID_ARGUMENT", "run", "g.pbtxt", "-f", "y", *flags).err
            self.assertRegex(error, r"\(Switch\) had the predicate false \(\S+\) in iteration \d of frame 'w'")

        self.by_each_executor(check)

    def test_numerics_name_the_node_that_would_be_fused(self):
        f = "DT_FLOAT"
        self.write("g.pbtxt", text_node("x", "Placeholder", dtype=f) + text_node("e", "Neg", ["x"], type=f) + text_node("log", "Log", ["e"], type=f) +
                   text_node("z", "Mul", ["log", "log"], type=f) + text_node("out", "Tanh", ["z"], type=f))

        def check(flags):
            run = ["run", "g.pbtxt", "-f", "out", *flags]
            bad = ["-i", "x=[[-1,0],[2,-3]]:f32"]
            counts = r"node 'log' \(Log on \w+:\d\): output 0 has 1 NaN, 1 -Inf in float32\[2,2\]; the first, "
            self.assertRegex(self.fails(1, "INVALID_ARGUMENT", *run, *bad, "--check-numerics").err, counts + r"-Inf, is element \[0,1\]; inputs: float32(\[2,2\])?\n")
            self.assertRegex(self.fails(1, "INVALID_ARGUMENT", *run, *bad, "--check-numerics=nan").err, counts + r"NaN, is element \[1,0\]")
            self.assertIn("nan", self.ok(*run, *bad).out)
            # What is fine passes, infinities too where only NaN is looked for.
            self.assertEqual(self.ok(*run, "-i", "x=[-1,-2]:f32", "--check-numerics").out, self.ok(*run, "-i", "x=[-1,-2]:f32", "--no-opt").out)
            self.assertEqual(self.ok(*run, "-i", "x=[-1,0]:f32", "--check-numerics=nan").out, self.ok(*run, "-i", "x=[-1,0]:f32", "--no-opt").out)
            fed = self.fails(1, "INVALID_ARGUMENT", *run, "-i", "x=[-1,nan]:f32", "--check-numerics").err
            self.assertIn("the tensor fed to 'x:0' has 1 NaN in float32[2]; the first, NaN, is element [1]", fed)

        self.by_each_executor(check)
        self.fails(2, "INVALID_ARGUMENT", "run", "g.pbtxt", "-f", "out", "--check-numerics=inf")
        config = self.ok("run", "g.pbtxt", "-i", "x=[-1]:f32", "-f", "out", "--check-numerics", "--json").json["config"]
        self.assertEqual((config["check_numerics"], config["optimize"]), ("nan,inf", False))
        config = self.ok("run", "g.pbtxt", "-i", "x=[-1]:f32", "-f", "out", "--json").json["config"]
        self.assertEqual((config["check_numerics"], config["optimize"]), ("off", True))

    def test_numerics_say_frame_and_iteration(self):
        f = "DT_FLOAT"
        self.write("g.pbtxt", int_const("zero", 0) + int_const("one", 1) + int_const("nine", 9) + float_const("three", [3]) +
                   text_node("three_in", "Enter", ["three"], type=f, frame_name="s: 'w'", is_constant="b: true") +
                   text_node("real", "Cast", ["w/stay"], SrcT="type: DT_INT32", DstT="type: DT_FLOAT") +
                   text_node("less", "Sub", ["real", "three_in"], type=f) + text_node("inverse", "Reciprocal", ["less"], type=f) +
                   counter_loop("w", "zero", "nine", body="inverse"))

        def check(flags):
            error = self.fails(1, "INVALID_ARGUMENT", "run", "g.pbtxt", "-f", "w/out", "--check-numerics", *flags).err
            self.assertRegex(error, r"node 'inverse' \(Reciprocal on \w+:\d\) in iteration 3 of frame 'w': output 0 has 1 Inf in float32\[1\]")
            self.assertIn("{9}", self.ok("run", "g.pbtxt", "-f", "w/out", "--check-numerics=nan", *flags).out)

        self.by_each_executor(check)

    def test_numerics_of_constants_and_variables(self):
        f = "DT_FLOAT"
        self.write("c.pbtxt", float_const("good", [1, 2]) + text_node("p", "Placeholder", dtype="DT_BOOL") + text_node("s", "Switch", ["good", "p"], type=f) +
                   text_node("taken", "Identity", ["s:1"], type=f) + float_const("mask", ["-inf", 0], "^taken") +
                   text_node("masked", "AddV2", ["s:1", "mask"], type=f) + text_node("out", "Merge", ["s:0", "masked"], type=f, N="i: 2"))
        self.write("v.pbtxt", variable_graph().replace("float_val: 5", "float_val: 3e38"))

        def check(flags):
            # A constant is looked at where it is needed.
            error = self.fails(1, "INVALID_ARGUMENT", "run", "c.pbtxt", "-i", "p=true", "-f", "out", "--check-numerics", *flags).err
            self.assertRegex(error, r"node 'mask' \(Const on \w+:\d\): output 0 has 1 -Inf in float32\[2\]; the first, -Inf, is element \[0\]")
            self.assertIn("{-inf, 2}", self.ok("run", "c.pbtxt", "-i", "p=true", "-f", "out", "--check-numerics=nan", *flags).out)
            self.assertIn("{1, 2}", self.ok("run", "c.pbtxt", "-i", "p=false", "-f", "out", "--check-numerics", *flags).out)
            # What an update leaves in a variable counts as its output.
            error = self.fails(1, "INVALID_ARGUMENT", "run", "v.pbtxt", "--init", "assign", "--target", "twice", "--check-numerics", *flags).err
            self.assertRegex(error, r"node 'twice' \(AssignAdd on \w+:\d\): output 0 has 1 Inf in float32\[1\]")

        self.by_each_executor(check)

    def test_a_missing_exit_is_named(self):
        self.write("g.pbtxt", int_const("zero", 0) + int_const("one", 1) + int_const("four", 4) + counter_loop("w", "zero", "four") +
                   text_node("bad", "AddV2", ["w/stay", "one"], type="DT_INT32"))

        def check(flags):
            error = self.fails(1, "INVALID_ARGUMENT", "run", "g.pbtxt", "-f", "bad", *flags).err
            self.assertRegex(error, "'bad'.* frame 'w'")
            self.assertRegex(error, "Exit")

        self.by_each_executor(check)

    def test_a_missing_enter_is_named(self):
        self.write("g.pbtxt", int_const("zero", 0) + int_const("one", 1) + int_const("four", 4) +
                   counter_loop("w", "zero", "four").replace("input: 'w/stay' input: 'w/step'", "input: 'w/stay' input: 'four'"))

        def check(flags):
            error = self.fails(1, "INVALID_ARGUMENT", "run", "g.pbtxt", "-f", "w/out", *flags).err
            self.assertRegex(error, "'w/sum'.*'four'|'four'.*'w/sum'")
            self.assertRegex(error, "Enter")

        self.by_each_executor(check)

    def test_profile_counts_iterations(self):
        inner = counter_loop("inner", "start", "five", body="").replace("input: 'one'", "input: 'w/step'").replace("input: 'start'", "input: 'zero_in'").replace("input: 'five'", "input: 'five_in'")
        enters = "".join(text_node(f"{name}_in", "Enter", [name], type="DT_INT32", frame_name="s: 'w'", is_constant="b: true") for name in ("zero", "five"))
        # What the inner loop begins with is invariant, so it also runs while the outer one looks whether to go on: 8 times.
        self.write("g.pbtxt", int_const("zero", 0) + int_const("one", 1) + int_const("seven", 7) + int_const("five", 5) + enters + inner +
                   counter_loop("w", "zero", "seven", body="inner/out"))

        def check(flags):
            out = self.ok("profile", "g.pbtxt", "-f", "w/out", "--steps", "3", "--by", "loop", "--no-opt", *flags).out
            self.assertRegex(out, r"(?m)^w  .* 7  +\S+ \S+  ")
            self.assertRegex(out, r"(?m)^w > inner  .* 40  +\S+ \S+  ")

        self.by_each_executor(check)


# ---- the other verbs ----------------------------------------------------------------------------------------------------


class InspectTest(CliTest):
    def test_summary_can_be_pasted(self):
        out = self.ok("inspect", os.path.join(DIGITS, "digits.pb")).out
        self.assertRegex(out, r"inputs +image:0 +float32")
        self.assertRegex(out, r"producer \d+ .*TensorFlow \d")
        command = [line for line in out.splitlines() if line.startswith("try")][0].split()[1:]
        self.assertEqual(command[:2], ["thalweg", "run"])
        self.ok(*command[1:])

    def test_check_lists_every_fault(self):
        self.write("bad.pb", graph(node("a", "NoSuchOp"), node("b", "OtherOp"), node("c", "NoSuchOp"), node("d", "Neg", ["missing"], type_attr("T", "float"))))
        finished = self.run_program("inspect", "bad.pb", "--check")
        self.assertEqual(finished.code, 3)
        for word in ("NoSuchOp x2", "OtherOp", "missing"):
            self.assertIn(word, finished.out)
        self.assertEqual(self.run_program("inspect", "bad.pb", "--json").code, 3)

    def test_json(self):
        document = self.ok("inspect", os.path.join(DIGITS, "digits.pb"), "--json").json
        self.assertEqual(document["schema"], "thalweg.inspect/1")
        self.assertEqual([tensor["name"] for tensor in document["inputs"]], ["image:0"])
        self.assertTrue(any(tensor["likely"] for tensor in document["outputs"]))

    def test_check_lists_frame_faults(self):
        t, loop = "DT_INT32", int_const("zero", 0) + int_const("one", 1) + counter_loop("w", "zero", "one") + counter_loop("v", "zero", "one")
        self.write("good.pbtxt", loop)
        self.ok("inspect", "good.pbtxt", "--check")
        self.write("bad.pbtxt", loop + text_node("leak", "AddV2", ["w/stay", "one"], type=t) + text_node("after", "AddV2", ["leak", "one"], type=t) +
                   text_node("control", "Identity", ["w/out", "^w/stay"], type=t) + text_node("two", "AddV2", ["w/stay", "v/stay"], type=t))
        checked = self.run_program("inspect", "bad.pbtxt", "--check", "--all")
        self.assertEqual(checked.code, 3)
        for text in ("3 frame error  AddV2 x2 (leak, two)  Identity (control)", "an Enter into frame 'w' is missing behind 'one', or an Exit behind 'w/stay'",
                     "an Exit out of each of the two loops is missing"):
            self.assertIn(text, checked.out)
        document = self.run_program("inspect", "bad.pbtxt", "--json")
        self.assertEqual((document.code, [f["node"] for f in document.json["findings"] if f["kind"] == "frame error"]), (3, ["leak", "control", "two"]))
        self.assertIn("3 errors", self.ok("inspect", "bad.pbtxt").out)  # what a step does not need does not spoil it
        self.ok("inspect", "bad.pbtxt", "--node", "leak")
        self.ok("run", "bad.pbtxt", "-f", "w/out")

    def test_node_path_ops_shape(self):
        self.write("g.pb", graph(placeholder("x", "float", [-1, 2]), node("a", "Neg", ["x"], type_attr("T", "float")),
                                 node("b", "Neg", ["a", "^x"], type_attr("T", "float"))))
        self.assertRegex(self.ok("inspect", "g.pb", "--node", "a", "--shape", "x=7x2").out, r"output 0 +float32 \[7,2\]")
        self.assertEqual(len(self.ok("inspect", "g.pb", "--path", "x", "b").out.splitlines()), 2)
        self.assertRegex(self.ok("inspect", "g.pb", "--ops").out, r"Neg +2")
        self.fails(1, "NOT_FOUND", "inspect", "g.pb", "--node", "zzz")
        self.fails(1, "NOT_FOUND", "inspect", "g.pb", "--node", "zzz", "--json")
        [found] = self.ok("inspect", "g.pb", "--node", "a", "--shape", "x=7x2", "--json").json["matched"]
        self.assertEqual((found["name"], found["op"], found["inputs"]), ("a", "Neg", ["x:0"]))
        self.assertEqual(found["outputs"], [{"dtype": "float32", "shape": [7, 2]}])
        self.fails(1, "NOT_FOUND", "inspect", "g.pb", "--path", "b", "x")


class PlaceTest(CliTest):
    def test_report_and_file(self):
        digits = os.path.join(DIGITS, "digits.pb")
        flags = ["-d", "CPU:0,CPU:1", "--policy", "scatter~5", "-f", "digit"]
        self.assertIn("CPU:1", self.ok("place", digits, *flags, "--out", "p.json").out)
        with open(self.path("p.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["schema"], "thalweg.placement/1")
        image = f"image=@{DIGITS}/digit_4.png:f32,nhwc,0..1"
        self.ok("run", digits, "-i", image, "-f", "digit", "-d", "CPU:0,CPU:1", "--placement", "p.json", "-o", "out.npz")
        self.assertEqual(int(np.ravel(self.outputs()["digit"])[0]), 4)
        document = self.ok("place", digits, *flags, "--json").json
        self.assertTrue(document["transfers"])
        self.assertTrue(all(entry["assigned"] in ("CPU:0", "CPU:1") and entry["reason"] for entry in document["nodes"]))

    def test_explain(self):
        self.write("g.pb", add_graph())
        out = self.ok("place", "g.pb", "-d", "CPU:0,CPU:1", "--pin", "sum=CPU:1", "--explain", "sum").out
        self.assertRegex(out, r"CPU:1 +chosen")
        self.fails(1, "NOT_FOUND", "place", "g.pb", "--explain", "zzz")

    def test_explain_of_a_node_that_became_part_of_another(self):
        floats = type_attr("T", "float")
        self.write("g.pb", graph(placeholder("x", "float", [4]), node("e", "Exp", ["x"], floats), node("t", "Tanh", ["e"], floats), node("y", "Neg", ["t"], floats)))
        out = self.ok("place", "g.pb", "-f", "y", "--explain", "e").out
        self.assertIn("'e' is part of 't', _FusedElementwise", out)
        self.assertRegex(out, r"CPU:0 +chosen")
        nodes = {entry["node"]: entry for entry in self.ok("place", "g.pb", "-f", "y", "--json").json["nodes"]}
        self.assertEqual(nodes["t"]["stands_for"], ["t", "e"])


class BenchTest(CliTest):
    def test_json(self):
        self.write("g.pb", add_graph())
        finished = self.ok("bench", "g.pb", "-n", "50", "--threads", "1,2", "--concurrency", "1,2", "--json")
        self.assertIn("random input x", finished.err)
        document = finished.json
        self.assertEqual(document["schema"], "thalweg.bench/1")
        self.assertEqual([(row["threads"], row["concurrency"], row["runs"]) for row in document["rows"]], [(1, 1, 50), (1, 2, 50), (2, 1, 50), (2, 2, 50)])
        for row in document["rows"]:
            latency = row["latency_ns"]
            self.assertLessEqual(latency["min"], latency["p50"])
            self.assertLessEqual(latency["p50"], latency["p99"])
            self.assertLessEqual(latency["p99"], latency["max"])
            for key in ("throughput_per_s", "load_ns", "place_ns", "compile_ns", "first_run_ns", "peak_rss_bytes", "nodes_executed"):
                self.assertIn(key, row)

    def test_init_runs_before_what_is_measured(self):
        self.write("v.pbtxt", variable_graph())
        self.fails(1, "FAILED_PRECONDITION", "bench", "v.pbtxt", "-f", "y", "-n", "10")
        for verb, flags in (("bench", ["-n", "10", "--threads", "1,2"]), ("profile", ["--steps", "3"])):
            self.assertEqual(self.ok(verb, "v.pbtxt", "--init", "assign", "-f", "y", *flags, "--json").json["config"]["init"], ["assign"])
            self.assertRegex(self.fails(1, "FAILED_PRECONDITION", verb, "v.pbtxt", "--init", "add", "-f", "y", *flags).err, "--init: .*'add'")

    def test_duration(self):
        self.write("g.pb", add_graph())
        self.assertIn("per second", self.ok("bench", "g.pb", "--duration", "200ms", "--warmup", "0").out)

    def test_assertions(self):
        self.write("g.pb", add_graph())
        self.ok("bench", "g.pb", "-n", "20", "--assert", "p50<1000s", "--assert", "nodes_executed >= 1")
        finished = self.fails(4, "FAILED_PRECONDITION", "bench", "g.pb", "-n", "20", "--assert", "p50<0ns")
        self.assertRegex(finished.err, r"p50<0ns.* threads \d+, callers 1: p50 is ")
        self.assertIn("per second", finished.out)
        self.fails(2, "INVALID_ARGUMENT", "bench", "g.pb", "--assert", "p51<2ms")

    def test_percentiles(self):
        self.write("g.pb", add_graph())
        row = self.ok("bench", "g.pb", "-n", "50", "--percentiles", "99.9,25,50,50", "--assert", "p99.9<1000s", "--json").json["rows"][0]
        self.assertEqual(list(row["latency_ns"]), ["min", "mean", "p25", "p50", "p99.9", "max"])
        values = [row["latency_ns"][key] for key in ("min", "p25", "p50", "p99.9", "max")]
        self.assertEqual(values, sorted(values))
        self.assertIn("p99.9", self.ok("bench", "g.pb", "-n", "5", "--percentiles", "99.9").out)
        for bad in ("0", "101", "50,", "x", ""):
            self.fails(2, "INVALID_ARGUMENT", "bench", "g.pb", "--percentiles", bad)

    def test_rate_counts_from_when_a_step_was_due(self):
        self.write("g.pb", add_graph())
        document = self.ok("bench", "g.pb", "-n", "20", "--rate", "200,400", "--concurrency", "1,2", "--json").json
        self.assertEqual([(row["concurrency"], row["rate_per_s"], row["runs"]) for row in document["rows"]],
                         [(1, 200, 20), (1, 400, 20), (2, 200, 20), (2, 400, 20)])
        for row in document["rows"]:
            self.assertLessEqual(row["throughput_per_s"], row["rate_per_s"])
            self.assertLessEqual(row["execution_ns"]["max"], row["latency_ns"]["max"])
        # Products of 10 ms and more cannot be had every microsecond: steps wait, each longer than the one before it.
        self.write("long.pb", long_chain())
        finished = self.ok("bench", "long.pb", "-i", "x=rand:f32:60x60~1", "-f", "out", "-n", "4", "--warmup", "0", "--rate", "1e6", "--json")
        row = finished.json["rows"][0]
        self.assertFalse(row["rate_held"])
        self.assertGreater(row["waiting_ns"]["max"], row["execution_ns"]["min"])
        self.assertGreaterEqual(row["latency_ns"]["max"], row["waiting_ns"]["max"])
        self.assertIn("the rate was not kept", self.ok("bench", "long.pb", "-i", "x=rand:f32:60x60~1", "-f", "out", "-n", "4", "--rate", "1e6").err)
        for bad in ("0", "-1", "x", "1e9"):
            self.fails(2, "INVALID_ARGUMENT", "bench", "g.pb", "--rate", bad)

    def test_steps_due_after_the_duration_do_not_begin(self):
        self.write("g.pb", add_graph())
        row = self.ok("bench", "g.pb", "--duration", "300ms", "--rate", "100", "--json").json["rows"][0]
        self.assertLessEqual(row["runs"], 30)
        self.assertGreater(row["runs"], 0)

    def test_sweep_and_shapes(self):
        self.write("g.pb", add_graph())
        document = self.ok("bench", "g.pb", "-n", "5", "--sweep", "batch=1,3", "--threads", "1,2", "--json").json
        self.assertEqual([(row["shapes"], row["threads"], row["inputs"]["x"]["shape"]) for row in document["rows"]],
                         [("batch=1", 1, [1, 2]), ("batch=1", 2, [1, 2]), ("batch=3", 1, [3, 2]), ("batch=3", 2, [3, 2])])
        for row in document["rows"]:
            self.assertAlmostEqual(row["items_per_s"], row["throughput_per_s"] * row["inputs"]["x"]["shape"][0], delta=1e-6 * row["items_per_s"])
        shapes = self.ok("bench", "g.pb", "-n", "5", "--shapes", "x=2x2;x=5x2,y=5x2", "--json").json["rows"]
        self.assertEqual([[row["inputs"][name]["shape"] for name in "xy"] for row in shapes], [[[2, 2], [1, 2]], [[5, 2], [5, 2]]])
        # A generator without a shape is swept too; a value of its own shape is not.
        rows = self.ok("bench", "g.pb", "-n", "5", "-i", "x=ones:f32", "--sweep", "x.0=2,3", "--json").json["rows"]
        self.assertEqual([row["inputs"]["x"]["shape"] for row in rows], [[2, 2], [3, 2]])
        self.fails(2, "INVALID_ARGUMENT", "bench", "g.pb", "-i", "x=ones:f32:2x2", "-i", "y=ones:f32:2x2", "--sweep", "batch=2")
        for bad in ("batch", "x=3", "x.1=5", "z.0=2"):
            self.fails(2, "INVALID_ARGUMENT", "bench", "g.pb", "--sweep", bad)
        self.ok("bench", "g.pb", "-n", "5", "--sweep", "batch=2", "--rate", "1000", "--percentiles", "75", "--dump-config", "b.toml")
        again = self.ok("bench", "--config", "b.toml", "g.pb", "--json").json
        self.assertEqual(again["config"]["sweeps"], {"batch": [2]})
        self.assertEqual(again["config"]["rates_per_s"], [1000])
        self.assertEqual(list(again["rows"][0]["latency_ns"]), ["min", "mean", "p75", "max"])

    def test_rows_before_a_failure_are_reported(self):
        self.write("g.pbtxt", text_node("x", "Placeholder", dtype="DT_FLOAT", shape="shape { dim { size: -1 } dim { size: 2 } }") +
                   text_node("four", "Const", dtype="DT_INT32", value="tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 4 }") +
                   text_node("y", "Reshape", ["x", "four"], type="DT_FLOAT", Tshape="type: DT_INT32"))
        flags = ["bench", "g.pbtxt", "-f", "y", "-n", "5", "--sweep", "batch=2,3,4"]
        failed = self.fails(1, "INVALID_ARGUMENT", *flags, "--json")
        self.assertRegex(failed.err, r"with batch=3: .*'y'")
        self.assertEqual([row["shapes"] for row in failed.json["rows"]], ["batch=2"])
        self.assertEqual(failed.json["status"], "INVALID_ARGUMENT")
        self.assertIn("batch=3", failed.json["message"])
        self.assertRegex(self.fails(1, "INVALID_ARGUMENT", *flags).out, r"(?m)^batch=2 ")
        document = self.ok("bench", "g.pbtxt", "-i", "x=rand:f32:2x2~1", "-f", "y", "-n", "5", "--json").json
        self.assertEqual((document["status"], document["config"]["inputs"]), ("OK", ["x=rand:f32:2x2~1"]))
        # Shapes that the graph excludes are found before anything is measured.
        self.assertEqual(self.fails(2, "INVALID_ARGUMENT", "bench", "g.pbtxt", "-f", "y", "-n", "5", "--shapes", "x=2x2;x=4x1").out, "")

    def test_interrupt_cancels_the_run(self):
        self.write("g.pb", long_chain())
        child = subprocess.Popen([PROGRAM, "bench", "g.pb", "-i", "x=rand:f32:1000x1000~1", "-f", "out"], cwd=self.folder,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with contextlib.closing(child.stdout), contextlib.closing(child.stderr):
            time.sleep(1)
            begin = time.monotonic()
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(60), 130)
            self.assertLess(time.monotonic() - begin, 20)


class ConfigFileTest(CliTest):
    def test_a_dumped_call_can_be_repeated(self):
        self.write("g.pb", add_graph())
        first = self.ok("run", "g.pb", "-i", "x=[[1,2]]", "-i", "y=[[3,4]]", "-f", "sum", "--threads", "1", "--no-opt=identity",
                        "--no-soft-placement", "--pin", "s.*=CPU:0", "--dump-config", "f.toml")
        self.assertEqual(self.ok("run", "--config", "f.toml").out, first.out)
        self.ok("run", "--config", "f.toml", "--dump-config", "again.toml")
        with open(self.path("f.toml"), encoding="utf-8") as file, open(self.path("again.toml"), encoding="utf-8") as again:
            self.assertEqual(file.read(), again.read())

    def test_the_command_line_comes_after_the_file(self):
        self.write("g.pb", add_graph())
        self.write("f.toml", 'verb = "run"\narguments = ["missing.pb"]  # replaced\ninput = [\n "x=[[1,2]]",\n "y=[[3,4]]"]\nfetch = ["x"]\nthreads = 1\njson = true\n')
        document = self.ok("run", "g.pb", "--config", "f.toml", "-f", "sum", "--threads", "2").json
        self.assertEqual(document["config"]["threads"], 2)
        self.assertEqual([output["name"] for output in document["steps"][0]["outputs"]], ["x", "sum"])

    def test_mistakes_name_the_line(self):
        self.write("g.pb", add_graph())
        for text, words in ((b'fetch = ["sum"]\nthread = 2\n', r"line 2: 'thread' is no setting.*threads"), (b'fetch = [\n"sum"', "line 2"),
                            (b'verb = "bench"\n', "for thalweg bench"), (b'json = "yes"\n', "true or false"), (b"json = yes\n", "line 1"),
                            (b"\x00\xff", "line 1"), (b"[run]\n", "tables"), (b"json = true\njson = true\n", "already"),
                            (b'config = "f.toml"\n', "no setting")):
            self.write("f.toml", text)
            self.assertRegex(self.fails(2, "INVALID_ARGUMENT", "run", "g.pb", "-f", "sum", "--config", "f.toml").err, words)
        self.fails(2, "NOT_FOUND", "run", "g.pb", "--config", "missing.toml")


class ProfileTest(CliTest):
    """Planted faults: each is what the profile ranks first."""

    def planted(self):
        """A large product on CPU:0 that CPU:1 waits for, beside nodes that take next to no time: what interrupts the program, and for
        however long, does so in the product."""
        product = [type_attr("T", "float")]
        return graph(
            placeholder("x", "float", (512, 512)),
            placeholder("s", "float", (4, 4)),
            node("small", "MatMul", ["s", "s"], *product, device="/device:CPU:0"),
            node("slow", "MatMul", ["x", "x"], *product, device="/device:CPU:0"),
            node("reader", "Identity", ["slow"], *product, device="/device:CPU:1"),
            node("other", "Identity", ["small"], *product, device="/device:CPU:1"),
        )

    def rows(self, document, kind):
        return [row for row in document["rows"] if row["type"] == kind]

    def profile(self, *arguments, content=None):
        self.write("g.pb", content or self.planted())
        return self.ok("profile", "g.pb", "-f", "reader", "-f", "other", "--steps", "9", "--warmup", "3", "--threads", "1", *arguments)

    def test_document(self):
        document = self.profile("-d", "CPU:0,CPU:1", "-i", "x=ones:f32:512x512", "--general-frames", "--json").json
        self.assertEqual(document["schema"], "thalweg.profile/1")
        self.assertEqual(document["config"]["inputs"], ["x=ones:f32:512x512"])
        self.assertEqual(document["config"]["general_frames"], True)
        self.assertEqual(document["step"]["valid"], abs(document["step"]["closure"] - 1) <= 0.01, document["step"])
        for device in self.rows(document, "device"):
            self.assertGreater(device["busy_ns"] + device["gap_ns"], 0)
        node = max(self.rows(document, "node"), key=lambda row: row["time_ns"])
        self.assertEqual(node["name"], "slow")
        self.assertEqual(node["flops"], 2 * 512**3)
        gap = [row for row in self.rows(document, "gap") if row["device"].endswith("CPU:1")][0]
        self.assertIn(gap["cause"], ("transfer", "other device"), "CPU:1 stood still for CPU:0")
        self.assertIn("slow", gap["node"])

    def test_transfers_and_memory_on_a_device_of_its_own(self):
        self.write("g.pb", self.planted().replace(b"/device:CPU:1", b"/device:GPU:0"))
        # `reader` is no fetch: its way back would put a second tensor of this size on CPU:0.
        document = self.ok("profile", "g.pb", "--target", "reader", "-f", "other", "--steps", "5", "-d", "CPU:0,GPU:0=sim", "--json").json
        transfer = max(self.rows(document, "transfer"), key=lambda row: row["bytes"])
        self.assertEqual((transfer["tensor"], transfer["bytes"]), ("slow:0", 512 * 512 * 4))
        memory = {row["device"].rsplit("device:")[-1]: row for row in self.rows(document, "memory")}
        self.assertGreaterEqual(memory["GPU:0"]["peak_bytes"], 512 * 512 * 4)
        self.assertIn("slow", memory["CPU:0"]["holders"][0]["node"])
        self.assertIn([memory["CPU:0"]["peak_ns"], memory["CPU:0"]["peak_bytes"]], memory["CPU:0"]["curve"])

    def test_text_and_files(self):
        out = self.profile("--by", "op,scope,device,loop", "--critical-path", "--gaps", "--chrome", "t.json", "-o", "a.twp", "-d", "CPU:0,CPU:1").out
        for words in ("totals close: ", "by op", "by scope", "critical path", "gaps on", "transfers", "memory of CPU:0", "slow"):
            self.assertIn(words, out)
        with open(self.path("t.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        self.assertLessEqual({"X", "s", "f", "C"}, {event["ph"] for event in events})
        rows = [json.loads(line) for line in self.profile("--jsonl", "-d", "CPU:0,CPU:1").out.splitlines()]
        self.assertEqual({row["schema"] for row in rows}, {"thalweg.profile/1"})
        self.assertEqual(rows[0]["type"], "profile")

    def test_compare(self):
        self.profile("-d", "CPU:0,CPU:1", "-o", "a.twp")
        self.profile("-d", "CPU:0,CPU:1", "-o", "b.twp", content=self.planted().replace(b"/device:CPU:1", b"/device:CPU:0"))
        self.assertIn("unchanged within noise", self.ok("compare", "a.twp", "a.twp", "--assert", "significant==0").out)
        document = self.ok("compare", "a.twp", "b.twp", "--json").json
        self.assertIn("placement", {row["cause"] for row in document["rows"]})
        self.fails(4, "FAILED_PRECONDITION", "compare", "a.twp", "b.twp", "--assert", "significant==0")
        self.fails(2, "INVALID_ARGUMENT", "compare", "a.twp", "b.twp", "--assert", "zzz<1")
        self.fails(2, "NOT_FOUND", "compare", "a.twp", "missing.twp")

    def test_usage(self):
        self.write("g.pb", add_graph())
        self.fails(2, "INVALID_ARGUMENT", "profile", "g.pb", "--by", "colour")
        self.fails(2, "INVALID_ARGUMENT", "profile", "g.pb", "--steps", "0")


class SmallVerbsTest(CliTest):
    def test_they_answer(self):
        self.assertRegex(self.ok("version").out, r"^thalweg \d+\.\d+")
        self.assertEqual(self.ok("version", "--json").json["schema"], "thalweg.version/1")
        self.assertIn("CPU:0", self.ok("devices").out)
        self.assertIn("NO_COLOR", self.ok("config").out)
        for topic in ("run", "inputs", "scripts", "topics", "exit-codes", "dtypes"):
            self.ok("help", topic)
        self.ok("run", "--help")
        self.ok()

    def test_ops(self):
        self.assertIn("AddV2(", self.ok("ops", "AddV2").out)
        document = self.ok("ops", "--json").json
        self.assertGreater(len(document["ops"]), 100)
        add = [op for op in document["ops"] if op["name"] == "AddV2"][0]
        self.assertIn("float32", [t for kernel in add["kernels"] if kernel["backend"] == "cpu" for t in kernel["types"]["T"]])
        self.write("g.pb", add_graph())
        self.assertIn("AddV2", self.ok("ops", "--for", "g.pb").out)
        self.fails(2, "NOT_FOUND", "ops", "AddV3")

    def test_no_colour_without_a_terminal(self):
        self.assertNotIn("\033", self.ok("inspect", os.path.join(DIGITS, "digits.pb")).out)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
