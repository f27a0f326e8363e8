"""The command driven as a user would: every command and option of the first version."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from commandline import POLICY, command, environment, names, on_terminal, people

from sfumato import cli
from sfumato.engines.start import scan_table
from sfumato.examples.agrawal import AGRAWAL_SCHEMA, write_agrawal
from sfumato.kernels.watch import tell
from sfumato.policy.document import Policy
from sfumato.release.folder import hashes_of
from sfumato.table.opening import open_table
from sfumato.table.write import write_table

COMMANDS = (
    "demo",
    "profile",
    "publish",
    "query",
    "report",
    "select",
    "verify",
    "apply",
    "evaluate",
    "compare",
    "generate",
    "risk",
)
LATER_COMMANDS = ("serve",)
PIECES = ["certificate.json", "policy.yaml", "recoding.json", "release.csv", "report.html"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def read(path: Path) -> pa.Table:
    """A table as text cells."""
    source = open_table(path)
    return pa.table({name: source.column(name).cast(pa.string()) for name in source.names})


# ---- a process of its own -------------------------------------------------------------------------------


def test_results_go_to_stdout_and_nothing_to_stderr_when_piped(sfumato_process, here, table, policy):
    done = sfumato_process("publish", table, "--policy", policy, "--out", "out")
    assert (done.code, done.err) == (0, "")
    assert re.match(
        r"out: 60 rows in \d+ groups, verified\.\n  5-anonymity: holds; the smallest group is \d+\n"
        r"  risk of re-identification: 1 in \d+ at most, 1 in [\d.]+ on average; above 1/5: 0%, above 1/11: [\d.]+%, "
        r"above 1/20: [\d.]+% of the rows\n"
        r"  cells of the quasi-identifiers: [\d.]+% exact, [\d.]+% narrowed, [\d.]+% \*\n"
        r"  \d+ rows \([\d.]+%\) are alone by the 2 columns that are published as they are: "
        r"no other row has the same there\n"
        r"  no group shares one value of 'disease', though no diversity is required there\n$",
        done.out,
    )
    assert names(here / "out") == PIECES
    done = sfumato_process("verify", "out")
    assert (done.code, done.err) == (0, "")
    assert {line[:6] for line in done.out.splitlines()} == {"ok    ", "note  "}


def test_verify_loads_neither_numba_nor_what_evaluates(sfumato_process, here, table, policy):
    assert sfumato_process("publish", table, "--policy", policy, "--out", "out").code == 0
    program = "import sys; from sfumato import cli; cli.run(['verify', 'out']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert "ok    the report is what the release is rendered as\n" in done.stdout
    loaded = done.stdout.splitlines()[-1].split()
    assert "sfumato.report" in loaded
    assert {"numba", "scipy", "sklearn", "sfumato.evaluation.protocol", "sfumato.publishing"}.isdisjoint(
        loaded
    )


def test_mistakes_go_to_stderr_in_one_line_with_exit_code_2(sfumato_process, here, table, policy):
    done = sfumato_process("publish", "nowhere.csv", "--policy", policy, "--out", "out")
    assert (done.code, done.out) == (2, "")
    assert "nowhere.csv" in done.sentence
    assert names(here) == ["people.csv", "policy.yaml"]


def test_a_requirement_that_cannot_be_met_is_exit_code_1(sfumato_process, here, table, policy):
    policy.write_text(POLICY.replace("k-anonymity: 5", "k-anonymity: 61"))
    done = sfumato_process("publish", table, "--policy", policy, "--out", "out")
    assert (done.code, done.out) == (1, "")
    assert "has only 60 rows" in done.sentence


def test_python_dash_m_is_the_command(here):
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", "--version"], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"sfumato, version \d+\.\d+\.\d+\n", done.stdout)


def test_a_thread_that_a_library_left_behind_does_not_hold_up_the_end(here):
    """Threads of Arrow that outlive a read have aborted and hung processes while Python shut down."""
    program = (
        "import sys, threading, time; from sfumato import cli; sys.argv[1:] = ['--version'];"
        "threading.Thread(target=time.sleep, args=(100,)).start(); cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=50)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"sfumato, version")


def test_a_reader_that_leaves_early_causes_no_complaint(here, table):
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb") as closed:
        done = subprocess.run(
            command("profile", table), stdout=closed, stderr=subprocess.PIPE, check=False, env=environment()
        )
    assert (done.returncode, done.stderr) == (cli.CLOSED_PIPE, b"")


def test_the_first_run_says_that_it_compiles_how_far_it_is_and_how_often_one_waits(
    here, table, policy, monkeypatch, capsys
):
    def compile_first(*arguments, **options):
        for done in (0, 0, *range(9)):  # the functions that a function calls begin before any is done
            tell(done, 8)
        return scan_table(*arguments, **options)

    monkeypatch.setattr("sfumato.methods.mondrian.method.scan_table", compile_first)
    arguments = ["publish", str(table), "--policy", str(policy), "--out"]
    assert cli.run([*arguments, "out"]) == 0
    first, *quarters = capsys.readouterr().err.splitlines()
    assert first.startswith("Compiling the inner loops: once for this version and machine")
    assert [line.split()[1] for line in quarters] == ["25%", "50%", "75%", "100%"]
    assert cli.run([*arguments, "quiet", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sfumato.kernels.compile.cache_folder", lambda: None)
    assert cli.run([*arguments, "again"]) == 0
    assert "in every run" in capsys.readouterr().err
    assert cli.run([*arguments[:1], "nowhere.csv", *arguments[2:], "nothing"]) == 2
    assert "Compiling" not in capsys.readouterr().err


def test_a_draft_is_utf8_whatever_the_terminal_is(here):
    (here / "t.csv").write_text("疾病,sex\n" + "31,m\n42,f\n" * 5, encoding="utf-8")
    latin = {**environment(), "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command("profile", "t.csv"), capture_output=True, check=False, env=latin)
    assert (done.returncode, done.stderr) == (0, b"")
    assert Policy.parse(done.stdout).schema.names() == ("疾病", "sex")


def test_a_terminal_shows_a_progress_bar_and_leaves_only_the_result(here, table, policy):
    code, shown = on_terminal(["publish", table, "--policy", policy, "--out", "out"])
    assert code == 0
    assert "━".encode() in shown
    assert b"\x1b[?25h" in shown  # the cursor is back
    code, shown = on_terminal(["publish", table, "--policy", policy, "--out", "out2", "--quiet"])
    assert (code, shown) == (0, b"")


# ---- Ctrl-C ---------------------------------------------------------------------------------------------

# On a line of its own, after the ^C that a terminal shows.
INTERRUPTED = "\nsfumato: Interrupted; nothing was written.\n"
STAGES = (
    "checking",
    "encoding",
    "splitting",
    "publishing",
    "verifying",
    "reporting",
    "writing and verifying",
)


def test_ctrl_c_while_waiting_for_standard_input_writes_nothing(here, policy):
    process = subprocess.Popen(
        command("publish", "-", "--policy", policy, "--out", "out"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    process.stdin.write(b"age,sex\n")
    process.stdin.flush()
    wait_until(lambda: reads_standard_input(process.pid))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", INTERRUPTED.encode())
    assert names(here) == ["policy.yaml"]


def reads_standard_input(pid: int) -> bool:
    """Whether a process sleeps in a read from a pipe (on Linux; elsewhere a guess)."""
    state = Path(f"/proc/{pid}/wchan")
    if not state.exists():
        time.sleep(3)
        return True
    return "pipe" in state.read_text() and pa.__name__ in Path(f"/proc/{pid}/maps").read_text()


def wait_until(happened, *, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.001)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_the_folder_is_being_written_leaves_nothing(here, sent):
    """The signal comes when the temporary folder appears; where it comes too late, the release is whole."""
    write_agrawal(200_000, here / "t.parquet", seed=1)
    known = {"salary", "age", "elevel", "car"}
    attributes = {
        name: {"role": "quasi-identifier", "type": "number"}
        if name in known
        else {"role": "other", "passes": "unique"}
        for name in AGRAWAL_SCHEMA.names
    }
    (here / "policy.yaml").write_text(
        json.dumps({"attributes": attributes, "require": [{"k-anonymity": 10}]})
    )
    for _ in range(15):
        process = subprocess.Popen(
            command("publish", "t.parquet", "--policy", "policy.yaml", "--out", "out"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment() | {"PYTHONWARNINGS": "ignore::ResourceWarning"},  # Python's own open() may be cut short
            preexec_fn=lambda: signal.signal(sent, signal.SIG_DFL),  # noqa: PLW1509 - nohup ignores it for its children
        )  # fmt: skip
        wait_until(lambda process=process: process.poll() is not None or len(names(here)) > 2)
        process.send_signal(sent)
        out, err = process.communicate(timeout=60)
        if process.returncode == 130:
            break
        assert (process.returncode, names(here)) == (0, ["out", "policy.yaml", "t.parquet"])
        shutil.rmtree(here / "out")
    assert (process.returncode, out, err) == (130, b"", INTERRUPTED.encode())
    assert names(here) == ["policy.yaml", "t.parquet"]


@pytest.fixture
def interrupt_at(monkeypatch):
    """Have the process receive SIGINT when it reports a stage; returns a list that fills with the stages seen."""

    def prepare(stage: str) -> list[str]:
        seen: list[str] = []

        def progress(now: str, _done: int, _total: int) -> None:
            seen.append(now)
            if now == stage:
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr("sfumato.cli.publish.progress_bar", lambda **_: nullcontext(progress))
        return seen

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield prepare
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("stage", STAGES)
def test_ctrl_c_at_any_stage_leaves_nothing(sfumato, here, table, policy, interrupt_at, stage):
    seen = interrupt_at(stage)
    done = sfumato("publish", table, "--policy", policy, "--out", "out")
    assert (done.code, done.out, done.err) == (130, "", INTERRUPTED)
    assert names(here) == ["people.csv", "policy.yaml"]
    assert STAGES[: STAGES.index(stage) + 1] == tuple(dict.fromkeys(seen))


@pytest.mark.parametrize("stage", STAGES[-2:])
def test_ctrl_c_leaves_an_earlier_release_as_it_was(sfumato, here, release, interrupt_at, stage):
    before = contents(release)
    interrupt_at(stage)
    done = sfumato("publish", "people.csv", "--policy", "policy.yaml", "--out", release, "--overwrite")
    assert done.code == 130
    assert contents(release) == before
    assert names(here) == ["people.csv", "policy.yaml", "release"]


def test_ctrl_c_during_verification_leaves_nothing(sfumato, here, table, policy, monkeypatch):
    def interrupted(_folder, **_known):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["sfumato.publishing"], "verify_folder", interrupted)
    done = sfumato("publish", table, "--policy", policy, "--out", "out")
    assert done.code == 130
    assert names(here) == ["people.csv", "policy.yaml"]


# ---- help and usage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), *((name,) for name in COMMANDS), ("generate", "agrawal")])
def test_every_command_explains_itself(sfumato, arguments):
    for option in ("--help", "-h"):
        done = sfumato(*arguments, option)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(" ".join(("Usage: sfumato", *arguments)))


def test_the_help_lists_the_commands_of_this_version(sfumato):
    done = sfumato("--help")
    listed = done.out.partition("Commands:\n")[2].splitlines()
    assert sorted(line.split()[0] for line in listed) == sorted(COMMANDS)


@pytest.mark.parametrize("name", LATER_COMMANDS)
def test_a_later_command_is_not_yet_whatever_its_arguments(sfumato, name):
    for arguments in ([], ["t.csv", "--policy", "policy.yaml", "--vary", "k=2,5"], ["--port", "1"]):
        done = sfumato(name, *arguments)
        assert done.code == 2
        assert f"sfumato {name} (" in done.sentence
        assert "not yet" in done.sentence


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["publis"], "No such command"),
        (["publish"], "Missing argument 'TABLE'"),
        (["publish", "t.csv"], "Missing option '--policy'"),
        (["publish", "t.csv", "--policy", "p"], "Missing option '--out'"),
        (["publish", "t.csv", "--policy", "p", "--out", "o", "--sed", "1"], "--seed"),
        (["publish", "t.csv", "--policy", "p", "--out", "o", "--engine", "cloud"], "'auto', 'memory'"),
        (["publish", "t.csv", "--policy", "p", "--out", "o", "--format", "xlsx"], "'csv', 'parquet'"),
        (["publish", "t.csv", "--policy", "p", "--out", "o", "--seed", "-1"], "--seed"),
        (["publish", "t.csv", "--policy", "p", "--out", "o", "--seed", "one"], "--seed"),
        (["publish", "t.csv", "--policy", "p", "--out", "o", "--threads", "0"], "--threads"),
        (["publish", "t.csv", "--policy", "p", "--out", "o", "--memory", "lots"], "--memory"),
        (["publish", "t.csv", "--policy", "p", "--out", "o", "--memory", "63MB"], "at least 64MB"),
        (["publish", "t.csv", "u.csv", "--policy", "p", "--out", "o"], "unexpected extra argument"),
        (["apply", "release", "t.csv"], "Missing option '--out'"),
        (["verify"], "Missing argument"),
        (["generate", "agraval"], "No such command"),
        (["generate", "agrawal", "--out", "o.csv"], "Missing option '--rows'"),
        (["generate", "agrawal", "--out", "o.csv", "--rows", "ten"], "--rows"),
        (["generate", "agrawal", "--out", "o.csv", "--rows", "0"], "--rows"),
        (["generate", "agrawal", "--out", "o.csv", "--rows", "1.5"], "--rows"),
        (["generate", "agrawal", "--out", "o.csv", "--rows", "inf"], "--rows"),
        (["generate", "agrawal", "--out", "o.csv", "--rows", "nan"], "--rows"),
        (["generate", "agrawal", "--out", "o.xlsx", "--rows", "10"], ".parquet"),
        (["generate", "agrawal", "--out", "no/o.csv", "--rows", "10"], "no folder"),
        (["generate", "agrawal", "--out", "o.csv", "--rows", "10", "--function", "Z9"], "'Z9'"),
        (["generate", "agrawal", "--out", "o.csv", "--rows", "10", "--salary", "unifrom"], "Did you mean"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_sentence(sfumato, here, arguments, words):
    done = sfumato(*arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.sentence
    assert names(here) == []


@pytest.mark.parametrize("arguments", [(), ("generate",)])
def test_a_missing_command_shows_the_help_and_is_wrong_usage(sfumato, arguments):
    done = sfumato(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Commands:\n" in done.err


# ---- publish --------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bytes_of_every_file(sfumato, here, table, policy):
    for out in ("one", "two"):
        assert sfumato("publish", table, "--policy", policy, "--out", out, "--seed", 42).code == 0
    assert contents(here / "one") == contents(here / "two")
    assert sorted(contents(here / "one")) == PIECES


@pytest.mark.parametrize("how", ["--seed", "--threads"])
def test_another_seed_changes_the_order_of_rows_and_another_number_of_threads_nothing(
    sfumato, here, table, policy, how
):
    for value in (1, 2):
        done = sfumato("publish", table, "--policy", policy, "--out", f"out{value}", "--seed", 1, how, value)
        assert done.code == 0
    one, two = (read(here / f"out{value}" / "release.csv").to_pylist() for value in (1, 2))
    assert (one == two) == (how == "--threads")
    assert Counter(map(str, one)) == Counter(map(str, two))


def test_without_a_seed_the_order_of_rows_is_secret_and_the_groups_are_the_same(sfumato, here, table, policy):
    for out in ("one", "two"):
        assert sfumato("publish", table, "--policy", policy, "--out", out).code == 0
    one, two = (contents(here / out) for out in ("one", "two"))
    assert one["release.csv"] != two["release.csv"]
    assert sorted(one["release.csv"].splitlines()) == sorted(two["release.csv"].splitlines())
    for name in ("recoding.json", "policy.yaml"):
        assert one[name] == two[name]


def test_the_seed_and_the_machine_are_written_nowhere(sfumato, here, table, policy):
    seed = 918273645
    assert sfumato("publish", table, "--policy", policy, "--out", "out", "--seed", seed).code == 0
    for name, content in contents(here / "out").items():
        for told in (str(seed), str(here), os.uname().nodename, "seconds"):
            assert told.encode() not in content, (name, told)


INPUTS = {
    "people.csv": "csv",
    "people.csv.gz": "csv",
    "people.tsv": "csv",
    "people.txt": "csv",  # told by content, not by name
    "people.parquet": "parquet",
    "people.arrow": "parquet",
    "people.arrows": "parquet",
    "people.feather": "parquet",
    "parts": "parquet",
    "parts/*.parquet": "parquet",
}


def write_input(name: str) -> None:
    """The small table in the format that the name asks for."""
    rows = people()
    if name.endswith((".csv", ".csv.gz", ".parquet")) and "*" not in name:
        write_table(rows, name)
    elif name.endswith((".tsv", ".txt")):
        delimiter = {"tsv": "\t", "txt": ";"}[name[-3:]]
        pacsv.write_csv(rows, name, pacsv.WriteOptions(delimiter=delimiter))
    elif name.startswith("parts"):
        Path("parts").mkdir()
        for i, start in enumerate((0, 25, 50)):
            write_table(rows.slice(start, 25), f"parts/part-{i}.parquet")
    elif name.endswith(".feather"):
        pa.feather.write_feather(rows, name)
    else:
        make = pa.ipc.new_file if name.endswith(".arrow") else pa.ipc.new_stream
        with pa.OSFile(name, "wb") as file, make(file, rows.schema) as writer:
            writer.write_table(rows)


@pytest.mark.parametrize("name", INPUTS)
def test_every_kind_of_file_gives_the_same_release_in_its_own_format(sfumato, here, policy, name):
    import pyarrow.feather  # noqa: F401 - write_input needs it

    write_input(name)
    done = sfumato("publish", name, "--policy", policy, "--out", "out", "--seed", 1)
    assert (done.code, done.err) == (0, "")
    published = here / "out" / f"release.{INPUTS[name]}"
    write_table(people(), "plain.csv")
    assert sfumato("publish", "plain.csv", "--policy", policy, "--out", "plain", "--seed", 1).code == 0
    assert read(published).to_pylist() == read(here / "plain" / "release.csv").to_pylist()
    assert sfumato("verify", "out").code == 0


def test_standard_input_gives_csv(sfumato, here, table, policy):
    done = sfumato("publish", "-", "--policy", policy, "--out", "out", "--seed", 1, stdin=table.read_bytes())
    assert (done.code, done.err) == (0, "")
    assert sfumato("publish", table, "--policy", policy, "--out", "file", "--seed", 1).code == 0
    assert contents(here / "out") == contents(here / "file")
    zipped = gzip.compress(table.read_bytes())
    assert sfumato("publish", "-", "--policy", policy, "--out", "zipped", "--seed", 1, stdin=zipped).code == 0
    assert contents(here / "zipped") == contents(here / "file")


@pytest.mark.parametrize(("name", "other"), [("people.csv", "parquet"), ("people.parquet", "csv")])
def test_the_format_of_the_release_can_be_chosen(sfumato, here, policy, name, other):
    write_input(name)
    for word in ("csv", "parquet"):
        done = sfumato("publish", name, "--policy", policy, "--out", word, "--format", word, "--seed", 1)
        assert done.code == 0
        assert [path.name for path in (here / word).glob("release.*")] == [f"release.{word}"]
        assert sfumato("verify", word).code == 0
    assert sfumato("publish", name, "--policy", policy, "--out", "default").code == 0
    assert not (here / "default" / f"release.{other}").exists()


def test_overwrite_replaces_an_earlier_release_and_nothing_else(sfumato, here, release, table, policy):
    before = contents(release)
    done = sfumato("publish", table, "--policy", policy, "--out", release, "--seed", 2)
    assert (done.code, "already exists" in done.sentence) == (2, True)
    assert contents(release) == before
    again = ("publish", table, "--policy", policy, "--out", release, "--seed", 2, "--overwrite")
    assert sfumato(*again, "--format", "parquet").code == 0
    assert names(release) == [name.replace("csv", "parquet") for name in PIECES]
    (release / "thesis.docx").write_text("mine")
    done = sfumato(*again)
    assert (done.code, "holds more than a release" in done.sentence) == (2, True)
    assert (release / "thesis.docx").read_text() == "mine"


def test_quiet_prints_nothing_and_verbose_more(sfumato, table, policy):
    arguments = ("publish", table, "--policy", policy, "--seed", 1)
    quiet = sfumato(*arguments, "--out", "quiet", "--quiet")
    usual = sfumato(*arguments, "--out", "usual")
    verbose = sfumato(*arguments, "--out", "verbose", "--verbose")
    assert [done.code for done in (quiet, usual, verbose)] == [0, 0, 0]
    assert [done.err for done in (quiet, usual)] == ["", ""]
    assert all(line.startswith("lost: ") for line in verbose.err.splitlines())
    assert quiet.out == ""
    usual_lines = usual.out.replace("usual", "verbose")
    assert verbose.out.startswith(usual_lines)
    assert "  splits: " in verbose.out.removeprefix(usual_lines)


def test_a_policy_that_requires_nothing_is_said_to_promise_nothing(sfumato, here, table, policy):
    policy.write_text(POLICY.partition("require:")[0] + "require: []\n")
    done = sfumato("publish", table, "--policy", policy, "--out", "out")
    assert (done.code, "Nothing is promised" in done.out) == (0, True)
    assert json.loads((here / "out" / "certificate.json").read_text())["promise"] == "nothing is promised"
    assert "nothing is promised" in sfumato("verify", "out").out


@pytest.mark.parametrize("size", ["64MB", "512MB", "2GB", "0.5 GiB", "1tb"])
def test_memory_takes_sizes_as_people_write_them(sfumato, table, policy, size):
    assert sfumato("publish", table, "--policy", policy, "--out", "out", "--memory", size).code == 0


def test_a_table_that_needs_more_memory_than_allowed_goes_by_way_of_the_disk(
    sfumato, here, policy, monkeypatch
):
    monkeypatch.setattr("sfumato.cli.options.LEAST_MEMORY", 4_000_000)  # a small table will do
    write_agrawal(60_000, "t.parquet", seed=1)
    draft = sfumato("profile", "t.parquet").out
    policy.write_text(draft.replace("method: mondrian", "method: {mondrian: {refine: none}}"))
    arguments = ("publish", "t.parquet", "--policy", policy, "--memory", "4MB", "--verbose", "--out")
    done = sfumato(*arguments, "out")
    assert done.code == 0
    assert "io: engine disk, method rothko-t" in done.out
    assert names(here) == ["out", "policy.yaml", "t.parquet"]
    assert sfumato("verify", "out").code == 0
    done = sfumato(*arguments, "not", "--engine", "memory")
    assert (done.code, "--engine disk" in done.sentence) == (2, True)
    assert names(here) == ["out", "policy.yaml", "t.parquet"]


def test_the_engines_of_this_version_are_the_same(sfumato, here, table, policy):
    for engine in ("auto", "memory", "disk"):
        arguments = ("publish", table, "--policy", policy, "--out", engine, "--engine", engine, "--seed", 1)
        assert sfumato(*arguments).code == 0
    assert contents(here / "auto") == contents(here / "memory")
    rows = [sorted((here / engine / "release.csv").read_text().splitlines()) for engine in ("memory", "disk")]
    assert rows[0] == rows[1]


def test_hierarchies_are_found_beside_the_policy_and_travel_with_the_release(sfumato, here, table):
    (here / "settings").mkdir()
    (here / "settings" / "sex.csv").write_text("Female;*\nMale;*\n")
    flat, filed = "sex:     {role: quasi-identifier}", "sex: {role: quasi-identifier, hierarchy: sex.csv}"
    (here / "settings" / "policy.yaml").write_text(POLICY.replace(flat, filed))
    done = sfumato("publish", table, "--policy", "settings/policy.yaml", "--out", "out")
    assert (done.code, done.err) == (0, "")
    shutil.rmtree(here / "settings")
    assert sfumato("verify", "out").code == 0
    assert sfumato("apply", "out", table, "--out", "more.csv").code == 0
    assert sfumato("publish", table, "--policy", "out/policy.yaml", "--out", "again").code == 0


def test_the_policy_of_a_release_makes_the_same_release_again(sfumato, here, release, table):
    done = sfumato("publish", table, "--policy", release / "policy.yaml", "--out", "again", "--seed", 1)
    assert done.code == 0
    assert contents(here / "again") == contents(release)


# ---- profile --------------------------------------------------------------------------------------------


def test_profile_drafts_a_policy_that_publishes_as_it_stands(sfumato, here, table):
    done = sfumato("profile", table, "--out", "draft.yaml")
    assert (done.code, done.err) == (0, "")
    wrote, hint = done.out.split(" Read it, then: sfumato ")
    assert "alone    one more    two more  drafted as" in wrote
    assert wrote.splitlines()[-1] == "Wrote draft.yaml."
    assert hint == f"publish {table} --policy draft.yaml --out release\n"
    assert sfumato(*hint.split()).code == 0
    assert sfumato("verify", "release").code == 0


def test_profile_without_a_file_prints_the_draft_and_nothing_else(sfumato, here, table):
    done = sfumato("profile", table)
    assert (done.code, done.err) == (0, "")
    assert Policy.parse(done.out).schema.names() == ("id", "age", "sex", "zip", "disease", "charge", "note")
    assert sfumato("profile", "-", stdin=table.read_bytes()).out == done.out
    assert names(here) == ["people.csv"]


def test_profile_replaces_a_draft_where_that_is_allowed_but_no_folder(sfumato, here, table):
    (here / "draft.yaml").write_text("old")
    assert sfumato("profile", table, "--out", "draft.yaml", "--overwrite").code == 0
    assert "k-anonymity: 5" in (here / "draft.yaml").read_text()
    (here / "folder").mkdir()
    done = sfumato("profile", table, "--out", "folder", "--overwrite")
    assert (done.code, "folder" in done.sentence) == (2, True)


# ---- verify ---------------------------------------------------------------------------------------------


def test_a_sound_release_is_verified_claim_by_claim(sfumato, release):
    done = sfumato("verify", release)
    assert (done.code, done.err) == (0, "")
    assert "ok    5-anonymity holds" in done.out
    assert "ok    the file release.csv is as it was certified" in done.out
    assert "FAIL" not in done.out


def change_row(folder: Path) -> None:
    path = folder / "release.csv"
    lines = path.read_text().splitlines()
    lines[1] = (
        lines[1].replace(",Male,", ",Female,") if ",Male," in lines[1] else lines[1].replace("Female", "Male")
    )
    path.write_text("\n".join(lines) + "\n")


def change_certificate(folder: Path, **changes) -> None:
    path = folder / "certificate.json"
    document = json.loads(path.read_text())
    document["claims"].update(changes)
    path.write_text(json.dumps(document))


def certify_again(folder: Path) -> None:
    """What a forger does who knows of the hashes."""
    change_certificate(folder, sha256=hashes_of(folder))


def drop_row(folder: Path) -> None:
    path = folder / "release.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    certify_again(folder)


def keep_one_of_a_group(folder: Path) -> None:
    """A row of its own: the first row with a zip that nobody else has."""
    path = folder / "release.csv"
    table = read(path)
    zips = ["99999", *table.column("zip").to_pylist()[1:]]
    write_table(table.set_column(table.column_names.index("zip"), "zip", pa.array(zips)), path)
    certify_again(folder)


def lower_k(folder: Path) -> None:
    path = folder / "policy.yaml"
    path.write_text(path.read_text().replace("k-anonymity: 5", "k-anonymity: 2"))
    certify_again(folder)


def add_column(folder: Path) -> None:
    path = folder / "release.csv"
    table = read(path)
    write_table(table.append_column("row", pa.array(range(len(table)))), path)
    certify_again(folder)


def claim_more(folder: Path) -> None:
    requirements = json.loads((folder / "certificate.json").read_text())["claims"]["requirements"]
    change_certificate(folder, requirements=[{**requirements[0], "achieved": 50.0}])


def claim_another_k(folder: Path) -> None:
    requirements = json.loads((folder / "certificate.json").read_text())["claims"]["requirements"]
    change_certificate(folder, requirements=[{**requirements[0], "requirement": {"k-anonymity": 50}}])


TAMPERED = {
    "a row": (change_row, "the file release.csv is as it was certified"),
    "a hash": (
        lambda folder: change_certificate(folder, sha256={**hashes_of(folder), "release.csv": "0" * 64}),
        "the file release.csv is as it was certified",
    ),
    "the hash of the policy": (
        lambda folder: change_certificate(folder, sha256={**hashes_of(folder), "policy.yaml": "0" * 64}),
        "the file policy.yaml is as it was certified",
    ),
    "a hash left out": (
        lambda folder: change_certificate(folder, sha256={}),
        "the certificate is readable and complete",
    ),
    "a row dropped and certified again": (drop_row, "the release holds 60 rows"),
    "a row singled out and certified again": (keep_one_of_a_group, "5-anonymity holds"),
    "k lowered in the policy alone": (lower_k, "the certificate and policy.yaml speak of one policy"),
    "a column of row numbers": (add_column, "the columns are those that the policy publishes"),
    "the number of rows": (lambda folder: change_certificate(folder, rows=61), "the release holds 61 rows"),
    "the number of groups": (lambda folder: change_certificate(folder, groups=1), "the rows form 1 group"),
    "suppressed rows": (lambda folder: change_certificate(folder, suppressed=3), "3 rows were suppressed"),
    "a better figure": (claim_more, "the smallest group is 50 for 5-anonymity"),
    "a better requirement": (claim_another_k, "the certificate claims what the policy requires"),
    "a certificate cut short": (
        lambda folder: os.truncate(folder / "certificate.json", 200),
        "the certificate is readable and complete",
    ),
    "a certificate that is gone": (
        lambda folder: (folder / "certificate.json").unlink(),
        "the certificate is readable and complete",
    ),
    "a policy that is gone": (lambda folder: (folder / "policy.yaml").unlink(), "policy.yaml"),
    "rows that are gone": (lambda folder: (folder / "release.csv").unlink(), "release.csv"),
    "a recoding that is gone": (
        lambda folder: (folder / "recoding.json").unlink(),
        "the file recoding.json is as it was certified",
    ),
    "the report": (
        lambda folder: (folder / "report.html").write_text("All is well."),
        "the file report.html is as it was certified",
    ),
    "a file more": (
        lambda folder: (folder / "patients.csv").write_text("name\nAnn\n"),
        "the folder holds the files of a release and nothing else",
    ),
    "a second release beside it": (
        lambda folder: write_table(people(), folder / "release.parquet"),
        "the file release.parquet is as it was certified",
    ),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_tampered_release_fails_and_the_claim_is_named(sfumato, release, case):
    tamper, claim = TAMPERED[case]
    tamper(release)
    done = sfumato("verify", release)
    assert done.code == 1
    assert done.sentence.startswith("Verification failed: ")
    assert claim in done.sentence
    assert f"FAIL  {claim}" in done.out or claim in done.out


def test_verify_names_what_is_no_release(sfumato, here, table, release):
    for wrong in ("nowhere", table):
        done = sfumato("verify", wrong)
        assert (done.code, str(wrong) in done.sentence) == (2, True)
    (here / "empty").mkdir()
    done = sfumato("verify", "empty")
    assert (done.code, "is no release" in done.sentence) == (2, True)


# What ARX writes: ';' between cells, '*' in identifiers and suppressed rows, the columns where they were.
ARX = """\
id;age;sex;zip;disease;charge;note
*;[20, 40[;Male;537**;flu;100;*
*;[20, 40[;Male;537**;cold;120;*
*;[20, 40[;Male;537**;asthma;130;*
*;[40, 60[;*;021**;flu;140;*
*;[40, 60[;*;021**;flu;150;*
*;[40, 60[;*;021**;cold;160;*
"""

# What anjana writes: a pandas frame, whose index of original row numbers goes along as a column.
ANJANA = """\
index,age,sex,zip,disease,charge
4,"[20, 40)",Male,537**,flu,100
17,"[20, 40)",Male,537**,cold,120
3,"[20, 40)",Male,537**,asthma,130
29,"[40, 60)",*,021**,flu,140
11,"[40, 60)",*,021**,flu,150
8,"[40, 60)",*,021**,cold,160
"""


def judge(sfumato, here, rows: str, k: int = 3, more: str = ""):
    (here / "theirs.csv").write_text(rows)
    (here / "policy.yaml").write_text(POLICY.replace("k-anonymity: 5", f"k-anonymity: {k}") + more)
    return sfumato("verify", "theirs.csv", "--policy", "policy.yaml")


def test_an_output_of_arx_is_judged_by_its_cells(sfumato, here):
    done = judge(sfumato, here, ARX)
    assert (done.code, done.err) == (0, "")
    assert "ok    3-anonymity holds: the smallest group is 3" in done.out
    done = judge(sfumato, here, ARX, k=4)
    assert done.code == 1
    assert "4-anonymity holds is false: the smallest group is 3, and 2 of 2 groups fail" in done.sentence
    done = judge(sfumato, here, ARX, more="  - entropy-diversity: {l: 2, of: disease}\n")
    assert done.code == 1
    assert "entropy 2-diversity of 'disease' holds is false" in done.sentence


def test_suppressed_rows_of_arx_are_rows_like_any_others(sfumato, here):
    done = judge(sfumato, here, ARX + "*;*;*;*;*;*;*\n")
    assert (done.code, "the smallest group is 1" in done.sentence) == (1, True)


def test_identifiers_that_another_tool_left_in_are_found(sfumato, here):
    done = judge(sfumato, here, ARX.replace("*;[20, 40[", "P1;[20, 40[", 1))
    assert (done.code, "no column that the policy leaves out tells rows apart" in done.sentence) == (1, True)
    assert "'id'" in done.sentence
    assert "P1" not in done.err + done.out


def test_the_index_that_anjana_ships_is_a_column_that_the_policy_does_not_name(sfumato, here):
    done = judge(sfumato, here, ANJANA)
    assert (done.code, "'index'" in done.sentence) == (2, True)
    without = "".join(line.partition(",")[2] for line in ANJANA.splitlines(keepends=True))
    assert judge(sfumato, here, without).code == 0
    assert judge(sfumato, here, without, k=4).code == 1


def test_an_index_that_pandas_hid_in_parquet_fails(sfumato, here):
    done = judge(sfumato, here, ARX)
    theirs = read(here / "theirs.csv").append_column("__index_level_0__", pa.array([4, 17, 3, 29, 11, 8]))
    pq.write_table(theirs, here / "theirs.parquet")
    done = sfumato("verify", "theirs.parquet", "--policy", "policy.yaml")
    assert (done.code, "no index of pandas is stored" in done.sentence) == (1, True)


def test_quasi_identifiers_of_other_tools_are_compared_as_text(sfumato, here):
    """Neither ``20`` and ``20.0`` nor ``[20, 40)`` and ``[20,40)`` are one group: stricter is safer."""
    for one, other in (("[20, 40[", "[20,40["), ("537**", "5370*")):
        done = judge(sfumato, here, ARX.replace(one, other, 1))
        assert (done.code, "the smallest group is 1" in done.sentence) == (1, True)


def test_rows_with_bounds_are_judged_by_both(sfumato, here):
    rows = "age_low,age_high,sex,zip,disease,charge\n" + "20,40,m,1,flu,1\n20,40,m,1,flu,1\n20,50,m,1,flu,1\n"
    done = judge(sfumato, here, rows, k=2)
    assert (done.code, "the smallest group is 1" in done.sentence) == (1, True)


def test_the_rows_of_a_release_are_also_a_table_like_any_other(sfumato, release, policy):
    done = sfumato("verify", release / "release.csv", "--policy", policy)
    assert (done.code, done.err) == (0, "")


def test_the_raw_table_is_not_a_release(sfumato, table, policy):
    done = sfumato("verify", table, "--policy", policy)
    assert done.code == 1
    assert "no column that the policy leaves out tells rows apart" in done.sentence
    assert "5-anonymity holds" in done.sentence


# ---- apply ----------------------------------------------------------------------------------------------


def test_apply_gives_the_published_rows_their_published_cells(sfumato, here, release, table):
    done = sfumato("apply", release, table, "--out", "recoded.csv")
    assert (done.code, done.err) == (0, "")
    assert done.out == "recoded.csv: 60 rows recoded, without a promise.\n"
    recoded, published = read(here / "recoded.csv"), read(release / "release.csv")
    assert recoded.column_names == published.column_names
    assert Counter(map(str, recoded.to_pylist())) == Counter(map(str, published.to_pylist()))
    in_order = read(table).column("charge").to_pylist()
    assert recoded.column("charge").to_pylist() == in_order


def test_apply_needs_the_quasi_identifiers_only(sfumato, here, release):
    (here / "more.csv").write_text("zip,age,sex\n02101,35,Female\n,,\n")
    done = sfumato("apply", release, "more.csv", "--out", "recoded.csv")
    assert (done.code, done.err) == (0, "")
    assert read(here / "recoded.csv").column_names == ["zip", "age", "sex"]
    (here / "less.csv").write_text("zip,age\n02101,35\n")
    done = sfumato("apply", release, "less.csv", "--out", "recoded2.csv")
    assert (done.code, "'sex'" in done.sentence) == (2, True)
    assert not (here / "recoded2.csv").exists()


def test_apply_passes_unknown_columns_and_leaves_identifiers_out(sfumato, here, release):
    (here / "more.csv").write_text("id,zip,age,sex,note,split\nP1,02101,35,Female,x,test\n")
    assert sfumato("apply", release, "more.csv", "--out", "recoded.csv").code == 0
    assert read(here / "recoded.csv").column_names == ["zip", "age", "sex", "split"]


def test_strangers_get_a_box_too(sfumato, here, release):
    """Outside the seen range, categories never seen, cells that are missing: all find a place."""
    rows = ["99999,500,Female", "00000,-7,Male", "02101,35,Diverse", ",40,", "02101,,Female", "1,35.5,Male"]
    (here / "more.csv").write_text("zip,age,sex\n" + "\n".join(rows) + "\n")
    done = sfumato("apply", release, "more.csv", "--out", "recoded.csv")
    assert (done.code, done.err) == (0, "")
    recoded = read(here / "recoded.csv")
    ages, sexes, zips = (recoded.column(name).to_pylist() for name in ("age", "sex", "zip"))
    shown = set(read(release / "release.csv").column("age").to_pylist())
    assert {ages[0], ages[1]} <= shown | {"[0, 110]"}  # the bounds, where they are in no group
    assert ages[4] == "*"  # no age was missing when the recoding was made, so any could stand here
    assert sexes[2:4] == ["*", "*"]
    assert all(sex in (row.split(",")[2], "*") for sex, row in zip(sexes, rows, strict=True))
    given = [row.split(",")[0] for row in rows]
    assert all(code.startswith(label.rstrip("*")) for code, label in zip(given, zips, strict=True))


@pytest.mark.parametrize("name", ["recoded.csv", "recoded.csv.gz", "recoded.parquet"])
def test_the_extension_of_the_file_is_its_format(sfumato, here, release, table, name):
    assert sfumato("apply", release, table, "--out", name).code == 0
    assert open_table(here / name).kind == ("parquet" if name.endswith("parquet") else "csv")
    assert (here / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")


def test_apply_refuses_what_it_cannot_write_or_read(sfumato, here, release, table):
    for out, word in (("recoded.xlsx", "extension"), ("no/recoded.csv", "no folder")):
        done = sfumato("apply", release, table, "--out", out)
        assert (done.code, word in done.sentence) == (2, True)
    for folder in ("nowhere", here):
        done = sfumato("apply", folder, table, "--out", "recoded.csv")
        assert done.code == 2
        assert done.sentence
    assert not (here / "recoded.csv").exists()


def test_apply_reads_standard_input(sfumato, here, release, table):
    assert sfumato("apply", release, "-", "--out", "one.csv", stdin=table.read_bytes()).code == 0
    assert sfumato("apply", release, table, "--out", "two.csv").code == 0
    assert (here / "one.csv").read_bytes() == (here / "two.csv").read_bytes()


# ---- generate -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_generate_writes_the_table_of_the_papers(sfumato, here, name):
    done = sfumato("generate", "agrawal", "--rows", "1e3", "--function", "C2", "--seed", 7, "--out", name)
    assert (done.code, done.err, done.out) == (0, "", f"{name}: 1,000 rows.\n")
    drawn = read(here / name)
    assert drawn.column_names == (
        ["salary", "commission", "age", "elevel", "car", "zipcode", "hvalue", "hyears", "loan", "class"]
    )
    assert set(drawn.column("class").to_pylist()) == {"A", "B"}


def test_generate_repeats_itself_with_a_seed_only(sfumato, here):
    for i, seed in enumerate([("--seed", 7), ("--seed", 7), ("--seed", 8), (), ()]):
        done = sfumato(
            "generate", "agrawal", "--rows", 200, "--salary", "uniform", "--out", f"{i}.csv", *seed
        )
        assert done.code == 0
    written = [(here / f"{i}.csv").read_bytes() for i in range(5)]
    assert written[0] == written[1]
    assert len(set(written)) == 4


# ---- demo -----------------------------------------------------------------------------------------------


def test_the_demo_runs_twice_and_touches_no_foreign_folder(sfumato, here):
    done = sfumato("demo")
    assert (done.code, done.err) == (0, "")
    assert "10,000 rows in" in done.out
    assert "verified" in done.out
    for path in re.findall(r"sfumato-demo/[a-z/.-]+", done.out):
        assert (here / path).exists(), path
    first = contents(here / "sfumato-demo" / "release")
    assert sorted(first) == PIECES
    done = sfumato("demo", "--out", "sfumato-demo")
    assert done.code == 0
    assert contents(here / "sfumato-demo" / "release")["recoding.json"] == first["recoding.json"]
    hint = done.out.splitlines()[-1].split()  # the last line says how to go on
    assert sfumato(*hint[1:]).code == 0
    assert sfumato("verify", "my-release").code == 0


def test_the_demo_leaves_a_foreign_folder_alone(sfumato, here):
    (here / "mine").mkdir()
    (here / "mine" / "patients.csv").write_text("mine")
    done = sfumato("demo", "--out", "mine")
    assert (done.code, "mine was not made by an earlier demo" in done.sentence) == (2, True)
    assert names(here / "mine") == ["patients.csv"]
    (here / "file").write_text("mine")
    done = sfumato("demo", "--out", "file")
    assert done.code == 2
    assert done.sentence
    assert (here / "file").read_text() == "mine"
