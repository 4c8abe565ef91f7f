-- A database of Isso 0.13: its own tables, as its code makes them.
CREATE TABLE preferences (   key VARCHAR PRIMARY KEY, value VARCHAR);
INSERT INTO preferences VALUES ('session-key', 'canary-5e55104c0ffee');
CREATE TABLE threads (    id INTEGER PRIMARY KEY, uri VARCHAR(256) UNIQUE, title VARCHAR(256));
INSERT INTO threads VALUES (1, '/blog/first/', 'The first');
INSERT INTO threads VALUES (2, '/blog/first', 'The first again');
INSERT INTO threads VALUES (3, '/blog/中文/?id=3', NULL);
INSERT INTO threads VALUES (4, '/blog/nobody/', 'Nobody wrote here');
CREATE TABLE comments (
    tid REFERENCES threads(id), id INTEGER PRIMARY KEY, parent INTEGER,
    created FLOAT NOT NULL, modified FLOAT, mode INTEGER, remote_addr VARCHAR, text VARCHAR NOT NULL,
    author VARCHAR, email VARCHAR, website VARCHAR,
    likes INTEGER DEFAULT 0, dislikes INTEGER DEFAULT 0, voters BLOB NOT NULL, notification INTEGER DEFAULT 0);
CREATE TRIGGER remove_stale_threads AFTER DELETE ON comments BEGIN
    DELETE FROM threads WHERE id NOT IN (SELECT tid FROM comments); END;
-- tid, id, parent, created, modified, mode, remote_addr, text, author, email, website, likes, dislikes, voters, notification
INSERT INTO comments VALUES (1, 1, NULL, 1704103200.25, NULL, 1, '203.0.113.0', 'Some *Markdown* with `code`', 'Ann', 'ann@example.com', 'https://ann.example/', 5, 2, X'0102FF', 1);
INSERT INTO comments VALUES (1, 2, 1, 1704103260.999, 1704106860.5, 1, '2001:db8:12::', 'An answer, edited later', 'Борис', NULL, NULL, 0, 0, X'00', 0);
INSERT INTO comments VALUES (1, 3, 1, 1704103320.0, NULL, 2, '203.0.113.0', 'Waits for the owner', 'Emil', 'emil@example.com', NULL, 0, 0, X'00', 0);
-- Deleted, with answers and without: the e-mail is left in the row.
INSERT INTO comments VALUES (1, 4, NULL, 1704103380.0, NULL, 4, '203.0.113.0', '', NULL, 'canary-deleted@example.com', NULL, 0, 0, X'00', 0);
INSERT INTO comments VALUES (1, 5, 4, 1704103440.0, NULL, 1, '203.0.113.0', 'An answer to what was deleted', 'Dora', '', '', 0, 0, X'00', 0);
INSERT INTO comments VALUES (1, 6, NULL, 1704103500.0, NULL, 4, '203.0.113.0', '', NULL, 'canary-deleted@example.com', NULL, 0, 0, X'00', 0);
-- An orphan; an anonymous one; one below the other spelling of the page; no thread; no text.
INSERT INTO comments VALUES (1, 7, 99, 1704103560.0, NULL, 1, '127.0.0.0', 'An orphan', 'Greta', NULL, NULL, 0, 0, X'00', 0);
INSERT INTO comments VALUES (2, 8, NULL, 1704103620.0, NULL, 1, NULL, 'From the other spelling', 'Hans', NULL, 'javascript:alert(1)', 1, 0, X'00', 0);
INSERT INTO comments VALUES (3, 9, NULL, 1704103680.0, NULL, 1, '203.0.113.0', '第一行
第二行 😀', '吉田', NULL, 'http://例え.example/', 142, 0, X'00', 0);
INSERT INTO comments VALUES (77, 10, NULL, 1704103740.0, NULL, 1, '203.0.113.0', 'Nowhere', 'Finn', NULL, NULL, 0, 0, X'00', 0);
INSERT INTO comments VALUES (3, 11, NULL, 1704103800.0, NULL, 1, '203.0.113.0', '   ', 'Mute', NULL, NULL, 0, 0, X'00', 0);
-- Times that can't be: the far future, year 0.
INSERT INTO comments VALUES (3, 12, 9, 99999999999.0, NULL, 1, '203.0.113.0', 'From the future', 'Lea', NULL, NULL, 0, 0, X'00', 0);
INSERT INTO comments VALUES (3, 13, 9, -62167219200.0, NULL, 1, '203.0.113.0', 'From the year 0', 'Mia', NULL, NULL, 0, 0, X'00', 0);
