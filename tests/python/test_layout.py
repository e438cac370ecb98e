"""`slabyard layout`: what scripts may say, what the drawings show under each allocator, and that those in docs/allocators
are right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from handmade import complaint, slabyard

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "allocators"
POLICIES = ("slub", "slab", "slob", "slqb", "bonwick", "bsd44", "svr4", "sunos4")
COMMON = DOCS / "scripts" / "common.txt"


def script(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "script.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def found(spec: str, path: str) -> dict[str, Any]:
    done = slabyard("layout", "--allocator", spec, path, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def things(snapshot: dict[str, Any], state: str) -> dict[str, tuple[int, dict[str, Any], dict[str, Any]]]:
    """Names of the objects in parts of that state, with page, part and slab."""
    return {
        thing["id"]: (slab["page"] + (part["offset"] + thing["offset"]) // 4096, part, slab)
        for slab in snapshot["slabs"] for part in slab["parts"] if part["state"] == state for thing in part["objects"]
    }  # fmt: skip


# ---- Documents -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [*POLICIES, "README"])
def test_documents_show_what_the_program_prints(page: str) -> None:
    path = DOCS / f"{page}.md"
    done = subprocess.run([sys.executable, str(ROOT / "docs" / "draw.py"), "--check", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_allocator_has_a_page() -> None:
    names = [policy["name"] for policy in json.loads(slabyard("list", "--format", "json").stdout)]
    index = (DOCS / "README.md").read_text()
    for name in names:
        text = (DOCS / f"{name}.md").read_text()
        assert f"<!-- layout {name} common -->" in text and f"[{name}]({name}.md)" in index
    assert COMMON.read_text().split("\n", 1)[1].strip() in index, "the README shows the common sequence as it is"


def test_every_script_is_drawn() -> None:
    drawn = {words[1] for path in DOCS.glob("*.md") for words in re.findall(r"<!-- layout (\S+) (\S+) -->", path.read_text())}
    assert drawn == {path.stem for path in (DOCS / "scripts").glob("*.txt")}


# ---- What is shown -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_parts_cover_slabs_and_hold_the_objects(policy: str) -> None:
    (snapshot,) = found(policy, str(COMMON))["snapshots"]
    for slab in snapshot["slabs"]:
        at = 0
        for part in slab["parts"]:
            assert part["offset"] == at and part["bytes"] > 0
            at += part["bytes"]
        assert at == slab["bytes"]
    assert set(things(snapshot, "used")) == set("adeghjklmxy")


@pytest.mark.parametrize("policy", POLICIES)
def test_text_is_plain_and_fits(policy: str) -> None:
    for path in (DOCS / "scripts").glob(f"{policy}*.txt"):  # the common one is in the documents
        text = slabyard("layout", "--allocator", policy, str(path)).stdout
        assert text.isascii() and max(map(len, text.splitlines())) <= 80 and "in use" in text


def test_a_drawing_names_each_object_once(tmp_path: Path) -> None:
    text = slabyard("layout", "--allocator", "slub", script(tmp_path, "cache c 500", "alloc a1..a8 c", "free a3 a7")).stdout
    rows = "".join(line[8:] for line in text.splitlines() if re.match(r" +\d+ [|:=]", line))
    assert [rows.count(f"a{number}") for number in range(1, 9)] == [1] * 8
    assert re.search(r"\|a3\++\|", rows) and re.search(r"\|a4#+_\|", rows)
    assert "CPU 0, freelist: a7 a3" in text


def test_slub_frees_of_others_go_to_the_slab(tmp_path: Path) -> None:
    path = script(tmp_path, "cpus 2", "cache c 400", "alloc a..d c", "free a cpu=1", "free b cpu=0")
    (snapshot,) = found("slub", path)["snapshots"]
    assert things(snapshot, "free")["a"][1]["list"] == "freelist of the slab"
    assert things(snapshot, "slot")["b"][1] | {"objects": 0} == {
        "offset": 400, "bytes": 400, "state": "slot", "object": True, "list": "freelist", "owner": 0, "place": 0, "objects": 0,
    }  # fmt: skip


def test_slab_arrays_are_stacks(tmp_path: Path) -> None:
    path = script(tmp_path, "cpus 2", "cache c 400", "alloc a..d c", "free a b c", "free d cpu=1")
    (snapshot,) = found("slab", path)["snapshots"]
    kept = things(snapshot, "slot")
    assert [(kept[name][1]["owner"], kept[name][1]["place"]) for name in "abcd"] == [(0, 2), (0, 1), (0, 0), (1, 0)]


def test_bonwick_colours_its_slabs(tmp_path: Path) -> None:
    (snapshot,) = found("bonwick", script(tmp_path, "cache c 200", "alloc a1..a220 c"))["snapshots"]
    starts = [slab["parts"][0]["bytes"] if slab["parts"][0]["state"] == "colour" else 0 for slab in snapshot["slabs"]]
    assert starts == [0, 8, 16, 24, 32, 40, 48, 56, 64, 0, 8], "Bonwick 1994, section 4.3"


def test_slob_fits_choose_different_holes() -> None:
    pages = {}
    for fit in ("next", "first", "best"):
        (snapshot,) = found(f"slob:fit={fit}", str(DOCS / "scripts" / "slob.txt"))["snapshots"]
        used = things(snapshot, "used")
        pages[fit] = tuple(used[name][0] - used["a"][0] for name in "xy")
    assert pages == {"next": (1, 1), "first": (1, 2), "best": (0, 2)}


def test_slqb_sends_objects_home() -> None:
    spec = "slqb:hiwater=4,flushbatch=2,freebatch=4,remote_free_check=8"
    shots = found(spec, str(DOCS / "scripts" / "slqb.txt"))["snapshots"]
    where = [{name: (part["list"], part["owner"]) for name, (_, part, _) in things(shot, "slot").items()} for shot in shots]
    assert where[0] == dict.fromkeys("abcd", ("freelist", 1))
    assert where[1] == dict.fromkeys("abc", ("freelist", 1)) | dict.fromkeys("de", ("rlist", 1))
    assert where[2] == dict.fromkeys("abch", ("freelist", 1)) | dict.fromkeys("defg", ("remote_free", 0))


def test_bsd44_keeps_its_pages() -> None:
    (snapshot,) = found("bsd44", str(DOCS / "scripts" / "bsd44.txt"))["snapshots"]
    assert [slab["bytes"] for slab in snapshot["slabs"]] == [4096] * 4 and set(things(snapshot, "used")) == {"x"}


def test_svr4_is_lazy_as_long_as_there_is_slack() -> None:
    shots = found("svr4", str(DOCS / "scripts" / "svr4.txt"))["snapshots"]
    lazy = [{name for name, (_, part, _) in things(shot, "free").items() if part["list"] == "locally free"} for shot in shots]
    assert lazy == [set("bdef"), set("def"), set("ef")]


def test_sunos4_tells_its_tree() -> None:
    text = slabyard("layout", "--allocator", "sunos4", str(DOCS / "scripts" / "sunos4.txt")).stdout
    lines = text.split("its root is the leftmost:\n")[1].split("\n\n")[0].splitlines()
    depth = {int(line.split()[3]): (len(line) - len(line.lstrip())) // 4 - 1 for line in lines}
    size = {int(line.split()[3]): int(line.split()[0]) for line in lines}
    assert list(size) == sorted(size) and depth[max(size, key=lambda at: size[at])] == 0
    assert sorted(depth.values()) == [0, 1, 2, 2, 3, 3] or min(depth.values()) == 0


def test_deep_trees_and_merged_caches_fit(tmp_path: Path) -> None:
    holes = [f"kmalloc o{at} {16 + 16 * at}" for at in range(1, 60)] + ["free " + " ".join(f"o{at}" for at in range(1, 60, 2))]
    text = slabyard("layout", "--allocator", "sunos4:chunk_order=5", script(tmp_path, *holes)).stdout
    assert max(map(len, text.splitlines())) <= 80 and text.count(" bytes at ") == 30
    path = script(tmp_path, "cache mine 64", "cache yours 64", "alloc a mine", "alloc b yours")
    text = slabyard("layout", "--allocator", "slub", path).stdout
    assert "mine, merged with yours: objects of 64 bytes" in text


def test_machines_with_nodes(tmp_path: Path) -> None:
    path = script(tmp_path, "cpus 2", "nodes 2", "cache c 400", "alloc a c node=0", "alloc b c node=1", "free b cpu=0")
    for policy in POLICIES:
        (snapshot,) = found(policy, path)["snapshots"]
        assert things(snapshot, "used")["a"][2]["node"] == 0
    (snapshot,) = found("slab", path)["snapshots"]
    assert things(snapshot, "node")["b"][1]["list"] == "alien array"


def test_standard_input_and_pictures(tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"
    done = slabyard("layout", "--allocator", "bonwick", "-", "--svg", str(picture), input=COMMON.read_text())
    assert done.returncode == 0 and done.stdout == slabyard("layout", "--allocator", "bonwick", str(COMMON)).stdout
    names = [element.text for element in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert "m" in names and "bonwick" in names


def test_the_picture_leaves_out_rows_that_repeat(tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"
    done = slabyard("layout", "--allocator", "slub", "-", "--svg", str(picture), input="kmalloc small 9000\nkmalloc large 2000000\n")
    assert done.returncode == 0
    text = picture.read_text()
    assert "(120 more rows like this)" in text and text.count("<rect") < 20
    assert "more row" not in text[: text.index("large")]


def test_comments_blank_lines_and_names_used_again(tmp_path: Path) -> None:
    path = script(tmp_path, "# nothing", "", "kmalloc a 100 # one", "free a", "kmalloc a 200", "show  two words ", "free a")
    shots = found("slob", path)["snapshots"]
    assert [shot["title"] for shot in shots] == ["two words", ""]
    assert things(shots[0], "used")["a"][1]["state"] == "used" and not shots[1]["slabs"]


def test_an_empty_script_shows_an_empty_machine(tmp_path: Path) -> None:
    assert "0 pages held" in slabyard("layout", "--allocator", "slub", script(tmp_path)).stdout
    assert "\n1 page held" in slabyard("layout", "--allocator", "slub", script(tmp_path, "cpus 1", "kmalloc a 8")).stdout


def test_time_passes_and_cpus_go(tmp_path: Path) -> None:
    path = script(tmp_path, "cache c 400 rcu", "alloc a..j c", "drain 0", "free a..j", "drain 0", "shrink", "show", "tick 1", "tick 5")
    shots = found("slub", path)["snapshots"]
    assert {part["state"] for slab in shots[0]["slabs"] for part in slab["parts"]} == {"waiting"} and not shots[1]["slabs"]


# ---- Mistakes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (["allok a c"], "line 1: there is no command allok"),
        (["cache c 100", "alloc a d"], "line 2: there is no cache d"),
        (["cache c 100", "cache c 100"], "line 2: there is a cache c already"),
        (["cache c-d 100"], "line 1: c-d is no name of a cache"),
        (["cache c 0"], "line 1: the size cannot be 0: give a number from 1 to 4194304"),
        (["cache c 100 align=3"], "line 1: slub has no cache of that size and alignment"),
        (["cache c"], "line 1: write: cache NAME SIZE"),
        (["cache c 100 cotr"], "line 1: write: cache NAME SIZE"),
        (["kmalloc a 10", "kmalloc a 10"], "line 2: a is in use already"),
        (["kmalloc a-b 10"], "line 1: a-b is no name of an object"),
        (["kmalloc averyveryverylongname 10"], "line 1: averyveryverylongname is no name"),
        (["kmalloc a"], "line 1: write: kmalloc ID... SIZE"),
        (["kmalloc a 9999999999"], "line 1: the size cannot be 9999999999"),
        (["kmalloc d..a 10"], "line 1: d..a is no range"),
        (["kmalloc a1..b3 10"], "line 1: a1..b3 is no range"),
        (["kmalloc a1..a99999 10"], "line 1: a1..a99999 is no range"),
        (["kmalloc a1..a9 4194304"], "line 1: no memory for a"),
        (["free z"], "line 1: no object in use is named z"),
        (["kmalloc a 10", "free a", "free a"], "line 3: no object in use is named a"),
        (["free"], "line 1: write: free ID..."),
        (["kmalloc a 10 cpu=1"], "line 1: cpu cannot be 1: give a number from 0 to 0"),
        (["kmalloc a 10 node=x"], "line 1: node cannot be x"),
        (["cpus 513"], "line 1: cpus cannot be 513"),
        (["shrink", "cpus 2"], "line 2: cpus must stand before"),
        (["drain"], "line 1: write: drain CPU"),
        (["tick 0"], "line 1: the time cannot be 0"),
        (["shrink all"], "line 1: shrink stands alone"),
        (["show", "kmalloc " + "a " * 600], "line 2: longer than"),
    ],
)
def test_mistakes_in_scripts_are_one_line(tmp_path: Path, lines: list[str], wrong: str) -> None:
    path = script(tmp_path, *lines)
    done = slabyard("layout", "--allocator", "slub", path)
    assert done.returncode == 2 and done.stdout == ""
    assert complaint(done, 2).startswith(f"slabyard: {path}, {wrong}")


def test_other_mistakes_are_one_line(tmp_path: Path) -> None:
    path = script(tmp_path, "kmalloc a 10")
    assert "did you mean slub?" in complaint(slabyard("layout", "--allocator", "slubb", path), 2)
    assert "malloc shows nothing of its inside" in complaint(slabyard("layout", "--allocator", "malloc:system", path), 2)
    assert "cannot read" in complaint(slabyard("layout", "--allocator", "slub", str(tmp_path / "none.txt")), 2)
    assert "there is no folder" in complaint(slabyard("layout", "--allocator", "slub", path, "--svg", str(tmp_path / "none" / "a.svg")), 2)
    assert "is also read" in complaint(slabyard("layout", "--allocator", "slub", path, "--svg", path), 2)
    binary = tmp_path / "binary"
    binary.write_bytes(b"kmalloc a 10\0\n")
    assert "is not a script" in complaint(slabyard("layout", "--allocator", "slub", str(binary)), 2)
    wrong = slabyard("layout", "--allocator", "slub", "-", input="free z\n")
    assert wrong.returncode == 2 and complaint(wrong, 2).startswith("slabyard: standard input, line 1: ")
