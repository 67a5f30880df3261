import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { withoutDefault } from '../../../../core/schema/mirror.ts';
import type { Collection, Field } from '../../../../core/schema/model.ts';
import { derivedName } from '../../../../core/schema/names.ts';
import { columnDefinition, defaultExpression } from '../../sql/column.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { uniqueName } from '../../sql/names.ts';
import type { Traits } from '../variant.ts';
import { quoteIdentifier } from './literal.ts';
import { addUnique, rejectMissingTimestamps } from './modify-field.ts';
import { objectRules } from './objects.ts';
import {
  type AlterClause,
  alterStatement,
  existsQuery,
  fillStatement,
  type MysqlStatement,
  type MysqlStep,
  missingQuery,
  planned,
  withViolations,
} from './step.ts';

type Mirrors = Required<Pick<Grammar<MysqlStep>, 'addMirror' | 'dropMirror'>>;

/** Two triggers that keep two columns in step. */
export function mirrors(grammar: Grammar<MysqlStep>, traits: Traits): Mirrors {
  const { compile } = objectRules(traits);
  const create = (table: string, { name, definition }: Trigger) =>
    compile({ type: 'createObject', kind: 'trigger', name: `${table}.${name}`, definition });
  const drop = (table: string, { name, definition }: Trigger) =>
    compile({ type: 'dropObject', kind: 'trigger', name: `${table}.${name}`, was: definition });
  return {
    addMirror(before, field, other) {
      const { name: table } = before;
      const empty = applyFieldChanges(field, { required: false, unique: false, default: null }, table);
      return [
        alterStatement(
          traits,
          table,
          [{ kind: 'addColumn', column: field.name, definition: columnDefinition(grammar, empty, table) }],
          { check: existsQuery('columns', table, { column_name: field.name }) },
        ),
        ...triggersOf(before, field, other).flatMap((trigger) => create(table, trigger)),
        fillStatement(table, field.name, quoteIdentifier(other.name)),
        ...completed(grammar, traits, table, field),
      ];
    },
    dropMirror(before, field, other) {
      const { name: table } = before;
      const condition = `NOT ${isSame(quoteIdentifier(field.name), quoteIdentifier(other.name))}`;
      const why = `Values of ${field.name} and ${other.name} differ.`;
      const text = `SELECT 1 FROM ${quoteIdentifier(table)} WHERE ${condition} LIMIT 1 -- finds no row`;
      const next = 'Give both fields the same value in those rows.';
      const reads = { [table]: [field.name, other.name] };
      return [
        planned({ kind: 'checkRows', table, condition, why, next }, text, { idempotent: true }),
        ...triggersOf(before, field, other).flatMap((trigger) => drop(table, trigger)),
        {
          ...withViolations(grammar.dropField(before, field), [{ condition, why, next, reads }]),
          destructive: false,
          check: missingQuery(existsQuery('columns', table, { column_name: field.name })),
        },
      ];
    },
  };
}

/** What an empty column lacks, once it has its values. */
function completed(
  grammar: Grammar<MysqlStep>,
  traits: Traits,
  table: string,
  field: Field,
): readonly MysqlStatement[] {
  const { name, required } = field;
  const value = defaultExpression(grammar, field, table);
  const changes = { ...(required && { required }), ...(value !== undefined && { default: { sql: value } }) };
  const keys = addUnique(grammar, field, table);
  const clauses: AlterClause[] = [
    ...(Object.keys(changes).length > 0 ? [{ kind: 'modifyColumn', column: name, ...changes } as const] : []),
    ...keys,
  ];
  if (clauses.length === 0) return [];
  const facts =
    keys.length > 0
      ? { check: existsQuery('statistics', table, { index_name: uniqueName(table, name), column_name: name }) }
      : ({ idempotent: true } as const);
  const checks = required ? rejectMissingTimestamps(field) : {};
  const text = `MODIFY COLUMN ${columnDefinition(grammar, field, table)}`;
  return [alterStatement(traits, table, clauses, facts, checks, text)];
}

interface Trigger {
  readonly name: string;
  readonly definition: string;
}

/** Where both columns have values that differ, the one without a default has been written. */
function triggersOf({ name: table }: Collection, field: Field, other: Field): readonly Trigger[] {
  const written = withoutDefault(field, other);
  const [from, to] = [written, written === field ? other : field].map(({ name }) => `NEW.${quoteIdentifier(name)}`);
  const base = derivedName(table, [field.name, other.name].sort(), 'mirror', { max: 52, unit: 'bytes' });
  const isUnwritten = isSame(String(from), `OLD.${quoteIdentifier(written.name)}`);
  const trigger = (event: 'INSERT' | 'UPDATE', value: string): Trigger => {
    const name = `_svc_${base}_${event.toLowerCase()}`;
    const on = `BEFORE ${event} ON ${quoteIdentifier(table)} FOR EACH ROW`;
    return {
      name,
      definition: `CREATE TRIGGER ${quoteIdentifier(name)} ${on} SET ${from} = ${value}, ${to} = ${from}`,
    };
  };
  return [trigger('INSERT', `COALESCE(${from}, ${to})`), trigger('UPDATE', `IF(${isUnwritten}, ${to}, ${from})`)];
}

/** Byte by byte: a collation may ignore case or accents. */
const isSame = (one: string, other: string): string => `(CAST(${one} AS BINARY) <=> CAST(${other} AS BINARY))`;
