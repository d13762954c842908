"""Elementwise ops, casts, comparisons, selection, reductions and scans, in the types of TensorFlow's CPU kernels."""

import numpy as np
import tensorflow as tf

from fuzz import ANY, BF16, Node, chance, generator, ints, pick, spoil, values

FLOATS = [np.float32, np.float32, np.float64, np.float16, BF16]
SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
COMPLEX = [np.complex64, np.complex128]
REAL = FLOATS + SIGNED + UNSIGNED
NUMBERS = REAL + COMPLEX
# Relative and absolute; a bfloat16 result may be one step off where the float behind it is near a tie.
TOLERANCES = {
    np.float32: (1e-5, 1e-6),
    np.float64: (1e-9, 1e-12),
    np.float16: (4e-3, 1e-3),
    BF16: (2e-2, 1e-2),
    np.complex64: (1e-5, 1e-6),
    np.complex128: (1e-9, 1e-12),
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 65504.0, 1e-3]
SIZES = [1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 100, 513]


def shape(rng, most_rank=8, most_elements=3000):
    rank = int(rng.integers(most_rank + 1)) if chance(rng, 4) else int(rng.integers(4))
    sizes = [pick(rng, SIZES) for _ in range(rank)]
    while np.prod(sizes, dtype=np.int64) > most_elements:
        sizes[int(np.argmax(sizes))] //= 2
    if sizes and chance(rng, 15):
        sizes[int(rng.integers(rank))] = 0
    return sizes


def broadcast_shapes(rng, count):
    """Shapes that broadcast together; now and then one that does not."""
    full = shape(rng)
    shapes = []
    for _ in range(count):
        dims = [1 if chance(rng, 4) else s for s in full]
        shapes.append(dims[int(rng.integers(len(dims) + 1)) :] if chance(rng, 3) else dims)
    if full and chance(rng, 20):
        shapes[0] = full[:-1] + [full[-1] + 2]
    return shapes


def numbers(rng, dims, dtype, low=None, high=None):
    """Small numbers, wide ones, special ones, in a mix that differs from tensor to tensor."""
    if dtype in (object, np.bool_):
        return values(rng, dims, dtype)
    kind = np.dtype(dtype).kind
    if kind in "iu":
        limits = np.iinfo(dtype)
        low, high = max(limits.min, -9 if low is None else low), min(limits.max, 9 if high is None else high)
        small = rng.integers(low, high + 1, dims)
        wide = rng.integers(limits.min, limits.max, dims, dtype=dtype, endpoint=True)
        share = pick(rng, [0, 0.3, 1]) if (low, high) == (max(limits.min, -9), 9) else 0
        return np.asarray(np.where(rng.random(dims) < share, wide, small.astype(dtype)))
    if kind == "c":
        part = np.float32 if dtype is np.complex64 else np.float64
        return np.asarray(numbers(rng, dims, part, low, high) + 1j * numbers(rng, dims, part, low, high)).astype(dtype)
    x = rng.normal(0, pick(rng, [0.1, 1, 5, 30]), dims)
    if chance(rng, 3):
        x = np.round(x * 2) / 2
    if low is not None:
        x = np.clip(x, low, high)
    elif chance(rng, 3):
        x = np.where(rng.random(dims) < 0.1, rng.choice(SPECIAL, dims), x)
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(np.float32).astype(dtype)


def tolerance(dtype):
    return TOLERANCES.get(dtype)


def elementwise(count, kinds, exact=False, **limits):
    def make(rng, op):
        dtype = pick(rng, kinds)
        arrays = [numbers(rng, dims, dtype, **limits) for dims in broadcast_shapes(rng, count)]
        return Node(op, arrays, {}, None if exact else tolerance(dtype))

    return make


SMALL = {"low": -20, "high": 20}
FORMS = {
    ("Neg", "Abs", "Sign"): elementwise(1, FLOATS + SIGNED, exact=True),
    ("Square",): elementwise(1, REAL),
    ("Relu", "Relu6"): elementwise(1, REAL, exact=True),
    ("Sqrt", "Rsqrt", "Exp", "Log", "Tanh", "Sigmoid"): elementwise(1, FLOATS),
    ("Erf",): elementwise(1, FLOATS, low=-10, high=10),  # in double, TensorFlow makes NaN of what overflows when squared
    ("Elu", "Selu", "Softplus", "Softsign"): elementwise(1, FLOATS),
    ("Floor", "Ceil", "IsNan"): elementwise(1, FLOATS, exact=True),
    ("Maximum", "Minimum"): elementwise(2, REAL, exact=True),
    ("Less", "LessEqual", "Greater", "GreaterEqual"): elementwise(2, REAL, exact=True),
    ("FloorMod", "FloorDiv"): elementwise(2, REAL),
    ("AddV2", "Sub", "Mul"): elementwise(2, REAL),
    ("Add",): elementwise(2, FLOATS + SIGNED + [np.uint8, object]),
    ("RealDiv",): elementwise(2, FLOATS),
    ("SquaredDifference",): elementwise(2, FLOATS + [np.int32, np.int64]),
    ("LogicalAnd", "LogicalOr"): elementwise(2, [np.bool_]),
    ("LogicalNot",): elementwise(1, [np.bool_]),
    ("ZerosLike",): elementwise(1, ANY),
    ("OnesLike",): elementwise(1, NUMBERS + [np.bool_]),
}
for ops, form in FORMS.items():
    generator(*ops)(form)

# Complex numbers have their own rules of infinities and NaN in every library, so they are finite here.
COMPLEX_UNARY = ["Neg", "Sign", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Tanh", "Sigmoid"]
COMPLEX_BINARY = ["AddV2", "Add", "Sub", "Mul", "SquaredDifference"]


def sometimes_complex(op, count):
    plain = elementwise(count, COMPLEX, low=-4, high=4)
    generator(op)(lambda rng, op, real=dict_of_forms(op): plain(rng, op) if chance(rng, 6) else real(rng, op))


def dict_of_forms(op):
    return next(form for ops, form in FORMS.items() if op in ops)


for name in COMPLEX_UNARY:
    sometimes_complex(name, 1)
for name in COMPLEX_BINARY:
    sometimes_complex(name, 2)


@generator("RealDiv")
def real_div(rng, op):
    node = FORMS[("RealDiv",)](rng, op)
    if chance(rng, 6):
        # A complex number by zero is NaN or infinite by its position in the tensor.
        dtype = pick(rng, COMPLEX)
        a, b = (numbers(rng, dims, dtype, -4, 4) for dims in broadcast_shapes(rng, 2))
        node = Node(op, [a, np.where(b == 0, dtype(1), b)], {}, tolerance(dtype))
    return node


@generator("Pow")
def power(rng, op):
    dtype = pick(rng, FLOATS + SIGNED)
    a, b = broadcast_shapes(rng, 2)
    if dtype in SIGNED:
        exponents = rng.integers(0 if not chance(rng, 10) else -1, 6, b).astype(dtype)
        return Node(op, [numbers(rng, a, dtype), np.asarray(exponents)])
    return Node(op, [np.abs(numbers(rng, a, dtype)), numbers(rng, b, dtype, -5, 5)], {}, tolerance(dtype))


@generator("Equal", "NotEqual")
def equality(rng, op):
    dtype = pick(rng, NUMBERS + [np.bool_, object])
    arrays = [numbers(rng, dims, dtype) for dims in broadcast_shapes(rng, 2)]
    return Node(op, arrays, {"incompatible_shape_error": not chance(rng, 4)})


@generator("LeakyRelu")
def leaky_relu(rng, op):
    dtype = pick(rng, FLOATS)
    return Node(op, [numbers(rng, shape(rng), dtype)], {"alpha": pick(rng, [0.2, 0.01, 1.5, 0.0])}, tolerance(dtype))


@generator("CheckNumerics")
def check_numerics(rng, op):
    return Node(op, [numbers(rng, shape(rng), pick(rng, FLOATS))], {"message": "m"})


@generator("AddN")
def add_n(rng, op):
    dtype, dims = pick(rng, NUMBERS), shape(rng)
    arrays = [numbers(rng, dims, dtype, -50, 50) for _ in range(pick(rng, [1, 2, 3, 9]))]
    if chance(rng, 20):
        arrays[-1] = numbers(rng, shape(rng), dtype, -50, 50)
    relative, absolute = tolerance(dtype) or (0, 0)
    return Node(op, [arrays], {}, (relative, absolute + 200 * relative) if relative else None)


@generator("Cast")
def cast(rng, op):
    source, target = pick(rng, NUMBERS + [np.bool_]), pick(rng, NUMBERS + [np.bool_])
    limits = {}
    if target in SIGNED + UNSIGNED and source not in SIGNED + UNSIGNED + [np.bool_]:
        # Floats beyond an integer type convert differently within TensorFlow itself, by position in the tensor.
        limits = {"low": 0 if target in UNSIGNED else -100, "high": 100}
    # A double cut to complex64 loses even a bit of its exponent.
    attrs = {"DstT": tf.as_dtype(target), "Truncate": chance(rng, 4) and target not in COMPLEX}
    return Node(op, [numbers(rng, shape(rng), source, **limits)], attrs)


@generator("Select")
def select(rng, op):
    dtype, dims = pick(rng, NUMBERS + [np.bool_, object]), shape(rng)
    condition = pick(rng, [dims, [], dims[:1], dims[:1], [3]])
    return Node(op, [values(rng, condition, np.bool_), numbers(rng, dims, dtype), numbers(rng, dims, dtype)])


@generator("SelectV2")
def select_v2(rng, op):
    condition, a, b = broadcast_shapes(rng, 3)
    dtype = pick(rng, NUMBERS + [np.bool_, object])
    return Node(op, [values(rng, condition, np.bool_), numbers(rng, a, dtype), numbers(rng, b, dtype)])


def axes(rng, rank):
    order = rng.permutation(rank)[: int(rng.integers(rank + 1))] if rank else []
    chosen = [int(a) - (rank if chance(rng, 2) else 0) for a in order]
    if chosen and chance(rng, 30):
        chosen.append(chosen[0])
    if chance(rng, 20):
        chosen.append(pick(rng, [rank, -rank - 1]))
    return spoil(rng, ints(rng, chosen[0] if len(chosen) == 1 and chance(rng, 2) else chosen))


def sum_tolerance(x, dtype):
    """Terms of both signs: an error is measured by their sizes, not by what is left of them."""
    if tolerance(dtype) is None:
        return None
    relative, absolute = tolerance(dtype)
    largest = float(np.max(np.abs(x.astype(np.complex128)), initial=0))
    return relative, max(absolute, relative * largest * max(1, x.size) ** 0.5)


def reduction(kinds, summed=False, **limits):
    def make(rng, op):
        dtype = pick(rng, kinds)
        x = numbers(rng, shape(rng, most_elements=20000), dtype, **limits)
        loose = sum_tolerance(x, dtype) if summed else tolerance(dtype)
        return Node(op, [x, axes(rng, x.ndim)], {"keep_dims": chance(rng, 2)}, loose)

    return make


generator("Sum", "Mean")(reduction(NUMBERS, summed=True, **SMALL))
generator("Max", "Min")(reduction(REAL))
generator("All", "Any")(reduction([np.bool_]))


def one_axis(rng, rank):
    axis = int(rng.integers(-rank, rank)) if rank and not chance(rng, 15) else pick(rng, [rank, -rank - 1])
    return spoil(rng, ints(rng, axis))


@generator("ArgMax", "ArgMin")
def arg_extremum(rng, op):
    x = numbers(rng, shape(rng, 7), pick(rng, REAL + [np.bool_]))  # TensorFlow has no more than seven dimensions here
    outputs = ["int32", "int64"] + (["int16", "uint16"] if op == "ArgMax" else [])
    axis = one_axis(rng, x.ndim)
    if axis.dtype == np.int64:
        axis = axis.astype(np.int32).astype(np.int64)  # TensorFlow cuts the axis to 32 bits
    return Node(op, [x, axis], {"output_type": pick(rng, outputs)})


@generator("Cumsum")
def cumsum(rng, op):
    dtype = pick(rng, NUMBERS)
    x = numbers(rng, shape(rng), dtype, **SMALL)
    attrs = {"exclusive": chance(rng, 2), "reverse": chance(rng, 2)}
    return Node(op, [x, one_axis(rng, x.ndim)], attrs, sum_tolerance(x, dtype))


@generator("IdentityN")
def identity_n(rng, op):
    return Node(op, [[numbers(rng, shape(rng), pick(rng, ANY)) for _ in range(int(rng.integers(1, 5)))]])


@generator("Assert")
def check_true(rng, op):
    condition = values(rng, [] if not chance(rng, 6) else shape(rng, 2), np.bool_)
    data = [numbers(rng, shape(rng, 2), pick(rng, REAL)) for _ in range(int(rng.integers(1, 3)))]
    return Node(op, [condition, data], {"summarize": int(rng.integers(-1, 4))})


@generator("PlaceholderWithDefault")
def placeholder_with_default(rng, op):
    x = numbers(rng, shape(rng, 4), pick(rng, ANY))
    declared = pick(rng, [x.shape, [None] * x.ndim, None])
    return Node(op, [x], {"shape": declared})
