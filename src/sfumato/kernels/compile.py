"""How kernels are compiled: ``@kernel`` if Python calls them, ``@inner`` if only kernels do.

One that makes no array, but reads and writes those that its caller keeps alive, says ``borrows=True``. numba counts
the references to every array that a function is handed, and to each that it takes out of a named tuple. A requirement
is tested for each candidate split with a dozen arrays in three such tuples, and the counting took a third of the time
(measured). One that borrows counts nothing; if it makes an array all the same, it does not compile.

Compiled code is kept on disk between runs, in a folder named after a hash of all kernel sources. numba
itself looks only at the file of the function that is called and would go on using old callees; and it
writes beside the source, which a read-only installation forbids. NUMBA_CACHE_DIR, if set, is obeyed.

numba runs whatever it finds in that folder. So it is one that belongs to us and that nobody else can write,
or none is used, and every run compiles for itself.

Code that was kept is loaded without what only compiling needs: ``_Kept``.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.runtime.nrt import rtsys

from sfumato.kernels.watch import tell

PACKAGE = Path(__file__).parents[1]
"""All of sfumato: kernels stand beside the methods that use them."""


@cache
def cache_folder() -> Path | None:
    """Where compiled kernels are kept: the user's cache, one folder per version of the sources.

    None where it cannot be written, or somebody else could.
    """
    folder = wanted_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if _is_ours_alone(folder) and os.access(folder, os.W_OK) else None
    except OSError:
        return None


def wanted_folder() -> Path:
    """The folder for compiled kernels, whether or not it can be used."""
    digest = hashlib.sha256()
    for source in sorted(PACKAGE.rglob("kernels/*.py")):
        digest.update(source.read_bytes())
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "sfumato"
    return Path(os.environ.get("NUMBA_CACHE_DIR") or users) / f"kernels-{digest.hexdigest()[:16]}"


def _is_ours_alone(folder: Path) -> bool:
    """Does the folder belong to us, can nobody else write it, and nobody put another one in its place?

    One that others may only read is closed to them, too.
    """
    if not hasattr(os, "geteuid"):  # Windows: what is below the user's folder is the user's
        return True
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        return False
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    return all(_stays_in_place(parent.stat()) for parent in folder.resolve().parents)


def _stays_in_place(parent: os.stat_result) -> bool:
    """Whether only we and root can rename what is in a folder."""
    if parent.st_uid not in (0, os.geteuid()):
        return False
    is_own_group = parent.st_gid == os.getegid()  # as where every user has a group of the same name
    writers = parent.st_mode & (0o002 if is_own_group else 0o022)
    return not writers or bool(parent.st_mode & stat.S_ISVTX)


class _Listener(event.Listener):
    """Counts the kernels that are compiled."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.done: set[str] = set()

    def on_start(self, _event: Any) -> None:
        if not self.done:
            tell(0, len(self.known))

    def on_end(self, found: Any) -> None:
        name = _name_of(found.data["dispatcher"].py_func)
        if name in self.known - self.done:
            self.done.add(name)
            tell(len(self.done), len(self.known))


def _name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


_listener = _Listener()
event.register("numba:compile", _listener)

config: Any = numba.config
if cache_folder() is not None:
    config.CACHE_DIR = str(cache_folder())

njit: Any = numba.njit


class _Kept(FunctionCache):
    """Compiled code that was kept. numba would first import all that it can compile, a tenth of a second.

    Code that is there only needs the memory manager; whatever is not there is compiled as ever, and numba imports then.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class _PartLibrary(JITCodeLibrary):
    """The code of a function that only kernels call: LLVM optimizes it with the kernel, and makes machine code of that.

    numba would do both for every function with all that it calls, and throw the machine code away. Four calls deep,
    that is five times.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """Null: Python cannot call it."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> _PartLibrary:
        """Stands in for numba's own, which is asked only for ``set_env``."""
        return self

    def set_env(self, _name: str, _environment: Any) -> None:
        """Only object mode looks at it."""


class _PartCompiler(CompilerBase):
    """numba's own pipeline, but for the library."""

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return [DefaultPassBuilder.define_nopython_pipeline(state)]


def kernel(function: Callable[..., Any] | None = None, *, borrows: bool = False) -> Any:
    """Arrays in, arrays out, without the interpreter's lock; a division by zero is the caller's business.

    Kernels that call it see an ``inner`` function: it is compiled as a whole only if Python calls it.
    """
    if function is None:
        return lambda function: kernel(function, borrows=borrows)
    compiled = _compile(function, borrows=borrows)
    if config.DISABLE_JIT:
        return compiled
    part = inner(function, borrows=borrows)
    compiled.get_call_template, compiled.get_overload = part.get_call_template, part.get_overload
    if cache_folder() is not None:
        compiled._cache = _Kept(function)  # noqa: SLF001 - as enable_caching does
    return compiled


def inner(function: Callable[..., Any] | None = None, *, borrows: bool = False, inlines: bool = False) -> Any:
    """Without the way in from Python, which takes longer to compile than most of them.

    One that ``inlines`` becomes a part of its caller: worth while where handing on the arguments, of which each array is
    seven, takes longer than the work.
    """
    return _compile(
        function,
        borrows=borrows,
        forceinline=inlines,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        pipeline_class=_PartCompiler,
    )


def _compile(function: Callable[..., Any] | None, *, borrows: bool, **options: Any) -> Any:
    if function is None:
        return lambda function: _compile(function, borrows=borrows, **options)
    _listener.known.add(_name_of(function))
    # the last option is always said: what is not said, a callee takes over from its caller
    return njit(nogil=True, error_model="numpy", _nrt=not borrows, **options)(function)
