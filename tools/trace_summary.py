#!/usr/bin/env python3
"""Prints a trace written by `thalweg run --trace` as a table, longest first.

    tools/trace_summary.py TRACE.json [COUNT]      default: the 8 longest
"""
import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    devices = {event["pid"]: event["args"]["name"].rsplit("device:")[-1]
               for event in events if event["ph"] == "M" and event["name"] == "process_name"}
    executions = [event for event in events if event["ph"] == "X"]
    print(f"{'start us':>10} {'took us':>10}  {'device':<8}{'op':<12}node")
    for event in sorted(executions, key=lambda event: -event["dur"])[:count]:
        print(f"{event['ts']:>10.1f} {event['dur']:>10.1f}  {devices[event['pid']]:<8}{event['name']:<12}{event['args']['node']}")
    busy = sum(event["dur"] for event in executions)
    print(f"{len(executions)} executions, {busy:.1f} us in all")


if __name__ == "__main__":
    main()
