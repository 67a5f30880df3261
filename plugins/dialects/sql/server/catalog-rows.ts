import type { UnsupportedObject } from '../../../../core/dialect.ts';
import {
  type CheckConstraint,
  type Constraint,
  type ForeignKey,
  REFERENTIAL_ACTIONS,
} from '../../../../core/schema/model.ts';
import { type Result, withLowerCaseNames } from '../session.ts';
import { unquoteSql } from './defaults.ts';

/**
 * Queries on the catalog, for the tables of the current schema without those of the engine and of svc, whose names begin with
 * `_svc_`. The columns of their rows are named as in `information_schema`, in any case. A flag is true, 1 or YES.
 */
export interface CatalogQueries {
  /** `table_name`. */
  readonly tables: string;
  /**
   * In their order: `table_name`, `column_name`, `data_type` as in `types` or `typeSynonyms`, with its length or precision
   * (`CHARACTER VARYING(40)`, `INTEGER ARRAY`), `column_default`, `is_nullable`, `is_identity` (the engine numbers its rows), and
   * for an enum type `enum_values`, as a list or a JSON array.
   */
  readonly columns: string;
  /**
   * A row for each column of a constraint, in their order: `table_name`, `constraint_name`, `constraint_type` (`PRIMARY KEY`,
   * `UNIQUE`, `FOREIGN KEY` or `CHECK`), `column_name`, and `check_clause` or `target_table`, `target_column`, `delete_rule` and
   * `update_rule`. Constraints that svc wrote for the flags of fields are recognized by their names.
   */
  readonly constraints: string;
  /**
   * Statements in the only column, whatever they are: keys are also read from `ALTER TABLE … ADD CONSTRAINT "name" PRIMARY KEY`,
   * `UNIQUE` and `FOREIGN KEY`.
   */
  readonly keyStatements?: string;
  /**
   * A row for each column of an index, in their order, without the indexes that the engine creates for constraints:
   * `table_name`, `index_name`, `column_name`, `is_unique` and `is_descending`.
   */
  readonly indexes: string;
  /** What a model cannot express: `table_name`, or null, and `what`, which completes "it …": `has the trigger audit`. */
  readonly unsupported?: string;
}

/** The tables of a catalog. */
export interface CatalogRows {
  readonly tables: readonly string[];
  readonly columns: readonly CatalogColumn[];
  readonly constraints: readonly CatalogConstraint[];
  readonly indexes: readonly CatalogIndexColumn[];
  readonly unsupported: readonly UnsupportedObject[];
}

export interface CatalogColumn {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly values: readonly string[] | undefined;
  readonly default: string | undefined;
  readonly required: boolean;
  readonly identity: boolean;
}

type CatalogConstraint = Constraint & { readonly table: string };

interface CatalogIndexColumn {
  readonly table: string;
  readonly name: string;
  readonly column: string;
  readonly unique: boolean;
  readonly descending: boolean;
}

type Row = Result['rows'][number];

/** Runs queries and returns the rows of each. */
export type QueryAll = (texts: readonly string[]) => Promise<readonly Result['rows'][]>;

export async function readCatalogRows(queryAll: QueryAll, queries: CatalogQueries): Promise<CatalogRows> {
  const { tables, columns, constraints, indexes, keyStatements, unsupported } = queries;
  const optional = [keyStatements, unsupported];
  const results = await queryAll([
    ...[tables, columns, constraints, indexes],
    ...optional.filter((query) => query !== undefined),
  ]);
  const [tableRows = [], columnRows = [], constraintRows = [], indexRows = [], ...rest] = results.map((rows) =>
    rows.map(withLowerCaseNames),
  );
  const statementRows = keyStatements === undefined ? [] : (rest.shift() ?? []);
  return {
    tables: tableRows.map((row) => String(row.table_name)),
    columns: columnRows.map((row) => ({
      table: String(row.table_name),
      name: String(row.column_name),
      type: String(row.data_type),
      values: textsOf(row.enum_values),
      default: optionalText(row.column_default),
      required: !isTrue(row.is_nullable),
      identity: isTrue(row.is_identity),
    })),
    constraints: [
      ...toConstraints(constraintRows),
      ...statementRows.flatMap((row) => readKeyStatement(String(Object.values(row)[0]))),
    ],
    indexes: indexRows.map((row) => ({
      table: String(row.table_name),
      name: String(row.index_name),
      column: String(row.column_name),
      unique: isTrue(row.is_unique),
      descending: isTrue(row.is_descending),
    })),
    unsupported: (rest[0] ?? []).map((row) => {
      const collection = optionalText(row.table_name);
      return { ...(collection !== undefined && { collection }), what: String(row.what) };
    }),
  };
}

const isTrue = (value: unknown): boolean => /^(true|1|yes)$/i.test(String(value));

const optionalText = (value: unknown): string | undefined =>
  value === null || value === undefined ? undefined : String(value);

const textsOf = (value: unknown): readonly string[] | undefined =>
  typeof value === 'string' ? JSON.parse(value) : ((value as readonly string[] | null | undefined) ?? undefined);

function toConstraints(rows: readonly Row[]): readonly CatalogConstraint[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = JSON.stringify([row.table_name, row.constraint_name]);
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups.values()].map((group): CatalogConstraint => {
    const [first = {}] = group;
    const named = {
      table: String(first.table_name),
      name: String(first.constraint_name),
      columns: group.flatMap((row) => optionalText(row.column_name) ?? []),
    };
    switch (first.constraint_type) {
      case 'CHECK':
        return { ...named, type: 'check', expression: String(first.check_clause) } satisfies CheckConstraint & Named;
      case 'FOREIGN KEY':
        return {
          ...named,
          type: 'foreignKey',
          references: {
            table: String(first.target_table),
            columns: group.map((row) => String(row.target_column)),
            ...actions(optionalText(first.delete_rule), optionalText(first.update_rule)),
          },
        };
      default:
        return { ...named, type: first.constraint_type === 'UNIQUE' ? 'unique' : 'primaryKey' };
    }
  });
}

type Named = { readonly table: string };

const ACTIONS = REFERENTIAL_ACTIONS.filter((action) => action !== 'NO ACTION');

function actions(deleteRule: string | undefined, updateRule: string | undefined) {
  const onDelete = ACTIONS.find((action) => action === deleteRule?.toUpperCase());
  const onUpdate = ACTIONS.find((action) => action === updateRule?.toUpperCase());
  return { ...(onDelete && { onDelete }), ...(onUpdate && { onUpdate }) } satisfies Partial<ForeignKey['references']>;
}

const NAME = '(?:U&)?"(?:[^"]|"")*"';
const LIST = `\\(((?:${NAME}(?:, ?)?)+)\\)`;
/** `ALTER TABLE "schema"."table" ADD CONSTRAINT "schema"."name" FOREIGN KEY("a") REFERENCES "schema"."target"("b") ON …`. */
const KEY_STATEMENT = new RegExp(
  `^ALTER TABLE (?:${NAME}\\.)*(${NAME}) ADD CONSTRAINT (?:${NAME}\\.)*(${NAME}) (PRIMARY KEY|UNIQUE|FOREIGN KEY)[ A-Z]*${LIST}(?: REFERENCES (?:${NAME}\\.)*(${NAME}) ?${LIST}(.*))?`,
);
const namesIn = (list = ''): readonly string[] => (list.match(new RegExp(NAME, 'g')) ?? []).map(unquoteSql);

function readKeyStatement(statement: string): readonly CatalogConstraint[] {
  const [, table = '', name = '', kind, list, target, targets, rules = ''] = KEY_STATEMENT.exec(statement) ?? [];
  if (kind === undefined) return [];
  const key = { table: unquoteSql(table), name: unquoteSql(name), columns: namesIn(list) };
  if (target === undefined) return [{ ...key, type: kind === 'UNIQUE' ? 'unique' : 'primaryKey' }];
  const ruleOf = (event: string) => new RegExp(`ON ${event} (CASCADE|RESTRICT|SET \\w+)`).exec(rules)?.[1];
  const columns = namesIn(targets);
  const references = { table: unquoteSql(target), columns, ...actions(ruleOf('DELETE'), ruleOf('UPDATE')) };
  return [{ ...key, type: 'foreignKey', references }];
}
