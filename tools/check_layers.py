#!/usr/bin/env python3
"""Checks that includes point one way: proto -> {graph, devices} -> ops -> runtime -> tools.

    tools/check_layers.py            prints every include that breaks a rule; exit 1 if there is one

The rules are the tables below. A project include is written "thalweg/<folder>/<file>"; anything else is a library.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("proto", "graph", "devices", "ops", "runtime", "tools", "tests")

# What a folder may include of another: everything ("*"), or only the files named.
MAY_INCLUDE = {
    "proto": {},
    "graph": {"proto": "*"},
    "devices": {"proto": "*"},
    "ops": {
        "proto": "*",
        "graph": ("op_schema.h", "shape_context.h", "cost.h", "attrs.h"),
        "devices": "*",
    },
    "runtime": {
        "proto": "*",
        "graph": "*",
        "devices": "*",
        "ops": ("float_environment.h", "kernel.h", "kernel_registry.h", "register_all.h", "step_services.h", "value.h"),
    },
    "tools": {"proto": "*", "graph": "*", "devices": "*", "ops": ("kernel_registry.h", "register_all.h"), "runtime": "*"},
    "tests": {folder: "*" for folder in FOLDERS},
}

# Families of kernels and kinds of hardware do not include each other; "common" is there for all of them.
APART = ("ops", "devices")
# Passes do not include each other, only what all of them share; the list names them all.
PASSES = "graph/passes/"
SHARED_BY_PASSES = ("pass", "rewrite")
PASS_LIST = ("pass_list", "pass_runner")

# Files of these subfolders are private to their folder.
HARDWARE = re.compile(r"devices/(cpu|sim|cuda)/")

# Libraries that only the named places may include; none of them is meant for a header that others include.
LIBRARIES = [
    (re.compile(r"CLI/"), re.compile(r"tools/")),
    (re.compile(r"tbb/|oneapi/"), re.compile(r"(runtime|tests)/")),
    (re.compile(r"(oneapi/)?dnnl"), re.compile(r"(ops|tests)/")),
    (re.compile(r"Eigen/|unsupported/Eigen/"), re.compile(r"(ops|tests)/")),
    (re.compile(r"gtest/|gmock/"), re.compile(r"tests/")),
]

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')


def source_files():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "*.h", "*.cc"],
                            check=True, capture_output=True, text=True)
    return sorted(path for path in listed.stdout.split() if path.split("/")[0] in FOLDERS and (ROOT / path).exists())


def folder_fault(source, target):
    """Why `source` may not include the project file `target`, or None."""
    here, there = source.split("/")[0], target.split("/")[0]
    if there not in FOLDERS:
        return "no such folder" if "/" in target else None  # thalweg/graph.pb.h: generated from proto/
    if here == there:
        return None
    if here != "tests" and there in ("tests", "tools"):
        return f"nothing includes {there}/"
    allowed = MAY_INCLUDE[here].get(there)
    if allowed is None:
        return f"{here}/ may not include {there}/"
    if allowed != "*" and target.split("/", 1)[1] not in allowed:
        return f"of {there}/, {here}/ may include only {', '.join(allowed)}"
    if here not in ("tests", "devices") and HARDWARE.match(target):
        return "devices are reached through devices/device.h"
    if here != "tests" and (target.endswith("_internal.h") or "/internal/" in target):
        return "internal to its folder"
    return None


def sibling_fault(source, target):
    """Why two parts of one folder may not know each other, or None."""
    here, there = pathlib.PurePath(source), pathlib.PurePath(target)
    if source.startswith(PASSES) and target.startswith(PASSES):
        allowed = SHARED_BY_PASSES + (here.stem,)
        return None if here.stem in PASS_LIST or there.stem in allowed else "passes do not include each other"
    for parent in APART:
        mine, theirs = here.parts, there.parts
        if mine[0] == theirs[0] == parent and len(mine) > 2 and len(theirs) > 2 and mine[1] != theirs[1] != "common":
            return f"{parent}/{mine[1]} may not include {parent}/{theirs[1]}"
    return None


def library_fault(source, header):
    for library, places in LIBRARIES:
        if library.match(header) and not places.match(source):
            return f"{header} is included only below {places.pattern}"
    return None


def main():
    faults = []
    files = source_files()
    for source in files:
        for number, line in enumerate((ROOT / source).read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            header = match.group(1)
            if header.startswith("thalweg/"):
                target = header[len("thalweg/"):]
                fault = folder_fault(source, target) or sibling_fault(source, target)
            else:
                fault = library_fault(source, header)
            if fault:
                faults.append(f"{source}:{number}: {header}: {fault}")
    print("\n".join(faults) if faults else f"check_layers: {len(files)} files, every include points the right way")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
