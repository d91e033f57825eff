"""Mappings and files that come from anywhere: refused with all their faults, bounded in work, never executed."""

from __future__ import annotations

import json
import time
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convert_tables import mapping_of, run
from verdiv.errors import InputRefused, UsageRefused
from verdiv.runlog.convert import convert, load_mapping, parse_mapping, shipped_mappings
from verdiv.runlog.convert.paths import Mismatch, Scope, parse_record_path, parse_reference, walk
from verdiv.runlog.convert.predicates import compile_predicate
from verdiv.runlog.convert.templates import parse_template


def faults_of(mapping: dict[str, Any]) -> dict[str, str]:
    """Return the faults of a mapping, by field."""
    with pytest.raises(InputRefused) as caught:
        parse_mapping(mapping)
    return {str(fault.field): f"{fault.expected}; got {fault.got}" for fault in caught.value.faults}


def test_shipped_mappings_are_valid() -> None:
    """Every shipped mapping loads under its own name."""
    assert set(shipped_mappings()) >= {
        "bfcl",
        "cruxeval",
        "intercode-sql",
        "llmperf",
        "lm-eval",
        "reflexion-alfworld",
        "reflexion-programming",
        "structured-output",
    }
    for name in shipped_mappings():
        assert load_mapping(name).name == name


def test_starting_point_converts(tmp_path: Path) -> None:
    """The annotated mapping to start from works as it stands on the files that its comments describe."""
    template = resources.files("verdiv").joinpath("fixtures", "templates", "mapping.toml")
    mapping = tomllib.loads(template.read_text(encoding="utf-8"))
    head = "task,family,attempt,passed,flagged,error_class,cost\n"
    conversion = run(
        tmp_path,
        mapping,
        A3__csv=head + "a,f,1,0,1,structural,1\na,f,2,1,0,,1\nb,f,1,,,,1\n",
        A0__csv=head + "a,f,1,true,false,,1\n",
    )
    made = [(d.arm, d.task_id, d.attempt, d.correct) for d in conversion.draws]
    assert made == [
        ("A0", "a", 1, True),
        ("A3", "a", 1, False),
        ("A3", "a", 2, True),
        ("A3", "b", 1, None),
    ]
    assert conversion.ledger.clean


def test_all_faults_at_once() -> None:
    """Unknown keys, missing keys and wrong values of one mapping are reported together, each with its place."""
    mapping = mapping_of(
        {"task": "x", "arm": {"form": "a"}, "attempt": {"from": "a", "const": 1}},
        gate="sometimes",
        schema=2,
        extra=1,
        files=[{"match": "../{a}.json"}, {"match": "a.json", "format": "eval"}],
    )
    del mapping["draw"]["task_id"]
    faults = faults_of(mapping)
    assert set(faults) == {
        "schema",
        "gate",
        "extra",
        "files.0.match.0",
        "files.1.format",
        "draw.task_id",
        "draw.task",
        "draw.arm.form",
        "draw.attempt",
    }
    assert "a newer one needs a newer verdiv" in faults["schema"]
    assert "exactly one of from" in faults["draw.attempt"]


@pytest.mark.parametrize(
    ("tables", "field", "words"),
    [
        ({"files": []}, "files", "at least 1"),
        ({"files": [{"match": "a.json", "set": {"root": 1}}]}, "files.0.set.root", "other than root"),
        ({"files": [{"match": "{last}.json"}]}, "files.0.match.0", "other than root"),
        ({"files": [{"match": "{a:float}.json"}]}, "files.0.match.0", "{name} or {name:int}"),
        ({"files": [{"match": "{a}{a}.json"}]}, "files.0.match.0", "each name once"),
        ({"files": [{"match": "/etc/passwd"}]}, "files.0.match.0", "never"),
        ({"files": [{"match": "x" * 600}]}, "files.0.match.0", "512"),
        ({"records": {"paths": ["a..b"]}}, "records.paths.0", "followed by a name"),
        ({"records": {"paths": ["a[b"]}}, "records.paths.0", "']'"),
        ({"records": {"paths": ["a[1x]"]}}, "records.paths.0", "integer"),
        ({"records": {"paths": ["." * 40]}}, "records.paths.0", "begins no step"),
        ({"records": {"paths": [".".join("a" * 40)]}}, "records.paths.0", "at most 32 steps"),
        ({"records": {"paths": ["a[x].b[x]"]}}, "records.paths.0", "each name once"),
        ({"records": {"expand": {"length": "longest"}}}, "records.expand", "exactly one"),
        (
            {"records": {"expand": {"arrays": {"a": "b"}, "length": "c"}}},
            "records.expand",
            "name of an array",
        ),
        ({"exclude": [{"name": "x"}]}, "exclude.0", "exactly one"),
        ({"exclude": [{"name": "x", "when": {"equals": 1}}]}, "exclude.0.when", "exactly one of field"),
        ({"exclude": [{"name": "x", "when": {"found": "y"}}]}, "None", "no lookup is named 'y'"),
        ({"header": {"harness": "x", "note": "n" * 3000}}, "header.note", "2048"),
        ({"name": "../x"}, "name", "pattern"),
        (
            {"draw": {"task_id": "a", "correct": "b", "billed": {"rank": ["c"]}}},
            "draw",
            "rank gives positions",
        ),
        ({"draw": {"task_id": "@a", "correct": "b"}}, "draw.task_id", "a name that the mapping binds"),
        ({"draw": {"task_id": "#a", "correct": "b"}}, "draw.task_id", "a name that the mapping binds"),
        ({"draw": {"task_id": "x.{a}", "correct": "b"}}, "draw.task_id", "a name that the mapping binds"),
    ],
)
def test_faults(tables: dict[str, Any], field: str, words: str) -> None:
    """Each slip is found when the mapping is read, before any file is, and named where it stands."""
    faults = faults_of(mapping_of(**tables))
    assert words in faults[field]


@pytest.mark.parametrize(("constant", "words"), [("many", "a number was expected"), ("", "a value")])
def test_constants_that_no_draw_can_hold(tmp_path: Path, constant: str, words: str) -> None:
    """A wrong constant is one fault of the mapping and not one of every row."""
    with pytest.raises(InputRefused, match="constant") as caught:
        run(tmp_path, mapping_of({"billed": {"const": constant}}), a__jsonl=[{"task": "a", "ok": 1}])
    (fault,) = caught.value.faults
    assert (fault.field, words in fault.expected) == ("draw.billed", True)


def test_deep_predicates_are_refused() -> None:
    """Nesting is bounded, so that no mapping exhausts the stack."""
    predicate: dict[str, Any] = {"field": "a", "equals": 1}
    for _ in range(12):
        predicate = {"not": predicate}
    with pytest.raises(InputRefused, match="8 deep"):
        parse_mapping(mapping_of(exclude=[{"name": "x", "when": predicate}]))
    for _ in range(100_000):
        predicate = {"not": predicate}
    with pytest.raises(InputRefused, match="breaks its format"):
        parse_mapping(mapping_of(exclude=[{"name": "x", "when": predicate}]))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a = [", "no TOML"),
        (b"a = " + b"[" * 50_000, "no TOML"),
        (b"\xff\xfe", "no text"),
        (b"#" * ((1 << 20) + 1), "too large"),
        (b"schema = 1", "breaks its format"),
        (b"when = 2026-01-01", "breaks its format"),
    ],
)
def test_mapping_files_that_are_none(tmp_path: Path, content: bytes, words: str) -> None:
    """A file that is no mapping is refused with what was expected."""
    path = tmp_path / "m.toml"
    path.write_bytes(content)
    with pytest.raises(InputRefused, match=words):
        load_mapping(path)


@pytest.mark.parametrize("name", ["nothing", "..", "reflexion_alfworld"])
def test_unknown_names_list_the_known(name: str) -> None:
    """A name is looked up in a listing and nowhere else; the message lists what ships."""
    with pytest.raises(UsageRefused, match="intercode-sql"):
        load_mapping(name)


@pytest.mark.parametrize("path", ["../mappings/cruxeval.toml", "nowhere/m.toml", Path("nowhere")])
def test_unknown_paths_are_no_names(path: str | Path) -> None:
    """What looks like a path is one, and a path that leads nowhere is said so."""
    with pytest.raises(InputRefused, match="No such file"):
        load_mapping(path)


@pytest.mark.parametrize(
    ("name", "content", "line", "words"),
    [
        ("a.json", b'{"a": 1,}', 1, "JSON document"),
        ("a.json", b"", 1, "JSON document"),
        ("a.json", b"[1, 2", 1, "JSON document"),
        ("a.json", b"[" * 100_000, None, "JSON document"),
        ("a.json", b'{"a": 1, "a": 2}', None, "each key once"),
        ("a.jsonl", b'{"ok": 1}\n\xff\n', 2, "UTF-8"),
        ("a.csv", b"a,a\n1,2\n", 1, "each column once"),
        ("a.csv", b'a,b\n"x,2\n', None, "a table"),
        ("a.parquet", b"PAR1 no", None, "Parquet"),
    ],
)
def test_files_that_cannot_be_read(
    tmp_path: Path, name: str, content: bytes, line: int | None, words: str
) -> None:
    """A file that is broken as a whole refuses the conversion, with its name and line; nothing comes out."""
    (tmp_path / name).write_bytes(content)
    (tmp_path / "good.jsonl").write_text('{"task": "a", "ok": 1}\n', encoding="utf-8")
    with pytest.raises(InputRefused) as caught:
        convert(mapping_of(), [tmp_path])
    (fault,) = caught.value.faults
    assert fault.where.endswith(name)
    assert words in fault.expected
    assert fault.line == line


def test_broken_files_are_reported_together(tmp_path: Path) -> None:
    """All unreadable files of one conversion are named at once."""
    for name in ("a.json", "b.json", "c.json"):
        (tmp_path / name).write_text("{", encoding="utf-8")
    with pytest.raises(InputRefused) as caught:
        convert(mapping_of(), [tmp_path])
    assert [Path(fault.where).name for fault in caught.value.faults] == ["a.json", "b.json", "c.json"]


def test_broken_lines_are_rejected_one_by_one(tmp_path: Path) -> None:
    """A line that is no JSON, or holds a key twice, is one rejected record with its line number."""
    text = '{"task": "a", "ok": 1}\n{"task": "b"\n\n{"task": "c", "ok": 0, "ok": 1}\n' + "[" * 100_000 + "\n"
    conversion = run(tmp_path, mapping_of(), a__jsonl=text)
    assert [draw.task_id for draw in conversion.draws] == ["a"]
    assert conversion.ledger.records.rejected == {
        "a line that is no JSON": 2,
        "a key that stands twice in one object": 1,
    }
    assert [example.row for example in conversion.ledger.examples] == [2, 4, 5]
    assert conversion.ledger.closes


def test_broken_csv_rows_are_rejected_one_by_one(tmp_path: Path) -> None:
    """A row with too few or too many fields is rejected with the line it begins on, quoted breaks counted."""
    text = 'task,ok\n"a\nb",1\nc\nd,1,2\ne,0\n'
    conversion = run(tmp_path, mapping_of(), a__csv=text)
    assert [draw.task_id for draw in conversion.draws] == ["a\nb", "e"]
    assert [example.row for example in conversion.ledger.examples] == [4, 5]


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ({"a__jsonl": ""}, "No draw is left"),
        ({"a__json": "[]"}, "No draw is left"),
        ({"a__csv": "task,ok\n"}, "No draw is left"),
        ({"a__jsonl": '{"task": null, "ok": 1}\n'}, "No draw is left"),
        ({"a__txt": "x"}, "No source fits the mapping"),
        ({}, "No source fits the mapping"),
    ],
)
def test_nothing_left_is_an_error(tmp_path: Path, sources: dict[str, str], words: str) -> None:
    """A conversion that yields no draw says why instead of writing an empty log."""
    with pytest.raises(InputRefused, match=words):
        run(tmp_path, mapping_of(), **sources)


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    """Missing sources are named together; a pipe is refused, since it would be read twice."""
    with pytest.raises(InputRefused) as caught:
        convert(mapping_of(), [tmp_path / "x", tmp_path / "y"])
    assert [Path(fault.where).name for fault in caught.value.faults] == ["x", "y"]
    with pytest.raises(InputRefused, match="a pipe or a device"):
        convert(mapping_of(), ["/dev/null"])


def test_log_text_stays_text(tmp_path: Path) -> None:
    """Text of a log that looks like code, a path or a terminal sequence becomes a value and nothing else."""
    evil = "__import__('os').system('touch owned') {0.__class__} ../../x \x1b[31m %s"
    conversion = run(tmp_path, mapping_of({"output": "task"}), a__jsonl=[{"task": evil, "ok": 1}])
    assert conversion.draws[0].task_id == evil
    assert conversion.draws[0].output == evil
    assert not (Path.cwd() / "owned").exists()


def test_lone_surrogates_become_text(tmp_path: Path) -> None:
    """JSON can spell half a character; a run log cannot hold it, so it is spelled out."""
    text = '{"task": "a", "ok": 1, "o": "\\ud800"}\n'
    (draw,) = run(tmp_path, mapping_of({"output": "o"}), a__jsonl=text).draws
    assert draw.output == "\\ud800"


def test_templates_take_bounded_time() -> None:
    """The pattern that ruins backtracking engines is matched in milliseconds."""
    template = parse_template("x".join(f"{{{name}}}" for name in "abcdefgh"))
    name = "x" * 250
    began = time.perf_counter()
    assert parse_template("*a" * 7 + "b").match([name]) is None
    assert parse_template("{a}x{b}x{c}x{d}x{e}x{f}x{g}y").match([name]) is None
    assert template.match([name]) is not None
    assert time.perf_counter() - began < 2.0


NAMES = st.text("ab_-.0123456789 é", min_size=1, max_size=12)


@given(NAMES, st.integers(0, 10**17), NAMES)
def test_templates_take_back_what_they_were_made_of(left: str, number: int, folder: str) -> None:
    """A name built from a template is matched by it, whatever surrounds the captured values."""
    template = parse_template("{folder}/{left}@{number:int}.json")
    path = ["any", folder, f"{left}@{number}.json"]
    assert template.match(path) == {"folder": folder, "left": left, "number": number}
    assert template.match([*path, "deeper"]) is None
    assert template.match(path[2:]) is None


@given(st.text("ab1*{}", max_size=12), st.text("ab1", max_size=12))
def test_wildcards_agree_with_a_second_matcher(pattern: str, name: str) -> None:
    """Literals and wildcards match what the shell's rules match."""
    import fnmatch

    if not pattern or set(pattern) & set("{}"):
        return
    expected = fnmatch.fnmatchcase(name, pattern)
    assert (parse_template(pattern).match([name]) is not None) is expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from(["", "[]", "*", "a", "a[x].b", "{k}[]", "a.{k}.*", "[0]", "[-1].a"]))
def test_walking_never_fails(document: Any, path: str) -> None:
    """Any document can be walked by any path: records, or a note where the shape differs."""
    for found in walk(document, parse_record_path(path)):
        assert isinstance(found, Scope | Mismatch)


@given(st.text(max_size=20))
def test_references_parse_or_are_refused(text: str) -> None:
    """Any text is a reference that resolves to something or nothing, or a ValueError, and nothing else."""
    try:
        reference = parse_reference(text)
    except ValueError:
        return
    reference.resolve(Scope({"a": [1, {"b": 2}]}, {"a": {"b": [3]}}, {"a": 0}))


@given(st.lists(JSON, min_size=1, max_size=8))
def test_ledger_closes_on_anything(rows: list[Any]) -> None:
    """Whatever the rows hold, read = kept + excluded + rejected, and a missing outcome is never false."""
    import tempfile

    table = mapping_of(
        {"task_id": {"join": ["#r"]}, "correct": {"first_of": ["a"]}, "tokens_in": "b", "output": "c"},
        records={"paths": ["[r]"]},
        exclude=[{"name": "rule", "when": {"field": "b", "equals": True}}],
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.json")
        path.write_text(json.dumps([*rows, {"a": 1}]), encoding="utf-8")
        conversion = convert(table, [path])
    ledger = conversion.ledger
    assert ledger.closes
    assert ledger.records.read == len(rows) + 1
    assert ledger.draws.kept == len(conversion.draws)
    for draw in conversion.draws:
        row = [*rows, {"a": 1}][int(draw.task_id)]
        given_value = row.get("a") if isinstance(row, dict) else None
        blank = given_value is None or given_value != given_value or str(given_value).strip() == ""
        assert (draw.correct is None) is blank


def test_three_valued_logic() -> None:
    """Unknown and false is false, unknown or true is true, everything else with unknown is unknown."""
    from verdiv.runlog.convert.columns import Predicate

    scope = Scope({"t": 1, "f": 0, "u": None})
    parts = {name: {"field": name, "equals": 1} for name in "tfu"}
    value = {"t": True, "f": False, "u": None}
    for left in "tfu":
        for right in "tfu":
            pair = (parts[left], parts[right])
            both = compile_predicate(Predicate.model_validate({"all": pair}))(scope)
            either = compile_predicate(Predicate.model_validate({"any": pair}))(scope)
            known = {value[left], value[right]}
            assert both is (False if False in known else None if None in known else True)
            assert either is (True if True in known else None if None in known else False)


def schema_names(definition: dict[str, Any]) -> set[str]:
    """Return the keys that a definition of the JSON Schema lists."""
    return set(definition["properties"])


def test_json_schema_says_what_the_reader_takes() -> None:
    """The shipped JSON Schema lists the keys of every table, takes what ships and refuses what the reader does."""
    import jsonschema

    from verdiv.runlog.convert.mappings import mapping_json_schema

    folder = resources.files("verdiv").joinpath("runlog", "schemas", "mapping.schema.json")
    schema = json.loads(folder.read_text(encoding="utf-8"))
    current = mapping_json_schema()
    assert schema_names(schema) == schema_names(current)
    assert {name: sorted(d.get("properties", ())) for name, d in schema["$defs"].items()} == {
        name: sorted(d.get("properties", ())) for name, d in current["$defs"].items()
    }
    check = jsonschema.Draft202012Validator(schema)
    shipped = resources.files("verdiv").joinpath("fixtures", "mappings")
    for name in shipped_mappings():
        text = shipped.joinpath(f"{name}.toml").read_text(encoding="utf-8")
        assert check.is_valid(tomllib.loads(text)), name
    slips: list[dict[str, Any]] = [
        {"schema": 2},
        {"extra": 1},
        {"gate": "x"},
        {"files": []},
        {"draw": {"task_id": "a"}},
        {"draw": {"task_id": "a", "correct": ["b"]}},
    ]
    for slip in slips:
        wrong = {**mapping_of(), **slip}
        assert not check.is_valid(wrong)
        with pytest.raises(InputRefused):
            parse_mapping(wrong)
