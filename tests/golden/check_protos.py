#!/usr/bin/env python3
"""Checks proto/*.proto against TensorFlow's own descriptors, message by message and value by value.

Equal must be: field numbers, names, types, labels, packedness, oneofs, defaults, enum values and reserved numbers; and
every file must compile with the protoc found in PATH (or named by $PROTOC). Which files and messages there should be is
what make_protos.py says.

    check_protos.py [PROTO_FOLDER]        exit status 0: all equal; 1: differences, each on a line
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

import make_protos

F = descriptor_pb2.FieldDescriptorProto


def compile_all(folder):
    """The descriptors protoc makes of the files, by file name."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "thalweg").symlink_to(folder.resolve())
        out = scratch / "all.desc"
        names = sorted(f"thalweg/{p.name}" for p in folder.glob("*.proto"))
        subprocess.run(
            [os.environ.get("PROTOC", "protoc"), f"-I{scratch}", f"--descriptor_set_out={out}", *names], check=True)
        found = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    return {f.name: f for f in found.file}


def packed(field, proto3):
    """Whether the field's elements are written together."""
    if field.label != F.LABEL_REPEATED or field.type in (F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_MESSAGE, F.TYPE_GROUP):
        return False
    return field.options.packed if field.options.HasField("packed") else proto3


def strip(name):
    for package in (".tensorflow.", ".tsl.", ".thalweg."):
        if name.startswith(package):
            return name[len(package):]
    return name


def facts_of_message(message, proto3, prefix, facts):
    name = f"{prefix}{message.name}"
    facts[name] = ("message", message.options.map_entry)
    for field in message.field:
        oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else None
        facts[f"{name}#{field.number}"] = (
            field.name, F.Type.Name(field.type), strip(field.type_name), F.Label.Name(field.label),
            packed(field, proto3), oneof, field.proto3_optional,
            field.default_value if field.HasField("default_value") else None)
    facts[f"{name} reserved"] = (
        sorted((r.start, r.end) for r in message.reserved_range), sorted(message.reserved_name))
    for enum in message.enum_type:
        facts_of_enum(enum, f"{name}.", facts)
    for nested in message.nested_type:
        facts_of_message(nested, proto3, f"{name}.", facts)


def facts_of_enum(enum, prefix, facts):
    name = f"{prefix}{enum.name}"
    # The first value is the default, so the order of the values is a fact too.
    facts[name] = ("enum", [(v.name, v.number) for v in enum.value], enum.options.allow_alias)
    facts[f"{name} reserved"] = (sorted((r.start, r.end) for r in enum.reserved_range), sorted(enum.reserved_name))


def facts_of_file(file):
    facts = {"syntax": file.syntax or "proto2"}
    for enum in file.enum_type:
        facts_of_enum(enum, "", facts)
    for message in file.message_type:
        facts_of_message(message, file.syntax == "proto3", "", facts)
    return facts


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "proto"
    ours = compile_all(folder)
    theirs = {f"thalweg/{name}.proto": proto for name, proto in make_protos.gather().items()}
    wrong = []
    fields = 0
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in theirs:
            wrong.append(f"{name}: TensorFlow has no such file")
            continue
        if name not in ours:
            wrong.append(f"{name}: missing")
            continue
        if ours[name].package != "thalweg":
            wrong.append(f"{name}: package {ours[name].package}")
        a, b = facts_of_file(ours[name]), facts_of_file(theirs[name])
        fields += sum("#" in key for key in b)
        for key in sorted(a.keys() | b.keys()):
            if a.get(key) != b.get(key):
                wrong.append(f"{name}: {key}: ours {a.get(key)}, TensorFlow's {b.get(key)}")
    print("\n".join(wrong) if wrong else f"{len(ours)} files, {fields} fields: all equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
