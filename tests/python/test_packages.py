"""The lab's packages import one way along the flow of slabyard/__init__.py, and files are short.

Imports are read with `ast`, also those inside functions and those of types: a late import is a dependence too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import slabyard

ROOT = Path(__file__).parents[2]
LAB = ROOT / "lab" / "slabyard"
FLOW = re.findall(r"^    (\w+) {2,}\S", slabyard.__doc__ or "", re.MULTILINE)
MODULES = sorted(LAB.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Every module that a file names in an import, with its full name."""
    inside = ["slabyard", *path.relative_to(LAB).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = inside[: len(inside) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_every_package_is_in_the_flow() -> None:
    assert sorted(FLOW) == sorted(path.parent.name for path in LAB.glob("*/__init__.py"))


@pytest.mark.parametrize("package", [name for name in FLOW if name != "base"])
def test_every_package_is_in_the_picture(package: str) -> None:
    assert f">{package}<" in (ROOT / "docs/architecture.svg").read_text()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(LAB)))
def test_imports_go_one_way(path: Path) -> None:
    package = path.parent.name
    if package == "slabyard":
        return  # __main__ starts the command
    known = FLOW[: FLOW.index(package) + 1]
    used = {name.split(".")[1] for name in imports(path) if name.startswith("slabyard.")} - {"__version__"}
    assert used <= set(known), f"{package} may import {', '.join(known)}"


def test_files_are_short_and_say_what_they_are() -> None:
    for path in MODULES:
        text = path.read_text()
        assert text.startswith('"""'), path
        assert len(text.splitlines()) <= 700, path


@pytest.mark.parametrize(
    ("written", "maker"),
    [(r"</?(?:html|body|table|t[dhr]|div|span|p|ul|li|svg|rect|path|text)[ />]", "svg.py"), (r"\| ?-{3}", "table.py")],
)
def test_markup_and_tables_have_one_maker(written: str, maker: str) -> None:
    """Templates make HTML, base.svg draws pictures, and base.table prints Markdown tables, in lab, bench and docs alike."""
    others = [path for folder in ("lab", "bench", "docs") for path in (ROOT / folder).rglob("*.py") if path.name != maker]
    assert [str(path) for path in others if re.search(written, path.read_text())] == []
