"""Writes the tables of docs/reproduction.md from the records that slabyard brings along: `make docs`."""

from __future__ import annotations

from pathlib import Path

from slabyard.base.table import between
from slabyard.study import document, papers, study

FILE = Path(__file__).resolve().parent / "reproduction.md"
BEGIN, END = "<!-- study begins -->", "<!-- study ends -->"


def written(text: str) -> str:
    """The document with its tables made again."""
    return between(text, BEGIN, END, f"\n{document.text(study.recorded(papers.items()))}\n")


if __name__ == "__main__":
    FILE.write_text(written(FILE.read_text("utf-8")), "utf-8")
