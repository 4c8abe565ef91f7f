"""What the widget and its emails say, in each language."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from commentd import SETTINGS_AT_ADMIN, App
from support import inside
from support.blog import service
from support.client import PAGE, Visitor
from support.inside import sql
from support.languages import (
    FOLDER,
    LANGUAGES,
    SECTIONS,
    complete,
    forms_in_browser,
    packed,
    passages,
    without,
)
from support.refusals import refusals
from support.service import copied_program, services
from support.sources import ROOT, STATIC
from support.words import ADMIN, EMAILS, FIRST_KEYS, WORDS

SCRIPTS = [
    "embed.js",
    "errors.js",
    "reading.js",
    "writing.js",
    "own.js",
    "images.js",
    "stickers.js",
    "enlarge.js",
    "account.js",
    "login.js",
    "moderate.js",
    "reactions.js",
    "faces.js",
    "own_picture.js",
]
EMAIL_NAMES = {"zh-CN": "zh", "zh-TW": "zh-tw"}  # those that differ from the widget's
BILINGUAL = LANGUAGES["zh-CN"]["emails_with_english"]


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


# As much of it as may differ between versions of a browser.
MOST_DIFFERING_COUNTRIES = 9


def test_dates_numbers_and_countries_are_written_as_browsers_write_them(browser: Browser) -> None:
    page = browser.new_page()
    wrong = []
    for tag, language in LANGUAGES.items():
        own, browsers = language["forms"], forms_in_browser(page, tag)
        differing = browsers["country_names"].items() - own["country_names"].items()
        if len(differing) <= MOST_DIFFERING_COUNTRIES:
            browsers["country_names"] = own["country_names"]
        wrong += [f"{tag}.json: forms: {key}" for key in browsers if own.get(key) != browsers[key]]
    page.close()
    assert not wrong, f"run `python tests/language.py`, since browsers write others:\n{wrong}"


def test_the_service_chooses_plural_forms_as_browsers_do(browser: Browser) -> None:
    numbers = [*range(1300), 1_000_001, 1_000_011, 1_234_522]
    page = browser.new_page()
    for tag in LANGUAGES:
        chosen = page.evaluate(
            "([tag, numbers]) => numbers.map(n => new Intl.PluralRules(tag).select(n))",
            [tag, numbers],
        )
        own = inside.plural_forms(EMAIL_NAMES.get(tag, tag), numbers)
        differing = [case for case in zip(numbers, own, chosen, strict=True) if case[1] != case[2]]
        assert differing == [], tag
    page.close()


def test_a_language_has_every_text_with_its_placeholders() -> None:
    wrong = []
    for tag, language in LANGUAGES.items():
        for section in SECTIONS:
            own, english = language[section], LANGUAGES["en"][section]
            there = f"static/languages/{tag}.json: {section}:"
            placeholders, wanted = bare(own), bare(english)
            wrong += [f"{there} lacks {key}" for key in wanted.keys() - placeholders.keys()]
            unknown = own.keys() - known_keys(english)
            wrong += [f"{there} has {key}, English not" for key in unknown]
            wrong += [
                f"{there} {key}: the placeholders are {placeholders[key]}, in English {names}"
                for key, names in wanted.items()
                if key in placeholders and placeholders[key] != names
            ]
            for key, text in own.items():
                if is_untranslated(text, english.get(key)) and tag != "en":
                    wrong.append(f"{there} {key} is still in English")
                if section != "emails" and (text != text.strip() or not text):
                    wrong.append(f"{there} {key} is empty, or has a space at an end")
                elif key != "level_fail" and re.search(r"[<>]|\b[Ee]rror\b", text):
                    wrong.append(f"{there} {key} has < or > or “error”")
    assert not wrong, "\n".join(sorted(wrong))


def test_a_name_from_the_left_keeps_its_place_in_a_text_from_the_right() -> None:
    from_right = [tag for tag, each in LANGUAGES.items() if each["forms"]["direction"] == "rtl"]
    assert "ar" in from_right
    for tag in from_right:
        for key, text in LANGUAGES[tag]["widget"].items():
            bare_places = re.findall("(?<!\u2068)\\{n\\}|\\{n\\}(?!\u2069)", text)
            assert not bare_places, (
                f"static/languages/{tag}.json: widget: {key}: run "
                f"`python tests/language.py {tag}`: U+2068 and U+2069 stand around {{n}}"
            )


def is_untranslated(text: str, english: str | None) -> bool:
    """Whether a text is the English one. One or two words may be the same."""
    text = re.sub("[\u2068\u2069]", "", text)
    return text == english and len(re.findall("[A-Za-z]+", re.sub(r"\{\w+\}", "", text))) > 2


def known_keys(english: dict[str, str]) -> set[str]:
    """The keys that a language may have: those of English, and more plural forms."""
    counted = [key.removesuffix("_other") for key in english if key.endswith("_other")]
    forms = ("zero", "one", "two", "few", "many")
    return {*english, *counted, *(f"{key}_{form}" for key in counted for form in forms)}


def test_the_readme_and_the_manual_name_the_languages() -> None:
    for file, pattern, passage in passages():
        found = re.findall(pattern, file.read_text("utf-8"))
        assert [" ".join(each.split()) for each in found] == [" ".join(passage.split())], (
            f"{file.name}: run `python tests/language.py`"
        )


def test_the_page_for_translators_says_in_ten_steps_what_is_in_a_file() -> None:
    page = (ROOT / ".github" / "TRANSLATING.md").read_text("utf-8")
    steps = re.findall(r"^(\d+)\. ", page, re.M)
    assert steps == [str(n) for n in range(1, 11)]
    named = {*re.findall(r"`([\w-]+)`", page)}
    keys = {key for each in LANGUAGES.values() for key in each} - {"emails_with_english"}
    assert keys - named == set(), "these keys of a file are not explained"
    for path in re.findall(r"(?:tests|static)/[\w/.-]+", page):
        assert (ROOT / path.replace("nl", "de")).exists(), path
    guide = (ROOT / ".github" / "CONTRIBUTING.md").read_text("utf-8")
    assert "(TRANSLATING.md)" in guide


def test_the_command_for_translators_keeps_what_is_there_and_begins_what_is_not(
    browser: Browser,
) -> None:
    page = browser.new_page()
    for tag, language in LANGUAGES.items():
        kept = complete(language, language["forms"])
        assert packed(kept) == (FOLDER / f"{tag}.json").read_text("utf-8"), tag
    czech = complete({"widget": {"reply": "Odpovědět"}}, forms_in_browser(page, "cs"))
    page.close()
    assert czech["widget"]["reply"] == "Odpovědět"
    assert czech["widget"]["edit"] == "Edit"
    assert [key for key in czech["widget"] if key.startswith("count_")] == [
        *("count_one", "count_few", "count_many", "count_other")
    ]
    assert czech["forms"]["plural_numbers"] == {"one": "1", "few": "2-4", "many": ""}
    assert czech["forms"]["day_format"] == "{day}. {month}. {year}"


def test_the_command_for_translators_begins_anew_what_has_changed_in_english() -> None:
    german, english = LANGUAGES["de"], LANGUAGES["en"]
    anew = complete(without(german, ["widget.reply", "widget.count"]), german["forms"])
    changed = {key for key, text in anew["widget"].items() if text != german["widget"][key]}
    assert changed == {"reply", "count_one", "count_other"}
    assert {key: anew["widget"][key] for key in changed}.items() <= english["widget"].items()
    assert {**anew, "widget": german["widget"]} == german


@pytest.mark.slow
def test_a_language_is_found_by_itself_and_says_in_english_what_it_lacks(
    tmp_path: Path, browser: Browser
) -> None:
    page = browser.new_page()
    czech = {
        "widget": {"reply": "Odpovědět", "fresh": "Nových komentářů: {n}"},
        "emails": {"missing": "Tady žádná stránka není."},
        "forms": forms_in_browser(page, "cs"),
    }
    program = copied_program(tmp_path / "program")
    (tmp_path / "program/static/languages/cs.json").write_text(json.dumps(czech), "utf-8")
    with services(tmp_path / "site") as start:
        service = start(program=program)
        page.goto(f"{service.address}/admin")
        page.get_by_label("Language").select_option(label="Čeština")
        expect(page.locator("html")).to_have_attribute("lang", "cs")
        first = service.ask("GET", "/words/first-cs.json").json
        assert (first["reply"], first["newest"], first["dir"]) == ("Odpovědět", "Newest", "ltr")
        assert [key for key in first if key.startswith("count")] == [
            *("count_one", "count_few", "count_many", "count_other")
        ]
        later = service.ask("GET", "/words/cs.json").json
        assert [key for key in {**first, **later} if key.startswith("fresh")] == ["fresh"]
        missing = service.ask("GET", "/x", "Accept: text/html", "Accept-Language: cs")
        assert "Tady žádná stránka není." in missing.body.decode()
        assert "The URL may be misspelt" in missing.body.decode()
    page.close()


def test_the_first_texts_are_those_that_the_first_script_says_by_itself() -> None:
    said = set(re.findall(r"\w+", (STATIC / "embed.js").read_text("utf-8")))
    assert [key for key in FIRST_KEYS if key not in said] == []
    assert set(FIRST_KEYS) <= bare(WORDS["en"]).keys()


@pytest.mark.parametrize("settings", [{}, {"comments_reactions": ("👍",)}])
def test_the_texts_of_a_language_are_served_in_parts_that_make_up_its_file(
    visitor: Visitor, settings: dict[str, Any]
) -> None:
    of_reactions = {"reactions", "react"}  # that stand with the first texts, or nowhere
    for language, words in WORDS.items():
        later = visitor.get(f"/words/{language}.json").json
        for topic in ("provider", "picture", "image"):
            of_topic = visitor.get(f"/words/{topic}-{language}.json").json
            assert {key.partition("_")[0] for key in of_topic} == {topic}
            later |= of_topic
        first = {key: text for key, text in words.items() if key not in later}
        assert {*bare(first)} == {*FIRST_KEYS} | of_reactions, language
        assert first | later == words
        if not settings:
            first = {key: text for key, text in first.items() if key not in of_reactions}
        if language not in {"en", "zh-CN"}:  # embed.js has these
            assert visitor.get(f"/words/first-{language}.json").json == first


def test_a_reader_who_chooses_a_password_is_advised_to_make_it_long() -> None:
    script = (STATIC / "account.js").read_text("utf-8")
    steps = [line for line in script.splitlines() if "password('new-password'" in line]
    assert len(steps) == 2  # to register, and to change it
    assert [line for line in steps if "advice()" not in line] == []
    for language, words in WORDS.items():
        fault = f"static/languages/{language}.json: widget: advice has to say 8"
        assert "8" in words["advice"], fault


def test_each_language_counts_as_its_readers_do(browser: Browser) -> None:
    page = browser.new_page()
    wrong = []
    for section, tables in (("widget", WORDS), ("admin", ADMIN)):
        for language, words in tables.items():
            rules = f"new Intl.PluralRules('{language}').resolvedOptions().pluralCategories"
            forms = {f"_{form}" for form in page.evaluate(rules)}
            keys = {name.removesuffix("_other") for name in words if name.endswith("_other")}
            assert keys or language != "en"
            for key in keys:
                own = {name.removeprefix(key) for name in words if name.startswith(f"{key}_")}
                file = f"static/languages/{language}.json: {section}"
                wrong += [f"{file} lacks {key}{form}" for form in forms - own]
                wrong += [f"{file}: {language} does not use {key}{form}" for form in own - forms]
    page.close()
    assert not wrong, "\n".join(sorted(wrong))


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
    "secret_hash_invalid",
    *("settings_missing", "settings_invalid", "settings_too_long"),
    "provider_name",  # the widget asks for a name
}


# What only who is at /admin gets.
FOR_ADMINS = {
    "author_unknown",
    "block_wide",
    "is_admin",
    "link_invalid",
    "not_admin",
    "setting_invalid",
}
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
                f"static/languages/*.json: widget lacks {code}: write it in each (in admin too, "
                f"if an admin can get it), or {code.split('_')[0]} in TEXT_KEYS of static/errors.js"
            )
    assert not lacking, "\n".join(sorted(lacking))


def test_each_refusal_of_a_length_has_words_for_admins_who_write_too() -> None:
    codes = {refusal.code for refusal in refusals() if refusal.code.startswith("content_too_")}
    assert codes
    assert codes <= ADMIN["en"].keys(), f"static/languages/*.json: admin lacks some of {codes}"


def test_scripts_ask_for_no_code_that_the_service_does_not_have() -> None:
    fields = {refusal.code for refusal in refusals()} | {"nickname_missing", "password_missing"}
    own = {"offline", "unreadable", "failed"}
    for path in STATIC.rglob("*.js"):
        asked = re.findall(r"\bcode [!=]== '(\w+)'", path.read_text("utf-8"))
        assert {*asked} - inside.codes() - fields - own == set(), path.name


def test_each_setting_of_the_admin_page_has_a_name_there() -> None:
    lacking = [
        f'static/languages/en.json: admin lacks "set_{name}": write it, run tests/language.py'
        for names in SETTINGS_AT_ADMIN.values()
        for name in names
        if f"set_{name}" not in ADMIN["en"]
    ]
    assert not lacking, "\n".join(lacking)


def test_the_admin_page_uses_every_text_that_it_has() -> None:
    scripts = [path.read_text("utf-8") for path in (STATIC / "admin_page").glob("*.js")]
    script = "\n".join(scripts)
    keys = bare(ADMIN["en"]).keys()
    assert set(re.findall(r"\b(?:say|keyed|badge)\((?:'.', )?'(\w+)'[,)]", script)) - keys == set()
    served = script + (ROOT / "commentd.py").read_text("utf-8")
    said = {*re.findall(r"\w+", served), "ip", "mark", "503"}
    said |= inside.codes() | {refusal.code for refusal in refusals()}
    short = re.compile(
        "^(log|did|none|held|level|to|drop|by|score|key|set|group|choice)_|_invalid$"
    )
    assert {key for key in keys - said if short.sub("", key) not in said} == set()


def test_the_home_page_says_the_same_in_each_language(browser: Browser) -> None:
    texts = object_of(browser, "home.js", "TEXTS")
    assert [language for language in texts if texts[language].keys() != texts["en"].keys()] == []


def test_each_text_of_an_email_stands_by_its_name_where_the_service_uses_it() -> None:
    templates = [path.read_text("utf-8") for path in STATIC.glob("*.html")]
    said = {*re.findall(r"\w+", "".join([(ROOT / "commentd.py").read_text("utf-8"), *templates]))}
    # Those of links, by what a link does.
    of_links = re.compile("(page|button|done)_")
    assert {key for key in EMAILS["en"].keys() - said if not of_links.match(key)} == set()


# What holders of an account get whose language may be unknown.
OF_ACCOUNTS = ("code_", "changed_", "joined_", "parted_", "factor_")


def test_emails_say_the_same_in_each_language() -> None:
    english = EMAILS["en"]
    assert [key for key in english if key.startswith(OF_ACCOUNTS)] == [*BILINGUAL]
    for language, words in {**EMAILS, "zh+en": {**english, **BILINGUAL}}.items():
        lacking, left = english.keys() - words.keys(), words.keys() - english.keys()
        assert not lacking, f"static/languages/{language}.json: emails lacks {sorted(lacking)}"
        assert not left, f"static/languages/{language}.json: emails has {sorted(left)}, English not"
        there = f"static/languages/{language}.json: emails:"
        assert re.search(r"(?<!\d)10(?!\d)", words["code_enter"]), (
            f"{there} code_enter has to say 10 minutes"
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
    assert named.keys() == LANGUAGES.keys()
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
