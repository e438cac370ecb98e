"""The heaps of a program as Prometheus's text format 0.0.4: what an exporter serves, or node_exporter's textfile collector reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .inspect import Answer, rows_of, spec_of

# Name, what it means, and the member of the answer.
OF_HEAPS = (
    ("slabyard_heap_held_bytes", "Memory that the heap holds.", "held_bytes"),
    ("slabyard_heap_used_bytes", "Of it, memory in use.", "used_bytes"),
    ("slabyard_heap_slab_bytes", "Memory in slabs.", "slab_bytes"),
    ("slabyard_heap_large_bytes", "Memory in large allocations.", "large_bytes"),
    ("slabyard_heap_metadata_bytes", "Memory of the heap's bookkeeping.", "metadata_bytes"),
    ("slabyard_heap_free_bytes", "Free pages that have memory.", "free_backed_bytes"),
)
OF_CACHES = (
    ("slabyard_cache_bytes", "Memory in the slabs of a cache.", "bytes"),
    ("slabyard_cache_used_bytes", "Of it, memory in use.", "used_bytes"),
    ("slabyard_cache_slabs", "Slabs of a cache.", "slabs"),
    ("slabyard_cache_objects", "Objects that there is room for.", "objects"),
    ("slabyard_cache_used_objects", "Objects in use.", "used"),
)
COUNTERS = (
    ("slabyard_heap_page_requests_total", "Requests to the page allocator.", "page_requests"),
    ("slabyard_heap_page_failures_total", "Of these, refused.", "page_failures"),
)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _line(name: str, labels: dict[str, str], value: int) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value}"


def _family(name: str, meaning: str, kind: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"# HELP {name} {meaning}"
        yield f"# TYPE {name} {kind}"
        yield from lines


def text(answer: Answer) -> str:
    """All figures. Labels tell the heap, by its place among the program's, and its spec."""
    heaps: list[tuple[dict[str, str], dict[str, Any]]] = [
        ({"heap": str(number), "spec": spec_of(heap)}, heap) for number, heap in enumerate(answer["heaps"])
    ]
    lines: list[str] = []
    for families, kind in ((OF_HEAPS, "gauge"), (COUNTERS, "counter")):
        for name, meaning, member in families:
            lines += _family(name, meaning, kind, [_line(name, labels, heap[member]) for labels, heap in heaps])
    for name, meaning, member in OF_CACHES:
        values = [(labels, one) for labels, heap in heaps for one in rows_of(heap) if one[member] is not None]
        lines += _family(name, meaning, "gauge", [_line(name, {**labels, "cache": one["name"]}, one[member]) for labels, one in values])
    if mapped := answer["mappings"]:
        line = f"slabyard_mapped_bytes {mapped['bytes']}"
        lines += _family("slabyard_mapped_bytes", "Objects of malloc outside of the heap.", "gauge", [line])
    return "\n".join(lines) + "\n"
