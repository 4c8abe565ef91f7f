"""A blog with everything on that makes a thread lively: stickers, reactions, faces, formulas,
tables, and pictures by link. Its stickers and faces are drawn here."""

import io
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from playwright.sync_api import Page, Route
from webtest import TestApp

from commentd import App
from support.blog import OWNER, say

HOST = "https://pictures.example"
MOODS = {
    "smile": "M28 58q20 22 40 0",
    "sad": "M28 70q20 -22 40 0",
    "calm": "M32 62h32",
    "surprised": "M40 62a8 9 0 1 0 16 0a8 9 0 1 0 -16 0",
    "grin": "M26 54h44q-4 24 -22 24t-22 -24z",
    "unsure": "M30 66q9 -10 18 0t18 0",
}
PACKS = {"cats": "#f4a640", "frogs": "#6cc06c", "ghosts": "#d8d4ea"}
FACES = {"Fox": "#e07a3f", "Owl": "#8a6f58", "Whale": "#4c8fbf", "Fern": "#5c9a5f"}
FORMULA = r"\sum_{n=1}^{\infty} \frac{1}{n^2} = \frac{\pi^2}{6}"
WIDE_FORMULA = " + ".join(f"a_{{{number}}}x^{{{number}}}" for number in range(30))
TABLE = """| Font | Line height | Width | Size on a phone | Size on a desk | Loaded |
|:--|--:|:-:|--:|--:|:--|
| Source Serif | $1.55$ | 66 | 17 px | 18 px | no |
| *Noto Serif* | $1.70$ | 62 | 17 px | 19 px | :cats_calm: |"""
CODE = """```css
article p {
  line-height: 1.7; /* for a serif; a sans needs less, and a monospace needs the least of all */
  text-wrap: pretty;
}
```"""
EVERYTHING = f"So :cats_smile:, $x^2$ and ![hills]({HOST}/hills.png)\n\n$${FORMULA}$$\n\n{TABLE}"


def sticker(mood: str, colour: str) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="96" height="96" viewBox="0 0 96 96">'
        f'<path d="M14 12l18 10a44 44 0 0 1 32 0l18 -10v40a34 36 0 1 1 -68 0z" fill="{colour}"/>'
        '<circle cx="34" cy="42" r="5"/><circle cx="62" cy="42" r="5"/>'
        f'<path d="{MOODS[mood]}" fill="none" stroke="#000" stroke-width="5" '
        'stroke-linecap="round"/></svg>'
    )


def landscape(width: int, height: int) -> bytes:
    """Hills in front of a sky, as PNG."""
    image = Image.new("RGB", (width, height), "#bcd7e6")
    draw = ImageDraw.Draw(image)
    draw.ellipse((width * 0.7, height * 0.12, width * 0.7 + 60, height * 0.12 + 60), fill="#fbe6a2")
    for far, colour in ((0.45, "#8fb08c"), (0.6, "#5f8f6b"), (0.75, "#39624a")):
        draw.ellipse((-width * far, height * far, width * 1.1, height * 2), fill=colour)
        draw.ellipse((width * far, height * far * 1.1, width * 2, height * 2), fill=colour)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def settings(folder: Path) -> dict[str, Any]:
    """The settings that switch all of it on, with the files that they name, in a folder."""
    for pack, colour in PACKS.items():
        (folder / "stickers" / pack).mkdir(parents=True)
        for mood in MOODS:
            drawn = sticker(mood, colour)
            (folder / "stickers" / pack / f"{mood}.svg").write_text(drawn, "utf-8")
    (folder / "faces").mkdir()
    for name, colour in FACES.items():
        image = Image.new("RGB", (96, 96), colour)
        draw = ImageDraw.Draw(image)
        draw.ellipse((26, 14, 70, 58), fill="#f6ead8")
        draw.ellipse((8, 60, 88, 140), fill="#f6ead8")
        image.save(folder / "faces" / f"{name}.png")
    return {
        "stickers_folder": str(folder / "stickers"),
        "comments_faces": str(folder / "faces"),
        "comments_pictures": True,
        "comments_formulas": True,
        "comments_tables": True,
        "comments_reactions": ("👍", "🎉", "😄", "😮", "💔"),
        "comments_picture_hosts": (HOST,),
    }


def show_pictures(page: Page) -> None:
    """Gives a page the pictures of the other host. One of them never comes."""
    shapes = {"wide": (1200, 500), "tall": (500, 1200), "small": (160, 120), "hills": (900, 600)}

    def respond(route: Route) -> None:
        name = route.request.url.removeprefix(HOST + "/").removesuffix(".png")
        if name in shapes:
            route.fulfill(body=landscape(*shapes[name]), content_type="image/png")
        else:
            route.fulfill(status=404)

    page.route(HOST + "/**", respond)


def face_of(app: App, title: str) -> str:
    """The name of a picture of the gallery."""
    found = TestApp(app).get("/faces").json["faces"]
    return str(next(face["picture"] for face in found if face["title"] == title))


def talk(app: App, path: str) -> None:
    """A conversation with some of each."""

    def write(text: str, name: str, hours: float, **fields: Any) -> int:
        return say(app, text, name, page=path, hours=hours, **fields)

    write(
        f"The sun behind the last hill: ![The hills behind the house]({HOST}/hills.png)",
        "Noor Rahman",
        2,
        face=face_of(app, "Owl"),
    )
    first = write(
        f"Wonderful :cats_grin: and so *calm*. For who wants to count: $e^{{i\\pi}} + 1 = 0$ fits "
        f"into a line, :frogs_smile: too, and this has one of its own:\n\n$${FORMULA}$$\n\nSo far.",
        "Mateo Silva", 5, face=face_of(app, "Fox"), likes=3,
    )  # fmt: skip
    write(":ghosts_surprised: :ghosts_smile:", "Ann", 4, parent_id=first)
    write("我也用 :cats_smile: 这个公式 $\\frac{a}{b}$。", OWNER, 3, parent_id=first)
    write(
        f"What I measured:\n\n{TABLE}\n\nAnd the style:\n\n{CODE}",
        "Noor Rahman",
        8,
        face=face_of(app, "Owl"),
        likes=1,
    )
    write(f"A wide one in a line: ${WIDE_FORMULA}$ and so on.\n\n$${WIDE_FORMULA}$$", "Bo", 9)
    write(
        f"![Mine](https://other.example/x.png) is gone, and ![A map of the bay]({HOST}/gone.png) "
        f"was lost.",
        "Ann",
        11,
    )
    for picture in ("[A tower]({}/tall.png)", "[A tiny one]({}/small.png)", "[]({}/wide.png)"):
        write("!" + picture.format(HOST), "Ann", 12)
