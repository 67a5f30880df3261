import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import { FIXED_OPTIONS, hasEntries, relaxedJson as toPlain } from '../catalog/fixed-options.ts';
import { readViews } from '../catalog/read-views.ts';
import { deleteEntry, type RegistryEntry, writeEntries } from '../catalog/registry.ts';
import {
  createIndexesSpec,
  type IndexSpec,
  type IndexStructure,
  isSameIndex,
  readIndexStructure,
} from '../compile/indexes.ts';
import type { CatchUp, MongoStep } from '../compile/step.ts';
import type { Validator } from '../compile/validator.ts';
import { isSameView } from '../compile/views.ts';
import {
  alreadyExistsError,
  codeOf,
  INDEX_NOT_FOUND,
  isLost,
  NAMESPACE_EXISTS,
  NAMESPACE_NOT_FOUND,
} from '../connection/errors.ts';
import { fromExtendedJson, MAJORITY, type MongoServer, toExtendedJson } from '../connection/server.ts';
import { fillDefault } from '../data/default-values.ts';
import {
  assertPreconditions,
  assertShardKeyUntouched,
  mayViolate,
  ruleViolationFilter,
} from '../data/preconditions.ts';
import { updateInBatches } from '../data/update-in-batches.ts';
import { buildIndexes } from './build-indexes.ts';
import type { CreatePreflight } from './create-preflight.ts';
import { runCommand } from './raw-command.ts';
import { type RunContext, runAtomic, runAtomicCommand } from './run-context.ts';

/** Runs a step; existing objects stay unchanged. Returns the registry entries to write once the step is done. */
export async function runStep(
  context: RunContext,
  step: MongoStep,
  preflight?: CreatePreflight,
): Promise<readonly RegistryEntry[]> {
  if (step.checks) {
    await context.assertLockHeld();
    await assertPreconditions(context, 'collection' in step ? step.collection : '', step.checks);
  }
  if (step.rewritten && 'collection' in step) await assertShardKeyUntouched(context, step.collection, step.rewritten);
  switch (step.kind) {
    case 'create':
      if (!preflight) throw new Error(`there was no preflight for ${step.collection}`);
      return createCollection(context, step, preflight);
    case 'drop':
      await runAtomicCommand(context, { drop: step.collection }).catch(ignoreCode(NAMESPACE_NOT_FOUND));
      await deleteEntry(context, step.collection);
      return [];
    case 'createView':
      await createView(context, step.collection, step.command);
      return [];
    case 'changeView':
      await runAtomicCommand(context, {
        collMod: step.collection,
        viewOn: step.viewOn,
        ...fromExtendedJson(context.server, { pipeline: step.pipeline }),
      });
      return [];
    case 'dropView':
      await assertView(context.server, step.collection);
      await runAtomicCommand(context, { drop: step.collection }).catch(ignoreCode(NAMESPACE_NOT_FOUND));
      return [];
    case 'rename':
      await renameCollection(context, step);
      return [];
    case 'validate':
      await setValidator(context, step);
      return entryAfter(step);
    case 'createIndexes':
      await createIndexes(context, step.collection, step.indexes);
      return entryAfter(step);
    case 'dropIndexes':
      await dropIndexes(context, step.collection, step.indexes);
      return entryAfter(step);
    case 'fill':
      await fillDefault(context, step.collection, step.field, step.value);
      return [];
    case 'unset':
      await updateInBatches(context, step.collection, { [step.field]: { $exists: true } }, () => ({
        $unset: { [step.field]: '' },
      }));
      return [];
    case 'move': {
      const { from, to } = step;
      const unmoved = { [from]: { $exists: true }, [to]: { $exists: false } };
      await updateInBatches(context, step.collection, unmoved, () => ({ $rename: { [from]: to } }));
      return [];
    }
    case 'convert': {
      const { field, change } = step;
      const set = fromExtendedJson(context.server, change.expression ?? null);
      await updateInBatches(context, step.collection, ruleViolationFilter(context, field, change.rule), () => [
        { $set: { [field]: set } },
      ]);
      return [];
    }
    case 'raw':
      await context.assertLockHeld();
      await runCommand(context.server, step.command, context.onChange);
      return [];
  }
}

/**
 * Documents that were written since the documents were changed may not fit. Until they do, the validator is moderate: the
 * application may update them, and may not write more of them.
 */
async function setValidator(context: RunContext, step: Extract<MongoStep, { kind: 'validate' }>): Promise<void> {
  const { collection, validationLevel, validationAction, catchUp } = step;
  const isSet = context.settings.validators && !step.registryOnly;
  const validator = step.validator ? fromExtendedJson(context.server, step.validator) : {};
  const set = (level: string | undefined) =>
    // The driver omits undefined options.
    runAtomicCommand(context, { collMod: collection, validator, validationLevel: level, validationAction });
  if (isSet) await set(catchUp ? 'moderate' : validationLevel);
  if (catchUp) await applyCatchUp(context, collection, catchUp);
  if (isSet && catchUp && validationLevel !== 'moderate') await set(validationLevel ?? 'strict');
}

/** Repeats the moves for documents written before the validator was set. Throws `data_violates`; the step may run again. */
async function applyCatchUp(context: RunContext, collection: string, { checks, moves }: CatchUp): Promise<void> {
  if (checks.length > 0 && !(await mayViolate(context, collection, checks))) return;
  for (const move of moves) await runStep(context, move);
  await assertPreconditions(context, collection, checks);
}

function entryAfter({
  collection,
  entry,
}: {
  readonly collection: string;
  readonly entry?: string;
}): readonly RegistryEntry[] {
  return entry === undefined ? [] : [{ collection, entry, creating: false }];
}

/** `creating` in the registry distinguishes a collection of an interrupted attempt from one of another program. */
async function createCollection(
  context: RunContext,
  step: Extract<MongoStep, { kind: 'create' }>,
  { announcedBefore }: CreatePreflight,
): Promise<readonly RegistryEntry[]> {
  const { server, settings } = context;
  const { collection } = step;
  const validator = settings.validators && step.validator ? { validator: step.validator } : {};
  const { validationLevel, validationAction, ...options } = step.options;
  const levels = settings.validators
    ? {
        ...(validationLevel !== undefined && { validationLevel }),
        ...(validationAction !== undefined && { validationAction }),
      }
    : {};
  const command = { create: collection, ...fromExtendedJson(server, { ...options, ...levels, ...validator } as Json) };
  let sent = 0;
  await runAtomic(context, () => {
    sent += 1;
    return server.db.command(command, MAJORITY);
  }).catch(async (error) => {
    if (codeOf(error) !== NAMESPACE_EXISTS) {
      // After a lost response the announcement stays, and the definition distinguishes this collection from another one.
      if (sent === 1 && !isLost(error)) await withdrawAnnouncement(context, collection).catch(() => undefined);
      throw error;
    }
    // It can only be the result of an earlier attempt whose outcome is unknown.
    if ((announcedBefore || sent > 1) && (await matchesDefinition(server, command))) return;
    await deleteEntry(context, collection);
    throw alreadyExistsError(collection);
  });
  await createIndexes(context, collection, step.indexes, true);
  return entryAfter(step);
}

/** A view that exists already must be the same, as that of an interrupted attempt is. */
async function createView(context: RunContext, name: string, command: Validator): Promise<void> {
  await runAtomicCommand(context, fromExtendedJson(context.server, command)).catch(async (error) => {
    if (codeOf(error) !== NAMESPACE_EXISTS) throw error;
    const found = (await readViews(context.server)).find((view) => view.name === name);
    if (!found || !isSameView(found.definition, JSON.stringify(command))) throw alreadyExistsError(name);
  });
}

/** A collection of that name would lose its documents. */
async function assertView({ db }: MongoServer, name: string): Promise<void> {
  const [found] = await db.listCollections({ name }).toArray();
  if (found === undefined || found.type === 'view') return;
  throw new SvcError('migration_failed', `"${name}" is not a view.`, {
    why: 'It is a collection, which has documents of its own.',
    state: 'It was not dropped.',
  });
}

/** Removes the announcement of a collection that does not exist: it would hide one that another program creates. */
async function withdrawAnnouncement(context: RunContext, collection: string): Promise<void> {
  if (!(await existingCollections(context.server, [collection])).has(collection))
    await deleteEntry(context, collection);
}

async function renameCollection(
  context: RunContext,
  { collection, to, entry }: Extract<MongoStep, { kind: 'rename' }>,
): Promise<void> {
  const { databaseName } = context.server.db;
  const names = await existingCollections(context.server, [collection, to]);
  if (names.has(collection)) {
    if (names.has(to)) throw alreadyExistsError(to);
    const admin = context.server.client.db('admin');
    await runAtomic(context, () =>
      admin.command({ renameCollection: `${databaseName}.${collection}`, to: `${databaseName}.${to}` }),
    ).catch(ignoreCode(NAMESPACE_NOT_FOUND));
  } else if (!names.has(to)) {
    throw new SvcError('collection_unknown', `The table "${collection}" does not exist.`);
  }
  await writeEntries(context, [{ collection: to, entry, creating: false }]);
  await deleteEntry(context, collection);
}

async function existingCollections({ db }: MongoServer, names: readonly string[]): Promise<ReadonlySet<string>> {
  const found = await db.listCollections({ name: { $in: [...names] } }, { nameOnly: true }).toArray();
  return new Set(found.map(({ name }) => name));
}

async function createIndexes(
  context: RunContext,
  collection: string,
  specs: readonly IndexSpec[],
  isNewCollection = false,
): Promise<void> {
  if (specs.length === 0) return;
  const existing = isNewCollection ? [] : await structuresOf(context.server, collection);
  // An index listed under its own name may still be building: createIndexes waits for it, or does nothing.
  const missing = specs.filter(
    (spec) => !existing.some(({ name, structure }) => name !== spec.name && isSameIndex(structure, spec)),
  );
  if (missing.length === 0) return;
  const indexes = missing.map((spec) => fromExtendedJson(context.server, createIndexesSpec(spec)));
  await runAtomic(context, () => buildIndexes(context.server, collection, indexes, MAJORITY));
}

async function dropIndexes(context: RunContext, collection: string, specs: readonly IndexSpec[]): Promise<void> {
  const existing = await structuresOf(context.server, collection);
  for (const spec of specs) {
    // An index that svc did not create may have the same name and another structure.
    const { name } =
      existing.find(({ structure }) => isSameIndex(structure, spec)) ??
      existing.find((one) => one.name === spec.name) ??
      {};
    if (name === undefined) continue;
    await runAtomicCommand(context, { dropIndexes: collection, index: name }).catch(ignoreCode(INDEX_NOT_FOUND));
  }
}

async function structuresOf(
  server: MongoServer,
  collection: string,
): Promise<{ name: string; structure: IndexStructure }[]> {
  const found = await server.db.collection(collection).listIndexes().toArray();
  return found.map((index) => ({ name: String(index.name), structure: readIndexStructure(server, index) }));
}

const ignoreCode =
  (code: number) =>
  (error: unknown): void => {
    if (codeOf(error) !== code) throw error;
  };

/** Whether a collection exists with the definition of this create command. */
async function matchesDefinition(server: MongoServer, command: Document): Promise<boolean> {
  const [found] = (await server.db.listCollections({ name: String(command.create) }).toArray()) as Document[];
  return (
    found !== undefined &&
    found.type !== 'view' &&
    FIXED_OPTIONS.every((name) => hasEntries(toPlain(server, found.options?.[name]), toPlain(server, command[name]))) &&
    isDeepStrictEqual(definitionOf(server, found.options ?? {}), definitionOf(server, command))
  );
}

/** The options, with the defaults that a server lists; the server rounds a size up to a multiple of 256. */
function definitionOf(
  server: MongoServer,
  {
    validator = {},
    validationLevel = 'strict',
    validationAction = 'error',
    capped = false,
    size = 0,
    max = 0,
  }: Document,
): Json {
  const bytes = Math.ceil(Number(size) / 256) * 256;
  return toExtendedJson(server, { validator, validationLevel, validationAction, capped, bytes, max: Number(max) });
}
