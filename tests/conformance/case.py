"""One conformance case: a folder with case.json, a graph, inputs and the answers of TensorFlow.

The form is "thalweg.conformance/1": steps with feeds, fetches and targets that run in one session; a step may extend the
graph, start a new session or close it, and may be expected to fail with one of some codes.
"""
import json
import os

import numpy as np


class Case:
    def __init__(self, path):
        self.path = os.path.abspath(path)
        with open(os.path.join(self.path, "case.json"), encoding="utf-8") as file:
            self.description = json.load(file)
        self.steps = self.description["steps"]
        self.limits = self.description.get("limits", {})
        self.session = self.description.get("session", {})

    @property
    def graph(self):
        return self.description["graph"]

    @property
    def saved_model(self):
        return self.description.get("saved_model")

    @property
    def needs_script(self):
        return len(self.steps) > 1 or any(step.get("extend") or step.get("close") for step in self.steps)

    def arrays(self, name):
        file = os.path.join(self.path, name)
        if not os.path.exists(file):
            return {}
        with np.load(file, allow_pickle=False) as archive:
            return dict(archive)

    def lay_out(self, folder):
        """Makes `folder` a working directory for the case: its files linked, what is too large to keep generated."""
        for name in os.listdir(self.path):
            if name not in ("case.json", "inputs.npz", "expected.npz"):
                os.symlink(os.path.join(self.path, name), os.path.join(folder, name))
        os.mkdir(os.path.join(folder, "tmp"))
        chain = self.description.get("generate")
        if chain:
            write_chain(chain, os.path.join(folder, self.graph))

    def feeds(self, index, inputs, folder):
        """What step `index` is fed, with the place holders of paths filled in."""
        values = {}
        for tensor in self.steps[index].get("feeds", []):
            value = of_step(inputs, tensor, index)
            if value is not None:
                values[tensor] = with_paths(value, folder)
        return values


def tensor_name(name):
    return name if ":" in name or name.startswith("^") else name + ":0"


def of_step(arrays, tensor, index):
    """In step k of several, tensor T has the key T#k if there is one, else T; the ":0" may be left out."""
    for key in (tensor, tensor_name(tensor)):
        if f"{key}#{index}" in arrays:
            return arrays[f"{key}#{index}"]
    return arrays.get(tensor, arrays.get(tensor_name(tensor)))


def with_paths(array, folder):
    """{dir} in a fed string is the working directory, {tmp} an empty folder in it."""
    if array.dtype.kind != "S":
        return array
    here = os.fsencode(folder)
    texts = [text.replace(b"{dir}", here).replace(b"{tmp}", here + b"/tmp") for text in array.ravel()]
    return np.array(texts, dtype="S").reshape(array.shape)


# ---- graphs that are too large to keep --------------------------------------------------------------------------------


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def attribute(name, value):
    return field(5, field(1, name) + field(2, value))


DT_FLOAT = b"\x30\x01"  # AttrValue.type = 1


def write_chain(chain, path):
    """Nodes n0 ... n(N-1), each with the one before as its (control) input; Identity chains start at the constant 2.5."""
    is_identity = chain["op"] == "Identity"
    value = field(8, b"\x08\x01" + field(2, b"") + field(5, b"\x00\x00\x20\x40"))
    with open(path, "wb") as out:
        first = field(1, b"n0") + field(2, b"Const" if is_identity else b"NoOp")
        if is_identity:
            first += attribute(b"dtype", DT_FLOAT) + attribute(b"value", value)
        out.write(field(1, first))
        for k in range(1, chain["nodes"]):
            node = field(1, b"n%d" % k) + field(2, chain["op"].encode())
            node += field(3, b"n%d" % (k - 1) if is_identity else b"^n%d" % (k - 1))
            out.write(field(1, node + (attribute(b"T", DT_FLOAT) if is_identity else b"")))
        out.write(field(4, b"\x08" + varint(2185)))  # versions.producer
