"""Every page of our admin in a browser: no accessibility error, nothing that sticks out."""

import pytest

from tests.admin.every_page import PAGES, addresses_of, make_everything, own_export
from tests.browser.conftest import Person, SignIn

FORMS_ONLY = {
    "thread_do",
    "thread_memory",
    "thread_export_one",
    "thread_views",
    "observationalrecord_do",
}
FILES = {"thread_export", "thread_file", "thread_text", "thread_presence"}
"""Addresses that are not pages."""


def shown(person: Person) -> list[str]:
    """The addresses of pages, in every way they can be asked for."""
    export = own_export(person.user)
    names = [name for name in PAGES if name not in FORMS_ONLY | FILES]
    found = [address for name in names for address in addresses_of(name, export)]
    return [address for address in found if "part=1" not in address]


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_pages__have_no_serious_accessibility_fault(sign_in: SignIn, colours: str) -> None:
    lead = sign_in("lena", "lead", color_scheme=colours)
    make_everything()
    errors, seen = [], 0
    for address in shown(lead):
        if lead.open(address).status != 200:
            lead.errors.clear()
            continue  # read-only rows cannot be added or deleted
        seen += 1
        errors += [f"{address}: {error}" for error in lead.errors]
        errors += [f"{address}: {error}" for error in lead.find_accessibility_errors()]
        lead.errors.clear()  # axe tries styles of its own
    assert seen > 25
    assert not errors, "\n".join(errors)


def test_pages__fit_a_telephone(sign_in: SignIn) -> None:
    lead = sign_in("lena", "lead", viewport={"width": 390, "height": 844}, has_touch=True)
    make_everything()
    wide = {}
    for address in shown(lead):
        if lead.open(address).status == 200 and lead.width() > 390:
            wide[address] = lead.width()
    assert wide == {}
