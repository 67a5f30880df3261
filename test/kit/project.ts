import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Ran, svc } from './cli.ts';
import { folder } from './folder.ts';
import { QUICK } from './quick.ts';

export interface Project {
  readonly root: string;
  readonly svc: (...args: readonly string[]) => Promise<Ran>;
  /** Writes the schema file: tables of `main`, or whole entries. */
  schema(tables: object | readonly object[]): void;
  /** Names of the migration files of a database. */
  files(db?: string): readonly string[];
  read(file: string): string;
  write(file: string, content: string | object): void;
}

/** A folder with a configuration, a schema file and the real CLI. */
export function project(
  databases: Readonly<Record<string, string>>,
  config: object = {},
  variables: Readonly<Record<string, string>> = {},
): Project {
  const entries = Object.entries(databases).map(([tag, url]) => [
    tag,
    { dialect: dialectOf(url), url: { dev: url, prd: url } },
  ]);
  const root = folder({
    'svc.config.json': {
      product: 'shop',
      env: 'dev',
      databases: Object.fromEntries(entries),
      environments: { prd: { protected: true } },
      ...config,
    },
  });
  const write = (file: string, content: string | object): void => {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), typeof content === 'string' ? content : JSON.stringify(content, null, 2));
  };
  // Elsewhere it would make V8 forget what it has compiled of the command.
  const node = Object.values(databases).some((url) => url.startsWith('pglite')) ? [QUICK] : [];
  return {
    root,
    svc: (...args) => svc(args, { cwd: root, env: variables, node }),
    schema: (tables) => write('svc/database/schema.json', Array.isArray(tables) ? tables : [{ db: 'main', tables }]),
    files(db = 'main') {
      try {
        return readdirSync(join(root, 'svc/database/migrations', db)).sort();
      } catch {
        return [];
      }
    },
    read: (file) => readFileSync(join(root, file), 'utf8'),
    write,
  };
}

/** PostgreSQL has several schemes, the others are called like theirs. */
function dialectOf(url: string): string {
  const [scheme = ''] = url.split(':');
  return ['mysql', 'mariadb', 'mongodb'].includes(scheme) ? scheme : 'postgresql';
}
