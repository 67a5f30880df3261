import type { Dialect } from '../../core/dialect.ts';
import type { StoreUnderTest, TestDatabase } from '../suites/test-database.ts';

/** Records in a database of its own on an engine. */
export function storeOn(dialect: Dialect, fresh: () => Promise<TestDatabase>, missing?: string): StoreUnderTest {
  return {
    name: dialect.name,
    skip: missing,
    patienceMs: 2_000,
    async createStore() {
      const { url, drop } = await fresh();
      return { connect: () => dialect.connect(url, {}), drop };
    },
  };
}
