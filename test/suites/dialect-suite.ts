import { connectionCases } from './connection-cases.ts';
import { crashCases } from './crash-cases.ts';
import { connectedCase, dialectCase } from './dialect-case.ts';
import type { DialectUnderTest, SqlSyntax } from './dialect-under-test.ts';
import { lockCases } from './lock-cases.ts';
import { openingCase } from './opening-case.ts';
import { processCases } from './process-cases.ts';
import { randomSchemaCase } from './random-schema-cases.ts';
import { rowCases } from './row-cases.ts';
import { runCases } from './run-cases.ts';
import { schemaCases } from './schema-cases.ts';
import { segmentCases } from './segment-cases.ts';
import { type DeclareCase, reportSkipped, suite, type TestFunction } from './suite.ts';
import { supportedOperations } from './supported-operations.ts';
import { timeZoneCase } from './time-zone-case.ts';
import { updateCases } from './update-cases.ts';
import { valueCases } from './value-cases.ts';

/**
 * Tests that a dialect fulfills its contract. An operation that needs a feature in `capabilities.unsupported` must be
 * rejected with the reason and the alternative given there. Every other operation must work, read back, and be followed by
 * the rows that a program inserts. Other processes with the dialect are started and killed.
 */
export function dialectSuite(test: TestFunction, engine: DialectUnderTest): void {
  suite(test, engine, (declare) => cases(declare, engine));
  if (typeof engine.skip === 'string') return;
  for (const [rule, reason] of Object.entries(engine.notEnforced ?? {}))
    reportSkipped(test, `${engine.name}: inserted rows that rely on "${rule}" of a field`, reason);
}

function cases(declare: DeclareCase, engine: DialectUnderTest): void {
  const syntax = engine.syntax ?? NO_SYNTAX;
  const supported = supportedOperations(engine.dialect);
  const onDatabase = dialectCase(declare, engine);
  const on = connectedCase(onDatabase);
  schemaCases(on, engine, syntax, supported);
  randomSchemaCase(on, engine, syntax, supported);
  rowCases(onDatabase, engine, supported);
  valueCases(onDatabase, engine, supported);
  updateCases(on, engine, supported);
  connectionCases(on, engine, supported);
  openingCase(onDatabase, engine);
  lockCases(on);
  runCases(on, engine, supported);
  segmentCases(onDatabase);
  processCases(onDatabase, engine);
  timeZoneCase(onDatabase, engine, supported);
  crashCases(declare, engine);
}

/** For dialects that support no expressions. */
const NO_SYNTAX: SqlSyntax = { sum: '1', now: '1', notNull: () => '1', numberRules: () => '1' };
