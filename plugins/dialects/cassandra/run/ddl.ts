import { setTimeout as wait } from 'node:timers/promises';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { removeEntry } from '../catalog/registry.ts';
import type { AwaitStep, DdlStep } from '../compile/step.ts';
import { isOutcomeUnknown, outcomeUnknownError } from '../connection/errors.ts';
import { waitForSchemaAgreement } from '../connection/schema-agreement.ts';
import { copyLateWrites } from '../data/copy-column.ts';
import { isInEffect, type Preparation } from './preflight.ts';
import { type RunContext, UNLOCKED } from './run-context.ts';

const TAKES_EFFECT_WITHIN_MS = 10_000;

/** Sends a DDL statement; if its response is lost, the catalog shows whether it took effect. */
export async function runDdl(
  context: RunContext,
  ddl: DdlStep,
  epoch: number,
  { alreadySent }: Preparation,
): Promise<void> {
  const { session, lease } = context;
  if (!alreadySent) {
    if (ddl.copied) await copyLateWrites(context, ddl.copied, epoch);
    if (epoch !== UNLOCKED) await lease.assertHeld(epoch);
    await send(context, ddl.cql, () => isInEffect(session, ddl));
  }
  if ('index' in ddl.effect && ddl.effect.target !== null) await waitForIndex(context, ddl.effect.index);
  if ('table' in ddl.effect) await removeEntry(context, ddl.table);
}

/** Waits for what an interrupted attempt did not wait for. */
export async function awaitEffect(context: RunContext, { index }: AwaitStep): Promise<void> {
  await waitForSchemaAgreement(context.session, context.settings.agreementTimeoutMs);
  if (index !== undefined) await waitForIndex(context, index);
}

/** Runs a user's statement. If its response is lost, the outcome is unknown, because svc does not know its effect. */
export async function runRawStatement(context: RunContext, cql: string, epoch: number): Promise<void> {
  await waitForSchemaAgreement(context.session, context.settings.agreementTimeoutMs);
  if (epoch !== UNLOCKED) await context.lease.assertHeld(epoch);
  await send(context, cql, async () => false);
}

/**
 * After an error with an unknown outcome, waits some seconds for the catalog to show the effect. Otherwise, and if the
 * nodes do not agree on the schema in time, the next run checks.
 */
async function send({ session, settings }: RunContext, cql: string, done: () => Promise<boolean>): Promise<void> {
  try {
    await session.execute(cql);
  } catch (error) {
    if (!isOutcomeUnknown(error)) throw error;
    if (!(await waitForEffect(done))) throw outcomeUnknownError(error);
  }
  try {
    await waitForSchemaAgreement(session, settings.agreementTimeoutMs);
  } catch (error) {
    throw isSvcError(error) ? outcomeUnknownError(error) : error;
  }
}

async function waitForEffect(done: () => Promise<boolean>): Promise<boolean> {
  const deadline = performance.now() + TAKES_EFFECT_WITHIN_MS;
  for (;;) {
    if (await done().catch(() => false)) return true;
    if (performance.now() > deadline) return false;
    await wait(200);
  }
}

/** Reads through an index fail on a node that is still building it. */
async function waitForIndex({ session, settings }: RunContext, index: string): Promise<void> {
  const cql = `SELECT index_name FROM system."IndexInfo" WHERE table_name = '${session.keyspace}' AND index_name = '${index}'`;
  const deadline = performance.now() + settings.indexTimeoutMs;
  for (let pause = 5; ; pause = Math.min(pause * 2, 1000)) {
    const nodes = await session.onEveryNode(cql);
    const building = [...nodes].filter(([, rows = []]) => rows.length === 0).map(([address]) => address);
    if (nodes.size > 0 && building.length === 0) return;
    if (performance.now() > deadline) {
      throw new SvcError('connection_lost', `The index "${index}" is not built yet.`, {
        why: `After ${settings.indexTimeoutMs} ms it is not known to be built on ${building.join(', ') || 'any node'}.`,
        next: ['Run the command again: it continues to wait.'],
      });
    }
    await wait(pause);
  }
}
