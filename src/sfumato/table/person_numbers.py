"""Numbers and addresses that lead to one person, each recognized by how it is written and, where there is one, its check.

A check digit is what makes this safe: of ten digits in a row one in eleven passes for a number of the British health
service, and a whole column of them does not by chance. Nothing here knows a column: :mod:`sfumato.table.identifiers`
asks how many of its values fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of number: what its values are called, how they are written, and the check on what stands in them.

    ``check`` is given the text in capitals without blanks, dots, dashes and slashes.
    """

    plural: str
    written: re.Pattern[str]
    check: Callable[[str], bool] = bool

    def fits(self, text: str) -> bool:
        """Is a text such a number?

        >>> [NUMBERS["IBAN"].fits(text) for text in ("DE89 3704 0044 0532 0130 00", "DE88 3704 0044 0532 0130 00")]
        [True, False]
        """
        return self.written.fullmatch(text) is not None and self.check(_bare(text))


def _bare(text: str) -> str:
    return re.sub(r"[\s./-]", "", text).upper()


def _digits(text: str) -> list[int]:
    return [int(letter) for letter in text]


def _weighted(text: str, weights: Sequence[int]) -> int:
    return sum(digit * weight for digit, weight in zip(_digits(text), weights, strict=False))


# ---- checks ------------------------------------------------------------------------------------------


def passes_luhn(text: str) -> bool:
    """Luhn's check on digits: every second digit from the right doubled, the sum of all digits a multiple of ten.

    >>> passes_luhn("4111111111111111"), passes_luhn("4111111111111112")
    (True, False)
    """
    doubled = [
        digit if i % 2 == 0 else sum(divmod(2 * digit, 10)) for i, digit in enumerate(_digits(text)[::-1])
    ]
    return sum(doubled) % 10 == 0


def passes_mod_97(text: str) -> bool:
    """The check of an IBAN (ISO 7064): the country and its two check digits moved to the end leave 1 over 97."""
    moved = text[4:] + text[:4]
    return int("".join(str(int(letter, 36)) for letter in moved)) % 97 == 1


def _is_day(day: int, month: int, year: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _is_day_of_some_century(day: str, month: str, year: str) -> bool:
    return any(_is_day(int(day), int(month), century + int(year)) for century in (1900, 2000))


def _is_social_security_number(text: str) -> bool:
    """The ranges that the United States issue: no 000, 666 or 9xx, and neither other part all zero."""
    return text[:3] not in ("000", "666") and text[0] != "9" and text[3:5] != "00" and text[5:] != "0000"


def _is_german_tax_number(text: str) -> bool:
    """One digit of the first ten occurs twice or three times and all others at most once; then ISO 7064, 11 and 10."""
    counts = sorted(text[:10].count(digit) for digit in set(text[:10]))
    if text[0] == "0" or counts[-1] not in (2, 3) or counts[:-1] != [1] * (len(counts) - 1):
        return False
    product = 10
    for digit in _digits(text[:10]):
        total = (digit + product) % 10 or 10
        product = 2 * total % 11
    return (11 - product) % 10 == int(text[10])


def _is_german_insurance_number(text: str) -> bool:
    """Area, day of birth, a letter (as two digits), number, and the sum of digits of weighted ones."""
    spelled = f"{text[:8]}{ord(text[8]) - 64:02d}{text[9:11]}"
    weights = (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)
    total = sum(sum(divmod(int(digit) * weight, 10)) for digit, weight in zip(spelled, weights, strict=True))
    return total % 10 == int(text[11])


def _is_french_number(text: str) -> bool:
    """What 13 digits leave over 97, taken from 97; Corsica's departments count as 19 and 18."""
    number = int(text[:13].replace("2A", "19").replace("2B", "18"))
    return 97 - number % 97 == int(text[13:])


DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


def _is_spanish_number(text: str) -> bool:
    number = text[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return DNI_LETTERS[int(number) % 23] == text[-1]


_ODD_PLACES = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        2 * (1, 0, 5, 7, 9, 13, 15, 17, 19, 21) + (2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)


def _is_italian_code(text: str) -> bool:
    """The codice fiscale: its last letter follows from the fifteen before it, by tables for odd and even places."""
    odd = sum(_ODD_PLACES[letter] for letter in text[:15:2])
    even = sum(int(letter) if letter.isdigit() else ord(letter) - 65 for letter in text[1:15:2])
    return chr(65 + (odd + even) % 26) == text[15]


def _is_british_health_number(text: str) -> bool:
    check = 11 - _weighted(text[:9], range(10, 1, -1)) % 11
    return check % 11 == int(text[9]) and check != 10


def _is_dutch_number(text: str) -> bool:
    return int(text) > 0 and _weighted(text, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def _is_belgian_number(text: str) -> bool:
    """What nine digits leave over 97, taken from 97; a 2 stands before those of people born since 2000."""
    return int(text[9:]) in (97 - int(text[:9]) % 97, 97 - int(f"2{text[:9]}") % 97)


def _is_swedish_number(text: str) -> bool:
    text = text.replace("+", "")[-10:]
    day = int(text[4:6]) % 60  # 60 more for people without residence
    return _is_day_of_some_century(f"{day}", text[2:4], text[:2]) and passes_luhn(text)


def _is_danish_number(text: str) -> bool:
    """A day, and the check by eleven, which numbers issued since 2007 may break: most of a column passes it."""
    is_day = _is_day_of_some_century(text[:2], text[2:4], text[4:6])
    return is_day and _weighted(text, (4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def _is_danish_number_with_dash(text: str) -> bool:
    return _is_day_of_some_century(text[:2], text[2:4], text[4:6])


def _is_finnish_number(text: str) -> bool:
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(text[:6] + text[-4:-1]) % 31] == text[-1]


def _is_norwegian_number(text: str) -> bool:
    first = _weighted(text, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) % 11
    return first == 0 and _weighted(text, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def _is_swiss_number(text: str) -> bool:
    return _weighted(text, (1, 3) * 6 + (1,)) % 10 == 0


def _is_austrian_number(text: str) -> bool:
    return _weighted(text, (3, 7, 9, 0, 5, 8, 4, 2, 1, 6)) % 11 == int(text[3])


def _is_polish_number(text: str) -> bool:
    month = int(text[2:4]) % 20  # 20 more for each century
    return 1 <= month <= 12 and _weighted(text, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def _is_portuguese_number(text: str) -> bool:
    check = 11 - _weighted(text[:8], range(9, 1, -1)) % 11
    return (0 if check > 9 else check) == int(text[8])


def _is_irish_number(text: str) -> bool:
    more = 9 * (ord(text[8]) - 64) if len(text) == 9 and text[8] != "W" else 0
    return "WABCDEFGHIJKLMNOPQRSTUV"[(_weighted(text[:7], range(8, 1, -1)) + more) % 23] == text[7]


def _is_czech_number(text: str) -> bool:
    month = int(text[2:4]) % 50 % 20  # 50 more for women, 20 more where numbers ran out
    return 1 <= month <= 12 and int(text) % 11 == 0


def _is_brazilian_number(text: str) -> bool:
    def check(n: int) -> int:
        return _weighted(text[:n], range(n + 1, 1, -1)) * 10 % 11 % 10

    return len(set(text)) > 1 and check(9) == int(text[9]) and check(10) == int(text[10])


def _is_chinese_number(text: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return "10X98765432"[_weighted(text[:17], weights) % 11] == text[17]


def _is_card(text: str) -> bool:
    return text[0] in "23456" and passes_luhn(text)


def _is_telephone_number(text: str) -> bool:
    """Nine digits or more: a day has eight."""
    return 9 <= sum(map(str.isdigit, text)) <= 15


# ---- the patterns --------------------------------------------------------------------------------------


def _pattern(plural: str, written: str, check: Callable[[str], bool] = bool) -> Pattern:
    return Pattern(plural, re.compile(written, re.ASCII | re.IGNORECASE), check)


_DAY = r"(0[1-9]|[12]\d|3[01])"
_MONTH = r"(0[1-9]|1[0-2])"

NUMBERS: dict[str, Pattern] = {
    "e-mail": _pattern("e-mail addresses", r"[^@\s,;]+@[^@\s,;]+\.[a-z]{2,}"),
    "IBAN": _pattern("IBANs", r"[a-z]{2}\d{2}(\s?[a-z\d]{4}){2,7}(\s?[a-z\d]{1,3})?", passes_mod_97),
    "telephone": _pattern(
        "telephone numbers",
        r"(\+[1-9]|00[1-9]\d?[\s/-])\d{0,2}[\s./-]*(\(0?\d{1,5}\))?([\s./-]*\d){6,13}"
        r"|\(?[2-9]\d{2}\)?[\s.-]\s?\d{3}[\s.-]\d{4}"
        r"|\(?0[1-9]\d{0,4}\)?[\s/-](?=(.*\d){6})[\d\s/-]{6,14}|0[1-9](\s\d{2}){4}",
        _is_telephone_number,
    ),
    "US": _pattern(
        "social security numbers (United States)", r"\d{3}-\d{2}-\d{4}", _is_social_security_number
    ),
    "DE": _pattern("tax numbers (Germany)", r"\d{2}\s?\d{3}\s?\d{3}\s?\d{3}", _is_german_tax_number),
    "DE insurance": _pattern(
        "pension insurance numbers (Germany)",
        rf"\d\d\s?{_DAY}{_MONTH}\d\d\s?[a-z]\s?\d{{3}}",
        _is_german_insurance_number,
    ),
    "FR": _pattern(
        "social security numbers (France)",
        r"[1-478]\s?\d\d\s?\d\d\s?(\d\d|2[ab])\s?\d{3}\s?\d{3}\s?\d\d",
        _is_french_number,
    ),
    "ES": _pattern("identity numbers (Spain)", r"(\d{8}|[xyz]-?\d{7})-?[a-z]", _is_spanish_number),
    "IT": _pattern(
        "tax codes (Italy)",
        r"[a-z]{6}[\dlmnp-v]{2}[a-ehlmpr-t][\dlmnp-v]{2}[a-z][\dlmnp-v]{3}[a-z]",
        _is_italian_code,
    ),
    "GB": _pattern(
        "health service numbers (United Kingdom)", r"\d{3}[\s-]?\d{3}[\s-]?\d{4}", _is_british_health_number
    ),
    "GB insurance": _pattern(
        "insurance numbers (United Kingdom)",
        r"(?!BG|GB|KN|NK|NT|TN|ZZ)[a-ceghj-prstw-z][a-ceghj-nprstw-z]\s?\d\d\s?\d\d\s?\d\d\s?[a-d]",
    ),
    "NL": _pattern("citizen service numbers (Netherlands)", r"\d{9}", _is_dutch_number),
    "BE": _pattern("national numbers (Belgium)", r"\d\d\.?\d\d\.?\d\d-?\d{3}[.-]?\d\d", _is_belgian_number),
    "SE": _pattern("personal numbers (Sweden)", r"(19|20)?\d{6}[-+]?\d{4}", _is_swedish_number),
    "DK": _pattern("personal numbers (Denmark)", rf"{_DAY}{_MONTH}\d{{6}}", _is_danish_number),
    "DK dash": _pattern(
        "personal numbers (Denmark)", rf"{_DAY}{_MONTH}\d\d-\d{{4}}", _is_danish_number_with_dash
    ),
    "FI": _pattern(
        "personal numbers (Finland)", rf"{_DAY}{_MONTH}\d\d[-+a-fu-y]\d{{3}}[\da-y]", _is_finnish_number
    ),
    "NO": _pattern("birth numbers (Norway)", r"\d{6}\s?\d{5}", _is_norwegian_number),
    "CH": _pattern("insurance numbers (Switzerland)", r"756\.?\d{4}\.?\d{4}\.?\d\d", _is_swiss_number),
    "AT": _pattern("insurance numbers (Austria)", rf"[1-9]\d{{3}}\s?{_DAY}{_MONTH}\d\d", _is_austrian_number),
    "PL": _pattern("personal numbers (Poland)", r"\d{11}", _is_polish_number),
    "PT": _pattern("tax numbers (Portugal)", r"[1-35689]\d{8}", _is_portuguese_number),
    "IE": _pattern("public service numbers (Ireland)", r"\d{7}[a-w][a-iw]?", _is_irish_number),
    "CZ": _pattern("birth numbers (Czechia, Slovakia)", r"\d{6}/?\d{4}", _is_czech_number),
    "CA": _pattern("insurance numbers (Canada)", r"[1-79]\d{2}[\s-]?\d{3}[\s-]?\d{3}", passes_luhn),
    "BR": _pattern("tax numbers (Brazil)", r"\d{3}\.?\d{3}\.?\d{3}-?\d\d", _is_brazilian_number),
    "CN": _pattern("identity numbers (China)", r"[1-8]\d{5}(19|20)\d{9}[\dx]", _is_chinese_number),
    "card": _pattern("card numbers", r"\d{4}([\s-]?\d{4}){3}|3[47]\d{2}[\s-]?\d{6}[\s-]?\d{5}", _is_card),
    "network": _pattern("network addresses", r"(\d{1,3}\.){3}\d{1,3}|([\da-f]{2}[:-]){5}[\da-f]{2}"),
}
"""Every kind that is known, by country where it is a country's."""
