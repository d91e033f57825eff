"""A strict look at an HTML page: what tests of the report ask of its structure."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

__all__ = ["Page", "parse"]

VOID = {"meta", "br", "hr", "img", "input", "link"}


@dataclass
class Node:
    """One element."""

    tag: str
    attributes: dict[str, str]
    children: list[Node] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def every(self, *tags: str) -> list[Node]:
        """Return all descendants with one of the tags."""
        found = []
        for child in self.children:
            if child.tag in tags:
                found.append(child)
            found += child.every(*tags)
        return found

    def text(self) -> str:
        """Return all text inside, in no particular order of nesting."""
        return "".join(self.texts) + "".join(child.text() for child in self.children)


class Page(HTMLParser):
    """A parser that insists on balanced elements."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("root", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        node = Node(tag, {name: value or "" for name, value in attrs})
        assert len(node.attributes) == len(attrs), f"an attribute twice in <{tag}>"
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add an element without content."""
        self.open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """Close an element; it must be the innermost one."""
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        """Keep text."""
        self.open[-1].texts.append(data)


def parse(page: str) -> Node:
    """Parse a page and check that every element is closed."""
    parser = Page()
    parser.feed(page)
    parser.close()
    assert len(parser.open) == 1, [node.tag for node in parser.open]
    return parser.root
