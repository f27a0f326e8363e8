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
# Words are in small letters without accents. After those in English come German, French, Spanish and Italian.
KEYS = """
    id uid uuid guid key pk mrn serialno caseno index rowid rownumber oid hash token barcode nino
    personalnummer matrikelnummer aktenzeichen fallnummer
    identifiant matricule cle ipp
    identificador expediente clave nhc folio
    identificativo identificatore chiave matricola
"""
BARE_NAMES = ("first", "last", "middle", "given", "family")
"""Texts under these names are those of people; numbers are not."""
BARE_KEYS = ("patient", "person", "customer", "client", "respondent", "paciente", "paziente", "kunde")

NOTES = """
    note comment remark description text freetext narrative memo message feedback
    notiz* bemerkung* kommentar* anmerkung* freitext beschreibung* arztbrief befundtext
    remarque* commentaire* nota notas observacion* comentario* osservazion* commento commenti anamnes*
"""
WEIGHTS = "fnlwgt wgt pwgtp wgtp pweight sampleweight samplingweight instanceweight surveyweight finalweight"
WEIGHED = "sample sampling instance survey final person replicate design frequency population"

SENSITIVE = """
    disease diagnos* icd illness condition symptom hiv aids cancer tumor tumour diabet* pregnan* contracept*
    abort* fer fertil* medicat* medicin* medicament* drug prescri* treatment therap* procedure surger* operation allerg*
    genetic* gene genom* biops* patholog* psych* mental depress* addict* alcohol* cholesterol glucose insulin lab
    laborator* health salary salaries income wage earn* pincp wagp pernp intp retp ssip povpip capital
    dividend stock asset wealth credit debt loan mortgage saving bank balance charge cost bill expens*
    payment hicov privcov pubcov fraud crime crimin* convict* arrest* offence offense prison* politic* party
    vote union orientation sexuality abuse suicid* outcome mortality died death gpa
    hauptdiagnos* nebendiagnos* aufnahmediagnos* entlassungsdiagnos* einweisungsdiagnos* grunderkrankung*
    krankheit* erkrankung* arznei* therapie* behandlung* schwanger* gehalt* lohn* einkommen* vermogen* schulden
    kredit* darlehen* kontostand entgelt* brutto* netto* verdienst* straftat* vorstraf* partei* gewerkschaft*
    todesursache verstorben blutdruck blutgruppe laborwert* befund* kosten jahresgehalt monatsgehalt stundenlohn
    maladie* traitement* ordonnance* salaire* revenu* remuneration* patrimoine dette* pret cout* deces syndicat*
    parti grossesse*
    enfermedad* tratamiento* receta salario sueldo* ingresos renta deuda* prestamo* saldo coste* costo* gasto*
    embarazo sindicato partido delito* fallecid*
    malattia* terapia farmac* stipendio* reddito* retribuzion* debito* prestito* spesa decesso decedut* gravidanza
    sindacato partito reato
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
    alter geburt* geboren geschlecht* konfession* nationalitat* staatsangehorig* staatsburger* herkunft* wohnort*
    ort stadt gemeinde* kreis landkreis* bundesland land bezirk* postleitzahl* beruf* tatigkeit* branche* abteilung*
    arbeitgeber* bildung* schulabschluss abschluss* ausbildung* familienstand* verheiratet kinder* kinderzahl
    sprache* eintritt* austritt* aufnahme* entlassung* stellung* vollzeit teilzeit* wochenstunden standort* filiale*
    steuerklasse* korpergrosse korpergewicht krankenkasse* krankenversicherung raucher* schicht schwerbehind* behinder*
    naissance* sexe genre civilite pays ville commune departement* codepostal metier* emploi* employeur* secteur*
    diplome* etude* matrimonial* marie enfant* menage logement* langue* entree sortie arrivee depart csp taille
    fumeur* handicap*
    edad nacimient* nacido sexo genero nacionalidad* pais ciudad municipio* provincia* codigopostal ocupacion* oficio*
    empleo* empresa* estudio* educacion* escolar* civil casado hijo* hogar vivienda* idioma* ingreso alta estatura
    fumador* delegacion
    eta nascita nato sesso nazionalita* cittadinanza* paese citta comune regione* professione* occupazione* mestiere
    lavoro* azienda* istruzione* titolostudio statocivile coniugato figli* abitazione* lingua ricovero* dimissione*
    altezza fumatore*
"""
COUNTED = ("number", "num", "n", "count", "anzahl", "nombre", "nb", "numero", "nummer")
AGES = "age agep alter edad eta"
BIRTHS = "birth* dob born geburt* geboren naissance* nacimient* nascita"
AMOUNTS = """
    age agep edu educat* school* year hour week month day number num count n children kid size height level
    elevel grade rank score salary salaries income wage earn* gain loss losses amount charge cost price
    balance loan debt rate share percent standard stay length duration distance schl wkhp wkwn jwmnp pincp
    wagp povpip persons dividend weight bmi pressure
    alter jahr* stunde* wochenstunden monat* tage anzahl zahl kinder kinderzahl grosse korpergrosse gewicht gehalt*
    lohn* einkommen betrag kosten dauer prozent punkte
    annee* heure* mois jours nombre enfants taille poids salaire* revenu* montant cout* duree*
    ano anos edad hora horas meses dias numero hijos estatura talla peso salario sueldo ingresos importe duracion
    eta anni ore mesi giorni figli altezza stipendio reddito importo costo durata
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
    if direct := direct_word(words) or (whole if whole in BARE_NAMES else ""):
        return NameMeaning.DIRECT, direct
    if key := _find_key(words, whole):
        return NameMeaning.KEY, key
    if whole in _WEIGHTS or ("weight" in words and _WEIGHED.first(words)):
        return NameMeaning.WEIGHT, "weight" if "weight" in words else whole
    return _find_plain_meaning(words, whole)


def _find_plain_meaning(words: list[str], whole: str) -> tuple[NameMeaning, str]:
    if words[:1] and words[0] in COUNTED:  # how many prescriptions there were is no secret of its own
        words = [word for word in words if word not in _SENSITIVE]
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
