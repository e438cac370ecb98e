"""The slowest tests of the last `make test`: from the logs that ctest leaves in each build tree, and pytest's report.

    slowest.py COUNT FILE...

A FILE is a tree's Testing/Temporary/LastTest.log or pytest's JUnit XML. The time is the wall clock's, with other tests running
beside, so the order is rough; but what is meant to be quick and is not stands at the top. A FILE that is missing is named, as
its tests would be left out unseen.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

STARTED = re.compile(r"^\d+/\d+ Testing: (\S+)", re.MULTILINE)
TOOK = re.compile(r"^Test time = +([\d.]+) sec", re.MULTILINE)


def of_ctest(log: Path) -> Iterator[tuple[float, str]]:
    tree = log.parents[2].name
    for part in re.split(r"^(?=\d+/\d+ Testing: )", log.read_text(errors="replace"), flags=re.MULTILINE):
        started, took = STARTED.search(part), TOOK.search(part)
        if started and took:
            yield float(took.group(1)), f"{tree}: {started.group(1)}"


def of_pytest(report: Path) -> Iterator[tuple[float, str]]:
    for case in ElementTree.parse(report).iter("testcase"):
        place = case.get("classname", "").replace(".", "/")
        yield float(case.get("time", "0")), f"{place}.py: {case.get('name')}"


def main() -> int:
    count, files = int(sys.argv[1]), [Path(name) for name in sys.argv[2:]]
    times: list[tuple[float, str]] = []
    for path in files:
        if not path.exists():
            print(f"{path} is missing: its tests are not among these")
            continue
        times += of_pytest(path) if path.suffix == ".xml" else of_ctest(path)
    print(f"The slowest {count} of {len(times)} tests, in seconds")
    for seconds, name in sorted(times, reverse=True)[:count]:
        print(f"{seconds:8.1f}  {name}")
    return 0


sys.exit(main())
