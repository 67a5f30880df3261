import type { Result } from '../../sql/session.ts';
import type { Address } from './address.ts';
import type { Settings } from './settings.ts';

/** A driver's connection, reduced to what a session needs. */
export interface Wire {
  /** One or several statements; gives the result of each. Integers that a number cannot hold are strings. */
  query(text: string): Promise<readonly Result[]>;
  /** Unheard, the loss of an idle connection ends the process with both drivers. */
  onLost(listener: (error: Error) => void): void;
  /** Says good-bye without waiting for the server to hang up. */
  close(): void;
}

/** Connects with the driver, which is loaded first. Throws `driver_missing` or what the server says. */
export type OpenWire = (address: Address, settings: Pick<Settings, 'connectTimeoutMs' | 'root'>) => Promise<Wire>;
