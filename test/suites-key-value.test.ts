import * as assert from 'node:assert/strict';
import { openDatabase } from './kit/file-store.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import type { DialectUnderTest } from './suites/dialect-under-test.ts';
import { keyValueFileSuite } from './suites/key-value-file-suite.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';
import type { TestFunction } from './suites/suite.ts';
import { driverUnderTest, type WrongDriver, wrongDrivers } from './suites/wrong/key-value-drivers.ts';
import { moduleOf, type WrongFile, wrongFiles } from './suites/wrong/key-value-files.ts';

/** The suites of key-value files and dialects detect wrong ones: each must fail, by the case about its fault. The right one passes. */

keyValueFileSuite(test, {
  name: 'a key-value file',
  module: new URL('./kit/file-store.ts', import.meta.url),
  open: openDatabase,
});

const UNDONE = 'an error in the work of a transaction undoes it';
const KILLED = 'a killed process leaves every write of a transaction, or none';

/** The case that each wrong file fails, and what the case reports. */
const FAULTS: Readonly<Record<WrongFile, readonly [name: string, message: RegExp]>> = {
  'returns promises of values': ['values read back unchanged', /bytes are undefined/],
  'sorts keys by UTF-16': ['keys come in the order of their UTF-8 bytes, within the range', /strictly deep-equal/],
  'keeps the writes of failed work': [UNDONE, /no write of `work` has an effect[\s\S]*changed/],
  'stores the writes of a transaction in two parts': [KILLED, /ms after `work`: 2000 × /],
  'stores half of the writes before the work has ended, and takes them back if it fails': [
    KILLED,
    /halfway through `work`/,
  ],
  'acknowledges a transaction before it is stored': [KILLED, /4000 × undefined/],
  'has no lock': ['a transaction excludes those of other processes', /two processes each added one to 0/],
};

for (const name of Object.keys(FAULTS) as WrongFile[]) {
  const [failing, message] = FAULTS[name];
  test(`a key-value file that ${name} fails: ${failing}`, async () => {
    const cases = new Map<string, () => Promise<void>>();
    const wrong = { name: 'wrong', module: moduleOf(name), open: wrongFiles[name] };
    keyValueFileSuite((title, body) => cases.set(title, body), wrong);
    const run = cases.get(`wrong: ${failing}`) ?? assert.fail(failing);
    await assert.rejects(run(), { name: 'ContractBroken', message });
  });
}

const VALUES = 'values of every type survive every change and its inverse';
const EPOCH = 'statements of an earlier epoch change no row';

/** The case that each wrong driver fails, and what the case reports. */
const DRIVER_FAULTS: Readonly<Record<WrongDriver, readonly [name: string, message: RegExp]>> = {
  'drops the first byte of bytes': [VALUES, /bytes, added to rows that exist/],
  'writes bytes as UTF-8': [VALUES, /bytes, added to rows that exist/],
  'stores integers as floats': [VALUES, /count, added to rows that exist/],
  'stores decimals as floats': [VALUES, /after .*"renameField".*"decimal"/],
  'cuts times to seconds': [VALUES, /after .*"renameField".*"time"/],
  'normalizes texts': [VALUES, /after .*"renameField".*"string"/],
  'trims strings': [VALUES, /after .*"renameField".*"string"/],
  'trims texts': [VALUES, /after .*"renameField".*"text"/],
  'reads an empty value as a missing one': [VALUES, /after .*"renameField".*"string"/],
  'reads a missing value as an empty one': [VALUES, /A value of "enum" does not fit/],
  'keeps the values of a dropped field': [VALUES, /a field that was dropped and added again has its old values/],
  'overwrites what others changed': [
    'of concurrent updates of a row, one finds the value that all expect',
    /updates of a row changed it; a change was overwritten/,
  ],
  'writes rows without the lock': [EPOCH, /"renameField".* of an earlier epoch changed a row/],
  'writes new keys in lower case': [VALUES, /a row was added with the key of another/],
  'finds one page of rows': ['a change reaches every row', /1000 !== 1001/],
  'sorts entries by UTF-16': ['pages contain every record once, in both directions', /records up to 3/],
};

/** The cases of the suites on a driver, by name. */
function casesOn(driver: DialectUnderTest): ReadonlyMap<string, () => Promise<void>> {
  const cases = new Map<string, () => Promise<void>>();
  const add: TestFunction = (title, body) => cases.set(title.slice('memory: '.length), body);
  const collect = Object.assign(add, { skipped: () => undefined });
  dialectSuite(collect, driver);
  const { dialect, createDatabase } = driver;
  recordStoreSuite(collect, storeUnderTest(dialect, createDatabase));
  return cases;
}

for (const name of new Set(Object.values(DRIVER_FAULTS).map(([name]) => name))) {
  test(`the right driver passes: ${name}`, async () => casesOn(driverUnderTest()).get(name)!());
}
for (const name of Object.keys(DRIVER_FAULTS) as WrongDriver[]) {
  const [failing, message] = DRIVER_FAULTS[name];
  test(`a key-value driver that ${name} fails: ${failing}`, async () => {
    const run = casesOn(driverUnderTest(wrongDrivers[name])).get(failing) ?? assert.fail(failing);
    await assert.rejects(run(), { name: 'ContractBroken', message });
  });
}

const BYTES = 'an update accepts bytes as base64';

/** The right driver, whose `read` returns bytes as something else. */
function readingBytesAs(convert: (bytes: Uint8Array) => unknown): DialectUnderTest {
  const right = driverUnderTest();
  const converted = (value: unknown) => (value instanceof Uint8Array ? convert(value) : value);
  return {
    ...right,
    read: async (...args) =>
      (await right.read(...args)).map((row) =>
        Object.fromEntries(Object.entries(row).map(([name, value]) => [name, converted(value)])),
      ),
  };
}

test('a read that returns bytes as another view passes, and one that returns them as text fails with that text', async () => {
  await casesOn(readingBytesAs((bytes) => Int8Array.from(bytes))).get(BYTES)!();
  const asText = casesOn(readingBytesAs((bytes) => Buffer.from(bytes).toString('hex'))).get(BYTES)!;
  await assert.rejects(asText(), { name: 'ContractBroken', message: /not bytes: '00275cff78'/ });
});
