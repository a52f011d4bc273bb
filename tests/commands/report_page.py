"""Parses a report strictly: its elements as a tree, and its content by name."""

from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}
# Elements of drawings may be written <rect/>.
DRAWN = {"rect", "path"}


class Element:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children, self.pieces = [], []

    def walk(self):
        for child in self.children:
            yield child
            yield from child.walk()

    def all(self, tag=None, **wanted):
        for element in self.walk():
            if tag and element.tag != tag:
                continue
            if all(element.has(key.rstrip("_"), value) for key, value in wanted.items()):
                yield element

    def one(self, tag=None, **wanted):
        found = list(self.all(tag, **wanted))
        assert len(found) == 1, f"{len(found)} of {tag} {wanted}"
        return found[0]

    def has(self, key, value):
        mine = self.attributes.get(key)
        return mine == value or (key == "class" and value in (mine or "").split())

    def text(self):
        """With spaces where only those between a number and its unit hold a line together."""
        return "".join(p if isinstance(p, str) else p.text() for p in self.pieces).replace("\u00a0", " ")


def text_of(cell):
    """A name shown without its middle is complete in its tooltip."""
    for name in cell.all("bdi"):
        return name.attributes.get("title") or name.text()
    return cell.text()


class Page(HTMLParser):
    """Rejects wrong nesting, duplicate attributes, and unknown end tags."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.root = self.at = Element("", {}, None)
        self.feed(text)
        self.close()
        assert self.at is self.root, f"<{self.at.tag}> is not closed"

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        element = Element(tag, dict(attributes), self.at)
        self.at.children.append(element)
        self.at.pieces.append(element)
        if tag not in VOID:
            self.at = element

    def handle_startendtag(self, tag, attributes):
        assert tag in DRAWN, f"<{tag}/> is none in HTML"
        self.handle_starttag(tag, attributes)
        self.at = self.at.parent

    def handle_endtag(self, tag):
        assert self.at.tag == tag, f"</{tag}> closes <{self.at.tag}>"
        self.at = self.at.parent

    def handle_data(self, data):
        self.at.pieces.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data!r}")

    # Queries from scripts and other programs.

    def figure(self, key):
        return int(self.figures()[key])

    def figures(self):
        return {
            e.attributes["data-key"]: e.attributes["data-v"]
            for e in self.root.all("dd")
            if "data-key" in e.attributes
        }

    def table(self, caption):
        """Rows of the table: a list of dicts by column, numbers exact."""
        for table in self.root.all("table"):
            if table.one("caption").text() == caption:
                break
        else:
            return None
        head = [th.text() for th in table.one("thead").all("th")]
        rows = []
        for row in table.one("tbody").all("tr"):
            cells = [c for c in row.children if c.tag in ("th", "td")]
            values = [c.attributes.get("data-v") for c in cells]
            rows.append(
                {h: text_of(c) if v is None else int(v) for h, c, v in zip(head, cells, values)}
            )
        return rows
