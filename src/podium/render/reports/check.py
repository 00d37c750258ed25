"""A check for those who read it: people, SARIF viewers, annotations of GitHub, and JUnit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

import podium
from podium.render.columns import BOLD, YELLOW
from podium.render.plain import counted
from podium.what_if.check.check import RULES

if TYPE_CHECKING:
    from podium.render.columns import Line
    from podium.what_if.check.check import Check, Finding

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
#: The level of GitHub's annotations.
_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
#: What must be written otherwise in an annotation, and in a property of it.
_ESCAPES: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY_ESCAPES: Final = {**_ESCAPES, ":": "%3A", ",": "%2C"}


def report(found: Check, failing: Sequence[Finding]) -> Iterator[Line]:
    """The lines of the report with their styles."""
    plain: dict[str, Any] = {}
    changed = counted(len(found.changed), "object")
    yield f"{found.profile}: {changed} changed, {len(found.removed)} removed", BOLD
    for each in found.findings:
        style = YELLOW if each in failing else plain
        yield "", plain
        yield f"{each.file}:{each.line}: {each.level} [{each.id}]", style
        yield f"  {each.message}", plain
        for number, text in enumerate(each.fixes):
            yield f"  {'would help: ' if number == 0 else '            '}{text}", plain
    if found.room:
        yield "", plain
        yield "Room afterwards", BOLD
        width = max(map(len, found.room))
        for name, pods in sorted(found.room.items()):
            yield f"  {name:<{width}}  {counted(pods, 'more pod')}", plain
    yield "", plain
    allowed = f", {len(found.allowed)} allowed" if found.allowed else ""
    total = counted(len(found.findings), "finding")
    yield f"{total}, {len(failing)} of them fail the check{allowed}", BOLD


def sarif(found: Check) -> dict[str, Any]:
    """The findings in the format of static analysis tools, version 2.1.0."""
    names = list(RULES)
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "podium",
                        "version": podium.__version__,
                        "rules": [
                            {
                                "id": name,
                                "shortDescription": {"text": text},
                                "defaultConfiguration": {"level": level},
                            }
                            for name, (level, text) in RULES.items()
                        ],
                    }
                },
                "results": [
                    {
                        "ruleId": each.rule,
                        "ruleIndex": names.index(each.rule),
                        "level": each.level,
                        "message": {"text": " ".join((each.message, *each.fixes))},
                        "partialFingerprints": {"podium/v1": each.id},
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": {"uri": each.file},
                                    "region": {"startLine": each.line},
                                }
                            }
                        ],
                    }
                    for each in found.findings
                ],
            }
        ],
    }


def github_annotations(found: Check) -> Iterator[str]:
    """The findings as commands that a workflow of GitHub turns into annotations."""
    for each in found.findings:
        where = (
            f"file={_escaped(each.file, _PROPERTY_ESCAPES)},line={each.line},"
            f"title={_escaped(each.id, _PROPERTY_ESCAPES)}"
        )
        text = _escaped(" ".join((each.message, *each.fixes)), _ESCAPES)
        yield f"::{_COMMANDS[each.level]} {where}::{text}"


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(each, each) for each in text)


def junit(found: Check, failing: Sequence[Finding]) -> str:
    """A test case for every object that changed; findings that fail the check are failures."""
    by_object: dict[str, list[Finding]] = {name: [] for name in found.changed}
    for each in found.findings:
        by_object.setdefault(each.object, []).append(each)
    failures = sum(any(each in failing for each in listed) for listed in by_object.values())
    suite = ET.Element(
        "testsuite", name="podium check", tests=str(len(by_object)), failures=str(failures)
    )
    for name, listed in by_object.items():
        case = ET.SubElement(suite, "testcase", classname="podium.check", name=name)
        for each in listed:
            if each in failing:
                failure = ET.SubElement(case, "failure", type=each.rule)
                failure.set("message", each.message)
                failure.text = "\n".join((f"{each.file}:{each.line}", *each.fixes))
            else:
                ET.SubElement(case, "system-out").text = each.message
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(suite, "unicode")}\n'
