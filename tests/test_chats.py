"""Chats and push services: what each is sent, held against its documentation, by real HTTP to
servers that speak as it says; and what happens when one refuses."""

import configparser
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from commentd import CHAT_SETTINGS, ChatSettings, load_config
from support import inside
from support.chats import SECRET, SERVICES, Answer, Call, ChatServer, answer, chat_server
from support.client import CANARY
from support.database import config_for
from support.notifications import BLOG, SERVICE, Guest, StartApp, started, words_of
from support.notifications import start_app as start_app  # a fixture
from support.sources import MANUAL
from support.world import FakeWorld

MINUTE, HOUR, DAY = 60, 3600, 86400
# All but the owner's own program, which `test_webhook.py` is about.
CHATS = sorted({*SERVICES} - {"json"})


@pytest.fixture
def server() -> Iterator[Callable[[str], ChatServer]]:
    """Starts a server that speaks as a service does."""
    with ExitStack() as stack:
        yield lambda kind: stack.enter_context(chat_server(ChatServer(kind)))


StartWithChats = Callable[..., AbstractContextManager[Guest]]


@pytest.fixture
def start_with_chats(start_app: StartApp) -> StartWithChats:
    """Starts the service with a section for each server."""

    @contextmanager
    def start(*servers: ChatServer, **settings: Any) -> Iterator[Guest]:
        with start_app(**with_sections(servers), **settings) as guest:
            yield guest

    return start


def with_sections(servers: Iterable[ChatServer]) -> dict[str, Any]:
    """Settings with a section for each server: `[chat.slack]`, `[chat.wecom]` and so on."""
    sections = tuple(ChatSettings(server.kind, **server.settings) for server in servers)
    return {"notify_owner": ("nobody",), "chat_sections": sections, "notify_language": "en"}


# What each is sent

URL = rf"{re.escape(SERVICE)}/mail\?[\w=&;-]+"


def with_names(value: Any) -> Any:
    """A body with a name in place of each of our links: `LINK visible` for one that approves."""
    if isinstance(value, str):
        return re.sub(URL, link_name, value)
    if isinstance(value, list):
        return [with_names(each) for each in value]
    if isinstance(value, dict):
        return {key: with_names(each) for key, each in value.items()}
    return value


def link_name(found: re.Match[str]) -> str:
    return f"LINK {words_of(found[0].replace('&amp;', '&'))['do']}"


CONTENT = "Hello *there* <b>&</b>\nto @all [x](https://evil.example)"
PAGE_LINK = f"{BLOG}/hello/#comment-1"
TITLE = "blog.example: new comment on /hello/"
HELD = "awaiting approval: every comment needs it"
TEXT = f"Ann\n{HELD}\n\n{CONTENT}"
LABELS = {"visible": "Approve", "spam": "Mark as spam", "deleted": "Delete"}
ESCAPED = r"Hello \*there\* \<b\>&\</b\>" + "\n" + r"to \@all \[x\]\(https\://evil.example\)"
ESCAPED_HELD = HELD.replace(":", r"\:")
ESCAPED_TITLE = TITLE.replace(":", r"\:")
MARKDOWN = " · ".join(
    [
        *(f"[{label}](LINK {name})" for name, label in LABELS.items()),
        f"[View comments]({PAGE_LINK})",
    ]
)
PLAIN = "\n".join(
    [*(f"{label}: LINK {name}" for name, label in LABELS.items()), f"View comments: {PAGE_LINK}"]
)


def entities(text: str) -> str:
    """All ASCII punctuation as character references."""
    return "".join(
        f"&#{ord(each)};" if each.isascii() and not each.isalnum() and each != " " else each
        for each in text
    )


EXPECTED: dict[str, Any] = {
    # docs.slack.dev/reference/block-kit/blocks/section-block
    "slack": {
        "text": TITLE,
        "blocks": [
            {"type": "section", "text": {"type": "plain_text", "text": f"{TITLE}\n{TEXT}"}},
            {
                "type": "section",
                "text": {
                    "type": "mrkdwn",
                    "text": " · ".join(
                        [
                            *(f"<LINK {name}|{label}>" for name, label in LABELS.items()),
                            f"<{PAGE_LINK}|View comments>",
                        ]
                    ),
                },
            },
        ],
    },
    # docs.discord.com/developers/resources/webhook#execute-webhook
    "discord": {
        "embeds": [
            {"title": TITLE, "description": f"Ann\n{ESCAPED_HELD}\n\n{ESCAPED}\n\n{MARKDOWN}"}
        ],
        "allowed_mentions": {"parse": []},
    },
    # core.telegram.org/bots/api#sendmessage and #inlinekeyboardbutton
    "telegram": {
        "chat_id": "-100123",
        "text": f"{TITLE}\n\n{TEXT}\n\nView comments\n{PAGE_LINK}",
        "link_preview_options": {"is_disabled": True},
        "reply_markup": {
            "inline_keyboard": [
                [{"text": label, "url": f"LINK {name}"}] for name, label in LABELS.items()
            ]
        },
    },
    # open.feishu.cn/document/client-docs/bot-v3/add-custom-bot, and the same of larksuite.com
    "feishu": {
        "msg_type": "post",
        "content": {
            "post": {
                "zh_cn": {
                    "title": f"评论 {TITLE}",
                    "content": [
                        [{"tag": "text", "text": TEXT}],
                        [
                            *(
                                {"tag": "a", "text": f"{label} ", "href": f"LINK {name}"}
                                for name, label in LABELS.items()
                            ),
                            {"tag": "a", "text": "View comments ", "href": PAGE_LINK},
                        ],
                    ],
                }
            }
        },
    },
    # developer.work.weixin.qq.com/document/path/91770
    "wecom": {"msgtype": "text", "text": {"content": f"{TITLE}\n\n{TEXT}\n\n{PLAIN}"}},
    # open.dingtalk.com/document/robots/message-type: actionCard with several buttons
    "dingtalk": {
        "msgtype": "actionCard",
        "actionCard": {
            "title": f"评论 {TITLE}",
            "text": f"### 评论 {TITLE}\n\nAnn  \n{HELD}  \n  \n"
            "Hello ＊there＊ ＜b＞&＜/b＞  \nto @all ［x］(https://evil.example)",
            "btnOrientation": "0",
            "btns": [
                *({"title": label, "actionURL": f"LINK {name}"} for name, label in LABELS.items()),
                {"title": "View comments", "actionURL": PAGE_LINK},
            ],
        },
    },
    # github.com/Finb/bark-server/blob/master/docs/API_V2.md#push
    "bark": {
        "device_key": CANARY,
        "title": TITLE,
        "body": TEXT,
        "group": "blog.example",
        "url": "LINK visible",
    },
    # docs.ntfy.sh/publish/#publish-as-json and #send-http-request
    "ntfy": {
        "topic": "my-topic",
        "title": TITLE,
        "message": TEXT,
        "actions": [
            {
                "action": "http",
                "label": label,
                "url": f"LINK {name}",
                "method": "POST",
                "clear": True,
            }
            for name, label in LABELS.items()
        ],
        "click": PAGE_LINK,
    },
    # gotify.net/docs/msgextras: plain text for texts of others
    "gotify": {
        "title": TITLE,
        "message": f"{TEXT}\n\n{PLAIN}",
        "priority": 5,
        "extras": {
            "client::display": {"contentType": "text/plain"},
            "client::notification": {"click": {"url": "LINK visible"}},
        },
    },
    # www.pushplus.plus/doc/guide/api.html
    "pushplus": {
        "token": CANARY,
        "title": TITLE,
        "content": f"<p>Ann<br>{HELD}<br><br>Hello *there* &lt;b&gt;&amp;&lt;/b&gt;<br>"
        "to @all [x](https://evil.example)</p>"
        + "".join(f'<p><a href="LINK {name}">{label}</a></p>' for name, label in LABELS.items())
        + f'<p><a href="{PAGE_LINK}">View comments</a></p>',
        "template": "html",
        "topic": "group",
    },
    # doc2.ft07.com/en/serverchan3/server/sdk, and sct.ftqq.com/sendkey
    "serverchan": {
        "title": f"{TITLE[:30]} …",
        "desp": "\n\n".join(
            [
                entities(TITLE),
                "Ann",
                entities(HELD),
                *(entities(line) for line in CONTENT.split("\n")),
                *(f"[{label}](LINK {name})" for name, label in LABELS.items()),
                f"[View comments]({PAGE_LINK})",
            ]
        ),
        "short": f"Ann {HELD} Hello *there* <b …",
    },
    # developers.mattermost.com/integrate/webhooks/incoming
    "mattermost": {
        "text": f"{ESCAPED_TITLE}\nAnn\n{ESCAPED_HELD}\n\n"
        f"{ESCAPED.replace('@', '@' + chr(0x2060))}\n\n{MARKDOWN}"
    },
    # spec.matrix.org/latest/client-server-api/#mtext
    "matrix": {
        "msgtype": "m.text",
        "body": f"{TITLE}\n\n{TEXT}\n\n{PLAIN}",
        "format": "org.matrix.custom.html",
        "formatted_body": f"<p><strong>{TITLE}</strong></p><p>Ann<br>{HELD}<br><br>"
        "Hello *there* &lt;b&gt;&amp;&lt;/b&gt;<br>to @all [x](https://evil.example)</p><p>"
        + " · ".join(f'<a href="LINK {name}">{label}</a>' for name, label in LABELS.items())
        + f' · <a href="{PAGE_LINK}">View comments</a></p>',
        "m.mentions": {},
    },
    "template": {
        "t": TITLE,
        "x": TEXT,
        "n": "Ann",
        "p": "/hello/",
        "l": PAGE_LINK,
        "a": "LINK visible",
        "s": "LINK spam",
        "d": "LINK deleted",
    },
}
EXPECTED["lark"] = EXPECTED["feishu"]
EXPECTED["rocketchat"] = EXPECTED["mattermost"]


@pytest.fixture(scope="module")
def calls_for_one_comment(
    tmp_path_factory: pytest.TempPathFactory, empty_database: Path
) -> dict[str, list[Call]]:
    """What all services are sent when one comment waits, by their names. Each takes it at once."""
    config = config_for(tmp_path_factory.mktemp("chats") / "commentd.db")
    with ExitStack() as stack:
        chats = [stack.enter_context(chat_server(ChatServer(kind))) for kind in CHATS]
        settings = {**with_sections(chats), "moderation_hold": "all"}
        guest = stack.enter_context(started(config, FakeWorld(), empty_database, **settings))
        guest.comment(CONTENT, page_url="/hello/", email="ann@example.com")
        guest.deliver()
        waiting = {row["recipient"] for row in guest.outbox()}
        return {chat.kind: chat.calls for chat in chats if f"chat.{chat.kind}" not in waiting}


@pytest.mark.parametrize("kind", CHATS)
def test_each_service_gets_what_its_documentation_asks_for(
    calls_for_one_comment: dict[str, list[Call]], kind: str
) -> None:
    (call,) = calls_for_one_comment[kind]
    body = call.json
    for signature in ("timestamp", "sign"):
        body.pop(signature, None)
    assert with_names(body) == EXPECTED[kind]
    assert call.headers["content-type"] == "application/json"
    assert "ann@example.com" not in call.body.decode() + str(call.headers) + call.target


def test_messages_name_the_page_by_its_title_with_the_path_beside_it(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    chat = server("wecom")
    with start_with_chats(chat, server_public_url="") as guest:
        guest.comment("hi", page_url="/hello/", page_title="Trains", headers={"Origin": BLOG})
        guest.deliver()
    (call,) = chat.calls
    assert call.json["text"]["content"] == (
        f"blog.example: new comment on Trains\n\nAnn · /hello/\n\nhi\n\nView comments: {PAGE_LINK}"
    )


@pytest.mark.parametrize(("length", "count"), [(499, 1), (500, 0)])
def test_a_link_that_takes_the_room_of_the_text_is_left_out(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer], length: int, count: int
) -> None:
    chat = server("wecom")
    path = "/".ljust(length - len(BLOG) - len("#comment-1"), "p")
    with start_with_chats(chat, server_public_url="") as guest:
        guest.comment("hi", page_url=path, headers={"Origin": BLOG})
        guest.deliver()
    (call,) = chat.calls
    assert call.json["text"]["content"].count("View comments") == count


def test_titles_and_texts_are_cut_where_a_service_would_refuse_them(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    titles = {"bark": 296, "pushplus": 98, "serverchan": 30}
    chats = {kind: server(kind) for kind in [*titles, "discord"]}
    with start_with_chats(*chats.values(), site_name="n" * 300) as guest:
        guest.comment("x" * 2000, nickname="Ann")
        guest.deliver()
    for kind, most in titles.items():
        (call,) = chats[kind].calls
        assert call.json["title"] == f"{'n' * most} …", kind
    assert chats["bark"].calls[0].json["body"] == f"Ann\n\n{'x' * 1000} …"
    assert chats["discord"].calls[0].json["embeds"][0]["title"] == "n" * 256


def test_texts_of_wide_characters_are_cut_at_the_bytes_that_a_service_takes(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    bark, ntfy = server("bark"), server("ntfy")
    with start_with_chats(bark, ntfy) as guest:
        guest.comment("😀" * 1000, nickname="Ann")
        guest.deliver()
    assert bark.calls[0].json["body"] == f"Ann\n\n{'😀' * 347} …"
    assert ntfy.calls[0].json["message"] == f"Ann\n\n{'😀' * 997} …"


def test_a_bracket_in_a_url_does_not_end_its_link_in_markdown(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    chat = server("mattermost")
    with start_with_chats(chat, server_public_url="") as guest:
        guest.comment("hi", page_url="/a(b)/", headers={"Origin": BLOG})
        guest.deliver()
    (call,) = chat.calls
    assert call.json["text"].endswith(f"\n[View comments]({BLOG}/a%28b%29/#comment-1)")


def waiting_for(guest: Guest) -> list[str]:
    """The chats that have not taken what they were sent."""
    return [row["recipient"] for row in guest.outbox()]


def test_a_message_without_a_public_url_has_no_links(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    chats = [server(kind) for kind in CHATS]
    with start_with_chats(*chats, server_public_url="", site_origins=()) as guest:
        guest.comment("hi there")
        guest.deliver()
        assert waiting_for(guest) == []
    for chat in chats:
        (call,) = chat.calls
        assert "http" not in re.sub('"action": "http"', "", call.body.decode()), chat.kind
        assert "hi there" in call.body.decode(), chat.kind


HOSTILE = [
    "<!channel> <@U012AB3CD> <https://evil.example|Approve> <@everyone>",
    "@everyone @here [Approve](https://evil.example) **x** ![](https://evil.example/p.png)",
    "> quote\n- list\n# big\n```\ncode\n```\n<font color='info'>x</font> <at id=all></at>",
    '"}, "a": "https://evil.example", {"x": "\\u0022 {approve} {title} %0a&text=x',
]


# Where a message has markup, which is ours alone. All other fields are plain text.
MARKUP: dict[str, Callable[[Any], str]] = {
    "discord": lambda body: body["embeds"][0]["description"],
    "mattermost": lambda body: body["text"],
    "rocketchat": lambda body: body["text"],
    "serverchan": lambda body: body["desp"],
    "dingtalk": lambda body: body["actionCard"]["text"],
    "matrix": lambda body: body["formatted_body"],
    "pushplus": lambda body: body["content"],
}


def test_no_text_of_a_stranger_is_markup_in_any_chat(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    url = rf"({URL}|{re.escape(BLOG)}/[\w/#-]+)"
    ours = re.compile(rf"</?(p|strong|br)>|<a href=\"{url}\">|</a>|\[[\w ]+\]\({url}\)")
    chats = [server(kind) for kind in MARKUP]
    with start_with_chats(*chats) as guest:
        for number, content in enumerate(HOSTILE):
            nickname = "[x](https://evil.example)"
            page = {"page_url": f"/{number}/", "page_title": "<b> [x](//evil.example) @all"}
            guest.comment(content, nickname=nickname, headers={"Origin": BLOG}, **page)
            guest.deliver()
        assert waiting_for(guest) == []
    for chat in chats:
        assert len(chat.calls) == len(HOSTILE), chat.kind
        is_html = chat.kind in ("matrix", "pushplus")
        marks = "[<>]" if is_html else r"[<>]|\]\(|```|~~|\*\*"
        for call in chat.calls:
            markup = MARKUP[chat.kind](call.json)
            foreign = re.sub(r"\\.", "", ours.sub("", markup))  # without what is escaped
            assert not re.search(marks, foreign), (chat.kind, foreign)
            if chat.kind in ("mattermost", "rocketchat"):
                assert not re.search("@(?!\u2060)", markup)


def test_long_comments_fit_into_what_each_service_takes(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    chats = [server(kind) for kind in CHATS]
    with start_with_chats(*chats, comments_max_length=10_000, moderation_hold="all") as guest:
        for sign in ("x", "界", "😀", "\n. ", "&", "*"):
            content = (sign * 2000)[:1999] + "."
            guest.comment(content, nickname="😀" * 64, page_url="/" + "p" * 300)
            guest.deliver()
            assert waiting_for(guest) == [], sign
    assert [len(chat.calls) for chat in chats] == [6] * len(CHATS)


def test_discord_cuts_a_text_beside_long_links_at_4096_characters(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    chat = server("discord")
    with start_with_chats(chat, moderation_hold="all") as guest:
        for path in ("/" + "(" * 450, "/" + "(" * 451):  # in a link, each is three characters
            page = {"page_url": path, "page_title": "x", "headers": {"Origin": BLOG}}
            guest.comment("*" * 2000, nickname="*" * 64, **page)
            guest.deliver()
    sizes = []
    for call in chat.calls:
        description = call.json["embeds"][0]["description"]
        text = description.rpartition("\n\n")[0]
        without_backslash = re.sub(r"\\.", "", text)
        # Room is left for a backslash at each character.
        sizes.append(len(description) + len(without_backslash))
    assert sorted(sizes) == [4095, 4096]


# Signatures


def test_dingtalk_and_feishu_get_a_fresh_signature_at_each_try(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    for kind in ("dingtalk", "feishu"):
        chat = server(kind)
        chat.script = [(503, {}, b"")]
        with start_with_chats(chat) as guest:
            began = guest.fake_world.time
            guest.comment(f"hi {kind}")
            guest.deliver()
            guest.later(5)
            assert guest.outbox() == []
        first, second = chat.calls
        times = [call.query.get("timestamp") or call.json["timestamp"] for call in (first, second)]
        in_seconds = [int(each) // (1000 if kind == "dingtalk" else 1) for each in times]
        assert in_seconds == [began, began + 5]


# Refusals

TOO_MANY: dict[str, Answer] = {
    # docs.slack.dev/apis/web-api/rate-limits
    "slack": (429, {"Retry-After": "30"}, b"rate_limited"),
    # docs.discord.com/developers/topics/rate-limits
    "discord": answer(
        429, {"message": "You are being rate limited.", "retry_after": 29.3, "global": False}
    ),
    # core.telegram.org/bots/api#responseparameters
    "telegram": answer(
        429,
        {
            "ok": False,
            "error_code": 429,
            "description": "Too Many Requests: retry after 30",
            "parameters": {"retry_after": 30},
        },
    ),
    "matrix": answer(
        429, {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many", "retry_after_ms": 29_001}
    ),
    "ntfy": answer(429, {"code": 42901, "http": 429, "error": "limit reached"}, Retry_After="30"),
    "feishu": answer(200, {"code": 11232, "msg": "frequency limited psm"}),
    "wecom": answer(200, {"errcode": 45009, "errmsg": "api freq out of limit"}),
    "dingtalk": answer(200, {"errcode": 130101, "errmsg": "send too fast"}),
    "pushplus": answer(200, {"code": 900, "msg": "用户账号使用受限"}),
}
RESTS = {"feishu": 60, "wecom": 60, "dingtalk": 600, "pushplus": 6 * HOUR}


def test_a_service_that_has_enough_gets_nothing_for_as_long_as_it_says(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    chats = [server(kind) for kind in TOO_MANY]
    rests = {kind: RESTS.get(kind, 30) for kind in TOO_MANY}
    with start_with_chats(*chats) as guest:
        for chat in chats:
            chat.script = [TOO_MANY[chat.kind]]
        for content in ("one", "two"):
            guest.comment(content)
        guest.deliver()
        refused_at = guest.fake_world.time
        for rest in sorted({*rests.values()}):
            for seconds in (rest - 1, rest):
                guest.fake_world.time = refused_at + seconds
                guest.deliver()
                called = {chat.kind: len(chat.calls) for chat in chats}
                assert called == {kind: 3 if seconds >= rests[kind] else 1 for kind in rests}
        assert waiting_for(guest) == []


WRONG_KEYS = {
    "slack": "Refused 404 no_service",
    "discord": "Refused 404 Unknown Webhook",
    "telegram": "Refused 401 Unauthorized",
    "feishu": "Refused 400 19001 param invalid: incoming webhook",
    "lark": "Refused 400 19001 param invalid: incoming webhook",
    "wecom": "Refused 200 93000 invalid webhook url",
    "dingtalk": "Refused 200 300005 token is not exist",
    "bark": "Refused 400 failed to get device token: failed to get [x] device token from database",
    "ntfy": "Refused 401 unauthorized",
    "gotify": "Refused 401 you need to provide a valid access token or user credentials to access "
    "this api",
    "pushplus": "Refused 200 903 无效的用户token",
    "serverchan": "Refused 400 40001 [AUTH]错误的Key",
    "mattermost": "Refused 400 Invalid webhook",
    "rocketchat": "Refused 404 Invalid integration id or token provided.",
    "matrix": "Refused 401 M_UNKNOWN_TOKEN Unrecognised access token",
    "template": "Refused 200",
}


def with_another_key(kind: str, settings: dict[str, Any]) -> ChatSettings:
    wrong: dict[str, Any] = {
        key: value.replace(CANARY, "another-key") if isinstance(value, str) else value
        for key, value in settings.items()
    }
    return ChatSettings(kind, **wrong)


def test_a_wrong_key_is_refused_in_the_words_of_the_service(
    start_app: StartApp, server: Callable[[str], ChatServer], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    sections = tuple(with_another_key(kind, server(kind).settings) for kind in CHATS)
    with start_app(notify_owner=("nobody",), chat_sections=sections) as guest:
        guest.comment("hi")
        guest.deliver()
        refused = {row["recipient"]: row for row in guest.outbox()}
        failures = {name.removeprefix("chat."): row["failure"] for name, row in refused.items()}
        assert failures == WRONG_KEYS
        assert len(guest.outbox()) == len(refused)
        assert "another-key" not in caplog.text
        for name, row in refused.items():
            hint = inside.hint_of_chat(name.removeprefix("chat."), row["failure"])
            advice = f" (hint: {hint})" if hint else ""
            assert f"{name} {row['id']}: {row['failure']}{advice}" in caplog.messages


def test_codes_in_a_response_with_the_status_200_are_refusals(
    start_app: StartApp, start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    login_page: Answer = (200, {}, b"<html>Please sign in</html>")
    with_codes = ("feishu", "wecom", "dingtalk", "bark", "pushplus", "serverchan", "rocketchat")
    chats = [server(kind) for kind in with_codes]
    with start_with_chats(*chats) as guest:
        for chat in chats:
            chat.script = [login_page]
        guest.comment("hi")
        guest.deliver()
        refused = {row["recipient"]: row["failure"] for row in guest.outbox()}
        assert refused == {f"chat.{kind}": "Refused 200" for kind in with_codes}
        guest.later(5)
        assert waiting_for(guest) == []
    # The keyword and the signature.
    expected = {
        ("dingtalk", "keyword"): "Refused 200 310000 keywords not in content",
        ("dingtalk", "secret"): "Refused 200 310000 sign not match",
        ("feishu", "keyword"): "Refused 200 19024 Key Words Not Found",
        ("feishu", "secret"): "Refused 200 19021 sign match fail or timestamp",
    }
    sections = tuple(
        ChatSettings(f"{kind}-{key}", **{**server(kind).settings, key: ""})
        for kind, key in expected
    )
    with start_app(notify_owner=("nobody",), chat_sections=sections) as guest:
        guest.comment("hello")
        guest.deliver()
        refused = {row["recipient"]: row["failure"] for row in guest.outbox()}
        assert refused == {f"chat.{kind}-{key}": said for (kind, key), said in expected.items()}


def test_a_blocked_bot_of_telegram_is_told_of_in_its_words(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    chat = server("telegram")
    said = "Forbidden: bot was blocked by the user"
    chat.script = [answer(403, {"ok": False, "error_code": 403, "description": said})]
    with start_with_chats(chat) as guest:
        guest.comment("hi")
        guest.deliver()
        assert [row["failure"] for row in guest.outbox()] == [f"Refused 403 {said}"]


def test_no_key_that_a_service_repeats_gets_into_the_log_or_onto_the_admin_page(
    start_with_chats: StartWithChats,
    server: Callable[[str], ChatServer],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    chats = [server(kind) for kind in CHATS]
    for chat in chats:
        said = f"no {CANARY} {SECRET} at {chat.url}"
        words = dict.fromkeys(("description", "errmsg", "msg", "message", "error"), said)
        chat.script = [answer(500, {**words, "errorDescription": said, "code": 1})]
    with start_with_chats(*chats) as guest:
        guest.comment("hi")
        guest.deliver()
        assert sorted(waiting_for(guest)) == [f"chat.{kind}" for kind in CHATS]
        for row in guest.outbox():
            assert row["failure"].startswith("Refused 500"), row["recipient"]
            assert CANARY not in str(row), row["recipient"]
        assert CANARY not in caplog.text


# Several at once


def test_a_chat_that_fails_holds_up_no_other_and_is_tried_again_alone(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    down, other = server("slack"), server("wecom")
    with start_with_chats(down, other) as guest:
        down.script = [(503, {}, b"")] * 2
        for number in range(4):
            guest.comment(str(number))
        guest.deliver()
        assert (len(down.calls), len(other.calls)) == (1, 4)
        guest.later(4)
        assert len(down.calls) == 1
        guest.later(1)
        assert len(down.calls) == 2  # and still does not work
        guest.later(MINUTE)
        assert (len(down.calls), len(other.calls)) == (6, 4)
        assert guest.outbox() == []


def test_a_chat_that_is_down_is_tried_less_and_less_however_many_messages_wait(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    down = server("slack")
    with start_with_chats(down) as guest:
        down.script = [(503, {}, b"")] * 100
        for number in range(20):
            guest.comment(str(number))
        guest.deliver()
        guest.later(5, times=120)
        assert len(down.calls) == 12  # after 5, 20 and 65 seconds, then once a minute
        down.script = []
        guest.later(HOUR)
        assert guest.outbox() == []


def test_a_chat_that_cannot_be_reached_is_tried_as_one_that_is_down(
    start_with_chats: StartWithChats, caplog: pytest.LogCaptureFixture
) -> None:
    with start_with_chats(ChatServer("slack", "http://127.0.0.1:1")) as guest:
        for number in range(20):
            guest.comment(str(number))
        guest.deliver()
        guest.later(5, times=120)
        assert len(caplog.messages) == 12, caplog.messages


def test_no_more_messages_a_minute_are_sent_than_a_service_takes(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    for most, kinds in ((20, ("wecom", "dingtalk", "telegram")), (100, ("feishu",))):
        chats = [server(kind) for kind in kinds]
        with start_with_chats(*chats) as guest:
            for number in range(most + 5):
                guest.comment(f"{most} {number}")
            guest.deliver()
            assert {chat.kind: len(chat.calls) for chat in chats} == dict.fromkeys(kinds, most)
            guest.later(MINUTE - 1)
            assert {chat.kind: len(chat.calls) for chat in chats} == dict.fromkeys(kinds, most)
            guest.later(1)
            assert {chat.kind: len(chat.calls) for chat in chats} == dict.fromkeys(kinds, most + 5)
            assert waiting_for(guest) == []


def test_messages_for_a_section_that_is_gone_end(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    chat = server("slack")
    chat.script = [(503, {}, b"")]
    with start_with_chats(chat) as guest:
        guest.comment("hi")
        guest.deliver()
        assert len(guest.outbox()) == 1
    with start_with_chats() as guest:
        guest.later(HOUR)
        assert guest.outbox() == []
    assert len(chat.calls) == 1


def test_links_of_a_chat_end_with_its_section(
    start_with_chats: StartWithChats, server: Callable[[str], ChatServer]
) -> None:
    chat = server("ntfy")
    with start_with_chats(chat, moderation_hold="all") as guest:
        number = guest.comment("hi")
        guest.deliver()
        links = {each["label"]: each["url"] for each in chat.calls[0].json["actions"]}
        # As the app of ntfy does: a POST without a page.
        guest.press(links["Approve"])
        assert guest.status_of(number) == "visible"
        guest.press(links["Delete"])
        assert guest.status_of(number) == "deleted"
    with start_with_chats() as guest:
        guest.press(links["Approve"], status=403)
        assert guest.status_of(number) == "deleted"


# A template


@pytest.mark.parametrize(
    ("more", "content_type", "said"),
    [
        (
            {"body": "title={title}&text={text}"},
            "application/x-www-form-urlencoded",
            "title=blog.example%3A%20new%20comment%20on%20%2Fhello%2F&text=Ann%0A%0Aa%20%26%20%22b%22",
        ),
        ({"body": "{title}: {text}"}, "text/plain; charset=utf-8", f'{TITLE}: Ann\n\na & "b"'),
        ({"body": '[{"x": "{text}"}]'}, "application/json", '[{"x": "Ann\\n\\na & \\"b\\""}]'),
        (
            {"body": "<x>{text}</x>", "headers": "X-Key: k\nContent-Type: application/xml"},
            "application/xml",
            "<x>Ann\n\na &amp; &quot;b&quot;</x>",
        ),
        ({"method": "put", "body": "{text}"}, "text/plain; charset=utf-8", 'Ann\n\na & "b"'),
        ({"method": "get"}, "application/json", ""),
    ],
)
def test_a_template_is_filled_as_its_place_needs(
    start_app: StartApp,
    server: Callable[[str], ChatServer],
    more: dict[str, str],
    content_type: str,
    said: str,
) -> None:
    chat = server("template")
    settings: dict[str, Any] = {
        "kind": "template",
        "url": f"{chat.url}/{{title}}?x={{text}}",
        **more,
    }
    sections = (ChatSettings("a", **settings),)
    with start_app(notify_owner=("nobody",), chat_sections=sections) as guest:
        guest.comment('a & "b"', page_url="/hello/")
        guest.deliver()
        assert guest.outbox() == []
    (call,) = chat.calls
    assert call.method == more.get("method", "post").upper()
    assert call.target == (
        "/blog.example%3A%20new%20comment%20on%20%2Fhello%2F?x=Ann%0A%0Aa%20%26%20%22b%22"
    )
    assert call.headers["content-type"] == content_type
    assert call.body.decode() == said


def test_the_url_of_a_template_may_have_a_query_without_a_path(
    start_app: StartApp, server: Callable[[str], ChatServer]
) -> None:
    chat = server("template")
    url = f"{chat.url}?x={{text}}"
    sections = (ChatSettings("a", kind="template", url=url, method="get"),)
    with start_app(notify_owner=("nobody",), chat_sections=sections) as guest:
        guest.comment("hi")
        guest.deliver()
    assert [call.target for call in chat.calls] == ["/?x=Ann%0A%0Ahi"]


# Settings


def chat_of(**settings: str) -> dict[str, str]:
    return {f"COMMENTD_CHAT_X_{key.upper()}": value for key, value in settings.items()}


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"url": "https://x.example"}, "[chat.x] kind must be one of: json, slack, discord"),
        ({"kind": "teams"}, "[chat.x] kind must be one of: json, slack, discord"),
        ({"kind": "slack"}, "[chat.x] kind = slack needs url"),
        ({"kind": "bark"}, "[chat.x] kind = bark needs token"),
        ({"kind": "matrix", "url": "https://x.example", "token": "x"}, "needs to"),
        ({"kind": "ntfy", "url": "https://ntfy.sh"}, "[chat.x] url must end in the topic"),
        ({"kind": "ntfy", "url": "https://ntfy.sh/"}, "[chat.x] url must end in the topic"),
        ({"kind": "telegram", "to": "1"}, "[chat.x] kind = telegram needs token"),
        ({"kind": "template", "url": "https://x.example"}, "needs body, or method = get"),
        (
            {"kind": "template", "url": "https://x.example", "body": '{"x": {text}}'},
            "[chat.x] body is no JSON",
        ),
        (
            {"kind": "template", "url": "https://x.example", "method": "get", "headers": "x"},
            "[chat.x] headers: write each as Name: value",
        ),
        ({"kind": "slack", "url": "hooks.slack.com/x"}, "must be a URL such as"),
        (
            {"kind": "slack", "url": "https://x.example", "interactive": "polling"},
            "[chat.x] interactive is for kind = telegram alone",
        ),
        (
            {"kind": "telegram", "token": "x", "to": "-5", "interactive": "polling"},
            "[chat.x] interactive needs users: who of the group may act",
        ),
        (
            {"kind": "telegram", "token": "x", "to": "@news", "interactive": "polling"},
            "[chat.x] interactive needs the number of the chat in to",
        ),
        (
            {"kind": "telegram", "token": "x", "to": "5", "interactive": "webhook"},
            "[chat.x] interactive = webhook needs [server] public_url",
        ),
        ({"kind": "slack", "urls": "https://x.example"}, "there is no such setting"),
    ],
)
def test_a_section_that_cannot_work_is_refused(settings: dict[str, str], error: str) -> None:
    with pytest.raises(inside.REFUSALS) as refused:
        load_config(None, chat_of(**settings))
    assert error in str(refused.value)


def test_two_sections_that_act_in_telegram_need_two_bots(tmp_path: Path) -> None:
    path = tmp_path / "commentd.ini"
    bot = "kind = telegram\nto = 5\ninteractive = polling\ntoken ="
    path.write_text(f"[chat.a]\n{bot} x\n[chat.b]\n{bot} y\n")
    assert len(load_config(path, {}).chats) == 2
    with pytest.raises(inside.REFUSALS) as refused:
        load_config(path, {"COMMENTD_CHAT_B_TOKEN": "x"})
    assert "each [chat.NAME] that is interactive needs a bot of its own" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("my_bot", "[chat.my_bot] url: a section has no _ in its name: [chat.my-name]"),
        ("家", "[chat.家]: write a name of small letters and digits, such as [chat.family]"),
        ("", "[chat.]: write a name of small letters and digits, such as [chat.family]"),
    ],
)
def test_a_section_whose_name_cannot_be_is_told_so(tmp_path: Any, name: str, error: str) -> None:
    path = tmp_path / "commentd.ini"
    path.write_text(f"[chat.{name}]\nkind = slack\nurl = https://x.example\n")
    with pytest.raises(inside.REFUSALS) as refused:
        load_config(path, {})
    assert error in str(refused.value)


def test_each_section_is_a_chat_in_the_file_and_in_the_environment(tmp_path: Any) -> None:
    path = tmp_path / "commentd.ini"
    path.write_text(
        "[chat.family]\nkind = WeCom\nurl = https://qyapi.weixin.qq.com/x?key=1\n"
        "[chat.phone]\nkind = bark\ntoken = abc\n[webhook]\nurl = https://x.example/hook\n"
    )
    config = load_config(
        path,
        {"COMMENTD_CHAT_PHONE_TOKEN": "other", **chat_of(kind="json")}
        | {"COMMENTD_CHAT_X_URL": "https://y.example"},
    )
    assert [(each.section, each.kind, each.token) for each in config.chats] == [
        ("[webhook]", "json", ""),
        ("[chat.family]", "wecom", ""),
        ("[chat.phone]", "bark", "other"),
        ("[chat.x]", "json", ""),
    ]


def test_each_setting_of_a_chat_is_read_from_the_file_and_from_the_environment(
    tmp_path: Path,
) -> None:
    written = {
        "kind": "Telegram",
        "url": "https://bot.example/x",
        "token": "a:B",
        "to": "-5",
        "secret": "s",
        "keyword": "a  word",
        "interactive": "Polling",
        "users": "5, 6",
        "admin": "Ann@Example.com",
        "method": "PUT",
        "headers": "X-A: b\nX-C: d",
        "body": "{text}\n{link}",
        "success": "ok",
    }
    meant = written | {
        "kind": "telegram",
        "keyword": "a word",
        "interactive": "polling",
        "users": ("5", "6"),
        "admin": "ann@example.com",
        "method": "put",
    }
    assert [*written] == [*CHAT_SETTINGS]
    path = tmp_path / "commentd.ini"
    parser = configparser.ConfigParser(interpolation=None)
    parser["chat.x"] = written
    with path.open("w") as file:
        parser.write(file)
    path.chmod(0o600)
    for config in (load_config(path, {}), load_config(None, chat_of(**written))):
        (chat,) = config.chats
        assert {name: getattr(chat, name) for name in written} == meant


def test_serverchan_and_telegram_know_their_urls_by_the_key() -> None:
    urls = {
        "SCT123abc": "https://sctapi.ftqq.com/SCT123abc.send",
        "sctp99txyz": "https://99.push.ft07.com/send/sctp99txyz.send",
    }
    for key, url in urls.items():
        settings = ChatSettings("x", kind="serverchan", token=key)
        assert inside.url_of_chat(settings) == url
    # doc.dingtalk: without a key, nothing is added.
    settings = ChatSettings("x", kind="dingtalk", url="https://oapi.dingtalk.com/robot/send?a=b")
    assert inside.url_of_chat(settings) == settings.url
    assert inside.url_of_chat(ChatSettings("x", kind="bark", token="a")) == "https://api.day.app"


def test_a_chat_is_in_every_place_that_has_to_know_it() -> None:
    offered = inside.chats()
    everywhere = offered | {*CHATS}
    places = {
        "commentd.py: CHATS": offered,
        "tests/support/chats.py: SERVICES": {*CHATS},
        "tests/test_chats.py: EXPECTED": {*EXPECTED},
        "tests/test_chats.py: WRONG_KEYS": {*WRONG_KEYS},
    }
    for language, topics in MANUAL.items():
        named = {chat for chat in everywhere if f"`{chat}`" in topics["chats"]}
        places[f"static/help/{language}/chats.md"] = named
    lacking = [
        f"{place} lacks {chat}" for place, known in places.items() for chat in everywhere - known
    ]
    assert not lacking, "\n".join(sorted(lacking))


# What `check` says


def test_check_says_of_each_chat_whether_a_test_message_arrived(
    server: Callable[[str], ChatServer],
) -> None:
    for kind in SERVICES:
        chat = server(kind)
        right = ChatSettings("a", **chat.settings)
        wrong = ChatSettings("b", **{**chat.settings, "url": f"{chat.url}/wrong/x"})
        findings = inside.chat_findings(right, wrong)
        taken = f"[chat.a] {kind} has taken a test message: look there"
        assert findings[0] == ("ok", taken, ""), kind
        if kind not in ("json", "template"):
            level, sentence, _ = findings[1]
            assert level == "fail"
            assert sentence.startswith(f"[chat.b] {kind} does not work: Refused "), kind
        assert CANARY not in str(findings)


HINTS = [
    ("telegram", "Refused 400 Bad Request: chat not found", "write a word to the bot first"),
    ("telegram", "Refused 403 Forbidden: bot was blocked by the user", "unblock the bot"),
    ("telegram", "Refused 401 Unauthorized", "does not accept the key"),
    ("telegram", "Refused 409 Conflict: terminated by other getUpdates", "another program reads"),
    ("feishu", "Refused 200 19021 sign match fail or timestamp", "signing key of the robot"),
    ("feishu", "Refused 200 19024 Key Words Not Found", "one of the keywords"),
    ("dingtalk", "Refused 200 310000 sign not match", "signing key of the robot"),
    ("dingtalk", "Refused 200 310000 keywords not in content", "one of the keywords"),
    ("dingtalk", "Refused 200 310000 ip 1.2.3.4 not in whitelist", "some IP addresses only"),
    ("dingtalk", "Refused 200 300005 token is not exist", "does not know this URL"),
    ("wecom", "Refused 200 93000 invalid webhook url", "does not know this URL"),
    ("bark", "Refused 400 failed to get device token", "does not accept the key"),
    ("pushplus", "Refused 200 903 无效的用户token", "does not accept the key"),
    ("pushplus", "Refused 200 905 x", "who you are"),
    ("serverchan", "Refused 400 40001 x", "does not accept the key"),
    ("matrix", "Refused 403 M_FORBIDDEN not in room", "invite the user"),
    ("slack", "Refused 404 no_service", "does not know this URL"),
    ("ntfy", "Refused 401 unauthorized", "does not accept the key"),
    ("gotify", "ConnectionRefusedError Connection refused", "nothing responds there"),
    ("slack", "Refused 400 invalid_blocks", ""),
]


@pytest.mark.parametrize(("kind", "reason", "hint"), HINTS)
def test_a_refusal_has_a_hint_where_the_owner_can_do_something(
    kind: str, reason: str, hint: str
) -> None:
    said = inside.hint_of_chat(kind, reason)
    assert hint in said
    assert bool(hint) == bool(said)
