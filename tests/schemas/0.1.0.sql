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
INSERT INTO "account" VALUES(1,'ann@example.com','Ann','pbkdf2_sha256$1$2911bea489fab8c2b4a0b952e429a433$c86fa8df301919c3670a03df770ccd8e74691453b3924af8d465bcdea4bcfb78','user',1,1795000000,0,'','',0);
INSERT INTO "account" VALUES(2,'owner@example.com','Owner','pbkdf2_sha256$1$534cb9dccae2692ca9a9b1ef4f2835ff$0da39bc0ef11934aca25a1cfd3113ede738e6393bd81b9c7ac4170c36ece3480','admin',1,1795177160,0,'','',0);
CREATE TABLE admin_link (
        hash       TEXT PRIMARY KEY,
        email      TEXT NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "admin_link" VALUES('b12e4fe43a45b433a09c8abf7cb8796fea52ebfc1e1835d9d4370a38f1fac017','second@example.com',1795184360);
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
INSERT INTO "comment_liker" VALUES(1,'16e7984059066b34a0e6f41a9d24a6c9',1795090760);
INSERT INTO "comment_liker" VALUES(1,'9cb7682e2303ae0967516cfc8c782012',1795090760);
INSERT INTO "comment_liker" VALUES(1,'user 1',NULL);
INSERT INTO "comment_liker" VALUES(3,'9cb7682e2303ae0967516cfc8c782012',1795090760);
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
INSERT INTO "known_network" VALUES(1,'e75e1c47bcdd1cf662a4b64967c71923',1795000000);
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
INSERT INTO "outbox" VALUES(16,1,NULL,NULL,'','','bob@example.com','070915 · Lines 验证码 / your code','你的验证码 / Your code:

    070915

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
INSERT INTO "page" VALUES(3,'/about','/about/',1,1,321,0,1795965106,0,1714979289,1,0,1);
CREATE TABLE page_liker (
        page_id  INTEGER NOT NULL REFERENCES page (id),
        visitor  TEXT NOT NULL,
        liked_at INTEGER,
        PRIMARY KEY (page_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "page_liker" VALUES(1,'16e7984059066b34a0e6f41a9d24a6c9',1795090760);
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
INSERT INTO "rate_limit" VALUES('code_email','35f2d859f7262c085b696b54348c05294833060bcc6d8737aa94b90640906606',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('code_email','35f2d859f7262c085b696b54348c05294833060bcc6d8737aa94b90640906606',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('code_email','35f2d859f7262c085b696b54348c05294833060bcc6d8737aa94b90640906606',86400,1,1795267160);
INSERT INTO "rate_limit" VALUES('code_for_email','0c061843a31518c8171e2bcbd86f428c9f9aac80703fc2baf5fadb39dd188e9c',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','97ce227c2586ca78b65f2b0ccdd31fb7ed504310006ee5921c4cb2e22b1a1b0d',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','97ce227c2586ca78b65f2b0ccdd31fb7ed504310006ee5921c4cb2e22b1a1b0d',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('notification','follower ff38d1a5457d26d3bef5cfef1c1408db',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('notification','owner a4992657b03b000bc7e8efc70f2c3925',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('register','c4380257398d762388d74618fa0373fae732b73170454939ab350b7a845fa0ad',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('report','301b618c839fb8c32588742c7fc4fedeb2b23287c99b3b9a93501c2e4c6bae6c',86400,1,1795263560);
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
INSERT INTO "registration" VALUES(1,'1e8d3831ed12cdfbe7caf952c5adfe1d','bob@example.com','Bob','pbkdf2_sha256$1$2ce66ef15914cbdc9611e26f4a1d0734$80731c3201b075382892d3c22a39e296858469f2bdc5535192ddb8b8d78925b7','4093ba81f31e58001d9530e4906af549efdde54b8d791d808b500d12bc89f78a','c4380257398d762388d74618fa0373fae732b73170454939ab350b7a845fa0ad',0,0,'',1795180760,1795181360);
CREATE TABLE report (
        id          INTEGER PRIMARY KEY,
        comment_id  INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        visitor     TEXT NOT NULL,
        reason      TEXT NOT NULL,
        reported_at INTEGER NOT NULL,
        UNIQUE (comment_id, visitor)
    ) STRICT;
INSERT INTO "report" VALUES(1,3,'5b1c2ed656eb69484d07d99edbf2d1a4','rude',1795177160);
CREATE TABLE secret (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT;
INSERT INTO "secret" VALUES('token_key','c724d734832c60f6a945c12bea8884755e3db75f2b729194155868f17d4699bb');
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
INSERT INTO "subscription" VALUES('fc327fdc1905807a9ffc43a5d9c78981',0,'asked');
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
INSERT INTO "term" VALUES(-5794822266545908266,0,1,1795177160);
INSERT INTO "term" VALUES(-5535402909288080153,1,0,1795177160);
INSERT INTO "term" VALUES(-4592251009461019227,1,1,1795177160);
INSERT INTO "term" VALUES(-3378502678261431862,0,1,1795177160);
INSERT INTO "term" VALUES(-3303770125958108464,1,0,1795177160);
INSERT INTO "term" VALUES(-3065588601113225356,1,0,1795177160);
INSERT INTO "term" VALUES(-778600984623241695,0,1,1795177160);
INSERT INTO "term" VALUES(0,2,1,1795177160);
INSERT INTO "term" VALUES(2696175263860921675,1,0,1795177160);
INSERT INTO "term" VALUES(4301147164466046053,1,0,1795177160);
INSERT INTO "term" VALUES(4678278840014223505,1,0,1795177160);
INSERT INTO "term" VALUES(4986457304698920958,1,0,1795177160);
INSERT INTO "term" VALUES(5978721872794026047,1,0,1795177160);
INSERT INTO "term" VALUES(6412087155632292377,1,0,1795177160);
INSERT INTO "term" VALUES(6595474062554832576,1,0,1795177160);
INSERT INTO "term" VALUES(8482882980749836940,1,0,1795177160);
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
