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
INSERT INTO "account" VALUES(1,'ann@example.com','Ann','pbkdf2_sha256$1$7106414b47635870bf32f96759671f5c$a0668555734e2267e6eccf55cad07c820d2174d45556d75cf66da23a214a2c16','user',1,1795000000,0,'','',0);
INSERT INTO "account" VALUES(2,'owner@example.com','Owner','pbkdf2_sha256$1$90d7a73d531b3527b8db6a05d69c2963$e456baff5350c9d353df9c2dca2acb8e4c19b0b5e5e1347c24fa2286352d8d15','admin',1,1795177160,0,'','',0);
CREATE TABLE admin_link (
        hash       TEXT PRIMARY KEY,
        email      TEXT NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "admin_link" VALUES('12f99534bef322c38e6c4711824a5aeefe37edfc0d1bb338c46fcf08ac830086','second@example.com',1795184360);
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
INSERT INTO "comment_liker" VALUES(1,'c43fd02f4f2b641d8a189431179d24f7',1795090760);
INSERT INTO "comment_liker" VALUES(1,'cd1befa9c8cf59d0a12c40c59c1feed8',1795090760);
INSERT INTO "comment_liker" VALUES(1,'user 1',NULL);
INSERT INTO "comment_liker" VALUES(3,'cd1befa9c8cf59d0a12c40c59c1feed8',1795090760);
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
INSERT INTO "known_network" VALUES(1,'0b6548c41993af7ee0ab2db1c58d83be',1795000000);
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
INSERT INTO "outbox" VALUES(16,1,NULL,NULL,'','','bob@example.com','104845 · Lines 验证码 / your code','你的验证码 / Your code:

    104845

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
INSERT INTO "page" VALUES(3,'/about','/about/',1,1,321,0,1795964748,0,1714979289,1,0,1);
CREATE TABLE page_liker (
        page_id  INTEGER NOT NULL REFERENCES page (id),
        visitor  TEXT NOT NULL,
        liked_at INTEGER,
        PRIMARY KEY (page_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "page_liker" VALUES(1,'c43fd02f4f2b641d8a189431179d24f7',1795090760);
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
INSERT INTO "rate_limit" VALUES('code_email','9dcf563e28abfa53cc68e348f924a3f1f6f904cc252fb32f360890e730d5cf64',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('code_email','9dcf563e28abfa53cc68e348f924a3f1f6f904cc252fb32f360890e730d5cf64',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('code_email','9dcf563e28abfa53cc68e348f924a3f1f6f904cc252fb32f360890e730d5cf64',86400,1,1795267160);
INSERT INTO "rate_limit" VALUES('code_for_email','9563547e45693c3b309c3f2d0df6afedb0d33ad7ebc92236031531bac5dff8ac',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','d431fe309c710d28ee3efbb00874b83112e4375cbda4fa10f28c0b903c50124a',60,1,1795180820);
INSERT INTO "rate_limit" VALUES('comment','d431fe309c710d28ee3efbb00874b83112e4375cbda4fa10f28c0b903c50124a',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('notification','follower 25484b888542eeccd83a3f4851b3d131',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('notification','owner ffc4c965b7af93e9befc60a1b35276f5',600,1,1795181360);
INSERT INTO "rate_limit" VALUES('register','ba62cdaafc2005c9224d4e47975ce456a9f71b19e789d7c16ed21f2e728a9634',3600,1,1795184360);
INSERT INTO "rate_limit" VALUES('report','66a05b9c0acddc1da9fec34553c9fb0a721f1de399db18dda6b1605b98de2966',86400,1,1795263560);
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
INSERT INTO "registration" VALUES(1,'f1a4a1c9e31577e207c8fa1cf13d4812','bob@example.com','Bob','pbkdf2_sha256$1$095b460782da8a547d7eb62a26e056c5$6b5b5c3a75cb8bb08bbb0220fbdfa88883d0b8a07ac5bdad67d51d66335cd659','cfdaaf00a36ba218c21d133cdca1f7d8de05607a4655233f6fdc629146d80219','ba62cdaafc2005c9224d4e47975ce456a9f71b19e789d7c16ed21f2e728a9634',0,0,'',1795180760,1795181360);
CREATE TABLE report (
        id          INTEGER PRIMARY KEY,
        comment_id  INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        visitor     TEXT NOT NULL,
        reason      TEXT NOT NULL,
        reported_at INTEGER NOT NULL,
        UNIQUE (comment_id, visitor)
    ) STRICT;
INSERT INTO "report" VALUES(1,3,'49c0c05132047fd22636b722c3092efd','rude',1795177160);
CREATE TABLE secret (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT;
INSERT INTO "secret" VALUES('token_key','3d3dda177d3b8f9d9cb08c76fc2ae30638637b1e75c71e1b0acd118c87c43b12');
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
INSERT INTO "subscription" VALUES('046b65c490b5db44126787665d2bc7f4',0,'asked');
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
INSERT INTO "term" VALUES(-8899609639021278406,1,0,1795177160);
INSERT INTO "term" VALUES(-7534332953514140867,1,0,1795177160);
INSERT INTO "term" VALUES(-5615770312446493772,1,0,1795177160);
INSERT INTO "term" VALUES(-5087959613357433114,1,0,1795177160);
INSERT INTO "term" VALUES(-4830019137549888296,1,0,1795177160);
INSERT INTO "term" VALUES(-4748653782932963124,1,0,1795177160);
INSERT INTO "term" VALUES(-1671895031788837624,0,1,1795177160);
INSERT INTO "term" VALUES(-1474193127025978907,0,1,1795177160);
INSERT INTO "term" VALUES(0,2,1,1795177160);
INSERT INTO "term" VALUES(898509428936925960,1,0,1795177160);
INSERT INTO "term" VALUES(1120950901635093124,1,0,1795177160);
INSERT INTO "term" VALUES(2319639553327286940,1,0,1795177160);
INSERT INTO "term" VALUES(5298790213116848891,0,1,1795177160);
INSERT INTO "term" VALUES(5672128242128294283,1,0,1795177160);
INSERT INTO "term" VALUES(8509564365824284107,1,1,1795177160);
INSERT INTO "term" VALUES(8900845836630719203,1,0,1795177160);
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
