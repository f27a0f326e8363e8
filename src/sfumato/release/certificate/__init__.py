"""The certificate of a release: what is claimed of its rows, and how that is written and read.

``claims`` and ``privacy`` are the values, ``certificate`` holds them together and says them to people, and ``document``
is the JSON (a model each way). ``verify`` imports this package, so nothing here may lead to a method.
"""

from sfumato.release.certificate.certificate import (
    NO_ANONYMIZATION,
    Certificate,
    missing_rule,
    public_of,
    this_version,
)
from sfumato.release.certificate.claims import (
    RISK_LIMITS,
    AloneClaim,
    CellsClaim,
    Claim,
    Claims,
    RiskClaim,
    SmallGroups,
    UtilityClaim,
    percent,
)
from sfumato.release.certificate.privacy import Privacy, Sampling

__all__ = [
    "NO_ANONYMIZATION",
    "RISK_LIMITS",
    "AloneClaim",
    "CellsClaim",
    "Certificate",
    "Claim",
    "Claims",
    "Privacy",
    "RiskClaim",
    "Sampling",
    "SmallGroups",
    "UtilityClaim",
    "missing_rule",
    "percent",
    "public_of",
    "this_version",
]
