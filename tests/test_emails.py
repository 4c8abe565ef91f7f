"""Each email that the service sends: the plain part says all, and the HTML holds nothing but ours.
`tests/pictures/emails.py` shows how they look."""

import functools
import re
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import commentd
from support.database import config_for
from support.emails import PAGE, SETTINGS, Emails, Markup, Words, every_email
from support.languages import LANGUAGES
from support.notifications import (
    BLOG,
    EMAIL_TEXTS,
    OWNER,
    SERVICE,
    Guest,
    StartApp,
    links_in,
    started,
)
from support.notifications import guest as guest  # a fixture
from support.notifications import start_app as start_app  # a fixture
from support.world import FakeWorld, text_of


@pytest.fixture
def settings() -> dict[str, Any]:
    return SETTINGS


FoundEmails = dict[str, EmailMessage]  # by their names
EmailsIn = Callable[[str], FoundEmails]  # a language


@pytest.fixture(scope="module")
def emails_in(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> EmailsIn:
    """Each email in a language. They are made once for all tests, which only read them."""

    @functools.cache
    def made(language: str) -> FoundEmails:
        config = config_for(tmp_path_factory.mktemp("emails") / "commentd.db")
        with started(config, FakeWorld(), empty_database, **SETTINGS) as guest:
            return every_email(guest, language)

    return made


@pytest.fixture
def emails(emails_in: EmailsIn) -> FoundEmails:
    return emails_in("en")


def words(text: str) -> list[str]:
    """Words and URLs, without what marks a quote."""
    return re.findall(r"https?://[^\s<>()]+|\w+", text)


def without_marks(text: str) -> str:
    """The words of a text in Markdown."""
    return re.sub(r"[*`~]|^> ?", "", text, flags=re.M)


@pytest.mark.parametrize("language", ["en", "ar", "zh-CN"])
def test_the_plain_part_of_each_email_says_what_the_html_says(
    emails_in: EmailsIn, language: str
) -> None:
    for name, message in emails_in(language).items():
        plain, markup = text_of(message), Markup(message)
        said = {*words(without_marks(plain).replace("\n> ", "\n"))}
        said |= {*words(SETTINGS["site_name"])}
        assert {*words(without_marks(markup.text))} <= said, name
        for label, url in markup.links:
            assert url in plain, (name, label)
            assert label.strip()
        for url in links_in(plain):
            assert url in [found for _, found in markup.links], name
        assert "<" not in plain.replace("<b>", "")


def test_each_email_is_valid_small_and_holds_no_remote_resource(emails: FoundEmails) -> None:
    for name, message in emails.items():
        assert_nothing_of_a_stranger(name, message)
        markup = Markup(message)
        assert not re.search(r"(?i)url\(|@import|<img|src=|javascript:|background=", markup.source)
        outside = re.sub(r'href="[^"]*"', "", markup.source)
        assert not re.search("https?:", re.sub(r">[^<]*<", "><", outside)), name
        for _, url in markup.links:
            assert url.startswith((f"{SERVICE}/", f"{BLOG}/")), name
            assert len(url) <= 90, name


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_email_has_its_language_and_direction(emails_in: EmailsIn, language: str) -> None:
    found = emails_in(language)
    assert len(found) == 19
    for name, message in found.items():
        direction = "rtl" if language == "ar" else "ltr"
        if name == "test":
            assert Markup(message).language == ("zh-CN", "ltr")
            continue
        assert Markup(message).language == (language, direction), name


# The texts that each email has, by their keys in static/languages/en.json. What two keys say alike
# has both.
TEXTS_OF_EMAILS = {
    "code to register": "code_subject code_text code_enter code_end",
    "code again": "code_subject code_text code_enter code_end",
    "code for an account that is there": "code_subject code_text code_enter code_end code_warning",
    "password changed": "changed_subject changed_text",
    "code to sign in": "code_subject code_text code_enter code_end code_signin",
    "provider joined": "joined_subject joined_text",
    "provider parted": "parted_subject parted_text",
    "second factor on": "factor_on_subject factor_on_text",
    "second factor off": "factor_off_subject factor_off_text",
    "new comment": "comment_new read button_spam more",
    "waiting comment": "comment_new comment_waits read held_links button_spam more",
    "one more comment": "comment_new read button_spam more",
    "reported comment": "comment_reported reports read button_spam more",
    "several comments": "comment_new owner_many_subject read follow_pages_subject button_spam more",
    "reply": "read reply_new reply_own end_page end_all button_stop",
    "followed page": "comment_new read end_page follow_why button_stop",
    "wants replies?": "ask_subject ask_text ask_question ask_end button_confirm button_follow",
    "was it you?": (
        "holder_subject holder_text holder_question holder_end holder_stop button_mine "
        "button_not_mine"
    ),
    "test": "",
}


def keys_in(message: EmailMessage) -> str:
    """The keys of the texts that stand in an email. A text that is a single word is not looked
    for, nor one with the label of a link."""
    said = " ".join(f"{message['Subject']}\n{text_of(message)}".replace("\n> ", "\n").split())
    found = []
    for key, text in EMAIL_TEXTS["en"].items():
        text = " ".join(text.split())
        parts = map(re.escape, re.split(r"\{\w+\}", text))
        if " " in text and "{label}" not in text and re.search(".+?".join(parts), said):
            found.append(key)
    return " ".join(found)


def test_each_email_has_its_texts(emails: FoundEmails) -> None:
    found = {name: keys_in(message) for name, message in emails.items()}
    assert found == TEXTS_OF_EMAILS


def test_each_email_is_dark_on_a_dark_page(emails: FoundEmails) -> None:
    for name, message in emails.items():
        source = Markup(message).source
        dark = dict(re.findall(r"^\.(\w+) \{(.+)\}$", source, re.M))
        for tag, attributes in re.findall(r"<(\w+)([^>]* style=[^>]*)>", source):
            classes = re.findall(r"\w+", "".join(re.findall(' class="([^"]*)"', attributes)))
            changed = " ".join(dark[each] for each in classes)
            assert ("background:" not in attributes) or "background:" in changed, (name, tag)
            assert (" solid #" not in attributes) or "border-color:" in changed, (name, tag)


def test_the_email_of_a_code_shows_it_first_and_little_else(emails: FoundEmails) -> None:
    for name in ("code to register", "code to sign in"):
        message = emails[name]
        (code,) = {*re.findall(r"\b\d{6}\b", text_of(message))}
        assert message["Subject"].startswith(code)
        markup = Markup(message)
        assert re.findall(r"\b\d{6}\b", markup.text) == [code]
        assert markup.links == []
        assert len(markup.text) < 400


def test_subjects_name_the_author_and_the_page(emails: FoundEmails) -> None:
    subjects = {name: str(message["Subject"]) for name, message in emails.items()}
    shown = "What grows in the shade"
    assert subjects["new comment"] == f"New comment by “Lu Xun” on “{shown}”"
    assert subjects["reply"] == f"“Lu Xun” replied to you on “{shown}”"
    assert subjects["reported comment"] == f"The comment by “Lu Xun” on “{shown}” was reported"
    assert subjects["followed page"] == f"New comment by “Lu Xun” on “{shown}”"


def test_a_long_title_has_half_the_room_in_the_subject_that_it_has_in_the_heading(
    guest: Guest,
) -> None:
    emails = Emails(guest, "en")
    emails.say("hi", page_title="t" * 150)
    message = emails.keep("long title", OWNER)
    assert message["Subject"] == f"New comment by “Lu Xun” on “{'t' * 60} …”"
    assert f"New comment by “Lu Xun” on “{'t' * 120} …”" in Markup(message).text


def test_the_markdown_of_a_comment_is_shown_as_on_the_page(emails: FoundEmails) -> None:
    markup = Markup(emails["new comment"])
    for tag in ("strong", "em", "ol", "li", "code", "pre", "blockquote", "del"):
        assert tag in markup.tags, tag
    assert "**" not in markup.text
    assert markup.preview.startswith("Three things worked for me, and one did not: Water in the")
    # Programs remove style sheets: what has to be seen stands beside each element.
    for tag in ("<code ", "<pre ", "<blockquote "):
        assert f"{tag}style=" in markup.source


HOSTILE = [
    "</td></tr></table><h1>Your bank</h1><a href=https://evil.example/>Approve</a>",
    "<img src=https://evil.example/x.png onerror=alert(1)>",
    "![x](https://evil.example/x.png)",
    "[Approve](https://evil.example/mail?do=visible)",
    "<style>.primary{display:none}</style>",
    "{{!piece.html}} {{subject}} % import os",
    "&lt;b&gt; \" ' ` --> <!-- ]]>",
    "=?utf-8?q?Subject?= Bcc: eve@example.com",
    "> > > " * 50 + "deep",
    "`a` " * 499,
    "字" * 2000,
    "**b** _i_ ~~d~~ " * 120,
    "x" * 2000,
    "<" * 2000,
    '"' * 2000,
]


def may_be_a_name(guest: Guest, nickname: str) -> bool:
    body = {"page_url": "/x", "nickname": nickname, "content": "x", "captcha_token": "x"}
    return bool(guest.post_json("/comments", body, expect_errors=True).status_int == 200)


def assert_nothing_of_a_stranger(name: str, message: EmailMessage) -> None:
    """No picture, no link, no label and no header is theirs."""
    markup = Markup(message)
    assert len(markup.source.encode()) < 30_000, name
    assert "img" not in markup.tags
    assert "evil" not in str([url for _, url in markup.links if not url.startswith(BLOG)])
    labels = {label for label, _ in markup.links}
    assert labels <= {*EMAIL_TEXTS["en"].values()}, name
    assert not re.search("[\r\n]", str(message["Subject"]))
    assert [*message.keys()].count("Bcc") == 0


@pytest.mark.parametrize("text", HOSTILE)
def test_a_strangers_words_are_only_text_in_an_email(start_app: StartApp, text: str) -> None:
    line = " ".join(text.split())
    nickname = line[:64].strip()
    open_to_all = {"moderation_hold": "none", "comments_max_length": 2100}
    with start_app(**{**SETTINGS, **open_to_all}) as guest:
        said = Words(
            content=text,
            reply=text[:1990],
            nickname=nickname if may_be_a_name(guest, nickname) else "Lu",
            title=line[:120],
            page_url=f"/{line[:200]}",
            reason=text[:500],
        )
        guest.later()
        emails = Emails(guest, "en", said)
        ann = emails.new_reader()
        emails.to_the_owner()
        emails.to_readers(ann)
        for name, message in emails.found.items():
            assert_nothing_of_a_stranger(name, message)


def test_a_link_in_a_comment_says_where_it_leads_and_is_none_in_an_email(guest: Guest) -> None:
    emails = Emails(guest, "en")
    emails.say(
        "Look [here](https://evil.example/a) or https://plain.example/b, "
        "or [write](mailto:a@evil.example), or <b@plain.example>."
    )
    markup = Markup(emails.keep("links", OWNER))
    assert (
        "Look here (https://evil.example/a) or https://plain.example/b, "
        "or write (a@evil.example), or b@plain.example."
    ) in markup.text
    assert [url for _, url in markup.links if "evil" in url or "plain" in url] == []


def test_a_list_in_an_email_begins_with_the_number_that_was_written(guest: Guest) -> None:
    emails = Emails(guest, "en")
    emails.say("7. seven\n8. eight\n\nand\n\n1. one")
    source = Markup(emails.keep("lists", OWNER)).source
    assert re.findall(r'<ol style="[^"]*"([^>]*)>\s*<li>(\w+)', source) == [
        (' start="7"', "seven"),
        ("", "one"),
    ]


@pytest.mark.parametrize(
    ("name", "text"), [("reply", "You wrote:"), ("followed page", "You follow this page at")]
)
def test_labels_and_reasons_in_an_email_are_smaller(
    emails: FoundEmails, name: str, text: str
) -> None:
    source = Markup(emails[name]).source
    assert re.search(f'<p class="muted" [^>]*;font-size:14px;[^>]*>{text}', source)


def quote_in(message: EmailMessage) -> tuple[str, str]:
    """The one cell with what a reader wrote: its start tag, and what is in it without styles."""
    source = Markup(message).source
    ((start, markup),) = re.findall(r'(?s)(<td class="line"[^>]*>)(.*?)</td></tr></table>', source)
    return start, re.sub(' (style|class)="[^"]*"', "", markup)


def test_the_html_of_a_comment_is_written_anew_for_an_email(guest: Guest) -> None:
    emails = Emails(guest, "en")
    emails.say("one  \ntwo\n\n---\n\n- a\n- *b* `c`\n\n> ~~d~~\n\n    <e>")
    message = emails.keep("all", OWNER)
    assert Markup(message).preview.strip() == "one two a b c d <e>"
    _, markup = quote_in(message)
    assert "".join(markup.splitlines()) == (
        "<p>one<br>two</p><hr><ul><li>a</li><li><em>b</em> <code>c</code></li></ul>"
        "<blockquote><p><del>d</del></p></blockquote><pre><code>&lt;e&gt;</code></pre>"
    )


@pytest.mark.parametrize(
    ("word", "direction", "start"),
    [("shade", "ltr", "left"), ("1. צל", "rtl", "right"), ("“ظل”", "rtl", "right")],
)
def test_a_comment_in_an_email_has_the_direction_of_its_script(
    guest: Guest, word: str, direction: str, start: str
) -> None:
    emails = Emails(guest, "en")
    emails.say(f"{word}\n\n> {word} or צל or shade")
    message = emails.keep("direction", OWNER)
    cell, _ = quote_in(message)
    assert f' dir="{direction}" style="padding:0 14px;border-{start}:3px' in cell
    assert f"padding:0 12px;border-{start}:2px" in Markup(message).source


def test_a_comment_in_an_email_has_as_many_bytes_as_fit(start_app: StartApp) -> None:
    most = 8000 - len('<p style="margin:0 0 10px"></p>\n')
    with start_app(**SETTINGS, comments_max_length=9000) as guest:
        emails = Emails(guest, "en")
        emails.say('"' * most)
        message = emails.keep("whole", OWNER)
        assert quote_in(message)[1] == "<p>" + '"' * most + "</p>\n"
        assert "Read on" not in dict(Markup(message).links)
        emails.say(f"{'x' * most}123456\n\nsecond\n\nthird")
        message = emails.keep("cut", OWNER)
        assert quote_in(message)[1] == f"<p>{'x' * ((most + 5) // 3)} …</p>"
        assert "Read on" in dict(Markup(message).links)


def test_a_long_comment_is_cut_and_says_where_the_rest_is(start_app: StartApp) -> None:
    with start_app(**SETTINGS, comments_max_length=9000) as guest:
        emails = Emails(guest, "en")
        emails.say("long " * 1800)
        message = emails.keep("long", OWNER)
        links = dict(Markup(message).links)
        assert links["Read on"] == links["Read and reply"] == f"{BLOG}{PAGE}#comment-1"
        assert " …" in Markup(message).text
        assert f"> {'long ' * 400}…\n" in text_of(message)


def test_more_comments_than_the_html_has_room_for_are_counted(start_app: StartApp) -> None:
    with start_app(**SETTINGS, comments_max_length=9000) as guest:
        emails = Emails(guest, "en")
        emails.say("first")
        emails.keep("first", OWNER)
        guest.fake_world.time += 1
        for number in range(30):
            emails.say(f"{number} {'字' * 1500}")
        message = emails.keep("many", OWNER)
        markup = Markup(message)
        assert markup.tags.count("h1") == 7
        assert "And 23 more." in markup.text
        assert "And 10 more." in text_of(message)
        assert len(markup.source.encode()) <= commentd.MOST_HTML


def test_a_service_without_a_mail_server_prints_the_plain_part(
    emails: FoundEmails, capsys: pytest.CaptureFixture[str]
) -> None:
    for each in emails.values():
        commentd.print_email(each.as_string())
    printed = capsys.readouterr().out
    for name, message in emails.items():
        assert text_of(message) in printed, name
    assert "<td" not in printed


def test_the_templates_of_emails_need_no_style_sheet() -> None:
    """Each colour of the style sheet is one of a dark page."""
    source = Path(commentd.static_folder() / "email.html").read_text("utf-8")
    (sheet,) = re.findall(r"(?s)<style>(.*)</style>", source)
    assert sheet.strip().startswith("@media (prefers-color-scheme: dark) {")
    assert sheet.strip().count("@media") == 1
    assert urlsplit(SERVICE).scheme == "https"
