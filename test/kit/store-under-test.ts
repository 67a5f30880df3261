import type { Dialect } from '../../core/dialect.ts';
import type { StoreUnderTest, TestDatabase } from '../suites/test-database.ts';

/** A record store in a new database of an engine. */
export function storeUnderTest(
  dialect: Dialect,
  createDatabase: () => Promise<TestDatabase>,
  missing?: string,
): StoreUnderTest {
  return {
    name: dialect.name,
    skip: missing,
    maxWriteMs: 2_000,
    async createStore() {
      const { url, drop } = await createDatabase();
      return { connect: () => dialect.connect(url, {}), drop };
    },
  };
}
