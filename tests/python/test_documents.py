"""What the documents show exists: every command parses, and every target, file and test that they name is there. Nothing is run.

A command is a line of a block, or a span of code, that begins with `slabyard`, `make` or `python`. A block's line must be whole; a
span may be part of a command (`slabyard replay --proc slabinfo`). The reader replaces words in capitals (TRACE, SPEC).
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from slabyard.command import parsers
from slabyard.replay import allocators as replay
from slabyard.results import threads
from slabyard.base.errors import MISSING, UserError
from slabyard.kernels import kinds, versions, workloads

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "traces/README.md")]
DOCUMENTS += sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / "docs/allocators").glob("*.md"))
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")} - {"build"}
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][\w-]*):", MAKEFILE, re.MULTILINE))
VARIABLES = set(re.findall(r"^([A-Z_]+) *\??=", MAKEFILE, re.MULTILINE)) | set(re.findall(r"\$\(([A-Z_]+)\)", MAKEFILE))


@dataclass(frozen=True)
class Command:
    """A command as a document shows it; `whole`: with all its required arguments."""

    document: Path
    text: str
    whole: bool

    def words(self) -> list[str]:
        """Its words, from the program's name on, without the name of the directory."""
        text = re.sub(r",(…|\.\.\.)", "", self.text).split(" | ")[0]
        words = shlex.split(text, comments=True)
        while words and (words[0] == "sudo" or re.match(r"[A-Z_]+=", words[0])):
            del words[0]
        return [Path(words[0]).name, *words[1:]] if words else []


def blocks(text: str) -> Iterator[str]:
    """The lines of indented and fenced blocks."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip()


def spans(text: str) -> list[str]:
    """The spans of code outside of blocks."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^    .*$", "", text, flags=re.MULTILINE)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]


def commands(program: str) -> list[Command]:
    found = []
    start = re.compile(rf"(sudo +|[A-Z_]+=\S+ +)*(\.venv/bin/)?{program}( |$)")
    for document in DOCUMENTS:
        text = document.read_text()
        found += [Command(document, line, True) for line in blocks(text) if start.match(line)]
        found += [Command(document, span, False) for span in spans(text) if start.match(span)]
    return found


def name(command: Command) -> str:
    return f"{command.document.relative_to(ROOT)}: {command.text}"


def a_readers(text: str) -> bool:
    """Whether the reader is to replace a word: SPEC, T.parquet, malloc:LIB.so."""
    return bool(re.search(r"(^|[:/=])[A-Z]+(\.\w+)?$", text))


# ---- slabyard ----------------------------------------------------------------------------------------------------


def ask_for_nothing(parser: argparse.ArgumentParser) -> None:
    """Parses a part of a command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                ask_for_nothing(each)
        elif not action.option_strings:
            action.nargs = {None: "?", "+": "*"}.get(action.nargs, action.nargs)  # type: ignore[arg-type]
        action.required = False


@pytest.mark.parametrize("command", commands("slabyard"), ids=name)
def test_commands_of_slabyard_parse(command: Command) -> None:
    words = command.words()[1:]
    if "--" in words:
        words = words[: words.index("--")]
    if words[:1] == ["VERB"] or "--help" in words:
        words = [word for word in words if word not in ("VERB", "--help")]
        if not words:
            return
    parser = parsers.parser()
    if not command.whole:
        ask_for_nothing(parser)
    options = parser.parse_args(words)
    for word in words:
        if word.split("/")[0] in FOLDERS and not a_readers(word):
            assert (ROOT / word).exists(), f"{word} is not there"
    allocator, allocators = getattr(options, "allocator", None), getattr(options, "allocators", None)
    specs = [*([allocator] if allocator else []), *(allocators.split(",") if isinstance(allocators, str) else allocators or [])]
    for spec in specs:
        if not a_readers(spec):
            if options.verb == "kernel":
                kinds.parse(spec, options.linux or versions.DEFAULT)
            else:
                replay.check_spec(spec)
    for work in (getattr(options, "workload", None) or getattr(options, "workloads", None) or "").split(","):
        if work and options.verb == "kernel":
            try:
                workloads.parse(work)
            except UserError as error:  # this machine may lack the workload's programs
                assert error.status == MISSING, error
        elif work:
            assert work in {one["name"] for one in threads.workloads()}


def test_commands_were_found() -> None:
    assert len(commands("slabyard")) > 30 and len(commands("make")) > 10


# ---- make, python ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", commands("make"), ids=name)
def test_targets_of_make_exist(command: Command) -> None:
    for word in command.words()[1:]:
        variable, equals, _ = word.partition("=")
        assert variable in VARIABLES if equals else word in TARGETS, f"{word} is nothing of the Makefile's"


@pytest.mark.parametrize("command", commands("python3?"), ids=name)
def test_scripts_exist(command: Command) -> None:
    script = command.words()[1]
    assert script == "-c" or (ROOT / script).is_file()


# ---- Files and tests ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_exist(document: Path) -> None:
    for span in spans(document.read_text()):
        first = span.split("/")[0]
        if "/" in span and " " not in span and first in FOLDERS and not re.search(r"\b[A-Z]+\b", Path(span).stem):
            assert list(ROOT.glob(span)), f"{span} is not there"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_tests_exist(document: Path) -> None:
    files = [path for path in (ROOT / "tests").rglob("*") if path.suffix in (".c", ".h", ".cc", ".py") and ".hypothesis" not in path.parts]
    names = {path.name for path in files}
    texts = "\n".join(path.read_text() for path in files)
    for span in spans(document.read_text()):
        if re.fullmatch(r"test_\w+", span):
            assert re.search(rf"\b{span}\b", texts), f"no test is called {span}"
        elif re.fullmatch(r"(test|malloc)_\w+\.(c|py)", span):
            assert span in names, f"{span} is not there"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / target).exists(), f"{target} is not there"
