import { type Engine, title, usualUrls, variable } from './engine.ts';
import { handshake } from './handshake.ts';
import { started } from './state.ts';
import { told } from './told.ts';

export type Found = { readonly url: string } | { readonly missing: string };

/**
 * Where tests find a server of that engine: where the environment says, on its usual port, or where
 * `npm run servers` started it. One that the environment promises and that does not answer is an error, and so is any
 * that is missing under `SVC_TEST_REQUIRE=all`; else what is missing is a reason to skip.
 */
export async function find(engine: Engine): Promise<Found> {
  const promised = process.env[variable(engine)];
  if (promised !== undefined) {
    await handshake(engine, promised).catch((error: unknown) => {
      throw new Error(`${title(engine)}: nothing usable answers where ${variable(engine)} says: ${told(error)}`);
    });
    return { url: promised };
  }
  const reasons: string[] = [];
  for (const url of new Set([...usualUrls(engine), ...started(engine)])) {
    try {
      await handshake(engine, url);
      return { url };
    } catch (error) {
      reasons.push(`${address(url)}: ${told(error)}`);
    }
  }
  const missing = `${title(engine)}: no server answers (${reasons.join('; ') || 'none was started'})`;
  if (process.env.SVC_TEST_REQUIRE === 'all') throw new Error(missing);
  return { missing };
}

const address = (url: string): string => url.replace(/^.*@|^.*:\/\//, '').replace(/\/.*$/, '');
