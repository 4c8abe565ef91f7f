-- A database of schema 2, with rows in every table.
PRAGMA application_id = 1668116084;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE account (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        email      TEXT NOT NULL UNIQUE,
        nickname   TEXT NOT NULL,
        password   TEXT NOT NULL,
        role       TEXT NOT NULL DEFAULT 'user' CHECK (role IN ('user', 'admin')),
        version    INTEGER NOT NULL DEFAULT 1,
        created_at INTEGER NOT NULL
    ) STRICT;
INSERT INTO "account" VALUES(1,'ann@example.com','Ann','pbkdf2_sha256$1$fac81ab6f6a944853218788c8cb31d90$5e9b815d97a52e9ebea9bdab66abe79baa887617c9f75a06ce2422aa186f5969','admin',3,1760440000);
INSERT INTO "account" VALUES(4,'bob@example.com','鲍勃','pbkdf2_sha256$1$d71785a32ded3ac9bbe1762956825dd1$a4b2c0a51887776f12ed558f49de957f2c2f93f3973d6958bd776d43f7745051','user',1,1795000060);
INSERT INTO "account" VALUES(6,'dan@xn--bcher-kva.example','O''Dan; --','pbkdf2_sha256$1$28e37dd223e04edd7ba28c89fac011f3$badb93284434f9ba7ba25dd357f6e335c8926e9f59a4cfb3adcf81931e5c57a9','user',1795000000000,1795000061);
CREATE TABLE budget (
        name    TEXT NOT NULL,
        subject TEXT NOT NULL,
        used    INTEGER NOT NULL,
        ends_at INTEGER NOT NULL,
        PRIMARY KEY (name, subject)
    ) STRICT, WITHOUT ROWID;
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
    , masked INTEGER NOT NULL DEFAULT 0 CHECK (masked IN (0, 1))) STRICT;
INSERT INTO "comment" VALUES(1,1,NULL,NULL,1,'Ann','ann@example.com','https://Ann.example/About','It''s first; -- no','<p>It''s first; -- no</p>
','203.0.113.7','DE','',4,2,1,'visible',1794827210,0);
INSERT INTO "comment" VALUES(2,1,1,1,4,'鲍勃','bob@example.com','','二','<p>二</p>
','2001:db8::7','CN','浙江 杭州',0,0,1,'visible',1794827220,0);
INSERT INTO "comment" VALUES(3,1,1,1,NULL,'Tom','','','three','<p>three</p>
','198.51.100.9','','',0,1,1,'visible',1794827230,0);
INSERT INTO "comment" VALUES(4,1,3,1,NULL,'Guest','guest@example.com','','three
lines

    code; ''quoted'' "twice"
-- here','<p>three<br>
lines</p>
<pre><code>code; ''quoted'' "twice"</code></pre>
<p>-- here</p>
','198.51.100.9','','',1,1,1,'visible',1794827240,0);
INSERT INTO "comment" VALUES(5,1,4,1,NULL,'Guest','','','see https://x.example','<p>see <a href="https://x.example" rel="nofollow ugc noopener noreferrer">https://x.example</a></p>
','198.51.100.9','','',0,0,0,'waiting',1794827250,0);
INSERT INTO "comment" VALUES(6,1,4,1,NULL,'ليلى','','','مرحبا 👋🏽 é','<p>مرحبا 👋🏽 é</p>
','198.51.100.9','','',0,0,1,'visible',1794827260,0);
INSERT INTO "comment" VALUES(9,1,NULL,NULL,NULL,'Seller','','','buy ; now','<p>buy ; now</p>
','192.0.2.66','','',0,0,0,'waiting',1794827290,0);
INSERT INTO "comment" VALUES(10,1,NULL,NULL,NULL,'Rude','','','rude','<p>rude</p>
','198.51.100.9','','',0,1,1,'deleted',1794827300,0);
INSERT INTO "comment" VALUES(11,1,10,10,NULL,'Guest','','','an answer to it','<p>an answer to it</p>
','198.51.100.9','','',0,0,1,'visible',1794827310,0);
INSERT INTO "comment" VALUES(12,1,NULL,NULL,NULL,'Guest','','','held','<p>held</p>
','198.51.100.9','','',1,0,0,'waiting',1794827320,0);
INSERT INTO "comment" VALUES(15,2,NULL,NULL,NULL,'旧','','','old','<p>old</p>
','203.0.113.0','','',2,1,1,'visible',1789816000,1);
INSERT INTO "comment" VALUES(16,2,15,15,NULL,'Guest','','','old, of six','<p>old, of six</p>
','2001:db8:12::','','',0,0,1,'visible',1790680000,1);
INSERT INTO "comment" VALUES(17,3,NULL,NULL,NULL,'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx','','','on a route','<p>on a route</p>
','','','',0,0,1,'visible',1794827370,0);
INSERT INTO "comment" VALUES(18,5,NULL,NULL,NULL,'Guest','','http://g.example/?a=1&b=2','elsewhere','<p>elsewhere</p>
','198.51.100.9','','',0,0,1,'visible',1794827380,0);
INSERT INTO "comment" VALUES(21,7,NULL,NULL,6,'O''Dan; --','dan@xn--bcher-kva.example','','last','<p>last</p>
','198.51.100.9','','',0,0,1,'visible',1794827410,0);
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
INSERT INTO "comment_liker" VALUES(15,'past -1',NULL);
INSERT INTO "comment_liker" VALUES(15,'past 77',NULL);
CREATE TABLE outbox (
        id              INTEGER PRIMARY KEY,
        registration_id INTEGER REFERENCES registration (id) ON DELETE CASCADE,
        recipient       TEXT NOT NULL,
        message         TEXT NOT NULL,
        tries           INTEGER NOT NULL DEFAULT 0,
        due_at          INTEGER,
        expires_at      INTEGER NOT NULL,
        failure         TEXT NOT NULL DEFAULT ''
    ) STRICT;
INSERT INTO "outbox" VALUES(1,1,'cid@example.com','From: commentd <commentd@localhost>
To: cid@example.com
Subject: 123456
Content-Type: text/plain; charset="utf-8"

123456
',0,1795000000,1795000600,'');
INSERT INTO "outbox" VALUES(2,NULL,'nobody@example.com','',5,NULL,1796209600,'550 5.1.1 no such user');
INSERT INTO "outbox" VALUES(5,NULL,'ann@example.com','From: commentd <commentd@localhost>
To: ann@example.com
Subject: Changed
Content-Type: text/plain; charset="utf-8"

Your password
',2,1795001800,1795086400,'421 later');
CREATE TABLE page (
        id         INTEGER PRIMARY KEY,
        key        TEXT NOT NULL UNIQUE,
        page_url   TEXT NOT NULL,
        total      INTEGER NOT NULL DEFAULT 0,
        threads    INTEGER NOT NULL DEFAULT 0,
        views      INTEGER NOT NULL DEFAULT 0,
        page_likes INTEGER NOT NULL DEFAULT 0,
        seen_at    INTEGER NOT NULL
    ) STRICT;
INSERT INTO "page" VALUES(1,'/2026/hello','/2026/hello/',6,2,41,2,1795000001);
INSERT INTO "page" VALUES(2,'/你好','/%E4%BD%A0%E5%A5%BD/index.html',2,1,7,0,1795000002);
INSERT INTO "page" VALUES(3,'/app#/route/','/app/#/route/',1,1,0,0,1795000003);
INSERT INTO "page" VALUES(5,'//other.example/post?id=3','https://other.example/post?id=3',1,1,2,0,1795000005);
INSERT INTO "page" VALUES(6,'/quiet','/quiet/',0,0,9,1,1794913606);
INSERT INTO "page" VALUES(7,'/?p=12','/?p=12',1,1,3,0,1795000007);
CREATE TABLE page_liker (
        page_id INTEGER NOT NULL REFERENCES page (id),
        visitor TEXT NOT NULL, liked_at INTEGER,
        PRIMARY KEY (page_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "page_liker" VALUES(1,'d53a81b4ae51f6f35790fe4caac91206',1794999900);
INSERT INTO "page_liker" VALUES(1,'user 4',NULL);
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
CREATE INDEX account_role ON account (role, nickname);
CREATE INDEX registration_email ON registration (email);
CREATE INDEX registration_created ON registration (created_at);
CREATE INDEX registration_expires ON registration (expires_at);
CREATE INDEX page_seen ON page (seen_at);
CREATE INDEX comment_by_time ON comment (page_id, status, created_at, id);
CREATE INDEX comment_by_likes ON comment (page_id, status, likes, created_at, id);
CREATE INDEX comment_top_by_time
        ON comment (page_id, shown, created_at, id) WHERE parent_id IS NULL;
CREATE INDEX comment_top_by_likes
        ON comment (page_id, shown, likes, created_at, id) WHERE parent_id IS NULL;
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('account',6);
INSERT INTO "sqlite_sequence" VALUES('comment',25);
COMMIT;
