#!/usr/bin/env node
import { version } from '../core/version.ts';

const args = process.argv.slice(2);
if (args.length === 1 && (args[0] === '--version' || args[0] === '-v')) {
  process.stdout.write(`${version}\n`);
} else {
  const { start } = await import('./start.ts');
  process.exitCode = await start(args);
}
