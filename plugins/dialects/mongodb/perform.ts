import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import { inBatches } from './batches.ts';
import { buildIndexes } from './build-indexes.ts';
import { checkDocuments, mayFind, violating } from './checks.ts';
import { alreadyExists, codeOf, INDEX_NOT_FOUND, isLost, NAMESPACE_EXISTS, NAMESPACE_NOT_FOUND } from './errors.ts';
import { fill } from './fill.ts';
import { isSame, type Spec, type Structure, writtenSpec } from './indexes.ts';
import { isMade } from './made.ts';
import { fromExtended, type Server } from './open.ts';
import type { Outset } from './outsets.ts';
import { again, command, MAJORITY, type Place } from './place.ts';
import { readStructure } from './read-index.ts';
import { refuseSharded } from './refuse-sharded.ts';
import { describe, forget, type Said } from './registry.ts';
import { runCommand } from './run-command.ts';
import type { Late, Step } from './step.ts';

/** Carries a step out; whatever of it is there already is left as it is. Gives what the registry says once it is done. */
export async function perform(place: Place, step: Step, outset?: Outset): Promise<readonly Said[]> {
  if (step.checks) {
    await place.hold();
    await checkDocuments(place, 'collection' in step ? step.collection : '', step.checks);
  }
  if (step.rewritten && 'collection' in step) await refuseSharded(place, step.collection, step.rewritten);
  switch (step.do) {
    case 'create':
      if (!outset) throw new Error(`nobody looked for ${step.collection} before it was created`);
      return create(place, step, outset);
    case 'drop':
      await command(place, { drop: step.collection }).catch(unless(NAMESPACE_NOT_FOUND));
      await forget(place, step.collection);
      return [];
    case 'rename':
      await rename(place, step);
      return [];
    case 'validate':
      if (place.settings.validators) {
        const { validator, validationLevel, validationAction } = step;
        await command(place, {
          collMod: step.collection,
          validator: validator ? fromExtended(place.server, validator) : {},
          // Undefined is left out by the driver.
          validationLevel,
          validationAction,
        });
      }
      if (step.late) await settle(place, step.collection, step.late);
      return described(step);
    case 'createIndexes':
      await createIndexes(place, step.collection, step.indexes);
      return described(step);
    case 'dropIndexes':
      await dropIndexes(place, step.collection, step.indexes);
      return described(step);
    case 'fill':
      await fill(place, step.collection, step.field, step.value);
      return [];
    case 'unset':
      await inBatches(place, step.collection, { [step.field]: { $exists: true } }, () => ({
        $unset: { [step.field]: '' },
      }));
      return [];
    case 'move': {
      const { from, to } = step;
      const left = { [from]: { $exists: true }, [to]: { $exists: false } };
      await inBatches(place, step.collection, left, () => ({ $rename: { [from]: to } }));
      return [];
    }
    case 'convert': {
      const { field, change } = step;
      const set = fromExtended(place.server, change.expression ?? null);
      await inBatches(place, step.collection, violating(place, field, change.rule), () => [{ $set: { [field]: set } }]);
      return [];
    }
    case 'command':
      await place.hold();
      await runCommand(place.server, step.command, place.onChange);
      return [];
  }
}

/** The validator keeps new ones out by now. Throws `data_violates`: once those documents are right, the step may run again. */
async function settle(place: Place, collection: string, { checks, moves }: Late): Promise<void> {
  if (checks.length > 0 && !(await mayFind(place, collection, checks))) return;
  for (const move of moves) await perform(place, move);
  await checkDocuments(place, collection, checks);
}

function described({ collection, entry }: { readonly collection: string; readonly entry?: string }): readonly Said[] {
  return entry === undefined ? [] : [{ collection, entry, making: false }];
}

/** `making` in the registry tells a collection that an interrupted attempt left from one that somebody else made. */
async function create(
  place: Place,
  step: Extract<Step, { do: 'create' }>,
  { begun }: Outset,
): Promise<readonly Said[]> {
  const { server, settings } = place;
  const { collection } = step;
  const validator = settings.validators && step.validator ? { validator: step.validator } : {};
  const { validationLevel, validationAction, ...options } = step.options;
  const levels = settings.validators
    ? {
        ...(validationLevel !== undefined && { validationLevel }),
        ...(validationAction !== undefined && { validationAction }),
      }
    : {};
  const words = { create: collection, ...fromExtended(server, { ...options, ...levels, ...validator } as Json) };
  let sent = 0;
  await again(place, () => {
    sent += 1;
    return server.db.command(words, MAJORITY);
  }).catch(async (error) => {
    if (codeOf(error) !== NAMESPACE_EXISTS) {
      // Where it stays announced, how it is made tells ours from somebody else's.
      if (sent === 1 && !isLost(error)) await takeBack(place, collection).catch(() => undefined);
      throw error;
    }
    // Only an attempt of which nobody knows what became can have made it.
    if ((begun || sent > 1) && (await isMade(server, words))) return;
    await forget(place, collection);
    throw alreadyExists(collection);
  });
  await createIndexes(place, collection, step.indexes, true);
  return described(step);
}

/** What is announced and not there: while it is, one that somebody else makes is hidden, and would pass for ours. */
async function takeBack(place: Place, collection: string): Promise<void> {
  if (!(await namesOf(place.server, [collection])).has(collection)) await forget(place, collection);
}

async function rename(place: Place, { collection, to, entry }: Extract<Step, { do: 'rename' }>): Promise<void> {
  const { databaseName } = place.server.db;
  const names = await namesOf(place.server, [collection, to]);
  if (names.has(collection)) {
    if (names.has(to)) throw alreadyExists(to);
    const admin = place.server.client.db('admin');
    await again(place, () =>
      admin.command({ renameCollection: `${databaseName}.${collection}`, to: `${databaseName}.${to}` }),
    ).catch(unless(NAMESPACE_NOT_FOUND));
  } else if (!names.has(to)) {
    throw new SvcError('collection_unknown', `The table "${collection}" does not exist.`);
  }
  await describe(place, [{ collection: to, entry, making: false }]);
  await forget(place, collection);
}

async function namesOf({ db }: Server, among: readonly string[]): Promise<ReadonlySet<string>> {
  const found = await db.listCollections({ name: { $in: [...among] } }, { nameOnly: true }).toArray();
  return new Set(found.map(({ name }) => name));
}

async function createIndexes(place: Place, collection: string, specs: readonly Spec[], fresh = false): Promise<void> {
  if (specs.length === 0) return;
  const there = fresh ? [] : await structuresOf(place.server, collection);
  // Under its own name it may be listed while it is still being built: the command waits for that, or does nothing.
  const missing = specs.filter(
    (spec) => !there.some(({ name, structure }) => name !== spec.name && isSame(structure, spec)),
  );
  if (missing.length === 0) return;
  const indexes = missing.map((spec) => fromExtended(place.server, writtenSpec(spec)));
  await again(place, () => buildIndexes(place.server, collection, indexes, MAJORITY));
}

async function dropIndexes(place: Place, collection: string, specs: readonly Spec[]): Promise<void> {
  const there = await structuresOf(place.server, collection);
  for (const spec of specs) {
    // One that svc did not make may be of another structure than svc would give it.
    const { name } =
      there.find(({ structure }) => isSame(structure, spec)) ?? there.find((one) => one.name === spec.name) ?? {};
    if (name === undefined) continue;
    await command(place, { dropIndexes: collection, index: name }).catch(unless(INDEX_NOT_FOUND));
  }
}

async function structuresOf(server: Server, collection: string): Promise<{ name: string; structure: Structure }[]> {
  const found = await server.db.collection(collection).listIndexes().toArray();
  return found.map((index) => ({ name: String(index.name), structure: readStructure(server, index) }));
}

const unless =
  (code: number) =>
  (error: unknown): void => {
    if (codeOf(error) !== code) throw error;
  };
