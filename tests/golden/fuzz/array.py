"""Array ops: shapes, movement, selection. Cases where TensorFlow's answer is an accident of its code are left out."""

import numpy as np

from fuzz import ANY, BF16, PLAIN, REAL, Node, chance, generator, ints, pick, shape, spoil, values


def tensor(rng, low=0, high=5, kinds=ANY):
    return values(rng, shape(rng, low, high), pick(rng, kinds))


def axis_for(rng, rank, extra=0):
    """Usually a legal axis, sometimes just outside."""
    span = rank + extra
    if chance(rng, 12) or span == 0:
        return int(rng.integers(-span - 2, span + 2))
    return int(rng.integers(-span, span))


@generator("Identity", "StopGradient", "Shape", "Size", "Rank")
def unary(rng, op):
    attrs = {"out_type": pick(rng, ["int32", "int64"])} if op in ("Shape", "Size") else {}
    return Node(op, [tensor(rng)], attrs)


@generator("Reshape")
def reshape(rng, op):
    x = tensor(rng)
    numbers, dims = x.size, []
    for _ in range(int(rng.integers(0, 5))):
        divisors = [d for d in (1, 2, 3, 4, 6) if numbers and numbers % d == 0] or [0, 1, 2]
        dims.append(pick(rng, divisors))
        numbers //= max(dims[-1], 1)
    if numbers != 1 or chance(rng, 3):
        dims.insert(int(rng.integers(len(dims) + 1)), numbers)
    if dims and chance(rng, 2):
        dims[int(rng.integers(len(dims)))] = -1
    if dims and chance(rng, 8):
        dims[int(rng.integers(len(dims)))] = pick(rng, [-1, 0, -2, 2**31 - 1])
    return Node(op, [x, spoil(rng, ints(rng, dims))])


@generator("Squeeze")
def squeeze(rng, op):
    dims = [d if chance(rng, 2) else 1 for d in shape(rng)]
    ones = [i for i, d in enumerate(dims) if d == 1]
    axes = [int(i) - (len(dims) if chance(rng, 2) else 0) for i in ones if chance(rng, 2)]
    if chance(rng, 6):
        axes.append(axis_for(rng, len(dims)))
    return Node(op, [values(rng, dims, pick(rng, ANY))], {"squeeze_dims": axes})


@generator("ExpandDims")
def expand_dims(rng, op):
    x = tensor(rng)
    return Node(op, [x, spoil(rng, ints(rng, axis_for(rng, x.ndim, 1)))])


@generator("Fill")
def fill(rng, op):
    return Node(op, [spoil(rng, ints(rng, shape(rng))), tensor(rng, 0, 0) if not chance(rng, 8) else tensor(rng, 1, 1)])


@generator("Range")
def make_range(rng, op):
    dtype = pick(rng, [np.float32, np.float64, np.float16, BF16, np.int32, np.int64])
    scale = 1 if np.dtype(dtype).kind == "i" else pick(rng, [1, 0.1, 0.25, 1 / 3])
    start, delta = int(rng.integers(-9, 10)) * scale, int(rng.integers(-4, 5)) * scale
    limit = (
        start + delta * int(rng.integers(-1, 30)) * pick(rng, [1, 1, 0.7])
        if not chance(rng, 6)
        else int(rng.integers(-9, 10)) * scale
    )
    special = [np.nan, np.inf, -np.inf] if np.dtype(dtype).kind != "i" else [np.iinfo(dtype).min, np.iinfo(dtype).max]
    args = [start, limit, delta]
    if chance(rng, 10):
        args[int(rng.integers(3))] = pick(rng, special)
        if np.dtype(dtype).kind == "i":
            args[2] = pick(rng, special) // 3
    arrays = [np.array(a).astype(dtype) if np.dtype(dtype).kind != "i" else np.array(int(a), dtype) for a in args]
    return Node(op, [a.reshape((1,)) if chance(rng, 20) else a for a in arrays])


@generator("Pack")
def pack(rng, op):
    dtype, dims = pick(rng, ANY), shape(rng, 0, 4)
    arrays = [values(rng, dims, dtype) for _ in range(int(rng.integers(1, 5)))]
    if chance(rng, 10):
        arrays[-1] = values(rng, shape(rng, 0, 4), dtype)
    return Node(op, [arrays], {"axis": axis_for(rng, len(dims), 1)})


@generator("Unpack")
def unpack(rng, op):
    x = tensor(rng)
    axis = axis_for(rng, x.ndim)
    num = x.shape[axis] if -x.ndim <= axis < x.ndim and not chance(rng, 10) else int(rng.integers(0, 5))
    if num == 0:
        num, x, axis = 1, values(rng, [1], np.float32), 0  # a node without outputs cannot be fetched
    return Node(op, [x], {"axis": axis, "num": num})


@generator("ConcatV2", "Concat")
def concat(rng, op):
    dtype, dims = pick(rng, ANY), shape(rng, 1, 4)
    axis = axis_for(rng, len(dims))
    arrays = []
    for _ in range(int(rng.integers(2, 5))):
        part = list(dims)
        if -len(dims) <= axis < len(dims):
            part[axis] = int(rng.integers(0, 5))
        if chance(rng, 20):
            part = shape(rng, 0, 4)
        arrays.append(values(rng, part, dtype))
    where = spoil(rng, ints(rng, axis, np.int32 if op == "Concat" else None))
    return Node(op, [where, arrays] if op == "Concat" else [arrays, where])


@generator("Split", "SplitV")
def split(rng, op):
    x = tensor(rng)
    axis = axis_for(rng, x.ndim)
    length = x.shape[axis] if -x.ndim <= axis < x.ndim else 4
    where = spoil(rng, np.array(axis, np.int32))
    if op == "Split":
        divisors = [d for d in range(1, 6) if length % d == 0]
        return Node(
            op, [where, x], {"num_split": pick(rng, divisors) if not chance(rng, 8) else int(rng.integers(1, 5))}
        )
    cuts = np.sort(rng.integers(0, length + 1, int(rng.integers(0, 4))))
    sizes = np.diff(np.concatenate([[0], cuts, [length]])).astype(pick(rng, [np.int32, np.int64]))
    if chance(rng, 2):
        sizes[int(rng.integers(len(sizes)))] = -1
    # With an unknown axis, TensorFlow's import compares the sizes with the last dimension.
    return Node(op, [x, spoil(rng, sizes), where], {"num_split": len(sizes)}, may_load=True)


@generator("Slice")
def slice_(rng, op):
    x = tensor(rng)
    begin = [int(rng.integers(0, d + 1)) for d in x.shape]
    size = [-1 if chance(rng, 4) else int(rng.integers(0, d - b + 1)) for d, b in zip(x.shape, begin)]
    index = pick(rng, [np.int32, np.int64])
    # The sum of begin and size overflows in TensorFlow.
    sizes = np.minimum(spoil(rng, ints(rng, size, index)), np.iinfo(index).max // 2)
    return Node(op, [x, spoil(rng, ints(rng, begin, index)), sizes])


@generator("StridedSlice")
def strided_slice(rng, op):
    x = tensor(rng)
    count = int(rng.integers(0, x.ndim + 3))
    index = pick(rng, [np.int16, np.int32, np.int64])
    edge = lambda: (
        int(rng.integers(-6, 7)) if not chance(rng, 20) else pick(rng, [np.iinfo(index).min, np.iinfo(index).max])
    )
    strides = [pick(rng, [1, 1, 1, 2, 3, -1, -1, -2, 7]) if not chance(rng, 60) else 0 for _ in range(count)]
    attrs = {
        "begin_mask": int(rng.integers(64)) if chance(rng, 2) else 0,
        "end_mask": int(rng.integers(64)) if chance(rng, 2) else 0,
    }
    if chance(rng, 2):
        attrs["ellipsis_mask"] = 1 << int(rng.integers(5))
    if chance(rng, 30):
        attrs["ellipsis_mask"] = int(rng.integers(16))
    if chance(rng, 3):
        attrs["new_axis_mask"] = int(rng.integers(16))
    if chance(rng, 3):
        attrs["shrink_axis_mask"] = int(rng.integers(16))
        strides = [abs(s) if not chance(rng, 20) else s for s in strides]
    parts = [
        ints(rng, [edge() for _ in range(count)], index),
        ints(rng, [edge() for _ in range(count)], index),
        ints(rng, strides, index),
    ]
    if chance(rng, 15):
        parts = [spoil(rng, p) for p in parts]
    return Node(op, [x, *parts], attrs)


@generator("Transpose")
def transpose(rng, op):
    x = tensor(rng)
    perm = [int(p) - (x.ndim if chance(rng, 8) else 0) for p in rng.permutation(x.ndim)]
    return Node(op, [x, spoil(rng, ints(rng, perm, np.int32))])  # TensorFlow cuts int64 entries to 32 bits


@generator("ConjugateTranspose")
def conjugate_transpose(rng, op):
    x = tensor(rng, kinds=PLAIN)
    return Node(op, [x, spoil(rng, ints(rng, [int(p) for p in rng.permutation(x.ndim)], np.int32))])


@generator("Tile")
def tile(rng, op):
    x = tensor(rng, 0, 4, [k for k in ANY if k is not np.uint16])
    return Node(op, [x, spoil(rng, ints(rng, [int(rng.integers(0, 4)) for _ in x.shape]))])


@generator("BroadcastTo")
def broadcast_to(rng, op):
    x = tensor(rng, 0, 4)
    to = [d if d != 1 else int(rng.integers(0, 4)) for d in x.shape]
    to = shape(rng, 0, 2) + to
    if to and chance(rng, 8):
        to[int(rng.integers(len(to)))] = int(rng.integers(-1, 5))
    return Node(op, [x, spoil(rng, ints(rng, to))])


@generator("Pad", "PadV2")
def pad(rng, op):
    x = tensor(rng)
    paddings = rng.integers(0, 4, (x.ndim, 2)).astype(pick(rng, [np.int32, np.int64]))
    if chance(rng, 12):
        paddings = paddings - 1
    extra = (
        [values(rng, [] if not chance(rng, 15) else [1], object if x.dtype == object else x.dtype.type)]
        if op == "PadV2"
        else []
    )
    return Node(op, [x, spoil(rng, paddings), *extra])


@generator("ReverseV2")
def reverse(rng, op):
    x = tensor(rng)
    axes = [
        int(a) - (x.ndim if chance(rng, 2) else 0) for a in rng.permutation(x.ndim)[: int(rng.integers(0, x.ndim + 1))]
    ]
    if chance(rng, 15):
        axes.append(axis_for(rng, x.ndim))
    axes = ints(rng, axes)
    return Node(
        op, [x, spoil(rng, axes) if x.size else axes]
    )  # without elements, axes may be anything unless shapes are known


@generator("GatherV2")
def gather(rng, op):
    params = tensor(rng, 1, 4)
    axis = axis_for(rng, params.ndim)
    normal = axis % params.ndim
    batch = int(rng.integers(0, normal + 1)) if chance(rng, 2) else 0
    dims = list(params.shape[:batch]) + shape(rng, 0, 2)
    if chance(rng, 20):
        dims = shape(rng, 0, 3)
    limit = max(params.shape[normal], 1)
    indices = rng.integers(0, limit, dims).astype(pick(rng, [np.int16, np.int32, np.int64]))
    if indices.size and chance(rng, 12):
        indices.reshape(-1)[int(rng.integers(indices.size))] = pick(rng, [-1, limit, np.iinfo(indices.dtype).max])
    attrs = {"batch_dims": batch - (len(dims) if chance(rng, 5) else 0)} if batch or chance(rng, 10) else {}
    return Node(op, [params, np.asarray(indices), spoil(rng, ints(rng, axis))], attrs)


@generator("Gather")
def gather_v1(rng, op):
    params = tensor(rng, 1, 4)
    limit = max(params.shape[0], 1)
    indices = np.asarray(rng.integers(0, limit, shape(rng, 0, 3))).astype(pick(rng, [np.int32, np.int64]))
    return Node(op, [params, indices], {"validate_indices": chance(rng, 2)})


@generator("GatherNd")
def gather_nd(rng, op):
    params = tensor(rng, 1, 4)
    length = int(rng.integers(0, params.ndim + 1)) if not chance(rng, 20) else params.ndim + 1
    dims = shape(rng, 0, 2)
    limits = [max(d, 1) for d in params.shape[:length]] + [1] * (length - params.ndim)
    indices = np.stack([rng.integers(0, d, dims) for d in limits], -1) if limits else np.zeros(dims + [0])
    indices = indices.astype(pick(rng, [np.int16, np.int32, np.int64]))
    if indices.size and chance(rng, 10):
        indices.reshape(-1)[int(rng.integers(indices.size))] = pick(rng, [-1, 4, 5])
    attrs = {"bad_indices_policy": pick(rng, ["", "DEFAULT", "ERROR", "IGNORE"])} if chance(rng, 3) else {}
    return Node(op, [params, indices], attrs)


@generator("OneHot")
def one_hot(rng, op):
    indices = np.asarray(rng.integers(-1, 5, shape(rng, 0, 3))).astype(
        pick(rng, [np.uint8, np.int8, np.int32, np.int64])
    )
    dtype = pick(rng, ANY)
    return Node(
        op,
        [
            indices,
            spoil(rng, np.array(int(rng.integers(0, 5)), np.int32)),
            values(rng, [], dtype),
            values(rng, [], dtype),
        ],
        {"axis": axis_for(rng, indices.ndim, 1) if chance(rng, 3) else int(rng.integers(-1, indices.ndim + 1))},
    )


@generator("Where")
def where(rng, op):
    return Node(op, [tensor(rng, 0, 8, PLAIN)])


@generator("Unique", "UniqueWithCounts")
def unique(rng, op):
    kinds = REAL + [np.bool_, object]
    x = values(rng, [int(rng.integers(0, 30))], pick(rng, kinds)) if not chance(rng, 10) else tensor(rng, 0, 3, kinds)
    return Node(op, [x], {"out_idx": pick(rng, ["int32", "int64"])})


@generator("TopKV2")
def top_k(rng, op):
    x = tensor(rng, 1, 4, REAL) if not chance(rng, 20) else tensor(rng, 0, 1, REAL)
    if x.dtype.kind not in "iu":
        x = np.where(np.isnan(x.astype(np.float64)), 0, x.astype(np.float64)).astype(
            x.dtype
        )  # TensorFlow's order of NaN is arbitrary
    columns = x.shape[-1] if x.ndim else 1
    k = int(rng.integers(0, columns + 1)) if not chance(rng, 12) else int(rng.integers(-1, columns + 3))
    k = spoil(rng, np.array(k, pick(rng, [np.int16, np.int32, np.int64])))
    if k.dtype == np.int64:
        k = k.astype(np.int32).astype(np.int64)  # TensorFlow cuts k to 32 bits
    return Node(
        op,
        [x, k],
        {"index_type": pick(rng, ["int16", "int32", "int64"])},
    )


@generator("DepthToSpace", "SpaceToDepth")
def depth_space(rng, op):
    block = pick(rng, [2, 2, 3])
    n, h, w, c = (int(d) for d in rng.integers(0 if chance(rng, 5) else 1, 4, 4))
    dims = [n, h * block, w * block, c] if op == "SpaceToDepth" else [n, h, w, c * block * block]
    if chance(rng, 8):
        dims[int(rng.integers(4))] += 1
    if chance(rng, 20):
        dims = shape(rng, 0, 5)
    return Node(op, [values(rng, dims, pick(rng, ANY))], {"block_size": block})
