"""The tables of docs/reproduction.md, what code its records are of, and the two lists at its end, from the records that slabyard
brings along (draw.py writes them).

The lists name claims of the items: what stands in them is what the items tell, and a claim that came to hold is no longer in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from slabyard.base.errors import UserError
from slabyard.base.table import between
from slabyard.study import document, papers, study
from slabyard.study.model import NOT, Claim, Done

FILE = Path(__file__).resolve().parent / "reproduction.md"

# The item, and words of its claim.
NOT_HELD = (
    ("bonwick-fragmentation", "At the end slab wastes less than SunOS 4.1.3"),
    ("ferreira-fig8", "SLQB takes more than 100 MB more"),
    ("garcarz-figure4", "slob overtakes the other two"),
    ("kyritsis-large", "best fit performs worse than first fit"),
    ("yoo-shares", "SLOB's time is waiting for its one lock"),
)
# What surprised us; the item, and words of the claim whose reason shows it.
SURPRISES = (
    (
        "With the allocator the kernel's task switches for the same messages change, and its work with them",
        "bonwick-systems",
        "Slab gains over SVr4 in DeskBench",
    ),
    ("sysbench's memory mode, by whose time two papers rank the allocators, hardly calls one", "ferreira-questions", "two patterns"),
    (
        "Requests of a page or more count as unused memory in Kyritsis's logs",
        "kyritsis-counting",
        "with large sizes the room left on pages accumulates",
    ),
    ("One buffer that stays makes a pair of SVr4 much cheaper", "bonwick-speed", "(a lone pair)"),
    ("Bonwick's fewer misses need that much of what is touched is inodes", "bonwick-cache", "The miss rate falls by 13%"),
)


def written(text: str) -> str:
    """The document with its tables and lists made again."""
    done = study.recorded(papers.items())
    parts = {"made": made_of(done), "study": document.text(done), "not held": not_held(done), "surprises": surprises(done)}
    for name, body in parts.items():
        text = between(text, f"<!-- {name} begins -->", f"<!-- {name} ends -->", f"\n{body}\n")
    return text


def made_of(done: Sequence[Done]) -> str:
    """The items by the date and the commit of their records, the latest first; last those whose records name neither."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in done:
        key = (one.record.get("date", ""), one.record["versions"].get("commit", ""))
        found.setdefault(key, {}).setdefault(one.item.paper, []).append(one.item.name)
    lines = []
    for (date, commit), items in sorted(found.items(), reverse=True):
        said = f"{date}, of commit {commit}" if date and commit else date or "Without date and commit"
        listed = "; ".join(f"{paper} {', '.join(names)}" for paper, names in items.items())
        lines.append(document.wrapped(f"**{said}:** {listed}.", "- ", "  "))
    return "\n".join(lines)


def not_held(done: Sequence[Done]) -> str:
    """The claims that did not hold, with their reasons. UserError where one does."""
    lines = []
    for ident, words in NOT_HELD:
        one, claim = _found(done, ident, words)
        if claim.verdict != NOT:
            raise UserError(f"{ident}: {claim.text}: {claim.verdict}; docs/reproduction.py has it among those that do not hold")
        lines.append(_line(one, f"{one.item.paper.capitalize()}: {claim.text}", claim))
    return "\n".join(lines)


def surprises(done: Sequence[Done]) -> str:
    return "\n".join(_line(one, said, claim) for said, ident, words in SURPRISES for one, claim in [_found(done, ident, words)])


def _found(done: Sequence[Done], ident: str, words: str) -> tuple[Done, Claim]:
    for one in done:
        for claim in one.outcome.claims if one.item.ident == ident else ():
            if words in claim.text:
                return one, claim
    raise UserError(f"{ident} has no claim with the words {words!r}, which docs/reproduction.py names")


def _line(one: Done, said: str, claim: Claim) -> str:
    link = f"[{one.item.name}](#{one.item.ident})"
    return document.wrapped(f"**{said}.** {claim.because[:1].upper()}{claim.because[1:].rstrip('.')} ({link}).", "- ", "  ")
