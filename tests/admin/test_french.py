"""French: every text of ours is translated, and the pages say it."""

import gettext
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from tests.admin.pages import LIST, page_of, text_of
from tests.support.factories import make_thread, save, some_messages

ROOT = Path(__file__).parents[2]
CATALOGUE = ROOT / "mastra_memory" / "locale" / "fr" / "LC_MESSAGES" / "django"
IN_PYTHON = re.compile(r"""(?:\b_|gettext|ngettext)\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)""")
IN_TEMPLATE = re.compile(r"""{% translate (['"])(.*?)\1""")
BLOCKS = re.compile(
    r"{% blocktranslate([^%]*)%}(.*?)(?:{% plural %}(.*?))?{% endblocktranslate %}", re.S
)


def texts() -> Iterator[str]:
    """Everything that asks to be translated."""
    for path in (ROOT / "mastra_memory").rglob("*.py"):
        if "migrations" in path.parts:
            continue
        for found in IN_PYTHON.findall(path.read_text()):
            yield "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found))
    for path in (ROOT / "mastra_memory" / "templates").rglob("*.html"):
        page = path.read_text()
        yield from (text for _quote, text in IN_TEMPLATE.findall(page))
        for options, one, _many in BLOCKS.findall(page):
            if "trimmed" in options.split():
                one = " ".join(line.strip() for line in one.strip().splitlines())
            yield re.sub(r"{{ (\w+) }}", r"%(\1)s", one.replace("%", "%%").replace("%%}", "%}"))


def test_catalogue__has_every_text() -> None:
    with open(CATALOGUE.with_suffix(".mo"), "rb") as file:
        catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    known = {key[0] if isinstance(key, tuple) else key for key in catalogue}
    found = set(texts())
    assert len(found) > 300
    assert found - known == set()


def test_catalogue__leaves_nothing_empty_or_doubtful() -> None:
    source = CATALOGUE.with_suffix(".po").read_text()
    assert "fuzzy" not in source
    assert not re.search(r'msgstr(\[\d\])? ""\n\n', source.split("\n\n", 1)[1])


@pytest.mark.django_db
def test_pages__speak_french(admin: Client, settings: Settings) -> None:
    settings.LANGUAGE_CODE = "fr"
    thread = make_thread(title="Une conversation")
    save(some_messages(thread, 2))
    page = text_of(admin.get(page_of(thread.id)))
    for words in ("Suivante de ma file", "Étiquettes", "Utilisateur", "Ajouter la note"):
        assert words in page
    assert "1 conversation" in text_of(admin.get(LIST, {"status": "new"}))
    assert "Conversations commencées par jour" in text_of(admin.get(f"{LIST}team/"))
