#!/usr/bin/env node
import { version } from '../core/version.ts';

const args = process.argv.slice(2);
if (args.length === 1 && (args[0] === '--version' || args[0] === '-v')) {
  process.stdout.write(`${version}\n`);
} else {
  import('./start.ts')
    .then(({ start }) => start(args))
    // A driver that failed may have left a timer: all is closed and written by now.
    .then((status) => process.exit(status));
}
