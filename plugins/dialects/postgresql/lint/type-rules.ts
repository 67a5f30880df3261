import { definedFields } from '../../../../core/lint/design-rules.ts';
import type { LintMatch, LintRule, LintStep } from '../../../../core/lint/rule.ts';
import { alterClauses, createdTables, matching } from '../../../../core/lint/sql-text.ts';
import type { Field } from '../../../../core/schema/model.ts';

/** Types, keys and rights that PostgreSQL's own manual and wiki advise against. */

/** A rule about the types of new fields: of operations, of native types, and of raw column definitions. */
function typeRule(
  rule: Omit<LintRule, 'check'>,
  types: RegExp,
  isType: (field: Field) => boolean = () => false,
): LintRule {
  const native = new RegExp(`^(?:${types.source})`, 'i');
  const column = new RegExp(
    `^(?:add (?:column )?(?:if not exists )?)?(?!constraint |primary |unique |foreign |check )\\S+ (${types.source})`,
    'i',
  );
  return {
    ...rule,
    check: (step) => [
      ...definedFields(step).flatMap(({ table, field }) =>
        isType(field) || native.test(field.native ?? '')
          ? [{ table: table.name, message: `"${table.name}.${field.name}" is ${field.native ?? field.type}.` }]
          : [],
      ),
      ...rawColumns(step).flatMap(({ table, definition }): readonly LintMatch[] => {
        const [, type] = column.exec(definition) ?? [];
        return type === undefined ? [] : [{ table, message: `A column of "${table}" is ${type.toLowerCase()}.` }];
      }),
    ],
  };
}

const rawColumns = ({ sql }: LintStep): readonly { readonly table: string; readonly definition: string }[] => [
  ...createdTables(sql).flatMap(({ table, members }) => members.map((definition) => ({ table, definition }))),
  ...alterClauses(sql).flatMap(({ table, clause }) => (/^add /i.test(clause) ? [{ table, definition: clause }] : [])),
];

export const typeRules: readonly LintRule[] = [
  {
    id: 'SVC402',
    name: 'foreign-key-without-index',
    level: 'warning',
    summary: 'No index begins with the fields of a foreign key.',
    impact: 'Deleting a referenced row, or changing its key, reads the whole table, under a lock.',
    fix: 'Create an index whose first columns are those of the foreign key.',
    check: ({ operation, after, migration }) => {
      if (operation.type !== 'addConstraint' || operation.constraint.type !== 'foreignKey') return [];
      const { collection, constraint } = operation;
      const table = after.get(collection);
      if (!table || table.fields.size === 0) return [];
      const keys = [
        [...table.fields.values()].flatMap(({ name, primaryKey }) => (primaryKey ? [name] : [])),
        ...[...table.fields.values()].flatMap(({ name, unique }) => (unique ? [[name]] : [])),
        ...[...table.constraints.values()].flatMap(({ type, columns }) =>
          type === 'unique' || type === 'primaryKey' ? [columns] : [],
        ),
        ...[...table.indexes.values()].map(({ columns }) => columns.map(({ name }) => name)),
      ];
      const begins = (columns: readonly string[]): boolean => {
        const first = new Set(columns.slice(0, constraint.columns.length));
        return first.size === constraint.columns.length && constraint.columns.every((name) => first.has(name));
      };
      const isIndexed =
        keys.some(begins) ||
        migration.up.some(
          (one) =>
            one.type === 'createIndex' && one.collection === collection && begins(one.columns.map(({ name }) => name)),
        );
      return isIndexed
        ? []
        : [{ table: collection, message: `"${constraint.columns.join(', ')}" of "${collection}" has no index.` }];
    },
  },
  typeRule(
    {
      id: 'SVC404',
      name: 'time-without-zone',
      level: 'note',
      summary: 'A field has a date and time without a time zone.',
      impact: 'A moment is stored as the wall clock of the program that wrote it, and read as another one elsewhere.',
      fix: 'Use "timestamp", unless the wall clock is what is meant.',
    },
    /timestamp(?: ?\(\d\))?(?! ?(?:\(\d\) ?)?with time zone)(?!tz)\b/,
    ({ type, native }) => type === 'datetime' && native === undefined,
  ),
  typeRule(
    {
      id: 'SVC405',
      name: 'json-without-equality',
      level: 'warning',
      summary: 'A field has the type json of PostgreSQL.',
      impact: 'It has no equality: DISTINCT, UNION and GROUP BY fail, also in queries that worked before.',
      fix: 'Use the field type json without "native", which is jsonb.',
    },
    /json\b/,
  ),
  typeRule(
    {
      id: 'SVC406',
      name: 'padded-text',
      level: 'note',
      summary: 'A field has a character type of fixed length.',
      impact: 'Values are padded with spaces, which comparisons then ignore.',
      fix: 'Use string or text, with a check of the length if it matters.',
    },
    /(?:char|character|bpchar)(?! varying)\b(?! ?varying)/,
  ),
  typeRule(
    {
      id: 'SVC407',
      name: 'serial-key',
      level: 'note',
      summary: 'A field is a serial.',
      impact: 'Its sequence has rights and an owner of its own, and anybody may write other values.',
      fix: 'Use "autoGenerate", which is an identity.',
    },
    /(?:small|big)?serial\d?\b/,
  ),
  typeRule(
    {
      id: 'SVC408',
      name: 'money-type',
      level: 'warning',
      summary: 'A field has the type money of PostgreSQL.',
      impact: 'Its fraction and its currency depend on a setting of the server.',
      fix: 'Use decimal with precision and scale.',
    },
    /money\b/,
  ),
  typeRule(
    {
      id: 'SVC412',
      name: 'time-with-zone',
      level: 'note',
      summary: 'A field is a time of day with a time zone.',
      impact: 'An offset without a date says nothing about summer time.',
      fix: 'Use "timestamp", or "time" together with the name of a zone.',
    },
    /(?:timetz|time(?: ?\(\d\))? with time zone)\b/,
  ),
  {
    id: 'SVC410',
    name: 'no-primary-key',
    level: 'warning',
    summary: 'A table has no primary key.',
    impact: 'Logical replication cannot update or delete its rows, and one of two equal rows cannot be removed.',
    fix: 'Give it a primary key.',
    check: ({ operation, after, sql, migration }) => {
      if (operation.type === 'createCollection') {
        const table = after.get(operation.name);
        const hasKey =
          !table ||
          [...table.fields.values()].some(({ primaryKey }) => primaryKey) ||
          [...table.constraints.values()].some(({ type }) => type === 'primaryKey') ||
          migration.up.some(
            (one) =>
              one.type === 'addConstraint' && one.collection === operation.name && one.constraint.type === 'primaryKey',
          );
        return hasKey ? [] : [{ table: operation.name, message: `"${operation.name}" has no primary key.` }];
      }
      return createdTables(sql).flatMap(({ table, members, text }) =>
        members.length === 0 ||
        members.some((member) => /\bprimary key\b|^like\b/i.test(member)) ||
        /^create (?:\w+ )*temp|\bpartition of\b|\binherits\b/i.test(text)
          ? []
          : [{ table, message: `"${table}" has no primary key.` }],
      );
    },
  },
  {
    id: 'SVC506',
    name: 'security-definer',
    level: 'error',
    summary: 'A function runs with the rights of its owner, and with the search path of its caller.',
    impact: 'A user who may create objects in a schema of the path can have the owner run their code.',
    fix: 'Add SET search_path = pg_catalog, <schema> to the function.',
    check: ({ operation, sql }) => {
      const texts =
        operation.type === 'createObject' || operation.type === 'replaceObject'
          ? [operation.definition]
          : sql.map(({ text }) => text);
      return texts.flatMap((text) =>
        /^\s*create (?:or replace )?(?:function|procedure)\b/i.test(text) &&
        /\bsecurity definer\b/i.test(text) &&
        !/\bset search_path\b/i.test(text)
          ? [{ message: 'A function is SECURITY DEFINER without a search path of its own.' }]
          : [],
      );
    },
  },
  {
    id: 'SVC508',
    name: 'row-security-off',
    level: 'error',
    summary: 'Row level security is turned off, or lets everything through.',
    impact: 'Rows of one tenant become visible to, or writable by, another.',
    fix: 'Change the policy instead, and try it with the role of the application.',
    check: ({ operation, sql }) => [
      ...alterClauses(sql).flatMap(({ table, clause }) =>
        /^(?:disable|no force) row level security$/i.test(clause)
          ? [{ table, message: `Row level security of "${table}" is turned off.` }]
          : [],
      ),
      ...matching(sql, /^create policy .*\b(?:using|with check) ?\( ?true ?\)/i)
        .filter(({ text }) => !/\bas restrictive\b/i.test(text))
        .map(() => ({ message: 'A policy lets everything through.' })),
      ...(operation.type === 'dropObject' && operation.kind === 'row_security'
        ? [{ message: `Row level security of "${operation.name}" is turned off.` }]
        : []),
    ],
  },
];
