"""What the pages of all releases have in common: the frame, and numbers and names as people read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import jinja2
import pyarrow as pa

from sfumato.errors import number_of
from sfumato.policy.document import Policy
from sfumato.release.certificate import Certificate
from sfumato.report.svg import plain
from sfumato.table.stored import FiledRows
from sfumato.verify.cells import Detail

LONGEST_TREE = 2_000
"""Characters of a hierarchy beyond which the certificate in the report leaves it out."""


class ReportedRelease(Protocol):
    """What a report reads of a release."""

    @property
    def rows(self) -> pa.Table | FiledRows: ...
    @property
    def certificate(self) -> Certificate: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def recoding(self) -> Any: ...
    @property
    def format(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """The report in one sentence; ``mood`` is good, none (nothing promised) or bad."""

    mood: str
    headline: str
    sentence: str


def template(name: str, **filters: Callable[..., Any]) -> jinja2.Template:
    """One of the templates beside this file, with filters of its own."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sfumato.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: plain(value) if type(value) is str else value,
    )
    environment.filters |= {
        "rows": lambda n: number_of(n, "row"),
        "number": number,
        "share": share,
        **filters,
    }
    return environment.get_template(name)


def number(value: float) -> str:
    """A number for people.

    >>> number(1234), number(12.345)
    ('1,234', '12.3')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def share(part: int, whole: int) -> str:
    """A part in per cent; neither nothing nor everything unless it is.

    >>> share(1, 4), share(1, 1000), share(999, 1000), share(0, 10)
    ('25 %', '< 1 %', '> 99 %', '0 %')
    """
    percent = 100 * part / max(whole, 1)
    if 0 < percent < 1:
        return "< 1 %"
    return "> 99 %" if 99 < percent < 100 else f"{percent:.0f} %"


def hidden_of(details: Mapping[str, Detail]) -> list[tuple[str, str]]:
    """The columns that are ``*`` nearly everywhere, and in how many of the rows."""
    return [(name, share(own.nothing, own.rows)) for name, own in details.items() if own.is_hidden]


def list_names(names: list[str], most: int = 6) -> str:
    """The first few names.

    >>> list_names(["a", "b"]), list_names(list("abcdefgh"), most=2)
    ('a, b', 'a, b and 6 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def options_of(policy: Policy) -> list[tuple[str, str]]:
    """The options of the policy's method, each with its setting."""
    ((_, options),) = policy.method.as_policy().items()
    return [
        (key, ", ".join(value) if isinstance(value, list) else write_setting(value))
        for key, value in options.items()
    ]


def write_setting(value: Any) -> str:
    """A setting, about as a policy writes it.

    >>> write_setting({"model": "model-1", "attributes": {"zip": 2.0}})
    '{model: model-1, attributes: {zip: 2}}'
    >>> write_setting([0, 1.5]), write_setting(True), write_setting(1e-06)
    ('[0, 1.5]', 'yes', '1e-06')
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {write_setting(own)}" for key, own in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(write_setting(own) for own in value) + "]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def write_certificate(certificate: Certificate) -> str:
    """The certificate as JSON. Long hierarchies are left out, and hashes too: files are hashed after the report."""
    document = json.loads(certificate.to_json())
    document["claims"].pop("sha256", None)
    for attribute in document["policy"].get("attributes", {}).values():
        if len(json.dumps(attribute.get("hierarchy"))) > LONGEST_TREE:
            attribute["hierarchy"] = "(a long tree: see certificate.json)"
    return json.dumps(document, indent=2, ensure_ascii=False)
