"""Tables as text: whatever stands in them, they fit 80 columns and lose nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import handmade
import pytest
from handmade import slabyard
from slabyard.base.table import Cell, Table, WIDTH, render
from slabyard.base.terminal import Progress, note

LONG = "another_very_long_workload-name-that-goes-on,and:on/for ever"


def widest(text: str) -> int:
    return max(map(len, text.splitlines()))


def ranking(workloads: int, name: str) -> Table:
    rows: list[list[Cell]] = [
        ["time", "slub:cpu_partial=8,min_partial=2,max_order=0", *range(1000, 1000 + workloads)],
        ["fragmentation", "malloc:/usr/lib/x86_64-linux-gnu/libsomething.so.2.3.4", *[None] * workloads],
    ]
    return Table("Ranking " + "x" * 90, ["rank by", "allocator", *[f"{name}{place}" for place in range(workloads)]], rows, keys=2)


def letters(text: str) -> str:
    return "".join(sorted("".join(text.split()).replace("-", "")))


@pytest.mark.parametrize("workloads", [1, 2, 5, 12, 40])
@pytest.mark.parametrize("name", ["w", "a-name-of-25-letters-for-", LONG, "x" * 200])
def test_a_table_keeps_to_its_width_and_loses_nothing(workloads: int, name: str) -> None:
    table = ranking(workloads, name)
    text = render([table], "text")
    assert widest(text) <= WIDTH
    first, *more = text.split("\n\n")[1:]
    assert all(part.startswith("rank by") for part in more)
    keys = letters("rank by allocator time fragmentation" + str(table.rows[0][1]) + str(table.rows[1][1]))
    shown = letters("".join([first, *more]))
    headings, figures = "".join(table.columns[2:]), "".join(f"{number:,}" for number in range(1000, 1000 + workloads))
    assert shown == "".join(sorted(letters(headings + figures) + keys * (1 + len(more))))


def test_what_fits_is_left_as_it_is() -> None:
    table = Table("", ["allocator", "x" * 40, "y" * 27], [["slub", 1, 2]])
    assert widest(render([table], "text")) == WIDTH and len(render([table], "text").splitlines()) == 3


def test_words_of_headings_stay_whole() -> None:
    columns = ["process", "allocations", "live at exit", "live peak KiB", "slab KiB", "run KiB", "mapped KiB", "resident peak KiB"]
    text = render([Table("", columns, [["true (7339)", *range(1_000_000, 1_000_007)]])], "text")
    assert widest(text) <= WIDTH and all(word in text.split() for heading in columns for word in heading.split())


@pytest.mark.parametrize("name", ["20,000 allocated", "small: kmem_alloc beside 64", "filled: slabyard:slob:fit=next"])
def test_numbers_and_names_stay_whole(name: str) -> None:
    text = render([Table("", ["", "x" * 12, "y" * 12, "z" * 12, "why"], [[name, 1, 2, 3, "said " * 20]])], "text")
    assert widest(text) <= WIDTH and set(name.split()) <= set(text.split())


def test_lines_that_a_cell_has_already_stay() -> None:
    cell = "\n".join(["one of these lines is as long as this, so that all of them", "and another", "end"])
    fits = render([Table("", ["trace", ""], [["command", cell]])], "text")
    assert [line.split("  ")[-1].strip() for line in fits.splitlines()[2:]] == cell.splitlines()
    broken = render([Table("", ["trace", ""], [["command " * 3, f"{cell}\n{'x' * 60}"]])], "text")
    assert widest(broken) <= WIDTH and "and another" in broken and "x" * 30 in broken


def test_text_beside_a_table_is_wrapped() -> None:
    text = render([Table("title " * 20, ["a"], [[1]], notes=["note " * 30, "", "end"])], "text")
    assert widest(text) <= WIDTH and text.count("note") == 30 and text.endswith("\n\nend\n")


def test_names_do_not_break_markdown() -> None:
    assert "| a\\|b | c d |" in " ".join(render([Table("", ["x", "y"], [["a|b", "c\nd"]])], "md").split())


def test_a_comparison_of_long_names_and_allocators(tmp_path: Path) -> None:
    names = "n" * 60, "some-recorded-workload-with-a-very-long-name-of-many-words"
    traces = [handmade.busy(tmp_path / f"{name}.parquet") for name in names]
    allocators = "slub,slob:fit=best,slub:min_order=0,max_order=3,min_objects=4,cpu_partial=8"
    done = slabyard("compare", *traces, "--allocators", allocators, "--runs", "1")
    assert done.returncode == 0 and widest(done.stdout) <= WIDTH
    assert "n" * 60 + ": " in done.stdout and "slub:min_order=0," in done.stdout


def test_a_note_is_one_line_that_no_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    note("a\nb\x1b[31m \udce9 é")
    Progress(1).stage("c\rd")
    assert capsys.readouterr().err == "slabyard: a b\\x1b[31m \\xe9 é\nslabyard: c d\n"


def test_what_is_done_is_shown_as_it_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(2) as progress:
        progress.step("x[/red]y[red]z")
    assert "x[/red]y[red]z" in capsys.readouterr().err
