PRAGMA application_id = 1668116068;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE account (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        email      TEXT NOT NULL UNIQUE,
        nickname   TEXT NOT NULL,
        password   TEXT NOT NULL,
        role       TEXT NOT NULL DEFAULT 'user' CHECK (role IN ('user', 'admin')),
        version    INTEGER NOT NULL DEFAULT 1,
        created_at INTEGER NOT NULL,
        blocked    INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1)),
        language   TEXT NOT NULL DEFAULT '',
        -- What an admin's authenticator app makes its codes from. Empty if they have none.
        app_key    TEXT NOT NULL DEFAULT '',
        -- The time step of the last of these codes: each is good once.
        app_step   INTEGER NOT NULL DEFAULT 0
    ) STRICT;
INSERT INTO "account" VALUES(1,'ann@example.com','Ann','pbkdf2_sha256$1$4357a2d88cf46aa2e1c83c3b9bd64dfe$74116472006d6ebb1db9546e6f475e09e693e03085f19c591ab303d658d1be11','user',1,1795000000,0,'','',0);
INSERT INTO "account" VALUES(2,'owner@example.com','Owner','pbkdf2_sha256$1$29396aa10fe205089f3b1b68a88d5c32$bc236e37e9509e4d97e5d25a9a17c18a8d79f9f19e0046a4958e6c33f3871590','admin',1,1795177160,0,'','',0);
CREATE TABLE admin_link (
        hash       TEXT PRIMARY KEY,
        email      TEXT NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "admin_link" VALUES('1c7b733a7fac0b7c1823fdfe028eaa25442a85ea6a3da95c6a598145e5183e52','second@example.com',1795184360);
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
        detail     TEXT NOT NULL
    ) STRICT;
INSERT INTO "audit" VALUES(1,1795177160,'Owner','spam','6','');
INSERT INTO "audit" VALUES(2,1795177160,'Owner','deleted','8','');
INSERT INTO "audit" VALUES(3,1795177160,'Owner','pin','1','');
INSERT INTO "audit" VALUES(4,1795177160,'Owner','reply','2','');
INSERT INTO "audit" VALUES(5,1795177160,'Owner','block','roulette','word');
INSERT INTO "audit" VALUES(6,1795177160,'Owner','block','spam.example','domain');
INSERT INTO "audit" VALUES(7,1795177160,'Owner','close','/2026/日记/','');
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
',0,'203.0.113.7','','',3,1,1,'visible',1795000000,0,NULL,1,'','zh',NULL,'ham',11);
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
',0,'203.0.113.7','','',1,0,1,'visible',1795004300,0,NULL,0,'','en',NULL,'',7);
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
INSERT INTO "comment_liker" VALUES(1,'3de2991b0b91b733b54c9a1c077d125d',1795090760);
INSERT INTO "comment_liker" VALUES(1,'869e0d6bb448332a4f194ba40f593607',1795090760);
INSERT INTO "comment_liker" VALUES(1,'user 1',NULL);
INSERT INTO "comment_liker" VALUES(3,'869e0d6bb448332a4f194ba40f593607',1795090760);
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
INSERT INTO "known_network" VALUES(1,'d4ef0cbcab6b7473276f60596eacb446',1795000000);
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
        headers         TEXT NOT NULL DEFAULT '{}',
        created_at      INTEGER NOT NULL DEFAULT 0,
        tries           INTEGER NOT NULL DEFAULT 0,
        due_at          INTEGER,
        expires_at      INTEGER NOT NULL,
        failure         TEXT NOT NULL DEFAULT ''
    ) STRICT;
INSERT INTO "outbox" VALUES(2,NULL,1,NULL,'created','','webhook','','','{}',1795000000,2,NULL,1797772760,'ConnectionRefusedError Connection refused');
INSERT INTO "outbox" VALUES(3,NULL,2,NULL,'created','','webhook','','','{}',1795003600,1,NULL,1797772760,'expired');
INSERT INTO "outbox" VALUES(5,NULL,3,NULL,'created','','webhook','','','{}',1795004300,1,NULL,1797772760,'expired');
INSERT INTO "outbox" VALUES(7,NULL,4,NULL,'created','','webhook','','','{}',1795090700,1,NULL,1797772760,'expired');
INSERT INTO "outbox" VALUES(8,NULL,5,NULL,'created','','webhook','','','{}',1795090700,1,NULL,1797772760,'expired');
INSERT INTO "outbox" VALUES(10,NULL,7,NULL,'created','','webhook','','','{}',1795177160,1,1795180765,1795263560,'ConnectionRefusedError Connection refused');
INSERT INTO "outbox" VALUES(12,NULL,9,NULL,'created','','webhook','','','{}',1795177160,0,1795180765,1795263560,'');
INSERT INTO "outbox" VALUES(13,NULL,3,1,'reported','','webhook','','','{}',1795177160,0,1795180765,1795263560,'');
INSERT INTO "outbox" VALUES(16,1,NULL,NULL,'','','bob@example.com','937180 · Lines 验证码 / your code','你的验证码 / Your code:

    937180

请在“Lines”的评论区输入，10 分钟内有效。
Enter it in the comments on Lines within 10 minutes.

如果不是你本人操作，忽略这封邮件即可。
Didn’t ask for this? Ignore this email and nothing will change.
','{}',1795180760,0,1795180760,1795181360,'');
INSERT INTO "outbox" VALUES(17,NULL,11,NULL,'created','','webhook','','','{}',1795180760,0,1795180760,1795267160,'');
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
INSERT INTO "page" VALUES(1,'/2026/hello','/2026/hello/','','',NULL,6,3,2,1,1795090760,0,1795000000,13,0,1);
INSERT INTO "page" VALUES(2,'/2026/日记','/2026/日记/','','',NULL,2,2,1,0,1795090760,1,1795177160,4,0,1);
INSERT INTO "page" VALUES(3,'/about','/about/','','',NULL,1,1,321,0,1795971088,0,1714979289,1,0,1);
CREATE TABLE page_liker (
        page_id  INTEGER NOT NULL REFERENCES page (id),
        visitor  TEXT NOT NULL,
        liked_at INTEGER,
        PRIMARY KEY (page_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "page_liker" VALUES(1,'3de2991b0b91b733b54c9a1c077d125d',1795090760);
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
INSERT INTO "rate_limit" VALUES('code_email','7bfdb5b669a42ac06896001b126550cd1a56880ec386b9e4d13efcb4a128270d',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('code_email','7bfdb5b669a42ac06896001b126550cd1a56880ec386b9e4d13efcb4a128270d',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('code_email','7bfdb5b669a42ac06896001b126550cd1a56880ec386b9e4d13efcb4a128270d',86400,1,1795267160);
INSERT INTO "rate_limit" VALUES('code_for_email','75474a054f41353a6439cd4b8fd677583ac6ed7b8d7032722575626682187160',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','875a699c309b07be274a948e57a88f3df96a37194b445e0fe4418cf03f0000d9',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','875a699c309b07be274a948e57a88f3df96a37194b445e0fe4418cf03f0000d9',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('notification','follower 21a8e0f8f1aacdffef44e1e84b4baad9',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('notification','owner 76df45d9ddb1cfd4e080fb7dcb2bc7e6',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('register','c0d68b692351501405fee6b8585144a11ba650c6e356832b6cd3ddf2ef10d641',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('report','39d69aed0be0638f520f6ef980a148ea07139a9959f811879874c3c7b354daf2',86400,1,1795263560);
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
INSERT INTO "registration" VALUES(1,'1542c93fee15b0360b34987fc52cfe00','bob@example.com','Bob','pbkdf2_sha256$1$8328870cb1e9cde4cdef8de32e8642ba$a91da4b55cd698699d2defe994d7ab4009e4259ad2fc85f039fd919824d6625c','a159c9483c102a7e5acfd309aeb42981cf4a15c1840a8a8d79231dbf9eca6a3f','c0d68b692351501405fee6b8585144a11ba650c6e356832b6cd3ddf2ef10d641',0,0,'',1795180760,1795181360);
CREATE TABLE report (
        id          INTEGER PRIMARY KEY,
        comment_id  INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        visitor     TEXT NOT NULL,
        reason      TEXT NOT NULL,
        reported_at INTEGER NOT NULL,
        UNIQUE (comment_id, visitor)
    ) STRICT;
INSERT INTO "report" VALUES(1,3,'24b413e2aaaa2da52f7fb819bc23d2d9','rude',1795177160);
CREATE TABLE secret (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT;
INSERT INTO "secret" VALUES('token_key','356bde4f0de782a3d82d1e2e7d7f7bb85b982e31e276b301281e18430b6b2132');
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
INSERT INTO "short_link" VALUES('055c4a62328a3081cb8eb9639e862fef89a7df8f517cea1ae0b8a474345ca6c9','spam','visible',1,'66ada2c7b65399f5a5f3e0659146476da2494559b6895b53239e75f390e50b23',0,0,'1a4b69c09d22bf34982da0242c17b16b','zh',1797592000);
INSERT INTO "short_link" VALUES('1a3822e992f719d6b68974afa5a0f47c3456ba02f6032ea200553376e8a9432c','deleted','visible',4,'510c8a029780d3f1ce6e4a6aabc18b1b0e1bf18a00374eb89a8a6b5a77cf1a01',0,0,'76df45d9ddb1cfd4e080fb7dcb2bc7e6','en',1797772760);
INSERT INTO "short_link" VALUES('1f2bffd3af90cd74e234f4ee891571612b392628f672478244f2232181dfbfb2','spam','visible',5,'f8509048e005e757b8b2aed87c10a436b8e5bc475012bfe8c24fdf651a1087ca',0,0,'76df45d9ddb1cfd4e080fb7dcb2bc7e6','en',1797772760);
INSERT INTO "short_link" VALUES('29a33acd24c539b3cb1c22e36f6c12c2446f21f86bb40200816e45fc733b0fda','unfollow','follow',9,'',1,1,'21a8e0f8f1aacdffef44e1e84b4baad9','en',1826716760);
INSERT INTO "short_link" VALUES('2f13c5836a0760143bc3b248bdcdb71983fdb12f8528062b42842fc16db4af9a','visible','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'76df45d9ddb1cfd4e080fb7dcb2bc7e6','en',1797772760);
INSERT INTO "short_link" VALUES('335bc2e7f6b94731505f1d5ed307b60e652c64174dfa8e85c354d8f109cc35cc','spam','visible',4,'510c8a029780d3f1ce6e4a6aabc18b1b0e1bf18a00374eb89a8a6b5a77cf1a01',0,0,'76df45d9ddb1cfd4e080fb7dcb2bc7e6','en',1797772760);
INSERT INTO "short_link" VALUES('3839f63f5ede36f27e5a64e59e5a828799ba86d25b57a685c813c535a0f43ed7','visible','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'76df45d9ddb1cfd4e080fb7dcb2bc7e6','en',1797772760);
INSERT INTO "short_link" VALUES('6acb96ac99601c9712cad701b9f704c4db744ab6c3741776d495c762a9b053eb','unfollow','follow',10,'',1,1,'21a8e0f8f1aacdffef44e1e84b4baad9','en',1826716760);
INSERT INTO "short_link" VALUES('6cd52c94f1b2b42da48c32f0137c958b7eedd7ce96d6cb0730d4a865fe269062','spam','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'76df45d9ddb1cfd4e080fb7dcb2bc7e6','en',1797772760);
INSERT INTO "short_link" VALUES('84470e001d35d618e0ed4d83831b2935720c881ba9a42806e15b8cdc29f5d306','deleted','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'76df45d9ddb1cfd4e080fb7dcb2bc7e6','en',1797772760);
INSERT INTO "short_link" VALUES('85cfb4aca1f0987b723c69179e5e710024ec4d1e904a4e658bfc1282a1101593','spam','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'76df45d9ddb1cfd4e080fb7dcb2bc7e6','en',1797772760);
INSERT INTO "short_link" VALUES('869a2a5873a5d163afdb5ce3acd4f470c9913055e058e7655c28e9b751ee5ebd','deleted','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'76df45d9ddb1cfd4e080fb7dcb2bc7e6','en',1797772760);
INSERT INTO "short_link" VALUES('8f393536374c42985c1f60ce43f0a04ee50a370d978f2b10bbdf610ebe588911','stop_all','start_all',1,'',0,0,'21a8e0f8f1aacdffef44e1e84b4baad9','zh',1826540300);
INSERT INTO "short_link" VALUES('91f92d4f0aea9b00e6d28f9db9320f4efeadc9811d41cfdf74b197c0c994e7eb','deleted','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'1a4b69c09d22bf34982da0242c17b16b','en',1797769160);
INSERT INTO "short_link" VALUES('93df8374803b72453e91b7e18aba10272d1d925cac254b341586d3bb767f8138','visible','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'1a4b69c09d22bf34982da0242c17b16b','en',1797769160);
INSERT INTO "short_link" VALUES('a4786fb652e71f9de90e11e7833edd474e8ba7680965d1e9b4bdf69627e27125','spam','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'76df45d9ddb1cfd4e080fb7dcb2bc7e6','en',1797772760);
INSERT INTO "short_link" VALUES('a4e0f2035f6c607e03257fe817a53abcd3d22ad69e995ce93234f5f309f125e6','deleted','visible',5,'f8509048e005e757b8b2aed87c10a436b8e5bc475012bfe8c24fdf651a1087ca',0,0,'76df45d9ddb1cfd4e080fb7dcb2bc7e6','en',1797772760);
INSERT INTO "short_link" VALUES('a6c0dd87d490951810d80906e09a5ded383a7316f729caacf659a7043342f6c8','spam','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'1a4b69c09d22bf34982da0242c17b16b','en',1797769160);
INSERT INTO "short_link" VALUES('bc1bbccc4ea76bfffa8bf8b4f6a0c4990c5d7a0be84cd58aa91061b6aadf890c','deleted','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'76df45d9ddb1cfd4e080fb7dcb2bc7e6','en',1797772760);
INSERT INTO "short_link" VALUES('c63a6aabfb833d714b402df4a2fa40095d0c20c8e30ea0cc156afa297d504743','confirm','',2,'',0,0,'6227f15d6e142551fceec8c01aa78aee','zh',1797596300);
INSERT INTO "short_link" VALUES('ccfce9c05ccc9d208b6efcfb7b55caf39174c6a0f98dc9c422b8d02772f2224f','deleted','visible',1,'66ada2c7b65399f5a5f3e0659146476da2494559b6895b53239e75f390e50b23',0,0,'1a4b69c09d22bf34982da0242c17b16b','zh',1797592000);
INSERT INTO "short_link" VALUES('e30b763fb5fc6b819f041cbd7643111f432084fd7e3ca166ac1d6ee5b6d0ddf3','stop','start',1,'',0,0,'21a8e0f8f1aacdffef44e1e84b4baad9','zh',1826540300);
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
INSERT INTO "subscription" VALUES('6227f15d6e142551fceec8c01aa78aee',0,'asked');
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
INSERT INTO "term" VALUES(-8839053963990675142,1,0,1795177160);
INSERT INTO "term" VALUES(-8594420391830759515,0,1,1795177160);
INSERT INTO "term" VALUES(-8259427289289568337,1,0,1795177160);
INSERT INTO "term" VALUES(-3109792479757935660,1,0,1795177160);
INSERT INTO "term" VALUES(-2808971188186285681,0,1,1795177160);
INSERT INTO "term" VALUES(-1850824597814642042,1,0,1795177160);
INSERT INTO "term" VALUES(-1273424698590473989,1,0,1795177160);
INSERT INTO "term" VALUES(-108907521977387737,1,0,1795177160);
INSERT INTO "term" VALUES(0,2,1,1795177160);
INSERT INTO "term" VALUES(613265807426927883,1,0,1795177160);
INSERT INTO "term" VALUES(2030351284352721390,0,1,1795177160);
INSERT INTO "term" VALUES(4181968085501709797,1,0,1795177160);
INSERT INTO "term" VALUES(5347416114611865463,1,0,1795177160);
INSERT INTO "term" VALUES(7894198068408974939,1,1,1795177160);
INSERT INTO "term" VALUES(8809391520104498868,1,0,1795177160);
INSERT INTO "term" VALUES(9169975851822438434,1,0,1795177160);
CREATE TABLE voucher (
        hash       TEXT PRIMARY KEY,
        secret     TEXT NOT NULL,
        state      TEXT NOT NULL UNIQUE,
        issuer     TEXT NOT NULL,
        subject    TEXT NOT NULL,
        email      TEXT NOT NULL,
        verified   INTEGER NOT NULL CHECK (verified IN (0, 1)),
        nickname   TEXT NOT NULL,
        language   TEXT NOT NULL,
        expires_at INTEGER NOT NULL,
        used       INTEGER NOT NULL DEFAULT 0 CHECK (used IN (0, 1))
    ) STRICT, WITHOUT ROWID;
INSERT INTO "voucher" VALUES('a hash','a secret','a state','https://id.example','8','gil@example.com',1,'Gil','en',1795999999,0);
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
CREATE TRIGGER change_badge AFTER UPDATE OF role ON account WHEN OLD.role <> NEW.role
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
CREATE INDEX short_link_expires ON short_link (expires_at);
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
