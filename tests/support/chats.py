"""Chats and push services as their makers document them: servers of our own that take a message of
the documented shape alone, and refuse all others in the words of the service.

Each function of `SERVICES` is one service. It gets a call and returns a status, headers and a body,
or raises `AssertionError` for what no documentation allows. `settings_of` is what an owner writes
for it."""

import base64
import hashlib
import hmac
import json
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from support.client import CANARY
from support.local_servers import LocalHTTPServer, served

Answer = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True)
class Call:
    """What a service was sent."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urllib.parse.urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.target).query))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def answer(status: int, value: object, **headers: str) -> Answer:
    return status, headers, json.dumps(value, ensure_ascii=False).encode()


# Chats of teams


def slack(call: Call) -> Answer:
    """docs.slack.dev/messaging/sending-messages-using-incoming-webhooks"""
    if call.path != f"/services/T0/B0/{CANARY}":
        return 404, {}, b"no_service"
    if any(len(block["text"]["text"]) > 3000 for block in call.json["blocks"]):
        return 400, {}, b"invalid_blocks"
    return 200, {}, b"ok"


def discord(call: Call) -> Answer:
    """docs.discord.com/developers/resources/webhook#execute-webhook"""
    if call.path != f"/api/webhooks/1/{CANARY}":
        return answer(404, {"message": "Unknown Webhook", "code": 10015})
    (embed,) = call.json["embeds"]
    if len(embed["title"]) > 256 or len(embed["description"]) > 4096:
        return answer(400, {"message": "Invalid Form Body", "code": 50035})
    return 204, {}, b""


def mattermost(call: Call) -> Answer:
    """developers.mattermost.com/integrate/webhooks/incoming"""
    if call.path != f"/hooks/{CANARY}":
        text = "Invalid webhook"
        return answer(400, {"id": "web.incoming_webhook.invalid.app_error", "message": text})
    assert {*call.json} == {"text"}
    return 200, {}, b"ok"


def rocketchat(call: Call) -> Answer:
    """docs.rocket.chat/docs/integrations"""
    if call.path != f"/hooks/1/{CANARY}":
        return answer(404, {"success": False, "error": "Invalid integration id or token provided."})
    assert {*call.json} == {"text"}
    return answer(200, {"success": True})


def matrix(call: Call) -> Answer:
    """spec.matrix.org/latest/client-server-api/#put_matrixclientv3roomsroomidsendeventtypetxnid"""
    if call.headers.get("authorization") != f"Bearer {CANARY}":
        return answer(401, {"errcode": "M_UNKNOWN_TOKEN", "error": "Unrecognised access token"})
    assert call.method == "PUT"
    start = "/_matrix/client/v3/rooms/%21room%3Amatrix.example/send/m.room.message/"
    if not call.path.startswith(start):
        return answer(403, {"errcode": "M_FORBIDDEN", "error": "not in room"})
    assert call.path.removeprefix(start)
    if len(call.body) > 65_000:
        return answer(413, {"errcode": "M_TOO_LARGE", "error": "event too large"})
    return answer(200, {"event_id": "$YUwRidLecu:example.com"})


# Chats of teams in China


def feishu(call: Call) -> Answer:
    """open.feishu.cn/document/client-docs/bot-v3/add-custom-bot"""
    if call.path != f"/open-apis/bot/v2/hook/{CANARY}":
        return answer(400, {"code": 19001, "data": {}, "msg": "param invalid: incoming webhook"})
    body = call.json
    key = f"{body.get('timestamp')}\n{SECRET}".encode()
    if body.get("sign") != base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode():
        return answer(200, {"code": 19021, "data": {}, "msg": "sign match fail or timestamp"})
    if "评论" not in body["content"]["post"]["zh_cn"]["title"]:
        return answer(200, {"code": 19024, "data": {}, "msg": "Key Words Not Found"})
    if len(call.body) > 20_000:
        return answer(200, {"code": 9499, "data": {}, "msg": "Bad Request"})
    return answer(200, {"StatusCode": 0, "StatusMessage": "success", "code": 0, "data": {}})


def wecom(call: Call) -> Answer:
    """developer.work.weixin.qq.com/document/path/91770"""
    if (call.path, call.query) != ("/cgi-bin/webhook/send", {"key": CANARY}):
        return answer(200, {"errcode": 93000, "errmsg": "invalid webhook url"})
    assert ({*call.json}, call.json["msgtype"]) == ({"msgtype", "text"}, "text")
    if len(call.json["text"]["content"].encode()) > 2048:
        return answer(200, {"errcode": 40058, "errmsg": "text.content exceed max length 2048"})
    return answer(200, {"errcode": 0, "errmsg": "ok"})


def dingtalk(call: Call) -> Answer:
    """open.dingtalk.com/document/robots/custom-robot-access and .../customize-robot-security-
    settings: the signature, and the word"""
    query = call.query
    if call.path != "/robot/send" or query.get("access_token") != CANARY:
        return answer(200, {"errcode": 300005, "errmsg": "token is not exist"})
    signed = f"{query.get('timestamp')}\n{SECRET}".encode()
    right = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
    if query.get("sign") != right:
        return answer(200, {"errcode": 310000, "errmsg": "sign not match"})
    body = call.json
    text = body["text"]["content"] if body["msgtype"] == "text" else body["actionCard"]["text"]
    if "评论" not in text:
        return answer(200, {"errcode": 310000, "errmsg": "keywords not in content"})
    if body["msgtype"] == "actionCard":
        card = body["actionCard"]
        assert {*card} == {"title", "text", "btnOrientation", "btns"}
        assert all({*button} == {"title", "actionURL"} for button in card["btns"])
    return answer(200, {"errcode": 0, "errmsg": "ok"})


# Push services


def bark(call: Call) -> Answer:
    """github.com/Finb/bark-server/blob/master/docs/API_V2.md, and its route_push.go"""
    assert call.path == "/push"
    if call.json["device_key"] != CANARY:
        text = "failed to get device token: failed to get [x] device token from database"
        return answer(400, {"code": 400, "message": text, "timestamp": 1})
    if len(call.body) > 4096:
        return answer(500, {"code": 500, "message": "push failed: APNs 413 PayloadTooLarge"})
    return answer(200, {"code": 200, "message": "success", "timestamp": 1})


def ntfy(call: Call) -> Answer:
    """docs.ntfy.sh/publish/#publish-as-json and #action-buttons"""
    assert (call.method, call.path) == ("POST", "/")
    if call.headers.get("authorization") != f"Bearer {CANARY}":
        return answer(401, {"code": 40101, "http": 401, "error": "unauthorized"})
    body = call.json
    assert body["topic"] == "my-topic"
    assert {*body} <= {"topic", "title", "message", "actions", "click"}
    assert len(body["actions"]) <= 3
    for action in body["actions"]:
        assert {*action} == {"action", "label", "url", "method", "clear"}
    if len(body["message"].encode()) > 4096:
        return answer(413, {"code": 41301, "http": 413, "error": "message too large"})
    return answer(200, {"id": "x", "event": "message", "topic": "my-topic"})


def gotify(call: Call) -> Answer:
    """gotify.net/docs/pushmsg and gotify.net/api-docs"""
    assert (call.method, call.path) == ("POST", "/message")
    if call.headers.get("x-gotify-key") != CANARY:
        said = "you need to provide a valid access token or user credentials to access this api"
        refusal = {"error": "Unauthorized", "errorCode": 401, "errorDescription": said}
        return answer(401, refusal)
    assert {*call.json} == {"title", "message", "priority", "extras"}
    return answer(200, {"id": 25, "appid": 5, "message": "x", "title": "x"})


def pushplus(call: Call) -> Answer:
    """www.pushplus.plus/doc/guide/api.html and api.pushplus.plus/doc-3034446 (the codes)"""
    assert call.path == "/send"
    if call.json["token"] != CANARY:
        return answer(200, {"code": 903, "msg": "无效的用户token", "data": None})
    assert {*call.json} == {"token", "title", "content", "template", "topic"}
    if len(call.json["title"]) > 100 or len(call.json["content"]) > 20_000:
        return answer(200, {"code": 999, "msg": "内容过长", "data": None})
    return answer(200, {"code": 200, "msg": "请求成功", "data": "075074e3"})


def serverchan(call: Call) -> Answer:
    """doc2.ft07.com/en/serverchan3/server/sdk, sct.ftqq.com/sendkey"""
    if call.path != f"/{CANARY}.send":
        return answer(400, {"code": 40001, "message": "[AUTH]错误的Key", "info": "错误的Key"})
    assert {*call.json} == {"title", "desp", "short"}
    if len(call.json["title"]) > 32 or len(call.json["desp"].encode()) > 32_768:
        return answer(400, {"code": 40000, "message": "参数过长"})
    return answer(200, {"code": 0, "message": "", "data": {"pushid": "1", "readkey": "x"}})


# Telegram


def telegram(call: Call) -> Answer:
    """core.telegram.org/bots/api#making-requests and #sendmessage"""
    if call.path != f"/bot{CANARY}/sendMessage":
        return answer(401, {"ok": False, "error_code": 401, "description": "Unauthorized"})
    body = call.json
    if body["chat_id"] != "-100123":
        text = "Bad Request: chat not found"
        return answer(400, {"ok": False, "error_code": 400, "description": text})
    if len(body["text"].encode("utf-16-le")) // 2 > 4096:
        text = "Bad Request: message is too long"
        return answer(400, {"ok": False, "error_code": 400, "description": text})
    return answer(200, {"ok": True, "result": {"message_id": 1}})


def template(call: Call) -> Answer:
    """What the owner has described."""
    if call.headers.get("x-key") != CANARY:
        return answer(200, {"ok": "no"})
    return answer(200, {"ok": "yes"})


def json_program(call: Call) -> Answer:
    """A program of the owner's, as `help webhooks` describes it."""
    return 200, {}, b"ok"


SECRET = f"SEC{CANARY}"
SERVICES: dict[str, Callable[[Call], Answer]] = {
    "json": json_program,
    "slack": slack,
    "discord": discord,
    "telegram": telegram,
    "feishu": feishu,
    "lark": feishu,
    "wecom": wecom,
    "dingtalk": dingtalk,
    "bark": bark,
    "ntfy": ntfy,
    "gotify": gotify,
    "pushplus": pushplus,
    "serverchan": serverchan,
    "mattermost": mattermost,
    "rocketchat": rocketchat,
    "matrix": matrix,
    "template": template,
}
TEMPLATE = (
    '{"t": "{title}", "x": "{text}", "n": "{author}", "p": "{page}", "l": "{link}", '
    '"a": "{approve}", "s": "{spam}", "d": "{delete}"}'
)


def settings_of(kind: str, url: str) -> dict[str, Any]:
    """What an owner writes for a service at that URL."""
    signed = {"secret": SECRET, "keyword": "评论"}
    return {
        "json": {"url": f"{url}/hook/{CANARY}"},
        "slack": {"url": f"{url}/services/T0/B0/{CANARY}"},
        "discord": {"url": f"{url}/api/webhooks/1/{CANARY}"},
        "telegram": {"url": url, "token": CANARY, "to": "-100123"},
        "feishu": {"url": f"{url}/open-apis/bot/v2/hook/{CANARY}", **signed},
        "lark": {"url": f"{url}/open-apis/bot/v2/hook/{CANARY}", **signed},
        "wecom": {"url": f"{url}/cgi-bin/webhook/send?key={CANARY}"},
        "dingtalk": {"url": f"{url}/robot/send?access_token={CANARY}", **signed},
        "bark": {"url": url, "token": CANARY},
        "ntfy": {"url": f"{url}/my-topic", "token": CANARY},
        "gotify": {"url": url, "token": CANARY},
        "pushplus": {"url": f"{url}/send", "token": CANARY, "to": "group"},
        "serverchan": {"url": f"{url}/{CANARY}.send", "token": CANARY},
        "mattermost": {"url": f"{url}/hooks/{CANARY}"},
        "rocketchat": {"url": f"{url}/hooks/1/{CANARY}"},
        "matrix": {"url": url, "token": CANARY, "to": "!room:matrix.example"},
        "template": {
            "url": f"{url}/x?to={{author}}",
            "headers": f"X-Key: {CANARY}",
            "body": TEMPLATE,
            "success": '"yes"',
        },
    }[kind]


@dataclass
class ChatServer:
    """A service of one kind. It answers what `script` says first, else as the service does."""

    kind: str
    url: str = ""
    calls: list[Call] = field(default_factory=list)
    script: list[Answer] = field(default_factory=list)

    def answer(self, call: Call) -> Answer:
        self.calls.append(call)
        return self.script.pop(0) if self.script else SERVICES[self.kind](call)

    @property
    def settings(self) -> dict[str, Any]:
        return {"kind": self.kind, **settings_of(self.kind, self.url)}


class Handler(BaseHTTPRequestHandler):
    chat: ChatServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            status, more, content = self.chat.answer(Call(self.command, self.path, headers, body))
        except AssertionError as error:
            status, more, content = 500, {}, f"not as documented: {error}".encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **more}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    do_PUT = do_GET = do_POST

    def log_message(self, *words: object) -> None:
        """Nothing."""


@contextmanager
def chat_server(chat: ChatServer) -> Iterator[ChatServer]:
    handler = type("HandlerOfOne", (Handler,), {"chat": chat})
    with served(LocalHTTPServer(("127.0.0.1", 0), handler)) as server:
        chat.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield chat
