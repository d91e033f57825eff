"""A chat server whose answers are fixed by the request and whose faults are scripted by its number."""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from verdiv.protocol.suite.generate import FAMILIES
from verdiv.protocol.suite.suitefile import Suite

__all__ = ["FakeServer"]


class FakeServer:
    """Serves the tasks of a suite: right, broken, implausible and silently wrong answers, as the request's hash says.

    Parameters
    ----------
    suite
        Its tasks are recognised by their prompts.
    script
        Number of a request (from 0) to ``ok``, ``429``, ``500``, ``hang``, ``malformed``, ``half``, ``reset``,
        ``400`` or ``401``.
    delay
        Seconds that every answer takes.
    """

    def __init__(
        self, suite: Suite, script: Callable[[int], str] = lambda number: "ok", delay: float = 0.0
    ) -> None:
        self.tasks = {task.public.prompt: task for task in suite.tasks}
        self.script = script
        self.delay = delay
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.served = 0
        self.most_in_flight = 0
        self._in_flight = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                owner.handle(self)

            def log_message(self, format: str, *args: object) -> None:
                """Stay quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """Clients of these tests are killed on purpose."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, body: dict[str, Any]) -> str:
        """Say what the model says: a function of prompt and decoding alone."""
        turns = [message for message in body["messages"] if message["content"] in self.tasks]
        task = self.tasks[turns[-1]["content"]]
        greedy = body["temperature"] == 0
        key = json.dumps([body["messages"], None if greedy else body.get("seed")])
        pick = hashlib.sha256(key.encode()).digest()[0] % 10
        right = FAMILIES[task.family].spellings(task)[0]
        if pick < 5:
            return right
        if pick < 7:
            return f"Here it is: {right}"
        wrong = {
            "arithmetic": {"expression": "1 + 1"},
            "date": {"date": "1900-02-30"},
            "filter": {"items": task.public.facts.get("items")},
        }[task.family]
        silent = {
            "arithmetic": {"expression": "+".join(str(n) for n in task.public.facts.get("numbers", []))},
            "date": task.answer,
            "filter": {"items": (task.public.facts.get("items") or [0])[:1]},
        }[task.family]
        return json.dumps({"name": task.public.tool, "arguments": wrong if pick < 9 else silent})

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request as the script says."""
        body = json.loads(request.rfile.read(int(request.headers["content-length"])))
        with self._lock:
            fault = self.script(len(self.requests))
            self.requests.append(body)
            self.keys.append(request.headers.get("authorization"))
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            self._respond(request, body, fault)
        finally:
            with self._lock:
                self._in_flight -= 1

    def _respond(self, request: BaseHTTPRequestHandler, body: dict[str, Any], fault: str) -> None:
        if fault == "hang":
            self._ended.wait(30)
            return
        if self.delay:
            time.sleep(self.delay)
        if fault == "reset":
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.rfile.close()
            request.connection.close()
            request.close_connection = True
            return
        status = int(fault) if fault.isdigit() else 200
        reply = {
            "choices": [{"message": {"role": "assistant", "content": self.answer(body)}}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        }
        data = b'{"choices": [{"mess' if fault == "malformed" else json.dumps(reply).encode()
        request.send_response(status)
        request.send_header("content-type", "application/json")
        if fault == "429":
            request.send_header("retry-after", "0")
        request.send_header("content-length", str(len(data)))
        request.end_headers()
        if fault == "half":
            request.wfile.write(data[: len(data) // 2])
            request.wfile.flush()
            request.connection.shutdown(socket.SHUT_RDWR)
            return
        if fault == "ok":
            with self._lock:
                self.served += 1
        request.wfile.write(data)
