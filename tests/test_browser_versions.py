"""Scripts and style sheets use nothing that is newer than the oldest browsers that README.md names,
unless it stands behind a guard, or a browser that passes over it loses little.

The versions are those of MDN's compatibility data; 999 stands for none yet."""

import re
from pathlib import Path

import pytest

from support.sources import ROOT, STATIC

BROWSERS = ("Safari", "Firefox", "Chrome")
FLOOR = (16.4, 119, 111)
# Where embed.js is understood at all; up to the floor it shows a link.
PARSED = (15, 90, 85)
TOPICS = ("embed", "moderation")
FILES = [path for path in STATIC.iterdir() if path.suffix in (".js", ".css")]
COMMENT = re.compile(r"/\*.*?\*/|(?<![:'\"\\])//[^\n]*", re.DOTALL)

# A pattern, and the first Safari, Firefox and Chrome that know it. What all browsers at the floor
# know is not here.
SYNTAX = {
    r"^ +static \{": (16.4, 93, 94),
    r"\(\?<[=!]": (16.4, 78, 62),
    r"\(\?[ims]+:": (26, 132, 125),
    r"/[dgimsuy]*v[dgimsuy]*[.,;)\]\s]": (17, 116, 112),
    r"^await ": (15, 89, 89),
    r"\bwith \{type": (17.2, 138, 123),
    r"^ *(await )?using \w+ =": (999, 141, 134),
}
SCRIPT = {
    r"\.(is|to)WellFormed\b": (16.4, 119, 111),
    r"\b(Object|Map)\.groupBy\b": (17.4, 119, 117),
    r"\.(values|keys|entries)\(\)\.\w+\(|\.matchAll\([^()]*\)\.\w+\(": (18.4, 131, 122),
    r"\bRegExp\.escape\b": (18.2, 134, 136),
    r"\bIntl\.Segmenter\b": (14.1, 125, 87),
    r"\bURL\.canParse\b": (17, 115, 120),
    r"\b(show|hide|toggle)Popover\(|\bpopover\b": (17, 125, 114),
    r"\bgetComposedRanges\b": (17, 142, 137),
    r"\bnavigation\b": (26.2, 147, 102),
    r"\bCSS\.highlights\b|\bnew Highlight\b": (17.2, 140, 105),
    r"\btrustedTypes\b": (26, 148, 83),
}
STYLE = {
    r":has\(": (15.4, 121, 105),
    r"::highlight\(": (17.2, 140, 105),
    r"(^|[{;}])\s*&": (17.2, 117, 120),
    r"@property\b": (16.4, 128, 85),
    r"@starting-style\b": (17.5, 129, 117),
    r"\blight-dark\(": (17.5, 120, 123),
    r"\b(lch|lab|rgb|hsl|color)\(from\b": (16.4, 128, 119),
    r"(?<!\.)\bround\(": (15.4, 118, 125),
    r"\bfield-sizing\b": (26.2, 152, 123),
    r"\btext-autospace\b": (18.4, 145, 140),
    r"\btext-spacing-trim\b": (999, 999, 123),
    r"\bhanging-punctuation\b": (10, 999, 999),
    r"\btext-wrap: balance": (17.5, 121, 114),
    r"\btext-wrap: pretty": (26, 999, 117),
    r"[ {;]mask\b": (15.4, 53, 120),
    r'content: "[^"]*" /': (17.4, 128, 77),
    r"\bsubgrid\b": (16, 71, 117),
    r"\bforced-color-adjust\b": (999, 113, 89),
    r"\bcontent-visibility\b": (18, 125, 85),
    r"\bbackdrop-filter\b": (18, 103, 76),
    r"\banchor-name\b|\bposition-anchor\b": (26, 147, 125),
}

# What a browser lacks that passes over such a declaration.
LOST = {
    r":has\(": "an empty tab of /admin is shown, and two hints of the layout are gone",
    r"::highlight\(": "code has one colour",
    r"\bfield-sizing\b": "fields of /admin do not grow with their text; the widget's do by script",
    r"\bcontent-visibility\b": "long threads take longer to lay out",
    r"\btext-autospace\b": "the small gaps between Chinese and Latin letters",
    r"\btext-spacing-trim\b": "tighter Chinese punctuation",
    r"\bhanging-punctuation\b": "punctuation in the margin",
    r"\btext-wrap: balance": "lines of the same length",
    r"\btext-wrap: pretty": "a last line of more than one word",
    r"[ {;]mask\b": "what is folded ends without fading",
    r'content: "[^"]*" /': "the arrow at links to other sites",
    r"\bforced-color-adjust\b": "the avatar keeps its colours in forced colours",
}
# What may use such a feature: a guard, and all that it lets in.
GUARDED = {
    r"\bgetComposedRanges\b": r"if \(!selection\.getComposedRanges\) return\n.*?^}",
    r"\bnavigation\b": r"window\.navigation\?\.",
    r"\btrustedTypes\b": r"try \{\n *policy .*?\} catch",
    r"\bCSS\.highlights\b|\bnew Highlight\b": r"\A.*if \(!window\.Highlight\b.*\Z",
    r"\b(lch|lab|rgb|hsl|color)\(from\b": (
        r"@supports \(color: lch\(from.*?^}|::highlight\([^}]*}"
        r"|exec\(computed\(`color\(from .*?\)\?\."  # no color, no match
    ),
}
FEATURES = SYNTAX | SCRIPT | STYLE


def code(path: Path) -> str:
    return COMMENT.sub("", path.read_text("utf-8"))


def is_newer(feature: str, than: tuple[float, ...]) -> bool:
    return any(known > asked for known, asked in zip(FEATURES[feature], than, strict=True))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_scripts_and_styles_use_nothing_newer_than_the_oldest_browsers_without_a_guard(
    path: Path,
) -> None:
    text = code(path)
    found = []
    for feature, versions in FEATURES.items():
        if is_newer(feature, FLOOR) and feature not in LOST:
            guard = re.compile(GUARDED.get(feature, r"\Z"), re.MULTILINE | re.DOTALL)
            if use := re.search(feature, guard.sub("", text), re.MULTILINE):
                found.append((use[0], dict(zip(BROWSERS, versions, strict=True))))
    assert found == []


def test_older_browsers_understand_the_widget_and_leave_it_at_the_floor() -> None:
    text = code(STATIC / "embed.js")
    newer = [feature for feature in SYNTAX if is_newer(feature, PARSED)]
    assert [feature for feature in newer if re.search(feature, text, re.MULTILINE)] == []
    before_the_style = text.partition("new CSSStyleSheet")[0]
    gate = re.search(r"if \(!''(\.\w+)\) \{\n.*?\bthrow ", before_the_style, re.DOTALL)
    assert gate
    assert [FEATURES[each] for each in SCRIPT if re.fullmatch(each, gate[1])] == [FLOOR]


def test_each_exception_for_a_newer_browser_feature_is_used() -> None:
    everything = "\n".join(map(code, FILES))
    for feature in [*LOST, *GUARDED]:
        assert is_newer(feature, FLOOR)
        assert re.search(feature, everything), feature


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "static/admin.html",
        *(f"static/help/{lang}/{topic}.md" for lang in ("en", "zh") for topic in TOPICS),
    ],
)
def test_the_manual_names_the_oldest_browsers(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    for browser, version in zip(BROWSERS, FLOOR, strict=True):
        assert set(re.findall(rf"{browser} ([\d.]*\d)", text)) >= {str(version)}
