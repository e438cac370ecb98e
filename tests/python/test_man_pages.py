"""The manual page of the command, compared with the command. Pages of the library: tests/package/test_package.py."""

import argparse
import re
from pathlib import Path

from slabyard.command import parsers

PAGE = Path(__file__).parents[2] / "docs/man/slabyard.1"


def test_every_verb_is_in_the_page_and_no_other():
    (verbs,) = (action for action in parsers.parser()._actions if isinstance(action, argparse._SubParsersAction))
    assert sorted(re.findall(r"^\.It Cm (\w+)", PAGE.read_text(), re.MULTILINE)) == sorted(verbs.choices)


def test_every_exit_status_is_in_the_page():
    section = PAGE.read_text().split(".Sh EXIT STATUS")[1].split(".Sh")[0]
    assert re.findall(r"^\.It (\d+)", section, re.MULTILINE) == re.findall(r"^  (\d+) ", parsers.STATUSES, re.MULTILINE)
