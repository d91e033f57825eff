"""What all families that answer with one JSON tool call share: reading, saving, spelling."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from verdiv.protocol.calls.verdict import (
    PASSED,
    Refusal,
    StaticVerdict,
    render_call,
    semantic,
    structural,
)
from verdiv.protocol.calls.wire import MAX_OUTPUT, read_call, text_of
from verdiv.protocol.suite.task import PublicTask, Task

__all__ = ["JsonCallFamily", "json_spellings"]


def json_spellings(tool: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Spell one call in each JSON form that counts as the same call.

    Parameters
    ----------
    tool
        Name of the tool.
    arguments
        Its arguments.

    Yields
    ------
    str
        Canonical, compact, indented, fields reversed, non-ASCII and quotes escaped, white space around.

    Examples
    --------
    >>> list(json_spellings("f", {"n": 1}))[1]
    '{"name":"f","arguments":{"n":1}}'
    """
    call = {"name": tool, "arguments": dict(arguments)}
    reverse = {"arguments": dict(reversed(list(arguments.items()))), "name": tool}
    yield render_call(tool, arguments)
    yield json.dumps(call, separators=(",", ":"), ensure_ascii=False)
    yield json.dumps(call, indent=2, ensure_ascii=False)
    yield json.dumps(reverse, ensure_ascii=False)
    yield json.dumps(call).replace(tool, "".join(f"\\u{ord(letter):04x}" for letter in tool))
    yield f"\n  {render_call(tool, arguments)}\n"


class JsonCallFamily(ABC):
    """A family whose reply is one JSON object with a tool's name and arguments."""

    form: str = ""
    """The call with ``...`` where the value belongs, where it is the same for all tasks."""

    def form_of(self, public: PublicTask) -> str:
        """Return the form of a task's call, with ``...`` where values belong."""
        return self.form

    @abstractmethod
    def structure(self, arguments: Mapping[str, Any], public: PublicTask) -> Refusal | None:
        """Check the syntax inside the arguments; a refusal here has a fix that can be prescribed."""

    @abstractmethod
    def meaning(self, arguments: Mapping[str, Any], public: PublicTask) -> Refusal | None:
        """Check ranges and what can be read off the request; a refusal here has no known fix."""

    @abstractmethod
    def save(self, text: str, public: PublicTask) -> Mapping[str, Any] | None:
        """Read lenient spellings of the arguments out of a malformed output, None where nothing fits."""

    @abstractmethod
    def normal(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Spell well-formed arguments canonically."""

    @abstractmethod
    def solved(self, arguments: Mapping[str, Any], task: Task) -> bool:
        """Compare well-formed arguments that pass every static check with the ground truth."""

    @abstractmethod
    def variants(self, task: Task) -> Sequence[Mapping[str, Any]]:
        """List the spellings of the arguments that count as correct, canonical first."""

    def _judge(self, output: str | bytes, public: PublicTask) -> Mapping[str, Any] | StaticVerdict | Refusal:
        """Return arguments that pass, a semantic verdict, or a structural refusal."""
        call = read_call(output, public.tool, public.schema)
        if isinstance(call, Refusal):
            return call
        broken = self.structure(call, public)
        if broken is not None:
            return broken
        wrong = self.meaning(call, public)
        return call if wrong is None else semantic(wrong)

    def verify(self, output: str | bytes, public: PublicTask) -> StaticVerdict:
        """Judge an output from the public part of its task alone.

        Parameters
        ----------
        output
            What the model returned.
        public
            Public part of the task.

        Returns
        -------
        StaticVerdict
            Passed, or flagged with class, code and message.
        """
        judged = self._judge(output, public)
        if isinstance(judged, StaticVerdict):
            return judged
        if not isinstance(judged, Refusal):
            return PASSED
        return structural(judged, self._saved(output, public), self.form_of(public))

    def _saved(self, output: str | bytes, public: PublicTask) -> str | None:
        """Spell the content of a malformed output as a call that passes, where there is one."""
        arguments = self.save(text_of(output[:MAX_OUTPUT]), public)
        if arguments is None:
            return None
        call = render_call(public.tool, arguments)
        return None if isinstance(self._judge(call, public), StaticVerdict | Refusal) else call

    def is_correct(self, output: str | bytes, task: Task) -> bool:
        """Compare an output with the ground truth.

        Parameters
        ----------
        output
            What the model returned.
        task
            The task with its answer.

        Returns
        -------
        bool
            True where the call keeps the tool's contract and its arguments are the answer.
        """
        judged = self._judge(output, task.public)
        return not isinstance(judged, StaticVerdict | Refusal) and self.solved(judged, task)

    def canonical(self, output: str | bytes, public: PublicTask) -> str:
        """Spell an output so that equal calls are equal text.

        Parameters
        ----------
        output
            What the model returned.
        public
            Public part of the task.

        Returns
        -------
        str
            The canonical call, or the stripped text of an output that is no well-formed call.
        """
        call = read_call(output, public.tool, public.schema)
        if isinstance(call, Refusal) or self.structure(call, public) is not None:
            return text_of(output).strip()
        return render_call(public.tool, self.normal(call))

    def spellings(self, task: Task) -> list[str]:
        """List the correct outputs in every spelling the family accepts.

        Parameters
        ----------
        task
            The task with its answer.

        Returns
        -------
        list of str
            Canonical first.
        """
        return [
            text for arguments in self.variants(task) for text in json_spellings(task.public.tool, arguments)
        ]
