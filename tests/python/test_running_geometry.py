"""`slabyard geometry --running`: every cache of /sys/kernel/slab against the replay's."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

from slabyard.base.errors import MISSING, UserError
from slabyard.base.table import render
from slabyard.command.cli import main
from slabyard.replay import running_geometry as geometry

# As Linux 6.18 on two CPUs shows them.
_SAME = {"cache_dma": "0", "ctor": "", "destroy_by_rcu": "0", "hwcache_align": "0", "reclaim_account": "0", "usersize": "0"}
CACHES = {
    "vm_area_struct": {"object_size": "192", "slab_size": "192", "align": "64", "objs_per_slab": "21", "order": "0", "min_partial": "5",
                       "cpu_partial": "120", "sheaf_capacity": "32", "destroy_by_rcu": "1", "hwcache_align": "1"},
    "task_struct": {"object_size": "5840", "slab_size": "5888", "align": "64", "objs_per_slab": "5", "order": "3", "min_partial": "6",
                    "cpu_partial": "6", "sheaf_capacity": "0", "usersize": "2448"},
    "kmalloc-4k": {"object_size": "4096", "slab_size": "4096", "align": "4096", "objs_per_slab": "8", "order": "3", "min_partial": "6",
                   "cpu_partial": "6", "sheaf_capacity": "0", "usersize": "4096"},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, attributes in CACHES.items():
        cache = tmp_path / "slab" / name
        cache.mkdir(parents=True)
        for attribute, value in {**_SAME, **attributes}.items():
            (cache / attribute).write_text(value + "\n")
    (tmp_path / "slab" / "an_alias").symlink_to("task_struct")
    return tmp_path / "slab"


def differing(folder: Path, spec: str) -> set[tuple[str, str]]:
    return {(one.name, figure) for one in geometry.measure(spec, folder, "6.18.0", 2) for figure in one.differing}


def test_every_cache_is_as_the_kernel_has_it(folder: Path) -> None:
    found = geometry.measure("slub", folder, "6.18.0", 2)
    assert [one.name for one in found] == ["an_alias", "kmalloc-4k", "task_struct", "vm_area_struct"]
    assert not any(one.differing for one in found)
    assert found[3].replay == {
        "slab_size": 192, "objs_per_slab": 21, "pages": 1, "min_partial": 5, "cpu_partial": 120, "sheaf_capacity": 32
    }  # fmt: skip
    assert render(geometry.tables(found), "text").startswith("4 of the running kernel's 4 caches are the same here")


def test_what_differs_is_told(folder: Path) -> None:
    assert ("vm_area_struct", "sheaf_capacity") in differing(folder, "slub:linux=6.1")
    assert differing(folder, "slub:min_partial=7,cpu_partial=0") == {
        (name, figure) for name in ("an_alias", *CACHES) for figure in ("min_partial", "cpu_partial")
    }
    (folder / "kmalloc-4k" / "min_partial").write_text("9\n")
    found = geometry.measure("slub", folder, "6.18.0", 2)
    assert [row for table in geometry.tables(found) for row in table.rows] == [["kmalloc-4k", "min_partial", 9, 6]]
    assert [one["equal"] for one in geometry.as_json(found)] == [True, False, True, True]


def test_a_figure_that_the_kernel_lacks_is_not_compared(folder: Path) -> None:
    for name in CACHES:
        (folder / name / "sheaf_capacity").unlink()
    assert "sheaf_capacity" not in {figure for _, figure in differing(folder, "slub:linux=6.1")}


def test_refusals(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="this kernel's allocator is not SLUB") as error:
        geometry.measure("slub", tmp_path / "none")
    assert error.value.status == MISSING
    for name in CACHES:
        for file in os.listdir(folder / name):
            (folder / name / file).unlink()
    with pytest.raises(UserError, match="cannot be read; that takes root") as error:
        geometry.measure("slub", folder)
    assert error.value.status == MISSING


def test_where_nothing_differs_one_line_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(geometry, "measure", functools.partial(geometry.measure, folder=folder, kernel="6.18.0", cpus=2))
    assert main(["geometry", "--allocator", "slub", "--running"]) == 0
    assert capsys.readouterr().out == "4 of the running kernel's 4 caches are the same here\n"
    assert main(["geometry", "--allocator", "slub", "--running", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "cache,figure,kernel,replay\n"
    assert main(["geometry", "--allocator", "slub:min_partial=7", "--running"]) == 1
    assert "cache           figure       kernel  replay\n" in capsys.readouterr().out
