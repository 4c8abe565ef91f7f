"""What the widget and its emails say, in each language."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser

from commentd import App
from support import inside
from support.blog import service
from support.client import PAGE, Visitor
from support.inside import sql
from support.sources import MANUAL, ROOT, STATIC
from support.words import ADMIN, FILES, FIRST, WORDS

SCRIPTS = ["embed.js", "more.js", "account.js", "moderate.js"]
EMAILS = json.loads((STATIC / "emails.json").read_bytes())
BILINGUAL = EMAILS.pop("zh+en")


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


def languages_of_the_widget(browser: Browser, address: str) -> set[str]:
    """The languages that the widget takes for any tag of two letters."""
    page = browser.new_page()
    page.add_script_tag(url=f"{address}/embed.js")
    found: list[str] = page.evaluate(
        """() => {
          const {languageOf} = customElements.get('commentd-thread').kit
          const letters = [...'abcdefghijklmnopqrstuvwxyz']
          const tags = letters.flatMap(one => letters.map(two => one + two))
          return [...tags, 'zh-TW'].map(lang => languageOf(Object.assign(document.body, {lang})))
        }"""
    )
    page.close()
    return {*found}


def languages_of_the_admin_page(browser: Browser, address: str) -> set[str]:
    """The languages that it offers."""
    page = browser.new_page()
    page.goto(f"{address}/admin")
    page.locator("footer option").first.wait_for(state="attached")
    found: list[str] = page.locator("footer option").evaluate_all(
        "options => options.map(option => option.value)"
    )
    page.close()
    return {*found}


def places_of_languages(browser: Browser, address: str) -> dict[str, set[str]]:
    """Each place that has to know a language, and the languages that it knows, by the names of the
    widget."""
    intl = json.loads((STATIC / "intl.json").read_bytes())
    places = {
        "static/words/{}.json": {*FILES},
        "static/words/admin-{}.json": {*ADMIN},
        "static/emails.json: {}": {*EMAILS},
        "static/intl.json: {}": {*intl},
        "commentd.py: LANGUAGES: {}": inside.languages(),
        "static/embed.js: languageOf: {}": languages_of_the_widget(browser, address),
        "static/admin.js: LANGUAGES: {}": languages_of_the_admin_page(browser, address),
    }
    for folder, topics in MANUAL.items():
        [line] = [line for line in topics["embed"].splitlines() if "`zh-CN` `zh-TW`" in line]
        found = re.findall("`([a-z]{2}(?:-[A-Z]{2})?)`", line)
        places[f"static/help/{folder}/embed.md: the line with `zh-TW`: {{}}"] = {*found}
    of_widget = {"zh": "zh-CN", "zh-tw": "zh-TW"}
    return {place: {of_widget.get(n, n) for n in names} for place, names in places.items()}


@pytest.mark.parametrize("settings", [{"server_listen": "127.0.0.1:0"}], ids=[""])
def test_a_language_is_in_every_place_that_has_to_know_it(browser: Browser, app: App) -> None:
    with service(app) as address:
        places = places_of_languages(browser, address)
    everywhere = set().union(*places.values())
    lacking = [
        f"missing: {place.format(language)}"
        for place, known in places.items()
        for language in sorted(everywhere - known)
    ]
    assert not lacking, "\n".join(lacking)


def test_a_language_has_every_text_with_its_placeholders() -> None:
    for prefix, tables in (("", WORDS), ("admin-", ADMIN)):
        english = bare(tables["en"])
        for language, words in tables.items():
            file, own = f"static/words/{prefix}{language}.json", bare(words)
            lacking = [f"{file} lacks {key}" for key in english.keys() - own.keys()]
            left = [f"{file} has {key}, English not" for key in own.keys() - english.keys()]
            assert not lacking + left, "\n".join(sorted(lacking + left))
            for key, names in english.items():
                assert own[key] == names, f"{file}: {key} has other placeholders than English"
    for language, words in [*WORDS.items(), *ADMIN.items()]:
        for key, text in words.items():
            assert text == text.strip() != "", (language, key)
            if key != "level_fail":
                assert not re.search(r"[<>]|\b[Ee]rror\b", text), (language, key)


def test_no_text_of_the_widget_stands_in_two_places() -> None:
    assert FIRST.keys() == {"en", "zh-CN"}
    for language, texts in FIRST.items():
        assert texts.keys() & FILES[language].keys() == set()


def test_a_reader_who_chooses_a_password_is_advised_to_make_it_long() -> None:
    script = (STATIC / "account.js").read_text("utf-8")
    steps = [line for line in script.splitlines() if "password('new-password'" in line]
    assert len(steps) == 2  # to register, and to change it
    assert [line for line in steps if "small(say('advice'))" not in line] == []
    assert [language for language, words in WORDS.items() if "8" not in words["advice"]] == []


def test_each_language_counts_as_its_readers_do(browser: Browser) -> None:
    page = browser.new_page()
    for language, words in WORDS.items():
        rules = f"new Intl.PluralRules('{language}').resolvedOptions().pluralCategories"
        counted = {**words, **ADMIN[language]}
        keys = {name.removesuffix("_other") for name in counted if name.endswith("_other")}
        assert keys >= {"count", "fresh", "n_comments"}
        for key in keys:
            given = {name.removeprefix(f"{key}_") for name in counted if name.startswith(f"{key}_")}
            assert given == set(page.evaluate(rules)), f"{key}_* in static/words: {language}"
    page.close()


def test_the_texts_of_each_language_say_in_which_direction_it_is_written(browser: Browser) -> None:
    page = browser.new_page()
    for tables in (WORDS, ADMIN, EMAILS):
        for language, words in tables.items():
            wanted = page.evaluate(f"new Intl.Locale('{language}').getTextInfo().direction")
            assert words["dir"] == wanted, language
    page.close()


def test_every_text_that_a_script_shows_exists_and_none_is_left_over() -> None:
    source = "".join((STATIC / name).read_text("utf-8") for name in SCRIPTS)
    used = set(
        re.findall(r"(?:\bsay|\bbadge|(?<!classList\.)\badd|\bagain|\bfield)\('(\w+)'[,)]", source)
    )
    known = bare(WORDS["en"])
    assert used - known.keys() == set()
    quoted = set(re.findall(r"\w+", source))
    codes = {"captcha", "code_wrong", "text_changed", "wrong_credentials", "email_unverified"}
    served = set(re.findall(r"\w+", (ROOT / "commentd.py").read_text("utf-8")))
    served |= set(re.findall(r"\w+", (STATIC / "fragment.html").read_text("utf-8")))
    left = {key for key in known if key not in quoted | codes | served}
    assert {key for key in left if not key.endswith("_missing")} <= {
        "wasspam",
        "wasdeleted",
        "email_invalid",
    }


def test_the_admin_page_uses_every_text_that_it_has() -> None:
    script = (STATIC / "admin.js").read_text("utf-8")
    keys = bare(ADMIN["en"]).keys()
    assert set(re.findall(r"\b(?:say|keyed|badge)\((?:'.', )?'(\w+)'[,)]", script)) - keys == set()
    served = script + (ROOT / "commentd.py").read_text("utf-8")
    said = {*re.findall(r"\w+", served), "ip", "text_changed", "mark", "503"}
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
        assert re.search(r"\n {4}\{code\}\n\D*\b10(?!\d)", words["code_text"]), language
        for key, text in words.items():
            where = (language, key)
            places = [set(re.findall(r"\{\w+\}", each)) for each in (text, english[key])]
            assert places[0] == places[1], where
            ends = [(each[0] == "\n", each[-1] == "\n") for each in (text, english[key])]
            assert ends[0] == ends[1], where
            if language in EMAILS:
                assert text.count("\n") == english[key].count("\n"), where


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
