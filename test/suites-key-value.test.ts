import * as assert from 'node:assert/strict';
import { openDatabase } from './kit/file-store.ts';
import { test } from './kit/test.ts';
import { keyValueFileSuite } from './suites/key-value-file-suite.ts';
import { moduleOf, type WrongFile, wrongFiles } from './suites/wrong/key-value-files.ts';

/** The suite of key-value files detects wrong ones: each must fail, by the case about its fault. The right one passes. */

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
