"""`slabyard study`: items, records, resuming, and what is shown. The papers' own items have tests of their own."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import os
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from slabyard.base import table
from slabyard.base.errors import MISSING, UserError
from slabyard.base.table import Table
from slabyard.base.terminal import Progress
from slabyard.command import study_verb
from slabyard.kernels.kinds import Kind
from slabyard.kernels.versions import DEFAULT
from slabyard.study import document, papers, study, tables
from slabyard.study.model import (
    HOLDS, IN_PART, NOT, RECORDS, UNTOLD, Claim, Data, Done, Figure, Item, LeftOut, Outcome, Picture, Sheet, repeated,
)  # fmt: skip
from slabyard.study.work import Work
from test_cli import complaint, slabyard

QUIET = Progress(0, quiet=True)


def judge(data: Data) -> Outcome:
    rows = [("first", repeated(2.0, data["first"])), ("ours alone", Figure(None, 7.0)), ("not to be had", Figure(3.0, None))]
    measured = f"measured: {data['first'][0]:g} and {data['first'][-1]:g}"
    claims = [
        Claim("the first is 2", data["first"] == [2.0, 2.0], measured),
        Claim("it is positive", min(data["first"]) > 0, "measured: <1>"),
    ]
    return Outcome([Sheet("A table", "s", rows, "µs")], claims, [Picture("A picture", "<svg><rect/></svg>")], stands_for="a <machine>")


def item(name: str, measure: Callable[[Work], Data]) -> Item:
    return Item("bonwick", name, f"The {name} table", "section 9", measure, judge)


def run(wanted: list[Item], folder: Path | None, quick: bool = False) -> list[Any]:
    return study.run(wanted, quick, folder, QUIET, lambda _: None)


def test_verdicts() -> None:
    def verdict(*holds: bool | None) -> str:
        return Outcome([], [Claim("", one) for one in holds]).verdict

    assert (verdict(True, True), verdict(True, False), verdict(False)) == (HOLDS, IN_PART, NOT)
    assert (verdict(None, None), verdict(True, None), verdict(False, None)) == (UNTOLD, IN_PART, NOT)
    found = dataclasses.replace(item("one", lambda _: {}), judge=lambda _: Outcome([], [Claim("a", None), Claim("b", True)]))
    done = run([found], None)
    assert tables.counts(done[0]) == "1 of 2, 1 cannot be told" and UNTOLD in tables.page(done)
    assert "- Cannot be told here: a." in document.text(done) and tables.plain(done)[0]["claims"][0]["holds"] is None


def test_figures() -> None:
    assert repeated(4.0, [1.0, 2.0, 3.0]) == Figure(4.0, 2.0, 1.0, 3.0) and repeated(4.0, [1.0, 3.0]).ratio == 0.5
    assert Figure(None, 1.0).ratio is None and Figure(0.0, 1.0).ratio is None and repeated(1.0, []).ratio is None


@pytest.mark.parametrize(
    ("paper", "printed", "number"),
    [
        (204.5, "204.5", 204.5), (27.10694, "27.10694", 27.10694), (5, "5", 5), ("384.50", "384.50", 384.5), ("18 to 19", "18 to 19", 18.5),
        ("over 4", "over 4", 4), ("5,666.468", "5,666.468", 5666.468), (None, None, None), ("-", "-", None),
    ],
)  # fmt: skip
def test_a_figure_of_the_paper_stands_as_it_is_printed(paper: float | str | None, printed: str | None, number: float | None) -> None:
    figure = Figure(paper, 9.25)
    assert (figure.printed, figure.of_paper) == (printed, number) and figure.ratio == (number and 9.25 / number)
    shown = tables.sheet_table("t", Sheet("t", "s", [("row", figure), ("other", Figure(1, 1.0))])).cells()[0]
    assert shown[1:3] == [printed or "-", "9.25"]


def test_ranks_have_no_ratio() -> None:
    sheet = Sheet("t", "rank", [("row", Figure(3, 1))], ratios=False)
    assert tables.sheet_table("t", sheet).cells() == [["row", "3", "1"]]


def test_a_record_says_when_and_with_what_it_was_made(tmp_path: Path) -> None:
    plain = run([item("two", lambda _: {"first": [2.0, 2.0]})], tmp_path)[0].record
    assert plain["date"] in tables.made(plain) and plain["seconds"] >= 0 and "qemu" not in plain["versions"]
    old = {"machine": plain["machine"], "versions": {"slabyard": "0.1.0"}}
    assert tables.made(old).endswith(", slabyard 0.1.0")


def test_a_study_that_was_ended_goes_on(tmp_path: Path) -> None:
    ran: list[str] = []

    def part(name: str, fails: bool = False) -> Callable[[], float]:
        def measured() -> float:
            ran.append(name)
            if fails:
                raise KeyboardInterrupt
            return 2.0

        return measured

    def measure(fails: bool) -> Callable[[Work], Data]:
        return lambda work: {"first": [work.once("a", part("a")), work.once("b", part("b", fails))]}

    with pytest.raises(KeyboardInterrupt):
        run([item("one", lambda _: {"first": [2.0, 2.0]}), item("two", measure(True))], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bonwick-one.json", f"bonwick-two.full-{DEFAULT}.parts"]
    run([item("two", measure(False))], tmp_path, quick=True)
    assert ran == ["a", "b", "a", "b"], "a quick run has parts of its own"
    done = run([item("one", measure(True)), item("two", measure(False))], tmp_path)
    assert ran[4:] == ["b"] and [one.outcome.verdict for one in done] == [HOLDS, HOLDS]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bonwick-one.json", "bonwick-two.json"]
    assert run([item("one", measure(True))], tmp_path)[0].record == done[0].record  # not run again


def test_what_several_items_judge_is_kept_once(tmp_path: Path) -> None:
    ran: list[str] = []

    def measure(work: Work) -> Data:
        return {"first": [work.once("a", lambda: ran.append("a") or 2.0)] * 2}

    one, two = (dataclasses.replace(item(name, measure), kept_as="both") for name in ("one", "two"))
    run([one], tmp_path)
    [done] = run([two], tmp_path)
    assert ran == ["a"] and done.outcome.verdict == HOLDS and [path.name for path in tmp_path.iterdir()] == ["bonwick-both.json"]
    [told] = tables.plain([done])
    assert (told["item"], told["title"]) == ("two", "The two table")


def test_the_time_of_runs_that_were_ended_counts(tmp_path: Path) -> None:
    kept = tmp_path / "one.parts"
    Work(False, QUIET, kept).once("a", lambda: 1)
    parts = json.loads(kept.read_text())
    kept.write_text(json.dumps({name: one if name == "a" else one + 1000 for name, one in parts.items()}))
    again = Work(False, QUIET, kept)
    assert again.parts == {"a": 1} and 1000 <= again.seconds < 1900


def test_parts_side_by_side_are_kept_as_they_end(tmp_path: Path) -> None:
    def fails() -> int:
        raise KeyboardInterrupt

    kept = tmp_path / "one.parts"
    with pytest.raises(KeyboardInterrupt):
        Work(False, QUIET, kept).side_by_side({"fails": fails, "done": lambda: 1})
    Work(False, QUIET, kept).side_by_side({"done": lambda: 1})
    again = Work(False, QUIET, kept)
    assert again.side_by_side({"new": lambda: 2, "done": fails}) == {"new": 2, "done": 1} and again.parts == {"done": 1, "new": 2}


def test_what_is_timed_runs_alone_and_what_follows_it_beside_the_next_one(tmp_path: Path) -> None:
    timing: list[str] = []
    begun = {name: threading.Event() for name in "abc"}

    def part(name: str, follower: str, over: Callable[[], None]) -> str:
        assert not timing, "another one is being timed"
        timing.append(name)
        begun[name].set()
        assert not follower or not begun[follower].wait(0.2)
        timing.remove(name)
        over()
        assert not follower or begun[follower].wait(60), "the next one begins before this one ends"
        over()  # does nothing more
        return name

    parts = {name: functools.partial(part, name, follower) for name, follower in (("a", "b"), ("b", "c"), ("c", ""))}
    work = Work(False, QUIET, tmp_path / "one.parts")
    assert work.timed(parts) == {name: name for name in "abc"} and work.parts == {name: name for name in "abc"}
    assert work.timed({"a": lambda over: "not again"}) == {"a": "a"}

    def fails(over: Callable[[], None]) -> str:
        raise UserError("no")

    with pytest.raises(UserError, match="no"):
        Work(False, QUIET, None).timed({"fails": fails, "next": lambda over: "done"})


def test_parts_are_steps_of_the_progress(tmp_path: Path) -> None:
    kept = tmp_path / "one.parts"
    Work(False, QUIET, kept).once("done", lambda: 1)
    shown = Progress(1, quiet=True)
    work = Work(False, shown, kept)
    assert work.in_turn({"done": lambda: 0, "a": lambda: 2}) == {"done": 1, "a": 2} and (shown.done, shown.total) == (2, 3)
    assert work.side_by_side({"a": lambda: 0, "b": lambda: 3}) == {"a": 2, "b": 3} and (shown.done, shown.total) == (4, 5)


def test_all_steps_are_done_when_a_study_is(tmp_path: Path) -> None:
    def missing() -> None:
        raise UserError("no such tool")

    def measure(work: Work) -> Data:
        return work.in_turn({"first": lambda: [1.0]}) | work.side_by_side({"second": lambda: [2.0]})

    wanted = [item("one", measure), dataclasses.replace(item("two", measure), check=missing)]
    shown = Progress(len(wanted), quiet=True)
    study.run(wanted, False, None, shown, lambda _: None, lambda _: None)
    assert shown.done == shown.total == 4


def test_bold_notes_of_a_study_that_has_no_paper() -> None:
    def judge_own(data: Data) -> Outcome:
        return Outcome([], [Claim("a", True)], notes=["**Which <one>?** This."])

    done = study.run([Item("sheaves", "one", "One", "answer 1", lambda _: {}, judge_own)], False, None, QUIET, lambda _: None)
    shown = tables.page(done)
    assert "<strong>Which &lt;one&gt;?</strong> This." in shown and "what is expected" in shown and "The papers on" not in shown
    assert tables.tables(done)[0].notes == ["Which <one>? This."]


def test_quick_and_full_records_are_not_taken_for_each_other(tmp_path: Path) -> None:
    quick = run([item("one", lambda work: {"first": [float(work.repetitions)] * 2})], tmp_path, quick=True)
    full = run([item("one", lambda work: {"first": [float(work.repetitions)] * 2})], tmp_path)
    assert (quick[0].record["data"]["first"][0], full[0].record["data"]["first"][0]) == (3.0, 5.0)


@pytest.mark.parametrize(
    ("name", "text"),
    [("bonwick-one.json", "{"), ("bonwick-one.json", '{"schema": 99}'), (f"bonwick-one.full-{DEFAULT}.parts", "[")],
)
def test_a_broken_record_is_told_of(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match="remove it"):
        run([item("one", lambda _: {"first": [1.0]})], tmp_path)


def test_what_is_missing_is_told_before_the_first_run() -> None:
    def missing() -> None:
        raise UserError("no valgrind")

    def never(_: Work) -> Data:
        raise AssertionError

    with pytest.raises(UserError, match="bonwick two: no valgrind"):
        run([item("one", never), Item("bonwick", "two", "", "", never, judge, missing)], None)


def test_the_study_goes_on_without_what_cannot_be_run() -> None:
    def missing() -> None:
        raise UserError("no <valgrind>", MISSING)

    def fails(_: Work) -> Data:
        raise UserError("the boot failed")

    def good(_: Work) -> Data:
        return {"first": [2.0, 2.0]}

    left: list[LeftOut] = []
    wanted = [item("one", fails), Item("bonwick", "two", "The second", "", fails, judge, missing), item("three", good)]
    done = study.run(wanted, True, None, QUIET, lambda _: None, left.append)
    assert [one.item.name for one in done] == ["three"]
    assert [(one.item.name, one.error.message) for one in left] == [("two", "no <valgrind>"), ("one", "the boot failed")]
    assert [row[-2] for row in tables.tables(done, left)[-1].rows] == [HOLDS, "left out", "left out"]
    assert "no &lt;valgrind&gt;" in tables.page(done, left)


def test_kernels_are_built_before_the_first_item(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    happened: list[str] = []

    def built(arch: str, kind: Kind, _: Progress, outlined: bool, small: bool, linux: str) -> None:
        assert small and linux == DEFAULT
        happened.append(f"{arch} {kind.name} {outlined}")
        if arch == "arm64":
            raise UserError("no room")

    def good(_: Work) -> Data:
        happened.append("an item")
        return {"first": [2.0, 2.0]}

    monkeypatch.setattr(study.build, "from_installed", built)
    kernels = [[("x86_64", "slob", True), ("x86_64", "slob", False)], [("x86_64", "slub", False), ("x86_64", "slob", False)]]
    wanted = [dataclasses.replace(item(f"item{at}", good), kernels=needed) for at, needed in enumerate(kernels)]
    assert len(run(wanted, tmp_path, True)) == 2
    assert happened == ["x86_64 slub False", "x86_64 slob False", "x86_64 slob True", "an item", "an item"]
    run(wanted, tmp_path, True)
    assert len(happened) == 5, "what is kept needs no kernel"
    failing = dataclasses.replace(wanted[0], name="again", kernels=[("arm64", "slub", False), ("arm64", "slab", False)])
    assert len(run([failing], tmp_path, True)) == 1, "an item that needs what cannot be built tells so"
    assert happened[5:] == ["arm64 slub False", "an item"]


def test_kernels_of_two_configurations_are_built_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    met = threading.Barrier(2, timeout=60)
    happened: list[str] = []

    def built(arch: str, kind: Kind, _: Progress, outlined: bool, small: bool, linux: str) -> None:
        if kind.name in ("slab", "slob"):
            met.wait()
        happened.append(kind.name)

    monkeypatch.setattr(study.build, "from_installed", built)
    kernels = [("x86_64", kind, False) for kind in ("slabyard", "slob", "slab", "slub")]
    run([dataclasses.replace(item("one", lambda _: {"first": [2.0, 2.0]}), kernels=kernels)], None)
    assert happened[0] == "slub" and sorted(happened) == ["slab", "slabyard", "slob", "slub"]
    assert happened.index("slob") < happened.index("slabyard"), "it begins from slob's objects"


def test_kernels_of_another_linux(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An allocator that it does not have is slabyard's; a record tells its Linux, and is none of another."""
    built: list[str] = []
    monkeypatch.setattr(study.source, "find", lambda given, linux=DEFAULT: types.SimpleNamespace(linux=f"{linux}.9"))
    monkeypatch.setattr(study.build, "from_installed", lambda arch, kind, *_, linux, **__: built.append(f"{linux} {kind.name}"))
    monkeypatch.setattr(study.tools, "compiler_version", lambda _: "")
    monkeypatch.setattr(study.kernel_cost, "qemu_version", lambda _: "")
    runs: list[str] = []

    def boots(work: Work) -> Data:
        runs.append(work.linux)
        specs = work.specs(("slub", "slob", "slub_tiny"))
        return {"first": [2.0, 2.0], "specs": {text: spec.text for text, spec in specs.items()}}

    kernels = [("x86_64", kind, False) for kind in ("slub", "slab", "slob", "slabyard", "slub_tiny")]
    wanted = [dataclasses.replace(item("boots", boots), kernels=kernels), item("replays", boots)]

    def of(linux: str) -> list[Done]:
        return study.run(wanted, True, tmp_path, QUIET, lambda _: None, linux=linux)

    old, new = of(DEFAULT), of("6.12")
    had = {DEFAULT: ("slub", "slab", "slob", "slabyard"), "6.12": ("slub", "slabyard", "slub_tiny")}
    assert sorted(built) == sorted(f"{linux} {kind}" for linux, mine in had.items() for kind in mine)
    assert runs == [DEFAULT, DEFAULT, "6.12"], "replays are the same for all"
    assert [one.record.get("linux") for one in (*old, *new)] == [None, None, "6.12", None]
    assert old[0].record["data"]["specs"] == {"slub": "slub", "slob": "slob"}
    assert new[0].record["data"]["specs"] == {"slub": "slub", "slob": "slabyard:slob", "slub_tiny": "slub_tiny"}
    assert new[0].record["versions"]["linux"] == "6.12.9"
    assert any("Linux 6.12" in one for one in new[0].outcome.notes) and not old[0].outcome.notes
    of("6.12")
    assert len(runs) == 3, "its record is there"


def test_what_is_exact_is_run_beside_the_builds_and_told_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    exact_done = threading.Event()

    def built(*_: object, **__: object) -> None:
        assert exact_done.wait(60), "the build is over once the exact item is, which so does not wait for it"

    def exact(_: Work) -> Data:
        exact_done.set()
        return {"first": [2.0, 2.0]}

    def timed(_: Work) -> Data:
        assert exact_done.is_set()
        return {"first": [2.0, 2.0]}

    monkeypatch.setattr(study.build, "from_installed", built)
    boots = dataclasses.replace(item("boots", timed), kernels=[("x86_64", "slub", False)])
    done = run([boots, dataclasses.replace(item("counts", exact), exact=True)], None)
    assert [one.item.name for one in done] == ["boots", "counts"]


def test_what_is_missing_is_left_out_in_one_line_each(tmp_path: Path) -> None:
    found = slabyard("study", "ferreira", "--quick", "-o", tmp_path / "kept", env={**os.environ, "PATH": str(tmp_path)})
    lines = found.stderr.splitlines()
    assert found.returncode == MISSING and not found.stdout, found.stderr
    assert [line.partition(": left out: ")[0] for line in lines[:-1]] == [
        f"slabyard: ferreira {one.name}" for one in papers.items() if one.paper == "ferreira"
    ]
    assert "none of these" in lines[-1] and "Traceback" not in found.stderr


def test_a_wide_table_of_the_document_is_several() -> None:
    numbers = [f"{number} CPUs" for number in range(1, 9)]
    grid = Table("t", ["", *numbers], [["SLAB", *(f"{number}.25 (1.125 to 9.875)" for number in range(1, 9))]])
    first, second = document._table(grid).split("\n\n")[1:]
    assert [one.splitlines()[0] for one in (first, second)] == [f"|  | {' | '.join(half)} |" for half in (numbers[:4], numbers[4:])]
    assert first.endswith("| 4.25 (1.125 to 9.875) |") and second.splitlines()[-1].startswith("| SLAB | 5.25 ")
    assert document._table(Table("t", grid.columns[:5], [row[:5] for row in grid.rows])).endswith(first), "a narrow one is as it was"


def test_what_is_shown(tmp_path: Path) -> None:
    done = run([item("one", lambda _: {"first": [1.0, 3.0]}), item("two", lambda _: {"first": [2.0, 2.0]})], None)
    text = "".join(str(cell) for table in tables.tables(done) for row in [[table.title], *table.cells()] for cell in row)
    assert "2 (1 to 3)" in text and IN_PART in text and HOLDS in text and "measured: <1>" in text
    page = tables.page(done)
    assert "measured: &lt;1&gt;" in page and "a &lt;machine&gt;" in page and "<svg><rect/></svg>" in page
    assert "<div class" not in page
    rows = [row[4:] for row in tables.flat(done).rows[:3]]
    assert rows == [["s", 2.0, 2.0, 1.0, 3.0, 1.0], ["s", None, 7.0, None, None, None], ["s", 3.0, None, None, None, None]]
    assert json.loads(json.dumps(tables.plain(done)))[1]["verdict"] == HOLDS


def test_a_quick_run_says_what_it_leaves_out(tmp_path: Path) -> None:
    one = dataclasses.replace(item("one", lambda _: {"first": [2.0, 2.0]}), quick="It boots once.")
    said = "A quick run: less work and fewer repetitions than the full one. It boots once."
    for quick in (True, False):
        done = run([one], None, quick)
        assert (said in tables.tables(done)[0].notes) is (said in tables.page(done)) is quick


def test_what_a_quick_run_boots_less_of_it_says() -> None:
    silent = [one.ident for one in papers.items() if one.kernels and not one.quick]
    assert silent == [] and all(one.quick.endswith(".") for one in papers.items() if one.quick)


def test_names_of_two_parts_go_across() -> None:
    def columns(names: list[str], paper: float | None = None) -> list[str]:
        return tables.sheet_table("t", Sheet("t", "s", [(name, Figure(paper, float(at))) for at, name in enumerate(names)])).columns

    grid = ["SLAB, 1 CPU", "SLAB, 2 CPUs", "SLUB, 1 CPU", "SLUB, 2 CPUs"]
    assert columns(grid) == ["", "1 CPU", "2 CPUs"] and columns([name.replace(",", ":") for name in grid]) == ["", "1 CPU", "2 CPUs"]
    found = tables.sheet_table("t", Sheet("t", "s", [(name, Figure(None, float(at))) for at, name in enumerate(grid)]))
    assert found.title == "t, s" and found.rows == [["SLAB", 0.0, 1.0], ["SLUB", 2.0, 3.0]]
    assert columns(grid, 1.0)[0:2] == ["", "paper, s"]
    for other in (grid[:3], [*grid[:3], grid[0]], grid[:2], ["SLAB", "SLUB"], [f"{name}, {at}" for name in "ab" for at in range(9)]):
        assert columns(other) == ["", "ours, s"], other


def test_pictures_that_stand_side_by_side() -> None:
    pictures = [Picture("alone", "<svg>a</svg>"), *(Picture(name, f"<svg>{name}</svg>", beside=26) for name in "bc")]
    beside = dataclasses.replace(item("one", lambda _: {}), judge=lambda _: Outcome([], [], pictures))
    page = tables.page(run([beside], None))
    assert page.count('<div class="beside" style="--least: 26rem">') == 1
    assert page.index("<svg>a") < page.index('"beside"') < page.index("<svg>b")
    assert page.index("<svg>c") < page.index("</div>")


def test_every_item_has_a_name_of_its_own_and_words() -> None:
    found = papers.items()
    assert len({one.ident for one in found}) == len(found) and {one.paper for one in found} <= set(papers.PAPERS)
    assert all(one.title and one.place for one in found)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["knuth"], "no paper"), (["bonwick", "nosuch"], "no item"), ([], "--list"), (["all", "--recorded", "--quick"], "leave out"),
        (["bonwick", "-o", "/dev/null"], "is no folder"),
    ],
)  # fmt: skip
def test_wrong_words(words: list[str], says: str) -> None:
    assert says in complaint(slabyard("study", *words), 2)


def test_the_list() -> None:
    listed = json.loads(slabyard("study", "--list", "--format", "json").stdout)
    assert [(one["paper"], one["item"]) for one in listed] == [(one.paper, one.name) for one in papers.items(papers.TITLES)]
    needs = {(one["paper"], one["item"]): one["needs"] for one in listed}
    assert needs["bonwick", "speed"] == ["valgrind"] and needs["garcarz", "figure1"] == ["kernels", "QEMU", "arm64"]
    assert needs["garcarz", "figure4"] == ["kernels", "QEMU"] and needs["bonwick", "cache"] == []
    shown = slabyard("study", "--list").stdout
    assert "took" in shown and "valgrind" in shown and max(map(len, shown.splitlines())) <= 80


def test_the_list_tells_how_long_the_full_run_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = item("one", lambda _: {"first": [2.0, 2.0]})
    monkeypatch.setattr(study, "RECORDS", tmp_path)
    assert study.seconds(one) is None
    run([one], tmp_path)
    assert study.seconds(one) == 0
    record = json.loads((tmp_path / one.record).read_text())
    (tmp_path / one.record).write_text(json.dumps({**record, "seconds": 5400}))
    assert study.seconds(one) == 5400 and [study_verb._minutes(found) for found in (None, 60, 5400, 9000)] == [
        None, table.Figure(60, "60 s"), table.Figure(5400, "90 min"), table.Figure(9000, "2.5 h"),
    ]  # fmt: skip


def test_ctrl_c_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    for kept in (True, False):
        with pytest.raises(KeyboardInterrupt), study_verb._going_on(kept):
            raise KeyboardInterrupt
        assert ("run the same command to go on" in capsys.readouterr().err) == kept


# ---- The records of the full run ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_a_record_is_of_a_full_run_of_an_item(path: Path) -> None:
    items = [one for one in papers.items(papers.TITLES) if one.record == path.name]
    assert items and path.stat().st_size < 60_000
    for done in study.recorded(items):
        assert done.outcome.verdict in (HOLDS, IN_PART, NOT, UNTOLD) and done.outcome.claims
        assert tables.tables([done]) and str(escape(done.item.title)) in tables.page([done])


@pytest.fixture
def reproduction(monkeypatch: pytest.MonkeyPatch) -> Any:
    """docs/reproduction.py."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    return importlib.import_module("reproduction")


def test_the_document_is_what_the_records_tell(reproduction: Any) -> None:
    text = reproduction.FILE.read_text()
    body = document.text(study.recorded(papers.items()))
    assert f"<!-- study begins -->\n\n{body}\n\n<!-- study ends -->" in text, "make docs writes it again"
    assert reproduction.written(text) == text, "make docs writes it again"


def test_the_document_tells_the_code_of_each_record(reproduction: Any) -> None:
    made = item("one", lambda _: {"first": [1.0]})

    def done(name: str, **more: str) -> Done:
        record = {"versions": {name: more[name] for name in more if name == "commit"}, **more}
        return Done(dataclasses.replace(made, name=name), record)

    dated = done("two", date="2026-11-30", commit="abc"), done("three", date="2026-11-30", commit="abc")
    text = reproduction.made_of([done("old"), *dated, done("one", date="2026-12-01")])
    told = ["2026-12-01:** bonwick one", "2026-11-30, of commit abc:** bonwick two, three", "Without date and commit:** bonwick old"]
    assert text.splitlines() == [f"- **{line}." for line in told]


def test_what_did_not_hold_is_what_the_items_tell(reproduction: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run([item("one", lambda _: {"first": [1.0, 3.0]})], None)
    monkeypatch.setattr(reproduction, "NOT_HELD", [("bonwick-one", "the first is")])
    assert reproduction.not_held(done) == "- **Bonwick: the first is 2.** Measured: 1 and 3 ([one](#bonwick-one))."
    monkeypatch.setattr(reproduction, "NOT_HELD", [("bonwick-one", "it is positive")])
    with pytest.raises(UserError, match="it is positive: holds"):
        reproduction.not_held(done)
    monkeypatch.setattr(reproduction, "NOT_HELD", [("bonwick-one", "nowhere")])
    with pytest.raises(UserError, match="no claim with the words 'nowhere'"):
        reproduction.not_held(done)
