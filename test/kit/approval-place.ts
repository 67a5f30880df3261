import type { Dialect } from '../../core/dialect.ts';
import type { Fresh } from './fresh.ts';
import type { StoreUnderTest } from './place.ts';

/** Records in a database of its own on an engine. */
export function storeOn(dialect: Dialect, fresh: () => Promise<Fresh>, missing?: string): StoreUnderTest {
  return {
    name: dialect.name,
    skip: missing,
    patienceMs: 2_000,
    async fresh() {
      const { url, drop } = await fresh();
      return { connect: () => dialect.connect(url, {}), drop };
    },
  };
}
