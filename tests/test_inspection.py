"""`commentd check URL` on the pages of a real blog, behind a real proxy: with every mistake that
owners make, and with none. The admin page offers the same."""

import gzip
import re
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from commentd import App, translated
from support import inside, inspected
from support.admin import new_owner
from support.client import Visitor, stranger
from support.commands import run_here
from support.inspected import (
    BLOG,
    CANONICAL,
    COMMENTS,
    POST,
    TAG,
    WWW,
    Place,
    Sent,
    Way,
    changed,
    honest,
    in_place,
    page,
)
from support.mail import certificates as certificates  # a fixture
from support.proxies import site
from support.service import services

LINE = re.compile(r"^  (ok|note|warn|fail) +(\w+) +(\S.*)$", re.M)
POLICY = "content-security-policy"
KEPT = "cache-control"
EMBED = f"{COMMENTS}/embed.js"
THREAD = "<commentd-thread></commentd-thread>"
OK = f"all is well: readers of {POST} can read and write comments"


@dataclass(frozen=True)
class Mistake:
    """What an owner does wrong: in a page, its headers, the proxy or the settings. `said`: the one
    sentence about it."""

    said: str
    html: str = page()
    headers: tuple[tuple[str, str], ...] = ()
    way: Way = honest
    pages: dict[str, Sent] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    url: str = POST
    name: str = ""


def policy(text: str) -> tuple[tuple[str, str], ...]:
    return ((POLICY, text),)


def delayed(attributes: str) -> str:
    return page(f"<script {attributes}></script>")


def moved(target: str, status: int = 301) -> Sent:
    return Sent(status, (("location", target),))


FULL_POLICY = f"default-src 'self'; script-src {COMMENTS}; connect-src {COMMENTS}"
AGREES = "the tag is held back until the reader agrees, by {}: name embed.js there as necessary"
ACTS = "the tag is held back until the reader acts, by {}: name embed.js among its exceptions"
STILL = "the page still has {}: delete it from the template or the settings"
DEPLOY = "add its network to [server] trusted_proxy, see `commentd help deploy`"

OTHERS = {
    "Disqus": '<div id="disqus_thread"></div><script src="https://x.disqus.com/embed.js"></script>',
    "Giscus": '<script src="https://giscus.app/client.js" data-repo="a/b"></script>',
    "Utterances": '<script src="https://utteranc.es/client.js" repo="a/b"></script>',
    "Gitalk": '<div id="gitalk-container"></div>',
    "Waline": '<div id="waline"></div><script type="module">Waline.init({})</script>',
    "Twikoo": '<div id="tcomment"></div><script>twikoo.init({})</script>',
    "Artalk": '<script>Artalk.init({el: "#Comments"})</script>',
    "Isso": '<script data-isso="//isso.blog.example/" src="//isso.blog.example/js/embed.min.js">'
    '</script><section id="isso-thread"></section>',
    "Remark42": '<div id="remark42"></div><script>var remark_config = {}</script>',
    "Cusdis": '<div id="cusdis_thread"></div>',
    "Valine": '<div id="vcomments"></div><script>new Valine({})</script>',
    "Commento": '<script src="https://cdn.commento.io/js/commento.js"></script>',
    "Comentario": '<script src="https://x.example/comentario.js"></script>',
    "Facebook": '<div class="wide fb-comments"></div>',
}

TAGS = [
    Mistake(f"the page has no tag: paste {TAG} into the template of your posts", page("")),
    Mistake(
        f"the page has no tag: paste {TAG} into the template of your posts",
        page("<!-- <p>Old</p> --><script>let old</script><pre>&lt;script&gt;</pre>"),
        name="no tag in comments and scripts",
    ),
    Mistake(f"the page has <commentd-thread>, but no script: paste {TAG} beside it", page(THREAD)),
    Mistake(
        "the tag stands in a comment of the HTML: delete the <!-- and --> around it",
        page(f"<!-- {TAG} -->"),
    ),
    Mistake(
        "the tag is shown as text: paste it into the template of the blog, or where its editor "
        "takes HTML",
        page(TAG.replace("<", "&lt;").replace(">", "&gt;")),
    ),
    Mistake(
        "the tag is shown as text: paste it into the template of the blog, or where its editor "
        "takes HTML",
        page(TAG.replace("<", "&lt").replace(">", "&gt")),
        name="without semicolons",
    ),
    Mistake(
        "the tag stands in <noscript>, where no browser runs it: move it out",
        page(f"<noscript>{TAG}</noscript>"),
    ),
    Mistake(
        "the tag stands in <template>, where no browser runs it: move it out",
        page(f"<template><div>{TAG}</div></template>"),
    ),
    Mistake(
        "the tag ends with />, so that browsers take the rest of the page for its text: write "
        "></script>",
        page(f'<script src="{EMBED}" async />'),
    ),
    Mistake(
        "another script ends with />, so that browsers take the tag for its text: write ></script>",
        page(f'<script src="/theme.js" />{TAG}'),
    ),
    Mistake("the tag stands on the page more than once: leave one", page(TAG + TAG)),
    Mistake(
        "the tag is in the head, where nothing can be shown: write <commentd-thread>"
        "</commentd-thread> where the comments shall appear",
        page("", CANONICAL + TAG),
    ),
    Mistake(
        "the tag is in the head, where nothing can be shown: write <commentd-thread>"
        "</commentd-thread> where the comments shall appear",
        f"<!doctype html><head>{CANONICAL}</head>{TAG}<p>A post.",  # browsers move it there
    ),
    Mistake(
        "the tag has type=module, so that it cannot find its service: delete that; Astro leaves a "
        "tag as it is that has is:inline",
        delayed(f'type="module" src="{EMBED}"'),
    ),
    Mistake(
        "the tag has nomodule, so that no browser of today runs it: delete that",
        delayed(f'nomodule src="{EMBED}"'),
    ),
    Mistake(
        "the tag has crossorigin=use-credentials, which browsers refuse here: delete that",
        delayed(f'crossorigin="use-credentials" src="{EMBED}"'),
    ),
    Mistake(
        "the tag has integrity, so that each update of commentd stops it: delete that",
        delayed(f'integrity="sha384-x" src="{EMBED}"'),
    ),
    Mistake(
        "the tag loads http://comments.example/embed.js, which browsers block on an https page: "
        "write https there",
        delayed('src="http://comments.example/embed.js"'),
    ),
    Mistake(
        "the tag loads http://comments.example/embed.js, which browsers block on an https page: "
        "have a proxy serve commentd by https, and write that into public_url and the tag",
        delayed('src="http://comments.example/embed.js"'),
        settings={"COMMENTD_SERVER_PUBLIC_URL": "http://comments.example"},
    ),
    Mistake(
        f"the tag loads https://old.example/embed.js, but the service is at {COMMENTS}: write that",
        delayed('src="https://old.example/embed.js"'),
    ),
    Mistake(
        f"the tag loads a copy on the blog, {BLOG}/js/embed.js, which cannot find the service: "
        f"write {COMMENTS}",
        delayed('src="/js/embed.js"'),
    ),
    Mistake(
        f"the tag loads https://127.0.0.1:8080/embed.js, which only your own machine reaches: "
        f"write {COMMENTS}",
        delayed('src="//127.0.0.1:8080/embed.js"'),
    ),
]

DELAYS = [
    Mistake(
        "Rocket Loader of Cloudflare holds the tag back, so that it does not find its place: write "
        'data-cfasync="false" before its src, or switch Rocket Loader off',
        delayed(f'src="{EMBED}" type="1f8ad5-text/javascript"'),
    ),
    Mistake(
        ACTS.format("WP Rocket"),
        delayed(f'type="rocketlazyloadscript" data-rocket-src="{EMBED}" async'),
    ),
    Mistake(
        ACTS.format("Perfmatters"),
        delayed(f'type="pmdelayedscript" data-cfasync="false" src="{EMBED}"'),
    ),
    Mistake(
        ACTS.format("LiteSpeed Cache"), delayed(f'type="litespeed/javascript" data-src="{EMBED}"')
    ),
    Mistake(
        ACTS.format("WP Meteor"), delayed(f'type="javascript/blocked" data-wpmeteor-src="{EMBED}"')
    ),
    Mistake(
        AGREES.format("CookieYes"),
        delayed(f'type="javascript/blocked" data-cookieyes="cookieyes-x" src="{EMBED}"'),
    ),
    Mistake(
        AGREES.format("Cookiebot"),
        delayed(f'type="text/plain" data-cookieconsent="marketing" src="{EMBED}"'),
    ),
    Mistake(
        AGREES.format("iubenda"),
        delayed(f'type="text/plain" data-suppressedsrc="{EMBED}" class="_iub_cs_activate"'),
    ),
    Mistake(
        AGREES.format("a manager of consent"),
        delayed(f'type="text/plain" data-category="functionality" src="{EMBED}"'),
    ),
    Mistake(
        "the URL of the tag stands in data-src and not in src, so that a plugin loads it later: "
        "name embed.js among its exceptions",
        delayed(f'data-src="{EMBED}" async'),
    ),
    Mistake(
        ACTS.format("LiteSpeed Cache"),
        delayed(f'type="litespeed/javascript" data-src="{EMBED}"'),
        headers=policy(f"script-src 'self'; connect-src {COMMENTS}"),
        name="and a policy",
    ),
    Mistake(
        "the tag has type=text/x-blocked, with which no browser runs it: delete that",
        delayed(f'type="text/x-blocked" src="{EMBED}"'),
    ),
]

PAGES = [
    *(Mistake(STILL.format(name), page(TAG + html)) for name, html in OTHERS.items()),
    Mistake(
        "the comments stand in <div>, which display: none hides: delete that",
        page(f'<div style="margin:0; display : none !important"><p>{TAG}</div>'),
    ),
    Mistake(
        "the comments stand in <section>, which hidden hides: delete that",
        page(f"<section hidden><div>{THREAD}</div></section>{TAG}"),
    ),
    Mistake(
        "the comments stand in <div>, which hidden hides: delete that",
        page(f"<div hidden/>{TAG}"),  # to browsers, the slash says nothing
        name="a slash at the end",
    ),
    Mistake(
        "the comments stand in <dialog>, which being closed hides: delete that",
        page(f"<dialog>{TAG}</dialog>"),
    ),
    Mistake(
        "<commentd-thread> stands in <template>, which no browser shows: move it out",
        page(f"<template>{THREAD}</template>{TAG}"),
    ),
    Mistake(
        "<commentd-thread> ends with />, so that it swallows the rest of the page: write "
        "></commentd-thread>",
        page(f"{TAG}<commentd-thread />"),
    ),
    Mistake(
        "the attribute page is {{ .RelPermalink }}: the blog does not fill it in; correct its "
        "template",
        page(f'<commentd-thread page="{{{{ .RelPermalink }}}}"></commentd-thread>{TAG}'),
    ),
    Mistake(
        f"the attribute page is {BLOG}/, the home page, so that all posts share their comments: "
        "write the path of the post",
        page(f'<commentd-thread page="{BLOG}/"></commentd-thread>{TAG}'),
    ),
    Mistake(
        "several threads on the page show the same comments: leave one, or give each "
        "<commentd-thread> the page that it is for",
        page(f"{THREAD}<div hidden>{THREAD}</div>{TAG}"),
    ),
]


def canonical(*hrefs: str) -> str:
    return page(TAG, "".join(f'<link href="{href}" rel=canonical>' for href in hrefs))


CANONICALS = [
    Mistake(
        "the canonical link leads to the home page, so that all posts share their comments: let "
        "the template write the URL of the post there",
        canonical(BLOG),
    ),
    Mistake(
        f"the canonical link leads to {BLOG}/about/, where the comments of this page would stand: "
        "let it have the URL of this page",
        canonical(f"{BLOG}/about/"),
    ),
    Mistake(
        f"the canonical link leads to {BLOG}/about/, where the comments of this page would stand: "
        "let it have the URL of this page",
        canonical("/about/"),
        name="a path of another page",
    ),
    Mistake(
        "the canonical link leads to https://old.example/about/, where the comments of this page "
        "would stand: let it have the URL of this page",
        canonical("https://old.example/about/"),
        name="another page of another host",
    ),
    Mistake(
        f"the canonical link is relative and leads to {POST}2026/hello/: write the whole URL there",
        canonical("2026/hello/"),
    ),
    Mistake(
        "the canonical link names another host, http://localhost:1313/2026/hello/: correct the URL "
        "of the blog in its settings",
        canonical("http://localhost:1313/2026/hello/"),
    ),
    Mistake(
        "the page has several canonical links: leave the one with the URL of the post",
        canonical(POST, f"{BLOG}/other/"),
    ),
    Mistake(
        "the canonical link lacks ?p=12, so that pages with another query share their comments: "
        "let it have the query",
        pages={f"{BLOG}/?p=12": Sent(body=canonical(f"{BLOG}/").encode())},
        url=f"{BLOG}/?p=12",
    ),
    Mistake(
        "the page has no canonical link, so that ?v=3 makes another page of it: add one, or set "
        "the attribute page",
        pages={f"{POST}?v=3": Sent(body=page(head="").encode())},
        url=f"{POST}?v=3",
    ),
]

IN_HEADER = "the Content-Security-Policy in the header "
SCRIPTS_BLOCKED = f"blocks the script: add {COMMENTS}/ to its script-src"
WITH_FRAGMENT = (
    '<commentd-thread><template shadowrootmode="open"><link rel="stylesheet" '
    f'href="{COMMENTS}/fragment.css?1"></template></commentd-thread>'
    + TAG.replace("embed", "loader")
)
TURNSTILE = "https://challenges.cloudflare.com"
WITH_TURNSTILE = {
    "COMMENTD_CAPTCHA_PROVIDER": "turnstile",
    "COMMENTD_CAPTCHA_SITE_KEY": "k",
    "COMMENTD_CAPTCHA_SECRET": "s",
}
NONCE_WANTED = "takes scripts with its nonce alone: write that nonce into the tag"

POLICIES = [
    Mistake(
        f"{IN_HEADER}{SCRIPTS_BLOCKED}",
        headers=policy(f"script-src 'self' https://cdn.example; connect-src {COMMENTS}"),
    ),
    Mistake(
        f"{IN_HEADER}{SCRIPTS_BLOCKED}",
        headers=policy(f"script-src {EMBED}; connect-src {COMMENTS}"),
        name="one file alone",
    ),
    Mistake(
        f"{IN_HEADER}{SCRIPTS_BLOCKED}",
        headers=policy(f"script-src https://*.comments.example; connect-src {COMMENTS}"),
        name="hosts below that of the service",
    ),
    Mistake(
        f"the Content-Security-Policy in the HTML {SCRIPTS_BLOCKED}",
        page(
            head=CANONICAL
            + '<meta http-equiv="Content-Security-Policy" content="script-src \'self\'">'
        ),
    ),
    Mistake(
        f"{IN_HEADER}{NONCE_WANTED}",
        headers=policy("script-src 'nonce-r4nd0m' 'strict-dynamic' https:"),
    ),
    Mistake(
        f"{IN_HEADER}{NONCE_WANTED}",
        headers=policy("script-src 'nonce-r4nd0m'"),
        name="no strict-dynamic",
    ),
    Mistake(
        f"{IN_HEADER}blocks what the script asks for: add {COMMENTS}/ to its connect-src",
        headers=policy(f"default-src 'self'; script-src {COMMENTS}"),
    ),
    Mistake(
        f"{IN_HEADER}blocks what the script asks for: add {COMMENTS}/ to its connect-src",
        headers=policy(f"script-src {COMMENTS}; connect-src wss://comments.example"),
        name="another scheme",
    ),
    Mistake(
        f"{IN_HEADER}blocks pictures of authors: add {COMMENTS}/ to its img-src",
        headers=policy(f"{FULL_POLICY}; img-src 'self'"),
        settings={"COMMENTD_COMMENTS_PICTURES": "yes"},
    ),
    Mistake(
        f"{IN_HEADER}blocks the style of the comments in the page: add {COMMENTS}/ to its "
        "style-src",
        page(WITH_FRAGMENT),
        policy(FULL_POLICY),
    ),
    Mistake(
        f"{IN_HEADER}blocks the captcha: add {TURNSTILE}/ to its frame-src",
        headers=policy(f"{FULL_POLICY}; script-src-elem {COMMENTS} {TURNSTILE}"),
        settings=WITH_TURNSTILE,
    ),
    Mistake(
        f"{IN_HEADER}blocks the captcha: add https://js.hcaptcha.com/ to its script-src",
        headers=policy(f"{FULL_POLICY}; frame-src https://*.hcaptcha.com"),
        settings={
            "COMMENTD_CAPTCHA_PROVIDER": "hcaptcha",
            "COMMENTD_CAPTCHA_SITE_KEY": "k",
            "COMMENTD_CAPTCHA_SECRET": "s",
        },
    ),
    Mistake(
        "the Content-Security-Policy has the page in a sandbox: add allow-same-origin allow-forms "
        "to its sandbox",
        headers=policy("sandbox allow-scripts"),
    ),
]

ADDRESSES = [
    Mistake(
        f"there is no page at {BLOG}/gone/, status 404: correct the URL, or build the blog",
        url=f"{BLOG}/gone/",
    ),
    Mistake(
        "the blog asks for a password: check a page that everybody can read",
        pages={POST: Sent(401)},
    ),
    Mistake(
        "a protection against bots responds in place of the blog: switch it off for this server, "
        "or for as long as you check",
        pages={POST: Sent(403).with_header("cf-mitigated", "challenge")},
    ),
    *(
        Mistake(
            "a protection against bots responds in place of the blog: switch it off for this "
            "server, or for as long as you check",
            pages={POST: Sent(status, body=b"<title>One Challenge</title>")},
            name=f"status {status}",
        )
        for status in (403, 429, 503)
    ),
    Mistake(
        "the blog responds with status 500: look into the log of its server",
        pages={POST: Sent(500)},
    ),
    Mistake(
        "this is no page, but application/rss+xml: check the URL of a post",
        pages={POST: Sent(headers=(("content-type", "application/rss+xml"),))},
    ),
    Mistake(
        "the blog responds with status 301: look into the log of its server",
        pages={POST: moved("https://[x/")},
        name="to no URL",
    ),
    Mistake(
        "the page redirects in a circle: correct the redirects of the blog",
        pages={POST: moved("/2026/hello"), POST[:-1]: moved(POST)},
    ),
    Mistake(
        f"the page leads to {WWW}/2026/hello/, whose host is not in [site] origins: if that is "
        "your blog, add it there and check that URL",
        pages={POST: moved(f"{WWW}/2026/hello/")},
    ),
    Mistake(
        "the blog does not respond at https://unknown.example: [Errno -2] Name or service not "
        "known; correct the URL, or start its server",
        url="https://unknown.example/",
    ),
    Mistake(
        f"browsers refuse the comments: add {WWW} to [site] origins",
        pages={f"{WWW}/2026/hello/": Sent(body=page().encode())},
        url=f"{WWW}/2026/hello/",
    ),
    Mistake(
        f"the service runs with older settings, without {WWW}: restart it",
        pages={f"{WWW}/2026/hello/": Sent(body=page().encode())},
        url=f"{WWW}/2026/hello/",
        settings={"COMMENTD_SITE_ORIGINS": f"{BLOG}, {WWW}"},
    ),
    Mistake(
        f"browsers refuse the comments: add {BLOG} to [site] origins",
        pages={f"{WWW}/2026/hello/": moved(POST)},
        url=f"{WWW}/2026/hello/",
        settings={"COMMENTD_SITE_ORIGINS": f"http://{BLOG.removeprefix('https://')}"},
        name="to the https of an origin",
    ),
]

CHALLENGE = Sent(403).with_header("cf-mitigated", "challenge")
HTML = Sent(body=b"<!doctype html><title>Blog</title>")
SCRIPT = Sent(headers=(("content-type", "text/javascript"),), body=b"'use strict'")

PROXIES = [
    Mistake(
        "the service does not respond at https://unknown.example: [Errno -2] Name or service not "
        "known; start it, and look at its proxy, its DNS entry and the firewall",
        delayed('src="https://unknown.example/embed.js"'),
        settings={"COMMENTD_SERVER_PUBLIC_URL": "https://unknown.example"},
    ),
    Mistake(
        "browsers refuse the certificate of https://uncertified.example, Hostname mismatch, "
        "certificate is not valid for 'uncertified.example': have a valid one made",
        delayed('src="https://uncertified.example/embed.js"'),
        settings={"COMMENTD_SERVER_PUBLIC_URL": "https://uncertified.example"},
    ),
    Mistake(
        f"{EMBED} has status 502: start commentd, or correct its place in the proxy",
        way=in_place(Sent(502)),
    ),
    Mistake(
        f"{EMBED} has status 421: let the proxy pass on Host, as public_url has it",
        way=in_place(Sent(421)),
    ),
    Mistake(
        f"{EMBED} has status 503: look into the logs of commentd and of the proxy",
        way=in_place(Sent(503)),
    ),
    Mistake(
        f"{EMBED} has status 404: let the proxy pass all paths on to commentd",
        way=in_place(Sent(404), "/embed.js"),
    ),
    Mistake(
        f"{EMBED} is text/html and no script: let the proxy pass all paths on to commentd",
        way=in_place(HTML, "/embed.js"),
    ),
    Mistake(
        f"{EMBED} is no script of commentd: correct where the proxy passes it on to",
        way=in_place(SCRIPT, "/embed.js"),
    ),
    Mistake(
        f"{EMBED} redirects to {WWW}/embed.js: write the URL without the redirect into public_url "
        "and the tag",
        way=in_place(moved(f"{WWW}/embed.js"), "/embed.js"),
    ),
    Mistake(
        f"a protection against bots responds in place of {EMBED}, which no script can pass: except "
        "this host from it",
        way=in_place(CHALLENGE),
    ),
    Mistake(
        f"a cache has {EMBED} of another version of commentd: purge it there",
        way=inspected.by_a_cache_for_each_origin,
    ),
    Mistake(
        "a proxy adds Cross-Origin-Resource-Policy, with which browsers refuse the script: delete "
        "that from its settings",
        way=changed(inspected.same_origin_only),
    ),
    Mistake(
        "a proxy adds Cross-Origin-Resource-Policy, with which browsers refuse the script: delete "
        "that from its settings",
        way=changed(inspected.resource_policy_twice),
        name="twice",
    ),
    Mistake(
        "the page has Cross-Origin-Embedder-Policy, and a proxy takes away the header "
        "Cross-Origin-Resource-Policy of the script: let it pass that on",
        headers=(("cross-origin-embedder-policy", 'require-corp; report-to="x"'),),
        way=changed(inspected.without_resource_policy),
    ),
    Mistake(
        "a proxy takes away the header Access-Control-Allow-Origin: let it pass on all headers of "
        "commentd",
        way=changed(inspected.without_cors),
    ),
    Mistake(
        "Access-Control-Allow-Origin comes twice, which browsers refuse: delete it from the "
        "settings of the proxy, since commentd sends it",
        way=changed(inspected.cors_twice),
    ),
    Mistake(
        f"Access-Control-Allow-Origin is https://other.example, and not {BLOG}: delete it from the "
        "settings of the proxy, or let its cache obey Vary",
        way=changed(inspected.cors_of_another),
    ),
    Mistake(
        "the proxy responds to OPTIONS by itself, with status 405, so that nobody can post: let it "
        "pass that method on to commentd",
        way=inspected.without_preflights,
    ),
    Mistake(
        "the proxy does not say who reads: let it send the header X-Forwarded-For",
        way=inspected.without_reader,
    ),
    Mistake(
        "all readers count as one: set [server] trusted_proxy = 127.0.0.1",
        way=inspected.by_an_unnamed_proxy,
    ),
    Mistake(
        "all readers count as one: set [server] trusted_proxy = unix",
        way=inspected.by_an_unnamed_socket_file,
    ),
    Mistake(
        "two proxies stand before the service, which takes 198.51.100.4, one of them, for the "
        f"reader: {DEPLOY}",
        way=inspected.by_two_proxies,
    ),
    Mistake(
        "two proxies stand before the service, which takes 198.51.100.4, one of them, for the "
        f"reader: {DEPLOY}",
        way=inspected.by_a_cdn_that_replaces,
        name="the second replaces",
    ),
    Mistake(
        "two proxies stand before the service, which takes 198.51.100.4, one of them, for the "
        f"reader: {DEPLOY}",
        way=inspected.by_three_proxies,
        name="three",
    ),
    Mistake(
        f"a proxy makes max-age=14400 of Cache-Control of {EMBED}, so that readers miss updates: "
        "let it pass on that of commentd",
        way=changed(inspected.kept_for_hours, "/embed.js"),
    ),
    Mistake(
        "a proxy makes max-age=14400 of Cache-Control, so that readers see old comments: let it "
        "pass on that of commentd",
        way=changed(inspected.kept_for_hours, "/pages"),
    ),
    Mistake(
        "only this machine reaches https://192.168.0.7:8443: set [server] public_url to what "
        "readers reach",
        page('<script src="https://192.168.0.7:8443/embed.js"></script>'),
        settings={"COMMENTD_SERVER_PUBLIC_URL": "https://192.168.0.7:8443"},
    ),
]
CACHES = [
    (
        inspected.keeping,
        lambda path: path,
        "a cache keeps what commentd sends with no-store: let it obey Cache-Control",
    ),
    (
        inspected.keeping,
        lambda path: path.partition("?")[0],
        "a cache takes all queries of a path for one, so that all pages show the same comments: "
        "let it have the query in its key",
    ),
]

UNKNOWN = [
    Mistake(
        "set [server] public_url: otherwise it is not known where readers find the service",
        headers=policy(f"script-src {COMMENTS}; connect-src 'self'"),
        settings={
            "COMMENTD_SERVER_PUBLIC_URL": "",
            "COMMENTD_SERVER_LISTEN": "unix:/run/c",
            "COMMENTD_SERVER_TRUSTED_PROXY": "unix",
        },
    ),
    Mistake(
        "the service does not respond at https://comments.example: BadStatusLine; start it, and "
        "look at its proxy, its DNS entry and the firewall",
        way=in_place(Sent(1000), "/pages"),
    ),
]

MISTAKES = [*TAGS, *DELAYS, *PAGES, *CANONICALS, *POLICIES, *ADDRESSES, *PROXIES, *UNKNOWN]


@dataclass
class Bench:
    """A folder with the settings of a running service, and what its owner can get wrong."""

    folder: Path
    place: Place

    def check(self, url: str, **environ: str) -> tuple[int, str]:
        code, text, errors = run_here(self.folder, "check", url, **environ)
        assert errors == ""
        return code, text


@pytest.fixture(scope="module")
def folder_and_place(
    tmp_path_factory: pytest.TempPathFactory, certificates: Callable[[str], tuple[str, str]]
) -> Iterator[tuple[Path, Place]]:
    folder = tmp_path_factory.mktemp("service")
    certificate = certificates(",".join(f"DNS:{host}" for host in inspected.HOSTS))
    with services(folder) as start, pytest.MonkeyPatch.context() as patch:
        service = start(**inspected.service_settings())
        place = Place(upstream=inspected.port_of(service))
        patch.setenv("SSL_CERT_FILE", certificate[0])
        with inspected.serving(place, certificate) as port:
            patch.setattr(socket, "getaddrinfo", inspected.dns_to(port))
            yield folder, place


@pytest.fixture
def bench(folder_and_place: tuple[Path, Place]) -> Bench:
    folder, place = folder_and_place
    place.pages, place.way, place.asked = {}, honest, []
    place.post(page())
    return Bench(folder, place)


# What a finding is about: the word in front of it.
SUBJECTS = {
    *("tag", "script", "thread", "canonical", "page", "other", "hidden", "picture", "mixed"),
    *("csp", "headers", "origin", "cors", "cache", "proxy", "service", "version"),
}


def found_in(text: str) -> list[tuple[str, str, str]]:
    return LINE.findall(text)


def test_check_says_in_one_line_that_a_page_is_right(bench: Bench) -> None:
    assert bench.check(POST) == (0, f"{OK}\n")
    for html in (
        page(f"{THREAD}", CANONICAL + TAG),
        page(
            f'<commentd-thread page="/2026/hello/" lang="en"></commentd-thread>{TAG}',
            f'<link rel="canonical" href="{BLOG}/">',
        ),
        page(
            TAG.replace("async", 'data-cfasync="false"'),
            '<link rel="canonical" href="/2026/hello">',
        ),
        page(f"<details><summary>Comments</summary>{TAG}</details>"),
        page(f'<p hidden>Draft<div>{TAG}</div><svg><path d="M0 0"/></svg>'),
        page(TAG.replace(" async", "").replace('"', "")).replace(
            "<title>", "<base href=/x/><title>"
        ),
        page(
            f'<h2 id="waline">Waline</h2><script src="https://embed.bsky.app/static/embed.js">'
            f"</script>{TAG}"
        ).replace("<body>", '<body style="visibility: hidden">'),
        page(f"<!-- Disqus is gone --><template><div id=disqus_thread></div></template>{TAG}"),
        page(f"</div></article>{TAG}</div>"),
        page(f"<div></div></div>{TAG}"),
        page(f'<div hidden="until-found">{TAG}</div>'),
        page(
            f'<noscript><meta http-equiv="refresh" content="0; url=/none/"></noscript>{TAG}',
            f'{CANONICAL}<meta name="twitter:player" content="0; url=/none/">',
        ),
        page(TAG, '<base target=_self><base href=/2026/><link rel=canonical href="hello/">'),
        f"<!doctype html><title>T</title>{CANONICAL}A post.{TAG}",  # the body begins with it
        page(f'<script src="https://[x/embed.js"></script>{TAG}'),
    ):
        bench.place.post(html)
        assert bench.check(POST) == (0, f"{OK}\n"), html


def test_check_takes_a_slash_for_an_end_tag_in_xhtml_alone(bench: Bench) -> None:
    html = page(f'<script src="/theme.js"/><p hidden=""/><commentd-thread/><script src="{EMBED}"/>')
    bench.place.pages[POST] = Sent(
        headers=(("content-type", "application/xhtml+xml; charset=utf-8"),), body=html.encode()
    )
    assert bench.check(POST) == (0, f"{OK}\n")
    bench.place.post(html)
    code, text = bench.check(POST)
    assert (code, [topic for _, topic, _ in found_in(text)]) == (1, ["tag"]), text


def test_check_accepts_policies_that_allow_the_widget(bench: Bench) -> None:
    nonce = page(TAG.replace("async", 'nonce="r4nd0m"'))
    # The narrower directive is in force.
    elements = f"connect-src {COMMENTS}; script-src-elem {COMMENTS} {TURNSTILE}; script-src 'none'"
    for html, text in (
        (page(), f"{elements}; frame-src {TURNSTILE}; child-src 'none'"),
        (page(), f"{elements}; child-src {TURNSTILE}; default-src 'none'"),
        (nonce, f"script-src 'nonce-r4nd0m' 'strict-dynamic'; frame-src {TURNSTILE}"),
    ):
        bench.place.post(html, (POLICY, text))
        assert bench.check(POST, **WITH_TURNSTILE) == (0, f"{OK}\n"), text
    for html, text in (
        (page(WITH_FRAGMENT), f"{elements}; style-src-elem {COMMENTS}; style-src 'none'"),
        (page(), FULL_POLICY),
        (page(), "default-src https:; frame-ancestors 'none', script-src *; connect-src https:"),
        (page(), "default-src *.example; img-src 'none'; style-src 'none'"),
        (page(), "script-src 'unsafe-inline' comments.example:443; object-src 'none'"),
        (nonce, "script-src 'nonce-r4nd0m' 'strict-dynamic'; base-uri 'none'"),
        (nonce, f"default-src 'none'; script-src 'nonce-r4nd0m'; connect-src {COMMENTS}/"),
        (page(), "sandbox allow-scripts allow-same-origin allow-forms allow-popups"),
    ):
        bench.place.post(html, (POLICY, text))
        assert bench.check(POST) == (0, f"{OK}\n"), text
    for name, text in (
        ("content-security-policy-report-only", "default-src 'none'"),
        ("cross-origin-embedder-policy", "require-corp"),
    ):
        bench.place.post(page(), (name, text))
        assert bench.check(POST) == (0, f"{OK}\n"), name


def test_check_asks_for_leave_to_post_as_browsers_do(bench: Bench) -> None:
    bench.place.way = inspected.by_a_proxy_that_knows_preflights
    assert bench.check(POST) == (0, f"{OK}\n")


def test_check_accepts_two_proxies_that_both_know_the_reader(bench: Bench) -> None:
    bench.place.way = inspected.by_two_proxies_that_know_readers
    assert bench.check(POST) == (0, f"{OK}\n")


def test_check_follows_redirects_of_the_blog_and_names_the_page_that_was_checked(
    bench: Bench,
) -> None:
    short = f"{BLOG}/hello"
    note = [("note", "page", f"the URL leads to {POST}, which was checked"), ("ok", "page", OK)]
    refresh = f'<meta http-equiv="refresh" content="0; url={POST}">'
    for sent in (moved("/2026/hello/"), moved(POST, 308), Sent(body=refresh.encode())):
        bench.place.pages[short] = sent
        code, text = bench.check(short)
        assert (code, found_in(text)) == (0, note)
    bench.place.pages[POST[:-1]] = moved(POST)
    assert bench.check(POST[:-1]) == (0, f"{OK}\n")


# Each takes a tenth of a second, so the fast tier has every fifth.
CASES = [
    pytest.param(each, marks=pytest.mark.slow if number % 5 else ())
    for number, each in enumerate(MISTAKES)
]


@pytest.mark.parametrize("mistake", CASES, ids=lambda each: (each.name or each.said)[:60])
def test_check_names_each_mistake_in_one_sentence(bench: Bench, mistake: Mistake) -> None:
    place = bench.place
    place.post(mistake.html, *mistake.headers)
    place.pages |= mistake.pages
    place.way = mistake.way
    code, text = bench.check(mistake.url, **mistake.settings)
    wrong = [said for level, _, said in found_in(text) if level in ("warn", "fail")]
    assert (code, wrong) == (1, [mistake.said]), text
    assert {subject for _, subject, _ in found_in(text)} <= SUBJECTS
    assert "all is well" not in text
    for language in ("zh", "zh-TW"):
        assert translated(mistake.said, language) != mistake.said


def test_check_takes_the_script_of_another_service_for_no_tag(bench: Bench) -> None:
    bench.place.post(page(OTHERS["Disqus"]))
    code, text = bench.check(POST)
    missing = f"the page has no tag: paste {TAG} into the template of your posts"
    found = [("fail", "tag", missing), ("warn", "other", STILL.format("Disqus"))]
    assert (code, found_in(text)) == (1, found)


@pytest.mark.parametrize(("cache", "key", "said"), CACHES, ids=["no-store", "queries"])
def test_check_names_a_cache_that_keeps_what_it_must_not(
    bench: Bench, cache: Callable[..., Way], key: Callable[[str], str], said: str
) -> None:
    bench.place.way = cache(key)
    code, text = bench.check(POST)
    assert code == 1
    assert said in [words for _, _, words in found_in(text)]


def test_check_names_several_mistakes_the_worst_first(bench: Bench) -> None:
    bench.place.post(page(f"{TAG}<div id=waline></div>", ""), (POLICY, "default-src 'self'"))
    bench.place.way = inspected.without_reader
    code, text = bench.check(POST)
    levels = [level for level, _, _ in found_in(text)]
    assert (code, levels) == (1, ["fail", "fail", "warn", "warn"])
    assert "Errors: 2, warnings: 2." in text


def test_check_says_that_a_script_of_the_page_adds_the_tag(bench: Bench) -> None:
    script = f"<script>const s = document.createElement('script'); s.src = '{EMBED}'</script>"
    bench.place.post(page(script))
    code, text = bench.check(POST)
    said = "a script of the page adds the tag, and none is run here: look in a browser"
    assert (code, found_in(text)[0]) == (0, ("note", "tag", said))


def test_check_says_what_is_seen_only_beside_the_database(bench: Bench) -> None:
    code, text = bench.check(POST, COMMENTD_DATABASE_PATH="none.db")
    said = "whether proxies say who reads is seen only beside the database of the service"
    assert (code, found_in(text)) == (0, [("note", "proxy", said), ("ok", "page", OK)])
    assert not [url for url in bench.place.asked if "/way-in" in url]  # nobody can sign for it


def test_check_of_a_page_names_a_database_of_another_program(bench: Bench) -> None:
    with closing(sqlite3.connect(bench.folder / "other.db")) as other:
        other.execute("CREATE TABLE note (text)")
    code, _, errors = run_here(bench.folder, "check", POST, COMMENTD_DATABASE_PATH="other.db")
    assert code == 1
    assert "is a database of another program" in errors


@pytest.mark.parametrize("sent", [Sent(404), HTML], ids=["404", "html"])
def test_check_accepts_a_service_that_does_not_tell_how_requests_reach_it(
    bench: Bench, sent: Sent
) -> None:
    """As one of an older version, or of another database."""
    bench.place.way = in_place(sent, "/way-in")
    assert bench.check(POST) == (0, f"{OK}\n")


def test_check_is_told_how_requests_reach_the_service_and_no_cache_keeps_that(bench: Bench) -> None:
    told: list[Sent] = []

    def noting(asked: inspected.Asked, pass_on: inspected.PassOn) -> Sent:
        sent = honest(asked, pass_on)
        if asked.path.startswith("/way-in?"):
            told.append(sent)
        return sent

    bench.place.way = noting
    assert bench.check(POST) == (0, f"{OK}\n")
    kept = {(sent.status, value) for sent in told for name, value in sent.headers if name == KEPT}
    assert kept == {(200, "no-store")}


def test_check_goes_on_where_one_script_gets_no_response(bench: Bench) -> None:
    bench.place.way = in_place(Sent(99), "/errors.js")  # which is no status
    assert bench.check(POST) == (0, f"{OK}\n")


def test_check_of_a_page_is_chinese_where_the_terminal_is(bench: Bench) -> None:
    chinese = {"LC_ALL": "", "LC_MESSAGES": "", "LANG": "zh_CN.UTF-8"}
    assert bench.check(POST, **chinese) == (0, f"一切正常：{POST} 的读者可以看评论、写评论\n")
    bench.place.post(page(""))
    code, text = bench.check(POST, **chinese)
    assert (code, [words.isascii() for _, _, words in found_in(text)]) == (1, [False])


def test_check_asks_no_host_but_that_of_the_page_and_the_service(bench: Bench) -> None:
    evil = "https://evil.example"
    bench.place.post(
        page(
            f'{TAG}<img src="{evil}/x.png"><iframe src="{evil}/"></iframe>'
            f'<script src="{evil}/embed.js"></script><script src="{WWW}/embed.js"></script>',
            f'<link rel="canonical" href="{evil}/"><base href="{evil}/">',
        )
    )
    code, _ = bench.check(POST)
    assert code == 1
    hosts = {url.split("/")[2] for url in bench.place.asked}
    assert hosts == {"blog.example", "comments.example"}
    assert not [url for url in bench.place.asked if "/comments?" in url]  # which counts a view


@pytest.mark.slow
def test_check_reads_a_page_of_any_size_and_encoding(bench: Bench) -> None:
    long = page(TAG + "<b>" * 100_000 + "x" * 2_000_000)
    bench.place.post(long)
    code, text = bench.check(POST)
    said = "the page is longer than 2 MB: the rest was not read"
    assert (code, found_in(text)[0]) == (0, ("note", "page", said))
    said = "the attribute page is {{ 文章 }}: the blog does not fill it in; correct its template"
    for encoding in ("gb18030", "utf-8", "x-unknown"):
        known = "utf-8" if encoding == "x-unknown" else encoding
        html = page(f'<commentd-thread page="{{{{ 文章 }}}}"></commentd-thread>{TAG}')
        charset = f"charset={encoding}"
        for header, meta in ((f"; {charset}", ""), ("", f"<meta {charset}>")):
            body = html.replace("<title>", f"{meta}<title>").encode(known) + b"\xff"
            bench.place.pages[POST] = Sent(
                headers=(("content-type", f"text/html{header}"),), body=body
            )
            code, text = bench.check(POST)
            assert (code, found_in(text)) == (1, [("fail", "thread", said)]), (encoding, header)


@pytest.mark.parametrize("name", ["gzip", "x-gzip"])
def test_check_reads_a_packed_page_and_one_that_only_says_so(bench: Bench, name: str) -> None:
    for body in (gzip.compress(page().encode()), page().encode()):
        bench.place.pages[POST] = Sent(body=body).with_header("content-encoding", name)
        assert bench.check(POST) == (0, f"{OK}\n")
    bench.place.pages[POST] = Sent(body=gzip.compress(page("").encode())).with_header(
        "content-encoding", name
    )
    assert bench.check(POST)[0] == 1


def test_check_of_a_page_begins_no_request_after_its_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.set_inspection_seconds(monkeypatch, -1)
    code, text = bench.check(POST)
    said = (
        f"the blog does not respond at {BLOG}: all of it takes too long; correct the URL, or start "
        "its server"
    )
    assert (code, found_in(text)) == (1, [("fail", "page", said)])
    assert bench.place.asked == []


def test_check_looks_at_a_page_with_the_settings_of_its_blog(bench: Bench) -> None:
    second = bench.folder / "second.ini"
    second.write_text(
        "[server]\npublic_url = https://second.example\n"
        f"[site]\norigins = {WWW}\n[database]\npath = second.db\n"
    )
    bench.place.pages[f"{WWW}/hello/"] = Sent(body=page("").encode())
    words = ("commentd.ini", "second.ini", f"{WWW}/hello/")
    code, text, _ = run_here(bench.folder, "check", *words)
    said = 'paste <script src="https://second.example/embed.js" async></script> into'
    assert (code, said in text) == (1, True), text
    assert "origin " not in text


def test_check_refuses_what_is_no_url(tmp_path: Path) -> None:
    for word in ("ftp://blog.example/", "https://", "https://a@blog.example/"):
        code, text, errors = run_here(tmp_path, "check", word)
        assert (code, text) == (2, "")
        assert "must be the address of a website" in errors


def test_check_of_a_service_under_a_path_of_the_blog_asks_for_no_origin(bench: Bench) -> None:
    """The proxy of the blog passes that path on."""
    url = f"{COMMENTS}/2026/hello/"
    html = page(TAG, f'<link rel="canonical" href="{url}">').encode()

    def under_a_path(asked: inspected.Asked, pass_on: inspected.PassOn) -> Sent:
        own = Sent(body=html).with_header(POLICY, "default-src 'self'")
        return own if asked.path == "/2026/hello/" else honest(asked, pass_on)

    bench.place.way = under_a_path
    said = f"all is well: readers of {url} can read and write comments\n"
    assert bench.check(url) == (0, said)


def test_check_takes_a_service_at_the_path_of_a_former_one_for_no_other(bench: Bench) -> None:
    """An owner who comes from Isso keeps the path in their proxy."""
    service = f"{COMMENTS}/isso"

    def without_the_path(asked: inspected.Asked, pass_on: inspected.PassOn) -> Sent:
        return honest(replace(asked, path=asked.path.removeprefix("/isso")), pass_on)

    bench.place.way = without_the_path
    bench.place.post(page(TAG.replace(COMMENTS, service)))
    assert bench.check(POST, COMMENTD_SERVER_PUBLIC_URL=service) == (0, f"{OK}\n")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "transport"), [("nginx", "tcp"), ("caddy", "unix")])
def test_check_finds_nothing_wrong_behind_the_proxies_that_the_examples_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, transport: str
) -> None:
    place = Place("http")
    with (
        site(tmp_path, kind, transport) as proxied_site,
        services(tmp_path) as start,
        inspected.serving(place) as port,
    ):
        monkeypatch.setattr(socket, "getaddrinfo", inspected.dns_to(port))
        public_url = f"http://comments.example:{proxied_site.port}"
        origin = f"http://blog.example:{port}"
        place.pages[f"{origin}/hello/"] = Sent(
            body=page(f'<script src="{public_url}/embed.js"></script>', "").encode()
        )
        service = start(**proxied_site.settings(public_url), site={"origins": origin})
        with proxied_site.proxy(service):
            said = f"all is well: readers of {origin}/hello/ can read and write comments\n"
            assert run_here(tmp_path, "check", f"{origin}/hello/") == (0, said, "")
        assert "not named" not in service.output


# On the admin page


@pytest.fixture
def owner(app: App) -> Visitor:
    return new_owner(app)


def inspect(owner: Visitor, url: str, **more: Any) -> list[tuple[str, str, str]]:
    findings = owner.post_json("/admin/inspection", {"url": url, **more}).json["findings"]
    return [(each["level"], each["topic"], each["text"]) for each in findings]


@pytest.mark.parametrize("settings", [{"site_origins": (BLOG,)}])
def test_the_admin_page_checks_pages_of_the_blog_alone(
    owner: Visitor, bench: Bench, settings: dict[str, Any]
) -> None:
    bench.place.post(page(""))
    ((level, topic, text), *_) = inspect(owner, POST)
    assert (level, topic) == ("fail", "tag")
    assert text.startswith("the page has no tag: paste <script src=")
    ((*_, chinese), *_) = inspect(owner, POST, lang="zh")
    assert not chinese.startswith("the page")
    bench.place.asked.clear()
    for url, origin in (
        (f"{WWW}/2026/hello/", WWW),
        ("http://169.254.169.254/latest/", "http://169.254.169.254"),
        ("https://blog.example:8443/", f"{BLOG}:8443"),
    ):
        said = f"only pages of [site] origins are checked here: {origin} is not there"
        assert inspect(owner, url) == [("fail", "origin", said)]
    bench.place.pages[POST] = moved(f"{WWW}/2026/hello/")
    assert inspect(owner, POST)[0][2].startswith(f"the page leads to {WWW}/2026/hello/, whose host")
    assert bench.place.asked == [POST]
    assert owner.post_json("/admin/inspection", {}, status=400).json["code"] == "url_missing"


@pytest.mark.parametrize("settings", [{"site_origins": (BLOG,), "server_public_url": COMMENTS}])
def test_the_admin_page_of_a_public_service_asks_no_server_of_a_local_network(
    owner: Visitor, bench: Bench, settings: dict[str, Any]
) -> None:
    said = (
        f"{BLOG} has an IP address of a local network, which is not asked from here: run `commentd "
        "check URL` on the server"
    )
    assert inspect(owner, POST) == [("fail", "page", said)]
    assert bench.place.asked == []


def test_the_admin_page_checks_one_page_at_a_time(app: App, owner: Visitor) -> None:
    with app.site.inspection_lock:
        refused = stranger(app, owner).post_json("/admin/inspection", {"url": POST}, status=503)
    assert refused.json["code"] == "busy"
    assert inspect(owner, POST)


def test_how_requests_reach_the_service_is_told_to_nobody_without_the_key(visitor: Visitor) -> None:
    for sign in ("", "1795000000", "1795000000-" + "0" * 32, "x-y", "9" * 400):
        assert visitor.get(f"/way-in?sign={sign}", status=404).json["code"] == "not_found"
