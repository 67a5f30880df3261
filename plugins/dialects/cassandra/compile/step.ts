import type { Segment, Statement } from '../../../../core/dialect.ts';
import type { Collection, Field } from '../../../../core/schema/model.ts';
import type { TableOptions } from '../../../../core/schema/options.ts';

/** What a statement does, as the journal stores it. */
export type CassandraStep = DdlStep | RegistryStep | CopyStep | FillStep | RawStep | AwaitStep;

export type CassandraStatement = Statement<CassandraStep>;
export type CassandraSegment = Segment<CassandraStep>;

/** One CQL statement that changes the schema. */
export interface DdlStep {
  readonly kind: 'ddl';
  readonly cql: string;
  /** The state of the catalog once the statement has taken effect, checked if its response is lost. */
  readonly effect: CatalogEffect;
  readonly table: string;
  /** The registry entry, written before the statement; deleted after one that drops the table. */
  readonly registered?: Registered;
  readonly creates?: true;
  /** An interrupted attempt may have added the column already. */
  readonly resumes?: true;
  /** The table must be empty, because the field is required and has no default. */
  readonly empty?: true;
  /** The column that is copied to the new one. Its type must be one that svc creates. */
  readonly copies?: string;
  /** Checked before the statement: every value must convert to the new field. */
  readonly converted?: FieldConversion;
  /** Run again before the copied column is dropped. */
  readonly copied?: CopyStep;
}

type CatalogEffect =
  | { readonly table: false }
  | { readonly columns: Readonly<Record<string, string | null>> }
  | { readonly index: string; readonly target: string | null }
  /** Of an object: the statement has a check of its own. */
  | { readonly unknown: true };

/** Changes only the registry. With `narrowed`, every row must be valid for the new field. */
interface RegistryStep {
  readonly kind: 'register';
  readonly table: string;
  readonly registered: Registered;
  readonly narrowed?: Field;
}

export interface FieldConversion {
  readonly from: Field;
  readonly to: Field;
}

/** Copies every value of one column to another, with its write time and remaining time to live. */
export interface CopyStep {
  readonly kind: 'copy';
  readonly table: string;
  readonly key: readonly string[];
  readonly from: string;
  readonly to: string;
  /** The type is a list, whose write times cannot be preserved. */
  readonly list: boolean;
  /** Absent if values are copied unchanged. */
  readonly converted?: FieldConversion;
}

/** Sets the default in rows without a value. */
export interface FillStep {
  readonly kind: 'fill';
  readonly table: string;
  readonly key: readonly string[];
  readonly field: Field;
}

/** A user's statement. */
interface RawStep {
  readonly kind: 'raw';
  readonly cql: string;
}

/** Waits until a schema change is usable on every node. */
export interface AwaitStep {
  readonly kind: 'await';
  /** The index to wait for. */
  readonly index?: string;
}

export function statementFor(
  text: string,
  step: CassandraStep,
  properties: Partial<Pick<Statement, 'destructive' | 'idempotent' | 'check'>> = {},
): CassandraStatement {
  const awaitStep = awaitStepOf(step);
  return {
    text,
    run: step,
    transactional: false,
    destructive: false,
    ...(awaitStep && { awaitEffect: awaitStep }),
    ...properties,
  };
}

function awaitStepOf(step: CassandraStep): AwaitStep | undefined {
  if (step.kind === 'raw') return { kind: 'await' };
  if (step.kind !== 'ddl') return undefined;
  const { effect } = step;
  return { kind: 'await', ...('index' in effect && effect.target !== null && { index: effect.index }) };
}

/** The properties of a table that the catalog cannot store. Written before a change; valid only where the catalog agrees. */
export interface Registered {
  /** In the order in which they were added. */
  readonly fields: readonly RegisteredField[];
  /** Only the options that match the catalog are valid; a rename has two. */
  readonly options: readonly TableOptions[];
  /** The id of the table that is being dropped. The entry is not valid for a later table of the same name. */
  readonly dropping?: string;
}

interface RegisteredField extends Field {
  /** The field is hidden until this column is dropped. */
  readonly replaces?: string;
}

export const registeredFields = ({ fields, options }: Pick<Collection, 'fields' | 'options'>): Registered => ({
  fields: [...fields.values()],
  options: [options],
});
