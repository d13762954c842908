#!/usr/bin/env python3
"""Writes ops.json: the declaration of every op that TensorFlow registers, and known_ops.txt: their names alone.

Only declarations are kept, no documentation. ops.json is {"tensorflow": VERSION, "ops": [OP, ...]}, sorted by name, one op
to a line; keys whose value is empty, false or absent are left out:

    OP   = {"name", "in": [ARG], "out": [ARG], "attrs": [ATTR], "stateful", "commutative", "aggregate",
            "uninitialized_input", "distributed", "deprecated": VERSION}
    ARG  = {"name", "type" | "type_attr" | "type_list_attr", "number_attr", "ref"}
    ATTR = {"name", "type", "default", "minimum", "allowed"}

A type is its wire name without DT_ ("FLOAT"). "deprecated" is the first producer version that may not use the op.
A default or an allowed value is {FIELD: VALUE} after the field of AttrValue that holds it: {"i": 1}, {"type": "FLOAT"},
{"list": {"i": [1, 2]}}, {"list": {}} for an empty list; bytes are Latin-1 text, shapes null (unknown rank) or a list of
sizes, tensors and functions their text form. Floats that JSON lacks are "inf", "-inf", "nan".

    dump_ops.py [OUTPUT_FOLDER]        (default: the folder of this script)
"""

import json
import math
import os
import pathlib
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import op_def_pb2
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import op_def_registry  # noqa: F401  (loads every generated op module)
from tensorflow.python.client import pywrap_tf_session as c_api


def type_name(number):
    return types_pb2.DataType.Name(number).removeprefix("DT_")


def number(value):
    return value if math.isfinite(value) else str(value)


def shape(value):
    return None if value.unknown_rank else [d.size for d in value.dim]


def text(message):
    return text_format.MessageToString(message, as_one_line=True)


CONVERT = {
    "s": lambda v: v.decode("latin-1"), "i": int, "f": number, "b": bool, "type": type_name, "shape": shape,
    "tensor": text, "func": text, "placeholder": str,
}


def attr_value(value):
    kind = value.WhichOneof("value")
    if kind != "list":
        return {kind: CONVERT[kind](getattr(value, kind))}
    return {"list": {field.name: [CONVERT[field.name](v) for v in held] for field, held in value.list.ListFields()}}


def arg(a):
    out = {"name": a.name}
    if a.type:
        out["type"] = type_name(a.type)
    for key in ("type_attr", "number_attr", "type_list_attr"):
        if getattr(a, key):
            out[key] = getattr(a, key)
    if a.is_ref:
        out["ref"] = True
    return out


def attr(a):
    out = {"name": a.name, "type": a.type}
    if a.HasField("default_value"):
        out["default"] = attr_value(a.default_value)
    if a.has_minimum:
        out["minimum"] = a.minimum
    if a.HasField("allowed_values"):
        out["allowed"] = attr_value(a.allowed_values)
    return out


def declaration(op):
    out = {
        "name": op.name, "in": [arg(a) for a in op.input_arg], "out": [arg(a) for a in op.output_arg],
        "attrs": [attr(a) for a in op.attr], "stateful": op.is_stateful, "commutative": op.is_commutative,
        "aggregate": op.is_aggregate, "uninitialized_input": op.allows_uninitialized_input,
        "distributed": op.is_distributed_communication,
    }
    if op.HasField("deprecation"):
        out["deprecated"] = op.deprecation.version
    return {key: value for key, value in out.items() if value or key == "name"}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    registered = op_def_pb2.OpList.FromString(c_api.TF_GetBuffer(c_api.TF_GetAllOpList()))
    ops = sorted((declaration(op) for op in registered.op), key=lambda op: op["name"])
    lines = ",\n".join(json.dumps(op, separators=(",", ":"), allow_nan=False) for op in ops)
    (folder / "ops.json").write_text(f'{{"tensorflow":"{tf.__version__}","ops":[\n{lines}\n]}}\n')
    (folder / "known_ops.txt").write_text("".join(op["name"] + "\n" for op in ops))
    print(f"{len(ops)} ops, TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
