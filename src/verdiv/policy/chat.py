"""A model behind an OpenAI-compatible chat endpoint; a retry carries the verifier's message in the conversation.

It needs the standard library alone, follows no redirect and no proxy, and reads a bounded response. Its failures
are :class:`~verdiv.policy.records.ModelFailed`, so that the policy keeps them apart from refused draws.
"""

from __future__ import annotations

import http.client
import math
import os
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from verdiv.errors import Fault, UsageRefused
from verdiv.policy.records import Ask, ModelFailed, Reply
from verdiv.runlog.records import Decoding

__all__ = ["OpenAIChat"]

MAX_RESPONSE = 4 * 2**20
"""Bytes of a response that are read."""

CHUNK = 65_536


class _Function(msgspec.Struct):
    name: str = ""
    arguments: str = "{}"


class _ToolCall(msgspec.Struct):
    function: _Function


class _Message(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    message: _Message


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


_decode = msgspec.json.Decoder(_Completion).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIChat:
    """Asks an OpenAI-compatible server; give it to a :class:`~verdiv.policy.records.Tier` as its model.

    The first draw sends the prompt; a retry sends the prompt, then each refused reply and the verifier's message in
    turns (:meth:`verdiv.policy.records.Ask.messages`). ``arun`` runs it in a thread.

    Raises
    ------
    UsageRefused
        An address that is none, when built; a missing or refused key, an unknown address or model, when asked.
    ModelFailed
        When asked: ``timeout``, ``429``, ``5xx``, ``http-NNN``, ``connection``.
    """

    url: str
    """Base address, with or without ``/v1``."""
    model: str
    """Name of the model as the server knows it."""
    key_env: str | None = None
    """Environment variable with the key, read for each request and never kept."""
    temperature: float | None = 0.0
    """Sampling temperature; None leaves it to the server."""
    top_p: float | None = None
    """Nucleus share; None leaves it to the server."""
    max_tokens: int | None = None
    """Most tokens of a reply."""
    system: str | None = None
    """System prompt that opens every conversation."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the request, e.g. ``tools`` or ``response_format``."""
    timeout: float = 120.0
    """Seconds that one request may take; the task's deadline shortens it."""
    cacert: str | None = None
    """File with further certificates to trust."""

    def __post_init__(self) -> None:
        """Refuse addresses that are none."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            fault = Fault("endpoint", "an http or https address", self.url, "correct it", field="url")
            raise UsageRefused("the server cannot be asked", [fault])

    @property
    def decoding(self) -> Decoding:
        """Sampling settings, for the tier."""
        return Decoding(temperature=self.temperature, top_p=self.top_p, max_tokens=self.max_tokens)

    def body(self, ask: Ask) -> dict[str, Any]:
        """Lay out the request.

        Examples
        --------
        >>> chat = OpenAIChat(url="http://localhost:8000", model="m", system="Reply with JSON.")
        >>> [message["role"] for message in chat.body(Ask("t", "Weather in Bonn?", "small", 1))["messages"]]
        ['system', 'user']
        """
        opening = [] if self.system is None else [{"role": "system", "content": self.system}]
        settings = {"temperature": self.temperature, "top_p": self.top_p, "max_tokens": self.max_tokens}
        return {
            "model": self.model,
            "messages": [*opening, *ask.messages()],
            **{name: value for name, value in settings.items() if value is not None},
            **self.extra,
        }

    def __call__(self, ask: Ask) -> Reply:
        """Ask once."""
        bounds = [self.timeout] if ask.seconds_left is None else [self.timeout, ask.seconds_left]
        status, wait, data = self._post(msgspec.json.encode(self.body(ask)), max(min(bounds), 0.001))
        return _read(status, wait, data)

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self.key_env is not None:
            key = os.environ.get(self.key_env, "")
            if not key:
                fault = Fault("environment", f"a key in {self.key_env}", "nothing", "set it")
                raise UsageRefused("the key is missing", [fault])
            headers["authorization"] = f"Bearer {key}"
        return headers

    def _post(self, body: bytes, seconds: float) -> tuple[int, float | None, bytes]:
        """Send one request and read at most MAX_RESPONSE bytes, all within some seconds."""
        parts, until = urlsplit(self.url), time.monotonic() + seconds
        path = parts.path.rstrip("/")
        path += "/chat/completions" if path.endswith("/v1") else "/v1/chat/completions"
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            trust = ssl.create_default_context(cafile=self.cacert)
            connection = http.client.HTTPSConnection(parts.netloc, timeout=seconds, context=trust)
        else:
            connection = http.client.HTTPConnection(parts.netloc, timeout=seconds)
        headers = self._headers()
        try:
            connection.request("POST", path, body, headers)
            line = connection.sock
            line.settimeout(max(until - time.monotonic(), 0.001))
            with connection.getresponse() as response:
                data = bytearray()
                while not response.isclosed():
                    left = until - time.monotonic()
                    if left <= 0:
                        raise TimeoutError
                    line.settimeout(left)
                    chunk = response.read1(CHUNK)
                    if not chunk:
                        break
                    data += chunk
                    if len(data) > MAX_RESPONSE:
                        raise ModelFailed("connection", "the response is too long")
                return response.status, _asked_wait(response.getheader("retry-after")), bytes(data)
        except TimeoutError as error:
            raise ModelFailed("timeout", f"no whole response in {seconds:.3g} s") from error
        except (OSError, http.client.HTTPException) as error:
            raise ModelFailed("connection", type(error).__name__) from error
        finally:
            connection.close()


def _asked_wait(header: str | None) -> float | None:
    """Read Retry-After: seconds or an HTTP date."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except (ValueError, TypeError):
            return None
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _read(status: int, wait: float | None, data: bytes) -> Reply:
    """Tell a completion from a failure."""
    if status in (401, 403, 404, 405):
        fault = Fault(
            "server", "an answer to a chat request", f"status {status}", "check address, model, key"
        )
        raise UsageRefused("the server refuses to be asked", [fault])
    if status == 429 or status >= 500:
        raise ModelFailed("429" if status == 429 else "5xx", f"status {status}", wait=wait)
    if status != 200:
        raise ModelFailed(f"http-{status}", f"status {status}", again=False)
    try:
        completion = _decode(data)
        message = completion.choices[0].message
    except (msgspec.DecodeError, UnicodeDecodeError, IndexError) as error:
        raise ModelFailed("connection", "the response is not a whole completion") from error
    text = _text(message)
    if text is None:
        raise ModelFailed("connection", "the completion holds no text and no tool call")
    usage = completion.usage or _Usage()
    return Reply(text, usage.prompt_tokens, usage.completion_tokens)


def _text(message: _Message) -> str | None:
    """Give the text, or tool calls spelled as JSON: one as an object, several as a list."""
    calls: Sequence[_ToolCall] = message.tool_calls or ()
    if not calls:
        return message.content
    spelled = [
        f'{{"name": {msgspec.json.encode(c.function.name).decode()}, "arguments": {c.function.arguments}}}'
        for c in calls
    ]
    return spelled[0] if len(spelled) == 1 else "[" + ", ".join(spelled) + "]"
