"""The words with which each language speaks of time, for `patterns`.

Each entry is a regular expression without groups. Names of months and weekdays are those of
Django's translations. To add a language, add an entry and a line to the table in the tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWords:
    """The words of one language."""

    day: str
    week: str
    month: str
    year: str
    weekend: str
    days_ago: Mapping[str, int]
    """Expressions for a single day, and how many days ago it is: `yesterday` is 1."""
    numbers: Mapping[str, int]
    few: str
    """`a few` in "a few days ago"."""
    last: str
    """`last`, which stands before its noun."""
    last_follows: bool = False
    """Whether `last` may also stand after its noun."""
    this: str
    ago: tuple[str, str]
    """What comes before and after `2 weeks` in "two weeks ago". One of them is empty."""
    on: str
    """What comes before a day: `on`, `the`. A day of the month needs one of these words."""
    inside: str
    """What comes before a month or year: `in`, `during`."""
    since: str
    before: str
    after: str
    of: str
    """What may stand between a day and a month, or a month and a year."""
    ordinal: str
    """The ending of the day in `May 3rd`."""
    ordinal_is_required: bool = True
    """Whether `on 3` without an ending is not a date."""
    bare_weekday: bool = False
    """Whether a weekday without a preposition means a date."""
    nouns_are_capitalized: bool = False
    between: tuple[str, str]
    """`between` and `and`."""
    common: frozenset[str]
    """Frequent words. They show in which language a query is, and that the `3rd` in `on the 3rd we`
    is not followed by a noun."""
    ambiguous: frozenset[str] = frozenset()
    """Expressions that are frequent words of another language. They count only in a query of this
    language."""
    short_months: Mapping[str, int] = field(default_factory=dict)


def _number(words: str) -> dict[str, int]:
    """Number the words from 1."""
    return {word: number for number, word in enumerate(words.split(), 1)}


ENGLISH = TimeWords(
    day="days?",
    week="weeks?",
    month="months?",
    year="years?",
    weekend="weekends?",
    days_ago={
        "the day before yesterday": 2,
        "day before yesterday": 2,
        "yesterday": 1,
        "last night": 1,
        "today": 0,
        "tonight": 0,
        "this morning": 0,
        "this afternoon": 0,
        "this evening": 0,
    },
    numbers=_number("an? two three four five six seven eight nine ten eleven twelve")
    | {"one": 1, "(?:a )?couple(?: of)?": 2},
    few="(?:a )?few",
    last="last|past|previous",
    this="this",
    ago=("", "ago"),
    on="on the|on|since the|since|until the|by the|from the",
    inside="in|during|throughout|around|back in|early in|late in|in early|in late|in mid|by|until"
    "|in the month of|in the year",
    since="since",
    before="before(?: the)?",
    after="after(?: the)?",
    of="of",
    ordinal="st|nd|rd|th",
    between=("between|from", "and|to|until|till|through"),
    common=frozenset(
        (
            "the what did is was were when where who how of we you i my and to have has do does "
            "about with for at by from that which why her his their she he they in on"
        ).split()
    ),
    ambiguous=frozenset({"may", "march", "mar", "sun", "sat"}),
    short_months=_number("jan feb mar apr may jun jul aug sep oct nov dec") | {"sept": 9},
)
GERMAN = TimeWords(
    day="tag(?:en?)?",
    week="wochen?",
    month="monat(?:en?|s)?",
    year="jahr(?:en?|s)?",
    weekend="wochenendes?",
    days_ago={
        "vorgestern": 2,
        "gestern": 1,
        "letzte nacht": 1,
        "heute": 0,
    },
    numbers=_number("ein(?:e[mnrs]?)? zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"),
    few="ein paar|einigen",
    last="letzte[mnrs]?|vorige[mnrs]?|vergangene[mnrs]?",
    this="diese[mnrs]?",
    ago=("vor", ""),
    on="am|vom|seit dem|bis zum|den|der",
    inside="im|in|im jahre?|seit|während|anfang|mitte|ende|bis|vom?",
    since="seit",
    before="vor(?: dem)?",
    after="nach(?: dem)?",
    nouns_are_capitalized=True,
    of="des",
    ordinal=r"\.",
    between=("zwischen(?: dem)?|von|vom", "und(?: dem)?|bis(?: zum)?"),
    common=frozenset(
        (
            "der die das was wer wie wo wann ist war und hat haben wir ich mit nicht hier ein "
            "eine zu den dem im am sind gibt über von um bei für an des er sie"
        ).split()
    ),
)
FRENCH = TimeWords(
    day="jours?",
    week="semaines?",
    month="mois",
    year="ans?|années?",
    weekend="week-?ends?",
    days_ago={
        "avant-hier": 2,
        "hier": 1,
        "la nuit dernière": 1,
        "aujourd'hui": 0,
        "ce matin": 0,
        "ce soir": 0,
        "cet après-midi": 0,
    },
    numbers=_number("une? deux trois quatre cinq six sept huit neuf dix onze douze"),
    few="quelques",
    last="derni(?:ers?|ères?)|passée?s?|précédente?s?",
    this="ce|cet|cette",
    ago=(r"il y a|il ya|y a", ""),
    on="le|du|depuis le|jusqu'au|au",
    inside="en|au mois de|au mois d'|en l'an|pendant|depuis|fin|début|mi|courant|de|d'",
    since="depuis",
    before="avant(?: le)?",
    after="après(?: le)?",
    last_follows=True,
    of="de|du",
    ordinal="er",
    ordinal_is_required=False,
    bare_weekday=True,
    between=("entre(?: le)?|du|de", "et(?: le)?|au|à"),
    common=frozenset(
        (
            "le la les des un une que qui quoi est et nous vous je tu il elle on a avons dans "
            "pour pas où quand comment du qu'est-ce ce sur avec à au"
        ).split()
    ),
    ambiguous=frozenset({"hier"}),
)
SPANISH = TimeWords(
    day="días?",
    week="semanas?",
    month="mes(?:es)?",
    year="años?",
    weekend="fin(?:es)? de semana",
    days_ago={
        "anteayer": 2,
        "antes de ayer": 2,
        "ayer": 1,
        "anoche": 1,
        "hoy": 0,
        "esta mañana": 0,
        "esta tarde": 0,
        "esta noche": 0,
    },
    numbers=_number("un[ao]? dos tres cuatro cinco seis siete ocho nueve diez once doce")
    | {"(?:un )?par de": 2},
    few="un[oa]s",
    last="pasad[oa]s?|últim[oa]s?|anterior(?:es)?",
    this="est[ea]",
    ago=("hace", ""),
    on="el día|el|del|desde el|hasta el",
    inside="en|en el mes de|en el año|durante|desde|de",
    since="desde",
    before="antes del?",
    after="después del?",
    last_follows=True,
    of="de|del",
    ordinal="º",
    ordinal_is_required=False,
    bare_weekday=True,
    between=("entre(?: el)?|del|de", "y(?: el)?|al|a"),
    common=frozenset(
        (
            "el la los las qué que es y nos yo tú en por para con no dónde cuándo cómo un una se "
            "de del sobre a al"
        ).split()
    ),
)
ITALIAN = TimeWords(
    day="giorn[oi]",
    week="settiman[ae]",
    month="mes[ei]",
    year="ann[oi]",
    weekend="weekend|fine settimana",
    days_ago={
        "l'altro ieri": 2,
        "altro ieri": 2,
        "ieri": 1,
        "oggi": 0,
        "stamattina": 0,
        "stasera": 0,
    },
    numbers=_number("un[ao']? due tre quattro cinque sei sette otto nove dieci undici dodici"),
    few="qualche",
    last="scors[oaie]|passat[oaie]|ultim[oaie]",
    this="quest[oa]",
    ago=("", "fa"),
    on="il|del|dal|al",
    inside="a|in|nel|nel mese di|durante|da|di",
    since="da|dal",
    before="prima del?",
    after="dopo(?: il)?",
    last_follows=True,
    of="di|del",
    ordinal="º",
    ordinal_is_required=False,
    bare_weekday=True,
    between=("tra(?: il)?|fra(?: il)?|dal", "e(?: il)?|al"),
    common=frozenset(
        (
            "il lo la gli le che cosa è e di noi io tu in per con non dove quando come un una del "
            "a al su con"
        ).split()
    ),
)
PORTUGUESE = TimeWords(
    day="dias?",
    week="semanas?",
    month="m[eê]s(?:es)?",
    year="anos?",
    weekend="fi(?:m|ns) de semana",
    days_ago={"anteontem": 2, "ontem": 1, "hoje": 0, "esta manhã": 0, "esta noite": 0},
    numbers=_number("um|uma dois|duas três quatro cinco seis sete oito nove dez onze doze"),
    few="alguns|algumas",
    last="passad[oa]s?|últim[oa]s?|anterior(?:es)?",
    this="est[ea]|nest[ea]",
    ago=("há", "atrás"),
    on="no dia|dia|em|no|na|desde o dia|até o dia",
    inside="em|durante|desde|de|no mês de|no ano de",
    since="desde",
    before="antes d[eo]",
    after="depois d[eo]",
    last_follows=True,
    of="de|do",
    ordinal="º",
    ordinal_is_required=False,
    between=("entre(?: o dia)?|de", "e(?: o dia)?|a|até"),
    common=frozenset(
        (
            "o os as que é e nós eu você em por para com não onde quando como um uma do da sobre "
            "ao à na no"
        ).split()
    ),
)
DUTCH = TimeWords(
    day="dag(?:en)?",
    week="we(?:ek|ken)",
    month="maand(?:en)?",
    year="jaar|jaren",
    weekend="weekend",
    days_ago={
        "eergisteren": 2,
        "gisteren": 1,
        "gisteravond": 1,
        "vandaag": 0,
        "vanochtend": 0,
        "vanmorgen": 0,
        "vanavond": 0,
    },
    numbers=_number("één|een twee drie vier vijf zes zeven acht negen tien elf twaalf"),
    few="een paar|enkele",
    last="vorige?|afgelopen|laatste",
    this="deze|dit",
    ago=("", "geleden"),
    on="op de|op|sinds|tot|de",
    inside="in|tijdens|sinds|van|eind|begin|medio",
    since="sinds",
    before="voor",
    after="na",
    of="van",
    ordinal="e|de|ste",
    between=("tussen|van", "en|tot|tot en met"),
    common=frozenset(
        (
            "de het wat wie hoe waar wanneer is was en heeft hebben we ik met niet een te van "
            "over voor op in"
        ).split()
    ),
)

LANGUAGES: Mapping[str, TimeWords] = {
    "en": ENGLISH,
    "de": GERMAN,
    "fr": FRENCH,
    "es": SPANISH,
    "it": ITALIAN,
    "pt": PORTUGUESE,
    "nl": DUTCH,
}
"""The languages that `SEARCH_TIME_LANGUAGES` can list, by ISO 639-1 code."""
