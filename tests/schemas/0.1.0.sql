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
INSERT INTO "account" VALUES(1,'ann@example.com','Ann','pbkdf2_sha256$1$ad9ecc9442bdd91911632e259ee01046$6afc17628a3b48560dd6840c6dadde7ada20a41acc8f9c6f67efad76644a46d8','user',1,1795000000,0,'','',0,'0123456789abcdef0123456789abcdef');
INSERT INTO "account" VALUES(2,'owner@example.com','Owner','pbkdf2_sha256$1$74f02a17777c0322ea5f34373d52161d$8bd1fd2cdfa7fe638711ff9b77afc442b2ae11c0536ff20a0803b785986ac054','admin',1,1795177160,0,'','',0,'');
CREATE TABLE admin_link (
        hash       TEXT PRIMARY KEY,
        email      TEXT NOT NULL,
        -- What it makes of the account.
        role       TEXT NOT NULL CHECK (role IN ('moderator', 'admin')),
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "admin_link" VALUES('8ddb36846d7aec05084a036d79b80648388e141083b1c209140a3f94a1f69d93','second@example.com','admin',1795184360);
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
INSERT INTO "comment_liker" VALUES(1,'85fa63de145f95d8b90f45b736d6b2fe',1795090760);
INSERT INTO "comment_liker" VALUES(1,'f87f1e52e7c853e10ca4858dc0ce9dd8',1795090760);
INSERT INTO "comment_liker" VALUES(1,'user 1',NULL);
INSERT INTO "comment_liker" VALUES(3,'85fa63de145f95d8b90f45b736d6b2fe',1795090760);
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
INSERT INTO "known_network" VALUES(1,'8c6875a2773bdb466f013d2fb7fc7473',1795000000);
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
INSERT INTO "outbox" VALUES(16,1,NULL,NULL,'','','bob@example.com','313402 · Lines 验证码 / your code','你的验证码 / Your code:

    313402

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
<title>313402 · Lines 验证码 / your code</title>
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
<p class="code" style="margin:0 0 14px;padding:12px 0;border-radius:8px;background:#eeefed;font-family:Menlo,Consolas,monospace;font-size:32px;line-height:40px;letter-spacing:6px;text-indent:6px;text-align:center" dir="ltr">313402</p>
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
INSERT INTO "page" VALUES(3,'/about','/about/','','',NULL,1,1,321,0,1795983040,0,1714979289,1,0,1);
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
INSERT INTO "page_liker" VALUES(1,'f87f1e52e7c853e10ca4858dc0ce9dd8',1795090760);
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
INSERT INTO "rate_limit" VALUES('code_email','03f26a7b244b71e0b76e4fc72a5f75f61d9931560ae5259fdc1832b8a7fd9d10',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('code_email','03f26a7b244b71e0b76e4fc72a5f75f61d9931560ae5259fdc1832b8a7fd9d10',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('code_email','03f26a7b244b71e0b76e4fc72a5f75f61d9931560ae5259fdc1832b8a7fd9d10',86400,1,1795267160);
INSERT INTO "rate_limit" VALUES('code_for_email','271b9624144d7595ecde7fc0b6ed897d0817f0f7c4a5a61941dea3b99a66ddcd',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','9c73494a6399b95aa51c8ef4caf34bee47b1fa710362182e35618fe813a15492',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','9c73494a6399b95aa51c8ef4caf34bee47b1fa710362182e35618fe813a15492',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('notification','follower 2edd8dd17e753737d8721a90b8da0c8d',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('notification','owner 0c529c774020c8f833cb4be62a5abed3',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('register','e07ed6281d5f8f05485d1cb0dbe8244b372e33db094c21cdde1ac5e55e370dad',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('report','52467182d7aa2488c8a276c7f89daf477e3d37859325ecb942085f3b97774403',86400,1,1795263560);
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
INSERT INTO "registration" VALUES(1,'7cb61df8b5fbfcdbd35468ad8236c390','bob@example.com','Bob','pbkdf2_sha256$1$5df469e6faf81c51520cb8e4246c3510$6ff44f95cc66ed1949e46ec5f0527e0a095c98b08dca4ef5cc6d8d23e53dd40c','e61d85f66e1d7e3df95bc416a07383fa5086619fb8e3f9b2de32a594cd9a98be','e07ed6281d5f8f05485d1cb0dbe8244b372e33db094c21cdde1ac5e55e370dad',0,0,'',1795180760,1795181360);
CREATE TABLE report (
        id          INTEGER PRIMARY KEY,
        comment_id  INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        visitor     TEXT NOT NULL,
        reason      TEXT NOT NULL,
        reported_at INTEGER NOT NULL,
        UNIQUE (comment_id, visitor)
    ) STRICT;
INSERT INTO "report" VALUES(1,3,'a25a4b72f1bdc36da1146818e186f46e','rude',1795177160);
CREATE TABLE secret (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT;
INSERT INTO "secret" VALUES('token_key','8f7baf95633e8e55603c6779c3f27c6a3076f64fa36e46b0e95d064c6cacdb2c');
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
INSERT INTO "short_link" VALUES('010d6f9128f3099d13655a47dc646d33b1ec2868afee815f53e64c4202be5d67','spam','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'0c529c774020c8f833cb4be62a5abed3','en',1797772760);
INSERT INTO "short_link" VALUES('0781ca9c98f64353e0043a7f6e6d9cedaa8f628b58301588dbfc782c2d5dcbf8','deleted','visible',5,'f8509048e005e757b8b2aed87c10a436b8e5bc475012bfe8c24fdf651a1087ca',0,0,'0c529c774020c8f833cb4be62a5abed3','en',1797772760);
INSERT INTO "short_link" VALUES('1f5308e24b6f1f0d5d76b1e76d67ed907c4c41302a61c5f195f19a80546a9cb4','spam','visible',5,'f8509048e005e757b8b2aed87c10a436b8e5bc475012bfe8c24fdf651a1087ca',0,0,'0c529c774020c8f833cb4be62a5abed3','en',1797772760);
INSERT INTO "short_link" VALUES('314f9e58b5ebd4c20901598066c15db0c83ba1d17d8658f4df77aa5026cac4f6','deleted','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'5c37dbdacd6b02965bb25d2dcfca29a2','en',1797769160);
INSERT INTO "short_link" VALUES('53fbbc20aa8dd983f2f113ed80c40217d60a9efb500a140992d8597e7527ac7e','spam','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'5c37dbdacd6b02965bb25d2dcfca29a2','en',1797769160);
INSERT INTO "short_link" VALUES('591017bf8342609ebcb8d1c1a24dd1ef9154c1054fe5f98885eff3d151541431','deleted','visible',4,'510c8a029780d3f1ce6e4a6aabc18b1b0e1bf18a00374eb89a8a6b5a77cf1a01',0,0,'0c529c774020c8f833cb4be62a5abed3','en',1797772760);
INSERT INTO "short_link" VALUES('5e250002c867b87e2ef81f5fd9147a8fc246984f59c5a3cf97c40010a29f1c94','deleted','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'0c529c774020c8f833cb4be62a5abed3','en',1797772760);
INSERT INTO "short_link" VALUES('6c0e77f15fe664825917de64bfc5f2f2a3a2cb58f61c1640feb4115ff03f3a5a','visible','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'5c37dbdacd6b02965bb25d2dcfca29a2','en',1797769160);
INSERT INTO "short_link" VALUES('6ee15a0d9ab706025d2a7f592e061035a87fe4763761c253e17fb61a10cb64d7','deleted','visible',1,'66ada2c7b65399f5a5f3e0659146476da2494559b6895b53239e75f390e50b23',0,0,'5c37dbdacd6b02965bb25d2dcfca29a2','zh',1797592000);
INSERT INTO "short_link" VALUES('720263446133ccb4ef9739c963c2be8161d14f108d0a46a996069d77df85ca66','confirm','',2,'',0,0,'64685c06a13c0f645e6a71ac4737d5d8','zh',1797596300);
INSERT INTO "short_link" VALUES('82d6c54cdebeca6ceb8610771b488582cc1f4c27e279976149ec11d7878dea48','unfollow','follow',10,'',1,1,'2edd8dd17e753737d8721a90b8da0c8d','en',1826716760);
INSERT INTO "short_link" VALUES('857eeb697511881543bd07836dd5ac8570533f0ded3683a571848571ef9f8243','spam','visible',1,'66ada2c7b65399f5a5f3e0659146476da2494559b6895b53239e75f390e50b23',0,0,'5c37dbdacd6b02965bb25d2dcfca29a2','zh',1797592000);
INSERT INTO "short_link" VALUES('88ca864eb29f01e111a62059a4c291738f7188e96e0aa47d075e66f7ee8a5e85','stop_all','start_all',1,'',0,0,'2edd8dd17e753737d8721a90b8da0c8d','zh',1826540300);
INSERT INTO "short_link" VALUES('88fb855857d10d322b16eb77dbdfd6ab4f81e94f86b8cf5258470b0683b5e917','visible','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'0c529c774020c8f833cb4be62a5abed3','en',1797772760);
INSERT INTO "short_link" VALUES('8f8d473fc8771e469b4203c451477f92b1983b086f7b9637497505c1d54fd1be','deleted','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'0c529c774020c8f833cb4be62a5abed3','en',1797772760);
INSERT INTO "short_link" VALUES('9a8b524f2769df99fa031980de0de7e1edba50611570e69c02cbfd81dcefa987','visible','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'0c529c774020c8f833cb4be62a5abed3','en',1797772760);
INSERT INTO "short_link" VALUES('9aec2d39574d0dfd623e8ada17751b901bf704b33f987e8efd9b472158f66874','spam','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'0c529c774020c8f833cb4be62a5abed3','en',1797772760);
INSERT INTO "short_link" VALUES('d46ca2942556d86ce0751309999e7795344d1c9ae7786b3962856fc622308baa','unfollow','follow',9,'',1,1,'2edd8dd17e753737d8721a90b8da0c8d','en',1826716760);
INSERT INTO "short_link" VALUES('da1ce74d961be25fdbebc0e73b3950bb8caf99e0cf45be1cab978cae37d98906','deleted','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'0c529c774020c8f833cb4be62a5abed3','en',1797772760);
INSERT INTO "short_link" VALUES('db15c59f1801db5ecad94edad59ff14ebc8aa786fbfd8b2cc555431a1ed07cbe','spam','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'0c529c774020c8f833cb4be62a5abed3','en',1797772760);
INSERT INTO "short_link" VALUES('e49d107381d6d953042a22499cc023f630be3beb052b90abba891a54e8ec24a0','stop','start',1,'',0,0,'2edd8dd17e753737d8721a90b8da0c8d','zh',1826540300);
INSERT INTO "short_link" VALUES('f5a11c131daf2e8520edc81ec123240e7249a92f1d22f45674d45f9aab36c28e','spam','visible',4,'510c8a029780d3f1ce6e4a6aabc18b1b0e1bf18a00374eb89a8a6b5a77cf1a01',0,0,'0c529c774020c8f833cb4be62a5abed3','en',1797772760);
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
INSERT INTO "subscription" VALUES('64685c06a13c0f645e6a71ac4737d5d8',0,'asked');
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
INSERT INTO "term" VALUES(-9201301663482058799,1,0,1795177160);
INSERT INTO "term" VALUES(-7581120169968669267,1,1,1795177160);
INSERT INTO "term" VALUES(-4402915267848825466,1,0,1795177160);
INSERT INTO "term" VALUES(-3135516695951563929,1,0,1795177160);
INSERT INTO "term" VALUES(-2396177245760407548,1,0,1795177160);
INSERT INTO "term" VALUES(-2131005340569382995,0,1,1795177160);
INSERT INTO "term" VALUES(0,2,1,1795177160);
INSERT INTO "term" VALUES(1720193956447045337,1,0,1795177160);
INSERT INTO "term" VALUES(3576992141991022611,0,1,1795177160);
INSERT INTO "term" VALUES(4722886732270073408,1,0,1795177160);
INSERT INTO "term" VALUES(5193761986400127157,1,0,1795177160);
INSERT INTO "term" VALUES(5272464548428251039,1,0,1795177160);
INSERT INTO "term" VALUES(6272215585731498624,1,0,1795177160);
INSERT INTO "term" VALUES(6825323239724005261,0,1,1795177160);
INSERT INTO "term" VALUES(7741961378128438749,1,0,1795177160);
INSERT INTO "term" VALUES(7951414557551772074,1,0,1795177160);
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
