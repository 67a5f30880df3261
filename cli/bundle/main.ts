#!/usr/bin/env node
import { version } from '../../core/version.ts';

const VERSION_FLAGS: ReadonlySet<string> = new Set(['--version', '-v', '--json', '--no-color']);

const args = process.argv.slice(2);
if ((args.includes('--version') || args.includes('-v')) && args.every((word) => VERSION_FLAGS.has(word))) {
  const result = { ok: true, code: 'ok', version, nextActions: [] };
  process.stdout.write(args.includes('--json') ? `${JSON.stringify(result, null, 2)}\n` : `${version}\n`);
} else {
  import('../start.ts')
    .then(({ start }) => start(args))
    // A failed driver may have left a timer that keeps the process alive.
    .then((status) => process.exit(status));
}
