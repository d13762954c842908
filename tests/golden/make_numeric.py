#!/usr/bin/env python3
"""Makes numeric/: what numpy and ml_dtypes, whose types TensorFlow uses, say about the small floating-point formats.

numeric/decode.txt   One line per type: its name, then the float32 bits (hexadecimal) of its 256 codes.
numeric/round.txt    One line per float32: its bits, then the codes it rounds to as float16, bfloat16, float8_e5m2 and
                     float8_e4m3fn. NaN codes are written as "nan": which of them is not part of any promise.

    make_numeric.py [TESTS_GOLDEN_FOLDER]
"""

import pathlib
import sys

import ml_dtypes
import numpy as np

EIGHT_BIT = [ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn]
ROUNDED = [(np.float16, np.uint16), (ml_dtypes.bfloat16, np.uint16)] + [(t, np.uint8) for t in EIGHT_BIT]


def decode_lines():
    codes = np.arange(256, dtype=np.uint8)
    for dtype in EIGHT_BIT:
        values = codes.view(dtype).astype(np.float32).view(np.uint32)
        yield " ".join([np.dtype(dtype).name] + [f"{v:08x}" for v in values])


def interesting_floats():
    """Edges of every format, the midpoints between neighbours and what lies just beside them, and random bits."""
    floats = [0.0, 1.0, np.inf, np.nan, 1e-45, 3.4e38, 65504.0, 65520.0, 65519.996, 448.0, 464.0, 465.0, 57344.0, 61440.0]
    for dtype, bits in ROUNDED:
        count = 1 << (8 * np.dtype(bits).itemsize - 1)
        codes = np.arange(0, count, max(1, count // 128), dtype=bits)
        values = codes.view(dtype).astype(np.float32)
        following = (codes + 1).astype(bits).view(dtype).astype(np.float32)
        with np.errstate(all="ignore"):
            middle = ((values.astype(np.float64) + following) / 2).astype(np.float32)
            near = [np.nextafter(middle, np.float32(s)) for s in (-np.inf, np.inf)]
        floats += [*values, *middle, *near[0], *near[1]]
    rng = np.random.default_rng(20)
    floats += list(rng.integers(0, 1 << 31, 500, dtype=np.uint32).view(np.float32))
    floats += list((rng.standard_normal(500) * 10.0 ** rng.integers(-8, 6, 500)).astype(np.float32))
    bits = np.array(floats, np.float32).view(np.uint32)
    return np.unique(np.concatenate([bits, bits ^ np.uint32(1 << 31)])).view(np.float32)


def round_lines():
    floats = interesting_floats()
    with np.errstate(all="ignore"):
        columns = [(floats.astype(dtype), bits) for dtype, bits in ROUNDED]
    for i, f in enumerate(floats):
        line = [f"{f.view(np.uint32):08x}"]
        for values, bits in columns:
            nan = np.isnan(values[i].astype(np.float32))
            line.append("nan" if nan else f"{values[i:i + 1].view(bits)[0]:x}")
        yield " ".join(line)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent) / "numeric"
    folder.mkdir(exist_ok=True)
    (folder / "decode.txt").write_text("\n".join(decode_lines()) + "\n")
    (folder / "round.txt").write_text("\n".join(round_lines()) + "\n")


if __name__ == "__main__":
    main()
