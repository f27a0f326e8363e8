"""What a policy declares with a name of the library: paths of codes, trees made of them, lists and ages."""

from __future__ import annotations

import copy
import pickle

import pytest

from sfumato.errors import HierarchyError
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.builders import declare
from sfumato.policy.hierarchy.library.codes import LibraryCodes, find_path, find_path_to
from sfumato.policy.hierarchy.library.entries import NAMES, CodeRule, find_entry
from sfumato.policy.schema import Attribute, Kind

CODES = {
    "icd9": "250.83 25083 8 38.9 008 V57 V57.1 E909 E909.0 999 V92 E040 279",
    "icd10": "A00.1 A001 C7A.01 I10 Z3A.2 e11.9 D92 U07.1 A10 S72.001A",
    "isced2011": "3 344 ED5 9 34",
    "isco08": "2 21 211 2110 0110 99",
    "nuts": "DE DE2 DE21 DE212 FRK26 EL30",
    "postcodes-at": "1010 A-1010",
    "postcodes-be": "1000",
    "postcodes-ca": "K1A K1A0B6",
    "postcodes-ch": "8001 CH-8001",
    "postcodes-de": "01067 D-80331",
    "postcodes-dk": "2100",
    "postcodes-es": "28001",
    "postcodes-fr": "75001 97110 20000",
    "postcodes-it": "00184",
    "postcodes-nl": "1012 1012AB",
    "postcodes-pl": "00-950 00950",
    "postcodes-se": "11122 SE-11122",
    "postcodes-uk": "SW1A1AA EC1 M11AE B338TH",
    "soc2018": "11-1011 151252 29-1141.01",
    "us-zip": "53715 537 53715-1234 03601 000",
}


def column(name: str, **options: object) -> Attribute:
    return Attribute("x", "quasi-identifier", hierarchy={"library": name}, **options)


def test_every_rule_has_an_example_here():
    assert set(CODES) == {name for name in NAMES if isinstance(find_entry(name).form, CodeRule)}


@pytest.mark.parametrize(("name", "texts"), CODES.items())
def test_each_label_on_the_way_to_a_code_is_found_again(name, texts):
    for text in texts.split():
        path = find_path(name, text)
        assert path is not None, text
        assert (path[0], path[-1]) == ("*", text)
        assert len(set(path)) == len(path) <= len(find_entry(name).levels) + 1
        for n, label in enumerate(path, start=1):
            assert find_path_to(name, label) == path[:n]


@pytest.mark.parametrize(("name", "texts"), CODES.items())
def test_a_label_of_several_codes_is_no_code(name, texts):
    for text in texts.split():
        *above, _ = find_path(name, text) or ()
        assert len(above) >= 2
        assert [find_path(name, label) for label in above] == [None] * len(above)


@pytest.mark.parametrize(
    ("name", "text", "above"),
    [
        ("icd9", "8", ("001-139 Infectious and parasitic diseases", "001-009 Intestinal infectious diseases", "008.*")),
        ("icd9", "250.83", ("240-279 Endocrine, nutritional, metabolic and immunity disorders",
                            "249-259 Diseases of other endocrine glands", "250.*", "250.8*")),
        ("icd9", "E8889", ("E000-E999 External causes of injury", "E880-E888 Accidental falls", "E888.*", "E888.9*")),
        ("icd9", "V92", ("other codes", "other codes: no block", "V92.*")),
        ("icd10", "C7A.0", ("C00-D49 Neoplasms", "C7A-C7B Malignant neuroendocrine tumours", "C7A.*", "C7A.0*")),
        ("icd10", "A10", ("A00-B99 Infectious and parasitic diseases",
                          "A00-B99 Infectious and parasitic diseases: no block", "A10.*")),
        ("icd10", "I25.1", ("I00-I99 Diseases of the circulatory system", "I20-I25 Ischaemic heart diseases",
                            "I25.*", "I25.1*")),
        ("isco08", "2110", ("2 Professionals", "21 Science and engineering professionals", "211*")),
        ("isco08", "2", ("2 Professionals",)),
        ("isced2011", "ED5", ("5-8 High", "5 Short-cycle tertiary education")),
        ("us-zip", "53715", ("5****", "537**")),
        ("us-zip", "03601", ("areas of 20000 people or fewer", "000**")),
        ("postcodes-fr", "97110", ("971*",)),
        ("postcodes-uk", "sw1a 1aa", ("SW*", "SW1A *", "SW1A 1*")),
        ("nuts", "DE212", ("DE*", "DE2*", "DE21*")),
        ("soc2018", "11-1011", ("11 Management", "11-101*")),
    ],
)  # fmt: skip
def test_a_code_stands_below_its_blocks_and_prefixes(name, text, above):
    assert find_path(name, text) == ("*", *above, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [("icd9", "12345"), ("icd9", "E90"), ("icd10", "250.8"), ("us-zip", "2139"), ("postcodes-de", "1067"),
     ("nuts", "XX1"), ("isced2011", "high"), ("postcodes-uk", "SW1A 1A"), ("soc2018", "11")],
)  # fmt: skip
def test_a_text_of_another_form_is_no_code(name, text):
    if name == "icd9" and text == "12345":  # five digits are a code of ICD-9 without its dot
        assert find_path(name, text) is not None
        return
    assert find_path(name, text) is None
    tree = column(name).build_hierarchy([text])
    assert column(name).locate(tree, [text]).tolist() == [-1]


def test_the_tree_is_made_of_the_codes_of_a_table():
    zips = column("us-zip")
    tree = zips.build_hierarchy(["53715", "53703", "03601", "89001", "no zip"])
    assert tree.as_tree() == {
        "*": {
            "5****": {"537**": ["53703", "53715"]},
            "areas of 20000 people or fewer": {"000**": ["03601", "89001"]},
        }
    }
    assert zips.locate(tree, ["89001", "53703", "no zip", "54000"]).tolist() == [3, 0, -1, -1]


def test_a_code_that_is_also_the_beginning_of_others_keeps_a_place_of_its_own():
    tree = column("icd9").build_hierarchy(["250", "250.8", "250.83"])
    leaves = [tree.labels[node] for node in tree.leaf_nodes]
    assert sorted(leaves) == ["250", "250.8", "250.83"]


def test_no_codes_make_a_root_alone():
    assert column("icd9").build_hierarchy([]).labels == ("*",)


@pytest.mark.parametrize(
    ("name", "level", "shown"),
    [
        ("icd9", "category", {"250.83": "250.*", "250": "250.*", "V57.1": "V57.*"}),
        ("icd9", "subcategory", {"250.83": "250.8*", "250": "250"}),
        ("icd9", 3, {"250.83": "249-259 Diseases of other endocrine glands"}),
        ("us-zip", "zip3", {"53715": "537**", "03601": "000**", "537": "537**"}),
        ("icd9", "code", {"250.83": "250.83"}),
    ],
)
def test_nothing_below_a_level_is_left_of_a_coarser_one(name, level, shown):
    given = column(name)
    coarse = Attribute("x", "quasi-identifier", hierarchy=given.hierarchy.coarsen(level))
    tree = coarse.build_hierarchy(list(shown))
    leaves = [tree.labels[node] for node in tree.leaf_nodes]
    assert [leaves[code] for code in coarse.locate(tree, list(shown))] == list(shown.values())
    for text, label in shown.items():
        is_value = text == label
        assert (coarse.hierarchy.find_value_depth(text) is not None) == is_value
        assert coarse.hierarchy.path_to(label)[-1] == label


@pytest.mark.parametrize("level", ["chapters", 5, -1, True, None, 1.5])
def test_a_level_that_is_none_is_refused_with_those_that_are(level):
    with pytest.raises(HierarchyError, match="one of code, subcategory, category, block, chapter"):
        LibraryCodes("icd9").coarsen(level)


def test_lists_are_cut_by_name_or_number_and_keep_their_own_name():
    countries = declare({"library": "countries"}, Kind.CATEGORY)
    for level in ("sub-region", 1):
        coarse = countries.coarsen(level)
        assert coarse.tree.n_leaves == 23
        assert coarse.as_policy() == {"library": "countries"}
        assert coarse.coarsen("region").tree.n_leaves == 6
        assert coarse.coarsen("country") == countries
    attribute = Attribute("x", "quasi-identifier", hierarchy=countries.coarsen("region"))
    tree = attribute.build_hierarchy(())
    leaves = [tree.labels[node] for node in tree.leaf_nodes]
    found = attribute.locate(tree, ["DE", "KE", "Atlantis", "JP"]).tolist()
    assert [leaves[code] if code >= 0 else None for code in found] == ["Europe", "Africa", None, "Asia"]


def test_ages_have_their_own_bounds_whatever_those_of_the_column():
    age = Attribute("age", "quasi-identifier", Kind.NUMBER, hierarchy={"library": "ages"})
    assert age.bounds == (0, 120)
    narrow = Attribute("age", "quasi-identifier", Kind.NUMBER, (18, 90), hierarchy={"library": "ages"})
    for column in (age, narrow):
        tree = column.build_hierarchy(())
        leaves = [tree.labels[node] for node in tree.leaf_nodes]
        assert [leaves[code] for code in column.locate(tree, [0, 4.9, 18, 119, 120])] == [
            "[0, 5)", "[0, 5)", "[15, 20)", "[115, 120]", "[115, 120]",
        ]  # fmt: skip
        assert tree.height == 3
    assert narrow.bounds == (18, 90)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_read_from_a_policy_and_written_back(name):
    kind = "number" if name == "ages" else "category"
    given = {
        "attributes": {"x": {"role": "quasi-identifier", "type": kind, "hierarchy": {"library": name}}},
        "require": [],
    }
    policy = Policy.from_dict(given)
    (attribute,) = policy.schema
    assert policy.as_dict()["attributes"]["x"]["hierarchy"] == {"library": name}
    assert Policy.from_dict(policy.as_dict()) == policy
    assert (
        pickle.loads(pickle.dumps(attribute.hierarchy))
        == copy.deepcopy(attribute.hierarchy)
        == attribute.hierarchy
    )


def test_declared_values_must_be_codes():
    with pytest.raises(HierarchyError, match="Declared values that are no codes of it: 1"):
        column("icd9", values=("250.8", "flu")).build_hierarchy(())
    tree = column("icd9", values=("250.8", "8")).build_hierarchy(())
    assert tree.n_leaves == 2
