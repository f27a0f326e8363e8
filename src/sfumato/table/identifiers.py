"""Direct identifiers: what leads straight to a person, by the name of a column and by its values.

Names of columns are known in English, German, French, Spanish and Italian. Values are known by their form and check
digits (:mod:`sfumato.table.person_numbers`), or by common words (:mod:`sfumato.table.person_texts`). Neither can be
complete: a file number of a hospital looks like any other code, and says nothing until somebody declares it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sfumato.table.person_numbers import NUMBERS
from sfumato.table.person_texts import are_given_names, are_person_names, are_postal_addresses, fold

# A star marks the beginning of words; without one the word is meant, in the singular or plural.
DIRECT = """
    ssn socialsecurity email mail phone telephone tel mobile cell fax firstname lastname surname forename fullname
    givenname middlename maidenname familyname username nickname login address street
    passport iban url website twitter facebook ipaddress ip
    mac imei photo fingerprint signature plate licenseplate
    vorname nachname familienname geburtsname zuname rufname telefon* handy* mobilnummer mobiltelefon festnetz*
    rufnummer anschrift adresse strasse hausnummer steuernummer steuerid sozialversicherungsnummer svnr
    rentenversicherungsnummer rvnr personalausweis* ausweisnummer reisepass* kontonummer autokennzeichen
    kfzkennzeichen nummernschild fuhrerschein* unterschrift benutzername emailadresse
    prenom* nom patronyme courriel mel portable rue nir numsecu passeport rib immatriculation pseudo
    apellido* correo correoelectronico telefono movil celular direccion domicilio calle dni nie nif curp pasaporte
    matricula firma
    nome cognome nominativo codicefiscale cellulare indirizzo passaporto targa cartaidentita pec
"""
NAMED = """
    first last full family given middle maiden mother father spouse contact doctor physician next kin sur
    completo pila paciente cliente madre padre empleado alumno famille usage naissance jeune fille
"""
NAME = ("name", "names", "nombre")
PERSONS = """
    patient person customer client member employee subject participant respondent household user student pupil
    insured policyholder beneficiary citizen voter applicant donor guest worker staff family
    patientin patienten kunde kunden mitglied mitglieds mitarbeiter* angestellte* versicherte* schuler studierende*
    teilnehmer* proband* bewohner burger klient* mandant personal haushalt haushalts
    salarie assure adherent eleve etudiant membre employe beneficiaire menage
    paciente cliente empleado asegurado afiliado alumno estudiante miembro hogar usuario
    paziente dipendente assicurato studente membro famiglia utente assistito
"""
PAPERS = """
    account insurance passport licence license card serial case encounter visit record medical mrn tax
    national nhs health claim registration device badge row line admission
    konto versicherung versicherungs fall akten beleg vertrag vertrags matrikel ausweis steuer
    dossier contrat sejour compte carte expediente cuenta tarjeta historia poliza cartella pratica conto tessera polizza
"""
NUMBERED = (
    "no",
    "nr",
    "nbr",
    "num",
    "number",
    "code",
    "ref",
    "id",
    "nummer",
    "numero",
    "codigo",
    "codice",
    "kennung",
)
NUMBER_FIRST = ("numero", "num", "nummer", "codigo", "codice")
PARTICLES = ("of", "de", "du", "des", "del", "della", "di", "le", "la", "el", "von", "der", "d")


@dataclass(frozen=True, slots=True)
class WordList:
    """A list of words and of beginnings of words."""

    whole: frozenset[str]
    stems: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> WordList:
        words = text.split()
        stems = tuple(word[:-1] for word in words if word.endswith("*"))
        return cls(frozenset(word for word in words if not word.endswith("*")), stems)

    def first(self, words: Sequence[str]) -> str:
        """The first of some words that the list has."""
        return next((word for word in words if word in self), "")

    def __contains__(self, word: str) -> bool:
        return (
            word in self.whole
            or word.removesuffix("s") in self.whole
            or word.startswith(self.stems or ("\0",))
        )


_DIRECT, _NAMED, _PERSONS = WordList.of(DIRECT), WordList.of(NAMED), WordList.of(PERSONS)
_PEOPLE_AND_PAPERS = WordList.of(PERSONS + PAPERS)


def words_of(name: str) -> list[str]:
    """The words of a name, folded, however it joins them, without numbers that count columns.

    >>> words_of("dateOfBirth"), words_of("native-country"), words_of("HIVStatus"), words_of("RAC1P")
    (['date', 'of', 'birth'], ['native', 'country'], ['hiv', 'status'], ['rac1p'])
    >>> words_of("address2"), words_of("phone_1"), words_of("Straße")
    (['address'], ['phone'], ['strasse'])
    """
    cases = r"[A-Z][A-Z\d]*(?![a-z])|[A-Z]?[^\W_A-Z]+"
    words = [word for part in re.findall(r"[^\W_]+", name) for word in re.findall(cases, part)]
    return [fold(word) for word in (re.sub(r"\d+$", "", word) for word in words) if word]


# ---- by the name of a column -----------------------------------------------------------------------------


def looks_like_identifier(name: str) -> str:
    """The words in a column's name that say that it leads straight to a person, or "".

    The name alone is little: ``has_phone`` is named so, too. Ask :func:`tells_many_apart` as well.

    >>> [looks_like_identifier(name) for name in ("e-mail", "lastName", "Versichertennummer", "hospital_name", "age")]
    ['mail', 'lastname', 'versichertennummer', '', '']
    """
    words = words_of(name)
    return direct_word(words) or person_number(words)


def identifying_word(name: str, n_distinct: int, n_rows: int) -> str:
    """The words in the name of a column that leads to a person and tells many apart, so must not pass; or ""."""
    return looks_like_identifier(name) if tells_many_apart(n_distinct, n_rows) else ""


def tells_many_apart(n_distinct: int, n_rows: int) -> bool:
    """Has a column so many values that a name such as ``phone`` can be true?"""
    return n_distinct > 20 or n_distinct > 0.1 * n_rows


def direct_word(words: Sequence[str]) -> str:
    """The word that says that a column names or reaches a person; two words may be one, as in contact_last_name.

    ``name`` alone is one, and the name of a person; the name of a country or a hospital is none.
    """
    pairs = (f"{first}{second}" for first, second in itertools.pairwise(words))
    if found := _DIRECT.first([*words, "".join(words), *pairs]):
        return found
    others = [word for word in words if word not in (*NAME, *PARTICLES)]
    is_named = any(word in NAME for word in words)
    is_person = all(word in _NAMED or word in _PERSONS for word in others)
    return "name" if is_named and is_person else ""


def person_number(words: Sequence[str]) -> str:
    """A person, or what a person holds, with a number: patient_no, customercode, numero de dossier."""
    words, whole = [word for word in words if word not in PARTICLES], "".join(words)
    if len(words) > 1 and words[-1] in NUMBERED and words[-2] in _PEOPLE_AND_PAPERS:
        return f"{words[-2]} {words[-1]}"
    if len(words) == 2 and words[0] in NUMBER_FIRST and words[1] in _PEOPLE_AND_PAPERS.whole:
        return f"{words[0]} {words[1]}"
    is_joined = any(whole.endswith(end) and whole.removesuffix(end) in _PEOPLE_AND_PAPERS for end in NUMBERED)
    return whole if is_joined else ""


def is_about_persons(words: Sequence[str]) -> bool:
    """Does a name speak of a person, and not of a thing?"""
    whole = "".join(words)
    return bool(_PERSONS.first([*words, *(whole.removesuffix(end) for end in NUMBERED)]))


# ---- by values -------------------------------------------------------------------------------------------

MOST_LOOKED_AT = 1_000
"""Distinct values that are looked at, evenly spread."""
FEWEST = 5
"""Distinct values of a column that can be known by them: fewer may fit by chance."""
MISFITS = 10
"""One value in so many may be something else."""


def content_identifier(values: pa.Array) -> str:
    """What the distinct values of a column are if they lead straight to a person, in the plural, or "".

    ``values`` are texts; numbers are given as they are written. Nine in ten must fit, check digits included.

    >>> content_identifier(pa.array(["a@b.org", "c@d.org", "e@f.org", "g@h.org", "i@j.org", "k@l.org"]))
    'e-mail addresses'
    >>> content_identifier(pa.array(["Berlin", "Paris", "Rom", "Wien", "Bern", "Oslo"]))
    ''
    """
    step = max(1, len(values) // MOST_LOOKED_AT)
    texts = [word.strip() for word in values[::step].to_pylist() if word and word.strip()]
    if len(texts) < FEWEST:
        return ""
    for pattern in NUMBERS.values():
        if _most_fit(pattern.fits, texts):
            return pattern.plural
    if _most_fit(_reaches, texts):
        return "e-mail addresses, telephone numbers and accounts"
    if are_postal_addresses(texts):
        return "postal addresses"
    if are_person_names(texts):
        return "names of people"
    return "given names of people" if len(texts) > 2 * FEWEST and are_given_names(texts) else ""


def _reaches(text: str) -> bool:
    """Is it a way to reach a person, such as a column of contacts holds several of?"""
    return any(NUMBERS[kind].fits(text) for kind in ("e-mail", "telephone", "IBAN"))


def _most_fit(fits: Callable[[str], bool], texts: Sequence[str]) -> bool:
    """Is it so of nine texts in ten? That it is not shows long before all are looked at."""
    left = len(texts) // MISFITS
    for text in texts:
        left -= not fits(text)
        if left < 0:
            return False
    return True
