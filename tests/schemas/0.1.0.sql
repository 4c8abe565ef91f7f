PRAGMA application_id = 1668116068;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE account (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        email      TEXT NOT NULL UNIQUE,
        nickname   TEXT NOT NULL,
        password   TEXT NOT NULL,
        role       TEXT NOT NULL DEFAULT 'user'
                   CHECK (role IN ('user', 'moderator', 'admin')),
        version    INTEGER NOT NULL DEFAULT 1,
        created_at INTEGER NOT NULL,
        blocked    INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1)),
        language   TEXT NOT NULL DEFAULT '',
        -- What an admin's authenticator app makes its codes from. Empty if they have none.
        app_key    TEXT NOT NULL DEFAULT '',
        -- The time step of the last of these codes: each is good once.
        app_step   INTEGER NOT NULL DEFAULT 0,
        -- The name of what stands beside its comments. Empty for the first letter of their name.
        picture    TEXT NOT NULL DEFAULT ''
    ) STRICT;
INSERT INTO "account" VALUES(1,'ann@example.com','Ann','pbkdf2_sha256$1$1e49338b48b941109a6d1dd0630f4cd6$460ac8e74b806e3c741c65880d0654c778a5d3f988a4450828879d5ecb5b6e95','user',1,1795000000,0,'','',0,'0123456789abcdef0123456789abcdef');
INSERT INTO "account" VALUES(2,'owner@example.com','Owner','pbkdf2_sha256$1$dd7b701ce63a3db66b945703dd1c8fa5$ed8df960266eace9a45ef29a80c5b976cce4df097edc90d487c3844f2e7e5d9d','admin',1,1795177160,0,'','',0,'');
CREATE TABLE admin_link (
        hash       TEXT PRIMARY KEY,
        email      TEXT NOT NULL,
        -- What it makes of the account.
        role       TEXT NOT NULL CHECK (role IN ('moderator', 'admin')),
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "admin_link" VALUES('bfc85b1a650e176bfcba6dfe511ea3660bef179f4bf49b50979a6f9819287d1f','second@example.com','admin',1795184360);
CREATE TABLE admin_session (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        user_id    INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        device     TEXT NOT NULL,
        ip         TEXT NOT NULL,
        country    TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        seen_at    INTEGER NOT NULL
    ) STRICT;
INSERT INTO "admin_session" VALUES(1,2,'a test','','',1795177160,1795177160);
CREATE TABLE audit (
        id         INTEGER PRIMARY KEY,
        created_at INTEGER NOT NULL,
        who        TEXT NOT NULL,
        action     TEXT NOT NULL,
        subject    TEXT NOT NULL,
        detail     TEXT NOT NULL,
        -- What `detail` has replaced, where it can be put back from the log.
        was        TEXT
    ) STRICT;
INSERT INTO "audit" VALUES(1,1795177160,'Owner','spam','6','',NULL);
INSERT INTO "audit" VALUES(2,1795177160,'Owner','deleted','8','',NULL);
INSERT INTO "audit" VALUES(3,1795177160,'Owner','pin','1','',NULL);
INSERT INTO "audit" VALUES(4,1795177160,'Owner','reply','2','',NULL);
INSERT INTO "audit" VALUES(5,1795177160,'Owner','block','roulette','word',NULL);
INSERT INTO "audit" VALUES(6,1795177160,'Owner','block','spam.example','domain',NULL);
INSERT INTO "audit" VALUES(7,1795177160,'Owner','close','/2026/日记/','',NULL);
CREATE TABLE avatar (
        email    TEXT PRIMARY KEY,
        -- The name of the one that was found. "" if none was.
        face     TEXT NOT NULL DEFAULT '',
        asked_at INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;
INSERT INTO "avatar" VALUES('lu@example.com','',1);
CREATE TABLE block (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        kind       TEXT NOT NULL CHECK (kind IN ('address', 'email', 'domain', 'word')),
        value      TEXT NOT NULL,
        note       TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER,
        UNIQUE (kind, value)
    ) STRICT;
INSERT INTO "block" VALUES(1,'word','roulette','of a game',1795177160,NULL);
INSERT INTO "block" VALUES(2,'domain','spam.example','',1795177160,1795436360);
CREATE TABLE chat_message (
        chat       TEXT NOT NULL,
        message_id INTEGER NOT NULL,
        comment_id INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        version    TEXT NOT NULL,
        PRIMARY KEY (chat, message_id)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "chat_message" VALUES('chat.telegram',7,1,'a hash');
CREATE TABLE chat_update (
        chat      TEXT PRIMARY KEY,
        update_id INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "chat_update" VALUES('chat.telegram',70);
CREATE TABLE comment (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        page_id    INTEGER NOT NULL REFERENCES page (id),
        parent_id  INTEGER REFERENCES comment (id),
        -- The top-level comment above it. Null for one of these.
        thread_id  INTEGER REFERENCES comment (id),
        user_id    INTEGER REFERENCES account (id),
        nickname   TEXT NOT NULL,
        email      TEXT NOT NULL,
        website    TEXT NOT NULL,
        -- The name of the picture of a guest.
        face       TEXT NOT NULL DEFAULT '',
        content    TEXT NOT NULL,
        html       TEXT NOT NULL,
        -- Whether an import brought HTML that says more than Markdown can.
        own_html   INTEGER NOT NULL DEFAULT 0 CHECK (own_html IN (0, 1)),
        ip         TEXT NOT NULL,
        country    TEXT NOT NULL,
        location   TEXT NOT NULL,
        likes      INTEGER NOT NULL DEFAULT 0,
        -- Its direct replies that are shown.
        replies    INTEGER NOT NULL DEFAULT 0,
        -- Whether it stands in lists: when it is visible, or as a tombstone above its replies.
        shown      INTEGER NOT NULL DEFAULT 0 CHECK (shown IN (0, 1)),
        status     TEXT NOT NULL CHECK (status IN ('visible', 'waiting', 'spam', 'deleted')),
        created_at INTEGER NOT NULL,
        -- Whether the IP address was shortened.
        masked     INTEGER NOT NULL DEFAULT 0 CHECK (masked IN (0, 1)),
        edited_at  INTEGER,
        pinned     INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
        -- Why it waits.
        held       TEXT NOT NULL DEFAULT '',
        language   TEXT NOT NULL DEFAULT '',
        -- When it became spam or was deleted.
        hidden_at  INTEGER,
        -- As what the spam filter learnt it.
        learnt     TEXT NOT NULL DEFAULT '' CHECK (learnt IN ('', 'ham', 'spam')),
        -- That of its page when readers last saw it change.
        mark       INTEGER NOT NULL DEFAULT 0
    ) STRICT;
INSERT INTO "comment" VALUES(1,1,NULL,NULL,1,'Ann','','https://ann.example','','*First!* 第一条 🎉','<p><em>First!</em> 第一条 🎉</p>
',0,'203.0.113.7','','',3,1,1,'visible',1795000000,0,NULL,1,'','zh',NULL,'ham',14);
INSERT INTO "comment" VALUES(2,1,1,1,NULL,'陆知微','lu@example.com','','fedcba9876543210fedcba9876543210','回复一下','<p>回复一下</p>
',0,'223.5.5.5','CN','浙江 杭州',0,2,1,'visible',1795003600,0,NULL,0,'','zh',NULL,'ham',16);
INSERT INTO "comment" VALUES(3,1,2,1,1,'Ann','','','','How I do it:

```python
print("<b>")  # & more
```

| no | table |','<p>How I do it:</p>
<pre><code class="language-python">print("&lt;b&gt;")  # &amp; more
</code></pre>
<p>| no | table |</p>
',0,'203.0.113.7','','',1,0,1,'visible',1795004300,0,NULL,0,'','en',NULL,'',15);
INSERT INTO "comment" VALUES(4,2,NULL,NULL,NULL,'نور','','','','مرحبا بكم','<p>مرحبا بكم</p>
',0,'2001:db8::7','','',0,0,1,'visible',1795090700,0,NULL,0,'','ar',NULL,'',1);
INSERT INTO "comment" VALUES(5,2,NULL,NULL,NULL,'Zoë','','','','It''s better; with -- "quotes" and a
second line','<p>It''s better; with -- "quotes" and a<br>
second line</p>
',0,'2001:db8::7','','',0,0,1,'visible',1795090700,0,1795090760,0,'','en',NULL,'',4);
INSERT INTO "comment" VALUES(6,1,NULL,NULL,NULL,'Bo','','','','Cheap: https://spam.example','<p>Cheap: <a href="https://spam.example" rel="nofollow ugc noopener noreferrer">https://spam.example</a></p>
',0,'198.51.100.20','','',0,0,0,'spam',1795177160,0,NULL,0,'word: cheap','en',1795177160,'spam',0);
INSERT INTO "comment" VALUES(7,1,NULL,NULL,NULL,'Cy','','','','Is it cheap?','<p>Is it cheap?</p>
',0,'198.51.100.21','','',0,0,0,'waiting',1795177160,0,NULL,0,'word: cheap','en',NULL,'',0);
INSERT INTO "comment" VALUES(8,1,NULL,NULL,NULL,'Di','','','','To be deleted','<p>To be deleted</p>
',0,'198.51.100.22','','',0,1,1,'deleted',1795177160,0,NULL,0,'','en',1795177160,'',10);
INSERT INTO "comment" VALUES(9,1,8,8,NULL,'Ed','','','','A reply to it','<p>A reply to it</p>
',0,'198.51.100.23','','',0,0,1,'visible',1795177160,0,NULL,0,'','en',NULL,'',9);
INSERT INTO "comment" VALUES(10,1,2,1,2,'Owner','','','','Thanks, **all** of you.','<p>Thanks, <strong>all</strong> of you.</p>
',0,'198.51.100.7','','',0,0,1,'visible',1795177160,0,NULL,0,'','zh',NULL,'',12);
INSERT INTO "comment" VALUES(11,1,NULL,NULL,NULL,'Flo','flo@example.com','','','The newest','<p>The newest</p>
',0,'198.51.100.31','','',0,0,1,'visible',1795180760,0,NULL,0,'','en',NULL,'',13);
INSERT INTO "comment" VALUES(12,3,NULL,NULL,NULL,'Old Friend','friend@example.com','','','From before.','<p>From before.</p>
',0,'','','',0,0,1,'visible',1714979289,1,NULL,0,'','',NULL,'',1);
CREATE TABLE comment_liker (
        comment_id INTEGER NOT NULL REFERENCES comment (id),
        visitor    TEXT NOT NULL,
        liked_at   INTEGER,
        PRIMARY KEY (comment_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "comment_liker" VALUES(1,'9c8e5f0575bbfb667159a2bf212eea0a',1795090760);
INSERT INTO "comment_liker" VALUES(1,'bc077b2eb01bd27fd413bee5caf1e512',1795090760);
INSERT INTO "comment_liker" VALUES(1,'user 1',NULL);
INSERT INTO "comment_liker" VALUES(3,'9c8e5f0575bbfb667159a2bf212eea0a',1795090760);
CREATE TABLE country_day (
        day     INTEGER NOT NULL,
        country TEXT NOT NULL,
        views   INTEGER NOT NULL,
        PRIMARY KEY (day, country)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE day (
        day      INTEGER PRIMARY KEY,
        comments INTEGER NOT NULL DEFAULT 0,
        views    INTEGER NOT NULL DEFAULT 0,
        likes    INTEGER NOT NULL DEFAULT 0
    ) STRICT;
INSERT INTO "day" VALUES(19849,1,0,0);
INSERT INTO "day" VALUES(20775,3,0,0);
INSERT INTO "day" VALUES(20776,2,3,5);
INSERT INTO "day" VALUES(20777,6,0,0);
CREATE TABLE face (
        name       TEXT PRIMARY KEY,
        media_type TEXT NOT NULL,
        body       BLOB NOT NULL
    ) STRICT;
INSERT INTO "face" VALUES('fedcba9876543210fedcba9876543210','image/png',X'89');
CREATE TABLE follow (
        user_id  INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        page_id  INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
        language TEXT NOT NULL,
        PRIMARY KEY (user_id, page_id)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "follow" VALUES(1,1,'en');
CREATE TABLE import (
        product    TEXT NOT NULL,
        product_id TEXT NOT NULL,
        comment_id INTEGER NOT NULL,
        by_owner   INTEGER NOT NULL DEFAULT 0 CHECK (by_owner IN (0, 1)),
        PRIMARY KEY (product, product_id)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "import" VALUES('waline','1 2024-05-06T07:08:09.000Z',12,0);
INSERT INTO "import" VALUES('waline','page /about 0 321 0 ',0,0);
CREATE TABLE joined_identity (
        issuer    TEXT NOT NULL,
        subject   TEXT NOT NULL,
        user_id   INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        joined_at INTEGER NOT NULL,
        PRIMARY KEY (issuer, subject)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "joined_identity" VALUES('https://id.example','7',1,1795000000);
CREATE TABLE known_network (
        user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        network TEXT NOT NULL,
        seen_at INTEGER NOT NULL,
        PRIMARY KEY (user_id, network)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "known_network" VALUES(1,'6eaa157ff800d00f135e5b2a63669c7d',1795000000);
CREATE TABLE no_question (
        subscriber TEXT PRIMARY KEY
    ) STRICT, WITHOUT ROWID;
INSERT INTO "no_question" VALUES('another hash');
CREATE TABLE notification (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        comment_id INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        audience   TEXT NOT NULL CHECK (audience IN ('owner', 'author', 'holder', 'follower')),
        recipient  TEXT NOT NULL,
        due_at     INTEGER NOT NULL,
        outbox_id  INTEGER REFERENCES outbox (id) ON DELETE CASCADE
    ) STRICT;
INSERT INTO "notification" VALUES(20,6,'follower','',1795177160,NULL);
INSERT INTO "notification" VALUES(22,7,'follower','',1795177160,NULL);
INSERT INTO "notification" VALUES(24,8,'follower','',1795177160,NULL);
INSERT INTO "notification" VALUES(41,11,'owner','',1795180760,NULL);
INSERT INTO "notification" VALUES(42,11,'follower','',1795180760,NULL);
INSERT INTO "notification" VALUES(43,11,'holder','',1795180760,NULL);
CREATE TABLE outbox (
        id              INTEGER PRIMARY KEY AUTOINCREMENT,
        registration_id INTEGER REFERENCES registration (id) ON DELETE CASCADE,
        comment_id      INTEGER REFERENCES comment (id) ON DELETE CASCADE,
        report_id       INTEGER REFERENCES report (id) ON DELETE SET NULL,
        event           TEXT NOT NULL DEFAULT ''
                        CHECK (event IN ('', 'created', 'reported', 'rebuild')),
        subscriber      TEXT NOT NULL DEFAULT '',
        recipient       TEXT NOT NULL,
        subject         TEXT NOT NULL DEFAULT '',
        text            TEXT NOT NULL DEFAULT '',
        html            TEXT NOT NULL DEFAULT '',
        headers         TEXT NOT NULL DEFAULT '{}',
        created_at      INTEGER NOT NULL DEFAULT 0,
        tries           INTEGER NOT NULL DEFAULT 0,
        due_at          INTEGER,
        expires_at      INTEGER NOT NULL,
        failure         TEXT NOT NULL DEFAULT ''
    ) STRICT;
INSERT INTO "outbox" VALUES(2,NULL,1,NULL,'created','','webhook','','','','{}',1795000000,2,NULL,1797772760,'ConnectionRefusedError Connection refused');
INSERT INTO "outbox" VALUES(3,NULL,2,NULL,'created','','webhook','','','','{}',1795003600,1,NULL,1797772760,'expired');
INSERT INTO "outbox" VALUES(5,NULL,3,NULL,'created','','webhook','','','','{}',1795004300,1,NULL,1797772760,'expired');
INSERT INTO "outbox" VALUES(7,NULL,4,NULL,'created','','webhook','','','','{}',1795090700,1,NULL,1797772760,'expired');
INSERT INTO "outbox" VALUES(8,NULL,5,NULL,'created','','webhook','','','','{}',1795090700,1,NULL,1797772760,'expired');
INSERT INTO "outbox" VALUES(10,NULL,7,NULL,'created','','webhook','','','','{}',1795177160,1,1795180775,1795263560,'ConnectionRefusedError Connection refused');
INSERT INTO "outbox" VALUES(12,NULL,9,NULL,'created','','webhook','','','','{}',1795177160,0,1795180775,1795263560,'');
INSERT INTO "outbox" VALUES(13,NULL,3,1,'reported','','webhook','','','','{}',1795177160,0,1795180775,1795263560,'');
INSERT INTO "outbox" VALUES(16,1,NULL,NULL,'','','bob@example.com','451424 · Lines 验证码 / your code','你的验证码 / Your code:

    451424

请在“Lines”的评论区输入，10 分钟内有效。
Enter it in the comments on Lines within 10 minutes.

如果不是你本人操作，忽略这封邮件即可。
Didn’t ask for this? Ignore this email and nothing will change.
','<!doctype html>
<html lang="zh-CN" dir="ltr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>451424 · Lines 验证码 / your code</title>
<style>
@media (prefers-color-scheme: dark) {
.ground { background: #14171a !important; }
.card { background: #1d2126 !important; border-color: #2a2f35 !important; }
.text { color: #e4e6e8 !important; }
.muted { color: #9aa4ad !important; }
.link { color: #7ab7f5 !important; }
.line { border-color: #3a4149 !important; }
.code { background: #2a2f35 !important; }
.primary { background: #7ab7f5 !important; border-color: #7ab7f5 !important; }
.primary a { color: #10161c !important; }
.quiet { border-color: #6c757e !important; }
.quiet a { color: #7ab7f5 !important; }
.danger { border-color: #ff9a8f !important; }
.danger a { color: #ff9a8f !important; }
}
</style>
</head>
<body class="ground" style="margin:0;padding:0;background:#f3f4f4">
<div style="display:none;max-height:0;overflow:hidden;mso-hide:all">请在“Lines”的评论区输入，10 分钟内有效。 Enter it in the comments on Lines within 10 minutes.</div>
<table role="presentation" cellpadding="0" cellspacing="0" border="0" class="ground" lang="zh-CN" dir="ltr" width="100%" style="background:#f3f4f4">
<tr><td align="center" style="padding:16px 8px">
<table role="presentation" cellpadding="0" cellspacing="0" border="0" class="card" dir="ltr" width="100%" style="max-width:600px;table-layout:fixed;background:#ffffff;border:1px solid #e1e3e5;border-radius:12px">
<tr><td class="muted" style="padding:18px 20px 0;font-family:-apple-system,''Segoe UI'',Roboto,Arial,sans-serif;font-size:14px;line-height:20px;color:#59626b">Lines</td></tr>
<tr><td class="text line" style="padding:14px 20px 10px;font-family:-apple-system,''Segoe UI'',Roboto,Arial,sans-serif;font-size:16px;line-height:24px;color:#1d2126;word-break:break-word;overflow-wrap:anywhere">
<p style="margin:0 0 12px">你的验证码 / Your code:</p>
<p class="code" style="margin:0 0 14px;padding:12px 0;border-radius:8px;background:#eeefed;font-family:Menlo,Consolas,monospace;font-size:32px;line-height:40px;letter-spacing:6px;text-indent:6px;text-align:center" dir="ltr">451424</p>
<p style="margin:0 0 12px">请在“Lines”的评论区输入，10 分钟内有效。<br>Enter it in the comments on Lines within 10 minutes.</p>
</td></tr>
<tr><td class="muted line" style="padding:12px 20px 16px;font-family:-apple-system,''Segoe UI'',Roboto,Arial,sans-serif;font-size:13px;line-height:20px;color:#59626b;border-top:1px solid #e1e3e5">
<p style="margin:0 0 12px">如果不是你本人操作，忽略这封邮件即可。<br>Didn’t ask for this? Ignore this email and nothing will change.</p>
</td></tr>
</table>
</td></tr></table>
</body>
</html>
','{}',1795180760,0,1795180760,1795181360,'');
INSERT INTO "outbox" VALUES(17,NULL,11,NULL,'created','','webhook','','','','{}',1795180760,0,1795180760,1795267160,'');
CREATE TABLE page (
        id         INTEGER PRIMARY KEY,
        key        TEXT NOT NULL UNIQUE,
        page_url   TEXT NOT NULL,
        title      TEXT NOT NULL DEFAULT '',
        -- Who said so: see TITLE_SOURCES.
        title_source TEXT NOT NULL DEFAULT ''
                   CHECK (title_source IN ('', 'held', 'comment', 'import', 'owner')),
        -- The comment that the title came with.
        title_comment_id INTEGER,
        -- Its comments that are visible.
        total      INTEGER NOT NULL DEFAULT 0,
        -- Its top-level comments that are shown.
        threads    INTEGER NOT NULL DEFAULT 0,
        views      INTEGER NOT NULL DEFAULT 0,
        page_likes INTEGER NOT NULL DEFAULT 0,
        seen_at    INTEGER NOT NULL,
        closed     INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)),
        -- The page's age counts from here.
        opened_at  INTEGER NOT NULL DEFAULT 0,
        -- Raised with each change of its comments that readers could see.
        mark       INTEGER NOT NULL DEFAULT 0,
        -- The mark with which the newest of its deleted rows changed last.
        gone_mark  INTEGER NOT NULL DEFAULT 0,
        -- Whether the site must be built again, since more than likes has changed.
        needs_rebuild INTEGER NOT NULL DEFAULT 0 CHECK (needs_rebuild IN (0, 1))
    ) STRICT;
INSERT INTO "page" VALUES(1,'/2026/hello','/2026/hello/','','',NULL,6,3,2,1,1795090760,0,1795000000,16,0,1);
INSERT INTO "page" VALUES(2,'/2026/日记','/2026/日记/','','',NULL,2,2,1,0,1795090760,1,1795177160,4,0,1);
INSERT INTO "page" VALUES(3,'/about','/about/','','',NULL,1,1,321,0,1795983678,0,1714979289,1,0,1);
CREATE TABLE page_day (
        page_id INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
        day     INTEGER NOT NULL,
        views   INTEGER NOT NULL,
        PRIMARY KEY (page_id, day)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "page_day" VALUES(1,20776,2);
INSERT INTO "page_day" VALUES(2,20776,1);
CREATE TABLE page_liker (
        page_id  INTEGER NOT NULL REFERENCES page (id),
        visitor  TEXT NOT NULL,
        liked_at INTEGER,
        PRIMARY KEY (page_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "page_liker" VALUES(1,'bc077b2eb01bd27fd413bee5caf1e512',1795090760);
CREATE TABLE picture (
        name       TEXT NOT NULL UNIQUE,
        user_id    INTEGER PRIMARY KEY REFERENCES account (id) ON DELETE CASCADE,
        media_type TEXT NOT NULL,
        body       BLOB NOT NULL,
        stored_at  INTEGER NOT NULL
    ) STRICT;
INSERT INTO "picture" VALUES('0123456789abcdef0123456789abcdef',1,'image/png',X'89',1);
CREATE TABLE rate_limit (
        name    TEXT NOT NULL,
        subject TEXT NOT NULL,
        seconds INTEGER NOT NULL,
        used    INTEGER NOT NULL,
        ends_at INTEGER NOT NULL,
        PRIMARY KEY (name, subject, seconds)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "rate_limit" VALUES('all_code_emails','',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('all_comments','',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('code_email','c26406cfe51bd6eca777875228f25304673e6afa63a36f21e6f9c0dca69618fa',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('code_email','c26406cfe51bd6eca777875228f25304673e6afa63a36f21e6f9c0dca69618fa',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('code_email','c26406cfe51bd6eca777875228f25304673e6afa63a36f21e6f9c0dca69618fa',86400,1,1795267160);
INSERT INTO "rate_limit" VALUES('code_for_email','323b53aa5885f4292b6bffa68718081ccafa5c854aca813487a578e54b8f3bb3',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','518d5758ba90ff7fac2d2a1e6113f700d277a3dda6bbd9604994b884e9316b8c',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','518d5758ba90ff7fac2d2a1e6113f700d277a3dda6bbd9604994b884e9316b8c',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('notification','follower 617c8758f7d0f176f2a36dc1794be726',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('notification','owner e23e4d5209e87ed881f7f036ef235db8',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('register','dd1caab276fdb2338e148fb4a9edc32e175c5832c1f1e40233fb31a94c78a06c',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('report','ff50b41b2216c4d5cbf3624a9ddcd8f7101829b8b6e7275e509452d21284785c',86400,1,1795263560);
CREATE TABLE reaction (
        id      INTEGER PRIMARY KEY,
        page_id INTEGER NOT NULL REFERENCES page (id),
        emoji   TEXT NOT NULL,
        count   INTEGER NOT NULL DEFAULT 0,
        UNIQUE (page_id, emoji)
    ) STRICT;
INSERT INTO "reaction" VALUES(1,1,'👍',1);
CREATE TABLE reaction_liker (
        reaction_id INTEGER NOT NULL REFERENCES reaction (id),
        visitor     TEXT NOT NULL,
        liked_at    INTEGER,
        PRIMARY KEY (reaction_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "reaction_liker" VALUES(1,'user 1',NULL);
CREATE TABLE recovery_code (
        user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        hash    TEXT NOT NULL,
        PRIMARY KEY (user_id, hash)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "recovery_code" VALUES(2,'a hash');
CREATE TABLE registration (
        id          INTEGER PRIMARY KEY,
        request_id  TEXT NOT NULL UNIQUE,
        email       TEXT NOT NULL,
        nickname    TEXT NOT NULL,
        password    TEXT NOT NULL,
        code        TEXT NOT NULL,
        client      TEXT NOT NULL,
        tries       INTEGER NOT NULL DEFAULT 0,
        named_tries INTEGER NOT NULL DEFAULT 0,
        language    TEXT NOT NULL DEFAULT '',
        created_at  INTEGER NOT NULL,
        expires_at  INTEGER NOT NULL
    ) STRICT;
INSERT INTO "registration" VALUES(1,'bd37a536720026c1a0dbf410772445c6','bob@example.com','Bob','pbkdf2_sha256$1$323f1fb9a01a4dde1ee0cd5cde85829e$a707279fe9f69ac659199ec66331b99123c109be94ec6e6447977f78a0c453d0','3b81e4f92a98ccab261145473efca818a54ae500b2e0cdb2e741708996125a91','dd1caab276fdb2338e148fb4a9edc32e175c5832c1f1e40233fb31a94c78a06c',0,0,'',1795180760,1795181360);
CREATE TABLE report (
        id          INTEGER PRIMARY KEY,
        comment_id  INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        visitor     TEXT NOT NULL,
        reason      TEXT NOT NULL,
        reported_at INTEGER NOT NULL,
        UNIQUE (comment_id, visitor)
    ) STRICT;
INSERT INTO "report" VALUES(1,3,'6a3574c5682a429e3b59710fa1b08060','rude',1795177160);
CREATE TABLE secret (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT;
INSERT INTO "secret" VALUES('token_key','9f774bede576a2f9fe9cb5a7acf272f798d7c2442b5e7cf2017a8af6a5c213be');
CREATE TABLE setting (
        name TEXT PRIMARY KEY,
        text TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "setting" VALUES('moderation_keep_days','40');
CREATE TABLE short_link (
        hash       TEXT PRIMARY KEY,
        action     TEXT NOT NULL,
        undo       TEXT NOT NULL,
        comment_id INTEGER NOT NULL,
        version    TEXT NOT NULL,
        page_id    INTEGER NOT NULL,
        user_id    INTEGER NOT NULL,
        subscriber TEXT NOT NULL,
        language   TEXT NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "short_link" VALUES('151fc8b1fd5b1013d77a8b5adcc2d0379352c32e4cd8613c91dee3b990cb3bae','spam','visible',5,'f8509048e005e757b8b2aed87c10a436b8e5bc475012bfe8c24fdf651a1087ca',0,0,'e23e4d5209e87ed881f7f036ef235db8','en',1797772760);
INSERT INTO "short_link" VALUES('1dd272272d15097f0821a6c9a8a1ab69d8a03848bc0d7219169ba49f936c5f2e','visible','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'d86dfc956bdc4f22953d0652fb72e2ba','en',1797769160);
INSERT INTO "short_link" VALUES('292e956ed5e1fb11043ca3c4bfc8966ed80bac09b3b0a394d2c7fda251d26f4f','stop_all','start_all',1,'',0,0,'617c8758f7d0f176f2a36dc1794be726','zh',1826540300);
INSERT INTO "short_link" VALUES('35366a7dd6d478cb8e5f7a343b484274a9c8ef5139198a190ede696f6d1007ea','deleted','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'d86dfc956bdc4f22953d0652fb72e2ba','en',1797769160);
INSERT INTO "short_link" VALUES('356ab2bb6d0ca7d5eb11857ce7d7ad670aa0b5652dfd92e7a37afbe9303e636f','visible','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'e23e4d5209e87ed881f7f036ef235db8','en',1797772760);
INSERT INTO "short_link" VALUES('3ff543a99e56e38be536c5938e5c490f36ec9c757aa54de200b0a0fae709967a','spam','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'e23e4d5209e87ed881f7f036ef235db8','en',1797772760);
INSERT INTO "short_link" VALUES('495510fc478434fcf930e4439a9b4424f7012ae08a28c7a3faaea4a4b08672a0','stop','start',1,'',0,0,'617c8758f7d0f176f2a36dc1794be726','zh',1826540300);
INSERT INTO "short_link" VALUES('497fe1f104632fa9a09b929ed01ce2adedba3d578af5db6fb64d8f7f1d17568c','unfollow','follow',9,'',1,1,'617c8758f7d0f176f2a36dc1794be726','en',1826716760);
INSERT INTO "short_link" VALUES('4db9b1903f13e6b32744971c271317a26748123054a1c5b3535cd907f74c9d8b','spam','visible',4,'510c8a029780d3f1ce6e4a6aabc18b1b0e1bf18a00374eb89a8a6b5a77cf1a01',0,0,'e23e4d5209e87ed881f7f036ef235db8','en',1797772760);
INSERT INTO "short_link" VALUES('50d2d96e9712d27516a014e34bfe8336fe7665e324fdb00112ef5e1c06760800','spam','visible',1,'66ada2c7b65399f5a5f3e0659146476da2494559b6895b53239e75f390e50b23',0,0,'d86dfc956bdc4f22953d0652fb72e2ba','zh',1797592000);
INSERT INTO "short_link" VALUES('6fe2076d0ace8d4db6903c8023ce9ec7b087d5bee7f3ce8c989a83a0a6e5d23b','deleted','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'e23e4d5209e87ed881f7f036ef235db8','en',1797772760);
INSERT INTO "short_link" VALUES('746f7ee201f7ae74c066aa81941e5107cca79aa0629e7201074d5f029c736b48','spam','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'e23e4d5209e87ed881f7f036ef235db8','en',1797772760);
INSERT INTO "short_link" VALUES('7b96d8d979960f6ce8471596c3ba1f18c829d820f16a28a45c155d5271e19fbb','spam','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'d86dfc956bdc4f22953d0652fb72e2ba','en',1797769160);
INSERT INTO "short_link" VALUES('82dd327c492e7ecf2981bba28e014ccff6db12b71daf20f18e05b41682bca0d6','confirm','',2,'',0,0,'4ed0b56fe0c9c841fb5296b87569e35f','zh',1797596300);
INSERT INTO "short_link" VALUES('909a48bcb013d9a4d83f6ebc20c5abc81ce8abb5431b0877d440a36c73dc36d2','unfollow','follow',10,'',1,1,'617c8758f7d0f176f2a36dc1794be726','en',1826716760);
INSERT INTO "short_link" VALUES('956efcea56d3e1fec361587a4699942f1bbb0d4d6ca13fa4582f9a7949822071','deleted','visible',4,'510c8a029780d3f1ce6e4a6aabc18b1b0e1bf18a00374eb89a8a6b5a77cf1a01',0,0,'e23e4d5209e87ed881f7f036ef235db8','en',1797772760);
INSERT INTO "short_link" VALUES('a9e57c61d8e0a41eb934bc5b4ee14921aa2b987856b036505bbcee134bef9d5b','spam','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'e23e4d5209e87ed881f7f036ef235db8','en',1797772760);
INSERT INTO "short_link" VALUES('ba99445988e3a9cc7fc9db3546483fb1aa7249411ecb829eae0d10fa53267fc5','visible','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'e23e4d5209e87ed881f7f036ef235db8','en',1797772760);
INSERT INTO "short_link" VALUES('cc3708fa9a0e9b3efb7063ef69c8a2a3539a5bfd55ed850763b3e5ef47d0e8e4','deleted','visible',1,'66ada2c7b65399f5a5f3e0659146476da2494559b6895b53239e75f390e50b23',0,0,'d86dfc956bdc4f22953d0652fb72e2ba','zh',1797592000);
INSERT INTO "short_link" VALUES('e36f074220c9ba5e7dbab99d2dd716d2b4277223ffb72e5d812929976b538a9b','deleted','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'e23e4d5209e87ed881f7f036ef235db8','en',1797772760);
INSERT INTO "short_link" VALUES('e431fefcc3de26afe71728b30e9481ed3b5af986148a0f94fa13576d5d600288','deleted','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'e23e4d5209e87ed881f7f036ef235db8','en',1797772760);
INSERT INTO "short_link" VALUES('eb389b52d6d3d143bfa56da7952358fd535f540da4553df2d58baf71057061a8','deleted','visible',5,'f8509048e005e757b8b2aed87c10a436b8e5bc475012bfe8c24fdf651a1087ca',0,0,'e23e4d5209e87ed881f7f036ef235db8','en',1797772760);
CREATE TABLE spent_captcha (
        signature  TEXT PRIMARY KEY,
        comment_id INTEGER REFERENCES comment (id),
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "spent_captcha" VALUES('solved',1,1795999999);
CREATE TABLE state (
        name TEXT PRIMARY KEY,
        time INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "state" VALUES('code_asked',1795180760);
INSERT INTO "state" VALUES('wipe',1795180760);
CREATE TABLE subscription (
        subscriber TEXT NOT NULL,
        page_id    INTEGER NOT NULL,
        state      TEXT NOT NULL CHECK (state IN ('asked', 'yes', 'no')),
        PRIMARY KEY (subscriber, page_id)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "subscription" VALUES('4ed0b56fe0c9c841fb5296b87569e35f',0,'asked');
CREATE TABLE taken_look (
        id       INTEGER PRIMARY KEY AUTOINCREMENT,
        skeleton TEXT NOT NULL,
        user_id  INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE
    ) STRICT;
INSERT INTO "taken_look" VALUES(1,'ann',1);
INSERT INTO "taken_look" VALUES(2,'owner',2);
CREATE TABLE term (
        hash      INTEGER PRIMARY KEY,
        ham       INTEGER NOT NULL DEFAULT 0,
        spam      INTEGER NOT NULL DEFAULT 0,
        learnt_at INTEGER NOT NULL
    ) STRICT;
INSERT INTO "term" VALUES(-8691471299114919658,0,1,1795177160);
INSERT INTO "term" VALUES(-6884157973653202310,0,1,1795177160);
INSERT INTO "term" VALUES(-6108333594503443959,1,0,1795177160);
INSERT INTO "term" VALUES(-6020696208303777006,1,0,1795177160);
INSERT INTO "term" VALUES(-2097837554278566809,1,0,1795177160);
INSERT INTO "term" VALUES(-1880408925532398694,1,0,1795177160);
INSERT INTO "term" VALUES(-1377079545370416587,0,1,1795177160);
INSERT INTO "term" VALUES(0,2,1,1795177160);
INSERT INTO "term" VALUES(2624356183629169943,1,0,1795177160);
INSERT INTO "term" VALUES(3227558240432590831,1,0,1795177160);
INSERT INTO "term" VALUES(3950060384896398113,1,0,1795177160);
INSERT INTO "term" VALUES(4141077713450111492,1,1,1795177160);
INSERT INTO "term" VALUES(4651297169647494951,1,0,1795177160);
INSERT INTO "term" VALUES(5629098343132666692,1,0,1795177160);
INSERT INTO "term" VALUES(8299014677461350776,1,0,1795177160);
INSERT INTO "term" VALUES(8770482582806586103,1,0,1795177160);
CREATE TABLE trusted (
        subscriber TEXT PRIMARY KEY
    ) STRICT, WITHOUT ROWID;
INSERT INTO "trusted" VALUES('a third hash');
CREATE TABLE voucher (
        hash       TEXT PRIMARY KEY,
        secret     TEXT NOT NULL,
        state      TEXT NOT NULL UNIQUE,
        issuer     TEXT NOT NULL,
        subject    TEXT NOT NULL,
        email      TEXT NOT NULL,
        verified   INTEGER NOT NULL CHECK (verified IN (0, 1)),
        nickname   TEXT NOT NULL,
        -- The URL of their picture there.
        picture    TEXT NOT NULL,
        language   TEXT NOT NULL,
        -- Whether it confirms what a reader who is signed in wants, and signs nobody in.
        confirms   INTEGER NOT NULL CHECK (confirms IN (0, 1)),
        expires_at INTEGER NOT NULL,
        used       INTEGER NOT NULL DEFAULT 0 CHECK (used IN (0, 1))
    ) STRICT, WITHOUT ROWID;
INSERT INTO "voucher" VALUES('a hash','a secret','a state','https://id.example','8','gil@example.com',1,'Gil','https://id.example/gil','en',0,1795999999,0);
CREATE INDEX account_role ON account (role, nickname);
CREATE INDEX avatar_asked ON avatar (asked_at);
CREATE INDEX admin_session_of_user ON admin_session (user_id);
CREATE INDEX admin_session_seen ON admin_session (seen_at);
CREATE INDEX taken_look_skeleton ON taken_look (skeleton, id);
CREATE INDEX taken_look_length ON taken_look (length(skeleton));
CREATE INDEX taken_look_user ON taken_look (user_id);
CREATE INDEX known_network_seen ON known_network (seen_at);
CREATE INDEX joined_identity_of_user ON joined_identity (user_id);
CREATE INDEX voucher_expires ON voucher (expires_at);
CREATE INDEX registration_email ON registration (email);
CREATE INDEX registration_created ON registration (created_at);
CREATE INDEX registration_expires ON registration (expires_at);
CREATE INDEX page_needs_rebuild ON page (needs_rebuild) WHERE needs_rebuild = 1;
CREATE INDEX page_seen ON page (seen_at);
CREATE INDEX page_by_total ON page (total);
CREATE INDEX page_by_views ON page (views);
CREATE INDEX comment_by_mark ON comment (page_id, mark);
CREATE INDEX comment_by_time ON comment (page_id, status, created_at, id);
CREATE INDEX comment_by_likes ON comment (page_id, status, likes, created_at, id);
CREATE INDEX comment_by_status ON comment (status, id);
CREATE INDEX comment_latest ON comment (status, created_at, id);
CREATE INDEX comment_by_nickname ON comment (nickname, ip, status);
CREATE INDEX comment_by_email ON comment (email) WHERE email <> '';
CREATE INDEX comment_by_face ON comment (face) WHERE face <> '';
CREATE INDEX comment_top_newest ON comment (page_id, shown, pinned, created_at, id)
        WHERE parent_id IS NULL;
CREATE INDEX comment_top_oldest ON comment (page_id, shown, pinned DESC, created_at, id)
        WHERE parent_id IS NULL;
CREATE INDEX comment_top_by_likes ON comment (page_id, shown, pinned, likes, created_at, id)
        WHERE parent_id IS NULL;
CREATE INDEX comment_of_thread ON comment (thread_id, shown, created_at, id);
CREATE INDEX comment_of_parent ON comment (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX comment_of_user ON comment (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX comment_unmasked ON comment (created_at) WHERE masked = 0;
CREATE INDEX comment_hidden ON comment (hidden_at) WHERE hidden_at IS NOT NULL;
CREATE INDEX comment_unlearnt ON comment (id) WHERE learnt = '' AND status = 'visible';
CREATE TRIGGER raise_mark
        AFTER UPDATE OF page_id, user_id, nickname, website, face, html, country, location, shown,
                        status, edited_at, pinned ON comment
        WHEN OLD.shown OR NEW.shown
    BEGIN
        UPDATE page SET mark = mark + 1, needs_rebuild = 1 WHERE id = NEW.page_id;
        UPDATE comment SET mark = (SELECT mark FROM page WHERE id = NEW.page_id) WHERE id = NEW.id;
    END;
CREATE TRIGGER raise_mark_for_likes
        AFTER UPDATE OF likes ON comment
        WHEN OLD.shown OR NEW.shown
    BEGIN
        UPDATE page SET mark = mark + 1 WHERE id = NEW.page_id;
        UPDATE comment SET mark = (SELECT mark FROM page WHERE id = NEW.page_id) WHERE id = NEW.id;
    END;
CREATE TRIGGER note_gone_mark AFTER DELETE ON comment WHEN OLD.mark > 0
    BEGIN
        UPDATE page SET gone_mark = max(gone_mark, OLD.mark) WHERE id = OLD.page_id;
    END;
CREATE TRIGGER change_author AFTER UPDATE OF role, picture ON account
        WHEN OLD.role <> NEW.role OR OLD.picture <> NEW.picture
    BEGIN
        UPDATE comment SET user_id = user_id WHERE user_id = NEW.id;
    END;
CREATE INDEX comment_liker_time ON comment_liker (liked_at) WHERE liked_at IS NOT NULL;
CREATE INDEX page_liker_time ON page_liker (liked_at) WHERE liked_at IS NOT NULL;
CREATE TRIGGER raise_mark_for_reactions
        AFTER UPDATE OF count ON reaction
        WHEN OLD.count <> NEW.count
    BEGIN
        UPDATE page SET mark = mark + 1 WHERE id = NEW.page_id;
    END;
CREATE INDEX reaction_liker_time ON reaction_liker (liked_at) WHERE liked_at IS NOT NULL;
CREATE INDEX rate_limit_ends ON rate_limit (ends_at);
CREATE INDEX spent_captcha_expires ON spent_captcha (expires_at);
CREATE INDEX spent_captcha_comment ON spent_captcha (comment_id) WHERE comment_id IS NOT NULL;
CREATE INDEX outbox_due ON outbox (due_at);
CREATE INDEX outbox_code_due ON outbox (due_at) WHERE registration_id IS NOT NULL;
CREATE INDEX outbox_expires ON outbox (expires_at);
CREATE INDEX outbox_registration ON outbox (registration_id);
CREATE INDEX outbox_comment ON outbox (comment_id) WHERE comment_id IS NOT NULL;
CREATE INDEX outbox_report ON outbox (report_id) WHERE report_id IS NOT NULL;
CREATE UNIQUE INDEX notification_pending ON notification (recipient, audience, comment_id)
        WHERE outbox_id IS NULL;
CREATE INDEX notification_comment ON notification (comment_id);
CREATE INDEX notification_outbox ON notification (outbox_id) WHERE outbox_id IS NOT NULL;
CREATE INDEX chat_message_comment ON chat_message (comment_id);
CREATE INDEX subscription_page ON subscription (page_id);
CREATE INDEX follow_page ON follow (page_id);
CREATE INDEX report_of_visitor ON report (visitor);
CREATE INDEX report_of_comment ON report (comment_id, reported_at);
CREATE INDEX term_learnt ON term (learnt_at);
CREATE INDEX audit_created ON audit (created_at);
CREATE INDEX audit_to_undo ON audit (action, subject) WHERE was IS NOT NULL;
CREATE INDEX short_link_expires ON short_link (expires_at);
CREATE INDEX page_day_by_day ON page_day (day);
CREATE INDEX import_comment ON import (comment_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('outbox',17);
INSERT INTO "sqlite_sequence" VALUES('account',2);
INSERT INTO "sqlite_sequence" VALUES('taken_look',2);
INSERT INTO "sqlite_sequence" VALUES('comment',12);
INSERT INTO "sqlite_sequence" VALUES('notification',43);
INSERT INTO "sqlite_sequence" VALUES('admin_session',1);
INSERT INTO "sqlite_sequence" VALUES('block',2);
COMMIT;
