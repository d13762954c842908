#!/usr/bin/env python3
"""Prints how long each source file took to compile, slowest first, from the log that ninja keeps.

    tools/compile_times.py [BUILD_FOLDER] [--top N] [--limit SECONDS]

BUILD_FOLDER is build/release unless given. With --limit the exit status is 1 if a file takes longer: the rule is 60 s for a
file alone. The log knows only the clock, which on a busy machine says little, so that what seems to have taken longer is
compiled once more, without ccache and into nothing, and its processor time counts.
"""
import argparse
import json
import os
import resource
import shlex
import subprocess
import sys


def last_durations(log):
    """Object file -> seconds of its latest compilation. A log line: start ms, end ms, mtime, output, hash."""
    seconds = {}
    with open(log, encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 5 and fields[3].endswith(".o"):
                seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def source_of(output):
    """tools/CMakeFiles/thalweg_tools.dir/verbs/run.cc.o -> tools/verbs/run.cc"""
    folder, _, rest = output.partition("CMakeFiles/")
    return folder + rest.partition("/")[2].removesuffix(".o")


def processor_seconds(build, output):
    """The processor time of compiling this object again; infinite if it cannot be told."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entry = next((e for e in json.load(file) if e.get("output", "").endswith(output) or f" {output} " in e["command"]), None)
    if entry is None:
        return float("inf")
    command = shlex.split(entry["command"])
    command[command.index("-o") + 1] = os.devnull
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=entry["directory"], env={**os.environ, "CCACHE_DISABLE": "1"}, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        return float("inf")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--top", type=int, default=30, help="print this many files")
    parser.add_argument("--limit", type=float, help="seconds that no file may exceed")
    arguments = parser.parse_args()
    log = os.path.join(arguments.build, ".ninja_log")
    if not os.path.exists(log):
        print(f"compile_times.py: there is no {log}; build first", file=sys.stderr)
        return 2
    ranked = sorted(last_durations(log).items(), key=lambda entry: -entry[1])
    for output, seconds in ranked[:arguments.top]:
        print(f"{seconds:8.1f} s  {source_of(output)}")
    total = sum(seconds for _, seconds in ranked)
    print(f"NOTE: {len(ranked)} files in {total:.0f} s, the slowest in {ranked[0][1] if ranked else 0:.0f} s")
    slow = 0
    for output, seconds in ranked:
        if arguments.limit is None or seconds <= arguments.limit:
            break
        alone = processor_seconds(arguments.build, output)
        slow += alone > arguments.limit
        print(f"NOTE: {source_of(output)} took {seconds:.0f} s on the clock and takes {alone:.0f} s of processor time")
    if slow:
        print(f"{slow} files take longer than {arguments.limit:g} s", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
