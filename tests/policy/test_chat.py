"""The chat adapter against a server on this machine: conversations, failures, bounds and secrets."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from verdiv.errors import UsageRefused
from verdiv.policy import (
    Ask,
    GatedRetry,
    InfrastructureRetries,
    Limits,
    ModelFailed,
    Outcome,
    PolicyLog,
    Refused,
    Tier,
    Verdict,
)
from verdiv.policy.chat import OpenAIChat
from verdiv.runlog.reader import iter_draws

__all__: list[str] = []


class Server(ThreadingHTTPServer):
    """Answers what it is told to, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Any] = []
        self.asked: list[dict[str, Any]] = []
        self.headers_seen: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        """Base address."""
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    def do_POST(self) -> None:
        """Answer as scripted: a text, a body, a status, or slowly."""
        server = self.server
        assert isinstance(server, Server)
        length = int(self.headers["content-length"])
        server.asked.append({"path": self.path, **json.loads(self.rfile.read(length))})
        server.headers_seen.append(dict(self.headers))
        step = server.script.pop(0)
        status, headers, body = 200, {}, step
        if isinstance(step, tuple):
            status, headers, body = step
        if isinstance(body, float):
            time.sleep(body)
            body = "late"
        if isinstance(body, str):
            body = {
                "choices": [{"message": {"content": body}}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 4},
            }
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            pass

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Serve on a free port until the test ends."""
    with Server() as one:
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def check(output: str, ask: Ask) -> Verdict | None:
    """Pass only a reply that says yes."""
    return None if output == "yes" else Verdict(True, "Say yes.")


def test_the_message_goes_into_the_conversation(server: Server, tmp_path: Path) -> None:
    """The retry sends prompt, refused reply and message; tokens and decoding reach the log."""
    server.script = ["no", "yes"]
    chat = OpenAIChat(url=server.url, model="m", system="Be brief.", max_tokens=8, extra={"seed": 5})
    path = tmp_path / "policy.runlog.jsonl"
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(Tier(model=chat, budget=2, decoding=chat.decoding), verifier=check, log=log)
        result = policy.run("t", "Yes or no?")
    assert (result.outcome, result.billed) == (Outcome.PASSED, 2.0)
    first, second = server.asked
    assert first["path"] == "/v1/chat/completions"
    assert (first["model"], first["temperature"], first["max_tokens"], first["seed"]) == ("m", 0.0, 8, 5)
    assert [m["content"] for m in first["messages"]] == ["Be brief.", "Yes or no?"]
    assert [(m["role"], m["content"]) for m in second["messages"]][2:] == [
        ("assistant", "no"),
        ("user", "Say yes."),
    ]
    draws = list(iter_draws(path))
    assert [(d.tokens_in, d.tokens_out) for d in draws] == [(9, 4), (9, 4)]
    assert draws[0].decoding is not None
    assert draws[0].decoding.temperature == 0.0


def test_tool_calls_are_spelled_as_json(server: Server) -> None:
    """A tool call stands for the text: its name and its arguments, untouched."""
    call = {"function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
    server.script = [{"choices": [{"message": {"content": None, "tool_calls": [call]}}]}]
    reply = OpenAIChat(url=server.url + "/v1/", model="m")(Ask("t", "x", "small", 1))
    assert json.loads(reply.text) == {"name": "weather", "arguments": {"city": "Bonn"}}


@pytest.mark.parametrize(
    ("step", "kind", "again"),
    [
        ((429, {"retry-after": "7"}, b"{}"), "429", True),
        ((503, {}, b"{}"), "5xx", True),
        ((400, {}, b"{}"), "http-400", False),
        ((302, {"location": "http://127.0.0.1:9/"}, b""), "http-302", False),
        ((200, {}, b"{"), "connection", True),
        ((200, {}, {"choices": []}), "connection", True),
        ((200, {}, b"x" * (5 * 2**20)), "connection", True),
    ],
    ids=["429", "503", "400", "redirect", "cut", "empty", "too long"],
)
def test_failures_are_the_infrastructures(server: Server, step: Any, kind: str, again: bool) -> None:
    """Each failure has its kind, none is an answer, redirects are not followed."""
    server.script = [step]
    with pytest.raises(ModelFailed) as told:
        OpenAIChat(url=server.url, model="m")(Ask("t", "x", "small", 1))
    assert (told.value.kind, told.value.again) == (kind, again)
    assert told.value.wait == (7.0 if kind == "429" else None)


def test_a_slow_server_is_a_timeout_within_the_deadline(server: Server) -> None:
    """The task's deadline shortens the request's timeout, in a blocking program too."""
    server.script = [2.0]
    began = time.monotonic()
    policy = GatedRetry(
        Tier(model=OpenAIChat(url=server.url, model="m")), verifier=check, limits=Limits(seconds=0.3)
    )
    result = policy.run("t", "x")
    assert (result.outcome, result.billed) == (Outcome.DEADLINE, 0.0)
    assert time.monotonic() - began < 1.5


def test_a_dripping_server_cannot_outlast_the_timeout() -> None:
    """Bytes that keep coming do not extend the request: the whole response counts."""
    import socket

    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.recv(65536)
            try:
                peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
                for _ in range(100):
                    peer.sendall(b"x")
                    time.sleep(0.05)
            except OSError:
                pass

    thread = threading.Thread(target=drip)
    thread.start()
    began = time.monotonic()
    chat = OpenAIChat(url=f"http://127.0.0.1:{listener.getsockname()[1]}", model="m", timeout=0.3)
    with pytest.raises(ModelFailed, match="timeout"):
        chat(Ask("t", "x", "small", 1))
    assert time.monotonic() - began < 2
    thread.join()
    listener.close()


def test_no_server_is_a_connection_failure() -> None:
    """A refused connection is retried as infrastructure, and the task ends as unserved."""
    quick = InfrastructureRetries(most=1, first_wait=0.0)
    chat = OpenAIChat(url="http://127.0.0.1:9", model="m")
    result = GatedRetry(Tier(model=chat), verifier=check, retries=quick).run("t", "x")
    assert (result.outcome, result.failures, result.answer) == (Outcome.UNSERVED, 2, None)


def test_the_key_is_read_when_asked_and_never_told(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The key goes to the server alone: not into the log, not into an error."""
    chat = OpenAIChat(url=server.url, model="m", key_env="VERDIV_TEST_KEY")
    with pytest.raises(UsageRefused, match="VERDIV_TEST_KEY"):
        chat(Ask("t", "x", "small", 1))
    monkeypatch.setenv("VERDIV_TEST_KEY", "s3cret")
    server.script = ["yes", (401, {}, b"{}")]
    path = tmp_path / "policy.runlog.jsonl"
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(Tier(model=chat), verifier=check, log=log)
        policy.run("t", "x")
        with pytest.raises(UsageRefused) as told:
            policy.run("u", "x")
    assert server.headers_seen[0]["authorization"] == "Bearer s3cret"
    assert "s3cret" not in path.read_text() + str(told.value) + repr(chat)


def test_it_runs_asynchronously_in_threads(server: Server) -> None:
    """Several tasks wait for the server at once."""
    server.script = [0.3] * 4

    async def scene() -> list[Any]:
        policy = GatedRetry(
            Tier(model=OpenAIChat(url=server.url, model="m")), verifier=lambda output, ask: None
        )
        return list(await asyncio.gather(*(policy.arun(f"t{n}", "x") for n in range(4))))

    began = time.monotonic()
    results = asyncio.run(scene())
    assert [r.answer for r in results] == ["late"] * 4
    assert time.monotonic() - began < 1.1


@pytest.mark.parametrize("url", ["ftp://host", "localhost:8000", "", "file:///etc/passwd"])
def test_addresses_that_are_none_are_refused(url: str) -> None:
    """Only http and https are spoken."""
    with pytest.raises(UsageRefused, match="cannot be asked"):
        OpenAIChat(url=url, model="m")


def test_a_prompt_may_be_a_list_of_messages() -> None:
    """Messages of one's own come first, and are not changed."""
    prompt = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    ask = Ask("t", prompt, "small", 2, (Refused("r", Verdict(True)),))
    body = OpenAIChat(url="http://localhost", model="m").body(ask)
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "user"]
    assert len(prompt) == 2
