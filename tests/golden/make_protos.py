#!/usr/bin/env python3
"""Writes proto/*.proto: thalweg's own descriptions of the public graph, SavedModel and checkpoint messages.

Only facts are taken from an installed TensorFlow: names, numbers and types, read from its compiled descriptors. The
package becomes `thalweg`, so that both can live in one process; the files import each other as "thalweg/X.proto".

    make_protos.py [OUTPUT_FOLDER]        (default: proto/ of this repository)
"""

import importlib
import pathlib
import sys

from google.protobuf import descriptor_pb2

# Files asked for by name; what they import is added by itself.
ROOTS = [
    "tensorflow.core.framework.graph_pb2",
    "tensorflow.core.framework.step_stats_pb2",
    "tensorflow.core.framework.device_attributes_pb2",
    "tensorflow.core.framework.tensor_slice_pb2",
    "tensorflow.core.protobuf.config_pb2",
    "tensorflow.core.protobuf.saved_model_pb2",
    "tensorflow.core.protobuf.tensor_bundle_pb2",
    "tensorflow.core.util.saved_tensor_slice_pb2",
]

# Of these files only the messages named are kept. The rest of config.proto describes sessions of TensorFlow itself, and
# its RunOptions would be a second class of that name in namespace thalweg.
ONLY = {"config": {"RunMetadata", "SessionMetadata"}}

# What each file is about: the words of its header line.
ABOUT = {
    "allocation_description": "One allocation of a device allocator, as step statistics report it",
    "attr_value": "Values of node attributes",
    "config": "What a step reports back",
    "cost_graph": "Estimated and measured cost of nodes",
    "device_attributes": "What a device is and where it sits",
    "full_type": "Full types: structured descriptions of what a tensor holds",
    "function": "Functions and the library that holds them",
    "graph": "A graph: nodes, functions, versions",
    "graph_debug_info": "Source locations of nodes",
    "meta_graph": "A graph with signatures, saver and assets",
    "node_def": "One node of a graph",
    "op_def": "Declaration of an op: its inputs, outputs and attributes",
    "resource_handle": "Handles of resources",
    "saved_model": "The top message of a SavedModel",
    "saved_object_graph": "The objects of a SavedModel and how they hang together",
    "saved_tensor_slice": "Entries of the older checkpoint format",
    "saver": "Names of the save and restore nodes of a graph",
    "step_stats": "What each node of a step did, and when",
    "struct": "Nested values, used for signatures of functions",
    "tensor": "Tensor values",
    "tensor_bundle": "Header and entries of a tensor bundle (checkpoint)",
    "tensor_description": "A tensor without its values",
    "tensor_shape": "Shapes, possibly only partly known",
    "tensor_slice": "A rectangular part of a tensor",
    "trackable_object_graph": "The objects of a checkpoint and the keys of their values",
    "types": "Element types",
    "variable": "Variables as collections keep them",
    "versions": "Producer and consumer versions of stored data",
}

F = descriptor_pb2.FieldDescriptorProto
SCALARS = {number: name[5:].lower() for name, number in F.Type.items()}


def gather():
    """The descriptors of all files needed, keyed by their short name, each with the imports it needs and no others."""
    known = {}
    home = {}

    def read(file):
        proto = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(proto)
        for dependency in file.dependencies:
            read(dependency)
        name = short(file.name)
        if name in ONLY:
            for i in reversed(range(len(proto.message_type))):
                if proto.message_type[i].name not in ONLY[name]:
                    del proto.message_type[i]
            del proto.enum_type[:]
        for declared in [*proto.message_type, *proto.enum_type]:
            home[f".{proto.package}.{declared.name}"] = file.name
        known[file.name] = proto

    for root in ROOTS:
        read(importlib.import_module(root).DESCRIPTOR)

    needed = {}

    def need(path):
        proto = known[path]
        if path in needed or path.startswith("google/"):
            return
        needed[path] = proto
        imports = {home[used] for used in top_level_types(proto.message_type)} - {path}
        del proto.dependency[:]
        proto.dependency.extend(sorted(imports))
        for dependency in proto.dependency:
            need(dependency)

    def top_level_types(messages):
        for message in messages:
            yield from top_level_types(message.nested_type)
            for field in message.field:
                if field.type_name:
                    yield next(t for t in home if (field.type_name + ".").startswith(t + "."))

    for root in ROOTS:
        need(importlib.import_module(root).DESCRIPTOR.name)
    return dict(sorted((short(path), proto) for path, proto in needed.items()))


def short(path):
    return pathlib.PurePosixPath(path).stem


def in_order(fields):
    """The fields by number; members of a oneof stand together, where its smallest number belongs."""
    first = {}

    def group(field):
        if field.HasField("oneof_index") and not field.proto3_optional:
            return field.oneof_index
        return None

    for field in fields:
        if group(field) is not None:
            first[group(field)] = min(first.get(group(field), field.number), field.number)
    return sorted(fields, key=lambda f: (first.get(group(f), f.number), f.number))


class Writer:
    def __init__(self, proto):
        self.proto = proto
        self.proto3 = proto.syntax == "proto3"
        self.lines = []

    def line(self, depth, text):
        self.lines.append("  " * depth + text if text else "")

    def type_name(self, name):
        for package in (".tensorflow.", ".tsl."):
            if name.startswith(package):
                return name[len(package):]
        return name[1:]

    def ranges(self, depth, reserved, names, inclusive):
        numbers = []
        for r in reserved:
            last = r.end if inclusive else r.end - 1
            numbers.append(str(r.start) if r.start == last else f"{r.start} to {last}")
        if numbers:
            self.line(depth, f"reserved {', '.join(numbers)};")
        if names:
            quoted = ", ".join(f'"{n}"' for n in names)
            self.line(depth, f"reserved {quoted};")

    def enum(self, depth, enum):
        self.line(depth, f"enum {enum.name} {{")
        if enum.options.allow_alias:
            self.line(depth + 1, "option allow_alias = true;")
        self.ranges(depth + 1, enum.reserved_range, enum.reserved_name, inclusive=True)
        for value in enum.value:
            self.line(depth + 1, f"{value.name} = {value.number};")
        self.line(depth, "}")

    def field(self, depth, field, maps, in_oneof):
        kind = SCALARS[field.type]
        if kind in ("message", "enum"):
            kind = self.type_name(field.type_name)
        label = ""
        if field.type_name in maps:
            key, value = maps[field.type_name].field
            value_kind = SCALARS[value.type]
            if value_kind in ("message", "enum"):
                value_kind = self.type_name(value.type_name)
            kind = f"map<{SCALARS[key.type]}, {value_kind}>"
        elif field.label == F.LABEL_REPEATED:
            label = "repeated "
        elif field.label == F.LABEL_REQUIRED:
            label = "required "
        elif field.proto3_optional or (not self.proto3 and not in_oneof):
            label = "optional "
        options = []
        if field.options.HasField("packed") and field.options.packed != self.proto3:
            options.append(f"packed = {str(field.options.packed).lower()}")
        if field.HasField("default_value"):
            options.append(f"default = {field.default_value}")
        tail = f" [{', '.join(options)}]" if options else ""
        self.line(depth, f"{label}{kind} {field.name} = {field.number}{tail};")

    def message(self, depth, message, scope):
        full = f"{scope}.{message.name}"
        maps = {f"{full}.{n.name}": n for n in message.nested_type if n.options.map_entry}
        self.line(depth, f"message {message.name} {{")
        self.ranges(depth + 1, message.reserved_range, message.reserved_name, inclusive=False)
        for enum in message.enum_type:
            self.enum(depth + 1, enum)
        for nested in message.nested_type:
            if not nested.options.map_entry:
                self.message(depth + 1, nested, full)
        open_oneof = None
        for field in in_order(message.field):
            oneof = None
            if field.HasField("oneof_index") and not field.proto3_optional:
                oneof = field.oneof_index
            if oneof != open_oneof:
                if open_oneof is not None:
                    self.line(depth + 1, "}")
                if oneof is not None:
                    self.line(depth + 1, f"oneof {message.oneof_decl[oneof].name} {{")
                open_oneof = oneof
            self.field(depth + 1 + (oneof is not None), field, maps, oneof is not None)
        if open_oneof is not None:
            self.line(depth + 1, "}")
        self.line(depth, "}")

    def file(self, name, dependencies):
        if self.proto.extension or self.proto.service:
            raise SystemExit(f"{name}: extensions and services are not expected")
        # Subpackages (tensorflow.error, for one) would need more than dropping the prefix.
        if self.proto.package not in ("tensorflow", "tsl"):
            raise SystemExit(f"{name}: unexpected package {self.proto.package}")
        self.line(0, f"// {ABOUT[name]}. Names and numbers follow the public GraphDef format.")
        self.line(0, "")
        self.line(0, f'syntax = "{"proto3" if self.proto3 else "proto2"}";')
        self.line(0, "")
        self.line(0, "package thalweg;")
        self.line(0, "")
        for dependency in dependencies:
            self.line(0, f'import "{dependency}";')
        if dependencies:
            self.line(0, "")
        self.line(0, "option cc_enable_arenas = true;")
        for enum in self.proto.enum_type:
            self.line(0, "")
            self.enum(0, enum)
        for message in self.proto.message_type:
            self.line(0, "")
            self.message(0, message, f".{self.proto.package}")
        return "\n".join(self.lines) + "\n"


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "proto"
    folder.mkdir(parents=True, exist_ok=True)
    files = gather()
    for name, proto in files.items():
        dependencies = sorted(
            d if d.startswith("google/") else f"thalweg/{short(d)}.proto" for d in proto.dependency)
        (folder / f"{name}.proto").write_text(Writer(proto).file(name, dependencies))
    for stale in set(folder.glob("*.proto")) - {folder / f"{n}.proto" for n in files}:
        print(f"no longer made: {stale}", file=sys.stderr)
    print(f"{len(files)} files in {folder}")


if __name__ == "__main__":
    main()
