"""The files of the library: complete, without gaps or overlaps, every value once, each with its source."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from sfumato.errors import HierarchyError
from sfumato.policy.hierarchy.library.entries import FILES, NAMES, CodeRule, NumberRule, find_entry
from sfumato.policy.hierarchy.tree import Hierarchy

FOLDER = files("sfumato.policy.hierarchy.library")
CODES = [name for name in NAMES if isinstance(find_entry(name).form, CodeRule)]
LISTS = [name for name in NAMES if isinstance(find_entry(name).form, Hierarchy)]
OUTLINED = [name for name in CODES if find_entry(name).form.blocks]


def blocks(name: str, depth: int) -> list:
    return [block for block in find_entry(name).form.blocks if len(block.path) == depth]


def deepest(name: str) -> int:
    return max(len(block.path) for block in find_entry(name).form.blocks)


def test_every_file_is_named_and_every_name_has_a_file():
    stems = {file.name.removesuffix(".yaml") for file in FOLDER.iterdir() if file.name.endswith(".yaml")}
    assert stems == set(FILES.values())
    for stem in stems:
        given = yaml.safe_load((FOLDER / f"{stem}.yaml").read_text("utf-8"))
        assert {name for name, own in FILES.items() if own == stem} == set(given.get("names", {stem: 1}))


@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_is_where_it_comes_from_and_on_what_terms(name):
    entry = find_entry(name)
    assert len(entry.title) > 15
    assert len(entry.source) > 15
    assert len(entry.licence) > 15
    assert len(set(entry.levels)) == len(entry.levels) >= 2
    assert all(word == word.lower() and word.isalnum() for word in entry.words)


def test_the_page_lists_all_of_them_with_levels_and_source():
    page = (Path(__file__).parents[5] / "docs" / "hierarchies.md").read_text("utf-8")
    for name in NAMES:
        entry = find_entry(name)
        cells = (f"`{name}`", entry.title, ", ".join(entry.levels), entry.source)
        assert f"| {' | '.join(cells)} |" in page


def test_a_wrong_name_lists_the_library_and_names_the_nearest():
    with pytest.raises(HierarchyError, match=r"ages, countries.*us-zip\. Did you mean 'icd9'\?"):
        find_entry("icd-9")
    with pytest.raises(HierarchyError, match="no hierarchy of that name"):
        find_entry(["icd9"])


@pytest.mark.parametrize(
    ("name", "counts"),
    {
        "countries": (249, 23, 6),
        "countries-alpha3": (249, 23, 6),
        "country-names": (249, 23, 6),
        "us-states": (56, 10, 5),
        "us-state-names": (56, 10, 5),
        "education-names": (16, 6, 3),
    }.items(),
)
def test_a_list_has_so_many_values_and_groups(name, counts):
    tree = find_entry(name).form
    assert (tree.n_leaves, *(int((tree.depth == depth).sum()) for depth in (2, 1))) == counts
    assert tree.height == 3
    labels = [tree.labels[node] for node in tree.leaf_nodes]
    assert len(set(labels)) == len(labels)
    assert set(tree.depth[tree.leaf_nodes]) == {3}


@pytest.mark.parametrize("name", LISTS)
def test_a_group_is_no_value(name):
    tree = find_entry(name).form
    inner = {tree.labels[node] for node in range(tree.n_nodes)} - {
        tree.labels[node] for node in tree.leaf_nodes
    }
    assert len(inner) == tree.n_nodes - tree.n_leaves


@pytest.mark.parametrize(
    ("name", "value", "groups"),
    [
        ("countries", "DE", ("*", "Europe", "Western Europe", "DE")),
        ("countries", "NA", ("*", "Africa", "Southern Africa", "NA")),
        ("countries", "US", ("*", "Americas", "Northern America", "US")),
        ("countries", "TW", ("*", "Asia", "Eastern Asia", "TW")),
        ("countries", "AQ", ("*", "Antarctic", "South of 60 degrees", "AQ")),
        ("countries-alpha3", "BRA", ("*", "Americas", "South America", "BRA")),
        ("country-names", "Kenya", ("*", "Africa", "Eastern Africa", "Kenya")),
        ("country-names", "Côte d'Ivoire", ("*", "Africa", "Western Africa", "Côte d'Ivoire")),
        ("us-states", "WV", ("*", "South", "South Atlantic", "WV")),
        ("us-states", "OH", ("*", "Midwest", "East North Central", "OH")),
        ("us-state-names", "Hawaii", ("*", "West", "Pacific", "Hawaii")),
        (
            "education-names",
            "HS-grad",
            ("*", "Diploma or associate degree", "High school diploma", "HS-grad"),
        ),
    ],
)
def test_values_of_lists_stand_where_their_source_puts_them(name, value, groups):
    tree = find_entry(name).form
    (node,) = (node for node in tree.leaf_nodes if tree.labels[node] == value)
    assert tree.path(node) == groups


def test_the_nine_divisions_hold_the_fifty_states_and_the_capital():
    tree = find_entry("us-states").form
    size = {tree.labels[node]: int(tree.high[node] - tree.low[node]) for node in range(tree.n_nodes)}
    assert [size[region] for region in ("Northeast", "Midwest", "South", "West", "Outside the states")] == [
        9,
        12,
        17,
        13,
        5,
    ]


@pytest.mark.parametrize("name", OUTLINED)
def test_blocks_do_not_overlap_and_lie_in_their_chapter(name):
    for depth in range(1, deepest(name) + 1):
        given = sorted(pair for block in blocks(name, depth) for pair in block.ranges)
        for (first, last), (following, _) in zip(given, [*given[1:], ("~", "~")], strict=True):
            assert len(first) == len(last)
            assert first <= last
            if following[0] == first[0] and following[1:].isdigit() == first[1:].isdigit():
                assert last < following
    chapters = {block.path[-1]: block for block in blocks(name, 1)}
    for block in find_entry(name).form.blocks[1:]:
        above = chapters[block.path[0]]
        for first, last in block.ranges:
            if last[-1].isdigit():
                assert any(low <= first[: len(low)] <= last[: len(low)] <= high for low, high in above.ranges)
            else:  # what ICD-10-CM added, such as O9A
                (low, high) = above.ranges[0]
                assert low[0] <= first[0] == last[0] <= high[0]


@pytest.mark.parametrize("name", OUTLINED)
def test_every_label_of_an_outline_stands_once(name):
    labels = [block.path[-1] for block in find_entry(name).form.blocks]
    assert len(set(labels)) == len(labels)
    assert not any(re.search(r" \(not |^\[", label) for label in labels)  # the forms of rests and intervals


@pytest.mark.parametrize(
    ("name", "counts"),
    {
        "icd9": (19, 157),
        "icd10": (22, 248),
        "isco08": (10, 43),
        "soc2018": (23,),
        "isced2011": (4, 10),
    }.items(),
)
def test_an_outline_has_so_many_chapters_and_blocks(name, counts):
    assert tuple(len(blocks(name, depth)) for depth in range(1, deepest(name) + 1)) == counts


def test_numbers_from_001_to_999_have_a_chapter_of_icd9():
    chapters = blocks("icd9", 1)
    for number in range(1, 1000):
        assert sum(block.holds(f"{number:03}") for block in chapters) == 1, number


def test_letters_from_a_to_z_have_chapters_of_icd10():
    lacking = [
        f"{letter}{number:02}"
        for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        for number in range(100)
        if sum(block.holds(f"{letter}{number:02}") for block in blocks("icd10", 1)) != 1
    ]
    ends = {"D9": 9, "E9": 9, "H9": 4, "K9": 4, "P9": 3, "T9": 1}
    assert {start: sum(code.startswith(start) for code in lacking) for start in ends} == ends
    assert len(lacking) == sum(ends.values())


ADDED = {
    "United States": "B10 C4A C7A C7B D3A D49 D78 E08 E09 E36 E89 G65 G89 I16 I5A J4A K68 K94 K95 L49 L76 M04 M1A M26 "
    "M27 N52 N53 N65 O09 O76 O77 O9A P09 P19 P84 R97 V00 X50 Y37 Y38 Y99 Z14 Z15 Z16 Z17 Z18 Z19 Z3A Z66 Z67 Z68 Z69 Z77 "
    "Z78 Z79",
    "Germany": "D90 O09 T89 U50 U51 U52 U55 U60 U61 U69 U80 U81 U82 U83 U84 U85",
}
"""Categories of national versions that the World Health Organization's has not, or not in 1990."""


@pytest.mark.parametrize("added", ADDED.values(), ids=ADDED)
def test_what_countries_added_to_icd10_has_a_block(added):
    of_block = blocks("icd10", 2)
    assert [code for code in added.split() if sum(block.holds(code) for block in of_block) != 1] == []


def test_the_restricted_areas_are_the_seventeen_that_hhs_prints():
    (pattern, new), *_ = find_entry("us-zip").form.rewrite
    restricted = [f"{area:03}" for area in range(1, 1000) if pattern.sub(new, f"{area:03}01") == "00001"]
    printed = "036 059 063 102 203 556 692 790 821 823 830 831 878 879 884 890 893"
    assert restricted == printed.split()


def test_ages_go_from_0_to_120_by_widths_that_divide_each_other():
    ages = find_entry("ages").form
    assert isinstance(ages, NumberRule)
    assert (ages.bounds, ages.widths) == ((0, 120), (5, 10, 20))
    assert all(120 % width == 0 for width in ages.widths)
