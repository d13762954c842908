#!/usr/bin/env python3
"""Dispatch overheads of thalweg beside TensorFlow's Session: ratios from one interleaved run.

    run.py --bin build/release/bench_micro [--threads 1,2] [--repeats 15] [--json out.json] [--only NAME,...]

Needs tensorflow-cpu (tests/golden/requirements.txt) in the interpreter that runs it. Each round measures us, TensorFlow, us
again: the two of ours are the A-A control. TensorFlow runs with graph rewrites off through a prepared callable; thalweg with
--no-opt through a prepared callable in C++. Figures are medians over the rounds, per node (or per step for `null_run`).
"""
import argparse, json, os, random, statistics, subprocess, sys, tempfile, time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')


def make_graphs(out):
    """The workloads as GraphDef files -> {name: (path, feed, fetch, target, nodes, steps per measurement)}

    For loops, nodes are iterations: their figures are per iteration."""
    import tensorflow as tf
    tf1 = tf.compat.v1
    graphs = {}

    def new():
        g = tf1.GraphDef()
        g.versions.producer = 1087
        return g

    def add(g, name, op, inputs=(), **types):
        n = g.node.add()
        n.name, n.op = name, op
        n.input.extend(inputs)
        for k, v in types.items(): n.attr[k].type = v
        return n

    def save(name, g, feed, fetch, target, nodes, steps):
        path = os.path.join(out, name + '.pb')
        with open(path, 'wb') as f: f.write(g.SerializeToString())
        graphs[name] = (path, feed, fetch, target, nodes, steps)

    f32 = tf.float32.as_datatype_enum
    N, M = 10000, 100000

    g = new()
    add(g, 'n0', 'NoOp')
    for i in range(1, N): add(g, f'n{i}', 'NoOp', [f'^n{i-1}'])
    save('noop_chain', g, '-', '-', f'n{N-1}', N, 20)

    g = new()
    add(g, 'r', 'NoOp')
    for i in range(N): add(g, f'f{i}', 'NoOp', ['^r'])
    add(g, 'e', 'NoOp', [f'^f{i}' for i in range(N)])
    save('fan_out_in', g, '-', '-', 'e', N, 20)

    rng = random.Random(1)
    g = new()
    names = [f'scope{i % 100}/n{i}' for i in range(M)]
    for i in range(M):
        before = sorted({rng.randrange(max(0, i - 1000), i) for _ in range(2)}) if i else []
        add(g, names[i], 'NoOp', [f'^{names[j]}' for j in before])
    add(g, 'end', 'NoOp', [f'^{n}' for n in names[-1000:]])
    save('random_dag', g, '-', '-', 'end', M, 3)

    g = new()
    add(g, 'x', 'Placeholder', dtype=f32).attr['shape'].shape.SetInParent()
    one = add(g, 'one', 'Const', dtype=f32)
    one.attr['value'].tensor.CopyFrom(tf.make_tensor_proto(1.0))
    for i in range(N): add(g, f'a{i}', 'AddV2', [f'a{i-1}' if i else 'x', 'one'], T=f32)
    add(g, 'y', 'Identity', [f'a{N-1}'], T=f32)
    save('add_chain', g, 'x:0', 'y:0', '-', N, 5)

    g = new()
    add(g, 'x', 'Placeholder', dtype=f32).attr['shape'].shape.SetInParent()
    add(g, 'y', 'Identity', ['x'], T=f32)
    save('null_run', g, 'x:0', 'y:0', '-', 1, 2000)

    def loop(name, iterations, steps, variables=1, inner=1, devices=('', '')):
        """A counter and `variables` - 1 more int32 sums; nested if inner > 1; additions alternate between two devices."""
        with tf.Graph().as_default() as graph:
            tf1.disable_control_flow_v2()

            def body(i, *values):
                with tf.device(devices[0]): i = i + 1
                out = []
                for k, v in enumerate(values):
                    with tf.device(devices[k % 2]): out.append(v + i)
                if devices[1]:
                    with tf.device(devices[1]): i = tf.identity(i)
                if inner > 1: out[0] = tf1.while_loop(lambda j: j < inner, lambda j: [j + 1], [0], back_prop=False) + out[0]
                return [i] + out

            start = [tf.constant(0) for _ in range(variables)]
            results = tf1.while_loop(lambda i, *_: i < iterations, body, start, back_prop=False)
            tf.add_n(results if isinstance(results, list) else [results], name='y')
        save(name, graph.as_graph_def(), '-', 'y:0', '-', iterations * inner, steps)

    loop('counter_loop', 1000000, 1)
    loop('nested_loop', 1000, 1, variables=2, inner=1000)
    loop('loop_100_vars', 10000, 1, variables=100)
    loop('loop_2_devices', 100000, 1, variables=3, devices=('/cpu:0', '/cpu:1'))
    return graphs


# Workloads that run on more than one device, and loops that are also run by the executor for many threads.
DEVICES = {'loop_2_devices': 'CPU:0,CPU:1'}
LOOPS = ('counter_loop', 'nested_loop', 'loop_100_vars', 'loop_2_devices')


class Thalweg:
    def __init__(self, binary):
        self.p = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.p.stdin.write(line + '\n')
        self.p.stdin.flush()
        answer = self.p.stdout.readline().split()
        if not answer or answer[0] == 'error': raise RuntimeError(f'{line}: {" ".join(answer)}')
        return answer

    def load(self, name, path, feed, fetch, target, threads, more=''):
        return [int(v) for v in self.ask(f'load {name} {path} {feed} {fetch} {target} {threads} {more}')[1:]]

    def nanos(self, name, steps): return int(self.ask(f'run {name} {steps}')[1])


class TensorFlow:
    def __init__(self, threads):
        import tensorflow as tf
        self.tf, self.threads, self.calls = tf, threads, {}

    def load(self, name, path, feed, fetch, target):
        import numpy as np
        from tensorflow.core.protobuf import config_pb2
        tf1 = self.tf.compat.v1
        config = tf1.ConfigProto(intra_op_parallelism_threads=self.threads, inter_op_parallelism_threads=self.threads, use_per_session_threads=True)
        config.device_count['CPU'] = 2 if name in DEVICES else 1
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
        begin = time.perf_counter()
        with open(path, 'rb') as f: g = tf1.GraphDef.FromString(f.read())
        with self.tf.Graph().as_default() as graph: tf1.import_graph_def(g, name='')
        session = tf1.Session(graph=graph, config=config)
        options = config_pb2.CallableOptions()
        if feed != '-': options.feed.append(feed)
        if fetch != '-': options.fetch.append(fetch)
        if target != '-': options.target.append(target)
        call = session._make_callable_from_options(options)
        arguments = (np.float32(0),) if feed != '-' else ()
        self.calls[name] = (call, arguments, session)
        return time.perf_counter() - begin

    def nanos(self, name, steps):
        call, arguments, _ = self.calls[name]
        begin = time.perf_counter_ns()
        for _ in range(steps): call(*arguments)
        return time.perf_counter_ns() - begin


def measure(binary, threads, repeats, only, out):
    rows = []
    graphs = make_graphs(out)
    ours, theirs = Thalweg(binary), TensorFlow(threads)
    for name, (path, feed, fetch, target, nodes, steps) in graphs.items():
        if only and name not in only: continue
        devices = DEVICES.get(name, 'CPU:0')
        load = ours.load(name, path, feed, fetch, target, threads, devices)
        tf_load = theirs.load(name, path, feed, fetch, target)
        for side in (ours, theirs): side.nanos(name, max(1, steps // 5))
        a, b, again = [], [], []
        for _ in range(repeats):
            a.append(ours.nanos(name, steps) / steps / nodes)
            b.append(theirs.nanos(name, steps) / steps / nodes)
            again.append(ours.nanos(name, steps) / steps / nodes)
        _, events, executed, accounted, wall = ours.ask(f'trace {name}')
        row = {'name': name, 'threads': threads, 'nodes': nodes, 'thalweg_ns': statistics.median(a + again), 'tensorflow_ns': statistics.median(b),
               'control': statistics.median(a) / statistics.median(again), 'load_ns': sum(load), 'tensorflow_load_ns': tf_load * 1e9,
               'trace_events': int(events), 'nodes_executed': int(executed), 'trace_closes': int(accounted) / int(wall)}
        row['ratio'] = row['thalweg_ns'] / row['tensorflow_ns']
        if name in LOOPS:
            ours.load('general', path, feed, fetch, target, threads, devices + ' general')
            row['general_frames_ns'] = min(ours.nanos('general', steps) for _ in range(3)) / steps / nodes
            row['general_ratio'] = row['general_frames_ns'] / row['tensorflow_ns']
            print('%-14s T=%d  general frames %.1f ns per iteration, ratio %.3f' % (name, threads, row['general_frames_ns'], row['general_ratio']))
        rows.append(row)
        print('%-12s T=%d  thalweg %9.1f ns  tensorflow %9.1f ns  ratio %.3f  A-A %.2f  load+place+compile %.0f ms (tensorflow %.0f)  '
              'trace %s events of %s nodes, %.4f of the wall clock' % (name, threads, row['thalweg_ns'], row['tensorflow_ns'], row['ratio'], row['control'],
              row['load_ns'] / 1e6, row['tensorflow_load_ns'] / 1e6, events, executed, row['trace_closes']), flush=True)
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--bin', required=True)
    p.add_argument('--threads', default='1,2')
    p.add_argument('--repeats', type=int, default=15)
    p.add_argument('--only', default='')
    p.add_argument('--json')
    p.add_argument('--one', action='store_true', help=argparse.SUPPRESS)
    o = p.parse_args()
    only = [n for n in o.only.split(',') if n]
    if o.one:
        with tempfile.TemporaryDirectory() as out: rows = measure(o.bin, int(o.threads), o.repeats, only, out)
        json.dump(rows, open(o.json, 'w'))
        return
    rows = []
    for threads in o.threads.split(','):  # TensorFlow sizes its pools once per process
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            cores = '0' if threads == '1' else '0-%d' % (int(threads) - 1)
            subprocess.run(['taskset', '-c', cores, sys.executable, __file__, '--one', '--bin', o.bin, '--threads', threads, '--repeats', str(o.repeats),
                            '--only', o.only, '--json', f.name], check=True)
            rows += json.load(open(f.name))
    by = {(r['name'], r['threads']): r for r in rows}
    for (name, threads), r in by.items():
        if threads != 1 and (name, 1) in by: print('%-12s T=%d is %.3f of T=1' % (name, threads, r['thalweg_ns'] / by[name, 1]['thalweg_ns']))
    if o.json: json.dump({'schema': 'thalweg.bench_micro/1', 'rows': rows}, open(o.json, 'w'), indent=1)


if __name__ == '__main__': main()
