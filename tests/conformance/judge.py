"""Compares what the program did with what TensorFlow did."""
import re

import numpy as np

from case import of_step, tensor_name

CODES = ("CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED "
         "FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED").split()
ANY_CODE = re.compile(r"\b(%s)\b" % "|".join(CODES))
SANITIZER_REPORT = re.compile(r"(ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|: runtime error: )[^\n]*")
# (relative, absolute) by element type; types not named here are compared exactly.
TOLERANCES = {
    "float64": (1e-9, 1e-12), "float32": (1e-5, 1e-6), "float16": (4e-3, 1e-3), "bfloat16": (2e-2, 1e-2),
    "complex64": (1e-5, 1e-6), "complex128": (1e-9, 1e-12),
}
EXIT_GRAPH_UNUSABLE = 3


class Verdict(Exception):
    """Why a case did not pass: `kind` is wrong, refused, accepted, code, words, crash, timeout, memory or report."""

    def __init__(self, kind, detail):
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail = kind, detail


# ---- values -------------------------------------------------------------------------------------------------------------


def as_floats(array, dtype):
    """Numbers that can be subtracted, or None if the stored form is to be compared exactly."""
    if dtype == "bfloat16" and array.dtype == np.uint16:
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array if array.dtype.kind in "fc" else None


def close(got, expected, relative, absolute):
    if got.dtype.kind == "c":
        return close(got.real, expected.real, relative, absolute) & close(got.imag, expected.imag, relative, absolute)
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        near = np.abs(got - expected) <= absolute + relative * np.abs(expected)
        return same | (np.isfinite(got) & np.isfinite(expected) & near)


def rows_in_order(array):
    if array.ndim == 0 or array.size == 0:
        return array
    rows = array.reshape(array.shape[0], -1)
    return rows[np.lexsort(tuple(rows[:, c] for c in reversed(range(rows.shape[1]))))]


def difference(got, expected, name, case):
    """None if equal as the case wants it, else what differs."""
    type_differs = got.dtype.kind != "S" if expected.dtype.kind == "S" else got.dtype != expected.dtype
    if type_differs or got.shape != expected.shape:
        return f"got {got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if name in case.get("random", ()) or got.size == 0:
        return None
    if name in case.get("unordered", ()):
        got, expected = rows_in_order(got), rows_in_order(expected)
    dtype = case.get("dtypes", {}).get(name)
    numbers, expected_numbers = as_floats(got, dtype), as_floats(expected, dtype)
    if numbers is None or expected_numbers is None:
        wrong = np.asarray(got != expected)
    else:
        given = case.get("tolerance", {})
        bounds = given.get(name) or given.get("default") or TOLERANCES.get(dtype or str(expected.dtype), (1e-5, 1e-6))
        wrong = ~close(numbers, expected_numbers, *bounds)
        got, expected = numbers, expected_numbers
    if not wrong.any():
        return None
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape) if wrong.ndim else ()
    return f"{int(wrong.sum())} of {wrong.size} differ; at {[int(i) for i in at]} got {got[at]!r}, expected {expected[at]!r}"


# ---- a whole case ---------------------------------------------------------------------------------------------------------


def judge(case, process, report, outputs, expected):
    """Raises a Verdict unless everything is as it should be. `report` is the JSON of stdout, {} if there is none."""
    found = SANITIZER_REPORT.search(process.stderr)
    if found:
        raise Verdict("crash", found.group(0)[:300])
    if process.timed_out:
        raise Verdict("timeout", f"killed after {process.seconds:.1f} s")
    if process.signal or process.exit_code > 125:
        raise Verdict("crash", f"signal {process.signal}, exit code {process.exit_code}: {process.stderr[-400:]}")
    if process.exit_code == EXIT_GRAPH_UNUSABLE:
        return judge_refusal(case, process)
    for index, (status, message) in enumerate(step_results(case, process, report)):
        judge_step(case, index, status, message, outputs, expected)


def judge_refusal(case, process):
    wanted = [step["error"] for step in case.steps if step.get("error", {}).get("stage") == "load"]
    if not wanted:
        raise Verdict("refused", f"graph refused: {process.stderr[-400:]}")
    found = ANY_CODE.search(process.stderr)
    check_error(wanted[0], found.group(1) if found else None, process.stderr, "")


def step_results(case, process, report):
    if not case.needs_script:
        found = ANY_CODE.search(process.stderr)
        return [("OK" if process.exit_code == 0 else found.group(1) if found else None, process.stderr)]
    steps = report.get("steps")
    if not isinstance(steps, list) or len(steps) != len(case.steps):
        raise Verdict("report", f"no report of {len(case.steps)} steps (exit code {process.exit_code}): {process.stderr[-400:]}")
    return [(step.get("status"), step.get("message", "")) for step in steps]


def judge_step(case, index, status, message, outputs, expected):
    step, where = case.steps[index], f"step {index}: " if case.needs_script else ""
    error = step.get("error")
    if status != "OK":
        if not error:
            raise Verdict("refused", f"{where}{status} {message[-400:]}")
        return check_error(error, status, message, where)
    if error and not error.get("optional"):
        raise Verdict("accepted", f"{where}succeeded, expected {' or '.join(error['code'])}")
    for tensor in step.get("fetches", []):
        got = of_step(outputs, tensor, index) if case.needs_script else outputs.get(tensor, outputs.get(tensor_name(tensor)))
        wanted = of_step(expected, tensor, index)
        if got is None:
            raise Verdict("wrong", f"{where}no value for {tensor}")
        differs = None if wanted is None else difference(got, wanted, tensor_name(tensor), case.description)
        if differs:
            raise Verdict("wrong", f"{where}{tensor}: {differs}")


def check_error(error, code, message, where):
    if code not in error["code"]:
        raise Verdict("code", f"{where}{code}, expected {' or '.join(error['code'])}: {message.strip()[-300:]}")
    missing = [word for word in error.get("mentions", []) if word.lower() not in message.lower()]
    if missing:
        raise Verdict("words", f"{where}the message lacks {missing}: {message.strip()[-400:]}")
