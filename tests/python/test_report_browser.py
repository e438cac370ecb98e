"""The report in a real browser: Chromium, headless and without a network.

Each test opens the file as a reader would and asks the page what is on it: that every chart has drawn its data, in light and
dark, with no message on the console (a violation of the content security policy is one), that the legend, the figures,
the lists, the CSV links and the theme button do their work, and that nothing overflows a telephone's width.

A machine without Chromium or its driver skips these tests and says so; where the variable CI is set it fails instead.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slabyard.report import page as report

DATA = Path(__file__).resolve().parents[1] / "data" / "report_records.json"
HOSTILE = "<script>document.title='taken'</script><b onclick=x>\u2028&lt;"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
DRAWN = """
return [...document.querySelectorAll('figure.chart')].map((figure) => ({
  id: figure.dataset.chart, drawn: figure.querySelector('.plot')?.dataset.drawn === 'yes',
  lines: [...figure.querySelectorAll('.scatterlayer path.js-line')].filter((path) => path.getAttribute('d').length > 10).length,
  bars: [...figure.querySelectorAll('.barlayer .point path')].filter((path) => path.getAttribute('d')?.length > 10).length,
  axes: [...figure.querySelectorAll('.xtitle, .ytitle')].map((title) => title.textContent),
  colour: figure.querySelector('.xtitle') && getComputedStyle(figure.querySelector('.xtitle')).fill}))
"""


def missing(what: str) -> None:
    """Skips the test, or fails it where all tools ought to be there."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing")
    pytest.skip(f"{what} is missing: the report is not tested in a browser")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not binary or not driver:
        missing("Chromium" if not binary else "chromedriver")
    try:
        from selenium import webdriver
    except ImportError:
        missing("the Python package selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    running.set_script_timeout(60)
    yield running
    running.quit()


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return json.loads(DATA.read_text("utf-8"))


@pytest.fixture(scope="module")
def file(records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.write_report(records, path)
    return path


def view(browser: Any, path: Path, width: int = 1280, scheme: str = "light") -> None:
    """Opens a report and waits until its charts are drawn."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(path.as_uri())
    finished = browser.execute_async_script(
        """
        const done = arguments[0], end = performance.now() + 50000;
        const look = () => {
          if (document.documentElement.dataset.charts) done('');
          else if (!document.getElementById('alert').hidden) done(document.getElementById('alert').textContent);
          else if (performance.now() > end) done('the charts took too long');
          else setTimeout(look, 50);
        };
        look();
        """
    )
    assert finished == ""


def requested(browser: Any) -> list[str]:
    """Addresses that the page asked for since it was opened."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return [address for address in sent if not address.startswith(("file:", "data:", "blob:"))]


def test_forty_allocators_have_forty_looks(browser: Any, records: list[dict[str, Any]], tmp_path: Path) -> None:
    group = [one for one in records if one["run"]["workload"] == records[0]["run"]["workload"] and one["run"]["allocator"] != "recorded"]
    runs = [{**group[0]["run"], "allocator": f"slub:min_partial={at}", "tunables": {}} for at in range(40)]
    many = [{**group[at % len(group)], "run": run} for at, run in enumerate(runs)]
    report.write_report(many, tmp_path / "many.html")
    view(browser, tmp_path / "many.html")
    legend, lines = browser.execute_script("""
      const look = (path) => getComputedStyle(path).stroke + ' ' + getComputedStyle(path).strokeDasharray;
      const all = (selector) => [...document.querySelectorAll(selector)].map(look);
      return [all('.legend button[data-key^=a] path'), all('[data-chart=memory] .scatterlayer path.js-line')]""")
    assert len(legend) == len(set(legend)) == 40
    assert len(set(lines)) == len(lines) == 41  # what was requested is one


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_drawn(browser: Any, file: Path, scheme: str) -> None:
    view(browser, file, scheme=scheme)
    charts = browser.execute_script(DRAWN)
    assert [one["id"] for one in charts] == ["memory", "blocks", "unusable", "events", "caches", "sites"] * 2
    assert all(one["drawn"] for one in charts)
    lines = {"memory": 6, "unusable": 5, "events": 4}
    assert all(one["lines"] == lines.get(one["id"], 0) for one in charts)
    assert all(one["bars"] >= 10 for one in charts if one["id"] in ("blocks", "caches", "sites"))
    assert all(len(one["axes"]) >= 1 for one in charts)
    text = browser.execute_script("return getComputedStyle(document.body).color")
    assert all(one["colour"] == text for one in charts)
    assert browser.get_log("browser") == []
    assert requested(browser) == []


def test_charts_without_anything_to_show_say_so(browser: Any, tmp_path: Path) -> None:
    series = {"time": [0, 1], "held_pages": [1, 2], "fragmentation_events": [0, 0]}
    run = {"allocator": "slub", "workload": "w", "trace_sha256": "ab"}
    report.write_report([{"schema": 1, "run": run, "exact": {"series": series}, "timed": {}}], tmp_path / "little.html")
    view(browser, tmp_path / "little.html")
    said = browser.execute_script("""return Object.fromEntries([...document.querySelectorAll('figure.chart')].map((figure) =>
      [figure.dataset.chart, figure.querySelector('.empty')?.textContent ?? '']))""")
    none = "The records hold no figures for this chart."
    others = dict.fromkeys(("blocks", "unusable", "caches", "sites"), none)
    assert said == {"memory": "", "events": "Every figure of this chart is 0.", **others}
    assert browser.get_log("browser") == []


def test_a_telephone_shows_it_without_overflow(browser: Any, file: Path) -> None:
    view(browser, file, width=400)
    root = "document.documentElement"
    assert browser.execute_script(f"return {root}.scrollWidth <= {root}.clientWidth")
    widths = browser.execute_script(
        "return [...document.querySelectorAll('.plot .main-svg')].map((one) => one.getBoundingClientRect().width)"
    )
    assert max(widths) <= 400


def test_letters_of_pictures_can_be_read_on_a_telephone(browser: Any, records: list[dict[str, Any]], tmp_path: Path) -> None:
    """Pictures are not shrunk to the page's width: what is wider can be moved."""
    path = tmp_path / "t.html"
    stacks = {"live_at_peak": [{"frames": ["vfs_read", "kmalloc", "[kmalloc-64]"], "bytes": 4096}]}
    grown = [
        {**one, "exact": {**one["exact"], "grew_pages_peak": 10 + number, "stacks": stacks}}
        for number, one in enumerate(records)
        if one["run"]["workload"] == records[0]["run"]["workload"]
    ]
    report.write_report(grown, path)
    view(browser, path, width=400)
    assert browser.execute_script("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    letters = browser.execute_script(
        """return ['.pictures svg', '.icicle svg'].map((kind) => [...document.querySelectorAll(kind)].flatMap((svg) => {
          const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
          return [...svg.querySelectorAll('text')].map((text) => scale * parseFloat(getComputedStyle(text).fontSize)); }))"""
    )
    assert all(one and min(one) >= 9 for one in letters)
    cut = browser.execute_script(
        """return [...document.querySelectorAll('table, .pictures svg, .icicle svg')].filter((one) => {
          const around = one.closest('.scroll, figure, .icicle');
          return one.getBoundingClientRect().width > around.clientWidth + 1 && getComputedStyle(around).overflowX !== 'auto'; }).length"""
    )
    assert cut == 0, "nothing ends at the page's edge"


def test_the_ranking_of_five_workloads_fits_1200_pixels(browser: Any, records: list[dict[str, Any]], tmp_path: Path) -> None:
    """By time, cost, memory and events, as `make compare` has them."""
    one = [record for record in records if record["run"]["workload"] == records[0]["run"]["workload"]]
    one = [{**record, "cost": {"instructions": 100.0 + number}} if record.get("timed") else record for number, record in enumerate(one)]
    names = ("hackbench", "find", "spike", "fileio", "build")
    path = tmp_path / "five.html"
    report.write_report([{**record, "run": {**record["run"], "workload": name}} for name in names for record in one], path)
    view(browser, path, width=1200)
    ranking = "document.querySelector('.scroll')"
    assert browser.execute_script(f"return {ranking}.querySelectorAll('thead tr:last-child th').length") == 4 * len(names)
    assert browser.execute_script(f"return {ranking}.scrollWidth <= {ranking}.clientWidth")


def test_a_long_name_breaks_its_lines(browser: Any, records: list[dict[str, Any]], tmp_path: Path) -> None:
    """A workload's name of 180 letters without a blank, which headings and the ranking show."""
    path = tmp_path / "long.html"
    named = [{**one, "run": {**one["run"], "workload": "verylongname" * 15}} for one in records]
    report.write_report(named, path)
    view(browser, path)
    root = "document.documentElement"
    assert browser.execute_script(f"return {root}.scrollWidth <= {root}.clientWidth")
    ranking = "document.querySelector('.scroll')"
    assert browser.execute_script(f"return {ranking}.scrollWidth <= {ranking}.clientWidth")


def test_the_legend_hides_an_allocator_in_all_charts_of_its_workload(browser: Any, file: Path) -> None:
    view(browser, file)
    before = browser.execute_script(DRAWN)
    button = "document.querySelector('#w0 .legend button[data-key=a1]')"
    browser.execute_script(f"{button}.click()")
    after = browser.execute_script(DRAWN)
    assert browser.execute_script(f"return {button}.getAttribute('aria-pressed')") == "false"
    assert [one["lines"] for one in after[:6]] == [5, 0, 4, 3, 0, 0]
    assert after[1]["bars"] < before[1]["bars"]
    assert after[6:] == before[6:]
    browser.execute_script(f"{button}.click()")
    assert browser.execute_script(DRAWN) == before
    alone = f"{button}.dispatchEvent(new MouseEvent('click', {{shiftKey: true}}))"
    browser.execute_script(alone)
    assert [one["lines"] for one in browser.execute_script(DRAWN)[:6]] == [1, 0, 1, 1, 0, 0]
    browser.execute_script(alone)
    assert browser.execute_script(DRAWN) == before


def test_the_figures_are_one_click_away(browser: Any, file: Path, records: list[dict[str, Any]]) -> None:
    view(browser, file)
    browser.execute_script("document.querySelector('#w0 [data-chart=memory] summary').click()")
    cells = browser.execute_async_script(
        """
        const done = arguments[0], text = (row) => [...row.cells].map((one) => one.textContent);
        setTimeout(() => done([...document.querySelectorAll('#w0 [data-chart=memory] details tr')].map(text)), 100);
        """
    )
    held = records[0]["exact"]["series"]["held_pages"]
    assert cells[0][:2] == ["seconds", "slub (KiB)"]
    assert [row[1] for row in cells[1:]] == [f"{(pages - held[0]) * 4:,}" for pages in held]


def test_csv_holds_the_figures(browser: Any, file: Path, records: list[dict[str, Any]]) -> None:
    view(browser, file)
    text = browser.execute_async_script(
        """
        const done = arguments[0], make = URL.createObjectURL;
        URL.createObjectURL = (blob) => { blob.text().then(done); return make(blob); };
        const details = document.querySelector('#w0 [data-chart=blocks] details');
        details.open = true;
        setTimeout(() => details.querySelector('a').click(), 100);
        """
    )
    rows = text.strip().split("\r\n")
    assert rows[0].startswith('"order","before (blocks)","slub, after (blocks)"')
    exact = records[0]["exact"]
    assert rows[1].startswith(f"0,{exact['free_blocks_before'][0]},{exact['free_blocks_after'][0]},")
    assert len(rows) == 12


def test_lists_can_be_sorted_and_searched(browser: Any, file: Path) -> None:
    view(browser, file)
    found = browser.execute_async_script(
        """
        const done = arguments[0], details = document.querySelector('#w0 .lists details');
        const column = (place) => [...details.querySelectorAll('tbody tr')].map((row) => row.cells[place].textContent);
        details.open = true;
        setTimeout(() => {
          const first = column(0);
          details.querySelectorAll('thead button')[0].click();
          const sorted = column(0);
          const search = details.querySelector('input');
          search.value = first[0].slice(0, 4);
          search.dispatchEvent(new Event('input'));
          done({first, sorted, found: column(0), order: details.querySelector('[aria-sort]').getAttribute('aria-sort')});
        }, 100);
        """
    )
    assert len(found["first"]) == 8
    assert sorted(found["first"], key=str.lower) == found["sorted"]
    assert 0 < len(found["found"]) < 8
    assert found["order"] == "ascending"


def test_the_theme_button_goes_round(browser: Any, file: Path) -> None:
    view(browser, file, scheme="dark")
    seen = []
    for _ in range(4):
        seen.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
        browser.execute_script("document.getElementById('theme').click()")
    assert seen[1] == "rgb(255, 255, 255)"
    assert seen[0] == seen[2] == seen[3] != seen[1]
    assert browser.get_log("browser") == []


def test_what_others_wrote_stays_text(browser: Any, records: list[dict[str, Any]], tmp_path: Path) -> None:
    hostile = json.loads(json.dumps(records))
    for one in hostile:
        for row in one["exact"].get("caches", []):
            row["name"] = HOSTILE + row["name"]
        for row in one["exact"].get("call_sites", []):
            row["call_site"] = HOSTILE + row["call_site"]
        one["run"]["allocator"] += "" if one["run"]["allocator"] == "recorded" else HOSTILE
    report.write_report(hostile, tmp_path / "hostile.html")
    view(browser, tmp_path / "hostile.html")
    browser.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert browser.title == "Kernel allocators under 2 workloads"
    label = browser.execute_script("return document.querySelector('#w0 [data-chart=caches] .ytick text').textContent")
    assert label.startswith("<script>document.title='taken'</script><b")
    assert browser.execute_script("return document.querySelectorAll('b').length") == 0
    assert browser.get_log("browser") == []


def test_without_decompression_the_tables_remain(browser: Any, file: Path) -> None:
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.DecompressionStream"})
    try:
        browser.get(file.as_uri())
        seen = browser.execute_async_script(
            "const done = arguments[0]; setTimeout(() => done(document.getElementById('alert').innerText), 500)"
        )
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
    assert "no DecompressionStream" in seen
    assert browser.execute_script("return document.querySelectorAll('#w0 table tr').length") > 10


def test_printing_uses_light_colours_and_all_charts(browser: Any, file: Path) -> None:
    view(browser, file, scheme="dark")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})
    assert len(printed["data"]) > 100_000
    assert browser.get_log("browser") == []
