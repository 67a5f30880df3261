import type { RunOutcome } from '../../../../core/dialect.ts';
import type { SchemaModel } from '../../../../core/schema/model.ts';
import { type ExecSql, rowsOf, type Session } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';
import type { PostgresqlStep } from '../compile/step.ts';
import { lockHeldBySession } from '../connection/lock.ts';
import type { Settings } from '../connection/settings.ts';

export interface RunContext {
  readonly session: Session;
  /** Quoted, with its dot. */
  readonly schema: string;
  readonly settings: Settings;
  /** SQL that restores the settings the session was opened with. */
  readonly restoreSettings: string;
  introspect(exec: ExecSql, collections: readonly string[]): Promise<SchemaModel>;
}

/** The values that the engine filled in for the record writes of one segment. */
export type SegmentValues = RunOutcome['written'][number];

export interface BatchOutcome {
  readonly written: readonly SegmentValues[];
  readonly failure?: NonNullable<RunOutcome['failure']>;
  /** The first segment that is not written may be retried. */
  readonly retry?: boolean;
  /** The failed segment is unknown, for example after a syntax error, when none of the text was run. */
  readonly split?: boolean;
}

export function statementText({ schema }: RunContext, step: PostgresqlStep): string {
  switch (step.kind) {
    case 'sql':
      return step.parts.join(schema);
    case 'raw':
      return step.inSchema ? `${searchSchema(schema)};\n${step.sql}\n;${RESTORE_SEARCH_PATH}` : step.sql;
    case 'dropInvalidIndex':
    case 'fill':
      throw new Error('this step cannot be in a transaction');
  }
}

/** `schema` is quoted, with its dot. */
const searchSchema = (schema: string): string =>
  `SELECT WHERE set_config('search_path', ${quoteLiteral(schema.slice(0, -1))} || ', ' || current_setting('search_path'), true) IS NULL`;
const RESTORE_SEARCH_PATH = 'SET LOCAL search_path TO DEFAULT';

export async function holdsLock({ schema }: RunContext, exec: ExecSql): Promise<boolean> {
  return (await rowsOf(exec, `SELECT FROM ${lockHeldBySession(schema)}`)).length > 0;
}
