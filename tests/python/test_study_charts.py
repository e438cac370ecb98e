"""The drawings of the papers' figures: their contents, and that everything lies inside."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from slabyard.study import charts
from slabyard.study.charts import Line, bars, lines, thinned
from slabyard.study.model import Figure

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> ET.Element:
    """The drawing; all its shapes lie inside."""
    root = ET.fromstring(svg)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for shape in root.iter():
        for name, most in (("x", width), ("x1", width), ("x2", width), ("cx", width), ("y", height), ("y1", height), ("cy", height)):
            if shape.get(name) and not shape.get("transform"):
                assert -1 <= float(shape.attrib[name]) <= most, (shape.tag, shape.attrib)
    return root


def texts(root: ET.Element) -> list[str]:
    return ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]


def test_lines() -> None:
    series = [Line("first <fit>", [(0, 0.8), (40_000, 0.81)], [(0.79, 0.82), (0.8, 0.83)]), Line("best", [(0, 0.7), (40_000, 0.72)])]
    root = drawn(lines(series, "calls", "share unused"))
    assert len(list(root.iter(f"{SVG}polyline"))) == 2 and len(list(root.iter(f"{SVG}path"))) == 2
    assert {"first <fit>", "best", "calls", "share unused", "40,000", "0.8"} <= set(texts(root))
    assert "0" in texts(drawn(lines(series, "calls", "share unused", from_zero=True)))


def test_a_point_stands_at_its_value() -> None:
    root = drawn(lines([Line("a", [(0, 0), (10, 100)])], "x", "y"))
    dots = [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in root.iter(f"{SVG}circle")]
    assert dots[0][0] == charts.LEFT and dots[1][0] == charts.WIDTH - charts.RIGHT
    assert dots[0][1] - dots[1][1] == charts.HEIGHT


def test_bars_with_the_papers_figures_and_windows() -> None:
    series = [("slub", [Figure(11.7, 10.0, 9.0, 11.0), Figure(None, 4.0)]), ("slob", [Figure(68.9, 60.0), Figure(12.0, None)])]
    root = drawn(bars(["allocation", "freeing"], series, "% of time", labels=lambda group, one: "*" if group == one == 0 else ""))
    boxes = [one for one in root.iter(f"{SVG}rect") if one.get("fill-opacity")]
    assert len(boxes) == 3 and len(list(root.iter(f"{SVG}path"))) == 1
    heights = [float(box.attrib["height"]) for box in boxes]
    assert abs(heights[0] / heights[1] - 10 / 60) < 0.01 and abs(heights[2] / heights[1] - 4 / 60) < 0.01
    assert {"slub", "slob", "paper", "allocation", "freeing", "*"} <= set(texts(root))
    assert sum(one.get("stroke-width") == "3" for one in root.iter(f"{SVG}line")) == 3 + 1  # and that of the legend


def test_logarithmic_bars_leave_out_nothing() -> None:
    root = drawn(bars(["0", "10"], [("slab", [Figure(None, 5000.0), Figure(None, 0.0)])], "free blocks", "order", logarithmic=True))
    assert {"1,000", "10,000", "order"} <= set(texts(root))


def test_a_lone_series_has_no_legend() -> None:
    both = [("one", [Figure(None, 1.0)]), ("two", [Figure(None, 2.0)])]
    assert {"one", "two"} <= set(texts(drawn(bars(["g"], both, "s")))) and "one" not in texts(drawn(bars(["g"], both[:1], "s")))
    assert {"one", "paper"} <= set(texts(drawn(bars(["g"], [("one", [Figure(3.0, 1.0)])], "s"))))


def test_places_that_are_no_measure_have_names() -> None:
    found = texts(drawn(lines([Line("a", [(0, 1), (1, 2), (2, 3)])], "buffers", "y", places=["0", "1", "256"])))
    assert "256" in found and "0.5" not in found


def test_many_series_have_a_legend_of_several_rows() -> None:
    names = [f"allocator number {place}" for place in range(12)]
    root = drawn(lines([Line(name, [(0, place), (1, place)]) for place, name in enumerate(names)], "x", "y"))
    assert set(names) <= set(texts(root)) and any(one.get("stroke-dasharray") for one in root.iter(f"{SVG}polyline"))


def test_thinned() -> None:
    points = [(float(place), float(place * place)) for place in range(1000)]
    few = thinned(points, 300)
    assert len(few) == 300 and few[0] == points[0] and few[-1] == points[-1] and thinned(points[:10]) == points[:10]
