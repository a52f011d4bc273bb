"""Finds the single changes (mutants) of a C file for tools/mutate.

The file is only split into tokens: binary and unary operators, and the begins of statements, are recognised by the layout
that clang-format produces. The caller counts changes that do not compile. Comments, texts and assertions are never changed,
and preprocessor lines only in the numbers of constants.
"""

import collections
import re

# start, end: of the replaced text. was, now: its description. line: number of the first line.
Mutant = collections.namedtuple("Mutant", "file start end text line was now nth code")

TOKEN = re.compile(
    r"""
    (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<directive>(?m:^)[ \t]*\#(?:[^\\\n]|\\.)*)
  | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[A-Za-z0-9_.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<operator><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^<>=!~?:;,.(){}\[\]])
  | (?P<space>\s+)
    """,
    re.S | re.X,
)
DEFINE = re.compile(r"\s*#\s*define\s+[A-Z]\w*[ \t]+")
NUMBER = re.compile(r"(?<![\w.\"'])(?:0x[0-9a-fA-F]+|[0-9]+)(?:\.[0-9]+)?(?=[uUlL]*\b)")

BINARY = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
    "*": "/", "/": "*", "%": "*", "&": "|", "|": "&", "<<": ">>", ">>": "<<",
    "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=", "<<=": ">>=", ">>=": "<<=",
}  # fmt: skip
STEPS = {"++": "--", "--": "++"}
NAMES = {"true": "false", "false": "true"}
ASSERTIONS = {"assert", "static_assert", "_Static_assert"}
KEYWORDS = {
    "if", "else", "for", "while", "do", "switch", "case", "default", "return", "break", "continue", "goto", "sizeof",
    "typedef", "static", "extern", "const", "struct", "union", "enum", "unsigned", "signed", "int", "char", "short",
    "long", "float", "double", "void", "bool", "register", "volatile", "inline",
}  # fmt: skip

Token = collections.namedtuple("Token", "kind text start end")


def tokens_of(text):
    at, tokens = 0, []
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise ValueError(f"no C at byte {at}: {text[at:at + 20]!r}")
        tokens.append(Token(match.lastgroup, match.group(), match.start(), match.end()))
        at = match.end()
    return tokens


def closing(tokens, at):
    """Returns the index of the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += tokens[i].text in ("(", "{", "[")
        depth -= tokens[i].text in (")", "}", "]")
        if depth == 0:
            return i
    return len(tokens) - 1


def statement_end(tokens, at):
    """Returns the index of the semicolon that ends the statement at `at`; None if it has a body."""
    depth = 0
    for i in range(at, len(tokens)):
        if tokens[i].text == ";" and depth == 0:
            return i
        if tokens[i].text == "{" and depth == 0:
            return None
        depth += tokens[i].text in ("(", "{", "[")
        depth -= tokens[i].text in (")", "}", "]")
    return None


def is_expression(tokens, at):
    """Returns whether the statement at `at` is an expression, not a declaration."""
    first, second = tokens[at], tokens[at + 1]
    if first.text in ("(", "*", "++", "--"):
        return True
    if first.kind != "name" or first.text in KEYWORDS:
        return False
    return second.text in ("(", "->", ".", "[", "=", "++", "--") or second.text in BINARY and second.text[-1] == "="


def number_after(text):
    """Returns the replacement of a number: 0 for 1, otherwise the next number."""
    digits = re.match(r"0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]+)?", text)
    if not digits or not re.fullmatch(r"[uUlL]*", text[digits.end():]):
        return None
    value, suffix = digits.group(), text[digits.end():]
    if "." in value:
        return f"{float(value) * 1.25}{suffix}"
    number = int(value, 16 if value[:2] in ("0x", "0X") else 8 if len(value) > 1 and value[0] == "0" else 10)
    number = 0 if number == 1 else number + 1
    return (hex(number) if value[:2] in ("0x", "0X") else str(number)) + suffix


class File:
    def __init__(self, name, text):
        self.name, self.text, self.found = name, text, []
        self.all = tokens_of(text)
        self.code = [t for t in self.all if t.kind not in ("space", "comment", "directive")]

    def add(self, start, end, text, was, now):
        self.found.append((start, end, text, was, now))

    def spaced(self, token):
        """Returns whether an operator has spaces on both sides, which means that it is binary."""
        return self.text[token.start - 1].isspace() and self.text[token.end].isspace()

    def directives(self):
        for token in self.all:
            match = DEFINE.match(token.text) if token.kind == "directive" else None
            for number in NUMBER.finditer(token.text, match.end()) if match else ():
                now = number_after(number.group())
                start = token.start + number.start()
                self.add(start, start + len(number.group()), now, number.group(), now)

    def token(self, at):
        token, before = self.code[at], self.code[at - 1] if at > 0 else None
        now = None
        if token.kind == "number":
            now = number_after(token.text)
        elif token.kind == "name":
            now = NAMES.get(token.text)
        elif token.text in BINARY and before and self.spaced(token) and before.text not in ("(", ",", "=", "return"):
            now = BINARY[token.text]
        elif token.text in STEPS:
            now = STEPS[token.text]
        if now is not None:
            self.add(token.start, token.end, now, token.text, now)

    def condition(self, at):
        """Negates the condition of if (x) and while (x)."""
        if self.code[at].text in ("if", "while") and self.code[at + 1].text == "(":
            end = closing(self.code, at + 1)
            start, stop = self.code[at + 1].end, self.code[end].start
            inner = self.text[start:stop]
            self.add(start, stop, f"!({inner})", short(inner), f"!({short(inner)})")

    def statement(self, at):
        token = self.code[at]
        end = statement_end(self.code, at)
        if end is None:
            return
        stop = self.code[end].start
        whole = self.text[token.start : stop]
        if token.text in ("break", "continue") or is_expression(self.code, at):
            self.add(token.start, stop, "", short(whole), "nothing")
        elif token.text == "return" and end > at + 1 and whole.split(None, 1)[1] not in ("0", "1", "true", "false"):
            self.add(token.start, stop, "return 0", short(whole), "return 0")

    def begins_statement(self, at):
        before = self.code[at - 1]
        if before.text in (";", "{", "}", "else", "do", ":"):
            return True
        if before.text != ")":
            return False
        depth = 0
        for i in range(at - 1, 0, -1):  # the body of if (...), for (...), while (...)
            depth += self.code[i].text == ")"
            depth -= self.code[i].text == "("
            if depth == 0:
                return self.code[i - 1].text in ("if", "for", "while", "switch")
        return False

    def mutants(self):
        self.directives()
        at, blocks = 0, []
        while at < len(self.code):
            token = self.code[at]
            if token.text in ASSERTIONS and self.code[at + 1].text == "(":
                at = closing(self.code, at + 1) + 1
                continue
            if token.text == "{":  # true: a block of code; false: a type or an initializer
                blocks.append(self.code[at - 1].text in (")", "{", "}", ";", ":", "else", "do"))
            elif token.text == "}" and blocks:
                blocks.pop()
            self.token(at)
            self.condition(at)
            if blocks and blocks[-1] and self.begins_statement(at):
                self.statement(at)
            at += 1
        return self.in_order()

    def in_order(self):
        """Returns the mutants in the order of the file, with their lines."""
        seen, mutants = collections.Counter(), []
        for start, end, text, was, now in sorted(self.found):
            begin = self.text.rfind("\n", 0, start) + 1
            stop = self.text.find("\n", start)
            code, line = self.text[begin:stop].strip(), self.text.count("\n", 0, start) + 1
            seen[line, was, now] += 1
            mutants.append(Mutant(self.name, start, end, text, line, was, now, seen[line, was, now], code))
        return mutants


def short(text):
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def mutants_of(name, text):
    return File(name, text).mutants()
