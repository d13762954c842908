"""Convolutions, pools, normalisation, matrix products, resizing.

TensorFlow's plain CPU kernels refuse NCHW convolutions and pools, which thalweg runs (L25), so NCHW is asked only of the
ops whose CPU kernels take both.
"""

import numpy as np

from fuzz import BF16, Node, chance, generator, ints, pick, shape, spoil, values

FLOATS = [np.float32, np.float32, np.float64, np.float16, BF16]
TOLERANCES = {"float32": (1e-5, 1e-5), "float64": (1e-9, 1e-11), "float16": (8e-3, 4e-3), "bfloat16": (4e-2, 3e-2)}


def tolerance(dtype):
    name = np.dtype(dtype).name
    return TOLERANCES.get(name, (1e-5, 1e-5) if np.dtype(dtype).kind == "c" else None)


def finite(rng, dims, dtype):
    """Small values without the special ones: sums of products of those depend on the order."""
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0 if np.dtype(dtype).kind == "u" else -9, 10, dims).astype(dtype)
    real = rng.integers(-9, 10, dims) / 4
    return np.asarray(real + 1j * rng.integers(-3, 4, dims) if np.dtype(dtype).kind == "c" else real).astype(dtype)


def size(rng, most=7):
    return 0 if chance(rng, 25) else int(rng.integers(1, most + 1))


def wrong_rank(rng, array):
    return array.reshape((1,) + array.shape) if chance(rng, 40) else array


def window_attrs(rng, spatial=2, dilations=True, equal_strides=False):
    strides = [1] + [pick(rng, [1, 1, 2, 3]) for _ in range(spatial)] + [1]
    if equal_strides and not chance(rng, 15):
        strides[2] = strides[1]
    attrs = {"strides": strides, "padding": pick(rng, ["SAME", "VALID"])}
    if dilations and chance(rng, 4):
        attrs["dilations"] = [1] + [pick(rng, [1, 2, 3]) for _ in range(spatial)] + [1]
    if chance(rng, 40):
        attrs["strides"][int(rng.integers(spatial + 2))] = pick(rng, [0, -1, 2, 2**31 - 1])
    if chance(rng, 60):
        attrs["strides"] = attrs["strides"][:-1]
    if dilations and chance(rng, 60):
        attrs["dilations"] = [1] + [pick(rng, [0, -1, 2**31 - 1]) for _ in range(spatial)] + [1]
    return attrs


def explicit(rng, attrs, most=3):
    if chance(rng, 4):
        attrs["padding"] = "EXPLICIT"
        attrs["explicit_paddings"] = [0, 0] + [int(rng.integers(0, most + 1)) for _ in range(4)] + [0, 0]
        if chance(rng, 15):
            attrs["explicit_paddings"][int(rng.integers(8))] = pick(rng, [1, -1])
    return attrs


@generator("Conv2D")
def conv2d(rng, op):
    dtype = pick(rng, FLOATS + [np.int32])
    groups = pick(rng, [1, 1, 1, 2, 3])
    filter_in, per_group = size(rng, 4), size(rng, 4)
    channels = filter_in * groups + (1 if chance(rng, 20) else 0)
    image = finite(rng, [size(rng, 2), size(rng), size(rng), channels], dtype)
    # Of an empty window TensorFlow says now this, now that.
    taps = finite(rng, [*rng.integers(1, 4, 2), filter_in, per_group * groups], dtype)
    return Node(op, [wrong_rank(rng, image), wrong_rank(rng, taps)], explicit(rng, window_attrs(rng)), tolerance(dtype))


@generator("DepthwiseConv2dNative")
def depthwise(rng, op):
    dtype, channels = pick(rng, FLOATS), size(rng, 6)
    image = finite(rng, [size(rng, 2), size(rng), size(rng), channels], dtype)
    filter_in = channels + (1 if chance(rng, 20) else 0)
    taps = finite(rng, [1 + size(rng, 2), 1 + size(rng, 2), filter_in, size(rng, 3)], dtype)
    attrs = explicit(rng, window_attrs(rng, dilations=False, equal_strides=True))
    return Node(op, [wrong_rank(rng, image), wrong_rank(rng, taps)], attrs, tolerance(dtype))


@generator("Conv3D")
def conv3d(rng, op):
    dtype, channels = pick(rng, FLOATS), size(rng, 3)
    image = finite(rng, [size(rng, 2), size(rng, 4), size(rng, 4), size(rng, 4), channels], dtype)
    filter_in = channels + (1 if chance(rng, 20) else 0)
    taps = finite(rng, [size(rng, 3), size(rng, 3), size(rng, 3), filter_in, size(rng, 3)], dtype)
    # TensorFlow's import takes the dilation of the width for that of the height.
    attrs = window_attrs(rng, 3)
    dilated = max(attrs.get("dilations", [1])) > 1
    return Node(op, [wrong_rank(rng, image), wrong_rank(rng, taps)], attrs, tolerance(dtype), may_load=dilated)


def out_size(in_size, window, stride, padding, pads=(0, 0)):
    if padding == "SAME":
        return -(-in_size // stride)
    return max((in_size + sum(pads) - window + stride) // stride, 0)


@generator("Conv2DBackpropInput")
def conv2d_backprop_input(rng, op):
    dtype, attrs = pick(rng, FLOATS + [np.int32]), explicit(rng, window_attrs(rng))
    batch, height, width, channels, out_channels = size(rng, 2), size(rng), size(rng), size(rng, 3), size(rng, 3)
    kh, kw = (int(k) for k in rng.integers(1, 4, 2))  # an empty window is INTERNAL in TensorFlow
    pads = attrs.get("explicit_paddings", [0] * 8)
    strides = attrs["strides"] if len(attrs["strides"]) == 4 and min(attrs["strides"]) > 0 else [1] * 4
    oh = out_size(height, kh, strides[1], attrs["padding"], pads[2:4]) + (1 if chance(rng, 20) else 0)
    ow = out_size(width, kw, strides[2], attrs["padding"], pads[4:6])
    gradient = finite(rng, [batch, oh, ow, out_channels], dtype)
    sizes = [height, width] if chance(rng, 10) else [batch, height, width, channels]
    taps = finite(rng, [kh, kw, channels, out_channels], dtype)
    inputs = [spoil(rng, ints(rng, sizes, np.int32)), wrong_rank(rng, taps), wrong_rank(rng, gradient)]
    return Node(op, inputs, attrs, tolerance(dtype))


@generator("MaxPool", "AvgPool")
def pool(rng, op):
    whole = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64]
    dtype = pick(rng, FLOATS + (whole if op == "MaxPool" else []))
    attrs = window_attrs(rng, dilations=False)
    attrs["ksize"] = [1, int(rng.integers(1, 5)), int(rng.integers(1, 5)), 1]
    if chance(rng, 8):
        attrs["ksize"] = [1, 1, 1, pick(rng, [2, 3])]
        attrs["strides"] = [1, 1, 1, attrs["ksize"][3] if not chance(rng, 6) else 1]
    if chance(rng, 40):
        attrs["ksize"][int(rng.integers(4))] = pick(rng, [0, -1, 2, 2**31 - 1])
    if op == "MaxPool":
        explicit(rng, attrs, 2)
    dims = [size(rng, 2), size(rng), size(rng), size(rng, 6)]
    image = values(rng, dims, dtype) if op == "MaxPool" else finite(rng, dims, dtype)
    return Node(op, [wrong_rank(rng, image)], attrs, tolerance(dtype))


@generator("MaxPoolV2")
def max_pool_v2(rng, op):
    image = values(rng, [size(rng, 2), size(rng), size(rng), size(rng, 6)], pick(rng, FLOATS))
    ksize = spoil(rng, ints(rng, [1, int(rng.integers(1, 4)), int(rng.integers(1, 4)), 1], np.int32))
    strides = spoil(rng, ints(rng, [1, int(rng.integers(1, 4)), int(rng.integers(1, 4)), 1], np.int32))
    return Node(op, [image, ksize, strides], {"padding": pick(rng, ["SAME", "VALID"])})


@generator("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(rng, op):
    dtype = np.float32 if op == "FusedBatchNorm" else pick(rng, [np.float32, np.float16, BF16])
    channels, layout = size(rng, 5), pick(rng, ["NHWC", "NHWC", "NCHW"])
    dims = [size(rng, 3), size(rng, 4), size(rng, 4)]
    dims.insert(1 if layout == "NCHW" else 3, channels)
    training = chance(rng, 2)
    length = channels + (1 if chance(rng, 25) else 0)
    vectors = [finite(rng, [channels], np.float32) for _ in range(2)]
    if training and chance(rng, 2):
        vectors += [np.zeros([0], np.float32)] * 2
    else:
        vectors += [finite(rng, [length], np.float32), np.abs(finite(rng, [length], np.float32))]
    attrs = {"is_training": training, "epsilon": pick(rng, [1e-4, 1e-2]), "data_format": layout}
    if chance(rng, 4):
        attrs["exponential_avg_factor"] = 0.25
    loose = tolerance(dtype) if dtype is not np.float32 else (1e-4, 1e-4)
    # TensorFlow leaves the reserved outputs of an inference as they were in memory.
    compared = 5 if training and 0 not in dims else 3
    return Node(op, [wrong_rank(rng, finite(rng, dims, dtype))] + vectors, attrs, loose, compared)


@generator("BiasAdd")
def bias_add(rng, op):
    whole = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
    dtype = pick(rng, FLOATS + whole + [np.complex64, np.complex128])
    dims, layout = shape(rng, 1, 5), pick(rng, ["NHWC", "NCHW"])
    channels = dims[min(1, len(dims) - 1)] if layout == "NCHW" else dims[-1]
    bias = values(rng, [channels + (1 if chance(rng, 15) else 0)], dtype)
    return Node(op, [values(rng, dims, dtype), wrong_rank(rng, bias)], {"data_format": layout})


@generator("Softmax", "LogSoftmax")
def softmax(rng, op):
    dtype = pick(rng, FLOATS)
    return Node(op, [values(rng, shape(rng, 0, 4, 9), dtype)], {}, tolerance(dtype))


@generator("LRN")
def lrn(rng, op):
    dtype = pick(rng, [np.float32, np.float16])
    attrs = {
        "depth_radius": pick(rng, [0, 1, 2, 5, 100]),
        "bias": pick(rng, [1.0, 2.0, 0.5]),
        "alpha": pick(rng, [1.0, 0.5, 0.01]),
        "beta": pick(rng, [0.5, 0.75, 1.0, 0.3]),
    }
    image = finite(rng, [size(rng, 2), size(rng, 3), size(rng, 3), size(rng, 9)], dtype)
    return Node(op, [wrong_rank(rng, image)], attrs, tolerance(dtype))


@generator("MatMul")
def matmul(rng, op):
    dtype = pick(rng, FLOATS + [np.int32, np.int64, np.complex64, np.complex128])
    m, n, k = size(rng, 9), size(rng, 9), size(rng, 9)
    flags = {"transpose_a": chance(rng, 2), "transpose_b": chance(rng, 2)}
    a = finite(rng, [k, m] if flags["transpose_a"] else [m, k], dtype)
    inner = k + (1 if chance(rng, 15) else 0)
    b = finite(rng, [n, inner] if flags["transpose_b"] else [inner, n], dtype)
    return Node(op, [wrong_rank(rng, a), wrong_rank(rng, b)], flags, tolerance(dtype))


@generator("BatchMatMul", "BatchMatMulV2")
def batch_matmul(rng, op):
    whole = [np.int32, np.int64] + ([np.int16] if op == "BatchMatMulV2" else [])
    dtype = pick(rng, FLOATS + whole + [np.complex64, np.complex128])
    m, n, k = size(rng, 5), size(rng, 5), size(rng, 5)
    flags = {"adj_x": chance(rng, 2), "adj_y": chance(rng, 2)}
    batch = shape(rng, 0, 3, 3)
    other = list(batch)
    if op == "BatchMatMulV2" and chance(rng, 2):
        other = [1 if chance(rng, 2) else d for d in batch][int(rng.integers(0, len(batch) + 1)) :]
    if chance(rng, 15):
        other = shape(rng, 0, 3, 3)
    if chance(rng, 2):
        batch, other = other, batch
    x = finite(rng, batch + ([k, m] if flags["adj_x"] else [m, k]), dtype)
    y = finite(rng, other + ([n, k] if flags["adj_y"] else [k, n]), dtype)
    return Node(op, [x, y], flags, tolerance(dtype))


@generator("ResizeBilinear", "ResizeNearestNeighbor")
def resize(rng, op):
    dtype = pick(rng, FLOATS + [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64])
    image = finite(rng, [size(rng, 2), size(rng), size(rng), size(rng, 3)], dtype)
    target = spoil(rng, ints(rng, [size(rng, 9), size(rng, 9)], np.int32))
    attrs = {"align_corners": chance(rng, 3), "half_pixel_centers": chance(rng, 3)}
    return Node(op, [wrong_rank(rng, image), target], attrs, (1e-5, 1e-5) if op == "ResizeBilinear" else None)
