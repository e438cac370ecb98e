"""What the documents say is true: each figure, name, option and path in them, and their form.

test_documents.py checks what they show (commands, files, links). This file checks what else drifts as the code changes:

    form          no line over 120 columns, no paragraph over six lines, a short CHANGELOG
    limits        the limits of docs/cost.md are those that CMake gives to ctest, and no figure of ours in its tables is beyond one
    README        the exact columns of its table come from a replay of the trace that it names
    counts        a count in prose that a run of the program can give (size classes) is that of a run
    names         C names in backticks, where a page says that they are, functions that comments name, options, headings
                  that links lead to
    picture       the rooms of docs/architecture.svg are there, and the file is as docs/architecture.py draws it

A count needs an entry in COUNTS; all else is found by itself.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from pyarrow import parquet
from slabyard.command import parsers
from slabyard.replay import allocators
from slabyard.replay.workload import Options, Workload

from test_documents import DOCUMENTS, ROOT, spans

PAGES = [*DOCUMENTS, ROOT / "CHANGELOG.md", ROOT / "ports/linux/README.md"]
MANUALS = sorted((ROOT / "docs/man").iterdir())
COLUMNS, PARAGRAPH, CHANGES, TABLE = 120, 6, 60, 10
SOURCES = ("core", "include", "library", "malloc", "programs", "replay", "threads", "import", "launch", "ports", "lab", "bench", "tests")
CODE = {".c", ".h", ".hpp", ".cc"}
# Names of Linux and of the system that no source of ours has.
FOREIGN = {
    "split_page", "CONFIG_EXPERT", "MEMCG_KMEM", "SLUB_DEBUG", "MCL_CURRENT", "MCL_FUTURE", "RLIMIT_MEMLOCK", "get_robust_list",
    "SLAB_FREE_DOUBLE", "SLAB_LINEAR_OVERFLOW", "SLAB_FREE_CROSS", "WRITE_AFTER_FREE",
}  # fmt: skip
# Options of other programs.
OTHERS_OPTIONS = {
    "--cflags", "--libs", "--variable", "--deltatime", "--show-lost-events", "--overwrite", "--header", "--once", "--switch-output",
    "--threads",
    "--strict", "--prefix", "--add-architecture",
}  # fmt: skip


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


# ---- Form --------------------------------------------------------------------------------------------------------


def paragraphs(text: str) -> Iterator[list[str]]:
    """Paragraphs and items of lists, outside of blocks, tables and headings."""
    lines: list[str] = []
    fenced = False
    for line in [*text.splitlines(), ""]:
        if line.startswith("```"):
            fenced = not fenced
        plain = line.strip() and not fenced and not line.startswith(("|", "    ", "#", "```", "<!--", "!["))
        if lines and (not plain or re.match(r"\s*([-*]|\d+\.) ", line)):
            yield lines
            lines = []
        if plain:
            lines.append(line)


@pytest.mark.parametrize("page", [*PAGES, *MANUALS], ids=relative)
def test_lines_are_short(page: Path) -> None:
    long = [number for number, line in enumerate(page.read_text().splitlines(), 1) if len(line) > COLUMNS]
    assert not long, f"{relative(page)} is wider than {COLUMNS} columns in lines {long}"


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_paragraphs_are_short(page: Path) -> None:
    long = [lines[0] for lines in paragraphs(page.read_text()) if len(lines) > PARAGRAPH]
    assert not long, f"{relative(page)} has paragraphs over {PARAGRAPH} lines: {long}"


def test_the_changelog_is_a_list_of_what_can_be_done() -> None:
    assert len((ROOT / "CHANGELOG.md").read_text().splitlines()) <= CHANGES


PARTS = ("How it works", "Where free objects are", "Memory", "Tunables", "NUMA", "Good at")


@pytest.mark.parametrize("policy", [policy["name"] for policy in allocators.policies()])
def test_every_allocator_has_a_page_with_the_same_parts(policy: str) -> None:
    page = (ROOT / f"docs/allocators/{policy}.md").read_text()
    parts = [part for found in re.findall(r"^\*\*([A-Z][^*]*)\*\*", page, re.MULTILINE) for part in PARTS if found.startswith(part)]
    assert parts == list(PARTS)
    told = (ROOT / "docs/measures.md").read_text().split("## Memory nodes")[1].split("\n## ")[0]
    assert f"`{policy}`" in told, "docs/measures.md does not say how it serves nodes"
    assert f"| `{policy}` |" in (ROOT / "docs/allocators/README.md").read_text(), "it is not in the table of what they hold"
    assert (ROOT / "docs/conformance.md").read_text().count(f"| {policy} |") == 4, "its long run of the conformance suite is not recorded"


# ---- Limits ------------------------------------------------------------------------------------------------------


def enforced() -> dict[str, tuple[str, int]]:
    """For each test of ctest, the policy and the most instructions that it may take."""
    lists = (ROOT / "CMakeLists.txt").read_text()
    found = {}
    for name, limit, policy in re.findall(r"^ +slabyard_cost\((\S+) (\d+) (\w+) ", lists, re.MULTILINE):
        found[f"cost_{name.replace('${order}', '*')}"] = (policy, int(limit))
    return found


def table(text: str, marker: str) -> list[list[str]]:
    """The rows of a table that stands between its comments, without its head."""
    block = text.split(f"<!-- {marker} -->\n")[1].split(f"<!-- end of {marker} -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in block.strip().splitlines()[2:]]


def test_limits_of_cost_are_those_of_ctest() -> None:
    text = (ROOT / "docs/cost.md").read_text()
    told = {row[0].strip("`"): (row[1].strip("`"), int(row[3])) for row in table(text, "limits")}
    assert told == enforced()


def test_figures_of_cost_are_within_their_limits() -> None:
    text = (ROOT / "docs/cost.md").read_text()
    limits = enforced()
    last = lambda cell: int(cell.split()[-1])  # noqa: E731
    pairs = {row[0]: [last(cell) for cell in row[1:]] for row in table(text, "policies")}
    for place, name in enumerate(("cost_kmem", "cost_kmalloc", "cost_malloc")):
        policy, limit = limits[name]
        assert pairs[policy][place] <= limit, name
    policy, limit = limits["cost_bsd44"]
    assert pairs[policy][0] <= limit
    fills = {row[0]: [last(cell) for cell in row[2:]] for row in table(text, "fills")}
    policy, limit = limits["cost_fill_*"]
    assert max(fills[policy]) <= limit
    policy, limit = limits["cost_bonwick"]
    assert fills[policy][2] <= limit
    calls = {(row[0], row[1]): last(row[2]) for row in table(text, "calls")}
    wanted = {"cost_resize": "`realloc` in place, then `malloc_usable_size`", "cost_remote": "`free` by another thread, shuffled"}
    for name, call in wanted.items():
        policy, limit = limits[name]
        assert calls[call, policy] <= limit, name


def test_what_pairs_are_spent_on_adds_up() -> None:
    text = (ROOT / "docs/cost.md").read_text()
    functions = ("kmem_cache_alloc", "kmalloc", "malloc")
    pairs = {(row[0], name): cell for row in table(text, "policies") for name, cell in zip(functions, row[1:], strict=True)}
    for what, sum_, *parts in table(text, "spent"):
        policy, name = what.split(": ")
        assert int(pairs[policy, name].split()[-1]) == int(sum_), what
        assert abs(sum(int(part) for part in parts if part) - int(sum_)) <= len(parts) // 2, what  # each is rounded


def test_what_a_pair_under_yard_is_spent_on_adds_up() -> None:
    text = (ROOT / "docs/cost.md").read_text()
    rows = text.split("What a pair spends under `yard`:")[1].split("\n\n")[1].splitlines()[2:]
    cells = [[int(cell.strip() or 0) for cell in row.strip("|").split("|")[1:]] for row in rows]
    pair = next(row[1] for row in table(text, "policies") if row[0] == "yard")
    assert [sum(column) for column in zip(*cells, strict=True)] == [int(part) for part in pair.split()[:3:2]]


# The policy or variant whose hot calls a file counts in a comment.
COUNTED = {
    "yard": "yard/this_slot.c", "slub": "slub/slub.c", "slab": "slab/slab.c", "slqb": "slqb/slqb.c", "bonwick": "bonwick/bonwick.c",
    "bonwick:percpu=32": "bonwick/percpu.c", "bonwick:magazine=on": "bonwick/magazine.c", "bsd44": "bsd44.c", "slob": "slob/slob.c",
    "sunos4": "sunos4/sunos4.c", "svr4": "svr4/svr4.c",
}  # fmt: skip


def test_every_policy_tells_the_instructions_of_its_hot_calls() -> None:
    for spec, kmem, kmalloc, _ in table((ROOT / "docs/cost.md").read_text(), "policies"):
        words = " ".join((ROOT / "core/policies" / COUNTED[spec]).read_text().replace("\n *", " ").split())
        counts = [int(part) for cell in (kmem, kmalloc) for part in cell.split()[:3:2]]
        told = "Instructions of hot calls (docs/cost.md): kmem_cache_alloc {}, kmem_cache_free {}, kmalloc {}, kfree {}".format(*counts)
        assert told in words, f"{COUNTED[spec]} does not say: {told}"


# ---- The README's table ------------------------------------------------------------------------------------------


def compared(text: str) -> tuple[str, list[str], dict[str, list[str]]]:
    """The first comparison as text: the lines above it, its columns, its rows by allocator. A wide table is cut into
    several."""
    lines = [line.strip() for line in text.splitlines()]
    first = next(place for place, line in enumerate(lines) if line.startswith("allocator  "))
    title = next(place for place in range(first, -1, -1) if ": " in lines[place] and "requests" in lines[place])
    columns: list[str] = []
    rows: dict[str, list[str]] = {}
    head = first
    while lines[head].startswith("allocator  "):
        end = lines.index("", head)
        columns += re.split(r" {2,}", lines[head])
        for line in lines[head + 2 : end]:
            name, *cells = re.split(r" {2,}", line)
            rows.setdefault(name, []).extend([name, *cells])
        head = end + 1
    return " ".join(lines[title : first - 1]), columns, rows


def test_the_readme_shows_what_compare_prints() -> None:
    """Equal except for times, which differ from run to run."""
    title, columns, rows = compared((ROOT / "README.md").read_text())
    assert 2 + len(rows) <= TABLE
    trace = ROOT / f"traces/{title.partition(':')[0]}.parquet"
    specs = ",".join(name for name in rows if name != "recorded")
    argv = [sys.executable, "-m", "slabyard", "compare", str(trace), "--allocators", specs, "--runs", "1"]
    printed = compared(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    assert (title, columns) == printed[:2]
    exact = columns.index("start")
    for name, row in rows.items():
        assert row[exact:] == printed[2][name][exact:], name


# ---- Counts ------------------------------------------------------------------------------------------------------


@cache
def classes(spec: str, prefix: str) -> list[int]:
    """Sizes of a policy's size classes, as its slabinfo names them."""
    with Workload(ROOT / "traces/fileio.parquet", Options()) as workload:
        text = workload.proc(spec, "slabinfo")
    return sorted(int(size) for size in re.findall(rf"^{prefix}(\d+) ", text, re.MULTILINE))


def generated(page: str, begin: str, end: str) -> str:
    """What a program wrote into a document between two comments."""
    return (ROOT / page).read_text().split(f"<!-- {begin} -->")[1].split(f"<!-- {end} -->")[0]


def most(marker: str) -> str:
    """The largest share in one of the tables of docs/fidelity.md, whatever its sign."""
    text = generated("docs/fidelity.md", f"{marker}: made by make fidelity", f"end of {marker}")
    return f"{max(float(share) for share in re.findall(r'[+-]([0-9.]+)%', text))}"


def equal_caches(allocator: str) -> str:
    text = generated("docs/fidelity.md", f"geometry-{allocator}: made by make fidelity", f"end of geometry-{allocator}")
    equal, of = re.search(r"(\d+) of (\d+) caches are equal", text).groups()  # type: ignore[union-attr]
    assert equal == of
    return str(equal)


@cache
def off_the_recorded_kernel() -> str:
    """The largest difference between a bundled trace replayed under SLUB and its recorded kernel, at the peak or at the end,
    in whole percent."""
    worst = 0.0
    for trace in (ROOT / "traces").glob("*.parquet"):
        with Workload(trace, Options()) as workload:
            replay, real = workload.exact("slub"), workload.recorded()
            assert real
            for name in ("held_pages_peak", "held_pages_end"):
                worst = max(worst, abs(replay[name] / real[name] - 1))
    return str(math.ceil(100 * worst))


def older_objects() -> str:
    """The least and the most that a replay of a bundled trace has of them."""
    found = []
    for trace in (ROOT / "traces").glob("*.parquet"):
        with Workload(trace, Options()) as workload:
            found.append(workload.exact("slub")["older_objects"])
    return f"{min(found):,} to {max(found):,}"


def events_of(trace: str) -> str:
    return f"{parquet.read_metadata(ROOT / 'traces' / trace).num_rows:,}"


# Document, pattern with one group, and the same count as a run gives it, or as a table says that a run has written.
COUNTS = [
    ("README.md", r"6.1 boots come within ([\d.]+)% of the real", lambda: most("totals")),
    ("README.md", r"comes within (\d+)% of its peak in all five", off_the_recorded_kernel),
    ("docs/fidelity.md", r"at most ([\d.]+)% of the peak at the snapshot", lambda: most("totals")),
    ("docs/fidelity.md", r"at most ([\d.]+)% at any moment", lambda: most("deviations")),
    ("docs/fidelity.md", r"all (\d+) of SLAB", lambda: equal_caches("slab")),
    ("docs/fidelity.md", r"all (\d+) of SLUB", lambda: equal_caches("slub")),
    ("docs/measures.md", r"bundled traces have ([\d,]+ to [\d,]+) objects older", older_objects),
    ("docs/measures.md", r"on `find` \(([\d,]+) events\)", lambda: events_of("find.parquet")),
    ("docs/allocators/bonwick.md", r"Its (\d+) size classes", lambda: len(classes("bonwick", "kmem_alloc_"))),
    ("docs/fidelity.md", r"Here: (\d+), from 8 bytes to", lambda: len(classes("bonwick", "kmem_alloc_"))),
    ("docs/fidelity.md", r"from 8 bytes to ([\d,]+)", lambda: f"{max(classes('bonwick', 'kmem_alloc_')):,}"),
]


@pytest.mark.parametrize("page, pattern, count", COUNTS, ids=lambda value: value if isinstance(value, str) else "")
def test_counts_are_those_of_a_run(page: str, pattern: str, count: object) -> None:
    told = re.search(pattern, " ".join((ROOT / page).read_text().split()))
    assert told, f"{page} says nothing like {pattern}"
    assert told[1] == str(count()), page  # type: ignore[operator]


def test_what_benchmarks_says_of_its_tables_is_so() -> None:
    """The mean times beside the fastest library's, and the programs that are far behind their fastest library."""
    page = " ".join((ROOT / "docs/benchmarks.md").read_text().split())
    text = generated("docs/benchmarks.md", "bench-malloc begins", "bench-malloc ends").split("### Time")[1].split("\n\n")[1]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines())
    ours = head.index("slabyard:yard")
    figures = {row[0]: [1.0, *map(float, row[2:])] for row in rows if row[0] not in ("geom. mean", "rank")}
    means = dict(zip(head[1:], next(row for row in rows if row[0] == "geom. mean")[1:], strict=True))
    told = re.search(r"slabyard and (\w+) take the least time \(([\d.]+) and ([\d.]+) of glibc's\)", page)
    assert told and (means["slabyard:yard"], means[told[1]]) == (told[2], told[3])
    assert sorted(map(float, means.values()))[:2] == sorted(map(float, told.groups()[1:]))
    slow = re.search(r"No program takes more than ([\d.]+) times as long [^:]*:([^(]*)\(", page)
    assert slow
    found = {name for name, row in figures.items() if row[ours - 1] / min(row) > float(slow[1]) + 0.01}  # cells are rounded
    assert found <= set(re.findall(r"\*([^*]+)\*", slow[2]))


# ---- Names -------------------------------------------------------------------------------------------------------


def files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in (ROOT / folder).rglob("*") if path.is_file() and ".hypothesis" not in path.parts)


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


@cache
def known(*folders: str) -> frozenset[str]:
    """Every word of the code in these folders, comments in C left out."""
    words: set[str] = set()
    for path in files(*folders):
        if path.suffix in CODE | {".py", ".map", ".config", ".sh", ".mk"} and path.name != Path(__file__).name:
            text = path.read_text(errors="replace")
            words.update(re.findall(r"\w+", without_comments(text) if path.suffix in CODE else text))
    return frozenset(words)


def prose(text: str) -> str:
    """A document without what programs wrote into it."""
    return re.sub(r"<!-- [^\n]*made by .*?<!-- end[^\n]*-->", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_names_of_c_exist(page: Path) -> None:
    for span in spans(prose(page.read_text())):
        name = re.fullmatch(r"(?:struct |enum )?([A-Za-z_]\w*_\w*)(\(\))?", span)
        if name:
            assert name[1] in known(*SOURCES) | FOREIGN | enforced().keys(), f"nothing is called {span}"


@pytest.mark.parametrize("page", MANUALS, ids=relative)
def test_names_in_manuals_exist(page: Path) -> None:
    for name in re.findall(r"^\.(?:Fn|Fo|Dv|Vt|Ev) \"?(?:struct )?(\w+_\w+)", page.read_text(), re.MULTILINE):
        assert name in known(*SOURCES) | FOREIGN, f"nothing is called {name}"


def comments(folder: str) -> Iterator[tuple[Path, str]]:
    for path in files(folder):
        if path.suffix in CODE:
            for comment in re.findall(r"/\*.*?\*/|//[^\n]*", path.read_text(), re.DOTALL):
                yield path, comment


@pytest.mark.parametrize("folder", ["include", "core", "library", "malloc", "programs", "replay", "threads", "import", "ports"])
def test_functions_that_comments_name_exist(folder: str) -> None:
    public = known("include") if folder == "include" else known(*SOURCES)
    for path, comment in comments(folder):
        for name in re.findall(r"\b(sy_\w+|SY_\w+|kmem_cache_\w+(?=\(\)))", comment):
            if folder == "include" or not name.startswith("kmem_"):
                assert name in public or name.endswith("_"), f"{relative(path)} names {name}, which is not there"


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    found = {option for action in parser._actions for option in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= {option for each in action.choices.values() for option in options_of(each)}
    return found


@cache
def options() -> frozenset[str]:
    """All options of the command, of the programs in bench/ and of the tests' programs."""
    found = options_of(parsers.parser()) | OTHERS_OPTIONS
    for path in files("bench", "tests/conformance", "docs"):
        if path.suffix in (".py", ".c"):
            found.update(re.findall(r"\"(--[a-z][\w-]*)\"", path.read_text()))
    counter = (ROOT / "bench/count_instructions.c").read_text()
    found.update(f"--{name}" for name in re.findall(r"\"([a-z]+)\"", counter))
    return frozenset(found)


@pytest.mark.parametrize("page", [*PAGES, *MANUALS], ids=relative)
def test_options_exist(page: Path) -> None:
    text = page.read_text()
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text)) | {f"--{name}" for name in re.findall(r"\bFl -([a-z][\w-]*)", text)}
    assert not named - options(), f"{relative(page)} names options that nothing takes"


@pytest.mark.parametrize("page", MANUALS, ids=relative)
def test_files_of_manuals_exist(page: Path) -> None:
    for path in re.findall(r"^\.Pa (docs/\S+)", page.read_text(), re.MULTILINE):
        assert (ROOT / path).is_file(), f"{path} is not there"


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_names_are_in_the_files_that_are_told(page: Path) -> None:
    text = " ".join(page.read_text().split())
    for name, path in re.findall(r"`(?:struct )?(\w+)(?:\(\))?` in `([\w/]+\.\w+)`", text):
        if (ROOT / path).is_file():
            assert re.search(rf"\b{name}\b", (ROOT / path).read_text()), f"{path} has no {name}"


def anchor(heading: str) -> str:
    """What GitHub calls a heading in a link."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_to_headings(page: Path) -> None:
    for target, place in re.findall(r"\]\(([^)#:]*)#([^)]*)\)", page.read_text()):
        text = ((page.parent / target) if target else page).read_text()
        headings = {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
        assert place in headings | set(re.findall(r'<a id="([^"]+)"></a>', text)), f"{target} has no {place}"


# ---- The picture -------------------------------------------------------------------------------------------------


def test_the_picture_shows_what_is_there() -> None:
    form = importlib.util.spec_from_file_location("architecture", ROOT / "docs/architecture.py")
    assert form and form.loader
    architecture = importlib.util.module_from_spec(form)
    sys.modules["architecture"] = architecture  # dataclasses look it up
    form.loader.exec_module(architecture)
    for layer in architecture.LAYERS:
        for room in layer.rooms:
            assert (ROOT / room.path).exists(), f"{room.path} is not there"
    assert architecture.FILE.read_text() == architecture.drawn(), "docs/architecture.svg is stale: make docs"
    assert len((ROOT / "docs/architecture.md").read_text().splitlines()) <= 2 * 50  # two screens
