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
INSERT INTO "account" VALUES(1,'ann@example.com','Ann','pbkdf2_sha256$1$9c53f6a95cf0ce49e088aeb7c93c0b76$17f0b79cfc66cd68b48ce7118d88cfeb8366c13c2304461b1a8a2f4332e0cd77','user',1,1795000000,0,'','',0,'0123456789abcdef0123456789abcdef');
INSERT INTO "account" VALUES(2,'owner@example.com','Owner','pbkdf2_sha256$1$d502fb2c47f04c5ab8dc77866f793dff$b2e646d63c2de05081275a2137c518dc8594ab22f5679b1956a946cf2fe22116','admin',1,1795177160,0,'','',0,'');
CREATE TABLE admin_link (
        hash       TEXT PRIMARY KEY,
        email      TEXT NOT NULL,
        -- What it makes of the account.
        role       TEXT NOT NULL CHECK (role IN ('moderator', 'admin')),
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "admin_link" VALUES('43be025d61621ec0806b01bb9e366c785565adf64beeee83113700a9e95940b3','second@example.com','admin',1795184360);
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
INSERT INTO "comment_liker" VALUES(1,'490098adce3db07e4cbc67302ea5977a',1795090760);
INSERT INTO "comment_liker" VALUES(1,'9906cc72af34cc4f7c370d6b5b13d51b',1795090760);
INSERT INTO "comment_liker" VALUES(1,'user 1',NULL);
INSERT INTO "comment_liker" VALUES(3,'9906cc72af34cc4f7c370d6b5b13d51b',1795090760);
CREATE TABLE country_day (
        day     INTEGER NOT NULL,
        country TEXT NOT NULL,
        views   INTEGER NOT NULL,
        PRIMARY KEY (day, country)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "country_day" VALUES(20776,'CN',3);
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
INSERT INTO "known_network" VALUES(1,'8a18c9b7df1dc82982d120f279da3a62',1795000000);
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
INSERT INTO "outbox" VALUES(16,1,NULL,NULL,'','','bob@example.com','697678 · Lines 验证码 / your code','你的验证码 / Your code:

    697678

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
<title>697678 · Lines 验证码 / your code</title>
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
<p class="code" style="margin:0 0 14px;padding:12px 0;border-radius:8px;background:#eeefed;font-family:Menlo,Consolas,monospace;font-size:32px;line-height:40px;letter-spacing:6px;text-indent:6px;text-align:center" dir="ltr">697678</p>
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
INSERT INTO "page" VALUES(3,'/about','/about/','','',NULL,1,1,321,0,1795985168,0,1714979289,1,0,1);
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
INSERT INTO "page_liker" VALUES(1,'490098adce3db07e4cbc67302ea5977a',1795090760);
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
INSERT INTO "rate_limit" VALUES('code_email','d4b0b945a7a2351cecbd2ebeb1d5462a2277abcaf7528f9ad8311a2ac2e4469f',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('code_email','d4b0b945a7a2351cecbd2ebeb1d5462a2277abcaf7528f9ad8311a2ac2e4469f',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('code_email','d4b0b945a7a2351cecbd2ebeb1d5462a2277abcaf7528f9ad8311a2ac2e4469f',86400,1,1795267160);
INSERT INTO "rate_limit" VALUES('code_for_email','874048d1e39b4866e36e5daf8eb241f3a8a6cdfc463aa35131ea277dd8b8d20a',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','1296cab5460d51b43374fddd555f372de74085a3b76b5ce55ee342abf5e65c04',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','1296cab5460d51b43374fddd555f372de74085a3b76b5ce55ee342abf5e65c04',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('notification','follower 91a1f590d27156c3dee499aa2b4b9e1b',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('notification','owner c4fac6f123f9f0f5af235deb7a899283',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('register','68e7e0fa40d88eec53507a91af78b68df5138f7ed803ad7cddb6c8351bd2a30f',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('report','0710cf5c5b80b52871c2353747c33bdda4329021d07072e7441190d9be878a16',86400,1,1795263560);
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
INSERT INTO "registration" VALUES(1,'28d9440f67a935502f8d4ffb178e8a38','bob@example.com','Bob','pbkdf2_sha256$1$0a3c4bdbd908386f0dac49fcbf655743$f4c941ff571c9a2d79b1b926c2b0b5e9f4741c4a4c597ada34037b5815768ef9','b2fc46961dfb508ea53f73f219df03ec288cfed0787d236192309b1bea28c1ea','68e7e0fa40d88eec53507a91af78b68df5138f7ed803ad7cddb6c8351bd2a30f',0,0,'',1795180760,1795181360);
CREATE TABLE report (
        id          INTEGER PRIMARY KEY,
        comment_id  INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        visitor     TEXT NOT NULL,
        reason      TEXT NOT NULL,
        reported_at INTEGER NOT NULL,
        UNIQUE (comment_id, visitor)
    ) STRICT;
INSERT INTO "report" VALUES(1,3,'5a16e32cef228a224af08c1fb0828d37','rude',1795177160);
CREATE TABLE secret (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT;
INSERT INTO "secret" VALUES('token_key','f2657a5f6b73f01bfba8db7b7e86bf5050a0323b70cc812e5f7c4fa6eab00382');
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
INSERT INTO "short_link" VALUES('0bb92a144d83d5a2c283c02ea06b298f5cd6ea18f23e11716bb349093d0e556d','deleted','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'c4fac6f123f9f0f5af235deb7a899283','en',1797772760);
INSERT INTO "short_link" VALUES('2dd6765431a3f7d1b5bfd2e638cd7345d6a54c9246aa96a401d8e4275684e891','deleted','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'0e00901980b8d862fcf4fafbb4a095ab','en',1797769160);
INSERT INTO "short_link" VALUES('34c0ba47578aaee9eecf0e7cd2972c3147da28f1a3ccc296d84648cbd6109181','stop','start',1,'',0,0,'91a1f590d27156c3dee499aa2b4b9e1b','zh',1826540300);
INSERT INTO "short_link" VALUES('4b53867f377bdb3759d5e1f85f95e08d58ccdcec20b87acb4606f2faf8e6bd38','spam','visible',5,'f8509048e005e757b8b2aed87c10a436b8e5bc475012bfe8c24fdf651a1087ca',0,0,'c4fac6f123f9f0f5af235deb7a899283','en',1797772760);
INSERT INTO "short_link" VALUES('4f218feff0d05c10896d26182f110267902aae67bc121a3d4f2437d03fb4511d','spam','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'c4fac6f123f9f0f5af235deb7a899283','en',1797772760);
INSERT INTO "short_link" VALUES('653606870469db042c5572019e0de526c7ac3381155e3ac24e79807a9a85b382','visible','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'0e00901980b8d862fcf4fafbb4a095ab','en',1797769160);
INSERT INTO "short_link" VALUES('67151433a0aa1776f7301bcbcd5a25d66058587da3598cc896893797d4e80a41','deleted','visible',1,'66ada2c7b65399f5a5f3e0659146476da2494559b6895b53239e75f390e50b23',0,0,'0e00901980b8d862fcf4fafbb4a095ab','zh',1797592000);
INSERT INTO "short_link" VALUES('86287354cbf8db84754303dfbd07dcbdc42b883a04265bc9f946d0b79a978377','deleted','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'c4fac6f123f9f0f5af235deb7a899283','en',1797772760);
INSERT INTO "short_link" VALUES('95c5b275590032086093f3ed31d0c664fc23c15de170a76c4ec3f6a85063fd99','spam','visible',4,'510c8a029780d3f1ce6e4a6aabc18b1b0e1bf18a00374eb89a8a6b5a77cf1a01',0,0,'c4fac6f123f9f0f5af235deb7a899283','en',1797772760);
INSERT INTO "short_link" VALUES('9782b6dcd47e9ca9d94179d86b6a0e1d065ad0ea69310069f7af2cbe420f8a1a','spam','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'c4fac6f123f9f0f5af235deb7a899283','en',1797772760);
INSERT INTO "short_link" VALUES('98ae673d1e5e34272be12a4603e59e9076d22d73f768d07ad06bedc286869a83','deleted','visible',4,'510c8a029780d3f1ce6e4a6aabc18b1b0e1bf18a00374eb89a8a6b5a77cf1a01',0,0,'c4fac6f123f9f0f5af235deb7a899283','en',1797772760);
INSERT INTO "short_link" VALUES('99f45d2deb6a47faf4bd99a4aa77b62f3fd53f4edd6370edc17bb67f54a9eda1','spam','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'c4fac6f123f9f0f5af235deb7a899283','en',1797772760);
INSERT INTO "short_link" VALUES('a3fe1d842d8e149479f5beca64cb65bcb93f269b440a978a5609826cbd3ac201','unfollow','follow',10,'',1,1,'91a1f590d27156c3dee499aa2b4b9e1b','en',1826716760);
INSERT INTO "short_link" VALUES('bbcaa981d310257f77c1fb53f1ceb16e23229a97d195e592fed0018654cb6067','spam','visible',1,'66ada2c7b65399f5a5f3e0659146476da2494559b6895b53239e75f390e50b23',0,0,'0e00901980b8d862fcf4fafbb4a095ab','zh',1797592000);
INSERT INTO "short_link" VALUES('bd83ae50853ad1ce0e204003037588bc22a55f340a6b72a230a7581e2af713e3','stop_all','start_all',1,'',0,0,'91a1f590d27156c3dee499aa2b4b9e1b','zh',1826540300);
INSERT INTO "short_link" VALUES('c6fcf63914f4d784459c3004ec360c3636addd924cb28386eb7f0e11f6402082','deleted','visible',5,'f8509048e005e757b8b2aed87c10a436b8e5bc475012bfe8c24fdf651a1087ca',0,0,'c4fac6f123f9f0f5af235deb7a899283','en',1797772760);
INSERT INTO "short_link" VALUES('d16edf345997c44811429f6afc9f0a1d169d8d73bb22e7c3abf4483963087d49','visible','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'c4fac6f123f9f0f5af235deb7a899283','en',1797772760);
INSERT INTO "short_link" VALUES('de6f68b8829822f1b78c75c97caadcb68272d7b113a008781ec1ba09e13cf91a','visible','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'c4fac6f123f9f0f5af235deb7a899283','en',1797772760);
INSERT INTO "short_link" VALUES('e9da1abb8b5d51ad273f721b4eb8f2c0a5046b383d10560dc60af75aa24f7f7f','spam','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'0e00901980b8d862fcf4fafbb4a095ab','en',1797769160);
INSERT INTO "short_link" VALUES('eb3c64af9f2f52993eff09177ade13c5319cb90f0cb02d3d77e3cf56512ce25b','confirm','',2,'',0,0,'b21914feea07eb2a96017a9ea9edc1ad','zh',1797596300);
INSERT INTO "short_link" VALUES('ed852ddec94eaa78cabe3151056fa06b4b6557658f9c1206f0167d98ea99e2f1','deleted','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'c4fac6f123f9f0f5af235deb7a899283','en',1797772760);
INSERT INTO "short_link" VALUES('fc68734f5aa1ac93be1b17bcfcabdc1e7da73b38baa29970cd7b3bf634379078','unfollow','follow',9,'',1,1,'91a1f590d27156c3dee499aa2b4b9e1b','en',1826716760);
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
INSERT INTO "subscription" VALUES('b21914feea07eb2a96017a9ea9edc1ad',0,'asked');
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
INSERT INTO "term" VALUES(-5418285545039841108,1,0,1795177160);
INSERT INTO "term" VALUES(-5124287086027781258,0,1,1795177160);
INSERT INTO "term" VALUES(-1547063701864110392,1,0,1795177160);
INSERT INTO "term" VALUES(-1306083778362119266,1,0,1795177160);
INSERT INTO "term" VALUES(-113138827850300218,1,0,1795177160);
INSERT INTO "term" VALUES(0,2,1,1795177160);
INSERT INTO "term" VALUES(623282318261470654,1,0,1795177160);
INSERT INTO "term" VALUES(1929669350145234864,1,0,1795177160);
INSERT INTO "term" VALUES(2587032606286155018,1,1,1795177160);
INSERT INTO "term" VALUES(2660296308168951488,1,0,1795177160);
INSERT INTO "term" VALUES(2742905352827377758,1,0,1795177160);
INSERT INTO "term" VALUES(2967023085903222683,1,0,1795177160);
INSERT INTO "term" VALUES(3917347382143642270,1,0,1795177160);
INSERT INTO "term" VALUES(4516598794428951316,0,1,1795177160);
INSERT INTO "term" VALUES(4854869205518097146,0,1,1795177160);
INSERT INTO "term" VALUES(7663994531317467237,1,0,1795177160);
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
