"""The policy as a file: bytes, YAML, plain data, and the published schema."""

from __future__ import annotations

import json
from datetime import date
from importlib import resources
from time import process_time
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sfumato.errors import PolicyError
from sfumato.policy import file, shape
from sfumato.policy.file import json_schema

GOOD = "attributes: {age: {role: quasi-identifier}}\nrequire: []\n"


def raise_mistakes(document):
    raise document.origin.error(document.mistakes.found)


def refusal(content, load=file.load) -> str:
    with pytest.raises(PolicyError) as caught:
        raise_mistakes(load(content))
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- files ------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_refused_by_its_path(tmp_path):
    path = tmp_path / "policy.yaml"
    assert refusal(path, file.read) == f"The policy file {str(path)!r} does not exist."


def test_a_folder_is_not_a_policy(tmp_path):
    assert refusal(tmp_path, file.read).endswith("cannot be read: Is a directory.")


def test_a_path_that_cannot_be_one_is_refused():
    assert refusal("a\0b", file.read).endswith("cannot be read: not a usable path.")


def test_text_that_is_not_utf_8_is_refused_with_its_line(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_bytes(GOOD.encode() + "# Grüße".encode("latin-1"))
    assert refusal(path, file.read) == ("policy.yaml, line 3: the file is not UTF-8 text; save it as UTF-8.")


def test_a_document_of_more_than_16_mb_is_refused_unread():
    content = GOOD + "#" * 16_000_000
    assert refusal(content) == "Policy: the document is larger than 16 MB."
    assert refusal(content.encode()) == "Policy: the document is larger than 16 MB."


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n", "---\n", "~", b"\xef\xbb\xbf", "null\n...\n"])
def test_an_empty_document_is_refused(content):
    assert refusal(content) == "Policy: the document is empty; name the columns under attributes."


@pytest.mark.parametrize("content", ["[a, b]", "attributes", "5", b"\x7fELF\x02\x01"])
def test_a_document_that_is_no_mapping_is_refused(content):
    assert refusal(content).startswith("Policy")


def test_a_byte_order_mark_is_tolerated():
    assert file.load("\ufeff" + GOOD).data == file.load(GOOD).data
    assert file.load(b"\xef\xbb\xbf" + GOOD.encode()).data == file.load(GOOD).data


CSV = "age,zip,disease\n31,53715,flu\n32,53710,cough\n"
NO_POLICY = "this looks like a table, not a policy; a policy is a YAML document, such as profile drafts."


@pytest.mark.parametrize(
    "content",
    [
        CSV,
        CSV.replace(",", ";"),
        CSV.replace(",", "\t"),
        '"age","zip"\n"31","53715"\n',
        "when,what\n12:30, a: b\n13:30, c: d\n",
        "name,note\nx,@y\n",
        'name;note\nx;"in pain; calls often"\n',
        "name;town\nJörg;Köln\n".encode("latin-1"),
        b"PAR1\x15\x04",
        b"\x1f\x8b\x08\x00",
        b"PK\x03\x04",
    ],
)
def test_a_table_in_place_of_the_policy_is_told_as_such(content):
    assert NO_POLICY in refusal(content)


@pytest.mark.parametrize("content", ["[a, b]\n[c, d]", "attributes: b, c\nrequire: e, f", "{a, b}\n{c, d}"])
def test_what_only_has_commas_is_no_table(content):
    with pytest.raises(PolicyError) as caught:
        file.load(content)
    assert NO_POLICY not in str(caught.value)


@pytest.mark.parametrize("smile", ["\\ud83d\\ude00", "\\U0001f600", "\U0001f600"])
def test_an_emoji_is_one_character_however_json_writes_it(smile):
    content = '{"attributes": {"SMILE": {"role": "quasi-identifier", "values": ["SMILE", "SMILE."]}}, "require": []}'
    data = file.load(content.replace("SMILE", smile)).data
    assert data["attributes"] == {
        "\U0001f600": {"role": "quasi-identifier", "values": ["\U0001f600", "\U0001f600."]}
    }


# --- plain data -------------------------------------------------------------------------------------------


def plain(**given):
    return {"attributes": {"x": {"role": "quasi-identifier", **given}}, "require": []}


def test_scalars_in_place_of_texts_are_spelled_as_json_does():
    values = [0, 1.5, True, None, "x"]
    data = file.from_plain(plain(values=values)).data
    assert data["attributes"]["x"]["values"] == ["0", "1.5", "true", "null", "x"]


def test_numbers_as_column_names_become_texts():
    data = {"attributes": {1: {"role": "quasi-identifier"}}, "require": ()}
    assert file.from_plain(data).data == {"attributes": {"1": {"role": "quasi-identifier"}}, "require": []}


def test_a_column_name_that_is_two_keys_is_refused():
    data = {"attributes": {1: {"role": "quasi-identifier"}, "1": {"role": "drop"}}, "require": []}
    assert refusal(data, file.from_plain) == "Policy: attributes: the key '1' stands here twice."


@pytest.mark.parametrize("bad", [date(2020, 1, 1), {1}, b"x", object()])
def test_anything_but_plain_data_is_refused(bad):
    message = refusal(plain(type=bad), file.from_plain)
    assert message == "Policy: column 'x', type: this is neither a mapping, a list, a text nor a number."


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 10**400])
def test_a_number_that_is_not_finite_is_refused(bad):
    message = refusal(plain(type="number", bounds=[0, bad]), file.from_plain)
    assert message == "Policy: column 'x', bounds item 2: a number must be finite."


def test_half_a_character_is_refused():
    assert "a lone surrogate" in refusal(plain(values=["\ud800"]), file.from_plain)
    assert "a lone surrogate" in refusal(GOOD.replace("age", '"\\ud800"'))


def test_a_dictionary_that_holds_itself_is_refused():
    data = plain()
    data["attributes"]["x"]["hierarchy"] = data["attributes"]
    message = refusal(data, file.from_plain)
    assert message == "Policy: column 'x', hierarchy x: this is nested deeper than 100 levels."


def test_something_else_than_a_mapping_is_refused():
    assert refusal(["attributes"], file.from_plain) == "Policy: must be a mapping."


def test_long_lists_of_values_are_checked_without_a_call_for_each():
    """A policy may hold a million values; what is wrong with one of them is said at its place."""
    values = [str(number) for number in range(400_000)]
    columns: dict[str, Any] = {f"c{i}": {"role": "quasi-identifier", "values": values} for i in range(3)}
    data = {"attributes": columns, "require": []}
    start = process_time()
    assert not shape.find_mistakes(data)
    assert process_time() - start < 1.5, "a call in Python for each value takes longer than that"
    columns["c1"] = {"role": "quasi-identifier", "values": [*values, 5]}
    (mistake,) = shape.find_mistakes(data)
    assert mistake.words() == "column 'c1', values item 400001: must be a text."


def test_columns_that_are_declared_alike_have_a_sentence_each():
    columns = {"age": {"role": "quasi-identifier"}, **{name: {"rol": "drop"} for name in ("x", "y")}}
    found = file.from_plain({"attributes": columns, "require": []}).mistakes.found
    assert {mistake.sentence for mistake in found} == {
        f"the key 'rol' is unknown in column '{name}'. Did you mean 'role'?" for name in ("x", "y")
    }


# --- the published schema ---------------------------------------------------------------------------------


def nodes(schema):
    """Every subschema that stands for the value of a key: its name, and itself."""
    if isinstance(schema, dict):
        for name, child in schema.get("properties", {}).items():
            yield name, child
        for child in schema.values():
            yield from nodes(child)
    elif isinstance(schema, list):
        for child in schema:
            yield from nodes(child)


def test_the_schema_is_a_json_schema():
    Draft202012Validator.check_schema(json_schema())


def test_the_schema_is_the_packaged_file_and_nobody_can_change_it():
    """If this fails: python -m sfumato.policy.shape."""
    json_schema().clear()
    packaged = resources.files("sfumato.policy").joinpath("policy.schema.json").read_text(encoding="utf-8")
    assert json_schema() == json.loads(packaged)


def test_every_key_of_the_schema_is_described():
    schema = json_schema()
    del schema["if"]  # asks about a key, and declares none
    undescribed = [
        name
        for name, child in nodes(schema)
        if "description" not in child
        and "description" not in schema["$defs"].get(child.get("$ref", "").removeprefix("#/$defs/"), {})
    ]
    assert not undescribed


def test_every_sentence_of_the_schema_is_one():
    def sentences(schema):
        if isinstance(schema, dict):
            if isinstance(schema.get("errorMessage"), str):
                yield schema["errorMessage"]
            for child in schema.values():
                yield from sentences(child)
        elif isinstance(schema, list):
            for child in schema:
                yield from sentences(child)

    found = list(sentences(json_schema()))
    assert len(found) > 30
    assert all(sentence.startswith(("must ", "the key ")) and sentence.endswith(".") for sentence in found)


def test_an_ordinary_validator_takes_the_whole_format():
    """As an editor would: without our keyword, what comes later is legal too."""
    document = {
        "attributes": {
            "id": {"role": "identifier"},
            "age": {"role": "quasi-identifier", "type": "number", "bounds": [0, 110], "step": 1},
            "sex": {"role": "quasi-identifier", "values": [0, 1, "Male"], "missing-values": ["?", None]},
            "job": {"role": "other", "hierarchy": {"tree": {"*": {"a": ["b", 1], "c": None}}}},
        },
        "require": [{"k-anonymity": 5}, {"k-map": 5}, {"t-closeness": {"t": 0.2, "of": "job"}}],
        "workload": [
            {"classify": {"target": "job", "features": ["age"], "weight": 2}},
            {"select": {"where": "age >= 40"}},
            {"aggregate": ["range", "mean"]},
        ],
        "method": {"mondrian": {"scale": "rothko-s", "alpha": 0.05}},
        "unit": "id",
        "suppress": {"at-most": "1%"},
        "output": {"values": "summary"},
        "missing": "own-value",
    }
    Draft202012Validator(json_schema()).validate(document)
    document["method"] = "diffgen"
    del document["require"]
    Draft202012Validator(json_schema()).validate(document)


@pytest.mark.parametrize(
    "tree", [{"*": "x"}, {"*": {"a": 5}}, {"*": [["a"]]}, {"*": {"a": {"b": True}}}, [["a"]], "a", {}, []]
)
def test_the_schema_refuses_a_tree_that_is_none(tree):
    assert not Draft202012Validator(json_schema()).is_valid(plain(hierarchy={"tree": tree}))
