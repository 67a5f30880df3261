import * as assert from 'node:assert/strict';
import { committingEngines } from './kit/engines.ts';
import { assertExit, json, LONG, type Project, project } from './kit/project.ts';
import { test } from './kit/test.ts';

// Tables that others made, with what MySQL applications of the last twenty years contain.

/** Two tables as WordPress creates them. */
const WORDPRESS = `
CREATE TABLE wp_users (
  ID bigint(20) unsigned NOT NULL auto_increment,
  user_login varchar(60) NOT NULL default '',
  user_registered datetime NOT NULL default '0000-00-00 00:00:00',
  PRIMARY KEY (ID), KEY user_login_key (user_login)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci;
CREATE TABLE wp_comments (
  comment_ID bigint(20) unsigned NOT NULL auto_increment,
  comment_author tinytext NOT NULL,
  comment_date datetime NOT NULL default '0000-00-00 00:00:00',
  comment_date_gmt datetime NOT NULL default '0000-00-00 00:00:00',
  comment_day date NOT NULL default '0000-00-00',
  comment_note varchar(20) NOT NULL default '0000-00-00',
  PRIMARY KEY (comment_ID), KEY comment_date_gmt (comment_date_gmt)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci`;

for (const engine of committingEngines) {
  const it = (name: string, body: () => Promise<void>) =>
    engine.missing === undefined
      ? test(`${engine.name}: ${name}`, body, LONG)
      : test.skip(`${engine.name}: ${name}`, engine.missing);
  const adopt = async (shop: Project) => {
    const pulled = json(assertExit(await shop.svc('db', 'schema', 'pull', '--json')));
    assertExit(await shop.svc('db', 'migrate', 'baseline'));
    assertExit(await shop.svc('db', 'schema', 'check'));
    return pulled;
  };

  it('tables with zero dates are adopted, and a change keeps the default', () =>
    engine.withUrl(async (url, connect) => {
      const { connection } = await connect();
      await connection.query(
        `SET SESSION sql_mode = ''; ${WORDPRESS}; INSERT INTO wp_comments (comment_author) VALUES ('a')`,
      );
      const shop = project({ main: url });
      const { tables, leftOut, warnings } = await adopt(shop);
      assert.deepEqual(leftOut, []);
      assert.deepEqual([...tables].sort(), ['wp_comments', 'wp_users']);
      assert.equal(warnings.filter((line: string) => /zero date as its default/.test(line)).length, 4);
      const [entry] = JSON.parse(shop.read('svc/database/schema.json'));
      assert.equal(entry.tables.wp_comments.comment_note.default, '0000-00-00');
      entry.tables.wp_comments.spam = 'Boolean';
      entry.tables.wp_comments.comment_date.required = false;
      shop.write('svc/database/schema.json', [entry]);
      assertExit(await shop.svc('db', 'schema', 'generate'));
      assertExit(await shop.svc('db', 'migrate'));
      assertExit(await shop.svc('db', 'schema', 'check'));
      const [row] = await connection.query('SHOW CREATE TABLE wp_comments');
      assert.match(String(row?.['Create Table']), /`comment_date` datetime DEFAULT '0000-00-00 00:00:00'/);
    }));

  it('what runs with other settings than those of svc is in a warning', () =>
    engine.withUrl(async (url, connect) => {
      const { connection } = await connect();
      await connection.query(`CREATE TABLE log (id int PRIMARY KEY); SET sql_mode = 'STRICT_ALL_TABLES,PIPES_AS_CONCAT';
        CREATE PROCEDURE joined() SELECT 'a' || 'b'; SET sql_mode = 'STRICT_ALL_TABLES'; SET time_zone = '+02:00';
        CREATE EVENT berlin ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DO DELETE FROM log; SET time_zone = '+00:00';
        CREATE EVENT utc ON SCHEDULE EVERY 1 DAY DO DELETE FROM log`);
      const { warnings } = json(assertExit(await project({ main: url }).svc('db', 'schema', 'pull', '--json')));
      const said = warnings.filter((line: string) => /sql_mode|time zone/.test(line));
      assert.equal(said.length, 2, said.join('\n'));
      for (const one of [
        /procedure joined, which was made with another sql_mode/,
        /event berlin, whose times.*\+02:00/,
      ])
        assert.ok(said.some((line: string) => one.test(line)));
    }));

  it('a change keeps a descending key, a default of bytes, and the history of rows', () =>
    engine.withUrl(async (url, connect) => {
      const { connection } = await connect();
      const versioned = engine.name === 'mariadb' ? 'WITH SYSTEM VERSIONING' : '';
      await connection.query(`
        CREATE TABLE shifts (id int, starts time DEFAULT '-10:00:00', mask binary(4) DEFAULT 0x00610000, PRIMARY KEY (id DESC));
        CREATE TABLE prices (id int PRIMARY KEY, price int) ${versioned};
        INSERT INTO prices VALUES (1, 5); UPDATE prices SET price = 6`);
      const shop = project({ main: url });
      assert.deepEqual((await adopt(shop)).warnings, []);
      const [entry] = JSON.parse(shop.read('svc/database/schema.json'));
      entry.tables.shifts.starts.required = true;
      entry.tables.shifts.mask.required = true;
      entry.tables.prices.currency = 'String';
      shop.write('svc/database/schema.json', [entry]);
      assertExit(await shop.svc('db', 'schema', 'generate'));
      assertExit(await shop.svc('db', 'migrate'));
      assertExit(await shop.svc('db', 'schema', 'check'));
      const [row] = await connection.query('SHOW CREATE TABLE shifts');
      const shown = String(row?.['Create Table']);
      assert.match(shown, /`starts` time NOT NULL DEFAULT '-10:00:00'.*PRIMARY KEY \(`id` DESC\)/s);
      await connection.query('INSERT INTO shifts (id) VALUES (1)');
      assert.deepEqual(await connection.query('SELECT HEX(mask) AS mask FROM shifts'), [{ mask: '00610000' }]);
      if (versioned === '') return;
      const history = await connection.query('SELECT price FROM prices FOR SYSTEM_TIME ALL ORDER BY price');
      assert.deepEqual(history, [{ price: 5 }, { price: 6 }]);
    }));

  it("a table's collation and character set are the same in an empty database", () =>
    engine.withUrl(async (url, connect) => {
      const { connection } = await connect();
      await connection.query(`
        CREATE TABLE plain (id int PRIMARY KEY, name varchar(20));
        CREATE TABLE exact_names (name varchar(40) PRIMARY KEY) COLLATE utf8mb4_bin;
        CREATE TABLE old_names (id int PRIMARY KEY, name varchar(2000) UNIQUE) DEFAULT CHARACTER SET latin1;
        INSERT INTO exact_names VALUES ('a'), ('A')`);
      const shop = project({ main: url });
      const { leftOut } = await adopt(shop);
      assert.deepEqual(leftOut, []);
      const [entry] = JSON.parse(shop.read('svc/database/schema.json'));
      assert.deepEqual(entry.options, {
        exact_names: { sqlOptions: { collation: 'utf8mb4_bin' } },
        old_names: { sqlOptions: { collation: 'latin1_swedish_ci' } },
      });
      await engine.withUrl(async (other, connectOther) => {
        const second = project({ main: other });
        for (const file of shop.files())
          second.write(`svc/database/migrations/main/${file}`, shop.read(`svc/database/migrations/main/${file}`));
        assertExit(await second.svc('db', 'migrate'));
        assertExit(await second.svc('db', 'schema', 'check'));
        const empty = (await connectOther()).connection;
        await empty.query("INSERT INTO exact_names VALUES ('a'), ('A')");
        const found = await empty.query(
          "SELECT table_name AS name, table_collation AS collation FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE '%names' ORDER BY 1",
        );
        assert.deepEqual(
          found.map((row) => [row.name, row.collation]),
          [
            ['exact_names', 'utf8mb4_bin'],
            ['old_names', 'latin1_swedish_ci'],
          ],
        );
        // A change by hand is drift.
        await empty.query('ALTER TABLE exact_names CONVERT TO CHARACTER SET latin1 COLLATE latin1_bin');
        const drifted = json(assertExit(await second.svc('db', 'schema', 'check', '--json'), 5));
        assert.match(JSON.stringify(drifted), /collation.*latin1_bin.*utf8mb4_bin/);
      });
    }));
}
