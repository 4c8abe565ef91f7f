"""Pictures of the widget in each of its states; run by hand: `python tests/shots.py FOLDER`, with
`--only NAME` for some of them, `--embed PATH` for another widget.

A picture is STATE-WIDTH-SCHEME.png, cut to the comments. `--readme FILE` makes one picture of the
thread in both schemes, side by side."""

import argparse
import base64
import contextlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, Route
from playwright.sync_api import TimeoutError as TooLong

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import blog
import test_words
from blog import Json, say
from test_writing import moderate, settings_say

from commentd import App

# Who writes, and what.
TYPED = {
    "zh-CN": ("何夕", "读完去改了自己的样式表，行距放开之后，确实像换了一副眼镜。"),
    "zh-TW": ("林知遠", "讀完去改了自己的樣式表，行距放寬之後，真的像換了一副眼鏡。"),
    "ja": ("佐藤みなと", "さっそく行間を広げてみたら、眼鏡を替えたように読みやすくなりました。"),
    "en": (
        "Ada Byrne",
        "Went straight to my own style sheet. **One** evening, and it reads like new.",
    ),
    "de": ("Jonas Weiß", "Gleich probiert: Mit mehr Luft dazwischen liest es sich wie neu."),
    "fr": ("Élodie Morel", "Essayé le soir même : avec plus d’air, tout se lit bien mieux."),
    "ru": ("Вера Лебедева", "Попробовала в тот же вечер: читается совсем иначе."),
    "ar": ("سلمى ناصر", "جرّبتُ ذلك على مدونتي، والفرق واضح من السطر الأول."),
}
# What the widget calls its parts, and what is typed there.
WORDS = {
    lang: test_words.WORDS[lang] | {"me": name, "sentence": sentence}
    for lang, (name, sentence) in TYPED.items()
}
README = Path(__file__).parent.parent / "README.md"
# The README's style for a look, to be laid over it.
THEMES: dict[str, str] = dict(
    re.findall(r"\*\*(essay|code|photo)\*\*[^`]*```css\n(.*?)```", README.read_text("utf-8"), re.S)
)


# What is written on a page


def empty(app: App, page: str) -> None:
    """A page that nobody has written on; it knows its owner."""
    blog.owner_token(app)


def removed(app: App, page: str) -> None:
    ids = blog.conversation(app, page)
    moderate(app, "deleted", ids[3])


def short(app: App, page: str) -> None:
    ids = blog.conversation(app, page)
    moderate(app, "spam", *ids[5:])


def deep(app: App, page: str) -> None:
    parent = None
    for number in range(8):
        text = f"Answer number {number}. 说得对，不过还有一层。"
        name = ("Mateo Silva", "Noor Rahman")[number % 2]
        parent = say(app, text, name, page=page, hours=9 - number, parent_id=parent)


CODE = """The one line that mattered, and the whole of it:

```
@media (min-width: 60em) and (prefers-color-scheme: dark) { main > article { \
grid-template-columns: [full-start] minmax(1rem, 1fr) [main] minmax(0, 38em) [full-end] } }
```

> > 行距是给眼睛落脚的台阶。

两位说的是一件事：~~先改颜色~~ `git push --force-with-lease`。"""


def hard(app: App, page: str) -> None:
    """What is hardest to fit in: a long name, a long word, a long text, code and signs."""
    say(app, blog.LONG, "Bartholomew-Maximilian Featherstonehaugh-Cholmondeley-Marjorib", page=page)
    say(app, "Donaudampfschifffahrt" * 9 + "sgesellschaf", "🌵 阿木", page=page)
    say(app, CODE + " 🎉👍🏽👩‍💻🇨🇳❤️🥟", "ليلى حدّاد", page=page, website="https://noor.example")


# What the service and the network do, before the page is opened


def hold(page: Page, app: App) -> None:
    """The list never arrives."""
    page.route("**/comments?*", lambda route: None)


def cut(page: Page, app: App) -> None:
    """The service can't be reached, but its script was kept."""

    def abort(route: Route) -> None:
        route.abort("connectionrefused")

    page.route(re.compile("//comments.test[^/]*/(?!embed)"), abort)


def foreign(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
    """The blog is not among those that may embed the comments."""
    if environ["PATH_INFO"] == "/comments":
        headers.pop("Access-Control-Allow-Origin", None)
    return status, headers, body


settings = settings_say  # the service says so in its settings


def waiting(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
    """Comments wait for approval."""
    if environ["REQUEST_METHOD"] == "POST" and environ["PATH_INFO"] == "/comments":
        said = json.loads(body)["comment"]
        return status, headers, blog.changed_json(body, comment={**said, "status": "waiting"})
    return settings(hold="all")(environ, status, headers, body)


def busy(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
    """The reader wrote too often."""
    if environ["REQUEST_METHOD"] != "POST" or environ["PATH_INFO"] != "/comments":
        return status, headers, body
    headers = {**headers, "Retry-After": "40"}
    body = '{"error": "操作太频繁，请稍后再试", "code": "too_many"}'.encode()
    return "429 Too Many Requests", headers, body


# What the reader does


def widget(page: Page) -> Locator:
    return page.locator("commentd-thread")


def write(page: Page, words: dict[str, str]) -> None:
    """The first words, in the field that is there."""
    widget(page).get_by_role("textbox").first.click()
    page.keyboard.insert_text(words["sentence"])


def fill(page: Page, words: dict[str, str]) -> None:
    write(page, words)
    widget(page).get_by_role("textbox", name=words["name"]).first.fill(words["me"])


def post(page: Page, words: dict[str, str], name: str = "post") -> None:
    fill(page, words)
    widget(page).get_by_role("button", name=words[name]).first.click()


def post_for_approval(page: Page, words: dict[str, str]) -> None:
    post(page, words, "approve")


def post_too_much(page: Page, words: dict[str, str]) -> None:
    write(page, {**words, "sentence": words["sentence"] * 100})


def preview(page: Page, words: dict[str, str]) -> None:
    fill(page, words)
    widget(page).get_by_role("button", name=words["preview"]).first.click()


def reply(page: Page, words: dict[str, str]) -> None:
    """The form below the second comment."""
    widget(page).locator(".reply").nth(1).click()
    page.keyboard.insert_text(words["sentence"])


def touch(page: Page, words: dict[str, str]) -> None:
    """The first touch, which brings what waits for it."""
    with page.expect_response("**/more.js"):
        widget(page).get_by_role("article").first.focus()
    settle(page)


def quote(page: Page, words: dict[str, str]) -> None:
    touch(page, words)
    widget(page).locator("blockquote p").select_text()
    widget(page).get_by_role("button", name=words["quote"]).click()


def keys(page: Page, words: dict[str, str]) -> None:
    touch(page, words)
    page.keyboard.press("?")


def hide(page: Page, words: dict[str, str]) -> None:
    widget(page).locator(".line").first.click()


def on_paper(page: Page, words: dict[str, str]) -> None:
    page.emulate_media(media="print")


@dataclass(frozen=True)
class State:
    """What is written, what is different, what the reader does, and what is looked at: the
    comments or, `seen`, what the window shows."""

    fill: Callable[[App, str], object] = blog.conversation
    act: Callable[[Page, dict[str, str]], None] | None = None
    before: Callable[[Page, App], None] | None = None
    change: blog.Change | None = None
    look: str = "essay"
    theme: bool = False
    lang: str = "zh-CN"
    seen: bool = False
    widths: tuple[int, ...] = (390, 1024)
    schemes: tuple[str, ...] = ("light", "dark")
    browser: Json = field(default_factory=dict)


ZOOM: Json = {"device_scale_factor": 4, "is_mobile": False, "has_touch": False}
ZOOM["viewport"] = {"width": 320, "height": 256}

STATES = {
    "thread": State(),
    "empty": State(empty),
    "write": State(empty, write),
    "reply": State(act=reply),
    "preview": State(empty, preview),
    "posted": State(act=post),
    "busy": State(act=post, change=busy),
    "too-long": State(empty, post_too_much, seen=True),
    "offline": State(before=cut),
    "foreign": State(change=foreign),
    "loading": State(before=hold, seen=True),
    "closed": State(change=settings(closed=True)),
    "waiting": State(act=post_for_approval, change=waiting),
    "login": State(act=write, change=settings(login_required=True)),
    "removed": State(removed),
    "deep": State(deep),
    "hard": State(hard),
    "hidden-replies": State(act=hide),
    "quote": State(act=quote, lang="en"),
    "keys": State(act=keys, seen=True),
    "print": State(act=on_paper, widths=(794,), schemes=("light",)),
    "zoom": State(act=reply, widths=(320,), browser=ZOOM),
    "narrow-write": State(empty, fill, widths=(320,)),
    "forced": State(act=reply, browser={"forced_colors": "active"}),
    "code-blog": State(act=reply, look="code", lang="en"),
    "photo-blog": State(act=reply, look="photo", lang="en"),
}
for lang in TYPED:
    STATES[f"reply-{lang}"] = State(act=reply, lang=lang, widths=(320,), schemes=("light",))
for look in THEMES:
    STATES[f"theme-{look}"] = State(act=reply, look=look, theme=True, lang="en")


@dataclass
class Studio:
    """Where pictures are taken."""

    app: App
    browser: Browser
    service: str
    address: str
    pages: blog.Pages
    paths: dict[object, str] = field(default_factory=dict)

    def path(self, state: State) -> str:
        """A page that is written on; another one each time where the reader writes too."""
        shared = None if state.act else state.fill
        if shared not in self.paths or state.act:
            self.paths[shared] = f"/{len(self.pages)}/"
            state.fill(self.app, self.paths[shared])
        return self.paths[shared]

    @contextmanager
    def set(self, state: State, width: int, scheme: str) -> Iterator[Page]:
        """The page in this state."""
        path = self.path(state)
        self.pages |= blog.article(self.service, path, look=state.look, lang=state.lang)
        if state.theme:
            kind, sheet = self.pages[f"/{state.look}.css"]
            self.pages[f"/{state.look}.css"] = (kind, sheet + THEMES[state.look])
        with contextlib.ExitStack() as stack:
            phone = width < 600
            how: Json = {
                "viewport": {"width": width, "height": 844 if phone else 768},
                "device_scale_factor": 2 if phone else 1,
                "is_mobile": phone,
                "has_touch": phone,
                "color_scheme": scheme,
                "locale": state.lang,
            }
            context = self.browser.new_context(**how | state.browser)
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(4_000)
            page.on("pageerror", lambda error: print("  !", error))
            if state.change:
                stack.enter_context(blog.answering(self.app, state.change))
            if state.before:
                state.before(page, self.app)
            page.goto(f"{self.address}{path}#comments")
            settle(page)
            if state.act:
                try:
                    state.act(page, WORDS[state.lang])
                except TooLong as error:
                    print("  !", str(error).split("\n")[0])
                settle(page)
            yield page

    def take(self, state: State, width: int, scheme: str) -> bytes:
        with self.set(state, width, scheme) as page:
            if state.seen:
                return page.screenshot(animations="disabled")
            phone = width < 600
            if phone:  # beyond the window a picture shows what a mouse finds
                tall = page.evaluate("document.documentElement.scrollHeight")
                page.set_viewport_size({"width": width, "height": tall})
            clip = page.evaluate(COMMENTS)
            clip["height"] = min(clip["height"], 3000)
            return page.screenshot(full_page=not phone, clip=clip, animations="disabled")


# The column, from above the heading to the footer's first line.
COMMENTS = """() => {
  const box = e => document.querySelector(e).getBoundingClientRect()
  const {left, right} = box('main'), x = Math.max(0, left - 20), y = box('#comments').top - 40
  const width = Math.min(innerWidth, right + 20) - x, height = box('footer').top + 70 - y
  return {x, y: y + scrollY, width, height}
}"""


def settle(page: Page) -> None:
    """Nothing is asked any more, or not answered for two seconds; what fades in is there."""
    with contextlib.suppress(TooLong):
        page.wait_for_load_state("networkidle", timeout=2000)
    page.wait_for_timeout(300)


@contextmanager
def studio(embed: Path | None) -> Iterator[Studio]:
    pages: blog.Pages = {}
    with (
        blog.own_app(embed) as app,
        blog.service(app) as service,
        blog.blog(pages) as address,
        blog.chromium() as browser,
    ):
        yield Studio(app, browser, service, address, pages)


def for_readme(stage: Studio) -> bytes:
    """The upper part of the thread at 2x, light beside dark, below 150 kB where Pillow is there
    to take colours away."""
    halves = []
    for scheme in ("light", "dark"):
        with stage.set(State(short, lang="en"), 480, scheme) as page:
            clip = page.evaluate(COMMENTS) | {"height": 800}
            halves.append(page.screenshot(full_page=True, clip=clip, animations="disabled"))
    images = "".join(
        f'<img src="data:image/png;base64,{base64.b64encode(half).decode()}">' for half in halves
    )
    page = stage.browser.new_page(viewport={"width": 1920, "height": 1600})
    page.set_content(f"<body style='margin: 0; display: flex'>{images}")
    picture = page.screenshot()
    page.close()
    with contextlib.suppress(ImportError):
        from PIL import Image

        out = io.BytesIO()
        Image.open(io.BytesIO(picture)).convert("RGB").quantize(48).save(out, "PNG", optimize=True)
        picture = out.getvalue()
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=PLAIN)
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER")
    parser.add_argument("--only", action="append", choices=STATES, metavar="NAME")
    parser.add_argument("--readme", type=Path, metavar="FILE")
    parser.add_argument("--embed", type=Path, metavar="PATH", help="another embed.js")
    asked = parser.parse_args()
    with studio(asked.embed) as stage:
        if asked.readme:
            asked.readme.write_bytes(for_readme(stage))
            print(asked.readme, asked.readme.stat().st_size, "bytes")
        if asked.folder:
            asked.folder.mkdir(parents=True, exist_ok=True)
            for name in asked.only or STATES:
                state = STATES[name]
                for width, scheme in product(state.widths, state.schemes):
                    file = asked.folder / f"{name}-{width}-{scheme}.png"
                    print(file, flush=True)
                    file.write_bytes(stage.take(state, width, scheme))


PLAIN = partial(argparse.RawDescriptionHelpFormatter, width=100)

if __name__ == "__main__":
    main()
