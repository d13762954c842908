#!/usr/bin/env python3
"""Writes wire/: small messages serialized by TensorFlow's own protocol buffers, for tests of our parsing.

NAME.pb is the binary form, NAME.pbtxt the text form of the same message; the kind of message is told by
wire/index.json: {"NAME": {"message": "GraphDef", "text": true, "says": "..."}}. Map entries stand in an order that is
the same in every run but not that of another writer: compare messages, not bytes.

    make_wire.py [OUTPUT_FOLDER]        (default: wire/ beside this script)
"""

import json
import os
import pathlib
import struct
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # noqa: F401  (before its message modules)
from google.protobuf import text_format
from tensorflow.core.framework import attr_value_pb2
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import step_stats_pb2
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.core.protobuf import saved_model_pb2

DT = types_pb2.DataType
INDEX = {}


def write(folder, name, message, says, text=True, tail=b""):
    data = message.SerializeToString(deterministic=True) + tail
    (folder / f"{name}.pb").write_bytes(data)
    if text:
        (folder / f"{name}.pbtxt").write_text(text_format.MessageToString(message))
    INDEX[name] = {"message": message.DESCRIPTOR.name, "text": text, "says": says}


def graph(producer=2474, min_consumer=0, bad=()):
    g = graph_pb2.GraphDef()
    g.versions.producer = producer
    g.versions.min_consumer = min_consumer
    g.versions.bad_consumers.extend(bad)
    return g


def node(where, name, op, inputs=(), device="", **attrs):
    n = where.add()
    n.name, n.op, n.device = name, op, device
    n.input.extend(inputs)
    for key, value in attrs.items():
        n.attr[key].CopyFrom(value)
    return n


def a_type(t):
    return attr_value_pb2.AttrValue(type=t)


def dims(*sizes):
    value = attr_value_pb2.AttrValue().shape
    for size in sizes:
        value.dim.add().size = size
    return value


def tensor(dtype, sizes, **fields):
    t = tensor_pb2.TensorProto(dtype=dtype, **fields)
    t.tensor_shape.CopyFrom(dims(*sizes))
    return t


def const(where, name, t):
    return node(where, name, "Const", dtype=a_type(t.dtype), value=attr_value_pb2.AttrValue(tensor=t))


def varint(value):
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def unknown_fields():
    """One field of every wire type, with numbers no message here has."""
    payload = b"kept as it is"
    group = varint(1005 << 3 | 3) + varint(1 << 3 | 0) + varint(7) + varint(1005 << 3 | 4)
    return (varint(1001 << 3 | 0) + varint(2**63 + 5) + varint(1002 << 3 | 1) + struct.pack("<d", 0.15625)
            + varint(1003 << 3 | 2) + varint(len(payload)) + payload + varint(1004 << 3 | 5)
            + struct.pack("<I", 0xDEADBEEF) + group)


def delimited(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def add_graph():
    g = graph()
    node(g.node, "x", "Placeholder", dtype=a_type(DT.DT_FLOAT), shape=attr_value_pb2.AttrValue(shape=dims(-1, 3)))
    const(g.node, "c", tensor(DT.DT_FLOAT, [3], float_val=[1.5, -2.0, 0.25]))
    node(g.node, "y", "AddV2", ["x", "c:0", "^c"], "/device:CPU:0", T=a_type(DT.DT_FLOAT))
    return g


def all_attrs():
    g = graph()
    n = node(g.node, "every/kind", "OpThatNobodyHas", ["a", "b:2", "^d"], "/job:w/replica:0/task:1/device:GPU:3")
    unknown = attr_value_pb2.AttrValue()
    unknown.shape.unknown_rank = True
    named = dims(2, -1)
    named.dim[0].name = "batch"
    function = attr_value_pb2.AttrValue()
    function.func.name = "body"
    function.func.attr["T"].type = DT.DT_INT32
    function.func.attr["inner"].func.name = "deeper"
    scalars = {
        "an_s": attr_value_pb2.AttrValue(s=b"bytes \x00\xff\xfe \"quoted\" \n\t'"), "an_i": attr_value_pb2.AttrValue(i=-2**63),
        "an_f": attr_value_pb2.AttrValue(f=-2.0**-149), "an_inf": attr_value_pb2.AttrValue(f=float("-inf")),
        "a_nan": attr_value_pb2.AttrValue(f=float("nan")), "a_b": attr_value_pb2.AttrValue(b=True),
        "false": attr_value_pb2.AttrValue(b=False), "a_zero": attr_value_pb2.AttrValue(i=0),
        "a_type": a_type(DT.DT_BFLOAT16_REF), "a_shape": attr_value_pb2.AttrValue(shape=named), "a_scalar_shape": attr_value_pb2.AttrValue(shape=dims()),
        "an_unknown_shape": unknown, "a_func": function, "a_placeholder": attr_value_pb2.AttrValue(placeholder="T"),
        "a_tensor": attr_value_pb2.AttrValue(tensor=tensor(DT.DT_INT64, [2, 2], int64_val=[1, -1])),
        "unset": attr_value_pb2.AttrValue(),
    }
    lists = {
        "list_s": {"s": [b"loc:@every", b"", b"\x80"]}, "list_i": {"i": [0, -1, 2**63 - 1]}, "list_f": {"f": [0.1, -0.0]},
        "list_b": {"b": [True, False]}, "list_type": {"type": [DT.DT_FLOAT, DT.DT_RESOURCE, DT.DT_FLOAT4_E2M1FN]},
        "list_shape": {"shape": [dims(1), unknown.shape]}, "list_tensor": {"tensor": [tensor(DT.DT_BOOL, [], bool_val=[True])]},
        "list_func": {"func": [function.func]}, "list_empty": {},
    }
    for key, value in scalars.items():
        n.attr[key].CopyFrom(value)
    for key, value in lists.items():
        n.attr[key].list.CopyFrom(attr_value_pb2.AttrValue.ListValue(**value))
    n.experimental_debug_info.original_node_names.extend(["first", "second"])
    n.experimental_debug_info.original_func_names.extend(["", "f"])
    n.experimental_type.type_id = 1
    return g


TYPED = {
    "float": ("FLOAT", {"float_val": [1.0, -0.0, 3.4e38, 1e-45, float("inf"), float("nan")]}),
    "double": ("DOUBLE", {"double_val": [0.1, 5e-324, float("-inf"), 2.0, 3.0, 4.0]}),
    "complex64": ("COMPLEX64", {"scomplex_val": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}),
    "complex128": ("COMPLEX128", {"dcomplex_val": [0.5, -0.5] * 6}),
    "int64": ("INT64", {"int64_val": [-2**63, 2**63 - 1, 0, 1, 2, 3]}),
    "uint64": ("UINT64", {"uint64_val": [2**64 - 1, 2**63, 0, 1, 2, 3]}),
    "uint32": ("UINT32", {"uint32_val": [2**32 - 1, 0, 1, 2, 3, 4]}),
    "bool": ("BOOL", {"bool_val": [True, False, True, True, False, False]}),
    "half": ("HALF", {"half_val": [0x3C00, 0x8000, 0x7C00, 0x7E00, 0x0001, 0xFBFF]}),
    "bfloat16": ("BFLOAT16", {"half_val": [0x3F80, 0x8000, 0x7F80, 0x7FC0, 0x0001, 0xFF7F]}),
    "string": ("STRING", {"string_val": [b"", b"plain", b"\x00\xff", "größe".encode(), b"a\nb", b"x" * 40]}),
}
for small in ("INT32", "INT16", "INT8", "QINT8", "QINT16", "QINT32"):
    TYPED[small.lower()] = (small, {"int_val": [-128, 127, 0, 1, -1, 5]})
for small in ("UINT16", "UINT8", "QUINT8", "QUINT16"):
    TYPED[small.lower()] = (small, {"int_val": [255, 0, 1, 2, 3, 128]})
for small in ("INT4", "INT2"):
    TYPED[small.lower()] = (small, {"int_val": [-2, -1, 0, 1, 1, 0]})
for small in ("UINT4", "UINT2"):
    TYPED[small.lower()] = (small, {"int_val": [3, 2, 1, 0, 1, 2]})
for small in ("E5M2", "E4M3FN", "E4M3FNUZ", "E4M3B11FNUZ", "E5M2FNUZ"):
    TYPED[f"float8_{small.lower()}"] = (f"FLOAT8_{small}", {"float8_val": bytes([0, 1, 0x38, 0x80, 0x7F, 0xFF])})


def typed_tensors():
    g = graph()
    for name, (dtype, fields) in TYPED.items():
        const(g.node, name, tensor(DT.Value(f"DT_{dtype}"), [2, 3], **fields))
    handle = tensor(DT.DT_RESOURCE, [])
    r = handle.resource_handle_val.add()
    r.device, r.container, r.name, r.hash_code, r.maybe_type_name = "/device:CPU:0", "box", "v", 2**63, "Var"
    d = r.dtypes_and_shapes.add()
    d.dtype = DT.DT_FLOAT
    d.shape.CopyFrom(dims(2, -1))
    const(g.node, "resource", handle)
    variant = tensor(DT.DT_VARIANT, [])
    v = variant.variant_val.add()
    v.type_name, v.metadata = "made::Up", b"\x00\x01"
    v.tensors.add().CopyFrom(tensor(DT.DT_INT32, [], int_val=[7]))
    const(g.node, "variant", variant)
    return g


def content_tensors():
    """Bytes of every fixed-size type, six elements each, written as raw content."""
    g = graph()
    raw = bytes(range(96))
    sizes = {"float": 4, "double": 8, "complex64": 8, "complex128": 16, "int64": 8, "uint64": 8, "uint32": 4, "bool": 1,
             "half": 2, "bfloat16": 2, "int32": 4, "int16": 2, "int8": 1, "uint16": 2, "uint8": 1, "qint8": 1,
             "quint8": 1, "qint16": 2, "quint16": 2, "qint32": 4, "float8_e5m2": 1, "float8_e4m3fn": 1}
    for name, size in sizes.items():
        content = bytes([1, 0, 1, 1, 0, 0]) if name == "bool" else raw[:6 * size]
        const(g.node, name, tensor(DT.Value(f"DT_{TYPED[name][0]}"), [3, 2], tensor_content=content))
    return g


def short_tensors():
    g = graph()
    const(g.node, "none_given", tensor(DT.DT_FLOAT, [4]))
    const(g.node, "last_repeats", tensor(DT.DT_INT32, [2, 3], int_val=[1, 2]))
    const(g.node, "one_for_all", tensor(DT.DT_DOUBLE, [1000], double_val=[0.5]))
    const(g.node, "too_many", tensor(DT.DT_INT64, [2], int64_val=[1, 2, 3]))
    const(g.node, "empty", tensor(DT.DT_FLOAT, [3, 0, 2]))
    const(g.node, "empty_with_values", tensor(DT.DT_FLOAT, [0], float_val=[1.0]))
    const(g.node, "string_repeats", tensor(DT.DT_STRING, [3], string_val=[b"a", b"b"]))
    const(g.node, "content_wins", tensor(DT.DT_INT32, [2], int_val=[9, 9], tensor_content=struct.pack("<2i", 1, 2)))
    const(g.node, "scalar", tensor(DT.DT_FLOAT, [], float_val=[3.0]))
    const(g.node, "complex_last_repeats", tensor(DT.DT_COMPLEX64, [2], scomplex_val=[1.0, 2.0]))
    return g


def function_library():
    g = graph()
    node(g.node, "x", "Placeholder", dtype=a_type(DT.DT_FLOAT))
    node(g.node, "call", "twice_and_one", ["x"], T=a_type(DT.DT_FLOAT))
    f = g.library.function.add()
    f.signature.name = "twice_and_one"
    f.signature.input_arg.add(name="a", type_attr="T")
    f.signature.output_arg.add(name="doubled", type_attr="T")
    f.signature.output_arg.add(name="parts", type_attr="T", number_attr="N")
    t = f.signature.attr.add(name="T", type="type")
    t.allowed_values.list.type.extend([DT.DT_FLOAT, DT.DT_INT32])
    count = f.signature.attr.add(name="N", type="int", has_minimum=True, minimum=1)
    count.default_value.i = 2
    f.signature.control_output.append("side")
    f.signature.is_stateful = True
    node(f.node_def, "sum", "AddV2", ["a", "a:0"], T=attr_value_pb2.AttrValue(placeholder="T"))
    node(f.node_def, "axis", "Const", [], dtype=a_type(DT.DT_INT32), value=attr_value_pb2.AttrValue(tensor=tensor(DT.DT_INT32, [], int_val=[0])))
    node(f.node_def, "split", "Split", ["axis:output:0", "sum:z:0", "^side"], T=attr_value_pb2.AttrValue(placeholder="T"),
         num_split=attr_value_pb2.AttrValue(placeholder="N"))
    node(f.node_def, "side", "NoOp", ["^a"])
    f.ret["doubled"] = "sum:z:0"
    f.ret["parts"] = "split:output"
    f.control_ret["side"] = "side"
    f.attr["_noinline"].b = True
    f.arg_attr[0].attr["_user_specified_name"].s = b"a"
    f.resource_arg_unique_id[0] = 3
    g.library.gradient.add(function_name="twice_and_one", gradient_func="twice_and_one_grad")
    g.library.registered_gradients.add(gradient_func="custom", registered_op_type="CustomGradient-1")
    return g


def debug_info():
    g = add_graph()
    d = g.debug_info
    d.files.extend(["model.py", "layers.py"])
    frame = d.frames_by_id[9]
    frame.file_index, frame.line, frame.col, frame.func, frame.code = 1, 12, 0, "build", "y = x + c"
    d.frames_by_id[7].line = 40
    d.traces_by_id[2**64 - 1].frame_id.extend([7, 9])
    d.name_to_trace_id["y"] = 2**64 - 1
    d.traces["x"].file_line_cols.add(file_index=0, line=5)
    return g


def control_flow():
    """A loop in the older form: Enter, Merge, Switch, NextIteration and Exit, with a back edge."""
    g = graph()
    i32 = a_type(DT.DT_INT32)
    const(g.node, "zero", tensor(DT.DT_INT32, [], int_val=[0]))
    node(g.node, "enter", "Enter", ["zero"], T=i32, frame_name=attr_value_pb2.AttrValue(s=b"loop"),
         is_constant=attr_value_pb2.AttrValue(b=False), parallel_iterations=attr_value_pb2.AttrValue(i=10))
    node(g.node, "merge", "Merge", ["enter", "next"], T=i32, N=attr_value_pb2.AttrValue(i=2))
    const(g.node, "limit", tensor(DT.DT_INT32, [], int_val=[5])).input.append("^merge")
    node(g.node, "less", "Less", ["merge", "limit"], T=i32)
    node(g.node, "cond", "LoopCond", ["less"])
    node(g.node, "switch", "Switch", ["merge", "cond"], T=i32, _class=attr_value_pb2.AttrValue(
        list=attr_value_pb2.AttrValue.ListValue(s=[b"loc:@merge"])))
    node(g.node, "one", "Const", ["^switch"], dtype=i32, value=attr_value_pb2.AttrValue(tensor=tensor(DT.DT_INT32, [], int_val=[1])))
    node(g.node, "add", "AddV2", ["switch:1", "one"], T=i32)
    node(g.node, "next", "NextIteration", ["add"], T=i32)
    node(g.node, "exit", "Exit", ["switch"], T=i32)
    return g


def nested_unknown():
    """The same unknown fields inside a node and inside an attribute value, as a later writer might add them."""
    g = add_graph()
    inner = g.node[0].attr["dtype"].SerializeToString() + unknown_fields()
    n = node_def_pb2.NodeDef()
    n.CopyFrom(g.node[0])
    del n.attr["dtype"]
    raw = n.SerializeToString(deterministic=True) + delimited(5, delimited(1, b"dtype") + delimited(2, inner)) + unknown_fields()
    first = delimited(1, raw)
    del g.node[0]
    return graph_pb2.GraphDef.FromString(first + g.SerializeToString(deterministic=True))


def meta_graph():
    m = meta_graph_pb2.MetaGraphDef()
    info = m.meta_info_def
    info.meta_graph_version, info.tensorflow_version, info.tensorflow_git_version = "v1", "2.21.0", "unknown"
    info.tags.append("serve")
    info.stripped_default_attrs = True
    info.function_aliases["f_1"] = "f"
    op = info.stripped_op_list.op.add(name="Placeholder", is_stateful=False)
    op.output_arg.add(name="output", type_attr="dtype")
    op.attr.add(name="dtype", type="type")
    m.graph_def.CopyFrom(add_graph())
    m.saver_def.filename_tensor_name, m.saver_def.save_tensor_name = "save/Const:0", "save/control:0"
    m.saver_def.restore_op_name, m.saver_def.max_to_keep, m.saver_def.version = "save/restore_all", 5, 2
    m.collection_def["losses"].node_list.value.append("y:0")
    m.collection_def["raw"].bytes_list.value.append(b"\x00\x01")
    m.collection_def["steps"].int64_list.value.extend([1, -1])
    m.collection_def["rates"].float_list.value.append(0.5)
    s = m.signature_def["serving_default"]
    s.method_name = "tensorflow/serving/predict"
    s.inputs["x"].name, s.inputs["x"].dtype = "x:0", DT.DT_FLOAT
    s.inputs["x"].tensor_shape.CopyFrom(dims(-1, 3))
    s.outputs["y"].name, s.outputs["y"].dtype = "y:0", DT.DT_FLOAT
    s.outputs["y"].tensor_shape.unknown_rank = True
    sparse = s.inputs["sparse"].coo_sparse
    sparse.values_tensor_name, sparse.indices_tensor_name, sparse.dense_shape_tensor_name = "v:0", "i:0", "d:0"
    a = m.asset_file_def.add(filename="words.txt")
    a.tensor_info.name = "asset:0"
    root = m.object_graph_def.nodes.add()
    root.user_object.identifier = "_generic_user_object"
    root.user_object.version.producer = 1
    root.children.add(node_id=1, local_name="v")
    v = m.object_graph_def.nodes.add()
    v.variable.dtype, v.variable.trainable, v.variable.name = DT.DT_FLOAT, True, "v"
    v.variable.shape.CopyFrom(dims(2))
    c = m.object_graph_def.concrete_functions["f"]
    c.bound_inputs.append(1)
    pair = c.canonicalized_input_signature.tuple_value.values.add()
    pair.tensor_spec_value.name, pair.tensor_spec_value.dtype = "x", DT.DT_FLOAT
    c.output_signature.int64_value = -3
    return m


def saved_model():
    s = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    s.meta_graphs.add().CopyFrom(meta_graph())
    second = s.meta_graphs.add()
    second.meta_info_def.tags.extend(["serve", "gpu"])
    return s


def run_metadata():
    m = config_pb2.RunMetadata()
    d = m.step_stats.dev_stats.add(device="/job:localhost/replica:0/task:0/device:CPU:0")
    d.thread_names[1] = "worker"
    s = step_stats_pb2.NodeExecStats(
        node_name="y", all_start_micros=1_700_000_000_000_000, op_start_rel_micros=1, op_end_rel_micros=9, all_end_rel_micros=11,
        timeline_label="y = AddV2(x, c)", scheduled_micros=1_699_999_999_999_999, thread_id=1, all_start_nanos=1_700_000_000_000_000_123,
        op_start_rel_nanos=1042, op_end_rel_nanos=9077, all_end_rel_nanos=11_000, scheduled_nanos=1_699_999_999_999_999_000)
    used = s.memory.add(allocator_name="cpu", total_bytes=64, peak_bytes=64, live_bytes=-1)
    used.allocation_records.add(alloc_micros=1, alloc_bytes=64)
    o = s.output.add(slot=0)
    o.tensor_description.dtype = DT.DT_FLOAT
    o.tensor_description.shape.CopyFrom(dims(2, 3))
    o.tensor_description.allocation_description.requested_bytes = 24
    s.memory_stats.temp_memory_size = 8
    d.node_stats.add().CopyFrom(s)
    c = m.cost_graph.node.add(name="y", id=2, device="/device:CPU:0", compute_cost=8, is_final=True)
    c.input_info.add(preceding_node=0, preceding_port=0)
    c.output_info.add(size=24, alias_input_port=-1, dtype=DT.DT_FLOAT)
    m.partition_graphs.add().CopyFrom(add_graph())
    return m


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "wire"
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, "empty", graph_pb2.GraphDef(), "no bytes at all: a graph without nodes")
    write(folder, "add", add_graph(), "three nodes, a port, a control input, a device")
    write(folder, "attrs", all_attrs(), "every kind of attribute, scalar and list, and the newer fields of a node")
    write(folder, "tensors", typed_tensors(), "a 2x3 constant of every dtype in its typed field; a handle; a variant")
    write(folder, "contents", content_tensors(), "3x2 constants given by raw bytes")
    write(folder, "short_tensors", short_tensors(), "fewer or more values than elements, empty tensors")
    write(folder, "functions", function_library(), "a function with attrs, a list output, control outputs, gradients")
    write(folder, "versions", graph(1395, 12, [20, 21]), "versions only")
    old = graph()
    old.ClearField("versions")
    old.version = 8
    node(old.node, "n", "NoOp")
    write(folder, "old_version", old, "the field that came before `versions`")
    write(folder, "debug_info", debug_info(), "stack traces of nodes")
    write(folder, "loop", control_flow(), "a v1 loop: an edge that goes back, a colocation attribute")
    write(folder, "unknown_top", add_graph(), "unknown fields of all wire types after the graph", text=False, tail=unknown_fields())
    write(folder, "unknown_nested", nested_unknown(), "unknown fields in a node and in an attribute value", text=False)
    write(folder, "meta_graph", meta_graph(), "signatures, collections, saver, assets, object graph")
    write(folder, "saved_model", saved_model(), "two meta graphs with different tags")
    write(folder, "run_metadata", run_metadata(), "step statistics, cost graph, partition graphs")
    (folder / "index.json").write_text(json.dumps(INDEX, indent=1) + "\n")
    print(f"{len(INDEX)} messages, {sum(p.stat().st_size for p in folder.iterdir())} bytes")


if __name__ == "__main__":
    main()
