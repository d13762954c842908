"""Random graphs of control flow for fuzz_control.py. KINDS: name -> function of a generator, to (GraphDef, steps).

Where TensorFlow's answer depends on what happens to come first, nothing is asked: a Merge never has two inputs that are both
alive, and variables are changed by sums only, whose order does not show.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from fuzz import chance, pick

v1 = tf.compat.v1
FLOAT, INT, BOOL = tf.float32, tf.int32, tf.bool
FIXED = frozenset()  # alive whenever its frame's iteration is


@dataclasses.dataclass
class Value:
    name: str  # "node:port"
    dtype: tf.DType
    # The branches (switch predicate, outcome) that must have been taken for it to be alive; None: not told.
    branches: frozenset = FIXED

    @property
    def node(self):
        return self.name.split(":")[0]


def both(*conditions):
    return None if any(c is None for c in conditions) else frozenset().union(*conditions)


def exclude_each_other(a, b):
    return a is not None and b is not None and any((pred, not outcome) in b for pred, outcome in a)


class Writer:
    """Nodes of version 1 control flow."""

    def __init__(self, rng):
        self.rng, self.graph, self.feeds, self.count = rng, v1.GraphDef(), {}, 0
        self.graph.versions.producer = tf.version.GRAPH_DEF_VERSION
        self.variables = 0
        self.frames = 0  # around what is being written

    def add(self, op, inputs=(), controls=(), name=None, **attrs):
        self.count += 1
        node = self.graph.node.add(op=op, name=name or f"{op.lower().strip('_')}{self.count}")
        node.input.extend([getattr(i, "name", i) for i in inputs] + [f"^{c}" for c in controls])
        for key, value in attrs.items():
            attr = node.attr[key]
            if isinstance(value, bool):
                attr.b = value
            elif isinstance(value, int):
                attr.i = value
            elif isinstance(value, tf.DType):
                attr.type = value.as_datatype_enum
            elif isinstance(value, str):
                attr.s = value.encode()
            elif isinstance(value, tf.TensorShape):
                attr.shape.CopyFrom(value.as_proto())
            else:
                attr.tensor.CopyFrom(tf.make_tensor_proto(value))
        return node.name

    def const(self, value, dtype, controls=()):
        array = np.array(value, dtype.as_numpy_dtype)
        return f"{self.add('Const', controls=controls, dtype=dtype, value=array)}:0"

    def feed(self, dtype):
        name = f"x{len(self.feeds)}"
        self.add("Placeholder", name=name, dtype=dtype, shape=tf.TensorShape([]))
        number = {FLOAT: self.rng.integers(-8, 9) / 4, INT: self.rng.integers(-3, 5), BOOL: self.rng.integers(2)}[dtype]
        self.feeds[f"{name}:0"] = np.array(number, dtype.as_numpy_dtype)
        return Value(f"{name}:0", dtype)

    def variable(self):
        """A resource variable of an integer: its handle."""
        self.variables += 1
        handle = self.add("VarHandleOp", name=f"v{self.variables}", dtype=INT, shape=tf.TensorShape([]), shared_name=f"v{self.variables}")
        self.add("AssignVariableOp", [f"{handle}:0", self.const(self.variables, INT)], name=f"init{self.variables}", dtype=INT)
        return f"{handle}:0"

    # ---- one frame

    def choose(self, env, dtype=None):
        fitting = [v for v in env if dtype is None or v.dtype == dtype]
        return pick(self.rng, fitting)

    def controls(self, env):
        """Rarely a control edge, and what it asks for."""
        if not chance(self.rng, 8):
            return [], FIXED
        value = self.choose(env)
        return [value.node], self.condition_of_node(value)

    @staticmethod
    def condition_of_node(value):
        # The node behind a control edge may be a Switch, alive whatever its outputs, or a Merge: then it is not told here.
        return None if value.node.startswith(("switch", "merge")) else value.branches

    def plainly(self, value):
        """The value at a node that is alive if and only if it is."""
        if not value.node.startswith(("switch", "merge")):
            return value
        return Value(self.add("Identity", [value], T=value.dtype) + ":0", value.dtype, value.branches)

    def arithmetic(self, env):
        rng = self.rng
        kind = int(rng.integers(5))
        controls, asked = self.controls(env)
        if kind == 0:
            a, b = self.choose(env, FLOAT), self.choose(env, FLOAT)
            op = pick(rng, ["AddV2", "Sub", "Mul", "Maximum"])
            total = self.add(op, [a, b], T=FLOAT)
            return Value(self.add("Tanh", [f"{total}:0"], controls, T=FLOAT) + ":0", FLOAT, both(a.branches, b.branches, asked))
        if kind == 1:
            a, b = self.choose(env, INT), self.choose(env, INT)
            return Value(self.add(pick(rng, ["AddV2", "Sub", "Minimum"]), [a, b], controls, T=INT) + ":0", INT, both(a.branches, b.branches, asked))
        if kind == 2:
            a = self.choose(env, pick(rng, [FLOAT, INT]))
            b = self.choose(env, a.dtype)
            return Value(self.add(pick(rng, ["Less", "GreaterEqual"]), [a, b], controls, T=a.dtype) + ":0", BOOL, both(a.branches, b.branches, asked))
        if kind == 3:
            a, b = self.choose(env, BOOL), self.choose(env, BOOL)
            return Value(self.add(pick(rng, ["LogicalAnd", "LogicalOr"]), [a, b], controls) + ":0", BOOL, both(a.branches, b.branches, asked))
        a = self.choose(env)
        return Value(self.add("Identity", [a], controls, T=a.dtype) + ":0", a.dtype, both(a.branches, asked))

    def switch(self, env):
        data, pred = self.choose(env), self.choose(env, BOOL)
        name = self.add("Switch", [data, pred], T=data.dtype)
        asked = both(data.branches, pred.branches)
        outcome = lambda taken: None if asked is None else asked | {(pred.name, taken)}  # noqa: E731
        return [Value(f"{name}:{int(taken)}", data.dtype, outcome(taken)) for taken in (False, True)]

    def switch_n(self, env):
        data, index = self.choose(env), self.choose(env, INT)
        outs = int(self.rng.integers(1, 4))
        name = self.add("_SwitchN", [data, index], T=data.dtype, num_outs=outs)
        return [Value(f"{name}:{i}", data.dtype, None) for i in range(outs)]

    def merge(self, env):
        first = self.choose(env)
        inputs = [first]
        others = [v for v in env if v.dtype == first.dtype and all(exclude_each_other(v.branches, i.branches) for i in inputs)]
        if others:
            inputs.append(pick(self.rng, others))
        name = self.add("Merge", inputs, T=first.dtype, N=len(inputs))
        branches = first.branches
        if len(inputs) == 2:
            rest = [i.branches for i in inputs]
            twins = [p for p, outcome in rest[0] if (p, not outcome) in rest[1]]
            rest = [frozenset(x for x in r if x[0] != twins[0]) for r in rest]
            branches = rest[0] if rest[0] == rest[1] else None
        return [Value(f"{name}:0", first.dtype, branches), Value(f"{name}:1", INT, branches)]

    def pair(self, env):
        """A whole conditional: two switched values, something done to each, a merge."""
        data, pred = self.choose(env, pick(self.rng, [FLOAT, INT])), self.choose(env, BOOL)
        name = self.add("Switch", [data, pred], T=data.dtype)
        sides = [f"{name}:0", f"{name}:1"]
        for i in range(2):
            if chance(self.rng, 2):
                sides[i] = self.add("Neg", [sides[i]], T=data.dtype) + ":0"
        out = self.add("Merge", sides, T=data.dtype, N=2)
        asked = both(data.branches, pred.branches)
        return [Value(f"{out}:0", data.dtype, asked), Value(f"{out}:1", INT, asked)]

    def trigger(self, env):
        """A ControlTrigger runs whether what it waits for was dead or not; an Identity behind it."""
        waits = {self.choose(env).node for _ in range(2)}
        name = self.add("ControlTrigger", controls=sorted(waits))
        value = self.choose(env)
        return [Value(self.add("Identity", [value], [name], T=value.dtype) + ":0", value.dtype, value.branches)]

    def constant(self, env):
        """A constant that is there if another node is."""
        value = self.choose(env)
        dtype = pick(self.rng, [FLOAT, INT, BOOL])
        return [Value(self.const(int(self.rng.integers(2)), dtype, [value.node]), dtype, self.condition_of_node(value))]

    def dag(self, env, size, depth):
        for _ in range(size):
            kind = int(self.rng.integers(14))
            if kind < 5:
                env.append(self.arithmetic(env))
            elif kind < 7:
                env.extend(self.switch(env))
            elif kind < 9:
                env.extend(self.merge(env))
            elif kind == 9:
                env.extend(self.pair(env))
            elif kind == 10:
                env.extend(pick(self.rng, [self.trigger, self.switch_n])(env))
            elif kind == 11:
                env.extend(self.constant(env))
            elif depth > 0:
                env.extend(pick(self.rng, [self.loop, self.loop, self.loop, self.frame])(env, depth - 1))
        return env

    # ---- frames

    def enter(self, value, frame, constant, parallel):
        name = self.add("Enter", [value], T=value.dtype, frame_name=frame, is_constant=constant, parallel_iterations=parallel)
        return Value(f"{name}:0", value.dtype)

    def frame(self, env, depth):
        """A frame without a loop: it has one iteration."""
        frame, parallel = f"frame{self.count}", int(self.rng.integers(1, 4))
        # All of the frame is alive or nothing.
        entering = [self.plainly(self.choose(env, d)) for d in (FLOAT, INT, BOOL)]
        all_alive = self.add("NoOp", controls=sorted({v.node for v in entering}))
        entering = [Value(self.add("Identity", [v], [all_alive], T=v.dtype) + ":0", v.dtype, v.branches) for v in entering]
        inside = [self.enter(v, frame, chance(self.rng, 3), parallel) for v in entering]
        asked = both(*(v.branches for v in entering))
        self.frames += 1
        self.dag(inside, int(self.rng.integers(2, 6)), 0)
        self.frames -= 1
        out = []
        for value in [self.choose(inside) for _ in range(2)]:
            branches = asked if value.branches == FIXED else None
            out.append(Value(self.add("Exit", [value], T=value.dtype) + ":0", value.dtype, branches))
        return out

    def loop(self, env, depth):
        rng = self.rng
        frame, parallel = f"loop{self.count}", int(rng.integers(1, 5))
        entering = [self.plainly(self.choose(env, d)) for d in (FLOAT, INT, BOOL, FLOAT, INT, FLOAT)[: int(rng.integers(4, 7))]]
        asked = both(*(v.branches for v in entering))
        # All of the loop is alive or nothing.
        all_alive = self.add("NoOp", controls=sorted({v.node for v in entering}))
        entering = [Value(self.add("Identity", [v], [all_alive], T=v.dtype) + ":0", v.dtype) for v in entering]
        invariants, starts = entering[:3], entering[3:]
        zero = Value(self.const(0, INT, [all_alive]), INT)
        limit = Value(self.const(int(rng.integers(0, 5)), INT, [all_alive]), INT)
        array = chance(rng, 3)
        inside = [self.enter(v, frame, True, parallel) for v in invariants]
        bound = self.enter(limit, frame, True, parallel)
        variables = [zero] + starts
        if array:
            size = self.const(5, INT, [all_alive])
            array_handle = self.add("TensorArrayV3", [size], dtype=FLOAT)
            inner_handle = self.add("Enter", [f"{array_handle}:0"], T=tf.resource, frame_name=frame, is_constant=True, parallel_iterations=parallel) + ":0"
            variables.append(Value(f"{array_handle}:1", FLOAT))
        merges = []
        for v in variables:
            entered = self.enter(v, frame, False, parallel)
            merges.append(self.add("Merge", [entered, entered], T=v.dtype, N=2))  # its second input is set at the end
        goes_on = self.add("Less", [f"{merges[0]}:0", bound], T=INT) + ":0"
        if chance(rng, 3):
            more = self.add("Less", [f"{merges[0]}:0", self.const(2, INT, [merges[0]])], T=INT) + ":0"
            goes_on = self.add("LogicalOr", [goes_on, more]) + ":0"
        loop_condition = self.add("LoopCond", [goes_on]) + ":0"
        switches = [self.add("Switch", [f"{m}:0", loop_condition], T=v.dtype) for m, v in zip(merges, variables)]
        body = [Value(f"{self.add('Identity', [f'{s}:1'], T=v.dtype)}:0", v.dtype) for s, v in zip(switches, variables)]
        counter = body[0]
        flow = body.pop() if array else None
        # Invariants are there in the last iteration, too, in which the body does not run.
        inside = [Value(self.add("Identity", [v], [counter.node], T=v.dtype) + ":0", v.dtype) for v in inside]
        self.frames += 1
        room = self.dag(body + inside, int(rng.integers(2, 8)), depth)
        self.frames -= 1
        one = self.const(1, INT, [counter.node])
        nexts = [self.add("AddV2", [counter, one], T=INT) + ":0"]
        for v in starts:
            alive = [r for r in room if r.dtype == v.dtype and r.branches == FIXED]
            nexts.append(pick(rng, alive).name)
        if array:
            item = pick(rng, [r for r in room if r.dtype == FLOAT and r.branches == FIXED])
            nexts.append(self.add("TensorArrayWriteV3", [inner_handle, counter, item, flow], T=FLOAT) + ":0")
        if self.variables and self.frames == 0 and chance(rng, 2):
            item = pick(rng, [r for r in room if r.dtype == INT])
            handle = self.add("Enter", [f"v{self.variables}:0"], T=tf.resource, frame_name=frame, is_constant=True, parallel_iterations=parallel)
            update = self.add("AssignAddVariableOp", [f"{handle}:0", item], dtype=INT)
            if item.branches == FIXED:  # the next iteration waits for the sum
                nexts[0] = self.add("Identity", [nexts[0]], [update], T=INT) + ":0"
        by_name = {n.name: n for n in self.graph.node}
        for merge, value, v in zip(merges, nexts, variables):
            by_name[merge].input[1] = self.add("NextIteration", [value], T=v.dtype) + ":0"
        out = []
        for switch, v in zip(switches, variables):
            out.append(Value(self.add("Exit", [f"{switch}:0"], T=v.dtype) + ":0", v.dtype, asked))
        if array:
            flow = out.pop()
            first = self.const(0, INT, [flow.node])
            total = self.add("TensorArrayReadV3", [f"{array_handle}:0", first, flow], dtype=FLOAT)
            out.append(Value(f"{total}:0", FLOAT, asked))
        return out


def outputs(writer, env, number):
    """Steps that each fetch one value of the root frame, after those that initialise variables and before those that read them."""
    steps = []
    if writer.variables:
        steps.append(({}, [f"init{i + 1}" for i in range(writer.variables)]))
    chosen = list({v.name: v for v in [pick(writer.rng, env[-30:]) for _ in range(number)]}.values())
    for i, value in enumerate(chosen):
        steps.append((writer.feeds, [writer.add("Identity", [value], name=f"out{i}", T=value.dtype) + ":0"]))
    for i in range(writer.variables):
        steps.append(({}, [writer.add("ReadVariableOp", [f"v{i + 1}:0"], name=f"read{i}", dtype=INT) + ":0"]))
    return writer.graph, steps


def raw(rng, depth):
    writer = Writer(rng)
    env = [writer.feed(d) for d in (FLOAT, FLOAT, INT, INT, BOOL, BOOL, BOOL)]
    if depth and chance(rng, 2):
        writer.variable()
    writer.dag(env, int(rng.integers(6, 30)), depth)
    if depth and not any(n.op == "Enter" for n in writer.graph.node):
        env.extend(writer.loop(env, depth - 1))
    return outputs(writer, env, 6)


# ---- programs


class Programs:
    """Structured programs over floats, written with TensorFlow's own functions."""

    def __init__(self, rng):
        self.rng, self.variables = rng, []

    def simple(self, values):
        a, b = pick(self.rng, values), pick(self.rng, values)
        return pick(self.rng, [lambda: a + b, lambda: a * b, lambda: tf.tanh(a - b), lambda: tf.maximum(a, b), lambda: tf.sin(a)])()

    def predicate(self, values):
        a, b = pick(self.rng, values), pick(self.rng, values)
        return tf.less(a, b) if chance(self.rng, 2) else tf.logical_and(a < 0.5, b > -0.5)

    def block(self, values, depth, size=None):
        """Some statements; what they leave behind, as many values as came."""
        values = list(values)
        for _ in range(size or int(self.rng.integers(1, 5))):
            kind = int(self.rng.integers(9)) if depth > 0 else 0
            at = int(self.rng.integers(len(values)))
            if kind < 3:
                values[at] = self.simple(values)
            elif kind == 3:
                values = self.cond(values, depth)
            elif kind == 4:
                values = self.loop(values, depth)
            elif kind == 5:
                values = self.case(values, depth)
            elif kind == 6:
                values = self.call(values, depth)
            elif kind == 7:
                values[at] = self.array(values, depth)
            elif self.variables:
                values[at] = self.update(values[at])
        return values

    def branch(self, values, depth):
        """A function without arguments that makes the same program whenever it is called."""
        seed = int(self.rng.integers(2**31))

        def run():
            other = Programs(np.random.default_rng(seed))
            other.variables = self.variables
            return [tf.identity(v) for v in other.block(values, depth - 1)]

        return run

    def cond(self, values, depth):
        return list(tf.cond(self.predicate(values), self.branch(values, depth), self.branch(values, depth)))

    def case(self, values, depth):
        index = tf.cast(tf.round(pick(self.rng, values) * 2), tf.int32)
        return list(tf.switch_case(index, [self.branch(values, depth) for _ in range(int(self.rng.integers(1, 4)))]))

    def loop(self, values, depth):
        limit, seed = int(self.rng.integers(0, 5)), int(self.rng.integers(2**31))

        def body(i, *inner):
            other = Programs(np.random.default_rng(seed))
            other.variables = self.variables
            # What the loop does not change it takes from outside.
            changed = other.block(list(inner) + [values[-1] * 0.5], depth - 1)[: len(inner)]
            return [i + 1] + [tf.tanh(v) for v in changed]

        stops_early = chance(self.rng, 3)
        test = lambda i, *inner: tf.logical_and(i < limit, inner[0] < 0.9) if stops_early else i < limit  # noqa: E731
        return list(tf.while_loop(test, body, [tf.constant(0)] + values, parallel_iterations=int(self.rng.integers(1, 5)))[1:])

    def call(self, values, depth):
        seed = int(self.rng.integers(2**31))

        @tf.function(autograph=False)
        def function(*arguments):
            other = Programs(np.random.default_rng(seed))
            other.variables = self.variables
            return [tf.identity(v) for v in other.block(arguments, depth - 1)]

        return list(function(*values))

    def array(self, values, depth):
        length, seed = int(self.rng.integers(1, 5)), int(self.rng.integers(2**31))
        element = pick(self.rng, values)

        def body(i, x, array):
            other = Programs(np.random.default_rng(seed))
            x = other.block([x, element], depth - 1, 1)[0]
            return i + 1, tf.tanh(x), array.write(i, x + tf.cast(i, FLOAT))

        start = tf.TensorArray(FLOAT, size=length, element_shape=[], clear_after_read=False)
        _, last, array = tf.while_loop(lambda i, x, a: i < length, body, [tf.constant(0), element, start])
        return tf.tanh(tf.reduce_sum(array.stack()) + last * array.read(length - 1))

    def update(self, value):
        variable = pick(self.rng, self.variables)
        changed = variable.assign_add(tf.constant(1.0), read_value=False)
        with tf.control_dependencies([changed] if changed is not None else []):
            return tf.identity(value)


def program(rng, version):
    (v1.enable_control_flow_v2 if version == 2 else v1.disable_control_flow_v2)()
    with tf.Graph().as_default() as graph:
        programs = Programs(rng)
        inputs = [v1.placeholder(FLOAT, [], name=f"x{i}") for i in range(3)]
        if chance(rng, 3):
            programs.variables = [v1.get_variable("v", initializer=np.float32(1), use_resource=True)]
        results = programs.block(inputs, 3, int(rng.integers(2, 5)))
        fetched = [tf.identity(r, name=f"out{i}").name for i, r in enumerate(results)]
        slopes = [g for g in tf.gradients(results[0], inputs) if g is not None] if not programs.variables and chance(rng, 2) else []
        fetched += [tf.identity(g, name=f"slope{i}").name for i, g in enumerate(slopes)]
        init = [v1.global_variables_initializer().name] if programs.variables else []
        read = [v.read_value().name for v in programs.variables]
    feeds = lambda: {f"x{i}:0": np.float32(rng.integers(-8, 9) / 4) for i in range(3)}  # noqa: E731
    steps = [({}, init)] if init else []
    steps += [(feeds(), fetched), (feeds(), fetched)]
    steps += [({}, read)] if read else []
    return graph.as_graph_def(), steps


KINDS = {
    "dag": lambda rng: raw(rng, 0),
    "loop": lambda rng: raw(rng, 2),
    "v1": lambda rng: program(rng, 1),
    "v2": lambda rng: program(rng, 2),
}
