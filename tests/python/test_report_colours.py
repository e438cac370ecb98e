"""The report's series colours: visible on their background, and distinct for readers who lack one kind of cones.

Contrast is WCAG 2.1's, of which graphics need 3:1. Distances are Euclidean in CIELAB after Machado, Oliveira and Fernandes'
2009 simulation of a missing kind of cones, at full severity; about 2 is just visible side by side, 10 is plain.
"""

from __future__ import annotations

import itertools
import re

import pytest

from slabyard.base import html

SIMULATIONS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.089)
Vector = tuple[float, ...]


def colours(theme: int) -> dict[str, Vector]:
    """The style sheet's colours as linear RGB; theme 0 is light, 1 dark."""
    found = re.findall(r"--(\w+): light-dark\(#(\w{6}), #(\w{6})\)", html.part("report.css"))
    return {name: tuple(linear(int(shades[theme][place : place + 2], 16) / 255) for place in (0, 2, 4)) for name, *shades in found}


def linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def times(matrix: tuple[Vector, ...], vector: Vector) -> Vector:
    return tuple(min(1.2, max(0.0, sum(a * b for a, b in zip(row, vector, strict=True)))) for row in matrix)


def lab(colour: Vector) -> Vector:
    shares = [value / white for value, white in zip(times(TO_XYZ, colour), WHITE, strict=True)]
    x, y, z = (share ** (1 / 3) if share > 0.008856 else 7.787 * share + 16 / 116 for share in shares)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def contrast(one: Vector, other: Vector) -> float:
    dark, bright = sorted(times(TO_XYZ, colour)[1] for colour in (one, other))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_series_stand_out_from_the_page(theme: int) -> None:
    all_colours = colours(theme)
    paper = all_colours["paper"]
    series = [colour for name, colour in all_colours.items() if re.fullmatch(r"s\d", name)]
    assert len(series) == 6
    assert all(contrast(colour, paper) >= 3 for colour in series)
    assert contrast(all_colours["ink"], paper) >= 7
    assert contrast(all_colours["quiet"], paper) >= 4.5


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("sight", SIMULATIONS)
def test_series_are_told_apart(theme: int, sight: str) -> None:
    seen = [lab(times(SIMULATIONS[sight], colour)) for name, colour in colours(theme).items() if re.fullmatch(r"s\d", name)]
    nearest = min(sum((a - b) ** 2 for a, b in zip(*pair, strict=True)) ** 0.5 for pair in itertools.combinations(seen, 2))
    assert nearest >= 12
