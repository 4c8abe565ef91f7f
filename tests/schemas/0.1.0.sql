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
INSERT INTO "account" VALUES(1,'ann@example.com','Ann','pbkdf2_sha256$1$6d6c49e5ca01f8277ba4d5c45b646c88$bc847b9e574c3ef59f9f034be89aaf40d8d6bcd161b2db2e2985bc9f8976b8d9','user',1,1795000000,0,'','',0);
INSERT INTO "account" VALUES(2,'owner@example.com','Owner','pbkdf2_sha256$1$577108dfd75554d9f323c25556da9e55$0da9445a3303898b760221f4031c311435ec775919cfbcc47dd7f6a26b28d153','admin',1,1795177160,0,'','',0);
CREATE TABLE admin_link (
        hash       TEXT PRIMARY KEY,
        email      TEXT NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "admin_link" VALUES('a14bfcee130383a3cbd8659d73f90ba6bc0c0b5067dd335d71819488ab6e348c','second@example.com',1795184360);
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
INSERT INTO "comment_liker" VALUES(1,'149412d34238650068d62c0bdd011f0a',1795090760);
INSERT INTO "comment_liker" VALUES(1,'919ef3020cfb68aa653bebb0f225459b',1795090760);
INSERT INTO "comment_liker" VALUES(1,'user 1',NULL);
INSERT INTO "comment_liker" VALUES(3,'919ef3020cfb68aa653bebb0f225459b',1795090760);
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
INSERT INTO "import" VALUES('waline','page /about 0 321 0',0);
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
INSERT INTO "known_network" VALUES(1,'f8bdfe2138082756d9d7c2c11ff9e8d0',1795000000);
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
INSERT INTO "outbox" VALUES(3,NULL,2,NULL,'created','','webhook','','','{}',1795003600,2,NULL,1797772760,'ConnectionRefusedError Connection refused');
INSERT INTO "outbox" VALUES(5,NULL,3,NULL,'created','','webhook','','','{}',1795004300,2,NULL,1797772760,'ConnectionRefusedError Connection refused');
INSERT INTO "outbox" VALUES(7,NULL,4,NULL,'created','','webhook','','','{}',1795090700,1,NULL,1797772760,'expired');
INSERT INTO "outbox" VALUES(8,NULL,5,NULL,'created','','webhook','','','{}',1795090700,1,NULL,1797772760,'expired');
INSERT INTO "outbox" VALUES(10,NULL,7,NULL,'created','','webhook','','','{}',1795177160,1,1795180765,1795263560,'ConnectionRefusedError Connection refused');
INSERT INTO "outbox" VALUES(12,NULL,9,NULL,'created','','webhook','','','{}',1795177160,1,1795180765,1795263560,'ConnectionRefusedError Connection refused');
INSERT INTO "outbox" VALUES(13,NULL,3,1,'reported','','webhook','','','{}',1795177160,1,1795180765,1795263560,'ConnectionRefusedError Connection refused');
INSERT INTO "outbox" VALUES(16,1,NULL,NULL,'','','bob@example.com','105991 · Lines 验证码 / your code','你的验证码 / Your code:

    105991

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
INSERT INTO "page" VALUES(1,'/2026/hello','/2026/hello/',6,3,2,1,1795090760,0,1795000000,13,0,1);
INSERT INTO "page" VALUES(2,'/2026/日记','/2026/日记/',2,2,1,0,1795090760,1,1795177160,4,0,1);
INSERT INTO "page" VALUES(3,'/about','/about/',1,1,321,0,1795969996,0,1714979289,1,0,1);
CREATE TABLE page_liker (
        page_id  INTEGER NOT NULL REFERENCES page (id),
        visitor  TEXT NOT NULL,
        liked_at INTEGER,
        PRIMARY KEY (page_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "page_liker" VALUES(1,'149412d34238650068d62c0bdd011f0a',1795090760);
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
INSERT INTO "rate_limit" VALUES('code_email','5d334552b1e207a6c596eaf15a868c342a04b61cf71f617db6669c6c44a107b0',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('code_email','5d334552b1e207a6c596eaf15a868c342a04b61cf71f617db6669c6c44a107b0',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('code_email','5d334552b1e207a6c596eaf15a868c342a04b61cf71f617db6669c6c44a107b0',86400,1,1795267160);
INSERT INTO "rate_limit" VALUES('code_for_email','886b2acaf0fa102220ee56171aae68deac478ce19dc471f2464281a6b1ec8713',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','11bc443968ddff393c51fc32083dc7780391baa8091a89040cabddeb91095a13',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','11bc443968ddff393c51fc32083dc7780391baa8091a89040cabddeb91095a13',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('notification','follower 9ad8a0e83e4b9dba2a8f6117c6a81a7c',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('notification','owner aedcfbbdbfb17aea6ce1d22657902f54',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('register','e907b0737a54feb055516f462e1fe6295664586d47501a9f98c390b6ba64a606',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('report','b30806a39ecaf9d2c3f6f90e743e700460cceb3967373d3e9a31ef2364b1cfd9',86400,1,1795263560);
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
INSERT INTO "registration" VALUES(1,'2c8d250c1002fe08d434cb34c7f26f42','bob@example.com','Bob','pbkdf2_sha256$1$09e80228e19b8b835f7984230f563fdd$e1de9e3c93c617760ef92821883ac6ab3102cb7e82d8430ce359b6ea40ad9e30','4759e0e4fb1bf4a9bfd3029508178d96639e2cf5fd5e58c55485a9cbac857719','e907b0737a54feb055516f462e1fe6295664586d47501a9f98c390b6ba64a606',0,0,'',1795180760,1795181360);
CREATE TABLE report (
        id          INTEGER PRIMARY KEY,
        comment_id  INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        visitor     TEXT NOT NULL,
        reason      TEXT NOT NULL,
        reported_at INTEGER NOT NULL,
        UNIQUE (comment_id, visitor)
    ) STRICT;
INSERT INTO "report" VALUES(1,3,'5e062882c79ce9ce98a4b10753654a6e','rude',1795177160);
CREATE TABLE secret (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT;
INSERT INTO "secret" VALUES('token_key','d08b945e4396541e0c4f431c8901a89dd42cb91724a37b4e93c1a7707c734850');
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
INSERT INTO "short_link" VALUES('09a1a35713222dd3f78d0c1e3b20be836189ba7783e3318626b91f217a4e3e62','visible','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'898b2fb95c14a1b383904ff4bdb2ded8','en',1797769160);
INSERT INTO "short_link" VALUES('0c9a9bcd61544163c9a506b8c95e425d022ffaa0d4d158deb7a5d2f3585ecf8f','deleted','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'898b2fb95c14a1b383904ff4bdb2ded8','en',1797769160);
INSERT INTO "short_link" VALUES('21660bfc42d9dc878c00dccda0a398e4dcf796c7fc4f02ebabb860d74950f922','unfollow','follow',10,'',1,1,'9ad8a0e83e4b9dba2a8f6117c6a81a7c','en',1826716760);
INSERT INTO "short_link" VALUES('39f8baa5594cdda260e7a540048d7456b79211f9805ce5475ac7dd7851bb8827','deleted','visible',5,'f8509048e005e757b8b2aed87c10a436b8e5bc475012bfe8c24fdf651a1087ca',0,0,'aedcfbbdbfb17aea6ce1d22657902f54','en',1797772760);
INSERT INTO "short_link" VALUES('3a871ffbe00a3b77e8cccc4d7b3a2fe2758e60da6a6a495926af317f3d36bc03','deleted','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'898b2fb95c14a1b383904ff4bdb2ded8','en',1797769160);
INSERT INTO "short_link" VALUES('40bad84dc5d41890c3e3131af147b875bead9a8da2de140c745828e7d2653f2a','spam','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'aedcfbbdbfb17aea6ce1d22657902f54','en',1797772760);
INSERT INTO "short_link" VALUES('43ca233106704a47ba8fca2ba2cfd864286f245bf0eac99d5fb3fa60bc8749b2','deleted','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'aedcfbbdbfb17aea6ce1d22657902f54','en',1797772760);
INSERT INTO "short_link" VALUES('4890419c2aad2507480a19cbb47605c259702b4338e388caecefa3c6238aafad','deleted','visible',1,'66ada2c7b65399f5a5f3e0659146476da2494559b6895b53239e75f390e50b23',0,0,'898b2fb95c14a1b383904ff4bdb2ded8','zh',1797592000);
INSERT INTO "short_link" VALUES('567f9d599c5877ab32b89efd415e15ba174b80d95c926ba9640c6b3d6f28707d','deleted','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'898b2fb95c14a1b383904ff4bdb2ded8','en',1797769160);
INSERT INTO "short_link" VALUES('56a838c0d25aabb31abf646698d415a7e6de5d489473661c86ab3ac255ff4858','spam','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'898b2fb95c14a1b383904ff4bdb2ded8','en',1797769160);
INSERT INTO "short_link" VALUES('589e8365ed2a96fcbe88585e9e7ad8c21a907856aa026016fa4a6cd6c63d3850','spam','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'898b2fb95c14a1b383904ff4bdb2ded8','en',1797769160);
INSERT INTO "short_link" VALUES('716ebda3a9f2b87fe2a385d161e9335b73505f3f3b37e809ceb3ee3e0f4ef175','unfollow','follow',9,'',1,1,'9ad8a0e83e4b9dba2a8f6117c6a81a7c','en',1826716760);
INSERT INTO "short_link" VALUES('726085c55e8db093ceebba0f086174620ba134f7f801482324c6f388ef78f20e','spam','visible',2,'b7a60bfdbc16206656510afbd93b228ea2ef6ccf9f535f40a3b4af0ff5b9dc59',0,0,'898b2fb95c14a1b383904ff4bdb2ded8','zh',1797595600);
INSERT INTO "short_link" VALUES('7ab2cb5022d6d408fa4e80ba5b1af26aa60f41a219f1f41c098c61aa7831c379','visible','visible',3,'bf9c9639018e408e2a4ae241a588a3113bb483aef335cf68f328313e7463876b',0,0,'aedcfbbdbfb17aea6ce1d22657902f54','en',1797772760);
INSERT INTO "short_link" VALUES('7e450505ed86d438b585284f4d2a6fad25f2b03f61e3062927b53194b8ff3f5c','spam','visible',4,'510c8a029780d3f1ce6e4a6aabc18b1b0e1bf18a00374eb89a8a6b5a77cf1a01',0,0,'aedcfbbdbfb17aea6ce1d22657902f54','en',1797772760);
INSERT INTO "short_link" VALUES('84f84c1647e77351b732a31dfc72d02085d1582d580d252f3e634d016209f475','visible','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'898b2fb95c14a1b383904ff4bdb2ded8','en',1797769160);
INSERT INTO "short_link" VALUES('8f867576377f901a891861430555ed6d55e4f9f5b90992c555a81aaff74b1268','confirm','',2,'',0,0,'4c341a1573a2e2a0039ca10a00ff78db','zh',1797596300);
INSERT INTO "short_link" VALUES('9d609eeadbba3f7c472cfac11bd557954c7c38c837f0c564ce110b870ea41ba3','spam','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'aedcfbbdbfb17aea6ce1d22657902f54','en',1797772760);
INSERT INTO "short_link" VALUES('9ef439b1ba72caf567774513dee3b3c1f13989e9d1d6147a2062f38fd2f390fb','stop_all','start_all',1,'',0,0,'9ad8a0e83e4b9dba2a8f6117c6a81a7c','zh',1826540300);
INSERT INTO "short_link" VALUES('a24a6939aa91445d75bb43b849f08170b8cd9b26ac116e485b9c279e54f4d86a','deleted','visible',4,'510c8a029780d3f1ce6e4a6aabc18b1b0e1bf18a00374eb89a8a6b5a77cf1a01',0,0,'aedcfbbdbfb17aea6ce1d22657902f54','en',1797772760);
INSERT INTO "short_link" VALUES('a8532ed3aef7dda0b178706976dbb62c61210318490ad6386b376c95b1e382a1','stop','start',1,'',0,0,'9ad8a0e83e4b9dba2a8f6117c6a81a7c','zh',1826540300);
INSERT INTO "short_link" VALUES('af818a64dedfb383a01498fffa1dec2d59b539774e1d53d27d0dab3c5641319f','spam','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'aedcfbbdbfb17aea6ce1d22657902f54','en',1797772760);
INSERT INTO "short_link" VALUES('af8f677872d4e9a15ccc211fbdaa1fba279500f56603ceb2c85f7fd839fd4098','spam','visible',1,'66ada2c7b65399f5a5f3e0659146476da2494559b6895b53239e75f390e50b23',0,0,'898b2fb95c14a1b383904ff4bdb2ded8','zh',1797592000);
INSERT INTO "short_link" VALUES('db14f730c194ec97f0e8aab0c1cdf378211b315d8fbd6be79507716ca1871011','spam','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'898b2fb95c14a1b383904ff4bdb2ded8','en',1797769160);
INSERT INTO "short_link" VALUES('dcd070680fb7a040595b6e50eff7fc18c604a70a00946ff7209e5e28f4a37990','deleted','visible',9,'41c4ab59a922dd950a594af347a8328a11ff0eaae3081f0a891b0d1dcf892f7f',0,0,'aedcfbbdbfb17aea6ce1d22657902f54','en',1797772760);
INSERT INTO "short_link" VALUES('e32d77351aa5020acbeed8254a215b01d9459e0e85a34c9815af7c9b63ff3b10','deleted','visible',2,'b7a60bfdbc16206656510afbd93b228ea2ef6ccf9f535f40a3b4af0ff5b9dc59',0,0,'898b2fb95c14a1b383904ff4bdb2ded8','zh',1797595600);
INSERT INTO "short_link" VALUES('e5fd5591d795125511da18657b7b5bc3ef550273a25426074a80e57f4f5a09d1','visible','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'aedcfbbdbfb17aea6ce1d22657902f54','en',1797772760);
INSERT INTO "short_link" VALUES('e97418e992539161f23113d69ac444002d1817db40e6df1c1d620dae050d5b7d','deleted','waiting',7,'c531d6047c2268c1e9079658cd401152dd7c2750e59dbf270579e8be254ce82e',0,0,'aedcfbbdbfb17aea6ce1d22657902f54','en',1797772760);
INSERT INTO "short_link" VALUES('f792eae1654a6e3e1ac5a237768b77d58a1f63259e0d82116d0298cc2edb3998','spam','visible',5,'f8509048e005e757b8b2aed87c10a436b8e5bc475012bfe8c24fdf651a1087ca',0,0,'aedcfbbdbfb17aea6ce1d22657902f54','en',1797772760);
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
INSERT INTO "subscription" VALUES('4c341a1573a2e2a0039ca10a00ff78db',0,'asked');
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
INSERT INTO "term" VALUES(-9203238378342850237,0,1,1795177160);
INSERT INTO "term" VALUES(-7601269968257024030,1,0,1795177160);
INSERT INTO "term" VALUES(-7178950620232644288,1,0,1795177160);
INSERT INTO "term" VALUES(-4756148041952225067,1,0,1795177160);
INSERT INTO "term" VALUES(-1872365649532943960,1,0,1795177160);
INSERT INTO "term" VALUES(0,2,1,1795177160);
INSERT INTO "term" VALUES(292902752045789674,1,0,1795177160);
INSERT INTO "term" VALUES(1129783371905957848,1,1,1795177160);
INSERT INTO "term" VALUES(1636478387065081662,0,1,1795177160);
INSERT INTO "term" VALUES(3381705563798791637,0,1,1795177160);
INSERT INTO "term" VALUES(3852706540188510745,1,0,1795177160);
INSERT INTO "term" VALUES(4186323436904162185,1,0,1795177160);
INSERT INTO "term" VALUES(4609319428531247828,1,0,1795177160);
INSERT INTO "term" VALUES(6922016544339761831,1,0,1795177160);
INSERT INTO "term" VALUES(7313958774491312496,1,0,1795177160);
INSERT INTO "term" VALUES(7859553232249678990,1,0,1795177160);
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
