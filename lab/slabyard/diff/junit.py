"""A difference as JUnit XML, which every CI shows: a test for each run and condition, that failed where the condition is not met.

Without conditions there is a test for each of the usual measures of each run, and none fails. What is in one file alone is skipped, with
the reason, so that a run that vanished is seen. The form is the one that the CI systems agree on: a test suite, its counts, its cases.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from ..base.files import whole_file
from . import tables
from .model import HEADLINES, NO_INTERVAL, Difference, Row

_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0


def document(found: Difference) -> ET.ElementTree:
    suites = ET.Element("testsuites", name="slabyard")
    suite = ET.SubElement(suites, "testsuite", name=_text(f"slabyard diff {found.old} {found.new}"))
    if found.conditions:
        for condition in found.conditions:
            rows = found.of(condition)
            for row in rows:
                _case(suite, row, condition.text)
            if not rows:
                _skipped(suite, "all", condition.text, f"{condition.measure} is not in both files")
    else:
        for row in found.rows:
            if row.measure in HEADLINES:
                _case(suite, row, row.measure)
    for names, where in ((found.missing, found.old), (found.added, found.new)):
        for name in names:
            _skipped(suite, name, "run", f"only in {where}")
    counts = {"tests": len(suite), "failures": len(suite.findall("*/failure")), "skipped": len(suite.findall("*/skipped")), "errors": 0}
    for element in (suites, suite):
        for name, count in counts.items():
            element.set(name, str(count))
    ET.indent(suites)
    return ET.ElementTree(suites)


def write(found: Difference, path: Path) -> None:
    with whole_file(path) as part:
        document(found).write(part, encoding="utf-8", xml_declaration=True)


def _case(suite: ET.Element, row: Row, condition: str) -> None:
    name = f"{row.run}: {condition}" if row.run else condition
    case = ET.SubElement(suite, "testcase", classname=_text(row.workload), name=_text(name), time="0")
    said = f"{row.name}: {row.old.median:,g} {row.unit}".rstrip() + f", now {row.new.median:,g} ({tables.change(row)}, {row.verdict})"
    if condition in row.failed:
        ET.SubElement(case, "failure", message=_text(said), type="regression").text = _text(said)
    elif row.verdict == NO_INTERVAL:
        ET.SubElement(case, "skipped", message=_text(f"{said}: too few repetitions for an interval"))
    else:
        ET.SubElement(case, "system-out").text = _text(said)


def _skipped(suite: ET.Element, name: str, of: str, why: str) -> None:
    case = ET.SubElement(suite, "testcase", classname=_text(name), name=_text(of), time="0")
    ET.SubElement(case, "skipped", message=_text(why))


def _text(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
