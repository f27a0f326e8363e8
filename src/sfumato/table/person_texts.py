"""Names of people and postal addresses, recognized by common words in five languages.

These are guesses about a whole column, never about one cell: a column holds names if most of its values have the form
of one and many hold a given name that is common in English, German, French, Spanish or Italian. Family names alone, rare
names and names of other languages are not found; neither is an address without a word for a street.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

GIVEN = """
    aaron adam adrian agnes aisha alan albert alberto alejandra alejandro alessandra alessandro alessia alex
    alexander alexandra alexandre alexis alfonso alfred alfredo ali alice alicia alina amanda amelie amy ana
    anais andre andrea andreas andres andrew angel angela anita anja anke ann anna anne annette anthony antje
    antoine antonella antonia antonio arnaud arthur aurelie barbara beate beatrice beatriz benjamin bernard
    bernd bernhard betty bianca birgit brandon brenda brian brigitte bruno camille carl carla carlo carlos
    carmen carol caroline catherine cecile celine chantal charles charlotte chiara chloe christa christian
    christina christine christoph christophe christopher cindy claire clara claude claudia claudio clement
    concepcion cristian cristina cynthia daniel daniela daniele daria david davide deborah denis denise dennis
    diana diane diego dieter dirk dolores dominik dominique donald donna dorothea dorothy douglas eduardo edward
    elena elias elisa elisabeth elizabeth elke ella emanuela emil emilia emilie emily emma emmanuel enrico
    enrique eric erica erik erika ernst esther eugene eva evelyn fabian fabien fabio fabrizio fatima federica
    federico felipe felix ferdinand fernando filippo finn florence florian frances francesca francesco francisco
    franck francois francoise frank franz frederic friedrich gabriel gabriela gabriele gabriella gary georg
    george georges gerald gerard gerd gerhard gerrit gertrud giacomo gianluca giorgio giovanna giovanni giulia
    giuseppe gloria gonzalo gregory greta guido guillaume guillermo gunter gunther gustav hanna hannah hannes
    hans harald harold heather hector heide heidi heike heiko heiner heinrich heinz helen helena helene helga
    helmut henri henry herbert hermann holger horst hubert hugo ignacio ilaria ilse ines inge ingo ingrid irene
    irma isabel isabella isabelle jack jacob jacqueline jacques jakob james jan jana janet janine jason javier
    jean jeanne jeff jeffrey jennifer jeremy jerome jerry jesse jessica jesus joachim joan johann johanna
    johannes john jonas jonathan jordan jorge jose josef joseph joshua joyce juan juana juergen jules julia
    julian juliane julie julien jurgen justin jutta karen karin karl karsten katharina katherine kathleen
    kathrin katja katrin kelly kenneth kerstin kevin kimberly klara klaus konrad kurt kyle lara larry lars laura
    laurence laurent lea lena leo leon leonardo leonie linda lisa lorenzo louis louise luc luca lucas lucia
    luciana lucie ludwig luis luisa luise lukas lutz manfred manuel manuela marc marcel marco marcus margaret
    margarethe maria marianne marie marina mario marion mark marko markus marlene marta martha martin martina
    martine mary massimo mateo mathias matteo matthew matthias maurice mauro max maximilian melanie melissa
    mercedes mia michael michaela michel michele michelle miguel milena mohamed mohammed monica monika monique
    muhammad nadia nadine nancy natalia natalie nathalie nathan nicholas nicola nicolas nicole niklas nils nina
    noah nora norbert oksana olaf oliver olivia olivier oscar otto pablo pamela paola paolo pascal patricia
    patrick patrizia paul paula pedro peter petra philip philipp philippe pia pierre pietro pilar rachel rafael
    raimund rainer ralf ralph ramon raquel raul raymond rebecca regina reinhard reinhold renate rene ricardo
    riccardo richard rita robert roberta roberto roger roland rolf romain ronald rosa rosario rose roswitha
    ruben rudolf ruth ryan sabine salvatore samantha samuel sandra sandrine sara sarah sascha scott sean
    sebastian sebastien serena serge sergio sharon silke silvia simon simona simone sofia sonja sophia sophie
    stefan stefania stefanie stefano steffen stephan stephane stephanie stephen steve steven susan susana
    susanne sven svenja sylvia sylvie tanja tatjana teresa theo theodor theresa thierry thomas thorsten tim timo
    timothy tina tobias tom torsten tyler ulrich ulrike ursula ute uwe valentina valeria valerie vanessa vera
    veronica veronika veronique vicente victor victoria vincent vincenzo virginia virginie viviane volker walter
    waltraud wendy werner wilhelm willi william wolfgang xavier yann yannick yves yvonne zoe
"""
_GIVEN = frozenset(GIVEN.split())

NO_PERSON = """
    san santa santo saint sainte st sankt sao hospital clinic klinik klinikum hopital clinique clinica ospedale
    center centre zentrum centro school schule college university universitat universite universidad universita
    institute church company inc ltd llc gmbh ag spa county city town village island bay beach hotel restaurant
    park general medical university
"""
"""Words of towns and institutions, which are often called after people."""

_NO_PERSON = frozenset(NO_PERSON.split())

_STREET = re.compile(
    r"\b(street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|highway|hwy|rue|chemin|impasse|quai|allee"
    r"|calle|avenida|avda|paseo|plaza|carrer|via|viale|piazza|corso|vicolo)\b"
    r"|(strasse|str|weg|platz|gasse|allee|damm|ufer|ring)\b"
)
_NUMBER = re.compile(r"\b\d{1,5}\s?[a-z]?\b")
_WORDS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_PERSON = re.compile(r"([^\W\d_]+\.?)(['’-][^\W\d_]+)*(,?\s+([^\W\d_]+\.?)(['’-][^\W\d_]+)*){1,4}")


def fold(text: str) -> str:
    """A text in small letters without accents, as lists of words have them.

    >>> fold("Straße"), fold("Größe"), fold("Prénom")
    ('strasse', 'grosse', 'prenom')
    """
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def are_person_names(texts: Sequence[str]) -> bool:
    """Do most texts look like the full name of a person, and does one in three hold a common given name?

    >>> are_person_names(["Anna Berg", "Mr. John Q. Public", "García, Luis", "Zhu Li", "Li, Mei"])
    True
    >>> are_person_names(["San Jose", "New York", "Los Angeles", "Santa Fe", "Salt Lake City"])
    False
    """
    words = [_WORDS.findall(fold(text)) for text in texts if _PERSON.fullmatch(text.strip())]
    is_shaped = len(words) >= 0.8 * len(texts)
    return is_shaped and sum(map(_holds_given_name, words)) >= len(texts) / 3


def _holds_given_name(words: Sequence[str]) -> bool:
    return not _NO_PERSON.intersection(words) and not _GIVEN.isdisjoint(words)


MANY_NAMES, SOME_NAMES = 40, 0.05
"""So many common given names, and such a share of all texts, tell of rarer ones beside them; towns have fewer."""


def are_given_names(texts: Sequence[str]) -> bool:
    """Are most texts a common given name, alone, or are all of them single words and many of them common given names?

    >>> are_given_names(["Anna", "Luis", "Zora"]), are_given_names(["Paris", "Florence", "Lyon", "Siena", "Adelaide"])
    (True, False)
    """
    n_names = sum(fold(text.strip()) in _GIVEN for text in texts)
    if n_names >= 0.6 * len(texts):
        return True
    n_words = sum(bool(_WORDS.fullmatch(text.strip())) for text in texts)
    return n_names >= max(MANY_NAMES, SOME_NAMES * len(texts)) and n_words >= 0.9 * len(texts)


def are_postal_addresses(texts: Sequence[str]) -> bool:
    """Do most texts hold a word for a street and a number?

    >>> are_postal_addresses(["12 Main Street", "Hauptstr. 5a", "3 rue de la Paix", "Calle Mayor 7", "Via Roma 1"])
    True
    """
    folded = [fold(text) for text in texts]
    return sum(bool(_STREET.search(text) and _NUMBER.search(text)) for text in folded) >= 0.7 * len(texts)
