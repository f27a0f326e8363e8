"""What a column's name suggests: a small dictionary of the words that tables about people use.

A name is only a hint. :mod:`sfumato.profiling.guess` weighs it against what the cells look like.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sfumato.table.identifiers import WordList, direct_word, is_about_persons, person_number, words_of
from sfumato.table.reading import POSTCODES


class NameMeaning(StrEnum):
    """What kind of thing a name says its column holds."""

    DIRECT = "names or reaches a person"
    KEY = "numbers persons or things"
    NOTE = "holds notes"
    WEIGHT = "weights the rows of a survey"
    SENSITIVE = "says what nobody else should learn"
    KNOWN = "says what others know of a person"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Hint:
    """What a name suggests, and the word in it that does."""

    meaning: NameMeaning
    word: str = ""
    otherwise: NameMeaning = NameMeaning.NONE  # of a direct or key meaning that the cells do not bear out
    is_person: bool = False  # a key of persons, not of things
    is_age: bool = False
    is_birth: bool = False
    is_postcode: bool = False
    is_amount: bool = False  # counts and measures, whose order means something
    is_label: bool = False  # codes of kinds, whose order means nothing


# A star marks the beginning of words; without one the word is meant, in the singular or plural. Among them
# are the column names of public census files (agep, schl, pincp, ...), which nobody could guess.
KEYS = "id uid uuid guid key pk mrn serialno caseno index rowid rownumber oid hash token barcode nino"
BARE_KEYS = ("patient", "person", "customer", "client", "respondent")

NOTES = "note comment remark description text freetext narrative memo message feedback"
WEIGHTS = "fnlwgt wgt pwgtp wgtp pweight sampleweight samplingweight instanceweight surveyweight finalweight"
WEIGHED = "sample sampling instance survey final person replicate design frequency population"

SENSITIVE = """
    disease diagnos* icd illness condition symptom hiv aids cancer tumor tumour diabet* pregnan* contracept*
    abort* fer fertil* medic* drug prescri* treatment therap* procedure surger* operation allerg* genetic*
    gene genom* biops* patholog* psych* mental depress* addict* alcohol* cholesterol glucose insulin lab
    laborator* health salary salaries income wage earn* pincp wagp pernp intp retp ssip povpip capital
    dividend stock asset wealth credit debt loan mortgage saving bank balance charge cost bill expens*
    payment hicov privcov pubcov fraud crime crimin* convict* arrest* offence offense prison* politic* party
    vote union orientation sexuality abuse suicid* outcome mortality died death gpa
"""
KNOWN = """
    age agep birth* dob born sex gender race racial rac1p ethnic* hispan* hisp zip zipcode postcode postal
    plz puma city town village county state province region district municip* borough country nation*
    citizen* cit pob native nativity locat* place area lat latitude lon lng longitude neighbo* residen*
    occup* occp job profession* industr* indp naics* employ* unemploy* esr workclass work* cow company
    organi* edu educat* school* schl eng degree fod1p elevel grade marital marriage married mar civil
    relation* relp relshipp household family children child kid spouse husband wife father mother parent
    partner religi* language lanx veteran military mil migra* migsp moved moving housing house home tenure
    hour wkhp wkwn jwmnp jwtrns height admission admitted admit discharge visit arrival car vehicle disab*
    dis ddrs dear deye dout dphy drem deaf blind tax smok*
"""
AGES = "age agep"
BIRTHS = "birth* dob born"
AMOUNTS = """
    age agep edu educat* school* year hour week month day number num count n children kid size height level
    elevel grade rank score salary salaries income wage earn* gain loss losses amount charge cost price
    balance loan debt rate share percent standard stay length duration distance schl wkhp wkwn jwmnp pincp
    wagp povpip persons dividend weight bmi pressure
"""
LABELS = """
    sex gender race racial rac1p ethnic* hispan* hisp state county region country citizen* cit occup* occp
    job industr* indp naics workclass worker cow marital mar status stat relation* relp relshipp religi*
    language code recode type class kind category group method flag nativity disab* dis dear deye dout dphy
    drem ddrs mil plan hicov privcov pubcov esr eng fer fod1p migsp jwtrns puma division origin
"""


_KEYS = WordList.of(KEYS)
_NOTES, _WEIGHTS, _WEIGHED = WordList.of(NOTES), WordList.of(WEIGHTS), WordList.of(WEIGHED)
_SENSITIVE, _KNOWN = WordList.of(SENSITIVE), WordList.of(KNOWN)
_AGES, _BIRTHS, _POSTCODES = WordList.of(AGES), WordList.of(BIRTHS), WordList.of(POSTCODES)
_AMOUNTS, _LABELS = WordList.of(AMOUNTS), WordList.of(LABELS)


def hint_of(name: str) -> Hint:
    """What a name suggests, the more dangerous meaning first.

    >>> [hint_of(name).meaning.name for name in ("patient_id", "marital-status", "Salary", "lastName", "x7")]
    ['KEY', 'KNOWN', 'SENSITIVE', 'DIRECT', 'NONE']
    """
    words = words_of(name)
    whole = "".join(words)
    meaning, word = _find_meaning(words, whole)
    return Hint(
        meaning,
        word,
        otherwise=_find_plain_meaning(words, whole)[0],
        is_person=is_about_persons(words),
        is_age=bool(_AGES.first(words)),
        is_birth=bool(_BIRTHS.first(words)),
        is_postcode=bool(_POSTCODES.first([*words, whole])),
        is_amount=bool(_AMOUNTS.first(words)),
        is_label=bool(_LABELS.first(words)),
    )


def _find_meaning(words: list[str], whole: str) -> tuple[NameMeaning, str]:
    if note := _NOTES.first(words):
        return NameMeaning.NOTE, note
    if direct := direct_word(words):
        return NameMeaning.DIRECT, direct
    if key := _find_key(words, whole):
        return NameMeaning.KEY, key
    if whole in _WEIGHTS or ("weight" in words and _WEIGHED.first(words)):
        return NameMeaning.WEIGHT, "weight" if "weight" in words else whole
    return _find_plain_meaning(words, whole)


def _find_plain_meaning(words: list[str], whole: str) -> tuple[NameMeaning, str]:
    if sensitive := _SENSITIVE.first(words):
        return NameMeaning.SENSITIVE, sensitive
    if known := _KNOWN.first([*words, whole]):
        return NameMeaning.KNOWN, known
    return NameMeaning.NONE, ""


def _find_key(words: list[str], whole: str) -> str:
    """A key by its own word, or a person (or what a person holds) with a number, or a person alone."""
    if key := _KEYS.first([*words, whole]) or person_number(words):
        return key
    return whole if whole in BARE_KEYS else ""
