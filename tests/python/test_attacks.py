"""Attacks on a hardened heap fail: none is won, none hangs, and if the heap ends a program, one line says why.

The programs are in tests/attacks/, and bench/attacks.py knows how they are built, run and judged.
"""

from __future__ import annotations

import re
from pathlib import Path

import attacks
import planted
import pytest
from slabyard.base.errors import UserError

HARDENED = ["yard:harden=all", "slub:harden=all"]
RUNS = 3  # of each attack: where luck decides, it must not be the attacker's
# What each part of `harden` is for: with it alone the attack is lost, without it it is won.
BY_PART = {
    "malloc/free_list_poisoning": "links",
    "malloc/leak_of_a_link": "links",
    "malloc/stale_secret": "zero",
    "malloc/stale_secret_in_a_new_object": "zero",
    "malloc/reuse_by_another_size": "apart",
    "caches/reuse_by_another_cache": "apart",
    "caches/reuse_by_a_merged_cache": "apart",
    "malloc/adjacent_objects": "random",
    "malloc/reuse_at_once": "quarantine",
}


@pytest.fixture(scope="session")
def made() -> Path:
    planted.build_libraries()
    return attacks.build()


def _all(made: Path) -> list[attacks.Attack]:
    return [attack for program in attacks.PROGRAMS for attack in attacks.attacks(made, program)]


@pytest.mark.parametrize("spec", HARDENED)
def test_no_attack_is_won(spec: str, made: Path) -> None:
    column = attacks.Column(spec, spec=spec)
    outcomes = {str(attack): attacks.worst(made, attack, column, RUNS) for attack in _all(made)}
    wrong = [name for name, outcome in outcomes.items() if outcome.how not in (attacks.STOPPED, attacks.FAILED)]
    assert not wrong, {name: outcomes[name] for name in wrong}
    said = [outcome.said for outcome in outcomes.values() if outcome.said]
    assert said and all(re.fullmatch(r"slabyard: [a-z ]+: 0x[0-9a-f]+", one) for one in said), said


@pytest.mark.parametrize("name", BY_PART)
@pytest.mark.parametrize("policy", ["yard", "slub"])
def test_each_part_stops_what_it_is_for(policy: str, name: str, made: Path) -> None:
    attack = next(one for one in _all(made) if str(one) == name)
    plain, hardened = policy, f"{policy}:harden={BY_PART[name]}"
    assert attacks.worst(made, attack, attacks.Column(plain, spec=plain), RUNS).how == attacks.SUCCEEDED
    assert attacks.worst(made, attack, attacks.Column(hardened, spec=hardened), RUNS).how != attacks.SUCCEEDED


@pytest.mark.parametrize("word", ["links", "zero", "random", "apart", "quarantine"])
@pytest.mark.parametrize("policy", ["yard", "slub"])
def test_no_part_lets_a_slab_take_a_second_free_when_all_of_it_is_free(policy: str, word: str, made: Path) -> None:
    attack = next(one for one in _all(made) if one.name == "double_free_in_free_pages")
    spec = f"{policy}:harden={word}"
    outcome = attacks.run(made, attack, attacks.Column(spec, spec=spec))
    assert outcome.how == attacks.STOPPED and outcome.said.startswith("slabyard: double free: 0x"), outcome


def test_a_wrong_word_gets_a_line_that_names_the_right_ones(made: Path) -> None:
    attack = _all(made)[0]
    for value in ("lnks", "zero+", "zero+foo", ""):
        with pytest.raises(UserError, match="it can be off, links, zero, random, apart, quarantine, all, or some joined by") as told:
            attacks.run(made, attack, attacks.Column("wrong", spec=f"yard:harden={value}"))
        assert "\n" not in told.value.message
