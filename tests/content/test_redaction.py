"""Masking of personal data: what is replaced, what stays, and in what time."""

import pytest

from mastra_memory.content import redaction
from tests.support.waiting import fail_after


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("write to anna.k+x@mail.example.co.uk!", "write to [email]!"),
        ("call +49 30 901820 or (030) 9018 20", "call [phone] or [phone]"),
        ("call 0048601234567", "call [phone]"),
        ("card 4111-1111-1111-1111.", "card [card]."),
        ("order 4111111111111112 stays", "order 4111111111111112 stays"),
        ("on 2026-11-30 at 10:15, 12 of 50", "on 2026-11-30 at 10:15, 12 of 50"),
        ("v1.2.3, F-20418, 127.0.0.1, €1,299.00", "v1.2.3, F-20418, 127.0.0.1, €1,299.00"),
        ("@handle and a @ b", "@handle and a @ b"),
    ],
)
def test_mask__replaces_addresses_and_numbers_only(text: str, masked: str) -> None:
    assert redaction.get_mask()(text) == masked


@pytest.mark.parametrize("unit", ["a", "1 ", "a@", "+1", "a.a"])
def test_mask__takes_linear_time(unit: str) -> None:
    with fail_after():
        redaction.get_mask()(unit * 200_000)


def test_mask_json__masks_keys_and_values_at_every_depth() -> None:
    value = {"a@b.example": [{"x": "a@b.example", "n": 1}], "ok": None}
    assert redaction.mask_json(value, redaction.get_mask()) == {
        "[email]": [{"x": "[email]", "n": 1}],
        "ok": None,
    }


def test_mask_json__masks_numbers() -> None:
    value = {"card": 4111111111111111, "float": 4111111111111111.0, "order": 4111111111111112}
    assert redaction.mask_json(value, redaction.get_mask()) == {
        "card": "[card]",
        "float": "[card]",
        "order": 4111111111111112,
    }


def test_mask_json__leaves_times_and_fractions() -> None:
    times = list(range(1_733_000_000_000, 1_733_000_000_100))
    values = [*times, 0.12345678901234568, True, None, 1e300, 7]
    assert redaction.mask_json(values, redaction.get_mask()) == values


@pytest.mark.parametrize("offset", range(-20, 3, 2))
def test_mask__finds_values_across_windows(offset: int) -> None:
    before = "\n" * (redaction.WINDOW_CHARS + offset)
    for secret, name in (("+48 601 234 567", "phone"), ("4111 1111 1111 1111", "card")):
        assert redaction.get_mask()(f"{before}{secret} end") == f"{before}[{name}] end"


@pytest.mark.parametrize("length", range(180, 201))
def test_mask_beginning__masks_before_it_cuts(length: int) -> None:
    text = "x " * (length // 2) + " anna@example.com" + " y" * 5_000
    beginning = redaction.mask_beginning(text, redaction.get_mask(), 200)
    assert beginning == redaction.get_mask()(text)[:200]
    assert "anna" not in beginning


def test_mask_beginning__never_shows_a_part_of_a_value() -> None:
    address = f"{'a' * 60}@{'.'.join(['b' * 60] * 9)}"
    for text in (f"{address} " * 40, "1 " * 1_000 + address * 2):
        for limit in (100, 1_000, 2_000):
            beginning = redaction.mask_beginning(text, redaction.get_mask(), limit)
            assert "aaa" not in beginning and "bbb" not in beginning
