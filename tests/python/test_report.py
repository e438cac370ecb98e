"""The report's file holds what the records say, escapes text from elsewhere, and is written whole or not at all.

No browser is needed here; what a browser makes of the file is test_report_browser's.
"""

from __future__ import annotations

import copy
import errno
import gzip
from html.parser import HTMLParser
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from slabyard.report import charts, page as report, tables
from slabyard.results import model, ranks
from slabyard.base import html
from slabyard.base.errors import UserError
from slabyard.base.terminal import visible

DATA = Path(__file__).resolve().parents[1] / "data" / "report_records.json"
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">&amp;'\u2028"


@pytest.fixture
def records() -> list[dict[str, Any]]:
    return json.loads(DATA.read_text("utf-8"))


def record(allocator: str, **changes: Any) -> dict[str, Any]:
    """A small record: `exact` and `timed` come from `changes`; the other changes go to `run`."""
    groups = {name: changes.pop(name, {}) for name in ("exact", "timed")}
    return {"schema": 1, "run": {"allocator": allocator, "workload": "w", "trace_sha256": "ab", **changes}, **groups}


def timed(median: float, low: float, high: float) -> dict[str, Any]:
    return {"ns_per_operation": median, "intervals": {"ns_per_operation": [low, high]}, "runs": 6}


def section(*members: dict[str, Any]) -> model.Section:
    (only,) = model.workloads(members)
    return only


def drawn(grid: tables.Grid | None) -> str:
    return html.render("table.html", it=grid)


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', page)
    assert found
    return json.loads(gzip.decompress(b64decode(found[1])))


class Scripts(HTMLParser):
    """Counts the elements that could run or fetch something, as a browser's parser would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[dict[str, str | None]] = []
        self.handlers: list[str] = []
        self.addresses: list[str] = []
        self.opened: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened[tag] = self.opened.get(tag, 0) + 1
        if tag == "script":
            self.scripts.append(dict(attrs))
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "data")]


def parsed(page: str) -> Scripts:
    parser = Scripts()
    parser.feed(page)
    return parser


def test_the_file_is_whole_small_and_the_same_each_time(records: list[dict[str, Any]], tmp_path: Path) -> None:
    report.write_report(records, tmp_path / "a.html")
    report.write_report(records, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert (tmp_path / "a.html").stat().st_size < 3_000_000
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.html", "b.html"]


def test_a_large_comparison_stays_below_three_megabytes(records: list[dict[str, Any]], tmp_path: Path) -> None:
    large = []
    template = next(one for one in records if one["run"]["allocator"] == "slub")
    for workload in range(5):
        for allocator in range(12):
            one = copy.deepcopy(template)
            one["run"].update(allocator=f"allocator-{allocator}", workload=f"workload-{workload}", trace_sha256=str(workload))
            series = one["exact"]["series"]
            series["time"] = [point * 12_345_678 for point in range(256)]
            for name in ("held_pages", "requested_bytes", "fragmentation_events"):
                series[name] = [10_000_019 * (allocator + 3) + point * 7_919 * (workload + 1) for point in range(256)]
            row = one["exact"]["caches"][0]
            one["exact"]["caches"] = [{**row, "name": f"a_rather_long_cache_name_{place:05}"} for place in range(400)]
            site = one["exact"]["call_sites"][0]
            one["exact"]["call_sites"] = [{**site, "call_site": f"some_function_of_the_kernel_{n:05}+0x1a4"} for n in range(400)]
            large.append(one)
    report.write_report(large, tmp_path / "large.html")
    assert (tmp_path / "large.html").stat().st_size < 3_000_000
    assert data_of((tmp_path / "large.html").read_text("utf-8"))["workloads"][0]["tables"]["caches"]["left_out"] == 12 * 200


def test_nothing_is_fetched_and_only_known_scripts_run(records: list[dict[str, Any]]) -> None:
    page = report.page(records)
    seen = parsed(page)
    assert [one.get("type") for one in seen.scripts] == ["text/plain", "text/plain", None]
    assert not any("src" in one for one in seen.scripts)
    assert not seen.handlers
    assert all(address.startswith(("#", "data:,")) for address in seen.addresses)
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert found
    assert found[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in found[1]
    assert "http" not in found[1]
    assert "url(" not in html.part("report.css")


def test_plotly_travels_whole(records: list[dict[str, Any]]) -> None:
    found = re.search(r'<script type="text/plain" id="plotly">([^<]*)</script>', report.page(records))
    assert found
    assert gzip.decompress(b64decode(found[1])).decode() == report.plotly_source()


def test_what_others_wrote_is_escaped(records: list[dict[str, Any]]) -> None:
    plain = parsed(report.page(records))
    for one in records:
        for row in one["exact"].get("caches", []):
            row["name"] = HOSTILE
        for row in one["exact"].get("call_sites", []):
            row["call_site"] = HOSTILE
        for row in one["exact"].get("snapshots", []):
            row["name"] = HOSTILE
        one["run"]["workload"] = HOSTILE + one["run"]["workload"]
        one["run"]["machine"] = {HOSTILE: HOSTILE}
        one["run"][HOSTILE] = [HOSTILE]
        one["exact"][HOSTILE] = HOSTILE
        if one["run"]["allocator"] != "recorded":
            one["run"]["allocator"] += HOSTILE
    page = report.page(records)
    seen = parsed(page)
    assert len(seen.scripts) == len(plain.scripts)
    assert seen.opened.get("img", 0) == 0
    assert not seen.handlers
    assert data_of(page)["workloads"][0]["tables"]["caches"]["rows"][0][1] == visible(HOSTILE)


def test_lone_surrogates_and_odd_numbers_do_not_stop_the_report(tmp_path: Path) -> None:
    odd = record(
        "slub",
        machine="\udcff",
        exact={
            "held_pages_peak": float("nan"),
            "series": {"time": [0, None, 2], "held_pages": [1, 2, float("inf")]},
            "caches": [3, {"name": "\udc80"}],
        },
        timed="none",
    )
    report.write_report([odd], tmp_path / "odd.html")
    chart = data_of((tmp_path / "odd.html").read_text("utf-8"))["workloads"][0]["charts"][0]
    assert chart["traces"][0]["y"] == [0, None]


def test_missing_measures_are_dashes_and_zero_is_zero() -> None:
    bare = section(record("slub", exact={"fragmentation_events": 0}), record("slob"))
    (memory,) = tables.comparisons(bare)  # nothing is known of times
    cells = re.findall(r"<tr>.*?</tr>", drawn(memory))[-2:]
    assert ">0</td>" in cells[0] and cells[1].count("<td>\u2013</td>") == 2
    assert ranks.sentence(section(record("slub"))) == "The records hold no measure to compare."
    assert ranks.sentence(section(record("slub", timed={"runs": 2}))) == "Too few runs to compare: an interval needs 3."
    report.page([record("slub"), {}, {"run": None, "exact": [], "timed": 4}])


def test_no_record_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        report.write_report([], tmp_path / "none.html")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_report(records: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("the old one")

    def full(*_: Any, **__: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(UserError) as raised:
        report.write_report(records, path)
    assert "no space left" in raised.value.message
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    assert path.read_bytes() == b"the old one"


def test_a_missing_folder_is_a_user_error(records: list[dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="missing"):
        report.write_report(records, tmp_path / "missing" / "report.html")


def test_overlapping_intervals_tie_as_in_a_race() -> None:
    compared = section(
        record("a", timed=timed(10, 9, 12)),
        record("b", timed=timed(11, 10, 13)),
        record("c", timed=timed(20, 19, 21)),
        record("d", timed={"ns_per_operation": 5.0}),
        record("recorded", exact={"held_pages_peak": 1}),
    )
    table = ranks.rank_table(compared)
    assert [ranks["time"] for ranks in table.values()] == [1, 1, 3, None]
    assert len(table) == 4
    assert ranks.sentence(compared).startswith("a and b tie for fastest (10.0 ns an operation; c needs 20.0 ns, 2.0 times that)")


def test_memory_is_ranked_by_growth_and_ties_within_one_percent() -> None:
    compared = section(
        record("a", exact={"held_pages_start": 900, "held_pages_peak": 1900, "grew_pages_peak": 1000, "fragmentation_events": 3}),
        record("b", exact={"held_pages_start": 900, "held_pages_peak": 1905, "grew_pages_peak": 1005, "fragmentation_events": 4}),
        record("c", exact={"held_pages_start": 100, "held_pages_peak": 1300, "grew_pages_peak": 1200, "fragmentation_events": 4}),
    )
    table = ranks.rank_table(compared)
    assert [ranks["memory"] for ranks in table.values()] == [1, 1, 3]
    assert [ranks["events"] for ranks in table.values()] == [1, 2, 2]
    assert ranks.sentence(compared).startswith(
        "Memory grows least under a and b (by 4,000 KiB; under c by 4,800 KiB, 20% more); "
        "7.7 to 47.4% of this memory was there before the workload;"
    )
    assert tables.rank_text(1, table, "memory") == "1="


def test_records_without_a_start_are_ranked_by_their_peaks() -> None:
    compared = section(record("a", exact={"held_pages_peak": 100}), record("b", exact={"held_pages_peak": 104}))
    assert [ranks["memory"] for ranks in ranks.rank_table(compared).values()] == [1, 2]
    assert "a holds least memory at the peak (400 KiB; b holds 416 KiB, 4% more)" in ranks.sentence(compared)
    older = section(record("a", exact={"held_pages_peak": 100, "held_pages_end": 90, "pages_taken": 50, "pages_returned": 40}))
    (one,) = older.series
    assert (model.started(one), model.grew(one), model.kept(one)) == (80, 20, 10)


def test_ranks_in_which_all_are_first_are_left_out() -> None:
    same = {"held_pages_peak": 100, "grew_pages_peak": 10, "fragmentation_events": 0}
    equal = section(record("a", exact=same, timed=timed(10, 9, 11)), record("b", exact=same, timed=timed(20, 19, 21)))
    assert ranks.undecided(equal) == ["memory", "events"]
    table = ranks.ranking([equal])
    assert [row[0] for row in table.rows] == ["time", ""]
    assert table.notes == ["Left out, as all allocators are equal: by memory; by events."]
    assert [cell.text for cell in tables.ranking([equal]).heads] == ["Time"]


def test_a_malloc_has_the_memory_that_was_measured() -> None:
    measured = {"held_pages_start": 50, "held_pages_peak": 80, "held_pages_end": 70, "grew_pages_peak": 30, "grew_pages_end": 20, "runs": 1}
    exact = {"held_pages_peak": None, "held_pages_start": None, "grew_pages_peak": None}
    compared = section(
        record("slub", exact={"held_pages_start": 10, "held_pages_peak": 50, "grew_pages_peak": 40}),
        record("malloc:system", exact=exact, timed=measured),
    )
    assert [ranks["memory"] for ranks in ranks.rank_table(compared).values()] == [2, 1]


def test_two_traces_of_one_name_are_told_apart() -> None:
    def named(digest: str, path: str | None) -> dict[str, Any]:
        return record("slub", workload="t", trace_sha256=digest, path=path)

    def names(*members: dict[str, Any]) -> list[str]:
        return [one.name for one in model.workloads(members)]

    assert names(named("aa", "before/t.parquet"), named("bb", "after/t.parquet")) == ["before/t", "after/t"]
    assert names(named("aa", "x/before/t.parquet"), named("bb", "y/before/t.parquet")) == ["x/before/t", "y/before/t"]
    assert names(named("aaaaaaaaaa", None), named("bbbbbbbbbb", None)) == ["t (aaaaaaaa)", "t (bbbbbbbb)"]
    assert names(named("aa", "before/t.parquet"), record("slub", workload="u", trace_sha256="cc")) == ["t", "u"]


def test_a_time_is_read_in_both_forms() -> None:
    assert model.estimate({"s": {"median": 2, "low": 1, "high": 3}}, "s") == model.Estimate(2, 1, 3)
    assert model.estimate({"l": {"p99": 2}, "intervals": {"l.p99": [1, 3]}}, "l", "p99") == model.Estimate(2, 1, 3)
    assert model.estimate({"s": 2}, "s") == model.Estimate(2, None, None)
    assert model.estimate({"s": True}, "s") is None


def test_an_allocator_keeps_its_style_and_twins_are_told_apart() -> None:
    found = model.workloads(
        [
            record("slub", workload="x"),
            record("slob", workload="x", tunables={"fit": "best"}),
            record("slob:fit=best", workload="y", tunables={"fit": "best"}),
            record("slub", workload="y", cpus=2),
            record("slub", workload="y", cpus=4),
            record("recorded", workload="y"),
        ]
    )
    assert [[(one.label, one.style) for one in each.series] for each in found] == [
        [("slub", 0), ("slob:fit=best", 1)],
        [("slob:fit=best", 1), ("slub [cpus=2]", 2), ("slub [cpus=4]", 3), ("recorded", None)],
    ]


def test_no_two_allocators_look_alike() -> None:
    styles = range(90)
    assert len({(model.colour(style), model.dash(style)) for style in styles}) == len(styles)
    assert len({(model.colour(style), model.hatch(style)) for style in styles}) == len(styles)
    assert len({tables.swatch(style) for style in [*styles, None]}) == len(styles) + 1
    workload = section(*(record(f"slub:min_partial={number}") for number in styles))
    looks = [str(look) for look in charts.payload(workload, 20)["styles"].values()]
    assert len(set(looks)) == len(styles)


def test_charts_hold_the_records_figures(records: list[dict[str, Any]]) -> None:
    first = model.workloads(records)[0]
    drawn = charts.payload(first, 50)
    memory = drawn["charts"][0]
    assert [one["name"] for one in memory["traces"]] == [*(one.label for one in first.series), "requested bytes"]
    source = first.series[0].exact["series"]
    assert memory["traces"][0]["y"] == [(pages - source["held_pages"][0]) * 4 for pages in source["held_pages"]]
    assert drawn["pool"][memory["traces"][0]["x"]] == pytest.approx([time / 1e9 for time in source["time"]], abs=1e-4)
    blocks = next(one for one in drawn["charts"] if one["id"] == "blocks")
    assert blocks["traces"][0]["y"] == first.series[0].exact["free_blocks_before"]
    assert len(blocks["traces"]) == 1 + len(first.series)


def test_long_series_are_thinned_and_keep_their_end() -> None:
    assert charts.thinned(range(5000))[-1] == 4999
    assert len(charts.thinned(range(5000))) == charts.MAX_POINTS


def test_the_command_repeats_the_comparison(records: list[dict[str, Any]]) -> None:
    text = tables.command(model.workloads(records)[0])
    assert text == (
        "slabyard compare hackbench.parquet --allocators slub,slob,slob:fit=first,slob:fit=best "
        "--cpus 2 --nodes 1 --start recorded --runs 8"
    )


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.01412, "0.0141"), (1.234, "1.23"), (24.66, "24.7"), (105.6, "106"), (2900.7, "2,901")]
)
def test_significant_digits(value: float, text: str) -> None:
    assert tables.significant(value) == text


def test_the_sentence_fits_one_allocator_and_equals() -> None:
    exact = {"held_pages_start": 4998, "held_pages_peak": 5000, "grew_pages_peak": 2, "fragmentation_events": 1}
    real = record("recorded", exact={"held_pages_peak": 5000, "held_pages_start": 4990, "grew_pages_peak": 10}, command=["make"])
    alone = section(record("slub", exact=exact, timed=timed(10, 9, 12)), real)
    assert ranks.sentence(alone) == (
        "slub needs 10.0 ns an operation; memory grows by 8 KiB under slub; that of the recorded kernel grew by 40 KiB; "
        "99.96% of this memory was there before the command; slub causes 1 fragmentation event."
    )
    empty = {"held_pages_start": 0, "held_pages_peak": 2, "grew_pages_peak": 2, "fragmentation_events": 1}
    equal = section(record("a", exact=empty, timed=timed(10, 9, 12)), record("b", exact=empty, timed=timed(11, 9, 12)))
    assert ranks.sentence(equal) == (
        "No allocator is measurably faster than another (best median 10.0 ns an operation); memory grows alike under all, by 8 KiB; "
        "each causes 1 fragmentation event."
    )


def test_the_sentence_counts_where_names_are_many() -> None:
    many = section(*(record(f"a{at}", timed=timed(10, 9, 12)) for at in range(12)), record("b", timed=timed(40, 39, 42)))
    said = "12 of 13 allocators tie for fastest (10.0 ns an operation; b needs 40.0 ns, 4.0 times that)."
    assert ranks.sentence(many) == said


def test_nothing_requested_is_not_ranked_by_time() -> None:
    timed = {"seconds": 4e-7, "intervals": {"seconds": [3e-7, 5e-7]}, "runs": 6}
    exact = {"requests": 0, "held_pages_peak": 0, "grew_pages_peak": 0}
    nothing = section(*(record(name, exact=exact, timed=timed) for name in ("slub", "slob")))
    assert ranks.sentence(nothing) == "Nothing was requested; memory grows alike under all, by 0 KiB."
    assert {ranks["time"] for ranks in ranks.rank_table(nothing).values()} == {None}
    assert {ranks["memory"] for ranks in ranks.rank_table(nothing).values()} == {1}


def test_the_recorded_kernels_index_follows_from_its_free_blocks() -> None:
    (real,) = section(record("recorded", exact={"free_blocks_after": [4, 2, 0, 1]})).series
    assert charts.unusable_index(real) == [0, 4 / 16, 8 / 16, 8 / 16]
    (full,) = section(record("recorded", exact={"free_blocks_after": [0, 0]})).series
    assert charts.unusable_index(full) == []


def test_memory_given_back() -> None:
    exact = {
        "gives_back": "when asked", "shrink_pages": 256, "shrink_slab_pages_left": 512, "shrink_fragmentation": 0.25,
        "reclaim_askings": 3, "reclaimed_pages": 128, "local_allocations": 70, "remote_allocations": 30, "held_pages_peak": 2048,
    }  # fmt: skip
    quiet = {"gives_back": HOSTILE, "reclaim_askings": 0}
    page = drawn(tables.given_back(model.workloads([record("slub", exact=exact, nodes=2), record("bsd44", exact=quiet)])[0]))
    assert "when asked" in page and "25.0" in page and "<td>70</td><td>30</td>" in page and "asked urgently" in page
    assert "<script>" not in page
    plain = drawn(tables.given_back(model.workloads([record("bsd44", exact=quiet, nodes=1)])[0]))
    assert "asked urgently" not in plain and "remote" not in plain
    assert tables.given_back(model.workloads([record("slub")])[0]) is None
