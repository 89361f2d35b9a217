"""Attacks on the server itself: connections, addresses, crossing writers, odd parameters."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Sequence
from urllib.parse import quote, urlencode

from tests.hostile.attack import HANDLED, SHOWN, Attack
from tests.hostile.target import ADMIN, Reply, Target

ODD = ("\0", "²", "9" * 5_000, "-1", "1e9", "{", "[]", "' OR 1=1", "\ud7ff", "a" * 9_000)
PARAMETERS = (
    "p",
    "o",
    "q",
    "all",
    "view",
    "at",
    "before",
    "after",
    "e",
    "title__regex",
    "tag",
    "id",
)


def fuzz_admin(target: Target) -> Reply:
    """Open the list and a conversation with odd parameters; the worst answer is returned."""
    target.store("fuzzed", "hello")
    worst = target.page(ADMIN)
    for name in PARAMETERS:
        for value in ODD:
            for path in (ADMIN, f"{ADMIN}fuzzed/change/"):
                reply = target.page(f"{path}?{urlencode({name: value})}")
                worst = max(worst, reply, key=lambda seen: seen.status)
    return worst


def slow_bodies(target: Target) -> Reply:
    """Hold connections open with bodies that never arrive, and ask for the health meanwhile."""
    head = (
        "POST /admin/login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\na"
    )
    slow = [socket.create_connection(("127.0.0.1", target.port)) for _ in range(16)]
    try:
        for client in slow:
            client.sendall(head.encode())
        time.sleep(0.5)
        return target.send("GET", "/healthz", timeout=10)
    finally:
        for client in slow:
            client.close()


def kept_connections(target: Target) -> Reply:
    """Send a refused body and then a good request on one connection, many times."""
    body = json.dumps({"resourceId": "r", "title": "x" * 200_000}).encode()
    for _ in range(30):
        client = http.client.HTTPConnection("127.0.0.1", target.port, timeout=30)
        client.request("POST", "/api/memory/threads", body, {"Content-Type": "application/json"})
        refused = client.getresponse()
        refused.read()
        assert refused.status == 401
        if refused.headers.get("Connection") != "close":
            client.request("GET", "/healthz")
            assert client.getresponse().status == 200
        client.close()
    return target.send("GET", "/healthz")


def crossing_writers(target: Target) -> Reply:
    """Save to two threads in both orders, and delete from them, all at once."""
    for name in ("left", "right"):
        target.store(name, "hello")
    worst: list[Reply] = [target.send("GET", "/healthz")]
    give_up = time.monotonic() + 5

    def save(order: Sequence[str]) -> None:
        while time.monotonic() < give_up:
            batch = [
                {"id": f"{name} {n}", "role": "user", "threadId": name, "resourceId": "r",
                 "content": "hello"}
                for name in order for n in range(5)
            ]  # fmt: skip
            worst.append(target.api("POST", "save-messages", {"messages": batch}))

    def delete(order: Sequence[str]) -> None:
        while time.monotonic() < give_up:
            names = [f"{name} {n}" for name in order for n in range(5)]
            worst.append(target.api("POST", "messages/delete", {"messageIds": names}))

    orders = (("left", "right"), ("right", "left"))
    writers = [threading.Thread(target=do, args=[o]) for do in (save, delete) for o in orders]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    return max(worst, key=lambda reply: reply.status)


SERVER = [
    Attack("16 bodies that never arrive", slow_bodies, SHOWN, 3),
    Attack("refused bodies on kept connections", kept_connections, SHOWN, 10),
    Attack("saves and deletes that cross", crossing_writers, SHOWN, 12),
    Attack("odd parameters in the admin", fuzz_admin, HANDLED, 300, long=True),
    Attack(
        "a path of 60,000 characters",
        lambda target: target.api("GET", "threads/" + quote("ä" * 9_000)),
        frozenset({400, 404, 414, 431}),
        2,
    ),
]
