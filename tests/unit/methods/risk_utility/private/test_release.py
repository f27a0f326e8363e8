"""Private risk-utility releases: what leaves, what does not, and what verify finds."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest
import sampled_people as people
from hypothesis import given, settings
from hypothesis import strategies as st
from tradeoff_cases import lagrangians, log_risks, problems, thresholds

from sfumato import publish
from sfumato.cli.promises import promises
from sfumato.errors import InputError, PaperCannotPublish, PolicyError, TableError
from sfumato.evaluation.result import Evaluation
from sfumato.methods.risk_utility import optimize
from sfumato.methods.risk_utility.optimizers import branch, exact, probing
from sfumato.methods.risk_utility.paper import lagrangian
from sfumato.methods.risk_utility.private import release as private_sampling
from sfumato.methods.risk_utility.private.release import draw_release, prepare
from sfumato.methods.risk_utility.problem import LatticeProblem
from sfumato.methods.risk_utility.release import SideTable
from sfumato.policy.document import Policy
from sfumato.policy.options.sampling_plan import delta_of, plan
from sfumato.privacy import mechanisms
from sfumato.release.certificate import Certificate
from sfumato.release.release import Release
from sfumato.table.opening import open_table
from sfumato.verify.folder import verify_folder
from sfumato.verify.risk_utility import sampling as verify_sampling

SIDE = people.people(1500, seed=2, public=True)
CHANCE, LEAST = Fraction(1, 2), 35


@pytest.fixture(scope="module")
def release():
    return publish(people.people(), people.policy(), side_table=SIDE)


def published(table, policy=None, *, seed=None, coins=None, side=SIDE):
    policy = people.policy() if policy is None else policy
    table_of_others = SideTable(open_table(side))
    chance = coins or (mechanisms.secret_coins() if seed is None else mechanisms.seeded(seed))
    source = open_table(table, may_be_empty=True, any_text=True)
    return draw_release(source, prepare(policy, table_of_others), table_of_others, coins=chance)


def boxes(rows: pa.Table):
    return Counter(zip(*(rows.column(name).to_pylist() for name in rows.column_names), strict=True))


# ---- what leaves -----------------------------------------------------------------------------------------


def test_a_release_holds_boxes_that_enough_drawn_rows_have_and_no_other_column(release):
    assert release.rows.column_names == ["age", "zip", "sex", "born"]
    found = boxes(release.rows)
    assert min(found.values()) >= LEAST
    assert len(found) > 3
    assert release.recoding is None
    assert release.certificate.figures == {}


def test_the_certificate_says_what_it_costs_and_nothing_of_the_table(release):
    privacy = release.certificate.privacy
    assert (privacy.epsilon, privacy.delta) == (1, delta_of(Fraction(1), CHANCE, LEAST))
    assert (privacy.sampling.chance, privacy.sampling.least, privacy.sampling.side_rows) == (
        CHANCE,
        LEAST,
        1500,
    )
    assert privacy.randomness == "secret (operating system)"
    assert 0 < privacy.sampling.outlook <= 1
    assert Certificate.from_json(release.certificate.to_json()) == release.certificate
    written = json.loads(release.certificate.to_json())
    assert set(written["claims"]) == {"rows", "suppressed", "groups", "utility", "missing", "sha256"}
    assert written["claims"]["rows"] == release.rows.num_rows
    assert "2000" not in json.dumps({**written, "policy": None, "claims": None})  # the table has so many rows


def test_what_the_command_says_of_it(release):
    lines = list(promises(release))
    assert lines[0].startswith(
        "(epsilon, delta)-differential privacy, in both directions: epsilon 1, delta 9.24694e-07"
    )
    assert (
        "a chance of 1/2, and boxes that fewer than 35 of the drawn rows have are not published" in lines[1]
    )
    assert "of the rows of a table like the side table have a box that is drawn often enough" in lines[2]
    assert "drawn rows in" in repr(release)


def test_the_report_says_the_promise_and_shows_boxes(release):
    report = release.report
    for sentence in ("Differentially private, epsilon 1, delta 9.25e-07.", "at least 35 times", "1,500 rows"):
        assert sentence in report
    most = boxes(release.rows).most_common(1)[0]
    assert f">{most[1]:,}<" in report


def test_seeded_releases_repeat_and_are_stamped(tmp_path):
    one, other = (publish(people.people(), people.policy(), side_table=SIDE, seed=5) for _ in range(2))
    assert one.rows == other.rows
    assert one.certificate.privacy.randomness == "seeded, not private"
    assert json.loads(one.certificate.to_json())["promise"] == "nothing is promised"
    assert "Not private: the draws can be repeated." in one.report
    one.write(tmp_path / "out")
    verdict = verify_folder(tmp_path / "out")
    assert verdict.ok
    assert "nothing is promised" in [check.claim for check in verdict.checks]


def test_secret_releases_differ():
    one, other = (published(people.people()).rows for _ in range(2))
    assert one != other


def test_without_noise_every_box_of_enough_rows_is_there():
    """All rows are drawn: what is published are the boxes that at least k0 rows have, each with all of its rows."""
    everything = published(people.people(), coins=mechanisms.noiseless())
    most = published(people.people(), seed=1)
    assert set(boxes(most.rows)) <= set(boxes(everything.rows))
    assert everything.rows.num_rows <= 2000
    assert min(boxes(everything.rows).values()) >= LEAST


def test_rows_stand_in_the_order_of_boxes_whatever_their_order_was():
    table = people.people()
    shuffled = table.take(np.random.default_rng(3).permutation(len(table)))
    one, other = (published(rows, coins=mechanisms.noiseless()).rows for rows in (table, shuffled))
    assert one == other


@pytest.mark.parametrize("output", ["bounds", "both"])
def test_bounds_are_published_as_of_other_releases(output, tmp_path):
    release = publish(people.people(), people.policy(output=output), side_table=SIDE)
    assert {"age_low", "age_high", "born_low", "born_high"} <= set(release.rows.column_names)
    release.write(tmp_path / "out")
    assert verify_folder(tmp_path / "out").ok


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_release_folder_is_verified_and_read_again(release, tmp_path, format_):
    folder = tmp_path / "out"
    replace(release, format=format_).write(folder)
    assert verify_folder(folder).ok
    assert verify_folder(folder, side_table=SIDE).ok
    again = Release.read(folder)
    assert again.certificate.privacy == release.certificate.privacy
    assert boxes(again.rows) == boxes(release.rows)


# ---- cells and tables of any kind ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 30])
def test_too_few_rows_are_published_as_nothing_and_say_so(n, tmp_path):
    release = publish(people.people().slice(0, n), people.policy(), side_table=SIDE)
    assert release.rows.num_rows == 0
    assert release.rows.column_names == ["age", "zip", "sex", "born"]
    assert "No box was drawn often enough" in release.report
    release.write(tmp_path / "out")
    assert verify_folder(tmp_path / "out").ok


def test_no_cell_is_an_error():
    table = people.people(200)
    table = table.set_column(1, "age", [["", "1e400", "-3", "x"] * 50])
    table = table.set_column(2, "zip", [["SECRET"] * 200])
    assert published(table, coins=mechanisms.noiseless()).rows.num_rows > 0


def test_what_is_published_of_strange_cells_is_missing_or_the_nearer_bound():
    table = people.people(300).set_column(1, "age", [["1000"] * 300]).set_column(2, "zip", [["SECRET"] * 300])
    policy = people.policy(**{"utility-at-least": 1})
    rows = published(table, policy, coins=mechanisms.noiseless()).rows
    assert set(rows.column("age").to_pylist()) == {"99"}
    assert set(rows.column("zip").to_pylist()) == {None}


def test_a_side_table_without_a_column_is_an_error_before_anything_is_charged(tmp_path):
    ledger = tmp_path / "ledger.json"
    with pytest.raises(TableError, match="The side table has no column 'sex'"):
        publish(people.people(), people.policy(), side_table=SIDE.drop_columns(["sex"]), ledger=ledger)
    assert not ledger.exists()


def test_a_ledger_is_charged_epsilon_and_delta(tmp_path):
    ledger = tmp_path / "ledger.json"
    publish(people.people(), people.policy(), side_table=SIDE, ledger=ledger)
    (entry,) = json.loads(ledger.read_text())["releases"]
    assert (entry["epsilon"], Fraction(entry["delta"])) == ("1", delta_of(Fraction(1), CHANCE, LEAST))


def test_weights_of_labels_that_are_not_declared_are_an_error():
    weights = {"model": "harmonic", "attributes": {"zip": {"77": 2}}}
    with pytest.raises(
        PolicyError, match="1 of the labels that are given weights are no values of column 'zip'"
    ):
        publish(people.people(), people.policy(weights=weights), side_table=SIDE)


def test_weights_that_count_for_nothing_are_an_error_before_anything_is_charged(tmp_path):
    with pytest.raises(PolicyError, match="A floor is above 0, but not"):
        publish(people.people(9), people.policy(floor=1e-13), side_table=SIDE, ledger=tmp_path / "ledger")
    assert not (tmp_path / "ledger").exists()


def test_an_evaluation_is_refused():
    evaluation = Evaluation(people.policy().as_dict(), {}, (), {}, ())
    with pytest.raises(InputError, match="holds no evaluation"):
        publish(people.people(), people.policy(), side_table=SIDE, evaluation=evaluation)


def test_numbers_that_make_the_release_useless_are_said_by_the_side_table_alone():
    policy = people.policy(**{"utility-at-least": 1})
    release = publish(people.people(), policy, side_table=SIDE)
    assert release.certificate.privacy.sampling.outlook < 0.5
    assert "these numbers make the release of little use: only " in list(promises(release))[2]
    assert "Of little use." in release.report
    nobody = publish(people.people().slice(0, 1), policy, side_table=SIDE)
    assert nobody.certificate.privacy.sampling == release.certificate.privacy.sampling


def test_the_optimizer_is_chosen_by_the_side_table_alone(monkeypatch):
    """What the table would cost to optimize tells of its rows."""
    seen = []

    def chosen(problem, objective, asked, **options):
        seen.append(problem)
        return optimize.choose_optimizer(problem, objective, asked, **options)

    monkeypatch.setattr(private_sampling, "choose_optimizer", chosen)
    published(people.people(), seed=1)
    (problem,) = seen
    assert len(problem.of_row) == len(SIDE)
    assert np.array_equal(problem.rows, problem.side)


def test_no_number_of_values_is_an_error():
    """A side table of few values fits one cube of all generalizations, and a table of many would not."""
    names = [f"c{i}" for i in range(8)]
    column = {"role": "quasi-identifier", "type": "number", "bounds": [0, 1000], "step": 1}
    policy = wide_policy(dict.fromkeys(names, column), **{"utility-at-least": 0.9})
    side = pa.table({name: [5, 6, 7] for name in names})
    rng = np.random.default_rng(1)
    for n_values in (2, 1001):
        table = pa.table({name: rng.integers(0, n_values, 300) for name in names})
        publish(table, policy, side_table=side)


def test_an_exact_optimum_that_some_table_could_not_have_is_refused_for_all():
    names = [f"c{i}" for i in range(8)]
    column = {"role": "quasi-identifier", "type": "number", "bounds": [0, 1000], "step": 1}
    policy = wide_policy(dict.fromkeys(names, column), optimizer="exact")
    side = pa.table({name: [5, 6, 7] for name in names})
    with pytest.raises(InputError, match="out of reach: the columns have too many values"):
        publish(side, policy, side_table=side.slice(0))


def wide_policy(attributes, **options):
    method = {"side-table": "side.csv", "private": people.PRIVATE, **options}
    return Policy.from_dict({"attributes": attributes, "method": {"risk-utility": method}})


def test_a_label_that_stands_at_several_nodes_does_not_part_rows_that_look_alike(tmp_path):
    """Each row keeps two columns of three; in ``a`` and ``d`` a value is called as the root is."""
    values = {"a": ["*", "A", "B"], "b": ["x", "y"], "d": ["*", "D", "E"]}
    attributes = {name: {"role": "quasi-identifier", "values": own} for name, own in values.items()}
    policy = wide_policy(attributes, **{"utility-at-least": "2/3", "weights": "model-2"})
    side = rows_of(("B", "x", "*"), ("B", "y", "*"), ("*", "x", "E"), ("*", "y", "E"))
    table = rows_of(("A", "x", "*"), ("A", "y", "*"), ("*", "x", "D"), ("*", "y", "D"))
    for format_ in ("csv", "parquet"):
        release = publish(table, policy, side_table=side, file_format=format_)
        assert set(boxes(release.rows)) == {("*", "x", "*"), ("*", "y", "*")}
        release.write(tmp_path / format_)
        assert not verify_folder(tmp_path / format_).failures


def rows_of(*lines):
    """Two hundred rows of each line."""
    names = ("a", "b", "d")
    return pa.table({name: [line[i] for line in lines for _ in range(200)] for i, name in enumerate(names)})


def test_the_table_itself_is_no_public_side_table(tmp_path):
    table = people.people(50)
    with pytest.raises(InputError, match="The side table is the table itself"):
        publish(table, people.policy(), side_table=table)
    path = tmp_path / "people.csv"
    pcsv.write_csv(table, path)
    (tmp_path / "link.csv").symlink_to(path)
    ledger = tmp_path / "ledger.json"
    for side in (path, str(path), tmp_path / "link.csv"):
        with pytest.raises(InputError, match="The side table is the table itself"):
            publish(path, people.policy(), side_table=side, ledger=ledger)
    (tmp_path / "policy.yaml").write_text(people.policy(**{"side-table": "people.csv"}).to_yaml())
    with pytest.raises(InputError, match="The side table is the table itself"):
        publish(path, tmp_path / "policy.yaml", ledger=ledger)
    for one in ("sqlite:///{}/people.db#people", "{}/people.xlsx#people"):
        address = one.format(tmp_path)
        with pytest.raises(InputError, match="The side table is the table itself"):
            publish(address, people.policy(), side_table="".join([*address]), ledger=ledger)
    assert not ledger.exists()


# ---- the box of a row depends on the row and the side table alone -----------------------------------------


def alone(problem: LatticeProblem, row: int) -> LatticeProblem:
    return replace(
        problem, rows=problem.rows[[row]], of_row=np.zeros(1, dtype=np.int64), own=problem.own[[row]]
    )


@pytest.mark.parametrize("solver", [exact, probing, branch, lagrangian], ids=lambda one: one.__name__)
@given(problem=problems(external=True, personal=False, floor=True), data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_box_of_a_row_does_not_depend_on_the_other_rows(solver, problem, data):
    serves = {branch: thresholds, lagrangian: lagrangians(problem)}
    objective = data.draw(serves.get(solver, st.one_of(thresholds, lagrangians(problem), log_risks)))
    together = solver.solve(problem, objective)
    for row in range(problem.n):
        by_itself = solver.solve(alone(problem, row), objective)
        assert by_itself.levels[0].tolist() == together.levels[row].tolist()


# ---- what verify finds -------------------------------------------------------------------------------------


def failures(release, **changed):
    """What verify says of a release whose certificate was changed, or whose rows were."""
    rows = changed.pop("rows", release.rows)
    certificate = release.certificate
    privacy = certificate.privacy
    sampling = replace(
        privacy.sampling, **{word: changed.pop(word) for word in ("chance", "least") if word in changed}
    )
    certificate = replace(
        certificate, privacy=replace(privacy, sampling=sampling, **changed), figures=certificate.figures
    )
    policy = release.policy
    names = policy.schema.names("quasi-identifier")
    found = verify_sampling.Boxes.of(rows, policy, names)
    checks = verify_sampling.check_sample(found, rows, certificate)
    return [check.claim for check in checks if not check.passed]


def test_a_release_as_it_is_has_no_fault(release):
    assert failures(release) == []


@pytest.mark.parametrize(
    ("changed", "claim"),
    [
        ({"least": 34}, "reach that delta"),
        ({"chance": Fraction(3, 5)}, "each row was drawn with a chance of 3/5"),
        ({"chance": Fraction(2, 3)}, "a row that is left out is excused"),
        ({"delta": Fraction(1, 10**7)}, "reach that delta"),
        ({"delta": Fraction(2, 10**6)}, "delta is 2e-06"),
        ({"delta": Fraction(0)}, "delta is 0"),
        ({"epsilon": Fraction(2)}, "epsilon is 2"),
        ({"spent": Fraction(1, 2)}, "the ledger holds this draw alone"),
        ({"ledger": ()}, "the ledger holds this draw alone"),
        ({"public": ("nothing",)}, "calls public what the policy declares"),
        ({"randomness": "a coin"}, "the certificate says of the draws"),
        ({"least": 10**9}, "reach that delta"),
    ],
    ids=str,
)
def test_a_changed_certificate_is_found(release, changed, claim):
    assert any(claim in failed for failed in failures(release, **changed))


def test_a_box_that_is_too_rare_is_found(release):
    rows = release.rows
    for n, is_found in ((LEAST - 1, True), (LEAST, False)):
        fewer = pa.concat_tables([rows.slice(0, n), rows.slice(n_of_first(rows))])
        assert ("every box is published at least 35 times" in failures(release, rows=fewer)) == is_found


def n_of_first(rows):
    """How many rows the first box has."""
    first = tuple(rows.column(name)[0].as_py() for name in rows.column_names)
    return boxes(rows)[first]


def test_rows_in_another_order_are_found(release):
    rows = release.rows
    for order in (np.random.default_rng(1).permutation(len(rows)), np.arange(len(rows))[::-1]):
        assert failures(release, rows=rows.take(order)) == ["the rows stand in the order of their boxes"]


def test_a_label_that_is_not_declared_is_found(release):
    column = ["7*"] * len(release.rows)
    rows = release.rows.set_column(1, "zip", [column])
    assert any("every label is a node" in failed for failed in failures(release, rows=rows))


@pytest.mark.parametrize("word", ["rows", "groups"])
def test_changed_claims_are_found(release, word):
    claims = release.certificate.claims
    changed = replace(claims, **{word: getattr(claims, word) + 1})
    other = replace(release, certificate=replace(release.certificate, claims=changed))
    assert len(failures(other)) == 1


def test_figures_beside_the_ledger_are_found(release):
    other = replace(release, certificate=replace(release.certificate, figures={"rows": 2000}))
    assert failures(other) == ["the certificate states no figures beside the ledger"]


def test_another_side_table_is_found(release, tmp_path):
    release.write(tmp_path / "out")
    verdict = verify_folder(tmp_path / "out", side_table=SIDE.slice(0, 10))
    assert [check.detail for check in verdict.failures] == ["it has 10 rows in place of 1,500"]


def test_another_number_of_rows_of_the_same_file_is_found(tmp_path):
    pcsv.write_csv(SIDE, tmp_path / "side.csv")
    release = publish(people.people(), people.policy(), side_table=tmp_path / "side.csv")
    privacy = release.certificate.privacy
    assert privacy is not None
    assert privacy.sampling is not None
    boasted = replace(privacy, sampling=replace(privacy.sampling, side_rows=15_000))
    other = replace(release, certificate=replace(release.certificate, privacy=boasted), report=None)
    other.write(tmp_path / "out")
    verdict = verify_folder(tmp_path / "out", side_table=tmp_path / "side.csv")
    assert [check.detail for check in verdict.failures] == ["it has 1,500 rows in place of 15,000"]


def test_another_file_of_as_many_rows_is_found(tmp_path):
    from sfumato.table.write import write_table

    files = [tmp_path / name for name in ("side.csv", "other.csv")]
    for file, seed in zip(files, (2, 3), strict=True):
        write_table(people.people(1500, seed=seed, public=True), file)
    publish(people.people(), people.policy(), side_table=files[0]).write(tmp_path / "out")
    assert verify_folder(tmp_path / "out", side_table=files[0]).ok
    (failure,) = verify_folder(tmp_path / "out", side_table=files[1]).failures
    assert failure.detail == "its SHA-256 is another"


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "0.5", "1", "2", "10"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-12"])
def test_delta_is_recomputed_by_code_of_its_own(epsilon, delta):
    found = plan(Fraction(epsilon), Fraction(delta))
    least = verify_sampling.recompute_delta(found.epsilon, found.s, found.k0)
    assert least <= found.delta <= least * (1 + Fraction(1, 10**5))
    assert verify_sampling.chosen_chance(found.epsilon) == found.s
    if found.k0 > 1:
        assert verify_sampling.recompute_delta(found.epsilon, found.s, found.k0 - 1) > Fraction(delta)


def test_what_would_take_too_long_to_recompute_is_not_believed():
    assert verify_sampling.recompute_delta(Fraction(1), Fraction(1, 2), 10**9) is None
    assert verify_sampling.recompute_delta(Fraction(1), Fraction(1, 2), 0) is None


# ---- the variant of the paper ------------------------------------------------------------------------------


def clean(n=4000):
    table = people.people(n, public=True)
    keep = [zip_ in ("53", "54", "61", "62") for zip_ in table["zip"].to_pylist()]
    table = table.filter(pa.array(keep)).drop_columns(["age"])
    return table.append_column("name", [["x"] * len(table)]).append_column("note", [["x"] * len(table)])


def paper_policy():
    private = {**people.PRIVATE, "variant": "paper"}
    given = {"objective": "lagrangian", "lambda": 2, "floor": 0.1, "weights": "harmonic", "private": private}
    attributes = {name: own for name, own in people.ATTRIBUTES.items() if name != "age"}
    return Policy.from_dict({"attributes": attributes, "method": {"risk-utility": given}})


def test_the_variant_of_the_paper_claims_no_privacy(tmp_path):
    release = publish(clean(), paper_policy(), seed=1)
    figures = release.certificate.figures["tradeoff"]
    assert release.certificate.privacy is None
    assert figures["published"]["privacy"].startswith("none is claimed")
    assert figures["published"]["t"] > 1
    assert 0 < release.rows.num_rows < 4000
    assert "No privacy is claimed: this is the paper" in release.report
    assert f"covers at least {figures['published']['t']:,} rows" in release.report
    assert next(promises(release)).startswith(
        "No privacy is claimed: this is Algorithm 3 of the paper, for study"
    )
    release.write(tmp_path / "out")
    assert verify_folder(tmp_path / "out").ok
    assert verify_folder(tmp_path / "out", side_table=clean()).ok


def test_where_its_parameters_are_absurd_the_variant_of_the_paper_says_so():
    with pytest.raises(
        PaperCannotPublish, match=r"cover more than [\d,]+ rows \(equation 10\), and nothing of this table of"
    ) as raised:
        publish(clean(100), paper_policy())
    assert raised.value.exit_code == 1
