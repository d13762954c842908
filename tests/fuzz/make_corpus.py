#!/usr/bin/env python3
"""Writes corpus/loader: small GraphDefs that lead a fuzzer into every part of the loader, legal ones and broken ones.

Needs nothing but Python: the messages are encoded here. tests/golden/wire holds more, written by TensorFlow.

    make_corpus.py [OUTPUT_FOLDER]        (default: corpus/loader beside this script)
"""

import pathlib
import struct
import sys


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A field: bytes and text are length-delimited, numbers are varints."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def attr(name, value):
    return field(5, field(1, name) + field(2, value))


def type_attr(name, dtype=1):
    return attr(name, field(6, dtype))


def node(name, op, inputs=(), *attrs, device=""):
    body = field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs)
    return field(1, body + (field(4, device) if device else b"") + b"".join(attrs))


def shape(*dims):
    return b"".join(field(2, field(1, d & (1 << 64) - 1)) for d in dims)


def const(name, dims, content=b"", more=b"", dtype=1):
    tensor = field(1, dtype) + field(2, shape(*dims)) + (field(4, content) if content else b"") + more
    return node(name, "Const", (), type_attr("dtype", dtype), attr("value", field(8, tensor)))


def placeholder(name, dtype=1, dims=None):
    return node(name, "Placeholder", (), type_attr("dtype", dtype), *([] if dims is None else [attr("shape", field(7, shape(*dims)))]))


FUNCTION = field(2, field(1, field(1, field(1, "Twice") + field(2, field(1, "x") + field(4, "T")) + field(3, field(1, "y") + field(4, "T"))
                                       + field(4, field(1, "T") + field(2, "type")))
                             + field(4, field(1, "y") + field(2, "d:z:0"))
                             + field(3, field(1, "d") + field(2, "AddV2") + field(3, "x") + field(3, "x")
                                     + attr("T", field(9, "T")))) + field(2, field(1, "Twice") + field(2, "TwiceGrad")))

LOOP = (const("zero", (), struct.pack("<f", 0)) + node("enter", "Enter", ("zero",), type_attr("T"), attr("frame_name", field(2, "w")))
        + node("merge", "Merge", ("enter", "next"), type_attr("T"), attr("N", field(3, 2)))
        + const("limit", (), struct.pack("<f", 9)) + node("less", "Less", ("merge", "limit"), type_attr("T"))
        + node("cond", "LoopCond", ("less",)) + node("switch", "Switch", ("merge", "cond"), type_attr("T"))
        + node("next", "NextIteration", ("switch:1",), type_attr("T")) + node("exit", "Exit", ("switch",), type_attr("T")))

SEEDS = {
    "noop": node("n", "NoOp"),
    "add": placeholder("x", dims=(-1, 3)) + const("c", (3,), more=field(5, struct.pack("<f", 2))) + node("y", "AddV2", ("x", "c", "^x"), type_attr("T")),
    "reverse_order": node("y", "Neg", ("x:0",), type_attr("T"), device="/device:CPU:0") + placeholder("x"),
    "strings": const("s", (2,), more=field(8, "a") + field(8, "bc"), dtype=7),
    "string_content": const("s", (2,), b"\x01\x02abc", dtype=7),
    "large_content": const("c", (2048,), bytes(8192)),
    "short_content": const("c", (2,), b"1234"),
    "huge_repeat": const("c", (1 << 40,), more=field(5, struct.pack("<f", 1))),
    "overflow_shape": const("c", (1 << 40, 1 << 40)),
    "reshape": placeholder("x", dims=(6,)) + const("s", (2,), struct.pack("<2i", 2, 3), dtype=3)
               + node("y", "Reshape", ("x", "s"), type_attr("T"), type_attr("Tshape", 3)),
    "concat": placeholder("x", dims=(2, 2)) + const("axis", (), struct.pack("<i", 1), dtype=3)
              + node("y", "ConcatV2", ("x", "x", "axis"), type_attr("T"), attr("N", field(3, 2))),
    "conv": placeholder("x", dims=(1, 8, 8, 3)) + placeholder("w", dims=(3, 3, 3, 4))
            + node("y", "Conv2D", ("x", "w"), type_attr("T"), attr("strides", field(1, field(3, bytes([1, 1, 1, 1])))), attr("padding", field(2, "SAME"))),
    "split": placeholder("x", dims=(6, 2)) + const("axis", (), struct.pack("<i", 0), dtype=3)
             + node("y", "Split", ("axis", "x"), type_attr("T"), attr("num_split", field(3, 3))),
    "variable": node("v", "VariableV2", (), type_attr("dtype"), attr("shape", field(7, shape(2)))) + placeholder("x")
                + node("a", "Assign", ("v", "x"), type_attr("T")),
    "loop": LOOP,
    "function": FUNCTION + placeholder("x") + node("y", "Twice", ("x",), type_attr("T")),
    "colocation": node("a", "NoOp", (), attr("_class", field(1, field(2, "loc:@a")))),
    "versions": node("n", "NoOp") + field(4, field(1, 1286) + field(2, 12) + field(3, 7)),
    "bad_edges": node("n", "NoOp", ("^", "a:", ":0", "^a:1", "a:99999999999", "")),
    "bad_name": node("has space", "NoOp") + node("", "NoOp") + node("n", "") + node("n", "NoSuchOp"),
    "cycle": node("a", "NoOp", ("^b",)) + node("b", "NoOp", ("^a",)),
    "bad_attrs": node("n", "Neg", ("n",), type_attr("T", 250), attr("T", b""), attr("x", field(3, 1)), attr("_h", field(9, "p"))),
    "nested_func": node("n", "NoOp", (), attr("_f", field(10, field(1, "f") + field(2, field(1, "g") + field(2, field(10, field(1, "g"))))))),
    "unknown_fields": node("n", "NoOp") + field(1011, b"abc") + b"\xa3\x3f\x08\x01\xa4\x3f",
    "truncated": node("n", "NoOp") + b"\x0a\x7f\x01",
    "text": b'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }\nversions { producer: 21 }\n',
    "bad_text": b'node { name: "x" opp: 3 }',
    "saved_model": b"\x08\x01\x12\x02\x0a\x00",
}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "corpus/loader"
    folder.mkdir(parents=True, exist_ok=True)
    for name, seed in SEEDS.items():
        (folder / name).write_bytes(seed)


if __name__ == "__main__":
    main()
