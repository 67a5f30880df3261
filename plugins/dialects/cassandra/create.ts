import type { Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { defineCollection } from '../../../core/schema/define.ts';
import { exists } from '../../../core/schema/lookup.ts';
import type { SchemaModel } from '../../../core/schema/model.ts';
import { checkNameFits } from '../../../core/schema/names.ts';
import type { CreateCollection } from '../../../core/schema/operation.ts';
import type { CassandraOptions } from '../../../core/schema/options.ts';
import { checkField, withNotes } from './field-text.ts';
import { keyOf } from './key.ts';
import { ENGINE, list, nameRules, quote } from './names.ts';
import { registered } from './registry.ts';
import { statement } from './statement.ts';
import { columnType } from './types.ts';

export function createCollection(operation: CreateCollection, before: SchemaModel): Statement[] {
  const collection = defineCollection(operation);
  const { name: table, fields, options } = collection;
  checkNameFits(ENGINE, nameRules, table, 'table');
  for (const field of fields.values()) checkField(field, table);
  if (before.has(table) && !operation.options?.sqlOptions?.ifNotExists) throw exists('collection', table);
  const { partition, clustering } = keyOf(collection);
  const columns = [...fields.values()].map((field) => `${quote(field.name)} ${columnType(field)}`);
  const parts = [`(${list(partition)})`, ...clustering.map(({ name }) => quote(name))];
  const order = clustering.map(({ name, order: direction }) => `${quote(name)} ${direction}`).join(', ');
  const properties = [
    ...(clustering.some(({ order: direction }) => direction === 'DESC') ? [`CLUSTERING ORDER BY (${order})`] : []),
    ...tableProperties(options.cassandraOptions ?? {}, table),
  ];
  const cql = `CREATE TABLE ${quote(table)} (\n  ${[...columns, `PRIMARY KEY (${parts.join(', ')})`].join(',\n  ')}\n)${properties.length > 0 ? ` WITH ${properties.join(' AND ')}` : ''}`;
  const types = Object.fromEntries([...fields.values()].map((field) => [field.name, columnType(field)]));
  return [
    statement(withNotes(cql, [...fields.values()]), {
      kind: 'ddl',
      cql,
      table,
      effect: { columns: types },
      registered: registered(collection),
      creates: true,
    }),
  ];
}

const LONGEST_TTL = 630_720_000;

function tableProperties({ defaultTTL, compaction }: CassandraOptions, table: string): string[] {
  if (defaultTTL !== undefined && !(Number.isSafeInteger(defaultTTL) && defaultTTL >= 0 && defaultTTL <= LONGEST_TTL)) {
    throw optionRefused(
      table,
      'defaultTTL',
      `It is ${defaultTTL} and not a number of seconds from 0 to ${LONGEST_TTL}.`,
    );
  }
  return [
    ...(defaultTTL === undefined ? [] : [`default_time_to_live = ${defaultTTL}`]),
    ...(compaction === undefined ? [] : [`compaction = {${compactionText(compaction, table)}}`]),
  ];
}

function compactionText(compaction: NonNullable<CassandraOptions['compaction']>, table: string): string {
  if (typeof compaction.class !== 'string' || !/^[\w.]+$/.test(compaction.class)) {
    throw optionRefused(table, 'compaction', 'Its class is the name of a strategy, as "LeveledCompactionStrategy".');
  }
  return Object.entries(compaction)
    .map(([name, value]) => {
      if (typeof value === 'object') throw optionRefused(table, 'compaction', `"${name}" is no plain value.`);
      return `${text(name)}: ${text(String(value))}`;
    })
    .join(', ');
}

function optionRefused(table: string, option: string, why: string): SvcError {
  return new SvcError('schema_invalid', `The option ${option} of the table "${table}" cannot be used.`, {
    why,
    details: { path: ['options', 'cassandraOptions', option] },
  });
}

const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;
