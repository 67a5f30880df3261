import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/**
 * Installs the packages of a folder that has a lockfile of its own, unless `has`, one of them, is there. Returns why it could not.
 */
export function installFolder(folder: URL, has: string): string | undefined {
  if (existsSync(new URL(`node_modules/${has}/package.json`, folder))) return undefined;
  try {
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'pipe', timeout: 110_000 });
    return undefined;
  } catch (error) {
    if (process.env.SVC_TEST_REQUIRE) throw error;
    return `the packages of ${folder.pathname} could not be installed: ${String(error).slice(0, 200)}`;
  }
}
