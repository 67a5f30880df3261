import * as assert from 'node:assert/strict';
import type { Dialect } from '../core/dialect.ts';
import { assertSupported } from '../core/schema/unsupported-features.ts';
import { postgresqlUnderTest, unavailable } from './kit/postgresql.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import type { DialectUnderTest } from './suites/dialect-under-test.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';
import type { TestFunction } from './suites/suite.ts';
import { moduleOf, type WrongDialect, wrongDialects } from './suites/wrong/dialects.ts';
import { right } from './suites/wrong/right-dialect.ts';

/** The cases of the suite on an engine, by name. */
function casesOn(engine: DialectUnderTest): ReadonlyMap<string, () => Promise<void>> {
  const cases = new Map<string, () => Promise<void>>();
  const collect: TestFunction = (name, body) => cases.set(name.slice(`${engine.name}: `.length), body);
  dialectSuite(collect, engine);
  recordStoreSuite(collect, { ...storeUnderTest(engine.dialect, engine.createDatabase), name: engine.name });
  return cases;
}

const OPERATIONS = 'every operation and its inverse';
const DESTRUCTIVE = 'destructive statements are those that lose values';
const SURVIVES = 'what a killed process wrote is there for the next one';
const ACKNOWLEDGED = 'what was acknowledged while another process wrote survives a kill';
const CLOCK = 'a deadline does not depend on the clock of the process';
const ZONE = 'a moment does not depend on the time zone of the process';
const ALIKE = 'keys that look alike are different records';
const CATALOG = 'the catalog is read again each time';
const CLOSED = 'a closed connection can be closed again, and its calls fail';
const OPENING = 'a database that cannot be opened is an error';
const OPTIONS = 'the options that svc passes to every dialect are accepted';
const IDENTITY = 'a database has one identity in every process, without credentials';

const VALUES = 'values of every type survive every change and its inverse';
const PAGES = 'a change reaches every row';
const CLAIMS = 'of concurrent updates of a row, one finds the value that all expect';

/** The case that each wrong dialect fails, and what the case reports. */
const FAULTS: Readonly<Record<WrongDialect, readonly [name: string, message: RegExp]>> = {
  'loses a default on rename': [OPERATIONS, /after .*"renameField".*the default of Mood applies/],
  'applies no defaults': [
    'every field type and default reads back unchanged',
    /a row with the defaults was rejected.*smallint/,
  ],
  'requires nothing': [OPERATIONS, /base: users: email is required/],
  'checks no enum': [OPERATIONS, /base: users: mood has one of its values/],
  'checks inserted rows only': [OPERATIONS, /an update broke the check positive/],
  'checks nothing': [OPERATIONS, /the check positive is enforced/],
  'has no foreign keys': [OPERATIONS, /the foreign key orders_user_fkey is enforced/],
  'has no unique indexes': [OPERATIONS, /users_once.*: users: n is unique/],
  'truncates at another length': [OPERATIONS, /kind has at most 20 characters/],
  'destroys nothing, it says': [DESTRUCTIVE, /: it is destructive/],
  'destroys everything, it says': [DESTRUCTIVE, /"renameField".*it is not destructive/],
  'recreates a referenced table and its rows': [
    'a change of a referenced table keeps the rows that reference it',
    /pets, with ON DELETE CASCADE, after .*"modifyField"/,
  ],
  'adds a foreign key without checking the rows': [
    'a foreign key that a row violates is rejected',
    /a foreign key that a row violates: it was accepted/,
  ],
  'changes a type without converting the values': [
    'a value that a new type cannot hold is kept',
    /the text 'abc' becomes an integer: it was accepted/,
  ],
  'generates one UUID': ['generated UUIDs differ', /generated values are repeated: 00000000-/],
  'has a literal in place of now': ["the default 'now' is the time of the insert", /the default of a date is "never"/],
  'rounds decimals': [
    'a decimal keeps all its digits',
    /"12345678901234567000" is not .*declare notEnforced: \{ decimal: '…' \}/,
  ],
  'fills no default into rows that exist': [VALUES, /note, added to rows that exist, is \[ null/],
  'fills a default into one page of rows': [PAGES, /after addField, 1 of 1001 rows have another "note"/],
  'drops the first byte of a renamed field': [VALUES, /the row "a:1 😀" after .*"renameField".*"binary"/],
  'loses the last page of a renamed table': [PAGES, /rows after renameCollection/],
  'reads an empty text of a renamed field as null': [VALUES, /the row "it's" after .*"renameField".*"text"/],
  'keeps the values of a dropped field': [VALUES, /a field that was dropped and added again has its old values/],
  'stores bigints as floats': [VALUES, /the bigint "9007199254740993", once inserted, is read as/],
  'stores times in seconds': [VALUES, /the datetime "2026-01-31 23:59:59\.123", once inserted, is read as/],
  'counts one page of rows': [PAGES, /1000 !== 1001/],
  'reads, and then updates': [CLAIMS, /updates of a row changed it/],
  'leaves a call pending when it closes': [
    'a pending call settles when the connection closes',
    /a call that was pending when close\(\) was called did not end within 5000 ms/,
  ],
  'reads the catalog once': [CATALOG, /after a change by another connection: createCollection/],
  'reads the catalog again after the changes of its own process': [CATALOG, /after a change by another process/],
  'closes once': [CLOSED, /Called end on a pool more than once/],
  'waits for a connection that was closed': [CLOSED, /now\(\) of a closed connection did not end within 5000 ms/],
  'acknowledges writes once it is closed': [CLOSED, /insert\(\) of a closed connection did not fail/],
  'closes what others use when it is closed twice': [CLOSED, /connection_lost/],
  'throws what its driver throws for a URL': [
    OPENING,
    /identify\('no url'\) is not rejected with url_invalid: Invalid URL/,
  ],
  'throws what its driver throws when it cannot connect': [
    OPENING,
    /is not rejected with connection_failed: .*ECONNREFUSED/,
  ],
  'waits for a server that does not answer': [OPENING, /connect\('[^']+'\) did not end within 20000 ms/],
  'leaves a timer after a failed attempt to connect': [OPENING, /connect\('[^']+'\) failed, and left a timer/],
  'leaves the connection of a failed attempt open': [OPENING, /connect\('[^']+'\) failed, and left a connection/],
  'spells expressions in a table that others see': [
    'a table in which expressions are read back is seen by its session only',
    /another connection sees "_svc_scratch_0"/,
  ],
  'lists no unsupported object': ['what a model cannot express is listed', /unsupportedObjects returned \[\]/],
  'keeps everything in memory': [SURVIVES, /kept/],
  'acknowledges a record before it is stored': [SURVIVES, /undefined !== 1/],
  'stays in a transaction once another process was writing': [
    ACKNOWLEDGED,
    /of 100 records that process \w+ wrote are lost/,
  ],
  'compares deadlines with its own clock': [CLOCK, /an hour ahead/],
  'uses the clock of the process': [CLOCK, /an hour ahead/],
  'returns the clock of the process': [CLOCK, /now\(\) depends on the clock of the process/],
  'stores the dates of records in the time zone of the process': [
    ZONE,
    /the date of a record, read in Asia\/Kathmandu/,
  ],
  'compares deadlines in the time zone of the process': [ZONE, /deadlines in half an hour/],
  'returns the time of the engine in the time zone of the process': [ZONE, /now\(\) in Asia\/Kathmandu is/],
  'updates rows in the time zone of the process': [ZONE, /a value of a row, written in Asia\/Kathmandu is/],
  'finds rows in the time zone of the process': [ZONE, /did not find a row by its moments/],
  'defines defaults in the time zone of the process': [ZONE, /the default of a field, added in Asia\/Kathmandu is/],
  'compares keys without regard to case': [ALIKE, /"A", next to \["a"\]/],
  'compares keys without spaces at the end': [ALIKE, /"a ", next to \["a","A"\]/],
  'compares keys in one Unicode normalization': [ALIKE, /"e\u0301", next to/],
  'compares values of an index without regard to case': [ALIKE, /a page of "a", inserted/],
  'pads strings': [VALUES, /the string .*, once inserted, is read as/],
  'rejects an option of svc': [OPTIONS, /connectTimeoutMs/],
  'accepts any option': [OPTIONS, /an unknown option/],
  'has a lock in the process': [
    'the lock excludes other processes until its holder dies',
    /the lock was acquired while another process held it/,
  ],
  'counts epochs in the process': ['two processes that compete for the lock hold it in turn', /deep/],
  'writes the history in another transaction': [
    'after a kill before or during any call, the next process finishes the migrations',
    /killed during call \d+: (?:migration_failed|collection_exists)/,
  ],
  'stores the records of a segment one by one': [
    'the record writes of a segment are stored together, or none of them',
    /the other writes took effect/,
  ],
  'has one identity for all': [IDENTITY, /another database/],
  'has an identity for each call': [IDENTITY, /a second call/],
  'has an identity for each process': [IDENTITY, /another process/],
  'has the password in its identity': [IDENTITY, /the identity contains the password/],
};

const missing = await unavailable();
if (missing) test.skip('the dialect suite on wrong dialects', missing);
else {
  for (const name of new Set(Object.values(FAULTS).map(([name]) => name))) {
    test(`the right dialect passes: ${name}`, async () => casesOn(postgresqlUnderTest).get(name)!());
  }
  for (const feature of ['array', 'arrayDefault'] as const)
    test(`a dialect that has ${feature} in unsupported passes`, async () => {
      const unsupported = { ...right.capabilities.unsupported, [feature]: { why: 'Why.', next: 'Next.' } };
      const dialect: Dialect = {
        ...right,
        capabilities: { ...right.capabilities, unsupported },
        compile(operation, before) {
          assertSupported('It', unsupported, operation, before);
          return right.compile(operation, before);
        },
      };
      const cases = casesOn({ ...postgresqlUnderTest, dialect });
      await cases.get('every field type and default reads back unchanged')?.();
    });
  for (const name of Object.keys(FAULTS) as WrongDialect[]) {
    const [failing, message] = FAULTS[name];
    test(`a dialect that ${name} fails: ${failing}`, async () => {
      const engine = { ...postgresqlUnderTest, dialect: wrongDialects[name], module: moduleOf(name) };
      await assert.rejects(casesOn(engine).get(failing)!, { name: 'ContractBroken', message });
    });
  }
}
