import type { RemadeCases } from './remade-cases.ts';

/** Whole schemas, with rows: a forum on both engines, and a shop with what only one of them has. */
const FORUM: RemadeCases = {
  forum: `
create table forum_users (id int unsigned not null auto_increment, name varchar(40) not null, email varchar(190) character set ascii not null, role enum('reader','writer','moderator') not null default 'reader', flags set('mail','push') not null default 'mail', born date default null, karma mediumint not null default '0', ip varbinary(16) default null, avatar mediumblob, joined timestamp not null default current_timestamp, seen datetime(6) default null on update current_timestamp(6), settings json, primary key (id), unique key email (email), unique key forum_users_name_key (name), key by_karma (karma desc, id)) auto_increment=100 comment='Who writes; it''s "them"';
create table forum_boards (id smallint unsigned not null auto_increment primary key, up smallint unsigned, path varchar(255) collate utf8mb4_bin not null, title varchar(80) not null, depth int as (char_length(path) - char_length(replace(path, '/', ''))) virtual, position tinyint not null default -1, unique key path (path), key up (up), constraint forum_boards_up foreign key (up) references forum_boards (id) on delete cascade, constraint forum_boards_title check (title <> ''));
create table forum_topics (id bigint unsigned not null auto_increment, board smallint unsigned not null, author int unsigned, title varchar(200) not null comment 'as its author wrote it', slug varchar(200) generated always as (lower(replace(title, ' ', '-'))) stored, pinned boolean not null default false, locked bit(1) not null default b'0', views int unsigned zerofill not null default 0, rating decimal(3,1) unsigned default 2.5, created datetime not null default current_timestamp, primary key (id), key board_page (board, pinned desc, created desc), key slug (slug(20)), fulltext key search (title), constraint forum_topics_board foreign key (board) references forum_boards (id) on update cascade, constraint forum_topics_author foreign key (author) references forum_users (id) on delete set null, constraint forum_topics_rating check (rating between 0 and 5)) row_format=dynamic;
create table forum_posts (id bigint unsigned not null auto_increment, topic bigint unsigned not null, author int unsigned, parent bigint unsigned, body mediumtext not null, checksum binary(4) not null default 0x00000000, edited datetime(3), primary key (id), key topic_page (topic, id), key author (author) using btree, fulltext key body (body), constraint forum_posts_topic foreign key (topic) references forum_topics (id) on delete cascade, constraint forum_posts_author foreign key (author) references forum_users (id) on delete set null on update cascade, constraint forum_posts_parent foreign key (parent) references forum_posts (id));
create table forum_likes (post bigint unsigned not null, user int unsigned not null, emoji varchar(8) not null default '👍', at timestamp(3) not null default current_timestamp(3), primary key (user, post), key post (post), constraint forum_likes_post foreign key (post) references forum_posts (id) on delete cascade, constraint forum_likes_user foreign key (user) references forum_users (id) on delete cascade);
create table forum_tags (name varchar(30) character set latin1 collate latin1_german1_ci not null primary key, uses int not null default 0);
create table forum_topic_tags (topic bigint unsigned not null, tag varchar(30) character set latin1 collate latin1_german1_ci not null, primary key (topic, tag), constraint forum_topic_tags_topic foreign key (topic) references forum_topics (id) on delete cascade, constraint forum_topic_tags_tag foreign key (tag) references forum_tags (name) on update cascade);
create table forum_messages (sender int unsigned not null, receiver int unsigned not null, sent datetime(6) not null, body text not null, primary key (receiver, sender, sent), constraint forum_messages_sender foreign key (sender) references forum_users (id), constraint forum_messages_receiver foreign key (receiver) references forum_users (id));
create table forum_sessions (token char(64) character set ascii collate ascii_bin not null, user int unsigned not null, expires int unsigned not null, primary key (token) using hash, key expires (expires) using btree) engine=memory;
create table forum_log (at date not null, id int not null, kind varchar(20) not null, body text, key kind (kind(5))) partition by range (year(at)) (partition p2024 values less than (2025), partition p2025 values less than (2026), partition later values less than maxvalue);
create table forum_words (word varchar(100) not null, language char(2) not null default 'en', weight float not null default 1, primary key (word(20), language)) collate utf8mb4_bin;
create table forum_opening (day tinyint unsigned not null primary key, opens time not null default '08:30:00', shift time not null default '-00:30:00', note char(0) default null);
create function forum_rank(karma int) returns varchar(10) deterministic return case when karma > 1000 then 'elder' when karma > 100 then 'member' else 'new' end;
create procedure forum_close(in board_id smallint unsigned, out closed int) modifies sql data comment 'Locks what is old' begin declare done int default 0; declare topic_id bigint unsigned; declare topics cursor for select id from forum_topics where board = board_id and created < now() - interval 1 year; declare continue handler for not found set done = 1; set closed = 0; open topics; next_topic: loop fetch topics into topic_id; if done then leave next_topic; end if; update forum_topics set locked = b'1' where id = topic_id; set closed = closed + 1; end loop; close topics; end;
create view forum_active as select u.id, u.name, forum_rank(u.karma) as rank_name, count(p.id) as posts from forum_users u left join forum_posts p on p.author = u.id group by u.id, u.name, u.karma having count(p.id) > 0;
create sql security invoker view forum_recent as select t.id, t.title, b.path, a.name from forum_topics t join forum_boards b on b.id = t.board left join forum_active a on a.id = t.author where t.created > now() - interval 7 day;
create algorithm = merge view forum_moderators as select id, name, role from forum_users where role = 'moderator' with cascaded check option;
create trigger forum_posts_edit before update on forum_posts for each row begin if new.body <> old.body then set new.edited = now(3); end if; end;
create trigger forum_posts_count after insert on forum_posts for each row update forum_topics set views = views + 1 where id = new.topic;
create trigger forum_posts_karma after insert on forum_posts for each row update forum_users set karma = karma + 1 where id = new.author;
create event forum_sweep on schedule every 1 hour starts '2030-01-01 00:00:00' on completion preserve disable comment 'Sessions; old ones' do delete from forum_sessions where expires < unix_timestamp();
insert into forum_users (name, email, role, ip) values ('Ann', 'ann-example.com', 'writer', 0x7f000001), ('Ben', 'ben-example.com', 'reader', null);
insert into forum_boards (path, title) values ('/', 'All'), ('/news', 'News');
insert into forum_topics (board, author, title) values (2, 100, 'Hello There');
insert into forum_posts (topic, author, body) values (1, 100, 'first'), (1, 101, 'second');
insert into forum_likes (post, user) values (1, 101);
insert into forum_log values ('2024-05-05', 1, 'join', 'x'), ('2030-01-01', 2, 'leave', null);
insert into forum_words (word) values ('a'), ('A')`,
};

const SHOP_TABLES = `
create table shop_customers (id bigint unsigned not null auto_increment primary key, name varchar(120) not null, country char(2) character set ascii not null default 'IE', phone varchar(30) default null, born year default null, constraint shop_customers_country check (char_length(country) = 2));
create table shop_categories (id int not null primary key, up int, title varchar(60) not null, constraint shop_categories_up foreign key (up) references shop_categories (id) on delete restrict on update restrict);
create table shop_warehouses (id int not null primary key, place point not null, spatial key place (place));
create table shop_stock (warehouse int not null, product bigint unsigned not null, amount int not null default 0, reserved int not null default 0, available int generated always as (amount - reserved) virtual, primary key (warehouse, product), constraint shop_stock_warehouse foreign key (warehouse) references shop_warehouses (id) on delete no action, constraint shop_stock_amount check (amount >= reserved));
create table shop_orders (id bigint unsigned not null auto_increment, customer bigint unsigned not null, placed datetime not null, state enum('new','paid','sent','back') not null default 'new', total decimal(12,2) not null, currency char(3) character set ascii collate ascii_bin not null default 'EUR', note text, primary key (id, placed), key customer (customer, placed)) partition by range columns (placed) (partition before2025 values less than ('2025-01-01'), partition y2025 values less than ('2026-01-01'), partition y2026 values less than (maxvalue));
create table shop_lines (order_id bigint unsigned not null, line smallint unsigned not null, product bigint unsigned not null, amount int unsigned not null default 1, price decimal(10,2) not null, total decimal(20,2) as (amount * price) stored, primary key (order_id, line), key product (product));
create table shop_carts (session char(32) character set latin1 not null, product bigint unsigned not null, touched timestamp not null default current_timestamp on update current_timestamp, primary key (session, product)) partition by key (session) partitions 3;
create table shop_audit (at timestamp(6) not null default current_timestamp(6), who varchar(80) not null, what longtext not null, fulltext key what (what)) comment = 'Without a key';
create function shop_vat(amount decimal(12,2), country char(2)) returns decimal(12,2) deterministic return amount * case country when 'IE' then 0.23 else 0.19 end;
create view shop_open as select o.id, c.name, o.total, shop_vat(o.total, c.country) as vat from shop_orders o join shop_customers c on c.id = o.customer where o.state in ('new', 'paid');
create trigger shop_lines_audit after delete on shop_lines for each row insert into shop_audit (who, what) values (current_user(), concat('line; ', old.order_id));
insert into shop_customers (name) values ('Ann'), ('Ben');
insert into shop_categories values (1, null, 'All'), (2, 1, 'Books');
insert into shop_warehouses values (1, point(1, 2));
insert into shop_orders (customer, placed, total) values (1, '2024-02-02', 10), (2, '2026-02-02', 20);
insert into shop_lines (order_id, line, product, price) values (1, 1, 1, 9.99);
insert into shop_carts (session, product) values ('a', 1);
`;

export const MYSQL_WHOLE: RemadeCases = {
  ...FORUM,
  shop: `${SHOP_TABLES}
create table shop_products (id bigint unsigned not null auto_increment primary key, code binary(16) not null default (uuid_to_bin(uuid())), token char(36) not null default (uuid()), category int, title varchar(200) not null, attributes json not null default (json_object()), price decimal(10,2) not null, secret int invisible default 7, unique key code (code), key tags ((cast(attributes->'$.tags' as unsigned array))), key brand ((cast(attributes->>'$.brand' as char(40)) collate utf8mb4_bin)), key lower_title ((lower(title)), price desc), key hidden (price) invisible, fulltext key title (title) with parser ngram, constraint shop_products_category foreign key (category) references shop_categories (id) on delete set null, constraint shop_products_price check (price > 0) not enforced);
create table shop_prices (product bigint unsigned not null, since datetime(6) not null default (now(6)), price decimal(10,2) not null, primary key (product, since desc));
insert into shop_products (category, title, attributes, price) values (2, 'A Book', '{"tags": [1, 2], "brand": "x"}', 5);
insert into shop_prices (product, price) values (1, 5);
insert into shop_stock (warehouse, product, amount) values (1, 1, 3)`,
};

export const MARIADB_WHOLE: RemadeCases = {
  ...FORUM,
  shop: `${SHOP_TABLES}
create table shop_products (id bigint unsigned not null auto_increment primary key, code uuid not null default uuid(), address inet6 default '::1', category int, title varchar(200) not null, attributes json not null default '{}', body text not null default 'none yet', logo blob default 0x89504e47, price decimal(10,2) not null, secret int invisible default 7, unique key code (code), unique key logo (logo), key hidden (price) ignored, fulltext key title (title), constraint shop_products_category foreign key (category) references shop_categories (id) on delete set null on update no action, constraint shop_products_price check (price > 0));
create table shop_prices (product bigint unsigned not null, price decimal(10,2) not null, primary key (product)) with system versioning partition by system_time limit 10000 partitions 3;
create table shop_contracts (id int not null primary key, terms text not null, customer bigint unsigned, constraint shop_contracts_customer foreign key (customer) references shop_customers (id)) comment = 'With its history' with system versioning;
create view shop_terms as select c.name, t.terms from shop_contracts t join shop_customers c on c.id = t.customer;
create trigger shop_contracts_trim before insert on shop_contracts for each row set new.terms = trim(new.terms);
insert into shop_products (category, title, price) values (2, 'A Book', 5);
insert into shop_prices values (1, 5);
update shop_prices set price = 6;
insert into shop_contracts values (1, ' all ', 1);
insert into shop_stock (warehouse, product, amount) values (1, 1, 3)`,
};
