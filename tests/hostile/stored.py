"""Attacks by what is stored: messages, titles and working memories that staff then open."""

import json
from collections.abc import Sequence
from typing import Any

from tests.hostile.attack import LIMIT, SHOWN, Attack, Send, message_of
from tests.hostile.target import ADMIN, MB, Reply, Target


def build_page_attacks(
    name: str,
    *contents: Any,
    seconds: float = 3,
    pages: Sequence[str] = ("change",),
    long: bool = False,
) -> list[Attack]:
    """Attacks by stored messages on pages of the admin."""
    thread_id = f"shown {name}"
    return [
        Attack(
            f"{page}: {name}",
            lambda target, page=page: target.conversation(thread_id, page),  # type: ignore[misc]
            SHOWN,
            seconds,
            prepare=lambda target: target.store(thread_id, *contents),
            long=long,
        )
        for page in pages
    ]


BOTH_PAGES = ("change", "print")
RENDERING: list[Attack] = [
    *build_page_attacks(
        "one text of 15 MB", message_of("word " * 3_000_000), seconds=5, pages=BOTH_PAGES
    ),
    *build_page_attacks("nested quotes", message_of("> " * 100_000)),
    *build_page_attacks("open brackets", message_of("[" * 100_000), message_of("*a_ " * 50_000)),
    *build_page_attacks(
        "a tool call nested 200 deep",
        {
            "format": 2,
            "parts": [
                {
                    "type": "tool-invocation",
                    "toolInvocation": {
                        "state": "result",
                        "toolCallId": "c",
                        "toolName": "t",
                        "args": json.loads('{"a":' * 200 + "1" + "}" * 200),
                        "result": "[" * 950,
                    },
                }
            ],
        },
    ),
]


LEXERS = ("cpp", "devicetree", "html+ng2", "autoit", "systemd", "csharp", "mcschema")
CODE: list[Attack] = [
    *build_page_attacks(
        "mcschema that never ends", message_of("```mcschema\n<!--\n```"), pages=BOTH_PAGES
    ),
    *[
        attack
        for lexer in LEXERS
        for attack in build_page_attacks(
            f"{lexer} of 20,000 lines",
            message_of(f"```{lexer}\n" + "\n" * 20_000 + "```"),
            message_of(f"```{lexer}\n" + "<" * 20_000 + "\n```"),
            long=True,
        )
    ],
    *build_page_attacks(
        "60 parts of unfinished images",
        {"format": 2, "parts": [{"type": "text", "text": "![" * 9_990}] * 60},
        seconds=10,
        pages=BOTH_PAGES,
    ),
    *build_page_attacks(
        "10,000 parts",
        {"format": 2, "parts": [{"type": "text", "text": "x"}] * 10_000},
        seconds=5,
        pages=BOTH_PAGES,
    ),
    Attack(
        "a message of 500,000 parts",
        lambda target: target.save(
            "many parts", {"format": 2, "parts": [{"type": "text", "text": "x"}] * 500_000}
        ),
        frozenset({400, 413}),
        5,
        400,
    ),
]


def write_working_memory(text: str) -> Send:
    def send(target: Target) -> Reply:
        target.store("working memory", "hello")
        return target.api(
            "POST",
            "threads/working%20memory/working-memory",
            {"workingMemory": text},
        )

    return send


def open_list_with_long_titles(target: Target) -> Reply:
    for number in range(3):
        body = {"resourceId": "r", "threadId": f"title {number}", "title": "T" * (LIMIT - 200)}
        target.api("POST", "threads", body)
    return target.page(ADMIN)


STORED: list[Attack] = [
    *[
        Attack(
            f"page after a working memory of {name}",
            lambda target: target.conversation("working memory"),
            SHOWN,
            3,
            prepare=write_working_memory(text),
        )
        for name, text in {
            "950 brackets": "[" * 950,
            "5,000 objects": '{"a":' * 5_000,
            "19 MB": "x " * (9 * MB),
            "200,000 headings": "# a\n" * 200_000,
        }.items()
    ],
    Attack("three titles of 20 MB", open_list_with_long_titles, SHOWN, 5, 200),
]
