import * as assert from 'node:assert/strict';
import type { Config } from '../../config/define.ts';
import { Svc } from '../../config/sdk/index.ts';
import { migration } from '../../core/migration/builder.ts';
import type { Migration } from '../../core/migration/migration.ts';
import type { Target } from '../../core/migration/target.ts';
import { expectError } from '../suites/expect-error.ts';

/** A configuration whose only environment asks people of the role `dba` about plans that destroy data. */
export const approvalConfig = (dialect: string, url: string, more: Partial<Config> = {}): Config => ({
  product: 'shop',
  env: 'prd',
  databases: { main: { dialect: dialect as 'postgresql', url } },
  environments: { prd: { approval: { role: 'dba' } } },
  approvals: { store: { database: 'main' }, roles: { dba: ['group:dba'] } },
  ...more,
});

/** Runs `body` with a client and its database `main`. */
export async function withClient<T>(config: Config, body: (svc: Svc, target: Target) => Promise<T>): Promise<T> {
  const svc = new Svc({ config });
  try {
    return await body(svc, (await svc.database.connect({ database: 'main' })).getAdapter());
  } finally {
    await svc.close();
  }
}

export const dba = { id: 'ann@acme.example', groups: ['dba'] };

/** Approves the request of a plan as a person who may. */
export const approve = (svc: Svc, requestId: string) =>
  svc.approvals.signal({ signal: 'approve', payload: { requestId } }, { principal: dba });

/** The id of the request for which a change waits. */
export async function requestOf(change: Promise<unknown>): Promise<string> {
  const { requestId } = (await expectError(change, 'approval_pending')).details;
  assert.match(String(requestId), /^apr_/);
  return String(requestId);
}

const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const table = (name: string) => ({ fields: [key, { name: 'note', type: 'string' }] as const, name });

/** Creates two tables, and then drops them in two migrations, with more steps between them. */
export const ground: Migration = migration('20260101_000000_ground')
  .createCollection('one', table('one').fields)
  .createCollection('two', table('two').fields)
  .build();
export const drops: readonly Migration[] = [
  migration('20260102_000000_one')
    .createCollection('first', [key])
    .dropCollection('one', { was: { fields: table('one').fields } })
    .build(),
  migration('20260103_000000_two')
    .dropCollection('two', { was: { fields: table('two').fields } })
    .createCollection('second', [key])
    .build(),
];
