"""The slow twin of `line_protocol.parse`: a walk over the characters of a line, one by one."""

from __future__ import annotations

BLANK, BAD = " \t\v\f", "\t\n\v\f\r"
WORDS = {"t": True, "T": True, "true": True, "True": True, "TRUE": True}
WORDS |= {"f": False, "F": False, "false": False, "False": False, "FALSE": False}
DIGITS = "0123456789"


class NoMetric(Exception):
    """The twin takes a line for none."""


class Walk:
    """A place in a text."""

    def __init__(self, text: str) -> None:
        self.text, self.i = text, 0

    @property
    def here(self) -> str:
        return self.text[self.i : self.i + 1]

    @property
    def next(self) -> str:
        return self.text[self.i + 1 : self.i + 2]

    def skip_blanks(self) -> int:
        begin = self.i
        while self.here and self.here in BLANK:
            self.i += 1
        return self.i - begin

    def name(self, ends: str, unescaped: str, *, tag: bool = False) -> str:
        """Read a name up to one of `ends`."""
        out = ""
        while self.here and self.here not in ends + " " + BAD:
            if self.here != "\\":
                out += self.here
                self.i += 1
            elif tag and self.next == "\\":
                out += "\\"
                self.i += 1
            elif not self.next or self.next in BAD:
                raise NoMetric
            else:
                out += self.next if self.next in unescaped else "\\" + self.next
                self.i += 2
        if not out:
            raise NoMetric
        return out

    def expect(self, char: str) -> None:
        if self.here != char:
            raise NoMetric
        self.i += 1

    def value(self) -> float | bool | str:
        if self.here == '"':
            return self.quoted()
        begin = self.i
        while self.here and self.here not in "," + BLANK:
            self.i += 1
        word = self.text[begin : self.i]
        return WORDS[word] if word in WORDS else number(word)

    def quoted(self) -> str:
        out = ""
        self.i += 1
        while self.here != '"':
            if not self.here or self.here == "\n":
                raise NoMetric
            if self.here == "\\":
                if not self.next or self.next == "\n":
                    raise NoMetric
                out += self.next if self.next in '"\\' else "\\" + self.next
                self.i += 2
            else:
                out += self.here
                self.i += 1
        self.i += 1
        return out


def number(word: str) -> float:
    digits = word.removeprefix("-")
    if word and word[-1] in "iu":
        digits = digits[:-1]
        signed = word.startswith("-") and word[-1] == "u"
        if signed or not 1 <= len(digits) <= 20 or set(digits) - set(DIGITS):
            raise NoMetric
        return float(word[:-1])
    mantissa, e, exponent = digits.replace("E", "e").partition("e")
    whole, _, part = mantissa.partition(".")
    if not whole + part or set(whole + part) - set(DIGITS):
        raise NoMetric
    exponent = exponent[1:] if exponent[:1] in ("-", "+") else exponent
    if e and (not exponent or set(exponent) - set(DIGITS)):
        raise NoMetric
    return float(word)


def parse(line: bytes) -> tuple[str, dict, dict, int | None] | None:
    """Return measurement, tags, fields and time; None if the line is empty or a comment."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise NoMetric from None
    walk = Walk(text[:-1] if text.endswith("\r") else text)
    walk.skip_blanks()
    if walk.here in ("", "#"):
        return None
    measurement, tags, fields = walk.name(",", ", "), {}, {}
    while walk.here == ",":
        walk.i += 1
        key = walk.name(",=", ",= ", tag=True)
        walk.expect("=")
        tags[key] = walk.name(",=", ",= ", tag=True)
    if not walk.skip_blanks():
        raise NoMetric
    while True:
        key = walk.name(",=", ",= ")
        walk.expect("=")
        fields[key] = walk.value()
        if walk.here != ",":
            break
        walk.i += 1
    blanks = walk.skip_blanks()
    rest = walk.text[walk.i :].rstrip(BLANK)
    if not rest:
        return measurement, tags, fields, None
    digits = rest.removeprefix("-")
    if not blanks or not 1 <= len(digits) <= 19 or set(digits) - set(DIGITS):
        raise NoMetric
    if not -(2**63) < int(rest) < 2**63:
        raise NoMetric
    return measurement, tags, fields, int(rest)
