"""What verify finds in a differentially private release, whole and after tampering."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from private_people import people, the_policy
from tampering import edit_certificate, rehash

import sfumato as sf
from sfumato.errors import InputError
from sfumato.release.certificate import Certificate
from sfumato.verify.folder import verify_folder
from sfumato.verify.table import verify_table

PEOPLE = people()


@pytest.fixture(scope="module", params=["paper", "tuned"])
def made(request, tmp_path_factory):
    """A release in a folder that tests copy."""
    folder = tmp_path_factory.mktemp("made") / "release"
    policy = the_policy(variant=request.param, specializations=5)
    sf.publish(PEOPLE, policy, seed=4).write(folder)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    copy = tmp_path / "release"
    copy.mkdir()
    for file in made.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    return copy


def failed(folder) -> list[str]:
    return [f"{check.claim}: {check.detail}" for check in verify_folder(folder).failures]


def change_rows(folder, change) -> None:
    path = folder / "release.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    rehash(folder)


def change_recoding(folder, change) -> None:
    path = folder / "recoding.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    rehash(folder)


def with_count(table: pa.Table, at: int, value: object, kind: pa.DataType | None = None) -> pa.Table:
    counts = table.column("count").to_pylist()
    counts[at] = value
    return table.set_column(table.column_names.index("count"), "count", pa.array(counts, kind))


def test_a_release_as_it_was_made_passes_and_says_what_cannot_be_checked(folder):
    verdict = verify_folder(folder)
    assert verdict.ok
    claims = [check.claim for check in verdict.checks]
    for words in (
        "the cuts divide the declared domains",
        "every cell of the grid is there with every class",
        "every count is a whole number of at least 0",
        "every share and scale is as the formula of the method says",
        "the ledger has as many draws as the cuts took",
        "the certificate calls public what the policy declares",
        "the certificate states no figures beside the ledger",
        "epsilon is 1",
        "0 of epsilon is unspent" if "tuned" in str(verdict) else "epsilon is 1",
        "nothing is promised",  # it was seeded
    ):
        assert words in claims


@pytest.mark.parametrize("output", [{"values": "bounds"}, {"values": "both"}, {"rows": "expanded"},
                                    {"values": "bounds", "rows": "expanded"}])  # fmt: skip
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_every_form_of_output_passes(output, file_format, tmp_path):
    release = sf.publish(PEOPLE, the_policy(output, specializations=6), seed=1, file_format=file_format)
    release.write(tmp_path / "out")
    assert verify_folder(tmp_path / "out").ok


@pytest.mark.parametrize(
    ("tamper", "words"),
    {
        "a negative count": (lambda t: with_count(t, 0, -1), "every count is a whole number of at least 0: 1 are not"),
        "a fraction": (lambda t: with_count(t, 1, 1.5, pa.float64()), "every count is a whole number of at least 0"),
        "no count": (lambda t: with_count(t, 2, None), "every count is a whole number of at least 0: 1 are not"),
        "another count": (lambda t: with_count(t, 3, 10**6), "the counts sum to"),
        "a cell removed": (lambda t: t.slice(2), "every cell of the grid is there with every class: there are"),
        "a class removed": (
            lambda t: t.filter(pa.compute.not_equal(t["income"].cast(pa.string()), "low")),
            "every cell of the grid is there with every class: there are",
        ),
        "a cell twice": (
            lambda t: pa.concat_tables([t.slice(0, 2), t.slice(0, 2), t.slice(4)]),
            "every cell of the grid is there with every class: ",
        ),
        "a further cell": (
            lambda t: pa.concat_tables([t, t.slice(0, 2)]),
            "every cell of the grid is there with every class: there are",
        ),
        "another order": (lambda t: t.take(np.roll(np.arange(len(t)), 1)), "every cell of the grid"),
        "a further column": (
            lambda t: t.append_column("row", pa.array(range(len(t)))),
            "the columns are those that the policy publishes: 1 column too many",
        ),
        "a column less": (lambda t: t.drop_columns(["sex"]), "the columns are those that the policy publishes"),
        "columns in another order": (
            lambda t: t.select(t.column_names[::-1]),
            "the columns are those that the policy publishes: they stand in another order",
        ),
    }.values(),
)  # fmt: skip
def test_tampered_rows_are_found(folder, tamper, words):
    change_rows(folder, tamper)
    assert any(words in sentence for sentence in failed(folder)), failed(folder)


def test_tampered_expanded_rows_are_found(tmp_path):
    sf.publish(PEOPLE, the_policy({"rows": "expanded"}), seed=1).write(tmp_path / "out")
    claim = "every row stands for a line of the grid"
    change_rows(tmp_path / "out", lambda t: t.take(np.arange(len(t))[::-1]))
    assert f"{claim}: they are not in its order" in failed(tmp_path / "out")
    change_rows(tmp_path / "out", lambda t: t.set_column(1, "income", pa.array(["middling"] * len(t))))
    assert any(sentence.startswith(f"{claim}: ") for sentence in failed(tmp_path / "out"))


def ordered(document, name="age"):
    return next(i for i, entry in enumerate(document["attributes"]) if entry["name"] == name)


def cut_at(points):
    def change(document):
        document["thresholds"][ordered(document)] = points

    return change


def tree(labels, parent):
    def change(document):
        document["attributes"][ordered(document, "job")] |= {"labels": labels, "parent": parent}

    return change


def entry(name, **changes):
    def change(document):
        document["attributes"][ordered(document, name)] |= changes

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (cut_at([30.5]), "a threshold is off the declared grid (column 'age')"),
        (cut_at([30, 30]), "thresholds do not ascend"),
        (cut_at([40, 30]), "thresholds do not ascend"),
        (cut_at([65]), "a threshold leaves nothing on one side"),
        (cut_at([16]), "a threshold leaves nothing on one side"),
        (cut_at([30, None]), "thresholds do not ascend"),
        (cut_at(["30"]), "the cut of column 'age' cannot be read"),
        (cut_at(None), "the cut of column 'age' cannot be read"),
        (entry("age", low=17), "bounds or step are not those that were declared"),
        (entry("age", grid=0.5), "bounds or step are not those that were declared"),
        (entry("age", missing=False), "bounds or step are not those that were declared"),
        (entry("age", declared=False), "bounds or step are not those that were declared"),
        (
            tree(["Any", "Professional"], [-1, 0]),
            "a node is divided otherwise than in the declared hierarchy",
        ),
        (
            tree(["Any", "Professional", "Professional", "Artist or missing"], [-1, 0, 0, 0]),
            "a node is divided otherwise than in the declared hierarchy",
        ),
        (tree(["Any", "Professional", "Artist"], [-1, 0, 0]), "a node is divided otherwise"),
        (tree(["Any", "Professional", "Pilot or missing"], [-1, 0, 0]), "a node is divided otherwise"),
        (tree(["All"], [-1]), "its root is not that of the declared hierarchy"),
        (tree(["Any", "Professional"], [-1, 5]), "its nodes are no tree"),
        (tree(["Any"], [0]), "its nodes are no tree"),
        (
            tree(["Any", "Professional", "Artist or missing", "Engineer", "Lawyer"], [-1, 0, 0, 1, 1]),
            "its nodes are not in order",
        ),
        (lambda document: document["attributes"].pop(), "it lacks the attributes, or their thresholds"),
        (lambda document: document["attributes"].reverse(), "its attributes are not the quasi-identifiers"),
        (lambda document: document.update(kind="tree"), "it is no recoding by cuts"),
        (
            lambda document: document.update(raw="Ann,23,flu"),
            "it has fields that no recoding has, or lacks some",
        ),
        (lambda document: document.update(output="both"), "its output is not that of the policy"),
        (lambda document: document.update(groups=1), "the recoding says another number of cells"),
    ],
)
def test_cuts_that_the_declarations_do_not_allow_are_found(folder, change, words):
    change_recoding(folder, change)
    found = [
        sentence for sentence in failed(folder) if sentence.startswith("the cuts divide the declared domains")
    ]
    assert len(found) == 1
    assert words in found[0]


def test_a_legal_cut_that_is_not_the_one_of_the_rows_is_found(folder):
    change_recoding(folder, cut_at([20, 30, 40, 50, 60, 62]))
    assert any("every cell of the grid" in sentence for sentence in failed(folder))


def share(position, fraction):
    def change(document):
        document["privacy"]["ledger"][position]["share"] = fraction

    return change


def key(**changes):
    return lambda document: document["privacy"].update(changes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (share(0, "1/1000"), "draws sum to"),
        (share(0, "1/1000"), "every share and scale is as the formula of the method says"),
        (share(-1, "1/3"), "the share or the scale of the counts is another"),
        (key(unspent="1/7"), "1/7 of epsilon is unspent"),
        (key(spent="2"), "draws sum to 2: they sum to"),
        (key(epsilon="2"), "epsilon is 2: the policy says 1"),
        (key(composition="parallel"), "the certificate composes shares as the method may"),
        (key(randomness="secret (OpenDP 0.16.0)"), None),
        (key(public=[]), "the certificate calls public what the policy declares"),
        (lambda d: d["privacy"]["ledger"].pop(), "the counts are not its last draw"),
        (
            lambda d: d["privacy"]["ledger"].append(d["privacy"]["ledger"][-1]),
            "the counts are not its last draw",
        ),
        (
            lambda d: d["privacy"]["ledger"][0].update(mechanism="guess"),
            "every share and scale is as the formula",
        ),
        (lambda d: d["privacy"]["ledger"][0].update(result=600), "every share and scale is as the formula"),
        (lambda d: d["privacy"]["ledger"][0].update(scale="1/2"), "every share and scale is as the formula"),
        (lambda d: d["privacy"]["ledger"][0].update(of="sex"), "every share and scale is as the formula"),
        (lambda d: d["figures"].update(rows=600), "the certificate states no figures beside the ledger"),
        (lambda d: d["claims"].update(cells=1), "the grid has 1 cell"),
        (lambda d: d["claims"].update(rows=1), "the release holds 1 row"),
        (lambda d: d["claims"].update(counted=1), "the counts sum to 1: they sum to"),
        (lambda d: d["policy"]["method"]["diffgen"].update(epsilon=2), "speak of one policy: they differ"),
        (lambda d: d["policy"]["attributes"]["income"].update(values=["low"]), "readable and complete"),
        (
            lambda d: d["policy"]["attributes"]["age"].update(bounds=[18, 66]),
            "speak of one policy: they differ",
        ),
    ],
)
def test_a_tampered_certificate_is_found(folder, change, words):
    edit_certificate(folder, change)
    found = failed(folder)
    if words is None:  # seeded, and called secret: then nothing may stand there of no promise
        assert any("readable and complete" in sentence for sentence in found)
    else:
        assert any(words in sentence for sentence in found), found


@pytest.mark.parametrize("what", ["specialization", "split point"])
def test_a_ledger_with_one_draw_too_few_for_the_cuts_is_found(folder, what):
    """Also if somebody writes down that its share was never spent."""

    def change(document):
        privacy = document["privacy"]
        at = max((i for i, draw in enumerate(privacy["ledger"]) if draw["draw"] == what), default=None)
        if at is None:
            pytest.skip("the tuned variant draws no split points of their own")
        gone = Fraction(privacy["ledger"].pop(at)["share"])
        privacy["spent"] = str(Fraction(privacy["spent"]) - gone)
        privacy["unspent"] = str(Fraction(privacy["unspent"]) + gone)

    edit_certificate(folder, change)
    found = failed(folder)
    assert any("the ledger has as many draws as the cuts took" in sentence for sentence in found), found


def test_epsilon_raised_in_the_policy_only_is_found(folder):
    text = (folder / "policy.yaml").read_text()
    (folder / "policy.yaml").write_text(text.replace("epsilon: 1", "epsilon: 3"))
    rehash(folder)
    assert "the certificate and policy.yaml speak of one policy: they differ" in failed(folder)


def test_epsilon_raised_in_certificate_and_policy_is_found_by_the_ledger(folder):
    text = (folder / "policy.yaml").read_text()
    (folder / "policy.yaml").write_text(text.replace("epsilon: 1", "epsilon: 3"))

    def change(document):
        for place in (document["policy"]["method"], document["method"]):
            place["diffgen"]["epsilon"] = 3
        document["privacy"]["epsilon"] = "3"

    edit_certificate(folder, change)
    rehash(folder)
    found = failed(folder)
    assert any("every share and scale is as the formula" in sentence for sentence in found), found


def test_a_certificate_without_its_ledger_is_found(folder):
    def change(document):
        del document["privacy"]
        claims = document["claims"]
        document["claims"] = {"rows": claims["rows"], "suppressed": 0, "groups": claims["cells"], "requirements": [],
                              "sha256": claims["sha256"]}  # fmt: skip
        document["promise"] = "nothing is promised"

    edit_certificate(folder, change)
    assert any("the certificate claims what the policy requires" in sentence for sentence in failed(folder))


@pytest.mark.parametrize("name", ["recoding.json", "release.parquet"])
def test_a_damaged_file_is_a_failed_claim(folder, name):
    (folder / name).write_bytes(b"{")
    rehash(folder)
    assert failed(folder)
    (folder / name).unlink()
    assert failed(folder)


@pytest.mark.parametrize(
    ("cuts", "other"),
    [({"age": [30, 50]}, {"age": [30, 51]}), ({"job": ["Professional", "Artist"]}, {"job": "leaves"}),
     ({"age": "leaves"}, {"age": [30]}), ({"sex": "leaves", "rate": [0.5]}, {"rate": [0.5]}),
     ({"born": ["1980-01-01"]}, {"born": ["1980-01-02"]})],
)  # fmt: skip
def test_cuts_that_the_owner_gave_must_be_those(cuts, other, tmp_path):
    sf.publish(PEOPLE, the_policy(cuts=cuts), seed=1).write(tmp_path / "out")
    assert verify_folder(tmp_path / "out").ok
    lines = [check.claim for check in verify_folder(tmp_path / "out").checks]
    assert "the shares of 1 draws sum to 1" in lines
    wrong = the_policy(cuts=other)
    (tmp_path / "out" / "policy.yaml").write_text(wrong.to_yaml())
    document = json.loads((tmp_path / "out" / "certificate.json").read_text())
    document |= {"policy": wrong.as_dict(), "method": wrong.method.as_policy()}
    (tmp_path / "out" / "certificate.json").write_text(json.dumps(document))
    rehash(tmp_path / "out")
    assert any("it is not the cut that the owner gave" in sentence for sentence in failed(tmp_path / "out"))


def test_a_label_of_the_owner_may_end_as_those_with_missing_do(tmp_path):
    policy = sf.Policy.parse("""
attributes:
  job: {role: quasi-identifier, hierarchy: {tree: {Any: {A or missing: [p, q], B: [r]}}}}
  c: {role: other, values: [x, y]}
workload: [classify: c]
method: {diffgen: {epsilon: 1, cuts: {job: [A or missing, B]}}}
""")
    sf.publish(pa.table({"job": ["p", "r"], "c": ["x", "y"]}), policy, seed=1).write(tmp_path / "out")
    assert verify_folder(tmp_path / "out").ok


def test_no_table_shows_by_itself_that_it_is_differentially_private():
    with pytest.raises(InputError, match="No table shows by itself that it is differentially private"):
        verify_table(PEOPLE, the_policy())


def test_more_cells_than_the_policy_allows_are_found(folder):
    text = (folder / "policy.yaml").read_text()
    (folder / "policy.yaml").write_text(text.replace("max-cells: 1000000", "max-cells: 2"))

    def change(document):
        for place in (document["policy"]["method"], document["method"]):
            place["diffgen"]["max-cells"] = 2

    edit_certificate(folder, change)
    rehash(folder)
    assert any(sentence.startswith("the grid has at most 2 cells: it has") for sentence in failed(folder))


def test_a_certificate_says_the_same_when_it_is_read_again(folder):
    certificate = Certificate.from_json((folder / "certificate.json").read_bytes())
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.promises_nothing
    assert certificate.privacy is not None
    secret = replace(certificate, privacy=replace(certificate.privacy, randomness="secret (OpenDP 0.16.0)"))
    assert not secret.promises_nothing
    assert '"promise"' not in secret.to_json()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda ledger: ledger[0].update(result=10**9),
            "the share, scale or mechanism of a choice is another",
        ),
        (lambda ledger: ledger[0].pop("result"), "the number of rows is not drawn first"),
        (lambda ledger: ledger.pop(0), "the share or the scale of the counts is another"),
        (lambda ledger: ledger[0].update(scale="1"), "the number of rows is drawn in another way"),
        (lambda ledger: ledger.insert(1, ledger[1]), "specializations for"),
    ],
)
def test_a_number_of_rows_that_does_not_say_what_was_drawn_is_found(change, words, tmp_path):
    sf.publish(PEOPLE, the_policy(), seed=4).write(tmp_path / "out")
    assert verify_folder(tmp_path / "out").ok
    edit_certificate(tmp_path / "out", lambda document: change(document["privacy"]["ledger"]))
    found = failed(tmp_path / "out")
    assert any(words in sentence for sentence in found), found


def test_the_noisy_number_of_rows_says_how_often_a_cut_may_be_pushed_down(tmp_path):
    """Every other check holds of a release whose ledger says that fewer were allowed."""
    release = sf.publish(PEOPLE, the_policy(), seed=4)
    release.write(tmp_path / "release")
    assert failed(tmp_path / "release") == []
    draws = release.certificate.privacy.ledger
    n_taken = sum(draw["draw"] == "specialization" for draw in draws)
    assert draws[0]["draw"] == "rows"
    assert n_taken > 3  # never fewer

    def fewer(document):
        """A number of rows that allows one specialization less, and shares by the formula for so many."""
        privacy = document["privacy"]
        epsilon = Fraction(privacy["epsilon"])
        h = n_taken - 1
        share = Fraction(7, 10) * Fraction(99, 100) * epsilon / h
        privacy["ledger"][0]["result"] = int(10 ** ((h + 8) / 4) / epsilon)
        for draw in privacy["ledger"][1:-1]:
            draw.update(share=str(share), scale=str(2**20 / share))
        rest = epsilon - epsilon / 100 - n_taken * share
        privacy["ledger"][-1].update(share=str(rest), scale=str(1 / rest))

    edit_certificate(tmp_path / "release", fewer)
    claim, fault = (
        "every share and scale is as the formula of the method says",
        f"there are more than {n_taken - 1}",
    )
    assert failed(tmp_path / "release") == [f"{claim}: {fault} specializations"]
