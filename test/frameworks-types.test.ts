import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { missing, own } from './frameworks/hosts.ts';
import { test } from './kit/test.ts';

const title = 'the types of the tools of each framework are unchanged';
if (missing !== undefined) test.skip(title, missing);
else
  test(title, async () => {
    const tsc = new URL('../node_modules/typescript/bin/tsc', import.meta.url).pathname;
    const project = new URL('types', own).pathname;
    await promisify(execFile)(process.execPath, [tsc, '-p', project, '--pretty', 'false']).catch(
      ({ stdout }: { stdout: string }) => assert.fail(stdout),
    );
  });
