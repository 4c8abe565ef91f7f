-- A database of Cusdis 1.3: its own tables, as its migrations leave them.
CREATE TABLE "accounts" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "compound_id" TEXT NOT NULL, "user_id" TEXT NOT NULL, "provider_type" TEXT NOT NULL, "provider_id" TEXT NOT NULL, "provider_account_id" TEXT NOT NULL, "refresh_token" TEXT, "access_token" TEXT, "access_token_expires" DATETIME, "created_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "updated_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP);
INSERT INTO "accounts" VALUES (1, 'canary-compound', 'u1', 'oauth', 'github', 'canary-github', 'canary-refresh', 'canary-access', NULL, 1704000000000, 1704000000000);
CREATE TABLE "sessions" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "user_id" TEXT NOT NULL, "expires" DATETIME NOT NULL, "session_token" TEXT NOT NULL, "access_token" TEXT NOT NULL, "created_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "updated_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP);
INSERT INTO "sessions" VALUES (1, 'u1', 1804000000000, 'canary-session', 'canary-access-2', 1704000000000, 1704000000000);
CREATE TABLE "verification_requests" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "identifier" TEXT NOT NULL, "token" TEXT NOT NULL, "expires" DATETIME NOT NULL, "created_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "updated_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP);
INSERT INTO "verification_requests" VALUES (1, 'canary-owner@blog.example', 'canary-verification', 1804000000000, 1704000000000, 1704000000000);
CREATE TABLE "users" ("id" TEXT NOT NULL PRIMARY KEY, "name" TEXT, "email" TEXT, "email_verified" DATETIME, "image" TEXT, "created_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "updated_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "enable_new_comment_notification" BOOLEAN DEFAULT true, "notification_email" TEXT, "displayName" TEXT);
INSERT INTO "users" VALUES ('u1', 'Owner', 'canary-owner@blog.example', NULL, 'canary-image', 1704000000000, 1704000000000, 1, 'canary-notify@blog.example', 'The owner');
CREATE TABLE "projects" ("id" TEXT NOT NULL PRIMARY KEY, "title" TEXT NOT NULL, "created_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "updated_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "deleted_at" DATETIME, "ownerId" TEXT NOT NULL, "token" TEXT, "fetch_latest_comments_at" DATETIME, "enable_notification" BOOLEAN DEFAULT true, "webhook" TEXT, "enableWebhook" BOOLEAN, CONSTRAINT "projects_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "users" ("id") ON DELETE RESTRICT ON UPDATE CASCADE);
INSERT INTO "projects" VALUES ('p1', 'Our blog', 1704000000000, 1704000000000, NULL, 'u1', 'canary-project-token', NULL, 1, 'https://hook.example/canary-webhook', 1);
INSERT INTO "projects" VALUES ('p2', 'An old try', 1704000000000, 1704000000000, 1704050000000, 'u1', 'canary-project-token', NULL, 1, NULL, NULL);
CREATE TABLE "pages" ("id" TEXT NOT NULL PRIMARY KEY, "slug" TEXT NOT NULL, "url" TEXT, "title" TEXT, "created_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "updated_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "projectId" TEXT NOT NULL, CONSTRAINT "pages_projectId_fkey" FOREIGN KEY ("projectId") REFERENCES "projects" ("id") ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE INDEX "projectId" ON "pages"("projectId");
-- Twice the same page, since nothing keeps the pages apart; one that has only a path; one of the project that is gone.
INSERT INTO "pages" VALUES ('g1', 'post-1', 'https://blog.example/2024/first/', 'The first', 1704060000000, 1704060000000, 'p1');
INSERT INTO "pages" VALUES ('g2', 'post-1', 'https://blog.example/2024/first', 'The first', 1704060000001, 1704060000000, 'p1');
INSERT INTO "pages" VALUES ('g3', '/2024/second/', NULL, NULL, 1704060000000, 1704060000000, 'p1');
INSERT INTO "pages" VALUES ('g4', 'post-4', 'https://old.example/2020/', 'Old', 1704000000000, 1704000000000, 'p2');
CREATE TABLE "comments" ("id" TEXT NOT NULL PRIMARY KEY, "pageId" TEXT NOT NULL, "created_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "updated_at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "deletedAt" DATETIME, "moderatorId" TEXT, "by_email" TEXT, "by_nickname" TEXT NOT NULL, "content" TEXT NOT NULL, "approved" BOOLEAN NOT NULL DEFAULT false, "parentId" TEXT, CONSTRAINT "comments_pageId_fkey" FOREIGN KEY ("pageId") REFERENCES "pages" ("id") ON DELETE RESTRICT ON UPDATE CASCADE, CONSTRAINT "comments_moderatorId_fkey" FOREIGN KEY ("moderatorId") REFERENCES "users" ("id") ON DELETE SET NULL ON UPDATE CASCADE, CONSTRAINT "comments_parentId_fkey" FOREIGN KEY ("parentId") REFERENCES "comments" ("id") ON DELETE SET NULL ON UPDATE CASCADE);
-- id, pageId, created_at, updated_at, deletedAt, moderatorId, by_email, by_nickname, content, approved, parentId
INSERT INTO "comments" VALUES ('c01', 'g1', 1704103200123, 1704109999000, NULL, NULL, 'ann@example.com', 'Ann', 'Some *Markdown* with `code`', 1, NULL);
INSERT INTO "comments" VALUES ('c02', 'g1', 1704103260000, 1704103260000, NULL, 'u1', 'owner@blog.example', 'Owner', 'An answer of the owner', 1, 'c01');
INSERT INTO "comments" VALUES ('c03', 'g2', 1704103320999, 1704103320999, NULL, NULL, NULL, 'Борис', 'An answer to it, from the twin of the page', 1, 'c02');
INSERT INTO "comments" VALUES ('c04', 'g1', 1704103380000, 1704103380000, NULL, NULL, '', 'Emil', 'Waits for the owner', 0, NULL);
INSERT INTO "comments" VALUES ('c05', 'g1', 1704103440000, 1704103440000, 1704109999000, NULL, 'canary-deleted@example.com', 'Gone', 'canary-deleted-text', 1, NULL);
INSERT INTO "comments" VALUES ('c06', 'g1', 1704103500000, 1704103500000, NULL, NULL, NULL, 'Dora', 'An answer to what was deleted', 1, 'c05');
INSERT INTO "comments" VALUES ('c07', 'g1', 1704103560000, 1704103560000, 1704109999000, NULL, 'canary-deleted@example.com', 'Gone', 'canary-deleted-text', 1, NULL);
INSERT INTO "comments" VALUES ('c08', 'g1', 1704103620000, 1704103620000, 1704109999000, NULL, 'canary-deleted@example.com', 'Gone', 'canary-deleted-text', 0, NULL);
INSERT INTO "comments" VALUES ('c09', 'g3', '2024-01-01 10:08:00', '2024-01-01 10:08:00', NULL, NULL, NULL, '吉田', '第一行
第二行 😀', 1, NULL);
INSERT INTO "comments" VALUES ('c10', 'g3', 1704103740000, 1704103740000, NULL, NULL, NULL, 'Greta', 'An orphan', 1, 'c99');
INSERT INTO "comments" VALUES ('c11', 'g3', -62135596800000, -62135596800000, NULL, NULL, NULL, 'Lea', 'Year one', 1, 'c09');
INSERT INTO "comments" VALUES ('c12', 'g4', 1704003860000, 1704003860000, NULL, NULL, 'canary-old@example.com', 'Nora', 'canary-old-text', 1, NULL);
INSERT INTO "comments" VALUES ('c13', 'g9', 1704103920000, 1704103920000, NULL, NULL, NULL, 'Finn', 'Nowhere', 1, NULL);
INSERT INTO "comments" VALUES ('c14', 'g3', 1704103980000, 1704103980000, NULL, NULL, NULL, 'Mute', '', 1, NULL);
