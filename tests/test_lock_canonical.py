"""Canonical JSON and the strict reader: one meaning, one spelling."""

from __future__ import annotations

import json
import shutil
import subprocess
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verdiv.errors import InputRefused
from verdiv.preregistration.canonical import SAFE_INTEGER, canonical_bytes, digest_of, strict_json


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":2}', b'{"x":{"a":1,"a":1}}', b"NaN", b"[Infinity]", b"[-Infinity]", b"[1e400]",
        b"[9007199254740992]", b"[-9007199254740992]", b"[1" + b"0" * 5000 + b"]", '["e\u0301"]'.encode(),
        '{"e\u0301":1}'.encode(), b'["\\ud800"]', b"[9007199254740993.0]",
        b"\xef\xbb\xbf{}", b"\xff", b"{", b"", b"[1,]", b"{'a':1}", b"[" * 100_000, b"[" * 100 + b"]" * 100, b"{} {}",
    ],
)  # fmt: skip
def test_what_two_readers_could_take_differently_is_refused(data: bytes) -> None:
    """Repeated names, NaN, unsafe or overflowing numbers, other than NFC, broken UTF-8 and nesting are refused."""
    with pytest.raises(InputRefused):
        strict_json(data, "x")


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        SAFE_INTEGER + 1,
        "e\u0301",
        {"e\u0301": 1},
        {1: 2},
        b"x",
        {"a": [object()]},
    ],
)
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    """A writer refuses what its own reader would refuse."""
    with pytest.raises(InputRefused):
        canonical_bytes(value)


def test_vector_of_the_standard() -> None:
    """The example of RFC 8785, section 3.2.3, sorts by UTF-16 and prints numbers as ECMAScript does."""
    data = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '\u20ac$\u000f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    assert canonical_bytes(data).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


texts = st.text(st.characters(codec="ascii"), max_size=6)
floats = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not SAFE_INTEGER < abs(x) < 1e21)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-SAFE_INTEGER, SAFE_INTEGER) | floats | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
@settings(max_examples=200, deadline=None)
def test_reading_back_gives_the_same_digest(value: Any) -> None:
    """A canonical document, read and spelled again, is the same bytes."""
    data = canonical_bytes(value)
    assert canonical_bytes(strict_json(data, "x")) == data
    assert digest_of(value) == sha256(data).hexdigest()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@given(json_values)
@settings(max_examples=15, deadline=None)
def test_another_language_spells_the_same(value: Any) -> None:
    """A few lines of JavaScript, whose number format the standard borrows, give the same bytes."""
    script = (
        "const c=v=>v===null||typeof v!=='object'?JSON.stringify(v):Array.isArray(v)?'['+v.map(c).join(',')+']'"
        ":'{'+Object.keys(v).sort().map(k=>JSON.stringify(k)+':'+c(v[k])).join(',')+'}';"
        "process.stdout.write(c(JSON.parse(require('fs').readFileSync(0,'utf8'))))"
    )
    done = subprocess.run(
        ["node", "-e", script], input=json.dumps(value).encode(), capture_output=True, check=True
    )
    assert done.stdout == canonical_bytes(value)
