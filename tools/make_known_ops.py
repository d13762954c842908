#!/usr/bin/env python3
"""Writes graph/known_ops.inc from tests/golden/known_ops.txt: the names of the ops that TensorFlow registers, sorted by bytes.

The loader uses them to tell an op that thalweg lacks from a name that nobody knows, and to suggest near names.

    tools/make_known_ops.py            (from anywhere; run it after tests/golden/dump_ops.py)
"""

import pathlib
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    names = sorted((ROOT / "tests/golden/known_ops.txt").read_text().split())
    lines = textwrap.wrap(", ".join(f'"{name}"' for name in names), width=120, break_on_hyphens=False)
    header = "// Made by tools/make_known_ops.py from tests/golden/known_ops.txt: do not edit.\n"
    (ROOT / "graph/known_ops.inc").write_text(header + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
