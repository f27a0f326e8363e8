"""What a command loads: packages that are there are not loaded in vain, and can be loaded all the same."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PROGRAM = """
import os, sys
from sfumato import cli

def end(code):
    print(code, *(name for name in ("numba", "pandas", "scipy", "scipy.linalg") if name in sys.modules))
    import pandas, scipy.linalg
    print(pandas.Series([1]).sum(), scipy.linalg.det([[2.0]]))

os._exit = end
sys.argv = ["sfumato", *sys.argv[1:]]
cli.main()
"""

POLICY = "{attributes: {age: {role: quasi-identifier, type: number}, ill: {role: sensitive}}, require: [k-anonymity: 2]}"


def start(*arguments: object) -> list[str]:
    program = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def table(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"age": list(range(50)), "ill": ["flu", "cold"] * 25}), path)
    return path


def test_commands_load_neither_pandas_nor_scipy_for_others_and_whoever_asks_gets_them(table):
    pytest.importorskip("pandas")
    pytest.importorskip("scipy")
    folder = table.parent
    publish = ("publish", table, "--policy", folder / "policy.yaml", "--out", folder / "out", "--quiet")
    assert start(*publish) == ["0 numba", "1 2.0"]
    *_, loaded, answers = start("verify", folder / "out")
    assert (loaded, answers) == ("0", "1 2.0")


def test_a_table_of_duckdb_is_read_without_pandas(table):
    duckdb = pytest.importorskip("duckdb")
    base = table.with_name("in.duckdb")
    with duckdb.connect(str(base)) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT * FROM '{table}'")
    folder = table.parent
    given = ("--policy", folder / "policy.yaml", "--out", folder / "out", "--quiet")
    assert start("publish", f"duckdb:///{base}#people", *given)[0] == "0 numba"


LOADED = """
import os, sys
from sfumato import cli

def end(code):
    import pyarrow
    print(code, pyarrow.default_memory_pool().backend_name, "numba.np.linalg" in sys.modules)

os._exit = end
sys.argv = ["sfumato", *sys.argv[1:]]
cli.main()
"""


def test_from_the_second_run_on_nothing_is_loaded_that_only_compiling_needs(table, tmp_path):
    """And Arrow's memory comes from the C library, which gives it back, unless the user says otherwise."""
    out = ("--policy", table.parent / "policy.yaml", "--out", table.parent / "out", "--quiet", "--overwrite")
    program = [sys.executable, "-c", LOADED, "publish", str(table), *map(str, out)]
    own = {key: value for key, value in os.environ.items() if key != "ARROW_DEFAULT_MEMORY_POOL"}
    own |= {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    first, second = (
        subprocess.run(program, capture_output=True, text=True, check=True, env=own).stdout for _ in range(2)
    )
    assert (first.split(), second.split()) == (["0", "system", "True"], ["0", "system", "False"])
