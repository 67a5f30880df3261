import { defaultUrls, type Engine, title, urlVariable } from './engine.ts';
import { handshake } from './handshake.ts';
import { errorLine } from './program.ts';
import { startedUrls } from './state.ts';

export type Found = { readonly url: string } | { readonly missing: string };

/**
 * Finds a server of that engine for the tests: at `SVC_TEST_<ENGINE>_URL`, on its default port, or where
 * `npm run servers` started it. Throws if the configured URL does not answer, or if no server is found under
 * `SVC_TEST_REQUIRE=all`; otherwise `missing` is the reason to skip.
 */
export async function find(engine: Engine): Promise<Found> {
  const configuredUrl = process.env[urlVariable(engine)];
  if (configuredUrl !== undefined) {
    await handshake(engine, configuredUrl).catch((error: unknown) => {
      throw new Error(`${title(engine)}: no usable server answers at ${urlVariable(engine)}: ${errorLine(error)}`);
    });
    return { url: configuredUrl };
  }
  const reasons: string[] = [];
  for (const url of new Set([...defaultUrls(engine), ...startedUrls(engine)])) {
    try {
      await handshake(engine, url);
      return { url };
    } catch (error) {
      reasons.push(`${address(url)}: ${errorLine(error)}`);
    }
  }
  const missing = `${title(engine)}: no server answers (${reasons.join('; ') || 'none was started'})`;
  if (process.env.SVC_TEST_REQUIRE === 'all') throw new Error(missing);
  return { missing };
}

const address = (url: string): string => url.replace(/^.*@|^.*:\/\//, '').replace(/\/.*$/, '');
