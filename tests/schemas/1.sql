-- A database of commentd 0.1, schema 1, with rows in every table.
PRAGMA application_id = 1668116084;
PRAGMA user_version = 1;
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
INSERT INTO "account" VALUES(1,'ann@example.com','Ann','pbkdf2_sha256$1$fac81ab6f6a944853218788c8cb31d90$5e9b815d97a52e9ebea9bdab66abe79baa887617c9f75a06ce2422aa186f5969','admin',3,1795000000);
INSERT INTO "account" VALUES(4,'bob@example.com','鲍勃','pbkdf2_sha256$1$d71785a32ded3ac9bbe1762956825dd1$a4b2c0a51887776f12ed558f49de957f2c2f93f3973d6958bd776d43f7745051','user',1,1795000060);
CREATE TABLE budget (
        name    TEXT NOT NULL,
        subject TEXT NOT NULL,
        used    INTEGER NOT NULL,
        ends_at INTEGER NOT NULL,
        PRIMARY KEY (name, subject)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "budget" VALUES('login','203.0.113.0',3,1795000600);
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
    ) STRICT;
INSERT INTO "comment" VALUES(1,1,NULL,NULL,1,'Ann','ann@example.com','https://ann.example/','It''s first; -- no','<p>It&#x27;s first; -- no</p>','203.0.113.7','DE','',3,1,1,'visible',1795000001);
INSERT INTO "comment" VALUES(2,1,1,1,4,'鲍勃','bob@example.com','','二','<p>二</p>','2001:db8::7','CN','北京',0,2,1,'deleted',1795000002);
INSERT INTO "comment" VALUES(3,1,2,1,NULL,'Guest','','','three
lines
here','<p>three<br>lines<br>here</p>','198.51.100.9','','',1,0,1,'visible',1795000003);
INSERT INTO "comment" VALUES(4,1,3,1,NULL,'Guest','','','gone','<p>gone</p>','198.51.100.9','','',0,0,0,'spam',1795000004);
INSERT INTO "comment" VALUES(7,1,1,1,NULL,'Late','','','waits','<p>waits</p>','198.51.100.9','','',0,0,0,'waiting',1795000005);
INSERT INTO "comment" VALUES(8,1,2,1,NULL,'Again','','','last','<p>last</p>','','','',0,0,1,'visible',1795000006);
CREATE TABLE comment_liker (
        comment_id INTEGER NOT NULL REFERENCES comment (id),
        visitor    TEXT NOT NULL,
        PRIMARY KEY (comment_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "comment_liker" VALUES(1,'d53a81b4ae51f6f35790fe4caac91206');
INSERT INTO "comment_liker" VALUES(1,'user 1');
INSERT INTO "comment_liker" VALUES(1,'user 4');
INSERT INTO "comment_liker" VALUES(3,'a0b1c2d3e4f5061728394a5b6c7d8e9f');
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
INSERT INTO "outbox" VALUES(1,1,'cid@example.com','To: cid@example.com

123456',0,1795000000,1795000600,'');
INSERT INTO "outbox" VALUES(2,NULL,'ann@example.com','',5,NULL,1795086400,'550 no such user');
INSERT INTO "outbox" VALUES(5,NULL,'ann@example.com','To: ann@example.com

changed',2,1795001800,1795086400,'421 later');
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
INSERT INTO "page" VALUES(1,'/2026/hello','/2026/hello/',3,1,41,2,1795000000);
INSERT INTO "page" VALUES(2,'/quiet','/quiet/',0,0,7,0,1795000000);
CREATE TABLE page_liker (
        page_id INTEGER NOT NULL REFERENCES page (id),
        visitor TEXT NOT NULL,
        PRIMARY KEY (page_id, visitor)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "page_liker" VALUES(1,'d53a81b4ae51f6f35790fe4caac91206');
INSERT INTO "page_liker" VALUES(1,'user 4');
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
INSERT INTO "registration" VALUES(1,'r-1','cid@example.com','Cid','pbkdf2_sha256$1$8add06f896c135cd59e1e5597ebe1c04$5e097f2c20faa914407efc527f976d53edf0f8816291f66e517f09987bfd2eff','3019d619559117a52c2a2e764c9ba508b0f4c9792da732b1c033e306f4fe6122','203.0.113.0',1,2,1795000000,1795000600);
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
INSERT INTO "spent_captcha" VALUES('s1',1,1795003600);
INSERT INTO "spent_captcha" VALUES('s2',NULL,1795003600);
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('account',4);
INSERT INTO "sqlite_sequence" VALUES('comment',8);
COMMIT;
