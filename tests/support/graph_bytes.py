"""Writes small GraphDefs byte by byte, so that no other program is needed."""


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, payload):
    if isinstance(payload, str):
        payload = payload.encode()
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def scalar_field(number, value):
    return varint(number << 3) + varint(value)


def attr(name, value):
    return field(5, field(1, name) + field(2, value))


TYPES = {"float": 1, "double": 2, "int32": 3, "string": 7, "int64": 9, "bool": 10, "bfloat16": 14}


def type_attr(name, dtype):
    return attr(name, scalar_field(6, TYPES[dtype]))


def shape_attr(name, dims):
    return attr(name, field(7, b"".join(field(2, scalar_field(1, d)) for d in dims)))


def node(name, op, inputs=(), *attrs, device=""):
    body = field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs) + (field(4, device) if device else b"")
    return field(1, body + b"".join(attrs))


def placeholder(name, dtype, dims=None):
    shape = [] if dims is None else [shape_attr("shape", dims)]
    return node(name, "Placeholder", [], type_attr("dtype", dtype), *shape)


def graph(*nodes, producer=2474):
    return b"".join(nodes) + field(4, scalar_field(1, producer))
