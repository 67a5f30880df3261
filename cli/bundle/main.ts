#!/usr/bin/env node
import { version } from '../../core/version.ts';

const args = process.argv.slice(2);
if (args.length === 1 && (args[0] === '--version' || args[0] === '-v')) {
  process.stdout.write(`${version}\n`);
} else {
  import('../start.ts')
    .then(({ start }) => start(args))
    // A failed driver may have left a timer that keeps the process alive.
    .then((status) => process.exit(status));
}
