"""How random nodes are made, op by op. Each module of this folder adds generators for one family."""

import dataclasses

import numpy as np
import tensorflow as tf

GENERATORS = {}


@dataclasses.dataclass
class Node:
    op: str
    inputs: list  # per argument an array, or a list of arrays where the argument is repeated
    attrs: dict = dataclasses.field(default_factory=dict)
    tolerance: tuple = None  # (relative, absolute); None: to the bit, but any NaN for NaN
    compared: int = None  # only so many outputs are compared; None: all
    may_load: bool = False  # TensorFlow's import refuses more than it should: thalweg need not


def generator(*ops):
    """Registers f(rng, op) -> Node for some ops."""

    def keep(make):
        for op in ops:
            GENERATORS[op] = lambda rng, op=op: make(rng, op)
        return make

    return keep


BF16 = tf.bfloat16.as_numpy_dtype
REAL = [
    np.float32,
    np.float64,
    np.float16,
    BF16,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
]
PLAIN = REAL + [np.bool_, np.complex64, np.complex128]
ANY = PLAIN + [object]  # object: strings
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.0, 3.0]


def pick(rng, items):
    return items[int(rng.integers(len(items)))]


def chance(rng, one_in):
    return int(rng.integers(one_in)) == 0


def shape(rng, low=0, high=5, most=4):
    """A random shape of rank low..high; zeros and ones are common."""
    return [
        pick(rng, [1, 2, 3, most, int(rng.integers(0, most + 1))]) if not chance(rng, 12) else 0
        for _ in range(int(rng.integers(low, high + 1)))
    ]


def values(rng, dims, dtype):
    """Random values: small ones, so that equal ones occur, and now and then every special one."""
    if dtype is object:
        out = np.empty(dims, object)
        flat = out.reshape(-1)
        for i in range(flat.size):
            flat[i] = pick(rng, [b"", b"a", b"bb", b"longer than fifteen characters", b"\xff\x01"])
        return out
    if dtype is np.bool_:
        return rng.integers(0, 2, dims).astype(np.bool_)
    raw = rng.integers(-9, 10, dims)
    if np.dtype(dtype).kind in "iu":
        return raw.astype(dtype)
    real = raw / 4
    if chance(rng, 3):
        real = np.where(rng.integers(0, 4, dims) == 0, rng.choice(SPECIAL, dims), real)
    with np.errstate(all="ignore"):
        return np.asarray(real + 1j * rng.integers(-3, 4, dims) if np.dtype(dtype).kind == "c" else real).astype(dtype)


def ints(rng, numbers, dtype=None):
    """An index tensor, int32 or int64."""
    return np.array(numbers, dtype or pick(rng, [np.int32, np.int64]))


def spoil(rng, array):
    """Now and then another rank, length or wild value: what a kernel must refuse, or take as TensorFlow does."""
    if not chance(rng, 8):
        return array
    kind = int(rng.integers(6))
    if kind == 0:
        return array.reshape((1,) + array.shape)
    if kind == 1:
        return array.reshape(-1)[: max(array.size - 1, 0)]
    if kind == 2 and array.ndim == 1:
        return np.concatenate([array, array[:1]])
    if kind == 3 and array.size == 1:
        return array.reshape(())
    if kind == 4 and array.size and array.dtype.kind == "i":
        array = array.copy()
        array.reshape(-1)[int(rng.integers(array.size))] = pick(
            rng, [np.iinfo(array.dtype).min, np.iinfo(array.dtype).max, -2, 5]
        )
    if kind == 5 and array.ndim == 0:
        return array.reshape((1,))
    return array


from fuzz import array, derived, math, nn  # noqa: E402,F401  (fill GENERATORS)
