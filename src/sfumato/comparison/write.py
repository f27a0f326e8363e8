"""The files of a comparison: frontier.csv, .json and .svg in one folder, and .png where matplotlib is there."""

from __future__ import annotations

from pathlib import Path

from sfumato.comparison.picture import draw
from sfumato.comparison.result import Comparison
from sfumato.errors import InputError
from sfumato.release.folder import check_outside
from sfumato.table.files import replace_atomically
from sfumato.table.write import write_table


def check_target(folder: Path, *, overwrite: bool = True) -> None:
    """Raise before the work if its results could not be written.

    With ``overwrite`` the files of an earlier comparison are replaced, and others stay.
    """
    for each in (folder, *folder.resolve().parents):
        if each.exists() and not each.is_dir():
            raise InputError(f"{each} is not a folder; give another --out.")
    check_outside(folder)
    if not overwrite and folder.exists() and any(folder.iterdir()):
        raise InputError(
            f"The folder {folder} is not empty; name another one, or allow its frontier to be replaced (--overwrite)."
        )


def write_comparison(found: Comparison, folder: Path) -> tuple[Path, ...]:
    """Write into ``folder``; files of an earlier comparison are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    table, document = folder / "frontier.csv", folder / "frontier.json"
    write_table(found.to_table(), table)
    with replace_atomically(document) as temporary:
        temporary.write_text(found.to_json(), encoding="utf-8")
    return (table, document, *draw(found, folder))
