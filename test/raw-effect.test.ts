import * as assert from 'node:assert/strict';
import { wouldDestroyData } from '../core/migration/raw-effect.ts';
import { test } from './kit/test.ts';

test('a raw statement that drops, truncates or deletes is recognized', () => {
  for (const text of [
    'DROP TABLE users',
    'drop schema old cascade',
    'ALTER TABLE users DROP COLUMN email',
    'ALTER TABLE users DROP "email"',
    'ALTER TABLE users DROP INDEX i, DROP COLUMN email',
    'ALTER TABLE events DROP PARTITION p1',
    'DROP TYPE mood CASCADE',
    'DROP VIEW v CASCADE',
    '/* a */ TRUNCATE users -- b',
    'Delete\nFrom users',
    'DELETE email FROM users WHERE id = 1',
    'WITH old AS (DELETE FROM users RETURNING id) INSERT INTO gone SELECT id FROM old',
    'MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN DELETE',
    'DO $$ BEGIN DELETE FROM users; END $$',
    'CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$; DROP TABLE users',
    String.raw`SELECT E'\''; DROP TABLE users; --'`,
    String.raw`SELECT '\'; DROP TABLE users; --'`,
    '{"drop":"users"}',
    '{"dropDatabase":1}',
    '{"delete":"users","deletes":[{"q":{},"limit":0}]}',
    '{"update":"users","updates":[{"q":{},"u":{"$unset":{"email":""}},"multi":true}]}',
    '{"DeleteTable":{"TableName":"users"}}',
    '{"TransactWriteItems":{"TransactItems":[{"Delete":{}}]}}',
    '{"ExecuteStatement":{"Statement":"DELETE FROM users WHERE id = 1"}}',
    '["DEL","users:1"]',
    '["FLUSHALL"]',
  ]) {
    assert.ok(wouldDestroyData(text), text);
  }
});

test('a raw statement that destroys no rows is not destructive', () => {
  for (const text of [
    'CREATE VIEW v AS SELECT 1',
    'DROP VIEW IF EXISTS v',
    'DROP MATERIALIZED VIEW v',
    'DROP INDEX i',
    'DROP FUNCTION IF EXISTS f',
    'ALTER TABLE a DROP CONSTRAINT c',
    'ALTER TABLE a ALTER COLUMN b DROP NOT NULL, ALTER COLUMN c DROP DEFAULT',
    'ALTER TABLE a DROP PRIMARY KEY',
    'ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES c (id) ON DELETE CASCADE',
    'GRANT SELECT, DELETE ON a TO b',
    "INSERT INTO notes VALUES ('drop table users; delete from users')",
    '-- drop table users\nUPDATE a SET b = TRUNCATE(b, 2)',
    'CREATE TRIGGER t BEFORE DELETE ON a FOR EACH ROW EXECUTE FUNCTION f()',
    'CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM b; RETURN OLD; END $$',
    'CREATE TRIGGER t AFTER INSERT ON a FOR EACH ROW BEGIN DELETE FROM b; DELETE FROM c; END',
    '{"dropIndexes":"users","index":"i"}',
    '{"collMod":"users","validationLevel":"moderate"}',
    '{"insert":"notes","documents":[{"text":"please delete"}]}',
    '{"UpdateTable":{"TableName":"users","DeletionProtectionEnabled":true}}',
    '["SET","a","delete"]',
    '',
  ]) {
    assert.ok(!wouldDestroyData(text), text);
  }
});
