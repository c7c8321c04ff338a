"""Names that a stranger could give a channel or a unit, to do something where they are shown.

`MARK` is in each: what is shown of one is found by it.
"""

from __future__ import annotations

from typing import Any

MARK = "pwned"

HOSTILE = {
    "markup": f"<img src=x onerror=\"document.title='{MARK}'\"><b>{MARK}</b>",
    "script": f"</script><script>document.title='{MARK}'</script>{MARK}",
    "attribute": f"\"' onmouseover='document.title=1' x='{MARK}",
    "link": f"<a href='https://stranger.example/{MARK}'>{MARK}</a>",
    "address": f"javascript:document.title='{MARK}'",
    "style": f"{MARK}<style>*{{display:none!important}}</style>",
    "template": "{{7*7}}" + f"{{% {MARK} %}}${{7*7}}",
    "direction": f"{MARK}\u202egnp.exe\u2066\u200f",
    "unseen": f"\u200b\u00ad\ufeff\u2028\u2029{MARK}",
    "terminal": f"\x1b[31m{MARK}\x1b]0;{MARK}\x07\x1b[2J\x9b1m\x08\r\n{MARK}",
    "rich": f"[bold red]{MARK}[/] [link=https://stranger.example]{MARK}[/link]",
    "zalgo": MARK + "\u0301" * 300,
    "long": MARK + "x" * 65_536,
}
"""By what they try."""


def does_nothing(page: Any, title: str = "submerge") -> None:
    """Fail if a name that is shown in a page has done anything."""
    assert title in page.title()
    assert 0 == page.locator("main :is(img, script, style, iframe, object, embed, b)").count()
    assert [] == page.evaluate(FOREIGN_LINKS)
    assert "" == page.evaluate(UNSEEN)
    assert page.locator("main h1").first.evaluate("(e) => getComputedStyle(e).display") != "none"


FOREIGN_LINKS = """[...document.querySelectorAll("a, [onmouseover], [onerror]")]
  .filter((e) => e.tagName !== "A" || new URL(e.href).origin !== location.origin)
  .map((e) => e.outerHTML)"""

UNSEEN = r"""(document.body.innerText
  + [...document.querySelectorAll("*")].flatMap((e) => [e.title, e.ariaLabel, e.value]).join(""))
  .match(/[\p{Cf}\p{Cc}\u2028\u2029]/gu)?.filter((c) => c !== "\n" && c !== "\t")
  .map((c) => c.codePointAt(0).toString(16)).join(" ") ?? "" """
