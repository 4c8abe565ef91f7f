CREATE TABLE typecho_comments ( "coid" INTEGER NOT NULL PRIMARY KEY,
"cid" int(10) default '0' ,
"created" int(10) default '0' ,
"author" varchar(150) default NULL ,
"authorId" int(10) default '0' ,
"ownerId" int(10) default '0' ,
"mail" varchar(150) default NULL ,
"url" varchar(255) default NULL ,
"ip" varchar(64) default NULL ,
"agent" varchar(511) default NULL ,
"text" text ,
"type" varchar(16) default 'comment' ,
"status" varchar(16) default 'approved' ,
"parent" int(10) default '0' );
CREATE INDEX typecho_comments_cid ON typecho_comments ("cid");
CREATE TABLE typecho_contents ( "cid" INTEGER NOT NULL PRIMARY KEY,
"title" varchar(150) default NULL ,
"slug" varchar(150) default NULL ,
"created" int(10) default '0' ,
"text" text ,
"type" varchar(16) default 'post' ,
"allowComment" char(1) default '0' ,
"parent" int(10) default '0' );
CREATE TABLE typecho_metas ( "mid" INTEGER NOT NULL PRIMARY KEY,
"name" varchar(150) default NULL ,
"slug" varchar(150) default NULL ,
"type" varchar(32) NOT NULL ,
"parent" int(10) default '0');
CREATE TABLE typecho_options (name varchar(32) NOT NULL, user int(10) NOT NULL default '0',
value text, UNIQUE (name, user));
CREATE TABLE typecho_users ( "uid" INTEGER NOT NULL PRIMARY KEY,
"name" varchar(32) default NULL ,
"password" varchar(64) default NULL ,
"mail" varchar(150) default NULL ,
"group" varchar(16) default 'visitor' ,
"authCode" varchar(64) default NULL);
INSERT INTO typecho_contents VALUES(1,'Hello','hello',1704063600,'a text','post','1',0);
INSERT INTO typecho_contents VALUES(2,'Hello','hello-draft',1704063600,'a text','post_draft','1',1);
INSERT INTO typecho_comments VALUES(11,1,1704067200,'Ann',0,1,'ann@example.com','','203.0.113.77','Mozilla/5.0 canary','It''s **bold**
and \n stays','comment','approved',0);
INSERT INTO typecho_comments VALUES(12,1,1704067260,'owner',7,1,'owner@example.com','','203.0.113.77','','> It''s **bold**

yes','comment','approved',11);
INSERT INTO typecho_options VALUES('rewrite',0,'0');
INSERT INTO typecho_options VALUES('commentsMarkdown',0,'1');
INSERT INTO typecho_options VALUES('routingTable',0,'{"0":{"post":{"url":"no"}},"post":{"url":"/archives/[cid:digital]/"}}');
INSERT INTO typecho_users VALUES(7,'owner','$2a$SECRET','owner@example.com','administrator','SECRET');
