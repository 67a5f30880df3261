import type { ApprovalsConfig } from '../../config/define.ts';
import { CALLBACK_KEY, type GateUnderTest, withGate } from '../suites/gate-client.ts';
import { freshDatabase, unavailable } from './postgresql.ts';
import { LONG, type Project, project } from './project.ts';
import { test } from './test.ts';

const missing = await unavailable();
const STORE = { store: { database: 'main' } };

export interface GateAndProject {
  readonly gate: GateUnderTest;
  readonly shop: Project;
  /** Of the database. */
  readonly url: string;
}

interface Setup {
  /** In both configurations. */
  readonly approvals?: ApprovalsConfig;
  /** In that of the project only. */
  readonly projectApprovals?: object;
  readonly humanInLoop?: object;
}

/**
 * Declares a test with a gate in this process, and a project for the command line in another one, on the same new database
 * of PostgreSQL.
 */
export function testGateAndProject(
  name: string,
  body: (under: GateAndProject) => Promise<void>,
  { approvals, projectApprovals, humanInLoop = {} }: Setup = {},
): void {
  if (missing !== undefined) {
    test.skip(name, missing);
    return;
  }
  test(
    name,
    async () => {
      const { url, drop } = await freshDatabase();
      try {
        const own = { ...STORE, callbackKey: CALLBACK_KEY, ...approvals, ...projectApprovals };
        const shop = project({ main: url }, { approvals: own });
        const config = { databases: { main: { dialect: 'postgresql', url } } } as const;
        await withGate({ config, approvals: { ...STORE, ...approvals }, humanInLoop }, (gate) =>
          body({ gate, shop, url }),
        );
      } finally {
        await drop();
      }
    },
    LONG,
  );
}
