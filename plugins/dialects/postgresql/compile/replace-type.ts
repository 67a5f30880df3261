import type { Statement } from '../../../../core/dialect.ts';
import type { ReplaceObject } from '../../../../core/schema/operation.ts';
import { type RawSql, sqlStatement } from '../../sql/statement.ts';
import { enumLabels, renamedLabels } from './enum-labels.ts';
import { quoteLiteral } from './literal.ts';
import { pathOf, qualified, quoteIdentifier, relationOf } from './names.ts';
import { statement } from './object-statement.ts';
import { doBlock } from './plpgsql-guards.ts';
import { setPrivileges } from './set-privileges.ts';
import type { PostgresqlStep } from './step.ts';

/** Whether `replaceType` makes the type again: an enum whose values are only renamed and added stays. */
export function isMadeAgain(before: string, definition: string): boolean {
  const [after, was] = [enumLabels(definition), enumLabels(before)];
  if (!after || !was) return true;
  const renames = renamedLabels(was, after);
  const former = was.labels.map((label) => renames.get(label) ?? label);
  return after.labels.filter((label) => former.includes(label)).join() !== former.join();
}

/** Values of an enum are renamed and added in place. */
export function replaceType(operation: ReplaceObject): readonly Statement<PostgresqlStep>[] {
  const [after, was] = [enumLabels(operation.definition), enumLabels(operation.was)];
  if (!after || !was) return [swapType(operation)];
  const type = qualified(operation.name);
  const renames = renamedLabels(was, after);
  const renamed = [...renames].map(([from, to]) => sqlStatement(`ALTER TYPE ${type} RENAME VALUE ${from} TO ${to}`));
  const { labels } = after;
  const before = was.labels.map((label) => renames.get(label) ?? label);
  if (isMadeAgain(operation.was, operation.definition)) return [...renamed, swapType(operation)];
  const added = labels.flatMap((label, index) => (before.includes(label) ? [] : [{ label, index }]));
  return [
    ...renamed,
    // A new value cannot be used in the transaction that adds it.
    ...added.map(({ label, index }) =>
      sqlStatement(
        `ALTER TYPE ${type} ADD VALUE IF NOT EXISTS ${label}${index > 0 ? ` AFTER ${labels[index - 1]}` : ` BEFORE ${before[0]}`}`,
        { transactional: false, idempotent: true },
      ),
    ),
  ];
}

/** Makes a type again under its name and moves every column of it over: a value that it no longer has is refused. */
export function swapType({ kind, name, definition }: ReplaceObject): Statement<RawSql> {
  const type = qualified(name, '');
  const { schema, name: local } = relationOf(name);
  const formerName = `${local.slice(0, 50)}__former`;
  const former = qualified(pathOf({ schema, name: formerName }), '');
  const word = kind.toUpperCase();
  const move = `DECLARE used record; BEGIN FOR used IN SELECT a.attrelid::regclass AS rel, a.attname AS field, t.typcategory = 'A' AS many, pg_get_expr(d.adbin, d.adrelid) AS value FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p', 'c') AND NOT c.relispartition JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE NOT a.attisdropped AND a.attinhcount = 0 AND (t.oid = ${quoteLiteral(former)}::regtype OR t.typelem = ${quoteLiteral(former)}::regtype AND t.typcategory = 'A') LOOP IF used.value IS NOT NULL THEN EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', used.rel, used.field); END IF; EXECUTE format('ALTER TABLE %s ALTER COLUMN %I TYPE %s USING %I::text%s::%s', used.rel, used.field, ${quoteLiteral(type)} || CASE WHEN used.many THEN '[]' ELSE '' END, used.field, CASE WHEN used.many THEN '[]' ELSE '' END, ${quoteLiteral(type)} || CASE WHEN used.many THEN '[]' ELSE '' END); IF used.value IS NOT NULL THEN EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', used.rel, used.field, replace(used.value, ${quoteLiteral(former)}::regtype::text, ${quoteLiteral(type)})); END IF; END LOOP; END`;
  // Its own privileges, and none that the new one would have by default.
  const privilegesOf = (row: string) => ({ acl: `${row}.typacl`, type: 'T', owner: `${row}.typowner` });
  const rowOf = (name: string): string => `FROM pg_type WHERE oid = ${quoteLiteral(name)}::regtype`;
  const grant = `DECLARE given record; present record; wanted record; BEGIN SELECT * INTO present ${rowOf(type)}; SELECT * INTO wanted ${rowOf(former)}; ${setPrivileges(`TYPE ${type}`, privilegesOf('present'), privilegesOf('wanted'))}; END`;
  // The server would name the checks of the new domain otherwise while the former one has their names.
  const release = `DECLARE held record; BEGIN FOR held IN SELECT conname AS name FROM pg_constraint WHERE contypid = ${quoteLiteral(former)}::regtype LOOP EXECUTE format('ALTER DOMAIN %s RENAME CONSTRAINT %I TO %I', ${quoteLiteral(former)}::regtype, held.name, left(held.name, 50) || '__former'); END LOOP; END`;
  return statement(
    [
      `ALTER ${word} ${type} RENAME TO ${quoteIdentifier(formerName)}`,
      ...(kind === 'domain' ? [doBlock(release)] : []),
      // It may end in a comment.
      `${definition}\n`,
      doBlock(move),
      doBlock(grant),
      `DROP ${word} ${former}`,
    ].join(';\n\n'),
  );
}
