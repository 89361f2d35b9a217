"""Split texts and queries into words, by the properties that Unicode gives each character.

PostgreSQL only reduces the words to stems and indexes them. Its own parser depends on the locale of
the server: with the locale `C` it takes every character above ASCII for a letter, so that a word
next to a dash, a curly quotation mark or an emoji is not found.

The rules, which docs/search.md explains to users:

- A word is a run of letters, marks and digits. Everything else separates words.
- Case, accents, the vowel points of Arabic and Hebrew, and invisible characters are removed.
  Characters that differ only in form, such as full-width letters, become the usual ones.
- In scripts without spaces between words, each character is a word, so that a part of a text is
  found as a phrase. The same applies to Korean, where a word continues with its particles.
- An emoji is a word. `C++` and `C#` have a second word, which `C` alone does not have.
"""

import unicodedata
from collections.abc import Iterator

import regex

MAX_CHARACTERS = 100_000
"""Characters of a text that are indexed. A `tsvector` is limited to 1 MB."""
FIELD_MARK = "ʘ"
"""The letter before each word of a field, see `fields`. In a user's text it is a separator."""

# LB=SA has the scripts of South East Asia: Thai, Lao, Burmese, Khmer and others. The characters at
# the end belong to several scripts.
_UNSPACED = r"[\p{LB=SA}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\u30fc\u3005-\u3007]"
_UNSPACED_CHARACTER = regex.compile(rf"({_UNSPACED})")
_SEPARATORS = regex.compile(r"[^\p{L}\p{M}\p{N}]+")
_EMOJI = regex.compile(r"\p{Emoji_Presentation}")
_NAME_WITH_SIGN = regex.compile(
    r"(?<![A-Za-z0-9])(?:([A-Za-z0-9]{1,30})\+\+|([A-Za-z])#(?![A-Za-z0-9]))"
)
_SPAN = regex.compile(
    rf"{_UNSPACED}|\p{{Emoji_Presentation}}|(?:(?!{_UNSPACED})[\p{{L}}\p{{M}}\p{{N}}\p{{Cf}}])+"
)

_REMOVED_MARKS = [
    range(0x300, 0x370),  # accents
    range(0x591, 0x5C8),  # Hebrew points
    range(0x610, 0x61B),  # Arabic vowels and signs
    range(0x640, 0x641),  # the Arabic tatweel, which only makes a word longer
    range(0x64B, 0x660),
    range(0x670, 0x671),
    range(0x6D6, 0x6EE),
    range(0x1AB0, 0x1B00),
    range(0x1DC0, 0x1E00),
    range(0x20D0, 0x2100),  # such as the frame of keycaps
    range(0xFE00, 0xFE10),  # variation selectors
    range(0xFE20, 0xFE30),
    range(0xE0100, 0xE01F0),
]
# Letters with a stroke or without a dot have no decomposition. Persian has its own forms of two
# Arabic letters, and keyboards mix them.
_LETTERS = {
    "\u0131": "i", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ħ": "h", "Ħ": "H",
    "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ی": "ي", "ک": "ك", FIELD_MARK: " ",
}  # fmt: skip


def _build_table() -> dict[int, str | None]:
    """Return what replaces single characters, for `str.translate`."""
    table: dict[int, str | None] = {}
    # Above U+1FFFF there are no decimal digits, and the only invisible characters are the tags.
    for code in (*range(128, 0x20000), *range(0xE0000, 0xE0080)):
        category = unicodedata.category(chr(code))
        if category == "Nd":
            table[code] = str(unicodedata.decimal(chr(code)))
        elif category == "Cf":
            table[code] = None
    table |= {ord(letter): replacement for letter, replacement in _LETTERS.items()}
    table |= {code: None for marks in _REMOVED_MARKS for code in marks}
    # Punctuation among the Hebrew points, and the space of zero width that separates words.
    return table | dict.fromkeys([0x5BE, 0x5C0, 0x5C3, 0x5C6, 0x6DD, 0x200B], " ")


_TABLE = _build_table()
_ASCII_TABLE = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}


def normalize_words(text: str) -> str:
    """Return the words of the text in lower case, separated by spaces.

    At most `MAX_CHARACTERS` characters of the text are read. The result has only characters that
    PostgreSQL's parser takes for parts of words in every locale, so that it splits at the spaces.
    """
    text = text[:MAX_CHARACTERS]
    if "++" in text or "#" in text:
        text = _NAME_WITH_SIGN.sub(_replace_name_with_sign, text)
    if text.isascii():
        return text.translate(_ASCII_TABLE)
    text = unicodedata.normalize("NFD", text).translate(_TABLE)
    text = _EMOJI.sub(_name_emoji, text)
    text = _SEPARATORS.sub(" ", text)
    if not unicodedata.is_normalized("NFKC", text):
        # Some characters, such as fractions, consist of several words.
        text = _SEPARATORS.sub(" ", unicodedata.normalize("NFKC", text))
    spaced: str = _UNSPACED_CHARACTER.sub(r" \1 ", text.casefold())
    return spaced


def _replace_name_with_sign(name: "regex.Match[str]") -> str:
    """Return `C cplusplus` for `C++`, and `C csharp` for `C#`."""
    word, sign = (name[1], "plusplus") if name[1] else (name[2], "sharp")
    return f"{word} {word}{sign} "


def _name_emoji(emoji: "regex.Match[str]") -> str:
    return f" emoji{ord(emoji[0]):x} "


def is_unspaced(word: str) -> bool:
    """Return whether a normalized word is a character of a script without spaces."""
    return len(word) == 1 and _UNSPACED_CHARACTER.match(word) is not None


def iter_spans(text: str) -> Iterator["regex.Match[str]"]:
    """Yield the position of each word in the text, as it is before `normalize_words`."""
    yield from _SPAN.finditer(text[:MAX_CHARACTERS])
