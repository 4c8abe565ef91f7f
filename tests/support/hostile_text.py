"""Texts that mean harm, and the markup that may come of them."""

import random
import re
from html.parser import HTMLParser
from typing import Any

from commentd import has_controls
from support.widget import CLOBBERED

TAGS = {
    *("p", "br", "em", "strong", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a", "hr"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
REL = "nofollow ugc noopener noreferrer"
# What a formula may become, and what its attributes may say.
MATHML = {
    *("math", "mi", "mn", "mo", "mtext", "mspace", "mrow", "mfrac", "msqrt", "mroot", "mstyle"),
    *("mpadded", "mphantom", "msub", "msup", "msubsup", "munder", "mover", "munderover"),
    *("mmultiscripts", "mprescripts", "mtable", "mtr", "mtd"),
}
MATHML_VALUES = {
    **dict.fromkeys(("minsize", "maxsize", "width", "linethickness"), "-?[0-9.]{1,6}(em)?"),
    **dict.fromkeys(("displaystyle", "stretchy", "accent"), "true|false"),
    **dict.fromkeys(("columnlines", "rowlines"), "(none|solid|dashed| )+"),
    "display": "block|inline",
    "dir": "ltr",
    "scriptlevel": "[0-2]",
    "mathvariant": "normal|bold|italic|monospace",
    "form": "prefix|infix|postfix",
    "class": "left|right",
    "alttext": "(?s).*",
}
VOID = {"br", "hr", "img"}
# What `Images` may add: pictures of a host that the owner named, and stickers.
PICTURE = {
    "src": r"https://(i|a\.many)\.example([/?#].*)?",
    "alt": ".*",
    "loading": "lazy",
    "decoding": "async",
    "referrerpolicy": "no-referrer",
}
STICKER = {
    "class": "sticker",
    "src": r"https://comments\.example/stickers/[\w.%-]+\?[0-9a-f]{8}",
    "alt": ".*",
    "width": "[0-9]{1,3}",
    "height": "24",
}


class AllowListParser(HTMLParser):
    """Raises for any markup beyond the allow-list."""

    def __init__(self, *, has_images: bool) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.has_images = has_images

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        assert len(attributes) == len(attrs)
        if tag in MATHML:
            for name, value in attributes.items():
                assert re.fullmatch(MATHML_VALUES[name], value or ""), (name, value)
            self.opened.append(tag)
            return
        if tag == "img" and self.has_images:
            assert_image(attributes)
            return
        assert tag in TAGS, tag
        if tag == "a":
            assert attributes.pop("class", "picture") == "picture"
        assert attributes.pop("rel", None) == (REL if tag == "a" else None)
        target = attributes.pop("href", "mailto:" if tag == "a" else None)
        start = attributes.pop("start", None) if tag == "ol" else None
        assert re.fullmatch("[0-9]{1,9}", start or "1")
        side = attributes.pop("align", None) if tag in ("th", "td") else None
        assert side in (None, "left", "center", "right")
        language = attributes.pop("class", None) if tag == "code" else None
        assert re.fullmatch("(?a)language-[a-z0-9][a-z0-9+#-]{0,19}", language or "language-x")
        assert not attributes, attributes
        assert (
            target is None if tag != "a" else re.match(r"(?i)https?://[^/\\]|mailto:", target or "")
        )
        if tag not in VOID:
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


def assert_image(attributes: dict[str, str | None]) -> None:
    patterns = STICKER if "class" in attributes else PICTURE
    assert attributes.keys() == patterns.keys()
    for name, pattern in patterns.items():
        assert re.fullmatch(f"(?s){pattern}", attributes[name] or ""), (name, attributes[name])


def assert_allowed(*markups: str, has_images: bool = False) -> None:
    """Each is within the allow-list, and closed."""
    for markup in markups:
        parser = AllowListParser(has_images=has_images)
        parser.feed(markup)
        parser.close()
        assert parser.opened == []


ATTACKS = [
    "<script>alert(1)</script>",
    "<ScRiPt src=//x></sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<iframe src=javascript:alert(1)>",
    "<body onload=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<a href='http://x' onclick=alert(1)>x</a>",
    "<math><mtext><table><mglyph><style><!--</style>"
    '<img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
    "<form action=//x><input></form>",
    "<object data=x>",
    "<embed src=x>",
    "<details open ontoggle=alert(1)>",
    "<template><script>x</script></template>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "<<script>alert(1)//<</script>",
    "<img src=x:x onerror\n=alert(1)//",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x]( javascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](javascript&colon;alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](vbscript:x)",
    "[x](/relative)",
    "[x](?q)",
    "[x](#id)",
    "[x](\\\\evil.example)",
    "[x](http:relative)",
    "[x](https:/relative)",
    "[x](https:\\evil)",
    '[x](http://a" onmouseover="alert(1))',
    "[x](http://a 'ti\"tle onload=x')",
    '[x](http://a "title")',
    "[x]: javascript:alert(1)\n\n[x]",
    '[x]: http://a "<b>"\n\n[x][x]',
    "<javascript:alert(1)>",
    '<http://a"onload=x>',
    "![x](javascript:alert(1))",
    '![x"onerror="alert(1)](http://x)',
    "![<img src=x onerror=alert(1)>](http://x)",
    "[![x](http://a)](javascript:alert(1))",
    '![x](http://a "onload")',
    "`<script>alert(1)</script>`",
    "```html\n<script>alert(1)</script>\n```",
    '```"onload=alert(1)\nx\n```',
    "    <script>alert(1)</script>",
    "# <script>alert(1)</script>",
    "# x {#id .class onload=x}",
    "> <script>alert(1)</script>",
    "* <img src=x onerror=alert(1)>",
    "http://a.b/<script>alert(1)</script>",
    'http://a.b/"onmouseover=alert(1)//',
    "javascript:alert(1)",
    'www.a.b"><img src=x>',
    "**<b onmouseover=alert(1)>x**",
    "~~<svg onload=x>~~",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\\<script>alert(1)\\</script>",
    '<a href="http://a" style="x" id=x class=x name=x target=_top>',
    "<x onclick=alert(1) y='",
    "</p></div><script>",
    "<\0script>",
    "{{constructor.constructor('alert(1)')()}}",
    "a\u2028<script>\u2029",
    "＜script＞alert(1)＜/script＞",
    "%3Cscript%3E",
    "$\\text{<img src=x onerror=alert(1)>}$",
    "$\\text{</math><img src=x onerror=alert(1)>}$",
    "$\\text{<style><!--</style>}$ <img title='--><img src=x onerror=alert(1)>'>",
    "$$\\text{&lt;script>alert(1)</script>}$$",
    "$\\href{javascript:alert(1)}{x}$",
    "$\\style{background:url(//x)}{x}\\class{x}{x}\\cssId{x}{x}$",
    "$\\unicode{x3c}\\unicode{x3e}\\char`<$",
    '$x" onmouseover="alert(1)$',
    '$\\color{red" onload="alert(1)}{x}$',
    '$\\hspace{1em" onload="alert(1)}$',
    "$\\verb|<img src=x onerror=alert(1)>|$",
    "$\\mathchoice{<b>}{<i>}{<u>}{<s>}$",
    "```math\n\\text{<script>alert(1)</script>}\n```",
    "$\\def\\x{\\x\\x}\\x$",
    "<math href=javascript:alert(1)><mi xlink:href=data:x>x</mi></math>",
    "<math><mtext></p><script>alert(1)</script></mtext></math>",
    "<math><annotation-xml encoding=text/html><img src=x onerror=alert(1)></annotation-xml></math>",
    "<math><mi><table><style><math><img src=x onerror=alert(1)></style></table></mi></math>",
    "<math><maction actiontype=statusline xlink:href=javascript:alert(1)>x</maction></math>",
]

FRAGMENTS = [
    ":cats_hello:",
    "![a](https://i.example/",
    "](https://a.many.example/x.png)",
    "https://i.example/a",
    '<a class="picture" href="https://i.example/',
    "[",
    "](",
    ")",
    "![",
    "<",
    ">",
    "</",
    "`",
    "```",
    "\n",
    "\n\n",
    "    ",
    "> ",
    "* ",
    "1. ",
    "# ",
    "**",
    "_",
    "~~",
    "|",
    "\\",
    "$",
    "$$",
    "$\\text{",
    "}$",
    "\\frac{",
    "^{",
    "&",
    "&#x6a;",
    "&lt;",
    "&#0;",
    '"',
    "'",
    "=",
    "javascript:",
    "http://a.b",
    "https:",
    "//",
    "mailto:a@b.cd",
    "<script>",
    "<img src=x onerror=y>",
    "<!--",
    "-->",
    "<svg>",
    "<a href=",
    " onload=",
    "data:",
    "[x]: ",
    "www.",
    "---",
    "<http://a>",
    "]]>",
    "<?",
    "你",
    "\u202e",
    "\t",
    "a",
    " ",
    "--!>",
    "<![CDATA[",
    "</p>",
    "<br/>",
    "&NewLine;",
    "&Tab;",
    "&colon;",
    "&#x1f600;",
    "&ampamp;",
    "&notin",
    "\x00",
    "\x01",
    "\x0b",
    "\x0c",
    "\r",
    "\x1b",
    "\x7f",
    "\x85",
    "\xa0",
    "\u2028",
    "\u2029",
    "\u2066",
    "\ufeff",
    "\ufffd",
    "\uffff",
    "\U0010ffff",
    "\u017f",
    "\u212a",
    "\uff1c",
    "e\u0301",
    "👩‍💻",
]

ELEMENTS = (  # noqa: SIM905
    "a article b base body br button code details div dl em embed form frameset h1 head hr html i "
    "iframe img input isindex keygen li link listing marquee meta nobr noembed noframes noscript "
    "object ol option p param plaintext pre s script select slot span strong style table tbody td "
    "template textarea tfoot th title tr u ul video xmp svg math mi mo mtext mglyph malignmark "
    "mrow mtable mtr mtd msup mspace maction semantics annotation annotation-xml foreignObject "
    "desc use animate set path image constructor __proto__ x-y"
).split()

ATTRIBUTES = (  # noqa: SIM905
    "href src onload onerror onclick onfocus onmouseover style class id name rel target title "
    "srcdoc action formaction xlink:href xmlns background poster data type encoding autofocus is "
    "slot part http-equiv content values attributeName constructor"
).split()

SCHEMES = (  # noqa: SIM905
    "javascript: vbscript: data: file: blob: view-source: jar: about: ftp: tel: mailto: http: "
    "https: http:// https:// // /// \\\\ / ? # http:/ https:\\\\"
).split()


def broken_url(chance: random.Random) -> str:
    """A URL, spelled in one of the ways in which browsers read it all the same."""
    text = chance.choice(SCHEMES)
    for _ in range(chance.choice([0, 0, 1, 2])):
        at = chance.randrange(len(text) + 1)
        sign = text[at : at + 1] or "x"
        ways = [sign.swapcase(), f"&#{ord(sign)};", f"&#x{ord(sign):x}", f"%{ord(sign):02x}"]
        ways += [blank + sign for blank in ("&Tab;", "\t", "\n", "\x01", "\u200b")]
        text = text[:at] + chance.choice(ways) + text[at + 1 :]
    return text + chance.choice(["window.xss=1", "alert(1)", "/evil.test/x.js", "text/html,<p>"])


# In braces stands what is chosen by chance; `inner` is written by the same rules. `¦` is the line
# between the cells of a table.
GRAMMAR = (
    """
<{tag}{attribute}>{inner}</{tag}>|<{tag}{attribute}{attribute}>{inner}|<{tag}{attribute}/>{inner}
<{tag}{attribute} {inner}|<!--{inner}-->|<!--{inner}--!>|<!--{inner}|<![CDATA[{inner}]]>
<?{tag} {inner}?>|<!{tag} {inner}>|[{inner}]({url})|[{inner}]({url} {fragment}{inner}')
![{inner}](<{url}>)|[![{inner}]({url})]({url})|[{inner}]: {url} '{inner}'~~[{inner}] [x][{inner}]
<{url}>| {url} |*{inner}*|**{inner}|_{inner}_|`{inner}`|``{inner}|~```{inner}~{inner}~```~
${inner}$|$\\text{{inner}}$|$${inner}$$|~```math~{inner}~```~|$x_{{inner}}$
~¦ {inner} ¦ {inner} ¦~¦:--¦--:¦~¦ {inner} ¦ {inner} ¦~|~{inner} ¦ b~--- ¦ ---~c ¦ {inner}~
~> {inner}~|~* {inner}~|~1. {inner}~|~# {inner}~|~    {inner}~|~- [ ] {inner}~|{fragment}
""".strip()
    .replace("\n", "|")
    .replace("~", "\n")
    .replace("|", "\0")
    .replace("¦", "|")
    .split("\0")
)


def writing(chance: random.Random, depth: int = 3) -> str:
    """What a stranger may have written: a grammar, known attacks, and accidents to both."""

    def chosen(name: str) -> str:
        if name == "inner":
            return writing(chance, depth - 1)
        if name == "attribute":
            quote, blank = chance.choice('""\'` '), chance.choice(" /\n\x0c")
            value = broken_url(chance) if chance.random() < 0.7 else writing(chance, 0)
            return f"{blank}{chance.choice(ATTRIBUTES)}={quote}{value}{quote}"
        if name == "url":
            return broken_url(chance)
        return chance.choice(ELEMENTS if name == "tag" else FRAGMENTS)

    forms = chance.choices(
        GRAMMAR if depth > 0 else ["{fragment}"], k=chance.choice([0, 1, 1, 2, 3])
    )
    text = re.sub(r"\{(\w+)\}", lambda found: chosen(found[1]), "".join(forms))
    while depth == 3 and chance.random() < 0.6:
        cut, at = sorted(chance.choices(range(len(text) + 1), k=2))
        pieces = [
            text[cut:at],
            "",
            chance.choice(FRAGMENTS),
            chance.choice(ATTACKS),
            text[cut:at][::-1],
            text[cut:at] * chance.choice([2, 3, 50]),
        ]
        text = (text[:cut] + chance.choice(pieces) + text[at:])[:2000]
    return text


def printable(text: str) -> str:
    """Without what no field takes."""
    return "".join(c for c in text if c in "\n\t" or not has_controls(c)).strip() or "x"


NAMES = ["<b>Ann", "\"onload='x'", "&lt;script&gt;"]


def hostile_fields(chance: random.Random) -> dict[str, Any]:
    content = printable(writing(chance) + chance.choice(ATTACKS))
    website = "https://evil.test/?a=1&lt;b&amp;(c)"
    return {"nickname": chance.choice(NAMES), "website": website, "content": content}


# What stands on the page.
MARKUP = {
    "names": CLOBBERED,
    "style": "<style>* { all: unset !important; color: red !important } div { width: 1px }</style>",
}
