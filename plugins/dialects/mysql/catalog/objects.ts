import { type DatabaseObject, objectKey } from '../../../../core/schema/database-object.ts';
import { tablePart } from '../../sql/objects.ts';
import { type ExecSql, rowsOf, type Session } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import { canonicalWords, DEFINER, withName } from '../compile/objects.ts';
import { partitioningStatement, partitionWords } from '../compile/partitions.ts';
import { toSvcError } from '../connection/errors.ts';
import type { Traits } from '../variant.ts';
import { withoutDatabase } from './show-create-table.ts';
import {
  IS_READABLE,
  readTriggerGroups,
  readTriggerOrders,
  triggersInPlace,
  withOrder,
  withoutOrder,
} from './trigger-order.ts';
import { readBlockedViews, tableNames } from './unsupported-objects.ts';

const objectsQuery = ({ catalog }: Traits): string => `
SELECT 'view' AS kind, table_name AS name, '' AS t FROM information_schema.views WHERE table_schema = DATABASE() AND view_definition <> '' AND table_name NOT LIKE '\\_svc\\_%'
UNION ALL SELECT LOWER(routine_type), routine_name, '' FROM information_schema.routines WHERE routine_schema = DATABASE() AND routine_type IN ('FUNCTION', 'PROCEDURE') AND routine_definition IS NOT NULL AND routine_name NOT LIKE '\\_svc\\_%' AND ${IS_READABLE}
UNION ALL SELECT 'trigger', trigger_name, event_object_table FROM information_schema.triggers WHERE trigger_schema = DATABASE() AND trigger_name NOT LIKE '\\_svc\\_%' AND event_object_table NOT LIKE '\\_svc\\_%' AND ${IS_READABLE} AND event_object_table IN (${tableNames(catalog)})
UNION ALL SELECT DISTINCT 'partitions', table_name, '' FROM information_schema.partitions WHERE table_name IN (${tableNames(catalog)}) AND table_schema = DATABASE() AND partition_name IS NOT NULL AND table_name NOT LIKE '\\_svc\\_%'
UNION ALL SELECT 'event', event_name, '' FROM information_schema.events WHERE event_schema = DATABASE() AND ${IS_READABLE}
UNION ALL SELECT 'sequence', table_name, '' FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'SEQUENCE' AND table_name NOT LIKE '\\_svc\\_%'
ORDER BY kind, name`;

/** What the user may see, without DEFINER, and without the name of the database, so that they can be created in any. */
export async function readObjects(session: Session, traits: Traits): Promise<DatabaseObject[]> {
  return session.exclusive(async (exec) => {
    const objects: DatabaseObject[] = [];
    const database = await databaseName(exec);
    const orders = await readTriggerOrders(exec);
    const blocked = await readBlockedViews(exec, traits);
    for (const { kind, name, t } of await rowsOf(exec, objectsQuery(traits))) {
      if (kind === 'view' && blocked.has(String(name))) continue;
      const definition = await readDefinition(exec, String(kind), String(name), database);
      if (definition === undefined) continue; // dropped since
      objects.push(
        kind === 'trigger'
          ? { kind, name: `${t}.${name}`, definition: withOrder(definition, orders.get(String(name))) }
          : { kind: String(kind), name: String(name), definition },
      );
    }
    return objects;
  });
}

async function databaseName(exec: ExecSql): Promise<string> {
  const [row] = await rowsOf(exec, 'SELECT DATABASE() AS name');
  return String(row?.name);
}

async function readDefinition(
  exec: ExecSql,
  kind: string,
  name: string,
  database: string,
): Promise<string | undefined> {
  const word = kind === 'partitions' ? 'TABLE' : kind.toUpperCase();
  const [row] = await rowsOf(exec, `SHOW CREATE ${word} ${quoteIdentifier(name)}`);
  if (kind === 'partitions') return partitioningStatement(name, String(row?.['Create Table'] ?? ''));
  const text = Object.entries(row ?? {}).find(([column]) => /^(?:Create |SQL Original)/i.test(column))?.[1];
  if (typeof text !== 'string') return undefined;
  return (
    withoutDatabase(text.replace(DEFINER, ''), database)
      .replace(/^CREATE ALGORITHM=UNDEFINED /i, 'CREATE ')
      .replace(/^(CREATE (?:ALGORITHM=\w+ )?)SQL SECURITY DEFINER (?=VIEW)/i, '$1')
      .replace(/^(CREATE SEQUENCE .*) ENGINE=InnoDB/is, '$1')
      // A server keeps the semicolon after a body of one statement.
      .replace(/[\s;]+$/, '')
  );
}

/**
 * The objects with the texts of the catalog: a view or a routine is created under another name, read and dropped; of the
 * others, the server keeps the text as it was written.
 */
export async function normalizeObjects(
  session: Session,
  traits: Traits,
  objects: readonly DatabaseObject[],
): Promise<DatabaseObject[]> {
  const found = new Map((await readObjects(session, traits)).map((object) => [objectKey(object), object]));
  const inPlace = objects.some(({ kind }) => kind === 'trigger')
    ? await readTriggersInPlace(session, [...found.values(), ...objects])
    : new Set();
  const normal: DatabaseObject[] = [];
  for (const object of objects) {
    const current = found.get(objectKey(object));
    const words = object.kind === 'partitions' ? partitionWords : canonicalWords;
    const isSame =
      current &&
      (words(current.definition) === words(object.definition) ||
        (inPlace.has(objectKey(object)) &&
          withoutOrder(words(current.definition)) === withoutOrder(words(object.definition))) ||
        (object.kind === 'event' && isSameEvent(object.definition, current.definition)));
    if (isSame) normal.push(current);
    else normal.push({ ...object, definition: (await probe(session, object)) ?? object.definition });
  }
  return normal;
}

/** The keys of the triggers that run in the places that the texts give them; of two texts, the later counts. */
async function readTriggersInPlace(session: Session, objects: readonly DatabaseObject[]): Promise<ReadonlySet<string>> {
  const triggers = objects.filter(({ kind }) => kind === 'trigger');
  const byName = new Map(triggers.map((object) => [object.name.slice(tablePart(object.name).length + 1), object]));
  const groups = await session.exclusive((exec) => readTriggerGroups(exec));
  const names = triggersInPlace(groups, (name) => byName.get(name)?.definition);
  return new Set([...names].flatMap((name) => byName.get(name) ?? []).map(objectKey));
}

/** What the server adds to the schedule of an event, and the words of a text that says it itself. */
const ADDED_TO_EVENTS: readonly (readonly [RegExp, RegExp])[] = [
  [/ starts '[^']*'/, / starts /],
  [/ on completion not preserve\b/, / on completion /],
  [/ enable$/, / (?:enable|disable)\b/],
];

/** An event without a start has the time of its creation as one in the catalog. */
function isSameEvent(written: string, stored: string): boolean {
  const split = (text: string) => {
    const words = canonicalWords(text);
    const at = words.indexOf(' do ');
    return { schedule: words.slice(0, at), body: words.slice(at) };
  };
  const [own, server] = [split(written), split(stored)];
  const schedule = ADDED_TO_EVENTS.reduce(
    (text, [added, said]) => (said.test(own.schedule) ? text : text.replace(added, '')),
    server.schedule,
  );
  return schedule === own.schedule && server.body === own.body;
}

const PROBED: ReadonlySet<string> = new Set(['sequence', 'view', 'function', 'procedure']);

async function probe(session: Session, object: DatabaseObject): Promise<string | undefined> {
  const { kind, name, definition } = object;
  if (kind === 'partitions') return probePartitions(session, object);
  if (!PROBED.has(kind)) return undefined;
  const drop = (probed: string) => `DROP ${kind.toUpperCase()} IF EXISTS ${quoteIdentifier(probed)}`;
  return session.exclusive(async (exec) => {
    const [row] = await rowsOf(exec, "SELECT CONCAT('_svc_probe_', CONNECTION_ID()) AS name");
    const probed = String(row?.name);
    try {
      await exec(withName(object, definition, probed));
      const text = await readDefinition(exec, kind, probed, await databaseName(exec));
      return text === undefined ? undefined : withName(object, text, name);
    } catch (error) {
      if (toSvcError(error) === error) throw error;
      return undefined;
    } finally {
      await exec(drop(probed));
    }
  });
}

/** Tried on a table without rows: the server writes the limits of partitions in its own way. */
async function probePartitions(session: Session, { name, definition }: DatabaseObject): Promise<string | undefined> {
  return session.exclusive(async (exec) => {
    const [row] = await rowsOf(exec, "SELECT CONCAT('_svc_probe_', CONNECTION_ID()) AS name");
    const probed = String(row?.name);
    try {
      await exec(`CREATE TABLE ${quoteIdentifier(probed)} LIKE ${quoteIdentifier(name)}`);
      await exec(
        `ALTER TABLE ${quoteIdentifier(probed)} ${definition.slice(definition.search(/\bpartition\s+by\b/i))}`,
      );
      const text = await readDefinition(exec, 'partitions', probed, await databaseName(exec));
      return text?.replace(quoteIdentifier(probed), () => quoteIdentifier(name));
    } catch (error) {
      if (toSvcError(error) === error) throw error;
      return undefined;
    } finally {
      await exec(`DROP TABLE IF EXISTS ${quoteIdentifier(probed)}`);
    }
  });
}
