"""The states in which a reader can find the widget, and what brings them about."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from playwright.sync_api import Page

from commentd import App
from support import blog, lively
from support.blog import Json, say
from support.writing import owner_moderates, settings_say

# What the reader finds and does; by selectors, since words differ with the language

FORM, MAIN = "section > .form", "button:not([type])"
FIELD, NAME, POST = f"{FORM} textarea", f"{FORM} [name=nickname]", f"{FORM} {MAIN}"
PREVIEW, SIGN_IN = f"{FORM} {MAIN} + button", f"{FORM} .links button"
OTHERS, MENU = f".panel {MAIN} ~ button", ".menu button"
SECOND, LAST = f"{MENU} + button", f"{MENU}:last-child"
LONG_WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
CODE = (
    "```\n" + "grid-template-columns: [full-start] minmax(1rem, 1fr) " * 6 + "\n```\n" + "`x`" * 60
)
TEXT, ME, MAIL = "One line more: **this** one.", "Ada Byrne", "ann@example.com"
UNDESCRIBED = f"Look: ![]({lively.HOST}/hills.png)"
Act = Callable[[Page], object]


def talk(app: App, path: str) -> None:
    """A conversation, with what is hard to set."""
    blog.conversation(app, path)
    parent = None
    for number in range(8):
        name = ("Mateo Silva", "Noor Rahman")[number % 2]
        parent = say(app, f"第 {number} 层。", name, page=path, hours=9 - number, parent_id=parent)
    say(app, f"{LONG_WORD * 3} https://a.example/{'x' * 300}", "W" * 64, page=path, likes=1)
    say(app, CODE, "Mateo Silva", page=path)
    site = f"https://{'a' * 50}.example/"
    say(app, "With a site. https://a.example/", "Ann", page=path, website=site)


def few(app: App, path: str) -> None:
    """A comment and a reply to it, where the thread is not the point; the owner has a name."""
    blog.owner_token(app)
    first = say(app, "A line is a promise.", page=path)
    say(app, "So it is.", "Mateo Silva", page=path, parent_id=first)


def long_text(app: App, path: str) -> None:
    few(app, path)
    say(app, "A long text. " * 120, page=path)


def nobody(app: App, path: str) -> None:
    """A page without comments; the owner has an account."""
    blog.owner_token(app)


def one_removed(app: App, path: str) -> None:
    ids = blog.conversation(app, path)
    owner_moderates(app, "deleted", ids[3])


def twelve(app: App, path: str) -> None:
    for number in range(12):
        say(app, f"Number {number}.", page=path, hours=20 - number)


# What the service and the network do, before the page is opened


def hold(page: Page, app: App) -> None:
    """The list never arrives."""
    page.route("**/comments?*", lambda route: None)


def cut(page: Page, app: App) -> None:
    """The service can't be reached, but its script was kept."""
    page.route(re.compile("//comments.test[^/]*/(?!embed)"), lambda route: route.abort())


def refuse(page: Page, app: App) -> None:
    """The blog is not among those that may embed the comments."""
    page.route("**/comments?*", lambda route: route.abort())


def hold_proof(page: Page, app: App) -> None:
    page.route("**/captcha", lambda route: None)


def is_post(environ: Json) -> bool:
    return (environ["REQUEST_METHOD"], environ["PATH_INFO"]) == ("POST", "/comments")


def waiting(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
    """Comments wait for approval."""
    if is_post(environ):
        comment = {**json.loads(body)["comment"], "status": "waiting"}
        return status, headers, blog.changed_json(body, comment=comment)
    return settings_say(hold="all")(environ, status, headers, body)


def busy(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
    """The reader wrote too often."""
    if not is_post(environ):
        return status, headers, body
    body = '{"error": "操作太频繁，请稍后再试", "code": "too_many"}'.encode()
    return "429 Too Many Requests", {**headers, "Retry-After": "40"}, body


PROVIDERS = [{"name": "github", "label": "GitHub"}, {"name": "home", "label": "Home"}]


def joined(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
    """The reader signs in with providers alone, and has a picture. No code arrives."""
    if environ["PATH_INFO"] == "/me" and environ["REQUEST_METHOD"] == "GET":
        identities = [
            {"id": each["name"], "provider": each["label"], "name": each["name"]}
            for each in PROVIDERS
        ]
        changed = {"identities": identities, "picture": "0" * 32, "has_password": False}
        return status, headers, blog.changed_json(body, **changed)
    change = settings_say(providers=PROVIDERS, registration=False)
    return change(environ, status, headers, body)


# What the reader does


def go(*steps: str | Act) -> Act:
    """Presses what these select, one after the other."""

    def act(page: Page) -> None:
        for step in steps:
            page.locator(step).first.click() if isinstance(step, str) else step(page)

    return act


def there(selector: str) -> Act:
    return lambda page: page.locator(selector).first.wait_for()


def key(*names: str) -> Act:
    def press(page: Page) -> None:
        for name in names:
            page.keyboard.press(name)

    return press


def typed(text: str) -> Act:
    return lambda page: page.keyboard.insert_text(text)


def filled(**values: str) -> Act:
    def act(page: Page) -> None:
        for name, value in values.items():
            page.locator(f".panel [name={name}], {FORM} [name={name}]").last.fill(value)

    return act


def hide_replies(page: Page) -> None:
    """At the beginning of the line: a thumb that scrolls lies on the rest."""
    page.locator(".line").first.click(position={"x": 12, "y": 20})


def pictures_come(page: Page) -> None:
    """All of them, or the words instead of them."""
    page.evaluate("""async () => {
      const {shadowRoot: root} = document.querySelector('commentd-thread')
      const images = [...root.querySelectorAll('img')]
      for (const image of images) image.loading = 'eager'
      await Promise.allSettled(images.map(image => image.decode()))
    }""")


def select(page: Page) -> None:
    page.locator(".body p").first.select_text()


def offline(page: Page) -> None:
    page.context.set_offline(True)


def latest(page: Page) -> None:
    """The list of another part of the page, in the page's own style: for axe-core alone."""
    page.evaluate("""() => {
      const footer = document.querySelector('footer')
      footer.style.overflowWrap = 'anywhere'
      footer.innerHTML += '<ol data-commentd-latest=3></ol>'
    }""")


def of_another(page: Page) -> None:
    """Somebody else writes meanwhile."""
    page.evaluate(
        """() => {
          const body = {page_url: location.pathname, nickname: 'Bo', content: 'Me too.',
            captcha_token: 'x'}
          const headers = {'Content-Type': 'application/json'}
          const service = document.querySelector('script[src]').src.replace('embed.js', '')
          return fetch(service + 'comments', {method: 'POST', headers, body: JSON.stringify(body)})
            .then(window.hurry)
        }"""
    )


write = go(FIELD, typed(TEXT))
post = go(write, filled(nickname=ME), POST)
posted = go(post, there("[data-target] .actions"))
mine = go(posted, "[data-target] .quiet", there(".menu"))
alert = there(".error")
panel = go(write, SIGN_IN, there(".panel"))
code = go(panel, filled(email=MAIL), f".panel {MAIN}", there(".panel [name=code]"))
by_password = go(panel, OTHERS, there(".panel [name=password]"))
own_account = go(write, ".account", there(".panel .switch"))
by_providers = go(panel, there(".provider"))
joined_account = go(own_account, there(".identity"))
stickers = go(FIELD, there(".smile"), ".smile", there(".chooser"))
proving = go(joined_account, "[name=erase]", there(".provider"))


@dataclass(frozen=True)
class State:
    act: Act = go()
    fill: Callable[[App, str], object] = talk
    change: blog.Change | None = None
    before: Callable[[Page, App], None] | None = None
    role: str = ""  # of who is signed in
    is_lively: bool = False  # on a blog with stickers, faces, formulas and the like


empty, short = partial(State, fill=nobody), partial(State, fill=few)
in_all = partial(State, fill=lively.talk, is_lively=True)
STATES = {
    "thread": State(),
    "none yet": empty(),
    "writing, empty": empty(go(FIELD)),
    "writing, with preview": empty(go(write, PREVIEW, there(".preview"))),
    "mail and website": empty(go(write, "summary")),
    "no name": empty(go(write, POST, alert)),
    "name taken": short(go(write, filled(nickname=blog.OWNER), POST, alert)),
    "too fast": short(go(post, alert), change=busy),
    "too long": empty(go(FIELD, filled(content="long " * 2010))),
    "sending": empty(go(post, there("[aria-busy=true]")), before=hold_proof),
    "posted": short(posted),
    "waiting": short(posted, change=waiting),
    "answering": short(go(".reply", there("article textarea"), typed(TEXT))),
    "menu": short(go(".quiet", there(".menu"))),
    "editing": short(go(mine, SECOND, there("article textarea"))),
    "deleting": short(go(mine, LAST, there(".menu [data-sure]"), key("Shift+Tab", "Shift+Tab"))),
    "liked": short(go("article .like", there(".like[aria-pressed=true]"))),
    "unfolded": State(go("article > button"), long_text),
    "replies hidden": short(go(hide_replies, there(".line[aria-expanded=false]"))),
    "more shown": State(go(".more", there("article:focus")), twelve),
    "removed": State(fill=one_removed),
    "quoting": short(go(".like", select, there(".quote"))),
    "new comments": short(go(of_another, ".head", there(".fresh button"))),
    "keyboard help": short(go(".reply", key("Escape"), ".like", key("?"), there("dialog"))),
    "latest comments": short(go(latest, there("[data-commentd-latest] li"))),
    "closed": short(change=settings_say(closed=True)),
    "closed, empty": empty(change=settings_say(closed=True)),
    "loading": short(before=hold),
    "offline": short(before=cut),
    "offline, posting": short(go(write, filled(nickname=ME), offline, POST, alert)),
    "refused site": short(there(".error, [role=alert]"), before=refuse),
    "login asked for": short(there(".barred"), change=settings_say(login_required=True)),
    "sign in": empty(panel),
    "sign in, refused": empty(go(panel, f".panel {MAIN}", alert)),
    "sign in, password": empty(by_password),
    "register": empty(go(by_password, f"{OTHERS} + button", there(".panel [name=nickname]"))),
    "sign in, providers": empty(by_providers, change=settings_say(providers=PROVIDERS)),
    "code": empty(code),
    "code, refused": empty(go(code, filled(code="12345"), f".panel {MAIN}", alert)),
    "signed in": short(go(write, there(".guest button")), role="user"),
    "account": short(own_account, role="user"),
    "account, providers": short(joined_account, change=joined, role="user"),
    "account, showing who one is": short(proving, change=joined, role="user"),
    "account, deleting": short(
        go(own_account, ".panel [name=erase]", there(".panel .danger")), role="user"
    ),
    "lively": in_all(pictures_come),
    "reacted": in_all(go(".reaction", there(".reaction[aria-pressed=true]"))),
    "stickers": in_all(stickers),
    "stickers, found": in_all(go(stickers, typed("smile"))),
    "stickers, none found": in_all(go(stickers, typed("zebra"))),
    "picture asked for": in_all(go(FIELD, typed(UNDESCRIBED), POST, alert)),
    "picture enlarged": in_all(go(".picture", there(".large"))),
    "faces": in_all(go(write, ".chosen", there(".face"))),
    "account, own picture": in_all(own_account, role="user"),
    "preview of all": in_all(go(FIELD, typed(lively.EVERYTHING), PREVIEW, there(".preview"))),
    "admin's menu": short(go(".quiet", there(".menu")), role="admin"),
    "marked as spam": short(go(".quiet", SECOND, there("article p.row")), role="admin"),
}
