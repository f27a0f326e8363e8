"""YAML without surprises: what is refused, what a bare scalar means, and that what is written reads back."""

# ruff: noqa: E501 - tables of sentences: one case, one line

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sfumato.policy import yaml
from sfumato.policy.yaml import Bare, NotPlain, core, dump, parse

STARS = 'anchors (&) and aliases (*) are not allowed; put quotes around a text that begins so, such as "*".'


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("? [a]\n: 1", 1, "a key must be a text."),
        ("{{a: b}: c}", 1, "a key must be a text."),
        (
            "a: !!python/object/apply:os.system [ls]",
            1,
            "tags (!) are not allowed; put quotes around a text that begins with !.",
        ),
        ("a: 1\nb: !!str 1", 2, "tags (!) are not allowed; put quotes around a text that begins with !."),
        ("a: ! b", 1, "tags (!) are not allowed; put quotes around a text that begins with !."),
        ("!!map {a: 1}", 1, "tags (!) are not allowed; put quotes around a text that begins with !."),
        ("!!str a: 1", 1, "tags (!) are not allowed; put quotes around a text that begins with !."),
        ("a: !x!y 1", 1, "tags (!) are not allowed; put quotes around a text that begins with !."),
        ("a: &x 1", 1, STARS),
        ("a: &x [1]\nb: *x", 1, STARS),
        ("&x a: 1", 1, STARS),
        ("a:\n  *x", 2, STARS),
        ("a: 1\n---\nb: 2", 2, "a second document starts here; leave out the --- and what follows."),
        ("%YAML 1.1\n---\na: 1", 2, "directives (%) are not allowed; this is read as YAML 1.2."),
        ("%TAG ! tag:x,2000:\n---\na: 1", 2, "directives (%) are not allowed; this is read as YAML 1.2."),
        ("a: 1\nb: [1, 2", 2, "a list that begins with [ lacks a comma, or its ]."),
        ("a: b: c", 1, "a second colon stands here; put quotes around a text that has one."),
        ("a:\n\t- b", 2, "a tab stands here; indent with spaces."),
        ("a: {b: 1, c\nd: 2", 2, "a mapping that begins with { lacks a comma, or its }."),
        ('a: "b\nc: 1', 2, "a quotation mark opens here or above and is never closed."),
        (
            'a: "C:\\work"',
            1,
            "a backslash within double quotes begins no character; use single quotes, or write it twice.",
        ),
        ("a: 1\nb\nc: 2", 3, "a text has no colon after it; write key: value, indented as its neighbours."),
        (
            "a:\n  b: 1\n c: 2",
            3,
            "this line is not indented as its neighbours are, or a dash or a colon is missing.",
        ),
        ("a: @b", 1, "a value cannot begin with %, @ or `; put quotes around it."),
        ("*: {role: drop}", 1, STARS),
        ("*_id: {role: drop}", 1, STARS),
        ("a: 1\nb: \x00", 2, "a character cannot stand in YAML."),
        ('a: "\\U00110000"', None, "a character cannot stand in YAML."),
        ("[" * 101, 1, "this is nested deeper than 100 levels."),
        ("{a: " * 101, 1, "this is nested deeper than 100 levels."),
        ("[" * 100_000, 1, "this is nested deeper than 100 levels."),
        ("- " * 100_000, 1, "this is nested deeper than 100 levels."),
    ],
    ids=lambda given: repr(given)[:40],
)
def test_what_a_policy_has_no_use_for_is_refused_with_its_line(text, line, sentence):
    with pytest.raises(NotPlain) as caught:
        parse(text)
    assert (caught.value.line, caught.value.sentence) == (line, sentence)


@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        ("a: 1\nb: 2\na: 3\nb: 4", [(3, "the key 'a' stands twice in one mapping."), (4, "the key 'b' stands twice in one mapping.")]),
        ("x:\n  {a: 1, 'a': 2}", [(2, "the key 'a' stands twice in one mapping.")]),
        ("1: x\n'1': y", [(2, "the key '1' stands twice in one mapping.")]),
    ],
)  # fmt: skip
def test_every_key_that_stands_twice_is_told_with_its_line(text, repeated):
    assert parse(text).repeated == repeated


def test_an_alias_bomb_is_refused_before_it_grows():
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 64))
    with pytest.raises(NotPlain, match="anchors"):
        parse(bomb)


def test_a_hundred_levels_are_fine():
    node, depth = parse("[" * 100 + "]" * 100).root, 0
    while node is not None:
        node, depth = (node[0] if node else None), depth + 1
    assert depth == 100


def test_an_empty_text_has_no_root():
    assert parse("# nothing").root is None


def test_quoted_scalars_are_texts_and_bare_ones_wait():
    root = parse("- 1\n- '1'\n- |\n  1\n- yes").root
    assert root == ["1", "1", "1\n", "yes"]
    assert [isinstance(item, Bare) for item in root] == [True, False, False, True]


def test_lines_of_keys_and_items_are_known():
    lines = parse("a:\n  b: [1,\n    2]\n").lines
    assert lines == {("a",): 1, ("a", "b"): 2, ("a", "b", 0): 2, ("a", "b", 1): 3}


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        *((word, word) for word in ("yes", "no", "on", "off", "Y", "n", "0b1", "1_000", "1:30", "2024-01-31", "=", "<<", "1.2.3", "e8")),
        ("", None), ("~", None), ("null", None), ("Null", None), ("NULL", None),
        ("true", True), ("True", True), ("FALSE", False),
        ("0", 0), ("-7", -7), ("+7", 7), ("08", 8), ("017", 17), ("0o17", 15), ("0x1F", 31),
        ("1.0", 1.0), ("1.", 1.0), (".5", 0.5), ("1e8", 1e8), ("1.0e+8", 1e8), ("-1E-2", -0.01),
        (".inf", math.inf), ("-.INF", math.inf), (".nan", math.inf), ("9" * 401, math.inf), ("0x" + "f" * 400, math.inf),
    ],
)  # fmt: skip
def test_a_bare_scalar_means_what_yaml_1_2_says(text, meaning):
    assert core(text) == meaning
    assert type(core(text)) is type(meaning)


def plain(node):
    """Nodes with every bare scalar taken by the core rules."""
    if isinstance(node, dict):
        return {key: plain(item) for key, item in node.items()}
    if isinstance(node, list):
        return [plain(item) for item in node]
    return core(node) if isinstance(node, Bare) else node


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["yes", "no", "1", "null", "~"]
)
scalars = texts | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
data = st.dictionaries(
    texts,
    st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
    ),
    max_size=4,
)


@settings(deadline=None)
@given(data)
def test_what_is_written_reads_back_the_same(value):
    assert plain(parse(dump(value)).root or {}) == value


@settings(deadline=None)
@given(st.dictionaries(texts, st.lists(texts, max_size=3), max_size=4))
def test_other_readers_of_either_version_take_texts_for_texts(value):
    for version in ("1.1", "1.2"):
        reader = YAML(typ="safe", pure=True)
        reader.version = version
        assert (reader.load(dump(value)) or {}) == value


@settings(deadline=None)
@given(st.text() | st.text("[]{}:,-?&*!|>'\"%@`# \n\ta1", max_size=30))
def test_any_text_is_read_or_refused_and_nothing_else(text):
    with contextlib.suppress(NotPlain):
        parse(text)


PIECES = ["a", "1", ": ", ":", ", ", "[", "]", "{", "}", "- ", "?", "\n", "\n  ", "'", '"', " #", " ", "\\n", "é", "\U0001f600",
          "|\n", "> \n", "*", "&a", "!", "%", "@", "~", "null", "x: {r: d}\n", "\t", "...", "---", "\r\n", "\u2028"]  # fmt: skip


@settings(deadline=None, max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_what_libyaml_reads_is_what_ruamel_reads(text):
    try:
        fast = yaml._build(yaml._fast_events(text))
    except (yaml._AskTheOther, NotPlain):
        return
    sure = yaml._build(yaml._sure_events(text))
    assert [sentence for _, sentence in fast.repeated] == [sentence for _, sentence in sure.repeated]
    assert plain(fast.root) == plain(sure.root)


def test_a_plain_document_is_left_to_libyaml(monkeypatch):
    """ruamel.yaml took most of a minute for 7 MB."""

    def refuse(_text):
        raise AssertionError

    monkeypatch.setattr(yaml, "_sure_events", refuse)
    tree = {"*": {f"group {i}": [f"leaf {i} {j}" for j in range(20)] for i in range(50)}}
    assert plain(parse(dump({"tree": tree, "list": [1, 2.5, True, None]})).root)["tree"] == tree
    assert parse('{"a": {"b": [1, "x"]}}').root == {"a": {"b": ["1", "x"]}}


def test_large_data_is_written_in_lines_of_fair_width():
    tree = {"*": {f"group {i}": [f"leaf {i} {j}" for j in range(5)] for i in range(50)}}
    text = dump({"tree": tree})
    assert max(map(len, text.splitlines())) <= 110
    assert plain(parse(text).root) == {"tree": tree}
