"""The tables of docs/reproduction.md, from the records that slabyard brings along (draw.py writes them)."""

from __future__ import annotations

from pathlib import Path

from slabyard.base.table import between
from slabyard.study import document, papers, study

FILE = Path(__file__).resolve().parent / "reproduction.md"
BEGIN, END = "<!-- study begins -->", "<!-- study ends -->"


def written(text: str) -> str:
    """The document with its tables made again."""
    return between(text, BEGIN, END, f"\n{document.text(study.recorded(papers.items()))}\n")
