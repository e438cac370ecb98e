"""The answers, tables and pictures of docs/sheaves.md, from the records that slabyard brings along (draw.py writes them)."""

from __future__ import annotations

from pathlib import Path

from slabyard.base.table import between
from slabyard.study import document, papers, sheaves, study

FILE = Path(__file__).resolve().parent / "sheaves.md"
TITLE = "# Sheaves: what they hold and what they spare"
PICTURES = FILE.parent / "sheaves"


def written(text: str) -> str:
    """The document with its answers and tables made again."""
    done = study.recorded(papers.items(papers.OWN))
    answers = sheaves.answers(done)
    text = between(text, TITLE, "<!-- answers end -->", f"\n{answers}\n")
    return between(text, "<!-- study begins -->", "<!-- study ends -->", f"\n{document.text(done)}\n")


def pictures() -> dict[Path, str]:
    """The drawings by file: an item's first one."""
    done = study.recorded(papers.items(papers.OWN))
    return {PICTURES / f"{one.item.name}.svg": one.outcome.pictures[0].svg for one in done if one.outcome.pictures}
