#!/usr/bin/env python3
"""Which dtypes of an op's kernels are missing, or more than TensorFlow's CPU has.

    compare_ops.py --bin build/release/thalweg --list OPS.md [--group 1] [--missing-only]

The list is a Markdown file of tables `| op | ... | dtypes |`, one per group and each after a heading, as the
conformance suite brings it: per type attribute the dtypes of TensorFlow's CPU kernels; an attribute that is not named
takes all. Compared are the cpu kernels that `thalweg ops --json` lists, attribute by attribute. Differences in EXPLAINED are
printed with their reason. Exit status 1 if there is any other difference, or if an explained one is no longer there.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

SHORT = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "c64": "complex64",
    "c128": "complex128",
    "str": "string",
    **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
}

LOWERED = "the compiler puts nodes in its place (graph/lowering/), or the executor runs the call"
EXPLAINED = {
    "missing Case: no kernel": LOWERED,
    "missing If: no kernel": LOWERED,
    "missing PartitionedCall: no kernel": LOWERED,
    "missing RemoteCall: no kernel": LOWERED,
    "missing StatefulPartitionedCall: no kernel": LOWERED,
    "missing StatelessCase: no kernel": LOWERED,
    "missing StatelessIf: no kernel": LOWERED,
    "missing StatelessWhile: no kernel": LOWERED,
    "missing While: no kernel": LOWERED,
    "missing Conj.T: variant": "TensorFlow has a kernel, which no value passes: it knows no conjugate of a tensor list",
    "more LRN.T: bfloat16": "declared by TensorFlow, which has no kernel for it",
    "more TensorScatterUpdate.Tindices: int16 uint16": "declared by TensorFlow, which has no kernel for it",
}


def listed(path, group):
    """By op of the group: {attribute: dtypes}."""
    sections = re.split(r"^## ", path.read_text(), flags=re.M)
    tables = [s for s in sections if re.search(r"^\| op \|", s, flags=re.M)]
    ops = {}
    for line in tables[group - 1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 4 or not re.fullmatch(r"_?[A-Z]\w+", cells[0]):
            continue
        attrs = dict(part.split(":") for part in cells[3].split(";") if ":" in part)
        ops[cells[0]] = {name.strip(): {SHORT.get(t, t) for t in types.split()} for name, types in attrs.items()}
    return ops


def kernel_types(op):
    """{attribute: dtypes} over the cpu kernels; an attribute that a kernel leaves open is left out."""
    kernels = [k for k in op["kernels"] if k["backend"] == "cpu"]
    allowed = {a["name"]: set(a.get("allowed_types") or []) for a in op["attrs"]}
    types = {}
    for name in {name for k in kernels for name in k["types"]}:
        if all(name in k["types"] for k in kernels):
            types[name] = set().union(*(k["types"][name] for k in kernels))
            if allowed.get(name):
                types[name] &= allowed[name]
    return types, allowed, bool(kernels)


def compare(name, wanted, op):
    """(missing, surplus) as lists of texts."""
    types, allowed, has_kernels = kernel_types(op)
    if not has_kernels:
        return [f"{name}: no kernel"], []
    missing, surplus = [], []
    for attr, dtypes in sorted(wanted.items()):
        # An attribute that no kernel constrains takes what the declaration allows, and everything if it says nothing.
        have = types.get(attr) or allowed.get(attr) or dtypes
        # TensorFlow has kernels for dtypes that its own declaration of the op shuts out: no graph reaches them.
        dtypes = dtypes & allowed[attr] if allowed.get(attr) else dtypes
        if dtypes - have:
            missing.append(f"{name}.{attr}: {' '.join(sorted(dtypes - have))}")
        if have - dtypes:
            surplus.append(f"{name}.{attr}: {' '.join(sorted(have - dtypes))}")
    return missing, surplus


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--list", required=True, type=pathlib.Path)
    parser.add_argument("--group", type=int, default=1)
    parser.add_argument("--missing-only", action="store_true")
    options = parser.parse_args()
    answer = subprocess.run([options.bin, "ops", "--json"], capture_output=True, text=True, check=True).stdout
    ops = {op["name"]: op for op in json.loads(answer)["ops"]}
    differences = []
    wanted = listed(options.list, options.group)
    for name, attrs in wanted.items():
        missing, surplus = compare(name, attrs, ops[name]) if name in ops else ([f"{name}: unknown op"], [])
        differences += [f"missing {text}" for text in missing]
        if not options.missing_only:
            differences += [f"more {text}" for text in surplus]
    unexplained = [text for text in differences if text not in EXPLAINED]
    of_group = [text for text in EXPLAINED if re.split(r"[ .:]", text)[1] in wanted]
    gone = [text for text in of_group if text not in differences and not (options.missing_only and text.startswith("more"))]
    for text in differences:
        print(f"{text} ({EXPLAINED[text]})" if text in EXPLAINED else f"UNEXPLAINED {text}")
    for text in gone:
        print(f"NO LONGER THERE {text}: take it out of EXPLAINED")
    print(f"{len(wanted)} ops; {len(differences)} differences, {len(unexplained)} of them unexplained")
    sys.exit(1 if unexplained or gone else 0)


if __name__ == "__main__":
    main()
