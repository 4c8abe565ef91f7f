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
INSERT INTO "account" VALUES(1,'ann@example.com','Ann','pbkdf2_sha256$1$3cde5205c14a27897887df26e4a1e211$1dc0b2f41506931bbcbab850171005d739d7995f0b188eb6f091e15dcd177284','user',1,1795000000,0,'','',0,'0123456789abcdef0123456789abcdef');
INSERT INTO "account" VALUES(2,'owner@example.com','Owner','pbkdf2_sha256$1$ccb7b0098ac98c5c70c3ec1874d5b816$fb330d19188432d674efb05a41bff732969f276f21580588154440dbf1e3426e','admin',1,1795177160,0,'','',0,'');
CREATE TABLE admin_link (
        hash       TEXT PRIMARY KEY,
        email      TEXT NOT NULL,
        -- What it makes of the account.
        role       TEXT NOT NULL CHECK (role IN ('moderator', 'admin')),
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "admin_link" VALUES('a41de6256040c1e95133f2871b7cdf601da5b492cd584561ceb9fb4f0b1cce4e','second@example.com','admin',1795184360);
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
INSERT INTO "comment" VALUES(1,1,NULL,NULL,1,'Ann','','https://ann.example','*First!* 第一条 🎉','<p><em>First!</em> 第一条 🎉</p>
',0,'203.0.113.7','','',3,1,1,'visible',1795000000,0,NULL,1,'','zh',NULL,'ham',14);
INSERT INTO "comment" VALUES(2,1,1,1,NULL,'陆知微','lu@example.com','','回复一下','<p>回复一下</p>
',0,'223.5.5.5','CN','浙江 杭州',0,2,1,'visible',1795003600,0,NULL,0,'','zh',NULL,'ham',2);
INSERT INTO "comment" VALUES(3,1,2,1,1,'Ann','','','How I do it:

```python
print("<b>")  # & more
```

| no | table |','<p>How I do it:</p>
<pre><code class="language-python">print("&lt;b&gt;")  # &amp; more
</code></pre>
<p>| no | table |</p>
',0,'203.0.113.7','','',1,0,1,'visible',1795004300,0,NULL,0,'','en',NULL,'',15);
INSERT INTO "comment" VALUES(4,2,NULL,NULL,NULL,'نور','','','مرحبا بكم','<p>مرحبا بكم</p>
',0,'2001:db8::7','','',0,0,1,'visible',1795090700,0,NULL,0,'','ar',NULL,'',1);
INSERT INTO "comment" VALUES(5,2,NULL,NULL,NULL,'Zoë','','','It''s better; with -- "quotes" and a
second line','<p>It''s better; with -- "quotes" and a<br>
second line</p>
',0,'2001:db8::7','','',0,0,1,'visible',1795090700,0,1795090760,0,'','en',NULL,'',4);
INSERT INTO "comment" VALUES(6,1,NULL,NULL,NULL,'Bo','','','Cheap: https://spam.example','<p>Cheap: <a href="https://spam.example" rel="nofollow ugc noopener noreferrer">https://spam.example</a></p>
',0,'198.51.100.20','','',0,0,0,'spam',1795177160,0,NULL,0,'word: cheap','en',1795177160,'spam',0);
INSERT INTO "comment" VALUES(7,1,NULL,NULL,NULL,'Cy','','','Is it cheap?','<p>Is it cheap?</p>
',0,'198.51.100.21','','',0,0,0,'waiting',1795177160,0,NULL,0,'word: cheap','en',NULL,'',0);
INSERT INTO "comment" VALUES(8,1,NULL,NULL,NULL,'Di','','','To be deleted','<p>To be deleted</p>
',0,'198.51.100.22','','',0,1,1,'deleted',1795177160,0,NULL,0,'','en',1795177160,'',10);
INSERT INTO "comment" VALUES(9,1,8,8,NULL,'Ed','','','A reply to it','<p>A reply to it</p>
',0,'198.51.100.23','','',0,0,1,'visible',1795177160,0,NULL,0,'','en',NULL,'',9);
INSERT INTO "comment" VALUES(10,1,2,1,2,'Owner','','','Thanks, **all** of you.','<p>Thanks, <strong>all</strong> of you.</p>
',0,'198.51.100.7','','',0,0,1,'visible',1795177160,0,NULL,0,'','zh',NULL,'',12);
INSERT INTO "comment" VALUES(11,1,NULL,NULL,NULL,'Flo','flo@example.com','','The newest','<p>The newest</p>
',0,'198.51.100.31','','',0,0,1,'visible',1795180760,0,NULL,0,'','en',NULL,'',13);
INSERT INTO "comment" VALUES(12,3,NULL,NULL,NULL,'Old Friend','friend@example.com','','From before.','<p>From before.</p>
',0,'','','',0,0,1,'visible',1714979289,1,NULL,0,'','',NULL,'',1);
CREATE TABLE comment_liker (
        comment_id INTEGER NOT NULL REFERENCES comment (id),
        visitor    TEXT NOT NULL,
        liked_at   INTEGER,
        PRIMARY KEY (comment_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "comment_liker" VALUES(1,'340b64274f57e251bc8282572cde7382',1795090760);
INSERT INTO "comment_liker" VALUES(1,'7822651fec93e2adfa8cc282df27fa0e',1795090760);
INSERT INTO "comment_liker" VALUES(1,'user 1',NULL);
INSERT INTO "comment_liker" VALUES(3,'7822651fec93e2adfa8cc282df27fa0e',1795090760);
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
        PRIMARY KEY (product, product_id)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "import" VALUES('waline','page /about 0 321 0 ',0);
INSERT INTO "import" VALUES('waline','1 2024-05-06T07:08:09.000Z',12);
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
INSERT INTO "known_network" VALUES(1,'65655c61875ae3173520cf4f54f0bb5c',1795000000);
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
INSERT INTO "outbox" VALUES(16,1,NULL,NULL,'','','bob@example.com','623882 · Lines 验证码 / your code','你的验证码 / Your code:

    623882

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
<title>623882 · Lines 验证码 / your code</title>
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
<p class="code" style="margin:0 0 14px;padding:12px 0;border-radius:8px;background:#eeefed;font-family:Menlo,Consolas,monospace;font-size:32px;line-height:40px;letter-spacing:6px;text-indent:6px;text-align:center" dir="ltr">623882</p>
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
INSERT INTO "page" VALUES(1,'/2026/hello','/2026/hello/','','',NULL,6,3,2,1,1795090760,0,1795000000,15,0,1);
INSERT INTO "page" VALUES(2,'/2026/日记','/2026/日记/','','',NULL,2,2,1,0,1795090760,1,1795177160,4,0,1);
INSERT INTO "page" VALUES(3,'/about','/about/','','',NULL,1,1,321,0,1795983029,0,1714979289,1,0,1);
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
INSERT INTO "page_liker" VALUES(1,'340b64274f57e251bc8282572cde7382',1795090760);
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
INSERT INTO "rate_limit" VALUES('code_email','5c0094495be385fe60dc77d807c6d60422266988a9e980afc8c5aa879c9a0b62',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('code_email','5c0094495be385fe60dc77d807c6d60422266988a9e980afc8c5aa879c9a0b62',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('code_email','5c0094495be385fe60dc77d807c6d60422266988a9e980afc8c5aa879c9a0b62',86400,1,1795267160);
INSERT INTO "rate_limit" VALUES('code_for_email','9de01059bc6c26b85926a4c8aa49cfffee296044300630f89f19d282628aa6d8',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','fd55eb6824e60c022d6020e86b0f6608fefa8b885facc81811b8c88d67ee5644',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','fd55eb6824e60c022d6020e86b0f6608fefa8b885facc81811b8c88d67ee5644',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('notification','follower f52af2f1800fd8e649a45f962d2f70d1',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('notification','owner 8080d2b0ce92467372edf4e92156134e',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('register','c5feea8507ee63ddd909f44160c0908ee03c949202ee9c59f5fc6262a2c9384e',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('report','3b42015ea064eda8381f63c8320834253d97a92fcc2baff7b951ba0b45f28b46',86400,1,1795263560);
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
INSERT INTO "registration" VALUES(1,'9e0ffee784ffdf258b5ed83f69c38d45','bob@example.com','Bob','pbkdf2_sha256$1$77711b3d357fa44aa40cc86cb6302f44$a042e49d574918c704e53e779a1ff3af5bf59dcb0499adcdd60e263fbc3f96a8','6fed12bff9d21c753c69275f78f403184b2fa8160630c81898e318a87f784901','c5feea8507ee63ddd909f44160c0908ee03c949202ee9c59f5fc6262a2c9384e',0,0,'',1795180760,1795181360);
CREATE TABLE report (
        id          INTEGER PRIMARY KEY,
        comment_id  INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        visitor     TEXT NOT NULL,
        reason      TEXT NOT NULL,
        reported_at INTEGER NOT NULL,
        UNIQUE (comment_id, visitor)
    ) STRICT;
INSERT INTO "report" VALUES(1,3,'753157ae00dfe05d862005bdc7523d0a','rude',1795177160);
CREATE TABLE secret (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT;
INSERT INTO "secret" VALUES('token_key','f0aed01796f48e3c7ca695ed32288a68a092918244b9fb7016f4ca437b24bbcf');
CREATE TABLE setting (
        name TEXT PRIMARY KEY,
        text TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
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
INSERT INTO "short_link" VALUES('049fa89ac0086ea412ff72e040b4bb6e092d10faa424fea68b876dabc09c4297','visible','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'8080d2b0ce92467372edf4e92156134e','en',1797772760);
INSERT INTO "short_link" VALUES('0e6c83556eb34b84e6d030d625f6beeedcf8904861d3ca830cdd9b5a205152dd','deleted','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'452fdf2bce09c1ad84f1132dc888e607','en',1797769160);
INSERT INTO "short_link" VALUES('2223b68921c68721f09f2239b2e0794c9844b522a87b14154d917f1cbe5b6e84','deleted','visible',1,'66ada2c7b65399f5a5f3e0659146476da2494559b6895b53239e75f390e50b23',0,0,'452fdf2bce09c1ad84f1132dc888e607','zh',1797592000);
INSERT INTO "short_link" VALUES('29c69f8840820a2d21f6a382da14a5770154c81088674d297ed94994418d7da8','spam','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'8080d2b0ce92467372edf4e92156134e','en',1797772760);
INSERT INTO "short_link" VALUES('2ae32a5ce77f3e2d8c72ffbc844b08839f609b095d468944300711f72117f15b','deleted','visible',4,'510c8a029780d3f1ce6e4a6aabc18b1b0e1bf18a00374eb89a8a6b5a77cf1a01',0,0,'8080d2b0ce92467372edf4e92156134e','en',1797772760);
INSERT INTO "short_link" VALUES('38f1405d095939c6d9103044989e7650c2f4c086dbaee65c0b1e1f70c59346da','deleted','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'8080d2b0ce92467372edf4e92156134e','en',1797772760);
INSERT INTO "short_link" VALUES('5241562be759527fff5c8e6e87fbee37aa8d07d19d04b29e0c52978f6d4ab7d4','deleted','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'8080d2b0ce92467372edf4e92156134e','en',1797772760);
INSERT INTO "short_link" VALUES('53a7730563046deca235475fcb538e6ebb8831877ee42ef00eab52cea62cbb23','deleted','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'8080d2b0ce92467372edf4e92156134e','en',1797772760);
INSERT INTO "short_link" VALUES('825a8773d461f8e3535255305092f4dc7bf8012018573fa1ed1eaf67b90cb40b','spam','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'452fdf2bce09c1ad84f1132dc888e607','en',1797769160);
INSERT INTO "short_link" VALUES('83bbbe3785ed5fe837104d8df64dd96814a439ce62526a54ddf50e06d7f383c9','unfollow','follow',10,'',1,1,'f52af2f1800fd8e649a45f962d2f70d1','en',1826716760);
INSERT INTO "short_link" VALUES('87139ec351b0494c54b4ef89fbc6bad86f2247ec58fb586cb667b2424943eacf','spam','visible',1,'66ada2c7b65399f5a5f3e0659146476da2494559b6895b53239e75f390e50b23',0,0,'452fdf2bce09c1ad84f1132dc888e607','zh',1797592000);
INSERT INTO "short_link" VALUES('968cd8e98919b4ac2fdfd9e34fb913ab7e19110f8d0186e4f80364793501528e','spam','visible',4,'510c8a029780d3f1ce6e4a6aabc18b1b0e1bf18a00374eb89a8a6b5a77cf1a01',0,0,'8080d2b0ce92467372edf4e92156134e','en',1797772760);
INSERT INTO "short_link" VALUES('a23198054578cc5f678df945d3e9f3358151e60e3bc3007474d9df871b929401','confirm','',2,'',0,0,'8b3a1a86165cce0933f5795d9a86176a','zh',1797596300);
INSERT INTO "short_link" VALUES('b4e27dc244bf83704b8a7c2c8b610a9e4d2e5f1ac0981080f421a5ea7087bcfe','visible','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'452fdf2bce09c1ad84f1132dc888e607','en',1797769160);
INSERT INTO "short_link" VALUES('bd5261cb6198898c2e2b3953221887aa78813fc6596f508275060fc6afb850f2','spam','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'8080d2b0ce92467372edf4e92156134e','en',1797772760);
INSERT INTO "short_link" VALUES('be7339295e35313fa4120c403ec60adcc95e2e05e870419b8da193fc3aa0e566','stop','start',1,'',0,0,'f52af2f1800fd8e649a45f962d2f70d1','zh',1826540300);
INSERT INTO "short_link" VALUES('c48f28cddf4cd42e4725fe6b944a72713288a0a27d01a90ee716f13f8db8212a','visible','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'8080d2b0ce92467372edf4e92156134e','en',1797772760);
INSERT INTO "short_link" VALUES('d87d4e347a2b629666bb115164c460863f5beb9480d806ff192f82c8809f3cf1','unfollow','follow',9,'',1,1,'f52af2f1800fd8e649a45f962d2f70d1','en',1826716760);
INSERT INTO "short_link" VALUES('d8b48a415f9d7d38a6c0f041604efbcf369a36a0a2a16253ce8d335a6c2c7587','deleted','visible',5,'f8509048e005e757b8b2aed87c10a436b8e5bc475012bfe8c24fdf651a1087ca',0,0,'8080d2b0ce92467372edf4e92156134e','en',1797772760);
INSERT INTO "short_link" VALUES('f170536e8bf2abd255138c38fcc1c59e171347a4674d4a2c50fe2048b079ac9a','stop_all','start_all',1,'',0,0,'f52af2f1800fd8e649a45f962d2f70d1','zh',1826540300);
INSERT INTO "short_link" VALUES('f3c03042fb1e798f5868670ac5eb6507091bf8d8957ee725f2e33fa5f36015a7','spam','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'8080d2b0ce92467372edf4e92156134e','en',1797772760);
INSERT INTO "short_link" VALUES('fd1bc5f7985e432980e421cd21717287454eeaa47d396781f1fcde404719f9aa','spam','visible',5,'f8509048e005e757b8b2aed87c10a436b8e5bc475012bfe8c24fdf651a1087ca',0,0,'8080d2b0ce92467372edf4e92156134e','en',1797772760);
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
INSERT INTO "subscription" VALUES('8b3a1a86165cce0933f5795d9a86176a',0,'asked');
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
INSERT INTO "term" VALUES(-8739769456866356669,1,0,1795177160);
INSERT INTO "term" VALUES(-5530967890165301360,1,0,1795177160);
INSERT INTO "term" VALUES(-5217253930508719878,1,0,1795177160);
INSERT INTO "term" VALUES(-4955177920269753416,1,0,1795177160);
INSERT INTO "term" VALUES(-1365304639240780668,1,0,1795177160);
INSERT INTO "term" VALUES(-877296106299153940,0,1,1795177160);
INSERT INTO "term" VALUES(0,2,1,1795177160);
INSERT INTO "term" VALUES(1184414266377656657,1,0,1795177160);
INSERT INTO "term" VALUES(1457988561246667798,1,0,1795177160);
INSERT INTO "term" VALUES(1515794188983075363,0,1,1795177160);
INSERT INTO "term" VALUES(3527344499013644989,1,0,1795177160);
INSERT INTO "term" VALUES(4885143377118578938,1,0,1795177160);
INSERT INTO "term" VALUES(5054960956940945556,0,1,1795177160);
INSERT INTO "term" VALUES(6494868087087678181,1,1,1795177160);
INSERT INTO "term" VALUES(6729787595098696668,1,0,1795177160);
INSERT INTO "term" VALUES(6754801116349284890,1,0,1795177160);
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
        AFTER UPDATE OF page_id, user_id, nickname, website, html, country, location, shown,
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
