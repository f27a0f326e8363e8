# Everything that a newcomer or a developer types; `make` alone lists it.
# Written for any POSIX shell and GNU make 3.81 or newer (the one that macOS ships).

# A Python 3.11 or newer. Left empty, it is the first of these that runs and is new enough.
PYTHON ?=
CANDIDATES := python3.14 python3.13 python3.12 python3.11 python3 python

BIN := .venv/bin
# Two processes. Who is done takes over tests of the other: shared out beforehand, one of them gets most of the slow ones.
TWO := -n 2 --dist worksteal
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test quick lint format bench constraints clean core evaluate dev browser database

help:  ## this list
	@echo "make TARGET [PYTHON=/path/to/python3.11]"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

demo: evaluate  ## install sfumato[evaluate] into .venv, then publish the bundled example into sfumato-demo
	@$(BIN)/sfumato demo --out sfumato-demo

test: dev browser database  ## every test; ARGS="-k words" picks some
	$(BIN)/python -m pytest $(TWO) $(ARGS)

quick: dev  ## layers, the papers' examples, golden releases, documents: under a minute
	$(BIN)/python -m pytest $(TWO) tests/architecture tests/golden tests/paper src docs README.md $(ARGS)

lint: dev  ## ruff, formatting, types
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m mypy --config-file tests/mypy.ini

format: dev  ## mend what ruff can mend
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

bench: dev  ## time tree growth beside its references; ARGS are the script's options
	$(BIN)/python benchmarks/bench_mondrian.py $(ARGS)

constraints:  ## resolve constraints.txt anew (say PYTHON=python3.11, the oldest supported)
	@$(setup) constraints

clean:  ## remove .venv and everything else that make made
	rm -rf .venv build dist sfumato-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

core evaluate dev browser database:
	@$(setup) $@

# ---- setting up .venv ------------------------------------------------------------------------------
# Stamps hold the text they were made from, so a checkout's file times do not matter. `.unfinished`
# stands while anything is being installed: whoever finds it makes .venv anew. So does whoever finds
# that the folder has moved (scripts and the editable install hold its address) or its Python is gone.

setup = sh -c "$$SETUP" make
export PYTHON CANDIDATES SETUP

define SETUP
set -eu
unset PYTHONPATH PYTHONHOME
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_USER=0
here=$$(pwd -P)

fail() {
    printf 'make: %s\n' "$$@" >&2
    exit 1
}

why_not() {  # nothing where $$1 is a Python that is new enough, or else what is wrong with it
    if "$$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then return; fi
    if ! command -v "$$1" >/dev/null 2>&1; then echo "not found"; return; fi
    "$$1" -c 'import sys; print("%d.%d is too old" % sys.version_info[:2])' 2>/dev/null || echo "does not run"
}

find_python() {  # sets $$python
    tried=
    for python in "$${PYTHON:-}" $$CANDIDATES; do
        if [ -z "$$python" ]; then continue; fi
        reason=$$(why_not "$$python")
        if [ -z "$$reason" ]; then break; fi
        tried="$${tried:+$$tried, }$$python ($$reason)"
        python=
        if [ -n "$${PYTHON:-}" ]; then break; fi
    done
    [ -n "$$python" ] || fail "Sfumato needs Python 3.11 or newer. Tried: $$tried." \
        "Install one, or say where one is: make demo PYTHON=/path/to/python3.11"
    # With .venv activated this is .venv's own Python, which must not be asked to replace itself.
    base=$$("$$python" -c 'import os, sys
if os.path.realpath(sys.prefix) == os.path.realpath(".venv"): print(sys._base_executable)')
    python=$${base:-$$python}
}

pinned() {  # these sections of constraints.txt, with their hashes
    awk -v sections=" $$* " '/^# [a-z]+$$/ { is_asked = index(sections, " " $$2 " ") } is_asked && !/^#/' constraints.txt
}

new_venv() {  # a virtual environment with pip in the folder $$1, by venv or else by virtualenv
    rm -rf "$$1"
    mkdir -p "$$1"
    : > "$$1/.unfinished"
    if complaint=$$("$$python" -m venv "$$1" 2>&1) && "$$1/bin/python" -m pip --version >/dev/null 2>&1; then return; fi
    echo "$$python cannot make virtual environments by itself; trying virtualenv."
    if "$$python" -m virtualenv --version >/dev/null 2>&1; then
        "$$python" -m virtualenv "$$1" && return
    elif command -v virtualenv >/dev/null 2>&1; then
        virtualenv --python "$$python" "$$1" && return
    else
        for pip in "$$python -m pip" pip3 pip; do  # into a folder of its own: legal where Python is "externally managed"
            if ! $$pip --version >/dev/null 2>&1; then continue; fi
            rm -rf "$$1/.virtualenv"
            pinned make > "$$1/.pins"
            PIP_REQUIRE_VIRTUALENV=0 $$pip install --require-hashes -r "$$1/.pins" --target "$$1/.virtualenv" || continue
            PYTHONPATH="$$here/$$1/.virtualenv" "$$python" -m virtualenv "$$1" || continue
            rm -rf "$$1/.virtualenv"
            return
        done
    fi
    printf '%s\n' "$$complaint" >&2
    fail "No virtual environment could be made with $$python." \
        "Install its venv module (Debian, Ubuntu: sudo apt install python3-venv) or virtualenv, then try again."
}

is_sound() {  # .venv is complete, stands where it was made, runs, and is of the version that was asked for
    [ -x .venv/bin/python ] && [ ! -e .venv/.unfinished ] || return 1
    [ ! -e .venv/.location ] || [ "$$(cat .venv/.location)" = "$$here" ] || return 1
    version=$$(.venv/bin/python -c 'import sys, pip; print(sys.version_info[:2])' 2>/dev/null) || return 1
    [ -z "$${PYTHON:-}" ] || [ "$$("$$python" -c 'import sys; print(sys.version_info[:2])')" = "$$version" ]
}

venv() {
    if [ -n "$${PYTHON:-}" ]; then find_python; fi
    if is_sound; then return; fi
    [ -n "$${PYTHON:-}" ] || find_python
    if [ -e .venv ]; then
        echo "Making .venv anew: it was unfinished, moved, or made for another Python."
    else
        echo "Making .venv with $$python."
    fi
    new_venv .venv
    printf '%s\n' "$$here" > .venv/.location
    rm .venv/.unfinished
}

is_installed() {
    cat pyproject.toml constraints.txt | cmp -s - ".venv/.$$1"
}

install() {  # $$1 names the stamp, $$2 the sections of constraints.txt; the project itself is no file that has a hash
    venv
    if is_installed "$$1"; then return; fi
    size=$$(sed -n "s/^# download, $$1: //p" constraints.txt)
    echo "Installing sfumato ($$1) into .venv: downloads $${size:-some packages}, once."
    : > .venv/.unfinished
    pinned build > .venv/.pins
    .venv/bin/python -m pip install --require-hashes -r .venv/.pins
    pinned $$2 > .venv/.pins
    .venv/bin/python -m pip install --require-hashes --no-build-isolation -r .venv/.pins
    .venv/bin/python -m pip install --no-deps --no-build-isolation -e .
    cat pyproject.toml constraints.txt > ".venv/.$$1"
    rm .venv/.unfinished
}

browser() {  # for the tests that look at reports; where it cannot be installed they are skipped, but not on a build server
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        if command -v "$$name" >/dev/null 2>&1; then return; fi
    done
    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "Installing chromium, once."
        if apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
        then return; fi
    fi
    echo "There is no browser, so tests that look at reports in one are skipped; install chromium to run them."
}

database() {  # for the tests that read tables of PostgreSQL; skipped where it cannot be installed, but not on a build server
    if command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then return; fi
    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "Installing PostgreSQL, once."
        if apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql
        then return; fi
    fi
    echo "There is no PostgreSQL, so tests that read its tables are skipped; install postgresql to run them."
}

constraints() {  # wheels only, so that nobody needs a compiler; what is published as plain Python sources is built first.
    # The hashes are of all files that the registry offers for Linux, macOS and every supported Python.
    find_python
    work=build/constraints
    new_venv "$$work"
    "$$work/bin/python" -m pip wheel --no-deps -w "$$work/built" \
        python-weka-wrapper3 configurable-objects simple-data-flow simple-range pyspark
    export PIP_FIND_LINKS="$$here/$$work/built"
    "$$work/bin/python" - "$$work" <<'END'
import pathlib, sys, tomllib
project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
def extra(name):  # with the extras that it names itself, as in "sfumato[weka]"
    for line in project["optional-dependencies"][name]:
        inner = line.removeprefix("sfumato[").removesuffix("]").split(",") if line.startswith("sfumato[") else ()
        yield from (further for each in inner for further in extra(each)) if inner else [line]
for name, lines in {
    "build": ["setuptools"],
    "core": project["dependencies"],
    "evaluate": project["dependencies"] + [*extra("evaluate")],
    "dev": project["dependencies"] + [*extra("dev")],
    "make": ["virtualenv"],
}.items():
    pathlib.Path(sys.argv[1], name + ".in").write_text("\n".join(lines) + "\n")
END
    for part in dev evaluate core make build; do
        touch "$$work/pins"
        "$$work/bin/python" -m pip download --only-binary :all: -d "$$work/$$part" -c "$$work/pins" -r "$$work/$$part.in"
        for wheel in "$$work/$$part"/*.whl; do basename "$$wheel"; done | awk -F - '{ print $$1 "==" $$2 }' >> "$$work/pins"
    done
    "$$work/bin/python" .ci/constraints.py check "$$work/dev"
    for version in 3.12 3.13 3.14; do
        echo "Checking that Python $$version can install the same versions."
        "$$work/bin/python" -m pip install -q --dry-run --ignore-installed --only-binary :all: --python-version $$version \
            --target "$$work/none" -c "$$work/pins" -r "$$work/dev.in"
    done
    "$$work/bin/python" - "$$work" > "$$work/list" <<'END'
import pathlib, sys
work = pathlib.Path(sys.argv[1])
wheels = {part: sorted((work / part).glob("*.whl")) for part in ("build", "core", "evaluate", "dev", "make")}
def size(part): return f"about {sum(wheel.stat().st_size for wheel in wheels[part]) / 1e6:.0f} MB"
print("# The exact versions that make installs, and nothing else: each with the SHA-256 of its files for Linux, macOS")
print("# and every supported Python. First setuptools, then the core, the extras, and what makes virtual environments.")
print("# Renew with `make constraints PYTHON=python3.11`: it resolves pyproject.toml anew with the oldest")
print("# Python that is supported, so that every newer one finds the same versions. Then `make lint test`.")
for part in ("core", "evaluate", "dev"): print(f"# download, {part}: {size(part)}")
seen = set()
for part in wheels:
    print(f"\n# {part}")
    for name, version, *_ in (wheel.name.split("-") for wheel in wheels[part]):
        if name not in seen: print(f"{name.replace('_', '-').lower()}=={version}")
        seen.add(name)
END
    "$$work/bin/python" .ci/constraints.py hash < "$$work/list" > "$$work/constraints.txt"
    mv "$$work/constraints.txt" constraints.txt
    rm -rf "$$work"
    echo "constraints.txt is new."
}

case $$1 in
    core) install core core ;;
    evaluate) install evaluate 'core evaluate'; cp .venv/.evaluate .venv/.core ;;
    dev) install dev 'core evaluate dev'; cp .venv/.dev .venv/.core; cp .venv/.dev .venv/.evaluate ;;
    browser) browser ;;
    database) database ;;
    constraints) constraints ;;
esac
endef
