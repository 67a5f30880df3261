import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Engine } from './engine.ts';

/** One migration of the workload: a table with an identity key and a varchar. */
export interface WorkloadMigration {
  readonly table: string;
  /** Unique and ascending, in the format that svc and most peers use. */
  readonly tag: string;
  readonly sql: string;
}

const START = Date.UTC(2026, 0, 1);

export function workload({ createTable }: Pick<Engine, 'createTable'>, count: number): readonly WorkloadMigration[] {
  return Array.from({ length: count }, (_, index) => {
    const table = `t_${String(index + 1).padStart(5, '0')}`;
    const stamp = new Date(START + index * 1000).toISOString().replace(/[-:]/g, '').replace('T', '_').slice(0, 15);
    return {
      table,
      tag: `${stamp}_create_${table}`,
      sql: createTable(table),
    };
  });
}

/** The same migration as a file of svc. */
export function svcMigration({ table, tag }: WorkloadMigration) {
  return {
    tag,
    name: `create_${table}`,
    up: [
      {
        type: 'createCollection',
        name: table,
        fields: [
          { name: 'id', type: 'integer', primaryKey: true, autoGenerate: true },
          { name: 'name', type: 'string', length: 255, required: true },
        ],
      },
    ],
    down: [{ type: 'dropCollection', collection: table }],
  };
}

export function svcSchemaFile(steps: readonly WorkloadMigration[]) {
  const fields = {
    id: { type: 'Integer', primaryKey: true, autoGenerate: true },
    name: { type: 'String', length: 255, required: true },
  };
  return [{ db: 'main', tables: Object.fromEntries(steps.map(({ table }) => [table, fields])) }];
}

/** Writes files and creates their folders. */
export async function writeAll(folder: string, files: Iterable<readonly [name: string, text: string]>): Promise<void> {
  const created = new Set<string>();
  for (const [name, text] of files) {
    const path = join(folder, name);
    const parent = join(path, '..');
    if (!created.has(parent)) await mkdir(parent, { recursive: true });
    created.add(parent);
    await writeFile(path, text);
  }
}
