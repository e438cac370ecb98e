"""Which headers the C programs include: the public ones, the laboratory's, what programs share, and their own.

The test reads the #include lines: no program can use a private header of the core, or another program's, unnoticed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LABORATORY = ("library/lab/replay.h", "library/lab/inspect.h")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<(slabyard/[^>]+)>)', re.MULTILINE)


def strangers(folder: str, text: str) -> list[str]:
    """The headers in a source of that folder that a program there may not include."""
    found = [quoted or public for quoted, public in INCLUDE.findall(text)]
    return [name for name in found if not allowed(folder, name)]


def allowed(folder: str, name: str) -> bool:
    if name.startswith(("slabyard/", "programs/")) or name in LABORATORY:
        return True
    return "/" not in name and (ROOT / folder / name).is_file()


@pytest.mark.parametrize("folder", ["programs", "replay", "threads", "import", "pairs", "inspect", "launch"])
def test_programs_include_no_header_of_the_core_or_of_another_program(folder: str) -> None:
    sources = sorted((ROOT / folder).glob("*.[ch]"))
    assert sources
    found = {path.name: wrong for path in sources if (wrong := strangers(folder, path.read_text()))}
    assert not found


def test_the_rule_can_fail() -> None:
    text = '#include "core/list.h"\n#include "../replay/json.h"\n#include "exact.h"\n#include <slabyard/slabyard.h>\n#include <stdio.h>\n'
    assert strangers("replay", text) == ["core/list.h", "../replay/json.h"]
    assert strangers("threads", text) == ["core/list.h", "../replay/json.h", "exact.h"]
