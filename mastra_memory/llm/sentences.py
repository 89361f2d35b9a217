"""Split texts into sentences, and rank the sentences by how much they say.

A sentence says much if it has words that are rare in the conversation, names, numbers and dates, or
if somebody states something about themselves, decides, prefers or asks for something. The weights
are few and were set by hand; see docs/observational-memory.md for how well they do.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache

MAX_SENTENCES = 200
"""How many sentences of one text are considered."""

MAX_COMPARED = 50
"""With how many sentences that have a word in common another one is compared."""
REPETITION_SHARE = 0.85
"""The share of words in an earlier sentence from which another one is a repetition."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
_SENTENCE_END = re.compile(
    r"(?<=[.!?…؟।])[\"'”’)\]]*\s+(?=\S)|(?<=[。！？｡])[」』”）]*\s*|\s*\n\s*", re.UNICODE
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:Dr|Mr|Mrs|Ms|St|Prof|Sr|Jr|vs|e\.g|i\.e|No|approx)|\b[A-Z])\.$"
)
_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MARKUP = re.compile(r"^(?:[#>\s]+|[-*•+]\s+|\d{1,3}[.)]\s+)+|\*\*|__")
_TOKEN = re.compile(rf"[^\W_{_CJK}]+(?:['’][^\W\d_]+)*|[{_CJK}]+")
_IS_CJK = re.compile(f"[{_CJK}]")
_NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand"
    r"|million|first|second|third|twice|half)\b",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\b(?:yesterday|tomorrow|tonight|weekend|ago|(?:last|next|this) (?:week|month|year|night"
    r"|summer|winter|spring|fall|autumn)|january|february|april|june|july|august|september"
    r"|october|november|december|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    r"|[昨明后後]天|[昨明]日|年|月",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|me|mine|we|we're|we've|our|us)\b", re.I)
_STATEMENT = re.compile(
    r"\b(?:i|we)(?:'m|'ve|'d|'ll| am| was| were| have| had| will| just| also| recently| finally"
    r"| already| usually| always| never| still)* (?:\w+ed|\w+ing|got|went|made|took|bought|saw"
    r"|found|met|began|won|lost|left|spent|gave|told|heard|ran|wrote|read|live|work|own|use|have"
    r"|like|love|prefer|hate|enjoy|need|want|plan|decide|chose|am|was)\b|\bmy \w+",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(
    r"\b(?:prefer|favou?rite|love[sd]?|hate[sd]?|can't stand|allergic|decided?|going to|plan(?:ning"
    r"|s)? (?:to|on)|will|won't|must|need(?:s|ed)? to|from now on|instead|remember|always|never"
    r"|goal|dream|deadline|important)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^(?:please|can you|could you|would you|will you|help me|tell me|show me|find|give me|let me"
    r" know|i(?:'d| would) like|i need|i want|how (?:do|can|should) i|remind me|make|write|create"
    r"|book|add|fix|explain|what (?:is|are)|where (?:is|are|can))\b|\bplease\b|请|ください|bitte",
    re.IGNORECASE,
)
_REACTION = re.compile(
    r"^(?:(?:that|this|it)(?:'s| is| was| sounds| looks| must)|sounds|looks"
    r"|you(?:'re|'ve| are| have| should| must)?|your|glad|happy to|good|great|nice|cool|congrat"
    r"|keep|take care|enjoy|have a"
    r"|hope|thanks|thank|so (?:glad|happy|cool|great|nice)|i(?:'m| am) (?:so )?(?:glad|happy|proud"
    r"|excited) (?:for|to hear|that you|you)|can't wait to (?:hear|see)|let me know|wow|same here|i"
    r" (?:totally |really |completely )?(?:agree|understand|appreciate)|i bet|i'm sure)\b",
    re.IGNORECASE,
)
_OPENER = (
    r"^(?:(?:hey|hi|hello|wow|whoa|oh|ah|aw+|yeah|yep|yup|yay|well|so|thanks|thanks a lot|thank you"
    r"|sure|okay|ok|haha|lol|oops|cool|great|nice|awesome|amazing|absolutely|definitely|totally"
    r"|exactly|of course|for sure|by the way|btw|anyway|honestly|good (?:morning|evening)|um+|hmm+"
    r"|no problem|no worries|i know,? right|right|and|but)\b(?:,? (?:so|too|very) much)?"
    r"(?:,? {names})?\s*[,!.~:)-]*\s+)+(?=\S)"
)
_STOP_WORDS = frozenset(
    """a about actually after again all also always am amazing an and any anything are aren't
    around as ask at awesome away back be because been before being best better bet but by
    came can can't come cool could couldn't day definitely did didn't do does doesn't doing
    don't done each else enjoy even ever every everyone everything excited experience far
    feel feeling few first for from fun gets getting give glad go going gonna good got great
    guess had happy hard has have haven't he hear heard he's help helps her here hey him his
    hope how i i'd i'll i'm i've if important in inspiring into is isn't it it'll it's its
    just keep know last let let's life like little look looking looks lot lots love loved
    made make makes making many maybe me mean more most much must my need never next nice no
    not now of off oh ok okay on one only or other our out over own people pretty proud put
    really right said same say see seems seen she she's should so some someone something
    sometimes soon sound sounds still such super sure take taking talk tell than thank
    thanks that that'll that's the their them then there there's these they they're they've
    thing things think this those though thought through time to today together too totally
    try trying up us use used very want wanted wants was wasn't way we we'd we'll we're
    we've well went were what what's when where which while who why will wish with won't
    wonderful work world would wow yeah year yes yet you you'd you'll you're you've your""".split()
)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text without code blocks, markup and blank lines."""
    sentences: list[str] = []
    for part in _SENTENCE_END.split(_CODE_BLOCK.sub("\n", text)):
        sentence = " ".join(_MARKUP.sub("", part).split())
        if not sentence:
            continue
        if sentences and _ABBREVIATION.search(sentences[-1]):
            sentences[-1] += f" {sentence}"
        elif len(sentences) < MAX_SENTENCES:
            sentences.append(sentence)
    return sentences


@lru_cache(maxsize=64)
def _compile_opener(names: frozenset[str]) -> re.Pattern[str]:
    pattern = "|".join(map(re.escape, sorted(names))) or r"\b\B"
    return re.compile(_OPENER.replace("{names}", f"(?:{pattern})"), re.IGNORECASE)


def strip_opener(sentence: str, names: Collection[str] = ()) -> str:
    """Return the sentence without greetings and exclamations at its beginning."""
    stripped = _compile_opener(frozenset(names)).sub("", sentence)
    return stripped[:1].upper() + stripped[1:]


def list_words(text: str) -> list[str]:
    """Return the words in lower case. Text without spaces between words gives pairs of letters."""
    words: list[str] = []
    for token in _TOKEN.findall(text.lower().replace("’", "'")):
        if _IS_CJK.match(token):
            words += [token[i : i + 2] for i in range(max(len(token) - 1, 1))]
        else:
            words.append(stem(token))
    return words


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return an English word without its most common endings; other words hardly change."""
    word = word.removesuffix("'s")
    if word in _STOP_WORDS or len(word) < 5:
        return word
    for ending, replacement in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)] + replacement
    return word.removesuffix("e")


def is_common(word: str) -> bool:
    """Return whether a word is too common to tell anything."""
    return word in _STOP_WORDS or (len(word) < 2 and not word.isdigit() and word.isascii())


class Informativeness:
    """Score sentences by the words of a whole conversation."""

    def __init__(self, sentences: Iterable[str], names: Collection[str] = ()) -> None:
        """Count in how many of the sentences each word occurs.

        Args:
            sentences: All sentences of the conversation.
            names: The speakers. Their names say nothing.
        """
        self.frequencies: Counter[str] = Counter()
        self.total = 0
        for sentence in sentences:
            self.total += 1
            self.frequencies.update(set(list_words(sentence)))
        self.names = {word for name in names for word in list_words(name)}
        self.max_weight = math.log(1 + self.total)

    def weigh(self, word: str) -> float:
        """Return from 0, for a common word, to 1, for a word that occurs once."""
        if is_common(word) or word in self.names:
            return 0.0
        return math.log(1 + self.total / (self.frequencies[word] or 1)) / (self.max_weight or 1)

    def score(self, sentence: str) -> float:
        """Return about the number of things that a sentence says; small talk is below 2.5."""
        weight = sum(map(self.weigh, set(list_words(sentence))))
        weight += 1.0 * bool(_NUMBER.search(sentence)) + 1.0 * bool(_DATE.search(sentence))
        weight += min(2, count_names(sentence, self.names)) * 0.7
        weight += 0.5 * bool(_FIRST_PERSON.search(sentence))
        weight += 0.7 * bool(_STATEMENT.search(sentence))
        weight += 0.5 * bool(_PREFERENCE.search(sentence))
        if _REACTION.match(sentence):
            weight *= 0.6
        if is_question(sentence):
            weight *= 0.8 if is_request(sentence) else 0.45
        return weight


def count_names(sentence: str, excluded: Collection[str] = ()) -> int:
    """Return how many words are written like names: with a capital inside of a sentence."""
    words = re.findall(r"(?<=[\w,;:'’] )[\"“']?([A-Z][\w'’]+)", sentence)
    return len({word.lower() for word in words} - set(excluded) - {"i'm", "i've", "i'll", "i'd"})


def is_question(sentence: str) -> bool:
    """Return whether a sentence ends as a question."""
    return sentence.rstrip("\"'”’) ").endswith(("?", "？", "؟"))


def is_request(sentence: str) -> bool:
    """Return whether a sentence asks for something to be done."""
    return bool(_REQUEST.search(sentence))


def build_word_key(sentence: str) -> frozenset[str]:
    """Return the words by which repetitions are recognized."""
    words = list_words(sentence)
    return frozenset(word for word in words if not is_common(word)) or frozenset(words)


class RepetitionFilter:
    """Recognize sentences that say hardly more than an earlier one."""

    def __init__(self, sentences: Iterable[str] = ()) -> None:
        self._keys: list[frozenset[str]] = []
        self._positions: dict[str, list[int]] = {}
        for sentence in sentences:
            self.add(sentence)

    def add(self, sentence: str) -> bool:
        """Note a sentence. Return False if nearly all of its words are in an earlier one."""
        key = build_word_key(sentence)
        # Only the newest sentences with a word are compared, so that the time stays linear.
        counts = Counter(
            position for word in key for position in self._positions.get(word, ())[-MAX_COMPARED:]
        )
        if not key or any(count >= REPETITION_SHARE * len(key) for count in counts.values()):
            return False
        for word in key:
            self._positions.setdefault(word, []).append(len(self._keys))
        self._keys.append(key)
        return True
