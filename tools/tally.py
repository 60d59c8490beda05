#!/usr/bin/env python3
"""Counts single test cases in the logs of `meson test`.

usage: tally.py LABEL TESTLOG_JSON
       tally.py --once-more TESTLOG_JSON

Prints one line per case: passed, failed or skipped, a tab, and LABEL/test/case. A test that speaks TAP (cmocka, bats)
counts by its cases, any other one by its exit status. A test that dies before its plan is done, or that fails without a
failed case, is one failed case more.

With --once-more, prints the names of the failed tests that may have been overtaken on a busy machine. What a sanitizer has
reported, what died of a signal, and what has lost or doubled something in a crash or a simulation is never one of these.
"""

import json
import re
import sys

CASE = re.compile(r"^(ok|not ok) (\d+)(.*)$")
PLAN = re.compile(r"^1\.\.(\d+)")
REPORT = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:")
SEVERE = re.compile(r"(^|:)(crash|simulation) / ")
SKIP = re.compile(r"#\s*skip\b", re.IGNORECASE)


def cases_of(output):
    """Yields (verdict, name), and the number of planned cases at the end."""
    cases, planned = [], 0
    for line in output.splitlines():
        if plan := PLAN.match(line):
            planned += int(plan[1])
        elif case := CASE.match(line):
            name = re.sub(r"^\s*-?\s*", "", SKIP.sub("", case[3])).strip()
            # cmocka writes "not ok 3 # SKIP name" for a skipped case.
            verdict = "skipped" if SKIP.search(case[3]) else {"ok": "passed", "not ok": "failed"}[case[1]]
            cases.append((verdict, name))
    return cases, planned


def verdicts(test):
    cases, planned = cases_of(test.get("stdout", ""))
    if test["result"] == "SKIP" and not cases:
        return [("skipped", "")]
    good = test["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
    if not cases and not planned:
        return [("passed" if good else "failed", "")]
    if len(cases) < planned:
        cases.append(("failed", f"stopped after {len(cases)} of {planned} cases"))
    elif not good and not any(verdict == "failed" for verdict, _ in cases):
        cases.append(("failed", f"ended with {test['result'].lower()}, status {test.get('returncode')}"))
    return cases


def may_be_overtaken(test):
    output = test.get("stdout", "") + test.get("stderr", "")
    failed = test["result"] == "TIMEOUT" or (test["result"] == "FAIL" and 0 < test.get("returncode", 0) < 128)
    return failed and not SEVERE.search(test["name"]) and not REPORT.search(output)


def main():
    label, path = sys.argv[1:]
    with open(path, encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            name = test["name"].split(" / ")[-1]
            if label == "--once-more":
                if may_be_overtaken(test):
                    print(name)
                continue
            for verdict, case in verdicts(test):
                print(f"{verdict}\t{label}/{name}{'/' if case else ''}{case}")


if __name__ == "__main__":
    main()
