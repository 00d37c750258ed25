"""What a job says about failed and succeeded pods: its pod failure policy and success policy.

Upstream: pkg/controller/job/pod_failure_policy.go, success_policy.go and
backoff_utils.go.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from podium.objects.kinds.meta import JsonObject

#: The annotation with the failures of an index before a pod of it was created.
FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_COUNT: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
COUNT, IGNORE, FAIL_JOB, FAIL_INDEX = "Count", "Ignore", "FailJob", "FailIndex"


class FailureAction(NamedTuple):
    """What follows from a failed pod, and why."""

    action: str
    message: str = ""


def action_of(spec: JsonObject, pod: JsonObject) -> FailureAction:
    """The action of the first rule that a failed pod matches; a pod that matches none counts."""
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    for index, rule in enumerate(rules):
        found = _matched_exit_code(rule, pod) or _matched_condition(rule, pod)
        if found:
            action = str(rule.get("action"))
            return FailureAction(action, f"{found} matching {action} rule at index {index}")
    return FailureAction(COUNT)


def _matched_exit_code(rule: JsonObject, pod: JsonObject) -> str:
    wanted = rule.get("onExitCodes")
    if not wanted:
        return ""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    statuses = [
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
    ]
    for each in statuses:
        code = ((each.get("state") or {}).get("terminated") or {}).get("exitCode")
        if not code or wanted.get("containerName") not in (None, each.get("name")):
            continue  # a container that ended well matches no rule, not even one of NotIn
        among = code in (wanted.get("values") or ())
        if among == (wanted.get("operator") == "In"):
            name = f"{metadata.get('namespace')}/{metadata['name']}"
            return f"Container {each.get('name')} for pod {name} failed with exit code {code}"
    return ""


def _matched_condition(rule: JsonObject, pod: JsonObject) -> str:
    present = {
        (each.get("type"), each.get("status"))
        for each in (pod.get("status") or {}).get("conditions") or ()
    }
    for wanted in rule.get("onPodConditions") or ():
        if (wanted.get("type"), wanted.get("status") or "True") in present:
            metadata = pod["metadata"]
            name = f"{metadata.get('namespace')}/{metadata['name']}"
            return f"Pod {name} has condition {wanted.get('type')}"
    return ""


def matched_success_rule(spec: JsonObject, completed: set[int]) -> str:
    """The message of the first rule of the success policy that holds; empty if none does."""
    rules = (spec.get("successPolicy") or {}).get("rules") or ()
    for index, rule in enumerate(rules):
        text, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        among = completed if text is None else completed & set(parse_indexes(text))
        needed = len(parse_indexes(text or "")) if count is None else count
        if len(among) >= needed and needed:
            return f"Matched rules at index {index}"
    return ""


def failures_of_index(pod: JsonObject) -> tuple[int, int]:
    """The counted and the ignored failures of an index before this pod of it."""
    annotations = pod["metadata"].get("annotations") or {}

    def number(name: str) -> int:
        text = str(annotations.get(name, ""))
        return int(text) if text.isdigit() else 0

    return number(FAILURE_COUNT), number(IGNORED_COUNT)


def parse_indexes(text: str) -> list[int]:
    """Parse indexes such as "0,2-4"."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def format_indexes(numbers: set[int]) -> str:
    """Format indexes, with runs of numbers as "2-4"; two in a row are both written."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    parts = (str(a) if a == b else f"{a},{b}" if b == a + 1 else f"{a}-{b}" for a, b in runs)
    return ",".join(parts)
