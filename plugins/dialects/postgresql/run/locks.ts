import type { Statement } from '../../../../core/dialect.ts';
import { type LockEffect, MOMENT } from '../../sql/find-locks.ts';
import type { PostgresqlStep } from '../compile/step.ts';

const REWRITE: LockEffect = { blocks: 'reads and writes', work: 'write' };

/** The first that matches. Source: "Explicit Locking" and the notes of the statements in the manual of PostgreSQL. */
const EFFECTS: readonly (readonly [pattern: RegExp, effect: LockEffect])[] = [
  [
    /^(?:SELECT FROM|CREATE (?:UNIQUE )?INDEX CONCURRENTLY|ALTER TABLE .* VALIDATE CONSTRAINT)/s,
    { blocks: 'nothing', work: 'read' },
  ],
  [/^UPDATE .* -- in batches$/s, { blocks: 'nothing', work: 'write' }],
  [/^UPDATE /, REWRITE],
  [/^(?:DROP INDEX CONCURRENTLY|COMMENT ON|(?:CREATE|DROP) FUNCTION)/, { blocks: 'nothing', work: 'none' }],
  [/^CREATE TRIGGER/, { blocks: 'writes', work: 'none' }],
  [/^CREATE (?:UNIQUE )?INDEX/, { blocks: 'writes', work: 'read' }],
  [/FOREIGN KEY .*NOT VALID$/s, { blocks: 'writes', work: 'none' }],
  [/FOREIGN KEY/, { blocks: 'writes', work: 'read' }],
  [/(?:NOT VALID|USING INDEX .*)$/s, MOMENT],
  [/ADD COLUMN \S+ .*(?:DEFAULT \(|gen_random_uuid\(\)|AS IDENTITY|serial\b|STORED\b)/s, REWRITE],
  [/ADD CONSTRAINT|SET NOT NULL/, { blocks: 'reads and writes', work: 'read' }],
];

/** What a statement does, by its text, where names and values may look like words of the language. */
export function effectOf(
  { text, run }: Statement<PostgresqlStep>,
  previous: Statement<PostgresqlStep> | undefined,
): LockEffect {
  if (run.kind === 'sql' && (run.copies !== undefined || run.rewrites === true)) return REWRITE;
  // The server knows it from the constraint.
  if (/ SET NOT NULL$/.test(text) && / VALIDATE CONSTRAINT /.test(previous?.text ?? '')) return MOMENT;
  const words = text.replace(/"(?:[^"]|"")*"/g, '"name"').replace(/'(?:[^']|'')*'/g, "'value'");
  return EFFECTS.find(([pattern]) => pattern.test(words))?.[1] ?? MOMENT;
}
