import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';
import { approvalSuite } from './suites/approval-suite.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';
import type { StoreUnderTest } from './suites/test-database.ts';

const memory: StoreUnderTest = {
  name: 'memory',
  async createStore() {
    const store = new MemoryStore();
    return { connect: async () => store, drop: async () => {} };
  },
};

recordStoreSuite(test, {
  ...memory,
  skip: {
    'a store without a table is empty': 'in one process a collection has one definition, from the start',
  },
});
approvalSuite(test, memory);
