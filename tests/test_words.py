"""What the widget and its emails say, in each language."""

import json
import re
import textwrap
from typing import Any

import pytest
from playwright.sync_api import Browser

from commentd import App
from support import inside
from support.blog import service
from support.client import PAGE, Visitor
from support.inside import sql
from support.refusals import refusals
from support.sources import MANUAL, ROOT, STATIC
from support.words import ADMIN, FIRST_KEYS, WORDS

SCRIPTS = [
    "embed.js",
    "errors.js",
    "reading.js",
    "writing.js",
    "own.js",
    "account.js",
    "moderate.js",
]
EMAILS = json.loads((STATIC / "emails.json").read_bytes())
BILINGUAL = EMAILS.pop("zh+en")
INTL = json.loads((STATIC / "intl.json").read_bytes())


def bare(words: dict[str, str]) -> dict[str, set[str]]:
    """The placeholders of each key; what is counted is one key."""
    found: dict[str, set[str]] = {}
    for key, text in words.items():  # some languages have words for none, one and two
        place = re.sub(r"_(zero|one|two|few|many|other)$", "", key)
        found.setdefault(place, set()).update(re.findall(r"\{\w+\}", text))
    return found


def object_of(browser: Browser, script: str, name: str) -> Any:
    """What a script binds to a constant, as the browser reads it."""
    [_, bound] = (STATIC / script).read_text("utf-8").split(f"const {name} = ")
    end = re.search(r"\n *}\n", bound)
    assert end
    page = browser.new_page()
    value = page.evaluate(f"({bound[: end.end()]})")
    page.close()
    return value


# How browsers write the fifth of each month, its time, a large number, numbers and countries.
COUNTED = [7, 123, 1234, 12345, 1234567]
FORMS = """([tag, codes, numbers]) => {
  const names = new Intl.DisplayNames(tag, {type: 'region'})
  const rules = new Intl.PluralRules(tag)
  const write = (month, how) => new Date(2024, month, 5, 13, 7).toLocaleString(tag, how)
  return {
    dates: [...Array(12).keys()].map(month => write(month, {dateStyle: 'medium'})),
    moment: write(0, {dateStyle: 'medium', timeStyle: 'short'}),
    numbers: numbers.map(n => n.toLocaleString(tag)),
    plural: [...Array(1200).keys()].map(n => rules.select(n)),
    regions: Object.fromEntries(codes.map(code => [code, names.of(code)])),
  }
}"""


def tag_of(language: str) -> str:
    """The name in the widget of a language of emails."""
    return {"zh": "zh-CN", "zh-tw": "zh-TW"}.get(language, language)


def languages_by_place() -> dict[str, tuple[str, set[str]]]:
    """Each place that has to know a language: what to do there for one, and those that it knows, by
    the names of the widget."""
    places = {
        "static/words/{}.json": ("copy en.json, and translate it", {*WORDS}),
        "static/words/admin-{}.json": ("copy admin-en.json, and translate it", {*ADMIN}),
        "static/emails.json": ('add "{}": copy "en", and translate it', {*EMAILS}),
        "static/intl.json": ('add "{}": copy "es", then run the test again', {*INTL}),
        "commentd.py": ('add "{}" to LANGUAGES', inside.languages()),
    }
    for folder, topics in MANUAL.items():
        [line] = [line for line in topics["embed"].splitlines() if "`zh-CN` `zh-TW`" in line]
        found = re.findall("`([a-z]{2}(?:-[A-Z]{2})?)`", line)
        lead = re.split("[`：]", line)[0]
        what = f"add `{{}}` to the line “{lead.strip()}”"
        places[f"static/help/{folder}/embed.md"] = (what, {*found})
    return {place: (what, {*map(tag_of, known)}) for place, (what, known) in places.items()}


def test_a_language_is_in_every_place_that_has_to_know_it() -> None:
    places = languages_by_place()
    everywhere = {language for _, known in places.values() for language in known}
    lacking = [
        f"{place.format(language)}: {what.format(language)}"
        for place, (what, known) in places.items()
        for language in sorted(everywhere - known)
    ]
    readme = (ROOT / "README.md").read_text("utf-8")
    lacking += [
        f"README.md: write “{count}”"
        for count in (f"in {len(everywhere)} languages", f"等 {len(everywhere)} 种语言")
        if count not in " ".join(readme.split())
    ]
    assert not lacking, "\n".join(lacking)


def region_lines(regions: dict[str, str]) -> str:
    """The names of countries as `static/intl.json` has them."""
    text = json.dumps(regions, ensure_ascii=False)[1:-1].replace(" ", "\0").replace(",\0", ", ")
    lines = textwrap.wrap(text, 114, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"      {line}" for line in lines).replace("\0", " ")


def test_dates_numbers_and_countries_are_written_as_browsers_write_them(browser: Browser) -> None:
    page = browser.new_page()
    wrong = []
    for language, entry in INTL.items():
        there = f"static/intl.json: {language}:"
        browsers = page.evaluate(FORMS, [tag_of(language), [*INTL["en"]["country_names"]], COUNTED])
        dates = [
            entry["day_format"].format(day=5, month=each, year=2024) for each in entry["months"]
        ]
        before_time = entry["day_and_time_format"].partition("{time}")[0].format(day=dates[0])
        numbers = [
            f"{n:,}".replace(",", entry["thousands_separator"])
            if n >= entry.get("least_separated", 0)
            else f"{n}"
            for n in COUNTED
        ]
        for keys, own, wanted in (
            ("widget_language", entry["widget_language"], tag_of(language)),
            ("day_format, months", dates, browsers["dates"]),
            ("day_and_time_format", before_time, browsers["moment"][: len(before_time)]),
            ("thousands_separator, least_separated", numbers, browsers["numbers"]),
        ):
            if own != wanted:
                wrong.append(f"{there} {keys}: gives {own!r}, browsers write {wanted!r}")
        for n, form in enumerate(browsers["plural"]):
            forms = [
                name for name, of in entry["plural_patterns"].items() if re.fullmatch(of, str(n))
            ]
            if [*forms, "other"][0] != form:
                wrong.append(f"{there} plural_patterns: {n} has to be of the form {form!r}")
                break
        differing = dict(browsers["regions"].items() - entry["country_names"].items())
        if len(differing) > 9:  # browsers of other versions have other names for a few
            wrong.append(f"{there} country_names: write\n{region_lines(browsers['regions'])}")
    page.close()
    assert not wrong, "\n".join(wrong)


def test_a_language_has_every_text_with_its_placeholders() -> None:
    wrong = []
    for prefix, tables in (("", WORDS), ("admin-", ADMIN)):
        english = bare(tables["en"])
        for language, words in tables.items():
            file, own = f"static/words/{prefix}{language}.json", bare(words)
            wrong += [f"{file} lacks {key}" for key in english.keys() - own.keys()]
            wrong += [f"{file} has {key}, English not" for key in own.keys() - english.keys()]
            wrong += [
                f"{file}: {key}: the placeholders are {own[key] or {}}, in English {names or {}}"
                for key, names in english.items()
                if key in own and own[key] != names
            ]
            for key, text in words.items():
                if text != text.strip() or not text:
                    wrong.append(f"{file}: {key} is empty, or has a space at an end")
                elif key != "level_fail" and re.search(r"[<>]|\b[Ee]rror\b", text):
                    wrong.append(f"{file}: {key} has < or > or “error”")
    assert not wrong, "\n".join(sorted(wrong))


def test_the_first_texts_are_those_that_the_first_script_says_by_itself() -> None:
    said = set(re.findall(r"\w+", (STATIC / "embed.js").read_text("utf-8")))
    assert [key for key in FIRST_KEYS if key not in said] == []
    assert set(FIRST_KEYS) <= bare(WORDS["en"]).keys()


def test_the_texts_of_a_language_are_served_in_two_parts_that_make_up_its_file(
    visitor: Visitor,
) -> None:
    for language, words in WORDS.items():
        later = visitor.get(f"/words/{language}.json").json
        first = {key: text for key, text in words.items() if key not in later}
        assert {*bare(first)} == {*FIRST_KEYS}, language
        assert first | later == words
        if language not in {"en", "zh-CN"}:  # embed.js has these
            assert visitor.get(f"/words/first-{language}.json").json == first


def test_a_reader_who_chooses_a_password_is_advised_to_make_it_long() -> None:
    script = (STATIC / "account.js").read_text("utf-8")
    steps = [line for line in script.splitlines() if "password('new-password'" in line]
    assert len(steps) == 2  # to register, and to change it
    assert [line for line in steps if "advice()" not in line] == []
    for language, words in WORDS.items():
        assert "8" in words["advice"], f"static/words/{language}.json: advice has to say 8"


def test_each_language_counts_as_its_readers_do(browser: Browser) -> None:
    page = browser.new_page()
    wrong = []
    for prefix, tables in (("", WORDS), ("admin-", ADMIN)):
        for language, words in tables.items():
            rules = f"new Intl.PluralRules('{language}').resolvedOptions().pluralCategories"
            forms = {f"_{form}" for form in page.evaluate(rules)}
            keys = {name.removesuffix("_other") for name in words if name.endswith("_other")}
            assert keys & {"count", "n_comments"}
            for key in keys:
                own = {name.removeprefix(key) for name in words if name.startswith(f"{key}_")}
                file = f"static/words/{prefix}{language}.json"
                wrong += [f"{file} lacks {key}{form}" for form in forms - own]
                wrong += [f"{file}: {language} does not use {key}{form}" for form in own - forms]
    page.close()
    assert not wrong, "\n".join(sorted(wrong))


def test_the_texts_of_each_language_say_in_which_direction_it_is_written(browser: Browser) -> None:
    page = browser.new_page()
    for place, tables in (
        ("static/words/{}.json", WORDS),
        ("static/words/admin-{}.json", ADMIN),
        ("static/emails.json: {}", EMAILS),
    ):
        for language, words in tables.items():
            wanted = page.evaluate(f"new Intl.Locale('{language}').getTextInfo().direction")
            assert words["dir"] == wanted, f"{place.format(language)}: dir has to be {wanted}"
    page.close()


def test_every_text_that_a_script_shows_exists_and_none_is_left_over() -> None:
    source = "".join((STATIC / name).read_text("utf-8") for name in SCRIPTS)
    used = set(
        re.findall(r"(?:\bsay|\bbadge|(?<!classList\.)\badd|\bagain|\bfield)\('(\w+)'[,)]", source)
    )
    known = bare(WORDS["en"])
    assert used - known.keys() == set()
    quoted = set(re.findall(r"\w+", source))
    codes = inside.codes() | {refusal.code for refusal in refusals()} | {"captcha"}
    served = set(re.findall(r"\w+", (ROOT / "commentd.py").read_text("utf-8")))
    served |= set(re.findall(r"\w+", (STATIC / "fragment.html").read_text("utf-8")))
    left = {key for key in known if key not in quoted | codes | served}
    assert {key for key in left if not key.endswith("_missing")} <= {
        "wasspam",
        "wasdeleted",
        "email_invalid",
    }


# What only a fault of a script brings, or what has no more to say than its status.
WITHOUT_WORDS = {
    *("content_type", "json_invalid", "url_invalid", "http_invalid", "length_required"),
    *("headers_too_large", "method_not_allowed", "host_unknown", "internal", "not_found"),
    *("ids_invalid", "versions_invalid", "pin_invalid", "block_gone", "user_gone"),
}


# What only who is at /admin gets.
FOR_ADMINS = {"block_wide", "is_admin", "link_invalid", "not_admin"}
# As the widget calls it, so that it shows the text beside the field `password`.
RENAMED = {"wrong_password": "password_wrong"}


def test_each_refusal_has_words_where_people_can_get_it() -> None:
    [_, keys] = (STATIC / "errors.js").read_text("utf-8").split("const TEXT_KEYS = {")
    first_words = set(re.findall(r"(\w+): '", keys[: keys.index("}")]))
    codes = inside.codes() | {refusal.code for refusal in refusals()}
    assert (WITHOUT_WORDS | FOR_ADMINS | RENAMED.keys()) - codes == set()
    lacking = []
    for code in codes - WITHOUT_WORDS:
        if code in FOR_ADMINS:
            has_words = code in ADMIN["en"]
        else:
            shown = RENAMED.get(code, code)
            has_words = shown in WORDS["en"] or shown.split("_")[0] in first_words
        if not has_words:
            lacking.append(
                f"static/words/*.json lack {code}: write it in each (in admin-*.json too, if an "
                f"admin can get it), or {code.split('_')[0]} in TEXT_KEYS of static/errors.js"
            )
    assert not lacking, "\n".join(sorted(lacking))


def test_scripts_ask_for_no_code_that_the_service_does_not_have() -> None:
    fields = {refusal.code for refusal in refusals()} | {"nickname_missing"}
    own = {"offline", "unreadable", "failed"}
    for path in STATIC.glob("*.js"):
        asked = re.findall(r"\bcode [!=]== '(\w+)'", path.read_text("utf-8"))
        assert {*asked} - inside.codes() - fields - own == set(), path.name


def test_the_admin_page_uses_every_text_that_it_has() -> None:
    script = (STATIC / "admin.js").read_text("utf-8")
    keys = bare(ADMIN["en"]).keys()
    assert set(re.findall(r"\b(?:say|keyed|badge)\((?:'.', )?'(\w+)'[,)]", script)) - keys == set()
    served = script + (ROOT / "commentd.py").read_text("utf-8")
    said = {*re.findall(r"\w+", served), "ip", "mark", "503"}
    said |= inside.codes() | {refusal.code for refusal in refusals()}
    short = re.compile("^(log|did|none|held|level|to|drop|by|score|key)_|_invalid$")
    assert {key for key in keys - said if short.sub("", key) not in said} == set()


def test_the_home_page_says_the_same_in_each_language(browser: Browser) -> None:
    texts = object_of(browser, "home.js", "TEXTS")
    assert [language for language in texts if texts[language].keys() != texts["en"].keys()] == []


def test_emails_say_the_same_in_each_language() -> None:
    english = EMAILS["en"]
    assert [key for key in english if key.startswith(("code_", "changed_"))] == [*BILINGUAL]
    for language, words in {**EMAILS, "zh+en": {**english, **BILINGUAL}}.items():
        lacking, left = english.keys() - words.keys(), words.keys() - english.keys()
        assert not lacking, f"static/emails.json: {language} lacks {sorted(lacking)}"
        assert not left, f"static/emails.json: {language} has {sorted(left)}, English not"
        there = f"static/emails.json: {language}:"
        code_text = words["code_text"]
        assert re.search(r"\n {4}\{code\}\n\D*\b10(?!\d)", code_text), (
            f"{there} code_text has to show the code in a line of its own, and say 10 minutes"
        )
        for key, text in words.items():
            places = [set(re.findall(r"\{\w+\}", each)) for each in (english[key], text)]
            assert places[0] == places[1], f"{there} {key} has to have {places[0] or 'no {}'}"
            ends = [(each[0] == "\n", each[-1] == "\n") for each in (text, english[key])]
            assert ends[0] == ends[1], f"{there} {key} has to begin and end as in English"
            if language in EMAILS:
                lines = english[key].count("\n")
                assert text.count("\n") == lines, f"{there} {key} has to have {lines} \\n"


@pytest.mark.parametrize("settings", [{"server_listen": "127.0.0.1:0"}], ids=[""])
def test_the_admin_page_offers_each_language_by_its_own_name(browser: Browser, app: App) -> None:
    page = browser.new_page()
    with service(app) as address:
        page.goto(f"{address}/admin")
        options = page.locator("footer option")
        options.first.wait_for(state="attached")
        named = dict(options.evaluate_all("all => all.map(each => [each.value, each.text])"))
    page.close()
    assert named.keys() == {tag_of(language) for language in INTL}
    names = {"ar": "العربية", "it": "Italiano", "ja": "日本語", "pt": "Português (Brasil)"}
    names |= {"zh-CN": "简体中文", "zh-TW": "繁體中文"}
    assert named.items() >= names.items()


def test_emails_are_in_the_language_that_the_widget_spoke(app: App, ann: Visitor) -> None:
    for lang, name, language in (
        ("zh-CN", "Hello", "zh"),
        ("zh-TW", "Hello", "zh-tw"),
        ("de", "Hi", "de"),
        ("de-AT", "Hi", "de"),
        ("en", "你好", "en"),
        ("xx", "你好", "zh"),
        ("", "Hi", "en"),
        ("__class__", "Hi", "en"),
        ("None", "Hi", "en"),
    ):
        sql(app, "UPDATE account SET nickname = ?", name)
        ann.post_json("/page/follow", {"page_url": PAGE, "lang": lang})
        assert sql(app, "SELECT language FROM follow") == [(language,)], (lang, name)
        ann.post_json("/page/follow", {"page_url": PAGE, "undo": True})
