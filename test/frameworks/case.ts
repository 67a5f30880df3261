import type { HostName } from './hosts.ts';

export interface Case {
  readonly title: string;
  /** Why it cannot be tried in a framework. */
  readonly impossible?: Partial<Record<HostName, string>> | undefined;
  /** Whether it needs packages of the folder in every framework. */
  readonly needsPackages?: boolean | undefined;
  readonly run: (host: HostName) => Promise<void>;
}
