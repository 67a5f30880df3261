import type { Runtime } from '../../config/load/runtime.ts';
import { type MigrationFile, readMigrations } from '../../config/project/migration-files.ts';
import { executionTables } from '../../core/agent/execution-record.ts';
import { isCurrentVersion } from '../../core/approval/backend.ts';
import { APPROVALS_VERSION } from '../../core/approval/schema.ts';
import type { PermissionProbe } from '../../core/dialect.ts';
import type { ErrorCode } from '../../core/error-codes.ts';
import { isSvcError, type SvcError } from '../../core/errors.ts';
import { drift, withoutUnknownReferences } from '../../core/migration/drift.ts';
import { History, historyModel, readMeta } from '../../core/migration/history.ts';
import { APPROVED_HISTORY_VERSION, metaTable } from '../../core/migration/history-table.ts';
import { type StatusReport, status } from '../../core/migration/status.ts';
import type { Target } from '../../core/migration/target.ts';
import { modelOperations } from '../../core/schema/model-operations.ts';
import { withoutPassword } from '../../core/url.ts';
import manifest from '../../package.json' with { type: 'json' };
import { asSvcError, loadSdk } from '../base.ts';
import { plural } from '../output.ts';
import { compareObjects } from './compare-objects.ts';

export interface Check {
  readonly name: string;
  readonly result: 'ok' | 'warn' | 'fail';
  readonly message: string;
  readonly next?: readonly string[];
}

type AddCheck = (check: Check) => void;

const CONNECT_TIMEOUT_MS = 5_000;

/** Runs `work`; an expected error becomes a failed check. */
export async function tryCheck<T>(
  name: string,
  work: () => Promise<T>,
  add: (check: Check) => void,
  resultOf: (error: SvcError) => Check['result'] = () => 'fail',
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    const expected = asSvcError(error);
    if (!expected) throw error;
    add({
      name,
      result: resultOf(expected),
      message: [expected.message, expected.why, expected.where && `(${expected.where})`].filter(Boolean).join(' '),
      next: expected.next,
    });
    return undefined;
  }
}

/** Checks the migration files, the connection, the history, the schema and the permissions. Changes nothing. */
export async function checkDatabase(runtime: Runtime, tag: string, add: AddCheck): Promise<void> {
  const name = `database ${tag}`;
  const files = await tryCheck(name, () => readMigrations(runtime.root, tag, loadSdk), add);
  const url = await tryCheck(name, async () => runtime.urlOf(tag), add);
  if (url === undefined) return;
  const dialect = await tryCheck(name, () => runtime.dialectOf(tag), add);
  if (!dialect) return;
  // A project without a program needs no driver of its own.
  const resultOf = ({ code }: SvcError) => (code === 'driver_missing' ? 'warn' : 'fail');
  await tryCheck(name, async () => dialect.assertDriver?.(url, runtime.root), add, resultOf);
  const options = { connectTimeoutMs: CONNECT_TIMEOUT_MS, readOnly: true };
  const target = await tryCheck(name, () => runtime.connect(tag, options), add);
  if (!target) return;
  const { connection } = target;
  try {
    if (!(await tryCheck(name, () => assertUsable(target), add))) return;
    const server = connection.server ?? target.dialect.name;
    add({ name, result: 'ok', message: `${server} responds at ${withoutPassword(url)}` });
    await tryCheck(name, () => checkHistory(name, runtime, target, files, add), add);
    await tryCheck(name, () => checkPermissions(name, target, files ?? [], add), add);
    if (runtime.config.approvals?.store?.database === tag) {
      await tryCheck('approvals', () => checkApprovalTables(runtime, target, add), add);
    }
  } finally {
    await connection.close();
  }
}

/** A driver may open a file of something else: reading shows that. Any other error is left to the checks that follow. */
async function assertUsable({ connection }: Target): Promise<true> {
  try {
    await connection.records(metaTable).get('meta');
  } catch (error) {
    if (isSvcError(error) && error.code === 'connection_failed') throw error;
  }
  return true;
}

/** `files` is undefined if they are not valid, which is reported. */
async function checkHistory(
  name: string,
  runtime: Runtime,
  target: Target,
  files: readonly MigrationFile[] | undefined,
  add: AddCheck,
): Promise<void> {
  const { connection, database } = target;
  const found = await readMeta(connection);
  if (!found) {
    const rows = (await History.read(connection)).records.size;
    add(
      rows === 0 ? { name, result: 'ok', message: 'no history yet: no migration was applied' } : lacksOwner(name, rows),
    );
    return;
  }
  const check = historyCheck(name, runtime, database, found.record);
  add(check);
  if (check.result === 'fail') return;
  add(
    (await connection.isLocked())
      ? { name, result: 'warn', message: 'a migration is running', next: ['Wait until it has finished.'] }
      : { name, result: 'ok', message: 'the migration lock is free' },
  );
  if (files) add(statusCheck(name, database, await status(target, files)));
  add(await driftCheck(name, target));
}

/** Without that row, a run would take the database for its own, even if it is of another product or environment. */
const lacksOwner = (name: string, rows: number): Check => ({
  name,
  result: 'fail',
  message: `the history has ${plural(rows, 'row')}, and the row of _svc_meta that says whose it is, is missing`,
  next: [
    'Restore the table _svc_meta from a backup.',
    'Or, if the database is the one of this environment: svc db migrate --adopt    writes the row again',
  ],
});

/** Throws as a program does that opens the store: if it belongs to another product or environment, or to a newer SDK. */
async function checkApprovalTables(runtime: Runtime, { connection }: Target, add: AddCheck): Promise<void> {
  const meta = connection.records(metaTable);
  let message = 'the store has no tables yet';
  for (const [id, version] of [
    ['approvals', APPROVALS_VERSION],
    [executionTables.id, executionTables.version],
  ] as const) {
    const found = await meta.get(id);
    if (!found) continue;
    isCurrentVersion(found.record, runtime, version);
    message = `the store belongs to ${runtime.product} (${runtime.env})`;
  }
  add({ name: 'approvals', result: 'ok', message });
}

const PROBLEM_STATES = ['failed', 'interrupted', 'edited', 'missing'] as const;

function statusCheck(
  name: string,
  database: string,
  { state, entries, completed, total, outOfOrder }: StatusReport,
): Check {
  const problems = PROBLEM_STATES.flatMap((problem) => {
    const tags = entries.filter((entry) => entry.state === problem).map(({ tag }) => tag);
    return tags.length > 0 ? [`${problem}: ${tags.join(', ')}`] : [];
  });
  if (outOfOrder.length > 0) problems.push('applied in another order, with another result');
  const message = `${completed} of ${plural(total, 'migration file')} applied`;
  if (state !== 'FAILED') return { name, result: 'ok', message };
  return {
    name,
    result: 'fail',
    message: `${message}; ${problems.join('; ')}`,
    next: [`svc db migrate status --db ${database}`],
  };
}

async function driftCheck(name: string, target: Target): Promise<Check> {
  const { connection, database } = target;
  const expected = await historyModel(target);
  const found = new Map([...(await connection.introspect())].filter(([table]) => expected.has(table)));
  const tables = await drift(connection, expected, withoutUnknownReferences(found, expected));
  const completed = await (await History.read(connection)).completedMigrations(connection);
  const migrations = completed.map(({ migration }) => migration);
  const objects = await compareObjects(target, migrations, () => false);
  const places = tables.length + objects.different.length;
  if (places === 0) return { name, result: 'ok', message: 'the schema matches the applied migrations' };
  return {
    name,
    result: 'warn',
    message: `the schema differs from the applied migrations in ${plural(places, 'place')}`,
    next: [`svc db schema check --db ${database}`],
  };
}

/** What a probe fails with if the permission exists. */
const PERMITTED: ReadonlySet<ErrorCode> = new Set(['collection_unknown', 'migration_failed']);

async function checkPermissions(
  name: string,
  target: Target,
  files: readonly MigrationFile[],
  add: AddCheck,
): Promise<void> {
  const { permissionProbes } = target.connection;
  if (!permissionProbes) return;
  const denied = new Map<string, string>();
  for (const probe of permissionProbes) {
    const why = await whyDenied(target, probe, async (tables) => {
      const changed = await changedTables(target);
      return tables.filter((table) => changed.has(table));
    });
    if (why !== undefined) denied.set(probe.needed, why);
  }
  const permitted = new Set(permissionProbes.map(({ needed }) => needed));
  // Without the history, what is pending is not known; without tables, the probes of references only say so again.
  if (!denied.has('create tables') && !denied.has('write the history')) {
    for (const probe of await referenceProbes(target, files)) {
      permitted.add(probe.needed);
      const why = await whyDenied(target, probe);
      if (why !== undefined) denied.set(probe.needed, why);
    }
  }
  if (denied.size === 0) {
    add({ name, result: 'ok', message: `the user may ${[...permitted].join(', ')}` });
    return;
  }
  add({
    name,
    result: 'fail',
    message: `the user may not ${[...denied].map(([needed, why]) => `${needed} (${why})`).join(', ')}`,
    next: ['Grant the user these permissions, or use another user for migrations.'],
  });
}

/** The tables that migrations create or change, without those that they only reference. */
async function changedTables({ connection, dialect }: Target): Promise<ReadonlySet<string>> {
  const completed = await (await History.read(connection)).completedMigrations(connection);
  const operations = completed.flatMap(({ migration }) => modelOperations(migration.up, dialect.name));
  return new Set(
    operations.map((one) => {
      if (one.type === 'createCollection') return one.name;
      return one.type === 'renameCollection' ? one.to : one.collection;
    }),
  );
}

/** Undefined if the user has the permission. `relevant` leaves out tables that it is not needed for. */
async function whyDenied(
  { connection }: Target,
  { text, denies }: PermissionProbe,
  relevant = async (tables: readonly string[]): Promise<readonly string[]> => tables,
): Promise<string | undefined> {
  try {
    const rows = await connection.query(text);
    const tables = denies && rows.length > 0 ? await relevant(rows.map((row) => String(row.name))) : [];
    return tables.length > 0 ? `not of ${tables.join(', ')}` : undefined;
  } catch (error) {
    if (!isSvcError(error)) throw error;
    if (error.code === 'permission_denied') return error.why ?? error.message;
    if (!PERMITTED.has(error.code)) throw error;
    return undefined;
  }
}

/** Probes for the foreign keys of pending migrations to tables that exist now. */
async function referenceProbes(target: Target, files: readonly MigrationFile[]): Promise<readonly PermissionProbe[]> {
  const { connection, dialect } = target;
  if (!connection.referenceProbe) return [];
  const completed = new Set((await History.read(connection)).completed().map(({ row }) => row.tag));
  const references = new Map<string, Set<string>>();
  /** The present name of each table that a pending migration creates or renames; undefined for a new table. */
  const presentNames = new Map<string, string | undefined>();
  const presentName = (table: string) => (presentNames.has(table) ? presentNames.get(table) : table);
  for (const { migration } of files.filter(({ tag }) => !completed.has(tag))) {
    for (const operation of modelOperations(migration.up, dialect.name)) {
      if (operation.type === 'createCollection') presentNames.set(operation.name, undefined);
      if (operation.type === 'renameCollection')
        presentNames.set(operation.to, presentName(operation.collection)).set(operation.collection, undefined);
      if (operation.type !== 'addConstraint' || operation.constraint.type !== 'foreignKey') continue;
      const { table, columns } = operation.constraint.references;
      const present = presentName(table);
      if (present === undefined) continue;
      const known = references.get(present) ?? new Set();
      for (const column of columns) known.add(column);
      references.set(present, known);
    }
  }
  // The catalog does not show everything to a user without permission: a table that is missing fails in its own way.
  return [...references].flatMap(
    ([table, columns]) => connection.referenceProbe?.({ table, columns: [...columns] }) ?? [],
  );
}

function historyCheck(
  name: string,
  { product, env, config }: Runtime,
  tag: string,
  found: { readonly version: number; readonly product: string; readonly database: string; readonly env: string },
): Check {
  if (found.product !== product || found.database !== tag || found.env !== env) {
    return {
      name,
      result: 'fail',
      message: `belongs to ${found.product}, database ${found.database}, env ${found.env}`,
      next: ['Check the URL.', `svc db migrate --adopt --db ${tag}    if this product now owns the database`],
    };
  }
  if (found.version > APPROVED_HISTORY_VERSION) {
    return {
      name,
      result: 'fail',
      message: `the history has version ${found.version}, but this SDK supports ${APPROVED_HISTORY_VERSION}`,
      next: [`npm install ${manifest.name}@latest`],
    };
  }
  if (found.version === APPROVED_HISTORY_VERSION && !config.environments?.[env]?.approval) {
    return {
      name,
      result: 'fail',
      message: `the database remembers that people approve its changes, and the configuration asks nobody in ${env}`,
      next: [`Set environments.${env}.approval as it was.`],
    };
  }
  return { name, result: 'ok', message: `history version ${found.version}` };
}
