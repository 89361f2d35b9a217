"""Mastra's engine, in a Node.js process (`engine.mjs`)."""

import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.observational_peer.fake_model import FakeModel
from benchmarks.observational_peer.scenarios import Scenario, Turn
from benchmarks.observational_peer.steps import Step, build_step
from tests.support import servers

SCRIPT = Path(__file__).with_name("engine.mjs")
SIDE = "mastra"


class MastraEngine:
    """Plays turns through Mastra's memory."""

    def __init__(self, kit: Path, fake: FakeModel, log: Path) -> None:
        """Start the process in the folder of the kit, whose packages it uses."""
        self.fake = fake
        self.output = log.open("wb")
        self.process = subprocess.Popen(
            [str(servers.node(kit)), str(SCRIPT)],
            cwd=kit,
            env=os.environ | {"TZ": "UTC"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.output,
            text=True,
        )

    def __enter__(self) -> Self:
        """Return the engine."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(servers.STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()

    def open(self, scenario: Scenario) -> None:
        """Start with an empty memory and the options of the scenario."""
        model = {"id": "fake/model", "url": self.fake.get_url(SIDE), "apiKey": "no-key"}
        self._send("open", options=dict(scenario.options) | {"model": model})
        self.fake.take_calls(SIDE)

    def play(self, turn: Turn) -> Step:
        """Play a turn, and return the state after it."""
        reply = self._send(
            "turn",
            threadId=turn.thread_id,
            resourceId=turn.resource_id,
            user=turn.user,
            answer=turn.answer,
        )
        return self._describe(reply)

    def reflect(self, turn: Turn) -> Step:
        """Reflect now, and return the state after it."""
        reply = self._send("reflect", threadId=turn.thread_id, resourceId=turn.resource_id)
        context = self._send("context", threadId=turn.thread_id, resourceId=turn.resource_id)
        return self._describe(reply | {"seen": context})

    def _describe(self, reply: dict[str, Any]) -> Step:
        seen = reply["seen"]
        system = seen["system"] or ""
        ids = [name for name in seen["messageIds"] if name != "om-continuation"]
        return build_step(
            system=system if isinstance(system, str) else "\n\n".join(system),
            message_ids=ids,
            has_continuation=len(ids) < len(seen["messageIds"]) or bool(seen.get("continuation")),
            record=reply["record"],
            status=reply["status"],
            metadata=reply["metadata"],
            calls=self.fake.take_calls(SIDE),
        )

    def _send(self, name: str, **command: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": name, **command}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise servers.ServerError(f"Mastra's engine ended. See {self.output.name}.")
        reply = json.loads(line)
        if "error" in reply:
            raise servers.ServerError(f"Mastra's engine failed at {name}: {reply['error']}")
        return reply["result"]
