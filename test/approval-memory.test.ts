import { MemoryStore } from '../plugins/stores/memory.ts';
import { approvalSuite } from './kit/approval-suite.ts';
import type { StoreUnderTest } from './kit/place.ts';
import { recordStoreSuite } from './kit/record-store.ts';
import { test } from './kit/test.ts';

const memory: StoreUnderTest = {
  name: 'memory',
  async fresh() {
    const store = new MemoryStore();
    return { connect: async () => store, drop: async () => {} };
  },
};

recordStoreSuite(test, {
  ...memory,
  skip: {
    'before its table is there, a store is empty': 'in one process a collection has one definition, from the start',
  },
});
approvalSuite(test, memory);
