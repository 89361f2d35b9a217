"""Masking: what is found, what is left alone, and how long it takes."""

import time

import pytest

from mastra_memory import redaction


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
def test_mask__finds_and_leaves_alone(text: str, masked: str) -> None:
    assert redaction.mask()(text) == masked


def test_mask__is_quick_on_hostile_text() -> None:
    started = time.process_time()
    for text in ("a" * 400_000, "1 " * 200_000, "a@" * 200_000, "+1" * 200_000, "a.a" * 150_000):
        redaction.mask()(text)
    assert time.process_time() - started < 5


def test_masked_json__masks_keys_and_values_at_every_depth() -> None:
    value = {"a@b.example": [{"x": "a@b.example", "n": 1}], "ok": None}
    assert redaction.masked_json(value, redaction.mask()) == {
        "[email]": [{"x": "[email]", "n": 1}],
        "ok": None,
    }
