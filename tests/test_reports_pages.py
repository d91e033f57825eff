"""Whole pages: escaping, structure, completeness, golden copies."""

from __future__ import annotations

import base64
import copy
import hashlib
import os
import random
import re
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from html_checks import Node, parse
from sample_document import FIXED, bare_document, crowded_document, hostile_document, sample_document
from verdiv.errors import InputRefused, UsageRefused
from verdiv.pricing.breakeven import explain_budget
from verdiv.reports import render_html, render_markdown, validate_document, write_reports
from verdiv.reports.sections.summary import break_even_headline
from verdiv.reports.words import RULES

Document = dict[str, Any]
MAKERS = [sample_document, hostile_document, crowded_document, bare_document]
GOLDEN = Path(__file__).parent / "golden"
REGENERATE = "VERDIV_REGENERATE_GOLDEN"

TITLES = [
    "In a hurry",
    "Identity",
    "Plan as registered",
    "What happened",
    "Results",
    "Trust",
    "Exploratory results",
    "Reproduce",
    "What this does not show",
]

PAGE_TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "header",
    "nav",
    "main",
    "section",
    "footer",
    "div",
}
TEXT_TAGS = {
    "a",
    "p",
    "span",
    "h1",
    "h2",
    "h3",
    "h4",
    "ol",
    "ul",
    "li",
    "dl",
    "dt",
    "dd",
    "pre",
    "code",
    "strong",
}
TABLE_TAGS = {
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "figure",
    "figcaption",
    "details",
    "summary",
}
SVG_TAGS = {"svg", "symbol", "circle", "path", "use", "g", "line", "rect", "text", "desc", "title"}
TAGS = PAGE_TAGS | TEXT_TAGS | TABLE_TAGS | SVG_TAGS


@pytest.fixture(scope="module", params=MAKERS, ids=lambda make: make.__name__)
def document(request: pytest.FixtureRequest) -> Document:
    """One of the sample documents."""
    make: Callable[[], Document] = request.param
    return make()


@pytest.fixture(scope="module")
def tree(document: Document) -> Node:
    """Its HTML page, parsed."""
    return parse(render_html(document))


def test_page_holds_only_known_elements_and_nothing_active(tree: Node) -> None:
    """No text of a document becomes an element; no script, no handler, no style attribute, no request."""
    nodes = tree.every(
        *TAGS, "script", "img", "iframe", "object", "embed", "link", "base", "form", "input", "b", "i"
    )
    assert {node.tag for node in nodes} <= TAGS
    everything = []

    def walk(node: Node) -> None:
        everything.append(node)
        for child in node.children:
            walk(child)

    walk(tree)
    assert {node.tag for node in everything} - {"root"} <= TAGS
    for node in everything:
        for name, value in node.attributes.items():
            assert not name.startswith("on"), (node.tag, name)
            assert name not in ("style", "src", "srcset", "action", "formaction", "data", "xlink:href")
            if name == "href":
                assert value.startswith("#"), value


def test_policy_allows_the_one_style_sheet_only(document: Document, tree: Node) -> None:
    """The content security policy names the digest of the style element as it stands in the page."""
    page = render_html(document)
    css = re.search(r"<style>(.*?)</style>", page, flags=re.DOTALL)
    assert css is not None
    digest = base64.b64encode(hashlib.sha256(css[1].encode()).digest()).decode()
    policies = [n for n in tree.every("meta") if n.attributes.get("http-equiv") == "Content-Security-Policy"]
    assert [p.attributes["content"] for p in policies] == [
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    ]
    assert "url(" not in css[1]
    assert "@import" not in css[1]


def test_identifiers_are_unique_and_references_resolve(tree: Node) -> None:
    """Links, labels and icons lead to something, and to one thing only."""
    nodes = tree.every(*TAGS)
    names = [node.attributes["id"] for node in nodes if "id" in node.attributes]
    assert len(names) == len(set(names))
    wanted = [node.attributes["href"][1:] for node in nodes if "href" in node.attributes]
    wanted += [name for node in nodes for name in node.attributes.get("aria-labelledby", "").split()]
    assert set(wanted) <= set(names), set(wanted) - set(names)


def test_tables_have_captions_and_scoped_headings(tree: Node) -> None:
    """Every table can be read aloud: a caption, column headings, a heading for each row, full rows."""
    tables = tree.every("table")
    assert tables
    for table in tables:
        assert table.every("caption")[0].text().strip()
        if any(cell.attributes.get("class") == "empty" for cell in table.every("td")):
            continue
        heads = table.every("thead")[0].every("th")
        assert all(head.attributes["scope"] == "col" and head.text().strip() for head in heads)
        for row in table.every("tbody")[0].every("tr"):
            cells = row.every("th", "td")
            assert len(cells) == len(heads)
            assert cells[0].attributes.get("scope") == "row"


def test_every_figure_has_its_numbers_as_a_table(tree: Node) -> None:
    """A figure never stands without the table of its numbers, and each drawing has title and description."""
    figures = tree.every("figure")
    assert len(figures) >= 4
    for figure in figures:
        assert figure.every("table"), figure.attributes["id"]
        assert figure.every("figcaption")[0].text().strip()
        for drawing in figure.every("svg"):
            if drawing.attributes.get("aria-hidden") == "true":
                continue
            assert drawing.attributes["role"] == "img"
            assert drawing.every("title")[0].text().strip()
            assert drawing.every("desc")[0].text().strip()


def test_scrolling_boxes_can_be_reached_by_keyboard(tree: Node) -> None:
    """Boxes that scroll take the focus and have a name."""
    boxes = [n for n in tree.every("div") if n.attributes.get("class") == "scroll"]
    assert len(boxes) == len(tree.every("table"))
    for box in boxes:
        assert box.attributes["tabindex"] == "0"
        assert box.attributes["role"] == "region"
        assert box.attributes["aria-labelledby"]


def test_headings_do_not_skip_levels(tree: Node) -> None:
    """Headings form an outline: one h1, and no level is jumped."""
    levels = [int(node.tag[1]) for node in tree.every("h1", "h2", "h3", "h4")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels)), levels


def test_sections_come_in_the_order_of_the_report(document: Document, tree: Node) -> None:
    """Readers find every section, in the same order, in HTML and Markdown."""
    titles = list(TITLES)
    if document["preregistration"]["status"] == "none":
        titles[2] = "Plan (defaults, not registered)"
    assert [node.text() for node in tree.every("h2")] == titles
    assert re.findall(r"^## (.*)$", render_markdown(document), flags=re.MULTILINE) == titles


@pytest.mark.parametrize(
    ("mode", "status", "begins"),
    [
        ("exploratory", "none", "Exploratory analysis"),
        ("registered", "locked", "Registered analysis: the plan was locked"),
        ("registered", "read", "Registered plan, not locked"),
        ("registered", "broken", "Broken lock"),
        ("exploratory", "broken", "Broken lock"),
    ],
)
def test_first_line_says_how_the_analysis_stands(mode: str, status: str, begins: str) -> None:
    """An exploratory or broken analysis says so before anything else."""
    document = sample_document()
    document["mode"], document["preregistration"]["status"] = mode, status
    assert render_markdown(document).startswith(begins)
    main = parse(render_html(document))
    assert main.every("header")[0].children[0].text().startswith(begins)


@pytest.mark.parametrize(
    ("best", "p", "value", "words"),
    [
        ("none", 0.9, "none up to 5", "No budget up to 5"),
        ("1", 0.9, "B* = 1", "no retry is needed"),
        ("3", 0.6, "B* = 3", "with 3 draws at most"),
        ("3", 0.4, "B* undecided", "It is open"),
    ],
)
def test_the_break_even_and_its_sentence_agree(best: str, p: float, value: str, words: str) -> None:
    """The card and the sentence are read off one distribution, whatever regime the model finds likeliest."""
    shares = {str(b): (1 - p) / 5 for b in range(1, 6)} | {"none": (1 - p) / 5, best: p}
    document = sample_document()
    document["break_even"] |= {"B_star": shares, "sentence": explain_budget(shares, 5)}
    card = break_even_headline(document)
    assert card.value == value
    assert words in card.detail[-1]


def test_what_an_untestable_rule_lacks_is_said_once() -> None:
    """Reason, sentence, list of what is missing and parts of an untestable rule are the same words, printed once."""
    document, lack = sample_document(), "arm A4 (teacher)"
    rule = document["rules"]["P3"]
    part = {
        "id": "a",
        "verdict": "untestable",
        "reason": f"missing: {lack}",
        "claim": "at least 0",
        "components": [],
    }
    rule |= {
        "verdict": "untestable",
        "reason": f"missing: {lack}",
        "sentence": f"Untestable: missing: {lack}.",
        "missing": [lack],
        "claim": "(a) at least 0; (b) at least 0",
        "parts": [part, {**part, "id": "b"}],
        "probability_claim": None,
    }
    for page, heading in ((render_html(document), ">P3 "), (render_markdown(document), "#### P3 ")):
        whole = page.split(heading)[1].split("P4 ")[0]
        assert whole.count(lack) == 1


def test_verdicts_are_words() -> None:
    """The first table gives all ten verdicts as words, in registered order, in both formats."""
    document = sample_document()
    table = next(n for n in parse(render_html(document)).every("table") if n.attributes["id"] == "verdicts")
    rows = [row.every("th", "td") for row in table.every("tbody")[0].every("tr")]
    said = [(cells[0].text(), cells[2].text()) for cells in rows]
    assert said == [(rule, document["rules"][rule]["verdict"]) for rule in RULES]
    first = render_markdown(document).split("## Identity")[0]
    assert re.findall(r"^\| ([PR]\d) \|.*\*\*(\w+)\*\* \|", first, flags=re.MULTILINE) == said


def _sentinels(value: Any, names: Iterator[int], key: str = "") -> Any:
    if isinstance(value, str):
        return value if key in FIXED else f"Sentinel{next(names):04d}x"
    if isinstance(value, list):
        return [_sentinels(item, names, key) for item in value]
    if isinstance(value, dict):
        return {name: _sentinels(item, names, name) for name, item in value.items()}
    return value


def test_every_text_of_the_document_is_printed() -> None:
    """Nothing is held back: each text of a results document stands in the HTML and in the Markdown page."""
    document = _sentinels(sample_document(), count())
    document["preregistration"]["digest"] = "0" * 64
    # The plan's own title, authors and what had been seen stand under Identity, once.
    for name in ("title", "authors", "seen_before"):
        document["preregistration"]["plan"][name] = document["preregistration"][name]
    # A schema-conforming component names its part, which the drawn label repeats; statistics of estimates only.
    wanted = set(re.findall(r"Sentinel\d{4}x", repr(document)))
    assert len(wanted) > 250
    for page in (render_html(document), render_markdown(document)):
        assert wanted - set(re.findall(r"Sentinel\d{4}x", page)) == set()


def test_markdown_holds_no_markup_of_the_document() -> None:
    """A Markdown reader sees texts: no HTML, no links, no images, no code of the document's making."""
    tokens = (
        MarkdownIt("commonmark", {"html": True}).enable("table").parse(render_markdown(hostile_document()))
    )
    flat = [child for token in tokens for child in [token, *(token.children or [])]]
    kinds = {token.type for token in flat}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "code_inline"}
    assert not [t for t in flat if t.type == "fence" and "script" in t.info]
    for text in (token.content for token in flat if token.type == "text"):
        assert "\u202e" not in text
        assert "\x00" not in text


def test_markdown_tables_are_whole(document: Document) -> None:
    """Every table row has as many cells as its heading, whatever the cells hold."""
    width = None
    rows = 0
    for line in render_markdown(document).split("\n"):
        if not line.startswith("|"):
            width = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1
        width = width or cells
        assert cells == width, line
        rows += 1
    assert rows > 20


def test_not_estimable_prints_its_reason() -> None:
    """A value that could not be estimated is named with its reason, never as a number."""
    for page in (render_html(sample_document()), render_markdown(sample_document())):
        assert page.count("not estimable: no oracle column in the log") == 2
        assert (
            "missing: a second value of in\\_flight" in page or "missing: a second value of in_flight" in page
        )


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    if path:
        yield path


def _place(document: Document, path: tuple[str | int, ...]) -> Any:
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    return place


def _with_gaps(document: Document, choose: random.Random, share: float) -> Document:
    """Make a share of the values null, except those that the schema wants."""
    original = copy.deepcopy(document)
    original["densities"] = dict(list(original["densities"].items())[-2:])
    gone: dict[str, tuple[str | int, ...]] = {}
    for path in _leaves(original):
        dotted = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in path).lstrip(".")
        if choose.random() < share and not any(dotted.startswith((f"{up}.", f"{up}[")) for up in gone):
            for below in [name for name in gone if name.startswith((f"{dotted}.", f"{dotted}["))]:
                del gone[below]
            gone[dotted] = path
    for _ in range(12):
        trial = copy.deepcopy(original)
        for path in gone.values():
            _place(trial, path)[path[-1]] = None
        try:
            validate_document(trial)
        except InputRefused as refused:
            fields = [fault.field or "" for fault in refused.faults]
            wanted = {
                name for name in gone for f in fields if f == name or f.startswith((f"{name}.", f"{name}["))
            }
            wanted |= {name for name in gone for f in fields if name.startswith((f"{f}.", f"{f}["))}
            assert wanted, fields
            for name in wanted:
                del gone[name]
        else:
            assert len(gone) > 20
            return trial
    raise AssertionError("the schema refuses every gap")


@pytest.mark.parametrize("seed", range(6))
def test_any_value_that_may_be_missing_may_be_missing(seed: int) -> None:
    """Pages render, and say n/a, whichever nullable values of a document are null."""
    document = _with_gaps(sample_document(), random.Random(seed), 0.05 + 0.07 * seed)
    parse(render_html(document))
    assert "n/a" in render_markdown(document)
    assert "None" not in render_markdown(document)


def test_missing_numbers_are_not_printed_as_zero() -> None:
    """An estimate without a value and a bill without an amount show no 0."""
    document = bare_document()
    document["estimates"]["q0"] = {"status": "estimated", "mean": None, "low": None, "high": None}
    document["ledger"] = {"rows": [{"arm": "A0", "draws": None, "units": None}], "total_units": None}
    document["flow"] = [{"arm": "A0", "planned": None, "attempted": 3}]
    text = render_markdown(document)
    assert "| q0 — first-draw success, stochastic | *n/a* |" in text
    assert "| A0, one-shot, small tier | *n/a* | *n/a* | *n/a* | *n/a* |" in text
    assert "| A0 | primary | *n/a* | 3 |" in text


def test_same_document_same_bytes() -> None:
    """A page is a pure function of its document."""
    assert render_html(sample_document()) == render_html(sample_document())
    assert render_markdown(sample_document()) == render_markdown(sample_document())


def test_refused_documents_give_no_page(tmp_path: Path) -> None:
    """Nothing is rendered or written of a document that breaks its schema."""
    document = sample_document()
    document["rules"]["P1"]["verdict"] = "maybe"
    with pytest.raises(InputRefused):
        render_html(document)
    with pytest.raises(InputRefused):
        write_reports(document, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_write_replaces_both_pages_and_leaves_nothing_else(tmp_path: Path) -> None:
    """Pages are written whole, in place of older ones."""
    (tmp_path / "report.html").write_text("old", encoding="utf-8")
    html, markdown = write_reports(sample_document(), tmp_path)
    assert html.read_text(encoding="utf-8") == render_html(sample_document())
    assert markdown.read_text(encoding="utf-8") == render_markdown(sample_document())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.md"]


def test_write_says_when_it_cannot(tmp_path: Path) -> None:
    """A folder that does not exist is a clear error."""
    with pytest.raises(UsageRefused, match="cannot write the report"):
        write_reports(sample_document(), tmp_path / "missing")


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_whole_pages_equal_their_golden_copies(name: str) -> None:
    """The whole page is compared: any change of wording, number or layout is seen and decided on.

    Set VERDIV_REGENERATE_GOLDEN=1 to accept the pages as they are now.
    """
    render = render_html if name.endswith("html") else render_markdown
    page = render(sample_document())
    path = GOLDEN / name
    if os.environ.get(REGENERATE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(page, encoding="utf-8")
    assert page == path.read_text(encoding="utf-8")
