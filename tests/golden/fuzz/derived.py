"""What gradients, loops and text need besides: the ops of group 2 of the conformance suite that keep no state."""

import numpy as np

from fuzz import ANY, BF16, PLAIN, Node, chance, generator, ints, pick, shape, spoil, values
from fuzz.array import axis_for, tensor
from fuzz.math import COMPLEX, FLOATS, NUMBERS, REAL, SMALL, elementwise, numbers, reduction, tolerance
from fuzz.nn import explicit, finite, out_size, size, window_attrs, wrong_rank

WHOLE = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
# uint16 and wider unsigned numbers, and complex ones, divide or overflow alike; each op's own list follows OPS.md.
NARROW = {"low": -6, "high": 6}

generator("BitwiseAnd", "BitwiseOr")(elementwise(2, WHOLE))
generator("IsFinite")(elementwise(1, FLOATS, exact=True))
generator("Sin", "Cos")(elementwise(1, FLOATS + COMPLEX, **NARROW))
generator("Reciprocal")(elementwise(1, FLOATS, low=0.1, high=30))
generator("Prod")(reduction(REAL, summed=True, low=-2, high=2))


@generator("LeftShift", "RightShift")
def shift(rng, op):
    dtype, dims = pick(rng, WHOLE), shape(rng)
    bits = np.iinfo(dtype).bits
    return Node(op, [numbers(rng, dims, dtype), rng.integers(0, bits, pick(rng, [dims, []])).astype(dtype)])


@generator("SigmoidGrad", "TanhGrad", "RsqrtGrad", "ReluGrad")
def activation_gradient(rng, op):
    dtype, dims = pick(rng, FLOATS + (WHOLE if op == "ReluGrad" else [])), shape(rng)
    other = dims if not chance(rng, 12) else shape(rng)
    return Node(op, [numbers(rng, dims, dtype, 0.25, 4), numbers(rng, other, dtype, **NARROW)], {}, tolerance(dtype))


@generator("Cumprod")
def cumprod(rng, op):
    dtype = pick(rng, NUMBERS)
    x = numbers(rng, shape(rng), dtype, low=-2, high=2)
    attrs = {"exclusive": chance(rng, 2), "reverse": chance(rng, 2)}
    return Node(op, [x, spoil(rng, ints(rng, axis_for(rng, x.ndim)))], attrs, tolerance(dtype))


@generator("BroadcastGradientArgs")
def broadcast_gradient_args(rng, op):
    dtype = pick(rng, [np.int32, np.int64])
    full = shape(rng)
    a, b = ([1 if chance(rng, 3) else d for d in full][int(rng.integers(len(full) + 1)) :] for _ in range(2))
    return Node(op, [spoil(rng, ints(rng, a, dtype)), ints(rng, b, dtype)])


@generator("ShapeN")
def shape_n(rng, op):
    kind = pick(rng, ANY)
    arrays = [tensor(rng, kinds=[kind]) for _ in range(int(rng.integers(1, 4)))]
    return Node(op, [arrays], {"out_type": pick(rng, ["int32", "int64"])})


@generator("ConcatOffset")
def concat_offset(rng, op):
    dtype, dims = pick(rng, [np.int32, np.int64]), shape(rng, 1)
    axis = axis_for(rng, len(dims))
    rows = []
    for _ in range(int(rng.integers(2, 5))):
        row = list(dims)
        if -len(dims) <= axis < len(dims):
            row[axis] = int(rng.integers(0, 5))
        if chance(rng, 20):
            row[int(rng.integers(len(row)))] += 1
        rows.append(ints(rng, row, dtype))
    return Node(op, [np.array(axis, np.int32), rows])


@generator("InvertPermutation")
def invert_permutation(rng, op):
    order = rng.permutation(int(rng.integers(0, 20)))
    if order.size and chance(rng, 6):
        order[int(rng.integers(order.size))] = pick(rng, [-1, 0, order.size])
    return Node(op, [spoil(rng, ints(rng, order))])


@generator("UnsortedSegmentSum")
def unsorted_segment_sum(rng, op):
    dtype, dims = pick(rng, NUMBERS), shape(rng, 1)
    rank = int(rng.integers(1, len(dims) + 1))
    segments = int(rng.integers(0, 6))
    low, high = -2, max(segments + (1 if chance(rng, 8) else 0), 1)
    ids = ints(rng, rng.integers(low, high, dims[:rank]))
    return Node(op, [numbers(rng, dims, dtype, **SMALL), ids, spoil(rng, ints(rng, segments))], {}, tolerance(dtype))


@generator("DenseBincount")
def dense_bincount(rng, op):
    dims, bins = shape(rng, 1, 2), int(rng.integers(0, 8))
    dtype = pick(rng, [np.float32, np.float64, np.int32, np.int64])
    weights = numbers(rng, pick(rng, [dims, [0]]), dtype, **SMALL)
    found = rng.integers(0 if not chance(rng, 10) else -1, 9, dims)
    kind = pick(rng, [np.int32, np.int64])
    return Node(op, [ints(rng, found, kind), ints(rng, bins, kind), weights], {"binary_output": chance(rng, 3)}, tolerance(dtype))


@generator("ReverseSequence")
def reverse_sequence(rng, op):
    x = tensor(rng, 2)
    batch, seq = axis_for(rng, x.ndim), axis_for(rng, x.ndim)
    inside = -x.ndim <= batch < x.ndim and -x.ndim <= seq < x.ndim
    longest = x.shape[seq] if inside else 3
    lengths = rng.integers(0, longest + (2 if chance(rng, 10) else 1), x.shape[batch] if inside else 2)
    return Node(op, [x, spoil(rng, ints(rng, lengths))], {"seq_dim": seq % 8, "batch_dim": batch % 8})


@generator("Roll")
def roll(rng, op):
    x = tensor(rng)
    axes = [axis_for(rng, x.ndim) for _ in range(int(rng.integers(1, 4)))]
    shifts = rng.integers(-9, 10, len(axes))
    if len(axes) == 1 and chance(rng, 2):
        return Node(op, [x, ints(rng, shifts[0]), ints(rng, axes[0])])
    # TensorFlow cuts axes of 64 bits to 32.
    return Node(op, [x, spoil(rng, ints(rng, shifts)), spoil(rng, ints(rng, axes, np.int32))])


@generator("ListDiff")
def list_diff(rng, op):
    dtype = pick(rng, [k for k in REAL if k is not np.bool_] + [object])
    x, y = (values(rng, [int(rng.integers(0, 12))], dtype) for _ in range(2))
    return Node(op, [spoil(rng, x) if dtype is not object else x, y], {"out_idx": pick(rng, ["int32", "int64"])})


@generator("EnsureShape")
def ensure_shape(rng, op):
    x = tensor(rng)
    wanted = [None if chance(rng, 3) else d + (1 if chance(rng, 12) else 0) for d in x.shape]
    wanted = pick(rng, [wanted, wanted, None])
    # TensorFlow's import wants rank -1 where no shape is wanted.
    return Node(op, [x], {"shape": wanted}, may_load=wanted is None)


@generator("StridedSliceGrad")
def strided_slice_grad(rng, op):
    dims = shape(rng, 1, 4)
    index = [np.int32, np.int64][int(rng.integers(2))]
    begin = [int(rng.integers(0, d + 1)) for d in dims]
    end = [int(rng.integers(b, d + 1)) for b, d in zip(begin, dims)]
    steps = [int(rng.integers(1, 3)) for _ in dims]
    sliced = [len(range(b, e, s)) for b, e, s in zip(begin, end, steps)]
    if chance(rng, 10):
        sliced[0] += 1
    gradient = values(rng, sliced, pick(rng, PLAIN))
    return Node(op, [ints(rng, v, index) for v in (dims, begin, end, steps)] + [gradient])


@generator("TensorScatterUpdate")
def tensor_scatter_update(rng, op):
    x = tensor(rng, 1)
    depth = int(rng.integers(1, x.ndim + 1))
    count = int(rng.integers(0, 4)) if x.size else 0
    rows = [[int(rng.integers(d)) for d in x.shape[:depth]] for _ in range(count)]
    rows = [list(r) for r in sorted({tuple(r) for r in rows})]  # of equal indices, any update may win
    if rows and chance(rng, 10):
        rows[0][0] = pick(rng, [-1, x.shape[0]])
    indices = ints(rng, np.array(rows, np.int64).reshape(len(rows), depth))
    updates = values(rng, [len(rows), *x.shape[depth:]], object if x.dtype == object else x.dtype.type)
    return Node(op, [x, indices, updates])


@generator("Complex")
def make_complex(rng, op):
    part = pick(rng, [np.float32, np.float64])
    dims = shape(rng)
    arrays = [numbers(rng, dims, part), numbers(rng, pick(rng, [dims, []]), part)]
    return Node(op, arrays, {"Tout": "complex64" if part is np.float32 else "complex128"})


@generator("Real", "Conj")
def parts_of_complex(rng, op):
    dtype = pick(rng, COMPLEX)
    attrs = {"Tout": "float32" if dtype is np.complex64 else "float64"} if op == "Real" else {}
    return Node(op, [numbers(rng, shape(rng), dtype)], attrs)


@generator("MatrixDiagV3")
def matrix_diag(rng, op):
    lower = int(rng.integers(-2, 3))
    upper = lower + int(rng.integers(0, 3))
    dims = shape(rng, 0, 2) + ([upper - lower + 1] if upper > lower else []) + [int(rng.integers(1, 4))]
    dtype = pick(rng, PLAIN)
    k = np.array(lower if lower == upper else [lower, upper], np.int32)
    rows, columns = (np.array(pick(rng, [-1, -1, 3, 5]), np.int32) for _ in range(2))
    align = pick(rng, ["LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"])
    inputs = [values(rng, dims, dtype), k, rows, columns, values(rng, [], dtype)]
    return Node(op, inputs, {"align": align}, may_load=True)  # TensorFlow's import takes an unknown dimension for -1


@generator("MatrixSetDiagV3")
def matrix_set_diag(rng, op):
    outer, rows, columns = shape(rng, 0, 2), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    lower = int(rng.integers(1 - rows, columns))
    upper = int(rng.integers(lower, columns))
    longest = max(min(rows + min(k, 0), columns - max(k, 0)) for k in range(lower, upper + 1))
    count = [] if lower == upper else [upper - lower + 1]
    dtype = pick(rng, PLAIN)
    inputs = [values(rng, [*outer, rows, columns], dtype), values(rng, [*outer, *count, longest], dtype)]
    k = np.array(lower if lower == upper else [lower, upper], np.int32)
    align = pick(rng, ["LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"])
    # TensorFlow's import wants one rank more than it should where a dimension is unknown.
    return Node(op, inputs + [k], {"align": align}, may_load=True)


@generator("Einsum")
def einsum(rng, op):
    equation = pick(rng, ["ij,jk->ik", "ij->ji", "ii->i", "bij,bjk->bik", "...ij,...jk->...ik", "ij,ij->", "i,j->ij", "ijk->k"])
    dtype = pick(rng, [np.float32, np.float64, np.float16, BF16, np.int32, np.int64, np.complex64])
    sizes = {letter: int(rng.integers(1, 4)) for letter in "bijk"}
    arrays = []
    for part in equation.split("->")[0].split(","):
        dims = [sizes[c] for c in part if c.isalpha()]
        if chance(rng, 20):
            dims[0] += 1
        arrays.append(finite(rng, dims, dtype))
    return Node(op, [arrays], {"equation": equation}, tolerance(dtype))


@generator("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(rng, op):
    dtype, batch, classes = pick(rng, FLOATS), int(rng.integers(0, 6)), int(rng.integers(1, 7))
    labels = rng.integers(0, classes, batch + (1 if chance(rng, 15) else 0))
    return Node(op, [numbers(rng, [batch, classes], dtype, **SMALL), ints(rng, labels)], {}, tolerance(dtype))


@generator("Conv2DBackpropFilter")
def conv2d_backprop_filter(rng, op):
    dtype, attrs = pick(rng, FLOATS), explicit(rng, window_attrs(rng))
    # Where no window fits, TensorFlow hands out memory that it has not written.
    batch, height, width, channels, out_channels = size(rng, 2), max(size(rng), 1), max(size(rng), 1), size(rng, 3), size(rng, 3)
    kh, kw = (int(k) for k in rng.integers(1, 1 + np.minimum([3, 3], [height, width])))
    pads = attrs.get("explicit_paddings", [0] * 8)
    strides = attrs["strides"] if len(attrs["strides"]) == 4 and min(attrs["strides"]) > 0 else [1] * 4
    oh = out_size(height, kh, strides[1], attrs["padding"], pads[2:4]) + (1 if chance(rng, 20) else 0)
    ow = out_size(width, kw, strides[2], attrs["padding"], pads[4:6])
    image = finite(rng, [batch, height, width, channels], dtype)
    gradient = finite(rng, [batch, oh, ow, out_channels], dtype)
    sizes = ints(rng, [kh, kw, channels, out_channels], np.int32)
    return Node(op, [wrong_rank(rng, image), spoil(rng, sizes), wrong_rank(rng, gradient)], attrs, tolerance(dtype))


def words(rng, dims):
    out = np.empty(dims, object)
    for i in range(out.size):
        out.reshape(-1)[i] = pick(rng, [b"", b"a", b"ab c", b" x  y ", b"longer than fifteen characters", "äöü€".encode()])
    return out


@generator("StringJoin")
def string_join(rng, op):
    dims = shape(rng)
    arrays = [words(rng, dims if not chance(rng, 3) else []) for _ in range(int(rng.integers(1, 4)))]
    if chance(rng, 15):
        arrays[0] = words(rng, [2, 3])
    return Node(op, [arrays], {"separator": pick(rng, ["", ", "])})


@generator("StringLength")
def string_length(rng, op):
    return Node(op, [words(rng, shape(rng))], {"unit": pick(rng, ["BYTE", "UTF8_CHAR"])})


@generator("Substr")
def substr(rng, op):
    dims, dtype = shape(rng, 0, 3), pick(rng, [np.int32, np.int64])
    start = ints(rng, rng.integers(-2, 3, pick(rng, [dims, []])), dtype)
    length = ints(rng, rng.integers(0, 4, start.shape), dtype)
    # TensorFlow's import takes an unknown dimension of one and a known one of the other for different.
    return Node(op, [words(rng, dims), start, length], {"unit": pick(rng, ["BYTE", "UTF8_CHAR"])}, may_load=True)


@generator("StaticRegexFullMatch")
def static_regex(rng, op):
    return Node(op, [words(rng, shape(rng))], {"pattern": pick(rng, ["a.*", "", "[a-z ]+", ".*", "(a|ab) c"])})


@generator("StringSplit")
def string_split(rng, op):
    separator = np.array(pick(rng, [b"", b" ", b" a", b"xy"]), object)
    return Node(op, [words(rng, [int(rng.integers(0, 5))]), separator], {"skip_empty": not chance(rng, 3)})


@generator("AsString")
def as_string(rng, op):
    dtype = pick(rng, REAL + COMPLEX + [np.bool_])
    attrs = {"fill": pick(rng, ["", "", "0", " ", "-", "+"]), "width": pick(rng, [-1, -1, 3, 12])}
    if np.dtype(dtype).kind in "fcV" or dtype is BF16:
        attrs.update({"precision": pick(rng, [-1, 0, 3]), pick(rng, ["scientific", "shortest"]): chance(rng, 3)})
    return Node(op, [numbers(rng, shape(rng, 0, 3), dtype)], attrs)
