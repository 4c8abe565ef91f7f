-- A database of schema 6, with rows in every table.
PRAGMA application_id = 1668116084;
PRAGMA user_version = 6;
BEGIN TRANSACTION;
CREATE TABLE account (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        email      TEXT NOT NULL UNIQUE,
        nickname   TEXT NOT NULL,
        password   TEXT NOT NULL,
        role       TEXT NOT NULL DEFAULT 'user' CHECK (role IN ('user', 'admin')),
        version    INTEGER NOT NULL DEFAULT 1,
        created_at INTEGER NOT NULL
    , blocked INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1))) STRICT;
INSERT INTO "account" VALUES(1,'ann@example.com','Ann','pbkdf2_sha256$1$fac81ab6f6a944853218788c8cb31d90$5e9b815d97a52e9ebea9bdab66abe79baa887617c9f75a06ce2422aa186f5969','admin',3,1760440000,0);
INSERT INTO "account" VALUES(4,'bob@example.com','鲍勃','pbkdf2_sha256$1$d71785a32ded3ac9bbe1762956825dd1$a4b2c0a51887776f12ed558f49de957f2c2f93f3973d6958bd776d43f7745051','user',1,1795000060,0);
INSERT INTO "account" VALUES(6,'dan@xn--bcher-kva.example','O''Dan; --','pbkdf2_sha256$1$28e37dd223e04edd7ba28c89fac011f3$badb93284434f9ba7ba25dd357f6e335c8926e9f59a4cfb3adcf81931e5c57a9','user',1795000000000,1795000061,1);
CREATE TABLE admin_link (
        hash       TEXT PRIMARY KEY,
        email      TEXT NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "admin_link" VALUES('3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9','eve@example.com',1795003600);
CREATE TABLE audit (
        id         INTEGER PRIMARY KEY,
        created_at INTEGER NOT NULL,
        who        TEXT NOT NULL,
        action     TEXT NOT NULL,
        subject    TEXT NOT NULL,
        detail     TEXT NOT NULL
    ) STRICT;
INSERT INTO "audit" VALUES(1,1794991000,'Ann','claim','','');
INSERT INTO "audit" VALUES(2,1794992800,'Ann','deleted','10','');
INSERT INTO "audit" VALUES(3,1794996400,'Ann','spam','9','');
INSERT INTO "audit" VALUES(8,1794999900,'','rename','/old/','/2026/hello/');
INSERT INTO "audit" VALUES(9,1794999950,'Ann','block','赌场; --','word');
CREATE TABLE block (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        kind       TEXT NOT NULL CHECK (kind IN ('address', 'email', 'domain', 'word')),
        value      TEXT NOT NULL,
        note       TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER,
        UNIQUE (kind, value)
    ) STRICT;
INSERT INTO "block" VALUES(1,'address','192.0.2.0/24','robots',1794999001,NULL);
INSERT INTO "block" VALUES(2,'email','spam@example.net','',1794999002,1795086400);
INSERT INTO "block" VALUES(3,'domain','casino.example','',1794999003,NULL);
INSERT INTO "block" VALUES(7,'word','赌场; --','it''s all',1794999007,1797592000);
CREATE TABLE budget (
        name    TEXT NOT NULL,
        subject TEXT NOT NULL,
        used    INTEGER NOT NULL,
        ends_at INTEGER NOT NULL,
        PRIMARY KEY (name, subject)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "budget" VALUES('bundle','',1,1795000540);
INSERT INTO "budget" VALUES('comments/3600','',12,1795003600);
INSERT INTO "budget" VALUES('guess/86400','6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f',0,1795086400);
INSERT INTO "budget" VALUES('login/600','5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e',3,1795000600);
CREATE TABLE comment (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        page_id    INTEGER NOT NULL REFERENCES page (id),
        parent_id  INTEGER REFERENCES comment (id),
        thread_id  INTEGER REFERENCES comment (id),
        user_id    INTEGER REFERENCES account (id),
        nickname   TEXT NOT NULL,
        email      TEXT NOT NULL,
        website    TEXT NOT NULL,
        content    TEXT NOT NULL,
        html       TEXT NOT NULL,
        ip         TEXT NOT NULL,
        country    TEXT NOT NULL,
        location   TEXT NOT NULL,
        likes      INTEGER NOT NULL DEFAULT 0,
        replies    INTEGER NOT NULL DEFAULT 0,
        shown      INTEGER NOT NULL DEFAULT 0 CHECK (shown IN (0, 1)),
        status     TEXT NOT NULL CHECK (status IN ('visible', 'waiting', 'spam', 'deleted')),
        created_at INTEGER NOT NULL
    , masked INTEGER NOT NULL DEFAULT 0 CHECK (masked IN (0, 1)), edited_at INTEGER, pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)), held TEXT NOT NULL DEFAULT '', language TEXT NOT NULL DEFAULT '', judged_at INTEGER, owner_due INTEGER NOT NULL DEFAULT 0, author_due INTEGER NOT NULL DEFAULT 0, follower_due INTEGER NOT NULL DEFAULT 0, learnt TEXT NOT NULL DEFAULT ''
        CHECK (learnt IN ('', 'ham', 'spam'))) STRICT;
INSERT INTO "comment" VALUES(1,1,NULL,NULL,1,'Ann','ann@example.com','https://Ann.example/About','It''s first; -- no','<p>It''s first; -- no</p>
','203.0.113.7','DE','',4,2,1,'visible',1794827210,0,1794913600,1,'','en',NULL,0,0,0,'');
INSERT INTO "comment" VALUES(2,1,1,1,4,'鲍勃','bob@example.com','','二','<p>二</p>
','2001:db8::7','CN','浙江 杭州',0,0,1,'visible',1794827220,0,NULL,0,'','zh',NULL,0,0,0,'');
INSERT INTO "comment" VALUES(3,1,1,1,NULL,'','','','','','','','',0,1,1,'deleted',1794827230,1,NULL,0,'','',NULL,0,0,0,'');
INSERT INTO "comment" VALUES(4,1,3,1,NULL,'Guest','guest@example.com','','three
lines

    code; ''quoted'' "twice"
-- here','<p>three<br>
lines</p>
<pre><code>code; ''quoted'' "twice"</code></pre>
<p>-- here</p>
','198.51.100.9','','',1,1,1,'visible',1794827240,0,1794996400,0,'','en',NULL,0,0,0,'');
INSERT INTO "comment" VALUES(5,1,4,1,NULL,'Guest','','','see https://x.example','<p>see <a href="https://x.example" rel="nofollow ugc noopener noreferrer">https://x.example</a></p>
','198.51.100.9','','',0,0,0,'waiting',1794827250,0,NULL,0,'links','en',NULL,1795000600,1795000601,0,'');
INSERT INTO "comment" VALUES(6,1,4,1,NULL,'ليلى','','','مرحبا 👋🏽 é','<p>مرحبا 👋🏽 é</p>
','198.51.100.9','','',0,0,1,'visible',1794827260,0,NULL,0,'','ar',NULL,0,1795000600,1795000100,'');
INSERT INTO "comment" VALUES(9,1,NULL,NULL,NULL,'Seller','','','buy ; now','<p>buy ; now</p>
','192.0.2.66','','',0,0,0,'spam',1794827290,0,NULL,0,'word: buy','en',1794996400,0,0,0,'spam');
INSERT INTO "comment" VALUES(10,1,NULL,NULL,NULL,'Rude','','','rude','<p>rude</p>
','198.51.100.9','','',0,1,1,'deleted',1794827300,0,NULL,0,'','en',1794992800,0,0,0,'');
INSERT INTO "comment" VALUES(11,1,10,10,NULL,'Guest','','','an answer to it','<p>an answer to it</p>
','198.51.100.9','','',0,0,1,'visible',1794827310,0,NULL,0,'','en',NULL,0,0,0,'');
INSERT INTO "comment" VALUES(12,1,NULL,NULL,NULL,'Guest','','','held','<p>held</p>
','198.51.100.9','','',1,0,0,'waiting',1794827320,0,NULL,0,'first','en',NULL,0,0,1795000100,'');
INSERT INTO "comment" VALUES(13,1,NULL,NULL,NULL,'','','','','','','','',0,0,0,'deleted',1794827330,1,NULL,0,'','',NULL,0,0,0,'');
INSERT INTO "comment" VALUES(14,1,13,13,NULL,'Guest','','','waits below','<p>waits below</p>
','198.51.100.9','','',0,0,0,'waiting',1794827340,0,NULL,0,'flood','en',NULL,0,0,0,'');
INSERT INTO "comment" VALUES(15,2,NULL,NULL,NULL,'旧','','','old','<p>old</p>
','203.0.113.0','','',3,1,1,'visible',1789816000,1,NULL,0,'','en',NULL,0,0,0,'');
INSERT INTO "comment" VALUES(16,2,15,15,NULL,'Guest','','','old, of six','<p>old, of six</p>
','2001:db8:12::','','',1,0,1,'visible',1790680000,1,NULL,0,'','en',NULL,0,0,0,'');
INSERT INTO "comment" VALUES(17,3,NULL,NULL,NULL,'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx','','','on a route','<p>on a route</p>
','','','',0,0,1,'visible',1794827370,0,NULL,0,'','en',NULL,0,0,0,'');
INSERT INTO "comment" VALUES(18,5,NULL,NULL,NULL,'Guest','','http://g.example/?a=1&b=2','elsewhere','<p>elsewhere</p>
','198.51.100.9','','',0,0,1,'visible',1794827380,0,NULL,0,'','en',NULL,0,0,0,'');
INSERT INTO "comment" VALUES(20,7,NULL,NULL,NULL,'','','','','','','','',0,0,0,'deleted',1794827400,1,NULL,0,'','',NULL,0,0,0,'');
INSERT INTO "comment" VALUES(21,7,NULL,NULL,6,'O''Dan; --','dan@xn--bcher-kva.example','','last','<p>last</p>
','198.51.100.9','','',0,0,1,'visible',1794827410,0,NULL,0,'','en',NULL,1795000200,0,0,'ham');
CREATE TABLE comment_liker (
        comment_id INTEGER NOT NULL REFERENCES comment (id),
        visitor    TEXT NOT NULL, liked_at INTEGER,
        PRIMARY KEY (comment_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "comment_liker" VALUES(1,'d53a81b4ae51f6f35790fe4caac91206',1794999900);
INSERT INTO "comment_liker" VALUES(1,'past -4611686018427387905',NULL);
INSERT INTO "comment_liker" VALUES(1,'user 1',NULL);
INSERT INTO "comment_liker" VALUES(1,'user 4',NULL);
INSERT INTO "comment_liker" VALUES(4,'a0b1c2d3e4f5061728394a5b6c7d8e9f',1794999800);
INSERT INTO "comment_liker" VALUES(12,'user 4',NULL);
INSERT INTO "comment_liker" VALUES(15,'import 15 1',NULL);
INSERT INTO "comment_liker" VALUES(15,'past -1',NULL);
INSERT INTO "comment_liker" VALUES(15,'past 77',NULL);
INSERT INTO "comment_liker" VALUES(16,'import 16 1',NULL);
CREATE TABLE day (
        day      INTEGER PRIMARY KEY,
        comments INTEGER NOT NULL DEFAULT 0,
        views    INTEGER NOT NULL DEFAULT 0,
        likes    INTEGER NOT NULL DEFAULT 0
    ) STRICT;
INSERT INTO "day" VALUES(20772,3,20,1);
INSERT INTO "day" VALUES(20775,14,41,7);
CREATE TABLE follow (
        user_id  INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        page_id  INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
        language TEXT NOT NULL,
        PRIMARY KEY (user_id, page_id)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "follow" VALUES(1,1,'en');
INSERT INTO "follow" VALUES(4,1,'zh');
INSERT INTO "follow" VALUES(4,7,'zh');
CREATE TABLE import (
        product    TEXT NOT NULL,
        product_id TEXT NOT NULL,
        comment_id INTEGER NOT NULL,
        original   TEXT NOT NULL,
        PRIMARY KEY (product, product_id)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "import" VALUES('commentd','16',16,'');
INSERT INTO "import" VALUES('disqus','5550001;--',4,'<p>three<br>it''s</p>');
INSERT INTO "import" VALUES('disqus','gone',8,'');
INSERT INTO "import" VALUES('waline','65f0c0ffee',15,'');
INSERT INTO "import" VALUES('waline','65f0c0ffef',16,'');
CREATE TABLE outbox (
        id              INTEGER PRIMARY KEY,
        registration_id INTEGER REFERENCES registration (id) ON DELETE CASCADE,
        recipient       TEXT NOT NULL,
        message         TEXT NOT NULL,
        tries           INTEGER NOT NULL DEFAULT 0,
        due_at          INTEGER,
        expires_at      INTEGER NOT NULL,
        failure         TEXT NOT NULL DEFAULT ''
    , about TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO "outbox" VALUES(1,1,'cid@example.com','From: commentd <commentd@localhost>
To: cid@example.com
Subject: 123456
Content-Type: text/plain; charset="utf-8"

123456
',0,1795000000,1795000600,'','');
INSERT INTO "outbox" VALUES(2,NULL,'nobody@example.com','From: commentd <commentd@localhost>
To: nobody@example.com
Subject: New comment
Content-Type: text/plain; charset="utf-8"

> comment
',5,NULL,1796209600,'550 5.1.1 no such user','owner 1,0 ');
INSERT INTO "outbox" VALUES(3,NULL,'guest@example.com','From: commentd <commentd@localhost>
To: guest@example.com
Subject: An answer
Content-Type: text/plain; charset="utf-8"

> comment 6
',1,1795000060,1795086400,'timed out','author 6,4 ');
INSERT INTO "outbox" VALUES(5,NULL,'ann@example.com','From: commentd <commentd@localhost>
To: ann@example.com
Subject: Changed
Content-Type: text/plain; charset="utf-8"

Your password
',2,1795001800,1795086400,'421 later','');
INSERT INTO "outbox" VALUES(6,NULL,'webhook','{"type": "comment.reported", "timestamp": "2026-11-18T11:05:00+00:00", "data": {"id": 2, "reason": "rude; it''s"}}',1,1795000400,1795086300,'ConnectionError 500','webhook 2,0 ');
INSERT INTO "outbox" VALUES(7,NULL,'webhook','{"text": "a chat"}',9,NULL,1797592000,'expired','webhook 4,0 ');
INSERT INTO "outbox" VALUES(8,NULL,'bob@example.com','From: commentd <commentd@localhost>
To: bob@example.com
Subject: New comments
Content-Type: text/plain; charset="utf-8"

> comments 4 and 6
',1,1795000500,1795086400,'timed out','follow 4,0 6,0 ');
INSERT INTO "outbox" VALUES(9,NULL,'guest@example.com','From: commentd <commentd@localhost>
To: guest@example.com
Subject: Do you want emails?
Content-Type: text/plain; charset="utf-8"

Confirm
',1,1795000600,1795086400,'timed out','6303d09f83ce20816e345a33d0e3fa39 6,4 ');
INSERT INTO "outbox" VALUES(10,NULL,'ann@example.com','From: commentd <commentd@localhost>
To: ann@example.com
Subject: New comments
Content-Type: text/plain; charset="utf-8"

> what was hidden since, and comment 16
',1,1795000700,1795086400,'timed out','owner 9,0 16,0 ');
CREATE TABLE page (
        id         INTEGER PRIMARY KEY,
        key        TEXT NOT NULL UNIQUE,
        page_url   TEXT NOT NULL,
        total      INTEGER NOT NULL DEFAULT 0,
        threads    INTEGER NOT NULL DEFAULT 0,
        views      INTEGER NOT NULL DEFAULT 0,
        page_likes INTEGER NOT NULL DEFAULT 0,
        seen_at    INTEGER NOT NULL
    , closed INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)), opened_at INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "page" VALUES(1,'/2026/hello','/2026/hello/',5,2,41,2,1795000001,0,1787224000);
INSERT INTO "page" VALUES(2,'/你好','/%E4%BD%A0%E5%A5%BD/index.html',2,1,7,2,1795000002,1,1787224000);
INSERT INTO "page" VALUES(3,'/app#/route/','/app/#/route/',1,1,0,0,1795000003,0,1787224000);
INSERT INTO "page" VALUES(5,'//other.example/post?id=3','https://other.example/post?id=3',1,1,2,0,1795000005,0,1787224000);
INSERT INTO "page" VALUES(6,'/quiet','/quiet/',0,0,9,1,1794913606,0,1777720000);
INSERT INTO "page" VALUES(7,'/?p=12','/?p=12',1,1,3,0,1795000007,0,1787224000);
CREATE TABLE page_liker (
        page_id INTEGER NOT NULL REFERENCES page (id),
        visitor TEXT NOT NULL, liked_at INTEGER,
        PRIMARY KEY (page_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "page_liker" VALUES(1,'d53a81b4ae51f6f35790fe4caac91206',1794999900);
INSERT INTO "page_liker" VALUES(1,'user 4',NULL);
INSERT INTO "page_liker" VALUES(2,'import 2 1',NULL);
INSERT INTO "page_liker" VALUES(2,'import 2 2',NULL);
INSERT INTO "page_liker" VALUES(6,'past 9007199254740993',NULL);
CREATE TABLE registration (
        id         INTEGER PRIMARY KEY,
        request_id TEXT NOT NULL UNIQUE,
        email      TEXT NOT NULL,
        nickname   TEXT NOT NULL,
        password   TEXT NOT NULL,
        code       TEXT NOT NULL,
        client     TEXT NOT NULL,
        tries      INTEGER NOT NULL DEFAULT 0,
        named_tries INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;
INSERT INTO "registration" VALUES(1,'46782ee1c47b854475a8164df8bb4097','cid@example.com','Cid','pbkdf2_sha256$1$8add06f896c135cd59e1e5597ebe1c04$5e097f2c20faa914407efc527f976d53edf0f8816291f66e517f09987bfd2eff','e5e51c14d9980cc784686cb57bb93564a4956963d471908cb2f66187897c94b3','afafafafafafafafafafafafafafafafafafafafafafafafafafafafafafafaf',1,2,1795000000,1795000600);
INSERT INTO "registration" VALUES(3,'0727377eb145b66259771fcdc1f7cb98','bob@example.com','Robert','pbkdf2_sha256$1$d71785a32ded3ac9bbe1762956825dd1$a4b2c0a51887776f12ed558f49de957f2c2f93f3973d6958bd776d43f7745051','','b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0',5,0,1794993000,0);
CREATE TABLE report (
        comment_id  INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        visitor     TEXT NOT NULL,
        reason      TEXT NOT NULL,
        reported_at INTEGER NOT NULL,
        PRIMARY KEY (comment_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "report" VALUES(2,'past -77','rude; it''s',1794999000);
INSERT INTO "report" VALUES(4,'user 4','',1794999500);
INSERT INTO "report" VALUES(16,'a0b1c2d3e4f5061728394a5b6c7d8e9f','骂人',1794999900);
CREATE TABLE secret (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT;
INSERT INTO "secret" VALUES('token_key','0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef');
CREATE TABLE spent_captcha (
        signature  TEXT PRIMARY KEY,
        comment_id INTEGER REFERENCES comment (id),
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
INSERT INTO "spent_captcha" VALUES('5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a',1,1795003600);
INSERT INTO "spent_captcha" VALUES('5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b',NULL,1795003600);
CREATE TABLE subscription (
        subscriber TEXT NOT NULL,
        page_id    INTEGER NOT NULL,
        state      TEXT NOT NULL CHECK (state IN ('asked', 'yes', 'no')),
        PRIMARY KEY (subscriber, page_id)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "subscription" VALUES('6303d09f83ce20816e345a33d0e3fa39',0,'asked');
INSERT INTO "subscription" VALUES('7cf11c72854928738ee7aa25f6e09bba',0,'yes');
INSERT INTO "subscription" VALUES('7cf11c72854928738ee7aa25f6e09bba',7,'no');
INSERT INTO "subscription" VALUES('e1a4dbbc681652d741c7d6e212a7eba2',1,'no');
CREATE TABLE token (
        hash      INTEGER PRIMARY KEY,
        ham       INTEGER NOT NULL DEFAULT 0,
        spam      INTEGER NOT NULL DEFAULT 0,
        learnt_at INTEGER NOT NULL
    ) STRICT;
INSERT INTO "token" VALUES(-4611686018427387905,1,0,1794999900);
INSERT INTO "token" VALUES(0,1,1,1794999900);
INSERT INTO "token" VALUES(7,0,1,1794996400);
INSERT INTO "token" VALUES(9007199254740993,1,1,1794999900);
CREATE INDEX account_role ON account (role, nickname);
CREATE INDEX registration_email ON registration (email);
CREATE INDEX registration_created ON registration (created_at);
CREATE INDEX registration_expires ON registration (expires_at);
CREATE INDEX page_seen ON page (seen_at);
CREATE INDEX comment_by_time ON comment (page_id, status, created_at, id);
CREATE INDEX comment_by_likes ON comment (page_id, status, likes, created_at, id);
CREATE INDEX comment_of_thread ON comment (thread_id, shown, created_at, id);
CREATE INDEX comment_of_parent ON comment (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX comment_of_user ON comment (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX budget_ends ON budget (ends_at);
CREATE INDEX spent_captcha_expires ON spent_captcha (expires_at);
CREATE INDEX spent_captcha_comment ON spent_captcha (comment_id) WHERE comment_id IS NOT NULL;
CREATE INDEX outbox_due ON outbox (due_at);
CREATE INDEX outbox_expires ON outbox (expires_at);
CREATE INDEX outbox_registration ON outbox (registration_id);
CREATE INDEX comment_unmasked ON comment (created_at) WHERE masked = 0;
CREATE INDEX comment_liker_time ON comment_liker (liked_at) WHERE liked_at IS NOT NULL;
CREATE INDEX page_liker_time ON page_liker (liked_at) WHERE liked_at IS NOT NULL;
CREATE INDEX page_by_total ON page (total);
CREATE INDEX page_by_views ON page (views);
CREATE INDEX comment_by_status ON comment (status, id);
CREATE INDEX comment_judged ON comment (judged_at) WHERE judged_at IS NOT NULL;
CREATE INDEX comment_owner_due ON comment (owner_due) WHERE owner_due > 0;
CREATE INDEX comment_author_due ON comment (author_due) WHERE author_due > 0;
CREATE INDEX comment_by_nickname ON comment (nickname, ip, status);
CREATE INDEX comment_pinned ON comment (page_id, id) WHERE pinned = 1;
CREATE INDEX comment_top_by_time ON comment (page_id, shown, created_at, id)
        WHERE parent_id IS NULL AND pinned = 0;
CREATE INDEX comment_top_by_likes ON comment (page_id, shown, likes, created_at, id)
        WHERE parent_id IS NULL AND pinned = 0;
CREATE INDEX subscription_page ON subscription (page_id);
CREATE INDEX audit_created ON audit (created_at);
CREATE INDEX import_comment ON import (comment_id);
CREATE INDEX comment_follower_due ON comment (status, follower_due) WHERE follower_due > 0;
CREATE INDEX comment_unlearnt ON comment (id) WHERE learnt = '' AND status = 'visible';
CREATE INDEX comment_by_email ON comment (email) WHERE email <> '';
CREATE INDEX follow_page ON follow (page_id);
CREATE INDEX report_of_comment ON report (comment_id, reported_at);
CREATE INDEX token_learnt ON token (learnt_at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('account',6);
INSERT INTO "sqlite_sequence" VALUES('comment',25);
INSERT INTO "sqlite_sequence" VALUES('block',7);
COMMIT;
