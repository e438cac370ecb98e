"""Draws docs/architecture.svg, where everything is on one picture: `make docs`.

A layer is a row. It uses the rows below it and knows none above. A box (a room) names a folder and says what happens there;
tests/python/test_document_facts.py checks that each is there. Arrows show what flows through the lab's packages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from slabyard.base.svg import element, picture

FILE = Path(__file__).resolve().parent / "architecture.svg"
WIDTH, LEFT, GAP = 1000, 150, 8  # pixels: of the picture, of the layers' names, between boxes
HEIGHT, TITLE, LINE = 58, 17, 15  # of a box, to its first line, of each further one
MOST_LETTERS = 7.0  # pixels that a letter takes at most
FONT = "system-ui, sans-serif"


@dataclass(frozen=True)
class Room:
    """A box: the path of what is in it, what that does in at most two lines, and its share of the row."""

    path: str
    lines: tuple[str, ...]
    width: float = 1


@dataclass(frozen=True)
class Layer:
    """A row of rooms; `flow`: each hands on to the next one."""

    name: str
    about: str
    colour: str
    rooms: tuple[Room, ...] = field(default=())
    flow: bool = False


LAB, TOOLS, API, CORE = "#dbe8f6", "#dff0d8", "#fdf1cf", "#f6ddd8"
LAYERS = (
    Layer("the lab's verbs", "Python", LAB, (
        Room("lab/slabyard/command", ("options, one", "file a group")), Room("lab/slabyard/diff", ("what changed,", "regressions")),
        Room("lab/slabyard/tune", ("settings of an", "allocator")), Room("lab/slabyard/sweep", ("matrices of runs,", "may be killed")),
        Room("lab/slabyard/study", ("the papers,", "reproduced")),
        Room("lab/slabyard/kernels", ("build and boot", "Linux")),
    )),
    Layer("the lab", "what a trace goes through", LAB, (
        Room("lab/slabyard/capture", ("record, import",)), Room("lab/slabyard/trace", ("the Parquet file",)),
        Room("lab/slabyard/replay", ("runs a trace",)), Room("lab/slabyard/results", ("records, ranks",)),
        Room("lab/slabyard/report", ("tables, HTML",)), Room("lab/slabyard/attribution", ("who holds", "memory")),
        Room("lab/slabyard/live", ("top, inspect",)),
    ), flow=True),
    Layer("programs", "C; the lab starts most", TOOLS, (
        Room("import", ("text to events",)), Room("replay", ("one trace,", "one allocator")),
        Room("threads", ("real threads,", "one heap")),
        Room("pairs", ("objects of", "the papers")),
        Room("inspect", ("heaps of", "others")),
        Room("malloc", ("malloc(3),", "for LD_PRELOAD")), Room("ports/linux", ("the core inside", "of Linux")),
        Room("programs", ("what they share",)),
    )),
    Layer("public API", "what others compile against", API, (
        Room("include/slabyard", ("slabyard.h, kmem.h, slabyard.hpp:", "heaps, caches, kernel names")),
        Room("library", ("above the core: specs, opening heaps,", "the slab API of Linux")),
    )),
    Layer("heaps", "freestanding C from here down", CORE, (
        Room("core", ("heaps, caches, size classes, merging,", "deferred frees; types.h has every noun")),
        Room("core/debug", ("checks over any policy: records, zones,", "patterns, audit; not there when off")),
    )),
    Layer("policies", "a folder for each allocator", CORE, (
        Room("core/policies/yard", ("our own",)), Room("core/policies/slub", ("Linux 6.1",)),
        Room("core/policies/slab", ("Linux 6.1",)), Room("core/policies/slob", ("Linux 6.1",)),
        Room("core/policies/slqb", ("never merged",)), Room("core/policies/bonwick", ("SunOS 5.4",)),
        Room("core/policies/sunos4", ("SunOS 4.1.3",)), Room("core/policies/svr4", ("SVr4; bsd44.c",)),
    )),
    Layer("page interface", "where slabs come from", CORE, (
        Room("core/pages", ("the page allocator of Linux:", "zones, free lists, fallback")),
        Room("core/backend", ("what memory of a program needs: runs,", "mappings, decay, huge pages")),
    )),
    Layer("platform", "all that touches a system", CORE, (
        Room("core/platform", ("locks, atomics, CPU slots, clock, memory source; user.h for programs, bare.h for none",)),
    )),
)  # fmt: skip


def words(x: float, y: float, content: str, size: int = 12, **look: str) -> Markup:
    return element("text", {"x": x, "y": y, "font-size": size, **{key.replace("_", "-"): value for key, value in look.items()}}, content)


def room(box: Room, x: float, y: float, width: float, colour: str) -> list[Markup]:
    name = box.path.removeprefix("lab/slabyard/").removeprefix("core/policies/")
    name = name if name != box.path else f"{box.path}/"
    assert all(len(line) * MOST_LETTERS < width + 14 for line in box.lines), f"{box.path}: a line is too long for its box"
    place: dict[str, str | int | float] = {"x": x, "y": y, "width": width, "height": HEIGHT, "rx": 5}
    shapes = [element("rect", place | {"fill": colour, "stroke": "#555"})]
    shapes.append(words(x + 8, y + TITLE, name, 13, font_family="ui-monospace, monospace", font_weight="bold"))
    return shapes + [words(x + 8, y + TITLE + LINE * row, line) for row, line in enumerate(box.lines, 1)]


def layer(one: Layer, y: float) -> list[Markup]:
    shapes = [words(12, y + TITLE + 4, one.name, 15, font_weight="bold")]
    about = one.about.split()
    half = (len(about) + 1) // 2 if len(one.about) > 20 else len(about)
    shapes += [words(12, y + TITLE + 4 + LINE * row, " ".join(part)) for row, part in enumerate((about[:half], about[half:]), 1) if part]
    unit = (WIDTH - LEFT - 12 - GAP * (len(one.rooms) - 1)) / sum(box.width for box in one.rooms)
    x = float(LEFT)
    for place, box in enumerate(one.rooms):
        width = unit * box.width
        shapes += room(box, x, y, width, one.colour)
        if one.flow and place in range(4):
            shapes.append(words(x + width - 1, y + HEIGHT / 2 + 4, "▸", 14))
        x += width + GAP
    return shapes


def drawn() -> str:
    """The whole file."""
    height = 30 + len(LAYERS) * (HEIGHT + 22)
    shapes = [element("rect", {"width": WIDTH, "height": height, "fill": "#ffffff"})]
    y = 14.0
    for place, one in enumerate(LAYERS):
        shapes += layer(one, y)
        if place:
            shapes.append(words(WIDTH / 2 + LEFT / 2, y - 6, "▼", 13, fill="#777", text_anchor="middle"))
        y += HEIGHT + 22
    shapes.append(words(12, y + 2, "A layer may use those below it, and knows none above it. tests/layers links each without them.", 13))
    return picture({"viewBox": f"0 0 {WIDTH} {height}", "width": WIDTH, "height": height, "font-family": FONT, "fill": "#222"}, shapes)
