"""A chat client for OpenAI-compatible servers whose retries are of the infrastructure, never of the protocol."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import msgspec

from verdiv.errors import Fault, MissingExtra, UsageRefused
from verdiv.protocol.prompts import Message

if TYPE_CHECKING:
    import httpx

__all__ = ["ChatClient", "Endpoint", "Failure", "Reply", "RetryPolicy"]

MAX_RESPONSE = 4 * 2**20
"""Bytes of a response that are read; a longer one is a failure."""

MAX_WAIT = 120.0
"""Longest wait that a server's Retry-After is granted; seconds."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a tier is served."""

    url: str
    """Base address, with or without ``/v1``."""
    model: str
    """Name of the model as the server knows it."""
    key_env: str | None = None
    """Environment variable with the key; its value is read when a request is made and never stored."""
    cacert: str | None = None
    """File with further certificates to trust."""

    @property
    def chat_url(self) -> str:
        """Address of the chat completions."""
        base = self.url.rstrip("/")
        return base + ("/chat/completions" if base.endswith("/v1") else "/v1/chat/completions")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Which failures are tried again, how often and how soon."""

    max_retries: int = 5
    """Most infrastructure retries of one draw."""
    kinds: tuple[str, ...] = ("timeout", "429", "5xx", "connection")
    """Kinds of failure that are retried."""
    timeout: float = 120.0
    """Seconds that a response may take."""
    first_wait: float = 0.5
    """Seconds before the first retry; doubled each time, with jitter."""
    longest_wait: float = 30.0
    """Longest wait of our own choice; seconds."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A served draw."""

    text: str
    """What the model said."""
    tokens_in: int | None
    """Tokens of the prompt, where the server tells."""
    tokens_out: int | None
    """Tokens of the reply, where the server tells."""
    started_at: str
    """When the request that was served was sent, RFC 3339."""
    ended_at: str
    """When its response was complete, RFC 3339."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A draw that the infrastructure did not serve."""

    kind: str
    """``timeout``, ``429``, ``5xx``, ``connection`` or ``http-NNN``."""
    message: str
    """What happened, without any address or key."""
    started_at: str
    """When the last request was sent, RFC 3339."""
    ended_at: str
    """When it had failed, RFC 3339."""


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


_decode = msgspec.json.Decoder(_Completion).decode


@dataclass(frozen=True, slots=True)
class _Again(Exception):
    """A failed request: its kind, what happened, and how long the server asked to wait."""

    kind: str
    message: str
    wait: float | None = None


def now() -> str:
    """Tell the time, RFC 3339 in UTC with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _asked_wait(header: str | None) -> float | None:
    """Read Retry-After: seconds or an HTTP date."""
    if header is None:
        return None
    try:
        return min(max(float(header), 0.0), MAX_WAIT) if header.strip().isdigit() else _until(header)
    except (ValueError, TypeError, OverflowError):
        return None


def _until(header: str) -> float:
    """Seconds until an HTTP date."""
    moment = parsedate_to_datetime(header)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return float(min(max((moment - datetime.now(UTC)).total_seconds(), 0.0), MAX_WAIT))


class ChatClient:
    """Sends chat requests; used as an asynchronous context manager.

    Parameters
    ----------
    policy
        How infrastructure failures are met.

    Raises
    ------
    MissingExtra
        On entering, when httpx is not installed.
    """

    def __init__(self, policy: RetryPolicy | None = None) -> None:
        self.policy = policy or RetryPolicy()
        self._http: dict[str | None, httpx.AsyncClient] = {}
        self._jitter = random.Random(0)

    async def __aenter__(self) -> ChatClient:
        try:
            import httpx  # noqa: F401
        except ModuleNotFoundError as error:
            raise MissingExtra("running the protocol needs httpx: pip install 'verdiv[run]'") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        for http in self._http.values():
            await http.aclose()
        self._http.clear()

    def _connection(self, endpoint: Endpoint) -> httpx.AsyncClient:
        """Return the connections that trust what the endpoint trusts."""
        import httpx

        if endpoint.cacert not in self._http:
            import ssl

            context = ssl.create_default_context(cafile=endpoint.cacert)
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
            self._http[endpoint.cacert] = httpx.AsyncClient(
                timeout=self.policy.timeout, limits=limits, verify=context, trust_env=False
            )
        return self._http[endpoint.cacert]

    async def ask(
        self,
        endpoint: Endpoint,
        messages: Sequence[Message],
        *,
        temperature: float,
        top_p: float | None,
        max_tokens: int,
        seed: int | None,
        json_reply: bool,
        on_retry: Callable[[str, float], None],
    ) -> Reply | Failure:
        """Ask for one draw, trying again where the infrastructure fails.

        Parameters
        ----------
        endpoint
            Where to ask.
        messages
            The prompt.
        temperature, top_p, max_tokens, seed
            Decoding; None is not sent.
        json_reply
            Ask the server to constrain decoding to a JSON object.
        on_retry
            Called with the kind of failure and the wait before each retry.

        Returns
        -------
        Reply or Failure
            A failure only where the retries are used up, or the failure is of a kind that is not retried.

        Raises
        ------
        UsageRefused
            When the server refuses the key or knows no such address: no retry can help, for no draw.
        """
        body: dict[str, Any] = {
            "model": endpoint.model,
            "messages": list(messages),
            "temperature": temperature,
            "max_tokens": max_tokens,
        }
        if top_p is not None:
            body["top_p"] = top_p
        if seed is not None:
            body["seed"] = seed
        if json_reply:
            body["response_format"] = {"type": "json_object"}
        for attempt in range(self.policy.max_retries + 1):
            started = now()
            try:
                text, usage = await self._once(endpoint, msgspec.json.encode(body))
                return Reply(text, usage.prompt_tokens, usage.completion_tokens, started, now())
            except _Again as again:
                last = attempt == self.policy.max_retries or again.kind not in self.policy.kinds
                if last:
                    return Failure(again.kind, again.message, started, now())
                wait = again.wait if again.wait is not None else self._own_wait(attempt)
                on_retry(again.kind, wait)
                await asyncio.sleep(wait)
        raise AssertionError("unreachable")  # pragma: no cover

    def _own_wait(self, attempt: int) -> float:
        """Double the wait each time, spread over a half to the whole of it."""
        longest = min(self.policy.first_wait * 2.0**attempt, self.policy.longest_wait)
        return longest * (0.5 + 0.5 * self._jitter.random())

    async def _once(self, endpoint: Endpoint, body: bytes) -> tuple[str, _Usage]:
        """Send one request and read its response whole."""
        import httpx

        headers = {"content-type": "application/json"}
        if endpoint.key_env is not None:
            key = os.environ.get(endpoint.key_env, "")
            if not key:
                fault = Fault("environment", f"a key in {endpoint.key_env}", "nothing", "set it")
                raise UsageRefused("the key is missing", [fault])
            headers["authorization"] = f"Bearer {key}"
        try:
            async with asyncio.timeout(self.policy.timeout):
                status, retry_after, data = await self._send(endpoint, body, headers)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise _Again("timeout", f"no whole response in {self.policy.timeout:g} s") from error
        except httpx.InvalidURL as error:
            fault = Fault("endpoint", "an http or https address", endpoint.url, "correct the address")
            raise UsageRefused("the server cannot be asked", [fault]) from error
        except httpx.UnsupportedProtocol as error:
            fault = Fault("endpoint", "an http or https address", endpoint.url, "correct the address")
            raise UsageRefused("the server cannot be asked", [fault]) from error
        except httpx.HTTPError as error:
            raise _Again("connection", type(error).__name__) from error
        return _read(endpoint, status, retry_after, data)

    async def _send(
        self, endpoint: Endpoint, body: bytes, headers: dict[str, str]
    ) -> tuple[int, str | None, bytes]:
        """Post and read at most MAX_RESPONSE bytes."""
        http = self._connection(endpoint)
        async with http.stream("POST", endpoint.chat_url, content=body, headers=headers) as response:
            data = bytearray()
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > MAX_RESPONSE:
                    raise _Again("connection", "the response is too long")
            return response.status_code, response.headers.get("retry-after"), bytes(data)


def _read(endpoint: Endpoint, status: int, retry_after: str | None, data: bytes) -> tuple[str, _Usage]:
    """Tell a completion from a failure."""
    if status in (401, 403, 404, 405):
        fault = Fault(
            "server", "an answer to a chat request", f"status {status}", "check address, model and key"
        )
        raise UsageRefused("the server refuses to be asked", [fault])
    if status == 429:
        raise _Again("429", "status 429", _asked_wait(retry_after))
    if status >= 500:
        raise _Again("5xx", f"status {status}", _asked_wait(retry_after))
    if status != 200:
        raise _Again(f"http-{status}", f"status {status}")
    try:
        completion = _decode(data)
        content = completion.choices[0].message.content
    except (msgspec.DecodeError, UnicodeDecodeError, IndexError) as error:
        raise _Again("connection", "the response is not a whole completion") from error
    if content is None:
        raise _Again("connection", "the completion holds no text")
    return content.encode("utf-8", "replace").decode("utf-8"), completion.usage or _Usage()
