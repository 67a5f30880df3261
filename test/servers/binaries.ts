import { debian, debianMissing, serversIn } from './debian.ts';
import { here, type Machine } from './machine.ts';
import type { Launch, Source } from './source.ts';
import { temporary } from './temporary.ts';

/** A server that is a program, installed here or in a Debian of our own. */
export interface Recipe {
  readonly title: string;
  /** Why what is installed here cannot be used, or nothing. */
  missing(): string | undefined;
  /** Debian's packages that have it. */
  readonly packages: readonly [string, ...string[]];
  start(machine: Machine, launch: Launch): Promise<string>;
}

/** What is installed here is taken first, but for `SVC_TEST_INSTALLED=off`. */
export function fromBinaries({ title, missing, packages, start }: Recipe): readonly Source[] {
  const name = packages[0];
  return [
    {
      from: `an installed ${title}`,
      missing: () => (process.env.SVC_TEST_INSTALLED === 'off' ? `an installed ${title} is not wanted` : missing()),
      prepare: async () => ({ folder: temporary(), start: (launch) => start(here, launch) }),
    },
    {
      from: `Debian's ${name}`,
      missing: () => debianMissing(name),
      prepare: async (tell) => {
        const root = await debian(name, packages, tell);
        return { folder: serversIn(root), start: (launch) => start({ root }, launch) };
      },
    },
  ];
}
