#!/usr/bin/env python3
"""Writes graphs/: small graphs with feeds and TensorFlow's answers, one folder each, in the form of the conformance cases.

A case is a function below, decorated with @case. It builds a graph and returns the steps to run; a single dictionary
stands for one step. Its docstring is the note in case.json.

    make_graphs.py [OUTPUT_FOLDER] [NAME ...]        (default: graphs/ beside this script, all cases)
"""

import pathlib
import shutil
import sys

import oracle

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
raw = tf.raw_ops
CASES = {}


def case(*tags, **more):
    def keep(build):
        CASES[build.__name__] = (build, {"tags": list(tags), **more})
        return build
    return keep


def values(seed, *shape, dtype=np.float32, low=-3, high=3):
    """Seeded values; eighths, so that sums and products of a few are exact in float32."""
    random = np.random.default_rng(seed)
    return (random.integers(low * 8, high * 8 + 1, shape) / 8).astype(dtype)


def ints(seed, *shape, dtype=np.int32, low=-9, high=9):
    return np.random.default_rng(seed).integers(low, high + 1, shape).astype(dtype)


def feed(name, shape, dtype=tf.float32):
    return v1.placeholder(dtype, shape, name=name)


def named(*tensors):
    """The names of tensors, to be fetched."""
    return [t.name for t in tensors]


@case("elementwise")
def elementwise_unary():
    """A chain that can be fused, and single functions of one input."""
    x = feed("x", [None, 5])
    chain = tf.tanh(tf.nn.relu(tf.exp(-tf.square(x) * 0.5) - 0.25), name="chain")
    outs = [f(x, name=f.__name__) for f in (tf.abs, tf.sign, tf.floor, tf.math.ceil, tf.math.rint, tf.sigmoid, tf.nn.softplus, tf.nn.elu, tf.nn.relu6)]
    outs.append(tf.sqrt(tf.abs(x), name="root"))
    outs.append(tf.math.log1p(tf.abs(x), name="log1p"))
    outs.append(tf.math.erf(x, name="erf"))
    return {"feeds": {"x:0": values(1, 4, 5)}, "fetches": named(chain, *outs)}


@case("elementwise", "dtypes")
def elementwise_ints():
    """Whole numbers of every size: wrap-around, both kinds of division, bit operations, shifts."""
    outs, feeds = [], {}
    for t in (tf.int8, tf.uint8, tf.int16, tf.int32, tf.int64):
        low = 1 if t == tf.uint8 else -100
        x, y = (feed(f"{c}_{t.name}", [6], t) for c in "xy")
        feeds[x.name] = ints(2, 6, dtype=t.as_numpy_dtype, low=low, high=120)
        y_value = ints(3, 6, dtype=t.as_numpy_dtype, low=low // 20, high=7)
        feeds[y.name] = np.where(y_value == 0, 1, y_value).astype(t.as_numpy_dtype)
        for op in (raw.AddV2, raw.Sub, raw.Mul, raw.FloorDiv, raw.FloorMod, raw.BitwiseXor, raw.Maximum):
            outs.append(op(x=x, y=y, name=f"{op.__name__}_{t.name}"))
        if t.is_integer and t != tf.uint8:
            outs.append(tf.truncatediv(x, y, name=f"truncate_{t.name}"))
        outs.append(raw.RightShift(x=x, y=tf.ones_like(x), name=f"shift_{t.name}"))
    return {"feeds": feeds, "fetches": named(*outs)}


@case("elementwise", "broadcast")
def broadcasting():
    """Shapes that meet in every way: scalars, missing dimensions, ones on both sides, empty ones."""
    pairs = [([2, 3], []), ([4, 1, 3], [2, 1]), ([1], [5, 1]), ([0, 3], [1, 3]), ([2, 1, 1, 2, 1], [1, 3, 1, 1, 2]), ([], [])]
    feeds, outs = {}, []
    for i, (a, b) in enumerate(pairs):
        x, y = feed(f"x{i}", None), feed(f"y{i}", None)
        feeds[x.name], feeds[y.name] = values(10 + i, *a), values(30 + i, *b)
        outs += [tf.add(x, y, name=f"sum{i}"), tf.less(x, y, name=f"less{i}"), tf.maximum(x, y, name=f"max{i}")]
    outs.append(tf.broadcast_to(tf.constant([[1], [2]]), [3, 2, 4], name="stretched"))
    return {"feeds": feeds, "fetches": named(*outs)}


@case("reduce")
def reductions():
    """Sums and their like over all, some and no axes, with and without kept dimensions; empty input."""
    x, b, e = feed("x", [2, 3, 4]), feed("b", [2, 3], tf.bool), feed("e", [0, 3])
    outs = []
    for f in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod):
        n = f.__name__
        outs += [f(x, name=f"{n}_all"), f(x, 1, name=f"{n}_middle"), f(x, [0, -1], keepdims=True, name=f"{n}_outer"), f(x, [], name=f"{n}_none")]
        outs.append(f(e, 1, name=f"{n}_empty"))
    outs += [tf.reduce_any(b, 0, name="any"), tf.reduce_all(b, 1, name="all"), tf.reduce_logsumexp(x, 2, name="logsumexp")]
    outs += [tf.argmax(x, 2, name="argmax"), tf.argmin(x, 0, output_type=tf.int32, name="argmin"), tf.cumsum(x, 1, exclusive=True, reverse=True, name="cumsum")]
    return {"feeds": {"x:0": values(4, 2, 3, 4), "b:0": np.array([[1, 0, 1], [1, 1, 1]], bool), "e:0": np.zeros((0, 3), np.float32)}, "fetches": named(*outs)}


@case("array")
def concat_and_split():
    """Joining and taking apart, with an empty part."""
    a, b, c = feed("a", [2, 3]), feed("b", [2, 0]), feed("c", [2, 2])
    joined = tf.concat([a, b, c], 1, name="joined")
    parts = tf.split(joined, [1, 0, 4], 1, name="parts")
    stacked = tf.stack([a, a + 1], 2, name="stacked")
    rows = tf.unstack(stacked, axis=0, name="rows")
    return {"feeds": {"a:0": values(5, 2, 3), "b:0": np.zeros((2, 0), np.float32), "c:0": values(6, 2, 2)},
            "fetches": named(joined, *parts, stacked, *rows, *tf.split(a, 3, 1, name="even"))}


@case("array")
def slices():
    """Strided slices with masks and negative steps, plain slices, reversal."""
    x = feed("x", [4, 5, 6])
    outs = [x[1:3, ::2, -1], x[..., 0], x[::-1, 1:-1:3], x[:, tf.newaxis, 2:2], x[3], tf.slice(x, [1, 0, 2], [2, -1, 3]), tf.reverse(x, [0, 2])]
    return {"feeds": {"x:0": values(7, 4, 5, 6)}, "fetches": named(*[tf.identity(o, name=f"out{i}") for i, o in enumerate(outs)])}


@case("array")
def pads():
    """Zeros, a value, and both kinds of mirror."""
    x = feed("x", [2, 3], tf.int32)
    p = tf.constant([[1, 1], [0, 2]])
    return {"feeds": {"x:0": ints(8, 2, 3)}, "fetches": named(
        tf.pad(x, p, name="zeros"), tf.pad(x, p, constant_values=7, name="sevens"), tf.pad(x, p, "REFLECT", name="reflect"),
        tf.pad(x, [[2, 0], [3, 1]], "SYMMETRIC", name="symmetric"))}


@case("array")
def gathers():
    """Picking by index: along an axis, with batch dimensions, by coordinates; and putting back."""
    x, i = feed("x", [3, 4, 2]), feed("i", [2, 2], tf.int32)
    return {"feeds": {"x:0": values(9, 3, 4, 2), "i:0": np.array([[2, 0], [1, 1]], np.int32)}, "fetches": named(
        tf.gather(x, i, name="rows"), tf.gather(x, i, axis=1, name="columns"), tf.gather(x[:2], i, axis=1, batch_dims=1, name="batched"),
        tf.gather_nd(x, i, name="pairs"), tf.scatter_nd(i, x[0, :2], [4, 3, 2], name="scattered"),
        tf.tensor_scatter_nd_add(x, i, tf.ones([2, 2]), name="added"), tf.one_hot(i, 3, on_value=5.0, off_value=-1.0, name="one_hot"))}


@case("array")
def transposes():
    """Permutations, reshapes with an unknown part, tiles, dimensions added and removed, and shapes as values."""
    x = feed("x", [2, None, 4])
    outs = [tf.transpose(x, p, name="by" + "".join(map(str, p))) for p in ([0, 2, 1], [2, 1, 0], [1, 0, 2], [1, 2, 0])]
    outs += [tf.reshape(x, [4, -1], name="reshaped"), tf.tile(x, [1, 2, 1], name="tiled"), tf.expand_dims(x, -2, name="expanded"),
             tf.squeeze(x[:, :1], [1], name="squeezed"), tf.shape(x, name="shape"), tf.size(x, out_type=tf.int64, name="size"), tf.rank(x, name="rank"),
             tf.nn.space_to_depth(tf.reshape(x, [1, 2, 4, 3]), 2, name="to_depth")]
    return {"feeds": {"x:0": values(11, 2, 3, 4)}, "fetches": named(*outs)}


@case("matmul")
def products():
    """Matrix products: all transpositions, batches that broadcast, vectors of ones, an empty inner dimension."""
    a, b = feed("a", [3, 4]), feed("b", [4, 5])
    p, q = feed("p", [2, 1, 3, 4]), feed("q", [3, 4, 2])
    outs = [raw.MatMul(a=a, b=b, name="plain"), raw.MatMul(a=tf.transpose(a), b=b, transpose_a=True, name="ta"),
            raw.MatMul(a=a, b=tf.transpose(b), transpose_b=True, name="tb"),
            raw.MatMul(a=tf.transpose(a), b=tf.transpose(b), transpose_a=True, transpose_b=True, name="tab"),
            raw.BatchMatMulV2(x=p, y=q, name="batched"), raw.BatchMatMulV2(x=p, y=p, adj_y=True, name="adjoint"),
            raw.MatMul(a=a[:, :0], b=b[:0], name="nothing_inside"), tf.einsum("ij,jk->ki", a, b, name="einsum")]
    return {"feeds": {"a:0": values(12, 3, 4), "b:0": values(13, 4, 5), "p:0": values(14, 2, 1, 3, 4), "q:0": values(15, 3, 4, 2)}, "fetches": named(*outs)}


@case("matmul", "dtypes")
def products_dtypes():
    """The same product in every number type that has one."""
    feeds, outs = {}, []
    for t in (tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.int64, tf.complex64):
        a, b = feed(f"a_{t.name}", [2, 3], t), feed(f"b_{t.name}", [3, 2], t)
        feeds[a.name], feeds[b.name] = ints(16, 2, 3, low=-4, high=4).astype(t.as_numpy_dtype), ints(17, 3, 2, low=-4, high=4).astype(t.as_numpy_dtype)
        outs.append(tf.matmul(a, b, name=f"product_{t.name}"))
    return {"feeds": feeds, "fetches": named(*outs)}


@case("conv")
def convolutions():
    """Plain, strided, dilated, explicitly padded, 1x1, grouped by depth, and transposed."""
    x, f = feed("x", [None, 7, 6, 2]), feed("f", [3, 3, 2, 4])
    outs = [tf.nn.conv2d(x, f, 1, "SAME", name="same"), tf.nn.conv2d(x, f, 2, "SAME", name="strided"), tf.nn.conv2d(x, f, [2, 1], "VALID", name="valid"),
            tf.nn.conv2d(x, f, 1, "SAME", dilations=2, name="dilated"), tf.nn.conv2d(x, f, 1, [[0, 0], [1, 0], [2, 1], [0, 0]], name="padded"),
            tf.nn.conv2d(x, f[:1, :1], 1, "VALID", name="pointwise"), tf.nn.depthwise_conv2d(x, f[:, :, :, :2], [1, 1, 1, 1], "SAME", name="depthwise"),
            raw.Conv2DBackpropInput(input_sizes=[2, 14, 12, 2], filter=f, out_backprop=tf.nn.conv2d(x, f, 1, "SAME"), strides=[1, 2, 2, 1], padding="SAME", name="transposed")]
    return {"feeds": {"x:0": values(18, 2, 7, 6, 2), "f:0": values(19, 3, 3, 2, 4, low=-1, high=1)}, "fetches": named(*outs)}


@case("pool")
def pools():
    """Largest and mean of windows, with windows that hang over the edge, and over a whole picture."""
    x = feed("x", [2, 7, 6, 3])
    outs = [f(x, k, s, p, name=f"{n}_{i}") for n, f in (("max", tf.nn.max_pool2d), ("avg", tf.nn.avg_pool2d))
            for i, (k, s, p) in enumerate([(2, 2, "VALID"), (3, 2, "SAME"), ([7, 6], 1, "VALID"), ([1, 2], [3, 1], "SAME")])]
    return {"feeds": {"x:0": values(20, 2, 7, 6, 3)}, "fetches": named(*outs)}


@case("batchnorm")
def normalisation():
    """Batch normalisation for inference and training, and the same written out by hand."""
    x = feed("x", [2, 3, 3, 4])
    scale, offset, mean, variance = (tf.constant(values(s, 4, low=lo), name=n) for n, s, lo in (("scale", 21, 0), ("offset", 22, -2), ("mean", 23, -1), ("variance", 24, 1)))
    fused = raw.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=mean, variance=variance, is_training=False, epsilon=1e-3, name="inference")
    empty = tf.constant([], tf.float32)
    trained = raw.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=empty, variance=empty, is_training=True, name="training")
    by_hand = tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3, name="by_hand")
    return {"feeds": {"x:0": values(25, 2, 3, 3, 4)}, "fetches": named(fused.y, trained.y, trained.batch_mean, trained.batch_variance, by_hand)}


@case("select")
def selections():
    """Choosing by a condition, with broadcasting, and where a condition holds."""
    c, x = feed("c", [3, 1], tf.bool), feed("x", [3, 4])
    return {"feeds": {"c:0": np.array([[1], [0], [1]], bool), "x:0": values(26, 3, 4)}, "fetches": named(
        tf.where(c, x, -1.0, name="select"), tf.where(x > 0, name="where"), tf.boolean_mask(x, c[:, 0], name="rows"),
        tf.clip_by_value(x, -1.0, 1.5, name="clipped"), v1.where(c[:, 0], x, -x, name="old_select"), tf.math.logical_xor(c, x > 1, name="xor"))}


@case("sort")
def top_and_unique():
    """The largest few with ties, distinct values in order of appearance, counts, segments, search in a sorted row."""
    x, i = feed("x", [2, 6]), feed("i", [8], tf.int32)
    top = tf.math.top_k(x, 3, name="top")
    unique, where, count = tf.unique_with_counts(i, name="unique")
    return {"feeds": {"x:0": np.array([[1, 5, 5, 2, 0, 5], [-1, -2, -3, -3, -1, 0]], np.float32), "i:0": np.array([4, 1, 4, 4, 0, 1, 7, 0], np.int32)},
            "fetches": named(top.values, top.indices, unique, where, count, tf.math.in_top_k([1, 3], x, 2, name="in_top"),
                             tf.math.unsorted_segment_sum(i, i % 3, 4, name="segments"), tf.searchsorted([1, 3, 3, 9], i, side="right", name="found"),
                             tf.math.bincount(i, minlength=9, name="bins"))}


@case("softmax")
def losses():
    """Softmax and its relatives with large and infinite inputs."""
    x, y = feed("x", [3, 4]), feed("y", [3], tf.int64)
    loss, gradient = raw.SparseSoftmaxCrossEntropyWithLogits(features=x[:2], labels=y[:2], name="loss")
    big = values(27, 3, 4) * 40
    big[2, 1] = -np.inf
    return {"feeds": {"x:0": big, "y:0": np.array([3, 0, 1], np.int64)}, "fetches": named(
        tf.nn.softmax(x, name="softmax"), tf.nn.log_softmax(x[:2], name="log_softmax"), loss, gradient, tf.nn.l2_loss(x[:2], name="l2"))}


@case("cast", "dtypes")
def casts():
    """Between number types, with values that do not fit left out; bits seen as another type."""
    x = feed("x", [5])
    outs = [tf.cast(x, t, name=f"to_{t.name}") for t in (tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int32, tf.int64, tf.bool, tf.complex64)]
    outs += [tf.cast(tf.cast(x, t), tf.float32, name=f"back_{t.name}") for t in (tf.float16, tf.bfloat16, tf.int32)]
    outs.append(tf.bitcast(x, tf.int32, name="bits"))
    return {"feeds": {"x:0": np.array([0, -1.75, 2.5, 100.3, 1e-3], np.float32)}, "fetches": named(*outs)}


@case("strings")
def strings():
    """Text in and out: joining, length, comparing, numbers as text."""
    s = feed("s", [3], tf.string)
    return {"feeds": {"s:0": np.array([b"ebb", b"", "Flußbett".encode()], dtype=object)}, "fetches": named(
        tf.strings.join([s, tf.constant("!")], separator="-", name="joined"), tf.strings.length(s, name="length"),
        tf.equal(s, tf.constant(b"ebb"), name="same"), tf.strings.to_number(tf.constant(["1.5", "-2"]), name="number"),
        tf.strings.reduce_join(s, 0, separator=",", name="together"))}


@case("constants", "dtypes")
def constants():
    """No feeds at all: constants of many types and shapes, filled and counted tensors."""
    outs = [tf.constant(np.arange(6).reshape(2, 3).astype(t.as_numpy_dtype), name=f"c_{t.name}") for t in
            (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64, tf.uint64, tf.complex64, tf.complex128, tf.bool)]
    outs += [tf.constant(0.5, shape=[3, 3], name="same"), tf.constant([], tf.int32, name="nothing"), tf.fill([2, 2], 9, name="filled"),
             tf.range(2, 11, 3, name="range"), tf.linspace(0.0, 1.0, 5, name="linspace"), tf.zeros([0, 4], name="empty"), tf.eye(3, name="eye")]
    return {"fetches": named(*outs)}


def recurrent(names, steps=7):
    """A recurrent cell over a sequence, large enough that its product with the inputs is moved out of the loop."""
    n = 128
    x = feed("x", [steps, 1, n])
    weights = tf.reshape(tf.sin(tf.range(2 * n * n, dtype=tf.float32)) * 0.1, [2 * n, n])
    if "TensorArray" in names:
        x_array = raw.TensorArrayV3(size=steps, dtype=tf.float32)
        filled = raw.TensorArrayScatterV3(handle=x_array.handle, indices=tf.range(steps), value=x, flow_in=x_array.flow)
        read = lambda t: raw.TensorArrayReadV3(handle=x_array.handle, index=t, flow_in=filled, dtype=tf.float32)
    else:
        items = raw.TensorListFromTensor(tensor=x, element_shape=tf.constant([1, n]))
        read = lambda t: raw.TensorListGetItem(input_handle=items, index=t, element_shape=tf.constant([1, n]), element_dtype=tf.float32)

    def body(t, h, s):
        row = tf.ensure_shape(read(t), [1, n])
        both = tf.matmul(tf.concat([h, row], 1), weights)
        alone = tf.matmul(row, weights[:n])
        h = tf.tanh(both + tf.sigmoid(alone) * 0.5)
        return t + 1, h, s + alone

    last = tf.while_loop(lambda t, h, s: t < steps, body, [tf.constant(0), tf.zeros([1, n]), tf.zeros([1, n])])
    return {"feeds": {"x:0": values(31, steps, 1, n, low=-1, high=1)}, "fetches": named(*(tf.identity(v) for v in last))}


@case("control", "loop")
def recurrent_array():
    """Rows of a TensorArray, read in a version 1 loop."""
    v1.disable_control_flow_v2()
    return recurrent("TensorArray")


@case("control", "loop")
def recurrent_list():
    """Items of a tensor list, read in a functional loop."""
    v1.enable_control_flow_v2()
    try:
        return recurrent("TensorList")
    finally:
        v1.disable_control_flow_v2()


@case("state")
def counter():
    """A resource variable over several steps: state stays, another session starts anew."""
    handle = raw.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="v", name="v")
    d = feed("d", [2])
    raw.AssignVariableOp(resource=handle, value=tf.constant([1.0, 2.0]), name="init")
    raw.AssignAddVariableOp(resource=handle, value=d, name="add")
    read = raw.ReadVariableOp(resource=handle, dtype=tf.float32, name="read")
    ready = raw.VarIsInitializedOp(resource=handle, name="ready")
    add = {"feeds": {"d:0": np.array([0.5, -1], np.float32)}, "targets": ["add"]}
    look = {"fetches": named(read, ready)}
    return [{"fetches": named(ready)}, {"targets": ["init"]}, look, add, add, look, {"fetches": named(ready), "new_session": True, "name": "anew"}]


@case("state", "training")
def regression():
    """Gradient descent on two resource variables, updates ordered after reads by control edges, ten steps."""
    x, y = feed("x", [8, 3]), feed("y", [8, 1])
    w = v1.get_variable("w", initializer=np.zeros((3, 1), np.float32), use_resource=True)
    b = v1.get_variable("b", initializer=np.zeros(1, np.float32), use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y), name="loss")
    train = v1.train.GradientDescentOptimizer(0.05).minimize(loss, name="train")
    v1.global_variables_initializer()
    data = values(28, 8, 3, low=-1, high=1)
    feeds = {"x:0": data, "y:0": data @ np.array([[1.0], [-2.0], [0.5]], np.float32) + np.float32(0.25)}
    step = {"feeds": feeds, "fetches": [loss.name], "targets": [train.name]}
    final = {"fetches": ["w/Read/ReadVariableOp:0", "b/Read/ReadVariableOp:0"]}
    return [{"targets": ["init"]}, *[step] * 10, final]


@case("multi-fetch")
def many_fetches():
    """One graph, several feeds and fetch sets: an inner tensor is fed, one tensor is fetched twice over, a feed is fetched."""
    x = feed("x", [3])
    inner = tf.multiply(x, 2.0, name="inner")
    left = tf.add(inner, 1.0, name="left")
    right = tf.subtract(inner, x, name="right")
    tf.multiply(left, right, name="both")
    v = values(29, 3)
    return [{"feeds": {"x:0": v}, "fetches": ["both:0"]}, {"feeds": {"x:0": v}, "fetches": ["left:0", "right:0", "inner:0"]},
            {"feeds": {"inner:0": v + 1}, "fetches": ["left:0"]}, {"feeds": {"x:0": v, "inner:0": v}, "fetches": ["both:0", "x:0"]},
            {"feeds": {"x:0": v[::-1].copy()}, "fetches": ["both:0"], "targets": ["left"]}]


@case("control-edges", "state")
def ordered_updates():
    """Control edges alone decide what is read: before, between and after two updates."""
    handle = raw.VarHandleOp(dtype=tf.int32, shape=[], shared_name="n", name="n")
    raw.AssignVariableOp(resource=handle, value=tf.constant(10), name="init")
    before = raw.ReadVariableOp(resource=handle, dtype=tf.int32, name="before")
    with tf.control_dependencies([before]):
        double = raw.AssignVariableOp(resource=handle, value=before * 2, name="double")
    with tf.control_dependencies([double]):
        between = raw.ReadVariableOp(resource=handle, dtype=tf.int32, name="between")
    with tf.control_dependencies([between]):
        one_less = raw.AssignSubVariableOp(resource=handle, value=tf.constant(1), name="one_less")
    with tf.control_dependencies([one_less]):
        after = raw.ReadVariableOp(resource=handle, dtype=tf.int32, name="after")
    return [{"targets": ["init"]}, {"fetches": named(before, between, after)}, {"fetches": named(after, before)}, {"fetches": named(before)}]


@case("wide")
def tree():
    """Sixty-four inputs added up in a tree: many nodes that may run at once, and one sum of all."""
    x = feed("x", [64, 4])
    level = tf.unstack(x, name="rows")
    everything = tf.add_n(level, name="add_n")
    depth = 0
    while len(level) > 1:
        level = [tf.add(a, b, name=f"level{depth}_{i}") for i, (a, b) in enumerate(zip(level[::2], level[1::2]))]
        depth += 1
    return {"feeds": {"x:0": values(31, 64, 4)}, "fetches": named(level[0], everything)}


@case("deep")
def chain():
    """Two thousand nodes in a row: no stack may grow with the depth of a graph."""
    x = feed("x", [2])
    t = x
    for i in range(2000):
        t = tf.identity(t, name=f"i{i}") if i % 4 else tf.add(t, 1.0, name=f"i{i}")
    return {"feeds": {"x:0": np.array([0.5, -3], np.float32)}, "fetches": [t.name]}


@case("model")
def small_network():
    """Convolution, normalisation, pooling, a residual connection and a dense layer with weights inside the graph."""
    x = feed("image", [None, 8, 8, 3])

    def weights(seed, *shape):
        return tf.constant(values(seed, *shape, low=-1, high=1) / np.float32(np.sqrt(np.prod(shape[:-1]))), name=f"w{seed}")

    h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, weights(40, 3, 3, 3, 8), 1, "SAME"), weights(41, 8)))
    h = raw.FusedBatchNormV3(x=h, scale=tf.ones(8), offset=weights(42, 8), mean=weights(43, 8), variance=tf.fill([8], 0.5), is_training=False, epsilon=1e-3).y
    h = tf.nn.relu(h + tf.nn.conv2d(h, weights(44, 3, 3, 8, 8), 1, "SAME"))
    h = tf.nn.max_pool2d(h, 2, 2, "VALID")
    h = tf.reduce_mean(h, [1, 2], name="pooled")
    tf.nn.softmax(tf.matmul(h, weights(45, 8, 5)) + weights(46, 5), name="prob")
    return {"feeds": {"image:0": values(47, 3, 8, 8, 3, low=0, high=1)}, "fetches": ["prob:0", "pooled:0"]}


def main():
    arguments = sys.argv[1:]
    folder = pathlib.Path(arguments.pop(0)) if arguments else pathlib.Path(__file__).resolve().parent / "graphs"
    for name, (build, more) in CASES.items():
        if arguments and name not in arguments:
            continue
        shutil.rmtree(folder / name, ignore_errors=True)
        with tf.Graph().as_default() as graph:
            steps = build()
        steps = steps if isinstance(steps, list) else [steps]
        oracle.write_case(folder / name, graph.as_graph_def(), steps, notes=build.__doc__, **more)
    size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    print(f"{len(CASES)} cases, {size} bytes")


if __name__ == "__main__":
    main()
