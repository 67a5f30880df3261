import * as assert from 'node:assert/strict';
import { engines } from './kit/engines.ts';
import type { RemadeCases } from './kit/remade-cases.ts';
import { POSTGRESQL_CASES, POSTGRESQL_SAID, POSTGRESQL_SETUP } from './kit/remade-postgresql.ts';
import { POSTGRESQL_OTHERS, POSTGRESQL_OTHERS_SAID, POSTGRESQL_UNLISTED_SAID } from './kit/remade-postgresql-others.ts';
import { type Grown, remake } from './kit/remake.ts';
import { test } from './kit/test.ts';

/** Databases with more than one schema, made again from the files that `pull` wrote. */

/** Without what is made in schemas of its own, and the body of a function, whose names mean what the path of each session says. */
const movable = (name: string): boolean => !(name in POSTGRESQL_OTHERS) && !name.startsWith('check_function_reads');

const inSchema: RemadeCases = {
  // A case has the path of the one before.
  crm: 'create schema crm; set search_path to crm, public',
  ...Object.fromEntries(Object.entries(POSTGRESQL_CASES).filter(([name]) => movable(name))),
};

const said = (names: readonly string[]): readonly string[] => names.filter(movable).map((name) => `crm.${name}`);

function on(title: string, grown: Grown, expected: readonly string[], list = engines): void {
  for (const engine of list) {
    const whole = `${engine.name}: ${title}`;
    if (engine.missing !== undefined) test.skip(whole, engine.missing);
    else
      test(
        whole,
        async () => {
          const remade = await remake(engine, grown);
          assert.deepEqual(remade.silent, []);
          assert.deepEqual(remade.said, [...expected].sort());
        },
        { timeoutMs: 600_000 },
      );
  }
}

on(
  'what uses objects of a schema that is not listed is the same, or a warning says what is not',
  { setup: POSTGRESQL_SETUP, cases: POSTGRESQL_OTHERS },
  POSTGRESQL_UNLISTED_SAID,
);
on(
  'what is in another schema is the same there, or a warning says what is not',
  { setup: POSTGRESQL_SETUP, cases: inSchema, allSchemas: true },
  said(POSTGRESQL_SAID.filter((name) => !POSTGRESQL_OTHERS_SAID.includes(name))),
  // PGlite has the same catalog.
  engines.filter(({ name }) => name === 'postgresql'),
);
