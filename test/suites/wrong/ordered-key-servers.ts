import { setTimeout as wait } from 'node:timers/promises';
import { definePlugin } from '../../../core/plugin.ts';
import type { KeyCommit } from '../../../plugins/dialects/shared/key-value/ordered-keys.ts';
import { orderedKeysWith, type ServerChange } from '../../kit/ordered-keys.ts';

/** Servers with ordered keys whose `commit` breaks one promise of the contract each, made from a right one. */

const BETWEEN_PARTS_MS = 50;
const NO_CHANGE = { expected: [], put: [], remove: [] } satisfies KeyCommit;

export const wrongServers = {
  'makes its changes until a condition fails': ({ commit }) => ({
    async commit({ expected, put, remove }) {
      const keys = new Set(expected.map(({ key }) => key));
      for (const condition of expected) {
        const own = put.filter(({ key }) => key === condition.key);
        if (!(await commit({ ...NO_CHANGE, expected: [condition], put: own }))) return false;
      }
      return commit({ ...NO_CHANGE, put: put.filter(({ key }) => !keys.has(key)), remove });
    },
  }),
  'compares, and then makes its changes': ({ get, commit }) => ({
    async commit({ expected, ...changes }) {
      const texts = await get(expected.map(({ key }) => key));
      return expected.every(({ text }, at) => texts[at] === text) && commit({ ...changes, expected: [] });
    },
  }),
  'makes its changes one after the other': ({ commit }) => ({
    async commit({ expected, put, remove }) {
      const [first, ...others] = put;
      if (!(await commit({ expected, put: first ? [first] : [], remove: [] }))) return false;
      for (const one of others) await commit({ ...NO_CHANGE, put: [one] });
      return commit({ ...NO_CHANGE, remove });
    },
  }),
  'makes its changes in two parts': ({ commit }) => ({
    async commit({ expected, put, remove }) {
      const half = put.length >> 1;
      if (!(await commit({ expected, put: put.slice(0, half), remove }))) return false;
      // As if it stored more: a kill hits a moment between two small writes only by chance.
      await wait(BETWEEN_PARTS_MS);
      return commit({ ...NO_CHANGE, put: put.slice(half) });
    },
  }),
} satisfies Record<string, ServerChange>;

export type WrongServer = keyof typeof wrongServers;

export function moduleOf(name: WrongServer): URL {
  const url = new URL('./ordered-key-servers.ts', import.meta.url);
  url.searchParams.set('wrong', name);
  return url;
}

/** From the first argument of `dialect-process`, since a bundle does not know the URL that it was imported by. */
const chosen = new URL(process.argv[2] ?? '', import.meta.url).searchParams.get('wrong') as WrongServer;

export default definePlugin({
  name: 'wrong',
  apply: (kernel) => kernel.dialects.register('ordered-keys', orderedKeysWith(wrongServers[chosen])),
});
